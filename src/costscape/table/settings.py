"""What a table makes of its columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from costscape.table.calendar import Calendar
from costscape.table.missing import FillForward, FillValue, InsertDates

Names = str | Sequence[str] | None


@dataclass(frozen=True)
class OneHot:
    """One column of 0 and 1 for each category of the first file.

    Args:
        most: int, default None. Columns of one source column at most; the rarer categories share
            one more column, ``NAME_other``. Then categories that the first file did not have go
            there, too; without ``most`` they are refused.

    >>> OneHot(most=2).kept({"a": 1, "b": 2, "c": 3})
    ['b', 'c']
    """

    most: int | None = None

    def __post_init__(self) -> None:
        if self.most is not None and self.most < 1:
            raise ValueError(
                f"OneHot needs most of at least 1, but got {self.most}. Leave it out to keep "
                f"every category."
            )

    def kept(self, counts: Mapping[str, int]) -> list[str]:
        """The categories with a column of their own, sorted: the most frequent ones."""
        names = sorted(counts.keys(), key=lambda name: (-counts[name], name))
        return sorted(names[: self.most])


@dataclass(frozen=True)
class Settings:
    """The settings of a ``Table``, with names as tuples; ``lags`` by column, in order."""

    date: str
    outcome: tuple[str, ...]
    group: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    lags: tuple[tuple[str, tuple[int, ...]], ...] = ()
    category: tuple[str, ...] = ()
    calendar: Calendar | None = None
    gap: int = 0
    horizon: int = 1
    freq: str | None = None
    encode: OneHot = OneHot()
    missing: FillForward | FillValue | None = None
    gaps: InsertDates | None = None

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of the source that are neither dates nor groups, each once."""
        return tuple(dict.fromkeys([*self.outcome, *self.known, *(c for c, _ in self.lags)]))

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.date, *self.group, *self.values)

    @property
    def history(self) -> int:
        """How many rows before its own a row of X needs."""
        return max((max(lags) for _, lags in self.lags), default=0)

    def step_name(self, column: str, step: int) -> str:
        return column if self.horizon == 1 else f"{column}_step{step + 1}"


def checked(
    *,
    date: str,
    outcome: Names,
    group: Names,
    known: Names,
    lags: Sequence[int] | Mapping[str, Sequence[int]],
    category: Names,
    calendar: Calendar | None,
    gap: int,
    horizon: int,
    freq: str | None,
    encode: OneHot,
    missing: FillForward | FillValue | None,
    gaps: InsertDates | None,
) -> Settings:
    """The settings as tuples, or an error for those that contradict each other."""
    outcomes, groups, promised = names(outcome), names(group), names(known)
    if not isinstance(date, str) or not outcomes:
        raise ValueError(
            f"Table needs the name of a date column and of at least one outcome, but got "
            f"date={date!r} and outcome={outcome!r}. Write date='date', outcome='sold'."
        )
    if gap < 0 or horizon < 1:
        raise ValueError(
            f"Table needs gap >= 0 and horizon >= 1, but got gap {gap} and horizon {horizon}. "
            f"With gap=0 and horizon=1 each row decides for the next date."
        )
    _check_kind("calendar", calendar, "Calendar(month=True)", Calendar, type(None))
    _check_kind("encode", encode, "OneHot(most=20)", OneHot)
    _check_kind("missing", missing, "FillForward()", FillForward, FillValue, type(None))
    _check_kind("gaps", gaps, "InsertDates(outcome=0.0)", InsertDates, type(None))
    _check_kind("lags", lags, "[1, 7] or {'sold': [1, 7]}", Mapping, list, tuple, range)
    by_column = lags.items() if isinstance(lags, Mapping) else [(c, lags) for c in outcomes]
    shifts = tuple((c, tuple(sorted({int(k) for k in ks}))) for c, ks in by_column if len(ks))
    for column, ks in shifts:
        if ks[0] <= gap:
            raise ValueError(
                f"Table needs lags above the gap of {gap}, since later rows are not known when "
                f"you decide, but column {column!r} has the lag {ks[0]}. Drop it, or take a "
                f"smaller gap."
            )
    if unknown := [c for c in promised if c in outcomes]:
        raise ValueError(
            f"Table needs outcomes that are not known when you decide, but {unknown[0]!r} is in "
            f"known, too. Take it out of known, and use lags for its past."
        )
    repeated = [date, *groups, *dict.fromkeys([*outcomes, *promised, *(c for c, _ in shifts)])]
    if twice := [c for c in repeated if repeated.count(c) > 1]:
        raise ValueError(
            f"Table needs each column in one role, but {twice[0]!r} is the date or a group, and "
            f"something else, too. Groups are features already."
        )
    made = Settings(
        date, outcomes, groups, promised, shifts, names(category),
        calendar, gap, horizon, freq, encode, missing, gaps,
    )  # fmt: skip
    allowed = [c for c in made.values if c not in outcomes]
    if strange := [c for c in made.category if c not in allowed]:
        raise ValueError(
            f"Table needs category= to name columns of known or lags, but got {strange[0]!r}. "
            f"Columns of text and groups are categories already."
        )
    if not (made.group or made.known or made.lags or made.calendar):
        raise ValueError(
            "Table needs at least one feature, but got no group, known, lags or calendar. Write "
            "for example lags=[1, 7]."
        )
    return made


def _check_kind(name: str, value: object, example: str, *kinds: type) -> None:
    if not isinstance(value, kinds):
        raise TypeError(f"Table needs {name}= such as {example}, but got {value!r}. Pass that.")


def names(value: Names) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)
