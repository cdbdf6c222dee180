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
"""Number of concepts that any planted clip has: the first three of `VISUAL_CONCEPTS`."""
BODY = VISUAL_CONCEPTS.index("Body")
"""The place of Body, which is one of these three and the only one that tells of the level."""
MODULES_OF_TABLES_AND_FIGURES = (table2, table4, figure3, figure5, figure6)
"""Each has a function `strict_report`, which makes the table or figure."""


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
    """Make a dataset of the features X, a row for each clip of a manifest, as if a store had them."""
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


def results_of(manifest, X):
    """Return the results under the strict protocol of a manifest's clips with these features.

    Nothing is trained before a result is asked for.
    """
    data = wrapped(X, manifest)
    corpus = PaperCorpus(manifest, LabelPolicy.RAW, "0" * 64, (data,))
    return StrictResults(corpus, data)


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
    return results_of(Manifest(tuple(clips), Path()), X)


CELLS_OF_TABLE_2 = ("en_s>en_s", "hn_s>en_s", "en_s>enhn_s", "hn_s>enhn_s")


@pytest.fixture(scope="module")
def results_of_planted_clips():
    """Results of clips whose level and concept Body are planted along directions of their own."""
    return planted_results(of_level=2.0, of_film=0.5, of_body=2.5)


@pytest.fixture(scope="module")
def report_on_table_2(results_of_planted_clips):
    return table2.strict_report([results_of_planted_clips])


def test_a_perceptron_that_knows_films_alone_equals_the_movie_prior():
    """Films differ in their features and in their share of S, but nothing within a film tells S.

    In a film left out the perceptron knows nothing more than the movie prior, which calls clips by the share
    of S in their film. So in the four cells of Table 2 a test of their AUC does not tell the two apart. Clips
    have no concepts, so bottlenecks are left out.
    """
    results = planted_results(of_film=4.0, marked=False, n_movies=5, n_clips=24)

    perceptron_less_prior = table2.movie_knowledge([results])
    text = markdown(table2.strict_report([results]))

    assert not perceptron_less_prior["told_apart"].any()
    assert perceptron_less_prior["difference"].abs().max() < 0.15
    assert text.count("NOT told apart") == len(CELLS_OF_TABLE_2)
    # Signs of 5 films flipped give p of 1/16 at least, which is not below .05.
    assert text.count("too few movies to tell; NOT told apart") == len(CELLS_OF_TABLE_2)
    assert "PCBM-LR left out" in text


def test_a_perceptron_on_a_planted_direction_is_better_than_the_movie_prior(
    results_of_planted_clips, report_on_table_2
):
    """In the planted features, S clips lie apart within each film, along one direction.

    The movie prior knows the film of a clip and nothing of the clip. So in each of the four cells of Table 2
    a test of their AUC shows that the perceptron is better ("told apart"), and no row says NOT told apart.
    """
    perceptron_less_prior = table2.movie_knowledge([results_of_planted_clips])

    assert len(perceptron_less_prior) == len(CELLS_OF_TABLE_2)
    assert perceptron_less_prior["told_apart"].all()
    assert (perceptron_less_prior["difference"] > 0).all()
    assert "NOT told apart" not in markdown(report_on_table_2)


@pytest.mark.parametrize(
    "model",
    ["Logistic regression", "MLP", "PCBM-DT", "PCBM-LR, random directions", "Movie prior", "(chance)"],
)
def test_table_2_has_rows_of_classifiers_bottlenecks_the_movie_prior_and_chance(report_on_table_2, model):
    """Written as Markdown, a row of Table 2 begins with the title of a model."""
    assert f"| {model} " in markdown(report_on_table_2)


def test_table_2_begins_with_a_short_table_that_leaves_out_models(report_on_table_2):
    """It comes before the tables of the four cells, which have all models of the zoo."""
    compact_table, table_of_first_cell, *_ = report_on_table_2.blocks

    assert len(compact_table.rows) < len(table_of_first_cell.rows)


