"""Shared code of the examples: runs five agents in a world that differs from their simulator, and prints a table.

An example only needs `options` and `compare`. A run is one agent with its own seed; it plays all episodes and keeps
what it learns. Intervals are 95 % bootstrap intervals over runs.
"""

import argparse
import inspect
import random
import sys

import numpy as np
from drawing import draw_maps, maps

import uamcts
from uamcts.lab.analysis.statistics import interval, mean

WRONG, AGENT, TRUE = "MCTS, wrong model", "agent", "MCTS, true model"


class Random:
    """Chooses actions at random."""

    def __init__(self, num_actions, seed):
        self.num_actions, self.random = num_actions, random.Random(seed)  # noqa: S311 (play, not secrets)

    def act(self, state, steps_left=None):
        return self.random.randrange(self.num_actions)

    def observe(self, *seen, **known):
        pass


class World:
    """A real world that follows a simulator with `step` or `outcomes`.

    Args:
        simulator: The rules of the world.
        start: A function of a `random.Random` that returns the state in which an episode starts, or that state.
        sensor: A function of a state and a `random.Random` that returns what the agent is shown; by default the state.
    """

    def __init__(self, simulator, start, sensor=None):
        self.simulator, self.start, self.sensor = simulator, start, sensor

    def reset(self, seed):
        self.random = random.Random(seed)  # noqa: S311
        self.state = self.start(self.random) if callable(self.start) else self.start
        return self.shown()

    def step(self, action):
        if hasattr(self.simulator, "outcomes"):
            outcomes = self.simulator.outcomes(self.state, action)
            (_, found), = self.random.choices(outcomes, [probability for probability, _ in outcomes])  # fmt: skip
        else:
            found = self.simulator.step(self.state, action)
        self.state, reward, over = found
        return self.shown(), reward, over

    def shown(self):
        return self.state if self.sensor is None else self.sensor(self.state, self.random)


class GymWorld:
    """A Gymnasium environment as the real world; `simulator` only reads its state."""

    def __init__(self, env, simulator):
        self.env, self.simulator = env.unwrapped, simulator

    def reset(self, seed):
        self.env.reset(seed=seed)
        return self.simulator.read(self.env)

    def step(self, action):
        _, reward, terminated, _, _ = self.env.step(self.simulator.actions[action])
        return self.simulator.read(self.env), float(reward), bool(terminated)


def supported(**arguments):
    """Those of the arguments that `uamcts.Agent` has by name."""
    names = inspect.signature(uamcts.Agent.__init__).parameters
    return {name: value for name, value in arguments.items() if name in names}


def plain_mcts(simulator, seed, **budget):
    """An agent that plans in the simulator as it is and learns nothing."""
    return uamcts.Agent(simulator, "none", seed=seed, corrections=(), **budget)


def agents(wrong, true, budget, parameters=None):
    """The rows of the table: the simulators that the agent plans in, one after another, and what creates the agent."""
    paper = uamcts.SearchConfig(**{"gamma": 1.0, **budget}, rules="released", tau=0.1)
    named = {} if parameters is None else supported(parameters=parameters)
    off = {"corrections": ()}
    return {
        "random": ([wrong], lambda model, seed: Random(model.num_actions, seed)),
        WRONG: ([wrong], lambda model, seed: plain_mcts(model, seed, **budget)),
        "UA-MCTS": ([wrong], lambda model, seed: uamcts.Agent(model, config=paper, seed=seed, **off)),
        AGENT: ([wrong], lambda model, seed: uamcts.Agent(model, seed=seed, **named, **budget)),
        TRUE: (true, lambda model, seed: plain_mcts(model, seed, **budget)),
    }


def live(agent, world, seed, longest, told=False):
    """Plays one episode in the real world; returns its reward and its number of steps."""
    state, total, steps, over = world.reset(seed), 0.0, 0, False
    while not over and steps < longest:
        action = agent.act(state, steps_left=longest - steps) if told else agent.act(state)
        after, reward, over = world.step(action)
        agent.observe(state, action, after, reward=reward, terminal=over)
        state, total, steps = after, total + reward, steps + 1
    return total, steps


