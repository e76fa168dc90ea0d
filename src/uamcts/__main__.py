"""`python -m uamcts` and the command `uamcts`."""

from __future__ import annotations

import gc
import os
import sys

from uamcts.lab.console.limits import PACKAGES, missing_packages, stop


def main() -> None:
    """Runs the command line, or says which packages are missing. Exits quietly if `head` closes the pipe."""
    gc.set_threshold(50_000, 20, 100)  # JAX makes many objects that stay: to go through them again takes 5% of a start
    try:
        from uamcts.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in PACKAGES:
            raise
        sys.exit(f"uamcts: {missing_packages('the command line')}")
    except KeyboardInterrupt:
        stop()
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The buffer has no reader any more; without this Python would report the error again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