@pytest.mark.parametrize(
    ("model", "metric_of_paper"),
    [("mlp", "f1_weighted"), ("pcbm_lr", "f1_pos"), ("always_positive", "f1_pos")],
)
def test_the_short_table_2_has_for_each_model_the_f1_that_the_paper_prints(
    report_on_table_2, model, metric_of_paper
):
    """The paper prints the weighted F1 of the perceptron, and of bottlenecks and baselines that of class S.

    The short table has a row for each model and a column for each of the four cells of Table 2. Its numbers
    are those of the data, over the clips of all films.
    """
    compact_table = report_on_table_2.blocks[0]
    pooled = report_on_table_2.data.set_index(["model", "metric", "task"])["pooled"]

    (row,) = [row for row in compact_table.rows if row[0] == table2.model_title(model)]

    text_of_column = dict(zip(compact_table.headers, row, strict=True))
    for task in CELLS_OF_TABLE_2:
        assert text_of_column[task] == f"{pooled[model, metric_of_paper, task]:.3f}"


def test_table_2_has_the_numbers_that_evaluate_gives_on_the_same_clips(
    results_of_planted_clips, report_on_table_2
):
    """Table 2 has all metrics of a linear model that is trained on HN vs S and tested on EN and HN vs S.

    `evaluate` does the same on the same clips. A number would differ if the table scaled, split or pooled
    clips otherwise.
    """
    run = evaluate(results_of_planted_clips.source, ["linear"], task="hn_s", test="enhn_s")

    is_linear = run.metrics["model"] == "linear"
    by_evaluate = run.metrics[is_linear].set_index("metric")["pooled"]
    table = report_on_table_2.data
    is_same_model_and_task = (table["model"] == "linear") & (table["task"] == "hn_s>enhn_s")
    in_table = table[is_same_model_and_task].set_index("metric")["pooled"]
    assert len(by_evaluate) > 0
    for metric, value in by_evaluate.items():
        assert in_table[metric] == value


@pytest.fixture(scope="module")
def report_on_figure_3(results_of_planted_clips):
    """How well each concept is told from clips without it, of EN ("en") and of any level ("all")."""
    return figure3.strict_report([results_of_planted_clips])


def rows_against_all_clips(report_on_figure_3):
    """Return the data of Figure 3 whose negatives are all clips without the concept, by concept."""
    data = report_on_figure_3.data
    return data[data["negatives"] == "all"].set_index("concept")


def test_figure_3_has_rows_of_the_concepts_that_clips_have_and_a_note_on_the_others(report_on_figure_3):
    """The planted clips have three concepts only. Posture is one of the others, which cannot be learnt."""
    assert set(report_on_figure_3.data["negatives"]) == {"en", "all"}
    assert tuple(rows_against_all_clips(report_on_figure_3).index) == VISUAL_CONCEPTS[:N_MARKED]
    (note_on_others,) = [
        note for note in report_on_figure_3.notes if note.startswith("undefined, in too few movies")
    ]
    assert "Posture against EN" in note_on_others


def test_figure_3_finds_the_planted_concept_better_than_the_other_concepts(
    report_on_figure_3,
):
    """The concept Body is planted in the features. Its F1 has to be significant, and above all others.

    It must also be above the F1 of calling all clips positive, with its whole interval. The two concepts that
    are not in the features are found a little too: EN clips have no concepts, and features tell levels.
    """
    rows = rows_against_all_clips(report_on_figure_3)

    body = rows.loc["Body"]
    assert body["p_holm"] < 0.05
    assert body["f1_pos_low"] > body["all_positive"]
    assert (rows.drop("Body")["f1_pos"] < body["f1_pos"]).all()


def test_in_figure_3_each_f1_is_within_its_interval(report_on_figure_3):
    rows = rows_against_all_clips(report_on_figure_3)

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


def clips_of_five_films_the_last_of_s_alone():
    """Make twelve clips of each of five films: a third each of EN, HN and S, but all of the last film S."""
    clips = []
    for movie in range(5):
        for number in range(12):
            level = "S" if movie == 4 else ("EN", "HN", "S")[number % 3]
            clips.append(Clip(f"tt{movie}-{number:02}", f"tt{movie}", level=level))
    return Manifest(tuple(clips), Path())


