"""Files of agents of simulators: everything that was learned, in arrays and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from uamcts.agent import checkpoint
from uamcts.agent.backend import Arrays, FilePath, all_or_nothing, counter, split_groups
from uamcts.agent.experience import Experience
from uamcts.agent.progress_files import progress_arrays, restore_progress
from uamcts.agent.returns import Returns

if TYPE_CHECKING:
    from uamcts.agent.simulator_backend import SimulatorBackend


class Groups(NamedTuple):
    """The arrays of a file, by what they are about."""

    experience: Arrays
    counters: Arrays
    facts: Arrays
    raw: Arrays
    corrector: Arrays
    progress: Arrays


def save_backend(backend: SimulatorBackend, path: FilePath) -> None:
    """Writes all that was learned to a file."""
    checkpoint.save(path, arrays_of(backend), "agent", _about(backend))


def arrays_of(backend: SimulatorBackend) -> dict[str, Arrays]:
    """All that was learned, in groups of arrays."""
    counters: Arrays = {"steps": np.array(backend.steps, np.int64), "acts": np.array(backend.acts, np.int64)}
    counters |= {"tau": np.array(backend.tau), "least": np.array(backend.returns.least)}
    planner, experience = backend.planner, backend.experience
    parts = (
        experience.arrays(), counters, planner.facts(), planner.raw(experience), backend.corrector.arrays(),
        progress_arrays(backend),
    )  # fmt: skip
    return dict(zip(Groups._fields, parts, strict=True))


def load_backend(backend: SimulatorBackend, path: FilePath) -> None:
    """Restores what was saved; on any error nothing changes."""
    found = checkpoint.read(path, "agent", _about(backend))
    try:
        take_arrays(backend, found)
    except (ValueError, TypeError, KeyError) as error:
        words = str(error).removeprefix("it does not fit: ")
        raise ValueError(f"{path} does not fit this agent: {words}") from None


def take_arrays(backend: SimulatorBackend, found: Arrays) -> None:
    """Restores what `arrays_of` returned, with the names that it has in a file; on any error nothing changes."""
    groups = Groups(*split_groups(found, Groups._fields))
    all_or_nothing(backend, lambda twin: twin.restore(groups))


def restore(backend: SimulatorBackend, groups: Groups) -> None:
    """Takes over the arrays of a file; raises an error for anything that is wrong with them."""
    counters, planner = groups.counters, backend.planner
    if counters.keys() != {"['steps']", "['acts']", "['tau']", "['least']"}:
        raise ValueError(f"it holds the counters {sorted(counters)}")
    rows = {name[2:-2]: array for name, array in groups.experience.items()}
    backend.experience = Experience.of(rows, planner.num_actions or 1)
    planner.load_facts(groups.facts)
    planner.load_raw(groups.raw, backend.experience)
    backend.corrector.restore({name[2:-2]: array for name, array in groups.corrector.items()})
    planner.use(backend.corrector.variant(), backend.corrector.in_use == "drift")
    sizes = {} if planner.num_actions is None else planner.sizes()
    for name, size in sizes.items():
        found = backend.experience.rows[name].shape[1] if backend.experience.count else size
        if found != size:
            raise ValueError(f"its states have {found} {name}, here they have {size}")
    backend.steps, backend.acts = (counter(counters, name, np.int64) for name in ("steps", "acts"))
    backend.tau = counter(counters, "tau", np.float64, lambda tau: tau > 0)
    backend.returns = Returns.of(backend.config)
    backend.returns.least = counter(counters, "least", np.float64, lambda least: -np.inf < least <= 0)
    restore_progress(backend, groups.progress)
    doubt, inputs = backend.doubt.doubt, planner.sizes().get("inputs")
    if doubt is not None and inputs is not None and doubt.offset.size != inputs:
        raise ValueError(f"its doubt is about states with {doubt.offset.size} inputs, here they have {inputs}")


def _about(backend: SimulatorBackend) -> dict[str, Any]:
    chosen, planner = backend.chosen, backend.planner
    estimator = chosen if isinstance(chosen, str | None) else type(chosen).__name__
    about = {"simulator": backend.name, "actions": planner.num_actions, "estimator": estimator}
    return {**about, "memory": planner.remembers}
