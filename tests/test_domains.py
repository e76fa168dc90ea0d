"""The domains beyond their rules: starts, options, errors, rules as values, pictures."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamcts
from uamcts import colours
from uamcts.domains import freeway, gridworld
from uamcts.domains.bits import Layout, bits_to_rows, rows_to_bits
from uamcts.domains.heat import UncertaintyMap

SIBLINGS = ("two_way_icy", "slippery", "shortcut", "cliff", "bridge")
"""Domains that share their code with another one, which the quick tests check: they differ in their maps."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in SIBLINGS else []) for name in uamcts.DOMAINS]
)
def test_every_domain_passes_the_public_check(name):
    report = uamcts.check_domain(uamcts.make(name))
    assert report.steps == 64 * 200
    assert report.terminals > 0, "absorbing terminals were never put to the test"
    assert report.disagreements > 0, "the uncertainty was never put to the test"


@jax.jit
def errors_on_a_walk(domain, key):
    """U of 3,200 steps of random play, [16, 200]. An episode that is over begins anew."""

    def step(state, key):
        draw, move, begin = jax.random.split(key, 3)
        action = jax.random.randint(draw, (), 0, domain.num_actions)
        after = domain.world(state, action, move)
        onward = jax.tree.map(lambda a, b: jnp.where(after.terminal, a, b), domain.reset(begin), after.state)
        return onward, domain.uncertainty(state, action)

    def walk(key):
        return jax.lax.scan(step, domain.reset(key), jax.random.split(key, 200))[1]

    return jax.vmap(walk)(jax.random.split(key, 16))


def test_an_unbroken_world_is_its_model(domain):
    assert not np.any(errors_on_a_walk(domain.with_true_model(), jax.random.key(0)))
    assert np.any(errors_on_a_walk(domain, jax.random.key(0))), "the walk meets no errors"


def test_starts_of_breakout():
    domain = uamcts.make("breakout")
    starts = jax.jit(jax.vmap(domain.reset))(jax.random.split(jax.random.key(0), 400))
    features = np.asarray(jax.jit(jax.vmap(domain.features))(starts))
    heads = {tuple(row) for row in features[:, :7].tolist()}
    assert heads == {(3, 0, 2, 4, 0, 0, 3), (3, 9, 3, 4, 0, 9, 3)}
    assert 150 < np.sum(features[:, 1] == 0) < 250  # a fair coin stays inside with probability 1 - 1e-6
    assert np.all(features[:, 7:].reshape(-1, 10, 10).sum(axis=2) == [0, 10, 10, 10, 0, 0, 0, 0, 0, 0])


def test_starts_of_freeway():
    domain = uamcts.make("freeway")
    starts = jax.jit(jax.vmap(domain.reset))(jax.random.split(jax.random.key(1), 400))
    features = np.asarray(jax.jit(jax.vmap(domain.features))(starts))
    cars = features[:, :-2].reshape(-1, 8, 4)
    assert np.all(features[:, -2:] == [9, 3])
    assert np.all(cars[..., 0] == 0)
    assert np.all(cars[..., 1] == np.arange(1, 9))
    assert np.all(cars[..., 2] == abs(cars[..., 3]))
    speeds, counts = np.unique(cars[..., 3], return_counts=True)
    assert speeds.tolist() == [-5, -4, -3, -2, -1, 1, 2, 3, 4, 5]
    assert counts.min() > 240  # 320 expected, standard deviation 17
    assert counts.max() < 400


def test_freeway_pays_in_the_model_what_the_world_pays():
    """In row 1 `none` carries the player over in the world: the model pays for it although it stays in row 1."""
    domain = uamcts.make("freeway")
    vector = np.array(domain.features(domain.reset(jax.random.key(0))))
    vector[-2:] = (1, 0)
    vector[:32].reshape(8, 4)[:, 0] = 9
    state = domain.from_features(vector)
    real, believed = domain.world(state, 0), domain.model(state, 0)
    assert (float(real.reward), bool(real.terminal)) == (1.0, True)
    assert (float(believed.reward), bool(believed.terminal)) == (1.0, False)
    assert int(domain.features(believed.state)[-2]) == 1


