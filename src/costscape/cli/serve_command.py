"""costscape serve: decisions of fitted models over HTTP."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from costscape.cli.run_options import errors_in_words


class RuntimeName(StrEnum):
    """What decides: torch with a model file, or onnxruntime with an exported one."""

    torch = "torch"
    onnx = "onnx"


@errors_in_words
def serve(
    model: Annotated[
        list[str],
        typer.Argument(
            help="[NAME=]PATH: a project, a model file, a folder with model.costscape and "
            "task.py, or .onnx."
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(help="cost.py:task, the task of the models. The file is executed."),
    ] = None,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(help="onnx for files of model.export; by the suffix .onnx if not given."),
    ] = None,
    host: Annotated[str, typer.Option(help="Others than loopback need a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="The token of requests; COSTSCAPE_TOKEN by default.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse rows far out of range, not only flag them.")
    ] = False,
    batch_rows: Annotated[int, typer.Option(min=1, help="Most rows in one call.")] = 4096,
    wait_ms: Annotated[float, typer.Option(min=0, help="To wait for others in a call.")] = 2.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Most rows of a request.")] = 10_000,
    max_mb: Annotated[float, typer.Option(help="Largest body, in MiB.")] = 16.0,
    queue_rows: Annotated[int, typer.Option(min=1, help="Most rows that wait.")] = 100_000,
    seconds: Annotated[float, typer.Option(help="Most time for an answer.")] = 30.0,
    watch: Annotated[
        float, typer.Option(min=0, help="Seconds between looks at the files; 0 for never.")
    ] = 2.0,
    log: Annotated[
        str | None,
        typer.Option(
            envvar="COSTSCAPE_LOG",  # others see the command line, and it may have a password
            help="Keep decisions before they are answered: a file, or a postgresql:// address.",
        ),
    ] = None,
    make_reference: Annotated[
        bool,
        typer.Option("--make-reference", help="Write the reference of each model, then end."),
    ] = False,
) -> None:
    """Serve decisions of fitted models over HTTP.

    A project has its task in costscape.toml. A model file has no code, so the task comes beside
    it: --task for all models, or task.py in the folder of each. New files of a model are loaded
    and checked while the old version serves.
    """
    from costscape.serve.service_settings import Limits, Settings, read_token

    limits = Limits(int(max_mb * 2**20), max_rows, queue_rows, batch_rows, wait_ms, seconds)
    settings = Settings(host, port, read_token(token_file), strict, watch, limits, log)
    exported = all(text.endswith(".onnx") for text in model)
    if runtime is RuntimeName.onnx or (runtime is None and exported):
        from costscape.serve.runtime_service import run_runtime  # without torch

        if task is not None or make_reference:
            raise ValueError("An exported model has its task and its reference in the file.")
        if log is not None:
            raise ValueError("--log needs a model file, since an exported model is not watched.")
        run_runtime(model, settings)
        return
    from costscape.cli.served_sources import served_sources
    from costscape.serve import run, write_references

    sources = served_sources(model, task)
    if make_reference:
        for path in write_references(sources):
            print(path)
        return
    run(sources, settings)
