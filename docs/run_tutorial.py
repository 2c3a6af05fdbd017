"""Run one tutorial and write its page: text, code, printed output, pictures.

python docs/run_tutorial.py docs/tutorials/order-stock.py out/page

A tutorial is a Python file with cells, as editors and Jupytext know them. A cell that starts with
``# %% [markdown]`` is text in comments; one that starts with ``# %%`` is code. A picture that a
cell writes into the working folder, ``name.png``, is shown below the cell. The page goes to
``page.md`` in the given folder, next to the pictures.
"""

import contextlib
import io
import os
import re
import sys
import textwrap
import time
from pathlib import Path

WIDTH = 85  # letters of a line of output that fit beside the menus of the site


def cells(source):
    """(is text, content) of each cell."""
    parts = re.split(r"^# %%(.*)\n", source, flags=re.M)
    for kind, body in zip(parts[1::2], parts[2::2], strict=True):
        is_text = kind.strip() == "[markdown]"
        lines = (re.sub(r"^# ?", "", line) for line in body.splitlines())
        yield is_text, "\n".join(lines).strip() if is_text else body.strip()


def run(source, folder, name):
    """The page as Markdown; pictures are links into the folder ``name``."""
    names = {"__name__": "__main__"}
    page, seen, begin = [], set(), time.process_time()
    for is_text, body in cells(source):
        if is_text:
            page.append(body)
            continue
        page.append(f"```python\n{body}\n```")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(body, f"{name}.py", "exec"), names)
        if printed.getvalue().strip():
            page.append(f"```text\n{_wrapped(printed.getvalue())}\n```")
        pictures = sorted(path.stem for path in folder.glob("*.png"))
        page += [f"![{p.replace('_', ' ')}]({name}/{p}.png)" for p in pictures if p not in seen]
        seen.update(pictures)
    seconds = time.process_time() - begin
    page.append(
        f"---\n\nThe code of this page is `docs/tutorials/{name}.py`. It ran in {seconds:.0f} "
        f"seconds of CPU time when this page was built."
    )
    return "\n\n".join(page) + "\n"


def _wrapped(text):
    """Printed lines; those that are long sentences, not rows of a table, are wrapped."""
    lines = text.rstrip().splitlines()
    return "\n".join(
        line if len(line) < WIDTH or "  " in line.strip() else textwrap.fill(line, WIDTH)
        for line in lines
    )


def main():
    source, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    (folder / "page.md").write_text(run(source.read_text(), folder, source.stem))


if __name__ == "__main__":
    main()
