"""Files of a run: written whole or not at all, read with suspicion, and refused in words.

The layout of a run's folder:

    run.json                     what was asked for: experiment, scale, seeds, settings of each part, device
    PART/seed-K.json             finished: the numbers of a seed, its settings, and how they were made
    PART/seed-K.safetensors      the parameters of that seed at every recorded step
    PART/seeds.checkpoint        unfinished: where to go on (safetensors, "seeds" being "seed-K" or "seed-0-to-9")
    networks.safetensors         when all is done: the last parameters, "PART/parameter", one slice a seed in front
    figure.png                   made by `show`
    .locks/                      who is at work
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from safetensors.torch import load, save
from torch import Tensor

from mesa_lib.training import TrainingState

FORMAT = 1
_CHECKPOINT = "mesa checkpoint"

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "files may not grow as large here (see `ulimit -f`)",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "this user may not write there",
    errno.EPERM: "this user may not write there",
    errno.ENOTDIR: "a part of the path is a file",
    errno.EEXIST: "something that is no folder has this name",
    errno.EISDIR: "a folder has this name",
    errno.ENOENT: "there is no such folder, and none can be made",
}


class RunError(RuntimeError):
    """A run cannot go on: the message says why, and what to do."""


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that whatever happens there is the old one or the new one, and nothing in between.

    The bytes go to a neighbour, NAME.new, are forced to the disk, and then take the name. Whoever writes a file holds
    the lock of its seeds, so that nobody else uses the neighbour.

    Raises:
        RunError: it cannot be written; the old file is untouched.
    """
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        raise cannot_write(path, error) from error
    _force_folder(path.parent)


def cannot_write(path: Path, error: OSError) -> RunError:
    """The refusal of a file that cannot be written, after what was begun is taken away."""
    with contextlib.suppress(OSError):
        path.with_name(path.name + ".new").unlink(missing_ok=True)  # it may be what fills the disk
    reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
    return RunError(
        f"{path}: cannot be written, {reason}. What was finished and kept before is still there: make room, or give "
        "another --out, and repeat the same command"
    )


def _force_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the system can (POSIX)."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_json(path: Path, fields: Mapping[str, type], remedy: str) -> dict[str, Any]:
    """A JSON file of this format.

    Args:
        path: where it is.
        fields: what it must hold: name -> type.
        remedy: what to do where it is damaged, in words.

    Raises:
        RunError: it cannot be read, is no such file, is one of another format, or lacks a field.
    """
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise RunError(f"{path}: cannot be read, {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise RunError(
            f"{path}: expected a JSON file of a run, got something else or a part of one ({error}); {remedy}"
        ) from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        got = found.get("format") if isinstance(found, dict) else type(found).__name__
        raise RunError(f"{path}: expected a file of format {FORMAT}, got {got!r}; {remedy}")
    for name, kind in fields.items():
        if not isinstance(found.get(name), kind):
            got = type(found[name]).__name__ if name in found else "nothing"
            raise RunError(f"{path}: expected a {kind.__name__} under {name!r}, got {got}; {remedy}")
    return found


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """JSON, legible; what is not finite stands as a word."""
    return (json.dumps(_finite({"format": FORMAT, **content}), indent=1, allow_nan=False) + "\n").encode()


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def write_checkpoint(path: Path, state: TrainingState, header: Mapping[str, Any]) -> None:
    """Keep a training's state, with a header that says whose it is.

    Raises:
        RunError: see `write_whole`.
    """
    tensors = dict(state.tensors)
    said = {"format": FORMAT, "step": state.step, **_finite(header)}
    text = json.dumps(said | {"digest": _digest(tensors, said)})
    write_whole(path, save(tensors, metadata={_CHECKPOINT: text}))


