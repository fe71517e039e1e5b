"""Values between a student's code and the cases that judge it: numbers, arrays, texts, lists and dictionaries of them.

The grader runs students' code in another process. Values travel as a JSON text and an npz file, never as pickles, so
reading one runs no code and cannot ask for more memory than was sent. The notebook's own checks send their values the
same way, so that a case sees the same in both places.
"""

import io
import json
import math
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BYTES = 64 * 2**20
"""Most bytes of arrays, and of text, in one message."""

MOST_LEVELS = 20
"""Most levels of lists inside lists."""


class UnreadableValueError(ValueError):
    """A value that cannot travel, or a message that holds none; the text says why, for a student to read."""


class NotWrittenError(Exception):
    """What a student has not written yet: a function that is missing, raises NotImplementedError or is `...`."""


def pack(value: object) -> tuple[bytes, bytes]:
    """A value as a JSON text and an npz file.

    Tensors become arrays, NumPy's scalars become Python's, and everything else keeps its type.

    Args:
        value: None, a truth value, a number, a text, an array or tensor of numbers, or a tuple, list or dictionary
            (with texts as keys) of such values.

    Raises:
        NotWrittenError: the value is, or holds, `...`, the sign for "not written yet".
        UnreadableValueError: another type, too large, or too deep.
    """
    parts, arrays = _taken_apart(value)
    tree = json.dumps(parts).encode()
    if len(tree) > MOST_BYTES:
        raise UnreadableValueError(f"the value is larger than {MOST_BYTES // 2**20} MB")
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return tree, file.getvalue()


def unpack(tree: bytes, arrays: bytes) -> Any:
    """The value in a message of `pack`, from a sender that is not trusted.

    Raises:
        UnreadableValueError: the message is not one that `pack` makes.
    """
    try:
        return _from_tree(json.loads(tree), _read_arrays(arrays))
    except UnreadableValueError:
        raise
    except (AttributeError, EOFError, KeyError, OSError, TypeError, ValueError, RecursionError, MemoryError,
            zipfile.BadZipFile, NotImplementedError) as error:  # fmt: skip
        raise UnreadableValueError(f"the message holds no value ({type(error).__name__})") from error


def copied(value: object) -> Any:
    """The value as it arrives after a journey: a deep copy, in the types that travel; errors as for `pack`."""
    return _from_tree(*_taken_apart(value))


def same(a: object, b: object) -> bool:
    """Whether two values are alike in every number; NaN is like NaN."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)) or a.dtype != b.dtype:
            return False
        return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return type(a) is type(b) and bool(a == b)


def _taken_apart(value: object) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The value as a tree, and copies of its arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    tree = _to_tree(value, arrays, 0)
    if sum(array.nbytes for array in arrays.values()) > MOST_BYTES:
        raise UnreadableValueError(f"the value is larger than {MOST_BYTES // 2**20} MB")
    return tree, arrays


def _to_tree(value: object, arrays: dict[str, NDArray[Any]], level: int) -> dict[str, Any]:
    """The value as JSON, its arrays put aside."""
    if level > MOST_LEVELS:
        raise UnreadableValueError(f"the value has more than {MOST_LEVELS} levels of lists inside lists")
    if value is ...:
        raise NotWrittenError
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor; torch need not be there
        value = value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return {"value": value if not isinstance(value, str) else str(value)}
    if isinstance(value, int):
        return {"value": int(value)}
    if isinstance(value, float):
        return {"value": float(value)}
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in "biufc":
            raise UnreadableValueError(
                f"an array of dtype {value.dtype}, not of numbers; do its rows differ in length?"
            )
        name = f"a{len(arrays)}"
        arrays[name] = np.array(value, subok=False)
        return {"array": name}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_to_tree(item, arrays, level + 1) for item in value]}
    if isinstance(value, Mapping):
        return {"dict": [[str(key), _to_tree(item, arrays, level + 1)] for key, item in value.items()]}
    raise UnreadableValueError(
        f"a value of type {type(value).__name__}, which is no number, array, text or list of them"
    )


def _from_tree(tree: Any, arrays: dict[str, NDArray[Any]], level: int = 0) -> Any:
    """The value of a JSON tree."""
    if level > MOST_LEVELS + 1:
        raise UnreadableValueError("the message has too many levels")
    ((kind, content),) = tree.items()
    if kind == "value" and (content is None or isinstance(content, (bool, int, float, str))):
        return content
    if kind == "array":
        return arrays[content]
    if kind == "list":
        return [_from_tree(item, arrays, level + 1) for item in content]
    if kind == "tuple":
        return tuple(_from_tree(item, arrays, level + 1) for item in content)
    if kind == "dict":
        return {str(key): _from_tree(item, arrays, level + 1) for key, item in content}
    raise UnreadableValueError("the message holds something that is no value")


def _read_arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file that promises no more than it holds."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size > len(content):
                raise UnreadableValueError("the message is compressed, which no message of ours is")
            data = io.BytesIO(archive.read(entry))
            read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, _, dtype = read_header[np.lib.format.read_magic(data)](data)
            # By the header alone NumPy would set memory aside for whatever shape it claims.
            if dtype.kind not in "biufc" or math.prod(shape) * dtype.itemsize != len(data.getvalue()) - data.tell():
                raise UnreadableValueError("an array of the message is not of the size that it claims")
            data.seek(0)
            arrays[entry.filename.removesuffix(".npy")] = np.lib.format.read_array(data, allow_pickle=False)
    return arrays
