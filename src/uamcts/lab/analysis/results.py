"""Reads a results folder and checks it before anything uses it.

`summary.json` holds these things. `rows`: statistics of one experiment, algorithm, learner, rule set, c and purpose
(`sweep`: every c on the same seeds, the best one marked; `fresh`: the chosen c on seeds of its own; `online`).
`claims`: what the paper says and whether it held. `differences`: planners compared seed by seed. `curves`: the online
scenario over its episodes. `provenance`: which command made it, where and with what. `differences`, `bandit.json` and
the pictures in `gifs/` may be missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from uamcts.lab.analysis.forms import (
    AGAINST,
    CASE,
    CLAIM,
    CURVE,
    DIFFERENCE,
    NUMBER,
    ROW,
    Entry,
    check_entries,
    check_field,
    check_lengths,
    is_numbers,
    read_json,
)
from uamcts.lab.analysis.selection import rule_sets_to_show
from uamcts.lab.analysis.statistics import curves, summarise
from uamcts.lab.analysis.summary import to_json
from uamcts.lab.run.tables import from_parquet, join_tables


@dataclass(frozen=True)
class Summary:
    """The content of a results folder."""

    rows: list[Entry]
    claims: list[Entry]
    curves: list[Entry]
    provenance: Entry
    bandit: Entry | None
    gifs: dict[str, Path]
    """Moving pictures, by `<experiment>_<algorithm>`."""
    differences: list[Entry]
    """Planners compared seed by seed."""

    def declarations(self) -> dict[str, Entry]:
        """The declarations of the experiments, by name, as far as the folder has them."""
        settings = self.provenance.get("settings")
        declared = settings.get("experiments") if isinstance(settings, dict) else None
        return {k: v for k, v in declared.items() if isinstance(v, dict)} if isinstance(declared, dict) else {}

    def experiments(self) -> list[tuple[str, str]]:
        """(experiment, domain) of every experiment without a family, in the order of the rows.

        Those with curves only come last.
        """
        declared = self.declarations()
        pairs = [(row["experiment"], row["domain"]) for row in self.rows]
        known = {experiment for experiment, _ in pairs}
        alone = [curve["experiment"] for curve in self.curves if curve["experiment"] not in known]
        pairs += [(name, str(declared.get(name, {}).get("domain", name))) for name in alone]
        return [pair for pair in dict.fromkeys(pairs) if not declared.get(pair[0], {}).get("family")]

    def rule_sets(self, experiment: str) -> list[str]:
        """The rule sets that an experiment is shown under."""
        return rule_sets_to_show([e for e in (*self.rows, *self.curves) if e["experiment"] == experiment])


def read(out: Path) -> Summary:
    """Reads a results folder. Without `summary.json`, its finished units are summarised.

    Raises:
        ValueError: If a file is missing or damaged.
    """
    out = Path(out)
    path = out / "summary.json"
    if not path.exists() and (out / "units").is_dir():
        return _summarise_finished_units(out)
    summary = read_json(path, needed=True)
    for name, kind in (("rows", list), ("claims", list), ("curves", list), ("provenance", dict)):
        check_field(path, summary, name, (kind,), "it")
    for name, form in (("rows", ROW), ("claims", CLAIM), ("curves", CURVE)):
        check_entries(path, name, summary[name], form)
    differences = summary.get("differences", [])
    check_field(path, {"differences": differences}, "differences", (list,), "it")
    check_entries(path, "differences", differences, DIFFERENCE)
    for number, curve in enumerate(summary["curves"]):
        if "real_steps" in curve:  # older summaries lack it
            check_field(path, curve, "real_steps", is_numbers, f"curves[{number}]")
        fields = ("episode", "mean", "std", *(["real_steps"] if "real_steps" in curve else []))
        check_lengths(path, curve, fields, f"curves[{number}]")
    found = Summary(
        summary["rows"], summary["claims"], summary["curves"], summary["provenance"], _bandit(out), _gifs(out),
        differences,
    )  # fmt: skip
    for name, declared in found.declarations().items():
        if declared.get("family"):
            for field, kinds in (("name", (str,)), ("title", (str,)), ("level", NUMBER), ("domain", (str,))):
                check_field(path, declared, field, kinds, f"experiment {name!r}")
    return found


def _bandit(out: Path) -> Entry | None:
    path = out / "bandit.json"
    bandit = read_json(path, needed=False)
    if bandit is None:
        return None
    for name, form in (("cases", CASE), ("against_delta", AGAINST)):
        check_field(path, bandit, name, (list,), "it")
        check_entries(path, name, bandit[name], form)
    for entry in (*bandit["cases"], *bandit["against_delta"]):
        x = "steps" if "title" in entry else "delta"
        for learner in ("ucb", "ua_ucb", "estimated"):
            if entry.get(learner):
                for field in ("mean", "low", "high"):
                    check_field(path, entry[learner], field, is_numbers, learner)
                check_lengths(path, {x: entry[x], **entry[learner]}, (x, "mean", "low", "high"), learner)
    return bandit


def _gifs(out: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(out.glob("gifs/*.gif"))}


def _summarise_finished_units(out: Path) -> Summary:
    """The summary of the finished units of an interrupted command, without claims."""
    parts = [from_parquet(path) for path in sorted((out / "units").glob("*.parquet"))]
    if not parts:
        raise ValueError(f"no unit in {out} is finished yet; rerun the command that made the folder to resume it")
    settings = read_json(out / "settings.json", needed=False)
    episodes = join_tables([episodes for episodes, _ in parts])
    about = {
        "interrupted": f"from {len(parts)} finished units; rerun the command to resume it",
        "settings": settings if isinstance(settings, dict) else {},
    }
    return Summary(to_json(summarise(episodes)), [], to_json(curves(episodes)), about, _bandit(out), _gifs(out), [])
