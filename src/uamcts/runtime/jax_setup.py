"""How JAX is set up for searches: by the command line, and by `uamcts.configure` in other programs."""

from __future__ import annotations

import os
import sys
import warnings

from uamcts.runtime.compile_cache import cache_folder

SMALL_LOOPS = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=4000000"
"""A rollout's loop as one compiled function instead of one call per step."""
WIDE_VECTORS = "--xla_cpu_prefer_vector_width=512"
"""Rollouts of a batch are vector loops of integers. LLVM's default is half of what many processors have."""


def configure() -> bool:
    """Sets JAX up for searches, as the `uamcts` command does: call it first, before JAX computes anything.

    Every core becomes a device of its own, which computes with one thread: a search is a sequence of short vector
    loops, which several threads only slow down, and `uamcts.search_many` spreads a batch over the devices. Compiled
    programs are kept in a folder of the user, so that the next start compiles nothing. Environment variables that are
    already set are kept.

    Returns:
        Whether the settings take effect. False, with a warning, if JAX has computed something already.

    Example:
        ```python
        import uamcts

        uamcts.configure()
        ```
    """
    if _has_started():
        warnings.warn(
            "JAX has computed something already, so that uamcts.configure() has no effect; call it first in your "
            "program, or first after restarting a notebook's kernel",
            stacklevel=2,
        )
        return False
    _set_environment(device_a_core=True)
    if "jax" in sys.modules:  # what JAX has read from the environment when it was imported
        import jax

        if folder := os.environ.get("JAX_COMPILATION_CACHE_DIR"):
            jax.config.update("jax_compilation_cache_dir", folder)
            seconds = float(os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"])
            jax.config.update("jax_persistent_cache_min_compile_time_secs", seconds)
        jax.config.update("jax_num_cpu_devices", int(os.environ["JAX_NUM_CPU_DEVICES"]))
    return True


def _has_started() -> bool:
    """Whether JAX has started its devices, after which their number and flags stay as they are."""
    if "jax" not in sys.modules:
        return False
    from jax._src import xla_bridge  # JAX has no public way to ask

    return bool(xla_bridge.backends_are_initialized())


def knows_cpu_flags() -> bool:
    """Whether this version of XLA is known to have the flags used here: it ends the process for an unknown flag."""
    import importlib.metadata  # here, because `uamcts --help` does without it

    return importlib.metadata.version("jaxlib").startswith(("0.8.", "0.9.", "0.10."))


def compiles_small_loops() -> bool:
    """Whether XLA compiles small loops as one function (`SMALL_LOOPS`) on the device of this process."""
    import jax

    return SMALL_LOOPS in os.environ.get("XLA_FLAGS", "") and jax.default_backend() == "cpu"


def prepare_jax(all_cores: bool = False, device_a_core: bool = False) -> None:
    """Enables the cache of compiled programs and sets XLA's flags. Does nothing if JAX is loaded already.

    Args:
        all_cores: Let XLA split loops between threads. A search consists of short vector loops, which are slower that
            way, so one thread is the default.
        device_a_core: Make every core a device, for work that is spread over devices.
    """
    if "jax" not in sys.modules:
        _set_environment(all_cores, device_a_core)


def _set_environment(all_cores: bool = False, device_a_core: bool = False) -> None:
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and (cache := cache_folder()):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    wanted = [SMALL_LOOPS, *([WIDE_VECTORS] if knows_cpu_flags() else [])]
    if device_a_core:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        os.environ.setdefault("PJRT_NPROC", str(cores))
        os.environ.setdefault("JAX_NUM_CPU_DEVICES", str(cores))
        wanted.append("--xla_cpu_multi_thread_eigen=false")
    elif not all_cores:
        os.environ.setdefault("PJRT_NPROC", "1")
    flags = os.environ.get("XLA_FLAGS", "")
    missing = [flag for flag in wanted if flag.split("=")[0] not in flags]
    os.environ["XLA_FLAGS"] = " ".join([flags, *missing]).strip()
