"""Under `paper` the original code's numbers come out, straight from a sealed store; leaks are told."""

import dataclasses
import json

import numpy as np
import pytest

from obygaze_features.manifest import LabelPolicy
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_models.evaluation.evaluate import seed_of
from obygaze_models.models import MLPProbe
from obygaze_models.report import markdown
from obygaze_studies.errors import FoldsError
from obygaze_studies.obygaze12 import (
    figure3,
    figure5,
    figure6,
    paper,
    protocol_results,
    table2,
    table4,
)
from obygaze_studies.obygaze12.corpus import PaperCorpus, load_corpus
from obygaze_studies.obygaze12.paper import leak_notes
from obygaze_studies.obygaze12.paper_folds import Negatives, s_labels
from obygaze_studies.obygaze12.printed_values import CELLS
from obygaze_studies.obygaze12.protocol_results import PaperResults, cell_folds

pytestmark = pytest.mark.long  # trains the paper's models

LEAKS = {
    ("en_s", "en_s"): "no test clip is in training or validation",
    ("hn_s", "en_s"): "LEAKS: 12 to 19 of 75 test clips are in training",
    ("en_s", "enhn_s"): "LEAKS: 31 to 51 of 103 test clips are in training",
    ("hn_s", "enhn_s"): "LEAKS: 31 to 40 of 103 test clips are in training",
}


