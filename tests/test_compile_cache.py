"""The folder of compiled programs: private, bounded, without damaged entries."""

import os
import subprocess
import sys
import time

import pytest

from uamcts.runtime import compile_cache

COMPILE = """
import sys
from uamcts.runtime.jax_setup import prepare_jax
prepare_jax()
import os
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
import jax
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
print(jax.jit(lambda x: (x @ x.T).sum())(jax.numpy.ones((8, 8))))
"""


def compiled_with(cache):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", COMPILE], env={**environment, "XDG_CACHE_HOME": str(cache)}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip


def test_damaged_programs_are_replaced(tmp_path):
    """Every entry is changed, in every way in turn: the result is right, nothing is said, and the entries are new."""
    folder = tmp_path / "uamcts" / "compiled"
    assert compiled_with(tmp_path).stdout.strip() == "512.0"
    whole = {path.name: path.read_bytes() for path in folder.glob("*-cache")}
    assert whole
    assert folder.stat().st_mode & 0o777 == 0o700
    compile_cache.tidy(folder)  # as the next start does, which then knows what the entries are
    for damage in (lambda content: content[: len(content) // 2], lambda content: bytes([content[0] ^ 1]) + content[1:]):
        for name, content in whole.items():
            (folder / name).write_bytes(damage(content))
        done = compiled_with(tmp_path)
        assert done.stdout.strip() == "512.0"
        assert done.stderr == ""
        assert {path.name for path in folder.glob("*-cache")} == whole.keys()
        compile_cache.tidy(folder)
        assert {path.name for path in folder.glob("*-cache")} == whole.keys(), "damaged entries were kept"


def test_a_program_that_was_written_by_half_is_removed(tmp_path):
    """By a process that was killed: it was never seen whole."""
    import zlib

    content = zlib.compress(os.urandom(1000))
    (tmp_path / "a-cache").write_bytes(content[:500])
    (tmp_path / "b-cache").write_bytes(content)
    compile_cache.tidy(tmp_path)
    assert [path.name for path in tmp_path.glob("*-cache")] == ["b-cache"]


def test_the_oldest_programs_go_first(tmp_path):
    import zlib

    for age, name in enumerate(("new", "old", "older")):
        path = tmp_path / f"{name}-cache"
        path.write_bytes(zlib.compress(os.urandom(1000)))
        os.utime(path, (time.time() - 1000 * age,) * 2)
    compile_cache.tidy(tmp_path, limit=2500)
    assert {path.name for path in tmp_path.glob("*-cache")} == {"new-cache", "old-cache"}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path, monkeypatch, capsys, mode):
    folder = tmp_path / "uamcts" / "compiled"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compile_cache.cache_folder() is None
    assert "can be written to by others: chmod 700" in capsys.readouterr().err
    folder.chmod(0o755)
    assert compile_cache.cache_folder() == folder


def test_somebody_elses_folder_is_not_used(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert compile_cache.cache_folder() is None
    assert "belongs to another user" in capsys.readouterr().err


def test_a_file_in_the_folders_place_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "uamcts").write_text("mine")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compile_cache.cache_folder() is None
    assert "compiled programs are not cached this time" in capsys.readouterr().err


def test_without_platformdirs_there_is_no_default_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert compile_cache.cache_folder() is None
    assert capsys.readouterr().err == ""
    assert not list(tmp_path.iterdir())
