"""Run a service until it is stopped."""

from collections.abc import Sequence
from pathlib import Path

from costscape.serve.listen import listen
from costscape.serve.model_source import ModelSource
from costscape.serve.reference import make_reference
from costscape.serve.served_model import ServedModel
from costscape.serve.service import create_app
from costscape.serve.service_settings import Settings


def run(sources: Sequence[ModelSource], settings: Settings) -> None:
    """Serve the models; SIGTERM and SIGINT end it after the requests that have begun."""
    listen(create_app(sources, settings), settings)


def write_references(sources: Sequence[ModelSource]) -> list[Path]:
    """Write the reference of each model, from kept training rows; return the files."""
    for source in sources:
        make_reference(ServedModel.load(source).model).write(source.reference)
    return [source.reference for source in sources]
