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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uamcts import names
from uamcts.lab.console.limits import brief
from uamcts.presets import RULES

Entry = dict[str, Any]

Kind = tuple | Callable[[Any], bool]
"""The types that a value may have, or a check of it."""
NUMBER = (int, float, type(None))


def _is_interval(value: Any) -> bool:
    return value is None or (isinstance(value, list) and len(value) == 2 and all(isinstance(x, NUMBER) for x in value))


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(part, NUMBER) for part in value)


ROW: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "domain", "scenario", "algorithm", "learner", "rules", "purpose"), (str,)),
    **dict.fromkeys(("c", "tau", "runs", "episodes", "mean", "std", "iqm", "steps", "goal_share"), NUMBER),
    **dict.fromkeys(("ci95", "iqm_ci95"), _is_interval),
    "best": (bool, type(None)),
}
CLAIM: dict[str, Kind] = {
    **dict.fromkeys(("id", "experiment", "rules", "text", "verdict", "paper"), (str,)),
    "numbers": (dict,),
    "interval": _is_interval,
    "runs": NUMBER,
}
DIFFERENCE: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "first_algorithm", "first_rules", "second_algorithm", "second_rules"), (str,)),
    **dict.fromkeys(("first_tau", "second_tau", "mean", "p", "p_holm"), (int, float)),
    "ci95": _is_interval,
}
CURVE: dict[str, Kind] = {
    **dict.fromkeys(("experiment", "algorithm", "learner", "rules", "quantity"), (str,)),
    **dict.fromkeys(("episode", "mean", "std"), _is_numbers),
    "c": NUMBER,
}
CASE: dict[str, Kind] = {
    **dict.fromkeys(("id", "title", "text"), (str,)),
    **dict.fromkeys(("observed", "real", "delta", "steps", "ucb_bound", "ua_ucb_bound"), _is_numbers),
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    "estimated": (dict, type(None)),
    **dict.fromkeys(("c", "runs"), NUMBER),
}
AGAINST: dict[str, Kind] = {
    "family": (str,),
    "delta": _is_numbers,
    **dict.fromkeys(("ucb", "ua_ucb"), (dict,)),
    **dict.fromkeys(("c", "threshold", "runs", "steps"), NUMBER),
}


@dataclass(frozen=True)
class Summary:
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
        declared = self.declared()
        pairs = [(row["experiment"], row["domain"]) for row in self.rows]
        known = {experiment for experiment, _ in pairs}
        alone = [curve["experiment"] for curve in self.curves if curve["experiment"] not in known]
        pairs += [(name, str(declared.get(name, {}).get("domain", name))) for name in alone]
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


def read(out: Path) -> Summary:
    """Reads an output folder; what is not as it should be is refused with the file's name and the remedy."""
    out = Path(out)
    path = out / "summary.json"
    if not path.exists() and (out / "units").is_dir():
        return _interrupted(out)
    summary = _json(path, needed=True)
    for name, kind in (("rows", list), ("claims", list), ("curves", list), ("provenance", dict)):
        _need(path, summary, name, (kind,), "it")
    for name, form in (("rows", ROW), ("claims", CLAIM), ("curves", CURVE)):
        _check_entries(path, name, summary[name], form)
    differences = summary.get("differences", [])
    _need(path, {"differences": differences}, "differences", (list,), "it")
    _check_entries(path, "differences", differences, DIFFERENCE)
    for number, curve in enumerate(summary["curves"]):
        _check_lengths(path, curve, ("episode", "mean", "std"), f"curves[{number}]")
    rows, claims, curves, provenance = (summary[name] for name in ("rows", "claims", "curves", "provenance"))
    found = Summary(rows, claims, curves, provenance, _bandit(out), _gifs(out), differences)
    for name, declared in found.declared().items():
        if declared.get("family"):
            for field, kinds in (("name", (str,)), ("title", (str,)), ("level", NUMBER), ("domain", (str,))):
                _need(path, declared, field, kinds, f"experiment {name!r}")
    return found


def _bandit(out: Path) -> Entry | None:
    path = out / "bandit.json"
    bandit = _json(path, needed=False)
    if bandit is None:
        return None
    for name, form in (("cases", CASE), ("against_delta", AGAINST)):
        _need(path, bandit, name, (list,), "it")
        _check_entries(path, name, bandit[name], form)
    for entry in (*bandit["cases"], *bandit["against_delta"]):
        x = "steps" if "title" in entry else "delta"
        for learner in ("ucb", "ua_ucb", "estimated"):
            if entry.get(learner):
                for field in ("mean", "low", "high"):
                    _need(path, entry[learner], field, _is_numbers, learner)
                _check_lengths(path, {x: entry[x], **entry[learner]}, (x, "mean", "low", "high"), learner)
    return bandit


def _gifs(out: Path) -> dict[str, Path]:
    return {path.stem: path for path in sorted(out.glob("gifs/*.gif"))}


