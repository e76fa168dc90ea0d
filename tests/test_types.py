"""The types are right, as `make lint` says too. As a test it runs beside the others instead of before them."""

import subprocess
import sys
from pathlib import Path


def test_mypy_has_nothing_to_say():
    command, root = [sys.executable, "-m", "mypy"], Path(__file__).parents[1]
    if not (root / ".mypy_cache").exists():  # to write it takes longer than a first run can gain from it
        command.append("--cache-dir=/dev/null")
    found = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
