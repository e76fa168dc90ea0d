"""Engines compute units: this process on all its devices, or a Ray cluster."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Sequence
from typing import Any

from uamcts.lab.run.compute import compute_unit
from uamcts.lab.run.differences import differences, in_words
from uamcts.lab.run.provenance import provenance
from uamcts.lab.run.runner import Engine, Reporter, run_locally
from uamcts.lab.run.store import Store
from uamcts.lab.run.units import Unit

ENGINES = ("local", "ray")
CONNECT_SECONDS = 5
"""How long a cluster may take to answer."""
PATIENCE = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": str(CONNECT_SECONDS),
    "RAY_gcs_rpc_server_connect_timeout_s": str(CONNECT_SECONDS),
}
"""The same limit in Ray's own settings."""
RAY_REMEDY = "start a cluster with `ray start --head`, or give its address as HOST:PORT or ray://HOST:PORT"


def make_engine(name: str, address: str | None = None) -> Engine:
    """The engine of this name, `local` or `ray`; `address` is that of the Ray cluster."""
    if name == "local":
        if address is not None:
            raise ValueError(f"address is {address!r}, which only the engine ray reads; add --engine ray")
        return run_locally
    if name != "ray":
        raise ValueError(f"engine is {name!r}; give {' or '.join(ENGINES)}")
    return functools.partial(run_on_ray, address=address)


def run_on_ray(units: Sequence[Unit], store: Store, reporter: Reporter, address: str | None = None) -> None:
    """Computes units as tasks of a Ray cluster and writes the results here. Units of lost workers run again."""
    ray = _import_ray()
    missing = {unit.name: unit for unit in units if not store.has(unit.name)}
    if not missing:
        return
    if not ray.is_initialized():
        connect(address)
    task = ray.remote(num_cpus=1, max_retries=3, retry_exceptions=False)(_compute_remotely)
    waiting = {task.remote(unit): unit for unit in missing.values()}
    number = len(units) - len(missing)
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1)
        unit = waiting.pop(done[0])
        episodes, identity, about = ray.get(done[0])
        if identity != unit.identity:
            odd = in_words(differences(identity, unit.identity))
            raise ValueError(f"a worker has another version of uamcts ({odd}); install the same one on the cluster")
        tell = reporter.begin(unit.name, number, len(units))
        store.write(unit, episodes, about)
        number += 1
        tell(1.0, "done on the cluster")


def connect(address: str | None) -> None:
    """Connects to a Ray cluster. Without an address, Ray finds one or starts one on this machine.

    Ray waits more than a minute for an address that does not answer, so the address is tried first.
    """
    ray = _import_ray()
    host, port = _host_and_port(address)
    print(f"connecting to Ray{'' if address is None else f' at {address}'}", flush=True)
    if port:
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ValueError(f"address is {address!r}; nothing answers there ({error}): {RAY_REMEDY}") from None
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, TypeError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"address is {address!r}; Ray cannot connect to it ({reason[0]}): {RAY_REMEDY}") from None


def _import_ray() -> Any:
    """The module `ray`, with environment variables that limit how long it tries to connect."""
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise ValueError("engine ray needs Ray: pip install 'uamcts[ray]'") from None
    return ray


def _host_and_port(address: str | None) -> tuple[str, int]:
    """The host and port in HOST:PORT or ray://HOST:PORT; port 0 where there is none to try, as in `auto`."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    return host.strip("[]"), int(port) if host and port.isdecimal() and int(port) < 2**16 else 0


def _compute_remotely(unit: Unit) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Computes a unit in a worker: its episodes, its identity according to the worker, and its provenance."""
    import tempfile
    import time
    from pathlib import Path

    from uamcts.runtime.jax_setup import prepare_jax

    prepare_jax()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        episodes = compute_unit(unit, lambda share, words: None, Path(folder))
    return episodes, unit.identity, provenance(time.perf_counter() - start)
