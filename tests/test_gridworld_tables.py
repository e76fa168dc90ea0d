"""Both gridworlds in full, against tables that were written by hand from their description.

A table has a place for each cell, row by row, and says where the action leads: `21` is row 2, column 1. `##` is a wall
that world and model share, `GG` the goal. (0, 2) is a wall of the real world; the model may stand on it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts

MODEL = {
    "right": """01 02 03 04 05 06 06
                10 ## ## ## ## ## GG
                21 22 23 24 25 26 26""",
    "down": """10 01 02 03 04 05 16
               20 ## ## ## ## ## GG
               20 21 22 23 24 25 26""",
    "left": """00 00 01 02 03 04 05
               10 ## ## ## ## ## GG
               20 20 21 22 23 24 25""",
    "up": """00 01 02 03 04 05 06
             00 ## ## ## ## ## GG
             10 21 22 23 24 25 16""",
}
TWO_WAY = {
    **MODEL,
    "right": """01 01 03 04 05 06 06
                10 ## ## ## ## ## GG
                21 22 23 24 25 26 26""",
    "left": """00 00 01 03 03 04 05
               10 ## ## ## ## ## GG
               20 20 21 22 23 24 25""",
}
ICY = {
    **TWO_WAY,
    "right": """01 01 03 04 05 06 06
                10 ## ## ## ## ## GG
                21 22 24 24 25 26 26""",
    "left": """00 00 01 03 03 04 05
               10 ## ## ## ## ## GG
               20 20 21 22 22 24 25""",
}
WORLDS = {"two_way": TWO_WAY, "two_way_icy": ICY}
WRONG = {
    "two_way": {("01", "right"), ("03", "left")},
    "two_way_icy": {("01", "right"), ("03", "left"), ("22", "right"), ("24", "left")},
}
"""Where world and model differ: the wall from both sides, the ice from both sides."""


def transitions(tables):
    """(row, column), action and where it leads, for every cell but walls and the goal."""
    for action, table in tables.items():
        for row, line in enumerate(table.splitlines()):
            for column, target in enumerate(line.split()):
                if target not in ("##", "GG"):
                    yield (row, column), action, (int(target[0]), int(target[1]))


@pytest.mark.parametrize("part", ["world", "model"])
@pytest.mark.parametrize("name", WORLDS)
def test_every_transition_is_the_one_in_the_table(name, part):
    domain = uamcts.make(name)
    cells, actions, targets = zip(*transitions(WORLDS[name] if part == "world" else MODEL), strict=True)
    assert len(cells) == 4 * 15
    states = jax.jit(jax.vmap(domain.from_features))(jnp.asarray(cells))
    indices = jnp.asarray([domain.action_names.index(action) for action in actions])
    found = jax.jit(jax.vmap(getattr(domain, part)))(states, indices)
    at_goal = np.array([target == (1, 6) for target in targets])
    np.testing.assert_array_equal(jax.jit(jax.vmap(domain.features))(found.state), targets)
    np.testing.assert_array_equal(found.terminal, at_goal)
    np.testing.assert_array_equal(found.reward, 10.0 * at_goal)
    assert at_goal.sum() == 2  # from above and from below


@pytest.mark.parametrize("part", ["world", "model"])
@pytest.mark.parametrize("name", WORLDS)
def test_the_goal_absorbs_and_pays_nothing_more(name, part):
    domain = uamcts.make(name)
    goal = domain.from_features(jnp.array([1, 6]))
    for action in range(4):
        after = getattr(domain, part)(goal, action)
        assert tuple(domain.features(after.state).tolist()) == (1, 6)
        assert (float(after.reward), bool(after.terminal)) == (0.0, True)


@pytest.mark.parametrize("name", WORLDS)
def test_world_and_model_differ_where_the_description_says(name):
    pairs = zip(transitions(WORLDS[name]), transitions(MODEL), strict=True)
    differ = {(f"{cell[0]}{cell[1]}", action) for (cell, action, real), (*_, believed) in pairs if real != believed}
    assert differ == WRONG[name]
    domain = uamcts.make(name)
    uncertainty = uamcts.true_uncertainty(domain)
    for cell, action, _ in transitions(MODEL):
        found = float(uncertainty(domain.from_features(jnp.array(cell)), domain.action_names.index(action)))
        assert (found > 0) == ((f"{cell[0]}{cell[1]}", action) in differ)
