"""Options and arguments of the commands, with their help texts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from uamcts import names

ALGORITHM_LIST = ", ".join(f"`{name}`" for name in names.ALGORITHM_NAMES)


def _complete(choices: tuple[str, ...]) -> Callable[[str], list[str]]:
    """Completes a word in a shell from some choices."""
    return lambda incomplete: [choice for choice in choices if choice.startswith(incomplete)]


_DOMAIN: dict[str, Any] = {"autocompletion": _complete(names.DOMAIN_NAMES)}
_ALGORITHM: dict[str, Any] = {"autocompletion": _complete(names.ALGORITHM_NAMES)}

DomainName = Annotated[str, typer.Argument(metavar="DOMAIN", help="A domain; see `uamcts domains`.", **_DOMAIN)]
DomainNames = Annotated[
    list[str], typer.Argument(metavar="DOMAIN...", help="One or several domains; see `uamcts domains`.", **_DOMAIN)
]
PlayAlgorithms = Annotated[
    list[str],
    typer.Option(help=f"{ALGORITHM_LIST} or `random`. Repeat it to play several side by side.", **_ALGORITHM),
]
Algorithms = Annotated[list[str] | None, typer.Option(help=f"{ALGORITHM_LIST}. Repeat it for several.", **_ALGORITHM)]
Seed = Annotated[int, typer.Option(help="The seed of all random numbers.")]

# Where results go, and who computes them
Out = Annotated[Path, typer.Option(help="The folder for results; rerun the same command to resume.")]
OptionalOut = Annotated[Path | None, typer.Option(help="The folder for results; rerun the same command to resume.")]
EngineName = Annotated[str, typer.Option(help="`local`: all devices of this machine. `ray`: an existing cluster.")]
Address = Annotated[str | None, typer.Option(help="The address of the Ray cluster. Default: the one Ray finds.")]

# What to run
Experiments = Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT]...", help="Default: all of them.")]
Scenario = Annotated[str, typer.Option(help="`offline`, `online` or `both`.")]
RunScenario = Annotated[str, typer.Option(help="`online`: U is learned during the run. `offline`: U is known.")]
Rules = Annotated[str, typer.Option(help="`released` (authors' program), `pseudocode` (as printed) or `both`.")]
PlayRules = Annotated[str, typer.Option(help="`released` (authors' program) or `pseudocode` (as printed).")]
Learners = Annotated[
    list[str] | None,
    typer.Option(
        help="online: an estimator (docs/concepts/estimators.md), true, none, a transition_... or a baseline "
        "(docs/results/baselines.md), optionally followed by +memory, +penalty=WEIGHT or +bonus=WEIGHT. Repeat it for "
        "several. "
        "Default: the paper's; with trust two_part+memory."
    ),
]
Runs = Annotated[int | None, typer.Option(help="Number of runs. Default: the paper's.", min=1)]
Steps = Annotated[int | None, typer.Option(help="online: real steps of each run.", min=1)]
Exploration = Annotated[
    list[float] | None, typer.Option(help="Exploration constant. Repeat it for several. Default: the paper's.")
]
Taus = Annotated[
    list[float] | None, typer.Option(help="offline: uncertainty factor. Repeat it for several. Default: 0.1.")
]
Iterations = Annotated[
    list[int] | None, typer.Option(help="offline: iterations of a search. Repeat it for several. Default: the paper's.")
]
Graph = Annotated[
    bool, typer.Option("--graph", help="Search on a graph, in which equal states share a node: trust, mcts, mcts-true.")
]
StepsLeft = Annotated[bool, typer.Option("--steps-left", help="Let searches know the time limit of the episode.")]
Interval = Annotated[int | None, typer.Option(help="online: real steps between two rounds of training.", min=1)]
Minibatches = Annotated[int | None, typer.Option(help="online: minibatches of a round of training.", min=1)]
DomainOptions = Annotated[
    list[str] | None,
    typer.Option(help="An option of the domain, NAME=VALUE, like severity=0.5 or broken=[2,4]. Repeat it for several."),
]
