"""Plays episodes of `uamcts.Agent` on a grid: one after the other, each with a new agent."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from uamcts.agent.agent import Agent
from uamcts.field.episodes import Score
from uamcts.field.worlds import Grid, GridSimulator


def play_agent(
    grid: Grid,
    parameter: float,
    believed: float,
    gamma: float,
    episodes: int,
    steps: int,
    iterations: int,
    seed: int,
    first: int = 0,
    progress: Callable[[float], None] = lambda share: None,
    watch: Callable[[int, int, int], None] = lambda cell, action, left: None,
) -> Score:
    """How episodes of an agent with its defaults go.

    The agent is told which number may be off, `p`, and how many steps are left.

    Args:
        grid: The grid.
        parameter: The real one.
        believed: What its simulator has.
        gamma: The discount, for the search and for the reward that is reported.
        episodes: How many.
        steps: The time limit.
        iterations: Of a search.
        seed: The seed of episode 0; the next has the next one.
        first: The number of the first episode to play.
        progress: Called with the share that is done.
        watch: Called before every move with the cell, the action and the steps that are left.
    """
    world, lives = GridSimulator(grid, parameter), []
    for number in range(first, first + episodes):
        agent = Agent(
            GridSimulator(grid, believed), parameters={"p": (0.0, 1.0)}, seed=seed + number, iterations=iterations,
            gamma=gamma, rollouts=1, depth=steps,
        )  # fmt: skip
        lives.append(_live(agent, world, int(grid.start), steps, gamma, np.random.default_rng([seed, number]), watch))
        progress((number + 1 - first) / episodes)
    rewards, lengths, ended = (np.array(part) for part in zip(*lives, strict=True))
    return Score(rewards, lengths, ended)


def _live(
    agent: Agent,
    world: GridSimulator,
    cell: int,
    steps: int,
    gamma: float,
    rng: np.random.Generator,
    watch: Callable[[int, int, int], None],
) -> tuple[float, int, bool]:
    """The reward and length of an episode, and whether it ended before the time limit."""
    total, length, over = 0.0, 0, False
    while not over and length < steps:
        left = steps - length
        action = agent.act(cell, steps_left=left)
        watch(cell, action, left)
        chances, results = zip(*world.outcomes(cell, action), strict=True)
        following, reward, over = results[int(rng.choice(len(chances), p=np.array(chances) / sum(chances)))]
        agent.observe(cell, action, following, reward=reward, terminal=over)
        total, length, cell = total + gamma**length * reward, length + 1, following
    return total, length, over
