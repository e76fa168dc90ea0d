"""How programs that run by themselves, such as one search, are compiled on a CPU."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax

from uamcts.runtime.jax_setup import SMALL_LOOPS, knows_cpu_flags

Given = ParamSpec("Given")
Found = TypeVar("Found")


def jit_alone(function: Callable[Given, Found], **options: Any) -> Callable[Given, Found]:
    """`jax.jit` of a program of one search, with `options` of `jax.jit`.

    After `uamcts.configure()`, XLA compiles a search without its fusion emitters, which make every fused operation a
    function of its own: a search, which is thousands of tiny operations, takes half of the time, and so does its
    compilation. Batches and training are faster with them. Without the setting for small loops, searches are too.
    """
    inside: Callable[Given, Found] = jax.jit(function, **options)
    if not (knows_cpu_flags() and SMALL_LOOPS in os.environ.get("XLA_FLAGS", "") and jax.default_backend() == "cpu"):
        return inside
    from jax._src.core import trace_state_clean  # JAX has no public way to ask

    outside = jax.jit(function, compiler_options={"xla_cpu_use_fusion_emitters": False}, **options)

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Found:
        # Only the outermost program may have options.
        return (outside if trace_state_clean() else inside)(*given, **named)

    return call
