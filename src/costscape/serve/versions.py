"""The current version of each model; a new one is loaded beside it, checked, then takes over."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from costscape.serve.refused import Refused

Report = Callable[[str, Any, str | None], None]  # model, current version, error if any


class Versions:
    """The served models by name.

    Args:
        sources: where they come from. All are loaded at once; an error of any is raised.
        load: makes a checked version of a source, such as ``ServedModel.checked``.
        report: called after each attempt to load another version, with the version that serves
            now and the reason why the new one was refused, if it was.
    """

    def __init__(
        self,
        sources: Sequence[Any],
        load: Callable[[Any], Any],
        report: Report | None = None,
    ) -> None:
        self._load = load
        self._sources = {source.name: source for source in sources}
        self._seen = {source.name: state_of(source.watched()) for source in sources}
        self._current = {source.name: load(source) for source in sources}
        self._locks = {name: asyncio.Lock() for name in self._sources}
        self.report: Report = report or (lambda name, served, error: None)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._current.values()))

    def get(self, name: str | None) -> Any:
        """The current version of a model; None for the only one."""
        if name is None and len(self._current) == 1:
            return next(iter(self._current.values()))
        if name is None or name not in self._current:
            status, came = (404, f"there is no {name!r}") if name else (422, "none was named")
            raise Refused(
                status,
                f"The service has the models {', '.join(self._current)}, but {came}. Add "
                f"?model=NAME.",
            )
        return self._current[name]

    def source(self, served: Any) -> Any:
        """Where a model comes from."""
        return self._sources[served.name]

    async def reload(self, name: str) -> Any:
        """Load the files of a model again; Refused where they fail, and the old version stays.

        Requests that came before finish with the version they began with.
        """
        old = self.get(name)
        async with self._locks[name]:
            source = self._sources[name]
            self._seen[name] = state_of(
                source.watched()
            )  # before reading: a later change is seen again
            try:
                new = await asyncio.to_thread(self._load, source)
            except Exception as error:  # also what the user's code raises
                reason = f"{type(error).__name__}: {error}"
                self.report(name, old, reason)
                raise Refused(
                    409, f"The new version of {name} is refused, and {old.version} stays: {error}"
                ) from error
            self._current[name] = new
            self.report(name, new, None)
            return new

    async def watch(self, seconds: float) -> None:
        """Reload each model whose files have changed, again and again until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            for name, source in self._sources.items():
                if state_of(source.watched()) != self._seen[name]:
                    try:
                        await self.reload(name)
                    except Refused:
                        continue  # reported; the next change is tried again


def state_of(paths: Iterable[Path]) -> tuple[tuple[int, int, int] | None, ...]:
    """Time, size and inode of each file: another state means another version, perhaps."""
    return tuple(_state(path) for path in paths)


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
