"""Under `strict` planted truths come out, nothing comes out where nothing is, and the report says which."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import Clip, Codebook, LabelPolicy, Level, Manifest, Task, builtin_codebook
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import auc
from obygaze_models.protocol import concept_target, labels_of
from obygaze_models.protocol.targets import NOT_ASKED
from obygaze_models.report import markdown, write_report
from obygaze_studies.obygaze12 import figure3, figure5, figure6, table2, table4
from obygaze_studies.obygaze12.corpus import CODEBOOK, VISUAL_CONCEPTS, PaperCorpus, refuse_other_codebook
from obygaze_studies.obygaze12.paper_folds import NEGATIVE_LEVELS, Negatives, concept_labels
from obygaze_studies.obygaze12.printed_values import CELLS
from obygaze_studies.obygaze12.protocol_results import StrictResults, is_learnable
from obygaze_studies.obygaze12.statistics import figure2

pytestmark = pytest.mark.long  # trains all models

N_MOVIES = 8
N_PER_MOVIE = 30
N_FEATURES = 12
N_MARKED = 3
"""Concepts that are in any clip: the first three."""
BODY = VISUAL_CONCEPTS.index("Body")
"""One of these three, and the one that tells of the level."""
MODULES_OF_TABLES_AND_FIGURES = (table2, table4, figure3, figure5, figure6)


def planted_levels(rng, movie_of_clip):
    """Draw the levels of clips: S for 20 % of the first film's to 45 % of the last one's, else EN or HN."""
    share_of_s = np.linspace(0.2, 0.45, movie_of_clip.max() + 1)
    is_s = rng.random(movie_of_clip.size) < share_of_s[movie_of_clip]
    is_en = rng.random(movie_of_clip.size) < 0.5
    return np.where(is_s, "S", np.where(is_en, "EN", "HN"))


def planted_concepts(rng, levels):
    """Mark the concepts of clips [clips, concepts]: Body more often in S clips, two others at random.

    EN clips have no concepts, and no clip has any but the first three.
    """
    present = rng.random((levels.size, len(VISUAL_CONCEPTS))) < 0.35
    present[:, BODY] = rng.random(levels.size) < np.where(levels == "S", 0.7, 0.2)
    present[levels == "EN"] = False
    present[:, N_MARKED:] = False
    return present


def wrapped(X, manifest):
    """Wrap features as those of a manifest's clips."""
    return Dataset(
        X.astype(np.float32),
        labels_of(manifest),
        manifest.codebook,
        backbone="planted",
        features="pooled",
        pool="as stored",
        store="f" * 64,
        label="planted",
    )


def planted_results(
    *, of_level=0.0, of_film=0.0, of_body=0.0, marked=True, n_movies=N_MOVIES, n_clips=N_PER_MOVIE
):
    """Results on films whose features are noise but for three effects of the sizes that are given.

    Parameters
    ----------
    of_level, of_body
        How far S clips, and clips with the concept Body, are moved, each along an axis of its own.
    of_film
        How far films lie apart, in all directions.
    marked
        Whether clips have concepts.
    n_movies, n_clips
        Films, and clips of each.
    """
    rng = np.random.default_rng(0)
    movie_of_clip = np.repeat(np.arange(n_movies), n_clips)
    levels = planted_levels(rng, movie_of_clip)
    present = planted_concepts(rng, levels) & marked
    axis_of_level, axis_of_body, *_ = np.linalg.qr(rng.normal(size=(N_FEATURES, N_FEATURES)))[0]

    X = rng.normal(size=(levels.size, N_FEATURES))
    X[levels == "S"] += of_level * axis_of_level
    X[present[:, BODY]] += of_body * axis_of_body
    X += of_film * rng.normal(size=(n_movies, N_FEATURES))[movie_of_clip]

    clips = []
    for number, movie in enumerate(movie_of_clip.tolist()):
        concepts = tuple(np.array(VISUAL_CONCEPTS)[present[number]].tolist())
        clip_id = f"tt{movie:07}-{number:03}"
        clips.append(Clip(clip_id, f"tt{movie:07}", level=str(levels[number]), concepts=concepts))
    manifest = Manifest(tuple(clips), Path())
    data = wrapped(X, manifest)
    return StrictResults(PaperCorpus(manifest, LabelPolicy.RAW, "0" * 64, (data,)), data)


