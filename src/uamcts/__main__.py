"""`python -m uamcts` and the command `uamcts`."""

from __future__ import annotations

import os
import sys

from uamcts.lab.console.limits import PACKAGES, missing_packages


def main() -> None:
    """Runs the command line, or says what it needs. A reader that closes the pipe, like `head`, ends it quietly."""
    try:
        from uamcts.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in PACKAGES:
            raise
        sys.exit(f"uamcts: {missing_packages('the command line')}")
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer has no reader; Python would complain about it once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
