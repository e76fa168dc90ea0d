"""What cannot be a simulator, and why."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any

from uamcts.agent.identity import fields
from uamcts.agent.state_vectors import State
from uamcts.arguments import short_repr


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
        raise TypeError(
            f"{name}: {kind} takes ({has}); it must take ({', '.join(wanted)}) and return "
            "the next state: a search asks about many states, so the state cannot be kept in the simulator. If this is "
            "an environment with reset and step(action), derive it from gymnasium.Env and pass it as it is"
        )


def suggest_features(state: State) -> str:
    """What to do about a state that is not made of numbers, with an example for this one."""
    usual = "pass features=, a function that gives a vector for a state"
    if isinstance(state, str):
        return f"{usual}, for example features=lambda state: [names.index(state)] with a list of all names"
    if isinstance(state, (set, frozenset)):
        return f"{usual}, for example features=lambda state: [one in state for one in everything] with a list of all"
    try:
        parts = _parts(state)
    except TypeError:
        return usual
    shown = [code if isinstance(part, numbers.Real) else f"names.index({code})" for code, part in parts.items()
             if isinstance(part, (numbers.Real, str))]  # fmt: skip
    if not shown or len(shown) > 6:
        return usual
    named = " with a list of all names" if any("names" in one for one in shown) else ""
    return f"{usual}, for example features=lambda state: [{', '.join(shown)}]{named}"


def _parts(state: State) -> dict[str, Any]:
    """The parts of a state, by how one would write them."""
    if isinstance(state, dict):
        return {f"state[{key!r}]": part for key, part in state.items()}
    if isinstance(state, (list, tuple)) and not hasattr(state, "_fields"):
        return {f"state[{place}]": part for place, part in enumerate(state)}
    held = state._asdict() if hasattr(state, "_asdict") else fields(state)
    return {f"state.{name}": part for name, part in held.items()}
