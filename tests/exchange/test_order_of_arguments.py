"""What is a manifest is told by reading it, also where features are in a table of the usual suffix."""

import pytest

import obygaze_features as of
from obygaze_features.manifest import Clip, Manifest, write_manifest
from tests.command import obygaze

DECLARED = ("--from", "table", "--backbone", "lab", "--licence", "CC-BY-4.0")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the manifest films.csv of two clips, and a table lab.csv of their features."""
    write_manifest(Manifest((Clip("c0", "m"), Clip("c1", "m")), tmp_path), tmp_path / "films.csv")
    (tmp_path / "lab.csv").write_text("clip_id,f0,f1\nc0,0.5,1.5\nc1,2.5,3.5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["FILMS.CSV", "films.tsv", "films"])
def test_a_manifest_is_read_whatever_its_suffix_is(folder, name):
    """The manifest has another suffix than the table of features."""
    manifest = folder / "films.csv"
    content = manifest.read_text(encoding="utf-8")
    manifest.unlink()
    (folder / name).write_text(content, encoding="utf-8")

    assert obygaze("store", "import", name, "lab.csv", "lab", *DECLARED) == 0

    assert of.open_store("lab")["lab"].pooled().tolist() == [[0.5, 1.5], [2.5, 3.5]]


def test_a_manifest_behind_the_features_is_told_by_the_order(folder, capsys):
    """The features are an array, which comes first by mistake."""
    (folder / "lab.npy").write_bytes(b"\x93NUMPY")

    assert obygaze("store", "import", "lab.npy", "films.csv", "lab", *DECLARED) == 2

    assert "the order is MANIFEST SOURCE STORE: lab.npy is no manifest" in capsys.readouterr().err