def test_a_jammed_shot_has_the_uncertainty_of_the_paper():
    """One bullet and a timer of four: (1 + 4^2) / 306."""
    domain = uamcts.make("space_invaders")
    state = domain.reset(jax.random.key(0))
    uncertainty = uamcts.true_uncertainty(domain)
    assert float(uncertainty(state, 3)) == pytest.approx(17 / 306, rel=1e-6)
    assert [float(uncertainty(state, action)) for action in range(3)] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("start", "action", "world", "model"),
    [
        ((0, 1), 0, (0, 1), (0, 2)),  # the unknown wall
        ((2, 2), 0, (2, 4), (2, 3)),  # over the ice to the right
        ((2, 4), 2, (2, 2), (2, 3)),  # and to the left
        ((2, 3), 3, (2, 3), (2, 3)),  # a wall above the ice
        ((1, 0), 2, (1, 0), (1, 0)),  # the edge
        ((0, 6), 1, (1, 6), (1, 6)),  # the goal
    ],
)
def test_moves_on_the_icy_grid(start, action, world, model):
    domain = uamcts.make("two_way_icy")
    state = domain.from_features(start)
    assert tuple(domain.features(domain.world(state, action).state).tolist()) == world
    assert tuple(domain.features(domain.model(state, action).state).tolist()) == model


def test_ice_before_a_wall_stops_the_slide():
    domain = uamcts.make("two_way_icy", broken=((2, 4),))
    slid = domain.world(domain.from_features((2, 2)), gridworld.RIGHT)
    assert tuple(domain.features(slid.state).tolist()) == (2, 3)


def test_other_places_can_be_broken():
    domain = uamcts.make("breakout", broken=(7,), model_broken=(2,))
    assert int(domain.world_rules) == 1 << 7
    assert int(domain.model_rules) == 1 << 2


def places(domain):
    """The broken places of a game."""
    return {place for place in range(10) if int(domain.world_rules) >> place & 1}


GAMES = {"space_invaders": set(range(10)), "freeway": set(range(1, 9)), "breakout": set(range(10))}


@given(st.sampled_from(sorted(GAMES)), st.integers(0, 2**31), st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_places_of_a_lower_severity_are_among_those_of_a_higher(name, seed, severities):
    few, many = (places(uamcts.make(name, severity=severity, seed=seed)) for severity in sorted(severities))
    assert few <= many <= GAMES[name]
    assert [len(few), len(many)] == [round(severity * len(GAMES[name])) for severity in sorted(severities)]


@pytest.mark.parametrize(("name", "usual"), [("space_invaders", {2, 3, 4, 5, 6}), ("freeway", {1, 2, 3, 5, 6, 7}),
                                             ("breakout", {2, 4})])  # fmt: skip
def test_severities_of_nothing_and_everything_and_none(name, usual):
    assert places(uamcts.make(name)) == usual
    assert places(uamcts.make(name, seed=3)) == usual
    assert places(uamcts.make(name, severity=0)) == set()
    assert places(uamcts.make(name, severity=1)) == GAMES[name]
    assert int(uamcts.make(name, severity=0.5, model_broken=(3,)).model_rules) == 1 << 3
    drawn = {frozenset(places(uamcts.make(name, severity=0.5, seed=seed))) for seed in range(20)}
    assert len(drawn) > 10, "a seed is to draw places of its own"


def test_a_lane_of_a_batch_carries_its_own_rules():
    """Ten worlds, each broken in another column, as lanes of one program: the shot jams in one of them only."""
    worlds = [uamcts.make("space_invaders", broken=(column,)) for column in range(10)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *worlds)
    state = worlds[0].reset(jax.random.key(0))
    uncertainty = jax.jit(jax.vmap(lambda domain: uamcts.true_uncertainty(domain)(state, 3)))(batch)
    assert np.flatnonzero(uncertainty).tolist() == [5]


def test_states_are_small(domain):
    """Bytes of one state: what the search copies around."""
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(domain.reset(jax.random.key(0))))
    limit = {"space_invaders": 52, "freeway": 16, "breakout": 8}
    assert size == limit.get(domain.name, 4)


def test_features_lie_within_their_bounds(domain):
    low, high = domain.feature_bounds()
    state = domain.reset(jax.random.key(3))
    world = jax.jit(domain.world)
    for step, action in enumerate(np.random.default_rng(0).integers(domain.num_actions, size=60).tolist()):
        vector = np.asarray(domain.features(state))
        assert np.all(low <= vector)
        assert np.all(vector <= high)
        state = world(state, action, jax.random.key(step)).state


