"""Who computes the units: this process with all its devices, or a Ray cluster."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from uamcts.lab.runner import Engine, Reporter, provenance, run_locally
from uamcts.lab.store import Store
from uamcts.lab.units import Unit

ENGINES = ("local", "ray")


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
    try:
        import ray
    except ModuleNotFoundError:
        raise ValueError("engine ray needs Ray: pip install ray") from None
    missing = {unit.name: unit for unit in units if not store.has(unit.name)}
    if not missing:
        return
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False)
    task = ray.remote(num_cpus=1, max_retries=3, retry_exceptions=False)(_computed)
    waiting = {task.remote(unit): unit for unit in missing.values()}
    number = len(units) - len(missing)
    while waiting:
        done, _ = ray.wait(list(waiting), num_returns=1)
        unit = waiting.pop(done[0])
        episodes, about = ray.get(done[0])
        tell = reporter.begin(unit.name, number, len(units))
        store.write(unit.name, episodes, about)
        number += 1
        tell(1.0, "done on the cluster")


def _computed(unit: Unit) -> tuple[Any, dict[str, Any]]:
    """One unit in a worker: its episodes and their provenance."""
    import tempfile
    import time
    from dataclasses import asdict
    from pathlib import Path

    from uamcts.startup import prepare_jax

    prepare_jax()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        episodes = unit.compute(lambda share, words: None, Path(folder))
    return episodes, {"unit": asdict(unit), "provenance": provenance(time.perf_counter() - start)}
