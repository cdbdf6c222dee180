"""Bringing and putting stores: whole or in part, resumed, checked; what was sealed arrives, or nothing."""

import hashlib
import json
import shutil
import sys
from urllib.parse import unquote

import numpy as np
import pytest

from obygaze_features.errors import InterruptedTransferError, ObygazeError, StoreError
from obygaze_features.exchange.publish import pack, push
from obygaze_features.exchange.transfer import download, download_file
from obygaze_features.store import open_store, verify
from obygaze_features.store.format import RAGGED_ARRAYS
from obygaze_features.store.store import locate
from obygaze_features.store.store_files import FolderFiles, absent_files

from ..command import obygaze
from ..store.serving import Handler, serving
from ..store.toy_stores import bytes_of_files, make_sealed_store, make_stage, seal_stage_of

pytest.importorskip("obstore")


@pytest.fixture(scope="session")
def toy_files(served_folder):
    """The files of the store `toy-1.0.0` that the server has, and their bytes."""
    return bytes_of_files(served_folder / "toy-1.0.0")


FRAMES = RAGGED_ARRAYS["frames"].chunk
CHUNK = "data/features.zarr/toy/frames/c/1/0/0"
"""The second of three chunks of frames."""


@pytest.fixture
def leave_partial_chunk(toy_files, tmp_path):
    """Leave what a stopped pull leaves: bytes that it had of a chunk."""

    def leave(data):
        digest = hashlib.sha256(toy_files[CHUNK]).hexdigest()
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
def test_what_is_pulled_is_the_store_byte_for_byte(server_of_stores, toy_files, tmp_path, place):
    """A server has the store as a folder and as a zip. All files but the tag manifest are counted.

    None was there before, and none is left out.
    """
    pulled = pull(f"{server_of_stores.url}/{place}", tmp_path / "copy-1.0.0")

    assert bytes_of_files(tmp_path / "copy-1.0.0") == toy_files
    assert pulled.files == len(toy_files) - 1
    assert pulled.kept == 0
    assert pulled.left == 0
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


def busy_with(busy_status):
    """Make the class of a server that answers each first request for a file with this status."""

    class BusyWithThisStatus(Busy):
        status = busy_status

    return BusyWithThisStatus


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    "busy_status", [pytest.param(status, marks=pytest.mark.long) for status in (408, 429, 500)] + [503]
)
def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    served_folder, toy_files, tmp_path, monkeypatch, busy_status
):
    """A server answers 408 (too slow), 429 (too many requests), 500 (an error) or 503 (not available now).

    It does so to each first request for a file, and sends the file to every later one. All files arrive.
    """
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)

    with serving(served_folder, busy_with(busy_status)) as server:
        pull(f"{server.url}/toy-1.0.0", tmp_path / "copy-1.0.0")

    assert bytes_of_files(tmp_path / "copy-1.0.0") == toy_files


def test_pulling_again_fetches_only_what_was_damaged(server_of_stores, served_folder, toy_files, tmp_path):
    """A chunk is damaged, and git-annex has put a link in place of a file."""
    copy = tmp_path / "copy"
    pull(f"{server_of_stores.url}/toy-1.0.0", copy)
    (copy / CHUNK).write_bytes(b"rubbish")
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to(served_folder / "toy-1.0.0" / "README.md")

    server_of_stores.requests.clear()
    pulled = pull(f"{server_of_stores.url}/toy-1.0.0", copy)

    assert bytes_of_files(copy) == toy_files
    assert not (copy / "README.md").is_symlink()
    assert pulled.files == 2
    chunks_asked_for = [path for _, path, _ in server_of_stores.requests if "/c/" in path]
    assert len(chunks_asked_for) == 1


@pytest.fixture
def big_file(tmp_path):
    """Three megabytes in the file store/big of the folder."""
    data = np.random.default_rng(0).bytes(3_000_000)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/big").write_bytes(data)
    return data