def read_checkpoint(path: Path, expected: Mapping[str, Any]) -> tuple[TrainingState, dict[str, Any]] | None:
    """A training's state and its header; None where there is no checkpoint.

    Args:
        path: where it may be.
        expected: what its header must say.

    Raises:
        RunError: it is damaged, no checkpoint, or the checkpoint of something else.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read, {error.strerror}") from error
    remedy = "delete it to start these seeds afresh"
    tensors, header = _opened(path, content, remedy)
    if header.get("format") != FORMAT:
        raise RunError(f"{path}: expected a checkpoint of format {FORMAT}, got {header.get('format')!r}; {remedy}")
    if header.get("digest") != _digest(tensors, header):
        raise RunError(f"{path}: expected the numbers that were written, got others: the file is damaged; {remedy}")
    for name, value in _finite(expected).items():
        if header.get(name) != value:
            difference = _difference(name, header.get(name), value)
            raise RunError(
                f"{path}: is the checkpoint of something else: {difference}. Give another --out, or {remedy}"
            )
    return TrainingState(header["step"], tensors), header


def _opened(path: Path, content: bytes, remedy: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    try:
        tensors = load(content)
        length = int.from_bytes(content[:8], "little")
        text = json.loads(content[8 : 8 + length]).get("__metadata__", {}).get(_CHECKPOINT, "null")
        header = json.loads(text)
    except (safetensors.SafetensorError, ValueError) as error:
        raise RunError(f"{path}: expected a checkpoint, got a damaged or cut-off file ({error}); {remedy}") from error
    if not isinstance(header, dict):
        raise RunError(f"{path}: expected a checkpoint, got tensors of another program; {remedy}")
    return tensors, header


def _difference(name: str, got: Any, expected: Any) -> str:
    """Where two values of a header differ first, in words."""
    if isinstance(got, dict) and isinstance(expected, dict):
        for key in sorted(got.keys() | expected.keys()):
            if got.get(key) != expected.get(key):
                return _difference(f"{name}.{key}", got.get(key), expected.get(key))
    return f"{name} was {got!r}, and is {expected!r}"


def differences(got: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
    """Where two plain descriptions differ first, in words; None where they agree."""
    for name, value in json.loads(json.dumps(_finite(expected))).items():
        if got.get(name) != value:
            return _difference(name, got.get(name), value)
    return None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> None:
    """A safetensors file with a header of texts; what is no text there is JSON.

    Raises:
        RunError: see `write_whole`.
    """
    texts = {name: value if isinstance(value, str) else json.dumps(_finite(value)) for name, value in header.items()}
    write_whole(path, save({name: value.contiguous() for name, value in tensors.items()}, metadata=texts))


def read_tensors(path: Path, remedy: str) -> dict[str, Tensor]:
    """The tensors of a safetensors file; `remedy` says what to do where it is damaged.

    Raises:
        RunError: it cannot be read.
    """
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise RunError(f"{path}: cannot be read, {error.strerror}; {remedy}") from error
    except safetensors.SafetensorError as error:
        raise RunError(f"{path}: expected tensors, got a damaged or cut-off file ({error}); {remedy}") from error


def _digest(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> str:
    """Of the numbers and of all that the header says: a wrong step would be as bad as a wrong number."""
    said = {name: value for name, value in header.items() if name != "digest"}
    total = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(tensors):
        value = tensors[name].contiguous()
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def versions() -> dict[str, str]:
    """The versions that numbers may depend on."""
    return {
        # Its table of contents knows the ledger, which no room may import.
        "mesa_lib": sys.modules["mesa_lib"].__version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
    }


def git_state() -> dict[str, Any] | None:
    """The commit of the checkout that mesa_lib is part of, and whether files differ from it; None without git."""
    here = Path(__file__).resolve().parent

    def said(*words: str) -> str:
        command = ["git", "-C", str(here), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        # An installed copy may lie inside somebody else's checkout.
        if not said("ls-files", "files.py"):
            return None
        return {"commit": said("rev-parse", "HEAD"), "changed": bool(said("status", "--porcelain", "--", ".."))}
    except (OSError, subprocess.SubprocessError):
        return None
