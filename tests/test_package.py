"""The package as a whole: its names, its versions, what an import does."""

import re
from pathlib import Path

import pytest

import uamcts

ROOT = Path(__file__).parents[1]


def test_every_public_name_is_there():
    assert set(uamcts.__all__) == set(uamcts._HOMES)
    for name in uamcts.__all__:
        assert getattr(uamcts, name) is not None
        assert name in dir(uamcts)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        uamcts.serach  # noqa: B018


def test_the_version_is_written_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE).group(1) == uamcts.__version__
    assert f"## {uamcts.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_nothing_is_unpickled_or_evaluated():
    """Data files are arrays and JSON; a file from a stranger must not run."""
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text()
        assert not re.search(r"\bpickle\b|allow_pickle=True|\beval\(|\bexec\(", source), path
