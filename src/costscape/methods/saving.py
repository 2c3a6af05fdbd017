"""The model file: safetensors, with settings as JSON in its header and a checksum.

Nothing in it is executed when it is read. A setting that is the user's own code, such as a
builder of their encoder, is not in the file: its name is, and ``load`` asks for it.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np
import torch
from torch import Tensor

import costscape
from costscape import models, solvers

FORMAT = 2  # 1 had a checksum of the tensors alone
ENTRY = "costscape"  # of the file's metadata: the header
HEADER = 2**25  # characters of a header, at most
HERE = {"checkpoint", "cache", "compile"}  # settings that a file does not choose: paths, compilers
AUTO = "auto"  # what files and recipes hold for the solver Auto()


class Mismatch(ValueError, TypeError):
    """The file is whole, but the task or the settings that were passed do not go with it."""


def write(path: Path, tensors: Mapping[str, Tensor], header: dict[str, Any]) -> None:
    """Write beside, then rename: a file of that name is whole, old or new, at every moment."""
    from safetensors.torch import save

    from costscape.whole_file import write_whole

    flat = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    head = {**header, "format": FORMAT}
    text = json.dumps({**head, "sha256": _digest(flat, head)})
    if len(text) > HEADER:
        raise ValueError(
            f"The header of a model file may have {HEADER:,} characters, but that of {path} has "
            f"{len(text):,}: the rows of X have too many numbers. Fit on fewer columns."
        )
    write_whole(path, save(flat, metadata={ENTRY: text}))


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the header, after their checksum."""
    from safetensors import SafetensorError, safe_open

    if not path.exists():
        raise FileNotFoundError(
            f"There is no model file {path}. Write one with model.save({str(path)!r})."
        )
    with blamed(path, (SafetensorError, KeyError, ValueError, OSError, RecursionError)):
        if not path.is_file():  # a pipe would be waited for
            raise OSError("no plain file")
        with safe_open(path, framework="pt") as file:
            if len(text := (file.metadata() or {})[ENTRY]) > HEADER:
                raise ValueError(f"a header of {len(text):,} characters")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        head = json.loads(text)
        if not isinstance(head, dict):
            raise ValueError("the header is no JSON object")
    version = head.get("format")
    if version not in (1, FORMAT):
        raise ValueError(
            f"{path} has format {version!s:.20}, and this version reads formats 1 and {FORMAT}. "
            f"Load it with the version of costscape that wrote it."
        )
    if version == 1:  # its checksum does not cover the header
        warn(
            f"{path} has format 1: its settings cannot be checked, only its numbers. Load it "
            f"where you trust its source, and save it again.",
            stacklevel=3,
        )
    if head.pop("sha256", None) != _digest(tensors, None if version == 1 else head):
        raise ValueError(
            f"{path} is corrupt: its content does not match its checksum. Save the model again or "
            f"restore the file from a copy."
        )
    return tensors, head


@contextmanager
def blamed(path: str | Path, kinds: tuple[type[Exception], ...] = (Exception,)) -> Iterator[None]:
    """Say of errors inside that the file is to blame, unless it is what was passed with it."""
    try:
        yield
    except Mismatch:
        raise
    except kinds as error:
        words = str(error).partition("\n")[0]
        raise ValueError(
            f"{path} is not a whole costscape model file, or not one of this task and these "
            f"settings ({type(error).__name__}: {words:.300}). It may be cut off or be something "
            f"else; save the model again."
        ) from error


def to_json(value: Any) -> Any:
    """A setting as JSON; user code becomes {"custom": its name}.

    >>> to_json(partial(models.MLP, 24))
    {'partial': 'MLP', 'args': [24], 'kwargs': {}}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, solvers.Auto) and not value.rough:
        return AUTO
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "to_json"):  # a method inside a method
        return value.to_json()
    if isinstance(value, list):
        return {"list": [to_json(part) for part in value]}
    if isinstance(value, tuple):
        return {"tuple": [to_json(part) for part in value]}
    code = value.func if isinstance(value, partial) else value
    name = getattr(code, "__name__", type(code).__name__)
    if isinstance(value, partial) and (known_part(name) is code or _is_ours(code)):
        args, kwargs = [to_json(v) for v in value.args], _each(value.keywords)
        if '"custom"' not in json.dumps([args, kwargs]):
            return {"partial": name, "args": args, "kwargs": kwargs}
    elif is_dataclass(value) and known_part(type(value).__name__) is type(value):
        parts = _each({f.name: getattr(value, f.name) for f in fields(value)})
        if '"custom"' not in json.dumps(parts):
            return {"is": type(value).__name__, "kwargs": parts}
    elif known_part(name) is value:
        return {"name": name}
    return {"custom": name}


def settings_from_json(
    stored: Mapping[str, Any], method: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """The settings of these names. Only a solver may be Auto(): a window can be "auto", too.

    A file names no place to which a later fit would write, and starts no compiler.

    >>> settings_from_json({"solver": "auto", "window": "auto", "checkpoint": "/etc/passwd"})
    {'solver': Auto(rough=False), 'window': 'auto'}
    """
    read = {name: from_json(value, method) for name, value in stored.items() if name not in HERE}
    return {**read, "solver": solvers.Auto()} if read.get("solver") == AUTO else read


def from_json(value: Any, method: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """The setting; ``method`` builds a method from its class and its settings."""
    if not isinstance(value, dict):
        return value
    if "method" in value:
        assert method is not None
        return method(value)
    if "list" in value:
        return [from_json(part, method) for part in value["list"]]
    if "name" in value:
        return _part(value["name"])
    if "tuple" in value:
        return tuple(from_json(part) for part in value["tuple"])
    kwargs = settings_from_json(value["kwargs"])
    if "partial" in value:
        return partial(_part(value["partial"]), *map(from_json, value["args"]), **kwargs)
    return _part(value["is"])(**kwargs)


def needs_caller(value: Any) -> str | None:
    """The name of a stored setting that cannot be rebuilt from the file, or None."""
    if not isinstance(value, dict):
        return None
    if "custom" in value:  # a part of ours may hold code of the user's
        return str(value["custom"])
    name = value.get("partial")
    return None if name is None or known_part(name) else str(name)


def known_part(name: str) -> Any:
    """Return the public class of settings or encoder of that name, or None.

    Only such classes, and the function ``mean_level``, are built from a file's names: anything
    else of the package stays out of reach of a file.
    """
    if name == "mean_level":
        return models.mean_level
    part = getattr(costscape, name, None) if name in dir(costscape) else None
    encoders = (models.MLP, models.LSTM, models.Flat)
    is_part = isinstance(part, type) and (is_dataclass(part) or part in encoders)
    return part if is_part else None


def _part(name: str) -> Any:
    if (part := known_part(name)) is None:
        raise ValueError(
            f"The file names a setting {name!r} that this version of costscape does not have. "
            f"Load it with the version that wrote it."
        )
    return part


def _is_ours(code: Any) -> bool:
    """Whether a builder belongs to this package; recipes need its arguments."""
    return getattr(code, "__module__", "").startswith("costscape.")


def _each(parts: dict[str, Any]) -> dict[str, Any]:
    return {name: to_json(value) for name, value in parts.items()}


def _digest(tensors: Mapping[str, Tensor], head: dict[str, Any] | None) -> str:
    digest = hashlib.sha256(b"" if head is None else json.dumps(head).encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        digest.update(repr((name, tuple(value.shape), str(value.dtype))).encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
