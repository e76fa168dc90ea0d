"""What the site adds to the Markdown: two pages from outside of docs/, and links that work on GitHub and here."""

import os
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"speed.md": "benchmarks/README.md", "growth.png": "benchmarks/growth.png", "changelog.md": "CHANGELOG.md"}
"""What the site has from outside of docs/: its name there, its path in the repository."""
PAGES = {**{path: page for page, path in ELSEWHERE.items()}, "README.md": "index.md"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files, config):
    for name, path in ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links go to pages of the site where there is one; a file that the site does not have is named, not linked."""
    here = page.file.src_uri
    folder = Path(ELSEWHERE.get(here, f"docs/{here}")).parent

    def led(match):
        picture, text, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match.group(0)
        path = Path(os.path.normpath(folder / target)).as_posix()
        name = PAGES.get(path, path.removeprefix("docs/"))
        if name == path and (ROOT / path).exists():
            return text
        return f"{picture}[{text}]({os.path.relpath(name, Path(here).parent)}{anchor or ''})"

    return LINK.sub(led, markdown)
