"""Reads GGUF, the file format of llama.cpp: settings first, then matrices of few bits a number.

As much of it as SmolLM2's file needs: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_NUMBERS = dict(enumerate(("<B", "<b", "<H", "<h", "<I", "<i", "<f", "<?", "", "", "<Q", "<q", "<d")))
_TEXT, _LIST = 8, 9
_BLOCK = 32
"""Numbers that share a scale."""


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The settings of a GGUF file, and its tensors as what their bits stand for, in float32.

    Args:
        path: a file of version 2 or 3 whose tensors are F32, Q4_1 (a scale, an offset and 32 times four bits) or Q8_0
            (a scale and 32 times eight bits).

    Returns:
        Settings and tensors by name. A matrix has the shape (rows, columns), as a factor that multiplies a token has.

    Raises:
        ValueError: the file is no such file, ends too early, or has a tensor of another kind.
    """
    reader = _Reader(path.read_bytes())
    try:
        return _read(reader, path.name)
    except (struct.error, _EndsEarlyError) as error:
        size = len(reader.content)
        raise ValueError(f"path: expected a whole file, but {path.name} ends after {size} bytes") from error


class _EndsEarlyError(Exception):
    """There are fewer bytes than a text or a tensor needs."""


def _read(reader: "_Reader", name_of_file: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if reader.content[:4] != b"GGUF" or reader.skip(4).number("<I") not in (2, 3):
        raise ValueError(f"path: expected a GGUF file of version 2 or 3, got {name_of_file}")
    num_tensors, num_settings = reader.number("<Q"), reader.number("<Q")
    settings = {reader.text(): reader.value(reader.number("<I")) for _ in range(num_settings)}
    places = [reader.tensor_place() for _ in range(num_tensors)]
    alignment = settings.get("general.alignment", 32)
    start = -(-reader.position // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in places:
        if kind not in _KINDS:
            raise ValueError(f"path: expected tensors of the kinds {sorted(_KINDS)}, got {kind} for {name}")
        size, decode = _KINDS[kind]
        packed = reader.part(start + offset, size * int(np.prod(shape)) // _BLOCK)
        blocks = np.frombuffer(packed, np.uint8).reshape(-1, size)
        tensors[name] = torch.from_numpy(decode(blocks).reshape(shape))
    return settings, tensors


@dataclass
class _Reader:
    """Reads one value after the other."""

    content: bytes
    position: int = field(default=0)

    def skip(self, count: int) -> "_Reader":
        self.position += count
        return self

    def part(self, start: int, length: int) -> memoryview:
        if start + length > len(self.content):
            raise _EndsEarlyError
        return memoryview(self.content)[start : start + length]

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(form, self.content, self.position)
        self.position += struct.calcsize(form)
        return value

    def text(self) -> str:
        length = self.number("<Q")
        self.position += length
        return str(self.part(self.position - length, length), "utf-8")

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind == _LIST:
            inner, count = self.number("<I"), self.number("<Q")
            return [self.value(inner) for _ in range(count)]
        return self.number(_NUMBERS[kind])

    def tensor_place(self) -> tuple[str, tuple[int, ...], int, int]:
        """Name, shape, kind and offset of a tensor; the file lists the shape from the fastest axis on."""
        name, axes = self.text(), self.number("<I")
        shape = tuple(self.number("<Q") for _ in range(axes))[::-1]
        return name, shape, self.number("<I"), self.number("<Q")


def _halves(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Two bytes of each block as a number of half precision, one a row."""
    return np.ascontiguousarray(blocks).view("<f2").astype(np.float32)


def _plain(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    return blocks.copy().view("<f4")


def _four_bits(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Values scale * q + offset; the lower halves of 16 bytes are the first 16 q, the upper halves the others."""
    scale, offset, packed = _halves(blocks[:, :2]), _halves(blocks[:, 2:4]), blocks[:, 4:]
    return scale * np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) + offset


def _eight_bits(blocks: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Values scale * q, with q from -128 to 127."""
    return _halves(blocks[:, :2]) * blocks[:, 2:].view(np.int8).astype(np.float32)


_KINDS: dict[int, tuple[int, Callable[[NDArray[np.uint8]], NDArray[np.float32]]]] = {
    0: (4 * _BLOCK, _plain),
    3: (20, _four_bits),
    8: (34, _eight_bits),
}
"""Kind of tensor -> bytes for 32 numbers, and what makes numbers of them."""
