"""What it costs to correct: an act beside plain MCTS, and an observe as experience grows to 100,000 transitions.

    python benchmarks/agent_cost.py --json agent_cost.json --plot benchmarks/agent_cost.png
    python benchmarks/agent_cost.py --only act --compiled
    python benchmarks/agent_cost.py --only act --worlds gymnax_pole_worn --configure
    python benchmarks/agent_cost.py --only observe --worlds drag --json drag.json
    python benchmarks/agent_cost.py --figures drag.json grid.json --plot benchmarks/agent_cost.png

"act" compares an agent with its defaults, after it has learned, with plain MCTS (`Agent(simulator, "none",
corrections=())`) in the true simulator, so that both plan in about the same world, and in the wrong one, at equal
settings. No search goes on from the one before (`reuse=False`). The agents act in turns, in states that were met in the
real world; the figures are medians. A search on a graph ends early where all that can be reached is expanded; below a
doubtful transition the agent has more to expand, so the time per iteration is compared as well.
"observe" shows random play to an agent: milliseconds per transition, refits included, over all transitions so far, and
for those since the last row; how long an act then takes, beside plain MCTS in the true simulator; and what the agent
holds in memory. All times are those in which the thread, or for JAX the process, had a core.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_worlds import use_one_thread

ACT_WORLDS = {
    "right_pole": "nothing is wrong: cart pole",
    "pole_gravity": "gravity x 6, corrected",
    "pole_worn": "worn motor: a residual",
    "drag": "drag: a residual",
    "valve_curve": "valve, a dictionary: a residual",
    "drone": "drone, a dataclass: a residual",
    "right_grid": "nothing is wrong: grid",
    "reward_cells": "grid: facts",
    "unknown_slip": "grid that slips: facts, doubt",
    "slippery_lake_40": "slippery lake, p is named",
    "warehouse": "warehouse: facts, doubt",
    "lake": "FrozenLake, new holes: facts",
    "taxi": "Taxi, a closed street: facts",
    "hunt": "a cat that hunts: rates",
    "swapped_grid": "left for right: effects",
    "slide_late": "a slide that comes late: delay",
    "shelves": "shelves: elements of a table",
    "ice": "ice in a field: slippery places",
}
COMPILED_WORLDS = {"gymnax_pole_gravity": "gymnax: gravity x 6", "gymnax_pole_worn": "gymnax: worn motor"}
OBSERVE_WORLDS = {
    "right_pole": "cart pole, nothing is wrong",
    "pole_gravity": "cart pole, gravity x 6",
    "drag": "point robot, drag",
    "reward_cells": "grid, unknown tolls",
    "unknown_slip": "grid that slips",
    "slippery_lake_40": "slippery lake, p is named",
    "gymnax_pole_worn": "gymnax's cart pole, worn motor",
}
LEARNED, STATES, FEW_STATES = 600, 40, 20
"""Transitions before acts are measured, and the states in which they are; while transitions grow in number, fewer."""
LONGEST = 60
"""Steps of an episode of random play."""


CODE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType)


def random_play(world: Any, num_actions: int, seed: int = 0) -> Iterator[tuple[Any, int, Any, float, bool]]:
    """Transitions of the real world under random actions, for ever."""
    import random

    rng = random.Random(seed)  # noqa: S311 (play, not secrets)
    while True:
        seed += 1
        state, over, steps = world.reset(seed), False, 0
        while not over and steps < LONGEST:
            action = rng.randrange(num_actions)
            after, reward, over = world.step(action)
            yield state, action, after, reward, over
            state, steps = after, steps + 1


def show(agent: Any, transition: tuple[Any, int, Any, float, bool]) -> None:
    state, action, after, reward, over = transition
    agent.observe(state, action, after, reward=reward, terminal=over)


def make_agents(name: str) -> tuple[Any, dict[str, Any]]:
    """The real world, and agents that do not go on from their last search."""
    from worlds import ZOO

    import uamcts

    entry = ZOO[name]
    setting = entry.make()
    given = {"seed": 0, "reuse": False, **entry.budget}
    plain = {"estimator": "none", "corrections": (), **given}
    agents = {
        "agent": uamcts.Agent(setting.wrong, parameters=entry.parameters, **given),
        "true": uamcts.Agent(setting.trues[-1], **plain),
        "wrong": uamcts.Agent(setting.wrong, **plain),
    }
    return setting.worlds[-1], agents


def describe(agent: Any) -> str:
    """What the agent has learned."""
    backend = agent.backend
    balls = 0 if backend.uncertainty is None else backend.uncertainty.count
    facts = backend.planner.recurrence()
    return f"{backend.corrector.in_use}, {0 if facts is None else facts.facts} facts, {balls} doubtful places"


def clock_of(name: str) -> Any:
    """The clock of a world: programs of JAX have threads of their own."""
    return time.process_time if name in COMPILED_WORLDS else time.thread_time


def time_acts(name: str, agents: dict[str, Any], states: list[Any], rounds: int) -> dict[str, Any]:
    """Milliseconds of an act of each agent, in turns, and what these say about the first one."""
    times: dict[str, list[float]] = {row: [] for row in agents}
    iterations, clock = dict.fromkeys(agents, 0), clock_of(name)
    for number in range(-1, rounds):  # the first round warms up, and compiles
        for state in states:
            for row, agent in agents.items():
                start = clock()
                agent.act(state)
                if number >= 0:
                    times[row].append(clock() - start)
                    iterations[row] += getattr(agent.last_plan, "iterations", 1)
    found = {f"{row}_ms": 1000 * statistics.median(seconds) for row, seconds in times.items()}
    ratio = found["agent_ms"] / found["true_ms"]
    return {**found, "times_true": ratio, "per_iteration": ratio * iterations["true"] / iterations["agent"]}


def measure_act(name: str, rounds: int) -> dict[str, Any]:
    """Milliseconds of an act of each agent, in turns."""
    world, agents = make_agents(name)
    play = random_play(world, agents["agent"].backend.planner.num_actions)
    for _ in range(LEARNED):
        show(agents["agent"], next(play))
    states = [next(play)[0] for _ in range(STATES)]
    found = time_acts(name, agents, states, rounds)
    return {
        "world": name, "about": {**ACT_WORLDS, **COMPILED_WORLDS}[name], "in_use": describe(agents["agent"]), **found,
        "times_wrong": found["agent_ms"] / found["wrong_ms"],
    }  # fmt: skip


def checkpoints(most: int) -> list[int]:
    """Numbers of transitions at which figures are taken: three for each power of ten, from 100 on."""
    found = [step * 10**power for power in range(2, 9) for step in (1, 2, 5)]
    return [*[number for number in found if number < most], most]


def held_bytes(root: Any) -> int:
    """The memory of an object and of all that it refers to, without code and modules."""
    seen, waiting, total = set(), [root], 0
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen and not isinstance(thing, CODE):
            seen.add(id(thing))
            total += sys.getsizeof(thing)
            waiting += gc.get_referents(thing)
    return total


def measure_observe(name: str, most: int) -> Iterator[dict[str, Any]]:
    """Milliseconds of an observe and of an act, and memory, as transitions grow in number."""
    world, agents = make_agents(name)
    agent, done, total = agents["agent"], 0, 0.0
    play, clock = random_play(world, agent.backend.planner.num_actions), clock_of(name)
    states = [next(play)[0] for _ in range(FEW_STATES)]
    show(agent, next(play))  # the first one tries the simulator out, and loads what is needed
    for count in checkpoints(most):
        took = 0.0
        for first in range(done, count, 1000):
            transitions = [next(play) for _ in range(min(1000, count - first))]
            start = clock()
            for transition in transitions:
                show(agent, transition)
            took += 1000 * (clock() - start)
        total += took
        acts = time_acts(name, {row: agents[row] for row in ("agent", "true")}, states, 1)
        yield {
            "world": name, "about": OBSERVE_WORLDS[name], "transitions": count, "ms": total / count,
            "ms_since_last": took / (count - done), "mb": held_bytes(agent.backend) / 1e6, "in_use": describe(agent),
            **acts,
        }  # fmt: skip
        done = count


def draw(rows: list[dict[str, Any]], target: Path) -> None:
    """Draws times and memory against the number of transitions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, panels = plt.subplots(1, 3, figsize=(15, 4.4))
    columns = (
        ("ms", 1.0, "ms per observe, mean so far", "Time of an observe, refits included"),
        ("per_iteration", 1.5, "times plain MCTS in the true simulator", "Time of an act, per iteration"),
        ("mb", None, "MB held by the agent", "Memory"),
    )
    for axes, (column, goal, label, title) in zip(panels, columns, strict=True):
        for name, about in OBSERVE_WORLDS.items():
            here = [row for row in rows if row["world"] == name]
            if here:
                counts, figures = ([row[part] for row in here] for part in ("transitions", column))
                axes.plot(counts, figures, "o-", markersize=3, label=about)
        axes.set(xscale="log", xlabel="transitions", ylabel=label, title=title)
        if column != "per_iteration":
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.yaxis.set_minor_formatter(NullFormatter())
        if goal is not None:
            axes.axhline(goal, color="black", linestyle=":", linewidth=1)
            axes.annotate("goal", (axes.get_xlim()[1], goal), (-26, 4), textcoords="offset points", fontsize=8)
        axes.grid(alpha=0.3, which="both")
    panels[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(target, dpi=100)


def show_act(found: dict[str, Any]) -> str:
    return (
        f"{found['about']:32}{found['agent_ms']:8.2f} ms, plain MCTS {found['true_ms']:6.2f} (true model) and "
        f"{found['wrong_ms']:6.2f} (wrong): x {found['times_true']:.2f} and x {found['times_wrong']:.2f}, x "
        f"{found['per_iteration']:.2f} per iteration; {found['in_use']}"
    )


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("act", "observe"), help="by default both")
    parser.add_argument("--worlds", default="", help="names out of benchmarks/worlds, separated by commas")
    parser.add_argument("--compiled", action="store_true", help="measure acts in gymnax's cart poles as well")
    parser.add_argument("--configure", action="store_true", help="call uamcts.configure() first, as programs should")
    parser.add_argument("--rounds", type=int, default=5, help=f"acts in each of {STATES} states (5)")
    parser.add_argument("--most", type=int, default=100_000, help="transitions of an observe (100000)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--figures", type=Path, nargs="+", default=[], help="take figures from files, do not measure")
    parser.add_argument("--plot", type=Path, help="draw the growth of observe into this file")
    given = parser.parse_args(arguments)
    for name in ("rounds", "most"):
        if getattr(given, name) < 1:
            parser.error(f"--{name} is {getattr(given, name)}; it must be at least 1")
    given.names = [name for name in given.worlds.split(",") if name]
    known = {**ACT_WORLDS, **COMPILED_WORLDS, **OBSERVE_WORLDS}
    unknown = [name for name in given.names if name not in known]
    if unknown:
        parser.error(f"--worlds has {', '.join(unknown)}; the worlds here are {', '.join(known)}")
    return given


