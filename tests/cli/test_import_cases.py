"""Features as labs have them, imported for the real ObyGaze12 by the command."""

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.manifest import read_manifest
from obygaze_features.store import open_store

WITHOUT_VIDEO = 75  # of 1,914: README_data.md of the corpus says so
D = 4
TABLE = ("--from", "table", "--backbone", "lab", "--licence", "CC0-1.0")


@pytest.fixture(scope="module")
def corpus(shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    source = str(shared_data / "obygaze12" / "ObyGaze12_thresh_02.csv")
    with pytest.raises(SystemExit):
        main(["manifest", "import", "obygaze12", source, "--out", str(folder / "oby.csv")])
    return folder / "oby.csv", read_manifest(folder / "oby.csv")


@pytest.fixture
def run(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    monkeypatch.chdir(tmp_path)
    shutil.copy(corpus[0], tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["store", "import", "oby.csv", *map(str, arguments)])
        return ended.value.code or 0, capsys.readouterr().err

    return run


@pytest.fixture(scope="module")
def matrix(corpus):
    return np.random.default_rng(0).standard_normal((len(corpus[1]), D)).astype(np.float32)


def check(corpus, matrix, ids=None):
    group = open_store("stores/lab")["lab"]
    row_of = {clip.clip_id: row for row, clip in enumerate(corpus[1])}
    pooled = group.pooled()
    for row in np.flatnonzero(group.usable):
        assert pooled[row].tobytes() == matrix[row_of[group.clip_ids[row]]].tobytes()
    assert int(group.usable.sum()) == (len(row_of) if ids is None else ids)


def test_files_named_after_videos_come_in_by_the_default_pattern(run, corpus, matrix):
    Path("npy").mkdir()
    for clip, values in zip(corpus[1], matrix, strict=True):
        if clip.video:
            np.save(f"npy/{clip.video.rpartition('.')[0]}.npy", values)
    asked = ("npy", "stores/lab", "--from", "npy", "--backbone", "lab", "--licence", "CC0-1.0")
    code, err = run(*asked)
    assert code == 1
    assert f"{WITHOUT_VIDEO} of 1914 clips have no features to import" in err
    code, err = run(*asked, "--allow-missing")
    assert code == 0, err
    assert err == (
        f"missing: {WITHOUT_VIDEO} of 1914 clips have no features "
        f"({WITHOUT_VIDEO} of them have no video in the manifest)\n"
    )
    check(corpus, matrix, 1914 - WITHOUT_VIDEO)


def test_a_matrix_and_a_list_of_ids_come_in(run, corpus, matrix):
    np.save("big.npy", matrix)
    Path("ids.txt").write_text("\n".join(clip.clip_id for clip in corpus[1]), encoding="utf-8")
    assert run("big.npy", "stores/lab", *TABLE, "--ids", "ids.txt") == (0, "")
    check(corpus, matrix)


def test_hdf5_with_features_and_ids_comes_in(run, corpus, matrix):
    with h5py.File("big.h5", "w") as file:
        file["features"] = matrix
        file["ids"] = [clip.clip_id for clip in corpus[1]]
    assert run("big.h5", "stores/lab", *TABLE) == (0, "")
    check(corpus, matrix)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_csv_and_parquet_come_in(run, corpus, matrix, kind):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(matrix, columns=[f"f{n}" for n in range(D)])
    frame.insert(0, "clip_id", [clip.clip_id for clip in corpus[1]])
    frame.insert(1, "movie", [clip.movie for clip in corpus[1]])
    frame.to_csv("big.csv", index=False) if kind == "csv" else frame.to_parquet("big.parquet")
    code, err = run(f"big.{kind}", "stores/lab", *TABLE)
    assert (code, err) == (0, "left out: columns that are no features: movie\n")
    check(corpus, matrix)


def test_our_own_anndata_comes_back(run, corpus, matrix):
    np.savez("big.npz", features=matrix, ids=np.array([clip.clip_id for clip in corpus[1]]))
    assert run("big.npz", "stores/first", *TABLE) == (0, "")
    with pytest.raises(SystemExit):
        main(["store", "export", "stores/first", "big.h5ad", "--to", "h5ad", "--manifest", "oby.csv"])
    code, err = run("big.h5ad", "stores/lab", "--from", "table", "--licence", "CC0-1.0")
    assert (code, err) == (0, "")
    check(corpus, matrix)


def test_names_that_fit_no_clip_are_shown_beside_what_was_expected(run, matrix):
    np.savez("big.npz", features=matrix, ids=np.array([f"scene{n}" for n in range(len(matrix))]))
    code, err = run("big.npz", "stores/lab", *TABLE)
    assert code == 1
    assert "none of its 1914 names is a clip's: it has 'scene0', and by --pattern {clip_id} clips are" in err
