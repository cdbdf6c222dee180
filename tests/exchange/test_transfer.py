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

from ..store.serving import serving
from ..store.toy_stores import sealed, staged, tree

pytest.importorskip("obstore")


@pytest.fixture(scope="session")
def whole(root):
    return tree(root / "toy-1.0.0")


FRAMES = RAGGED_ARRAYS["frames"].chunk
CHUNK = "data/features.zarr/toy/frames/c/1/0/0"


@pytest.fixture
def begin(whole, tmp_path):
    """Leave what a stopped pull leaves: the beginning of a chunk."""

    def begin(data):
        digest = hashlib.sha256(whole[CHUNK]).hexdigest()
        partial = tmp_path / "copy.pulling" / f"{CHUNK}.{digest}.partial"
        partial.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)

    return begin


@pytest.fixture(params=["obstore", "standard library"])
def client(request, monkeypatch):
    """What asks servers: without obstore, as on a laptop's install, the standard library."""
    if request.param != "obstore":
        monkeypatch.setitem(sys.modules, "obstore", None)


def pull(url, destination, **settings):
    return download(locate(url), destination, **settings)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("place", ["toy-1.0.0", "toy-1.0.0.zip"])
def test_what_is_pulled_is_the_store_byte_for_byte(site, whole, tmp_path, place):
    pulled = pull(f"{site.url}/{place}", tmp_path / "copy-1.0.0")
    assert tree(tmp_path / "copy-1.0.0") == whole
    assert (pulled.files, pulled.kept, pulled.left) == (len(whole) - 1, 0, 0)
    assert [path.name for path in tmp_path.iterdir()] == ["copy-1.0.0"]


