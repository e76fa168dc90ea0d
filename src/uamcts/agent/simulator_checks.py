"""What cannot be a simulator, and why."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from uamcts.arguments import short_repr
from uamcts.corrections.settings import Simulator, is_settings
from uamcts.errors import SimulatorError

Outcomes: TypeAlias = Sequence[tuple[float, Any]]
"""The outcomes of a step with their probabilities."""


def find_call(model: Simulator, owner: object | None, kind: str) -> tuple[Callable[..., Any], tuple[Any, str]]:
    """The function that is called for a step, what holds its numbers, and the name of the method, if it is one."""
    if owner is not None:
        return getattr(owner, kind), (owner, kind)
    if inspect.ismethod(model) and not isinstance(model.__self__, type):
        return model, (model.__self__, model.__name__)
    if not inspect.isroutine(model) and is_settings(model):
        return model, (model, "__call__")
    return model, (model, "")


def check_kind(model: object, owner: object | None) -> None:
    """Refuses what is no simulator."""
    if owner is not None and isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; give an object of it, such as {model.__name__}()")
    if (owner is None and not callable(model)) or isinstance(model, type):
        raise TypeError(
            f"model is {short_repr(model)}; give a domain, a Gymnasium environment, a JaxSimulator, an object with "
            "num_actions and step(state, action), outcomes(state, action) or sample(state, action, rng), or a "
            "function step(state, action) and num_actions=..."
        )


def refuse_batch(argument: str, model: object) -> None:
    """Refuses a vector environment of Gymnasium."""
    gymnasium = sys.modules.get("gymnasium")  # whoever has an environment has imported it
    if gymnasium is not None and isinstance(model, gymnasium.vector.VectorEnv):
        raise TypeError(
            f"{argument} is {short_repr(model)}, a batch of environments, and an agent acts in one; give a single one, "
            "of gymnasium.make instead of gymnasium.make_vec"
        )


def check_continuous(owner: object | None, continuous: bool) -> None:
    """Refuses a simulator without `num_actions` whose actions are not continuous."""
    listed = getattr(owner, "actions", None)
    if isinstance(listed, (list, tuple)):
        raise ValueError(
            f"model.actions is {short_repr(listed)}; give the model num_actions = {len(listed)} and, for reports, "
            "action_names: step takes the number of an action"
        )
    if not continuous:
        raise ValueError("num_actions is not given and the model does not have it; pass num_actions=...")
    if callable(listed) and not _takes(listed, "state", "rng"):
        raise ValueError(
            "num_actions is not given and the model does not have it; pass num_actions=..., and if actions(state) lists"
            " the legal ones, call it legal_actions. Continuous actions are proposed by actions(state, rng)"
        )


def not_three(name: str, kind: str, outcome: object) -> str:
    """What to say about a result that is not (state, reward, terminal)."""
    hint = ""
    if isinstance(outcome, tuple) and len(outcome) == 5:
        hint = " (a Gymnasium environment returns five: if this is one, derive it from gymnasium.Env and pass it)"
    what = "the outcomes that it lists must be tuples" if kind == "outcomes" else "it must return a tuple"
    return f"{name}: {kind} returned {short_repr(outcome)}{hint}; {what} (state, reward, terminal)"


def check_with_parameters(name: str, kind: str, owner: object, found: Mapping[str, float]) -> None:
    """Refuses a `with_parameters` that does not return another simulator."""
    build = getattr(owner, "with_parameters", None)
    if not callable(build) or not found:
        return
    first, value = next(iter(found.items()))
    asked = f"{name}: with_parameters({first}={value:g})"
    try:
        made = build(**{first: value})
    except Exception as error:
        raise TypeError(
            f"{asked} raised {type(error).__name__}: {error}; it must take any of the names in parameters, by keyword"
        ) from error
    if not callable(getattr(made, kind, None)):
        raise TypeError(f"{asked} returned {short_repr(made)}; it must return a new simulator with these values")
    if made is owner and _changes_itself(owner, first, value):
        raise TypeError(f"{asked} returned the simulator itself; it must return a new one, and leave the old one alone")


def _changes_itself(owner: object, name: str, value: float) -> bool:
    """Whether a simulator returns itself also for another value, which is tried on a copy."""
    try:
        twin: Any = copy.deepcopy(owner)
        return twin is not owner and twin.with_parameters(**{name: 1.01 * value + 0.01}) is twin
    except Exception:  # it may refuse this value
        return False


def _takes(call: Callable[..., Any], *arguments: str) -> bool:
    """Whether a function can be called with so many arguments, as far as it shows."""
    try:
        inspect.signature(call).bind(*arguments)
    except ValueError:  # it does not show
        return True
    except TypeError:
        return False
    return True


ARGUMENTS = {"step": ("state", "action"), "outcomes": ("state", "action"), "sample": ("state", "action", "rng")}


def check_arguments_of(name: str, kind: str, call: Callable[..., Any]) -> None:
    """Refuses a `step` that takes something else than a state and an action, such as a method of an environment."""
    wanted = ARGUMENTS[kind]
    if not _takes(call, *wanted):
        has = ", ".join(inspect.signature(call).parameters)
        if hasattr(getattr(call, "__self__", None), "step_env"):
            raise TypeError(f"{name}: {kind} takes ({has}), as gymnax's do; give uamcts.gym.from_gymnax(env, params)")
        raise TypeError(
            f"{name}: {kind} takes ({has}); it must take ({', '.join(wanted)}) and return "
            "the next state: a search asks about many states, so the state cannot be kept in the simulator. If this is "
            "an environment with reset and step(action), derive it from gymnasium.Env and pass it as it is"
        )


def normalise(name: str, found: Outcomes) -> Outcomes:
    """Outcomes with probabilities that sum to 1: with another value of one of them, the others no longer fit."""
    total = sum(chance for chance, _ in found)
    if not (total > 0 and all(chance >= 0 for chance, _ in found)):
        raise SimulatorError(f"{name}: with other parameters, the probabilities of outcomes are not positive")
    return found if abs(total - 1.0) < 1e-9 else [(chance / total, outcome) for chance, outcome in found]
