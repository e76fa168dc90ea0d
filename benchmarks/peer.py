"""What the measurements beside ns-gym share: its virtual environment, one core, and simulations a second."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEER = "ns_gym==1.0.12"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uamcts" / "ns_gym"


def one_core():
    """Everything on one core, as far as the system can be told."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def rate(search, simulations, seconds):
    """Simulations a second: the median of five stretches, after one search that is not counted."""
    search(0)
    rates = []
    for _ in range(5):
        start, searches = time.process_time(), 0
        while searches == 0 or time.process_time() - start < seconds / 5:
            searches += 1
            search(searches)
        rates.append(simulations * searches / (time.process_time() - start))
    return statistics.median(rates)


def peer_python(folder):
    """The Python of ns-gym's virtual environment, which is made if it is missing."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {PEER} into {folder} (once; some minutes)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
        subprocess.run([str(python), "-m", "pip", "install", "-q", PEER], check=True)  # noqa: S603
        (folder / "ready").touch()
    return python


def asked(python, script, *arguments):
    """What `script` prints, as JSON, when ns-gym's Python runs it."""
    command = [str(python), "-W", "ignore", script, *arguments]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    return json.loads(output.splitlines()[-1])
