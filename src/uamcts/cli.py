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

from uamcts import __version__, names
from uamcts.lab.console import limits
from uamcts.names import RULE_TITLES
from uamcts.runtime.jax_setup import prepare_jax

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Planning that works even when the simulator is wrong.",
)
console = Console()

ALGORITHMS = ", ".join(f"`{name}`" for name in names.ALGORITHM_NAMES)


def _complete(choices: tuple[str, ...]) -> Any:
    """Completion of a word in a shell from some choices."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


DOMAIN = {"metavar": "DOMAIN", "autocompletion": _complete(names.DOMAIN_NAMES)}
ALGORITHM = {"autocompletion": _complete(names.ALGORITHM_NAMES)}
DomainName = Annotated[str, typer.Argument(help="A domain's name: see `uamcts domains`.", **DOMAIN)]
Seed = Annotated[int, typer.Option(help="Another seed, other episodes.")]


@contextmanager
def report_errors(out: Path | None = None) -> Iterator[None]:
    """Turns a wrong argument into one line on standard error and exit status 2, Ctrl-C into status 130.

    A command that keeps its work in `out` says how to resume.
    """
    try:
        yield
    except (ValueError, TypeError, OverflowError) as error:
        print(f"uamcts: {limits.brief(error, 700)}", file=sys.stderr)
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
        kept = f"; finished work is in {out}: rerun the same command to resume" if out else ""
        print(f"uamcts: stopped{kept}", file=sys.stderr, flush=True)
        if out:
            os._exit(130)  # a unit that is being computed in another thread is dropped, not waited for
        raise typer.Exit(130) from None


def _version(wanted: bool) -> None:
    if wanted:
        print(f"uamcts {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Planning that works even when the simulator is wrong."""


@app.command()
def domains() -> None:
    """Lists the domains, a line each."""
    prepare_jax()
    import uamcts

    print(f"{'domain':16} {'actions':>7} {'features':>8}  what it is")
    for name in uamcts.DOMAINS:
        domain = uamcts.make(name)
        print(f"{name:16} {domain.num_actions:7} {len(domain.feature_bounds()[0]):8}  {domain.summary}")


@app.command()
def play(
    domain: DomainName,
    algorithm: Annotated[
        list[str],
        typer.Option(help=f"{ALGORITHMS} or `random`. Repeat it to play several side by side.", **ALGORITHM),
    ] = ["ua-mcts"],  # noqa: B006 (typer reads it, nobody writes to it)
    seed: Seed = 0,
    steps: Annotated[int | None, typer.Option(help="Cut the episode here; default: its time limit.", min=1)] = None,
    rules: Annotated[str, typer.Option(help="`released`: authors' program; `pseudocode`: as printed.")] = "released",
    c: Annotated[float | None, typer.Option(help="Exploration; default: the paper's for this algorithm.")] = None,
    tau: Annotated[float, typer.Option(help="Uncertainty factor.")] = 0.1,
    gif: Annotated[Path | None, typer.Option(help="Write a moving picture here.")] = None,
    delay: Annotated[float, typer.Option(help="Seconds to wait after each move.", min=0.0)] = 0.0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the last boards only.")] = False,
) -> None:
    """Plays an episode in the real world, move by move, with the planner's thoughts beside the board."""
    with report_errors():
        limits.check_seed(seed)
        limits.check_size("steps", steps)
        limits.check_size("delay", delay, least=0)
        limits.check_search_numbers([c], [tau])
        prepare_jax()
        from uamcts.lab.console.play import watch

        watch(domain, algorithm, seed, steps, {"rules": rules, "tau": tau, "c": c}, gif, delay, quiet)


Out = Annotated[Path, typer.Option(help="The folder for results; rerun the same command to resume.")]
Rules = Annotated[str, typer.Option(help="`released` (authors' program), `pseudocode` (as printed) or `both`.")]
EngineName = Annotated[str, typer.Option(help="`local`: all devices of this machine. `ray`: an existing cluster.")]
Address = Annotated[str | None, typer.Option(help="The Ray cluster's address; default: the one Ray finds.")]
Scenario = Annotated[str, typer.Option(help="`offline`, `online` or `both`.")]
Experiments = Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Default: all of them.")]


@app.command()
def reproduce(
    names: Experiments = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, at the paper's c: a few minutes.")] = False,
    scenario: Scenario = "both",
    rules: Rules = "released",
    seed: Seed = 0,
    out: Out = Path("results"),
    engine: EngineName = "local",
    address: Address = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if an expected claim does not hold.")] = False,
) -> None:
    """Reproduces the paper: space_invaders, freeway, breakout, two_way, icy, bandit."""
    with report_errors(out):
        limits.check_seed(seed)
        prepare_jax(device_a_core=True)
        from uamcts.lab.run import reproduce as lab
        from uamcts.lab.run.engines import engine_of

        summary = lab.reproduce(names or [], quick, scenario, rules, seed, out, engine_of(engine, address), console)
        _print_results(summary, out)
        wrong = lab.failed(summary)
        for claim in wrong:
            print(f"does not hold: {claim['text']} ({RULE_TITLES[claim['rules']]})", file=sys.stderr)
        if check and wrong:
            raise typer.Exit(1)


