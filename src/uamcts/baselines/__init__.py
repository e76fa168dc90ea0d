"""Other papers' methods for planning with wrong models: CMAX, CMAX++, A-CMAX++, and ports of these ideas to MCTS.

Example:
    ```python
    problem = uamcts.baselines.Problem.of(uamcts.make("two_way"))
    agent = uamcts.baselines.CmaxPlus(problem)
    print(uamcts.baselines.repetitions(agent, problem, count=5))
    ```
"""

from __future__ import annotations

import warnings
from typing import Any

from uamcts.baselines.cmax import AdaptiveCmaxPlus, Cmax, CmaxPlus, PlainAstar, Repetition, alpha_schedule, repetitions
from uamcts.baselines.mcts_variants import CmaxMcts, CmaxPlusMcts, NearestResidual, Penalised
from uamcts.baselines.problem import Problem

__all__ = [
    "AdaptiveCmaxPlus",
    "Cmax",
    "CmaxMcts",
    "CmaxPlus",
    "CmaxPlusMcts",
    "NearestResidual",
    "Penalised",
    "PlainAstar",
    "Problem",
    "Repetition",
    "alpha_schedule",
    "repetitions",
]


def __getattr__(name: str) -> Any:
    if name == "falling":
        warnings.warn("uamcts.baselines.falling is deprecated; use alpha_schedule", DeprecationWarning, stacklevel=2)
        return alpha_schedule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
