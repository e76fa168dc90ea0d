"""Records what the present versions do, for `tests/test_versions.py`: `python tests/record_behaviour.py`.

Only what has a new version, or was never recorded, is recorded anew, unless `--all` is given. The
quickly compiled programs of `make test` round differently: where their numbers are others, they are recorded too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from behaviour import SUBJECTS, numbers_of, version_of

from quick_flags import QUICK

PATH = Path(__file__).with_name("behaviour.json")


def recorded():
    """The record: for each subject the version and its numbers."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def numbers_compiled(subject, xla_flags):
    """The numbers from a process of its own, which compiles with these flags."""
    program = "import json, sys; from behaviour import numbers_of; print(json.dumps(numbers_of(sys.argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", program, subject],
        cwd=Path(__file__).parent,
        env={**os.environ, "XLA_FLAGS": xla_flags},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"the numbers of {subject} could not be computed: {done.stderr}")
    return json.loads(done.stdout)


def differences(found, record):
    """The names of the numbers that are not those recorded."""
    return [
        name
        for name, values in record.items()
        if len(values) != len(found[name]) or not np.allclose(found[name], values, 2e-3, 1e-4, equal_nan=True)
    ]


def rounded(numbers):
    return {name: [float(f"{value:.7g}") for value in values] for name, values in numbers.items()}


def record_subject(subject):
    """The entry of a subject: its version, its numbers, and those of quickly compiled programs if they differ."""
    entry = {"version": version_of(subject), "numbers": rounded(numbers_of(subject))}
    quick = numbers_compiled(subject, QUICK)
    return entry | ({"quick": rounded(quick)} if differences(quick, entry["numbers"]) else {})


def main():
    before = {} if "--all" in sys.argv[1:] else recorded()
    record = {}
    for subject in SUBJECTS:
        known = before.get(subject, {})
        if known.get("version") == version_of(subject):
            record[subject] = known
            continue
        record[subject] = record_subject(subject)
        print(f"recorded {subject}, version {version_of(subject)}", flush=True)
    lines = [f" {json.dumps(subject)}: {json.dumps(entry)}" for subject, entry in record.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
