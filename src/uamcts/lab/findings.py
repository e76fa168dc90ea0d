"""What an output folder says, read and looked through before anything is made of it.

`summary.json` holds these things. `rows`: statistics of one experiment, algorithm, learner, rule set, c and purpose
(`sweep`: every c on the same seeds, the best one marked; `fresh`: the chosen c on seeds of its own; `online`).
`claims`: what the paper says and whether it held. `differences`: planners compared seed by seed. `curves`: the online
scenario over its episodes. `provenance`: which command made it, where and with what. `differences`, `bandit.json` and
the pictures in `gifs/` may be missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uamcts.paper import ALGORITHMS, RULES

Entry = dict[str, Any]

NUMBER = (int, float, type(None))
ROW = {
    **dict.fromkeys(("experiment", "domain", "scenario", "algorithm", "learner", "rules", "purpose"), (str,)),
    **dict.fromkeys(("c", "tau", "runs", "episodes", "mean", "std", "iqm", "steps", "goal_share"), NUMBER),
    **dict.fromkeys(("ci95", "iqm_ci95"), (list, type(None))),
    "best": (bool, type(None)),
}
CLAIM = {
    **dict.fromkeys(("id", "experiment", "rules", "text", "verdict", "paper"), (str,)),
    "numbers": (dict,),
    "interval": (list, type(None)),
    "runs": NUMBER,
}
DIFFERENCE = {
    **dict.fromkeys(("experiment", "first_algorithm", "first_rules", "second_algorithm", "second_rules"), (str,)),
    **dict.fromkeys(("first_tau", "second_tau", "mean", "p", "p_holm"), (int, float)),
    "ci95": (list,),
}
CURVE = {
    **dict.fromkeys(("experiment", "algorithm", "learner", "rules", "quantity"), (str,)),
    **dict.fromkeys(("episode", "mean", "std"), (list,)),
    "c": NUMBER,
}
CASE = {
    **dict.fromkeys(("id", "title", "text"), (str,)),
    **dict.fromkeys(("observed", "real", "delta", "steps", "ucb_bound", "ua_ucb_bound"), (list,)),
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    "estimated": (dict, type(None)),
    **dict.fromkeys(("c", "runs"), NUMBER),
}
AGAINST = {
    "family": (str,),
    "delta": (list,),
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    **dict.fromkeys(("c", "threshold", "runs", "steps"), NUMBER),
}


@dataclass(frozen=True)
class Findings:
    """An output folder in memory."""

    rows: list[Entry]
    claims: list[Entry]
    curves: list[Entry]
    provenance: Entry
    bandit: Entry | None
    gifs: dict[str, Path]
    """The moving pictures, by `<experiment>_<algorithm>`."""
    differences: list[Entry]
    """Planners compared seed by seed, where they were."""

    def declared(self) -> dict[str, Entry]:
        """The declarations of the experiments, by name, as far as they were kept."""
        settings = self.provenance.get("settings")
        declared = settings.get("experiments") if isinstance(settings, dict) else None
        return {k: v for k, v in declared.items() if isinstance(v, dict)} if isinstance(declared, dict) else {}

    def experiments(self) -> list[tuple[str, str]]:
        """(experiment, domain) of every experiment without a family, in the order of the rows.

        Those with curves only come last.
        """
        pairs = [(row["experiment"], row["domain"]) for row in self.rows]
        known = {experiment for experiment, _ in pairs}
        pairs += [
            (curve["experiment"], curve["experiment"]) for curve in self.curves if curve["experiment"] not in known
        ]
        declared = self.declared()
        return [pair for pair in dict.fromkeys(pairs) if not declared.get(pair[0], {}).get("family")]

    def rule_sets(self, experiment: str) -> list[str]:
        """The rule sets an experiment was run under; the paper's, if there are any (see `under`)."""
        return shown_rule_sets([e for e in (*self.rows, *self.curves) if e["experiment"] == experiment])


def shown_rule_sets(entries: Iterable[Entry]) -> list[str]:
    """The rule sets to show entries by: the paper's among theirs, or where there are none, all."""
    found = list(dict.fromkeys(entry["rules"] for entry in entries))
    return [rules for rules in found if rules in RULES] or found


