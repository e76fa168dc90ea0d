"""Tables of episodes as Parquet files with a checksum over every byte: what was changed since is never read."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
ABOUT, SEAL = b"uamcts", b"uamcts-checksum"
"""Keys of the file's metadata: what the episodes are, as JSON, and the checksum."""
MARK = b"sha256-of-this-file-with-zeros-here:"
BLANK = MARK + b"0" * 64
"""The checksum's place while it is computed. It is in the metadata, so the file stays an ordinary Parquet file."""

REMEDY = "remove it, and it will be computed again"


def as_parquet(episodes: Episodes, about: dict[str, Any]) -> bytes:
    """A table of episodes and what it is about as the bytes of a Parquet file."""
    table = pa.Table.from_arrays([pa.array(episodes[field.name], field.type) for field in SCHEMA], schema=SCHEMA)
    sink = pa.BufferOutputStream()
    # Arrow's own copy of the schema would hold the metadata once more, encoded, and blank for ever.
    with pq.ParquetWriter(sink, SCHEMA, compression="zstd", store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({ABOUT.decode(): json.dumps(about), SEAL.decode(): BLANK.decode()})
    content = sink.getvalue().to_pybytes()
    return content.replace(BLANK, MARK + hashlib.sha256(content).hexdigest().encode())


def from_parquet(path: Path) -> tuple[Episodes, dict[str, Any]]:
    """The inverse; a file that is damaged, or has no checksum, is refused with its name and what to do about it."""
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
    """Refuses content that is not what was written, before anything else looks at it."""
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
    """Several tables as one."""
    return {field.name: np.concatenate([part[field.name] for part in parts]) for field in SCHEMA}


def nothing() -> Episodes:
    """A table without episodes."""
    return {field.name: np.zeros(0, field.type.to_pandas_dtype()) for field in SCHEMA}


def constants(count: int, **values: Any) -> dict[str, np.ndarray]:
    """Columns that hold the same value in all rows."""
    kinds = {"c": np.float64, "tau": np.float64}
    return {name: np.full(count, value, kinds.get(name, object)) for name, value in values.items()}