# Errors name the argument, the value and the remedy.


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uamcts.make("brekout"), ["'brekout'", "did you mean 'breakout'?", "two_way_icy"]),
        (lambda: uamcts.make("Space-Invaders"), ["did you mean 'space_invaders'?"]),
        (lambda: uamcts.make("zzz"), ["unknown domain 'zzz'", "there are space_invaders"]),
        (lambda: uamcts.make("breakout", broken=(10,)), ["broken holds 10", "0 to 9"]),
        (lambda: uamcts.make("breakout", broken=2), ["broken is 2", "broken=[2, 4]"]),
        (lambda: uamcts.make("breakout", broken=(2.5,)), ["broken is (2.5,)"]),
        (lambda: uamcts.make("breakout", holes=(2,)), ["no option 'holes'", "broken, model_broken"]),
        (lambda: uamcts.make("freeway", broken=(2,), severity=0.3), ["broken is (2,)", "severity is 0.3"]),
        (lambda: uamcts.make("freeway", severity=-0.1), ["severity is -0.1", "share of 8 places"]),
        (lambda: uamcts.make("breakout", severity=1.1), ["severity is 1.1", "between 0 and 1"]),
        (lambda: uamcts.make("breakout", severity=float("nan")), ["severity is nan"]),
        (lambda: uamcts.make("breakout", severity="half"), ["severity is 'half'", "between 0 and 1"]),
        (lambda: uamcts.make("breakout", severity=0.3, seed=0.5), ["seed is 0.5", "whole number"]),
        (lambda: uamcts.make("two_way", broken=3), ["broken is 3", "broken=[[0, 2]]"]),
        (lambda: uamcts.make("two_way", ice=((2,),)), ["ice holds (2,)", "(row, column)"]),
        (lambda: uamcts.make("two_way", ice=(("a", 1),)), ["ice is ('a',)"]),
        (lambda: uamcts.make("slippery", size=float("inf")), ["size is inf", "from 4 to 1000"]),
        (lambda: uamcts.make("slippery", density="x"), ["density is 'x'", "between 0 and 1"]),
        (lambda: uamcts.make("slippery", belt=3), ["belt is 3", "True or False"]),
        (lambda: uamcts.make("shortcut", door="no"), ["door is 'no'", "True or False"]),
        (lambda: uamcts.make("breakout", severity=0.3, seed=-1), ["seed is -1", "at least 0"]),
        (lambda: uamcts.make("two_way", broken=(0, 2)), ["broken is (0, 2)", "broken=[[0, 2]]"]),
        (lambda: uamcts.make("two_way", broken=((3, 0),)), ["broken holds 3", "0 to 2"]),
        (lambda: uamcts.make("two_way", broken=((1, 6),)), ["which is the goal"]),
        (lambda: uamcts.make("freeway").world(None, 3), ["action is 3", "0 none, 1 up, 2 down"]),
        (lambda: uamcts.make("freeway").model(None, -1), ["action is -1"]),
    ],
)
def test_errors_help(call, words):
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    for word in words:
        assert word in str(error.value)


# Pictures.


def test_pictures_are_made_of_the_boards_cells(domain):
    state = domain.reset(jax.random.key(0))
    board = domain.channels(state)
    picture = domain.render(state, scale=3)
    assert picture.dtype == np.uint8
    assert picture.shape == (3 * board.shape[0], 3 * board.shape[1], 3)
    empty = ~board.any(axis=-1)
    wrong = np.zeros_like(empty) if domain.wrong_cells() is None else domain.wrong_cells()
    middle, background = picture[1::3, 1::3], colours.rgb(colours.BOARD)
    assert np.all(middle[empty & ~wrong] == background)
    assert np.all((middle != background).any(axis=-1)[~empty])
    rows = domain.text(state).split("\n")
    assert len(rows) == board.shape[0] + 2
    assert {len(row) for row in rows} == {board.shape[1] + 2}


def test_a_picture_shows_things_grid_lines_and_hatched_cells():
    """The gridworld by hand: an unknown wall at (0, 2) is hatched around the wall, an empty cell is empty."""
    domain = uamcts.make("two_way")
    state = domain.reset(jax.random.key(0))
    picture, board = domain.render(state, scale=12), domain.board(state)
    cells = picture.reshape(3, 12, 7, 12, 3).transpose(0, 2, 1, 3, 4)

    def colours_of(row, column):
        return {"#" + bytes(pixel).hex() for pixel in cells[row, column].reshape(-1, 3)}

    assert colours_of(0, 0) == {colours.BOARD, colours.GRID}
    assert colours_of(1, 0) == {colours.PLAYER, colours.GRID}
    assert colours_of(0, 2) == {colours.BOARD, colours.HATCH, colours.SOLID, colours.GRID}
    assert {tuple(cell) for cell in np.argwhere(board.wrong)} == {(0, 2)}
    assert ("agent", colours.PLAYER) in board.legend()
    assert set(colours_of(0, 2)) - {colours.HATCH} == colours_of(1, 1) | {colours.BOARD}


def test_the_player_is_on_top_in_pictures_too():
    domain = uamcts.make("freeway")
    vector = np.array(domain.features(domain.reset(jax.random.key(0))))
    vector[-2:] = (3, 0)
    vector[:32].reshape(8, 4)[2, 0] = 4  # a car in the player's cell
    board = domain.board(domain.from_features(vector))
    assert board.names[board.top[3, 4]] == "chicken"


