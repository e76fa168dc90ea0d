"""`python -m uamcts` and the command `uamcts`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line, or says which extra it needs."""
    try:
        from uamcts.cli import app
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.exit(f"the command line needs {missing.name}: pip install 'uamcts[lab]'")
    app()


if __name__ == "__main__":
    main()
