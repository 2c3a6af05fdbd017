"""The settings of a service: where it listens, who may ask, and how much at once."""

import os
from dataclasses import dataclass, field, fields
from ipaddress import ip_address
from pathlib import Path

TOKEN = "COSTSCAPE_TOKEN"  # the environment variable of the token


@dataclass(frozen=True)
class Limits:
    """How much a service takes at once.

    Args:
        body_bytes: int, default 16 MiB. The largest body of a request.
        rows: int, default 10,000. The most rows of a request.
        queue_rows: int, default 100,000. The most rows that wait or are being decided.
        batch_rows: int, default 4,096. The most rows of several requests decided in one call.
        wait_ms: float, default 2.0. How long a request waits for others to share a call with.
        seconds: float, default 30.0. The most time to receive a body, and then to answer it.

    >>> Limits(rows=100).batch_rows
    4096
    """

    body_bytes: int = 16 * 2**20
    rows: int = 10_000
    queue_rows: int = 100_000
    batch_rows: int = 4096
    wait_ms: float = 2.0
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            least = 0 if entry.name == "wait_ms" else 1e-3
            if not value >= least:
                raise ValueError(f"The limit {entry.name} must be positive, but got {value}.")


@dataclass(frozen=True)
class Settings:
    """Everything about a service but its models.

    Args:
        host: str, default "127.0.0.1". The address to listen on. Others than loopback need a
            token.
        port: int, default 8000.
        token: str, default None. Requests must carry it as ``Authorization: Bearer TOKEN``.
        strict: bool, default False. Refuse rows far outside the range of the training rows in
            place of flagging them.
        watch_seconds: float, default 2.0. How often model files are looked at; 0 for never.
        limits: Limits. How much the service takes at once.
        log: str, default None. Where decisions are kept before they are answered: a file, or a
            postgresql:// address; None for nowhere.
        gauge_seconds: float, default 60.0. How often the gauges of logged decisions are computed.

    >>> Settings(token="secret")
    Settings(host='127.0.0.1', port=8000, strict=False, watch_seconds=2.0, limits=...)
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = field(default=None, repr=False)
    strict: bool = False
    watch_seconds: float = 2.0
    limits: Limits = Limits()
    log: str | None = field(default=None, repr=False)  # an address may have a password
    gauge_seconds: float = field(default=60.0, repr=False)

    def __post_init__(self) -> None:
        if self.token is None and not _is_loopback(self.host):
            raise ValueError(
                f"Listening on {self.host} needs a token, since other machines can ask. Write one "
                f"to a file and pass --token-file, or set {TOKEN}."
            )


def read_token(path: Path | None) -> str | None:
    """The token in the file, or else in the environment; None where there is neither."""
    token = os.environ.get(TOKEN) if path is None else path.read_text(encoding="utf-8").strip()
    if token is None:
        return None
    if not token or not token.isascii() or any(c.isspace() for c in token):
        raise ValueError(
            f"A token needs printable ASCII characters without spaces, but that of "
            f"{path or TOKEN} is empty or has others. Make one: openssl rand -hex 32."
        )
    return token


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
