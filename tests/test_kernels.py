"""GPU kernels, emulated here: unbatched functions in lanes, and searches that grow the same trees without kernels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from uamcts.corrections.fact_patch import patch_model, patch_uncertainty
from uamcts.corrections.fact_table import Facts
from uamcts.mcts.kernels import lanes, tree_kernel
from uamcts.mcts.kernels.lanes import Program, Spec
from uamcts.mcts.kernels.scalarize import evaluate
from uamcts.mcts.kernels.table import Table, Unsupported
from uamcts.types import Transition
from uamcts.uncertainty.prediction_cache import PredictionCache

LANES = 5
lowered = pytest.mark.skipif(
    jax.__version_info__ >= (0, 11) and jax.default_backend() != "gpu", reason="since JAX 0.11, lowering needs a GPU"
)


def in_lanes(function, *arguments):
    """`vmap(function)` by a kernel, with every argument in memory."""
    one = [jax.ShapeDtypeStruct(argument.shape[1:], argument.dtype) for argument in arguments]
    closed = jax.make_jaxpr(function)(*one)
    specs = tuple(Spec(out.aval.shape, out.aval.dtype) for out in closed.jaxpr.outvars)

    def body(values, changed, results):
        found = evaluate(closed.jaxpr, values[len(arguments) :], values[: len(arguments)])
        for table, value in zip(results, found, strict=True):
            value = value.load() if isinstance(value, Table) else value
            for place, entry in enumerate(value.ravel()):
                table.put(place, entry)

    constants = [jnp.asarray(constant) for constant in closed.consts]
    groups = (1,) * len(arguments) + (lanes.ALL,) * len(constants)
    return lanes.run(Program(body, specs, "test"), [*arguments, *constants], groups, [], True, LANES)[1]


TABLE = jnp.arange(12.0).reshape(3, 4) ** 2


def collatz(x, i, m):
    return jax.lax.while_loop(lambda n: n != 1, lambda n: jnp.where(n % 2 == 0, n // 2, 3 * n + 1), i + 1)


def some_facts():
    """What is known of a few actions in states that are numbers: a place and a condition. Action 1 is never known."""
    facts = Facts.empty(jnp.int32(0), (jnp.zeros(2), jnp.bool_(False)), 8)
    for state, action in ((0, 0), (2, 2), (1, 0)):
        value = (jnp.array([state, action]) + 0.5, jnp.bool_(state == 2))
        facts = facts.put(jnp.int32(state), jnp.int32(action), value, marked=state > 0)
    return facts


FACTS = jax.jit(some_facts)()
FUNCTIONS = {
    "arithmetic": lambda x, i, m: jnp.exp(-x) * m.T[0, 0] + i**2 - jnp.clip(x, 0.2, 0.7),
    "reductions": lambda x, i, m: (m.sum(), m.max(0), m.min(1), jnp.prod(m), jnp.any(m > 1), jnp.all(m > -9)),
    "where is the best": lambda x, i, m: (jnp.argmax(m, 0), jnp.argmin(m, 1), jnp.argmax(m > 0.5, 1)),
    "running": lambda x, i, m: (jnp.cumsum(m, 1), jnp.cumsum(x[::-1]), jax.lax.cummax(x, reverse=True)),
    "index a table": lambda x, i, m: TABLE[i, 1] + TABLE[1, i] + TABLE[i % 3, i % 4],
    "index an array": lambda x, i, m: (x[i], m[i], m[:, i % 2], x[jnp.stack([i, i + 1])]),
    "index beyond the end": lambda x, i, m: (x.at[i + 3].get(mode="fill", fill_value=7.0), x[i * 99]),
    "slice": lambda x, i, m: jax.lax.dynamic_slice(m, (i, i), (2, 1)),
    "write": lambda x, i, m: (x.at[i].set(9.0), m.at[i, 1].add(2.0), x.at[i + 4].set(5.0, mode="drop")),
    "write a window": lambda x, i, m: jax.lax.dynamic_update_slice(m, x[None, :1], (i, i)),
    "move": lambda x, i, m: (jnp.roll(x, 1), jnp.concatenate([x, m[0]]), jnp.pad(x, (1, 2)), m.reshape(-1)[::-1]),
    "branches": lambda x, i, m: jax.lax.switch(i % 3, [lambda v: v + 1, lambda v: v * 2, jnp.negative], x),
    "choose": lambda x, i, m: jax.lax.cond(i > 1, lambda: x.sum(), lambda: m[1, 1]),
    "loop until done": collatz,
    "loops side by side": lambda x, i, m: jax.vmap(collatz, (None, 0, None))(x, jnp.stack([i, i + 5, i * 3]), m),
    "bits": lambda x, i, m: (jax.lax.bitcast_convert_type(x, jnp.uint32), jax.lax.bitcast_convert_type(i, jnp.float32)),
    "facts": lambda x, i, m: jax.vmap(FACTS.find, (None, 0))(i, jnp.arange(3)),
    "scan": lambda x, i, m: jax.lax.scan(lambda carry, row: (carry * 0.5 + row, carry), jnp.float32(i), x),
    "matrices": lambda x, i, m: (m @ m.T, x @ m),
    "words": lambda x, i, m: (i.astype(jnp.uint32) * np.uint32(0x9E3779B9)) >> 7,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_in_lanes_is_its_vmap(name):
    key = jax.random.key(0)
    x, m = jax.random.normal(key, (LANES, 3)), jax.random.normal(key, (LANES, 3, 2))
    i = jnp.array([0, 2, 1, 2, 0])
    function = FUNCTIONS[name]
    found = in_lanes(lambda *arguments: jax.tree.leaves(function(*arguments)), x, i, m)
    for ours, theirs in zip(found, jax.tree.leaves(jax.vmap(function)(x, i, m)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)  # sums of numbers of size 1 that cancel


def test_what_cannot_be_written_out_is_refused():
    numbers = jnp.ones((LANES, 3))
    with pytest.raises(Unsupported, match="sort"):
        in_lanes(jnp.sort, numbers)
    with pytest.raises(Unsupported, match="1000"):
        in_lanes(jnp.sum, jnp.ones((LANES, 1000)))


class Corridor:
    """Walk right to the end; a hidden wind is doubtful in the middle. States with a vector in them."""

    num_actions = 3

    def __call__(self, state, action):
        place, marks = state
        place = jnp.clip(place + jnp.array([-1, 1, 2])[action], 0, 9)
        reward = jnp.where(place == 9, 1.0, -0.1 * (action == 2)) + 0.05 * marks[place % 3]
        return Transition((place, marks.at[place % 3].set(0.0)), reward, place == 9)

    def reset(self, key):
        return jnp.int32(2), jax.random.uniform(key, (3,))


def uncertainty(state, action):
    return jnp.where((state[0] > 3) & (state[0] < 6) & (action == 1), 0.5, 0.0)


def compare(rules, monkeypatch, horizon=None, patch=None, **settings):
    """Searches with and without kernels, in a batch of batches with a c, and facts, of their own."""
    world = Corridor()
    keys = jax.random.split(jax.random.key(1), (2, 3))
    cs = jnp.array([0.5, 1.0, 2.0])

    def plan(key, c):
        config = uamcts.SearchConfig(iterations=30, rollouts=3, depth=6, rules=rules, c=c, **settings)
        model, doubt = (world, uncertainty) if patch is None else patch(world, c)
        return uamcts.search(key, world.reset(key), model, doubt, config, horizon=horizon, num_actions=3)

    batch = jax.vmap(jax.vmap(plan, (0, 0)), (0, None))
    plain = jax.jit(batch)(keys, cs)
    found, calls = tree_kernel.find, []
    monkeypatch.setattr(tree_kernel, "INTERPRET", True)
    monkeypatch.setattr(tree_kernel, "find", lambda *arguments: calls.append(found(*arguments)) or calls[-1])
    by_kernel = jax.jit(lambda keys, cs: batch(keys, cs))(keys, cs)
    assert calls[0] is not None, "the kernels were not used"
    np.testing.assert_array_equal(plain.visits, by_kernel.visits)
    np.testing.assert_array_equal(plain.action, by_kernel.action)
    assert len(np.unique(np.asarray(plain.visits).reshape(-1, 3), axis=0)) > 1
    for ours, theirs in zip(jax.tree.leaves(by_kernel), jax.tree.leaves(plain), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@lowered
@pytest.mark.long
@pytest.mark.parametrize("rules", ["released", "pseudocode"])
def test_kernels_grow_the_same_tree(rules, monkeypatch):
    """The tests below cover the released rules as well."""
    compare(rules, monkeypatch, gamma=0.9)


@lowered
@pytest.mark.parametrize("horizon", [3, pytest.param(None, marks=pytest.mark.long)])
def test_kernels_of_trust_search_also_end_paths_where_time_does(horizon, monkeypatch):
    compare("trust", monkeypatch, horizon=horizon)


@lowered
def test_kernels_follow_the_best_sequence(monkeypatch):
    compare("trust", monkeypatch, follow=0.75)


@lowered
def test_kernels_look_facts_up(monkeypatch):
    """Every search has a fact of its own: where a step of 2 leads to from the start depends on its c."""
    example = Transition((jnp.int32(0), jnp.zeros(3)), jnp.float32(0), jnp.bool_(False))

    def patch(world, c):
        real = Transition(((2 * c + 3).astype(jnp.int32), jnp.ones(3)), 3 * c, c > 1.5)
        facts = Facts.empty(jnp.int32(0), example, 4).put(jnp.int32(2), jnp.int32(2), real)

        def find(state, action):
            return facts.find(state[0], action)

        return patch_model(world, find), patch_uncertainty(uncertainty, find)

    compare("released", monkeypatch, patch=patch, gamma=0.9)


@lowered
@pytest.mark.parametrize("rules", ["released", pytest.param("trust", marks=pytest.mark.long)])
def test_kernels_with_an_uncertainty_that_is_evaluated_in_batches(rules, monkeypatch):
    """A network is larger than what fits into a kernel, and every search has one of its own: it depends on its c."""
    weights = jax.random.normal(jax.random.key(2), (4, 200))

    def patch(world, c):
        def predict(state, action):
            place, marks = state
            inputs = jnp.append(marks, place / 9) + action * c
            return jax.nn.sigmoid(jnp.sum(jnp.tanh(inputs @ weights)) - 5.0)

        return world, PredictionCache(predict, remember=False)

    compare(rules, monkeypatch, patch=patch, gamma=0.9)


def test_searches_without_kernels(monkeypatch):
    """What the kernels cannot do is left to the plain program: chance, priors, and functions that cannot be lowered."""
    world, key = Corridor(), jax.random.key(0)
    config = uamcts.SearchConfig(iterations=4, rollouts=1, depth=2)
    found, calls = tree_kernel.find, []
    monkeypatch.setattr(tree_kernel, "INTERPRET", True)
    monkeypatch.setattr(tree_kernel, "find", lambda *arguments: calls.append(found(*arguments)) or calls[-1])

    def sorting(state, action):
        return world((state[0], jnp.sort(state[1])), action)

    uamcts.search(key, world.reset(key), world, None, config, prior=lambda state: jnp.ones(3))
    uamcts.search(key, world.reset(key), sorting, None, config, num_actions=3)
    assert calls == [None, None]


@lowered
@pytest.mark.parametrize("name", ["breakout", pytest.param("space_invaders", marks=pytest.mark.long)])
def test_the_games_have_kernels(name, monkeypatch):
    """They are lowered for CUDA, which needs no GPU."""
    domain, key = uamcts.make(name), jax.random.key(0)
    config = uamcts.SearchConfig(iterations=5, rollouts=2, depth=3)
    found, calls = tree_kernel.find, []
    monkeypatch.setattr(tree_kernel, "available", lambda: True)
    monkeypatch.setattr(tree_kernel, "find", lambda *arguments: calls.append(found(*arguments)))
    jax.eval_shape(
        lambda key: uamcts.search(key, domain.reset(key), domain.model, uamcts.true_uncertainty(domain), config), key
    )
    assert calls[0] is not None
