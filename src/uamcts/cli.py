"""The command line: `uamcts domains | play | run | reproduce | beyond | report | bench`."""

from __future__ import annotations

import json
import os
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
def told_plainly(out: Path | None = None) -> Iterator[None]:
    """Turns a wrong argument into one line on standard error and exit status 2, Ctrl-C into status 130.

    A command that keeps its work in `out` says how to go on.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        print(f"uamcts: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except OSError as error:
        print(f"uamcts: {error}" + (f"; what was finished before is in {out}" if out else ""), file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        kept = f"; what is finished is in {out}, and the same command goes on from there" if out else ""
        print(f"uamcts: stopped{kept}", file=sys.stderr, flush=True)
        if out:
            os._exit(130)  # a unit that is being computed in another thread is dropped, not waited for
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
        typer.Option(help="One of the paper's, `trust`, or `random`. Give it again to play several side by side."),
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


Out = Annotated[Path, typer.Option(help="The folder for results; the same command goes on where it was.")]
Rules = Annotated[str, typer.Option(help="`released`, `pseudocode` or `both`.")]
EngineName = Annotated[str, typer.Option(help="`local`: all devices of this machine. `ray`: an existing cluster.")]
Address = Annotated[str | None, typer.Option(help="The Ray cluster's address; default: the one Ray finds.")]


@app.command()
def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Default: all of them.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, at the paper's c: a few minutes.")] = False,
    scenario: Annotated[str, typer.Option(help="`offline`, `online` or `both`.")] = "both",
    rules: Rules = "released",
    seed: Annotated[int, typer.Option(help="Another seed, other runs.")] = 0,
    out: Out = Path("results"),
    engine: EngineName = "local",
    address: Address = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if an expected claim does not hold.")] = False,
) -> None:
    """Reproduces the paper: space_invaders, freeway, breakout, two_way, icy, bandit."""
    with told_plainly(out):
        prepare_jax(device_a_core=True)
        from uamcts.lab import reproduce as lab
        from uamcts.lab.engines import engine_of

        summary = lab.reproduce(names or [], quick, scenario, rules, seed, out, engine_of(engine, address), console)
        _tell(summary, out)
        wrong = lab.failed(summary)
        for claim in wrong:
            print(f"does not hold: {claim['text']} ({claim['rules']})", file=sys.stderr)
        if check and wrong:
            raise typer.Exit(1)


@app.command()
def beyond(
    names: Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Default: all of them.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, small budgets: some minutes.")] = False,
    scenario: Annotated[str, typer.Option(help="`offline`, `online` or `both`.")] = "both",
    seed: Annotated[int, typer.Option(help="Another seed, other runs.")] = 0,
    out: Out = Path("results/beyond"),
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Runs what the paper does not have: planners, estimators, severity, mandatory, shortcut, budget."""
    with told_plainly(out):
        prepare_jax(device_a_core=True)
        from uamcts.lab import beyond as lab
        from uamcts.lab.engines import engine_of
        from uamcts.lab.reproduce import run_all

        experiments = lab.chosen(names or [], quick, scenario)
        _tell(run_all(experiments, False, quick, "released", seed, out, engine_of(engine, address), console), out)


@app.command()
def report(out: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with results.")]) -> None:
    """Builds a folder's report anew from its data."""
    with told_plainly():
        from uamcts.lab.report import build

        print(build(out))


@app.command()
def run(
    domain: Annotated[list[str], typer.Argument(metavar="DOMAIN...", help="Domains: see `uamcts domains`.")],
    scenario: Annotated[str, typer.Option(help="`online`: U is learned on the way. `offline`: U is known.")] = "online",
    algorithm: Annotated[list[str] | None, typer.Option(help="One of the paper's, or `trust`; give several.")] = None,
    learner: Annotated[
        list[str] | None,
        typer.Option(
            help="online: an estimator (docs/estimators.md), true, none, a transition_..., a baseline "
            "(docs/baselines.md); behind any of them +memory, +penalty=WEIGHT or +bonus=WEIGHT; give several. "
            "Default: the paper's; with trust two_part+memory."
        ),
    ] = None,
    runs: Annotated[int | None, typer.Option(help="Runs side by side; default: the paper's.", min=1)] = None,
    steps: Annotated[int | None, typer.Option(help="online: real steps of each run.", min=1)] = None,
    c: Annotated[list[float] | None, typer.Option(help="Exploration; give several. Default: the paper's.")] = None,
    tau: Annotated[list[float] | None, typer.Option(help="offline: uncertainty factors. Default: 0.1.")] = None,
    iterations: Annotated[
        list[int] | None, typer.Option(help="offline: iterations of a search; give several. Default: the paper's.")
    ] = None,
    rules: Rules = "released",
    interval: Annotated[int | None, typer.Option(help="online: real steps between two rounds.", min=1)] = None,
    minibatches: Annotated[int | None, typer.Option(help="online: minibatches of a round.", min=1)] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(help="Of the domain, NAME=VALUE: severity=0.5, broken=[2,4]; give several."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other runs.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A folder to keep everything in; runs go on from there.")] = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Runs a grid of your own: domains, algorithms, c, tau and budgets offline, or learners online.

    A single online run is watched: what it has learned is printed as it goes.
    """
    with told_plainly(out):
        prepare_jax(device_a_core=True)
        if scenario not in ("online", "offline"):
            raise ValueError(f"scenario is {scenario!r}; there are online and offline")
        from uamcts.lab import grid

        options = grid.domain_options(option or [])
        several = max(len(given or [0]) for given in (domain, algorithm, learner, c)) > 1 or rules == "both"
        if scenario == "offline" or several or engine != "local":
            from uamcts.lab.engines import engine_of

            if scenario == "offline":
                algorithms, taus = algorithm or ["true", "corrupted", "combined"], tau or [0.1]
                given = (algorithms, c or [], taus, iterations or [], runs or 100)
                experiments = grid.offline_grid(domain, *given, options)
            else:
                chosen = (algorithm or ["combined"], learner or [], c or [], runs, steps, interval, minibatches)
                experiments = grid.online_grid(domain, *chosen, options)
            folder = out or grid.default_folder(experiments, rules, seed)
            _tell(grid.run_grid(experiments, rules, seed, folder, engine_of(engine, address), console), folder)
            return
        from uamcts.lab.online import Experiment
        from uamcts.lab.watch import run_online, second_half

        experiment = Experiment(
            domain[0], (algorithm or ["combined"])[0], learner[0] if learner else None, rules, c[0] if c else None,
            runs, steps, seed, interval=interval, minibatches=minibatches, options=options,
        )  # fmt: skip
        print(second_half(run_online(experiment, out, console)))


def _tell(summary: dict[str, Any], out: Path) -> None:
    """Results and verdicts for a terminal, and where the report is."""
    from uamcts.lab.reproduce import table

    print("\n".join(table(summary)))
    verdicts = [claim["verdict"] for claim in summary["claims"] if claim["verdict"] != "not measured"]
    if verdicts:
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
        print(f"claims of the paper: {counts}")
    print(f"{summary['provenance']['seconds']:.0f} s; the report is {(out / 'index.html').resolve().as_uri()}")


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
