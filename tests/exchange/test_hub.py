"""The Hub, through its real client pointed at a stand-in: pushed, pinned to a commit, read and pulled.

The stand-in takes every file as a small one (in the commit itself). How the client uploads large files (Xet)
is not tested here.
"""

import base64
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from obygaze_features.errors import StoreError
from obygaze_features.store import open_store
from obygaze_features.store.files_hub import open_hub
from tests.lazy_import import needs
from tests.process import python

from ..store.serving import Handler, serving
from ..store.toy_stores import bytes_of_files, make_sealed_store

pytestmark = needs("huggingface_hub", "obstore")
COMMIT = "a" * 40
CHUNK = "data/features.zarr/toy/pooled/c/0/0"


class HubHandler(Handler):
    """Answers as the Hub does for the data set lab/films, whose only commit is `COMMIT`.

    It refuses as many commits as `n_commits_to_refuse` says, and lists `damaged_files` with a wrong digest
    until a test asks for the path /mended. Among the requests are PARENT, the commit that a commit follows,
    and FILE, each file of a commit.
    """

    def do_GET(self):  # noqa: N802 - the name that http.server calls
        """Answer with the list of files, with what the data set is, or with a file."""
        path = urlsplit(self.path).path
        self.server.requests.append((self.command, path, ""))
        if path == "/mended":
            self.server.damaged_files = set()
            self.say({})
        elif path.startswith("/api/datasets/lab/films/tree/"):
            files = [file for file in sorted(self.server.root.rglob("*")) if file.is_file()]
            self.say([self.entry(file) for file in files])
        elif path.startswith("/api/datasets/lab/films"):
            self.say({"id": "lab/films", "sha": COMMIT})
        else:
            self.send_file(path)

    def send_file(self, path):
        """Answer with the file of a path .../resolve/REVISION/FILE, or with 404 where there is none."""
        _, _, revision_and_name = path.partition("/resolve/")
        _, _, name = revision_and_name.partition("/")
        file = self.server.root / name
        if name and file.is_file():
            data = file.read_bytes()
            self.answer(200, data, ETag=f'"{hashlib.sha256(data).hexdigest()}"', X_Repo_Commit=COMMIT)
        else:
            self.answer(404, X_Repo_Commit=COMMIT, X_Error_Code="EntryNotFound")

    def do_POST(self):  # noqa: N802 - the name that http.server calls
        """Answer the requests of a push: to create the data set, to check its card and files, to commit."""
        path = urlsplit(self.path).path
        body = self.body()
        self.server.requests.append(("POST", path, ""))
        if "/preupload/" in path:
            in_the_commit_itself = {"uploadMode": "regular", "shouldIgnore": False}
            files = json.loads(body)["files"]
            self.say({"files": [{"path": file["path"], **in_the_commit_itself} for file in files]})
        elif "/commit/" in path:
            self.commit(body)
        elif path == "/api/validate-yaml":
            self.say({"errors": [], "warnings": []})
        else:
            self.say({"url": f"{self.server.url}/datasets/lab/films"})

    def commit(self, body):
        """Take the lines of a commit, or refuse it with 412, as the Hub does if another one came before."""
        if self.server.n_commits_to_refuse:
            self.server.n_commits_to_refuse -= 1
            self.answer(412, X_Repo_Commit=COMMIT)
            return
        for line in body.splitlines():
            entry = json.loads(line)
            self.take(entry["key"], entry["value"])
        url = f"{self.server.url}/datasets/lab/films/commit/{COMMIT}"
        self.say({"commitUrl": url, "commitOid": COMMIT})

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
        """Describe a file as the Hub does, with git's digest of it; a damaged file has a wrong digest."""
        data = file.read_bytes()
        path = file.relative_to(self.server.root).as_posix()
        size_in_digest = len(data)
        if path in self.server.damaged_files:
            size_in_digest += 1
        oid = hashlib.sha1(b"blob %d\0" % size_in_digest + data, usedforsecurity=False).hexdigest()
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
PUSH_AND_PULL = """
import json
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

def error_of(work):
    try:
        work()
    except StoreError as error:
        return str(error)

store, copy = Path(sys.argv[1]), Path(sys.argv[2])
place = "hf://datasets/lab/films"
outcome = {}
# The two keys are the reasons why the first push and the second one fail.
outcome["another push was faster"] = error_of(lambda: push(FolderFiles(store), place))
outcome["a file is of another push"] = error_of(lambda: push(FolderFiles(store), place))
urlopen(os.environ["HF_ENDPOINT"] + "/mended")
outcome["pushed to"] = push(FolderFiles(store), place)
download(locate(f"{place}@v1"), copy)
outcome["fingerprint"] = open_store(place).fingerprint
outcome["no store"] = error_of(lambda: open_store(f"{place}/nothing"))
print(json.dumps(outcome))
"""
"""Push a store three times, the first two in vain, pull a copy, open it; print what each step gave."""


DO_NOT_TELL = "hf_dont_tell"
"""The token of the client."""


