"""Saved agents and runs: arrays and JSON in one archive. Written atomically; nothing is ever unpickled."""

from __future__ import annotations

import functools
import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from uamcts.arguments import gigabytes
from uamcts.runtime.atomic import write_whole
from uamcts.runtime.lazy_jax import is_array, jax, jnp
from uamcts.types import PyTree

FilePath: TypeAlias = str | os.PathLike[str]
FORMAT = 10
HEAD = "uamcts.json"
GZIP = b"\x1f\x8b"
"""What traces of the inspector begin with."""
LARGEST = 2**30
"""Bytes that are read from a file at most, packed or unpacked: a small file may unpack to anything."""


def save(path: FilePath, tree: PyTree, kind: str, about: dict[str, Any]) -> None:
    """Writes the arrays of `tree`, with the `kind` of file and what it is `about` (JSON)."""
    path = Path(path)
    head = {"format": FORMAT, "kind": kind, "about": about}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(_entry(HEAD), json.dumps(head, indent=2))
        for name, leaf in _named_leaves(tree):
            with archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(leaf), allow_pickle=False)
    write_whole(path, buffer.getvalue())


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry without the time of day: the same content is the same file, byte for byte."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load(path: FilePath, like: PyTree, kind: str, about: dict[str, Any]) -> PyTree:
    """Reads a tree that `save` wrote: of the same `kind`, about the same, and with the structure of `like`.

    Only the lengths of buffers may differ. Everything is checked before anything is returned.
    """
    return fill(path, like, read(path, kind, about))


def read(path: FilePath, kind: str, about: dict[str, Any]) -> dict[str, np.ndarray]:
    """Reads the arrays of a file of this `kind` and about the same, by their places in the tree."""
    path = Path(path)
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= LARGEST else b""
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    _fits(path, "has", size)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            declared = sum(entry.file_size for entry in entries)
            _check_entries(entries)
            if declared <= LARGEST:
                head = json.loads(archive.read(HEAD))
                arrays = {
                    name.removesuffix(".npy"): _array(archive, name) for name in archive.namelist() if name != HEAD
                }
    except Exception as error:  # whatever a parser raises, it is the file's fault
        is_trace = "; it looks like a trace of agent.record, which `uamcts inspect` shows" * content.startswith(GZIP)
        raise ValueError(f"{path} is damaged or was not written by uamcts: {error}{is_trace}") from None
    _fits(path, "unpacks to", declared)
    if not isinstance(head, dict) or not isinstance(head.get("about", {}), dict):
        raise ValueError(f"{path} is damaged or was not written by uamcts: {HEAD} does not hold what it should")
    _same(path, "kind", head.get("kind"), kind)
    _same(path, "format", head.get("format"), FORMAT)
    written = head.get("about", {})
    for name in about | written:
        _same(path, name, written.get(name), json.loads(json.dumps(about.get(name))))
    return arrays


def _fits(path: Path, verb: str, size: int) -> None:
    if size > LARGEST:
        raise ValueError(
            f"{path} {verb} {gigabytes(size)}, and at most {gigabytes(LARGEST)} are read; if it is really yours, set "
            "uamcts.agent.checkpoint.LARGEST"
        )


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise ValueError("a name is in it twice")
    odd = [name for name in names if name != HEAD and not name.endswith(".npy")]
    if odd:
        raise ValueError(f"{odd[0]} is no array")
    if HEAD not in names:
        raise ValueError(f"there is no {HEAD} in it")


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """An array whose header promises no more than the archive says that it holds."""
    held = archive.getinfo(name).file_size
    with archive.open(name) as file:
        version = np.lib.format.read_magic(file)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, is_fortran, dtype = reader(file)
        promised = math.prod(shape) * dtype.itemsize
        if dtype.kind not in "biuf" or promised != held - file.tell():
            raise ValueError(f"{name} promises {dtype}{list(shape)} in {held} bytes")
        content = file.read(promised + 1)  # reading to the end checks the sum; no more than this is unpacked
    if len(content) != promised:
        raise ValueError(f"{name} holds {len(content)} bytes of {promised}")
    array: np.ndarray = np.ndarray(shape, dtype, content, order="F" if is_fortran else "C")
    return array.copy(order="K")  # bytes cannot be written to


def _same(path: Path, name: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise ValueError(
            f"{path} was written with {name} {found!r}, here it is {wanted!r}; use the same, or another file"
            + f" (a simulator is known by its class, or by an attribute: name = {found!r})" * (name == "simulator")
        )


def fill(path: FilePath, like: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """Replaces the arrays of `like` by those of a file."""
    named = _named_leaves(like)
    wanted = dict(named)
    if wanted.keys() != arrays.keys():
        odd = sorted(wanted.keys() ^ arrays.keys())
        raise ValueError(f"{path} does not fit: {odd[0]} is in the one and not in the other")
    for name, leaf in wanted.items():
        have, want = arrays[name], np.asarray(leaf)
        free = _in_buffer(name) and have.ndim == want.ndim
        if have.dtype != want.dtype or (have.shape != want.shape and not free):
            raise ValueError(f"{path} does not fit: {name} is {have.dtype}{have.shape}, not {want.dtype}{want.shape}")
    leaves, structure = jax.tree.flatten(like)
    filled = []
    for (name, _), leaf in zip(named, leaves, strict=True):
        array = jnp.asarray(arrays[name])
        filled.append(jax.random.wrap_key_data(array) if _is_key(leaf) else array)
    tables = jax.tree.map(
        functools.partial(_restore_table, path), like, jax.tree.unflatten(structure, filled), is_leaf=_is_table
    )
    return jax.tree.unflatten(structure, jax.tree.leaves(tables))


def _is_table(thing: object) -> bool:
    from uamcts.corrections.fact_table import Facts
    from uamcts.uncertainty.buffer import Buffer

    return isinstance(thing, (Buffer, Facts))


def _restore_table(path: FilePath, like: PyTree, found: PyTree) -> PyTree:
    """Checks that the arrays of a buffer or table belong together, and recomputes where its rows lie."""
    from uamcts.uncertainty.buffer import Buffer

    if not _is_table(like):
        return found
    axis = jnp.ndim(like.count)
    parts = [(one.states, one.actions, one.targets) if isinstance(one, Buffer) else (one.keys, one.values, one.marks)
             for one in (like, found)]  # fmt: skip
    lengths = set()
    for want, have in zip(*map(jax.tree.leaves, parts), strict=True):
        lengths.add(have.shape[axis])
        if have.shape[:axis] + have.shape[axis + 1 :] != want.shape[:axis] + want.shape[axis + 1 :]:
            raise ValueError(f"{path} does not fit: a table in it has rows {have.shape}, not {want.shape}")
    spare = like.most_copies if isinstance(like, Buffer) else 1
    least, most = int(jnp.min(found.count)), int(jnp.max(found.count))
    if len(lengths) > 1 or least < 0 or most > min(lengths) - spare:
        raise ValueError(f"{path} does not fit: a table in it has {sorted(lengths)} rows, of which {most} are taken")
    return found if isinstance(found, Buffer) else found.reindex()


def _in_buffer(name: str) -> bool:
    return any(part in name for part in (".buffer", ".facts", ".best", ".tally"))


def _is_key(leaf: object) -> bool:
    return is_array(leaf) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _named_leaves(tree: PyTree) -> list[tuple[str, Any]]:
    """The arrays of a tree with the names of their places; keys as the words they are made of."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [
        (jax.tree_util.keystr(place), jax.random.key_data(leaf) if _is_key(leaf) else leaf) for place, leaf in leaves
    ]
