"""Read what `torch.save` wrote, or safetensors, without running code, or say why that is refused."""

import warnings
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import SAFETENSORS, TORCH, file_kind, why_not


def load_torch(path: Path, refusal: type[ObygazeError]) -> Any:
    """Read tensors, and dicts and lists of them, from a file of torch or safetensors.

    Nothing else is unpickled, because that could run code.

    Parameters
    ----------
    path
        The file.
    refusal
        Class of the error to raise if it cannot be read.
    """
    import torch  # noqa: PLC0415 - imports need no torch for other files

    expected_kind = TORCH
    if path.suffix == ".safetensors" or file_kind(path).name == SAFETENSORS:
        expected_kind = SAFETENSORS
    try:
        if expected_kind == SAFETENSORS:
            from safetensors.torch import load_file  # noqa: PLC0415 - the same

            return load_file(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pickles and types that are refused anyway
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except Exception as error:  # what torch and safetensors raise for damaged bytes may be of any class
        is_error_of_system = isinstance(error, OSError) and error.filename is not None
        if is_error_of_system:  # such as a missing file; the message names it
            raise
        raise refusal(f"{path}: {_why_unreadable(error, path, expected_kind)}") from None


def _why_unreadable(error: Exception, path: Path, expected_kind: str) -> str:
    """Return why a file of tensors is not read, for a message."""
    has_refused_object = isinstance(error, UnpicklingError) and file_kind(path).name == TORCH
    if has_refused_object:
        return "refused: it is damaged, or holds more than tensors, which could run code; save tensors alone"
    return f"cannot be read: {why_not(path, expected_kind)}"