@pytest.mark.usefixtures("client")
def test_a_file_that_breaks_off_on_the_way_is_continued_where_it_stopped(big_file, tmp_path):
    """A server breaks off six times while it sends a file of three megabytes.

    Less than a tenth of the bytes is sent twice. The progress adds up to the bytes of the file.
    """
    progress_bytes = []
    with serving(tmp_path) as server:
        server.n_breaks_left = {"/big": 6}  # more often than the client itself tries again
        download_file(
            locate(f"{server.url}/store"),
            "big",
            tmp_path / "big",
            hashlib.sha256(big_file).hexdigest(),
            lambda _n_files, _n_of_files, n_bytes: progress_bytes.append(n_bytes),
        )

    assert (tmp_path / "big").read_bytes() == big_file
    assert server.n_bytes_sent < 1.1 * len(big_file)
    assert sum(progress_bytes) == len(big_file)


@pytest.mark.usefixtures("client")
def test_a_web_page_in_place_of_a_missing_file_is_named_as_such(server_of_stores, tmp_path):
    """Some servers answer every request with success, and send a page that says that the file is absent."""
    server_of_stores.page_for_missing_files = b"<!doctype html><title>Not here</title>"

    with pytest.raises(StoreError, match="web page"):
        pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert not (tmp_path / "copy").exists()


def test_a_server_that_always_breaks_off_in_the_middle_is_given_up(big_file, tmp_path, monkeypatch):
    """A server breaks off each time in the middle of a large file, and gives no ranges of bytes.

    So every attempt begins again at the first byte, and none gets farther. After less than 50 attempts,
    without a wait between them here, the client gives up.
    """
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    with serving(tmp_path) as server:
        server.answers_ranges = False
        server.n_breaks_left = {"/big": 100}

        digest = hashlib.sha256(big_file).hexdigest()
        with pytest.raises(InterruptedTransferError):
            download_file(locate(f"{server.url}/store"), "big", tmp_path / "big", digest, lambda *_: None)
        n_attempts = 100 - server.n_breaks_left["/big"]
        assert n_attempts < 50


def test_a_pull_that_is_stopped_makes_no_store(server_of_stores, tmp_path):
    """The server lacks one chunk of the store. What was pulled before is in copy.pulling, no store."""
    server_of_stores.missing_files = {CHUNK}

    with pytest.raises(StoreError, match=CHUNK):
        pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreError, match=r"copy\.pulling"):
        open_store(tmp_path / "copy.pulling")


def test_pulling_again_goes_on_where_a_stopped_pull_was(
    server_of_stores, toy_files, leave_partial_chunk, tmp_path
):
    """The stopped pull left 700 bytes of a chunk; the next one asks for the bytes from 700 on."""
    server_of_stores.missing_files = {CHUNK}
    with pytest.raises(StoreError):
        pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    server_of_stores.missing_files = set()
    server_of_stores.requests = []
    leave_partial_chunk(toy_files[CHUNK][:700])

    pulled = pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert bytes_of_files(tmp_path / "copy") == toy_files
    assert pulled.kept > 20  # nearly all files of the store
    ranges_of_chunk = [
        byte_range for _, path, byte_range in server_of_stores.requests if path.endswith(CHUNK)
    ]
    assert ranges_of_chunk == ["bytes=700-"]


def test_wrong_bytes_of_a_stopped_pull_are_thrown_away(
    server_of_stores, toy_files, leave_partial_chunk, tmp_path
):
    """The stopped pull left other bytes as the beginning of a chunk, and a file that no store has."""
    leave_partial_chunk(b"rubbish")
    (tmp_path / "copy.pulling/data/stray").write_text("x", encoding="utf-8")

    pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert bytes_of_files(tmp_path / "copy") == toy_files


@pytest.mark.usefixtures("client")
def test_a_file_with_a_wrong_byte_is_fetched_twice_and_then_refused(server_of_stores, tmp_path):
    """The server always sends a wrong byte of one chunk. The first time, the network may be at fault."""
    server_of_stores.damaged_files = {CHUNK}

    with pytest.raises(StoreError, match=CHUNK):
        pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert not (tmp_path / "copy").exists()
    requests_for_chunk = [path for _, path, _ in server_of_stores.requests if path.endswith(CHUNK)]
    assert len(requests_for_chunk) == 2


