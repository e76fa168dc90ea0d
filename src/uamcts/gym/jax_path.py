"""gymnax's environments for the compiled search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from uamcts.arguments import shown, switch, whole

if TYPE_CHECKING:
    from uamcts.agent.jax_simulator import JaxSimulator


def from_gymnax(
    env: Any,
    params: Any = None,
    *,
    actions: Sequence[Any] | None = None,
    time_limit: bool = False,
    trial_steps: int = 50,
) -> JaxSimulator:
    """A gymnax environment as a simulator for `uamcts.search`, absorbing where `env.is_terminal` says so.

        env, params = gymnax.make("CartPole-v1")
        simulator = uamcts.gym.from_gymnax(env, params)
        uamcts.search(key, state, simulator.step, None, config, num_actions=simulator.num_actions)

    `params` are the rules: other ones are another world, or a wrong model of it. States are gymnax's own. The time
    limit (`max_steps_in_episode`) is no part of the model unless `time_limit`. `actions`: what to choose from where the
    action space is continuous. A stochastic environment is refused, after `trial_steps` random steps from 16 starts (0:
    it is not tried).
    """
    import jax
    import jax.numpy as jnp

    from uamcts.agent.jax_simulator import JaxSimulator
    from uamcts.types import Transition

    for method in ("step_env", "reset_env", "is_terminal", "default_params", "action_space"):
        if not hasattr(env, method):
            raise TypeError(f"env is {shown(env)}, without {method}; give the environment of gymnax.make(...)")
    switch("time_limit", time_limit)
    whole("trial_steps", trial_steps, 0)
    params = env.default_params if params is None else params
    menu = None if actions is None else jnp.asarray(actions)
    num_actions = _count(env, params, menu)
    key = jax.random.key(0)

    def over(state: Any) -> Any:
        ended = jnp.asarray(env.is_terminal(state, params), bool)
        return ended | env.is_truncated(state, params) if time_limit else ended

    def raw(key: Any, state: Any, action: Any) -> Transition:
        chosen = action if menu is None else menu[action]
        _, after, reward, done, _ = env.step_env(key, state, chosen, params)
        after = jax.tree.map(lambda new, old: jnp.asarray(new, jnp.asarray(old).dtype), after, state)
        return Transition(after, jnp.asarray(reward, jnp.float32), jnp.asarray(done, bool))

    def step(state: Any, action: Any) -> Transition:
        ended = over(state)
        after, reward, _ = raw(key, state, action)
        kept = jax.tree.map(lambda new, old: jnp.where(ended, old, new), after, state)
        return Transition(kept, jnp.where(ended, 0.0, reward), over(kept))

    def features(state: Any) -> Any:
        """All numbers of a state but its clock."""
        leaves = jax.tree.leaves(identity(state))
        return jnp.concatenate([jnp.ravel(jnp.asarray(leaf, jnp.float32)) for leaf in leaves])

    def inputs(state: Any) -> Any:
        return jnp.ravel(jnp.asarray(env.observe(key, state, None, params), jnp.float32))

    def identity(state: Any) -> Any:
        """All of a state but its clock."""
        return [getattr(state, part.name) for part in fields(state) if time_limit or part.name != "time"]

    start = jax.jit(lambda: env.reset_env(key, params)[1])()
    example = jax.tree.map(lambda leaf: jnp.array(leaf, leaf.dtype), start)  # an array of the same kind, not weakly so
    if trial_steps > 0:
        _try(env, params, raw, num_actions, trial_steps)
    return JaxSimulator(step, num_actions, example, features, inputs, name=env.name, identity=identity)


def _count(env: Any, params: Any, menu: Any) -> int:
    if menu is not None:
        return len(menu)
    space = env.action_space(params)
    if not hasattr(space, "n"):
        raise ValueError(f"the actions of {env.name} are continuous; give a list, for example actions=[[-1.0], [1.0]]")
    return int(space.n)


def _try(env: Any, params: Any, raw: Any, num_actions: int, steps: int) -> None:
    """Refuses an environment in which chance decides, or whose ends do not show in its state."""
    import jax
    import jax.numpy as jnp

    def one(state: Any, given: tuple) -> tuple[Any, Any]:
        action, first, second = given
        after, again = (raw(key, state, action) for key in (first, second))
        pairs = zip(jax.tree.leaves(after), jax.tree.leaves(again), strict=True)
        chance = jnp.any(jnp.stack([jnp.any(a != b) for a, b in pairs]))
        hidden = after.terminal != env.is_terminal(after.state, params)
        going = jax.tree.map(lambda new, old: jnp.where(after.terminal, old, new), after.state, state)
        return going, (chance, hidden)

    @jax.jit
    @jax.vmap
    def trial(key: Any) -> Any:
        start = jax.tree.map(lambda leaf: jnp.array(leaf, jnp.asarray(leaf).dtype), env.reset_env(key, params)[1])
        actions = jax.random.randint(key, (steps,), 0, num_actions)
        keys = jax.random.split(key, (2, steps))
        _, found = jax.lax.scan(one, start, (actions, keys[0], keys[1]))
        return jax.tree.map(jnp.any, found)

    chance, hidden = trial(jax.random.split(jax.random.key(0), 16))
    if bool(chance.any()):
        raise ValueError(
            f"{env.name} is stochastic: the same step from the same state comes out differently with another key, and "
            "this planner needs a deterministic simulator; make it without chance if it can be "
            '(gymnax.make("FrozenLake-misc", is_slippery=False))'
        )
    if bool(hidden.any()):
        raise ValueError(
            f"{env.name} ends episodes in states that its is_terminal does not call terminal; the compiled search "
            "needs to see in a state that it is the last"
        )
