"""Which commit the package is run from: only its own, and with a word if its files are not the commit's."""

import shutil
import subprocess

import pytest

from uamcts.lab.run import provenance


def git(folder, *words):
    identity = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path):
    """A small repository of uamcts: its root, its package and its commit."""
    if shutil.which("git") is None:
        pytest.skip("no git")
    root = tmp_path / "checkout"
    package = root / "src" / "uamcts"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (root / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    git(root, "init", "-q", "-b", "main")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    provenance.commit.cache_clear()
    yield root, package, git(root, "rev-parse", "HEAD")
    provenance.commit.cache_clear()


def test_the_commit_of_a_checkout(checkout):
    _, package, commit = checkout
    assert provenance.commit(package) == commit


@pytest.mark.parametrize("command", [("pack-refs", "--all"), ("checkout", "-q", "--detach"), ("gc", "-q")])
def test_packed_and_detached(checkout, command):
    root, package, commit = checkout
    git(root, *command)
    assert provenance.commit(package) == commit


@pytest.mark.parametrize("packed", [False, True])
def test_the_commit_of_a_worktree(checkout, tmp_path, packed):
    root, _, first = checkout
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    package = tmp_path / "side" / "src" / "uamcts"
    (package / "more.py").write_text("")
    git(tmp_path / "side", "add", ".")
    git(tmp_path / "side", "commit", "-qm", "second")
    if packed:
        git(root, "pack-refs", "--all")
    found = provenance.commit(package)
    assert found == git(tmp_path / "side", "rev-parse", "HEAD")
    assert found != first


@pytest.mark.parametrize("name", ["src/uamcts/__init__.py", "src/uamcts/new.py", "pyproject.toml"])
def test_a_modified_tree_says_so(checkout, name):
    root, package, commit = checkout
    with open(root / name, "a") as file:
        file.write("# changed\n")
    assert provenance.commit(package) == f"{commit} (modified)"


def test_results_written_into_the_tree_do_not_modify_the_package(checkout):
    root, package, commit = checkout
    (root / "results").mkdir()
    (root / "results" / "summary.json").write_text("{}")
    assert provenance.commit(package) == commit


def test_without_git_nobody_knows_whether_the_tree_is_modified(checkout, monkeypatch):
    _, package, commit = checkout
    monkeypatch.setenv("PATH", "")
    assert provenance.commit(package) == f"{commit} (unknown whether modified)"


def test_no_commit_of_somebody_elses_repository(checkout):
    """Installed in an environment inside another project; or copied into one; or not in a repository at all."""
    root, package, _ = checkout
    (root / "pyproject.toml").write_text('[project]\nname = "somebodys-robot"\n')
    installed = root / ".venv" / "lib" / "python3.11" / "site-packages" / "uamcts"
    shutil.copytree(package, installed)
    assert provenance.commit(installed) is None
    assert provenance.commit(package) is None
    (root / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    assert provenance.commit(installed) is None
    provenance.commit.cache_clear()
    shutil.rmtree(root / ".git")
    assert provenance.commit(package) is None


def test_before_the_first_commit(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("no git")
    package = tmp_path / "src" / "uamcts"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "uamcts"\n')
    git(tmp_path, "init", "-q")
    assert provenance.commit(package) is None
