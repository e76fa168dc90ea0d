"""A correction of the next state's features and the reward: real - believed, by the state's features and the action.

For errors that no parameter of the simulator explains. A constant wind is a constant, a wrong drag is a linear term,
and a motor that is weak in one place is a split. Away from the data the correction fades out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from uamcts.corrections.residual_actions import fit_actions
from uamcts.corrections.residual_input import check_rows, find_angles, wrap_differences
from uamcts.corrections.residual_leaves import DEPTH, FEWEST_EQUAL, INNER, LEAVES, NO_SPLIT, is_constant, prune
from uamcts.corrections.residual_numbers import Adder, adders
from uamcts.corrections.residual_text import describe
from uamcts.runtime.lazy_jax import jax, jnp, when_loaded
from uamcts.types import Array

__all__ = ["NO_SPLIT", "Residual", "find_angles", "wrap_differences"]


FADES = 4.0
"""Standard deviations outside the data over which a correction fades out."""
FAR = 20.0
"""Standard deviations outside the data within which a difference that was always the same number is believed."""

Rows: TypeAlias = Float[np.ndarray, "rows features"]
Vector: TypeAlias = Float[np.ndarray, " features"]


@dataclass(frozen=True, eq=False)
class Residual:
    """For each action a tree with a bounded linear function in each leaf. Its shapes are those of all later fits.

    The outputs are the features of the next state and, if it was fitted, the reward. Methods take one state. Arrays are
    NumPy's, in double precision; JAX converts them where they are used.
    """

    centre: Float[np.ndarray, " features"]
    """Features are measured from here."""
    scale: Float[np.ndarray, " features"]
    """Their standard deviations; pass them to the next `fit` to keep its units."""
    reach: Float[np.ndarray, " features"]
    """How far outside the data the correction is 0."""
    lower: Float[np.ndarray, "actions features"]
    """The least value of each feature where the action was seen."""
    upper: Float[np.ndarray, "actions features"]
    split: Int[np.ndarray, "actions inner"]
    """The feature that a node looks at, or NO_SPLIT. Node i has the children 2 i + 1 and 2 i + 2."""
    threshold: Float[np.ndarray, "actions inner"]
    """A state goes left if the feature is at most this."""
    intercept: Float[np.ndarray, "actions leaves outputs"]
    slope: Float[np.ndarray, "actions leaves outputs features"]
    low: Float[np.ndarray, "actions leaves outputs"]
    """Predictions stay between `low` and `high`, the range of predictions for states that were seen."""
    high: Float[np.ndarray, "actions leaves outputs"]
    early: Float[np.ndarray, ""]
    """1 if it is added to the state before the step, 0 if to the next state."""

    @classmethod
    def zero(cls, num_actions: int, num_features: int, num_outputs: int | None = None) -> Self:
        """Corrects nothing: what to compile with before there is a fit."""
        shapes = _shapes(num_actions, num_features, num_features if num_outputs is None else num_outputs)
        return cls(**{name: np.full(shape, *_filling(name)) for name, shape in shapes.items()})

    @classmethod
    def fit(
        cls,
        features: Rows,
        actions: Int[np.ndarray, " rows"],
        differences: Rows,
        num_actions: int,
        previous_scale: Vector | None = None,
        effects: Float[np.ndarray, "actions outputs"] | None = None,
    ) -> Self | None:
        """Fits transitions in the order of time. None if predicting 0 is as good for every action and feature.

        Args:
            features: Of the states before.
            actions: From 0 to `num_actions` - 1.
            differences: Real - believed features of the next state; see `wrap_differences` about angles. A further
                column is that of the reward. Rows that are not finite are left out.
            previous_scale: `scale` of an earlier fit, to be used again. By default that of these features.
            effects: What each action adds to each column; 0 where that is not the same everywhere.
        """
        features, actions, differences = check_rows(features, actions, differences, num_actions, previous_scale)
        result = cls.zero(num_actions, features.shape[1], differences.shape[1])
        if len(features) < FEWEST_EQUAL:
            return None
        centre = features.mean(axis=0)
        scale = features.std(axis=0) if previous_scale is None else np.array(previous_scale, float)
        scale[scale <= 1e-12 * np.abs(centre)] = 0
        unit = np.where(scale > 0, scale, 1)
        largest = np.abs(features).max(axis=0)  # differences in the last digits of single precision are none
        largest = np.append(largest, np.zeros(differences.shape[1] - len(largest)))
        differences = np.where(np.abs(differences) > 1e-6 * largest, differences, 0)
        wrong = np.flatnonzero(differences.any(axis=0))
        done = None if effects is None else effects[:, wrong]
        found = fit_actions((features - centre) / unit, differences[:, wrong], actions, num_actions, done)
        for action, (fit, rows) in found.items():
            beyond = FAR * scale if is_constant(fit, differences[rows][:, wrong]) else 0.0
            result.lower[action] = features[rows].min(axis=0) - beyond
            result.upper[action] = features[rows].max(axis=0) + beyond
            splits = np.isfinite(fit.threshold)
            result.split[action] = np.where(splits, fit.feature, NO_SPLIT)
            threshold = np.where(splits, fit.threshold, 0) * unit[fit.feature] + centre[fit.feature]
            result.threshold[action] = np.where(splits, threshold, 0)
            result.intercept[action][:, wrong] = fit.coefficients[:, :, 0]
            result.slope[action][:, wrong] = prune(fit) / unit
            result.low[action][:, wrong], result.high[action][:, wrong] = fit.low, fit.high
        result.centre[:], result.scale[:] = centre, scale
        # A feature that never varied may still be rounded differently.
        result.reach[:] = np.maximum(np.maximum(FADES * scale, 1e-3 * np.abs(centre)), 1e-9)
        return result if found else None

    @property
    def num_actions(self) -> int:
        return len(self.lower)

    @property
    def num_features(self) -> int:
        return len(self.centre)

    @property
    def num_outputs(self) -> int:
        """The features, and one more if rewards are corrected."""
        return int(self.intercept.shape[2])

    @property
    def changes_rewards(self) -> bool:
        """Whether any reward is corrected."""
        last = slice(self.num_features, None)
        return bool(self.low[..., last].any() or self.high[..., last].any())

    def difference(self, features: Vector, action: int) -> Float[np.ndarray, " outputs"]:
        """What to add to the believed features of the next state and to the reward."""
        return np.array(self.shift(features.tolist(), action) or [0.0] * self.num_outputs)

    def shift(self, values: Sequence[float], action: int) -> list[float] | None:
        """The same for features as Python numbers; None where there is nothing to add."""
        add, outputs = self.adders[action], [0.0] * self.num_outputs
        return outputs if add is not None and add(values, outputs) else None

    @functools.cached_property
    def adders(self) -> list[Adder | None]:
        """For each action a function that adds the residual to Python's numbers, in their places."""
        return adders(self)

    def difference_jax(self, features: Float[Array, " features"], action: Int[Array, ""]) -> Float[Array, " outputs"]:
        """The same under `jit` and `vmap`."""
        action = jnp.asarray(action)

        def of_action(array: np.ndarray) -> jax.Array:
            return jnp.asarray(array)[action]

        outside = jnp.maximum(of_action(self.lower) - features, features - of_action(self.upper))
        weight = 1 - jnp.max(jnp.maximum(outside, 0) / jnp.asarray(self.reach))
        splits, thresholds = of_action(self.split), of_action(self.threshold)
        node = jnp.int32(0)
        for _ in range(DEPTH):
            split = splits[node]
            right = (split != NO_SPLIT) & (features[jnp.maximum(split, 0)] > thresholds[node])
            node = 2 * node + 1 + right
        leaf = node - INNER
        # A sum and not a matrix product: accelerators round the factors of products.
        total = of_action(self.intercept)[leaf] + jnp.sum(
            of_action(self.slope)[leaf] * (features - jnp.asarray(self.centre)), axis=-1
        )
        bounded = jnp.clip(total, of_action(self.low)[leaf], of_action(self.high)[leaf])
        within = jnp.all(outside < jnp.asarray(self.reach))  # never so for what is not a number
        return jnp.where(within, weight * bounded, 0)

    def before_the_step(self) -> Self:
        """The same shift, of states before the step."""
        return replace(self, early=np.ones(()))

    def arrays(self) -> dict[str, np.ndarray]:
        """By name, to be saved."""
        return {name: np.asarray(getattr(self, name)) for name in _shapes(0, 0, 0)}

    @classmethod
    def of(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """From saved arrays.

        Raises:
            ValueError: An array is missing, unknown, of another shape or type, or holds what no fit would.
        """
        found = {name: np.asarray(array) for name, array in arrays.items()}
        known = _shapes(0, 0, 0)
        if set(found) != set(known):
            raise ValueError(f"a residual consists of the arrays {', '.join(known)}, not {', '.join(found)}")
        num_actions, num_features = len(np.atleast_1d(found["lower"])), found["centre"].size
        rewards = found["intercept"].shape[2:] == (num_features + 1,)
        for name, shape in _shapes(num_actions, num_features, num_features + rewards).items():
            array, kind = found[name], _filling(name)[1]
            if array.shape != shape or array.dtype.kind != kind.kind:
                raise ValueError(
                    f"a residual's {name} should be {kind} of shape {shape}, not {array.dtype} of shape {array.shape}: "
                    "the file is damaged or from another version"
                )
            if not np.isfinite(array).all():
                raise ValueError(f"a residual's {name} holds numbers that are not finite: the file is damaged")
        inside = (found["split"] >= NO_SPLIT).all() and (found["split"] < num_features).all()
        ordered = all((found[low] <= found[high]).all() for low, high in [("lower", "upper"), ("low", "high")])
        if not (inside and ordered and (found["scale"] >= 0).all() and (found["reach"] > 0).all()):
            raise ValueError(
                "a residual's `split` names features, `lower` is at most `upper`, `low` at most `high`, `scale` is not "
                "negative and `reach` is positive; here it is not so: the file is damaged"
            )
        return cls(**{name: array.astype(_filling(name)[1]) for name, array in found.items()})

    def describe(self, names: Sequence[str] = (), action_names: Sequence[str] = ()) -> str:
        """What is corrected, in words; features and actions without a name are numbered."""
        return describe(self, names, action_names)


when_loaded(lambda: jax.tree_util.register_dataclass(Residual))


def _shapes(num_actions: int, num_features: int, num_outputs: int) -> dict[str, tuple[int, ...]]:
    leaves = (num_actions, LEAVES, num_outputs)
    return {
        "centre": (num_features,),
        "scale": (num_features,),
        "reach": (num_features,),
        "lower": (num_actions, num_features),
        "upper": (num_actions, num_features),
        "split": (num_actions, INNER),
        "threshold": (num_actions, INNER),
        "intercept": leaves,
        "slope": (*leaves, num_features),
        "low": leaves,
        "high": leaves,
        "early": (),
    }


def _filling(name: str) -> tuple[int, np.dtype[Any]]:
    """What an array holds where nothing is corrected, and its type."""
    if name == "split":
        return NO_SPLIT, np.dtype(np.int32)
    return int(name == "reach"), np.dtype(np.float64)
