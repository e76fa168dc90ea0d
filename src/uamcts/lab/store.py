"""Where finished work is kept: a folder of units, Parquet files with their provenance, whole or not there at all."""

from __future__ import annotations

import errno
import fcntl
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from uamcts.files import write_whole

Episodes = dict[str, np.ndarray]
SCHEMA = pa.schema(
    [
        ("experiment", pa.string()), ("domain", pa.string()), ("scenario", pa.string()), ("algorithm", pa.string()),
        ("learner", pa.string()), ("rules", pa.string()), ("c", pa.float64()), ("tau", pa.float64()),
        ("purpose", pa.string()), ("seed", pa.int64()), ("episode", pa.int32()), ("reward", pa.float32()),
        ("steps", pa.int32()), ("ended", pa.bool_()),
    ]
)  # fmt: skip
"""A row an episode."""
ABOUT = b"uamcts"


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

    def _claim_folder(self, settings: dict[str, Any]) -> None:
        """Writes down what the folder is for, or refuses if it is for something else."""
        path = self.folder / "settings.json"
        try:
            have = json.loads(path.read_text())
        except FileNotFoundError:
            write_whole(path, json.dumps(settings, indent=2).encode())
            return
        except ValueError:
            raise ValueError(f"{path} is damaged; remove it if the folder is of no use any more") from None
        if not isinstance(have, dict):
            raise ValueError(f"{path} is damaged; remove it if the folder is of no use any more")
        for name in settings | have:
            if settings.get(name) != have.get(name):
                raise ValueError(
                    f"out is {self.folder}, which holds results with {name} {have.get(name)!r}; here it is "
                    f"{settings.get(name)!r}: give another folder"
                )

    def path(self, name: str) -> Path:
        return self.units / f"{name}.parquet"

    def has(self, name: str) -> bool:
        return self.path(name).exists()

    def write(self, name: str, episodes: Episodes, about: dict[str, Any]) -> None:
        """A finished unit, under its name only once it is whole on the disk."""
        write_whole(self.path(name), as_parquet(episodes, about))

    def read(self, name: str) -> tuple[Episodes, dict[str, Any]]:
        """A finished unit and its provenance."""
        return from_parquet(self.path(name))

    def seconds(self) -> float:
        """How long all finished units took together, whenever that was."""
        heads = [pq.read_schema(path).metadata or {} for path in self.units.glob("*.parquet")]
        return sum(json.loads(head[ABOUT])["provenance"]["seconds"] for head in heads)

    @contextmanager
    def working_on(self, name: str) -> Iterator[bool]:
        """Whether this process may work on a unit: nobody else does meanwhile. A lock ends with its process."""
        with open(self.units / f".{name}.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
                return
            yield True


def as_parquet(episodes: Episodes, about: dict[str, Any]) -> bytes:
    """A table of episodes with its provenance as the bytes of a Parquet file."""
    arrays = [pa.array(episodes[field.name], field.type) for field in SCHEMA]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA.with_metadata({ABOUT: json.dumps(about).encode()}))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def from_parquet(path: Path) -> tuple[Episodes, dict[str, Any]]:
    """The inverse; a damaged file is named, with what to do about it."""
    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[ABOUT])
        episodes = {field.name: table.column(field.name).to_numpy() for field in SCHEMA}
    except FileNotFoundError:
        raise ValueError(f"there is no {path}") from None
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path} is damaged ({error}); remove it, and it will be computed again") from None
    return episodes, about


def joined(parts: list[Episodes]) -> Episodes:
    """Several tables as one."""
    return {field.name: np.concatenate([part[field.name] for part in parts]) for field in SCHEMA}


def repeated(count: int, **values: Any) -> dict[str, np.ndarray]:
    """Columns that hold the same value in all rows."""
    kinds = {"c": np.float64, "tau": np.float64}
    return {name: np.full(count, value, kinds.get(name, object)) for name, value in values.items()}


def commit() -> str | None:
    """The commit that this package is run from, if it lies in a repository."""
    for folder in Path(__file__).resolve().parents:
        head = folder / ".git" / "HEAD"
        if head.is_file():
            text = head.read_text().strip()
            reference = folder / ".git" / text.removeprefix("ref: ")
            return reference.read_text().strip() if text.startswith("ref: ") and reference.is_file() else text
    return None
