"""Lanes in lockstep: the same numbers flat, under vmaps, and as a GPU kernel (interpreted here)."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.mcts import lockstep_kernel
from uamcts.mcts.lockstep import run_lockstep
from uamcts.mcts.lockstep_kernel import Loop
from uamcts.mcts.problem import Problem
from uamcts.mcts.simulate import Start, simulate
from uamcts.randomness import seed_of


def collatz(offset):
    """A loop whose lanes end at different times, with a value it closes over."""

    def step(k, lane):
        number, steps, over = lane
        moved = jnp.where(number % 2 == 0, number // 2, 3 * number + offset)
        return jnp.where(over, number, moved), steps + ~over, over | (moved == 1)

    return step


def run(offset, numbers, count=200):
    lanes = (numbers, jnp.zeros_like(numbers), numbers == 1)
    step = collatz(offset)
    return run_lockstep(lambda k, lane: (step(k, lane), ()), lambda lane: lane[2], count, lanes)[0][1]


def test_every_lane_counts_its_own_steps():
    assert run(jnp.int32(1), jnp.array([1, 2, 3, 27])).tolist() == [0, 1, 7, 111]


def test_the_count_is_a_limit():
    assert run(jnp.int32(1), jnp.array([3, 27]), count=5).tolist() == [5, 5]


def test_vmaps_around_it_change_nothing():
    """Batched numbers, batched values that the step closes over, both, and two levels of batches."""
    numbers = jnp.arange(1, 13).reshape(2, 2, 3)
    offsets = jnp.array([1, 1])
    single = np.array([[run(jnp.int32(1), row) for row in block] for block in numbers])
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(run, (None, 0)), (0, 0)))(offsets, numbers), single)
    np.testing.assert_array_equal(jax.jit(jax.vmap(jax.vmap(run, (None, 0)), (None, 0)))(jnp.int32(1), numbers), single)
    both = jax.jit(jax.vmap(run, (0, None)))(jnp.array([1, 3]), numbers[0, 0])
    np.testing.assert_array_equal(both[0], single[0, 0])
    np.testing.assert_array_equal(both[1], run(jnp.int32(3), numbers[0, 0]))
    assert np.any(both[0] != both[1])


def hop(outer, both, small, starts):
    """Lanes that hop through tables: one of a batch of batches, one of a batch and one of everybody."""
    everybody = jnp.arange(128) ** 2

    def step(k, lane):
        place, over = lane
        return ((outer[place] + both[place] + everybody[place] + small) % 128, over), ()

    return run_lockstep(step, lambda lane: lane[1], 4, (starts, starts < 0))[0][0]


@pytest.mark.parametrize("kernel", [False, True])
def test_lanes_share_the_tables_of_their_search(kernel, request):
    """Tables are large, so none is copied for every lane; each lane reads that of its own batch."""
    if kernel:
        request.getfixturevalue("interpreted")
    generator = np.random.default_rng(0)
    outer, both = (generator.integers(0, 100, (*shape, 128), np.int32) for shape in ((2,), (2, 3)))
    small = generator.integers(0, 100, (2, 3), np.int32)
    starts = generator.integers(0, 128, (2, 3, 5), np.int32)
    batch = jax.vmap(jax.vmap(hop, (None, 0, 0, 0)))
    found = jax.jit(batch)(outer, both, small, starts)
    expected = starts.copy()
    for i, j, k in np.ndindex(starts.shape):
        for _ in range(4):
            at = int(expected[i, j, k])
            expected[i, j, k] = (outer[i, at] + both[i, j, at] + at**2 + small[i, j]) % 128
    np.testing.assert_array_equal(found, expected)
    shapes = re.findall(r":i32\[([\d,]+)\]", str(jax.make_jaxpr(batch)(outer, both, small, starts)))
    assert max(math.prod(map(int, shape.split(","))) for shape in shapes) == both.size, "a table was copied"


@pytest.fixture
def interpreted(monkeypatch):
    """The kernel takes every loop, interpreted. Returns how often it did."""
    calls = []

    def run_interpreted(*arguments):
        calls.append(1)
        return original(*arguments, interpret=True)

    original = lockstep_kernel.run
    monkeypatch.setattr(lockstep_kernel, "usable", lambda *arguments: True)
    monkeypatch.setattr(lockstep_kernel, "run", run_interpreted)
    return calls


@pytest.mark.parametrize(
    "name",
    ["breakout", "two_way_icy", *(pytest.param(n, marks=pytest.mark.long) for n in ("freeway", "space_invaders"))],
)
def test_the_kernel_gives_the_same_rollouts(name, interpreted, request):
    """Worlds and discounts that differ from lane to lane, and a number of lanes that fills no block."""
    domain = uamcts.make(name)
    config = uamcts.SearchConfig(rollouts=31, depth=40)
    keys = jax.random.split(jax.random.key(0), 3)
    domains = jax.tree.map(lambda *leaves: np.stack(leaves), domain, domain.with_true_model(), domain)
    gammas = jnp.array([1.0, 0.5, 0.9])

    def rolled(key, domain, gamma):
        chosen = uamcts.SearchConfig(rollouts=config.rollouts, depth=config.depth, gamma=gamma)
        state = domain.reset(jax.random.key(1))
        problem = Problem(domain.model, uamcts.true_uncertainty(domain), domain.num_actions)
        return simulate(Start(seed_of(key), jnp.int32(0), state, jnp.bool_(False)), problem, chosen)

    by_kernel = jax.jit(jax.vmap(rolled))(keys, domains, gammas)
    assert interpreted, "the kernel was not used"
    request.getfixturevalue("monkeypatch").undo()
    by_loop = jax.jit(jax.vmap(rolled))(keys, domains, gammas)
    np.testing.assert_allclose(by_kernel.returns, by_loop.returns, rtol=1e-6)
    np.testing.assert_allclose(by_kernel.uncertainty, by_loop.uncertainty, rtol=1e-6)
    assert np.any(np.asarray(by_loop.uncertainty) > 0), "nothing uncertain happened in any rollout"


def trail(numbers, count=12):
    """The Collatz loop with a record of every number on the way, and whether it was still on its way."""
    step = collatz(jnp.int32(1))
    lanes = (numbers, jnp.zeros_like(numbers), numbers == 1)
    return run_lockstep(lambda k, lane: (step(k, lane), (lane[0], ~lane[2])), lambda lane: lane[2], count, lanes)


def test_records_hold_what_every_step_said():
    """3, 10, 5, 16, 8, 4, 2 and then 1, which is over: zeros once all lanes are."""
    end, (numbers, counted) = trail(jnp.array([3, 4, 1]))
    assert numbers.shape == (3, 12)
    assert numbers[0].tolist() == [3, 10, 5, 16, 8, 4, 2, 0, 0, 0, 0, 0]
    assert counted.tolist() == [[True] * 7 + [False] * 5, [True] * 2 + [False] * 10, [False] * 12]
    assert end[1].tolist() == [7, 2, 0]


def test_records_under_vmap_and_in_the_kernel(interpreted, request):
    numbers = jnp.arange(1, 67).reshape(2, 33)
    by_kernel = jax.jit(jax.vmap(trail))(numbers)
    assert interpreted, "the kernel was not used"
    request.getfixturevalue("monkeypatch").undo()
    by_loop = jax.jit(jax.vmap(trail))(numbers)
    single = [trail(row) for row in numbers]
    for index in range(2):
        counted = np.asarray(single[index][1][1])
        for found in (by_kernel, by_loop):
            np.testing.assert_array_equal(found[1][1][index], counted)
            np.testing.assert_array_equal(found[1][0][index][counted], single[index][1][0][counted])
            np.testing.assert_array_equal(found[0][1][index], single[index][0][1])


def test_what_is_no_plain_number_takes_the_loop(monkeypatch):
    """A lane with a vector in it does not fit the kernel: `usable` says so, also on a GPU."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    vector, number = jnp.zeros((4, 2)), jnp.zeros(4)
    assert not lockstep_kernel.usable(Loop(None, 1, 0, ()), [], [number, vector])
    assert not lockstep_kernel.usable(Loop(None, 1, 0, (0,)), [vector], [number])