def live_through(models, make, worlds, seed, chosen, told):
    """All episodes of one run, [episodes, 2], and its agent. Equal parts of its life are spent in each of `worlds`.

    Several models mean a planner that learns nothing but is told of every change: a new agent for each.
    """
    lived, planned = [], None
    for episode in range(chosen.episodes):
        model = models[episode * len(models) // chosen.episodes]
        if model is not planned:
            agent, planned = make(model, seed), model
        world = worlds[episode * len(worlds) // chosen.episodes]
        lived.append(live(agent, world, 1000 * seed + episode, chosen.longest, told))
    return lived, agent


def with_interval(sample):
    """The mean over runs, with its interval."""
    low, high = interval(mean, sample)
    return f"{np.mean(sample):.2f} [{low:.2f}, {high:.2f}]"


def options(description, arguments, quick=None, **defaults):
    """Parses the command-line options of an example; `defaults` are its default values, `quick` those of `--quick`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = {
        "runs": "agents of each kind",
        "episodes": "episodes per agent",
        "seed": "seed of the first agent; the others count up from it",
        "iterations": "iterations per search",
        "longest": "steps after which an episode is cut off",
        "percent": "how often a step really goes where it should, in percent",
    }
    for name, default in {"seed": 0, **defaults}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{words[name]} ({default})")
    small = {"runs": 2, "episodes": min(3, defaults["episodes"]), **(quick or {})}
    parser.add_argument("--quick", action="store_true", help="a small version: " + ", ".join(map(str, small.items())))
    parser.add_argument("--report", action="store_true", help="print what the last default agent has found")
    parser.add_argument("--picture", metavar="FILE", help="draw the reward of every episode, and U over the world")
    parser.add_argument(
        "--map", action=argparse.BooleanOptionalAction, default=sys.stdout.isatty(),
        help="draw the world with U in every cell (on a terminal)",
    )  # fmt: skip
    if parser.parse_args(arguments).quick:
        parser.set_defaults(**small)
    return parser.parse_args(arguments)


def compare(chosen, world, wrong, true, *, cause, plan=None, told=False, parameters=None, **budget):
    """Runs all agents and prints the table; returns rewards and steps of each agent, [runs, episodes, 2].

    Args:
        chosen: The options.
        world: The real world: `reset(seed)` returns a state, and `step(action)` returns the next state, the reward and
            whether the episode is over. A list: the world changes, and each is real for an equal part of the episodes.
        wrong: The simulator that the agents plan in.
        true: A correct one; a list if `world` is.
        cause: What the simulator does not know, for the closing sentence.
        plan: How to draw the world, from `drawing`.
        told: Whether agents are told how many steps are left.
        parameters: What the agent is told may be off in the simulator.
        **budget: Further settings of the search.
    """
    some = max(1, chosen.episodes // 3)
    print(f"{chosen.runs} agents of {chosen.episodes} episodes; mean and 95 % interval over agents")
    early, late = f"reward, first {some}", f"reward, last {some}"
    print(f"{'':18}{early:>27}{late:>27}{'steps, last ' + str(some):>25}")
    worlds, trues = (thing if isinstance(thing, list) else [thing] for thing in (world, true))
    found, last_agents = {}, {}
    rows = agents(wrong, trues, {"iterations": chosen.iterations, **budget}, parameters)
    for name, (models, make) in rows.items():
        lives = []
        try:
            for seed in range(chosen.seed, chosen.seed + chosen.runs):
                life, agent = live_through(models, make, worlds, seed, chosen, told)
                lives.append(life)
        except KeyboardInterrupt:
            raise SystemExit("stopped: the rows above are complete; --quick runs a small version") from None
        last_agents[name] = agent
        found[name] = np.array(lives)
        first, last = found[name][:, :some].mean(axis=1), found[name][:, -some:].mean(axis=1)
        figures = [with_interval(first[:, 0]), with_interval(last[:, 0]), with_interval(last[:, 1])]
        print(f"{name:18}{figures[0]:>27}{figures[1]:>27}{figures[2]:>25}", flush=True)
    if chosen.report:
        print(last_agents[AGENT].report(5))
    drawn = maps(plan, last_agents[WRONG], last_agents[AGENT]) if plan and (chosen.map or chosen.picture) else {}
    if drawn and chosen.map:
        draw_maps(plan, drawn)
    if chosen.picture:
        draw(found, chosen.picture, plan, drawn)
    print(conclusion(found, cause))
    return found


def conclusion(found, cause):
    """One sentence: what the error costs a planner that does not learn, and how much of it the agent wins back."""
    some = max(1, found[AGENT].shape[1] // 3)
    late = {name: found[name][:, -some:, 0].mean(axis=1) for name in (WRONG, AGENT, TRUE)}
    lost, won = late[TRUE] - late[WRONG], late[AGENT] - late[WRONG]
    when = f"in the last {some} episodes" if some > 1 else "in the last episode"
    low = interval(mean, lost)[0] if len(lost) > 1 else np.nan
    begin = f"{cause[0].upper()}{cause[1:]}"
    if not low > 0:
        return (
            f"{begin} costs a planner nothing that {len(lost)} agents can show; {when} the agent gets "
            f"{np.mean(won):+.2f} compared with MCTS in the wrong model."
        )
    share = np.mean(won) / np.mean(lost)
    return f"{begin} costs a planner {np.mean(lost):.2f} of reward an episode; {when} the agent " + (
        f"wins back {100 * share:.0f} % of it." if share >= 0 else f"loses another {-np.mean(won):.2f}."
    )


def draw(found, path, plan=None, drawn=()):
    """Draws the mean reward of every episode, with a band of one standard error, and U over the world."""
    from matplotlib.figure import Figure

    from uamcts.colours import OTHERS, PLANNERS

    figure = Figure(figsize=(7, 4 + 2.6 * bool(drawn)), layout="constrained")
    above, *below = figure.subfigures(2 if drawn else 1, 1, squeeze=False)[:, 0]
    axes = above.subplots()
    colours = {WRONG: "corrupted", "UA-MCTS": "combined", AGENT: "agent", TRUE: "true"}
    for name, lives in found.items():
        rewards, episodes = lives[..., 0], np.arange(1, lives.shape[1] + 1)
        middle, error = rewards.mean(axis=0), rewards.std(axis=0) / len(rewards) ** 0.5
        colour = PLANNERS.get(colours.get(name), OTHERS[3])
        axes.plot(episodes, middle, marker="o", markersize=3, label=name, color=colour)
        axes.fill_between(episodes, middle - error, middle + error, alpha=0.2, color=colour)
    axes.set(xlabel="episode", ylabel="reward")
    axes.legend()
    for part in below:
        for panel, (title, values) in zip(part.subplots(1, len(drawn)), drawn.items(), strict=True):
            panel.imshow(values, cmap="Oranges", aspect="auto" if values.shape[1] > 20 else "equal")
            for (row, column), letter in np.ndenumerate([list(row) for row in plan.rows]):
                if letter != ".":
                    panel.text(column, row, letter, ha="center", va="center", fontsize=8)
            panel.set(title=title, xticks=[], yticks=[])
    figure.savefig(path, dpi=120)