def list_another_file(store, name, digest):
    """Add a file to the manifest of a store, and give its tag manifest the manifest's new digest."""
    from obygaze_features.io import file_sha256
    from obygaze_features.store.store_files import digests_bytes, parse_digests

    def add(manifest, added_name, added_digest):
        digests, _ = parse_digests((store / manifest).read_bytes())
        digests[added_name] = added_digest
        (store / manifest).write_bytes(digests_bytes(digests))

    add("manifest-sha256.txt", name, digest)
    digest_of_manifest = file_sha256(store / "manifest-sha256.txt")
    add("tagmanifest-sha256.txt", "manifest-sha256.txt", digest_of_manifest)


SOME_DIGEST = "a" * 64


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        pytest.param("../evil", SOME_DIGEST, id="the folder above"),
        pytest.param("data/../../evil", SOME_DIGEST, id="above by a detour"),
        pytest.param("/evil", SOME_DIGEST, id="absolute"),
        pytest.param("data//x", SOME_DIGEST, id="a folder without a name"),
        pytest.param("data/a\\b", SOME_DIGEST, id="a backslash"),
        pytest.param("data/.x", SOME_DIGEST, id="hidden"),
        pytest.param("data/x.partial", SOME_DIGEST, id="a partial file"),
        pytest.param("e/x", SOME_DIGEST, id="outside data"),
        pytest.param(f"data/{'x' * 190}", SOME_DIGEST, id="a long name"),
        pytest.param("data/extra", "x" * 64, id="no digest"),
        pytest.param("data/extra", "../" * 21 + "x", id="a path as the digest"),
    ],
)
def test_a_manifest_that_names_a_file_that_no_store_has_is_refused(served_folder, tmp_path, name, digest):
    """A server could otherwise have files written anywhere on this machine."""
    folder = tmp_path / "served"
    shutil.copytree(served_folder / "toy-1.0.0", folder / "toy")
    list_another_file(folder / "toy", name, digest)

    with serving(folder) as server, pytest.raises(StoreError, match=r"manifest-sha256\.txt"):
        pull(f"{server.url}/toy", tmp_path / "copy")

    assert not (tmp_path / "copy").exists()


@pytest.mark.usefixtures("client")
def test_without_ranges_a_whole_store_can_still_be_pulled(
    server_of_stores, toy_files, leave_partial_chunk, tmp_path
):
    """The server sends whole files alone, and breaks off once in a chunk, of which 99 bytes are here before.

    The chunk is then fetched from its first byte.
    """
    server_of_stores.answers_ranges = False
    server_of_stores.n_breaks_left = {CHUNK: 1}
    leave_partial_chunk(toy_files[CHUNK][:99])

    pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")

    assert bytes_of_files(tmp_path / "copy") == toy_files


@pytest.mark.usefixtures("client")
def test_without_ranges_a_zip_is_named_with_a_way_to_download_it(server_of_stores, tmp_path):
    """A zip is pulled by its parts alone, so that the advice to pull it would lead in a circle."""
    server_of_stores.answers_ranges = False

    with pytest.raises(StoreError, match=r"/toy-1\.0\.0\.zip: this server gives whole files only.*curl -O"):
        pull(f"{server_of_stores.url}/toy-1.0.0.zip", tmp_path / "copy")


@pytest.mark.parametrize("address", ["gs://bucket/toy", "sftp://host/toy"])
def test_a_store_is_not_pushed_into_a_folder_called_like_an_address(tmp_path, monkeypatch, address):
    """Addresses that nothing here writes to were taken for paths, so that the store seemed to be shared."""
    monkeypatch.chdir(tmp_path)
    source = make_sealed_store(tmp_path, 8)
    before = set(tmp_path.iterdir())

    with pytest.raises(ObygazeError, match=f"^{address}: expected a folder on this machine; .*s3://"):
        push(source, address)

    assert set(tmp_path.iterdir()) == before


