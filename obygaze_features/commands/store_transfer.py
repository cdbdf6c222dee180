"""`obygaze store pack, unpack, push, pull`: pack and transfer stores."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import obygaze_features as of
from obygaze_features.commands.store_output import fingerprint
from obygaze_features.options import EXISTING, FILE, LOCAL, Answer
from obygaze_features.signatures import argument, command, option
from obygaze_features.text import counted

if TYPE_CHECKING:
    from obygaze_features.exchange.transfer import Downloaded


@command()
def pack(
    store: Annotated[Path, argument(type=LOCAL)],
    *,
    out: Annotated[
        Path | None, option("Zip file to write.  [default: NAME-VERSION.zip beside the store]", type=FILE)
    ] = None,
) -> Answer:
    """Pack a sealed store into one zip file; the same store gives the same bytes.

    Commands that read a store also read the zip, such as `obygaze store inspect films-1.0.0.zip`, without
    unpacking it. `obygaze store pull` also downloads from a zip on a server.

    \b
    Examples:
      obygaze store pack stores/films-1.0.0
      obygaze store pack stores/films --out /share/films.zip
    """
    path = of.pack(store, out, progress=True)
    size = path.stat().st_size
    digest = fingerprint(path)
    document = {"file": str(path), "bytes": size, "fingerprint": digest}
    return Answer(document, f"{path}: {size / 1e6:.1f} MB, fingerprint {digest}")


@command()
def unpack(
    packed: Annotated[Path, argument(type=LOCAL, metavar="ZIP")],
    *,
    out: Annotated[
        Path | None, option("Folder to write.  [default: NAME-VERSION beside ZIP]", type=LOCAL)
    ] = None,
) -> Answer:
    """Unpack ZIP, a packed store, into a folder, and check every file against its digest.

    \b
    Examples:
      obygaze store unpack films-1.0.0.zip
      obygaze store unpack films-1.0.0.zip --out stores/films-1.0.0
    """
    from obygaze_features.exchange.transfer import download, file_progress_shown
    from obygaze_features.store.files_zip import open_zip

    files = open_zip(packed)
    folder = out or packed.with_name(files.name)
    with file_progress_shown(progress=True, verb="unpack") as progress:
        result = download(files, folder, progress=progress)
    return _answer_download(result)


@command()
def pull(
    url: Annotated[str, argument(type=click.STRING, metavar="URL")],
    destination: Annotated[Path, argument(type=LOCAL, metavar="DEST")],
    *,
    arrays: Annotated[
        tuple[str, ...],
        option("Copy only this feature array (pooled, frames, tokens); repeatable.", metavar="NAME"),
    ] = (),
    clips: Annotated[
        Path | None,
        option(
            "Copy frames and tokens of these clips only: a file with one clip id per line, or a "
            "table with a column clip_id.",
            type=EXISTING,
        ),
    ] = None,
) -> Answer:
    """Copy a store, or only some arrays and clips of it, from a server into the folder DEST.

    URL is the http(s):// or s3:// address of a store's folder or zip, or
    hf://datasets/OWNER/NAME[@REVISION]. Every file is checked against its digest. If the download was
    stopped, the same command fetches what is missing. Credentials are those of the usual clients: AWS_*
    variables for S3, `hf auth login` for the Hugging Face Hub.

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

    clip_ids = None if clips is None else read_ids(clips)
    result = of.pull(url, destination, arrays=arrays or None, clips=clip_ids, progress=True)
    return _answer_download(result)


@command()
def push(
    store: Annotated[Path, argument(type=LOCAL)],
    destination: Annotated[str, argument(type=click.STRING, metavar="DEST")],
) -> Answer:
    """Copy a sealed store to DEST: a folder, s3://BUCKET/NAME or hf://datasets/OWNER/NAME.

    A store without a licence is refused. If the upload was stopped, the same command resumes it.
    Credentials are those of the usual clients: AWS_* variables for S3, `hf auth login` for the Hugging Face
    Hub.

    \b
    Examples:
      obygaze store push stores/films-1.0.0 /share/films-1.0.0
      obygaze store push stores/films-1.0.0 s3://bucket/films-1.0.0
      obygaze store push stores/films-1.0.0 hf://datasets/lab/films
    """
    url = of.push(store, destination, progress=True)
    digest = fingerprint(store)
    return Answer({"url": url, "fingerprint": digest}, f"{url}: fingerprint {digest}")


def _answer_download(result: "Downloaded") -> Answer:
    """Return what to print of a copied store: files copied, already present and left out; its fingerprint."""
    megabytes = result.octets / 1e6
    counts = f"{counted(result.files, 'file')}, {megabytes:.1f} MB, {result.kept} were here"
    if result.left:
        counts += f", {result.left} left out (fetch.txt)"
    digest = fingerprint(result.path)
    document = {**asdict(result), "path": str(result.path), "fingerprint": digest}
    return Answer(document, f"{result.path}: {counts}; fingerprint {digest}")
