"""The Hub, through its real client pointed at a stand-in: pushed, pinned to a commit, read and pulled.

The stand-in takes every file as a small one (in the commit itself). How the client uploads large files (Xet)
is not tested here.
"""

import base64
import hashlib
import json
import os
from urllib.parse import urlsplit

from obygaze_features.store import open_store
from tests.later import needs
from tests.process import python

from ..store.serving import Handler, serving
from ..store.toy_stores import sealed, tree

pytestmark = needs("huggingface_hub", "obstore")
COMMIT = "a" * 40
CHUNK = "data/features.zarr/toy/pooled/c/0/0"


class HubHandler(Handler):
    def do_GET(self):  # noqa: N802 - the name that http.server calls
        path = urlsplit(self.path).path
        self.server.requests.append((self.command, path, ""))
        if path == "/mended":
            self.server.damaged_files = set()
            self.say({})
            return
        if path.startswith("/api/datasets/lab/films/tree/"):
            self.say([self.entry(file) for file in sorted(self.server.root.rglob("*")) if file.is_file()])
            return
        if path.startswith("/api/datasets/lab/films"):
            self.say({"id": "lab/films", "sha": COMMIT})
            return
        file = self.server.root / path.partition("/resolve/")[2].partition("/")[2]
        if "/resolve/" not in path or not file.is_file():
            self.answer(404, X_Repo_Commit=COMMIT, X_Error_Code="EntryNotFound")
            return
        data = file.read_bytes()
        self.answer(200, data, ETag=f'"{hashlib.sha256(data).hexdigest()}"', X_Repo_Commit=COMMIT)

    def do_POST(self):  # noqa: N802 - the name that http.server calls
        path = urlsplit(self.path).path
        body = self.body()
        self.server.requests.append(("POST", path, ""))
        if "/preupload/" in path:
            paths = [file["path"] for file in json.loads(body)["files"]]
            as_regular = {"uploadMode": "regular", "shouldIgnore": False}
            self.say({"files": [{"path": path, **as_regular} for path in paths]})
        elif "/commit/" in path and self.server.n_commits_to_refuse:
            self.server.n_commits_to_refuse -= 1
            self.answer(412, X_Repo_Commit=COMMIT)
        elif "/commit/" in path:
            for line in body.splitlines():
                entry = json.loads(line)
                self.take(entry["key"], entry["value"])
            url = f"{self.server.url}/datasets/lab/films/commit/{COMMIT}"
            self.say({"commitUrl": url, "commitOid": COMMIT})
        elif path == "/api/validate-yaml":
            self.say({"errors": [], "warnings": []})
        else:
            self.say({"url": f"{self.server.url}/datasets/lab/films"})

    def take(self, key, value):
        """Take a line of a commit: write a file, and note the path, or note the commit that it follows."""
        if key == "header":
            self.server.requests.append(("PARENT", value.get("parentCommit", ""), ""))
        if key == "file":
            file = self.server.root / value["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(base64.b64decode(value["content"]))
            self.server.requests.append(("FILE", value["path"], ""))

    def entry(self, file):
        """Describe a file as the Hub does, with git's digest of it; of a flipped file the digest is wrong."""
        data = file.read_bytes()
        path = file.relative_to(self.server.root).as_posix()
        stated_size = len(data) + (path in self.server.damaged_files)
        oid = hashlib.sha1(b"blob %d\0" % stated_size + data, usedforsecurity=False).hexdigest()
        return {"type": "file", "path": path, "size": len(data), "oid": oid}

    def say(self, document):
        self.answer(200, json.dumps(document).encode(), X_Repo_Commit=COMMIT)

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)


# The client reads HF_ENDPOINT when it is imported: so in a process of its own.
CLIENT = """
import os
import sys
from pathlib import Path
from urllib.request import urlopen
from obygaze_features.errors import StoreError
from obygaze_features.store import open_store
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.exchange.publish import push
from obygaze_features.exchange.transfer import download
store, copy = Path(sys.argv[1]), Path(sys.argv[2])
try:
    push(FolderFiles(store), "hf://datasets/lab/films")
except StoreError as error:  # another push was faster
    print(error)
try:
    push(FolderFiles(store), "hf://datasets/lab/films")
except StoreError as error:  # another push was faster with a file
    print(error)
urlopen(os.environ["HF_ENDPOINT"] + "/mended")
print(push(FolderFiles(store), "hf://datasets/lab/films"))
download(locate("hf://datasets/lab/films@v1"), copy)
print(open_store("hf://datasets/lab/films").fingerprint)
try:
    open_store("hf://datasets/lab/films/nothing")
except StoreError as error:
    print(error)
"""


def test_a_store_goes_to_the_hub_and_comes_back(tmp_path):
    store = sealed(tmp_path, 20)
    (tmp_path / "hub").mkdir()
    with serving(tmp_path / "hub", HubHandler) as server:
        server.n_commits_to_refuse = 2
        server.damaged_files = {CHUNK}
        settings = {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(tmp_path / "home"),
            "HF_TOKEN": "hf_dont_tell",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        process = python("-c", CLIENT, store, tmp_path / "copy", env={**os.environ, **settings})
        requests = server.requests
    lost, mixed, place, fingerprint, missing = process.stdout.splitlines()
    assert lost.endswith("push again, which goes on")
    assert f"{CHUNK}: another push" in mixed
    assert place == f"hf://datasets/lab/films@{COMMIT}"
    assert fingerprint == open_store(store).fingerprint
    assert "nothing/data/features.zarr/zarr.json: missing" in missing
    assert tree(tmp_path / "hub") == tree(tmp_path / "copy") == tree(store)
    files = [path for method, path, _ in requests if method == "FILE"]
    assert set(files[-2:]) == {"manifest-sha256.txt", "tagmanifest-sha256.txt"}
    read = [path for method, path, _ in requests if "/resolve/" in path]
    assert all(f"/resolve/{COMMIT}/" in path for path in read)
    assert "hf_dont_tell" not in process.stdout + process.stderr
