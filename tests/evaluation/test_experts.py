"""Several annotators: models of merged, own and shared labels, tested on each of them beside the others."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

import obygaze_features as of
import obygaze_models as om
from obygaze_features.errors import ManifestError
from obygaze_features.extraction import prepare
from obygaze_features.manifest import merge_annotators
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.experts import denoise_labels, plan_labels
from obygaze_models.models import RidgeLogistic
from obygaze_models.models.names import LENGTH as CLIP_LENGTH
from obygaze_models.models.names import OTHER_ANNOTATOR
from obygaze_models.protocol.targets import NOT_ASKED
from obygaze_models.report.run_tables import run_report, short_report

FILMS = [f"f{number}" for number in range(6)]
CLIPS_A_FILM = 40
ERROR_RATE = 0.15


@dataclass(frozen=True)
class Corpus:
    """240 clips of six films; Ann judged all of them, Ben all but every tenth (216)."""

    manifest: of.Manifest  # 456 rows, one for each clip and annotator
    store: of.Store  # features of the clips, of which the first tells S from EN
    is_positive: np.ndarray  # planted truth, [240]; each annotator errs in `ERROR_RATE` of the clips

    def dataset(self):
        """Load features and labels."""
        return om.load_dataset(self.store, self.manifest)


def plant_corpus(folder, *, positive_clips_are_longer=False):
    """Plant a corpus of two annotators, with clips of 5 s, or of 7 s where positive and 3 s elsewhere."""
    generator = np.random.default_rng(0)
    n = len(FILMS) * CLIPS_A_FILM
    is_positive = generator.random(n) < 0.45
    X = generator.normal(size=(n, 6)).astype(np.float32)
    X[:, 0] += 2.0 * is_positive
    clips = []
    movie_of = {}
    span_of = {}
    for i in range(n):
        film = FILMS[i // CLIPS_A_FILM]
        clip_id = f"{film}-{i % CLIPS_A_FILM:02}"
        start = 10.0 * (i % CLIPS_A_FILM)
        length = 5.0
        if positive_clips_are_longer:
            length = 7.0 if is_positive[i] else 3.0
        movie_of[clip_id] = film
        span_of[clip_id] = (start, start + length)
        for annotator in ("ann", "ben"):
            says_positive = is_positive[i] ^ (generator.random() < ERROR_RATE)
            if annotator == "ben" and i % 10 == 0:
                continue
            level = "S" if says_positive else "EN"
            clips.append(of.Clip(clip_id, film, f"{film}.mp4", *span_of[clip_id], level, (), annotator))
    store = seal_arrays(folder / "store", movie_of, {"b": {"pooled": X}}, spans=span_of)
    return Corpus(of.Manifest(tuple(clips), folder), of.open_store(store), is_positive)


@pytest.fixture(scope="module")
def corpus_of_two_annotators(tmp_path_factory):
    """240 clips of two annotators."""
    return plant_corpus(tmp_path_factory.mktemp("experts"))


@pytest.fixture(scope="module")
def run_of_merged_labels(corpus_of_two_annotators):
    """A linear model of their merged labels, evaluated."""
    return om.evaluate(corpus_of_two_annotators.dataset(), ["linear"], "en_s")


def mean_aucs(run):
    """Return the mean AUC over films by (task, model).

    The task "en_s>en_s@ann" tests EN vs S on the labels of Ann, "en_s>en_s@agreed" where annotators agree.
    """
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return rows.set_index(["task", "model"])["movie_mean"].to_dict()


def test_a_dataset_holds_a_clip_once_with_labels_of_each_annotator(corpus_of_two_annotators):
    """Ann judged all 240 clips, and Ben 216 of them. A clip that somebody did not judge has no level ("")."""
    data = corpus_of_two_annotators.dataset()

    assert len(corpus_of_two_annotators.manifest) == 240 + 216
    assert len(corpus_of_two_annotators.store.clips) == 240
    assert len(data) == 240
    assert list(data.labels.experts) == ["ann", "ben"]
    for annotator, labels in data.labels.experts.items():
        rows = [clip for clip in corpus_of_two_annotators.manifest if clip.annotator == annotator]
        level_by_clip = {clip.clip_id: clip.level for clip in rows}
        expected_levels = [level_by_clip.get(clip_id, "") for clip_id in data.clip_ids]
        assert labels.levels.tolist() == expected_levels


def test_a_part_of_a_dataset_has_the_labels_of_each_annotator_on_its_clips(corpus_of_two_annotators):
    """Clips are named by their film and their place in it, from f0-00 on: the fourth one is f0-03."""
    fourth_and_eighth_clip = corpus_of_two_annotators.dataset().take(np.array([3, 7]))
    assert fourth_and_eighth_clip.clip_ids.tolist() == ["f0-03", "f0-07"]
    labels_of_ben = fourth_and_eighth_clip.labels.experts["ben"]
    assert labels_of_ben.clip_ids.tolist() == ["f0-03", "f0-07"]


@pytest.mark.long
@pytest.mark.parametrize("experts", ["merged", "soft"])
def test_a_model_is_tested_on_each_annotator_and_where_they_agree(corpus_of_two_annotators, experts):
    """Ann and Ben labelled 240 clips of six films, and each of them errs in 15 % of the clips.

    Where both agree, errors are rarer, so that the same model is better there. The task "en_s>en_s@ann"
    trains on EN vs S, and tests it on the labels of Ann.
    """
    run = om.evaluate(corpus_of_two_annotators.dataset(), ["linear"], "en_s", experts=experts)

    aucs = mean_aucs(run)
    tasks = {task for task, _ in aucs}
    assert tasks == {"en_s>en_s@ann", "en_s>en_s@ben", "en_s>en_s@agreed"}
    assert aucs["en_s>en_s@agreed", "linear"] > aucs["en_s>en_s@ann", "linear"]
    assert aucs["en_s>en_s@agreed", "linear"] > aucs["en_s>en_s@ben", "linear"]


@pytest.mark.long
def test_the_other_annotator_is_a_baseline(corpus_of_two_annotators, run_of_merged_labels):
    """Where models are tested on Ann's labels, Ben's calls (S or EN) of the same clips are scores, too.

    Their AUC, the mean over films, is the row of the other annotator. Ben did not judge all clips.
    """
    labels = corpus_of_two_annotators.dataset().labels.experts
    both_judged = labels["ben"].levels != ""
    ann_says_s = labels["ann"].levels[both_judged] == "S"
    ben_says_s = labels["ben"].levels[both_judged] == "S"
    movies = labels["ann"].movies[both_judged]
    aucs_of_ben = []
    for film in FILMS:
        is_of_film = movies == film
        aucs_of_ben.append(roc_auc_score(ann_says_s[is_of_film], ben_says_s[is_of_film]))

    baseline = mean_aucs(run_of_merged_labels)["en_s>en_s@ann", OTHER_ANNOTATOR]

    assert baseline == pytest.approx(np.mean(aucs_of_ben))


@pytest.mark.long
def test_each_annotator_may_have_a_model_but_no_baselines(corpus_of_two_annotators):
    """With `experts="each"` a model is trained on the labels of Ann, and one on those of Ben.

    The baselines are there once: the other annotator, and the share of positives of a movie.
    """
    run = om.evaluate(corpus_of_two_annotators.dataset(), ["linear"], "en_s", experts="each")

    models = {model for _, model in mean_aucs(run)}
    assert models >= {"linear@ann", "linear@ben", OTHER_ANNOTATOR, "movie_prior"}
    assert "movie_prior@ann" not in models


def test_models_and_the_other_annotator_are_tested_on_the_clips_of_both(run_of_merged_labels):
    """A model is compared with the other annotator on the clips that both judged, 216 of 240.

    Where the two agree, the other would always be right and is no baseline there.
    """
    table = run_of_merged_labels.predictions.table
    n_clips = table.groupby(["model", "task"]).size()

    assert n_clips["linear", "en_s>en_s@ann"] == 216
    assert n_clips["linear", "en_s>en_s@ben"] == 216
    assert n_clips[OTHER_ANNOTATOR].to_dict() == {"en_s>en_s@ann": 216, "en_s>en_s@ben": 216}
    scores_of_the_other = table.loc[table["model"] == OTHER_ANNOTATOR, "score"]
    assert set(scores_of_the_other) == {0.0, 1.0}


def test_the_length_of_clips_is_no_baseline_where_all_are_as_long(run_of_merged_labels):
    """All 240 clips of the run last 5 s, so that their length tells nothing of the level."""
    models = set(run_of_merged_labels.predictions.table["model"])
    assert CLIP_LENGTH not in models


@pytest.mark.long
def test_soft_labels_train_on_the_rows_of_all_annotators(corpus_of_two_annotators):
    """Ann has 240 rows and Ben 216, spread evenly over six films. Five of these are trained on.

    The model trains on fewer rows, too, where it chooses its penalty by inner folds.
    """
    n_rows_of_fits = []

    class ScalerThatCounts(om.ClippedScaler):
        def fit(self, X, y=None):
            n_rows_of_fits.append(len(X))
            return super().fit(X, y)

    model = make_pipeline(ScalerThatCounts(), RidgeLogistic())
    om.evaluate(corpus_of_two_annotators.dataset(), {"counting": model}, "en_s", experts="soft")

    rows_of_five_films = (240 + 216) * 5 // 6
    assert max(n_rows_of_fits) == rows_of_five_films


@pytest.mark.long
def test_how_often_annotators_are_right_is_estimated(corpus_of_two_annotators):
    """Ann and Ben err in 15 % of the clips, and so are right in 85 %, of positive and of negative ones.

    Nobody tells this to the model: `experts="noisy"` estimates it, here to within .16.
    """
    run = om.evaluate(corpus_of_two_annotators.dataset(), ["linear"], "en_s", experts="noisy")

    for annotator in ("ann", "ben"):
        share_right = run.record["noise"][annotator]
        assert share_right["positive"] == pytest.approx(0.85, abs=0.16)
        assert share_right["negative"] == pytest.approx(0.85, abs=0.16)
    assert mean_aucs(run)["en_s>en_s@agreed", "linear"] > 0.9


@pytest.mark.long
def test_noisy_labels_are_nearer_the_truth_than_the_share_of_annotators(corpus_of_two_annotators):
    """Copies of the labels are drawn for training by how probable each label is.

    The share of copies that call a clip positive tells the planted truth better than the share of the two
    annotators who do. The first 200 clips are for training, and the others get no label.
    """
    data = corpus_of_two_annotators.dataset()
    label_plan = plan_labels(data, om.find_target("en_s", data.codebook), [], "noisy")

    copies_of_labels, _ = denoise_labels(label_plan, data, np.arange(200))

    for labels in copies_of_labels:
        assert (labels[200:] == NOT_ASKED).all()
    truth = corpus_of_two_annotators.is_positive[:200]
    share_of_copies = np.mean(copies_of_labels, axis=0)[:200]
    calls_of_annotators = [labels == 1 for labels in label_plan.noisy.values()]
    share_of_annotators = np.mean(calls_of_annotators, axis=0)[:200]
    assert roc_auc_score(truth, share_of_copies) > roc_auc_score(truth, share_of_annotators) + 0.02


@pytest.mark.long
def test_the_length_of_clips_is_a_baseline_where_it_varies(tmp_path):
    """Positive clips are 7 s long and others 3 s, so length alone tells the level.

    Ann errs in 15 % of the clips, so that it does not tell hers perfectly.
    """
    corpus = plant_corpus(tmp_path, positive_clips_are_longer=True)
    run = om.evaluate(corpus.dataset(), ["linear"], "en_s")
    assert mean_aucs(run)["en_s>en_s@ann", CLIP_LENGTH] > 0.75


def test_a_baseline_of_one_annotators_labels_is_a_baseline(tmp_path):
    """Positive clips are longer, so that their length alone tells them from the others.

    With `experts="each"` models are trained on the labels of Ann, and others on those of Ben. So there are
    two baselines of lengths, length@ann and length@ben. The answer must name both as baselines that models
    are compared with, and not as models that may be ahead; the table marks their rows as baselines
    (yardsticks).
    """
    data = plant_corpus(tmp_path, positive_clips_are_longer=True).dataset()

    report = run_report(om.evaluate(data, ["linear"], "en_s", experts="each"))

    first_answer = report.answers[0]
    assert "baselines always_positive, always_negative, movie_prior, length@ann, length@ben" in first_answer
    assert "length@ann is ahead" not in first_answer
    first_table = report.blocks[0]
    assert {"length@ann", "length@ben"} <= first_table.yardsticks
    assert "linear@ann" not in first_table.yardsticks


@pytest.mark.parametrize(
    ("rule", "level", "concepts"),
    [
        ("highest", "S", {"Body"}),
        ("any", "S", {"Body", "Clothing"}),
        ("both", "HN", {"Body"}),
        ("expert", "HN", {"Body", "Clothing"}),
    ],
)
def test_annotators_are_merged_by_a_rule(tmp_path, rule, level, concepts):
    """Of one clip, Ann says S and Body, Ben says HN, Body and Clothing.

    "highest" takes the highest level with its own concepts, "any" all concepts, "both" what both say,
    "expert" what Ben says.
    """
    rows = (
        of.Clip("a", "f", "f.mp4", start_s=0, end_s=4, level="S", concepts=("Body",), annotator="ann"),
        of.Clip(
            "a", "f", "f.mp4", start_s=0, end_s=4, level="HN", concepts=("Body", "Clothing"), annotator="ben"
        ),
    )
    merged = merge_annotators(of.Manifest(rows, tmp_path), rule, "ben")
    (clip,) = merged

    assert clip.level == level
    assert set(clip.concepts) == concepts
    assert not merged.is_per_annotator


@pytest.mark.parametrize(
    "row",
    [
        of.Clip("a", "f", "f.mp4", start_s=0, end_s=5, level="S", annotator="ben"),
        of.Clip("a", "f", "f.mp4", start_s=0, end_s=4, level="EN", annotator="ann"),
        of.Clip("a", "f", "f.mp4", start_s=0, end_s=4, level="EN"),
    ],
    ids=["another span", "the same annotator twice", "no annotator"],
)
def test_rows_of_a_clip_that_contradict_each_other_are_refused(tmp_path, row):
    """Ann says S of the clip "a", from 0 to 4 s. A second row of this clip does not fit hers."""
    row_of_ann = of.Clip("a", "f", "f.mp4", start_s=0, end_s=4, level="S", annotator="ann")
    with pytest.raises(ManifestError):
        of.Manifest((row_of_ann, row), tmp_path)


def test_labels_of_several_annotators_do_not_fit_a_frame_of_one_row_a_clip(corpus_of_two_annotators):
    """A frame has one row of features and labels for each clip. Ann and Ben both labelled 216 of 240."""
    with pytest.raises(ManifestError, match="merge them first"):
        corpus_of_two_annotators.store["b"].to_frame(corpus_of_two_annotators.manifest)


def test_labels_are_not_merged_by_an_expert_who_gave_none(corpus_of_two_annotators):
    """The annotators are Ann and Ben, and not Eve."""
    with pytest.raises(ManifestError):
        merge_annotators(corpus_of_two_annotators.manifest, "expert", "eve")


def test_models_of_each_annotator_need_labels_of_several(corpus_of_two_annotators):
    """Once the labels of Ann and Ben are merged, nobody is named any more."""
    merged = merge_annotators(corpus_of_two_annotators.manifest)
    data = om.load_dataset(corpus_of_two_annotators.store, merged)
    with pytest.raises(ProtocolError):
        om.evaluate(data, ["linear"], "en_s", experts="each")


def with_levels_of_ben(data, levels):
    """Give Ben other levels, one for each clip, and leave those of Ann as they are."""
    ben = replace(data.labels.experts["ben"], levels=levels)
    experts = {"ann": data.labels.experts["ann"], "ben": ben}
    return replace(data, labels=replace(data.labels, experts=experts))


def assert_only_models_of_ben_are_left_out(run):
    """The run names the models that are trained on Ben's labels as left out, and has the one of Ann's."""
    left_out = run.record["models_left_out"]
    assert list(left_out) == ["models trained on ben"]
    assert "by ben" in left_out["models trained on ben"]
    linear_models = {model for _, model in mean_aucs(run) if model.startswith("linear")}
    assert linear_models == {"linear@ann"}


@pytest.mark.parametrize("films_judged_by_ben", [["f0"], ["f0", "f1"]], ids=["one film", "two films"])
def test_models_of_an_annotator_who_judged_too_few_films_are_left_out_by_name(
    corpus_of_two_annotators, films_judged_by_ben
):
    """With `experts="each"` a model is trained on Ann's labels and one on Ben's, if films are enough for it.

    Ann judged six films. Ben judged one or two here, and training, choosing and testing need three.
    """
    data = corpus_of_two_annotators.dataset()
    ben = data.labels.experts["ben"]
    not_judged = ""
    is_judged_by_ben = np.isin(ben.movies, films_judged_by_ben)
    levels_of_ben = np.where(is_judged_by_ben, ben.levels, not_judged)

    run = om.evaluate(with_levels_of_ben(data, levels_of_ben), ["linear"], "en_s", experts="each")

    assert_only_models_of_ben_are_left_out(run)


def test_models_of_an_annotator_who_never_says_s_are_left_out_by_name(corpus_of_two_annotators):
    """With `experts="each"` a model is trained on Ann's labels and one on Ben's, if they have both levels.

    Ben says EN of all clips here, from which nobody can learn to tell S from EN.
    """
    data = corpus_of_two_annotators.dataset()
    always_en = np.full(len(data), "EN")

    run = om.evaluate(with_levels_of_ben(data, always_en), ["linear"], "en_s", experts="each")

    assert_only_models_of_ben_are_left_out(run)


def test_rows_of_annotators_are_read_back_from_a_file(corpus_of_two_annotators, tmp_path):
    """The manifest has a row for each clip and annotator: a clip that both Ann and Ben labelled has two."""
    path = tmp_path / "windows.csv"
    of.write_manifest(corpus_of_two_annotators.manifest, path)

    read_back = of.read_manifest(path)

    assert read_back.is_per_annotator
    for field in ("clip_id", "annotator", "level", "start_s"):
        values = [getattr(clip, field) for clip in read_back]
        assert values == [getattr(clip, field) for clip in corpus_of_two_annotators.manifest]


def test_a_file_with_a_row_of_an_annotator_twice_is_refused(corpus_of_two_annotators, tmp_path):
    """Line 1 is the header. The row on line 2 is there again at the end of the file."""
    path = tmp_path / "windows.csv"
    of.write_manifest(corpus_of_two_annotators.manifest, path)
    _header, first_row, *_ = path.read_text(encoding="utf-8").splitlines()
    with path.open("a", encoding="utf-8") as file:
        file.write(first_row + "\n")

    with pytest.raises(ManifestError, match="already on line 2"):
        of.read_manifest(path)


def test_extraction_plans_a_clip_of_two_annotators_once(corpus_of_two_annotators, tmp_path):
    """The manifest has 456 rows of 240 clips: a row for each annotator of a clip."""
    assert len(corpus_of_two_annotators.manifest) == 456
    work = prepare(corpus_of_two_annotators.manifest, tmp_path / "out", licence="CC0-1.0")
    assert len(work.job.planned_clips()) == 240


@pytest.mark.long
def test_the_other_annotator_has_a_row_in_all_tables_by_annotator_but_those_of_ap_and_auc(
    run_of_merged_labels,
):
    """Two annotators labelled the same clips. In a test on the labels of one, the other has a row.

    A label is S or EN and ranks no clips: it has no AP and no AUC. Tables of the clips on which both agree
    (`@agreed`) are left out here, as nobody is the other one there.
    """
    for table in om.run_report(run_of_merged_labels).blocks:
        if "@agreed" in table.title:
            continue
        names_of_rows = [row[0] for row in table.rows]
        needs_a_ranking = "AP by movie" in table.title or "AUC by movie" in table.title
        if needs_a_ranking:
            assert OTHER_ANNOTATOR not in names_of_rows, table.title
        else:
            assert OTHER_ANNOTATOR in names_of_rows, table.title


@pytest.mark.long
def test_the_short_report_gives_the_other_annotator_a_balanced_accuracy_but_no_auc(run_of_merged_labels):
    """Two annotators err in 15 % of the clips, each on their own. One is tested on the labels of the other.

    They say the same where both are right or both err: in .85 * .85 + .15 * .15 = .745 of the clips. Labels
    of S and EN rank no clips, so that there is neither AUC nor AP ("-").
    """
    table = short_report(run_of_merged_labels).blocks[0]
    (row_of_other_annotator,) = [row for row in table.rows if row[0] == OTHER_ANNOTATOR]
    cells = dict(zip(table.headers, row_of_other_annotator, strict=True))

    assert cells["AUC [95 %]"] == "-"
    assert cells["AP"] == "-"
    assert float(cells["balanced accuracy"]) == pytest.approx(0.745, abs=0.08)
