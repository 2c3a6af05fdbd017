"""Run a service until it is stopped."""

from collections.abc import Sequence
from pathlib import Path

from costscape.serve.logs import log, log_to_stderr
from costscape.serve.model_source import ModelSource
from costscape.serve.reference import make_reference
from costscape.serve.served_model import ServedModel
from costscape.serve.service import create_app
from costscape.serve.service_settings import Settings


def run(sources: Sequence[ModelSource], settings: Settings) -> None:
    """Serve the models; SIGTERM and SIGINT end it after the requests that have begun."""
    import uvicorn

    app = create_app(sources, settings)
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


def write_references(sources: Sequence[ModelSource]) -> list[Path]:
    """Write the reference of each model, from kept training rows; return the files."""
    for source in sources:
        make_reference(ServedModel.load(source).model).write(source.reference)
    return [source.reference for source in sources]
