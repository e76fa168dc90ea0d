"""An agent for anybody's simulator: it plans, compares what really happens, and learns where the simulator is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uamcts.agent.agent import Agent

__all__ = ["Agent"]


def __getattr__(name: str) -> Any:
    """`Agent`, imported when it is first used: other parts of the package need only pieces of this one."""
    if name == "Agent":
        from uamcts.agent.agent import Agent

        return Agent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
