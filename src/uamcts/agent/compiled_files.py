"""Facts and raw transitions of JAX simulators as arrays of a file."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from uamcts.agent.compiled_facts import CompiledFacts, stack
from uamcts.corrections.fact_weights import Weigher
from uamcts.corrections.python_facts import OutcomeCount, Streak
from uamcts.types import PyTree

Arrays = dict[str, np.ndarray]

CLOCK = ("clock", "repeats", "contradictions")
NUMBERS = len(CLOCK) + 2 * len(Weigher().scores)
"""How many numbers these are, with the scores of how much facts weigh: the present ones, and those in use."""
ABOUT = {"action": "i", "length": "i", "chance": "f", "agrees": "b", "last": "i", "confirmed": "i", "stale": "b"}
SEEN = {"owner": "i", "terminal": "b", "times": "i", "reward": "f", "varied": "b"}
TYPES = {"i": np.int64, "f": np.float64, "b": np.bool_}


def pack_states(name: str, states: list[PyTree], example: PyTree) -> Arrays:
    """States as arrays with a leading axis."""
    leaves = jax.tree.leaves(stack([*states, example]))
    return {f"{name}{place}": leaf[:-1] for place, leaf in enumerate(leaves)}


def unpack_states(name: str, arrays: Arrays, example: PyTree, count: int) -> list[PyTree]:
    """What `pack_states` was given; raises a ValueError if the arrays are not states like `example`."""
    leaves, structure = jax.tree.flatten(example)
    found = []
    for place, leaf in enumerate(leaves):
        array, like = arrays[f"{name}{place}"], np.asarray(leaf)
        if array.shape != (count, *like.shape) or array.dtype != like.dtype:
            raise ValueError(
                f"{name}{place} is {array.dtype}{list(array.shape)}, not {like.dtype}{[count, *like.shape]}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name}{place} holds numbers that are not finite")
        found.append(array)
    return [jax.tree.unflatten(structure, [leaf[row] for leaf in found]) for row in range(count)]


def _names(prefixes: tuple[str, ...], example: PyTree) -> set[str]:
    return {f"{prefix}{place}" for prefix in prefixes for place in range(len(jax.tree.leaves(example)))}


def _check_names(arrays: Arrays, wanted: set[str], what: str) -> Arrays:
    """The arrays of a group by their own names; refuses missing and unknown ones."""
    found = {name[2:-2]: array for name, array in arrays.items()}
    if found.keys() != wanted:
        odd = min(found.keys() ^ wanted)
        raise ValueError(f"{odd} is {'missing from' if odd in wanted else 'not part of'} {what}")
    return found


def _column(arrays: Arrays, name: str, kind: str, count: int) -> list[Any]:
    """A checked column of numbers."""
    array = arrays[name]
    if array.shape != (count,) or array.dtype != TYPES[kind]:
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
    if kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    if kind == "i" and (array < 0).any():
        raise ValueError(f"{name} holds numbers below 0")
    found: list[Any] = array.tolist()
    return found


def pack_raw(raw: list[tuple[PyTree, int, PyTree]], example: PyTree) -> Arrays:
    """Raw transitions as arrays."""
    actions = np.array([one[1] for one in raw], np.int64)
    states = pack_states("state", [one[0] for one in raw], example)
    return {"action": actions, **states, **pack_states("following", [one[2] for one in raw], example)}


def unpack_raw(arrays: Arrays, example: PyTree, num_actions: int, count: int) -> list[tuple[PyTree, int, PyTree]]:
    """What `pack_raw` was given; raises a ValueError that says what is wrong with other arrays."""
    found = _check_names(arrays, {"action"} | _names(("state", "following"), example), "the raw transitions")
    actions = _column(found, "action", "i", count)
    if max(actions, default=0) >= num_actions:
        raise ValueError(f"a raw transition has the action {max(actions)}")
    states, following = (unpack_states(name, found, example, count) for name in ("state", "following"))
    return list(zip(states, actions, following, strict=True))


def pack_facts(facts: CompiledFacts | None, example: PyTree) -> Arrays:
    """Facts as arrays."""
    held = [] if facts is None else [(action, fact) for (_, action), fact in facts.facts.items()]
    clock = [0.0] * NUMBERS if facts is None else [float(getattr(facts, name)) for name in CLOCK]
    if facts is not None:
        clock += [-score for weigher in (facts.weigher, facts.planned_weigher) for score in weigher.scores]
    about = [(action, *fact.streak[1:], fact.agrees, fact.last, fact.confirmed, fact.stale) for action, fact in held]
    seen = [(owner, count) for owner, (_, fact) in enumerate(held) for count in fact.outcomes.values()]
    outcomes = [(owner, count.terminal, count.times, count.reward, count.varied) for owner, count in seen]
    arrays = {"clock": np.array(clock)}
    for columns, rows in ((ABOUT, about), (SEEN, outcomes)):
        for place, (name, kind) in enumerate(columns.items()):
            arrays[name] = np.array([row[place] for row in rows], TYPES[kind])
    states = pack_states("state", [fact.state for _, fact in held], example)
    return {**arrays, **states, **pack_states("following", [count.following for _, count in seen], example)}


def unpack_facts(arrays: Arrays, facts: CompiledFacts | None, example: PyTree, num_actions: int) -> None:
    """Puts what `pack_facts` returned into empty facts; raises a ValueError if the arrays are something else."""
    wanted = {"clock", *ABOUT, *SEEN} | _names(("state", "following"), example)
    found = _check_names(arrays, wanted, "the facts")
    rows, outcomes = (found[name].size for name in ("action", "owner"))
    about = {name: _column(found, name, kind, rows) for name, kind in ABOUT.items()}
    seen = {name: _column(found, name, kind, outcomes) for name, kind in SEEN.items()}
    if facts is None:
        if rows:
            raise ValueError("it holds facts, but this agent has no memory")
        return
    clock = _column(found, "clock", "f", found["clock"].size if found["clock"].shape == (len(CLOCK),) else NUMBERS)
    if min(clock) < 0:
        raise ValueError(f"the clock of the facts is {clock}")
    if set(seen["owner"]) != set(range(rows)) or max(about["action"], default=0) >= num_actions:
        raise ValueError("there are outcomes without a transition, or transitions without outcomes or action")
    if min(seen["times"], default=1) < 1 or min(about["length"], default=1) < 1:
        raise ValueError("an outcome was seen less than once")
    facts.clock, facts.repeats, facts.contradictions = int(clock[0]), int(clock[1]), clock[2]
    if len(clock) == NUMBERS:  # older files have no weights
        scores = [-score for score in clock[len(CLOCK) :]]
        half = len(scores) // 2
        facts.weigher, facts.planned_weigher = Weigher(tuple(scores[:half])), Weigher(tuple(scores[half:]))
    states = unpack_states("state", found, example, rows)
    following = unpack_states("following", found, example, outcomes)
    counts = [OutcomeCount(*row) for row in zip(following, *(seen[name] for name in list(SEEN)[1:]), strict=True)]
    held: list[dict[Any, OutcomeCount]] = [{} for _ in range(rows)]
    for owner, count in zip(seen["owner"], counts, strict=True):
        held[owner][facts.key(count.following), count.terminal] = count
    for row, (state, kinds) in enumerate(zip(states, held, strict=True)):
        streak = Streak(next(reversed(kinds)), about["length"][row], about["chance"][row])
        known = {name: about[name][row] for name in ("agrees", "last", "confirmed", "stale")}
        facts.place(state, about["action"][row], kinds, streak=streak, **known)
    if len(facts.facts) != rows or sum(map(len, held)) != outcomes:
        raise ValueError("a fact or an outcome is in it twice")
