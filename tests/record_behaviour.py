"""Records what the present versions do, for `tests/test_versions.py`: `python tests/record_behaviour.py`.

Only what has a new version, or was never recorded, is recorded anew, unless `--all` is given.
"""

import json
import sys
from pathlib import Path

from behaviour import SUBJECTS, numbers_of, version_of

PATH = Path(__file__).with_name("behaviour.json")


def recorded():
    """The record: for each subject the version and its numbers."""
    return json.loads(PATH.read_text()) if PATH.exists() else {}


def main():
    before = {} if "--all" in sys.argv[1:] else recorded()
    record = {}
    for subject in SUBJECTS:
        known = before.get(subject, {})
        if known.get("version") == version_of(subject):
            record[subject] = known
            continue
        numbers = {name: [float(f"{value:.7g}") for value in values] for name, values in numbers_of(subject).items()}
        record[subject] = {"version": version_of(subject), "numbers": numbers}
        print(f"recorded {subject}, version {version_of(subject)}", flush=True)
    lines = [f" {json.dumps(subject)}: {json.dumps(entry)}" for subject, entry in record.items()]
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
