"""Checks of array shapes at run time, for jaxtyping's import hook: beartype, and the fields of named tuples.

beartype looks at the annotations of functions. Much of a search travels in named tuples (`Tree`, `Path`, `SearchResult`
...), which it only recognises by their class; here the arrays in them are checked too, with the same sizes of axes as
the other arguments of the call.
"""

import functools
import inspect
import re
import typing

from beartype import BeartypeConf, beartype

MODULES = [
    "uamcts.mcts.backpropagate",
    "uamcts.mcts.expand",
    "uamcts.mcts.graph.backup",
    "uamcts.mcts.graph.descend",
    "uamcts.mcts.graph.equals",
    "uamcts.mcts.graph.equations",
    "uamcts.mcts.graph.expand",
    "uamcts.mcts.graph.graph",
    "uamcts.mcts.graph.solve",
    "uamcts.mcts.graph.sweep",
    "uamcts.mcts.graph.table",
    "uamcts.mcts.rules",
    "uamcts.mcts.rollout",
    "uamcts.mcts.search",
    "uamcts.mcts.select",
    "uamcts.mcts.simulate",
    "uamcts.mcts.tree",
    "uamcts.randomness",
]
"""The modules whose annotations are checked in all tests.

`graph.search` and `graph.reuse` are not among them: they know graphs of two sizes.
"""
ESTIMATORS = [
    "uamcts.uncertainty.bayes",
    "uamcts.uncertainty.buffer",
    "uamcts.uncertainty.calibration",
    "uamcts.uncertainty.conformal_gate",
    "uamcts.uncertainty.dropout",
    "uamcts.uncertainty.ensemble",
    "uamcts.uncertainty.estimator",
    "uamcts.uncertainty.learner",
    "uamcts.uncertainty.nearest",
    "uamcts.uncertainty.network",
    "uamcts.uncertainty.prediction_cache",
    "uamcts.uncertainty.samples",
    "uamcts.uncertainty.thresholded",
    "uamcts.uncertainty.trees",
    "uamcts.uncertainty.true",
    "uamcts.uncertainty.two_part",
]
"""Those of the estimators; `schedule` is left out, because a `Schedule` checks by itself what users give it."""

RESULTS = ("SearchResult.", "Tree.")
"""Classes whose methods are not checked: callers use them on NumPy arrays and on batches too."""


@functools.cache
def field_hints(kind):
    return typing.get_type_hints(kind)


def fits(value, hint):
    """Whether an array has the shape that `hint` says; a hint may be a union with None."""
    choices = typing.get_args(hint) or (hint,)
    arrays = [choice for choice in choices if hasattr(choice, "dims")]
    return not arrays or (value is None and type(None) in choices) or any(isinstance(value, one) for one in arrays)


def check_records(value):
    """Checks the fields of a named tuple, of those in it, and of those in a tuple."""
    if not isinstance(value, tuple):
        return
    for name in getattr(value, "_fields", ()):
        hint = field_hints(type(value)).get(name)
        if not fits(getattr(value, name), hint):
            found = getattr(getattr(value, name), "shape", type(getattr(value, name)).__name__)
            raise TypeError(f"{type(value).__name__}.{name} is {found}, but should be {hint}")
    for part in value:
        check_records(part)


def check_shapes(function):
    """The type checker that the import hook is given: it is called with arguments, and with the result."""
    if function.__qualname__.startswith(RESULTS):
        return function
    checked = beartype(function)
    parameters = inspect.signature(function).parameters
    # What is annotated as any tree of arrays may be a record with sizes of its own: an earlier, smaller search tree.
    skipped = {name for name, one in parameters.items() if name == "self" or one.annotation in ("PyTree", typing.Any)}

    @functools.wraps(function)
    def check(*args, **kwargs):
        for name, value in (*zip(parameters, args, strict=False), *kwargs.items()):
            if name not in skipped:
                check_records(value)
        return checked(*args, **kwargs)

    return check


def check_estimators(function):
    """The same for the estimators, whose methods return `Self`: an int will do for a float there."""
    hints = getattr(function, "__annotations__", {})
    for name, hint in hints.items():  # the hook decorates methods one by one, so beartype cannot know their class
        if "Self" in str(hint):
            hints[name] = re.sub(r"\b(typing\.)?Self\b", "object", hint) if isinstance(hint, str) else object
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)
