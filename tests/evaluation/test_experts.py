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
from obygaze_models.models.names import LENGTH, OTHER
from obygaze_models.protocol.targets import NOT_ASKED
from obygaze_models.report.run_tables import short_report

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
def corpus(tmp_path_factory):
    """240 clips of two annotators."""
    return plant_corpus(tmp_path_factory.mktemp("experts"))


@pytest.fixture(scope="module")
def run(corpus):
    """A linear model of their merged labels, evaluated."""
    return om.evaluate(corpus.dataset(), ["linear"], "en_s")


def mean_auc(run):
    """Return the mean AUC over films by (task, model)."""
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return rows.set_index(["task", "model"])["movie_mean"].to_dict()


def test_a_dataset_holds_a_clip_once_with_labels_of_each_annotator(corpus):
    data = corpus.dataset()

    assert len(corpus.manifest) == 240 + 216
    assert len(data) == len(corpus.store.clips) == 240
    assert list(data.labels.experts) == ["ann", "ben"]
    for annotator, labels in data.labels.experts.items():
        level_of = {clip.clip_id: clip.level for clip in corpus.manifest if clip.annotator == annotator}
        assert labels.levels.tolist() == [level_of.get(clip_id, "") for clip_id in data.clip_ids]
    part = data.take(np.array([3, 7]))
    assert part.clip_ids.tolist() == part.labels.experts["ben"].clip_ids.tolist() == ["f0-03", "f0-07"]


@pytest.mark.long
@pytest.mark.parametrize("experts", ["merged", "soft"])
def test_a_model_is_tested_on_each_annotator_and_where_they_agree(corpus, experts):
    """Each annotator errs in 15% of the clips.

    Where both agree, errors are rarer, so that the same model is better there.
    """
    run = om.evaluate(corpus.dataset(), ["linear"], "en_s", experts=experts)
    aucs = mean_auc(run)
    assert {task for task, _ in aucs} == {"en_s>en_s@ann", "en_s>en_s@ben", "en_s>en_s@agreed"}
    assert aucs["en_s>en_s@agreed", "linear"] > aucs["en_s>en_s@ann", "linear"]
    assert aucs["en_s>en_s@agreed", "linear"] > aucs["en_s>en_s@ben", "linear"]


@pytest.mark.long
def test_the_other_annotator_is_a_baseline(corpus, run):
    experts = corpus.dataset().labels.experts
    both_judged = experts["ben"].levels != ""
    ann = experts["ann"].levels[both_judged] == "S"
    ben = experts["ben"].levels[both_judged] == "S"
    movies = experts["ann"].movies[both_judged]
    expected = np.mean([roc_auc_score(ann[movies == film], ben[movies == film]) for film in FILMS])

    assert mean_auc(run)["en_s>en_s@ann", OTHER] == pytest.approx(expected)


@pytest.mark.long
def test_each_annotator_may_have_a_model_but_no_baselines(corpus):
    run = om.evaluate(corpus.dataset(), ["linear"], "en_s", experts="each")
    models = {model for _, model in mean_auc(run)}
    assert models >= {"linear@ann", "linear@ben", OTHER, "movie_prior"}
    assert "movie_prior@ann" not in models


def test_models_and_the_other_annotator_are_tested_on_the_clips_of_both(run):
    """A model is compared with the other annotator on the clips that both judged, 216 of 240.

    Where the two agree, the other would always be right and is no baseline. Neither is the length of clips,
    which is the same for all.
    """
    table = run.predictions.table
    counts = table.groupby(["model", "task"]).size()
    assert counts["linear", "en_s>en_s@ann"] == 216
    assert counts["linear", "en_s>en_s@ben"] == 216
    assert counts[OTHER].to_dict() == {"en_s>en_s@ann": 216, "en_s>en_s@ben": 216}
    assert set(table.loc[table["model"] == OTHER, "score"]) == {0.0, 1.0}
    assert LENGTH not in set(table["model"])


@pytest.mark.long
def test_soft_labels_train_on_the_rows_of_all_annotators(corpus):
    """Ann has 240 rows and Ben 216. Five of six films are trained on."""
    n_rows = []

    class Counting(om.ClippedScaler):
        def fit(self, X, y=None):
            n_rows.append(len(X))
            return super().fit(X, y)

    counting = make_pipeline(Counting(), RidgeLogistic())
    om.evaluate(corpus.dataset(), {"counting": counting}, "en_s", experts="soft")
    five_films_of_six = (240 + 216) * 5 // 6
    assert max(n_rows) == five_films_of_six


@pytest.mark.long
def test_the_error_rates_of_annotators_are_estimated(corpus):
    run = om.evaluate(corpus.dataset(), ["linear"], "en_s", experts="noisy")
    for annotator in ("ann", "ben"):
        rates = run.record["noise"][annotator]
        assert rates["positive"] == pytest.approx(1 - ERROR_RATE, abs=0.16)
        assert rates["negative"] == pytest.approx(1 - ERROR_RATE, abs=0.16)
    assert mean_auc(run)["en_s>en_s@agreed", "linear"] > 0.9


@pytest.mark.long
def test_noisy_labels_are_nearer_the_truth_than_the_share_of_annotators(corpus):
    """Copies of the labels are drawn for training by how probable each label is; other clips get none."""
    data = corpus.dataset()
    label_plan = plan_labels(data, om.find_target("en_s", data.codebook), [], "noisy")
    n_train = 200
    copies_of_labels, _ = denoise_labels(label_plan, data, np.arange(n_train))
    for labels in copies_of_labels:
        assert (labels[n_train:] == NOT_ASKED).all()
    share_of_copies = np.mean(copies_of_labels, axis=0)[:n_train]
    labels_of_annotators = list(label_plan.noisy.values())
    share_of_annotators = np.mean([labels == 1 for labels in labels_of_annotators], axis=0)[:n_train]
    truth = corpus.is_positive[:n_train]

    assert roc_auc_score(truth, share_of_copies) > roc_auc_score(truth, share_of_annotators) + 0.02