@pytest.fixture(scope="module")
def results_of_planted_clips():
    """Results of clips whose level and concept Body are planted along directions of their own."""
    return planted_results(of_level=2.0, of_film=0.5, of_body=2.5)


@pytest.fixture(scope="module")
def report_on_table_2(results_of_planted_clips):
    return table2.strict_report([results_of_planted_clips])


def test_a_perceptron_that_knows_films_alone_equals_the_movie_prior():
    """Films differ in their features and in their share of S, but nothing within a film tells S.

    In a film left out the perceptron knows nothing. Clips have no concepts, so bottlenecks are left out.
    """
    results = planted_results(of_film=4.0, marked=False, n_movies=5, n_clips=24)
    known = table2.movie_knowledge([results])
    assert not known["told_apart"].any()
    assert known["difference"].abs().max() < 0.15
    text = markdown(table2.strict_report([results]))
    assert text.count("NOT told apart") == 4  # cells of Table 2
    # Signs of 5 films flipped give p of 1/16 at least, which is not below .05.
    assert text.count("too few movies to tell; NOT told apart") == 4
    assert "PCBM-LR left out" in text


def test_a_perceptron_on_a_planted_direction_is_better_than_the_movie_prior(
    results_of_planted_clips, report_on_table_2
):
    """In the planted features, S clips lie apart within each film, along one direction.

    The movie prior knows the film of a clip and nothing of the clip, so that it is worse in all cells of
    Table 2.
    """
    compared = table2.movie_knowledge([results_of_planted_clips])

    assert compared["told_apart"].all()
    assert "NOT told apart" not in markdown(report_on_table_2)


def test_table_2_has_rows_of_classifiers_bottlenecks_the_movie_prior_and_chance(report_on_table_2):
    text = markdown(report_on_table_2)

    for model in (
        "Logistic regression",
        "MLP",
        "PCBM-DT",
        "PCBM-LR, random directions",
        "Movie prior",
        "(chance)",
    ):
        assert f"| {model} " in text


CELLS_OF_TABLE_2 = ("en_s>en_s", "hn_s>en_s", "en_s>enhn_s", "hn_s>enhn_s")


def test_table_2_begins_with_a_row_per_model_in_the_papers_metric(report_on_table_2):
    compact, full, *_ = report_on_table_2.blocks
    assert len(compact.rows) < len(full.rows)
    pooled = report_on_table_2.data.set_index(["model", "metric", "task"])["pooled"]
    for model, metric in (("mlp", "f1_weighted"), ("pcbm_lr", "f1_pos"), ("always_positive", "f1_pos")):
        (row,) = [row for row in compact.rows if row[0] == table2.model_title(model)]
        cells = dict(zip(compact.headers, row, strict=True))
        for task in CELLS_OF_TABLE_2:
            assert cells[task] == f"{pooled[model, metric, task]:.3f}"


def test_numbers_of_table_2_are_those_of_evaluate(results_of_planted_clips, report_on_table_2):
    """They differ if the table scales, splits or pools clips otherwise than `evaluate` does."""
    report = report_on_table_2
    alone = evaluate(results_of_planted_clips.source, ["linear"], "hn_s", "enhn_s").metrics
    for row in alone[alone["model"] == "linear"].to_dict(orient="records"):
        own = report.data[(report.data["task"] == "hn_s>enhn_s") & (report.data["model"] == "linear")]
        assert own.set_index("metric").loc[row["metric"], "pooled"] == row["pooled"]


def test_figure_3_finds_the_planted_concept_better_than_others_and_than_calling_all_positive(
    results_of_planted_clips,
):
    """It has a row for each concept that clips have and a note on the others.

    Concepts that are in no feature are found a little: only HN and S clips have concepts, and features tell
    these levels.
    """
    report = figure3.strict_report([results_of_planted_clips])

    assert set(report.data["negatives"]) == {"en", "all"}
    rows = report.data[report.data["negatives"] == "all"].set_index("concept")
    assert tuple(rows.index) == VISUAL_CONCEPTS[:N_MARKED]
    (on_the_others,) = [note for note in report.notes if note.startswith("undefined, in too few movies")]
    assert "Posture against EN" in on_the_others
    body = rows.loc["Body"]
    assert body["p_holm"] < 0.05
    assert body["f1_pos_low"] > body["all_positive"]
    assert (rows.drop("Body")["f1_pos"] < body["f1_pos"]).all()
    assert (rows["f1_pos_low"] <= rows["f1_pos"]).all()
    assert (rows["f1_pos"] <= rows["f1_pos_high"]).all()


