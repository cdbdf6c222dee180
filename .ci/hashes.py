"""Write hashes.txt: what constraints.txt pins, with the SHA-256 of every file of each version.

    .venv/bin/python .ci/hashes.py SIMPLE-INDEX-URL [FOLDER...]

The index is asked by the simple API (PEP 503): the files of every platform are listed, and none is fetched.
Folders hold files that the index does not have, such as PyTorch's CPU build.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote
from urllib.request import Request, urlopen

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import Version

HERE = Path(__file__).parents[1]
LINK = re.compile(r"/([^/\"]+)#sha256=([0-9a-f]{64})")


def pin_of(file: str) -> tuple[str, str] | None:
    """Return the name and the public version of a wheel or source distribution."""
    try:
        name, version = (parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename)(file)[:2]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return name, version.public


def listed(index: str, name: str) -> list[tuple[str, str]]:
    """Return (file name, SHA-256) of every file that an index has of a project."""
    request = Request(f"{index.rstrip('/')}/{name}/", headers={"Accept": "text/html"})  # noqa: S310 - as given
    with urlopen(request, timeout=60) as answer:  # noqa: S310
        page = answer.read().decode()
    return [(unquote(file), digest) for file, digest in LINK.findall(page)]


def local(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (file name, SHA-256) of the files of a folder."""
    for file in sorted(folder.iterdir()):
        if file.is_file():
            yield file.name, hashlib.sha256(file.read_bytes()).hexdigest()


def main(index: str, *folders: str) -> None:
    """Hash the files of every pin; refuse if one has none."""
    pins = [line.split("==") for line in (HERE / "constraints.txt").read_text().splitlines()]
    with ThreadPoolExecutor(8) as threads:
        files = list(threads.map(lambda pin: listed(index, canonicalize_name(pin[0])), pins))
    more = [file for folder in folders for file in local(Path(folder))]
    lines = []
    for (name, version), found in zip(pins, files, strict=True):
        pin = (canonicalize_name(name), Version(version).public)
        hashes = sorted({digest for file, digest in (*found, *more) if pin_of(file) == pin})
        if not hashes:
            sys.exit(f"no file of {name} {version}: name a folder that holds one")
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in hashes)]))
    (HERE / "hashes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
