"""The backend for a user's own simulator, in plain Python or in JAX."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from uamcts.agent.alarm import Alarm
from uamcts.agent.backend import FilePath, ParameterChoice, Plan, Sample, State, all_or_nothing, pad_sample
from uamcts.agent.backend_files import Groups, load_backend, restore, save_backend
from uamcts.agent.changing import Changing
from uamcts.agent.comparing import Planner
from uamcts.agent.corrector import CORRECTIONS, Corrector
from uamcts.agent.delayed import Action, Delayed
from uamcts.agent.doubt_fit import FittedDoubt, doubtful_errors, doubts_nothing, fit_doubt, same_arrays
from uamcts.agent.experience import Experience, Row
from uamcts.agent.exploring import Exploring
from uamcts.agent.measure import Measure
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.plain_uncertainty import Fitted
from uamcts.agent.report import Report, build_report
from uamcts.agent.returns import Returns
from uamcts.agent.searching import Compared, Previous, Searching, explain_recurrence
from uamcts.agent.way_out import be_cautious
from uamcts.arguments import whole
from uamcts.corrections.delays import Delays
from uamcts.corrections.doubt import Doubt
from uamcts.corrections.journal import Journal
from uamcts.corrections.python_facts import describe_changes
from uamcts.errors import GuideError, SimulatorError
from uamcts.mcts.config import SearchConfig
from uamcts.runtime.lazy_jax import jax, jnp
from uamcts.uncertainty.schedule import Schedule

if TYPE_CHECKING:
    from uamcts.uncertainty import Estimator


class SimulatorBackend(Delayed, Exploring, Changing):
    """Learns where a simulator is wrong from all experience, and plans with that."""

    def __init__(
        self,
        planner: Planner,
        estimator: str | Estimator | None,
        config: SearchConfig,
        schedule: Schedule | None,
        seed: int,
        minibatches: int,
        measure: Measure,
        searching: Searching,
        parameters: ParameterChoice = None,
        corrections: Sequence[str] = CORRECTIONS,
    ):
        planner.check(config)
        self._previous: Previous | None = None
        self.planner, self.chosen, self.config, self.schedule = planner, estimator, config, schedule
        self.name, self.action_names = planner.name, planner.action_names
        self.seed, self.minibatches, self.measure, self.searching = seed, minibatches, measure, searching
        self.experience = Experience()
        self.returns, self.journal = Returns.of(config), Journal()
        self.uncertainty: Fitted | None = None
        self.corrector = Corrector(planner, parameters, corrections)
        self.doubt, self.stale_doubt, self.resumes = FittedDoubt(None), True, False
        """The last one: whether the episode of a file goes on with the next transition."""
        self.tau = float(config.tau if schedule is None else schedule.start)
        self.steps, self.acts = 0, 0
        self.delays, self.log = Delays(), ()
        self.alarm = Alarm()
        self.loss: float | None = None

    @property
    def estimator(self) -> Estimator | None:
        return None if self.uncertainty is None or isinstance(self.uncertainty, Doubt) else self.uncertainty.estimator

    def twin(self) -> SimulatorBackend:
        """A copy that learns on its own; what both share is changed through its journal, which can undo that."""
        twin, journal = copy.copy(self), Journal()
        twin.journal, twin.returns = journal, copy.copy(self.returns)
        twin.planner, twin.experience = self.planner.twin(journal), self.experience.copy()
        twin.corrector = self.corrector.copy(twin.planner)
        return twin

    def undo(self) -> None:
        self.journal.undo()

    def act(self, state: State, steps_left: int | None = None) -> Plan:
        horizon = None if steps_left is None else whole("steps_left", steps_left)
        state = self._remember_asked(state, self._accept_state(state, "state"))
        self.planner.probe(state, self.config)
        state, horizon = self._where_it_acts(state, horizon)
        self.alarm = self.alarm.sound(self.name)
        config = self._settings(horizon)
        be_cautious(self.planner.patched, self.experience.scales.reward, self.planner.tried.recurs)
        usable = self.searching.reuses and self._previous is not None and self._previous.leads_to(horizon)
        before = self._previous.plan if usable and self._previous is not None else None
        try:
            found = self.planner.plan(self.seed, self.acts + 1, state, config, horizon, before)
        except SimulatorError as error:
            if isinstance(error, GuideError) or not self._withdraw_corrections():
                raise
            found = self.planner.plan(self.seed, self.acts + 1, state, config, horizon)
        self.acts += 1
        self._previous = Previous(found, horizon)
        return self._explore(state, found)

    def _settings(self, horizon: int | None) -> SearchConfig:
        """The settings of the next search."""
        config, timed = self.config, horizon is not None and not isinstance(self.planner, PlainPlanner)
        changed: dict[str, Any] = {"tau": self.tau} if config.reads("tau") else {}
        if config.worst is None and config.reads("worst"):
            changed["worst"] = self.returns.worst(self.experience.mean_reward)
        if self.planner.num_actions is not None:
            graph = timed or self.planner.tried.recurs if self.searching.chooses else config.graph
            survival = self.planner.tried.survival
            changed |= self.searching.settings(graph, survival, self.seed, self.acts, self.planner.num_actions)
        return replace(config, **changed)

    @property
    def note(self) -> str:
        """What was corrected in the model of the last search, and whether that was on a graph if the agent decides."""
        said = [*self.delays.describe(), *self.corrector.sentences(), *self.planner.describe_effects()]
        said += self._instead.describe()
        if self.searching.chooses and self._previous is not None and self.planner.num_actions is not None:
            said.append(explain_recurrence(self.planner.tried))
        return "\n".join(said)

    def observe(self, state: State, action: int, following: State, reward: float | None, terminal: bool | None) -> bool:
        return all_or_nothing(self, lambda backend: backend._observe(state, action, following, reward, terminal))

    def _observe(self, state: State, action: Action, *seen: Any) -> bool:
        effective = self._effective(state, action)
        sample = self._compare(state, action if effective is None else effective, *seen)
        self._resume()
        if effective is not None:
            self._keep(sample)
        places = self.planner.key(sample.row.state), self.planner.key(sample.row.following)
        self.returns.add(*places, *sample.paid)
        self._follow(sample, action, *places)
        self.steps += 1
        return self._learn() if self.schedule is None or self.schedule.due(self.steps) else False

    def _keep(self, sample: Compared) -> None:
        """Judges the corrections by a transition, keeps it to learn from, and as a fact if all of it is known."""
        row = sample.row
        self.planner.read_raw(self.experience)
        self.experience.add(row, self.measure, self.journal)
        facts, scales = self.planner.patched, self.experience.scales
        known = facts is not None and facts.knows(row.state, row.number)
        explained = known or not self.corrector.allowed
        error = 0.0 if explained else self.measure.error(row.real, row.used, scales, row.own[1])
        self.alarm, of_new_world = self.alarm.add(error), self._watch(sample)
        self.corrector.judge(row, sample.actual, self.measure, scales)
        self.stale_doubt |= self._speaks_about_doubt(row)
        self._count_try(row, known)
        renewals, effects = getattr(facts, "renewals", 0), self.planner.plans_effects
        if sample.whole and self.planner.remember(row.state, row.number, row.following, *sample.paid):
            self._forget(None if getattr(facts, "renewals", 0) != renewals else row.state)
        if of_new_world:
            self._begin_anew(of_new_world)
        changed = self.corrector.update(self.experience, self.measure) or self.planner.plans_effects != effects
        changed |= of_new_world > 0
        if changed or self.corrector.in_use == "drift":
            self._use_corrections()
            self.stale_doubt |= changed
            self.curiosity = self.curiosity.close() if changed else self.curiosity

    def _speaks_about_doubt(self, row: Row) -> bool:
        """Whether doubt may be another one after a transition: it was wrong, or right where doubt was expected."""
        if self.chosen is not None or not self.doubt.is_usual(row, self.measure, self.experience.scales):
            return True
        anything = self.doubt.doubt is not None or max(self.doubt.usual) > 0
        return (anything and self.steps % 50 == 0) or self.doubt.covers(row)

    def _use_corrections(self) -> None:
        """Plans with other corrections from now on; what was seen is judged anew by them."""
        variant = self.corrector.variant()
        self._forget(None)
        try:
            self.planner.use(variant, self.corrector.in_use == "drift")
            if self.corrector.in_use == "drift" or self.corrector.keeps_outcomes:
                return  # what was seen before was seen in another world, or is as possible as before
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
        self.stale_doubt = True
        return True

    def _forget(self, state: State | None) -> None:
        """Drops what does not hold any more of the last search: outcomes of a state have changed, or (None) of all."""
        before = self._previous
        if before is not None and not before.carries_actions and not self.planner.forget_nodes(before.plan, state):
            self._previous = None

    def learn(self) -> bool:
        return all_or_nothing(self, lambda backend: backend._learn(anew=True))

    def _learn(self, anew: bool = False) -> bool:
        """Refits the uncertainty; lowers tau if there is a schedule."""
        self.stale_doubt |= anew
        self._fit()
        if self.schedule is not None:
            before, self.tau = self.tau, float(self.schedule.decay(jnp.float32(self.tau)))
            if self.tau != before and self.config.reads("tau"):
                self._previous = None
        return True

    def _fit(self) -> None:
        """Fits U anew, for numbered actions. A search that had to do with another U does not hold after that."""
        if self.planner.num_actions is None or not self.stale_doubt or doubts_nothing(self.chosen):
            return
        self.stale_doubt = False
        before, rows = self.uncertainty, self.experience
        since, facts, corrected = self.corrector.known_since, self.planner.patched, self.corrector.in_use != "none"
        if facts is not None and self.changes:  # by the steps of this agent
            since = max(since, rows.steps - (facts.clock - self.changes[-1].when) - 1)
        by_chance = not self.planner.deterministic
        if self.chosen is None:
            self.doubt = fit_doubt(rows, self.measure, since, corrected, by_chance)
            self.uncertainty = self.doubt.doubt
        else:
            from uamcts.agent.fitted_uncertainty import FittedUncertainty

            key = jax.random.fold_in(jax.random.key(self.seed), 0)
            self.uncertainty = FittedUncertainty.fit(
                self.chosen, rows, doubtful_errors(rows, self.measure, since, corrected, by_chance), key,
                self.planner.num_actions, self.minibatches, self.config,
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
            padded = pad_sample(count - 1, sample)
            try:
                compared = self._compare(*padded)
            except ValueError as error:
                kind = SimulatorError if isinstance(error, SimulatorError) else ValueError
                raise kind(f"sample {count - 1}: {error}") from error
            self._keep(compared)
        self._fit()
        return count

    def report(self, most: int) -> Report:
        known = self.steps, self.action_names, self.planner.recurrence()
        said = [*describe_changes(self.changes, self.action_names), *self.delays.describe()]
        said += [*self.corrector.sentences(), *self.planner.describe_effects()]
        since = self.corrector.known_since
        shown = self._show, self._remembers
        return build_report(self.experience, self.measure, self._predict, most, *known, said, since, *shown)

    def save(self, path: FilePath) -> None:
        self.settle()
        save_backend(self, path)

    def settle(self) -> None:
        """Brings this agent into the state of one that loads what it saves, so that both go on alike.

        Searches are not saved, and neither is an estimator: it is fitted to the experience, which is.
        """
        if self.chosen is not None:
            self._fit()
        self.planner.settle()
        self.corrector.forget_recent()
        self._previous, self.surprises = None, ((), ())

    def load(self, path: FilePath) -> None:
        load_backend(self, path)

    def restore(self, groups: Groups) -> None:
        """Takes over the arrays of a file; raises an error for anything that is wrong with them."""
        restore(self, groups)
        if self.chosen is None:
            self.uncertainty = self.doubt.doubt
            self.planner.set_uncertainty(self.uncertainty)
        else:
            self.stale_doubt = True
            self._fit()
        self._previous = None