def clips_of_five_movies(n_with_look):
    """Make three S clips of each of five movies; in the first n movies two of the three have Look."""
    clips = []
    for movie in range(5):
        for number in range(3):
            has_look = movie < n_with_look and number > 0
            concepts = ("Look",) if has_look else ()
            clips.append(Clip(f"m{movie}-{number}", movie=f"m{movie}", level="S", concepts=concepts))
    return Manifest(tuple(clips), Path())


@pytest.mark.parametrize(("n_movies_with_look", "expected"), [(2, False), (3, True)])
def test_a_concept_is_learnable_when_three_movies_have_it(n_movies_with_look, expected):
    """A model of a concept is trained, validated and tested on different movies, which must all have it."""
    manifest = clips_of_five_movies(n_with_look=n_movies_with_look)
    data = wrapped(np.zeros((15, 2)), manifest)

    assert is_learnable(concept_target("Look", CODEBOOK), data) is expected


def test_table_4_tests_every_movie_once(results_of_planted_clips):
    """Each of the eight planted movies has 30 clips, and a row with the AUC of their scores."""
    predictions = results_of_planted_clips.pair_rows()

    table = table4.strict_report([results_of_planted_clips]).data

    assert table["n_clips"].tolist() == [30, 30, 30, 30, 30, 30, 30, 30]
    for row in table.to_dict(orient="records"):
        of_movie = predictions[predictions["movie"] == row["movie"]]
        assert row["auc"] == auc(of_movie["label"].to_numpy(), of_movie["score"].to_numpy())


def test_table_4_leaves_a_film_of_one_class_out_of_the_sentence_as_out_of_the_mean():
    """In the last of five films all clips are S: whatever the model, its average precision would be 1."""
    rng = np.random.default_rng(0)
    clips = []
    for movie in range(5):
        for number in range(12):
            level = "S" if movie == 4 else ("EN", "HN", "S")[number % 3]
            clips.append(Clip(f"tt{movie}-{number:02}", f"tt{movie}", level=level))
    manifest = Manifest(tuple(clips), Path())
    data = wrapped(rng.normal(size=(60, 4)), manifest)
    results = StrictResults(PaperCorpus(manifest, LabelPolicy.RAW, "0" * 64, (data,)), data)
    run = evaluate(data, ["mlp"], "hn_s", "enhn_s")
    vars(results)["runs"] = {"hn_s": run}  # in place of the runs of the whole zoo

    report = table4.strict_report([results])

    of_model = run.metrics[run.metrics["model"] == "mlp"].set_index("metric")
    mean = of_model.loc["average_precision", "movie_mean"]
    assert report.data["average_precision"].isna().tolist() == [False] * 4 + [True]
    assert any(f"is {mean:.3f} on average over 4 films" in answer for answer in report.answers)


def test_figure_5_draws_the_concept_that_matters_at_the_root():
    report = figure5.strict_report([planted_results(of_body=2.5)])
    assert report.data.loc[report.data["depth"] == 0, "concept"].item() == "Body"
    assert "max_depth=" in report.blocks[0].notes[0]


def test_figure_6_splits_all_errors_into_false_alarms_and_misses(results_of_planted_clips):
    report = figure6.strict_report([results_of_planted_clips])
    of_kind = report.data.groupby("errors")
    assert of_kind["factor"].count().to_dict() == {"false alarms": 9, "misses": 8}
    predictions = results_of_planted_clips.pair_rows()
    n_errors = (predictions["label"] != predictions["called"]).sum()
    assert of_kind["n_errors"].first().sum() == n_errors


