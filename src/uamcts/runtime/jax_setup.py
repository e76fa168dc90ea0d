"""What the command line sets before JAX is loaded."""

from __future__ import annotations

import importlib.util
import os
import sys

from uamcts.runtime.compile_cache import cache_folder

GPU_FLAGS = (
    # Loops as CUDA graphs: else the host looks at every loop's condition, which is most of a small search's time.
    "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,WHILE,CONDITIONAL,DYNAMIC_SLICE_FUSION",
    "--xla_gpu_graph_min_graph_size=1",
)


CPU_FLAGS = (
    # A rollout's loop, with the table it looks things up in, as one compiled function instead of a call a step.
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=4000000",
)


def prepare_jax(all_cores: bool = False, device_a_core: bool = False) -> None:
    """Keeps compiled programs in the user's cache folder, and lets a GPU run whole loops by itself.

    On a CPU a search is many short vector loops: split between threads they take longer, so one thread is the default.
    With `device_a_core` every core is a device of its own, for work that is spread over devices.
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
