"""uamcts: planning that works even when the simulator is wrong.

The public names are below. Each is imported when it is first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uamcts import bandits, baselines, reference
    from uamcts.agent.agent import Agent
    from uamcts.agent.jax_simulator import JaxSimulator
    from uamcts.corrections.patched_model import PatchedModel
    from uamcts.domains import DOMAINS, Domain, make
    from uamcts.domains.check import DomainError, DomainReport, check_domain
    from uamcts.errors import SimulatorError
    from uamcts.mcts.api import raise_flags, search
    from uamcts.mcts.config import SearchConfig
    from uamcts.mcts.many import search_many
    from uamcts.mcts.search import SearchResult
    from uamcts.runtime.jax_setup import configure
    from uamcts.types import Model, Transition, Uncertainty
    from uamcts.uncertainty import ESTIMATORS, Estimator, true_uncertainty
    from uamcts.uncertainty.schedule import Schedule

__version__ = "0.2.0"

_HOMES = {
    "Agent": "uamcts.agent.agent",
    "DOMAINS": "uamcts.domains",
    "Domain": "uamcts.domains",
    "DomainError": "uamcts.domains.check",
    "DomainReport": "uamcts.domains.check",
    "ESTIMATORS": "uamcts.uncertainty",
    "Estimator": "uamcts.uncertainty",
    "JaxSimulator": "uamcts.agent.jax_simulator",
    "Model": "uamcts.types",
    "PatchedModel": "uamcts.corrections.patched_model",
    "Schedule": "uamcts.uncertainty.schedule",
    "SearchConfig": "uamcts.mcts.config",
    "SearchResult": "uamcts.mcts.search",
    "SimulatorError": "uamcts.errors",
    "Transition": "uamcts.types",
    "Uncertainty": "uamcts.types",
    "bandits": "uamcts.bandits",
    "baselines": "uamcts.baselines",
    "check_domain": "uamcts.domains.check",
    "configure": "uamcts.runtime.jax_setup",
    "make": "uamcts.domains",
    "raise_flags": "uamcts.mcts.api",
    "reference": "uamcts.reference",
    "search": "uamcts.mcts.api",
    "search_many": "uamcts.mcts.many",
    "true_uncertainty": "uamcts.uncertainty",
}

__all__ = [
    "DOMAINS",
    "ESTIMATORS",
    "Agent",
    "Domain",
    "DomainError",
    "DomainReport",
    "Estimator",
    "JaxSimulator",
    "Model",
    "PatchedModel",
    "Schedule",
    "SearchConfig",
    "SearchResult",
    "SimulatorError",
    "Transition",
    "Uncertainty",
    "bandits",
    "baselines",
    "check_domain",
    "configure",
    "make",
    "raise_flags",
    "reference",
    "search",
    "search_many",
    "true_uncertainty",
]


_MODULES = ("bandits", "baselines", "domains", "field", "gym", "lab", "reference")
"""Modules that are imported when they are first used, as in `uamcts.gym.Simulator(env)`. Some need an extra."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"uamcts.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'uamcts' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


if "gymnasium" in sys.modules:  # gymnasium.make("uamcts/Breakout-v0") then works without another import
    from uamcts.runtime.gymnasium_environments import register_environments

    register_environments()
