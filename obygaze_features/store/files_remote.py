"""Find a sealed store at a URL: over HTTP and HTTPS, on S3, on the Hugging Face Hub."""

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from obygaze_features.errors import StoreError
from obygaze_features.store.files_http import HttpFiles
from obygaze_features.store.files_hub import open_hub
from obygaze_features.store.files_obstore import ObstoreFiles, connect
from obygaze_features.store.files_zip import is_zip_name, open_zip_in
from obygaze_features.store.store_files import StoreFiles

BACKSLASH = "\\"
# A path that went through pathlib has lost one of its slashes, or has those of Windows.
_URL = re.compile(r"(https?|s3|hf):[/\\]+(?=[^/\\])", re.IGNORECASE)


def as_url(path: Path | str) -> str | None:
    """Return the URL of a store or model, its scheme in small letters, without its last slash; else None.

    None is returned for a local path, and for an address of another scheme (`is_address`). A URL that was
    made a `Path` has lost a slash ("https:/host"), or has backslashes; this is repaired.
    """
    text = str(path)
    match = _URL.match(text)
    if match is None:
        return None
    scheme = match[1].lower()
    rest = text[match.end() :].replace(BACKSLASH, "/").rstrip("/")
    return f"{scheme}://{rest}"


def open_url(url: str) -> StoreFiles:
    """Return the files of the store at a URL, which is a folder or a zip; a folder is not read yet.

    Raises
    ------
    StoreError
        If the URL is not a valid one, or a zip is not what `pack` writes.
    """
    parts = urlsplit(url)
    has_user = bool(parts.username or parts.password)
    is_plain = not has_user and not parts.query and not parts.fragment
    if not is_plain:
        host_and_port = parts.netloc.rpartition("@")[2]
        raise StoreError(
            f"{parts.scheme}://{host_and_port}{parts.path}: this URL also has a user, a query "
            "or a fragment, which would be stored and shown; give the plain URL, and "
            "credentials where the library looks for them"
        )
    if parts.scheme == "hf":
        return open_hub(url)
    parent_url, _, name = url.rpartition("/")
    if is_zip_name(name):
        folder_of_zip = _files_below(parent_url, name="")  # without a name, as this folder is no store
        return open_zip_in(folder_of_zip, name, url)
    return _files_below(url, name)


def _files_below(url: str, name: str) -> StoreFiles:
    """Return the files below a URL. They are read with obstore if it is installed; S3 needs it."""
    is_http = urlsplit(url).scheme != "s3"
    if is_http and find_spec("obstore") is None:
        return HttpFiles(url, name)
    return ObstoreFiles(url, name, client=connect(url))
