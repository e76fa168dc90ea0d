"""How an agent is put together from its arguments: checks, defaults, and a planner for the model that was given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import numpy as np

from uamcts.agent.backend import Guides, ParameterChoice
from uamcts.agent.corrector import CORRECTIONS
from uamcts.agent.measure import Measure
from uamcts.agent.plain_planner import PlainPlanner
from uamcts.agent.python_simulator import PythonSimulator
from uamcts.agent.searching import Searching, settings_of_trees
from uamcts.agent.simulator_backend import SimulatorBackend
from uamcts.agent.simulator_checks import refuse_batch
from uamcts.arguments import function, real, short_repr, switch, whole
from uamcts.corrections.python_facts import MOST_FACTS
from uamcts.mcts.config import SETTINGS, SearchConfig
from uamcts.names import suggestion
from uamcts.presets import TRUST, search_config
from uamcts.runtime.lazy_jax import is_a
from uamcts.types import Environment
from uamcts.uncertainty.schedule import Schedule

if TYPE_CHECKING:
    from uamcts.agent.compiled_planner import CompiledPlanner
    from uamcts.agent.domain_simulator import EndOfEpisode
    from uamcts.agent.jax_simulator import JaxSimulator
    from uamcts.domains.base import Domain
    from uamcts.uncertainty import Estimator

DEFAULT = SearchConfig(**TRUST, gamma=0.99)
"""How to search in a simulator (docs/concepts/trust.md). On trees, c and the first action are others: `Searching`."""
AT_ONCE = ("nearest",)
"""Estimators that learn instantly: after every real step, unless there is a schedule."""


OF_SIMULATORS = ("inputs", "legal_actions", "name", "render", "reward", "terminal", "with_features")
"""What simulators offer, and agents are sometimes given."""


def is_domain(model: object) -> TypeGuard[Domain]:
    return is_a(model, "uamcts.domains.base", "Domain")


def is_jax_simulator(model: object) -> TypeGuard[JaxSimulator]:
    return is_a(model, "uamcts.agent.jax_simulator", "JaxSimulator")


def check_arguments(
    estimator: object, config: object, schedule: object, budget_seconds: object, minibatches: object, memory: object
) -> None:
    """Refuses arguments of the wrong type."""
    if isinstance(estimator, str):
        if estimator != "none":  # an agent that doubts nothing may do without JAX
            from uamcts.uncertainty import check_name

            check_name(estimator)
    elif estimator is not None and not is_a(estimator, "uamcts.uncertainty.estimator", "Estimator"):
        raise TypeError(
            f"estimator is {short_repr(estimator)}; give a name such as 'nearest', or a uamcts.Estimator object"
        )
    if config is not None and not isinstance(config, SearchConfig):
        raise TypeError(
            f"config is {short_repr(config)}; give a uamcts.SearchConfig, or single settings: iterations=200"
        )
    if schedule is not None and not isinstance(schedule, Schedule):
        raise TypeError(f"schedule is {short_repr(schedule)}; give a uamcts.Schedule")
    if budget_seconds is not None:
        real("budget_seconds", budget_seconds, "it must be above 0, a finite number of seconds", lambda s: s > 0)
    if minibatches is not None:
        whole("minibatches", minibatches)
    if memory is not None:
        switch("memory", memory)


def check_corrections(corrections: object, memory: bool | int | None) -> tuple[tuple[str, ...], bool | int | None]:
    """The corrections that may be used, and whether there is a memory, or how many facts it holds at most."""
    if memory is not None and not isinstance(memory, (bool, np.bool_)):
        remedy = "give True, False, or how many facts are kept at most"
        memory = int(real("memory", memory, remedy, lambda most: most >= 1 and float(most).is_integer()))
    known = ", ".join(map(repr, CORRECTIONS))
    if isinstance(corrections, str) or not isinstance(corrections, Sequence):
        raise TypeError(f"corrections is {short_repr(corrections)}; give some of {known} in a tuple, or () for none")
    for one in corrections:
        if one not in CORRECTIONS:
            raise ValueError(f"corrections holds {short_repr(one)}; there are {known}")
    if "facts" in corrections:
        return tuple(corrections), memory
    if memory:
        raise ValueError(f"memory is {memory}, but corrections leaves 'facts' out; add it, or leave memory out")
    return tuple(corrections), False


def refuse_given(own: dict[str, Any], owner: str) -> None:
    """Refuses arguments that the model has itself."""
    for name, value in own.items():
        if value is not None:
            raise ValueError(f"{name} is given, but {owner} has its own; leave it out")


def given_settings(config: SearchConfig | None, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of the search that a user has given: those of a config, and single ones, which count more.

    Each must be one number: an agent makes one search at a time.
    """
    for name in settings:
        if name not in SETTINGS:
            hint = suggestion(name, SETTINGS)
            if name in OF_SIMULATORS:
                hint = f"make {name} an attribute or a method of the simulator; "
            raise TypeError(f"Agent has no argument {name!r}; {hint}settings of the search are {', '.join(SETTINGS)}")
    given = {**({} if config is None else config.given), **settings}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        if np.ndim(value):
            raise ValueError(f"{name} is {short_repr(value)}; an agent needs a single number, not a batch")
    return given