def test_a_step_that_cannot_be_lowered_takes_the_loop(monkeypatch):
    """On a machine without a GPU nothing lowers for one: the answer is no, not an error."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    jaxpr = jax.make_jaxpr(lambda k, x: x + 1)(jnp.int32(0), jnp.float32(0)).jaxpr
    lockstep_kernel._lowers.cache_clear()
    assert not lockstep_kernel.usable(Loop(jaxpr, 1, 0, ()), [], [jnp.zeros(4)])


def test_the_kernel_stops_blocks_that_are_over():
    """Interpreted on its own: lanes 1 .. 70 of the Collatz loop, three blocks."""
    numbers = jnp.arange(1, 71)
    step = collatz(jnp.int32(1))
    one = [jax.ShapeDtypeStruct((), dtype) for dtype in (jnp.int32, jnp.int32, jnp.bool_)]
    flat = jax.make_jaxpr(lambda k, *lane: list(step(k, lane)))(jax.ShapeDtypeStruct((), jnp.int32), *one)
    lanes = [numbers, jnp.zeros_like(numbers), numbers == 1]
    constants = [jnp.asarray(constant) for constant in flat.consts]
    found = lockstep_kernel.run(Loop(flat.jaxpr, 200, 2, (False,) * len(constants)), constants, lanes, interpret=True)
    np.testing.assert_array_equal(found[1], run(jnp.int32(1), numbers))