def test_a_store_is_not_pulled_into_another_folder_or_store(server_of_stores, tmp_path):
    """One folder has notes of a person, the other is a store of other clips: both stay as they are."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine", encoding="utf-8")
    another = make_sealed_store(tmp_path, 8, name="other")

    for folder in (tmp_path / "mine", another):
        before = bytes_of_files(folder)
        with pytest.raises(StoreError):
            pull(f"{server_of_stores.url}/toy-1.0.0", folder)
        assert bytes_of_files(folder) == before


# --- partial copies


@pytest.fixture
def pooled_copy(server_of_stores, tmp_path):
    """A copy of the arrays `pooled` alone."""
    pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])
    return tmp_path / "copy"


def test_a_copy_of_one_array_reads_that_array(server_of_stores, served_folder, pooled_copy):
    """The store has frames and tokens too, of which the copy has none: the server was not asked for them."""
    original = open_store(served_folder / "toy-1.0.0")
    store = open_store(pooled_copy)

    assert store.fingerprint == original.fingerprint
    for name in ("toy", "alone"):
        assert np.array_equal(store[name].pooled(), original[name].pooled(), equal_nan=True)
    assert store["toy"].n_frames == original["toy"].n_frames
    requested_paths = [path for _, path, _ in server_of_stores.requests]
    assert not any("/frames/c" in path or "/tokens/c" in path for path in requested_paths)


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
    """The copy has pooled vectors alone. fetch.txt lists the files that it lacks, with their URLs."""
    group = open_store(pooled_copy)["toy"]

    with pytest.raises(StoreError, match=r"fetch.txt"):
        read(group)


def test_commands_that_show_a_store_count_the_files_that_a_copy_lacks(pooled_copy, capsys):
    """The copy has pooled vectors alone: 3 chunks of frames and 10 of tokens were not pulled."""
    assert obygaze("store", "inspect", pooled_copy, "--json") == 0
    assert json.loads(capsys.readouterr().out)["files_not_pulled"] == 3 + 10

    assert obygaze("store", "ls", pooled_copy.parent, "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert listed["features"].endswith("13 files not pulled")


def test_a_copy_whose_list_of_absent_files_is_damaged_is_shown_all_the_same(pooled_copy, capsys):
    """The list, fetch.txt, is no list any more; `store verify` says so, and the rest can be shown."""
    (pooled_copy / "fetch.txt").write_text("nonsense\n", encoding="utf-8")

    assert obygaze("store", "inspect", pooled_copy, "--json") == 0

    assert "files_not_pulled" not in json.loads(capsys.readouterr().out)


def test_a_copy_of_one_array_lists_the_files_that_it_lacks_with_their_urls(server_of_stores, tmp_path):
    """Of `toy`, 3 chunks of frames and 10 of tokens are absent."""
    pulled = pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])

    absent = absent_files(FolderFiles(tmp_path / "copy"))
    assert pulled.left == 3 + 10
    assert len(absent) == 3 + 10
    assert absent[CHUNK] == f"{server_of_stores.url}/toy-1.0.0/{CHUNK}"


@pytest.fixture
def copy_of_one_clip(server_of_stores, tmp_path):
    """A copy of the vectors of all clips and of the frames of one, which are in `CHUNK`."""
    copy = tmp_path / "copy"
    pull(f"{server_of_stores.url}/toy-1.0.0", copy, arrays=["pooled", "frames"], clips=["tt0070-é"])
    return copy


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_a_copy_of_some_clips_verifies_and_counts_absent_files(copy_of_one_clip, depth):
    """Of a store, the vectors of all clips were pulled, and of the arrays of frames what one clip needs.

    That is one of three chunks of frames. The store's tokens, which are in ten files, were not pulled.
    """
    absent_chunks_of_frames = 2
    absent_files_of_tokens = 10

    report = verify(copy_of_one_clip, depth)

    assert report.ok, report.problems
    assert report.counts["not pulled"] == absent_chunks_of_frames + absent_files_of_tokens


def flip_last_bit(path):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("name", [CHUNK, "data/features.zarr/toy/pooled/c/0/0", "README.md"])
def test_verifying_a_partial_copy_by_digests_finds_a_damaged_or_lost_file(copy_of_one_clip, name):
    """The files are ones that the copy has, and not those that were left out of it."""
    flip_last_bit(copy_of_one_clip / name)
    for depth in ("digests", "full"):
        assert name in {problem.file for problem in verify(copy_of_one_clip, depth).problems}

    (copy_of_one_clip / name).unlink()
    for depth in ("digests", "full"):
        assert verify(copy_of_one_clip, depth).problems


def test_verifying_a_partial_copy_quickly_finds_a_flipped_bit_in_its_card(copy_of_one_clip):
    """The card, README.md, is in the tag manifest, whose digests the quick check compares too."""
    flip_last_bit(copy_of_one_clip / "README.md")

    named_files = {problem.file for problem in verify(copy_of_one_clip, "quick").problems}
    assert "README.md" in named_files


def test_verify_finds_a_wrong_list_of_absent_files(copy_of_one_clip):
    """One that names a file that the store never had is found by digests, and a torn one at any depth.

    The list of a partial copy is fetch.txt.
    """
    (copy_of_one_clip / "fetch.txt").write_text("https://example.org/x - data/nothing\n", encoding="utf-8")
    for depth in ("digests", "full"):
        assert "fetch.txt" in {problem.file for problem in verify(copy_of_one_clip, depth).problems}

    (copy_of_one_clip / "fetch.txt").write_text("nonsense\n", encoding="utf-8")
    for depth in ("quick", "digests", "full"):
        messages = [problem.what for problem in verify(copy_of_one_clip, depth).problems]
        assert any("line 1: expected 'URL - FILE'" in message for message in messages)


def test_the_frames_of_some_clips_come_with_their_chunks(server_of_stores, served_folder, tmp_path):
    """Of a store of 150 clips, the clips 70 and 149 are pulled. A chunk has the frames of 64 clips.

    Those of 70 and 149 are in the second and the third, and clip 0 is in the first. Pooled vectors of all
    clips are in one chunk.
    """
    copy = tmp_path / "copy"
    pull(f"{server_of_stores.url}/toy-1.0.0", copy, clips=["tt0070-é", "tt0149-é"])

    same = open_store(served_folder / "toy-1.0.0")["toy"]
    group = open_store(copy)["toy"]
    for clip in ("tt0070-é", "tt0149-é"):
        for array in ("pooled", "frames", "tokens"):
            assert np.array_equal(group.read(clip, array), same.read(clip, array))
    assert np.array_equal(group.pooled(), same.pooled(), equal_nan=True)

    with pytest.raises(StoreError):
        group.read("tt0000-é", "frames")


def frame_chunks(group):
    """Return clip -> numbers of the chunks in which its frames lie, in a ragged group."""
    chunks = {}
    ends = group.frame_ends.tolist()
    sizes = group.row_size.tolist()
    for clip, end, size in zip(group.clip_ids, ends, sizes, strict=True):
        chunks[clip] = set(range((end - size) // FRAMES, (end - 1) // FRAMES + 1))
    return chunks


def numbers_of_frame_chunks_in(store):
    """List the chunks of frames that a folder of a store has, by their numbers in the names of files."""
    return {int(path.parent.name) for path in store.glob("data/features.zarr/toy/frames/c/*/0")}


@pytest.mark.parametrize("place", ["ragged-1.0.0", "ragged-1.0.0.zip"])
def test_a_copy_of_some_ragged_clips_has_only_the_chunks_with_their_frames(
    server_of_stores, served_folder, tmp_path, place
):
    """In a ragged store the frames of all clips lie one after the other, in chunks of equal size.

    `frame_chunks` computes from the numbers of frames in which chunks those of each clip lie. The clips c07
    and c31 are pulled: the copy has their chunks, and of all clips the times and numbers of frames.
    """
    original = open_store(served_folder / "ragged-1.0.0")["toy"]
    chunks_of_clip = frame_chunks(original)
    copy = tmp_path / "copy"

    pull(f"{server_of_stores.url}/{place}", copy, clips=["c07", "c31"])

    copied_chunks = numbers_of_frame_chunks_in(copy)
    assert copied_chunks == chunks_of_clip["c07"] | chunks_of_clip["c31"]
    all_chunks = set().union(*chunks_of_clip.values())
    assert copied_chunks < all_chunks

    copied = open_store(copy)["toy"]
    assert np.array_equal(copied.row_size, original.row_size)
    assert np.array_equal(copied.time_s, original.time_s)
    for clip in ("c07", "c31"):
        assert np.array_equal(copied.read(clip, "frames"), original.read(clip, "frames"))
    not_pulled = next(clip for clip, chunks in chunks_of_clip.items() if not chunks <= copied_chunks)
    with pytest.raises(StoreError, match=r"fetch\.txt"):
        copied.read(not_pulled, "frames")

    report = verify(copy, "full")
    assert report.ok, report.problems


@pytest.mark.parametrize("place", ["ragged-1.0.0", "ragged-1.0.0.zip"])
def test_a_copy_of_some_ragged_clips_becomes_the_whole_store_when_the_rest_is_pulled(
    server_of_stores, served_folder, tmp_path, place
):
    """Chunks of frames are shared by clips, and some are in the copy of two clips already."""
    copy = tmp_path / "copy"
    pull(f"{server_of_stores.url}/{place}", copy, clips=["c07", "c31"])

    pull(f"{server_of_stores.url}/{place}", copy)

    assert bytes_of_files(copy) == bytes_of_files(served_folder / "ragged-1.0.0")


def test_a_pull_counts_each_file_once_as_fetched_and_a_repeated_pull_counts_each_as_kept(
    server_of_stores, tmp_path
):
    """Clip c07 of a store is pulled from a server into an empty place, and then once more.

    The store is ragged: to find the chunks of a clip's frames, the file with the clips' numbers of frames is
    fetched first. It must not be counted again with the other files. All that the copy has was fetched, but
    for two files that are written here; the second pull finds all of them there.
    """
    copy = tmp_path / "copy"
    address = f"{server_of_stores.url}/ragged-1.0.0"

    first = pull(address, copy, clips=["c07"])
    second = pull(address, copy, clips=["c07"])

    written_here = {"fetch.txt", "tagmanifest-sha256.txt"}
    n_fetched_files = len(bytes_of_files(copy)) - len(written_here)
    assert (first.files, first.kept) == (n_fetched_files, 0)
    assert (second.files, second.kept) == (0, n_fetched_files)


def test_verifying_a_copy_of_some_ragged_clips_finds_a_damaged_chunk(server_of_stores, tmp_path):
    """The copy has the chunks of frames that clip c07 lies in; a bit of one of them is flipped."""
    copy = tmp_path / "copy"
    pull(f"{server_of_stores.url}/ragged-1.0.0", copy, clips=["c07"])
    chunks_of_frames = copy.glob("data/features.zarr/toy/frames/c/*/0")
    flip_last_bit(min(chunks_of_frames))

    assert verify(copy, "full").problems


@pytest.mark.parametrize(
    "place",
    ["{url}/ragged-1.0.0", "{url}/ragged-1.0.0.zip", "{folder}/ragged-1.0.0.zip"],
    ids=["folder on a server", "zip on a server", "zip"],
)
def test_ragged_frames_are_read_from_servers_and_zips(server_of_stores, served_folder, place):
    """The values are those of the store's folder, read as a group, through Zarr and through xarray."""
    original = open_store(served_folder / "ragged-1.0.0")["toy"]
    frames = original.frames()

    store = open_store(place.format(url=server_of_stores.url, folder=served_folder))

    assert store["toy"].frames().tobytes() == frames.tobytes()
    assert np.array_equal(store["toy"].read("c05", "frames"), original.read("c05", "frames"))
    assert store.to_zarr()["toy/frames"][:].tobytes() == frames.tobytes()
    assert np.array_equal(store["toy"].to_xarray().frames[5:1500].values, frames[5:1500])
    assert verify(store, "full").ok