@pytest.mark.long
def test_the_length_of_clips_is_a_baseline_where_it_varies(tmp_path):
    """Positive clips are 7 s long and others 3 s, so length alone tells the level."""
    corpus = plant_corpus(tmp_path, positive_clips_are_longer=True)
    run = om.evaluate(corpus.dataset(), ["linear"], "en_s")
    assert mean_auc(run)["en_s>en_s@ann", LENGTH] > 0.75


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
        of.Clip("a", "f", "f.mp4", 0, 4, "S", ("Body",), "ann"),
        of.Clip("a", "f", "f.mp4", 0, 4, "HN", ("Body", "Clothing"), "ben"),
    )
    merged = merge_annotators(of.Manifest(rows, tmp_path), rule, "ben")
    (clip,) = merged

    assert clip.level == level
    assert set(clip.concepts) == concepts
    assert not merged.is_per_annotator


@pytest.mark.parametrize(
    "row",
    [
        of.Clip("a", "f", "f.mp4", 0, 5, "S", (), "ben"),
        of.Clip("a", "f", "f.mp4", 0, 4, "EN", (), "ann"),
        of.Clip("a", "f", "f.mp4", 0, 4, "EN"),
    ],
    ids=["another span", "the same annotator twice", "no annotator"],
)
def test_rows_of_a_clip_that_contradict_each_other_are_refused(tmp_path, row):
    anns = of.Clip("a", "f", "f.mp4", 0, 4, "S", (), "ann")
    with pytest.raises(ManifestError):
        of.Manifest((anns, row), tmp_path)


def test_labels_of_several_annotators_are_merged_by_rules_and_people_that_are_known(corpus):
    with pytest.raises(ManifestError, match="merge them first"):
        corpus.store["b"].to_frame(corpus.manifest)
    with pytest.raises(ManifestError):
        merge_annotators(corpus.manifest, "expert", "eve")


def test_models_of_each_annotator_need_labels_of_several(corpus):
    data = om.load_dataset(corpus.store, merge_annotators(corpus.manifest))
    with pytest.raises(ProtocolError):
        om.evaluate(data, ["linear"], "en_s", experts="each")


@pytest.mark.parametrize(
    ("films_of_ben", "level_elsewhere"),
    [(["f0"], ""), (["f0", "f1"], ""), ([], "EN")],
    ids=["one film", "two films", "never S"],
)
def test_models_of_an_annotator_of_too_few_films_are_left_out_by_name(corpus, films_of_ben, level_elsewhere):
    """Ann's labels do: the model that is trained on them is evaluated."""
    data = corpus.dataset()
    ben = data.labels.experts["ben"]
    levels = np.where(np.isin(ben.movies, films_of_ben), ben.levels, level_elsewhere)
    experts = {"ann": data.labels.experts["ann"], "ben": replace(ben, levels=levels)}
    data = replace(data, labels=replace(data.labels, experts=experts))

    run = om.evaluate(data, ["linear"], "en_s", experts="each")

    (reason,) = run.record["models_left_out"].values()
    assert list(run.record["models_left_out"]) == ["models trained on ben"]
    assert "by ben" in reason
    assert {"linear@ann"} == {model for _, model in mean_auc(run) if model.startswith("linear")}


def test_rows_of_annotators_are_read_back_from_a_file_and_refused_if_one_is_there_twice(corpus, tmp_path):
    path = tmp_path / "windows.csv"
    of.write_manifest(corpus.manifest, path)

    read_back = of.read_manifest(path)
    assert read_back.is_per_annotator
    for field in ("clip_id", "annotator", "level", "start_s"):
        values = [getattr(clip, field) for clip in read_back]
        assert values == [getattr(clip, field) for clip in corpus.manifest]

    _header, first_row, *_ = path.read_text(encoding="utf-8").splitlines()
    with path.open("a", encoding="utf-8") as file:
        file.write(first_row + "\n")
    with pytest.raises(ManifestError, match="already on line 2"):
        of.read_manifest(path)


def test_extraction_plans_a_clip_of_two_annotators_once(corpus, tmp_path):
    work = prepare(corpus.manifest, tmp_path / "out", licence="CC0-1.0")
    assert len(work.job.planned_clips()) == 240


@pytest.mark.long
def test_an_annotators_calls_have_a_balanced_accuracy_and_are_in_no_table_of_rankings(run):
    """A call is S or EN and ranks no clips: it has no AP and no AUC."""
    for table in om.run_report(run).blocks:
        models = [row[0] for row in table.rows]
        is_of_rankings = "AP by movie" in table.title or "AUC by movie" in table.title
        if "@agreed" not in table.title:
            assert (OTHER in models) == (not is_of_rankings), table.title

    table = short_report(run).blocks[0]
    (other,) = [row for row in table.rows if row[0] == OTHER]
    cells = dict(zip(table.headers, other, strict=True))
    assert cells["AUC [95 %]"] == cells["AP"] == "-"
    # Both annotators err in 15 % of the clips, each on their own.
    assert float(cells["balanced accuracy"]) == pytest.approx(0.745, abs=0.08)
