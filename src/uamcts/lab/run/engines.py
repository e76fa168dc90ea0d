"""Who computes the units: this process with all its devices, or a Ray cluster."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Sequence
from typing import Any

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
"""The same for what Ray itself tries, in its own settings."""
RAY_REMEDY = "start a cluster with `ray start --head`, or give its address as HOST:PORT or ray://HOST:PORT"


def engine_of(name: str, address: str | None = None) -> Engine:
    """An engine by its name."""
    if name == "local":
        if address is not None:
            raise ValueError(f"address is {address!r}, which is for the engine ray; add --engine ray")
        return run_locally
    if name != "ray":
        raise ValueError(f"engine is {name!r}; there are {', '.join(ENGINES)}")
    return functools.partial(run_on_ray, address=address)


def run_on_ray(units: Sequence[Unit], store: Store, reporter: Reporter, address: str | None = None) -> None:
    """Units as tasks of a Ray cluster, results written here; the unit of a worker that was lost is run again."""
    ray = _import_ray()
    missing = {unit.name: unit for unit in units if not store.has(unit.name)}
    if not missing:
        return
    if not ray.is_initialized():
        connect(address)
    task = ray.remote(num_cpus=1, max_retries=3, retry_exceptions=False)(_computed)
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
    """Connects to a Ray cluster; without an address to the one that Ray finds, or to one that it starts here.

    Ray waits more than a minute for an address at which nobody is, so that is found out first.
    """
    ray = _import_ray()
    host, port = _host_and_port(address)
    print(f"connecting to Ray{'' if address is None else f' at {address}'}", flush=True)
    if port:
        try:
            socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
        except OSError as error:
            raise ValueError(f"address is {address!r}; nobody answers there ({error}): {RAY_REMEDY}") from None
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, RuntimeError, ValueError, TypeError, OSError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(f"address is {address!r}; Ray cannot connect to it ({reason[0]}): {RAY_REMEDY}") from None


def _import_ray() -> Any:
    """Ray, told before it is loaded not to try for minutes where something else than a cluster answers."""
    for name, value in PATIENCE.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise ValueError("engine ray needs Ray: pip install 'uamcts[ray]'") from None
    return ray


def _host_and_port(address: str | None) -> tuple[str, int]:
    """Of HOST:PORT or ray://HOST:PORT; port 0 where there is none to try, as in `auto`."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    return host.strip("[]"), int(port) if host and port.isdecimal() and int(port) < 2**16 else 0


def _computed(unit: Unit) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """One unit in a worker: its episodes, what they are to that worker, and their provenance."""
    import tempfile
    import time
    from pathlib import Path

    from uamcts.runtime.jax_setup import prepare_jax

    prepare_jax()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        episodes = unit.compute(lambda share, words: None, Path(folder))
    return episodes, unit.identity, provenance(time.perf_counter() - start)
