"""What an agent is in the middle of, in a file: its episode, its doubt, changes of the world, how states recur."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from uamcts.agent.alarm import LATEST, Alarm
from uamcts.agent.backend import Arrays
from uamcts.agent.curiosity import Curiosity
from uamcts.agent.doubt_fit import FittedDoubt
from uamcts.agent.fact_files import pack, unpack
from uamcts.arguments import flag, real, short_repr, whole
from uamcts.corrections.delays import Delays
from uamcts.corrections.doubt import BALLS, Doubt
from uamcts.corrections.python_facts import Change

if TYPE_CHECKING:
    from uamcts.agent.comparing import Comparing
    from uamcts.agent.simulator_backend import SimulatorBackend

DOUBT = {"centres": "f", "actions": "i", "radii": "f", "levels": "f", "offset": "f", "scale": "f"}
"""The arrays of doubt, and their kinds of numbers."""
WORDS = {"changes", "recent", "goes_on", "usual", "stale", "recurrence", "paced", "alarm", "delay", "curiosity"}
LONGEST = 1000
"""Characters that describe a state, at most."""


class Described:
    """A state of which only the description is known: that of a change, in a report."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def progress_arrays(backend: SimulatorBackend) -> Arrays:
    """What `restore_progress` takes over."""
    doubt = backend.doubt.doubt
    changes = [[change.when, short_repr(change.state), change.action] for change in backend.changes]
    words = {
        "changes": changes, "recent": list(backend.returns.recent), "goes_on": _episode_goes_on(backend),
        "usual": list(backend.doubt.usual), "stale": backend.stale_doubt, "recurrence": backend.planner.progress(),
        "paced": backend.paced, "alarm": backend.alarm, "delay": backend.delays.as_json(),
        "curiosity": backend.curiosity.as_json(),
    }  # fmt: skip
    return {**pack(words), **({} if doubt is None else {name: np.asarray(getattr(doubt, name)) for name in DOUBT})}


def restore_progress(backend: SimulatorBackend, arrays: Arrays) -> None:
    """Takes over what a file says; raises a ValueError for anything that is wrong with it."""
    words = unpack({name: array for name, array in arrays.items() if name == "['json']"}, "the progress")
    if not isinstance(words, dict) or words.keys() != WORDS:
        raise ValueError("the progress is not complete")
    facts, planner = backend.planner.patched, backend.planner
    changes = tuple(_change(one, planner.num_actions or 1) for one in words["changes"])
    if changes and facts is None:
        raise ValueError("it tells of changes, but this agent has no memory")
    if facts is not None:
        facts.changes = changes
    recent = [real("a reward", paid) for paid in words["recent"]]
    backend.returns.recent = recent[-backend.returns.depth :]
    backend.resumes = flag("goes_on", words["goes_on"])
    if words["recurrence"] is not None:
        planner.restore_progress([whole("recurrence", number, 0) for number in words["recurrence"]])
    first, second = (real("usual", error, "it must be at least 0", lambda size: size >= 0) for error in words["usual"])
    doubt = _doubt({name[2:-2]: array for name, array in arrays.items() if name != "['json']"})
    backend.doubt = FittedDoubt(doubt, (first, second), None if doubt is None else doubt.table())
    backend.stale_doubt = flag("stale", words["stale"])
    latest, sounded = words["alarm"]
    backend.alarm = Alarm(tuple(flag("alarm", bad) for bad in latest[-LATEST:]), flag("alarm", sounded))
    backend.paced = whole("paced", words["paced"], 0)
    backend.delays, backend.log = Delays.from_json(words["delay"], planner.num_actions or 1), ()
    backend.curiosity = Curiosity.from_json(words["curiosity"], planner.num_actions or 1)


def latest_place(backend: Comparing) -> Hashable:
    """Where the latest transition has led; None if that is not known."""
    rows = backend.experience
    latest = rows.raw[int(np.argmax(rows.column("last")))] if rows.count else None
    return None if latest is None else backend.planner.key(latest[2])


def _episode_goes_on(backend: SimulatorBackend) -> bool:
    """Whether the next transition may go on from the latest one."""
    place = backend.returns.place
    return backend.resumes or (place is not None and place == latest_place(backend))


def _change(found: Any, num_actions: int) -> Change:
    when, text, action = found
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(f"a change is about {short_repr(text)}")
    return Change(whole("when", when, 0), Described(text), whole("action", action, 0, num_actions - 1))


def _doubt(arrays: Arrays) -> Doubt | None:
    if not arrays:
        return None
    if arrays.keys() != DOUBT.keys():
        raise ValueError(f"{min(arrays.keys() ^ DOUBT.keys())} is missing or not part of doubt")
    size = arrays["offset"].shape
    shapes = dict.fromkeys(DOUBT, (BALLS,)) | {"centres": (BALLS, *size), "offset": size, "scale": size}
    for name, kind in DOUBT.items():
        array = arrays[name]
        dtype = np.float32 if kind == "f" else np.int32
        if array.shape != shapes[name] or array.dtype != dtype or not np.isfinite(array).all():
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)}, or holds numbers that are not finite")
    if (arrays["scale"] <= 0).any() or (arrays["levels"] < 0).any() or not (arrays["radii"] >= 0).any():
        raise ValueError("doubt has a scale or a level that cannot be, or no place")
    return Doubt(**arrays)  # type: ignore[arg-type]  # NumPy's, as `Doubt.fit` has them
