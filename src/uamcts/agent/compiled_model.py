"""A JAX simulator as an agent asks it: what it predicts, with or without corrections, in NumPy's arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.backend import Guides, match_structure
from uamcts.agent.chance import RealOutcome, matching_outcome
from uamcts.agent.compiled_facts import CompiledFacts
from uamcts.agent.compiled_form import Form
from uamcts.agent.compiled_parameters import ParameterTree, Variant
from uamcts.agent.compiled_programs import Programs, Seen, programs
from uamcts.agent.compiled_rates import ListedOutcomes
from uamcts.agent.compiled_residual import PackedResidual
from uamcts.agent.compiled_trials import ROWS, padded_rows, unstack
from uamcts.agent.effects import NoEffects
from uamcts.agent.feature_names import leaf_names
from uamcts.agent.jax_simulator import JaxSimulator
from uamcts.agent.measure import Measure, Outcome
from uamcts.arguments import LARGEST, flag, real, short_repr
from uamcts.corrections.mixture import Mixture, moments
from uamcts.corrections.outcome_rates import OutcomeRates
from uamcts.corrections.residual import Residual
from uamcts.corrections.trials import WORST
from uamcts.errors import SimulatorError
from uamcts.types import PyTree

MOST_LOOKS, MOST_ANSWERS = 512, 16
"""States and predictions that are kept because they are asked for again soon."""


class Look(NamedTuple):
    """What an agent needs of a state."""

    features: np.ndarray
    inputs: np.ndarray
    key: Hashable


class Answer(NamedTuple):
    """What a simulator predicts for a step, [outcomes]."""

    states: PyTree
    rewards: np.ndarray
    ends: np.ndarray
    chances: np.ndarray
    features: np.ndarray
    keys: list[Hashable]

    def state(self, place: int) -> PyTree:
        """One of the next states."""
        return jax.tree.map(lambda leaf: leaf[place], self.states)


@dataclass(eq=False)
class Prepared:
    """A variant of the simulator, and what it has predicted lately."""

    arrays: Variant
    answers: dict[tuple[bytes, int], Answer] = field(default_factory=dict)


class CompiledModel(ListedOutcomes, NoEffects):
    """What a JAX simulator and its variants predict."""

    patched: CompiledFacts | None

    def __init__(self, simulator: JaxSimulator, guides: Guides):
        self.simulator, self.name = simulator, simulator.name
        try:
            self._compiled = programs(Form(simulator), guides)
        except TypeError:  # a policy, value or prior that cannot be hashed
            self._compiled = Programs(Form(simulator), guides)
        self._parameters = ParameterTree(simulator.params)
        self._example = jax.tree.map(lambda leaf: np.asarray(jnp.asarray(leaf)), simulator.example)
        self._structure: Any = jax.tree.structure(self._example)
        self._form = [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(self._example)]
        self._looks: dict[bytes, Look] = {}
        self._believed = self._variant = Prepared(Variant(self._parameters.params, None, self._rates()))

    def parameters(self) -> dict[str, float]:
        """The parameters of the simulator and their believed values."""
        return self._parameters.believed

    @property
    def deterministic(self) -> bool:
        return self.simulator.kind == "step"

    @property
    def can_shift(self) -> bool:
        """Whether next states can be shifted by a residual."""
        return self.deterministic and self._compiled.shift.possible

    can_shift_early, draws_quickly = False, True
    """A compiled search can only shift next states; 64 draws are one call."""

    def variant(self, values: dict[str, float], residual: Residual | OutcomeRates | None) -> Prepared:
        """The simulator with other parameters and a residual, or other rates of its outcomes."""
        if not values and residual is None:
            return self._believed
        params = self._parameters.with_values(values) if values else self._believed.arrays.params
        if isinstance(residual, OutcomeRates):
            return Prepared(Variant(params, None, self._rates(residual)))
        return Prepared(Variant(params, None if residual is None else PackedResidual.of(residual), self._rates()))

    @property
    def judges_rewards(self) -> bool:
        """Whether the simulator says itself what a corrected next state pays."""
        return self.simulator.reward is not None

    def predict_next(self, raw: Sequence[Any], variant: Prepared, shifts: np.ndarray | None = None) -> list[np.ndarray]:
        """The features of the next states, rewards and ends that a variant predicts."""
        del shifts
        found = self._chunks(raw, variant)
        return [np.concatenate([one[part] for one in found]).astype(np.float64) for part in (1, 2, 3)]

    def choices(self, state: PyTree) -> Iterable[int]:
        """The legal actions of a state."""
        legal = self.simulator.legal
        return range(self.simulator.num_actions) if legal is None else np.flatnonzero(legal(state)).tolist()

    def foresee(self, state: PyTree, action: int) -> tuple[float, bool]:
        """The reward that the corrected model predicts, and whether the episode ends."""
        said = self._answer(state, action, self._variant)
        return float(said.rewards[0]), bool(said.ends[0])

    def reward_moments(self, state: PyTree, action: int, by: str = "facts") -> tuple[float, float]:
        """Mean and variance of the reward of a step: by the simulator, with all corrections, or with facts as well."""
        said = self._answer(state, action, self._believed if by == "simulator" else self._variant)
        planned = self.patched.plans_with(state, action) if by == "facts" and self.patched is not None else None
        if planned is not None and not isinstance(planned, Mixture):
            return float(planned[1]), 0.0
        share = 1.0 if planned is None else planned.model_share
        seen = [] if planned is None else [(1.0 - share, planned.seen)]
        rewards = zip(said.chances.tolist(), zip(said.keys, said.rewards.tolist(), strict=True), strict=True)
        return moments([(share, list(rewards)), *seen])

    def feature_names(self, state: PyTree) -> list[str]:
        """What the features of a state are called: by the numbers of the state that they are."""
        places = self._compiled.shift.places
        if self.simulator.features is None or places is None:
            return leaf_names(state) if self.simulator.features is None else []
        found = [f"feature {number}" for number in range(self.features(state).size)]
        for place, name in zip(places.tolist(), leaf_names(jax.tree.map(_if_real, state)), strict=True):
            found[place] = name
        return found

    def _chunks(self, raw: Sequence[Any], variant: Prepared) -> list[Any]:
        """What a variant of a deterministic simulator predicts for transitions, in parts of at most ROWS."""
        found = []
        for start in range(0, len(raw), ROWS):
            some = raw[start : start + ROWS]
            rows = padded_rows(some, np.zeros(len(some)), np.zeros(len(some)))
            predicted = jax.device_get(self._compiled.predict_rows(variant.arrays, rows.state, rows.action))
            found.append(predicted if len(some) == ROWS else _first(predicted, len(some)))
        return found

    def predict_rows(
        self, raw: Sequence[Any], variant: Prepared, measure: Measure
    ) -> list[tuple[Outcome, float] | None]:
        """What a variant predicts for transitions, and the user's own measure of its errors."""
        found: list[tuple[Outcome, float] | None] = []
        if not self.deterministic:
            for state, action, following in raw:
                after, outcome = self.predict(state, action, RealOutcome(following, None, None), variant)
                found.append((outcome, np.nan if measure.own is None else float(measure.own(following, after))))
            return found
        for states, features, rewards, ends, _ in self._chunks(raw, variant):
            after = [None] * len(features) if measure.own is None else unstack(states)
            for row in range(len(features)):
                outcome = Outcome(features[row].astype(np.float64), float(rewards[row]), bool(ends[row]))
                following = raw[len(found)][2]
                found.append((outcome, np.nan if measure.own is None else float(measure.own(following, after[row]))))
        return found

    def score(
        self, state: Any, action: Any, real: RealOutcome, outcome: Outcome, variant: Prepared, measure: Measure,
        scales: Any, floor: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How badly a variant predicts a transition: in nats, and as a squared error."""
        if not self.deterministic:
            numbers = (np.nan if part is None else float(part) for part in real[1:])
            seen = Seen(state, np.int32(action), real.following, *(np.float32(part) for part in numbers))
            nats = float(self._compiled.surprise(variant.arrays, seen))
            return nats, max(nats, 0.0)
        try:
            after, predicted = self.predict(state, action, real, variant)
            own = np.nan if measure.own is None else float(measure.own(real.following, after))
            error = measure.error(outcome, predicted, scales, own)
        except SimulatorError:
            error = WORST
        return math.log(min(error, WORST) + floor), error

    def accept(self, state: Any, argument: str) -> PyTree:
        """Turns what the user gave into a state of the simulator, in NumPy's arrays."""
        leaves = jax.tree.leaves(state)
        form = [(getattr(leaf, "shape", None), getattr(leaf, "dtype", None)) for leaf in leaves]
        if form == self._form and jax.tree.structure(state) == self._structure:
            found = jax.tree.map(np.asarray, state)
        else:
            remedy = f"a state of {self.name} looks like {short_repr(self.simulator.example)}"
            found = jax.device_get(match_structure(state, self.simulator.example, argument, self.name, remedy))
        look = self._look(found)
        for name, numbers in (("features", look.features), ("inputs", look.inputs)):
            self._refuse_infinite(name, numbers, argument)
        return found

    def _refuse_infinite(self, name: str, numbers: np.ndarray, what: str) -> None:
        if not np.all(np.abs(numbers) <= LARGEST):
            raise SimulatorError(
                f"{self.name}: the {name} of {what} are {short_repr(numbers.tolist())}; they must be finite numbers"
            )

    def _look(self, state: PyTree) -> Look:
        place = b"".join([leaf.tobytes() for leaf in jax.tree.leaves(state)])
        found = self._looks.get(place)
        if found is None:
            features, inputs, words = self._compiled.about(state)
            found = Look(features.astype(np.float64), inputs, words.tobytes())
            if len(self._looks) >= MOST_LOOKS:
                self._looks.clear()
            self._looks[place] = found
        return found

    def _answer(self, state: PyTree, action: int, variant: Prepared) -> Answer:
        """What a variant predicts."""
        place = (b"".join([leaf.tobytes() for leaf in jax.tree.leaves(state)]), int(action))
        found = variant.answers.get(place)
        if found is None:
            after, (chances, features, words) = self._compiled.predict(variant.arrays, state, np.int32(action))
            keys = [row.tobytes() for row in words]
            found = Answer(after[0], after[1], after[2], chances, features.astype(np.float64), keys)
            if len(variant.answers) >= MOST_ANSWERS:
                variant.answers.clear()
            variant.answers[place] = found
        return found

    def predict(
        self, state: PyTree, action: int, actual: RealOutcome, variant: Prepared | None = None
    ) -> tuple[PyTree, Outcome]:
        """What the simulator predicts for a transition: if it is random, what matches the real outcome best."""
        said = self._answer(state, action, self._believed if variant is None else variant)
        possible = np.flatnonzero(said.chances > 0).tolist()
        if not possible:
            raise SimulatorError(
                f"{self.name}: outcomes gives action {action} the probabilities {said.chances.tolist()}; "
                "at least one must be above 0, and they must sum to 1"
            )
        found = [self._check(said, place, action) for place in possible]
        place, paid, over = found[0]
        if not self.deterministic:
            there = self._look(actual.following)
            features, keys = [*said.features, there.features], [*said.keys, there.key]
            here = RealOutcome(len(said.keys), actual.reward, actual.terminal)
            drawn = self.simulator.kind == "sample"
            place, paid, over = matching_outcome(here, found, features.__getitem__, keys.__getitem__, drawn)
            if place == len(said.keys):
                return actual.following, Outcome(there.features, paid, over)
        return said.state(place), Outcome(said.features[place], paid, over)

    def _check(self, said: Answer, place: int, action: int) -> tuple[int, float, bool]:
        """An outcome whose numbers were checked, its place in place of its state."""
        self._refuse_infinite("features", said.features[place], f"the state that action {action} leads to")
        try:
            paid = real(f"{self.name}: the reward", said.rewards[place])
            over = flag(f"{self.name}: terminal", np.asarray(said.ends[place]).astype(bool))
        except ValueError as error:
            raise SimulatorError(str(error)) from None
        return place, paid, over

    def key(self, state: PyTree) -> Hashable:
        return self._look(state).key

    def sizes(self) -> dict[str, int]:
        """How many features and inputs a state has."""
        look = self._look(self._example)
        return {"features": look.features.size, "inputs": look.inputs.size}

    def features(self, state: PyTree) -> np.ndarray:
        return self._look(state).features

    def inputs(self, state: PyTree) -> np.ndarray:
        return self._look(state).inputs


def _first(tree: PyTree, count: int) -> PyTree:
    """The first rows of arrays."""
    return jax.tree.map(lambda leaf: leaf[:count], tree)


def _if_real(leaf: Any) -> Any:
    """A leaf of real numbers; others are left out of a tree."""
    return leaf if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating) else None
