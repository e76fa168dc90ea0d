"""Planning with wrong models as other papers do it: CMAX, CMAX++ and A-CMAX++, and ports of such ideas into MCTS."""

from __future__ import annotations

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