def _interrupted(out: Path) -> Summary:
    """What the finished units of a command that has not come to its end say; claims wait for all of them."""
    from uamcts.lab.analysis.statistics import curves, summarise
    from uamcts.lab.run.runner import plain
    from uamcts.lab.run.tables import from_parquet, join_tables

    parts = [from_parquet(path) for path in sorted((out / "units").glob("*.parquet"))]
    if not parts:
        raise ValueError(f"no unit in {out} is finished yet; rerun the command that made the folder to resume it")
    settings = _json(out / "settings.json", needed=False)
    episodes = join_tables([episodes for episodes, _ in parts])
    about = {
        "interrupted": f"from {len(parts)} finished units; rerun the command to resume it",
        "settings": settings if isinstance(settings, dict) else {},
    }
    return Summary(plain(summarise(episodes)), [], plain(curves(episodes)), about, _bandit(out), _gifs(out), [])


def _json(path: Path, needed: bool) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if not needed:
            return None
        raise ValueError(
            f"there is no {path}; name a folder that `uamcts reproduce` or `uamcts run` wrote, or run one of them first"
        ) from None
    except (ValueError, OSError, RecursionError) as error:
        raise _damaged(path, str(error)) from None


def _check_entries(path: Path, name: str, entries: list, form: dict[str, Kind]) -> None:
    for number, entry in enumerate(entries):
        for field, kind in form.items():
            _need(path, entry, field, kind, f"{name}[{number}]")


def _check_lengths(path: Path, entry: Entry, fields: tuple[str, ...], place: str) -> None:
    if len({len(entry[field]) for field in fields}) > 1:
        raise _damaged(path, f"{', '.join(fields)} of {place} are not equally long")


def _need(path: Path, entry: Any, field: str, kind: Kind, place: str) -> None:
    if not isinstance(entry, dict) or field not in entry:
        raise _damaged(path, f"{place} has no {field!r}")
    value = entry[field]
    if not (isinstance(value, kind) if isinstance(kind, tuple) else kind(value)):
        raise _damaged(path, f"{field!r} of {place} is {brief(repr(value))}")


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(
        f"{path} is damaged or was not written by uamcts: {what}; run the command that made the folder again"
    )


def known(value: Any) -> bool:
    """Whether this is a number and not the place of one."""
    return isinstance(value, int | float) and math.isfinite(value)


ORDER = [algorithm.key for algorithm in names.TABLE]


def best_rows(rows: Iterable[Entry], purpose: str = "sweep") -> dict[str, Entry]:
    """The offline row to show for each algorithm, in the order of figures: its best c.

    Where nothing was marked as the best (one c only, a grid of one's own), it is the row with the highest mean.
    """
    chosen = {algorithm: row for (algorithm, _), row in _best(rows, purpose).items()}
    return {key: chosen[key] for key in sorted(chosen, key=_place)}


@dataclass(frozen=True)
class Shown:
    """An algorithm's offline result, at one tau, as figures and tables show it."""

    algorithm: str
    tau: float | None
    """Where results at several are shown."""
    row: Entry
    """On fresh seeds where there are any; else the sweep's best, or the only one."""
    sweep: Entry | None
    """The sweep's best, which chose the c of a `row` on fresh seeds: a maximum, and so too high on average."""

    @property
    def title(self) -> str:
        return names.title(self.algorithm) + ("" if self.tau is None else f", tau {self.tau:g}")


def shown(rows: Iterable[Entry]) -> list[Shown]:
    """The offline results to show, of one experiment and rule set: one an algorithm, and a tau if it reads tau."""
    rows = once_a_tau(rows)
    sweep, fresh = _best(rows, "sweep", by_tau=True), _best(rows, "fresh", by_tau=True)
    places = sorted({**sweep, **fresh}, key=lambda place: (_place(place[0]), place[1]))
    several = {algorithm for algorithm, tau in places if len({t for a, t in places if a == algorithm}) > 1}
    return [
        Shown(
            algorithm,
            tau if algorithm in several else None,
            fresh.get((algorithm, tau)) or sweep[algorithm, tau],
            sweep.get((algorithm, tau)) if (algorithm, tau) in fresh else None,
        )
        for algorithm, tau in places
    ]


def once_a_tau(rows: Iterable[Entry]) -> list[Entry]:
    """The rows, those of algorithms that do not read tau at one tau only: at the others they are the same."""
    rows = list(rows)
    first: dict[str, Any] = {}
    for row in rows:
        first.setdefault(row["algorithm"], row["tau"])
    return [row for row in rows if row["algorithm"] not in names.WITHOUT_TAU or row["tau"] == first[row["algorithm"]]]


def shown_tau(row: Entry) -> float:
    """The tau that tells an offline row from others of its algorithm: 0 where the algorithm does not read it."""
    return row["tau"] if row["algorithm"] not in names.WITHOUT_TAU and known(row["tau"]) else 0.0


def _best(rows: Iterable[Entry], purpose: str, by_tau: bool = False) -> dict[tuple[str, float], Entry]:
    """The best offline row of every algorithm, or of every algorithm and tau."""
    chosen: dict[tuple[str, float], Entry] = {}
    for row in rows:
        if row["scenario"] == "offline" and row["purpose"] == purpose and known(row["mean"]):
            place = (row["algorithm"], shown_tau(row) if by_tau else 0.0)
            held = chosen.get(place)
            if held is None or (bool(row["best"]), row["mean"]) > (bool(held["best"]), held["mean"]):
                chosen[place] = row
    return chosen


def _place(algorithm: str) -> tuple[int, str]:
    return (ORDER.index(algorithm) if algorithm in ORDER else len(ORDER), algorithm)
