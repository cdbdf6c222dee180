"""`obygaze store pack, unpack, push, pull`: pack and transfer stores."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import obygaze_features as of
from obygaze_features.commands.store_output import fingerprint
from obygaze_features.options import Answer, declared

if TYPE_CHECKING:
    from obygaze_features.exchange.transfer import Downloaded


@declared(__package__, "store pack")
def pack(store: Path, out: Path | None) -> Answer:
    """Pack a sealed store into one read-only zip; the same store gives the same bytes.

    It opens like the folder, here or on a server: obygaze store inspect films-1.0.0.zip

    \b
    Examples:
      obygaze store pack stores/films-1.0.0
      obygaze store pack stores/films --out /share/films.zip
    """
    path = of.pack(store, out, progress=True)
    size, made = path.stat().st_size, fingerprint(path)
    document = {"file": str(path), "bytes": size, "fingerprint": made}
    return Answer(document, f"{path}: {size / 1e6:.1f} MB, fingerprint {made}")


@declared(__package__, "store unpack")
def unpack(packed: Path, out: Path | None) -> Answer:
    """Unpack a store into a folder, checking every file against its digest.

    \b
    Examples:
      obygaze store unpack films-1.0.0.zip
      obygaze store unpack films-1.0.0.zip --out stores/films-1.0.0
    """
    from obygaze_features.exchange.transfer import download, files_shown
    from obygaze_features.store.files_zip import open_zip

    files = open_zip(packed)
    with files_shown(True, "unpack") as progress:
        done = download(files, out or packed.with_name(files.name), progress=progress)
    return _downloaded(done)


@declared(__package__, "store pull")
def pull(url: str, destination: Path, arrays: tuple[str, ...], clips: Path | None) -> Answer:
    """Copy a store, or only some arrays and clips of it, from a server into the folder DEST.

    URL is the http(s):// or s3:// address of a store's folder or zip, or hf://datasets/OWNER/NAME[@REVISION].
    Every file is checked against its digest. A stopped download resumes; running it again fetches what is
    missing. Credentials are found as the clients of S3 and of the Hub find them.

    \b
    Examples:
      obygaze store pull https://example.org/films-1.0.0 stores/films-1.0.0
      obygaze store pull https://example.org/films-1.0.0.zip stores/films-1.0.0 \\
          --arrays pooled
      obygaze store pull s3://bucket/films-1.0.0 stores/films-1.0.0 \\
          --arrays frames --clips few.txt
      obygaze store pull hf://datasets/lab/films@v1 stores/films-1.0.0
    """
    from obygaze_features.exchange.row_ids import read_ids

    wanted = None if clips is None else read_ids(clips)
    return _downloaded(of.pull(url, destination, arrays=arrays or None, clips=wanted, progress=True))


@declared(__package__, "store push")
def push(store: Path, destination: str) -> Answer:
    """Copy a sealed store to DEST: a folder, s3://BUCKET/NAME or hf://datasets/OWNER/NAME.

    A store without a licence is refused. A stopped upload resumes. Credentials are found as the clients
    of S3 and of the Hub find them (AWS_* variables, hf auth login).

    \b
    Examples:
      obygaze store push stores/films-1.0.0 /share/films-1.0.0
      obygaze store push stores/films-1.0.0 s3://bucket/films-1.0.0
      obygaze store push stores/films-1.0.0 hf://datasets/lab/films
    """
    url = of.push(store, destination, progress=True)
    made = fingerprint(store)
    return Answer({"url": url, "fingerprint": made}, f"{url}: fingerprint {made}")


def _downloaded(done: "Downloaded") -> Answer:
    left = f", {done.left} left out (fetch.txt)" if done.left else ""
    came = f"{done.files} files, {done.octets / 1e6:.1f} MB, {done.kept} were here{left}"
    made = fingerprint(done.path)
    document = {**asdict(done), "path": str(done.path), "fingerprint": made}
    return Answer(document, f"{done.path}: {came}; fingerprint {made}")
