"""The commands that run experiments: `reproduce`, `beyond`, `field`, `run` and `report`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from uamcts.cli import options
from uamcts.cli.app import app, console, report_errors
from uamcts.lab.console import limits
from uamcts.lab.console.run_options import RunOptions
from uamcts.names import rules_title
from uamcts.runtime.jax_setup import prepare_jax


@app.command()
def reproduce(
    names: options.Experiments = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs, at the paper's c: a few minutes.")] = False,
    scenario: options.Scenario = "both",
    rules: options.Rules = "released",
    seed: options.Seed = 0,
    out: options.Out = Path("results"),
    engine: options.EngineName = "local",
    address: options.Address = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if an expected claim does not hold.")] = False,
) -> None:
    """Reproduce the paper: space_invaders, freeway, breakout, two_way, icy, bandit."""
    with report_errors(out):
        limits.check_seed(seed)
        prepare_jax(device_a_core=True)
        from uamcts.lab.run import reproduce as lab
        from uamcts.lab.run.engines import make_engine

        summary = lab.reproduce(names or [], quick, scenario, rules, seed, out, make_engine(engine, address), console)
        _print_results(summary)
        failed = lab.failed_claims(summary)
        for claim in failed:
            print(f"does not hold: {claim['text']} ({rules_title(claim['rules'])})", file=sys.stderr)
        if check and failed:
            raise typer.Exit(1)


@app.command()
def beyond(
    names: options.Experiments = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and small budgets: a few minutes.")] = False,
    scenario: options.Scenario = "both",
    seed: options.Seed = 0,
    out: options.Out = Path("results/beyond"),
    engine: options.EngineName = "local",
    address: options.Address = None,
) -> None:
    """Run experiments beyond the paper: planners, estimators, severity, mandatory, shortcut, budget, discount."""
    with report_errors(out):
        limits.check_seed(seed)
        prepare_jax(device_a_core=True)
        from uamcts.lab.experiments.beyond import choose_experiments
        from uamcts.lab.run.engines import make_engine
        from uamcts.lab.run.reproduce import run_all

        experiments = choose_experiments(names or [], quick, scenario)
        summary = run_all(experiments, False, quick, "released", seed, out, make_engine(engine, address), console)
        _print_results(summary)


@app.command()
def field(
    names: options.Experiments = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few episodes, no tuning: a few minutes.")] = False,
    iterations: Annotated[int | None, typer.Option(help="Iterations of every search. Default: 100.", min=1)] = None,
    planner: Annotated[list[str] | None, typer.Option(help="Run only this planner. Repeat it for several.")] = None,
    seed: options.Seed = 0,
    out: options.Out = Path("results/field"),
    engine: options.EngineName = "local",
    address: options.Address = None,
) -> None:
    """Compare published planners in the worlds of their papers.

    Worlds: lake, cliff, bridge, teleport, slip10, slip30, cartpole_gravity, cartpole_mass.
    """
    with report_errors(out):
        limits.check_seed(seed)
        if iterations is not None:
            limits.check_sizes(iterations=iterations)
        prepare_jax(device_a_core=True)
        from uamcts.lab.experiments.field import choose_experiments
        from uamcts.lab.report.field_section import terminal_lines
        from uamcts.lab.run.engines import make_engine
        from uamcts.lab.run.reproduce import run_all

        experiments = choose_experiments(names or [], quick, iterations, planner or ())
        summary = run_all(experiments, False, quick, "released", seed, out, make_engine(engine, address), console)
        print("\n".join(terminal_lines(summary["rows"])))
        print(f"{summary['provenance']['command_seconds']:.0f} s; {summary['report']}")


@app.command()
def report(out: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with results.")]) -> None:
    """Rebuild the report of a folder; if its command was interrupted, from the finished units."""
    with report_errors():
        from uamcts.lab.report.build import build

        print(build(out))


@app.command()
def run(
    domain: options.DomainNames,
    scenario: options.RunScenario = "online",
    algorithm: options.Algorithms = None,
    learner: options.Learners = None,
    runs: options.Runs = None,
    steps: options.Steps = None,
    c: options.Exploration = None,
    tau: options.Taus = None,
    iterations: options.Iterations = None,
    rules: options.Rules = "released",
    graph: options.Graph = False,
    steps_left: options.StepsLeft = False,
    interval: options.Interval = None,
    minibatches: options.Minibatches = None,
    option: options.DomainOptions = None,
    seed: options.Seed = 0,
    out: options.OptionalOut = None,
    engine: options.EngineName = "local",
    address: options.Address = None,
) -> None:
    """Run a grid of your own: domains, algorithms, c, tau and budgets offline, or learners online.

    A single online run prints what it learns as it goes.
    """
    with report_errors(out):
        limits.check_seed(seed)
        wanted = RunOptions(
            domain, scenario, algorithm or [], learner or [], runs, steps, c or [], tau or [], iterations or [],
            interval, minibatches, option or [], graph, steps_left,
        )  # fmt: skip
        prepare_jax(device_a_core=True)
        if wanted.is_single and rules != "both" and engine == "local":
            _watch(wanted, rules, seed, out)
            return
        from uamcts.lab.run import grid
        from uamcts.lab.run.engines import make_engine

        experiments = wanted.experiments()
        folder = out or grid.default_folder(experiments, rules, seed)
        with report_errors(folder):
            _print_results(grid.run_grid(experiments, rules, seed, folder, make_engine(engine, address), console))


def _watch(wanted: RunOptions, rules: str, seed: int, out: Path | None) -> None:
    """Runs a single online unit and prints what it learns."""
    from uamcts.lab.console.online_run import describe_second_half, watch_online

    print(describe_second_half(watch_online(wanted.unit(rules, seed), out, console)))


def _print_results(summary: dict[str, Any]) -> None:
    """Prints results and verdicts, and where the report is."""
    from uamcts.lab.console.terminal import result_lines, verdict_line

    print("\n".join(result_lines(summary["rows"], console.width)))
    verdicts = verdict_line(summary["claims"])
    if verdicts:
        print(verdicts)
    print(f"{summary['provenance']['command_seconds']:.0f} s; {summary['report']}")
