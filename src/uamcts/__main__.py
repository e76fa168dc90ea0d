"""`python -m uamcts` and the command `uamcts`."""

from __future__ import annotations

import contextlib
import os
import sys

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


def main() -> None:
    """Runs the command line, or says which extra it needs."""
    try:
        from uamcts.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'uamcts[lab]'")
    try:
        app()
    except SystemExit as end:
        if end.code != INTERRUPTED:
            raise
        # A signal may have come in the middle of a line; what cannot be written any more must not change the status.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
