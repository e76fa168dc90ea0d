"""The type checker for jaxtyping's import hook: `install_import_hook(["uamcts.uncertainty"], "typechecker.check")`."""

import re
import typing

from beartype import BeartypeConf, beartype

from uamcts import types

for protocol in (types.Model, types.Uncertainty, types.Legal):
    typing.runtime_checkable(protocol)  # beartype tests whether a thing is callable


def check(function):
    """beartype, but for `Self`: the hook decorates methods one by one, and beartype then cannot know their class."""
    hints = getattr(function, "__annotations__", {})
    for name, hint in hints.items():
        if "Self" in str(hint):
            hints[name] = re.sub(r"\b(typing\.)?Self\b", "object", hint) if isinstance(hint, str) else object
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)  # an int will do for a float
