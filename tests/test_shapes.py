"""The shapes in annotations are checked in the tests, and cost nothing elsewhere. See `shape_checks.py`."""

import os
import subprocess
import sys

import jax.numpy as jnp
import pytest
from jaxtyping import TypeCheckError

import uamcts
from uamcts.mcts import select
from uamcts.mcts import tree as trees

CONFIG = uamcts.SearchConfig()


def test_axes_of_different_sizes_are_caught():
    with pytest.raises(TypeCheckError, match="normalize"):
        select.normalize(jnp.zeros(3), jnp.ones(4, bool))


def test_other_dtypes_are_caught():
    with pytest.raises(TypeCheckError, match="normalize"):
        select.normalize(jnp.zeros(3), jnp.ones(3))


@pytest.mark.parametrize(
    "fields",
    [
        {"keep": jnp.ones((3, 1))},
        {"stats": jnp.zeros((3, 2, 2))},
        {"children": jnp.zeros((3, 2))},
        {"exists": jnp.zeros((2, 3, 2), bool)},
    ],
)
def test_fields_of_a_tree_are_checked(fields):
    tree = trees.empty(jnp.int32(0), 3, 2)
    select.select(tree, CONFIG, 4, 4)
    with pytest.raises(TypeCheckError, match="select"):
        select.select(tree._replace(**fields), CONFIG, 4, 4)


def test_results_are_checked(monkeypatch):
    monkeypatch.setattr(select, "reduce_actions", lambda operation, numbers: numbers[None])
    with pytest.raises(TypeCheckError, match="return value"):
        select.normalize(jnp.zeros(3), jnp.ones(3, bool))


def test_users_run_without_checks():
    """Only the tests install the import hook: elsewhere beartype is not even imported."""
    code = (
        "import sys, uamcts.mcts.search as search;"
        "assert 'beartype' not in sys.modules;"
        "assert not hasattr(search.tree_search, '__wrapped__')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
