"""What a notebook shows of objects is short, and what reads nothing."""

import sys

import pytest

from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models import find_model, linear_probe
from obygaze_models.prediction.predict import Predicted
from obygaze_studies.obygaze12 import import_obygaze12
from tests.conftest import planted


@pytest.mark.long
def test_a_manifest_of_thousands_shows_itself_in_a_line_and_ten_rows(shared_data, tmp_path):
    """ObyGaze12 has 1,914 clips. A notebook shows the HTML, everything else the `repr`."""
    manifest = import_obygaze12(shared_data / "obygaze12", tmp_path).manifest

    assert repr(manifest) == "Manifest(1,914 clips of 12 movies, codebook 'obygaze12')"
    n_rows_of_html = manifest._repr_html_().count("<tr")
    assert n_rows_of_html == 1 + 10, "a row of headings and ten clips"


@pytest.mark.long
def test_a_manifest_is_a_data_frame_with_a_row_for_each_clip(shared_data, tmp_path):
    """Of ObyGaze12's clips 397 have the level NS; the released split files are its columns fold_..."""
    manifest = import_obygaze12(shared_data / "obygaze12", tmp_path).manifest

    frame = manifest.to_frame()

    assert frame["clip"].tolist() == [clip.clip_id for clip in manifest]
    assert (frame["level"] == "NS").sum() == 397
    assert frame["concepts"].iloc[0] == manifest.clips[0].concepts
    assert [name for name in frame if name.startswith("fold_")]


def test_data_runs_and_predictions_show_themselves_in_few_characters_or_in_a_table():
    """They are of 240 planted clips, which are not written out one by one. A notebook shows the HTML."""
    data = planted(n_movies=6, n_per_movie=40, direction=2.0)
    run = evaluate(data, {"linear": linear_probe()}, task="hn_s")
    predicted = Predicted(run.predictions.table, {})

    for shown in (data, run, run.predictions, predicted):
        assert len(repr(shown)) < 300
        assert "<table" in shown._repr_html_()


def test_data_show_their_numbers_of_clips_and_movies():
    data = planted(n_movies=6, n_per_movie=40)

    assert "240 clips of 6 movies" in repr(data)


@pytest.mark.parametrize("name", ["mine_here.py:make", "mine_here:make"], ids=["file", "module"])
def test_a_model_in_the_current_folder_is_found_by_its_file_or_module(tmp_path, monkeypatch, name):
    """The user wrote a file mine_here.py with a function `make`, which returns a model of scikit-learn.

    A model is named as FILE:FUNCTION or MODULE:FUNCTION; the 0 it is made with is a seed.
    """
    (tmp_path / "mine_here.py").write_text(
        "from sklearn.linear_model import RidgeClassifier\n\n\ndef make():\n    return RidgeClassifier()\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "mine_here", raising=False)

    spec = find_model(name)

    model = spec.make(0)  # of the seed 0
    assert type(model).__name__ == "RidgeClassifier"
