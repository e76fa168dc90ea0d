"""Errors and warnings about simulators."""

from __future__ import annotations


class SimulatorError(ValueError):
    """The simulator did something that makes planning impossible. What an agent has learned is unaffected."""


class SlowSimulator(UserWarning):
    """A step of the simulator is so slow that a move with the present settings will take very long."""
