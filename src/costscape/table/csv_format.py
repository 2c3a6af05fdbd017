"""How a CSV file is written: separator, decimal sign, encoding; stated, or detected."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

SEPARATORS = (",", ";", "\t", "|")
SAMPLE = 2_000  # records from which the decimal sign is detected
COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d*),\d+")  # 1.234,5 or 12,5
POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d*)\.\d+")  # 1,234.5 or 12.5
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")  # 1.234 or 1,234: a number or thousands?


@dataclass(frozen=True)
class CsvFormat:
    """How a CSV file is written; what is None is detected.

    Args:
        separator: str, default None. Of ``, ; | tab`` the one for which the header has the
            columns asked for.
        decimal: str, default None. "," where a number such as 12,5 occurs; never in a file whose
            separator is a comma.
        thousands: str, default None. The sign between groups of three digits, if any.
        encoding: str, default None. UTF-8 (with or without a mark), UTF-16 with a mark, or else
            Windows' Latin-1, cp1252.

    >>> CsvFormat(separator=";", decimal=",")
    CsvFormat(separator=';', decimal=',', thousands=None, encoding=None)
    """

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def detect(self, path: Path, columns: Sequence[str], numbers: Sequence[str]) -> "CsvFile":
        """The file with its header read and everything detected.

        Args:
            path: the file, also one whose name ends in .gz.
            columns: names that the header must have.
            numbers: those among them that may hold numbers.
        """
        try:
            found = replace(self, encoding=self.encoding or _encoding(path))
            skip, header, separator = _header(path, found, columns)
            file = CsvFile(path, replace(found, separator=separator), tuple(header), skip)
            decimal, thousands = _decimal(file, numbers)
            file.check_fields()
        except (OSError, EOFError, zlib.error, UnicodeError, csv.Error, LookupError) as error:
            raise ValueError(
                f"{path} needs to be a whole CSV file in one encoding, but cannot be read "
                f"({str(error).strip()}). Save it again, or state the encoding with "
                f"csv=CsvFormat(encoding='cp1250')."
            ) from error
        return replace(file, format=replace(file.format, decimal=decimal, thousands=thousands))


@dataclass(frozen=True)
class CsvFile:
    """A file, its resolved format, its header, and how many lines come before the header."""

    path: Path
    format: CsvFormat
    header: tuple[str, ...]
    skip: int

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record after the header, and the line where it begins, the file's first being 1."""
        with _open(self.path, self.format.encoding) as file:
            for _ in range(self.skip):
                next(file)
            reader = csv.reader(file, delimiter=self.format.separator or ",")
            next(reader)
            line = reader.line_num
            for record in reader:
                yield self.skip + line + 1, record
                line = reader.line_num

    def check_fields(self) -> None:
        """Raise ValueError where a record has not as many fields as the header.

        pandas would cut off or shift fields in silence. Empty fields at the end of a line are
        common, and harmless.
        """
        needed = len(self.header)
        for line, record in self.records():
            if len(record) != needed and any(record[needed:] or [len(record) > 1]):
                raise ValueError(
                    f"{self.path} needs {needed} fields in every row, as in its header, but line "
                    f"{line} has {len(record)}. Correct it, put quotes around texts that contain "
                    f"{self.format.separator!r}, or state another csv=CsvFormat(separator=...)."
                )

    def line(self, record: int) -> int:
        """The line where this record begins; records after the header are counted from 0."""
        return next(islice(self.records(), record, None))[0]


def _open(path: Path, encoding: str | None) -> Any:
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding=encoding, newline="")


def _encoding(path: Path) -> str:
    """The first encoding of a few that reads the whole file."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        mark = file.read(2)
    if mark in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            with _open(path, encoding) as file:
                while file.read(2**20):
                    pass
            return encoding
        except UnicodeDecodeError:
            continue
    return "latin-1"


def _header(path: Path, format: CsvFormat, columns: Sequence[str]) -> tuple[int, list[str], str]:
    """Lines before the header, its names, and the separator that gives them."""
    skip = 0
    with _open(path, format.encoding) as file:
        for line in file:
            text = line.strip()
            if text and not re.fullmatch(r"sep=.", text):  # a first line for spreadsheets
                break
            skip += 1
        else:
            raise ValueError(f"{path} needs a header, but the file is empty. Pass another file.")
    tried = [format.separator] if format.separator else SEPARATORS
    headers = {s: [name.strip() for name in next(csv.reader([line], delimiter=s))] for s in tried}
    best = max(headers, key=lambda s: (len(set(columns) & set(headers[s])), len(headers[s])))
    header = headers[best]
    if missing := [c for c in columns if c not in header]:
        raise ValueError(
            f"{path} needs the column {missing[0]!r}, but line {skip + 1} has "
            f"{', '.join(map(repr, header[:20]))}. Correct the name, or state the separator with "
            f"csv=CsvFormat(separator=';')."
        )
    if twice := [c for c in columns if header.count(c) > 1]:
        raise ValueError(
            f"{path} needs each column once, but line {skip + 1} has {twice[0]!r} "
            f"{header.count(twice[0])} times. Rename one."
        )
    return skip, header, best


def _decimal(file: CsvFile, numbers: Sequence[str]) -> tuple[str, str | None]:
    """The decimal sign and the sign between thousands, from the first records."""
    format = file.format
    if format.decimal:
        return format.decimal, format.thousands
    at = [file.header.index(c) for c in numbers]
    some = [r for _, r in islice(file.records(), SAMPLE)]
    fields = {r[i].strip() for r in some for i in at if i < len(r)}
    comma = {f for f in fields if COMMA.fullmatch(f)}
    point = {f for f in fields if POINT.fullmatch(f)}
    sure_comma = {f for f in comma if not GROUPED.fullmatch(f)}
    sure_point = {f for f in point if not GROUPED.fullmatch(f)}
    if sure_point and not sure_comma:
        return ".", format.thousands or ("," if any("," in f for f in comma | point) else None)
    if sure_comma and not sure_point:
        return ",", format.thousands or ("." if any("." in f for f in comma | point) else None)
    if sure_comma or comma or (point and format.separator != ","):
        text = min(sure_comma or comma or point)
        beside = f" beside {min(sure_point)!r}" if sure_point else ""
        raise ValueError(
            f"{file.path} needs one decimal sign, but {text!r}{beside} can be read in two ways. "
            f"Pass csv=CsvFormat(decimal=',', thousands='.') or decimal='.', thousands=','."
        )
    return ".", format.thousands
