"""The application that commands are added to, and how it reports errors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from uamcts import __version__
from uamcts.lab.console import limits
from uamcts.lab.console.limits import stop

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Planning that works even when the simulator is wrong.",
)
console = Console()
LONGEST_MESSAGE = 700
"""Characters of an error message on the terminal."""


@contextmanager
def report_errors(out: Path | None = None) -> Iterator[None]:
    """Prints an error as one line on standard error and exits: 2 for a wrong argument, 1 otherwise, 130 for Ctrl-C.

    Args:
        out: The folder in which the command stores its work, if it does; the message says how to resume.
    """
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        from uamcts.arguments import shorten

        print(f"uamcts: {shorten(str(error), LONGEST_MESSAGE)}", file=sys.stderr)
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"uamcts: {error}" + (f"; what was finished before is in {out}" if out else ""), file=sys.stderr)
        raise typer.Exit(1) from None
    except ModuleNotFoundError as missing:
        if missing.name not in limits.PACKAGES:
            raise
        print(f"uamcts: {limits.missing_packages('this command')}", file=sys.stderr)
        raise typer.Exit(1) from None
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" not in str(error):
            raise
        print("uamcts: out of memory; use fewer iterations, runs or steps", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        stored = f"; finished work is in {out}: rerun the same command to resume" if out else ""
        stop(stored)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"uamcts {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Planning that works even when the simulator is wrong."""
