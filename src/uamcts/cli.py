"""The command line: `uamcts domains | play | bench`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Planning that works although the simulator is wrong.",
)
console = Console()

DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help="A domain's name: see `uamcts domains`.")]


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turns a wrong argument into one line on standard error and exit status 2, Ctrl-C into status 130."""
    try:
        yield
    except (ValueError, TypeError) as error:
        print(f"uamcts: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("uamcts: stopped", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def domains() -> None:
    """Lists the domains, a line each."""
    import uamcts

    print(f"{'domain':15} {'actions':>7} {'features':>8}  what it is")
    for name in uamcts.DOMAINS:
        domain = uamcts.make(name)
        print(f"{name:15} {domain.num_actions:7} {len(domain.feature_bounds()[0]):8}  {domain.summary}")


@app.command()
def play(
    domain: DomainName,
    seed: Annotated[int, typer.Option(help="Another seed, another episode.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Cut the episode here; default: its time limit.", min=1)] = None,
    delay: Annotated[float, typer.Option(help="Seconds to wait after each board.", min=0.0)] = 0.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the last board only.")] = False,
) -> None:
    """Plays an episode in the real world with random actions and prints the boards."""
    with told_plainly():
        from uamcts.episode import random_episode

        board, total, count = "", 0.0, 0
        for move in random_episode(domain, seed, steps):
            board, total, count = move.board, total + move.reward, count + 1
            if not quiet:
                print(f"step {count}: {move.action}, reward {move.reward:g}\n{board}")
                time.sleep(delay)
        if quiet:
            print(board)
        print(f"{domain}: reward {total:g} in {count} steps with random actions (seed {seed})\n")


@app.command()
def bench(
    lanes: Annotated[int, typer.Option(help="Games side by side.", min=1)] = 1280,
    steps: Annotated[int, typer.Option(help="Steps of each game.", min=1)] = 50,
    seconds: Annotated[float, typer.Option(help="How long each measurement goes on.", min=0.01)] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measures random play on one core beside gymnax (extra `bench`), in one run."""
    with told_plainly():
        from uamcts.bench import one_core

        one_core()
        from uamcts.bench import random_play

        result = random_play.measure(lanes, steps, seconds)
        print(json.dumps(result, indent=2)) if as_json else console.print(random_play.table(result))
