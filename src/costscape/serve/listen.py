"""Listen for requests until SIGTERM or SIGINT; imports no torch, which the runtime is without."""

from typing import Any

from costscape.serve.logs import log, log_to_stderr
from costscape.serve.service_settings import Settings


def listen(app: Any, settings: Settings) -> None:
    """Serve an ASGI app; requests that have begun are finished at the end.

    Args:
        app: the ASGI app.
        settings: Settings. Host, port, token and limits.
    """
    import uvicorn

    log_to_stderr()
    log("listening", host=settings.host, port=settings.port, token=settings.token is not None)
    uvicorn.run(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        log_level="warning",
        access_log=False,  # the service writes its own lines
        server_header=False,
        proxy_headers=False,  # neither addresses nor schemes of clients are used
        timeout_graceful_shutdown=int(settings.limits.seconds) + 5,
    )
