"""The commands, with stores on servers: what works there, what it sends, and what needs a folder here."""

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import Clip, Manifest, builtin_codebook, write_manifest
from obygaze_features.store.testing import seal_arrays

from ..store.serving import serving
from ..store.toy_stores import tree

pytest.importorskip("obstore")

N_MOVIES, N_CLIPS, D = 3, 18, 6
EVALUATED = ("--task", "hn_s", "--test", "enhn_s", "--model", "linear")

CONCEPTS = builtin_codebook("obygaze12").visual_concepts


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """films.csv and films-1.0.0, 3 MB of tokens beside 40 KB of everything else."""
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
    seal_arrays(folder / "films", {clip.clip_id: clip.movie for clip in clips}, {"xclip": arrays})
    return folder


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


def test_a_run_from_a_server_leaves_the_same_bytes_and_fetches_only_pooled_features(shelf, obygaze, tmp_path):
    with serving(shelf) as site:
        for store, out in ((f"{site.url}/films-1.0.0", "there"), (shelf / "films-1.0.0", "here")):
            assert obygaze("evaluate", shelf / "films.csv", store, *EVALUATED, "--out", out)[0] == 0
        sent = site.sent
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert 0 < sent < 0.05 * sum(map(len, tree(shelf / "films-1.0.0").values()))
