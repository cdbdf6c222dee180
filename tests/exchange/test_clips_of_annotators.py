"""A clip that several annotators labelled is one clip: in a store, and wherever clips are counted."""

import json
from pathlib import Path

import numpy as np
import pytest

import obygaze_features as of
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.command import obygaze


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with clips of one film: AB labelled four of 2 s, CD two of these; and features of the four."""
    rows = []
    for number in range(4):
        span = (2.0 * number, 2.0 * number + 2)
        rows.append(Clip(f"c{number}", "m", "m.mp4", *span, "S", ("Body",), "AB"))
        if number < 2:
            rows.append(Clip(f"c{number}", "m", "m.mp4", *span, "EN", (), "CD"))
    write_manifest(Manifest(tuple(rows), Path()), tmp_path / "labelled.csv")
    X = np.arange(8, dtype=np.float32).reshape(4, 2)
    np.savez(tmp_path / "lab.npz", ids=np.array(["c3", "c2", "c1", "c0"]), features=X)
    monkeypatch.chdir(tmp_path)
    return tmp_path


IMPORT = ("store", "import", "labelled.csv", "lab.npz", "lab", "--from", "table", "--ids", "ids")
DECLARED = ("--key", "features", "--backbone", "lab", "--licence", "CC-BY-4.0")


@pytest.mark.usefixtures("folder")
def test_features_are_imported_once_for_a_clip_of_two_annotators():
    """The manifest has four clips and six rows, as two clips have labels of two annotators.

    lab.npz has one vector for each of c3, c2, c1 and c0, in this order: [0, 1], [2, 3], [4, 5] and [6, 7].
    """
    assert obygaze(*IMPORT, *DECLARED) == 0

    store = of.open_store("lab-1.0.0")

    assert [clip.clip_id for clip in store.clips] == ["c0", "c1", "c2", "c3"]
    assert store["lab"].pooled().tolist() == [[6, 7], [4, 5], [2, 3], [0, 1]]


@pytest.mark.usefixtures("folder")
def test_an_export_does_not_take_the_labels_of_whoever_comes_last(capsys):
    """A file of features has one label for each clip. Two of the four clips have labels of two annotators.

    The rows of the manifest labelled.csv must be merged first.
    """
    assert obygaze(*IMPORT, *DECLARED) == 0

    exit_code = obygaze("store", "export", "lab", "lab.h5", "--to", "hdf5", "--manifest", "labelled.csv")

    assert exit_code == 1
    message = capsys.readouterr().err
    assert "labelled.csv: its clips are there once for each annotator" in message
    assert "obygaze manifest project --merge" in message


@pytest.mark.usefixtures("folder")
def test_inspect_counts_clips_and_rows_apart(capsys):
    """Four clips of 2 s last 8 s, whoever labelled them.

    There are six labels: annotator AB gave S to all four, and CD gave EN to two of them.
    """
    assert obygaze("manifest", "inspect", "labelled.csv", "--json") == 0

    facts = json.loads(capsys.readouterr().out)

    assert facts["clips"] == 4
    assert facts["rows"] == 6
    assert facts["spans"] == {"clips": 4, "seconds": 8.0}
    assert facts["levels"]["S"] == 4
    assert facts["levels"]["EN"] == 2
    assert facts["videos"]["clips_without"] == 0


@pytest.mark.usefixtures("folder")
def test_a_written_manifest_counts_clips_and_rows_apart(capsys):
    """Labels are projected onto windows of 2 s, each with a row for every annotator who labelled it.

    Of one film, annotator AB labelled 8 s as S, which are four windows, and CD the first 4 s as EN.
    """
    words = ("manifest", "project", "labelled.csv", "--window", "2", "--per-annotator", "--out", "two.csv")

    assert obygaze(*words) == 0

    printed = capsys.readouterr().out
    assert "two.csv: 4 clips of 1 movie, 6 rows of annotators (2 EN, 4 S)" in printed
    manifest = of.read_manifest("two.csv")
    assert repr(manifest).startswith("Manifest(4 clips of 1 movie, 6 rows of annotators,")