def test_the_mean_over_films_in_the_answer_of_table_4_leaves_out_a_film_of_one_class():
    """In the last of five films all clips are S: whatever the model, its average precision would be 1.

    So the film has none, and the answer names the mean of four films, as in the metrics of the run.
    """
    results = results_of(
        clips_of_five_films_the_last_of_s_alone(), np.random.default_rng(0).normal(size=(60, 4))
    )
    run = evaluate(results.source, ["mlp"], "hn_s", "enhn_s")
    results.__dict__["runs"] = {"hn_s": run}  # in place of the runs of the whole zoo

    report = table4.strict_report([results])

    metrics_of_mlp = run.metrics[run.metrics["model"] == "mlp"].set_index("metric")
    mean = metrics_of_mlp.loc["average_precision", "movie_mean"]
    assert report.data["average_precision"].isna().tolist() == [False, False, False, False, True]
    assert any(f"is {mean:.3f} on average over 4 films" in answer for answer in report.answers)


def test_the_tree_of_figure_5_asks_first_for_the_concept_that_tells_the_level():
    """Body is the only planted concept that goes with the level S, and only Body is in the features.

    So the node of depth 0 is of Body. Figure 5 is a decision tree on concepts, whose depth was chosen by
    inner folds, as a note below it says.
    """
    report = figure5.strict_report([planted_results(of_body=2.5)])

    assert report.data.loc[report.data["depth"] == 0, "concept"].item() == "Body"
    first_note = report.blocks[0].notes[0]
    assert "max_depth=" in first_note


def test_figure_6_splits_all_errors_into_false_alarms_and_misses(results_of_planted_clips):
    """A false alarm is a clip of another level that is called S, a miss an S clip that is not.

    Each kind has a row for every factor that may explain it: the eight visual concepts, and of false alarms
    also the level HN. All S clips have the same level, so levels can't explain misses.
    """
    predictions = results_of_planted_clips.pair_rows()
    n_errors = (predictions["label"] != predictions["called"]).sum()

    report = figure6.strict_report([results_of_planted_clips])

    rows_of_kind = report.data.groupby("errors")
    n_factors_of_kind = rows_of_kind["factor"].count().to_dict()
    assert n_factors_of_kind == {"false alarms": len(VISUAL_CONCEPTS) + 1, "misses": len(VISUAL_CONCEPTS)}
    n_errors_of_kind = rows_of_kind["n_errors"].first()  # the same number in all rows of a kind
    assert n_errors_of_kind.sum() == n_errors


def test_one_candidate_is_chosen_for_each_model_and_film_and_listed_with_its_loss(results_of_planted_clips):
    """Whichever film is left out, a model tries candidates of its settings on folds within the other films.

    The table `selection` lists all candidates with their losses there, and which one was chosen. The models
    of Table 2 (`runs`) and the CAVs of concepts (`concepts`) are both in it.
    """
    assert results_of_planted_clips.runs
    assert results_of_planted_clips.concepts

    selection = results_of_planted_clips.tables["selection"]

    assert {"linear", "mlp", "pcbm_lr", "pcbm_dt", "cav"} <= set(selection["model"])
    n_chosen = selection.groupby(["model", "train", "movie"])["chosen"].sum()
    assert (n_chosen == 1).all()
    losses_of_chosen = selection.loc[selection["chosen"] == 1, "inner_loss"]
    assert losses_of_chosen.notna().all()


def test_the_tables_of_results_have_predictions_of_models_and_of_concepts(results_of_planted_clips):
    """Once models and CAVs are trained, there are tables of their predictions, choices and curves.

    A task is written "what was trained>what was tested", and a concept is a task too.
    """
    assert results_of_planted_clips.runs
    assert results_of_planted_clips.concepts

    tables = results_of_planted_clips.tables

    assert set(tables) == {"predictions", "selection", "curves"}
    assert {"en_s>enhn_s", "concept:Body>concept:Body"} <= set(tables["predictions"]["task"])


