"""The parts of an ONNX file that must be known before it is run, read from its bytes.

A file may come from a stranger. It is bounded in size, refused where it names other files, custom
operators or branches, and its digest is compared with the one that was written. The format is
protobuf: a message is a row of fields, each with a number, a type and a value.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

KEY = "costscape"  # of the metadata
LARGEST = 2**28  # bytes of a file
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# numbers of fields in the format of ONNX
GRAPH, OPSETS, METADATA, FUNCTIONS, TRAINING = 7, 8, 14, 25, 20
NODE, INITIALIZER, SPARSE = 1, 5, 15
NODE_DOMAIN, ATTRIBUTE = 7, 5
ATTRIBUTE_TENSOR, SUBGRAPHS = (5, 10), (6, 11)
EXTERNAL, LOCATION = 13, 14
Field = tuple[int, int, bytes | int]


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, if there is one and it is not too large."""
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}. Write one with model.export({str(path)!r})."
        )
    with path.open("rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"{path} is larger than {LARGEST:,} bytes, the most that is read.")
    return content


def metadata(content: bytes) -> str:
    """The text that ``export`` wrote, after the checks above; ValueError where one fails."""
    try:
        fields = list(_fields(content))
        texts = [dict(_texts(value)) for number, _, value in fields if number == METADATA]
        written = {text.get(1, ""): text.get(2, "") for text in texts}
        for number, _, value in fields:
            if number in (FUNCTIONS, TRAINING):
                raise ValueError("it has functions of its own, which are not read")
            if number == OPSETS:
                _check_domain(dict(_texts(value)).get(1, ""))
            elif number == GRAPH:
                _check_graph(_message(value))
        return written[KEY]
    except KeyError:
        raise ValueError("it was not written by model.export") from None
    except (IndexError, UnicodeDecodeError, RecursionError):
        raise ValueError("it is cut off, or no ONNX file") from None


def digest(content: bytes) -> str:
    """SHA-256 of all fields but the metadata, which hold the digest."""
    found = sha256()
    for number, _, value in _fields(content):
        if number != METADATA:
            found.update(repr((number, value if isinstance(value, int) else len(value))).encode())
            found.update(b"" if isinstance(value, int) else value)
    return found.hexdigest()


def _check_graph(graph: bytes) -> None:
    for number, _, value in _fields(graph):
        if number == INITIALIZER:
            _check_tensor(_message(value))
        elif number == SPARSE:
            raise ValueError("it has sparse constants, which are not read")
        elif number == NODE:
            for field, _, part in _fields(_message(value)):
                if field == NODE_DOMAIN:
                    _check_domain(_message(part).decode())
                elif field == ATTRIBUTE:
                    _check_attribute(_message(part))


def _check_attribute(attribute: bytes) -> None:
    for number, _, value in _fields(attribute):
        if number in SUBGRAPHS:
            raise ValueError("it has branches or loops, which are not read")
        if number in ATTRIBUTE_TENSOR:
            _check_tensor(_message(value))


def _check_tensor(tensor: bytes) -> None:
    for number, _, value in _fields(tensor):
        if number == EXTERNAL or (number == LOCATION and value != 0):
            raise ValueError("it refers to data in other files, which are not read")


def _check_domain(domain: str) -> None:
    if domain not in ("", "ai.onnx"):
        raise ValueError(f"it has operators of {domain[:40]!r}, and only standard ones are run")


def _texts(message: bytes | int) -> Iterator[tuple[int, str]]:
    for number, _, value in _fields(_message(message)):
        if isinstance(value, bytes):
            yield number, value.decode()


def _message(value: bytes | int) -> bytes:
    if isinstance(value, int):
        raise ValueError("it is no ONNX file")
    return value


def _fields(message: bytes) -> Iterator[Field]:
    """Number, type and value of each field."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == BYTES:
            size, at = _varint(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError("it is no ONNX file")
        if at + size > end:
            raise ValueError("it is cut off, or no ONNX file")
        yield number, kind, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError("it is no ONNX file")
