"""Random decision processes in plain Python, and their exact solutions."""

from __future__ import annotations

import numpy as np

LAKE = ("SFFF", "FHFH", "FFFH", "HFFG")


class Process:
    """Outcomes in a table: {(state, action): [(probability, (state, reward, terminal))]}; state 0 is the start."""

    def __init__(self, table: dict, num_actions: int):
        self.table, self.num_actions = table, num_actions

    def outcomes(self, state, action):
        return self.table[state, action]

    def states(self) -> list:
        return sorted({state for state, _ in self.table})


class Sampler:
    """The same process, which only draws."""

    def __init__(self, process: Process):
        self.process, self.num_actions = process, process.num_actions

    def sample(self, state, action, rng):
        outcomes = self.process.outcomes(state, action)
        return outcomes[rng.choice(len(outcomes), p=[probability for probability, _ in outcomes])][1]


def random_process(seed: int, states: int, actions: int, branching: int, ends: float = 0.0) -> Process:
    """Every action leads to up to `branching` states; a share `ends` of all transitions ends the episode."""
    rng, table = np.random.default_rng(seed), {}
    for state in range(states):
        for action in range(actions):
            shares = rng.dirichlet(np.ones(int(rng.integers(1, branching + 1))))
            table[state, action] = [
                (float(share), (int(rng.integers(states)), float(rng.normal()), bool(rng.random() < ends)))
                for share in shares
            ]
    return Process(table, actions)


def lake(intended: float, rows: tuple[str, ...] = LAKE) -> Process:
    """A slippery lake: goal +1, hole -1; the two moves to the sides share the rest of the probability."""
    height, width = len(rows), len(rows[0])
    moves = ((0, -1), (1, 0), (0, 1), (-1, 0))

    def move(state, direction):
        row, column = divmod(state, width)
        row = min(max(row + moves[direction][0], 0), height - 1)
        column = min(max(column + moves[direction][1], 0), width - 1)
        cell = rows[row][column]
        return row * width + column, {"G": 1.0, "H": -1.0}.get(cell, 0.0), cell in "GH"

    aside, table = (1.0 - intended) / 2, {}
    for state, cell in enumerate("".join(rows)):
        for action in range(4 if cell in "SF" else 0):
            chances = ((intended, action), (aside, (action - 1) % 4), (aside, (action + 1) % 4))
            table[state, action] = [(chance, move(state, turn)) for chance, turn in chances if chance]
    return Process(table, 4)


def action_values(process: Process, gamma: float, steps: int | None = None) -> dict:
    """Q of every state and action by value iteration over `steps`, or by policy iteration: {state: [num_actions]}."""
    places = {state: place for place, state in enumerate(process.states())}
    count = len(places)
    chances = np.zeros((count, process.num_actions, count))
    rewards = np.zeros(chances.shape[:2])
    for (state, action), outcomes in process.table.items():
        for chance, (following, reward, terminal) in outcomes:
            rewards[places[state], action] += chance * reward
            if not terminal:
                chances[places[state], action, places[following]] += chance
    values, everyone = np.zeros(count), np.arange(count)
    for _ in range(1000 if steps is None else steps):
        found = rewards + gamma * chances @ values
        best, before = found.argmax(axis=1), values
        values = found.max(axis=1)
        if steps is None:
            values = np.linalg.solve(np.eye(count) - gamma * chances[everyone, best], rewards[everyone, best])
            if np.allclose(values, before, rtol=1e-12, atol=1e-12):
                break
    return {state: found[place] for state, place in places.items()}