def test_the_player_is_never_hidden_on_the_text_board():
    domain = uamcts.make("freeway")
    vector = np.array(domain.features(domain.reset(jax.random.key(0))))
    vector[-2:] = (3, 0)
    vector[:32].reshape(8, 4)[2, 0] = 4
    assert "@" in domain.text(domain.from_features(vector))


def test_a_picture_needs_pixels():
    domain = uamcts.make("two_way")
    with pytest.raises(ValueError, match="scale is 0"):
        domain.render(domain.reset(jax.random.key(0)), scale=0)


# Packed words.


@given(st.lists(st.integers(0, 15), min_size=3, max_size=3))
def test_words_hold_their_fields(numbers):
    layout = Layout(a=4, b=4, c=4)
    packed = layout.pack(a=numbers[0], b=numbers[1], c=numbers[2])
    assert [int(value) for value in vars(layout.unpack(packed)).values()] == numbers
    assert int(layout.unpack(layout.replace(packed, b=7)).b) == 7


def test_a_word_has_32_bits():
    with pytest.raises(ValueError, match="33 bits"):
        Layout(a=20, b=13)


@given(st.integers(0, 2**30 - 1))
def test_bits_and_cells_are_inverse(number):
    assert int(rows_to_bits(bits_to_rows(jnp.uint32(number), 30) == 1)) == number


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.sampled_from([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])),
                min_size=8, max_size=8))  # fmt: skip
@settings(max_examples=300)
def test_one_addition_moves_all_cars(cars):
    """The word arithmetic of a frame against the rule for one car."""
    expected = []
    for column, timer, speed in cars:
        if timer == 0:
            expected.append(((column + (1 if speed > 0 else -1)) % 10, abs(speed)))
        else:
            expected.append((column, timer - 1))

    def packed(values):
        return np.uint32(sum(int(value) << (4 * i) for i, value in enumerate(values)))

    speeds = packed([speed if speed > 0 else 8 - speed for *_, speed in cars])
    columns, timers = freeway.frame(packed([c for c, *_ in cars]), packed([t for _, t, _ in cars]), speeds)
    found = [(int(columns) >> 4 * i & 15, int(timers) >> 4 * i & 15) for i in range(8)]
    assert found == expected


def test_no_two_domains_have_the_same_structure():
    """Else a compiled program of one may be taken for the other's, for all their shapes are the same."""
    structures = [jax.tree.structure(uamcts.make(name)) for name in uamcts.DOMAINS]
    for first, one in enumerate(structures):
        for other in structures[first + 1 :]:
            assert one != other
    for name, structure in zip(uamcts.DOMAINS, structures, strict=True):
        assert structure == jax.tree.structure(uamcts.make(name))


def test_u_over_the_cells_of_a_board():
    """By hand: beside the unknown wall at (0, 2) the model believes in a step of one cell, which is U = 1 / 2."""
    domain = uamcts.make("two_way")
    found = UncertaintyMap(domain)(domain.reset(jax.random.key(0)))
    right, _, left, up = range(4)
    assert found.shape == (3, 7, 4)
    assert found[0, 1, right] == found[0, 3, left] == 0.5
    wrong = {tuple(cell) for cell in np.argwhere(found > 0).tolist()}
    assert wrong == {(0, 1, right), (0, 3, left), (1, 2, up)}  # the last: from within the wall below
    twice = UncertaintyMap(domain, lambda state, action: 2 * domain.uncertainty(state, action))
    assert np.array_equal(twice(domain.reset(jax.random.key(0))), 2 * found)


@pytest.mark.parametrize(
    ("name", "places"), [("breakout", np.s_[9]), ("space_invaders", np.s_[9]), ("freeway", np.s_[:, 4])]
)
def test_u_over_the_places_of_the_player(name, places):
    """The present place has the U of the present state; where the player cannot be, there is none."""
    domain = uamcts.make(name)
    state = domain.reset(jax.random.key(0))
    found = UncertaintyMap(domain)(state)
    there = np.zeros(found.shape[:2], bool)
    there[places] = True
    assert np.array_equal(~np.isnan(found).any(axis=-1), there)
    player = domain.channels(state)[..., 0]
    here = [float(domain.uncertainty(state, action)) for action in range(domain.num_actions)]
    assert found[player][0].tolist() == pytest.approx(here)
    jammed = np.flatnonzero(found[places].max(axis=-1) > 0).tolist()
    assert jammed == ([2, 3, 4, 5, 6] if name == "space_invaders" else [])  # the others cannot go wrong at the start
