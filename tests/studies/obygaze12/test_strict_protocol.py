"""Under `strict` planted truths come out, nothing comes out where nothing is, and the report says which."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from obygaze_features.manifest import Clip, Codebook, LabelPolicy, Level, Manifest, Task, builtin_codebook
from obygaze_models.dataset import Dataset
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.evaluate import evaluate
from obygaze_models.evaluation.metrics import auc
from obygaze_models.protocol import concept_target, labels_of
from obygaze_models.report import markdown, write_report
from obygaze_studies.obygaze12 import figure3, figure5, figure6, table2, table4
from obygaze_studies.obygaze12.corpus import CODEBOOK, VISUAL_CONCEPTS, PaperCorpus, refuse_other_codebook
from obygaze_studies.obygaze12.paper_folds import NEGATIVE_LEVELS, Negatives
from obygaze_studies.obygaze12.protocol_results import StrictResults, is_learnable
from obygaze_studies.obygaze12.statistics import figure2

pytestmark = pytest.mark.long  # trains all models

N_MOVIES = 8
N_PER_MOVIE = 30
D = 12
N_MARKED = 3
STRICT = (table2, table4, figure3, figure5, figure6)


def planted(*, direction=0.0, film=0.0, concept=0.0, marked=True, size=(N_MOVIES, N_PER_MOVIE)):
    """Make clips of three levels whose S clips lie along one axis, films apart, and Body along another.

    Films differ in their share of S clips. Body is marked more often in S clips, the first two concepts in
    HN and S clips at random: they are in no feature. The other concepts are in no clip.
    """
    rng = np.random.default_rng(0)
    n_movies = size[0]
    movie_of = np.repeat(np.arange(n_movies), size[1])
    y = rng.random(movie_of.size) < np.linspace(0.2, 0.45, n_movies)[movie_of]
    levels = np.where(y, "S", np.where(rng.random(y.size) < 0.5, "EN", "HN"))
    present = rng.random((y.size, len(VISUAL_CONCEPTS))) < 0.35
    present[:, 2] = rng.random(y.size) < np.where(y, 0.7, 0.2)
    present[levels == "EN"] = False
    present[:, N_MARKED:] = False
    present &= marked
    axes = np.linalg.qr(rng.normal(size=(D, D)))[0]
    X = rng.normal(size=(y.size, D)) + direction * y[:, None] * axes[0]
    X += concept * present[:, [2]] * axes[1] + film * rng.normal(size=(n_movies, D))[movie_of]
    clips = tuple(
        Clip(
            f"tt{movie:07}-{place:03}",
            f"tt{movie:07}",
            level=str(level),
            concepts=tuple(np.array(VISUAL_CONCEPTS)[marks].tolist()),
        )
        for place, (movie, level, marks) in enumerate(zip(movie_of.tolist(), levels, present, strict=True))
    )
    manifest = Manifest(clips, Path())
    about = ("planted", "pooled", "as stored", "f" * 64)
    data = Dataset(X.astype(np.float32), labels_of(manifest), manifest.codebook, *about, label="planted")
    return StrictResults(PaperCorpus(manifest, LabelPolicy.RAW, "0" * 64, (data,)), data)


@pytest.fixture(scope="module")
def film_only():
    return planted(film=4.0, marked=False, size=(5, 24))


@pytest.fixture(scope="module")
def learnt():
    return planted(direction=2.0, film=0.5, concept=2.5)


def test_of_films_alone_the_perceptron_knows_no_more_than_the_movie_prior_and_the_report_says_so(film_only):
    known = table2.movie_knowledge([film_only])
    assert not known["told_apart"].any()
    assert known["difference"].abs().max() < 0.15
    text = markdown(table2.strict_report([film_only]))
    assert text.count("NOT told apart") == 4
    assert "PCBM-LR left out" in text


def test_of_a_planted_direction_the_report_says_that_the_perceptron_knows_more(learnt):
    """All models of the zoo on planted films: it alone shows that a direction is told from the films."""
    known = table2.movie_knowledge([learnt])
    assert known["told_apart"].all()
    text = markdown(table2.strict_report([learnt]))
    assert "NOT told apart" not in text
    models = (
        "Logistic regression",
        "MLP",
        "PCBM-DT",
        "PCBM-LR, random directions",
        "Movie prior",
        "(chance)",
    )
    assert all(f"| {model} " in text for model in models)


def test_table_2_begins_with_the_papers_own_table(learnt):
    """One row a model, its F1 of the papers (of the perceptron weighted) in each cell."""
    report = table2.strict_report([learnt])
    compact = report.blocks[0]
    assert compact.headers[3:] == ("en_s>en_s", "hn_s>en_s", "en_s>enhn_s", "hn_s>enhn_s")
    pooled = report.data.set_index(["model", "metric", "task"])["pooled"]
    for model, metric in (("mlp", "f1_weighted"), ("pcbm_lr", "f1_pos"), ("always_positive", "f1_pos")):
        title = table2.model_title(model)
        (row,) = (row for row in compact.rows if row[0] == title)
        assert row[3:] == tuple(f"{pooled[model, metric, task]:.3f}" for task in compact.headers[3:])
    assert len(compact.rows) < len(report.blocks[1].rows)


def test_table_2s_numbers_are_those_of_evaluate(learnt):
    """Alone it would see a table that scales, splits or pools otherwise than `evaluate`."""
    report = table2.strict_report([learnt])
    alone = evaluate(learnt.source, ["linear"], "hn_s", "enhn_s").metrics
    for row in alone[alone["model"] == "linear"].to_dict(orient="records"):
        own = report.data[(report.data["task"] == "hn_s>enhn_s") & (report.data["model"] == "linear")]
        assert own.set_index("metric").loc[row["metric"], "pooled"] == row["pooled"]


def test_the_planted_concept_is_significant_and_found(learnt):
    report = figure3.strict_report([learnt])
    assert set(report.data["negatives"]) == {"en", "all"}
    rows = report.data[report.data["negatives"] == "all"].set_index("concept")
    assert tuple(rows.index) == VISUAL_CONCEPTS[:N_MARKED]
    left_out = next(note for note in report.notes if note.startswith("undefined, in too few movies"))
    assert "Posture against EN" in left_out
    assert rows.loc["Body", "p_holm"] < 0.05
    assert rows.loc["Body", "f1_pos_low"] > rows.loc["Body", "all_positive"]
    # Levels are in the features, and every concept is of HN and S clips alone: the others are seen a little.
    assert (rows.drop("Body")["f1_pos"] < rows.loc["Body", "f1_pos"]).all()
    assert (rows["f1_pos_low"] <= rows["f1_pos"]).all()
    assert (rows["f1_pos"] <= rows["f1_pos_high"]).all()


@pytest.mark.parametrize(("n_movies", "expected"), [(2, False), (3, True)])
def test_a_concept_is_learnable_when_three_movies_have_it(n_movies, expected):
    clips = tuple(
        Clip(f"m{m}-{k}", f"m{m}", level="S", concepts=("Look",) if m < n_movies and k else ())
        for m in range(5)
        for k in range(3)
    )
    labels = labels_of(Manifest(clips, Path()))
    data = Dataset(np.zeros((15, 2), np.float32), labels, CODEBOOK, "b", "pooled", "as stored", "f")
    assert is_learnable(concept_target("Look", CODEBOOK), data) is expected


def test_table_4_tests_every_movie_once(learnt):
    report = table4.strict_report([learnt])
    assert report.data["n_clips"].tolist() == [N_PER_MOVIE] * N_MOVIES
    for row in report.data.to_dict(orient="records"):
        part = learnt.pair_rows()
        own = part[part["movie"] == row["movie"]]
        assert row["auc"] == auc(own["label"].to_numpy(), own["score"].to_numpy())


def test_figure_5_draws_the_concept_that_matters_at_the_root():
    report = figure5.strict_report([planted(concept=2.5)])
    assert report.data.loc[report.data["depth"] == 0, "concept"].item() == "Body"
    assert "max_depth=" in report.blocks[0].notes[0]


def test_figure_6_takes_false_alarms_and_misses_apart(learnt):
    report = figure6.strict_report([learnt])
    kinds = report.data.groupby("errors")
    assert kinds["factor"].count().to_dict() == {"false alarms": 9, "misses": 8}
    part = learnt.pair_rows()
    assert kinds["n_errors"].first().sum() == (part["label"] != part["called"]).sum()


def test_every_choice_is_listed_with_its_inner_losses(learnt):
    assert learnt.runs
    assert learnt.concepts
    tables = learnt.tables
    assert set(tables) == {"predictions", "selection", "curves"}
    selection = tables["selection"]
    assert {"linear", "mlp", "pcbm_lr", "pcbm_dt", "cav"} <= set(selection["model"])
    assert (selection.groupby(["model", "train", "movie"])["chosen"].sum() == 1).all()
    assert set(tables["predictions"]["task"]) >= {"en_s>enhn_s", "concept:Body>concept:Body"}


def test_nothing_of_the_papers_print_stands_beside_other_films(learnt):
    for module in STRICT:
        report = module.strict_report([learnt])
        assert "printed" not in markdown(report)
        assert "printed" not in report.data.columns
    assert "printed" not in markdown(figure2(learnt.corpus.manifest))


def test_other_levels_are_refused_by_the_codebooks_name_and_mobygazes_are_not():
    refuse_other_codebook(builtin_codebook("mobygaze"), "Table 2")
    levels = tuple(map(Level, ("calm", "violent")))
    other = Codebook("violence", "1", levels, tasks=(Task("calm_violent", ("calm",), ("violent",)),))
    with pytest.raises(ProtocolError, match=r"Table 2.*violence"):
        refuse_other_codebook(other, "Table 2")


def test_the_same_runs_give_the_same_bytes_with_one_thread_or_two(learnt, tmp_path):
    """Tree, permutation tests and error factors are computed anew; runs have a test of their own."""
    again = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            one = StrictResults(learnt.corpus, learnt.source)
            one.__dict__.update(runs=learnt.runs, concepts=learnt.concepts)
            folder = tmp_path / str(threads)
            folder.mkdir()
            for module in STRICT:
                write_report(replace(module.strict_report([one]), pictures=()), folder)
            again.append({path.name: path.read_bytes() for path in sorted(folder.iterdir())})
    assert len(again[0]) == 5 * 4
    assert again[0] == again[1]


def test_negatives_of_the_two_protocols_are_the_same_clips(learnt):
    """What `--against` says in levels is what the paper protocol calls en and all."""
    from obygaze_studies.obygaze12.paper_folds import concept_labels

    labels = learnt.source.labels
    for negatives in (Negatives.EN, Negatives.ALL):
        ours = concept_target("Body", CODEBOOK, NEGATIVE_LEVELS[negatives]).of(labels)
        theirs = concept_labels(learnt.corpus.manifest, "Body", negatives)
        pairs = zip(labels.clip_ids.tolist(), ours.tolist(), strict=True)
        assert {clip_id: code for clip_id, code in pairs if code >= 0} == theirs
