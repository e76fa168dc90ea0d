"""The original games of the `minatar` package as recorders, with policies that reach the rare events.

Each game plays whole episodes and writes down the feature vector before the first and after every action. The
documented differences of our games are injected from outside; nothing of the original is rewritten.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from minatar.environments import breakout, freeway, space_invaders

N, L, U, R, D, F = range(6)


class Episode(NamedTuple):
    start: np.ndarray
    actions: list[int]
    features: list[np.ndarray]
    rewards: list[float]
    terminals: list[bool]


class Breakout:
    """Stock, without refill; `broken`: the paddle does not stop the ball in these columns."""

    actions = (N, L, R)
    policies = ("random", "follower", "edge", "chaser")

    def __init__(self, rng: np.random.Generator, broken: tuple[int, ...] = ()):
        self.env = breakout.Env()
        self.env.random.seed(int(rng.integers(2**31)))
        self.env.reset()
        self.rng, self.broken, self.events = rng, broken, Counter()

    def features(self) -> np.ndarray:
        e = self.env
        head = [e.ball_y, e.ball_x, e.ball_dir, e.pos, e.strike, e.last_x, e.last_y]
        return np.concatenate([head, e.brick_map.reshape(-1)]).astype(np.int32)

    def step(self, action: int) -> tuple[float, bool]:
        e = self.env
        column, row, strike = e.ball_x, e.ball_y, e.strike
        bricks = e.brick_map.copy()
        paddle = int(np.clip(e.pos + (action == 2) - (action == 1), 0, 9))
        if paddle in self.broken:
            return self._through_the_hole(action, paddle)
        reward, terminal = e.act(self.actions[action])
        self._count(column, row, strike, bricks, reward)
        if not bricks.any() and (terminal or e.brick_map.any()):
            e.brick_map[:] = 0  # the original has refilled: here the episode ends instead
            self.events["last brick, then the bottom row"] += 1
            terminal = True
        return reward, terminal

    def _through_the_hole(self, action: int, paddle: int) -> tuple[float, bool]:
        """The original step with its paddle held far from the ball, then put back where it belongs."""
        e = self.env
        bricks, below = e.brick_map.copy(), e.ball_x == paddle
        e.pos = (e.ball_x + 5) % 10
        reward, terminal = e.act(N)
        e.pos = paddle
        if terminal and not bricks.any():
            e.brick_map[:] = 0
        self.events["through a hole"] += terminal and (below or e.ball_x == paddle)
        return reward, terminal

    def _count(self, column, row, strike, bricks, reward) -> None:
        e, count = self.env, self.events
        count["side wall"] += e.ball_x == column
        count["ceiling"] += row == 0 and e.ball_y == 0
        count["strike"] += reward > 0
        count["passes through a second brick"] += bool(strike and bricks[e.ball_y, e.ball_x])
        count["bounce off the paddle"] += row == 8 and e.ball_y == 8
        count["last brick"] += bool(reward and bricks.sum() == 1)

    def policy(self, name: str) -> int:
        e = self.env
        if name == "random":
            return int(self.rng.integers(3))
        right = e.ball_dir in (1, 2)
        target = e.ball_x + (1 if right else -1) if e.ball_y >= 7 else e.ball_x
        if name == "edge":
            target = 9 if right else 0
            if e.ball_y >= 4 and e.ball_dir >= 2:
                target = e.ball_x
        if name == "chaser" and self.rng.random() < 0.3:
            return int(self.rng.integers(3))
        if name == "follower" and e.ball_y == 8 and self.rng.random() < 0.5:
            target = e.ball_x
        return 0 if target == e.pos else 1 if target < e.pos else 2


class Freeway:
    """Stock, one crossing, three frames an action; `broken`: `none` is `up` in these rows."""

    actions = (N, U, D)
    policies = ("random", "up", "careful", "lingering", "walker")

    def __init__(self, rng: np.random.Generator, broken: tuple[int, ...] = ()):
        self.env = freeway.Env()
        self.env.random.seed(int(rng.integers(2**31)))
        self.env.reset()
        self.env._randomize_cars = lambda initialize: None  # a crossing ends the episode: the cars stay as they are
        self.rng, self.broken, self.events, self.row = rng, broken, Counter(), 9

    def features(self) -> np.ndarray:
        return np.concatenate([np.ravel(self.env.cars), [self.row, self.env.move_timer]]).astype(np.int32)

    def step(self, action: int) -> tuple[float, bool]:
        e = self.env
        move = self.actions[action]
        if move == N and self.row in self.broken and e.move_timer == 0:
            move = U
            self.events["drifts up"] += 1
        self.events["the first action does nothing"] += e.move_timer == 3
        moved = e.move_timer == 0 and move in (U, D)
        row = int(np.clip(self.row + (move == D) - (move == U), 0, 9)) if moved else self.row
        reward, crashed = 0, False
        for number in range(3):
            reward += e.act(move if number == 0 else N)[0]
            if not crashed and row not in (0, 9) and e.pos != row:
                crashed = True  # the original sends the player back to the start: here the episode ends
                self.events[f"crash on frame {number + 1}"] += 1
        self.row = row
        self.events["reaches the other side"] += reward > 0
        e.move_timer = 0
        return reward, crashed or reward > 0

    def policy(self, name: str) -> int:
        if name == "random":
            return int(self.rng.integers(3))
        if name == "up":
            return 1
        if name == "walker":
            return int(self.rng.choice(3, p=(0.1, 0.6, 0.3)))
        if name == "lingering" and self.rng.random() < 0.5:
            return 0
        # Wait below a car that comes near the player's column.
        above = next((car for car in self.env.cars if car[1] == self.row - 1), None)
        if above is None:
            return 1
        near = min((above[0] - 4) % 10, (4 - above[0]) % 10) <= 2
        return 0 if near else 1


class SpaceInvaders:
    """Stock with one wave and a shot of the aliens every three frames; `broken`: no fire in these columns."""

    actions = (N, L, R, F)
    policies = ("random", "shooter", "dodger", "edge", "sniper")

    def __init__(self, rng: np.random.Generator, broken: tuple[int, ...] = ()):
        space_invaders.enemy_shot_interval = 3
        self.env = space_invaders.Env(ramping=False)
        self.rng, self.broken, self.events = rng, broken, Counter()

    def features(self) -> np.ndarray:
        e = self.env
        maps = [m.reshape(-1) for m in (e.f_bullet_map, e.e_bullet_map, e.alien_map)]
        numbers = [e.pos, e.alien_dir, e.enemy_move_interval, e.alien_move_timer, e.alien_shot_timer, e.shot_timer]
        return np.concatenate([*maps, numbers]).astype(np.int32)

    def step(self, action: int) -> tuple[float, bool]:
        e, move = self.env, self.actions[action]
        if move == F and e.pos in self.broken:
            move = N
            self.events["the cannon jams"] += 1
        before, direction = int(e.alien_map.sum()), e.alien_dir
        lowest_row = e.alien_map[9].any()
        reward, terminal = e.act(move)
        if before == reward:
            e.alien_map[:] = 0  # the original has sent a new wave: here the episode ends
            self.events["wave cleared"] += 1
            terminal = True
        self.events["aliens turn"] += e.alien_dir != direction
        self.events["aliens in the player's row"] += bool(e.alien_map[9].any())
        self.events["aliens land"] += bool(lowest_row and e.alien_dir != direction)
        self.events["shot by an alien"] += bool(terminal and e.e_bullet_map[9, e.pos])
        self.events["touched by an alien"] += bool(terminal and e.alien_map[9, e.pos])
        return reward, bool(terminal)

    def policy(self, name: str) -> int:
        e = self.env
        if name == "random":
            return int(self.rng.integers(4))
        if name == "edge":
            return int(self.rng.choice([1, 0, 3, 2], p=(0.7, 0.1, 0.1, 0.1)))
        if name == "shooter":
            return 3 if e.shot_timer == 0 else int(self.rng.integers(3))
        safe = self._safe_moves(depth=3)
        if not safe:
            return 0
        if name == "sniper":
            columns = np.flatnonzero(e.alien_map.any(axis=0))
            if 0 in safe and e.shot_timer == 0 and (len(columns) < 3 or e.pos in columns):
                return 3
            aim = columns[np.argmin(abs(columns - e.pos))]
            want = 1 if aim < e.pos else 2 if aim > e.pos else 0
            if want in safe:
                return want
        return safe[int(self.rng.integers(len(safe)))]

    def _safe_moves(self, depth: int) -> list[int]:
        """Moves after which nothing that is on the board now hits the cannon within `depth` steps."""
        e = self.env
        free = ~(e.e_bullet_map[8 : 8 - depth : -1].astype(bool) | e.alien_map[9].astype(bool))
        safe = free[-1]  # columns in which to be at the last step, then at the one before it, ...
        for columns in free[-2::-1]:
            wide = np.pad(safe, 1)
            safe = columns & (safe | wide[:-2] | wide[2:])
        return [move for move, shift in enumerate((0, -1, 1)) if safe[min(max(e.pos + shift, 0), 9)]]


GAMES = {"breakout": Breakout, "freeway": Freeway, "space_invaders": SpaceInvaders}


def record(name: str, policy: str, seed: int, broken: tuple[int, ...], limit: int) -> tuple[Episode, Counter]:
    """One episode, at most `limit` actions long, and the events in it."""
    game = GAMES[name](np.random.default_rng([seed, len(policy)]), broken)
    episode = Episode(game.features(), [], [], [], [])
    for _ in range(limit):
        action = game.policy(policy)
        reward, terminal = game.step(action)
        episode.actions.append(action)
        episode.features.append(game.features())
        episode.rewards.append(float(reward))
        episode.terminals.append(terminal)
        if terminal:
            break
    return episode, game.events
