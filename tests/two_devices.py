"""Numbers that must not depend on how many devices the lanes are spread over; as a program, it prints them."""

import json

import numpy as np


def numbers():
    """Learning runs (three, so that two devices do not share them evenly) and offline episodes."""
    from uamcts.lab.run.compute import compute_unit
    from uamcts.lab.run.online import Runs
    from uamcts.lab.run.units import OfflineUnit, OnlineUnit

    runs = Runs(OnlineUnit.with_defaults("two_way", learner="linear", runs=3, steps=40, interval=20, minibatches=20))
    said = [news.said for news in runs.advance()]
    lengths = np.concatenate([part.length for part in said], axis=1)
    unit = OfflineUnit(
        "run", "two_way", "released", 0.1, "sweep", (("corrupted", 1.0), ("combined", 2.0)), 0, 5, 0,
        (("iterations", 5), ("rollouts", 2), ("depth", 8)),
    )  # fmt: skip
    episodes = compute_unit(unit, lambda share, words: None, None)
    return {
        "lengths": lengths.tolist(),
        "losses": np.asarray(runs.runs.knowledge.loss).tolist(),
        "steps": np.asarray(episodes["steps"]).tolist(),
        "rewards": np.asarray(episodes["reward"]).tolist(),
    }


if __name__ == "__main__":
    import jax

    print(json.dumps({"devices": len(jax.devices()), **numbers()}))
