"""Find a sealed store at a URL: over HTTP and HTTPS, on S3, on the Hugging Face Hub."""

import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from obygaze_features.errors import StoreError
from obygaze_features.store.files_http import HttpFiles
from obygaze_features.store.files_hub import open_hub
from obygaze_features.store.files_obstore import ObstoreFiles, connect
from obygaze_features.store.files_zip import ZIP_SUFFIX, open_within
from obygaze_features.store.store_files import StoreFiles

BACKSLASH = "\\"
# A path that went through pathlib has lost one of its slashes, or has those of Windows.
_URL = re.compile(r"(https?|s3|hf):[/\\]+(?=[^/\\])")


def as_url(path: Path | str) -> str | None:
    """Return a place as a URL without its last slash, or None if it is a path."""
    text = str(path)
    match = _URL.match(text)
    return f"{match[1]}://{text[match.end() :].replace(BACKSLASH, '/').rstrip('/')}" if match else None


def open_url(url: str) -> StoreFiles:
    """Find the store at a URL: a folder, or a zip by its name. Nothing is read of a folder yet.

    Raises
    ------
    StoreError
        If the URL cannot be one, or a zip is not what `pack` writes.
    """
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        host = parts.hostname or ""
        raise StoreError(
            f"{parts.scheme}://{host}{parts.path}: this URL also has a user, a query or a fragment, which "
            "would be stored and shown; give the plain URL, and credentials where the library looks for them"
        )
    if parts.scheme == "hf":
        return open_hub(url)
    above, _, name = url.rpartition("/")
    is_zip = name.lower().endswith(ZIP_SUFFIX)
    place, inner = (above, "") if is_zip else (url, name)
    plain = parts.scheme != "s3" and find_spec("obstore") is None
    files = HttpFiles(place, inner) if plain else ObstoreFiles(place, inner, client=connect(place))
    return open_within(files, name, url) if is_zip else files
