"""Errors and warnings about simulators."""

from __future__ import annotations


class SimulatorError(ValueError):
    """The simulator did something that cannot be planned with.

    It raised an error, returned something that is not `(state, reward, terminal)`, changed the state it was given, or
    gave two outcomes for the same step. What an agent has learned is not affected.

    Example:
        ```python
        try:
            action = agent.act(state)
        except uamcts.SimulatorError as error:
            print(error)  # names the simulator, the state, the action and a remedy
        ```
    """


class GuideError(SimulatorError):
    """A `policy`, `value` or `prior` that the user brought raised an error: the simulator is not to blame."""


class SlowSimulator(UserWarning):
    """With the present settings a move takes very long, for example because a step of the simulator does."""
