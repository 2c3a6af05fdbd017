"""What the site adds to the Markdown files: tutorials that run, formulas, CONTRIBUTING.

MkDocs calls the functions named on_...; mkdocs.yml lists this file.
"""

import hashlib
import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from latex2mathml.converter import convert
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from mkdocs.structure.files import File

DOCS = Path(__file__).parent
ROOT = DOCS.parent
CACHE = ROOT / "out" / "tutorials"
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


class Doctests(Extension):
    """Examples of docstrings, from ``>>>`` to the next empty line, are code."""

    def extendMarkdown(self, md):
        md.preprocessors.register(_FenceDoctests(md), "doctests", 29)  # before fences are read


class _FenceDoctests(Preprocessor):
    def run(self, lines):
        text = re.sub(r"^( *)>>> .*(?:\n *\S.*)*", _fence, "\n".join(lines), flags=re.M)
        return text.split("\n")


def _fence(found):
    return f"{found[1]}```pycon\n{found[0]}\n{found[1]}```"


def on_config(config):
    config.markdown_extensions.append(Doctests())
    return config


def on_files(files, config):
    """Add the pages that are no Markdown files of docs/."""
    library = _library()
    for source in sorted((DOCS / "tutorials").glob("*.py")):
        folder = tutorial(source, library)
        page = (folder / "page.md").read_text()
        files.append(File.generated(config, f"tutorials/{source.stem}.md", content=page))
        for picture in folder.glob("*.png"):
            uri = f"tutorials/{source.stem}/{picture.name}"
            files.append(File.generated(config, uri, abs_src_path=str(picture)))
    for uri, name in {"contribute.md": "CONTRIBUTING.md", "changes.md": "CHANGELOG.md"}.items():
        content = of_the_site((ROOT / name).read_text())
        files.append(File.generated(config, uri, content=content))
    return files


def on_page_content(content, page, config, files):
    """Formulas become MathML, which browsers show without a script."""
    return FORMULA.sub(_mathml, content)


def tutorial(source, library):
    """The folder with the page of a tutorial; it runs again if it or the library has changed."""
    key = hashlib.sha256(source.read_bytes() + library).hexdigest()[:16]
    folder = CACHE / f"{source.stem}-{key}"
    if not (folder / "page.md").exists():
        for old in CACHE.glob(f"{source.stem}-*"):
            shutil.rmtree(old)
        command = [sys.executable, str(DOCS / "run_tutorial.py"), str(source), str(folder)]
        # the data of the package, on every machine
        env = {name: text for name, text in os.environ.items() if name != "COSTSCAPE_DATA"}
        subprocess.run(command, check=True, env={**env, "OMP_NUM_THREADS": "1"})
    return folder


def of_the_site(text):
    """Links of a file in the root, for a page in docs/: other files are named, not linked."""
    text = re.sub(r"\]\(docs/", "](", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#)(?![\w/.-]+\.md[)#])[^)]*\)", r"\1", text)


def _library():
    """A digest of all that a tutorial may call."""
    paths = [DOCS / "run_tutorial.py"]
    for path in (ROOT / "src" / "costscape").rglob("*.py"):
        if not {"cli", "zoo"} & set(path.parts):
            paths.append(path)
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.digest()


def _mathml(found):
    display = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]).strip(), display=display)
