"""What the measurements next to ns-gym share: its virtual environment, and simulations per second."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import uamcts
from uamcts.bench.timing import time_calls

PEER = "ns_gym==1.0.12"
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uamcts" / "ns_gym"


def rate(search, simulations, seconds):
    """Simulations per second of process time: the median of five stretches, after one search that is not counted."""
    return simulations / time_calls(search, seconds, time.process_time).seconds


def peer_python(folder):
    """The Python of ns-gym's virtual environment, which is created if it is missing."""
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"installing {PEER} into {folder} (once; some minutes)", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)  # noqa: S603
        subprocess.run([str(python), "-m", "pip", "install", "-q", PEER], check=True)  # noqa: S603
        (folder / "ready").touch()
    return python


def run_with_peer(python, script, *arguments):
    """The JSON that `script` prints when ns-gym's Python runs it. It finds uamcts, but none of its dependencies."""
    command = [str(python), "-W", "ignore", script, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(uamcts.__file__).parents[1])}
    output = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout  # noqa: S603
    return json.loads(output.splitlines()[-1])
