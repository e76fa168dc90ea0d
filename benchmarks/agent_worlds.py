"""The agent in a zoo of worlds: is it never worse than planning in the wrong simulator, and close to the true one?

    python benchmarks/agent_worlds.py --list
    python benchmarks/agent_worlds.py --agents 10 --processes 8 --json worlds.json
    python benchmarks/agent_worlds.py --worlds boat,pole_gravity --quick

Three rows for each world: plain MCTS in the wrong simulator, `uamcts.Agent` with its defaults in the same one, and
plain MCTS in the true simulator, with equal iterations. The reward is the mean of the last third of the episodes, with
a 95 % bootstrap interval over agents. "closed" is the share of the gap between wrong and true that the agent closes,
where there is a gap; "against wrong" compares agents that played the same episodes. A row is marked BELOW where that
interval lies below 0. Milliseconds leave out the first move of an agent, which compiles. `worlds_table.py` writes the
table of docs/concepts/corrections.md.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from worlds import ZOO, Entry, Setting

ROWS = ("wrong", "agent", "true")


class Job(NamedTuple):
    """One agent of one row of one world."""

    world: str
    row: str
    number: int
    seed: int
    episodes: int
    lives: int
    about: bool
    """Whether to keep what `agent.report()` says at the end."""


def make_agent(row: str, simulator: Any, entry: Entry, seed: int, drifts: bool = False) -> Any:
    from worlds_apart import plain_mcts, supported

    import uamcts

    if row != "agent":
        anew = {"reuse": False} if drifts and row == "true" else {}
        return plain_mcts(simulator, seed, **anew, **entry.budget)
    named = {} if entry.parameters is None else supported(parameters=entry.parameters)
    return uamcts.Agent(simulator, seed=seed, **named, **entry.budget)


class Told:
    """A planner that knows how late actions take effect: it plans from the state in which the next one does."""

    def __init__(self, planner: Any, simulator: Any, waiting: tuple[int, ...]) -> None:
        self.planner, self.simulator, self.first = planner, simulator, waiting
        self.waiting: tuple[int, ...] | None = None

    def act(self, state: Any, **known: Any) -> Any:
        self.waiting = self.first if self.waiting is None else self.waiting
        here = state
        for action in self.waiting:
            here, _, over = self.simulator.step(here, action)
            if over:
                here = state
                break
        return self.planner.act(here, **known)

    def observe(self, state: Any, action: int, after: Any, reward: float, terminal: bool) -> None:
        self.waiting = None if terminal or self.waiting is None else (*self.waiting[1:], action)

    def begin(self) -> None:
        """Begins an episode."""
        self.waiting = None


def play(agent: Any, world: Any, entry: Entry, seed: int, acts: list[float], observes: list[float]) -> float:
    """The reward of one episode. The seconds of every call are added to the lists."""
    clock = time.perf_counter
    if isinstance(agent, Told):
        agent.begin()
    state, total, weight, over, left = world.reset(seed), 0.0, 1.0, False, entry.longest
    while not over and left > 0:
        start = clock()
        action = agent.act(state, steps_left=left) if entry.told else agent.act(state)
        acts.append(clock() - start)
        after, reward, over = world.step(action)
        start = clock()
        agent.observe(state, action, after, reward=reward, terminal=over)
        observes.append(clock() - start)
        state, total, weight, left = after, total + weight * reward, weight * entry.discount, left - 1
    return total


def live(job: Job, entry: Entry, setting: Setting, seed: int) -> dict[str, Any]:
    """The life of one agent. A planner in the true simulator is a new one where the world has changed."""
    models = setting.trues if job.row == "true" else [setting.wrong]
    rewards: list[float] = []
    acts: list[float] = []
    observes: list[float] = []
    planned = None
    for episode in range(job.episodes):
        model = models[episode * len(models) // job.episodes]
        if model is not planned:
            agent, planned, first = make_agent(job.row, model, entry, seed, setting.drifts), model, len(acts)
            agent = Told(agent, model, setting.waiting) if setting.waiting and job.row == "true" else agent
        world = setting.worlds[episode * len(setting.worlds) // job.episodes]
        rewards.append(play(agent, world, entry, 1000 * seed + episode, acts, observes))
        if first is not None:
            del acts[first], observes[first]
            first = None
    return {"rewards": rewards, "acts": acts, "observes": observes, "report": str(agent.report(3)) if job.about else ""}


def run(job: Job) -> dict[str, Any]:
    """Runs a job; an error becomes part of its result, so that the other worlds go on."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry = ZOO[job.world]
            setting = entry.make()
            lives = [live(job, entry, setting, job.seed + 100_000 * life) for life in range(job.lives)]
    except Exception:
        return {**job._asdict(), "error": traceback.format_exc()}
    return {
        **job._asdict(),
        "rewards": np.mean([life["rewards"] for life in lives], axis=0).tolist(),
        "act_ms": 1000 * mean_of([second for life in lives for second in life["acts"]]),
        "observe_ms": 1000 * mean_of([second for life in lives for second in life["observes"]]),
        "steps": sum(len(life["acts"]) for life in lives),
        "report": lives[-1]["report"],
        "seconds": time.perf_counter() - start,
    }


