"""Stores finished units in a folder, each as a Parquet file with its identity and provenance."""

from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from uamcts.lab.run.differences import differences, in_words
from uamcts.lab.run.tables import REMEDY, Episodes, as_parquet, from_parquet
from uamcts.runtime.atomic import remove_leftovers, write_whole
from uamcts.runtime.locks import try_lock


class Work(Protocol):
    """What a store holds the results of."""

    @property
    def name(self) -> str:
        """The name of its file; it differs for every identity."""
        ...

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that decides its results, as JSON values."""
        ...


class Store:
    """A folder of results. Several processes may work on it at the same time.

    Args:
        folder: The folder; it is created if it does not exist.
        settings: The settings that its results belong to.

    Raises:
        ValueError: If the folder cannot be used, or belongs to other settings.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]):
        self.folder = folder
        self.units = folder / "units"
        try:
            self.units.mkdir(parents=True, exist_ok=True)
            self._claim_folder(json.loads(json.dumps(settings)))
            tempfile.TemporaryFile(dir=self.units).close()  # an existing folder may be read-only
        except (FileExistsError, NotADirectoryError):
            raise ValueError(f"out is {folder}, which is a file; give a folder") from None
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
                raise
            raise ValueError(
                f"out is {folder}; it cannot be written to ({error.strerror}): give another folder"
            ) from None
        for place in (folder, self.units):
            remove_leftovers(place)

    def _claim_folder(self, settings: dict[str, Any]) -> None:
        """Records the settings of a new folder, or raises a ValueError if the folder belongs to others."""
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
                "if you no longer need the folder"
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
        """Writes a finished unit; the file appears under its name only when it is complete."""
        write_whole(self.path(unit.name), as_parquet(episodes, {"unit": unit.identity, "provenance": provenance}))

    def read(self, unit: Work) -> tuple[Episodes, dict[str, Any]]:
        """A finished unit with its identity and provenance.

        Raises:
            ValueError: If the file is missing, damaged, or holds another unit.
        """
        path = self.path(unit.name)
        episodes, about = from_parquet(path)
        check_identity(path, about, unit)
        return episodes, about

    def other_units(self, names: Iterable[str]) -> list[str]:
        """The names of stored units that are not among `names`: of other versions, or from elsewhere."""
        return sorted({path.stem for path in self.units.glob("*.parquet")} - set(names))

    @contextmanager
    def working_on(self, name: str) -> Iterator[bool]:
        """Locks a unit and yields whether this process holds the lock. The lock ends with its process."""
        with open(self.units / f".{name}.lock", "a") as file:
            try:
                mine = try_lock(file)
            except OSError as error:
                raise ValueError(
                    f"out is {self.folder}, where files cannot be locked ({error.strerror}), so that two processes "
                    "could spoil each other's work; give a folder on a local disk with --out"
                ) from None
            yield mine


def check_identity(path: Path, about: dict[str, Any], unit: Work) -> None:
    """Raises a ValueError if a file holds another unit, for example because it was renamed or copied."""
    have, want = about.get("unit"), json.loads(json.dumps(unit.identity))
    if have != want:
        odd = in_words(differences(have, want)) if isinstance(have, dict) else "it does not say what it holds"
        raise ValueError(f"{path} does not hold the unit that its name says: {odd}; {REMEDY}")
