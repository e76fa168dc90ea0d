"""The inspector: a page that shows what a planner thought, believed and met, move by move.

`uamcts play DOMAIN --html plan.html`, `uamcts inspect trace.uamcts` and `Agent.inspect` write it. The page stands
alone: it works from a disk, without a server, and its content policy forbids it to load anything.
"""

from __future__ import annotations

from uamcts.inspector.page import Inspection
from uamcts.inspector.trace import read_trace, write_trace

__all__ = ["Inspection", "read_trace", "write_trace"]
