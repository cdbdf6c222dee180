"""A machine's answers as a zero-shot model: they are the scores, and a clip without one is said."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import obygaze_models as om
from obygaze_features.errors import ManifestError
from obygaze_models.dataset.variables_and_answers import with_answers
from obygaze_models.errors import DatasetError
from obygaze_models.protocol import find_target
from tests.evaluation.test_experts import plant_corpus


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """240 clips that two annotators judged, each of whom errs in 15 % of them."""
    return plant_corpus(tmp_path_factory.mktemp("answers"))


@pytest.fixture(scope="module")
def dataset_of_240_clips(corpus):
    """Features and labels of the clips."""
    return corpus.dataset()


def write_answers(folder, clip_ids, answers, **more):
    """Write what a machine answered of each clip, a line of JSON for each, and return the file's path."""
    lines = []
    for clip_id, answer in zip(clip_ids, answers, strict=True):
        film, _ = clip_id.split("-")
        lines.append(json.dumps({"clip_id": clip_id, "movie": film, "answers": answer} | more))
    path = folder / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def dataset_with_answers(corpus, dataset_of_240_clips, tmp_path_factory):
    """The clips with answers that tell the planted level mostly; of clip 7 the machine gave no number.

    It gives S a probability of .65 to .95 where the clip is positive, and of .15 to .45 elsewhere.
    """
    data = dataset_of_240_clips
    noise = np.random.default_rng(0).normal(0, 0.1, 240).clip(-0.15, 0.15)
    p_of_s = np.where(corpus.is_positive, 0.8, 0.3) + noise
    answers = [{"level:EN": round(1 - p, 3), "level:S": round(p, 3)} for p in p_of_s]
    answers[7]["level:S"] = "I cannot help"
    path = write_answers(tmp_path_factory.mktemp("told"), data.clip_ids, answers)
    with_column, notes = with_answers(data, path, find_target("en_s", data.codebook))
    assert notes == ["answers.jsonl: 1 clip of 240 without an answer"]
    return with_column


def test_answers_are_probabilities_and_one_half_where_there_is_none(corpus, dataset_with_answers):
    """A machine answered with probabilities that mostly tell the planted level, but not on clip 7."""
    (p_of_s,) = dataset_with_answers.answers.T  # the machine answered one question, on S
    assert roc_auc_score(corpus.is_positive, p_of_s) > 0.95
    assert p_of_s[7] == 0.5


TESTED_ON_ANN = "en_s>en_s@ann"
"""The name of the task of telling EN from S, tested on the labels of the annotator Ann."""
TESTED_WHERE_ANNOTATORS_AGREE = "en_s>en_s@agreed"
"""The same task, tested on the clips that Ann and the other annotator, Ben, give the same label."""


@pytest.fixture(scope="module")
def run_with_answers(dataset_with_answers):
    """An evaluation on EN vs S of a linear model, and of the machine's answers beside it."""
    return om.evaluate(dataset_with_answers, ["linear"], "en_s")


@pytest.mark.long
def test_answers_are_a_model_whose_score_is_above_zero_where_s_is_more_probable(
    run_with_answers, dataset_with_answers
):
    """The machine's answers are evaluated beside the linear model, as a model named "answers".

    Scores of models are positive for S. An answer is the probability of S, so that its score is what this
    has above one half.
    """
    table = run_with_answers.predictions.table
    scored = table[(table["model"] == "answers") & (table["task"] == TESTED_ON_ANN)]
    (p_of_s,) = dataset_with_answers.answers.T  # the machine answered one question, on S
    row_of_each_scored_clip = dataset_with_answers.rows(scored["clip_id"].tolist())

    assert np.array_equal(scored["score"], p_of_s[row_of_each_scored_clip] - 0.5)


@pytest.mark.long
def test_answers_that_tell_the_planted_level_have_a_high_auc(run_with_answers):
    """Where both annotators say the same, this nearly always is the planted level, which the answers tell.

    So they have a high AUC there, as the mean over films (`movie_mean`).
    """
    metrics = run_with_answers.metrics.set_index(["model", "metric", "task"])

    auc = metrics.loc[("answers", "auc", TESTED_WHERE_ANNOTATORS_AGREE), "movie_mean"]

    assert auc > 0.9


def test_a_machine_that_hears_answers_on_voices(dataset_of_240_clips, tmp_path):
    """Voice is a concept that is heard, and the file says that the machine perceives what is heard."""
    data = dataset_of_240_clips
    answers = [{"concept:Voice": 0.1}] * 240
    path = write_answers(tmp_path, data.clip_ids, answers, perceives=["heard"])

    with_column, notes = with_answers(data, path, find_target("concept:Voice", data.codebook))

    assert (with_column.answers == 0.1).all()
    assert notes == []


SEEN_ALONE = r"Voice is heard, and what is perceived is visual \(240 clips\)"


@pytest.mark.parametrize(
    ("answer_of_each_clip", "machine_perceives", "task", "error", "message"),
    [
        ({"concept:Body": 0.1}, None, "en_s", DatasetError, "no answer on EN vs S for any clip"),
        ({"concept:Body": 0.1}, None, "levels", DatasetError, "ordered levels"),
        ({"concept:Voice": 0.1}, ["heard"], "concept:Body", DatasetError, "Body is visual"),
        ({"concept:Voice": 0.1}, None, "concept:Voice", DatasetError, SEEN_ALONE),
        ({"concept:Guns": 0.1}, None, "concept:Body", ManifestError, "Guns"),
    ],
    ids=[
        "of a concept, on levels",
        "of a concept, on ordered levels",
        "by a machine that hears alone, on what is seen",
        "by a machine that sees alone, on voices",
        "on an unknown concept",
    ],
)
def test_answers_that_do_not_fit_the_task_are_refused(
    dataset_of_240_clips, tmp_path, answer_of_each_clip, machine_perceives, task, error, message
):
    """A file has a machine's answers on 240 clips: how probable a concept is, the same for all clips.

    It may say what the machine perceives; a machine of which nothing is said only sees.
    """
    data = dataset_of_240_clips
    stated = {} if machine_perceives is None else {"perceives": machine_perceives}
    path = write_answers(tmp_path, data.clip_ids, [answer_of_each_clip] * 240, **stated)

    with pytest.raises(error, match=message):
        with_answers(data, path, find_target(task, data.codebook))