@pytest.fixture(scope="module")
def corpus(obygaze12, shared_data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("oracle")
    with np.load(shared_data / "oracles" / "synth_features.npz", allow_pickle=False) as file:
        movie_of = dict(zip(file["ids"].tolist(), file["movie"].tolist(), strict=True))
        path = seal_arrays(folder / "synth", movie_of, {"xclip": {"pooled": file["features"]}})
    return load_corpus([open_store(path)], obygaze12, LabelPolicy.RAW)


@pytest.fixture(scope="module")
def results_of_paper(corpus):
    return PaperResults(corpus, corpus.first_source)


@pytest.fixture(scope="module")
def original(shared_data):
    return json.loads((shared_data / "oracles" / "original_results.json").read_text(encoding="utf-8"))


def files(cell):
    return f"02_{cell[0].upper()}", f"02_{cell[1].upper()}.csv"


def test_the_perceptrons_f1_is_the_originals_within_its_spread(results_of_paper, original):
    """Of each cell: the mean over folds, and where the folds lie, against the original's runs."""
    for cell in CELLS:
        ours = table2.f1_by_fold(results_of_paper.classifiers, "mlp", ">".join(cell))
        runs = []
        for run in original["mlp"].values():
            of_cell = [row for row in run["infer"] if (row["trained_on"], row["test"]) == files(cell)]
            runs.append([[row["f1_weighted"], row["f1_positive"]] for row in of_cell])
        theirs = np.array(runs)
        assert theirs.shape[1:] == (8, 2)
        # Run to run the original's means differ by up to .01; ours may by twice that.
        for index, name in enumerate(("f1_weighted", "f1_pos")):
            result = ours[name].to_numpy()
            assert result.mean() == pytest.approx(theirs[..., index].mean(), abs=0.02), (cell, name)
            assert result.min() >= theirs[..., index].min() - 0.05
            assert result.max() <= theirs[..., index].max() + 0.05


def test_the_heads_f1_is_the_originals(results_of_paper, original):
    """From features to CAVs to heads: equal to the last digit, on CAVs against all as the original stored."""
    for kind, model in (("tree", "pcbm_dt|all"), ("logistic", "pcbm_lr|all")):
        checked = 0
        for row in original["pcbm"][kind]:
            cell = row["training_exptype"].lower(), row["predicting"].lower()
            if cell not in CELLS:
                continue
            ours = table2.f1_by_fold(results_of_paper.heads.predictions, model, ">".join(cell))
            assert ours["f1_pos"].tolist() == pytest.approx([row["f1_test"]], abs=1e-12)
            checked += 1
        assert checked == 4


def concept_named(name_of_original):
    """Return our name of a concept that the original code spells otherwise."""
    spelled_otherwise = {
        "Type of plan": "Type of shot",
        "Clothes": "Clothing",
        "Activities": "Activity",
        "Exp of  emotion": "Expression of emotion",
    }
    return spelled_otherwise.get(name_of_original, name_of_original)


def test_the_elected_cavs_are_of_the_originals_folds(results_of_paper, original):
    """Of each concept, a CAV is trained in every fold, and the paper's code elects one of them for its heads.

    The oracle has the number of the elected fold, of CAVs that tell the concept from all other clips.
    """
    ours = {}
    for (concept, negatives), fold in results_of_paper.concepts.elected.items():
        if negatives is Negatives.ALL:
            ours[concept] = fold

    originals = {concept_named(name): fold for name, fold in original["pcbm"]["elected_split"].items()}
    assert ours == originals


def test_the_f1_of_cavs_is_the_originals_in_every_fold(results_of_paper, original):
    """CAVs tell a concept from all other clips. The oracle has their F1 on the test clips of each fold."""
    for name, f1_of_side in original["cav_f1_per_split"].items():
        target = f"{concept_named(name)}|all"

        result = table2.f1_by_fold(results_of_paper.concepts.predictions, "cav_svm", target)

        assert result["f1_pos"].tolist() == pytest.approx(f1_of_side["test"], abs=1e-12)


MLP_OF_OURS = ("MLP", "xclip", "F1 (weighted)")


@pytest.fixture(scope="module")
def report_on_table_2(results_of_paper):
    """It has a compact table, one for each of `CELLS`, and one of trivial models."""
    return table2.paper_report([results_of_paper])


def rows_of_cell(block):
    """Return the texts of a cell's table by their heading, by model, features and metric of the row."""
    return {row[:3]: dict(zip(block.headers, row, strict=True)) for row in block.rows}


def test_table_2_says_of_every_cell_whether_its_folds_leak(report_on_table_2):
    """It stands in the first note of the cell's table, and among the notes on leaks of the report."""
    notes_by_title = dict(leak_notes(report_on_table_2)[::2])  # two notes of each table; the first says it
    _compact, *blocks, _trivial = report_on_table_2.blocks
    for cell, block in zip(CELLS, blocks, strict=True):
        assert LEAKS[cell] in block.notes[0]
        assert LEAKS[cell] in notes_by_title[table2.cell_title(cell)]
    data = report_on_table_2.data
    tested_on_all = data[(data["model"] == "mlp") & (data["test"] == "enhn_s")]
    assert tested_on_all["test_in_training_max"].max() == 51


def test_table_2_has_the_published_figures_beside_ours(report_on_table_2):
    """It begins with a short table, without standard deviations: of "0.61 (0.05)" and "0.70", "0.61 (0.70)".

    Features that we have not stand there as printed; chance and each kind of concept directions have rows.
    """
    compact, *blocks, _trivial = report_on_table_2.blocks
    (row,) = [row for row in compact.rows if row[:3] == MLP_OF_OURS]
    shown = dict(zip(compact.headers, row, strict=True))
    for cell, block in zip(CELLS, blocks, strict=True):
        rows = rows_of_cell(block)
        texts = rows[MLP_OF_OURS]
        assert texts["printed"] != "-"
        mean, _, _standard_deviation = texts["ours"].partition(" ")
        assert shown[">".join(cell)] == f"{mean} ({texts['printed']})"
        assert rows["MLP", "ViViT-B/16 (printed only)", "F1 (weighted)"]["ours"] == "-"
        models = {model for model, _features, _metric in rows}
        assert {"Random", "All positive", "PCBM-DT, CAVs vs EN"} <= models
    measured = report_on_table_2.data.dropna(subset=["ours"])
    assert set(measured["metric"]) == {"f1_weighted", "f1_pos"}


def test_all_positive_at_the_released_prevalence_is_not_the_printed_row(report_on_table_2):
    """The released test sides hold 41 % and 30 % positive clips, not the printed 23 % and 19 %."""
    data = report_on_table_2.data
    side = data[(data["model"] == "all positive") & (data["metric"] == "f1_pos")]

    assert side.drop_duplicates("test").set_index("test")["prevalence"].round(2).to_dict() == {
        "en_s": 0.41,
        "enhn_s": 0.3,
    }
    assert (side["ours"] > side["printed"] + 0.1).all()


def test_every_row_of_table_2_counts_the_clips_that_it_is_of(results_of_paper, report_on_table_2):
    """The bottlenecks' folds are of another file than the perceptron's, and have 71 and 100 test clips.

    No bottleneck is tested on a clip that it was trained on. Answers have the F1 of calling all positive:
    where a share p of clips is positive, it has precision p and recall 1, so F1 2p / (1 + p).
    """
    data = report_on_table_2.data
    measured = data[data["n_folds"] > 0].set_index(["train", "test", "model"]).sort_index()
    for predictions in (results_of_paper.classifiers, results_of_paper.heads.predictions):
        for (task, model), of_row in predictions.table.groupby(["task", "model"]):
            train, test = task.split(">")
            labels_of_clips = of_row.drop_duplicates("clip_id")["label"]
            row = measured.loc[[(train, test, model)]].iloc[0]
            assert row["n_test"] == len(labels_of_clips)
            assert row["prevalence"] == labels_of_clips.mean()
    models = measured.index.get_level_values("model")
    assert not measured.loc[models.str.startswith("pcbm"), "test_in_training_max"].any()
    for cell, answer in zip(CELLS, report_on_table_2.answers, strict=True):
        share = float(measured.loc[[(*cell, "pcbm_dt|en")], "prevalence"].iloc[0])
        assert f"{2 * share / (1 + share):.3f}" in answer


def store_that_lacks_three_of_ten_clips(shared_data, folder):
    """Seal the oracle's features without three of every ten clips; 16 of their columns, for speed."""
    with np.load(shared_data / "oracles" / "synth_features.npz", allow_pickle=False) as file:
        is_kept = np.arange(len(file["ids"])) % 10 < 7
        movie_of = dict(zip(file["ids"][is_kept].tolist(), file["movie"][is_kept].tolist(), strict=True))
        arrays = {"xclip": {"pooled": file["features"][is_kept, :16]}}
    return open_store(seal_arrays(folder / "fewer", movie_of, arrays))


def test_clips_without_features_are_in_no_count_of_leaks(obygaze12, shared_data, tmp_path):
    """The published folds name clips without features too, which can be neither tested nor trained on.

    Table 2 has a cell for each training and test task. Its row of the perceptron, and the note below, count
    clips that were tested, and in how many of them a fold leaks.
    """
    store = store_that_lacks_three_of_ten_clips(shared_data, tmp_path)
    corpus = load_corpus([store], obygaze12, LabelPolicy.RAW)
    results = PaperResults(corpus, corpus.first_source)

    report = table2.paper_report([results])

    is_of_mlp = (report.data["model"] == "mlp") & (report.data["n_folds"] > 0)
    row_of_cell = report.data[is_of_mlp].drop_duplicates(["train", "test"]).set_index(["train", "test"])
    _compact_table, *tables_of_cells, _trivial_models = report.blocks
    predictions = results.classifiers.table
    folds_of_cell = cell_folds(corpus.manifest)
    for (cell, folds), table_of_cell in zip(folds_of_cell.items(), tables_of_cells, strict=True):
        tested = set(predictions.loc[predictions["task"] == ">".join(cell), "clip_id"])
        n_leaked = [len(tested & set(fold.train)) for fold in folds]

        row = row_of_cell.loc[cell]
        assert row["n_test"] == len(tested)
        assert row["test_in_training_min"] == min(n_leaked)
        assert row["test_in_training_max"] == max(n_leaked)

        says_that_it_leaks = f"of {len(tested)} test clips are in training" in table_of_cell.notes[0]
        assert says_that_it_leaks == (max(n_leaked) > 0)


@pytest.fixture(scope="module")
def narrow(corpus):
    """Sixteen columns, for speed: what is learnt does not matter here."""
    source = dataclasses.replace(corpus.first_source, X=np.ascontiguousarray(corpus.first_source.X[:, :16]))
    return PaperResults(corpus, source)


def test_table_4_has_ten_films_of_nine_pairs_each_and_no_leak(narrow):
    report = table4.paper_report([narrow])
    assert report.data["n_pairs"].tolist() == [9] * 10
    assert report.blocks[0].notes[0].startswith("90 film pairs; no test clip is in training or validation")
    assert report.data.set_index("title").loc["Pulp Fiction", "printed"] == 0.29
    assert report.blocks[0].rows[-1][4] == "0.53"


def test_a_film_pair_is_what_it_would_be_trained_alone(narrow):
    """Of films 0 and 1, and 0 and 2, both ways: two trainings, each stopped on its own by four films."""
    folds = protocol_results.pair_folds(narrow.corpus.manifest)
    table = narrow.movie_pairs.table
    X = narrow.source.X
    y = s_labels(narrow.source)
    for place, twin in ((0, 9), (9, 0), (1, 18), (18, 1)):
        train = narrow.source.rows(folds[place].train)
        validation = narrow.source.rows(folds[place].validation)
        test = narrow.source.rows(folds[place].test)
        assert set(folds[place].train) == set(folds[twin].train)
        alone = MLPProbe(variant="paper", random_state=seed_of(0, min(place, twin)))
        alone.fit(X[train], y[train], X_val=X[validation], y_val=y[validation])
        scores = table.loc[table["fold"] == place, "score"].to_numpy()
        assert np.array_equal(scores, alone.decision_function(X[test]).astype(np.float64))


def shown_weight_of_error(weight_of_success):
    """Write the opposite of a weight with two decimals and a sign, which is + for what rounds to 0."""
    if np.isnan(weight_of_success):
        return "undefined"
    to_hundredths = round(-weight_of_success, 2) + 0.0  # -0.0 + 0.0 is 0.0
    return f"{to_hundredths:+.2f}"


def test_figure_6_explains_errors_film_by_film(narrow):
    """Positive leads to errors in tables and figures; the data keep the papers' weights of success."""
    report = figure6.paper_report([narrow])
    for row, shown in zip(report.data.to_dict(orient="records"), report.blocks[0].rows, strict=True):
        assert shown[2:] == tuple(shown_weight_of_error(row[name]) for name in figure6.FACTORS)
    assert len(report.data) == 10
    weights = report.data[list(figure6.FACTORS)]

    assert weights.notna().all(axis=1).sum() >= 8
    assert "figure6-paper-xclip" in [picture.name for picture in report.pictures]


def test_figure_5_is_the_published_heads_tree_down_to_four_levels(results_of_paper):
    """Printed (000, Appendix 9.1): depth 10; the code's limit of 8 cannot give it."""
    report = figure5.paper_report([results_of_paper])
    nodes = report.data
    assert nodes["depth"].max() == 8
    assert nodes.loc[nodes["depth"] == 0, "n_train"].item() == 639
    shown = report.blocks[0].rows

    assert len(shown) == int((nodes["depth"] < 4).sum())
    for parent, children in nodes[nodes["parent"] >= 0].groupby("parent"):
        assert children["n_train"].sum() == nodes.set_index("number").loc[parent, "n_train"]


def results_described_as(results, *, clips=None, **of_source):
    """Return the same predictions of a source that is described otherwise, or of some clips alone."""
    source = dataclasses.replace(results.source, **of_source)
    manifest = results.corpus.manifest if clips is None else results.corpus.manifest.with_clips(clips)
    corpus = dataclasses.replace(results.corpus, manifest=manifest, sources=(source,))
    described = PaperResults(corpus, source)
    for name in ("classifiers", "concepts", "heads"):
        described.__dict__[name] = getattr(results, name)
    return described


def test_features_of_the_trained_lsmdc_x_clip_make_table_5s_row(results_of_paper):
    """The paper's Table 5 prints figures of an X-CLIP that was trained on LSMDC, of the perceptron (MLP).

    They stand beside ours in the four cells of Table 2, where our features are said to be of this X-CLIP.
    Figures of the usual X-CLIP are in rows of their own, and none is of a bottleneck (Pcbm).
    """
    of_lsmdc = results_described_as(results_of_paper, backbone="xclip-lsmdc")
    title = of_lsmdc.source.title

    _compact_table, *tables_of_cells, _trivial_models = table2.paper_report([of_lsmdc]).blocks

    printed_in_table_5 = ("0.70 (0.08)", "0.70 (0.10)", "0.66 (0.06)", "0.78 (0.11)")
    for table, printed in zip(tables_of_cells, printed_in_table_5, strict=True):
        texts_of_row = rows_of_cell(table)
        texts_of_mlp = texts_of_row["MLP", title, "F1 (weighted)"]
        assert texts_of_mlp["printed"] == printed
        assert "arXiv, Table 5" in texts_of_mlp.values()

        models_printed_only = {
            model for model, features, _ in texts_of_row if features == "X-CLIP (printed only)"
        }
        assert models_printed_only > {"MLP"}
        assert not any(model.startswith("Pcbm") for model, _, _ in texts_of_row)


def test_random_weights_are_called_untrained_in_every_table(results_of_paper):
    """Predictions are said to be of features by random weights, of which the paper prints nothing."""
    untrained = results_described_as(results_of_paper, untrained=True)

    for module in (table2, figure3, figure5):
        text = markdown(module.paper_report([untrained]))
        assert "UNTRAINED" in text
        assert "xclip (untrained)" in text


def test_there_is_no_printed_number_beside_those_of_random_weights(results_of_paper):
    """Table 2 has a compact table and then one for each cell, with six metrics of the features in the first.

    The paper has no figures of random weights, so that nothing is printed beside ours.
    """
    untrained = results_described_as(results_of_paper, untrained=True)

    _compact_table, table_of_first_cell, *_ = table2.paper_report([untrained]).blocks

    printed = [
        texts["printed"]
        for (_, features, _), texts in rows_of_cell(table_of_first_cell).items()
        if features == "xclip (untrained)"
    ]
    assert printed == ["-", "-", "-", "-", "-", "-"]


def test_columns_of_printed_numbers_that_there_are_none_of_are_left_out_with_one_note(results_of_paper):
    of_lab = results_described_as(results_of_paper, backbone="lab", label="lab")
    for described, has_printed in ((of_lab, False), (results_of_paper, True)):
        report = figure3.paper_report([described])
        headings = [heading for block in report.blocks for heading in block.headers]
        assert any(heading.startswith("printed") for heading in headings) == has_printed
        assert sum("none of lab" in note for note in report.notes) == (not has_printed)


def test_without_one_of_the_films_no_printed_numbers_are_shown(results_of_paper):
    """The papers' numbers are of twelve films, and can't be compared with those of eleven."""
    kept = [clip for clip in results_of_paper.corpus.manifest if clip.movie != "tt1142988"]
    fewer = results_described_as(results_of_paper, clips=kept)
    for module in (table2, figure3, figure5):
        report = module.paper_report([fewer])
        assert "printed" not in markdown(report)
        assert not [name for name in report.data.columns if "printed" in name]


def film_pairs(manifest, clips):
    return PaperResults(PaperCorpus(manifest, LabelPolicy.RAW, "0" * 64, (clips,)), clips).movie_pairs


def clips_of_first_movies(source, n_movies):
    """Return the features of some movies alone, the first ones by their ids."""
    kept = sorted(set(source.movies.tolist()))[:n_movies]
    return source.take(np.flatnonzero(np.isin(source.movies, kept)))


@pytest.mark.parametrize(
    ("train", "n_movies", "fold_without_clips"),
    [
        (film_pairs, 11, "movies:hn_s>enhn_s, fold test 0"),
        (protocol_results.fit_concepts, 1, "Body against en, fold 5"),
    ],
    ids=["film pairs, of 11 of the 12 movies", "concepts, of one movie"],
)
def test_features_of_too_few_clips_name_the_published_fold(corpus, train, n_movies, fold_without_clips):
    """The published folds are of twelve movies. Where features of some are missing, one side is empty.

    The refusal names the first fold of which this is so.
    """
    clips = clips_of_first_movies(corpus.first_source, n_movies)

    with pytest.raises(FoldsError, match=fold_without_clips):
        train(corpus.manifest, clips)


@pytest.fixture
def only_table_2_can_be_made(corpus, monkeypatch):
    """The report on Table 2 is a text here, for speed, and Table 4 lacks the clips of a film."""

    def lacks_a_film(_):
        raise FoldsError("Table 4, fold 0, has no clip on its test side")

    monkeypatch.setattr(paper, "load_corpus", lambda *_: corpus)
    monkeypatch.setattr(table2, "paper_report", lambda _: "report on table 2")
    monkeypatch.setattr(table4, "paper_report", lacks_a_film)


@pytest.mark.usefixtures("only_table_2_can_be_made")
def test_a_table_that_lacks_a_film_is_a_note_beside_those_that_can_be_made(corpus):
    """Both tables are asked for, and Table 2 alone can be made."""
    redone = paper.redo(("table2", "table4"), corpus.manifest, [], "paper")

    assert redone.reports == ("report on table 2",)
    (note,) = redone.notes
    assert note.startswith("table4, paper protocol")


@pytest.mark.usefixtures("only_table_2_can_be_made")
def test_a_table_that_lacks_a_film_is_refused_where_nothing_else_is_asked_for(corpus):
    with pytest.raises(FoldsError, match="no clip on its test side"):
        paper.redo(("table4",), corpus.manifest, [], "paper")
