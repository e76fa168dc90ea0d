"""`uamcts.Agent`: how an agent is made. What it does in your loop is in `uamcts.agent.loop`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from uamcts.agent.alarm import SlowMoves
from uamcts.agent.backend import ParameterChoice, State
from uamcts.agent.build import (
    build_backend,
    check_arguments,
    check_corrections,
    given_settings,
    is_domain,
    make_guides,
    paper_config,
)
from uamcts.agent.corrector import CORRECTIONS
from uamcts.agent.loop import AgentLoop
from uamcts.agent.measure import PARTS, Measure
from uamcts.agent.turns import Turns
from uamcts.arguments import function, seed_number, short_repr, switch
from uamcts.corrections.parameters import check_choice
from uamcts.mcts.config import SearchConfig
from uamcts.runtime.lazy_jax import jax
from uamcts.uncertainty.schedule import Schedule

if TYPE_CHECKING:
    from uamcts.domains.base import Domain
    from uamcts.uncertainty import Estimator


class Agent(AgentLoop):
    """Plans in a simulator that may be wrong, learns from the real world how it is wrong, and corrects it.

    It compares every real transition with what the simulator predicted. Numbers in the simulator that are off are
    fitted (`parameters`), errors of the next state that no number explains are learned (`residual`), and what was seen
    is remembered (`facts`). A correction is used as long as it predicts better than the simulator without it. Where the
    corrected model is still wrong, its transitions are doubtful, and the search plans around them. `report` says what
    was found. Methods that change an agent (`observe`, `learn`, `preload`, `load`) either succeed as a whole or leave
    it unchanged. `Agent.paper(domain)` is the agent of the paper, which avoids and does not correct.

    Args:
        model: What to plan in: a Python object with `num_actions` and `outcomes(state, action)`, `sample(state, action,
            rng)` or `step(state, action)`, of which the first that it has is used; a function
            `step(state, action) -> (state, reward, terminal)` with `num_actions=...`; a Gymnasium environment; a
            `JaxSimulator`; or a domain of this package.
        estimator: What learns where the corrected model is wrong: a name out of `uamcts.ESTIMATORS` or an `Estimator`.
            By default, a transition is doubtful if it is near one that was wrong, and not near one that was right.
            `"none"` doubts nothing.
        config: How to search. Settings that it leaves out keep the agent's defaults: trust search with gamma 0.99 (in a
            domain, its own gamma, iterations, rollouts and depth), on a graph (`graph=True`) where states recur and on
            a tree where they do not. `SearchConfig(rules="released")` is the paper's UA-MCTS.
        schedule: When to train an estimator, and how tau decays. By default one that learns instantly trains after
            every step, and the others every 200 steps.
        num_actions: The number of actions, where the model does not have it. A Python model whose `num_actions` is None
            has continuous actions: numbers or arrays within its `action_space`, (low, high), or those that its
            `actions(state, rng)` or your `policy(state, rng)` proposes. An agent of such a model, or of a Gymnasium
            environment with a Box of actions, fits parameters, but doubts nothing and has no memory.
        action_names: What reports, explanations and the inspector call the actions, where the model does not have it.
        features: A function of a state that returns the numbers in which simulator and reality are compared. By default
            all numbers of a state. U is the mean squared difference of standardised features.
        discrepancy: A function `(real_next_state, predicted_next_state) -> float` that replaces this measure.
        parts: What the simulator may be wrong about: any of `"state"`, `"reward"` and `"terminal"`.
        tolerance: A U up to this counts as 0: simulators round.
        budget_seconds: The time for a move, instead of `config.iterations`.
        seed: The seed of all of the agent's randomness.
        minibatches: The minibatches of a round of training.
        memory: Whether to remember real transitions as facts; the same as `"facts"` in `corrections`. A whole number is
            how many are kept at most, 100,000 by default; those not seen for the longest time go first.
        identity: A function of a state that returns what distinguishes it from others, for example without a clock.
            By default the whole state.
        policy: What rollouts do instead of random actions: `policy(state, rng)` returns an action or a probability for
            each action. For a `JaxSimulator`, `policy(state, key)`.
        value: The value of a state, `value(state)`, instead of rollouts, or mixed with them by `value_weight`.
        prior: Prior probabilities of the actions, `prior(state)`: selection explores in proportion to them.
        reuse: Whether a search continues the previous one. Visits and values of states that can still be reached are
            kept as long as they hold: if an observed transition changes the model, whatever depends on that state is
            dropped (on a tree: everything), and if doubt or a correction changes, everything is. It is not saved. By
            default True under the trust rules, and False otherwise.
        parameters: What may be off in the simulator: names, `["gravity"]`, or bounds, `{"gravity": (1, 100)}`. By
            default all of its numeric attributes are candidates, and the fewest that explain what was seen are fitted.
            Named ones are used until they turn out worse. `()` fits none.
        corrections: Which corrections may be used: any of `"facts"`, `"parameters"` and `"residual"`.
        **settings: Single settings of the search, instead of a `config` or in addition to it.

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
        model: object,
        estimator: str | Estimator | None = None,
        config: SearchConfig | None = None,
        schedule: Schedule | None = None,
        *,
        num_actions: int | None = None,
        action_names: Sequence[str] | None = None,
        features: Callable[[State], Any] | None = None,
        discrepancy: Callable[[State, State], float] | None = None,
        parts: Sequence[str] = PARTS,
        tolerance: float = 1e-6,
        budget_seconds: float | None = None,
        seed: int = 0,
        minibatches: int | None = None,
        memory: bool | int | None = None,
        identity: Callable[[State], Any] | None = None,
        policy: Callable[..., Any] | None = None,
        value: Callable[..., Any] | None = None,
        prior: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        parameters: ParameterChoice = None,
        corrections: Sequence[str] = CORRECTIONS,
        **settings: Any,
    ):
        check_arguments(estimator, config, schedule, budget_seconds, minibatches, None)
        seed = seed_number(seed)
        own = {
            "num_actions": num_actions, "action_names": action_names, "features": features, "identity": identity,
        }  # fmt: skip
        function("features", features, "of a state")
        function("identity", identity, "of a state")
        check_choice(parameters)
        allowed, memory = check_corrections(corrections, memory)
        guides = make_guides(policy, value, prior)
        if reuse is not None:
            switch("reuse", reuse)
        measure = Measure(parts, discrepancy, tolerance)
        self._model = model
        self._make = functools.partial(
            build_backend, own=own, planning=(budget_seconds, memory, guides, reuse), estimator=estimator,
            search=(config, settings), learning=(schedule, seed, minibatches, measure),
            corrections=(parameters, allowed),
        )  # fmt: skip
        self.backend, self._ended = self._make(model)
        usual = budget_seconds is None and "iterations" not in given_settings(config, settings)
        self._turns, self.last_plan, self._slow_moves = Turns(), None, SlowMoves(usual)

    @classmethod
    def paper(
        cls,
        domain: Domain,
        estimator: str | Estimator | None = None,
        config: SearchConfig | None = None,
        schedule: Schedule | None = None,
        *,
        budget_seconds: float | None = None,
        seed: int = 0,
        minibatches: int | None = None,
        memory: bool = False,
        **settings: Any,
    ) -> Agent:
        """The paper's own agent in a domain: it learns where the model is wrong, avoids that, and corrects nothing.

        Args:
            domain: A domain of this package.
            estimator: What learns U. By default the paper's estimator for this domain.
            config: How to search. Settings that it leaves out are the paper's for this domain, with all four phases.
            schedule: When to train, and how tau decays. By default the paper's for this domain.
            budget_seconds: The time for a move, instead of `config.iterations`.
            seed: The seed of all of the agent's randomness.
            minibatches: The minibatches of a round of training.
            memory: Whether to plan with what was seen where it was seen, which the paper's agent does not.
            **settings: Single settings of the search.

        Raises:
            TypeError: `domain` is not a domain.
        """
        from uamcts.agent.paper_backend import PaperBackend

        if not is_domain(domain):
            raise TypeError(f"domain is {short_repr(domain)}; give uamcts.make(name), or use Agent(simulator)")
        check_arguments(estimator, config, schedule, budget_seconds, minibatches, memory)
        agent = cls.__new__(cls)
        chosen = paper_config(domain, given_settings(config, settings))
        key = jax.random.key(seed_number(seed))
        agent.backend = PaperBackend(domain, estimator, chosen, schedule, key, minibatches, budget_seconds, memory)
        agent._ended, agent._make, agent.last_plan, agent._turns = None, None, None, Turns()
        agent._slow_moves = SlowMoves(usual=False)
        return agent
