"""The arrays of an experience, and checks of arrays that come from a file."""

from __future__ import annotations

import numpy as np

CAPACITY = 2048
"""Different transitions that are kept; beyond that, new ones replace the oldest."""
WIDE = ("features", "real_features", "believed_features", "used_features", "square")
SQUARES = ("reward_square", "terminal_square")
THIN = (
    "real_reward", "real_terminal", "believed_reward", "believed_terminal", "used_reward", "used_terminal",
    "believed_own", "own", *SQUARES,
)  # fmt: skip
WHOLE = ("action", "times", "deviations", "last")
TOTALS = ("moments", "rewards", "repeats", "counts")


def check_arrays(arrays: dict[str, np.ndarray], num_actions: int) -> None:
    """Refuses arrays that are not an experience: names, shapes, kinds of numbers and their ranges."""
    wanted = set(TOTALS)
    if arrays.keys() - wanted:
        wanted |= {*WIDE, *THIN, *WHOLE, "inputs"}
    if wanted != arrays.keys():
        odd = min(wanted ^ arrays.keys())
        raise ValueError(f"{odd} is {'missing' if odd in wanted else 'not part of it'}")
    filled = "features" in wanted and arrays["features"].ndim == 2
    count, size = arrays["features"].shape if filled else (0, 0)
    shapes: dict[str, tuple[int, ...]] = {"moments": (3, size), "rewards": (4,), "repeats": (2,), "counts": (2,)}
    shapes |= dict.fromkeys(WIDE, (count, size)) | dict.fromkeys((*THIN, *WHOLE), (count,))
    kinds: dict[str, tuple[type[np.generic], ...]] = dict.fromkeys((*WHOLE, "counts"), (np.int64,))
    kinds["inputs"] = (np.uint8, np.float32, np.float64)
    for name, array in arrays.items():
        shape = shapes.get(name, (count, *array.shape[1:2]))
        if array.dtype not in kinds.get(name, (np.float64,)) or array.shape != shape:
            raise ValueError(f"{name} is {array.dtype}{list(array.shape)} and does not fit the others")
    if count > CAPACITY:
        raise ValueError(f"it holds {count} transitions, at most {CAPACITY} are kept")
    if count:
        _check_ranges(arrays, num_actions)
    least, greatest, paid, steps = arrays["rewards"]
    if not (np.isfinite([paid, steps]).all() and steps >= 0 and (least <= greatest or not count)):
        raise ValueError(f"rewards are {arrays['rewards'].tolist()}")
    repeats, counts = arrays["repeats"], arrays["counts"]
    if not (np.isfinite(repeats).all() and 0 <= repeats[1] <= repeats[0]) or counts.min() < 0 or counts[0] < count:
        raise ValueError(f"counts are {repeats.tolist()} and {counts.tolist()}")


def _check_ranges(arrays: dict[str, np.ndarray], num_actions: int) -> None:
    kinds = ("believed", "real", "used")
    good = {
        "action": (arrays["action"] >= 0) & (arrays["action"] < num_actions),
        "times": arrays["times"] >= 1,
        "deviations": (arrays["deviations"] >= 0) & (arrays["deviations"] <= arrays["times"]),
        "last": (arrays["last"] >= 0) & (arrays["last"] <= arrays["counts"][1]),
        "moments": np.isfinite(arrays["moments"]) & (arrays["moments"] >= [[1], [-np.inf], [0]]),
        "inputs": np.isfinite(arrays["inputs"]),
        **{name: np.isfinite(arrays[name]) for name in WIDE},
        **{name: np.isfinite(arrays[name]) & (arrays[name] >= 0) for name in ("square", "reward_square")},
        "terminal_square": (arrays["terminal_square"] >= 0) & (arrays["terminal_square"] <= 1),
        **{name: np.isnan(arrays[name]) | ((arrays[name] >= 0) & (arrays[name] < np.inf))
           for name in ("own", "believed_own")},
        **{f"{kind}_terminal": np.isnan(arrays[f"{kind}_terminal"]) | np.isin(arrays[f"{kind}_terminal"], (0, 1))
           for kind in kinds},
        **{f"{kind}_reward": ~np.isinf(arrays[f"{kind}_reward"]) for kind in kinds},
    }  # fmt: skip
    for name, condition in good.items():
        if not np.all(condition):
            raise ValueError(f"{name} holds numbers that it cannot hold")
