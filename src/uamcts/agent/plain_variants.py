"""A Python simulator with corrections: what each variant of it predicts, and how well."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from uamcts.agent.chance import RealOutcome, matching_outcome, nearest_outcome
from uamcts.agent.effects import Effects
from uamcts.agent.energy_trials import nats_of_mixture
from uamcts.agent.experience import Experience
from uamcts.agent.feature_names import holds_names, number_names
from uamcts.agent.laboratory import COMPARED, Laboratory
from uamcts.agent.measure import Measure, Outcome
from uamcts.agent.plain_residual import EarlyResidualSimulator, ResidualSimulator
from uamcts.agent.plain_trials import PlainTrials, Sighting
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.quiet import Quiet
from uamcts.agent.seen_outcomes import SeenOutcomes
from uamcts.agent.simulator_probe import Probe, place_of
from uamcts.agent.surprise import is_same, surprise
from uamcts.corrections.journal import Journal
from uamcts.corrections.mixture import Mixture, moments, predicted_outcomes
from uamcts.corrections.outcome_rates import OutcomeRates, RatedSimulator
from uamcts.corrections.outcome_tilt import OutcomeTilt, TiltedSimulator
from uamcts.corrections.parameters import find_elements
from uamcts.corrections.patched_model import PatchedModel
from uamcts.corrections.residual import Residual
from uamcts.corrections.trials import WORST
from uamcts.errors import SimulatorError
from uamcts.types import PyTree

MOST_ANSWERS = 20_000
"""Answers of the simulator that are kept, to notice one that does not repeat itself."""
COUNTED, DRAWN = 200, 48
"""Facts, the latest ones, that parameters of a random simulator are fitted to; fewer, if every one takes many draws."""


class PlainVariants(Effects, SeenOutcomes):
    """A Python simulator and its variants: with other parameters, with a residual, and with facts on top."""

    def __init__(self, simulator: PythonSimulator, patched: PatchedModel | None):
        self.simulator, self.patched = simulator, patched
        self._probe, self.action_names = Probe(simulator), simulator.action_names
        self._journal = Journal()
        self._answers: dict[tuple[Hashable, Hashable], tuple[Any, float, bool]] = {}
        self._variant: Any = simulator
        """The simulator with the corrections in use."""
        self.laboratory = Laboratory(simulator)
        self._surprises: dict[Hashable, np.ndarray] = {}
        self._listed, self._shifts = {}, False

    def parameters(self) -> dict[str, float]:
        """The parameters of the simulator and their believed values."""
        return self.simulator.parameters

    def elements(self) -> dict[str, float]:
        """The numbers in tables of the simulator, and their believed values; nothing if they cannot be fitted."""
        return find_elements(self.simulator.holder, self.simulator.entry) if self.deterministic else {}

    @property
    def quiet(self) -> Quiet:
        """A context manager within which trials give no warnings and leave random generators alone."""
        return self.laboratory.quiet

    @property
    def deterministic(self) -> bool:
        return self.simulator.kind == "step"

    @property
    def can_shift(self) -> bool:
        """Whether next states can be shifted by a residual."""
        return self.deterministic and not self.simulator.continuous and self._shifts

    @property
    def can_shift_early(self) -> bool:
        """Whether states can be shifted before the step, so that the simulator judges it; it may do so anyway."""
        return self.can_shift and not self.simulator.judges

    @property
    def lists_outcomes(self) -> bool:
        """Whether the simulator lists outcomes, so that one can tell which of them has happened."""
        return self.simulator.kind == "outcomes" and not self.simulator.continuous

    draws_quickly = False
    """Whether draws are cheap enough to predict rewards by them."""

    def variant(self, values: dict[str, float], residual: Residual | OutcomeRates | OutcomeTilt | None) -> Any:
        """The simulator with other parameters and a residual, or other probabilities of its outcomes."""
        if values and not self.laboratory.ready and self.patched is not None:  # after an agent was loaded
            facts = list(self.patched.facts.items())[-COMPARED:]
            self.laboratory.prepare([(fact.state, place[1]) for place, fact in facts], self.key)
        simulator = self.laboratory.corrected(values, shifted=getattr(residual, "early", False))
        if isinstance(residual, OutcomeRates):
            return RatedSimulator(simulator, residual)
        if isinstance(residual, OutcomeTilt):
            return TiltedSimulator(simulator, residual)
        if residual is None:
            return simulator
        return (EarlyResidualSimulator if residual.early else ResidualSimulator)(simulator, residual)

    def listed(self, state: PyTree, action: PyTree, real: RealOutcome) -> tuple[list[float], list[bool]] | None:
        """The probabilities that the simulator lists, and which outcomes are what happened; None if it lists none.

        An unlisted outcome counts as the nearest listed one.
        """
        if not self.lists_outcomes:
            return None
        found = predicted_outcomes(self.simulator, state, action)
        same, possible = is_same(real, self.key), [outcome for _, outcome in found]
        matches = [same(outcome) for outcome in possible]
        if not any(matches):  # otherwise listed outcomes would seem more frequent than they are
            nearest = nearest_outcome(real, possible, self.features, self.key)
            matches = [place == nearest for place in range(len(possible))]
        return [chance for chance, _ in found], matches

    def use(self, variant: Any, drifting: bool = False) -> None:
        """Plans in this variant of the simulator from now on; `drifting` if it follows a world that changes."""
        self._variant = variant
        if self.patched is not None:
            self.patched.set_model(variant, drifting)

    def searched_model(self, state: PyTree, recurs: bool) -> Any:
        """The model for a search from a state. Facts are looked up only where states recur, or this one has some."""
        facts = self.patched
        if facts is None:
            return self._variant
        model = facts.planned_model()
        never_met = not recurs and not facts.repeats and facts.glance.excludes(state)
        return facts.model if model is facts and self.deterministic and never_met else model

    def trials(
        self, raw: Sequence[Any], experience: Experience, rows: Sequence[int], measure: Measure, floor: float,
        latest: bool = False,
    ) -> PlainTrials:  # fmt: skip
        """What was seen, for fits of parameters; `latest`: of random outcomes only the latest one of each row."""
        if self.deterministic or latest or self.patched is None:
            seen = [  # without facts, nothing but the latest outcome of a row is known: it counts once
                Sighting(one[0], one[1], one[2], experience.outcome("real", row))
                for one, row in zip(raw, rows, strict=True)
                if one
            ]
        else:  # every outcome counts as often as it was seen
            most = DRAWN if self.simulator.kind == "sample" else COUNTED
            facts = list(self.patched.facts.items())[-most:]
            seen = [
                Sighting(fact.state, place[1], one.following, Outcome(np.zeros(0), reward, one.terminal), times)
                for place, fact in facts
                for one in fact.outcomes.values()
                for reward, times in one.each_reward()
            ]
        return self._trials_of(seen, experience, measure, floor)

    def _trials_of(
        self, seen: Sequence[Sighting], experience: Experience, measure: Measure, floor: float
    ) -> PlainTrials:
        place = self.laboratory
        place.prepare([(one.state, one.action) for one in seen[-COMPARED:]], self.key)
        return PlainTrials(
            self.simulator, place.owner, seen, measure, experience.scales, floor, self._surprises, place.pace
        )

    def recent_trials(
        self, seen: Sequence[tuple[Any, Any, RealOutcome]], experience: Experience, measure: Measure, floor: float
    ) -> PlainTrials:
        """The same for transitions in their order, each on its own."""
        none = np.zeros(0)
        sights = [Sighting(state, action, real[0], Outcome(none, *real[1:])) for state, action, real in seen]
        return self._trials_of(sights, experience, measure, floor)

    def expected_surprise(self, state: PyTree, action: PyTree, variant: object) -> tuple[float, float]:
        """Mean and variance of the surprise, in nats, that a variant that lists outcomes expects."""
        chances: dict[Hashable, float] = {}
        for chance, (after, reward, over) in predicted_outcomes(variant, state, action):
            place = self.key(after), reward, bool(over)
            chances[place] = chances.get(place, 0.0) + chance
        nats = [(chance, -math.log(chance)) for chance in chances.values() if chance > 0.0]
        mean = sum(chance * one for chance, one in nats)
        return mean, sum(chance * (one - mean) ** 2 for chance, one in nats)

    @property
    def judges_rewards(self) -> bool:
        """Whether the simulator says itself what a corrected next state pays."""
        return callable(getattr(self.simulator.owner, "reward", None))

    def predict_next(self, raw: Sequence[Any], variant: Any, shifts: np.ndarray | None = None) -> list[np.ndarray]:
        """The features of the next states, rewards and ends that a variant predicts, from states that are shifted."""
        states = [one[0] for one in raw]
        if shifts is not None:
            pairs = zip(states, shifts, strict=True)
            states = [self.simulator.rebuild(state, self.features(state) + shift) for state, shift in pairs]
        found = [variant.step(state, one[1]) for state, one in zip(states, raw, strict=True)]
        rewards, ends = (np.array([one[part] for one in found], float) for part in (1, 2))
        return [np.stack([self.features(after) for after, _, _ in found]), rewards, ends]

    def choices(self, state: PyTree) -> Iterable[int]:
        """The legal actions of a state."""
        found: Iterable[int] = self.simulator.choices(state)
        return found

    def foresee(self, state: PyTree, action: int) -> tuple[float, bool]:
        """The reward that the corrected model predicts, and whether the episode ends."""
        _, reward, over = self._variant.step(state, action)
        return float(reward), bool(over)

    def reward_moments(self, state: PyTree, action: int, by: str = "facts") -> tuple[float, float]:
        """Mean and variance of the reward of a step: by the simulator, with all corrections, or with facts as well."""
        if by == "simulator" or self.patched is None:
            return moments(
                [(1.0, predicted_outcomes(self.simulator if by == "simulator" else self._variant, state, action))]
            )
        planned = self.patched.plans_with(state, action) if by == "facts" else None
        if planned is not None and not isinstance(planned, Mixture):
            return float(planned[1]), 0.0
        share = 1.0 if planned is None else planned.model_share
        seen = [] if planned is None else [(1.0 - share, planned.seen)]
        return moments([(share, self.patched.believe(state, action)), *seen])

    def feature_names(self, state: PyTree) -> list[str]:
        """What the features of a state are called, by the simulator or by place; nothing if the user computes them."""
        own, features = tuple(getattr(self.simulator.owner, "feature_names", ())), self.features(state)
        if own and len(own) == features.size:
            return [str(name) for name in own]
        plain = self.simulator.plain_features or (isinstance(state, tuple) and features.tolist() == list(state))
        return number_names(state) if plain else []

    def shows_states(self, state: PyTree) -> bool:
        """Whether the features of a state say less to a reader than the state itself."""
        own = self.simulator
        return own.marks_whole or (own.plain_features and holds_names(state))

    def predict_rows(self, raw: Sequence[Any], variant: Any, measure: Measure) -> list[tuple[Outcome, float] | None]:
        """What a variant predicts for transitions, and the user's own measure of its errors."""
        found: list[tuple[Outcome, float] | None] = []
        for one in raw:
            if one is None:
                found.append(None)
                continue
            state, action, following = one
            real = RealOutcome(following, None, None)
            after, outcome = self.predict_effect(state, action, real) or self.predict(state, action, real, variant)
            found.append((outcome, np.nan if measure.own is None else float(measure.own(following, after))))
        return found

    def score(
        self, state: PyTree, action: Any, real: RealOutcome, outcome: Outcome, variant: Any, measure: Measure,
        scales: Any, floor: float,
    ) -> tuple[float, float]:  # fmt: skip
        """How badly a variant predicts a transition: in nats, and as a squared error."""
        if not self.deterministic:
            nats = nats_of_mixture(self.simulator, variant, state, action, real, scales)
            nats = surprise(variant, state, action, real, self.key, self.features) if nats is None else nats
            return nats, max(nats, 0.0)
        try:
            after, predicted = self.predict(state, action, real, variant)
            own = np.nan if measure.own is None else float(measure.own(real.following, after))
            error = measure.error(outcome, predicted, scales, own)
        except SimulatorError:
            error = WORST
        return math.log(min(error, WORST) + floor), error

    def predict(self, state: PyTree, action: int, real: RealOutcome, variant: Any = None) -> tuple[Any, Outcome]:
        """What the simulator predicts for a transition: if it is random, what matches the real outcome best."""
        if variant is not None and variant is not self.simulator:
            found = (
                [(1.0, variant.step(state, action))]
                if self.deterministic
                else predicted_outcomes(variant, state, action)
            )
            possible = [one for share, one in found if share > 0.0]
            outcome = possible[0]
            if not self.deterministic:
                outcome = matching_outcome(real, possible, self.features, self.key, self.simulator.kind == "sample")
        elif self.simulator.kind == "step":
            said = self._probe.predict(state, action)
            place = (self.simulator.key(state), place_of(action))
            if place not in self._answers and len(self._answers) < MOST_ANSWERS:
                self._journal.put(self._answers, place, said[0][1])
            self._probe.refuse_difference(state, action, [(1.0, self._answers.get(place, said[0][1]))], said)
            outcome = said[0][1]
        else:
            found = predicted_outcomes(self.simulator, state, action)
            possible = [self._probe.check(state, action, one) for probability, one in found if probability > 0.0]
            drawn = self.simulator.kind == "sample"
            outcome = matching_outcome(real, possible, self.features, self.key, drawn)
        return outcome[0], Outcome(self.simulator.features(outcome[0]), *outcome[1:])

    def key(self, state: PyTree) -> Hashable:
        return self.simulator.key(state)

    def features(self, state: PyTree) -> np.ndarray:
        return self.simulator.features(state)

    def inputs(self, state: PyTree) -> np.ndarray:
        return np.asarray(self.simulator.inputs(state), np.float32)