@app.command()
def beyond(
    names: Experiments = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, small budgets: some minutes.")] = False,
    scenario: Scenario = "both",
    seed: Seed = 0,
    out: Out = Path("results/beyond"),
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Runs what the paper does not have: planners, estimators, severity, mandatory, shortcut, budget, discount."""
    with report_errors(out):
        limits.check_seed(seed)
        prepare_jax(device_a_core=True)
        from uamcts.lab.experiments import beyond as lab
        from uamcts.lab.run.engines import engine_of
        from uamcts.lab.run.reproduce import run_all

        experiments = lab.chosen(names or [], quick, scenario)
        summary = run_all(experiments, False, quick, "released", seed, out, engine_of(engine, address), console)
        _print_results(summary, out)


@app.command()
def report(out: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with results.")]) -> None:
    """Rebuilds a folder's report from its data; of an interrupted command, from what was finished."""
    with report_errors():
        from uamcts.lab.report.build import build

        print(build(out))


@app.command()
def run(
    domain: Annotated[
        list[str], typer.Argument(help="Domains: see `uamcts domains`.", **{**DOMAIN, "metavar": "DOMAIN..."})
    ],
    scenario: Annotated[str, typer.Option(help="`online`: U is learned on the way. `offline`: U is known.")] = "online",
    algorithm: Annotated[
        list[str] | None, typer.Option(help=f"{ALGORITHMS}; repeat it for several.", **ALGORITHM)
    ] = None,
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
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="A folder to keep everything in; rerun the same command to resume.")
    ] = None,
    engine: EngineName = "local",
    address: Address = None,
) -> None:
    """Runs a grid of your own: domains, algorithms, c, tau and budgets offline, or learners online.

    A single online run is watched: what it has learned is printed as it goes.
    """
    with report_errors(out):
        limits.check_seed(seed)
        given = {"learner": learner, "steps": steps, "interval": interval, "minibatches": minibatches}
        limits.check_scenario(scenario, {**given, "tau": tau, "iterations": iterations})
        limits.check_sizes(runs=runs, steps=steps, interval=interval, minibatches=minibatches)
        limits.check_search_numbers(c or [], tau or [])
        for number in iterations or []:
            limits.check_size("iterations", number)
        algorithms = [names.algorithm_key(name) for name in algorithm or []]
        prepare_jax(device_a_core=True)
        from uamcts.lab.run import grid

        options = grid.domain_options(option or [])
        several = max(len(values or [0]) for values in (domain, algorithms, learner, c)) > 1 or rules == "both"
        if scenario == "offline" or several or engine != "local":
            from uamcts.lab.run.engines import engine_of

            if scenario == "offline":
                planners, taus = algorithms or ["true", "corrupted", "combined"], tau or [0.1]
                budgets = (planners, c or [], taus, iterations or [], runs or 100)
                experiments = grid.offline_grid(domain, *budgets, options)
            else:
                chosen = (algorithms or ["combined"], learner or [], c or [], runs, steps, interval, minibatches)
                experiments = grid.online_grid(domain, *chosen, options)
            folder = out or grid.default_folder(experiments, rules, seed)
            with report_errors(folder):
                summary = grid.run_grid(experiments, rules, seed, folder, engine_of(engine, address), console)
                _print_results(summary, folder)
            return
        from uamcts.lab.console.online_run import run_online, second_half
        from uamcts.lab.run.online import Experiment

        experiment = Experiment(
            domain[0], (algorithms or ["combined"])[0], learner[0] if learner else None, rules, c[0] if c else None,
            runs, steps, seed, interval=interval, minibatches=minibatches, options=options,
        )  # fmt: skip
        print(second_half(run_online(experiment, out, console)))


def _print_results(summary: dict[str, Any], out: Path) -> None:
    """Results and verdicts for a terminal, and where the report is."""
    from uamcts.lab.console.terminal import result_lines, verdict_line

    print("\n".join(result_lines(summary["rows"], console.width)))
    verdicts = verdict_line(summary["claims"])
    if verdicts:
        print(verdicts)
    print(f"{summary['provenance']['command_seconds']:.0f} s; the report is {(out / 'index.html').resolve().as_uri()}")


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
    with report_errors():
        from uamcts import bench as benchmarks

        names = only or list(benchmarks.BENCHMARKS)
        unknown = [name for name in names if name not in benchmarks.BENCHMARKS]
        if unknown:
            raise ValueError(f"only is {unknown[0]!r}; there are {', '.join(benchmarks.BENCHMARKS)}")
        if not all(number.isdecimal() and len(number) < 10 and int(number) for number in search_lanes.split(",")):
            raise ValueError(
                f"search_lanes is {limits.brief(search_lanes)!r}; give whole numbers of at least 1, like 1,128"
            )
        numbers = [int(number) for number in search_lanes.split(",")]
        limits.check_sizes(lanes=lanes, steps=steps)
        limits.check_size("seconds", seconds, least=0.01)
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
