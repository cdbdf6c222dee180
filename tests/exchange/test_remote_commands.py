"""The commands, with stores on servers: what works there, what it sends, and what needs a folder here."""

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.exchange.publish import pack
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_features.store import verify
from obygaze_features.store.files_remote import connect
from obygaze_features.store.store_files import FolderFiles
from obygaze_features.store.testing import seal_arrays

from ..store.serving import serving

obstore = pytest.importorskip("obstore")

N_MOVIES, N_CLIPS, D = 3, 18, 6
PLACES = ("folder at a URL", "zip on S3", "zip")
EVALUATED = ("--task", "hn_s", "--test", "enhn_s", "--model", "linear")

CONCEPTS = builtin_codebook("obygaze12").visual_concepts


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """films.csv and films-1.0.0, 3 MB of tokens beside 40 KB of everything else; its zip."""
    folder = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    clips = []
    for number in range(N_MOVIES * N_CLIPS):
        level = ("EN", "HN", "S")[number % 3]
        marked = rng.random(len(CONCEPTS)) < (0.5 if level != "EN" else 0)
        marked[0] |= level != "EN"
        concepts = tuple(np.array(CONCEPTS)[marked].tolist())
        movie = f"m{number // N_CLIPS}"
        clips.append(Clip(f"{movie}-{number % N_CLIPS:02}", movie, level=level, concepts=concepts))
    write_manifest(Manifest(tuple(clips), folder), folder / "films.csv")
    pooled = rng.normal(size=(len(clips), D)).astype(np.float32)
    pooled[:, 0] += 3.0 * np.array([clip.level == "S" for clip in clips])
    arrays = {
        "pooled": pooled,
        "frames": rng.normal(size=(len(clips), 2, D)).astype(np.float16),
        "tokens": rng.normal(size=(len(clips), 450, 64)).astype(np.float16),
    }
    store = seal_arrays(folder / "films", {clip.clip_id: clip.movie for clip in clips}, {"xclip": arrays})
    pack(FolderFiles(store), folder / "films-1.0.0.zip")
    return folder


@pytest.fixture(scope="module")
def in_bucket(shelf, s3_endpoint):
    """The store and its zip in the S3 server's bucket."""
    from .s3_server import s3_settings

    with s3_settings(s3_endpoint):
        there = connect("s3://bucket/commands")
        for path in shelf.rglob("films-1.0.0*"):
            for file in [path] if path.is_file() else filter(lambda one: one.is_file(), path.rglob("*")):
                obstore.put(there, file.relative_to(shelf).as_posix(), file.read_bytes())
    return "s3://bucket/commands"


@pytest.fixture
def site(shelf):
    with serving(shelf) as site:
        yield site


@pytest.fixture
def place_of(shelf, site, bucket, in_bucket):
    """Where the same store is, in several places; and bytes that were sent from there."""
    places = {
        "zip": shelf / "films-1.0.0.zip",
        "folder at a URL": f"{site.url}/films-1.0.0",
        "zip on S3": f"{in_bucket}/films-1.0.0.zip",
    }
    return lambda name: (str(places[name]), lambda: site.sent + bucket.sent)


@pytest.fixture
def obygaze(monkeypatch, tmp_path, capsys):
    """Run the command line in an empty folder; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return left.value.code, captured.out, captured.err

    return run


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", PLACES[:2])
def test_a_run_from_a_server_leaves_the_same_bytes_and_fetches_only_pooled_features(
    shelf, place_of, obygaze, tmp_path, name
):
    place, sent = place_of(name)
    for store, out in ((place, "there"), (shelf / "films-1.0.0", "here")):
        assert obygaze("evaluate", shelf / "films.csv", store, *EVALUATED, "--out", out)[0] == 0
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    size = sum(len(data) for data in contents(shelf / "films-1.0.0").values())
    assert 0 < sent() < 0.05 * size


@pytest.mark.parametrize("name", PLACES)
def test_what_reads_a_store_reads_it_wherever_it_is(shelf, place_of, obygaze, tmp_path, name):
    place, _ = place_of(name)
    store = shelf / "films-1.0.0"
    assert obygaze("store", "verify", place, "--full")[0] == 0
    for command in (("inspect", "--json"), ("card",)):
        assert obygaze("store", *command, place) == obygaze("store", *command, store)
    code, out, _ = obygaze("store", "diff", place, store)
    assert (code, out) == (0, "nothing differs\n")
    for source, file in ((place, "there.h5"), (store, "here.h5")):
        assert obygaze("store", "export", source, file, "--to", "hdf5")[0] == 0
    assert (tmp_path / "there.h5").read_bytes() == (tmp_path / "here.h5").read_bytes()
    assert obygaze("store", "merge", place, store, "--out", "both")[0] == 0
    assert verify(tmp_path / "both-1.0.0", "full").ok
    assert obygaze("store", "pull", place, "copy")[0] == 0
    assert contents(tmp_path / "copy") == contents(store)


@pytest.mark.parametrize(
    "command",
    [
        ("pack", "URL"),
        ("pack", "STORE", "--out", "URL"),
        ("unpack", "URL"),
        ("push", "URL", "copy"),
        ("seal", "URL", "--licence", "MIT"),
        ("import", "films.csv", "URL", "x", "--from", "npy", "--licence", "MIT"),
        ("merge", "STORE", "STORE", "--out", "URL"),
        ("export", "STORE", "URL", "--to", "hdf5"),
        ("card", "STORE", "--out", "URL"),
        ("pull", "STORE", "URL"),
        ("ls", "URL"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("url", ["s3://bucket/films-1.0.0.zip"])
def test_what_needs_a_path_here_says_so_and_makes_nothing(shelf, obygaze, tmp_path, command, url):
    words = {"URL": url, "STORE": shelf / "films-1.0.0"}
    code, out, err = obygaze("store", *(words.get(word, word) for word in command))
    assert (code, out) == (2, "")
    assert f"{url} is a URL, and this needs a path on this machine; obygaze store pull" in err
    assert list(tmp_path.iterdir()) == []
