"""Compares `uamcts.search` between two checkouts: program size, compile time and run time under each rule set.

Both are measured in one run, in alternating processes on one core, so that a busy machine disturbs both alike. Each
figure is the minimum over all repetitions. "plain" switches all four uncertainty-adapted phases off.

    git worktree add ../before v0.1.0
    python benchmarks/compare_checkouts.py ../before .
    python benchmarks/compare_checkouts.py --start ../before .      # fresh processes up to their first action
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUDGETS = {"space_invaders": (10, 10, 20), "breakout": (100, 10, 50)}
SEARCHES = {
    "released": {},
    "released, plain": dict.fromkeys(("selection", "expansion", "simulation", "backpropagation"), False),
    "pseudocode": {"rules": "pseudocode"},
    "trust": {"rules": "trust", "c": 4.0, "rho": 0.99, "penalty": 0.75},  # its defaults, whatever the version
}

TRIP = """
import uamcts

class Trip:
    num_actions, bus_minutes = 3, 2

    def step(self, stop, action):
        return stop + (1, 3, 5)[action], -(1, self.bus_minutes, 4)[action], stop + (1, 3, 5)[action] >= 20
"""
BREAKOUT = """
import uamcts

uamcts.configure()
import jax

domain, key = uamcts.make("breakout"), jax.random.key(0)
state = domain.reset(key)
"""
SEARCH = "uamcts.search(key, state, domain.model, uamcts.true_uncertainty(domain), uamcts.SearchConfig())"
STARTS = {
    "uamcts --help": ["-m", "uamcts", "--help"],
    "uamcts play breakout": ["-m", "uamcts", "play", "breakout", "--steps", "1"],
    "search in Breakout": ["-c", f"{BREAKOUT}print({SEARCH}.action)"],
    "agent in Breakout": ["-c", f"{BREAKOUT}print(uamcts.Agent(domain).act(state))"],
    "agent of a Python simulator": ["-c", f"{TRIP}print(uamcts.Agent(Trip()).act(0))"],
    "plain search": ["-c", f"{TRIP}print(uamcts.reference.search(0, 0, Trip(), None, uamcts.SearchConfig()).action)"],
}
"""What fresh processes do, from importing the package to a first action."""


def measure(name, settings, seconds):
    """One search in this process: instructions of the compiled program, compile time and fastest run in seconds."""
    import jax

    import uamcts

    domain = uamcts.make(name)
    uncertainty = uamcts.true_uncertainty(domain)
    iterations, rollouts, depth = BUDGETS[name]
    config = uamcts.SearchConfig(iterations=iterations, rollouts=rollouts, depth=depth, **settings)
    key = jax.random.key(0)
    state = domain.reset(key)
    program = jax.jit(lambda key, state: uamcts.search(key, state, domain.model, uncertainty, config))
    started = time.perf_counter()
    lowered = program.lower(key, state)
    traced = time.perf_counter()
    compiled = lowered.compile()
    ended = time.perf_counter()
    instructions = sum(" = " in line for line in compiled.as_text().splitlines())
    fastest, until = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < until:
        begin = time.perf_counter()
        jax.block_until_ready(compiled(key, state))
        fastest = min(fastest, time.perf_counter() - begin)
    # The answers are compared too: a faster search that gives another answer is another search.
    result = compiled(key, state)
    answer = [int(result.action), result.visits.tolist(), [float(value).hex() for value in result.values]]
    figures = {"instructions": instructions, "trace s": traced - started, "compile s": ended - traced}
    return {"figures": {**figures, "run ms": 1e3 * fastest}, "answer": answer}


def measure_checkout(checkout, seconds):
    """All searches of a checkout, in a process of its own without a compilation cache."""
    environment = {**os.environ, "PYTHONPATH": str(Path(checkout).resolve() / "src"), "PJRT_NPROC": "1"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    command = [sys.executable, __file__, "--worker", "--seconds", str(seconds)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if answer.returncode:
        raise SystemExit(f"{checkout}: {answer.stderr}")
    return json.loads(answer.stdout.splitlines()[-1])


def measure_start(checkout):
    """CPU and wall seconds of fresh processes, with an empty and with a full cache of compiled programs."""
    environment = {**os.environ, "PYTHONPATH": str(Path(checkout).resolve() / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = {}
    for name, program in STARTS.items():
        with tempfile.TemporaryDirectory() as cache:
            environment["JAX_COMPILATION_CACHE_DIR"] = cache
            figures = {}
            for filled in ("cold", "warm"):
                begin, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                arguments = [sys.executable, *program]
                subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
                figures[f"{filled}, wall s"] = time.perf_counter() - started
                end = resource.getrusage(resource.RUSAGE_CHILDREN)
                figures[f"{filled} s"] = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
            found[name] = {"figures": figures, "answer": None}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", metavar="checkout", help="two folders: before and after")
    parser.add_argument("--repetitions", type=int, default=5, help="processes per checkout")
    parser.add_argument("--seconds", type=float, default=1.0, help="to repeat each search for, per process")
    parser.add_argument("--start", action="store_true", help="measure fresh processes instead of searches")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if arguments.worker:
        found = {
            f"{name}: {search}": measure(name, settings, arguments.seconds)
            for name in BUDGETS
            for search, settings in SEARCHES.items()
        }
        print(json.dumps(found))
        return
    if len(arguments.checkouts) != 2:
        parser.error(f"give two checkouts, before and after; got {len(arguments.checkouts)}")
    own = measure_start if arguments.start else lambda checkout: measure_checkout(checkout, arguments.seconds)
    rounds = [[own(one) for one in arguments.checkouts] for _ in range(arguments.repetitions)]
    print(f"{'search':32} {'figure':13} {'before':>9} {'after':>9} {'change':>8}")
    for search in rounds[0][0]:
        for figure in rounds[0][0][search]["figures"]:
            before, after = (min(pair[side][search]["figures"][figure] for pair in rounds) for side in (0, 1))
            print(f"{search:32} {figure:13} {before:9.4g} {after:9.4g} {after / before - 1:+8.1%}")
        if arguments.start:
            continue
        same = rounds[0][0][search]["answer"] == rounds[0][1][search]["answer"]
        print(f"{search:32} {'same answer' if same else 'ANOTHER ANSWER'}")


if __name__ == "__main__":
    main()