def test_a_partial_copy_gets_a_second_array_and_then_all(server_of_stores, toy_files, pooled_copy):
    """A copy of pooled vectors gets the frames, 3 of 4 numbers for each of 150 clips.

    Then it lacks the tokens alone, which are 10 chunks, until they are pulled too.
    """
    pull(f"{server_of_stores.url}/toy-1.0.0", pooled_copy, arrays=["frames"])
    assert open_store(pooled_copy)["toy"].frames().shape == (150, 3, 4)
    assert verify(pooled_copy, "full").counts["not pulled"] == 10

    pulled = pull(f"{server_of_stores.url}/toy-1.0.0", pooled_copy)
    assert pulled.files == 10
    assert pulled.left == 0
    assert bytes_of_files(pooled_copy) == toy_files


def test_pulling_one_array_leaves_a_whole_copy_whole(server_of_stores, toy_files, tmp_path):
    """A pull of the pooled vectors into it removes no file that is there."""
    pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy")
    pull(f"{server_of_stores.url}/toy-1.0.0", tmp_path / "copy", arrays=["pooled"])
    assert bytes_of_files(tmp_path / "copy") == toy_files


def test_a_partial_copy_is_neither_packed_nor_pushed(pooled_copy, tmp_path):
    """The copy has pooled vectors alone. Whoever got it from there would take it for the store."""
    files = FolderFiles(pooled_copy)
    with pytest.raises(StoreError):
        pack(files, tmp_path / "x.zip")
    with pytest.raises(StoreError):
        push(files, str(tmp_path / "share"))
    with pytest.raises(StoreError):
        push(files, "s3://bucket/toy")


