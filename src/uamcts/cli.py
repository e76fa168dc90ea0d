"""The command line: `uamcts domains | play | bench`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from uamcts.startup import prepare_jax

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
    prepare_jax()
    import uamcts

    print(f"{'domain':15} {'actions':>7} {'features':>8}  what it is")
    for name in uamcts.DOMAINS:
        domain = uamcts.make(name)
        print(f"{name:15} {domain.num_actions:7} {len(domain.feature_bounds()[0]):8}  {domain.summary}")


@app.command()
def play(
    domain: DomainName,
    algorithm: Annotated[
        list[str],
        typer.Option(help="An algorithm of the paper, or `random`. Give it again to play several side by side."),
    ] = ["combined"],  # noqa: B006 (typer reads it, nobody writes to it)
    seed: Annotated[int, typer.Option(help="Another seed, another episode.")] = 0,
    steps: Annotated[int | None, typer.Option(help="Cut the episode here; default: its time limit.", min=1)] = None,
    rules: Annotated[str, typer.Option(help="`released` or `pseudocode`.")] = "released",
    c: Annotated[float | None, typer.Option(help="Exploration; default: the paper's for this algorithm.")] = None,
    tau: Annotated[float, typer.Option(help="Uncertainty factor.")] = 0.1,
    gif: Annotated[Path | None, typer.Option(help="Write a moving picture here.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds to wait after each move.", min=0.0)] = 0.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the last boards only.")] = False,
) -> None:
    """Plays an episode in the real world, move by move, with the planner's thoughts beside the board."""
    with told_plainly():
        prepare_jax()
        from uamcts.watch import watch

        watch(domain, algorithm, seed, steps, {"rules": rules, "tau": tau, "c": c}, gif, delay, quiet)


@app.command()
def run(
    domain: DomainName,
    scenario: Annotated[str, typer.Option(help="`online`: U is learned on the way.")] = "online",
    algorithm: Annotated[str, typer.Option(help="An algorithm of the paper.")] = "combined",
    learner: Annotated[
        str | None,
        typer.Option(help="What learns: network, linear, true, none, or a transition_... ; default: the paper's."),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs side by side; default: the paper's.", min=1)] = None,
    steps: Annotated[int | None, typer.Option(help="Real steps of each run; default: the paper's.", min=1)] = None,
    c: Annotated[float | None, typer.Option(help="Exploration; default: the paper's for this algorithm.")] = None,
    rules: Annotated[str, typer.Option(help="`released` or `pseudocode`.")] = "released",
    interval: Annotated[int | None, typer.Option(help="Real steps between two rounds of training.", min=1)] = None,
    minibatches: Annotated[int | None, typer.Option(help="Minibatches of a round of training.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other runs.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A folder to keep the runs in; they go on from there.")] = None,
) -> None:
    """Runs agents that learn where their model is wrong, and says what they have learned."""
    with told_plainly():
        if scenario != "online":
            raise ValueError(f"scenario is {scenario!r}; there is online (offline: see examples/offline.py)")
        prepare_jax(device_a_core=True)
        from uamcts.lab.online import Experiment
        from uamcts.lab.watch import run_online, second_half

        experiment = Experiment(
            domain, algorithm, learner, rules, c, runs, steps, seed, interval=interval, minibatches=minibatches
        )
        said = run_online(experiment, out, console)
        if said:
            print(second_half(said))


@app.command()
def bench(
    only: Annotated[
        list[str] | None, typer.Option(help="random_play, rollouts, moves, growth, reference or online; default: all.")
    ] = None,
    lanes: Annotated[int, typer.Option(help="Games and rollouts side by side.", min=1)] = 1280,
    steps: Annotated[int, typer.Option(help="Steps of each random game.", min=1)] = 50,
    search_lanes: Annotated[str, typer.Option(help="Searches side by side, several numbers.")] = "1,128",
    seconds: Annotated[float, typer.Option(help="How long each measurement goes on.", min=0.01)] = 2.0,
    all_cores: Annotated[bool, typer.Option("--all-cores", help="Use every core instead of one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Measures speed beside gymnax and mctx (extra `bench`) in one run."""
    with told_plainly():
        from uamcts import bench as benchmarks

        names = only or list(benchmarks.BENCHMARKS)
        unknown = [name for name in names if name not in benchmarks.BENCHMARKS]
        if unknown:
            raise ValueError(f"only is {unknown[0]!r}; there are {', '.join(benchmarks.BENCHMARKS)}")
        if not all(number.isdecimal() and int(number) for number in search_lanes.split(",")):
            raise ValueError(f"search_lanes is {search_lanes!r}; give whole numbers of at least 1, like 1,128")
        numbers = [int(number) for number in search_lanes.split(",")]
        prepare_jax(all_cores)
        if not all_cores:
            benchmarks.one_core()
        result = benchmarks.run(names, lanes, steps, numbers, seconds)
        if as_json:
            print(json.dumps(result, indent=2))
            return
        print(f"{result['device']}, {result['cores']} core(s), {result['versions']}")
        for name, found in result["results"].items():
            console.print(rows_table(name, found["rows"]))


def rows_table(title: str, rows: list[dict[str, Any]]) -> Table:
    """Rows of one benchmark for a terminal; what a row lacks is left empty."""
    table = Table(title=title.replace("_", " "), title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(f"{row[c]:,.4g}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns))
    return table
