"""How wrong the model is about a transition, known or learned."""

from uamcts.uncertainty.true import true_uncertainty

__all__ = ["true_uncertainty"]