def test_pulling_again_asks_for_the_manifests_alone_and_mends_what_was_damaged(site, root, whole, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{site.url}/toy-1.0.0", copy)
    (copy / CHUNK).write_bytes(b"rubbish")
    (copy / "README.md").unlink()
    (copy / "README.md").symlink_to(root / "toy-1.0.0" / "README.md")  # as git-annex does
    site.asked.clear()
    pulled = pull(f"{site.url}/toy-1.0.0", copy)
    assert tree(copy) == whole
    assert not (copy / "README.md").is_symlink()
    assert pulled.files == 2
    assert len([path for _, path, _ in site.asked if "/c/" in path]) == 1


@pytest.mark.usefixtures("client")
def test_a_broken_off_file_is_continued_not_sent_again(tmp_path):
    data = np.random.default_rng(0).bytes(3_000_000)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/big").write_bytes(data)
    with serving(tmp_path) as site:
        site.drops = {"/big": 6}  # more often than the client itself tries again
        count = []
        digest = hashlib.sha256(data).hexdigest()
        download_file(
            locate(f"{site.url}/store"),
            "big",
            tmp_path / "big",
            digest,
            lambda *progress: count.append(progress),
        )
    assert (tmp_path / "big").read_bytes() == data
    assert site.sent < 1.1 * len(data)
    assert sum(progress for _, _, progress in count) == len(data)


@pytest.mark.usefixtures("client")
def test_a_web_page_in_place_of_a_missing_file_is_named_as_such(site, tmp_path):
    site.page = b"<!doctype html><title>Not here</title>"
    with pytest.raises(StoreError, match="web page"):
        pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_server_that_never_gets_past_the_middle_is_given_up(tmp_path, monkeypatch):
    """It gives whole files only, so that every attempt begins again."""
    monkeypatch.setattr("obygaze_features.store.objects.FIRST_WAIT_S", 0.0)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/big").write_bytes(bytes(1_000_000))
    with serving(tmp_path) as site:
        site.ranges = False
        site.drops = {"/big": 100}
        with pytest.raises(InterruptedTransferError):
            download_file(locate(f"{site.url}/store"), "big", tmp_path / "big", "0" * 64, lambda *_: None)
        assert site.drops["/big"] > 50


def test_what_a_stopped_pull_left_is_used(site, whole, begin, tmp_path):
    site.lost = {CHUNK}
    with pytest.raises(StoreError, match="frames/c/1/0/0"):
        pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    with pytest.raises(StoreError, match=r"copy\.pulling"):
        open_store(tmp_path / "copy.pulling")
    site.lost = set()
    site.asked = []
    begin(whole[CHUNK][:700])
    pulled = pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole
    assert pulled.kept > 20
    assert [span for _, path, span in site.asked if path.endswith(CHUNK)] == ["bytes=700-"]


def test_wrong_bytes_of_a_stopped_pull_are_thrown_away(site, whole, begin, tmp_path):
    begin(b"rubbish")
    (tmp_path / "copy.pulling/data/stray").write_text("x", encoding="utf-8")
    pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole


@pytest.mark.usefixtures("client")
def test_one_wrong_byte_never_arrives(site, tmp_path):
    site.flips = {"/toy/frames/c/1/0/0"}
    with pytest.raises(StoreError, match="frames/c/1/0/0"):
        pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    assert len([path for _, path, _ in site.asked if path.endswith("/toy/frames/c/1/0/0")]) == 2


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        *((name, "a" * 64) for name in ("../evil", "data/../../evil", "/evil", "data//x", "data/a\\b")),
        *((name, "a" * 64) for name in ("data/.x", "data/x.partial", "e/x", f"data/{'x' * 190}")),
        ("data/extra", "x" * 64),
        ("data/extra", "../" * 21 + "x"),
    ],
)
def test_a_manifest_that_leads_out_of_the_store_is_refused(root, tmp_path, name, digest):
    from obygaze_features.io import file_sha256
    from obygaze_features.store.store_files import digests_bytes, parse_digests

    site = tmp_path / "site"
    shutil.copytree(root / "toy-1.0.0", site / "toy")
    for manifest in ("manifest-sha256.txt", "tagmanifest-sha256.txt"):
        digests, _ = parse_digests((site / "toy" / manifest).read_bytes())
        if manifest.startswith("tag"):
            digests["manifest-sha256.txt"] = file_sha256(site / "toy/manifest-sha256.txt")
        else:
            digests[name] = digest
        (site / "toy" / manifest).write_bytes(digests_bytes(digests))
    with serving(site) as served, pytest.raises(StoreError, match=r"manifest-sha256\.txt"):
        pull(f"{served.url}/toy", tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


@pytest.mark.usefixtures("client")
def test_without_ranges_a_whole_store_can_still_be_pulled(site, whole, begin, tmp_path):
    site.ranges = False
    site.drops = {CHUNK: 1}
    begin(whole[CHUNK][:99])
    pull(f"{site.url}/toy-1.0.0", tmp_path / "copy")
    assert tree(tmp_path / "copy") == whole


def test_something_else_at_the_destination_is_never_touched(site, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError):
        pull(f"{site.url}/toy-1.0.0", tmp_path / "mine")
    second = sealed(tmp_path, 8, name="other")
    before = tree(second)
    with pytest.raises(StoreError):
        pull(f"{site.url}/toy-1.0.0", second)
    assert tree(second) == before


# --- partial copies


def test_only_the_arrays_asked_for_come_and_the_copy_says_so(site, root, tmp_path):
    copy = tmp_path / "copy"
    pulled = pull(f"{site.url}/toy-1.0.0", copy, arrays=["pooled"])
    assert not [path for _, path, _ in site.asked if "/frames/c" in path or "/tokens/c" in path]
    same = open_store(root / "toy-1.0.0")
    store = open_store(copy)
    assert store.fingerprint == same.fingerprint
    for name in ("toy", "alone"):
        assert np.array_equal(store[name].pooled(), same[name].pooled(), equal_nan=True)
    assert store["toy"].n_frames == same["toy"].n_frames
    for read in (store["toy"].frames, store["toy"].tokens, lambda: store["toy"].read("tt0000-é", "tokens")):
        with pytest.raises(StoreError, match=r"fetch.txt"):
            read()
    absent = absent_files(FolderFiles(copy))
    assert len(absent) == pulled.left == 3 + 10
    name = "data/features.zarr/toy/frames/c/2/0/0"
    assert absent[name] == f"{site.url}/toy-1.0.0/{name}"


@pytest.mark.parametrize("depth", ["quick", "digests", "full"])
def test_verify_knows_a_partial_copy_and_still_finds_what_is_wrong(site, tmp_path, depth):
    copy = tmp_path / "copy"
    pull(f"{site.url}/toy-1.0.0", copy, arrays=["pooled", "frames"], clips=["tt0070-é"])
    report = verify(copy, depth)
    assert report.ok, report.problems
    assert report.counts["not pulled"] == 2 + 10
    for name in ("data/features.zarr/toy/frames/c/1/0/0", "data/features.zarr/toy/pooled/c/0/0", "README.md"):
        sound = (copy / name).read_bytes()
        (copy / name).write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        found = {problem.file for problem in verify(copy, depth).problems}
        assert name in found or (depth == "quick" and name.startswith("data"))
        (copy / name).unlink()
        assert verify(copy, depth).problems or depth == "quick"
        (copy / name).write_bytes(sound)
    (copy / "fetch.txt").write_text("https://example.org/x - data/nothing\n", encoding="utf-8")
    assert depth == "quick" or any(problem.file == "fetch.txt" for problem in verify(copy, depth).problems)
    (copy / "fetch.txt").write_text("nonsense\n", encoding="utf-8")
    assert any("line 1: expected 'URL - FILE'" in problem.what for problem in verify(copy, depth).problems)


def test_the_frames_of_some_clips_come_with_their_chunks(site, root, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{site.url}/toy-1.0.0", copy, clips=["tt0070-é", "tt0149-é"])
    same = open_store(root / "toy-1.0.0")["toy"]
    group = open_store(copy)["toy"]
    for clip in ("tt0070-é", "tt0149-é"):
        for array in ("pooled", "frames", "tokens"):
            assert np.array_equal(group.read(clip, array), same.read(clip, array))
    assert np.array_equal(group.pooled(), same.pooled(), equal_nan=True)
    with pytest.raises(StoreError):
        group.read("tt0000-é", "frames")


@pytest.mark.parametrize("place", ["ragged-1.0.0", "ragged-1.0.0.zip"])
def test_frames_of_any_number_come_with_the_chunks_that_they_lie_in(site, root, tmp_path, place):
    original = open_store(root / "ragged-1.0.0")["toy"]
    copy = tmp_path / "copy"
    wanted = ["c07", "c31"]
    pull(f"{site.url}/{place}", copy, clips=wanted)
    group = open_store(copy)["toy"]
    assert np.array_equal(group.row_size, original.row_size)
    assert np.array_equal(group.time_s, original.time_s)
    for clip in wanted:
        assert np.array_equal(group.read(clip, "frames"), original.read(clip, "frames"))
    chunks_of = frame_chunks(original)
    copied = {int(path.parent.name) for path in copy.glob("data/features.zarr/toy/frames/c/*/0")}
    assert copied == chunks_of["c07"] | chunks_of["c31"]
    assert copied < set().union(*chunks_of.values())
    lacking = [clip for clip, chunks in chunks_of.items() if not chunks <= copied]
    assert lacking
    for clip in lacking[:2]:
        with pytest.raises(StoreError, match=r"fetch\.txt"):
            group.read(clip, "frames")
    report = verify(copy, "full")
    assert report.ok, report.problems
    pull(f"{site.url}/{place}", copy)
    assert tree(copy) == tree(root / "ragged-1.0.0")


def frame_chunks(group):
    """Return clip -> numbers of the chunks in which its frames lie, in a ragged group."""
    chunks = {}
    ends = group.frame_ends.tolist()
    sizes = group.row_size.tolist()
    for clip, end, size in zip(group.clip_ids, ends, sizes, strict=True):
        chunks[clip] = set(range((end - size) // FRAMES, (end - 1) // FRAMES + 1))
    return chunks


def test_a_damaged_chunk_of_a_part_of_ragged_frames_is_found(site, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{site.url}/ragged-1.0.0", copy, clips=["c07"])
    assert verify(copy, "full").ok
    chunk = min(copy.glob("data/features.zarr/toy/frames/c/*/0"))
    sound = chunk.read_bytes()
    chunk.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert verify(copy, "full").problems


@pytest.mark.parametrize("place", ["ragged-1.0.0", "ragged-1.0.0.zip"])
def test_frames_of_any_number_are_read_from_servers_and_zips(site, root, place):
    same = open_store(root / "ragged-1.0.0")["toy"]
    for where in (f"{site.url}/{place}", root / place):
        store = open_store(where)
        assert store["toy"].frames().tobytes() == same.frames().tobytes()
        assert np.array_equal(store["toy"].read("c05", "frames"), same.read("c05", "frames"))
        assert store.to_zarr()["toy/frames"][:].tobytes() == same.frames().tobytes()
        assert np.array_equal(store["toy"].to_xarray().frames[5:1500].values, same.frames()[5:1500])
        assert verify(where, "full").ok


def test_a_partial_copy_grows_and_at_last_is_whole(site, whole, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{site.url}/toy-1.0.0", copy, arrays=["pooled"])
    pull(f"{site.url}/toy-1.0.0", copy, arrays=["frames"])
    assert open_store(copy)["toy"].frames().shape == (150, 3, 4)
    assert verify(copy, "full").counts["not pulled"] == 10
    site.asked.clear()
    done = pull(f"{site.url}/toy-1.0.0", copy)
    assert (done.files, done.left) == (10, 0)
    assert tree(copy) == whole
    pull(f"{site.url}/toy-1.0.0", copy, arrays=["pooled"])
    assert tree(copy) == whole


def test_a_partial_copy_is_neither_packed_nor_passed_on(site, tmp_path):
    copy = tmp_path / "copy"
    pull(f"{site.url}/toy-1.0.0", copy, arrays=["pooled"])
    with pytest.raises(StoreError):
        pack(FolderFiles(copy), tmp_path / "x.zip")
    for there in (tmp_path / "there", "s3://bucket/toy"):
        with pytest.raises(StoreError):
            push(FolderFiles(copy), str(there))


def test_a_partial_copy_from_a_path_with_odd_signs_verifies_and_does_not_hold_the_path(root, tmp_path):
    there = tmp_path / "Ann Müller's 100% films" / "f 50% ü - data-1.0.0"
    shutil.copytree(root / "toy-1.0.0", there)
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


def test_a_store_is_pushed_to_a_folder_and_not_over_http(root, whole, tmp_path):
    store = FolderFiles(root / "toy-1.0.0")
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
