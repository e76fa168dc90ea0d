"""How well a JAX simulator with other parameters predicts what was seen: many values and transitions at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from uamcts.agent.compiled_facts import stack
from uamcts.agent.compiled_parameters import ParameterTree, Variant
from uamcts.agent.compiled_programs import Programs, Seen
from uamcts.agent.measure import Measure, Outcome, Outcomes, Scales
from uamcts.agent.surprise import IMPOSSIBLE
from uamcts.corrections.trials import WORST
from uamcts.types import PyTree

ROWS, VALUES = 160, 16
"""Transitions and sets of values in one call of a program; fewer are padded."""
STEP = 5e-3
"""By how much of their size parameters are changed to see what that changes: numbers have seven digits here."""


def padded_rows(raw: Sequence[tuple[PyTree, int, PyTree]], rewards: np.ndarray, ends: np.ndarray) -> Seen:
    """At most ROWS transitions as arrays of fixed size; the last one is repeated."""
    spare = ROWS - len(raw)
    rows = [*raw, *[raw[-1]] * spare]
    states, following = (stack([one[place] for one in rows]) for place in (0, 2))
    actions = np.array([one[1] for one in rows], np.int32)
    return Seen(states, actions, following, *(np.pad(part, (0, spare)).astype(np.float32) for part in (rewards, ends)))


class CompiledTrials:
    """Real transitions beside a JAX simulator whose parameters can be set.

    Args:
        compiled: The programs of the simulator.
        tree: Its parameters.
        seen: State, action and next state of each transition, at most ROWS.
        outcomes: The real outcome of each.
        measure: How errors are measured.
        scales: In which units.
        floor: An error up to this is as good as none.
        times: How often each was seen; by default once.
    """

    small_step = STEP

    def __init__(
        self,
        compiled: Programs,
        tree: ParameterTree,
        seen: Sequence[tuple[PyTree, int, PyTree]],
        outcomes: Sequence[Outcome],
        measure: Measure,
        scales: Scales,
        floor: float,
        times: np.ndarray | None = None,
    ):
        self.times = np.ones(len(seen)) if times is None else times
        self.compiled, self.tree, self.seen = compiled, tree, seen
        self.measure, self.scales, self.floor = measure, scales, floor
        self.random = compiled.simulator.kind != "step"
        self.real = Outcomes.of(outcomes, outcomes[0].features.size)
        self._rows = padded_rows(seen, self.real.rewards, self.real.ends)

    def losses(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Nats [G, rows]: log(u + floor), or the surprise where outcomes are random."""
        if self.random:
            found = self._run(names, values)[:, rows]
            return np.asarray(np.where(np.isfinite(found), found, 1.0 - np.log(IMPOSSIBLE)) * self.times[rows])
        parts = self._parts(names, values)[:, rows]
        return np.asarray(np.log(np.minimum(np.sum(parts**2, axis=-1), WORST) + self.floor))

    def residuals(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences for one set of values, [rows, parts]."""
        return np.asarray(self._parts(names, np.asarray(values, float)[None])[0][rows])

    def paths(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Differences where every row has its own values, [rows, parts]."""
        return np.asarray(self._parts(names, values)[np.arange(len(rows)), rows])

    def jacobian(self, names: Sequence[str], values: np.ndarray, rows: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Derivatives of the differences, [rows, parts, names], by central differences.

        `units` are the sizes of the parameters. The end of an episode jumps: its derivative is 0.
        """
        steps = np.diag(STEP * np.abs(units))
        values = np.asarray(values, float)
        parts = self._parts(names, np.concatenate([values + steps, values - steps]))[:, rows]
        slopes = (parts[: len(names)] - parts[len(names) :]) / (2 * STEP * np.abs(units))[:, None, None]
        if "terminal" in self.measure.parts:
            slopes[..., -1] = 0.0
        return np.moveaxis(slopes, 0, -1)

    def _vectors(self, names: Sequence[str], values: np.ndarray) -> np.ndarray:
        rows = np.asarray(values, float).reshape(len(values), len(names)).tolist()
        return np.stack([self.tree.vector(dict(zip(names, row, strict=True))) for row in rows])

    def _run(self, names: Sequence[str], values: np.ndarray) -> Any:
        """What the program gives for each set of values, arrays [G, rows, ...]."""
        vectors = self._vectors(names, values)
        if len(vectors) == 1:
            return self._cut(self.compiled.trials(self.tree.params, vectors, self._rows), 1)
        parts = []
        for start in range(0, len(vectors), VALUES):
            some = vectors[start : start + VALUES]
            padded = np.concatenate([some, np.repeat(some[-1:], VALUES - len(some), axis=0)])
            parts.append(self._cut(self.compiled.trials(self.tree.params, padded, self._rows), len(some)))
        if self.random:
            return np.concatenate(parts)
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _cut(self, found: Any, values: int) -> Any:
        """The results without what was padded."""
        count = len(self.seen)
        if self.random:
            return np.asarray(found, np.float64)[:values, :count]
        return tuple(np.asarray(part, np.float64)[:values, :count] for part in found)

    def _parts(self, names: Sequence[str], values: np.ndarray) -> np.ndarray:
        """The parts of U as differences, whose squares sum to U: [G, rows, parts]."""
        features, rewards, ends = self._run(names, values)
        own = None if self.measure.own is None else self._own(names, values)
        return self.measure.many_differences(self.real, Outcomes(features, rewards, ends), self.scales, WORST, own)

    def _own(self, names: Sequence[str], values: np.ndarray) -> np.ndarray:
        """The user's own measure of the difference of states, [G, rows]."""
        measure: Any = self.measure.own
        found = []
        for vector in self._vectors(names, values):
            variant = Variant(self.tree.filled(vector))
            states = self.compiled.predict_rows(variant, self._rows.state, self._rows.action)[0]
            found.append(
                [float(measure(one[2], after)) for one, after in zip(self.seen, unstack(states), strict=False)]
            )
        return np.array(found)


def unstack(states: PyTree) -> list[PyTree]:
    """States out of a pytree with a leading axis."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, states))
    return [jax.tree.unflatten(structure, [leaf[row] for leaf in leaves]) for row in range(len(leaves[0]))]


def all_seen(planner: Any, raw: Any, latest: Outcome, times: int) -> list[tuple[Any, Outcome, int]]:
    """All outcomes of a transition that facts tell of, and how often each was seen, the latest one included."""
    state, action, _ = raw
    fact = None if planner.patched is None else planner.patched.facts.get((planner.key(state), action))
    if fact is None:
        return [(raw, latest, 1)]
    found = []
    for seen in fact.outcomes.values():
        outcome = Outcome(planner.features(seen.following), None if seen.varied else seen.reward, seen.terminal)
        found.append(((state, action, seen.following), outcome, seen.times))
    missing = times - sum(one[2] for one in found)  # a fit comes before the latest transition becomes a fact
    return [*found, (raw, latest, missing)] if missing > 0 else found