def test_every_choice_is_listed_with_its_inner_losses(results_of_planted_clips):
    assert results_of_planted_clips.runs
    assert results_of_planted_clips.concepts
    tables = results_of_planted_clips.tables
    assert set(tables) == {"predictions", "selection", "curves"}
    selection = tables["selection"]

    assert {"linear", "mlp", "pcbm_lr", "pcbm_dt", "cav"} <= set(selection["model"])
    assert (selection.groupby(["model", "train", "movie"])["chosen"].sum() == 1).all()
    assert set(tables["predictions"]["task"]) >= {"en_s>enhn_s", "concept:Body>concept:Body"}


def test_nothing_of_the_papers_print_stands_beside_other_films(results_of_planted_clips):
    for module in MODULES_OF_TABLES_AND_FIGURES:
        report = module.strict_report([results_of_planted_clips])
        assert "printed" not in markdown(report)
        assert "printed" not in report.data.columns
    assert "printed" not in markdown(figure2(results_of_planted_clips.corpus.manifest))


def test_a_codebook_of_other_levels_than_the_papers_is_refused_by_its_name():
    """The paper's levels are EN, HN, NS and S; the codebook `violence` has the levels calm and violent."""
    of_violence = Codebook(
        name="violence",
        version="1",
        levels=(Level("calm"), Level("violent")),
        tasks=(Task("calm_violent", negatives=("calm",), positives=("violent",)),),
    )

    with pytest.raises(ProtocolError, match=r"Table 2.*violence"):
        refuse_other_codebook(of_violence, "Table 2")


def test_a_codebook_of_another_name_with_the_papers_levels_is_not_refused():
    refuse_other_codebook(builtin_codebook("mobygaze"), "Table 2")


def files_of_reports(results, folder):
    """Write the reports of the same runs, for which all else is computed anew; return their files."""
    anew = StrictResults(results.corpus, results.source)
    anew.__dict__.update(runs=results.runs, concepts=results.concepts)  # in place of training again
    folder.mkdir()
    for module in MODULES_OF_TABLES_AND_FIGURES:
        write_report(replace(module.strict_report([anew]), pictures=()), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_reports_of_the_same_runs_have_the_same_bytes_with_one_thread_or_two(
    results_of_planted_clips, tmp_path
):
    """A tree, permutation tests and error factors are computed for them."""
    with threadpool_limits(limits=1, user_api="blas"):
        by_one_thread = files_of_reports(results_of_planted_clips, tmp_path / "1")
    with threadpool_limits(limits=2, user_api="blas"):
        by_two_threads = files_of_reports(results_of_planted_clips, tmp_path / "2")
    n_formats = 4

    assert len(by_one_thread) == len(MODULES_OF_TABLES_AND_FIGURES) * n_formats
    assert by_two_threads == by_one_thread


@pytest.mark.parametrize("negatives", [Negatives.EN, Negatives.ALL])
def test_the_negative_clips_of_a_concept_are_the_same_in_both_protocols(results_of_planted_clips, negatives):
    """The strict protocol says negatives by their levels, as the option `--against` does."""
    labels = results_of_planted_clips.source.labels
    label_of_clip = concept_target("Body", CODEBOOK, NEGATIVE_LEVELS[negatives]).of(labels)
    strict = {
        clip_id: label
        for clip_id, label in zip(labels.clip_ids.tolist(), label_of_clip.tolist(), strict=True)
        if label != NOT_ASKED
    }

    assert strict == concept_labels(results_of_planted_clips.corpus.manifest, "Body", negatives)


@pytest.mark.parametrize("n_undefined", [0, 3])
def test_a_table_says_how_many_movies_of_one_class_its_mean_within_movies_lacks(n_undefined):
    """Such a movie has no AUC of its own, so that the mean is over fewer movies than were tested."""
    rows = []
    for metric in (*table2.SHOWN_METRICS, "within_movie_auc"):
        n_without = n_undefined if metric == "within_movie_auc" else 0
        rows.append({"metric": metric, "pooled_chance": 0.5, "n_undefined": n_without})
    summary = pd.DataFrame(rows).drop_duplicates("metric")
    summary = summary.assign(task=">".join(CELLS[0]), n_clips=99, prevalence=0.4)

    block = table2._strict_block(summary, CELLS[0], [])

    (note,) = block.notes
    assert "99 test clips" in note
    assert ("movies of one class" in note) == (n_undefined > 0)
    assert note.endswith("AUC: 3") == (n_undefined == 3)
