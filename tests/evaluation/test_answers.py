"""A machine's answers as a zero-shot model: they are the scores, and a clip without one is said."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import obygaze_models as om
from obygaze_features.errors import ManifestError
from obygaze_models.dataset.beside import with_answers
from obygaze_models.errors import DatasetError
from obygaze_models.protocol import find_target
from tests.evaluation.test_experts import planted


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    manifest, store, truth = planted(folder)
    return om.load_dataset(store, manifest), truth, folder


def written(folder, clip_ids, answers):
    lines = [
        {"clip_id": name, "movie": name[:2], "answers": said}
        for name, said in zip(clip_ids, answers, strict=True)
    ]
    path = folder / "answers.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_the_row_is_the_answers_probability_and_one_without_is_a_half(corpus):
    data, truth, folder = corpus
    p = np.where(truth, 0.8, 0.3) + np.random.default_rng(0).normal(0, 0.1, len(truth)).clip(-0.15, 0.15)
    said = [{"level:EN": round(1 - each, 3), "level:S": round(each, 3)} for each in p]
    said[7]["level:S"] = "I cannot help"
    answered, notes = with_answers(
        data, written(folder, data.clip_ids, said), find_target("en_s", data.codebook)
    )
    assert notes == ["answers.jsonl: 1 clip of 240 without an answer"]
    assert answered.answers[7] == 0.5
    run = om.evaluate(answered, ["linear"], "en_s")
    own = run.predictions.table.query("model == 'answers' and task == 'en_s>en_s@ann'")
    rows = data.rows(own["clip_id"].tolist())
    assert np.array_equal(own["score"], answered.answers[rows, 0] - 0.5)
    result = run.metrics.query("model == 'answers' and metric == 'auc' and task == 'en_s>en_s@agreed'")
    assert result["movie_mean"].item() > 0.9
    assert roc_auc_score(truth, answered.answers[:, 0]) > 0.95


def test_what_a_machine_hears_counts_where_its_lines_say_that_it_hears(corpus):
    data, _, folder = corpus
    path = written(folder, data.clip_ids, [{"concept:Voice": 0.1}] * len(data))
    hearing = [json.loads(line) | {"perceives": ["heard"]} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in hearing), "utf-8")
    answered, notes = with_answers(data, path, find_target("concept:Voice", data.codebook))
    assert (answered.answers == 0.1).all()
    assert notes == []
    with pytest.raises(DatasetError, match="Body is visual"):
        with_answers(data, path, find_target("concept:Body", data.codebook))


def test_what_answers_do_not_tell_is_refused(corpus):
    data, _, folder = corpus
    path = written(folder, data.clip_ids, [{"concept:Body": 0.1}] * len(data))
    with pytest.raises(DatasetError, match="of no clip"):
        with_answers(data, path, find_target("en_s", data.codebook))
    with pytest.raises(DatasetError, match="ordered levels"):
        with_answers(data, path, find_target("levels", data.codebook))
    path = written(folder, data.clip_ids, [{"concept:Voice": 0.1}] * len(data))
    with pytest.raises(DatasetError, match=r"Voice is heard, and what is perceived is visual \(240 clips\)"):
        with_answers(data, path, find_target("concept:Voice", data.codebook))
    path = written(folder, data.clip_ids, [{"concept:Guns": 0.1}] * len(data))
    with pytest.raises(ManifestError, match="Guns"):
        with_answers(data, path, find_target("concept:Body", data.codebook))
