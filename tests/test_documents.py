"""What the documents say works: README's program, the examples, the links."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md")]


def test_the_program_in_the_readme_runs():
    program = re.search(r"```python\n(import jax, uamcts.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.match(r"(none|left|right) \[", output)


def test_the_offline_example_in_a_reduced_form():
    options = ["two_way_icy", "--runs", "2", "--rules", "pseudocode"]
    command = [sys.executable, str(ROOT / "examples" / "offline.py"), *options]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.count("+-") == 7
    assert "true              10.00 +- 0.00" in output


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        if not target.startswith("http"):
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", [*DOCUMENTS, *ROOT.glob("src/**/*.py")], ids=lambda path: path.name)
def test_files_named_in_documents_exist(document):
    """`mcts/select.py` and the like, wherever they are named."""
    for name in re.findall(
        r"`((?:mcts|domains|uncertainty|tests|docs|benchmarks|examples)/[\w./]+\.\w+)`", document.read_text()
    ):
        assert any((base / name).exists() for base in (ROOT, ROOT / "src" / "uamcts")), name
