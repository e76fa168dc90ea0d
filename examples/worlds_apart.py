"""Shared code of the examples: runs six agents in a world that differs from their model, and prints a table.

An example only needs `options` and `compare`. A run is one agent with its own seed; it plays all episodes and keeps
what it learns. Intervals are 95 % bootstrap intervals over runs.
"""

import argparse
import random

import numpy as np

import uamcts
from uamcts.lab.analysis.statistics import interval, mean


class Random:
    """Chooses actions at random."""

    def __init__(self, num_actions, seed):
        self.num_actions, self.random = num_actions, random.Random(seed)  # noqa: S311 (play, not secrets)

    def act(self, state):
        return self.random.randrange(self.num_actions)

    def observe(self, *seen, **known):
        pass


class GymWorld:
    """A Gymnasium environment as the real world; `simulator` only reads its state."""

    def __init__(self, env, simulator):
        self.env, self.simulator = env.unwrapped, simulator

    def reset(self, seed):
        self.env.reset(seed=seed)
        return self.simulator.read(self.env)

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(self.simulator.actions[action])
        return self.simulator.read(self.env), float(reward), terminated


def agents(wrong, true, budget):
    """The rows of the table: a name, and a function that creates the agent of a run from its seed."""
    paper = uamcts.SearchConfig(**budget, rules="released", tau=0.1)
    return {
        "random": lambda seed: Random(wrong.num_actions, seed),
        "MCTS, wrong model": lambda seed: uamcts.Agent(wrong, "none", seed=seed, memory=False, **budget),
        "UA-MCTS": lambda seed: uamcts.Agent(wrong, config=paper, seed=seed, memory=False),
        "trust": lambda seed: uamcts.Agent(wrong, seed=seed, memory=False, **budget),
        "trust and memory": lambda seed: uamcts.Agent(wrong, seed=seed, **budget),
        "MCTS, true model": lambda seed: uamcts.Agent(true, "none", seed=seed, memory=False, **budget),
    }


def live(agent, world, seed, longest):
    """Plays one episode in the real world; returns its reward and its number of steps."""
    state, total, steps, over = world.reset(seed), 0.0, 0, False
    while not over and steps < longest:
        action = agent.act(state)
        after, reward, over = world.step(action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        state, total, steps = after, total + reward, steps + 1
    return total, steps


def with_interval(sample):
    """The mean over runs, with its interval."""
    low, high = interval(mean, sample)
    return f"{np.mean(sample):.2f} [{low:.2f}, {high:.2f}]"


def options(description, arguments, **defaults):
    """Parses the command-line options of an example; `defaults` are its default values."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = {
        "runs": "agents of each kind",
        "episodes": "episodes per agent",
        "seed": "seed of the first agent; the others count up from it",
        "iterations": "iterations per search",
        "longest": "steps after which an episode is cut off",
    }
    for name, default in {"seed": 0, **defaults}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{words[name]} ({default})")
    parser.add_argument("--report", action="store_true", help="print what the last default agent has found")
    return parser.parse_args(arguments)


def compare(chosen, world, wrong, true, **budget):
    """Runs all agents and prints the table; returns rewards and steps of each agent, [runs, episodes, 2].

    `world` has `reset(seed)`, which returns a state, and `step(action)`, which returns the next state, the reward and
    whether the episode is over. `wrong` is the simulator that the agents plan in, `true` is a correct one.
    """
    some = max(1, chosen.episodes // 3)
    print(f"{chosen.runs} agents of {chosen.episodes} episodes; mean and 95 % interval over agents")
    early, late = f"reward, first {some}", f"reward, last {some}"
    print(f"{'':18}{early:>27}{late:>27}{'steps, last ' + str(some):>25}")
    found = {}
    for name, make in agents(wrong, true, {"iterations": chosen.iterations, **budget}).items():
        lives = []
        for seed in range(chosen.seed, chosen.seed + chosen.runs):
            agent = make(seed)
            episodes = range(1000 * seed, 1000 * seed + chosen.episodes)
            lives.append([live(agent, world, episode, chosen.longest) for episode in episodes])
            if name == "trust and memory":
                lived = agent
        found[name] = np.array(lives)
        first, last = found[name][:, :some].mean(axis=1), found[name][:, -some:].mean(axis=1)
        figures = [with_interval(first[:, 0]), with_interval(last[:, 0]), with_interval(last[:, 1])]
        print(f"{name:18}{figures[0]:>27}{figures[1]:>27}{figures[2]:>25}", flush=True)
    if chosen.report:
        print(lived.report(5))
    return found
