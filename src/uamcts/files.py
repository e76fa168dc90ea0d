"""Learned things as files: arrays and JSON in one archive. Written whole or not at all; nothing is ever unpickled."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from uamcts.atomic import write_whole
from uamcts.types import PyTree

FORMAT = 1
HEAD = "uamcts.json"


def save(path: str | os.PathLike, tree: PyTree, kind: str, about: dict[str, Any]) -> None:
    """Writes the arrays of `tree`, with what the file is and what it is `about` (JSON) beside them."""
    path = Path(path)
    head = {"format": FORMAT, "kind": kind, "about": about}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(HEAD, json.dumps(head, indent=2))
        for name, leaf in _named(tree):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(leaf), allow_pickle=False)
    write_whole(path, buffer.getvalue())


def load(path: str | os.PathLike, like: PyTree, kind: str, about: dict[str, Any]) -> PyTree:
    """The tree in a file that `save` wrote: of the same `kind`, about the same, and of the form of `like`.

    Only the lengths of buffers may differ. Everything is looked at before anything is returned.
    """
    return filled(path, like, read(path, kind, about))


def read(path: str | os.PathLike, kind: str, about: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a file of this `kind` and about the same, by the names of their places."""
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            head = json.loads(archive.read(HEAD))
            arrays = {
                name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False)
                for name in archive.namelist()
                if name != HEAD
            }
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError, NotImplementedError) as error:
        raise ValueError(f"{path} is damaged or was not written by uamcts: {error}") from None
    _same(path, "kind", head.get("kind"), kind)
    _same(path, "format", head.get("format"), FORMAT)
    written = head.get("about", {})
    for name in about | written:
        _same(path, name, written.get(name), json.loads(json.dumps(about.get(name))))
    return arrays


def _same(path: Path, name: str, found: Any, wanted: Any) -> None:
    if found != wanted:
        raise ValueError(
            f"{path} was written with {name} {found!r}, here it is {wanted!r}; use the same, or another file"
        )


def filled(path: str | os.PathLike, like: PyTree, arrays: dict[str, np.ndarray]) -> PyTree:
    """`like` with the arrays of a file in the places of its own."""
    wanted = dict(_named(like))
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
    for (name, _), leaf in zip(_named(like), leaves, strict=True):
        array = jnp.asarray(arrays[name])
        filled.append(jax.random.wrap_key_data(array) if _is_key(leaf) else array)
    return jax.tree.unflatten(structure, filled)


def _in_buffer(name: str) -> bool:
    return ".buffer" in name or ".facts" in name


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _named(tree: PyTree) -> list[tuple[str, Any]]:
    """The arrays of a tree with the names of their places; keys as the words they are made of."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return [
        (jax.tree_util.keystr(place), jax.random.key_data(leaf) if _is_key(leaf) else leaf) for place, leaf in leaves
    ]
