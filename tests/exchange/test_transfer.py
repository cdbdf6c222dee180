"""Bringing and putting stores: whole or in part, resumed, checked; what was sealed arrives, or nothing."""

import hashlib
import shutil
import sys
from urllib.parse import unquote

import numpy as np
import pytest

from obygaze_features.errors import InterruptedTransferError, StoreError
from obygaze_features.exchange.publish import pack, push
from obygaze_features.exchange.transfer import download, download_file
from obygaze_features.store import open_store, seal, verify
from obygaze_features.store.format import RAGGED_ARRAYS
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles, absent_files

from ..store.serving import Handler, serving
from ..store.toy_stores import sealed, staged, tree

pytest.importorskip("obstore")


@pytest.fixture(scope="session")
def whole(served_folder):
    return tree(served_folder / "toy-1.0.0")


FRAMES = RAGGED_ARRAYS["frames"].chunk
CHUNK = "data/features.zarr/toy/frames/c/1/0/0"


@pytest.fixture
def leave_partial_chunk(whole, tmp_path):
    """Leave what a stopped pull leaves: the beginning of a chunk."""

    def leave(data):
        digest = hashlib.sha256(whole[CHUNK]).hexdigest()
        partial = tmp_path / "copy.pulling" / f"{CHUNK}.{digest}.partial"
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)

    return leave


@pytest.fixture(params=["obstore", "standard library"])
def client(request, monkeypatch):
    """What asks servers: without obstore, as on a laptop's install, the standard library."""
    if request.param != "obstore":
        monkeypatch.setitem(sys.modules, "obstore", None)


def pull(url, destination, **settings):
    return download(locate(url), destination, **settings)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("place", ["toy-1.0.0", "toy-1.0.0.zip"])
def test_what_is_pulled_is_the_store_byte_for_byte(server, whole, tmp_path, place):
    pulled = pull(f"{server.url}/{place}", tmp_path / "copy-1.0.0")
    assert tree(tmp_path / "copy-1.0.0") == whole
    assert (pulled.files, pulled.kept, pulled.left) == (len(whole) - 1, 0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["copy-1.0.0"]


class Busy(Handler):
    """Answers each first request for a file with a status, and the next ones as usual."""

    status = 500

    def do_GET(self):  # noqa: N802
        if any(path == self.path for _, path, _ in self.server.requests):
            super().do_GET()
        else:
            self.server.requests.append((self.command, self.path, ""))
            self.answer(self.status)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    served_folder, whole, tmp_path, monkeypatch, status
):
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    with serving(served_folder, type("Busy", (Busy,), {"status": status})) as server:
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy-1.0.0")
    assert tree(tmp_path / "copy-1.0.0") == whole


def test_pulling_again_fetches_what_was_damaged_alone(server, served_folder, whole, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{server.url}/toy-1.0.0", copy)
    (copy / CHUNK).write_bytes(b"rubbish")
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to(served_folder / "toy-1.0.0" / "README.md")  # as git-annex does
    server.requests.clear()
    pulled = pull(f"{server.url}/toy-1.0.0", copy)
    assert tree(copy) == whole
    assert not (copy / "README.md").is_symlink()
    assert pulled.files == 2
    chunks_asked_for = [path for _, path, _ in server.requests if "/c/" in path]
    assert len(chunks_asked_for) == 1


@pytest.mark.usefixtures("client")
def test_a_broken_off_file_is_continued_not_sent_again(tmp_path):
    data = np.random.default_rng(0).bytes(3_000_000)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/big").write_bytes(data)
    with serving(tmp_path) as server:
        server.n_breaks_left = {"/big": 6}  # more often than the client itself tries again
        count = []
        digest = hashlib.sha256(data).hexdigest()
        download_file(
            locate(f"{server.url}/store"),
            "big",
            tmp_path / "big",
            digest,
            lambda *progress: count.append(progress),
        )
    assert (tmp_path / "big").read_bytes() == data
    assert server.n_bytes_sent < 1.1 * len(data)
    assert sum(progress for _, _, progress in count) == len(data)


@pytest.mark.usefixtures("client")
def test_a_web_page_in_place_of_a_missing_file_is_named_as_such(server, tmp_path):
    server.page_for_missing_files = b"<!doctype html><title>Not here</title>"
    with pytest.raises(StoreError, match="web page"):
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_server_that_never_gets_past_the_middle_is_given_up(tmp_path, monkeypatch):
    """It gives whole files only, so that every attempt begins again."""
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/big").write_bytes(bytes(1_000_000))
    with serving(tmp_path) as server:
        server.answers_ranges = False
        server.n_breaks_left = {"/big": 100}
        with pytest.raises(InterruptedTransferError):
            download_file(locate(f"{server.url}/store"), "big", tmp_path / "big", "0" * 64, lambda *_: None)
        assert server.n_breaks_left["/big"] > 50


def test_a_pull_that_is_stopped_makes_no_store(server, tmp_path):
    server.missing_files = {CHUNK}
    with pytest.raises(StoreError, match="frames/c/1/0/0"):
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreError, match=r"copy\.pulling"):
        open_store(tmp_path / "copy.pulling")


