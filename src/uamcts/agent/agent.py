"""`uamcts.Agent`: for a loop of your own. It plans, observes, and learns where its model is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from uamcts.agent.backend import Backend, FilePath, Plan, Sample, State
from uamcts.agent.build import (
    DEFAULT,
    check_arguments,
    check_corrections,
    make_config,
    make_guides,
    make_planner,
    refuse_given,
    refuse_unread,
    simulator_backend,
)
from uamcts.agent.corrector import CORRECTIONS
from uamcts.agent.domain_backend import DomainBackend
from uamcts.agent.measure import PARTS, Measure
from uamcts.agent.report import Report
from uamcts.agent.searching import Searching
from uamcts.arguments import function, seed_number, switch, whole
from uamcts.corrections.parameters import check_choice
from uamcts.domains.base import Domain
from uamcts.mcts.config import SearchConfig
from uamcts.presets import search_config
from uamcts.uncertainty import Estimator
from uamcts.uncertainty.schedule import Schedule


class Agent:
    """Acts in the real world with a model that is wrong somewhere, and learns where.

    It compares every real transition with what the model predicted. The difference U is learned by an estimator, and
    the search plans around transitions where U is high. Real transitions are also remembered as facts, which override
    the model. Methods that change an agent (`observe`, `learn`, `preload`, `load`) either succeed as a whole or leave
    it unchanged.

    Args:
        model: What to plan in: a Python object with `num_actions` and `outcomes(state, action)`, `sample(state, action,
            rng)` or `step(state, action)`, which is planned in by the first of these that it has; a function
            `step(state, action) -> (state, reward, terminal)` with `num_actions=...`; a Gymnasium environment; a
            `JaxSimulator`; or a domain of this package.
        estimator: What learns U: a name out of `uamcts.ESTIMATORS` or an `Estimator`. By default `"nearest"` for a
            simulator, and the paper's estimator for a domain.
        config: How to search. By default trust search with gamma 0.99 for a simulator, on a graph (`graph=True`) where
            states recur and on a tree where they do not, and the paper's settings for a domain. A config that is given
            is taken as it is.
        schedule: When to train, and how tau decays. By default an estimator that learns instantly trains after every
            step, and the others every 200 steps.
        num_actions: The number of actions, where the model does not have it. A Python model whose `num_actions` is None
            has continuous actions: numbers or arrays within its `action_space`, (low, high), or those that its
            `actions(state, rng)` or your `policy(state, rng)` proposes. An agent of such a model, or of a Gymnasium
            environment with a Box of actions, plans, but neither learns U nor has a memory.
        features: A function of a state that returns the numbers in which simulator and reality are compared. By default
            all numbers of a state. U is the mean squared difference of standardised features.
        discrepancy: A function `(real_next_state, predicted_next_state) -> float` that replaces this measure.
        parts: What the simulator may be wrong about: any of `"state"`, `"reward"` and `"terminal"`.
        tolerance: A U up to this counts as 0: simulators round.
        budget_seconds: The time for a move, instead of `config.iterations`.
        seed: The seed of all of the agent's randomness.
        minibatches: The minibatches of a round of training.
        memory: Whether to remember real transitions as facts. By default True for a simulator and False for a domain.
            Where a transition of a deterministic simulator had several outcomes, the search plans with the most
            frequent one. In a random simulator what was seen is mixed with what it predicts, which counts like ten
            real transitions.
        identity: A function of a state that returns what tells it from other states, for example to leave out a clock.
            By default the whole state.
        policy: What rollouts do instead of random actions: `policy(state, rng)` returns an action or a probability for
            each action. For a `JaxSimulator`, `policy(state, key)`.
        value: The value of a state, `value(state)`, instead of rollouts, or mixed with them by `value_weight`.
        prior: Prior probabilities of the actions, `prior(state)`: selection explores in proportion to them.
        reuse: Whether a search goes on from the one before. What it found out about states that can still be reached is
            kept, visits and values, as long as it holds: if an observed transition changes what is planned with,
            whatever depends on that state is dropped (on a tree: everything), and if U changes, everything is. Saved
            agents do not keep it. By default True under the trust rules, and False under the paper's.
        **settings: Single settings of the search, instead of a whole `config`. `graph=True` or `graph=False` decides
            between a graph and a tree.

    Raises:
        ValueError: An argument has an illegal value.
        TypeError: An argument has the wrong type, or does not exist.

    Example:
        ```python
        class Corridor:
            num_actions = 2

            def step(self, state, action):
                state = max(0, min(4, state + (1 if action else -1)))
                return state, float(state == 4), state == 4

        agent = uamcts.Agent(Corridor(), iterations=50)
        action = agent.act(0)
        agent.observe(0, action, 0, reward=0.0, terminal=False)  # in reality, there is a wall
        print(agent.report())
        ```
    """

    def __init__(
        self,
        model: Any,
        estimator: str | Estimator | None = None,
        config: SearchConfig | None = None,
        schedule: Schedule | None = None,
        *,
        num_actions: int | None = None,
        features: Callable[[State], Any] | None = None,
        discrepancy: Callable[[State, State], float] | None = None,
        parts: Sequence[str] = PARTS,
        tolerance: float = 1e-6,
        budget_seconds: float | None = None,
        seed: int = 0,
        minibatches: int | None = None,
        memory: bool | None = None,
        identity: Callable[[State], Any] | None = None,
        policy: Callable[..., Any] | None = None,
        value: Callable[..., Any] | None = None,
        prior: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        parameters: Any = None,
        corrections: Sequence[str] = CORRECTIONS,
        **settings: Any,
    ):
        check_arguments(estimator, config, schedule, budget_seconds, minibatches, memory)
        seed = seed_number(seed)
        own = {"num_actions": num_actions, "features": features, "identity": identity}
        for name in ("features", "identity"):
            function(name, own[name], "of a state")
        function("discrepancy", discrepancy, "of two states")
        check_choice(parameters)
        allowed, memory = check_corrections(corrections, memory)
        guides = make_guides(policy, value, prior)
        if reuse is not None:
            switch("reuse", reuse)
        if isinstance(model, Domain):
            refuse_given({**own, "discrepancy": discrepancy}, "a domain")
            refuse_unread({**guides._asdict(), "reuse": reuse or None})
            config = make_config(search_config(model, "combined") if config is None else config, settings)
            self.backend: Backend = DomainBackend(
                model, estimator, config, schedule, seed, minibatches, budget_seconds, bool(memory)
            )
        else:
            chooses = config is None and settings.get("graph") is None and settings.get("rules", "trust") == "trust"
            config = make_config(DEFAULT if config is None else config, settings)
            planner = make_planner(model, own, budget_seconds, memory, guides)
            measure = Measure(parts, discrepancy, tolerance)
            searching = Searching(chooses, config.rules == "trust" if reuse is None else bool(reuse))
            self.backend = simulator_backend(
                planner, estimator, config, schedule, seed, minibatches, measure, searching, parameters, allowed
            )
        self.last_plan: Plan = None
        """What the last search found; `print(agent.explain())` shows it."""

    @property
    def estimator(self) -> Estimator | None:
        """The estimator of U; None until a simulator was wrong for the first time."""
        return self.backend.estimator

    @property
    def tau(self) -> float:
        """The uncertainty factor of the next search: the config's, or the schedule's present value."""
        return self.backend.tau

    @property
    def steps(self) -> int:
        """The number of real transitions observed."""
        return self.backend.steps

    @property
    def loss(self) -> float | None:
        """The mean loss of the last round of training; None before the first round, and for simulators."""
        return self.backend.loss

    def act(self, state: State, steps_left: int | None = None) -> Any:
        """Searches for the best action.

        Args:
            state: The present state, as the model takes it. For a Gymnasium environment, also the environment that you
                act in.
            steps_left: How many steps the episode has left, this one included; nothing after them counts. By default
                there is no limit. An agent of a domain does not read it.

        Returns:
            The action to take: its number, or, if actions are continuous, the action itself.

        Raises:
            SimulatorError: The simulator did something that cannot be planned with.
            ValueError: `state` is not a state of the model, or `steps_left` is not a whole number of at least 1.
        """
        self.last_plan = self.backend.act(state, steps_left)
        action = self.last_plan.action
        return action if getattr(self.last_plan, "actions", None) is not None else int(action)

    def observe(
        self,
        state: State,
        action: int,
        next_state: State,
        *,
        reward: float | None = None,
        terminal: bool | None = None,
    ) -> bool:
        """Takes in a real transition.

        Args:
            state: The state before the step.
            action: The action taken.
            next_state: The state after the step.
            reward: The reward of the step, if known.
            terminal: Whether the episode ended, if known. A domain works it out by itself.

        Returns:
            Whether the agent learned something: a round of training was due.

        Raises:
            ValueError: An argument is not a legal value.
            SimulatorError: The simulator did something that cannot be planned with.

        Where the simulator was wrong about the next state, and `reward` or `terminal` is not given, the transition is
        uncertain from then on, but not remembered as a fact.
        """
        return self.backend.observe(state, action, next_state, reward, terminal)

    def learn(self) -> bool:
        """Trains now, on everything that was observed.

        Returns:
            Whether it trained; False if the schedule says that there is nothing more to learn.
        """
        return self.backend.learn()

    def preload(self, samples: Iterable[Sample]) -> int:
        """Takes in real transitions that are known already, for example from a log. They count like observed ones.

        Args:
            samples: Tuples `(state, action, next_state)`, followed by `reward` and `terminal` where they are known.

        Returns:
            The number of samples.

        Raises:
            ValueError: A sample is not legal; the message names it. Nothing is then taken in.
        """
        return self.backend.preload(samples)

    def seed(self, samples: Iterable[Sample]) -> int:
        """Deprecated: use `preload`."""
        warnings.warn("Agent.seed is deprecated; use Agent.preload", DeprecationWarning, stacklevel=2)
        return self.preload(samples)

    def report(self, most: int = 10) -> Report:
        """Reports where the model was wrong.

        Args:
            most: How many transitions to list, those with the largest U first.

        Returns:
            A report to print, or to iterate over.
        """
        return self.backend.report(whole("most", most, 0))

    def explain(self) -> str:
        """Explains the last action: visits, value and uncertainty of every action, and which ones were deleted.

        Where the agent has decided by itself whether equal states share a node, the last line says so, and why.

        Raises:
            RuntimeError: `act` was not called yet.
        """
        if self.last_plan is None:
            raise RuntimeError("explain was called before act; there is no plan to explain yet")
        note = self.backend.note
        words: str = self.last_plan.explain(self.backend.action_names)
        return f"{words}\n{note}" if note else words

    def save(self, path: FilePath) -> None:
        """Writes everything that was learned to one file of arrays and JSON. An older file is replaced atomically.

        Args:
            path: The file to write.
        """
        self.backend.save(path)

    def load(self, path: FilePath) -> None:
        """Restores what an agent with the same model and estimator has saved. On any error nothing changes.

        Args:
            path: A file that `save` wrote.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is damaged, or was written by an agent of another kind.

        Remembered states that are named tuples, dataclasses or other objects are rebuilt with the classes of the states
        that this agent meets: they are planned with from the first `act` or `observe` on.
        """
        self.backend.load(path)
        self.last_plan = None
