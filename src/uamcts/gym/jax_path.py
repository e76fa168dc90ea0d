"""gymnax's environments for the compiled search. JAX is imported when one is made, not with `uamcts.gym`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from uamcts.arguments import short_repr, switch, whole

if TYPE_CHECKING:
    import jax

    from uamcts.agent.jax_simulator import JaxSimulator
    from uamcts.types import Environment, PyTree, Transition


MOST_CELLS, MOST_CHANNELS = 64, 32
"""Observations with longer sides or more channels are not drawn as boards."""


def from_gymnax(
    env: Environment,
    params: PyTree = None,
    *,
    actions: Sequence[Any] | None = None,
    time_limit: bool = False,
    trial_steps: int = 50,
) -> JaxSimulator:
    """Turns a gymnax environment into a simulator for `uamcts.search` and `uamcts.Agent`.

    States are gymnax's own. An environment that turns out to be random has `sample` instead of `step`.

    Args:
        env: The environment.
        params: Its parameters, `env.default_params` by default. An agent may correct all but `max_steps_in_episode`.
        actions: The actions to choose from, if the action space is continuous.
        time_limit: Whether `max_steps_in_episode` is part of the model.
        trial_steps: Length of the 16 random episodes that it is tried on. 0 skips them: it counts as deterministic.

    Returns:
        The simulator, absorbing in terminal states.

    Raises:
        TypeError: `env` is not a gymnax environment.
        ValueError: Its actions are continuous, or an episode can end in a state that `is_terminal` does not recognise.

    Example:
        ```python
        env, params = gymnax.make("CartPole-v1")
        agent = uamcts.Agent(uamcts.gym.from_gymnax(env, params))
        ```
    """
    import jax
    import jax.numpy as jnp

    from uamcts.agent.jax_simulator import JaxSimulator

    _check_environment(env)
    switch("time_limit", time_limit)
    whole("trial_steps", trial_steps, 0)
    params = env.default_params if params is None else params
    menu = None if actions is None else jnp.asarray(actions)
    num_actions = _count(env, params, menu)
    made = _GymnaxModel(env, params, menu, time_limit, jax.random.key(0))
    random = trial_steps > 0 and _try(env, params, made.raw_step, num_actions, trial_steps)
    form: dict[str, Any] = {"step": None, "sample": made.sample} if random else {"step": made.step}
    return JaxSimulator(
        num_actions=num_actions, example=made.start(), features=made.features, inputs=made.inputs, name=env.name,
        identity=made.identity, params=made.numbers(made.start()), terminal=made.is_over, render=made.board(), **form,
    )  # fmt: skip


def _check_environment(env: object) -> None:
    for method in ("step_env", "reset_env", "is_terminal", "default_params", "action_space"):
        if not hasattr(env, method):
            raise TypeError(f"env is {short_repr(env)}, without {method}; give the environment of gymnax.make(...)")


@dataclass(frozen=True, eq=False)
class _GymnaxModel:
    """The functions of a gymnax environment that a simulator consists of."""

    env: Environment
    params: PyTree
    menu: Any
    """The actions to choose from, [actions, ...]; None: the environment's own."""
    time_limit: bool
    key: Any
    """The key of resets, of observations, and of the steps of a deterministic environment."""

    def start(self) -> Any:
        """A start state, with arrays that are not weakly typed."""
        import jax
        import jax.numpy as jnp

        state = jax.jit(lambda: self.env.reset_env(self.key, self.params)[1])()
        return jax.tree.map(lambda leaf: jnp.array(leaf, leaf.dtype), state)

    def numbers(self, state: PyTree) -> dict[str, Any]:
        """The numbers among the rules that may be arguments of a compiled program; those that shapes depend on not."""
        import jax
        import jax.numpy as jnp

        found = {}
        for part in fields(self.params):
            value = getattr(self.params, part.name)
            real = part.type in (float, "float") and isinstance(value, int)  # a whole number where any may be
            if part.name != "max_steps_in_episode" and _is_number(value):
                found[part.name] = jnp.asarray(float(value) if real else value)
        reals = {name: value for name, value in found.items() if value.dtype.kind == "f"}
        for numbers in (found, reals):
            with contextlib.suppress(Exception):  # what its code does with a number that is not known yet may fail
                jax.eval_shape(self.sample, state, jnp.int32(0), self.key, numbers)
                return {name: jnp.asarray(value, value.dtype) for name, value in numbers.items()}
        return {}

    def rules(self, numbers: PyTree) -> Any:
        """The rules with other numbers."""
        return replace(self.params, **numbers) if numbers else self.params

    def is_over(self, state: PyTree, numbers: PyTree = None) -> Any:
        import jax.numpy as jnp

        rules = self.rules(numbers)
        ended = jnp.asarray(self.env.is_terminal(state, rules), bool)
        return ended | self.env.is_truncated(state, rules) if self.time_limit else ended

    def raw_step(self, key: jax.Array, state: PyTree, action: jax.Array, numbers: PyTree = None) -> Transition:
        """One step of the environment itself."""
        import jax
        import jax.numpy as jnp

        from uamcts.types import Transition

        chosen = action if self.menu is None else self.menu[action]
        _, after, reward, done, _ = self.env.step_env(key, state, chosen, self.rules(numbers))
        after = jax.tree.map(lambda new, old: jnp.asarray(new, jnp.asarray(old).dtype), after, state)
        return Transition(after, jnp.asarray(reward, jnp.float32), jnp.asarray(done, bool))

    def step(self, state: PyTree, action: jax.Array, numbers: PyTree = None) -> Transition:
        """One step of a deterministic simulator, absorbing where the episode is over."""
        return self.sample(state, action, self.key, numbers)

    def sample(self, state: PyTree, action: jax.Array, key: jax.Array, numbers: PyTree = None) -> Transition:
        """A step drawn with a key, absorbing where the episode is over."""
        import jax
        import jax.numpy as jnp

        from uamcts.types import Transition

        ended = self.is_over(state, numbers)
        after, reward, _ = self.raw_step(key, state, action, numbers)
        following = jax.tree.map(lambda new, old: jnp.where(ended, old, new), after, state)
        return Transition(following, jnp.where(ended, 0.0, reward), self.is_over(following, numbers))

    def identity(self, state: PyTree) -> Any:
        """All of a state but its clock."""
        return [getattr(state, part.name) for part in fields(state) if self.time_limit or part.name != "time"]

    def features(self, state: PyTree) -> Any:
        """All numbers of a state but its clock."""
        import jax
        import jax.numpy as jnp

        leaves = jax.tree.leaves(self.identity(state))
        return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, jnp.float32)) for leaf in leaves])

    def board(self) -> Callable[[PyTree], Any] | None:
        """Draws a state whose observation is a board of channels, as MinAtar's are; None for others."""
        import jax
        import numpy as np

        observe = jax.jit(lambda state: self.env.observe(self.key, state, None, self.params))
        shape = jax.eval_shape(observe, self.start()).shape
        if len(shape) != 3 or max(shape[:2]) > MOST_CELLS or shape[2] > MOST_CHANNELS:
            return None

        names = np.array(["empty", *(f"channel {number}" for number in range(shape[2]))])

        def draw(state: PyTree) -> Any:
            seen = np.asarray(observe(state)) != 0
            return names[(seen * np.arange(1, shape[2] + 1)).max(axis=2)]

        return draw

    def inputs(self, state: PyTree) -> Any:
        import jax.numpy as jnp

        return jnp.ravel(jnp.asarray(self.env.observe(self.key, state, None, self.params), jnp.float32))