def paper_config(domain: Domain, given: dict[str, Any]) -> SearchConfig:
    """The paper's settings for a domain, with those that were given in their place; trust search has its own."""
    rules = given.get("rules", "trust" if given.get("graph") else "released")
    usual = search_config(domain, "trust") if rules == "trust" else search_config(domain, "combined", rules=rules)
    return SearchConfig(**{**usual.given, **given})


def make_guides(
    policy: Callable[..., Any] | None, value: Callable[..., Any] | None, prior: Callable[..., Any] | None
) -> Guides:
    """What the user brings to the search, checked as far as it can be before it is called."""
    function("policy", policy, "of a state and a generator (a key, for a JaxSimulator), or leave it out")
    function("value", value, "of a state, or leave it out")
    function("prior", prior, "of a state, or leave it out")
    return Guides(policy, value, prior)


def make_planner(
    model: object, own: dict[str, Any], budget_seconds: float | None, memory: bool | int | None, guides: Guides
) -> PlainPlanner | CompiledPlanner:
    """A planner for whatever was given as a model."""
    most = MOST_FACTS if memory is None or memory is True else int(memory)
    if is_jax_simulator(model):
        from uamcts.agent.compiled_planner import CompiledPlanner

        refuse_given(own, "a JaxSimulator")
        return CompiledPlanner(model, budget_seconds, most, guides)
    if isinstance(model, str):
        from uamcts.domains import DOMAINS

        make = f"uamcts.make({model!r})" if model in DOMAINS else f"a simulator, or gymnasium.make({model!r})"
        raise TypeError(f"model is {model!r}; give {make}")
    refuse_batch("model", model)
    if is_a(model, "gymnasium", "Env"):
        from uamcts import gym

        model = gym.Simulator(cast(Environment, model))
    simulator = PythonSimulator(model, **own)
    if memory and simulator.continuous:
        raise ValueError(
            f"memory is {memory}, but the actions of {simulator.name} are continuous, and no facts are kept about such "
            "transitions; leave it out, or give a list of actions"
        )
    return PlainPlanner(simulator, budget_seconds, 0 if simulator.continuous else most, guides)


def simulator_backend(
    planner: PlainPlanner | CompiledPlanner,
    estimator: str | Estimator | None,
    config: SearchConfig,
    schedule: Schedule | None,
    seed: int,
    minibatches: int | None,
    measure: Measure,
    searching: Searching,
    parameters: ParameterChoice,
    corrections: Sequence[str],
) -> SimulatorBackend:
    """A backend for a simulator, with defaults for what is not given."""
    if isinstance(estimator, str) and estimator.startswith("true"):
        raise ValueError(
            f"estimator is {estimator!r}, which knows the world of a domain: use uamcts.Agent.paper(domain, "
            f"{estimator!r}), or leave it out"
        )
    if estimator is None and config.rules != "trust":
        estimator = "nearest"
    if schedule is None and estimator is not None and estimator not in AT_ONCE:
        schedule = Schedule(interval=200)
    minibatches = 2000 if minibatches is None else minibatches
    return SimulatorBackend(
        planner, estimator, config, schedule, seed, minibatches, measure, searching, parameters, corrections
    )


def build_backend(
    model: object,
    own: dict[str, Any],
    planning: tuple[float | None, bool | int | None, Guides, bool | None],
    estimator: str | Estimator | None,
    search: tuple[SearchConfig | None, dict[str, Any]],
    learning: tuple[Schedule | None, int, int | None, Measure],
    corrections: tuple[ParameterChoice, Sequence[str]],
) -> tuple[SimulatorBackend, EndOfEpisode | None]:
    """A backend for whatever was given as a model, and what tells the ends of its episodes if it is a domain.

    Args:
        model: The model.
        own: What the user says about states and actions.
        planning: The seconds of a move, whether there is a memory, what the user brings to searches, and reuse.
        estimator: What learns U.
        search: A config, and single settings.
        learning: When to train, the seed, the minibatches, and how errors are measured.
        corrections: What was said about parameters, and which corrections may be used.
    """
    budget_seconds, memory, guides, reuse = planning
    default, ended = DEFAULT, None
    if is_domain(model):
        from uamcts.agent.domain_simulator import EndOfEpisode, domain_simulator

        refuse_given(own, "a domain")
        ended, default = EndOfEpisode(model), search_config(model, "trust")
        model, own = domain_simulator(model), dict.fromkeys(own)
    given = given_settings(*search)
    config = SearchConfig(**{**default.given, **given})
    chooses = "graph" not in given and config.rules == "trust"
    planner = make_planner(model, own, budget_seconds, memory, guides)
    ours = ended is None and config.rules == "trust"
    searching = Searching(
        chooses, config.rules == "trust" if reuse is None else bool(reuse),
        settings_of_trees(given, guides) if ours else {}, ours and "first" not in given,
    )  # fmt: skip
    schedule, seed, minibatches, measure = learning
    backend = simulator_backend(
        planner, estimator, config, schedule, seed, minibatches, measure, searching, *corrections
    )  # fmt: skip
    return backend, ended
