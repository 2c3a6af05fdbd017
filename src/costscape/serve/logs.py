"""Logs as JSON, one object a line: what was asked when, never the data."""

import json
import logging
from datetime import UTC, datetime
from traceback import extract_tb
from typing import Any

LOG = logging.getLogger("costscape.serve")


class JsonLines(logging.Formatter):
    """Formats a record as one JSON object. It has no settings.

    An exception is logged by its type and place. Its message may quote data, so it is left out.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and (error := record.exc_info[1]) is not None:
            line |= {"error": type(error).__name__, "at": place(error)}
        return json.dumps(line)


def log(event: str, level: int = logging.INFO, **facts: Any) -> None:
    """Write one line: the event and its facts."""
    LOG.log(level, event, extra={"facts": facts})


def place(error: BaseException) -> str:
    """File and line at which an error was raised."""
    frames = extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def log_to_stderr() -> None:
    """Send all logs of the process to stderr as JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