def _is_number(value: Any) -> bool:
    """Whether a rule is a number, and not a condition, or a vector of numbers."""
    import numpy as np

    if isinstance(value, (int, float)):
        return not isinstance(value, bool)
    return hasattr(value, "dtype") and np.ndim(value) <= 1 and np.dtype(value.dtype).kind in "iuf"


def _count(env: Environment, params: PyTree, menu: jax.Array | None) -> int:
    if menu is not None:
        return len(menu)
    space = env.action_space(params)
    if not hasattr(space, "n"):
        raise ValueError(f"the actions of {env.name} are continuous; give a list, for example actions=[[-1.0], [1.0]]")
    return int(space.n)


def _try(env: Environment, params: PyTree, raw: Callable[..., Transition], num_actions: int, steps: int) -> bool:
    """Whether an environment is random. Refuses one whose ends do not show in its state."""
    import jax
    import jax.numpy as jnp

    def one(state: PyTree, given: tuple) -> tuple[Any, Any]:
        action, first, second = given
        after, again = (raw(key, state, action) for key in (first, second))
        pairs = zip(jax.tree.leaves(after), jax.tree.leaves(again), strict=True)
        chance = jnp.any(jnp.stack([jnp.any(a != b) for a, b in pairs]))
        hidden = after.terminal != env.is_terminal(after.state, params)
        going = jax.tree.map(lambda new, old: jnp.where(after.terminal, old, new), after.state, state)
        return going, (chance, hidden)

    @jax.jit
    @jax.vmap
    def trial(key: jax.Array) -> Any:
        start = jax.tree.map(lambda leaf: jnp.array(leaf, jnp.asarray(leaf).dtype), env.reset_env(key, params)[1])
        actions = jax.random.randint(key, (steps,), 0, num_actions)
        keys = jax.random.split(key, (2, steps))
        _, found = jax.lax.scan(one, start, (actions, keys[0], keys[1]))
        return jax.tree.map(jnp.any, found)

    chance, hidden = trial(jax.random.split(jax.random.key(0), 16))
    if bool(hidden.any()):
        raise ValueError(
            f"{env.name} ends episodes in states that its is_terminal does not call terminal; the compiled search "
            "needs to see in a state that it is the last"
        )
    return bool(chance.any())
