"""What a notebook shows of objects is short, and what reads nothing."""

import sys

import numpy as np
import pytest

from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.models import find_model, linear_probe
from obygaze_models.prediction.predict import Predicted
from obygaze_studies.obygaze12 import import_obygaze12
from tests.conftest import planted


@pytest.mark.long
def test_a_manifest_of_thousands_shows_itself_in_a_line_and_its_first_rows(shared_data, tmp_path):
    manifest = import_obygaze12(shared_data / "obygaze12", tmp_path).manifest
    assert repr(manifest) == "Manifest(1,914 clips of 12 movies, codebook 'obygaze12')"
    html = manifest._repr_html_()
    assert html.count("<tr") == 11
    frame = manifest.to_frame()
    assert frame["clip"].tolist() == [clip.clip_id for clip in manifest]
    assert frame["level"].value_counts()["NS"] == 397
    assert frame["concepts"].iloc[0] == manifest.clips[0].concepts
    assert [name for name in frame if name.startswith("fold_")]


def test_data_runs_and_predictions_show_themselves_in_few_characters():
    data = planted(direction=2.0)
    run = evaluate(data, {"linear": linear_probe()}, task="hn_s")
    predicted = Predicted(run.predictions.table, {})
    for each in (data, run, run.predictions, predicted):
        assert len(repr(each)) < 300
        assert "<table" in each._repr_html_()
    assert str(len(data)) in repr(data)
    assert str(len(np.unique(data.movies))) in repr(data)


def test_a_model_in_the_current_folder_is_found_by_its_file_or_module(tmp_path, monkeypatch):
    (tmp_path / "mine_here.py").write_text(
        "from sklearn.linear_model import RidgeClassifier\n\n\ndef make():\n    return RidgeClassifier()\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("mine_here.py:make", "mine_here:make"):
        spec = find_model(name)
        assert type(spec.make(0)).__name__ == "RidgeClassifier"
