"""Numbers that must not depend on how many devices the lanes are spread over; as a program, it prints them."""

import json
import sys

import numpy as np


def runs():
    """Learning runs: three, so that two devices do not share them evenly."""
    from uamcts.lab.run.online import Runs
    from uamcts.lab.run.units import OnlineUnit

    runs = Runs(OnlineUnit.with_defaults("two_way", learner="linear", runs=3, steps=40, interval=20, minibatches=20))
    lengths = np.concatenate([news.said.length for news in runs.advance()], axis=1)
    return {"lengths": lengths.tolist(), "losses": np.asarray(runs.runs.knowledge.loss).tolist()}


def episodes():
    """Offline episodes, five each of two algorithms."""
    from uamcts.lab.run.compute import compute_unit
    from uamcts.lab.run.units import OfflineUnit

    unit = OfflineUnit(
        "run", "two_way", "released", 0.1, "sweep", (("corrupted", 1.0), ("combined", 2.0)), 0, 5, 0,
        (("iterations", 5), ("rollouts", 2), ("depth", 8)),
    )  # fmt: skip
    episodes = compute_unit(unit, lambda share, words: None, None)
    return {"steps": np.asarray(episodes["steps"]).tolist(), "rewards": np.asarray(episodes["reward"]).tolist()}


KINDS = {"runs": runs, "episodes": episodes}


if __name__ == "__main__":
    import jax

    print(json.dumps({"devices": len(jax.devices()), **KINDS[sys.argv[1]]()}))
