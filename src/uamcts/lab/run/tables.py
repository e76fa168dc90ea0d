"""Tables of episodes as Parquet files with a checksum over every byte, so that a damaged file is never read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from uamcts.lab.columns import COLUMNS, Episodes

SCHEMA = pa.schema(
    [(name, pa.string() if kind is str else pa.from_numpy_dtype(np.dtype(kind))) for name, kind in COLUMNS.items()]
)
ABOUT, SEAL = b"uamcts", b"uamcts-checksum"
"""Keys of the file's metadata: what the episodes are, as JSON, and the checksum."""
MARK = b"sha256-of-this-file-with-zeros-here:"
BLANK = MARK + b"0" * 64
"""Holds the checksum's place while it is computed. It is in the metadata, so any Parquet reader reads the file."""

REMEDY = "remove it to have it computed again"


def as_parquet(episodes: Episodes, about: dict[str, Any]) -> bytes:
    """The bytes of a Parquet file with a table of episodes and, as JSON, what the table is about."""
    table = pa.Table.from_arrays([pa.array(episodes[field.name], field.type) for field in SCHEMA], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    # Arrow's own copy of the schema would hold the metadata once more, encoded, and blank for ever.
    with pq.ParquetWriter(sink, SCHEMA, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ABOUT.decode(): json.dumps(about), SEAL.decode(): BLANK.decode()})
    content = sink.getvalue().to_pybytes()
    return content.replace(BLANK, MARK + hashlib.sha256(content).hexdigest().encode())


def from_parquet(path: Path) -> tuple[Episodes, dict[str, Any]]:
    """Reads what `as_parquet` wrote.

    Raises:
        ValueError: If the file is missing, damaged, or has no checksum.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"there is no {path}") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror})") from None
    _check(path, content)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        about = json.loads(file.metadata.metadata[ABOUT])
        table = file.read()
        episodes = {field.name: table.column(field.name).to_numpy() for field in SCHEMA}
    except (pa.ArrowException, KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path} is not a table of episodes ({error}); {REMEDY}") from None
    return episodes, about


def _check(path: Path, content: bytes) -> None:
    """Raises a ValueError if the content is not what was written, before anything else reads it."""
    place = content.rfind(MARK) + len(MARK)
    if place < len(MARK):
        raise ValueError(
            f"{path} is damaged or was not written by this version of uamcts (it has no checksum); {REMEDY}"
        )
    written = content[place : place + 64]
    blank = content[:place] + b"0" * 64 + content[place + 64 :]
    if hashlib.sha256(blank).hexdigest().encode() != written:
        raise ValueError(f"{path} is damaged (its checksum is wrong); {REMEDY}")


def join_tables(parts: list[Episodes]) -> Episodes:
    """Concatenates tables."""
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


def empty_table() -> Episodes:
    """A table without episodes."""
    return {name: np.zeros(0, object if kind is str else kind) for name, kind in COLUMNS.items()}


def constants(count: int, **values: object) -> dict[str, np.ndarray]:
    """Columns that hold the same value in each of `count` rows."""
    return {
        name: np.full(count, value, object if COLUMNS[name] is str else COLUMNS[name]) for name, value in values.items()
    }