def test_pulling_again_goes_on_where_a_stopped_pull_was(server, whole, leave_partial_chunk, tmp_path):
    server.missing_files = {CHUNK}
    with pytest.raises(StoreError):
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    server.missing_files = set()
    server.requests = []
    leave_partial_chunk(whole[CHUNK][:700])
    pulled = pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole
    assert pulled.kept > 20  # nearly all files of the store
    assert [span for _, path, span in server.requests if path.endswith(CHUNK)] == ["bytes=700-"]


def test_wrong_bytes_of_a_stopped_pull_are_thrown_away(server, whole, leave_partial_chunk, tmp_path):
    leave_partial_chunk(b"rubbish")
    (tmp_path / "copy.pulling/data/stray").write_text("x", encoding="utf-8")
    pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole


@pytest.mark.usefixtures("client")
def test_a_file_that_arrives_with_a_wrong_byte_is_fetched_once_more_and_then_refused(server, tmp_path):
    server.damaged_files = {"/toy/frames/c/1/0/0"}
    with pytest.raises(StoreError, match="frames/c/1/0/0"):
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert len([path for _, path, _ in server.requests if path.endswith("/toy/frames/c/1/0/0")]) == 2


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        *((name, "a" * 64) for name in ("../evil", "data/../../evil", "/evil", "data//x", "data/a\\b")),
        *((name, "a" * 64) for name in ("data/.x", "data/x.partial", "e/x", f"data/{'x' * 190}")),
        ("data/extra", "x" * 64),
        ("data/extra", "../" * 21 + "x"),
    ],
)
def test_a_manifest_that_leads_out_of_the_store_is_refused(served_folder, tmp_path, name, digest):
    from obygaze_features.io import file_sha256
    from obygaze_features.store.store_files import digests_bytes, parse_digests

    folder = tmp_path / "served"
    shutil.copytree(served_folder / "toy-1.0.0", folder / "toy")
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        digests, _ = parse_digests((folder / "toy" / manifest).read_bytes())
        if manifest.startswith("tag"):
            digests["manifest-sha256.txt"] = file_sha256(folder / "toy/manifest-sha256.txt")
        else:
            digests[name] = digest
        (folder / "toy" / manifest).write_bytes(digests_bytes(digests))
    with serving(folder) as server, pytest.raises(StoreError, match=r"manifest-sha256\.txt"):
        pull(f"{server.url}/toy", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.usefixtures("client")
def test_without_ranges_a_whole_store_can_still_be_pulled(server, whole, leave_partial_chunk, tmp_path):
    server.answers_ranges = False
    server.n_breaks_left = {CHUNK: 1}
    leave_partial_chunk(whole[CHUNK][:99])
    pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole


def test_a_folder_that_is_no_store_is_not_pulled_into(server, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError):
        pull(f"{server.url}/toy-1.0.0", tmp_path / "mine")
    assert tree(tmp_path / "mine") == {"notes.txt": b"mine"}


def test_another_store_is_not_pulled_into(server, tmp_path):
    another = sealed(tmp_path, 8, name="other")
    before = tree(another)
    with pytest.raises(StoreError):
        pull(f"{server.url}/toy-1.0.0", another)
    assert tree(another) == before


# --- partial copies


@pytest.fixture
def pooled_copy(server, tmp_path):
    """A copy of the arrays `pooled` alone."""
    pull(f"{server.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])
    return tmp_path / "copy"


def test_a_copy_of_one_array_reads_that_array(served_folder, pooled_copy):
    original = open_store(served_folder / "toy-1.0.0")
    store = open_store(pooled_copy)
    assert store.fingerprint == original.fingerprint
    for name in ("toy", "alone"):
        assert np.array_equal(store[name].pooled(), original[name].pooled(), equal_nan=True)
    assert store["toy"].n_frames == original["toy"].n_frames


def test_pulling_one_array_asks_for_no_chunk_of_another(server, pooled_copy):
    assert pooled_copy.exists()
    assert not [path for _, path, _ in server.requests if "/frames/c" in path or "/tokens/c" in path]


@pytest.mark.parametrize(
    "read",
    [
        lambda group: group.frames(),
        lambda group: group.tokens(),
        lambda group: group.read("tt0000-é", "tokens"),
    ],
    ids=["frames", "tokens", "tokens of a clip"],
)
def test_reading_an_array_that_was_not_pulled_names_the_list_of_absent_files(pooled_copy, read):
    with pytest.raises(StoreError, match=r"fetch.txt"):
        read(open_store(pooled_copy)["toy"])


def test_a_copy_of_one_array_lists_the_files_that_it_lacks_with_their_urls(server, tmp_path):
    pulled = pull(f"{server.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])
    absent = absent_files(FolderFiles(tmp_path / "copy"))
    n_chunks_of_frames, n_chunks_of_tokens = 3, 10
    assert len(absent) == pulled.left == n_chunks_of_frames + n_chunks_of_tokens
    name = "data/features.zarr/toy/frames/c/2/0/0"
    assert absent[name] == f"{server.url}/toy-1.0.0/{name}"


@pytest.fixture
def clipped_copy(server, tmp_path):
    """A copy of the vectors and of one clip's frames, in chunk 1 of 3; the 10 chunks of tokens are left."""
    copy = tmp_path / "copy"
    pull(f"{server.url}/toy-1.0.0", copy, arrays=["pooled", "frames"], clips=["tt0070-é"])
    return copy


KEPT_CHUNKS = ["data/features.zarr/toy/frames/c/1/0/0", "data/features.zarr/toy/pooled/c/0/0"]


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_a_copy_of_some_clips_verifies_and_counts_the_files_that_were_not_pulled(clipped_copy, depth):
    report = verify(clipped_copy, depth)
    assert report.ok, report.problems
    n_chunks_of_frames, n_chunks_of_tokens = 2, 10
    assert report.counts["not pulled"] == n_chunks_of_frames + n_chunks_of_tokens


@pytest.mark.parametrize("depth", ["digests", "full"])
@pytest.mark.parametrize("name", [*KEPT_CHUNKS, "README.md"])
def test_a_flipped_bit_in_a_partial_copy_is_found_by_digests(clipped_copy, depth, name):
    sound = (clipped_copy / name).read_bytes()
    (clipped_copy / name).write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert name in {problem.file for problem in verify(clipped_copy, depth).problems}


def test_a_flipped_bit_in_the_card_of_a_partial_copy_is_found_quickly(clipped_copy):
    sound = (clipped_copy / "README.md").read_bytes()
    (clipped_copy / "README.md").write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert "README.md" in {problem.file for problem in verify(clipped_copy, "quick").problems}


@pytest.mark.parametrize("depth", ["digests", "full"])
@pytest.mark.parametrize("name", [*KEPT_CHUNKS, "README.md"])
def test_a_file_that_a_partial_copy_lost_is_missed_by_digests(clipped_copy, depth, name):
    (clipped_copy / name).unlink()
    assert verify(clipped_copy, depth).problems


@pytest.mark.parametrize("depth", ["digests", "full"])
def test_a_list_of_absent_files_that_are_not_of_the_store_is_found_by_digests(clipped_copy, depth):
    (clipped_copy / "fetch.txt").write_text("https://example.org/x - data/nothing\n", encoding="utf-8")
    assert any(problem.file == "fetch.txt" for problem in verify(clipped_copy, depth).problems)


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_a_torn_list_of_absent_files_is_found_at_every_depth(clipped_copy, depth):
    (clipped_copy / "fetch.txt").write_text("nonsense\n", encoding="utf-8")
    whats = [problem.what for problem in verify(clipped_copy, depth).problems]
    assert any("line 1: expected 'URL - FILE'" in what for what in whats)


def test_the_frames_of_some_clips_come_with_their_chunks(server, served_folder, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{server.url}/toy-1.0.0", copy, clips=["tt0070-é", "tt0149-é"])
    same = open_store(served_folder / "toy-1.0.0")["toy"]
    group = open_store(copy)["toy"]
    for clip in ("tt0070-é", "tt0149-é"):
        for array in ("pooled", "frames", "tokens"):
            assert np.array_equal(group.read(clip, array), same.read(clip, array))
    assert np.array_equal(group.pooled(), same.pooled(), equal_nan=True)
    with pytest.raises(StoreError):
        group.read("tt0000-é", "frames")


@pytest.fixture(params=["ragged-1.0.0", "ragged-1.0.0.zip"])
def ragged_url(server, request):
    """A store of frames of any number on a server, as a folder and as a zip."""
    return f"{server.url}/{request.param}"


@pytest.fixture
def ragged_copy(ragged_url, tmp_path):
    """A copy of two clips of it."""
    pull(ragged_url, tmp_path / "copy", clips=["c07", "c31"])
    return tmp_path / "copy"


def test_a_copy_of_some_clips_reads_their_ragged_frames(served_folder, ragged_copy):
    original = open_store(served_folder / "ragged-1.0.0")["toy"]
    group = open_store(ragged_copy)["toy"]
    assert np.array_equal(group.row_size, original.row_size)
    assert np.array_equal(group.time_s, original.time_s)
    for clip in ("c07", "c31"):
        assert np.array_equal(group.read(clip, "frames"), original.read(clip, "frames"))


def copied_chunks(copy):
    return {int(path.parent.name) for path in copy.glob("data/features.zarr/toy/frames/c/*/0")}


def test_a_copy_of_some_clips_has_the_chunks_that_their_frames_lie_in_alone(served_folder, ragged_copy):
    chunks_of = frame_chunks(open_store(served_folder / "ragged-1.0.0")["toy"])
    assert copied_chunks(ragged_copy) == chunks_of["c07"] | chunks_of["c31"]
    assert copied_chunks(ragged_copy) < set().union(*chunks_of.values())


def test_a_copy_of_some_clips_refuses_frames_that_it_lacks(served_folder, ragged_copy):
    group = open_store(ragged_copy)["toy"]
    chunks_of = frame_chunks(open_store(served_folder / "ragged-1.0.0")["toy"])
    lacking = [clip for clip, chunks in chunks_of.items() if not chunks <= copied_chunks(ragged_copy)]
    assert lacking
    for clip in lacking[:2]:
        with pytest.raises(StoreError, match=r"fetch\.txt"):
            group.read(clip, "frames")


def test_a_pulled_copy_of_some_ragged_clips_verifies_without_problems(ragged_copy):
    report = verify(ragged_copy, "full")
    assert report.ok, report.problems


def test_pulling_the_rest_of_a_ragged_store_makes_the_copy_whole(served_folder, ragged_url, ragged_copy):
    pull(ragged_url, ragged_copy)
    assert tree(ragged_copy) == tree(served_folder / "ragged-1.0.0")


def frame_chunks(group):
    """Return clip -> numbers of the chunks in which its frames lie, in a ragged group."""
    chunks = {}
    ends = group.frame_ends.tolist()
    sizes = group.row_size.tolist()
    for clip, end, size in zip(group.clip_ids, ends, sizes, strict=True):
        chunks[clip] = set(range((end - size) // FRAMES, (end - 1) // FRAMES + 1))
    return chunks


def test_a_damaged_chunk_of_a_part_of_ragged_frames_is_found(server, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{server.url}/ragged-1.0.0", copy, clips=["c07"])
    assert verify(copy, "full").ok
    chunk = min(copy.glob("data/features.zarr/toy/frames/c/*/0"))
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert verify(copy, "full").problems


@pytest.mark.parametrize("place", ["ragged-1.0.0", "ragged-1.0.0.zip"])
def test_frames_of_any_number_are_read_from_servers_and_zips(server, served_folder, place):
    same = open_store(served_folder / "ragged-1.0.0")["toy"]
    for where in (f"{server.url}/{place}", served_folder / place):
        store = open_store(where)
        assert store["toy"].frames().tobytes() == same.frames().tobytes()
        assert np.array_equal(store["toy"].read("c05", "frames"), same.read("c05", "frames"))
        assert store.to_zarr()["toy/frames"][:].tobytes() == same.frames().tobytes()
        assert np.array_equal(store["toy"].to_xarray().frames[5:1500].values, same.frames()[5:1500])
        assert verify(where, "full").ok


def test_a_second_array_is_added_to_a_partial_copy(server, pooled_copy):
    pull(f"{server.url}/toy-1.0.0", pooled_copy, arrays=["frames"])
    assert open_store(pooled_copy)["toy"].frames().shape == (150, 3, 4)
    n_chunks_of_tokens = 10
    assert verify(pooled_copy, "full").counts["not pulled"] == n_chunks_of_tokens


def test_pulling_everything_makes_a_partial_copy_whole(server, whole, pooled_copy):
    pull(f"{server.url}/toy-1.0.0", pooled_copy, arrays=["frames"])
    pulled = pull(f"{server.url}/toy-1.0.0", pooled_copy)
    n_chunks_of_tokens = 10
    assert (pulled.files, pulled.left) == (n_chunks_of_tokens, 0)
    assert tree(pooled_copy) == whole


def test_pulling_one_array_leaves_a_whole_copy_whole(server, whole, tmp_path):
    pull(f"{server.url}/toy-1.0.0", tmp_path / "copy")
    pull(f"{server.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])
    assert tree(tmp_path / "copy") == whole


def test_a_partial_copy_is_not_packed(pooled_copy, tmp_path):
    with pytest.raises(StoreError):
        pack(FolderFiles(pooled_copy), tmp_path / "x.zip")


@pytest.mark.parametrize("place", ["a folder", "s3://bucket/toy"])
def test_a_partial_copy_is_not_pushed(pooled_copy, tmp_path, place):
    with pytest.raises(StoreError):
        push(FolderFiles(pooled_copy), str(tmp_path / "there") if place == "a folder" else place)


def test_a_partial_copy_from_a_path_with_odd_signs_verifies_and_does_not_hold_the_path(
    served_folder, tmp_path
):
    there = tmp_path / "Ann Müller's 100% films" / "f 50% ü - data-1.0.0"
    shutil.copytree(served_folder / "toy-1.0.0", there)
    copy = tmp_path / "copy of it"
    pull(there, copy, arrays=["pooled"])
    assert verify(copy, "full").ok
    lines = (copy / "fetch.txt").read_text(encoding="ascii").splitlines()
    assert all(len(line.split()) == 3 for line in lines)  # RFC 8493: URL, length, name
    url, _, listed = lines[0].split()
    assert unquote(url) == f"file:{there.name}/{listed}"
    assert not [data for data in tree(copy).values() if b"ller" in data or str(tmp_path).encode() in data]
    pull(there, copy)
    assert verify(copy, "full").ok


# --- pushing to a folder


def test_a_store_is_pushed_to_a_folder_and_not_over_http(served_folder, whole, tmp_path):
    store = FolderFiles(served_folder / "toy-1.0.0")
    assert push(store, str(tmp_path / "share")) == str(tmp_path / "share")
    assert tree(tmp_path / "share") == whole
    for place in ("https://example.org/toy", tmp_path / "share/toy-1.0.0"):  # a store never changes
        with pytest.raises(StoreError):
            push(store, place)
    assert tree(tmp_path / "share") == whole


def test_a_store_without_a_licence_is_not_pushed(tmp_path):
    staged(tmp_path, 8)
    store = seal(None, tmp_path / "toy", licence="NOASSERTION")
    for there in (tmp_path / "there", "s3://bucket/toy", "hf://datasets/me/toy"):
        with pytest.raises(StoreError, match=r"--licence.*--store-version"):
            push(FolderFiles(store), str(there))
    assert not (tmp_path / "there").exists()
