"""Values travel unchanged, and a message from a sender that is not trusted does no harm."""

import io
import json
import zipfile
from collections import namedtuple

import numpy as np
import pytest
import torch

from mesa_lib.assignments.values import NotWrittenError, UnreadableValueError, copied, pack, same, unpack

VALUES = [
    None,
    True,
    0,
    -(2**70),
    1.5,
    float("nan"),
    float("inf"),
    "text",
    "",
    [],
    (),
    {},
    [1, (2.0, "x")],
    {"a": [np.arange(3)]},
    np.zeros((2, 3)),
    np.zeros(0),
    np.arange(4, dtype=np.int32),
    np.array(3.0),
    np.array([True]),
    np.array([1 + 2j]),
]


class Marked(np.ndarray):
    """An array that would be equal to everything."""

    def __eq__(self, other):
        return True


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_arrives_as_it_left(value):
    assert same(unpack(*pack(value)), value)
    assert same(copied(value), value)


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (torch.ones(2, dtype=torch.float64), np.ones(2)),
        (torch.ones(2, requires_grad=True), np.ones(2, dtype=np.float32)),
        (np.float64(2.5), 2.5),
        (np.bool_(True), True),
        (np.int64(3), 3),
        (namedtuple("Pair", "a b")(1, 2), (1, 2)),
        (np.ones(2).view(Marked), np.ones(2)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_types_arrive_as_plain_ones(value, arrives):
    for result in (unpack(*pack(value)), copied(value)):
        assert type(result) is type(arrives)
        assert same(result, arrives)


def test_a_copy_shares_nothing():
    array = np.zeros(2)
    copy = copied([array])
    copy[0][0] = 1
    assert array[0] == 0


@pytest.mark.parametrize("value", [..., [1, ...], {"a": ...}])
def test_an_ellipsis_is_not_written_yet(value):
    with pytest.raises(NotWrittenError):
        pack(value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "type object"),
        (np.array([object()]), "dtype object, not of numbers"),
        (np.array(["a"]), "not of numbers"),
        (np.zeros(9 * 2**20), "larger than 64 MB"),
        ({1, 2}, "type set"),
        (lambda: 1, "type function"),
    ],
    ids=["object", "objects", "texts", "large", "set", "function"],
)
def test_what_cannot_travel_is_refused_in_words(value, message):
    with pytest.raises(UnreadableValueError, match=message):
        pack(value)


def test_a_list_inside_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UnreadableValueError, match="levels of lists"):
        pack(endless)


def archive(content: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    """An npz file with one entry."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as made:
        made.writestr("a0.npy", content)
    return file.getvalue()


def npy(shape: str, dtype: str = "<f8", data: bytes = b"") -> bytes:
    """An npy file with a header that may lie."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


ARRAY = json.dumps({"array": "a0"}).encode()
EMPTY = pack(None)[1]


@pytest.mark.parametrize(
    ("tree", "arrays"),
    [
        (b"", EMPTY),
        (b"[]", EMPTY),
        (b"[" * 100_000, EMPTY),
        (b'{"value": {}}', EMPTY),
        (b'{"value": 1, "list": []}', EMPTY),
        (b'{"other": 1}', EMPTY),
        (b'{"array": "a0"}', EMPTY),
        (b'{"value": ' + b"9" * 10_000 + b"}", EMPTY),
        (b'{"list": [' * 50 + b'{"value": 1}' + b"]}" * 50, EMPTY),
        (b'{"value": 1}', b"no archive"),
        (ARRAY, archive(npy("(2,)", data=bytes(16)), zipfile.ZIP_DEFLATED)),
        (ARRAY, archive(npy("(1000000000000,)"))),
        (ARRAY, archive(npy("(-1,)", data=bytes(8)))),
        (ARRAY, archive(npy("(1,)", dtype="|O", data=bytes(8)))),
        (ARRAY, archive(b"\x80\x04K\x01.")),
        (ARRAY, archive(b"")),
        (ARRAY, archive(npy("(2,)", data=bytes(16)))[:-30]),
    ],
)
def test_a_message_that_lies_is_refused(tree, arrays):
    with pytest.raises(UnreadableValueError):
        unpack(tree, arrays)


def test_the_archive_of_these_tests_can_be_read():
    assert same(unpack(ARRAY, archive(npy("(2,)", data=bytes(16)))), np.zeros(2))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (1, 1.0),
        ([1], (1,)),
        (np.zeros(2), np.zeros(3)),
        (np.zeros(1), np.zeros(1, dtype=int)),
        (np.zeros(1), 0.0),
        ({"a": 1}, {"b": 1}),
        (float("nan"), 1.0),
        ([1, 2], [1]),
    ],
)
def test_what_differs_is_not_the_same(a, b):
    assert not same(a, b)


def test_an_array_that_claims_to_be_larger_is_refused_before_memory_is_set_aside():
    with pytest.raises(UnreadableValueError) as refused:
        unpack(ARRAY, archive(npy("(3,)", data=bytes(16))))
    assert "not of the size that it claims" in str(refused.value)
