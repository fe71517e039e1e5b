"""A file written here by hand is read back: settings of every kind, and tensors of three."""

import struct

import pytest
import torch

from mesa_lib.pretrained.gguf import read_gguf


def text(value):
    return struct.pack("<Q", len(value.encode())) + value.encode()


def written(path, settings=(), tensors=(), magic=b"GGUF", version=3, alignment=32):
    """A file of settings (name, kind, bytes) and tensors (name, shape, kind, bytes)."""
    head = magic + struct.pack("<IQQ", version, len(tensors), len(settings))
    for name, kind, content in settings:
        head += text(name) + struct.pack("<I", kind) + content
    body = b""
    for name, shape, kind, content in tensors:
        head += text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, len(body))
        body += content + bytes(-len(content) % alignment)
    path.write_bytes(head + bytes(-len(head) % alignment) + body + bytes(64))
    return path


def half(value):
    return struct.pack("<e", value)


def test_settings_of_every_kind_are_read(tmp_path):
    words = struct.pack("<IQ", 8, 2) + text("\u0120a") + text("b")
    settings = [
        ("name", 8, text("model")),
        ("layers", 4, struct.pack("<I", 30)),
        ("epsilon", 6, struct.pack("<f", 0.5)),
        ("flag", 7, b"\x01"),
        ("large", 10, struct.pack("<Q", 2**40)),
        ("words", 9, words),
    ]
    found, tensors = read_gguf(written(tmp_path / "a.gguf", settings))
    expected = {"name": "model", "layers": 30, "epsilon": 0.5, "flag": True, "large": 2**40, "words": ["\u0120a", "b"]}
    assert found == expected and tensors == {}


def test_tensors_are_what_their_bits_stand_for(tmp_path):
    plain = [i / 4 for i in range(64)]
    fours, eights = [(3 * i + i // 16) % 16 for i in range(64)], [(37 * i) % 256 - 128 for i in range(32)]
    packed = b""
    for start, (scale, offset) in ((0, (0.5, -2.0)), (32, (0.25, 1.0))):
        q = fours[start : start + 32]
        packed += half(scale) + half(offset) + bytes(low + 16 * high for low, high in zip(q[:16], q[16:], strict=True))
    tensors = [
        ("plain", (2, 32), 0, struct.pack("<64f", *plain)),
        ("four", (2, 32), 3, packed),
        ("eight", (32,), 8, half(0.125) + struct.pack("<32b", *eights)),
    ]
    _, found = read_gguf(written(tmp_path / "a.gguf", tensors=tensors))
    assert torch.equal(found["plain"], torch.tensor(plain).view(2, 32))
    expected = [[0.5 * q - 2 for q in fours[:32]], [0.25 * q + 1 for q in fours[32:]]]
    assert torch.equal(found["four"], torch.tensor(expected))
    assert torch.equal(found["eight"], torch.tensor([0.125 * q for q in eights]))
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}


def test_a_file_may_align_its_tensors_otherwise(tmp_path):
    settings = [("general.alignment", 4, struct.pack("<I", 8))]
    tensors = [("t", (32,), 0, struct.pack("<32f", *range(32)))]
    for name in ("a", "bc", "def", "ghij", "klmno"):  # heads of many lengths
        path = written(tmp_path / name, [*settings, (name, 7, b"\x00")], tensors, alignment=8)
        assert torch.equal(read_gguf(path)[1]["t"], torch.arange(32.0))


@pytest.mark.parametrize("change", [{"magic": b"GGML"}, {"version": 1}])
def test_other_files_are_refused(change, tmp_path):
    with pytest.raises(ValueError, match=r"path: expected a GGUF file of version 2 or 3, got a\.gguf"):
        read_gguf(written(tmp_path / "a.gguf", **change))


def test_other_kinds_of_tensors_are_refused(tmp_path):
    path = written(tmp_path / "a.gguf", tensors=[("t", (32,), 2, bytes(18))])
    with pytest.raises(ValueError, match=r"path: expected tensors of the kinds \[0, 3, 8\], got 2 for t"):
        read_gguf(path)


@pytest.mark.parametrize("kept", [4, 10, 30, 50, 60, 90, 110])
def test_a_file_that_ends_early_is_refused(kept, tmp_path):
    path = written(tmp_path / "a.gguf", [("name", 8, text("value"))], [("t", (32,), 8, bytes(34))])
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    with pytest.raises(ValueError, match=rf"path: expected a whole file, but a\.gguf ends after {kept} bytes"):
        read_gguf(path)