@dataclass(frozen=True)
class PushAndPull:
    """What a run of `PUSH_AND_PULL` gave.

    Attributes
    ----------
    store, copy, hub
        Folders of the store, of the copy that was pulled, and of what the Hub has.
    outcome
        What it printed of each step: step -> an error's message, or what the step gave.
    printed
        All of that and of its messages.
    requests
        (method, path or commit, range) of every request.
    """

    store: Path
    copy: Path
    hub: Path
    outcome: dict[str, str]
    printed: str
    requests: list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run `PUSH_AND_PULL` once for all tests, as it takes seconds, against a stand-in of the Hub.

    The stand-in refuses the first two commits, which are the two tries of the first push. During the second
    push it lists `CHUNK` with a wrong digest. The third push succeeds.
    """
    folder = tmp_path_factory.mktemp("hub")
    store, copy, hub = make_sealed_store(folder, 20), folder / "copy", folder / "hub"
    hub.mkdir()
    with serving(hub, HubHandler) as server:
        server.n_commits_to_refuse = 2
        server.damaged_files = {CHUNK}
        settings = {
            "HF_ENDPOINT": server.url,
            "HF_HOME": str(folder / "home"),
            "HF_TOKEN": DO_NOT_TELL,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        process = python("-c", PUSH_AND_PULL, store, copy, env={**os.environ, **settings})
    printed = process.stdout + process.stderr
    return PushAndPull(store, copy, hub, json.loads(process.stdout), printed, server.requests)


@pytest.mark.long
def test_a_store_is_pushed_to_the_hub_and_pulled_byte_for_byte(run):
    """A program pushed the store in the folder `run.store` to a stand-in of the Hub, and pulled a copy.

    The stand-in keeps its files in `run.hub`. The address that a push gives has the commit, with which it
    always leads to the same files. The token of the client is in nothing that the program printed.
    """
    assert run.outcome["pushed to"] == f"hf://datasets/lab/films@{COMMIT}"

    pushed_files = bytes_of_files(run.store)
    assert bytes_of_files(run.hub) == pushed_files
    assert bytes_of_files(run.copy) == pushed_files

    token_of_client = DO_NOT_TELL
    assert token_of_client not in run.printed


@pytest.mark.long
def test_a_push_whose_commit_the_hub_refuses_twice_fails_and_says_to_push_again(run):
    """The Hub refuses a commit if somebody else's came first; its client then tries once more.

    The stand-in of the Hub refused both tries of the first push, which failed. The message tells the user to
    push again.
    """
    message_of_first_push = run.outcome["another push was faster"]

    assert message_of_first_push.endswith("push again, which goes on")


@pytest.mark.long
def test_a_push_is_refused_that_finds_a_file_with_other_bytes_on_the_hub_and_names_the_file(run):
    """Where the Hub has a file of the same name with another digest, somebody else pushed another store.

    During the second push, the stand-in of the Hub listed one chunk of `pooled` with the digest of other
    bytes. The push failed, with a message that names this file.
    """
    message_of_second_push = run.outcome["a file is of another push"]

    assert "data/features.zarr/toy/pooled/c/0/0: another push" in message_of_second_push


@pytest.mark.long
def test_a_store_on_the_hub_is_opened_and_a_folder_without_one_refused_by_the_file_that_is_missing(run):
    """A program opened hf://datasets/lab/films, where the store had been pushed, and its folder `nothing`."""
    assert run.outcome["fingerprint"] == open_store(run.store).fingerprint
    assert "nothing/data/features.zarr/zarr.json: missing" in run.outcome["no store"]


@pytest.mark.long
def test_the_manifests_are_pushed_last(run):
    """Without the lists of digests there is no whole store, so they must come after all other files.

    The stand-in of the Hub noted each file that was pushed, in their order.
    """
    pushed_files = [path for method, path, _ in run.requests if method == "FILE"]

    last_two_files = set(pushed_files[-2:])
    assert last_two_files == {"manifest-sha256.txt", "tagmanifest-sha256.txt"}


@pytest.mark.long
def test_all_files_are_read_of_one_commit(run):
    """Read by name of a branch, files of two versions could be mixed.

    The path of a file that is read is .../resolve/COMMIT/FILE.
    """
    paths_read = [path for _, path, _ in run.requests if "/resolve/" in path]
    assert paths_read
    assert all(f"/resolve/{COMMIT}/" in path for path in paths_read)


@pytest.mark.parametrize("commit", [None, "", "main", COMMIT[1:]])
def test_a_data_set_of_which_the_hub_gives_no_commit_is_not_opened(monkeypatch, commit):
    """Without a fixed commit, the files of a store could be of several versions.

    A commit has 40 digits: the Hub answers with none, an empty text, a branch, or one of 39 digits.
    """
    import huggingface_hub

    described = SimpleNamespace(sha=commit)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda *_, **__: described)

    with pytest.raises(StoreError, match="no commit"):
        open_hub("hf://datasets/lab/films")
