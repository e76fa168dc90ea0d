"""Our games are MinAtar's: whole episodes of the original `minatar`, its full state compared after every action."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import uamcts
from minatar_games import GAMES, record
from record_minatar import BROKEN

LIMIT = 1500
STEPS = {"breakout": 40_000, "freeway": 30_000, "space_invaders": 34_000}
"""Compared steps per game: 104,000 in all by the long tests, two fifths of them by the quick ones."""

RARE = {
    "breakout": [
        "side wall", "ceiling", "strike", "passes through a second brick", "bounce off the paddle", "last brick",
        "last brick, then the bottom row", "through a hole",
    ],
    "freeway": [
        "crash on frame 1", "crash on frame 2", "crash on frame 3", "reaches the other side", "drifts up",
        "the first action does nothing",
    ],
    "space_invaders": [
        "wave cleared", "aliens turn", "aliens in the player's row", "aliens land", "shot by an alien",
        "touched by an alien", "the cannon jams",
    ],
}  # fmt: skip


def recorded(name: str, broken: tuple[int, ...], steps: int):
    """Episodes of all policies in turn until they have `steps` actions together."""
    episodes, events, seed, total = [], Counter(), 0, 0
    policies = GAMES[name].policies
    while total < steps:
        episode, seen = record(name, policies[seed % len(policies)], seed, broken, LIMIT)
        episodes.append(episode)
        events += seen
        total += len(episode.actions)
        seed += 1
    return episodes, events, total


def compare(domain, episodes, trajectories) -> int:
    """Plays the recorded actions in our game and compares every state, reward and end. Returns the number of steps."""
    lengths = np.array([len(episode.actions) for episode in episodes])
    actions = np.zeros((len(episodes), LIMIT), np.int32)
    for index, episode in enumerate(episodes):
        actions[index, : lengths[index]] = episode.actions
    starts = jax.jit(jax.vmap(domain.from_features))(jnp.asarray(np.stack([episode.start for episode in episodes])))
    features, rewards, terminals = map(np.asarray, trajectories(domain, starts, jnp.asarray(actions)))
    for index, (episode, length) in enumerate(zip(episodes, lengths, strict=True)):
        np.testing.assert_array_equal(features[index, :length], np.stack(episode.features), f"episode {index}")
        np.testing.assert_array_equal(rewards[index, :length], episode.rewards, f"rewards of episode {index}")
        np.testing.assert_array_equal(terminals[index, :length], episode.terminals, f"ends of episode {index}")
    return int(lengths.sum())


@pytest.mark.parametrize("share", [0.4, pytest.param(1.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", GAMES)
def test_whole_episodes_equal_the_original(name, share, trajectories):
    seen, compared, steps = Counter(), 0, int(share * STEPS[name])
    for broken in ((), BROKEN[name]):
        episodes, events, _ = recorded(name, broken, steps // 2)
        compared += compare(uamcts.make(name, broken=broken), episodes, trajectories)
        seen += events
    assert compared >= steps
    missing = [event for event in RARE[name] if not seen[event]]
    assert not missing, f"{missing} never happened among {dict(seen)}"


def test_the_three_games_compare_a_hundred_thousand_steps():
    assert sum(STEPS.values()) >= 100_000


def test_the_comparison_notices_a_wrong_rule(trajectories):
    """A game with one hole too many must not pass."""
    episodes, _, _ = recorded("breakout", (), 2_000)
    with pytest.raises(AssertionError, match="episode"):
        compare(uamcts.make("breakout", broken=(7,)), episodes, trajectories)


@pytest.mark.parametrize("name", GAMES)
def test_boards_equal_the_originals_own_state(name):
    """`channels` is MinAtar's `state()`, so the pictures show what MinAtar's show."""
    domain = uamcts.make(name, broken=())
    game = GAMES[name](np.random.default_rng(5))
    for _ in range(30):
        np.testing.assert_array_equal(domain.channels(domain.from_features(game.features())), original_board(game))
        if game.step(game.policy(game.policies[1]))[1]:
            break


def original_board(game) -> np.ndarray:
    if hasattr(game, "row"):  # the recorder of Freeway keeps the player's row itself
        game.env.pos = game.row
    return game.env.state()
