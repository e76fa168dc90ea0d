"""What is said about simulators that cannot be planned with."""

from __future__ import annotations


class SimulatorError(ValueError):
    """The simulator did something that cannot be planned with. What an agent has learned is not touched by it."""


class SlowSimulator(UserWarning):
    """A step of the simulator takes so long that a move with the present settings will take very long."""
