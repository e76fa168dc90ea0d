"""Where finished work is kept: a folder of units, each a Parquet file that says what it is and where it comes from."""

from __future__ import annotations

import errno
import fcntl
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from uamcts.lab.run.differences import differences, in_words
from uamcts.lab.run.tables import REMEDY, Episodes, as_parquet, from_parquet
from uamcts.runtime.atomic import remove_leftovers, write_whole

TAKEN = (errno.EWOULDBLOCK, errno.EAGAIN)
"""What a lock says that another process holds."""


class Work(Protocol):
    """What a store keeps the results of."""

    @property
    def name(self) -> str:
        """Of its file; another name for every other identity."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides its results, as JSON."""
        ...


class Store:
    """The folder of one experiment. Several processes may work on it at the same time."""

    def __init__(self, folder: Path, settings: dict[str, Any]):
        self.folder = folder
        self.units = folder / "units"
        try:
            self.units.mkdir(parents=True, exist_ok=True)
            self._claim_folder(json.loads(json.dumps(settings)))
            tempfile.TemporaryFile(dir=self.units).close()  # a folder that is there already may be read-only
        except (FileExistsError, NotADirectoryError):
            raise ValueError(f"out is {folder}, which is a file; give a folder") from None
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            raise ValueError(
                f"out is {folder}; it cannot be written to ({error.strerror}): give another folder"
            ) from None
        for place in (folder, self.units):
            remove_leftovers(place)

    def _claim_folder(self, settings: dict[str, Any]) -> None:
        """Writes down what the folder is for, or refuses if it is for something else."""
        path = self.folder / "settings.json"
        try:
            have = json.loads(path.read_text())
            if not isinstance(have, dict):
                raise ValueError
        except FileNotFoundError:
            write_whole(path, json.dumps(settings, indent=2).encode())
            return
        except (ValueError, RecursionError):
            raise ValueError(
                f"{path} is damaged or was not written by uamcts; give another folder with --out, or remove the file "
                "if the folder is of no use any more"
            ) from None
        if have != settings:
            raise ValueError(
                f"out is {self.folder}, which holds results of other settings: {in_words(differences(have, settings))}."
                " Repeat those settings to resume, or give another folder with --out"
            )

    def path(self, name: str) -> Path:
        return self.units / f"{name}.parquet"

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def write(self, unit: Work, episodes: Episodes, provenance: dict[str, Any]) -> None:
        """A finished unit, under its name only once it is whole on the disk."""
        write_whole(self.path(unit.name), as_parquet(episodes, {"unit": unit.identity, "provenance": provenance}))

    def read(self, unit: Work) -> tuple[Episodes, dict[str, Any]]:
        """A finished unit with its identity and provenance; a file that holds anything else is refused."""
        path = self.path(unit.name)
        episodes, about = from_parquet(path)
        check_identity(path, about, unit)
        return episodes, about

    def unused(self, names: Iterable[str]) -> list[str]:
        """The names of Parquet files among the units that are none of `names`: of other versions, or foreign."""
        return sorted({path.stem for path in self.units.glob("*.parquet")} - set(names))

    @contextmanager
    def working_on(self, name: str) -> Iterator[bool]:
        """Whether this process may work on a unit: nobody else does meanwhile. A lock ends with its process."""
        with open(self.units / f".{name}.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in TAKEN:
                    raise ValueError(
                        f"out is {self.folder}, where files cannot be locked ({error.strerror}), so that two processes "
                        "could spoil each other's work; give a folder on a local disk with --out"
                    ) from None
                yield False
                return
            yield True


def check_identity(path: Path, about: dict[str, Any], unit: Work) -> None:
    """Refuses a file about something else than `unit`, as a file that was renamed or copied here would be."""
    have, want = about.get("unit"), json.loads(json.dumps(unit.identity))
    if have != want:
        odd = in_words(differences(have, want)) if isinstance(have, dict) else "it does not say what it holds"
        raise ValueError(f"{path} holds another unit than its name says: {odd}; {REMEDY}")
