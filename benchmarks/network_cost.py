"""What the paper's network costs on one core, transition by transition, apart from everything else.

    python benchmarks/network_cost.py
    python benchmarks/network_cost.py --blocks 8,16,32 --json network_cost.json

On a CPU, a prediction is made in blocks of eight transitions, by one program, so that it has the same digits whatever
else is asked. Each row here runs a part of the network, with made-up weights and inputs of 0 and 1 as in Space
Invaders, over many blocks in one compiled loop. Microseconds are for one transition, by the clock: the least of many
calls, in turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("PJRT_NPROC", "1")

import jax
import jax.numpy as jnp
import numpy as np

import uamcts

INPUTS, HIDDEN, COUNT, REPETITIONS = 319, 128, 512, 200


def make_parts(rng: np.random.Generator) -> dict[str, Callable[[jax.Array], jax.Array]]:
    """The parts of a network with two hidden layers: functions of a block of inputs."""
    sizes = (INPUTS, HIDDEN, HIDDEN, 1)
    one, two, three = (jnp.asarray(0.1 * rng.normal(size=pair), jnp.float32) for pair in itertools.pairwise(sizes))
    return {
        "first layer": lambda block: block @ one,
        "second layer": lambda block: block[:, :HIDDEN] @ two,
        "whole network": lambda block: jax.nn.sigmoid(jnp.tanh(jnp.tanh(block @ one) @ two) @ three),
    }


def loop_over_blocks(part: Callable[[jax.Array], jax.Array], size: int) -> Callable[[jax.Array], jax.Array]:
    """A program that applies a part to all inputs, a block at a time."""

    def run(inputs: jax.Array) -> jax.Array:
        blocks = inputs.reshape(-1, size, INPUTS)
        return jax.lax.map(part, blocks)

    return jax.jit(run)


def measure(sizes: list[int]) -> dict[str, dict[int, float]]:
    """Microseconds a transition of each part, by the size of blocks."""
    rng = np.random.default_rng(0)
    inputs = jnp.asarray(rng.random((COUNT, INPUTS)) < 0.1, jnp.float32)
    programs = {(name, size): loop_over_blocks(part, size) for name, part in make_parts(rng).items() for size in sizes}
    least = dict.fromkeys(programs, float("inf"))
    for number in range(REPETITIONS + 1):  # the first round compiles
        for place, program in programs.items():
            start = time.perf_counter()
            jax.block_until_ready(program(inputs))
            if number:
                least[place] = min(least[place], 1e6 * (time.perf_counter() - start) / COUNT)
    found: dict[str, dict[int, float]] = {}
    for (name, size), microseconds in least.items():
        found.setdefault(name, {})[size] = microseconds
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", default="8,16,32", help="transitions in a block (8,16,32)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args(arguments)
    sizes = [int(one) for one in given.blocks.split(",")]
    wrong = [one for one in sizes if one < 1 or COUNT % one]
    if wrong:
        parser.error(f"--blocks has {wrong[0]}; give divisors of {COUNT}")
    uamcts.configure()
    found: dict[str, Any] = measure(sizes)
    for name, by_size in found.items():
        print(f"{name:14}", "  ".join(f"blocks of {size}: {one:.2f} us" for size, one in by_size.items()))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