@pytest.fixture
def store_of_ann_mueller(served_folder, tmp_path):
    """A store in a person's folder: its path has blanks, an umlaut, an apostrophe and percents."""
    store = tmp_path / "Ann Müller's 100% films" / "f 50% ü - data-1.0.0"
    return shutil.copytree(served_folder / "toy-1.0.0", store)


def test_a_partial_copy_lists_its_other_files_by_the_name_of_the_store_and_tells_no_folder(
    store_of_ann_mueller, tmp_path
):
    """The pooled vectors alone are pulled. The file fetch.txt of the copy lists the files that it lacks.

    A line of it has a URL, a length and the name of a file, parted by blanks (RFC 8493), so that blanks and
    percents in the URL are escaped. The URL has the name of the store's folder. No file of the copy may tell
    whose folder that is in: "Müller" is in none. (As an umlaut may be written in several ways, "ller" is
    looked for.)
    """
    copy = tmp_path / "copy of it"

    pull(store_of_ann_mueller, copy, arrays=["pooled"])

    assert verify(copy, "full").ok
    for line in (copy / "fetch.txt").read_text(encoding="ascii").splitlines():
        url, _, name = line.split()
        assert unquote(url) == f"file:{store_of_ann_mueller.name}/{name}"
    name_behind_umlaut = b"ller"
    for data in bytes_of_files(copy).values():
        assert name_behind_umlaut not in data
        assert str(tmp_path).encode() not in data


