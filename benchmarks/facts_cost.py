"""What facts cost a compiled search: the same search in a simulator that is corrected by facts, and without them.

    python benchmarks/facts_cost.py
    python benchmarks/facts_cost.py --domains breakout --batches 1,400 --facts 100000 --json facts_cost.json

Facts are transitions of random play in the real world. Every search of a batch has a table of its own, as runs of an
experiment do. Both searches trust the simulator (U is 0), or with `--estimator network` ask a network for U, so that
they differ by the lookups alone. Milliseconds are for the whole batch, by the clock: the least of several calls, in
turns.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

import uamcts
from uamcts.corrections.facts import Patched
from uamcts.presets import search_config
from uamcts.uncertainty import make_estimator
from uamcts.uncertainty.learner import UncertaintyLearner

REPETITIONS = 7


def remember(domain: uamcts.Domain, estimator: str, facts: int, key: jax.Array) -> Patched:
    """A learner that has seen so many transitions of random play."""
    inner = UncertaintyLearner(make_estimator(estimator, key, domain))
    learner = Patched.fresh(domain.reset(key), inner, capacity=facts)

    def step(number: jax.Array, carry: tuple[Patched, Any]) -> tuple[Patched, Any]:
        learner, state = carry
        chosen, start = jax.random.split(jax.random.fold_in(key, number))
        action = jax.random.randint(chosen, (), 0, domain.num_actions)
        real = domain.world(state, action)
        learner = learner.observe(domain, state, action, real, 1)
        state = jax.tree.map(lambda new, old: jnp.where(real.terminal, new, old), domain.reset(start), real.state)
        return learner, state

    return jax.lax.fori_loop(0, facts, step, (learner, domain.reset(key)))[0]


def least_seconds(programs: dict[str, Callable[[], Any]], repetitions: int) -> dict[str, float]:
    """The least seconds of each program, called in turns."""
    found = dict.fromkeys(programs, float("inf"))
    for number in range(repetitions + 1):  # the first round compiles
        for name, program in programs.items():
            start = time.perf_counter()
            jax.block_until_ready(program())
            if number:
                found[name] = min(found[name], time.perf_counter() - start)
    return found


def measure(name: str, estimator: str, batch: int, facts: int) -> dict[str, Any]:
    """Milliseconds of a batch of searches with facts and without, and how many facts there are."""
    domain = uamcts.make(name)
    config = search_config(domain, "corrupted" if estimator == "none" else "combined")
    keys = jax.random.split(jax.random.key(0), batch)
    learners = jax.jit(jax.vmap(functools.partial(remember, domain, estimator, facts)))(keys)

    def plan(key: jax.Array, learner: Any) -> jax.Array:
        model, uncertainty = learner.planner(domain)
        return uamcts.search(key, domain.reset(key), model, uncertainty, config, num_actions=domain.num_actions).visits

    @jax.jit
    @jax.vmap
    def plain(key: jax.Array, learner: Patched) -> jax.Array:
        return plan(key, learner.learner)

    corrected = jax.jit(jax.vmap(plan))
    programs = {"plain": lambda: plain(keys, learners), "facts": lambda: corrected(keys, learners)}
    seconds = least_seconds(programs, REPETITIONS)
    return {
        "domain": name, "batch": batch, "facts": int(jnp.mean(learners.facts.best.count)),
        "plain_ms": 1e3 * seconds["plain"], "facts_ms": 1e3 * seconds["facts"],
        "ratio": seconds["facts"] / seconds["plain"],
    }  # fmt: skip


def numbers(text: str) -> list[int]:
    """Whole numbers of at least 1, separated by commas."""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"{text} has a number below 1")
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--domains", default="breakout,space_invaders,two_way", help="names separated by commas")
    parser.add_argument("--estimator", default="none", help="of U, such as network (none)")
    parser.add_argument("--batches", type=numbers, default="1,15,400", help="searches at a time, separated by commas")
    parser.add_argument(
        "--facts", type=numbers, default="1000,20000", help="remembered transitions, separated by commas"
    )
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    given, rows = parse(arguments), []
    uamcts.configure()
    for name in given.domains.split(","):
        for facts in given.facts:
            for batch in given.batches:
                rows.append(measure(name, given.estimator, batch, facts))
                row = rows[-1]
                print(
                    f"{name:16}{batch:6} searches, {row['facts']:7} facts: {row['plain_ms']:9.2f} ms without, "
                    f"{row['facts_ms']:9.2f} with: x {row['ratio']:.2f}",
                    flush=True,
                )
                if given.json:
                    given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