def mean_of(numbers: list[float]) -> float:
    return float(np.mean(numbers)) if numbers else math.nan


def bounds(statistic: Any, *samples: np.ndarray) -> list[float]:
    """The bootstrap interval; for fewer than two agents, or samples without any spread, as far as there is one."""
    from uamcts.lab.analysis.statistics import interval

    if all(np.ptp(sample) == 0 for sample in samples) and len(samples[0]) > 1:
        return [float(statistic(*samples, axis=-1))] * 2
    return [float(end) for end in interval(statistic, *samples)]


def share(wrong: np.ndarray, agent: np.ndarray, true: np.ndarray, axis: int = -1) -> Any:
    """The share of the gap that is closed."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (agent.mean(axis) - wrong.mean(axis)) / (true.mean(axis) - wrong.mean(axis))


def summarise(name: str, results: list[dict[str, Any]]) -> dict[str, Any]:
    """All figures of one world."""
    from uamcts.lab.analysis.statistics import mean

    errors = [result["error"] for result in results if "error" in result]
    found: dict[str, Any] = {"world": name, "about": ZOO[name].about, "errors": errors, "rows": {}}
    for row in ROWS:
        lives = sorted((r for r in results if r["row"] == row and "rewards" in r), key=lambda r: r["number"])
        if not lives:
            continue
        episodes = np.array([life["rewards"] for life in lives])
        late = episodes[:, -max(1, episodes.shape[1] // 3) :].mean(axis=1)
        found["rows"][row] = {
            "mean": float(late.mean()), "interval": bounds(mean, late),
            "act_ms": mean_of([life["act_ms"] for life in lives]),
            "observe_ms": mean_of([life["observe_ms"] for life in lives]),
            "by_episode": episodes.mean(axis=0).tolist(), "by_agent": late.tolist(),
            "report": next((life["report"] for life in lives if life["report"]), ""),
        }  # fmt: skip
    return compare_rows(found)


def compare_rows(found: dict[str, Any]) -> dict[str, Any]:
    """Adds what only all three rows of a world tell, where they have equally many agents."""
    from uamcts.lab.analysis.statistics import mean

    rows = found["rows"]
    late = [np.array(rows[row]["by_agent"]) for row in ROWS if row in rows]
    if len(late) == len(ROWS) and len({len(rewards) for rewards in late}) == 1:
        wrong, agent, true = late
        found["difference"], found["difference_interval"] = float((agent - wrong).mean()), bounds(mean, agent - wrong)
        found["gap"], found["gap_interval"] = float((true - wrong).mean()), bounds(mean, true - wrong)
        if found["gap_interval"][0] > 0:
            found["closed"], found["closed_interval"] = (
                float(share(wrong, agent, true)),
                bounds(share, wrong, agent, true),
            )
        found["act_ratio"] = rows["agent"]["act_ms"] / rows["wrong"]["act_ms"]
    return found


def show(found: dict[str, Any]) -> str:
    """The figures of a world as lines of text."""
    lines = [f"{found['world']}: {found['about']}"]
    for row, figures in found["rows"].items():
        low, high = figures["interval"]
        line = f"  {row:6}{figures['mean']:9.2f} [{low:.2f}, {high:.2f}]"
        lines.append(f"{line:40}{figures['act_ms']:9.1f} ms an act{figures['observe_ms']:9.2f} ms an observe")
    if "difference" in found:
        low, high = found["difference_interval"]
        words = f"  against wrong {found['difference']:+.2f} [{low:+.2f}, {high:+.2f}]" + (" BELOW" * (high < 0))
        words += f"; act takes {found['act_ratio']:.1f} times as long"
        if "closed" in found:
            low, high = found["closed_interval"]
            words += f"; closed {found['closed']:.0%} [{low:.0%}, {high:.0%}]"
        lines.append(words)
    if found["errors"]:
        lines.append(f"  {len(found['errors'])} agents failed, the first with\n{found['errors'][0]}")
    return "\n".join(lines)


def plan_jobs(names: list[str], given: argparse.Namespace) -> list[Job]:
    jobs = []
    for name in names:
        entry = ZOO[name]
        single = entry.episodes == 1  # a life of one episode stays one
        episodes = 1 if single else given.episodes or (min(entry.episodes, 4) if given.quick else entry.episodes)
        lives = min(entry.lives, 2) if given.quick else entry.lives
        for row in given.rows.split(","):
            for number in range(given.agents or (2 if given.quick else 10)):
                about = row == "agent" and number == 0
                jobs.append(Job(name, row, number, given.seed + number, episodes, lives, about))
    return jobs


def use_one_thread() -> None:
    """Has this process and those that it starts compute with one thread each."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"):
        os.environ[name] = "1"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    os.environ.setdefault("JAX_PLATFORMS", "cpu")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", default="", help="names separated by commas; by default all")
    parser.add_argument("--rows", default=",".join(ROWS), help="some of wrong, agent and true, separated by commas")
    parser.add_argument("--agents", type=int, help="agents per row (10)")
    parser.add_argument("--episodes", type=int, help="episodes per agent; by default each world has its own number")
    parser.add_argument("--seed", type=int, default=5000, help="seed of the first agent (5000)")
    parser.add_argument("--processes", type=int, default=1, help="agents that run at the same time (1)")
    parser.add_argument("--json", type=Path, help="write all figures to this file, after every world")
    parser.add_argument("--quick", action="store_true", help="2 agents of at most 4 episodes")
    parser.add_argument("--list", action="store_true", help="list the worlds and stop")
    given = parser.parse_args(arguments)
    given.names = [name for name in given.worlds.split(",") if name] or list(ZOO)
    unknown = [name for name in given.names if name not in ZOO]
    if unknown:
        parser.error(f"--worlds has {', '.join(unknown)}; the worlds are {', '.join(ZOO)}")
    if not set(given.rows.split(",")) <= set(ROWS):
        parser.error(f"--rows is {given.rows}; the rows are {', '.join(ROWS)}")
    for name in ("agents", "episodes", "processes"):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            parser.error(f"--{name} is {getattr(given, name)}; it must be at least 1")
    return given


def main(arguments: list[str] | None = None) -> None:
    given = parse(arguments)
    if given.list:
        print("\n".join(f"{name:24} {entry.about}" for name, entry in ZOO.items()))
        return
    use_one_thread()
    jobs = plan_jobs(given.names, given)
    waiting = {name: sum(job.world == name for job in jobs) for name in given.names}
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in given.names}
    found = []
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for result in pool.imap_unordered(run, jobs):
            name = result["world"]
            results[name].append(result)
            if len(results[name]) == waiting[name]:
                found.append({**summarise(name, results[name]), "seed": given.seed})
                print(show(found[-1]), flush=True)
                if given.json:
                    given.json.write_text(json.dumps(found, indent=1) + "\n")
    below = [world["world"] for world in found if "difference" in world and world["difference_interval"][1] < 0]
    gaps = [world for world in found if "closed" in world]
    print(
        f"{len(found)} worlds; below planning in the wrong simulator: {', '.join(below) or 'none'}; "
        f"at least 90 % closed in {sum(world['closed'] >= 0.9 for world in gaps)} of {len(gaps)} worlds with a gap"
    )


if __name__ == "__main__":
    main()
