"""The files of the page: its own, and Plotly's JavaScript from the installed package.

    /                        the page, which names the files below
    /explorer/STAMP/NAME     a file; STAMP changes with the files, so browsers keep them for a year

The page holds no data, so these paths need no token. Nothing is loaded from another host.
"""

import gzip
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from costscape.serve.refused import Refused

FOLDER = "/explorer/"
PLOTLY = "plotly.min.js"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
FOREVER = "public, max-age=31536000, immutable"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
STYLES = re.compile(r'getElementById\("([0-9a-f]{64})"\)')  # of Plotly's maps
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


@dataclass(frozen=True)
class StaticFile:
    """A file that is sent as it is.

    Args:
        content: bytes. Its content, compressed by gzip.
        kind: str. Its content type.
    """

    content: bytes
    kind: str


@cache
def page() -> bytes:
    """The page, with the address of its files."""
    source = files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    place = _plotly()
    found = [] if place is None else STYLES.findall(place.read_text(encoding="utf-8"))
    absent = "".join(f'<template id="{name}"></template>' for name in sorted(set(found)))
    return Template(source).substitute(files=f"{FOLDER[1:]}{stamp()}", absent=absent).encode()


@cache
def stamp() -> str:
    """Twelve digits that change with any file of the page."""
    digest = sha256()
    for name in sorted(_names()):
        digest.update(name.encode() + _content(name))
    if (place := _plotly()) is not None:
        digest.update(f"{version('plotly')} {place.stat().st_size}".encode())
    return digest.hexdigest()[:12]


@cache
def static_file(given: str, name: str) -> StaticFile:
    """A file of the page; Refused for other names and for a page of an earlier version."""
    if given != stamp() or name not in (*_names(), PLOTLY):
        raise Refused(404, "The explorer has no such file. Load the page again.")
    if name != PLOTLY:
        return StaticFile(gzip.compress(_content(name), mtime=0), KINDS[Path(name).suffix])
    place = _plotly()
    if place is None:
        raise Refused(404, "Charts need plotly. Install it: pip install 'costscape[serve]'.")
    return StaticFile(gzip.compress(place.read_bytes(), 6, mtime=0), KINDS[".js"])


def _names() -> list[str]:
    found = (entry.name for entry in files(__package__).iterdir())
    return [name for name in found if Path(name).suffix in KINDS]


def _content(name: str) -> bytes:
    return files(__package__).joinpath(name).read_bytes()


def _plotly() -> Path | None:
    """The script in the installed package, which is not imported."""
    spec = find_spec("plotly")
    places = () if spec is None else spec.submodule_search_locations or ()
    found = (Path(place) / "package_data" / PLOTLY for place in places)
    return next((path for path in found if path.is_file()), None)
