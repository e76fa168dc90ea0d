"""The command line: `uamcts domains | play | inspect | run | reproduce | beyond | report | bench`.

One file for each kind of command; `options.py` declares the options that they share.
"""

from __future__ import annotations

from uamcts.cli import experiments, tools
from uamcts.cli.app import app

__all__ = ["app", "experiments", "tools"]
