"""Write .ci/hashes.txt: what constraints.txt pins, with the SHA-256 of every file of each version.

    .venv/bin/python .ci/hashes.py SIMPLE-INDEX-URL [FOLDER...]

The index is asked by the simple API (PEP 503): the files of every platform are listed, and none is fetched.
Folders hold files that the index does not have: PyTorch's CPU build for Linux on x86_64, whose version ends
in +cpu. There it is asked for by that version: the build of the index needs CUDA libraries, which are not
pinned, so it would be installed and fail to import.
"""

import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
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
BUILT = 'sys_platform == "linux" and platform_machine == "x86_64"'
ELSEWHERE = 'sys_platform != "linux" or platform_machine != "x86_64"'


def pin_of(file: str) -> tuple[str, str] | None:
    """Return the name and the version of a wheel or source distribution."""
    try:
        name, version = (parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename)(file)[:2]
    except (InvalidWheelFilename, InvalidSdistFilename):
        return None
    return name, str(version)


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


def entry(requirement: str, digests: set[str]) -> str:
    """Return the lines of a requirement with its digests."""
    return " \\\n    ".join([requirement, *(f"--hash=sha256:{one}" for one in sorted(digests))])


def main(index: str, *folders: str) -> None:
    """Hash the files of every pin; refuse if one has none."""
    pins = [line.split("==") for line in (HERE / "constraints.txt").read_text().splitlines()]
    with ThreadPoolExecutor(8) as threads:
        files = list(threads.map(lambda pin: listed(index, canonicalize_name(pin[0])), pins))
    more = [file for folder in folders for file in local(Path(folder))]
    digests = defaultdict(set)
    for file, digest in (*chain.from_iterable(files), *more):
        if pin := pin_of(file):
            digests[pin].add(digest)
    lines = []
    for name, version in pins:
        pin = canonicalize_name(name), str(Version(version))
        built = digests[pin[0], f"{pin[1]}+cpu"]
        if not digests[pin]:
            sys.exit(f"no file of {name} {version}: name a folder that holds one")
        if built:
            lines.append(entry(f"{name}=={version}+cpu ; {BUILT}", built))
        lines.append(entry(f"{name}=={version}{f' ; {ELSEWHERE}' if built else ''}", digests[pin]))
    (HERE / ".ci/hashes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