def show_observe(row: dict[str, Any]) -> str:
    return (
        f"{row['about']:32}{row['transitions']:8} transitions{row['ms']:8.3f} ms each so far"
        f"{row['ms_since_last']:8.3f} ms lately{row['mb']:8.2f} MB; an act x {row['times_true']:.2f}, x "
        f"{row['per_iteration']:.2f} per iteration; {row['in_use']}"
    )


def measure(given: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All figures that are asked for; each is shown as soon as it is there."""
    found: dict[str, list[dict[str, Any]]] = {"act": [], "observe": []}
    acts = {**ACT_WORLDS, **(COMPILED_WORLDS if given.compiled or given.names else {})}
    for name in acts if given.only != "observe" else ():
        if not given.names or name in given.names:
            found["act"].append(measure_act(name, given.rounds))
            print(show_act(found["act"][-1]), flush=True)
    for name in OBSERVE_WORLDS if given.only != "act" else ():
        if not given.names or name in given.names:
            for row in measure_observe(name, given.most):
                found["observe"].append(row)
                print(show_observe(row), flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    if given.configure:
        import uamcts

        uamcts.configure()
    use_one_thread()
    stored = [json.loads(path.read_text()) for path in given.figures]
    found = {kind: [row for one in stored for row in one[kind]] for kind in ("act", "observe")}
    if stored:
        print(*map(show_act, found["act"]), *map(show_observe, found["observe"]), sep="\n")
    else:
        found = measure(given)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.plot and found["observe"]:
        draw(found["observe"], given.plot)


if __name__ == "__main__":
    main()
