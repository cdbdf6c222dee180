"""A marked folder and marked secrets, and where they must never turn up."""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

MARK = "Läb of märker-7f3a"
"""Names the folder in which everything happens."""
SECRETS = {
    "AWS_ACCESS_KEY_ID": "mark1keyid",
    "AWS_SECRET_ACCESS_KEY": "mark2secret",
    "AWS_SESSION_TOKEN": "mark3session",
    "HF_TOKEN": "hf_mark4token",
    "HTTPS_PROXY": "http://mark5user:mark6password@proxy.invalid:1",
    "LOGNAME": "mark7login",
    "USER": "mark7login",
    "HOSTNAME": "mark8host",
}
"""What the environment holds meanwhile."""
SECRET_VALUES = tuple(sorted(set(re.findall(r"\w*mark\d\w+", " ".join(SECRETS.values())))))
_WRITTEN = (MARK, json.dumps(MARK)[1:-1], MARK.replace(" ", "%20"), *SECRET_VALUES)


def contents(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, unpacked if it is a zip."""
    data = path.read_bytes()
    yield data
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            yield from (packed.read(name) for name in packed.namelist())


def marks_in(files: Iterable[Path]) -> list[tuple[Path, str]]:
    """List the files that hold a mark, with what they hold."""
    return [
        (path, mark)
        for path in files
        for data in contents(path)
        for mark in _WRITTEN
        if mark.encode() in data
    ]


def files_below(*folders: Path) -> list[Path]:
    """List the files below folders; a stage, which stays on the machine, may name what it grows."""
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and ".staging" not in str(path)
    ]
