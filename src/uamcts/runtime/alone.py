"""How programs that run by themselves, such as one search, are compiled on a CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import jax

from uamcts.runtime.jax_setup import compiles_small_loops, knows_cpu_flags

Given = ParamSpec("Given")
Found = TypeVar("Found")


def jit_alone(
    function: Callable[Given, Found], static_argnames: Sequence[str] = (), donate_argnames: Sequence[str] = ()
) -> Callable[Given, Found]:
    """`jax.jit` of a program of one search, with some of the arguments of `jax.jit`.

    After `uamcts.configure()`, XLA compiles a search without its fusion emitters, which make every fused operation a
    function of its own: a search, which is thousands of tiny operations, takes half of the time, and so does its
    compilation. Batches and training are faster with them. Without the setting for small loops, searches are too.
    """
    compiler = functools.partial(
        jax.jit, function, static_argnames=tuple(static_argnames), donate_argnames=tuple(donate_argnames)
    )
    inside: Callable[Given, Found] = compiler()
    if not (knows_cpu_flags() and compiles_small_loops()):
        return inside
    from jax._src.core import trace_state_clean  # JAX has no public way to ask

    outside = compiler(compiler_options={"xla_cpu_use_fusion_emitters": False})

    @functools.wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Found:
        # Only the outermost program may have options.
        return (outside if trace_state_clean() else inside)(*given, **named)

    return call
