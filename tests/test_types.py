"""The types are right, as `make lint` says too. As a test it runs beside the others instead of before them."""

import subprocess
import sys
from pathlib import Path


def test_mypy_has_nothing_to_say():
    command = [sys.executable, "-m", "mypy"]
    found = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
