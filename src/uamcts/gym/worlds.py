"""The worlds of this package as Gymnasium environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces


class WorldEnv(gymnasium.Env[np.ndarray, Any]):
    """The real, broken world of a domain as a Gymnasium environment.

    Args:
        domain: The name of a domain, for example `"breakout"`.
        render_mode: `"rgb_array"`, `"ansi"` or None.
        observation: `"features"` observes the full state, the domain's feature vector; `"board"` observes MinAtar's
            board, a boolean array [rows, columns, channels] that hides timers and speeds.
        **options: Options of `uamcts.make`.

    Raises:
        ValueError: An argument has another value.

    Example:
        ```python
        env = gymnasium.make("uamcts/Breakout-v0", broken=(2, 4))
        observation, info = env.reset(seed=0)
        ```
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}

    def __init__(self, domain: str, render_mode: str | None = None, observation: str = "features", **options: object):
        import jax

        import uamcts

        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode is {render_mode!r}; it must be None, 'rgb_array' or 'ansi'")
        if observation not in ("features", "board"):
            raise ValueError(f"observation is {observation!r}; it must be 'features' or 'board'")
        self.domain = uamcts.make(domain, **options)
        self.action_names = self.domain.action_names
        self.render_mode = render_mode
        self.observation = observation
        self.state: Any = None
        self.action_space: Any = spaces.Discrete(self.domain.num_actions)
        self._start = jax.jit(self.domain.reset)
        self._step = jax.jit(self.domain.world)
        self._features = jax.jit(self.domain.features)
        if observation == "features":
            low, high = self.domain.feature_bounds()
            self.observation_space = spaces.Box(low, high, dtype=np.int32)
        else:
            board = self.domain.channels(self.domain.reset(jax.random.key(0)))
            self.observation_space = spaces.MultiBinary(board.shape)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        import jax

        super().reset(seed=seed)
        self.state = self._start(jax.random.key(int(self.np_random.integers(2**31))))
        return self._observe(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            names = ", ".join(f"{index} {name}" for index, name in enumerate(self.domain.action_names))
            raise ValueError(f"action is {action!r}; the legal ones are 0 to {self.domain.num_actions - 1}: {names}")
        self._require_state("step")
        transition = self._step(self.state, int(action), self._key())
        self.state = transition.state
        return self._observe(), float(transition.reward), bool(transition.terminal), False, {}

    def render(self) -> Any:
        self._require_state("render")
        if self.render_mode == "ansi":
            return self.domain.text(self.state)
        if self.render_mode == "rgb_array":
            return self.domain.render(self.state)
        raise ValueError("render needs a render_mode: gymnasium.make(..., render_mode='rgb_array') or 'ansi'")

    def uamcts_state(self) -> Any:
        """The state, for `uamcts.gym.Simulator`. Its arrays are never modified."""
        return self.state

    def uamcts_restore(self, state: object) -> None:
        self.state = state

    def _observe(self) -> np.ndarray:
        if self.observation == "features":
            return np.asarray(self._features(self.state))
        return self.domain.channels(self.state).astype(np.int8)

    def _key(self) -> Any:
        """A key for one step of a random world, drawn from the environment's generator. Planning uses its own."""
        import jax

        return jax.random.key(int(self.np_random.integers(2**31))) if self.domain.random else None

    def _require_state(self, method: str) -> None:
        if self.state is None:
            raise RuntimeError(f"{method} was called before reset; call env.reset() first")
