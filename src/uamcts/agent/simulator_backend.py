"""The backend for a user's own simulator, in plain Python or in JAX."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.agent.alarm import Alarm
from uamcts.agent.backend import FilePath, Sample, all_or_nothing, counter, pad_sample
from uamcts.agent.backend_files import Groups, load_backend, restore, save_backend
from uamcts.agent.comparing import Comparing
from uamcts.agent.compiled_planner import CompiledPlanner
from uamcts.agent.corrector import CORRECTIONS, Corrector
from uamcts.agent.doubt_fit import FittedDoubt, doubtful_errors, fit_doubt, same_arrays
from uamcts.agent.experience import Experience, Row
from uamcts.agent.fitted_uncertainty import FittedUncertainty
from uamcts.agent.measure import Measure
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.report import Report, build_report
from uamcts.agent.returns import Returns
from uamcts.agent.searching import Compared, Previous, Searching, explain_recurrence
from uamcts.agent.way_out import PACED, find_way_out, is_denied, is_hopeless, known_equal
from uamcts.arguments import whole
from uamcts.corrections.doubt import Doubt
from uamcts.corrections.journal import Journal
from uamcts.errors import SimulatorError
from uamcts.mcts.config import SearchConfig
from uamcts.uncertainty import Estimator
from uamcts.uncertainty.schedule import Schedule


def _span(config: SearchConfig) -> int:
    """How many steps a search looks ahead at most: down the tree, then a rollout."""
    return config.depth + min(config.iterations, config.tree_depth)


class SimulatorBackend(Comparing):
    """Learns where a simulator is wrong from all experience, and plans with that."""

    def __init__(
        self,
        planner: PlainPlanner | CompiledPlanner,
        estimator: str | Estimator | None,
        config: SearchConfig,
        schedule: Schedule | None,
        seed: int,
        minibatches: int,
        measure: Measure,
        searching: Searching,
        parameters: Any = None,
        corrections: Sequence[str] = CORRECTIONS,
    ):
        planner.check(config)
        self.searching = searching
        self._previous: Previous | None = None
        self.planner, self.chosen, self.config, self.schedule = planner, estimator, config, schedule
        self.name, self.action_names = planner.name, planner.action_names
        self.seed, self.minibatches, self.measure = seed, minibatches, measure
        self.experience = Experience()
        self.returns = Returns.of(config, _span(config))
        self.uncertainty: FittedUncertainty | Doubt | None = None
        self.corrector = Corrector(planner, parameters, corrections)
        self.journal = Journal()
        self._doubt, self._stale_doubt = FittedDoubt(None), True
        self.tau = float(config.tau if schedule is None else schedule.start)
        self.steps, self.acts, self._paced = 0, 0, 0
        self._way_out: int | None = None
        self._alarm = Alarm()
        self.loss: float | None = None

    @property
    def estimator(self) -> Estimator | None:
        return self.uncertainty.estimator if isinstance(self.uncertainty, FittedUncertainty) else None

    def twin(self) -> SimulatorBackend:
        """A copy that learns on its own; what both share is changed through its journal, which can undo that."""
        twin = copy.copy(self)
        twin.journal = Journal()
        twin.planner, twin.experience, twin.returns = (
            self.planner.twin(twin.journal),
            self.experience.copy(),
            copy.copy(self.returns),
        )
        twin.corrector = self.corrector.copy(twin.planner)
        return twin

    def undo(self) -> None:
        self.journal.undo()

    def act(self, state: Any, steps_left: int | None = None) -> Any:
        horizon = None if steps_left is None else whole("steps_left", steps_left)
        state = self._accept_state(state, "state")
        self.planner.probe(state, self.config)
        self._alarm = self._alarm.sound(self.name)
        config = self._settings(horizon)
        usable = self.searching.reuses and self._previous is not None and self._previous.leads_to(horizon)
        before = self._previous.plan if usable and self._previous is not None else None
        try:
            found = self.planner.plan(self.seed, self.acts + 1, state, config, horizon, before)
        except SimulatorError:
            if not self._withdraw_corrections():
                raise
            found = self.planner.plan(self.seed, self.acts + 1, state, config, horizon)
        self.acts += 1
        self._previous = Previous(found, horizon)
        self._way_out = action = self._find_way_out(state, found)
        if action is None and (facts := self.planner.patched) is not None and is_denied(facts):
            action = known_equal(found, facts, state)
        return found if action is None else found._replace(action=np.int32(action))  # type: ignore[arg-type]

    def _find_way_out(self, state: Any, found: Any) -> int | None:
        """An action that leads to what was never tried, if the agent paces about; None if not."""
        facts, scales = self.planner.patched, self.experience.scales
        if self._paced < PACED or facts is None or not is_denied(facts) or not is_hopeless(found, scales.reward):
            return None
        return find_way_out(self.planner, facts.facts, state, self.experience.mean_reward, scales.reward)

    def _settings(self, horizon: int | None) -> SearchConfig:
        """The settings of the next search."""
        config = self.config.with_tau(self.tau)
        if config.worst is None and config.reads("worst"):
            config = replace(config, worst=self._worst())
        if self.searching.chooses and not config.graph and self.planner.num_actions is not None:
            needed = horizon is not None and isinstance(self.planner, CompiledPlanner)
            config = replace(config, graph=needed or self.planner.state_recurrence.recurs)
        return config

    @property
    def note(self) -> str:
        """What was corrected in the model of the last search, and whether that was on a graph if the agent decides."""
        said = self.corrector.sentences()
        if self._way_out is not None:
            said.append("nothing that is known leads on: this leads to an action that was never tried")
        if self.searching.chooses and self._previous is not None and self.planner.num_actions is not None:
            said.append(explain_recurrence(self.planner.state_recurrence))
        return "\n".join(said)

    def _worst(self) -> float:
        """The return expected beyond a doubtful transition, never more than 0: the mean or the worst return seen.

        It must lie below all that a search can find, else doubtful transitions look better than known bad ones.
        """
        steps, gamma = range(_span(self.config)), float(self.config.gamma)
        return min(self.returns.least, self.experience.mean_reward * sum(gamma**step for step in steps))

    def observe(self, state: Any, action: int, following: Any, reward: float | None, terminal: bool | None) -> bool:
        return all_or_nothing(self, lambda backend: backend._observe(state, action, following, reward, terminal))

    def _observe(self, *given: Any) -> bool:
        sample = self._compare(*given)
        self._keep(sample)
        self.returns.add(self.planner.key(sample.row.state), self.planner.key(sample.row.following), *sample.paid)
        self.steps += 1
        return self._learn() if self.schedule is None or self.schedule.due(self.steps) else False

    def _keep(self, sample: Compared) -> None:
        """Judges the corrections by a transition, keeps it to learn from, and as a fact if all of it is known."""
        row = sample.row
        self.planner.read_raw(self.experience)
        self.experience.add(row, self.measure, self.journal)
        scales = self.experience.scales
        self._alarm = self._alarm.add(self.measure.error(row.real, row.used, scales, row.own[1]))
        self.corrector.judge(row.state, row.action, sample.actual, row.real, self.measure, scales)
        self._stale_doubt |= self._speaks_about_doubt(row)
        if self._paced < PACED and self.planner.patched is not None:  # whoever has paced about once may do so again
            self._paced = self._paced + 1 if self.planner.patched.knows(row.state, row.number) else 0
        if sample.whole and self.planner.remember(row.state, row.number, row.following, *sample.paid):
            self._forget(row.state)
        if self.corrector.update(self.experience, self.measure):
            self._use_corrections()
            self._stale_doubt = True

    def _speaks_about_doubt(self, row: Row) -> bool:
        """Whether doubt may be another one after a transition: it was wrong, or right where doubt was expected."""
        if self.chosen is not None or not self._doubt.is_usual(row, self.measure, self.experience.scales):
            return True
        anything = self._doubt.doubt is not None or max(self._doubt.usual) > 0
        return (anything and self.steps % 50 == 0) or self._doubt.covers(row)

    def _use_corrections(self) -> None:
        """Plans with other corrections from now on; what was seen is judged anew by them."""
        variant = self.corrector.variant()
        self._previous = None
        try:
            self.planner.use(variant)
            predicted = self.planner.predict_rows(self.experience.raw[: self.experience.count], variant, self.measure)
        except SimulatorError:
            if not self._withdraw_corrections():
                raise
            return
        self.experience.judge_anew(predicted, self.measure)

    def _withdraw_corrections(self) -> bool:
        """Plans in the simulator alone from now on, because it fails with its corrections; False if it has none."""
        if self.corrector.in_use == "none":
            return False
        self.corrector.withdraw()
        self._use_corrections()
        self._stale_doubt = True
        return True

    def _forget(self, state: Any) -> None:
        """Drops what the last search found out and what does not hold any more: outcomes of `state` have changed."""
        if self._previous is not None and not self.planner.forget_node(self._previous.plan, state):
            self._previous = None

    def learn(self) -> bool:
        self._stale_doubt = True
        return all_or_nothing(self, lambda backend: backend._learn())

    def _learn(self) -> bool:
        """Refits the uncertainty; lowers tau if there is a schedule."""
        self._fit()
        if self.schedule is not None:
            before, self.tau = self.tau, float(self.schedule.decay(jnp.float32(self.tau)))
            if self.tau != before and self.config.reads("tau"):
                self._previous = None
        return True

    def _fit(self) -> None:
        """Fits U anew, for numbered actions. A search that had to do with another U does not hold after that."""
        if self.planner.num_actions is None or not self._stale_doubt:
            return
        self._stale_doubt = False
        before, rows = self.uncertainty, self.experience
        since = max(self.corrector.since, self.planner.changed_at(rows.steps))
        if self.chosen is None:
            self._doubt = fit_doubt(rows, self.measure, since)
            self.uncertainty = self._doubt.doubt
        else:
            key = jax.random.fold_in(jax.random.key(self.seed), 0)
            self.uncertainty = FittedUncertainty.fit(
                self.chosen, rows, doubtful_errors(rows, self.measure, since), key, self.planner.num_actions,
                self.minibatches, self.config,
            )  # fmt: skip
        if not same_arrays(before, self.uncertainty):
            self.planner.set_uncertainty(self.uncertainty)
            self._previous = None

    def preload(self, samples: Iterable[Sample]) -> int:
        """Takes in transitions that are known already; all of them or none."""
        return all_or_nothing(self, lambda backend: backend._preload(samples))

    def _preload(self, samples: Iterable[Sample]) -> int:
        count = 0
        for count, sample in enumerate(samples, 1):
            self._keep(self._compare(*pad_sample(count - 1, sample)))
        self._fit()
        return count

    def report(self, most: int) -> Report:
        known = self.steps, self.action_names, self.planner.recurrence()
        said = [*self.planner.changes(), *self.corrector.sentences()]
        return build_report(self.experience, self.measure, self._predict, most, *known, said, self.corrector.since)

    def _predict(self, places: np.ndarray) -> np.ndarray:
        if self.uncertainty is None:
            return np.zeros(len(places))
        inputs, actions = self.experience.rows["inputs"], self.experience.rows["action"]
        return np.array([float(self.uncertainty(jnp.asarray(inputs[p]), jnp.int32(actions[p]))) for p in places])

    def save(self, path: FilePath) -> None:
        if self.chosen is None:  # levels of doubt are those that a loaded agent will have
            self._stale_doubt = True
            self._fit()
        save_backend(self, path)
        self._previous = None  # this agent and one that loads the file go on alike

    def load(self, path: FilePath) -> None:
        load_backend(self, path)

    def restore(self, groups: Groups) -> None:
        """Takes over the arrays of a file; raises an error for anything that is wrong with them."""
        restore(self, groups)
        self.returns = Returns.of(self.config, _span(self.config))
        self.returns.least = counter(groups.counters, "least", np.float64, lambda least: -np.inf < least <= 0)
        self._stale_doubt = True
        self._fit()
        self._previous = None