@pytest.mark.parametrize("module", MODULES_OF_TABLES_AND_FIGURES, ids=lambda module: module.__name__)
def test_a_table_of_other_films_than_the_papers_shows_no_printed_numbers(results_of_planted_clips, module):
    """The papers print numbers of ObyGaze12's films. The planted films are others, so none is shown."""
    report = module.strict_report([results_of_planted_clips])

    assert "printed" not in markdown(report)
    assert "printed" not in report.data.columns


def test_figure_2_of_other_films_than_the_papers_shows_no_printed_numbers(results_of_planted_clips):
    """Figure 2 counts labels, for which nothing is trained; these are the labels of planted films."""
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
    """Write the reports of models that are trained already, without pictures; return the bytes of each file.

    What reports compute themselves, such as trees and tests, is computed anew.
    """
    trained = StrictResults(results.corpus, results.source)
    trained.__dict__.update(runs=results.runs, concepts=results.concepts)  # in place of training again
    folder.mkdir()
    for module in MODULES_OF_TABLES_AND_FIGURES:
        write_report(replace(module.strict_report([trained]), pictures=()), folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_reports_of_the_same_runs_have_the_same_bytes_with_one_thread_or_two(
    results_of_planted_clips, tmp_path
):
    """For reports, a tree, permutation tests and regressions of errors are computed, with sums of floats.

    If two threads of BLAS shared a sum, its last digits would differ. Each of the five reports has files of
    four formats.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        files_by_one_thread = files_of_reports(results_of_planted_clips, tmp_path / "1")
    with threadpool_limits(limits=2, user_api="blas"):
        files_by_two_threads = files_of_reports(results_of_planted_clips, tmp_path / "2")
    n_formats = 4

    assert len(files_by_one_thread) == len(MODULES_OF_TABLES_AND_FIGURES) * n_formats
    assert files_by_two_threads == files_by_one_thread


@pytest.mark.parametrize("negatives", [Negatives.EN, Negatives.ALL])
def test_the_negative_clips_of_a_concept_are_the_same_in_both_protocols(results_of_planted_clips, negatives):
    """A concept is told from EN clips, or from all clips without it.

    The `paper` protocol has its own function for it, `concept_labels`. The `strict` protocol makes a target
    of the levels of the negatives, as `obygaze evaluate --against` does. Both have to give the same clips the
    same labels, and leave out the same.
    """
    labels = results_of_planted_clips.source.labels
    label_of_clip = concept_target("Body", CODEBOOK, NEGATIVE_LEVELS[negatives]).of(labels)
    is_used = label_of_clip != NOT_ASKED
    ids_of_used = labels.clip_ids[is_used].tolist()
    by_strict_protocol = dict(zip(ids_of_used, label_of_clip[is_used].tolist(), strict=True))

    manifest = results_of_planted_clips.corpus.manifest
    by_paper_protocol = concept_labels(manifest, "Body", negatives)

    assert by_strict_protocol == by_paper_protocol


def note_below_table_2(n_movies_of_one_class):
    """Return the note below a cell's table of Table 2 of which so many movies have no AUC of their own."""
    metrics = [
        {
            "metric": metric,
            "pooled_chance": 0.5,
            "n_undefined": n_movies_of_one_class if metric == "within_movie_auc" else 0,
        }
        for metric in table2.SHOWN_METRICS
    ]
    summary = pd.DataFrame(metrics).assign(task=">".join(CELLS[0]), n_clips=99, prevalence=0.4)

    (note,) = table2._strict_block(summary, CELLS[0], rows=[]).notes
    return note


def test_a_note_below_table_2_counts_the_movies_that_have_no_auc():
    """A movie whose clips all are S, or all are not, has no AUC, so that it is missing in the mean."""
    note = note_below_table_2(n_movies_of_one_class=3)

    assert "99 test clips" in note
    assert note.endswith("movies of one class, not in within-movie AUC: 3")


def test_the_note_below_table_2_mentions_no_movies_of_one_class_where_there_are_none():
    note = note_below_table_2(n_movies_of_one_class=0)

    assert "99 test clips" in note
    assert "movies of one class" not in note