def test_a_partial_copy_of_a_store_with_an_odd_path_can_be_completed(store_of_ann_mueller, tmp_path):
    """Pooled vectors are pulled from a path with blanks, an umlaut and percents, and then the rest."""
    copy = tmp_path / "copy of it"
    pull(store_of_ann_mueller, copy, arrays=["pooled"])

    pull(store_of_ann_mueller, copy)

    assert verify(copy, "full").ok
    assert bytes_of_files(copy) == bytes_of_files(store_of_ann_mueller)


# --- pushing to a folder


def test_a_store_is_pushed_to_a_folder_byte_for_byte_but_not_into_another_store(
    served_folder, toy_files, tmp_path
):
    """The push returns where the store lies. Inside of a store there must be no other one."""
    store = FolderFiles(served_folder / "toy-1.0.0")
    share = str(tmp_path / "share")

    place = push(store, share)

    assert place == share
    assert bytes_of_files(tmp_path / "share") == toy_files

    with pytest.raises(StoreError):
        push(store, tmp_path / "share/toy-1.0.0")
    assert bytes_of_files(tmp_path / "share") == toy_files


def test_a_store_is_not_pushed_over_http(served_folder):
    """A plain web server takes no files."""
    with pytest.raises(StoreError):
        push(FolderFiles(served_folder / "toy-1.0.0"), "https://example.org/toy")


def test_a_store_without_a_licence_is_not_pushed(tmp_path):
    """NOASSERTION says that nobody has stated a licence.

    The refusal names the options that seal it with one, and the version that follows its own.
    """
    make_stage(tmp_path, 8)
    store = seal_stage_of(tmp_path / "toy", licence="NOASSERTION", version="2.3.0")
    for there in (tmp_path / "there", "s3://bucket/toy", "hf://datasets/me/toy"):
        with pytest.raises(StoreError, match=r"--licence.*--store-version 2\.3\.1"):
            push(FolderFiles(store), str(there))
    assert not (tmp_path / "there").exists()
