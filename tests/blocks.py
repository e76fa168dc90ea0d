"""The Python blocks of a Markdown page, run one after the other, and what each printed."""

import contextlib
import io
import re


def parts(text: str) -> list[tuple[str, str | None]]:
    """Every Python block with the `text` block right behind it, if there is one."""
    return [
        (found.group(1), found.group(2))
        for found in re.finditer(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    ]


def outputs(text: str) -> list[str]:
    """What each of the blocks prints; they share their names, like one program."""
    names, printed = {"__name__": "page"}, []
    for program, _ in parts(text):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(program, "page", "exec"), names)
        printed.append(out.getvalue())
    return printed
