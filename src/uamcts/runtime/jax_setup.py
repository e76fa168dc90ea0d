"""Environment variables that the command line sets before JAX is loaded."""

from __future__ import annotations

import importlib.util
import os
import sys

from uamcts.runtime.compile_cache import cache_folder

GPU_FLAGS = (
    # Loops as CUDA graphs: otherwise the host checks every loop's condition, which dominates a small search.
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION",
    "--xla_gpu_graph_min_graph_size=1",
)


CPU_FLAGS = (
    # A rollout's loop as one compiled function instead of one call per step.
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=4000000",
)


def prepare_jax(all_cores: bool = False, device_a_core: bool = False) -> None:
    """Enables the cache of compiled programs and sets XLA's flags. Does nothing if JAX is loaded already.

    Args:
        all_cores: Let XLA split loops between threads. A search consists of short vector loops, which are slower that
            way, so one thread is the default.
        device_a_core: Make every core a device, for work that is spread over devices.
    """
    if "jax" in sys.modules:
        return
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and (cache := cache_folder()):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = str(cache)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    has_gpu = any(importlib.util.find_spec(f"jax_cuda{version}_plugin") for version in (12, 13))
    wanted = [*CPU_FLAGS, *(GPU_FLAGS if has_gpu else ())]
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
