"""Public files that do not travel with the package: where they are looked for, how they are known.

A loader takes, in this order: its ``path``; the folder named by COSTSCAPE_DATA; the user's cache
($XDG_CACHE_HOME or ~/.cache, costscape); what travels with the package. Inside a folder the files
lie as wind/TenneTTSO.csv, sales/store_item_demand.csv.gz, mobility/* and pjm/*.
"""

import gzip
import hashlib
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "COSTSCAPE_DATA"


@dataclass(frozen=True)
class PublicFile:
    """``sha256`` and ``size`` are those of the content, unpacked where the name ends in .gz.

    ``urls`` are tried in order. A file without one is behind a login; ``page`` says where.
    ``plain`` is another name under which the unpacked file is accepted.
    """

    name: str
    sha256: str
    size: int
    urls: tuple[str, ...] = ()
    page: str = ""
    plain: str = ""

    def inside(self, folder: Path) -> Path | None:
        """The file in this folder, if it is there."""
        names = [self.name, self.plain] if self.plain else [self.name]
        return next((p for n in names if (p := folder / n).is_file()), None)


_RAW = "https://raw.githubusercontent.com"


def _odcrn(name: str, sha256: str, size: int) -> PublicFile:
    # the checksum decides, so the newest state of the repository may replace the commit
    urls = tuple(f"{_RAW}/deepkashiwa20/ODCRN/{c}/data/{name}" for c in ("edea71a", "HEAD"))
    return PublicFile(name, sha256, size, urls)


MOBILITY = (
    _odcrn(
        "od_day20180101_20210228.npz",
        "c81b53de47801988cc45b751a25d02f5476eb7042f8045e77163327dfa139cd4",
        2_592_347,
    ),
    _odcrn(
        "acc_infection_num.csv",
        "c0deb931d8d193f64ceb45a23a25c4f498bfe45416a5f3916e3fc0f2605ca847",
        84_762,
    ),
    _odcrn(
        "pref_population_2015.csv",
        "22a065283e9a86d0d3549a88ffb9ae79d796736c4cade4c750dff952e615e1ca",
        999,
    ),
    _odcrn(
        "adjacency_matrix.npy",
        "2c8a1e81ecd02b10c7b7313aa975a0e077e5283d1204d96c484e062cec3258fb",
        8_964,
    ),
)
TENNET = PublicFile(
    "TenneTTSO.csv",
    "5f104be6dc9f30e66552d5b79aedb78f541aab68d236953d33d515325bd0b2d9",
    246_070,
    (
        f"{_RAW}/smiski312/solar.energy.loss/7d7deac07c91fb0104fe1897fb47a1a9673f5d66/TenneTTSO.csv",
    ),
)
SALES = PublicFile(
    "store_item_demand.csv.gz",
    "038f25690a65149c94f86ddd3deceda20c037a5cfd754cafdfc539a72992f2ed",
    17_333_449,
    page="train.csv of https://www.kaggle.com/competitions/demand-forecasting-kernels-only/data",
    plain="store_item_demand.csv",
)


def _pjm(name: str, sha256: str, size: int) -> PublicFile:
    commit = "2bf43848ac26e25321fea7bfeddf2a24135aa192"
    return PublicFile(
        name, sha256, size, (f"{_RAW}/locuslab/e2e-model-learning/{commit}/power_sched/{name}",)
    )


PJM_2008 = _pjm(
    "pjm_load_data_2008-11.txt",
    "8dc80051563e406fa077064155d0dcef32f335165381b8aebf3f43cebfb9470b",
    1_611_814,
)
PJM_2012 = _pjm(
    "pjm_load_data_2012-16.txt",
    "f83c74db6685dd16c2db1b868907562fd4da74e8cac51e1ea24aead725542989",
    1_913_048,
)
PUBLIC: dict[str, tuple[PublicFile, ...]] = {
    "wind": (TENNET,),
    "sales": (SALES,),
    "mobility": MOBILITY,
    "pjm": (PJM_2008, PJM_2012),
}


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/costscape where that is an absolute path, else ~/.cache/costscape."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "costscape"


def find(name: str) -> tuple[Path, ...] | None:
    """The files of a public set in the data folder or the cache, in the order of PUBLIC.

    A folder that has some of them and lacks others is refused: a stand-in would go unnoticed.
    """
    for folder in _folders():
        if any(f.inside(folder / name) for f in PUBLIC[name]):
            return together(name, folder / name)
    return None


def together(name: str, folder: Path) -> tuple[Path, ...]:
    """All files of a public set in one folder."""
    paths = {f.name: f.inside(folder) for f in PUBLIC[name]}
    if missing := [n for n, p in paths.items() if p is None]:
        raise FileNotFoundError(
            f"The {name} data needs the files {list(paths)} in {folder}, but {missing} are not "
            f"there. Add them, or get all by costscape.problems.files.fetch({name!r})."
        )
    return tuple(p for p in paths.values() if p is not None)


def standing(name: str, paths: Sequence[Path]) -> str:
    """Whether these are the known public files, in words for a source."""
    pairs = zip(PUBLIC[name], paths, strict=True)
    if other := [p.name for f, p in pairs if digest(p) != f.sha256]:
        return f"NOT the known public file: {', '.join(other)} has other content"
    return "the known public file" + "s" * (len(paths) > 1)


def digest(path: Path) -> str:
    """SHA-256 of the content, unpacked where the name ends in .gz; of a broken gzip, none ("")."""
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return ""


def _folders() -> list[Path]:
    named = os.environ.get(VARIABLE, "")
    if not named:
        return [cache_folder()]
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{VARIABLE} needs to name a folder, but there is none at {folder}. Make it, or unset "
            f"the variable."
        )
    return [folder, cache_folder()]
