"""Writes what a results folder says: `episodes.parquet` and `summary.json`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from uamcts.lab.analysis.paired import differences
from uamcts.lab.analysis.statistics import curves, summarise
from uamcts.lab.analysis.verdicts import adjust, count_verdicts
from uamcts.lab.columns import Episodes
from uamcts.lab.run.tables import as_parquet
from uamcts.runtime.atomic import write_whole


def write_summary(folder: Path, episodes: Episodes, claims: list[dict], about: dict[str, Any]) -> dict[str, Any]:
    """Writes `episodes.parquet` and `summary.json` and returns the summary; `about` is its provenance."""
    summary = {
        "rows": summarise(episodes),
        "claims": adjust(claims),
        "verdicts": count_verdicts(claims),
        "differences": differences(episodes),
        "curves": curves(episodes),
        "provenance": about,
    }
    write_whole(folder / "episodes.parquet", as_parquet(episodes, about))
    write_whole(folder / "summary.json", json.dumps(to_json(summary), indent=1, allow_nan=False).encode())
    return summary


def to_json(value: object) -> Any:
    """The same value in JSON's own types; numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(name): to_json(part) for name, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [to_json(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
