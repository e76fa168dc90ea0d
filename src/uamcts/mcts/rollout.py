"""The parts of a simulation: where its rollouts begin, rollouts in progress, and records of their steps."""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Bool, Float, Int, Shaped

from uamcts.randomness import Seed
from uamcts.types import PyTree


class Start(NamedTuple):
    """Where the rollouts of one simulation begin: all in one state, or, with an axis [rollouts], each in its own."""

    seed: Seed
    number: Int[Array, "*starts"]
    """The number of the simulation within its search, or the number of each rollout within the search."""
    state: PyTree
    terminal: Bool[Array, "*starts"]
    steps: Int[Array, ""] | None = None
    """How many steps a rollout may have, if that is fewer than `depth`."""
    sequence: Int[Array, " depth"] | None = None
    """What the best sequence so far does from here on, if rollouts follow it: see `uamcts.mcts.best_sequence`."""
    ahead: Int[Array, ""] | None = None
    """How many steps from the root they begin, if they follow it."""


class Rollouts(NamedTuple):
    """The returns and the uncertainties of the rollouts of one simulation."""

    returns: Float[Array, " rollouts"]
    uncertainty: Float[Array, " rollouts"]
    cache: PyTree = None
    """The prediction cache afterwards."""
    actions: Int[Array, "rollouts depth"] | None = None
    """What they did, as a sequence each; only if they follow one."""


class Rollout(NamedTuple):
    """A rollout in progress, or all of them with an axis [rollouts]. None stands for what need not be computed."""

    stream: Shaped[Array, "*rollouts"]
    """The word its random actions come from."""
    state: PyTree
    over: Bool[Array, "*rollouts"]
    returned: Float[Array, "*rollouts"]
    uncertainty: Float[Array, "*rollouts"] | None
    discount: Float[Array, "*rollouts"] | None
    after_doubt: Float[Array, "*rollouts"] | None
    """The return after the first doubtful step, which is not part of `returned`. Only if a rule set weighs rollouts."""
    doubt_discount: Float[Array, "*rollouts"] | None
    """The discount of the step after that one; 0 before it."""


class Step(NamedTuple):
    """The record of one step of a rollout, or of all of them with axes [rollouts, depth]."""

    state: PyTree
    action: Int[Array, "*steps"]
    counts: Bool[Array, "*steps"]
    """False after the end of the rollout."""
    reward: Float[Array, "*steps"] | None
    """Only if a rule set weighs rollouts, or transitions pay for their uncertainty."""