def under(entries: Iterable[Entry], rules: str) -> list[Entry]:
    """What to show under a rule set: its own entries, and those of algorithms with rules of their own, like trust.

    Such an algorithm is run once, whichever of the paper's rules the others follow, and is compared with all of them.
    """
    return [entry for entry in entries if entry["rules"] == rules or entry["rules"] not in RULES]


def read(out: Path) -> Findings:
    """Reads an output folder; what is not as it should be is refused with the file's name and the remedy."""
    out = Path(out)
    summary = _json(out / "summary.json", needed=True)
    path = out / "summary.json"
    for name, kind in (("rows", list), ("claims", list), ("curves", list), ("provenance", dict)):
        _need(path, summary, name, (kind,), "it")
    for name, form in (("rows", ROW), ("claims", CLAIM), ("curves", CURVE)):
        _look_through(path, name, summary[name], form)
    differences = summary.get("differences", [])
    _need(path, {"differences": differences}, "differences", (list,), "it")
    _look_through(path, "differences", differences, DIFFERENCE)
    bandit = _json(out / "bandit.json", needed=False)
    if bandit is not None:
        for name, form in (("cases", CASE), ("against_delta", AGAINST)):
            _need(out / "bandit.json", bandit, name, (list,), "it")
            _look_through(out / "bandit.json", name, bandit[name], form)
        for entry in (*bandit["cases"], *bandit["against_delta"]):
            for learner in ("ucb", "ua_ucb"):
                for field in ("mean", "low", "high"):
                    _need(out / "bandit.json", entry[learner], field, (list,), learner)
    gifs = {path.stem: path for path in sorted(out.glob("gifs/*.gif"))}
    return Findings(
        summary["rows"], summary["claims"], summary["curves"], summary["provenance"], bandit, gifs, differences
    )


def _json(path: Path, needed: bool) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not needed:
            return None
        raise ValueError(
            f"there is no {path}; name a folder that `uamcts reproduce` or `uamcts run` wrote, or run one of them first"
        ) from None
    except (ValueError, OSError) as error:
        raise _damaged(path, str(error)) from None


def _look_through(path: Path, name: str, entries: list, form: dict[str, tuple]) -> None:
    for number, entry in enumerate(entries):
        for field, kinds in form.items():
            _need(path, entry, field, kinds, f"{name}[{number}]")


def _need(path: Path, entry: Any, field: str, kinds: tuple, place: str) -> None:
    if not isinstance(entry, dict) or field not in entry:
        raise _damaged(path, f"{place} has no {field!r}")
    if not isinstance(entry[field], kinds):
        raise _damaged(path, f"{field!r} of {place} is {entry[field]!r}")


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(
        f"{path} is damaged or was not written by uamcts: {what}; run the command that made the folder again"
    )


def known(value: Any) -> bool:
    """Whether this is a number and not the place of one."""
    return isinstance(value, int | float) and math.isfinite(value)


def best_rows(rows: Iterable[Entry], purpose: str = "sweep") -> dict[str, Entry]:
    """The offline row to show for each algorithm, in the paper's order: its best c.

    Where nothing was marked as the best (one c only, a grid of one's own), it is the row with the highest mean.
    """
    chosen: dict[str, Entry] = {}
    for row in rows:
        if row["scenario"] == "offline" and row["purpose"] == purpose and known(row["mean"]):
            held = chosen.get(row["algorithm"])
            if held is None or (bool(row["best"]), row["mean"]) > (bool(held["best"]), held["mean"]):
                chosen[row["algorithm"]] = row
    order = [*ALGORITHMS, *sorted(chosen.keys() - ALGORITHMS.keys())]
    return {name: chosen[name] for name in order if name in chosen}


def shown_rows(rows: Iterable[Entry]) -> dict[str, Entry]:
    """`best_rows` of the sweep, or of the fresh seeds where there was no sweep."""
    rows = list(rows)
    return best_rows(rows) or best_rows(rows, "fresh")
