"""Download the public files, each verified by its checksum before it takes its name."""

import hashlib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import BinaryIO

from costscape.problems.files.sources import PUBLIC, PublicFile, cache_folder, digest
from costscape.whole_file import replacing

Report = Callable[[str, int, int], None]
CHUNK = 1 << 16


def fetch(
    name: str,
    folder: Path | str | None = None,
    report: Report | None = None,
    timeout: float = 30.0,
) -> tuple[Path, ...]:
    """Bring the files of a public set into folder/name, or into the user's cache.

    What is there already and has the right checksum is left alone. A download goes to a .part file
    and takes its name only when its checksum is right; else nothing is kept. ``report`` is called
    with (file name, bytes so far, bytes in all); ``timeout`` is seconds of silence from the host.
    """
    if name not in PUBLIC:
        raise ValueError(f"fetch knows {sorted(PUBLIC)}, but got {name!r}. Name one of those.")
    place = (cache_folder() if folder is None else Path(folder).expanduser()) / name
    return tuple(_bring(file, place, report, timeout) for file in PUBLIC[name])


def _bring(file: PublicFile, place: Path, report: Report | None, timeout: float) -> Path:
    if (here := file.inside(place)) is not None:
        if digest(here) == file.sha256:
            return here
        raise FileExistsError(
            f"{here} is in the way: its SHA-256 is not that of the public file. Move it away and "
            f"fetch again."
        )
    if not file.urls:
        raise FileNotFoundError(
            f"{file.name} cannot be downloaded without an account. Log in and download "
            f"{file.page}, and save it as {place / (file.plain or file.name)}."
        )
    target = place / file.name
    wrong: OSError | ValueError | None = None
    for url in file.urls:
        try:
            with replacing(target) as out:
                _download(_chunks(url, target, timeout), url, file, out, report)
            return target
        except (ConnectionError, ValueError) as error:
            wrong = error
    assert wrong is not None
    raise wrong


def _download(
    chunks: Iterator[bytes], url: str, file: PublicFile, out: BinaryIO, report: Report | None
) -> None:
    done, sha = 0, hashlib.sha256()
    for chunk in chunks:
        done += len(chunk)
        if done > file.size:
            break
        sha.update(chunk)
        out.write(chunk)
        if report is not None:
            report(file.name, done, file.size)
    if done != file.size or sha.hexdigest() != file.sha256:
        came = f"more than {file.size}" if done > file.size else f"{done}"
        raise ValueError(
            f"{url} needs to hold {file.size} bytes of SHA-256 {file.sha256}, but {came} bytes of "
            f"other content came; nothing was kept. Try again later, or get the file elsewhere."
        )


def _chunks(url: str, target: Path, timeout: float) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            while chunk := answer.read(CHUNK):
                yield chunk
    except (urllib.error.URLError, HTTPException, TimeoutError, ConnectionError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it holds the answer, and its socket
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise ConnectionError(
            f"{url} could not be read ({reason}). Check the network and try again, or download it "
            f"by hand and save it as {target}."
        ) from error
