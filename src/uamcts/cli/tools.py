"""The other commands: `domains`, `play`, `inspect` and `bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from uamcts.cli import options
from uamcts.cli.app import app, console, report_errors
from uamcts.lab.console import limits
from uamcts.names import check_name
from uamcts.runtime.jax_setup import prepare_jax


@app.command()
def domains() -> None:
    """List the domains."""
    prepare_jax()
    import uamcts

    print(f"{'domain':16} {'actions':>7} {'features':>8}  what it is")
    for name in uamcts.DOMAINS:
        domain = uamcts.make(name)
        print(f"{name:16} {domain.num_actions:7} {len(domain.feature_bounds()[0]):8}  {domain.summary}")


@app.command()
def play(
    domain: options.DomainName,
    algorithm: options.PlayAlgorithms = ["ua-mcts"],  # noqa: B006 (typer reads it, nobody writes to it)
    seed: options.Seed = 0,
    steps: Annotated[
        int | None, typer.Option(help="The most steps. Default: the time limit of the episode.", min=1)
    ] = None,
    rules: options.PlayRules = "released",
    c: Annotated[float | None, typer.Option(help="Exploration constant. Default: the paper's.")] = None,
    tau: Annotated[float, typer.Option(help="Uncertainty factor.")] = 0.1,
    graph: options.Graph = False,
    steps_left: options.StepsLeft = False,
    practice: Annotated[
        int,
        typer.Option(help="Episodes that an agent plays and learns from before the one shown.", min=0),
    ] = 0,
    gif: Annotated[Path | None, typer.Option(help="Write a film of the episode to this file, a GIF.")] = None,
    svg: Annotated[Path | None, typer.Option(help="The same as an animated SVG.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write a page that shows every plan and its outcome: see docs/guides/inspector.md."),
    ] = None,
    trace: Annotated[Path | None, typer.Option(help="Write the same as a trace file, for `uamcts inspect`.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds to wait after each move.", min=0.0)] = 0.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only the last boards.")] = False,
) -> None:
    """Play an episode in the real world, move by move, with the plan next to the board."""
    with report_errors():
        limits.check_seed(seed)
        limits.check_sizes(steps=steps)
        limits.check_seconds("delay", delay)
        limits.check_search_numbers([c], [tau])
        prepare_jax()
        from uamcts.lab.console.inspected import Pages
        from uamcts.lab.console.play import watch

        settings = {"rules": rules, "tau": tau, "c": c, "graph": graph or None, "steps_left": steps_left}
        watch(domain, algorithm, seed, steps, settings, gif, delay, quiet, svg, Pages(html, trace), practice)


@app.command()
def inspect(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A file that `agent.record` or `play` wrote.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The page to write. Default: TRACE.html.")] = None,
) -> None:
    """Write a page that shows a trace move by move: what was planned, what was predicted, and what happened."""
    with report_errors():
        from uamcts.inspector import Inspection

        print(Inspection(trace).save(out or trace.with_suffix(".html")))


@app.command()
def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(help="random_play, rollouts, moves, growth, reference or online. Default: all of them."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", "--lanes", help="Games and rollouts in a batch.", min=1)] = 1280,
    steps: Annotated[int, typer.Option(help="Steps of each random game.", min=1)] = 50,
    search_batch: Annotated[
        str, typer.Option("--search-batch", "--search-lanes", help="Searches in a batch; one or several numbers.")
    ] = "1,128",
    seconds: Annotated[float, typer.Option(help="How long each measurement takes.", min=0.01)] = 2.0,
    all_cores: Annotated[bool, typer.Option("--all-cores", help="Use every core instead of one.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Measure speed next to gymnax and mctx (extra `bench`) in one process."""
    with report_errors():
        from uamcts import bench as benchmarks

        chosen = only or list(benchmarks.BENCHMARKS)
        for name in chosen:
            check_name("benchmark", name, benchmarks.BENCHMARKS)
        numbers = _batch_sizes(search_batch)
        limits.check_sizes(batch=batch, steps=steps)
        limits.check_seconds("seconds", seconds, least=0.01)
        prepare_jax(all_cores)
        if not all_cores:
            benchmarks.use_one_core()
        result = benchmarks.run(chosen, batch, steps, numbers, seconds)
        if as_json:
            print(json.dumps(result, indent=2))
            return
        print(f"{result['device']}, {result['cores']} core(s), {result['versions']}")
        for name, found in result["results"].items():
            console.print(rows_table(name, found["rows"]))


def _batch_sizes(text: str) -> list[int]:
    """The numbers in a text like `1,128`."""
    from uamcts.arguments import short_repr

    numbers = text.split(",")
    if not all(number.isdecimal() and len(number) < 10 and int(number) for number in numbers):
        raise ValueError(f"search_batch is {short_repr(text)}; give whole numbers of at least 1, like 1,128")
    return [int(number) for number in numbers]


def rows_table(title: str, rows: list[dict[str, Any]]) -> Table:
    """The rows of a benchmark as a table for a terminal; missing values are left empty."""
    table = Table(title=title.replace("_", " "), title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right", overflow="fold")
    for row in rows:
        table.add_row(*(f"{row[c]:,.4g}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns))
    return table
