"""Writes tests/data/minatar_transitions.npz: episodes of the original games, played by the `minatar` package.

    python tests/record_minatar.py

`test_golden.py` replays them in our games, so a checkout without `minatar` still compares our games with the
original. The file holds facts only (states, actions, rewards, ends), nothing of the package's code. Each game is
recorded twice: `world` has the broken rules of our default domain, `model` the intact ones that the planner believes.
"""

from pathlib import Path

import numpy as np

from minatar_games import GAMES, record

FILE = Path(__file__).parent / "data" / "minatar_transitions.npz"
BROKEN = {"breakout": (2, 4), "freeway": (1, 2, 3, 5, 6, 7), "space_invaders": (2, 3, 4, 5, 6)}
STEPS = 1500
"""Transitions of each game and variant, or more if it takes longer until every event has happened."""
LIMIT = 400
"""Actions of one episode."""
EVENTS = {
    "breakout": {"strike", "side wall", "bounce off the paddle"},
    "freeway": {"crash on frame 1", "crash on frame 2", "crash on frame 3", "reaches the other side"},
    "space_invaders": {"aliens turn", "shot by an alien", "touched by an alien"},
}
ONLY = {
    "world": {
        "breakout": {"through a hole"},
        "freeway": {"drifts up"},
        "space_invaders": {"the cannon jams", "aliens land"},
    },
    "model": {
        "breakout": {"ceiling", "passes through a second brick", "last brick, then the bottom row"},
        "freeway": set(),
        "space_invaders": {"wave cleared"},
    },
}
"""Events that must happen, in both variants and in one of them."""


def sample(name: str, variant: str) -> dict[str, np.ndarray]:
    """Episodes of all policies in turn. After `STEPS` steps, only those in which something new happens are kept."""
    broken = BROKEN[name] if variant == "world" else ()
    missing, episodes, policies = EVENTS[name] | ONLY[variant][name], [], GAMES[name].policies
    seed = total = 0
    while missing or total < STEPS:
        episode, events = record(name, policies[seed % len(policies)], seed, broken, 1500 if missing else LIMIT)
        happened = {event for event, count in events.items() if count}
        if (total < STEPS and len(episode.actions) <= LIMIT) or happened & missing:
            episodes.append(episode)
            missing = missing - happened
            total += len(episode.actions)
        seed += 1
    changes = [np.diff([episode.start, *episode.features], axis=0) for episode in episodes]
    return {
        "length": np.array([len(episode.actions) for episode in episodes], np.int16),
        "start": np.array([episode.start for episode in episodes], np.int8),
        "action": np.concatenate([episode.actions for episode in episodes]).astype(np.int8),
        "change": np.concatenate(changes).astype(np.int8),  # mostly zeros: compresses well
        "reward": np.concatenate([episode.rewards for episode in episodes]).astype(np.int8),
        "terminal": np.concatenate([episode.terminals for episode in episodes]),
    }


def main() -> None:
    arrays = {
        f"{name}_{variant}_{field}": values
        for name in GAMES
        for variant in ("world", "model")
        for field, values in sample(name, variant).items()
    }
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, **arrays)
    for name in GAMES:
        steps = [len(arrays[f"{name}_{variant}_action"]) for variant in ("world", "model")]
        print(f"{name}: {steps[0]} transitions of the world, {steps[1]} of the model")
    print(f"{FILE.name}: {FILE.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
