"""Several annotators: models of merged, own and shared labels, tested on each of them beside the others."""

from dataclasses import replace

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
from obygaze_models.evaluation.experts import asked_of, without_noise
from obygaze_models.models import RidgeLogistic
from obygaze_models.models.names import LENGTH, OTHER
from obygaze_models.protocol.targets import NOT_ASKED
from obygaze_models.report.run_tables import short_report

FILMS, PER_FILM = [f"f{k}" for k in range(6)], 40
FLIPPED = 0.15


def planted(folder, *, lengths=False):
    """Clips whose level moves a feature, as two annotators call them who err; one skips a tenth."""
    generator = np.random.default_rng(0)
    n = len(FILMS) * PER_FILM
    truth = generator.random(n) < 0.45
    X = generator.normal(size=(n, 6)).astype(np.float32)
    X[:, 0] += 2.0 * truth
    clips, movie_of, spans = [], {}, {}
    for i in range(n):
        film, k = FILMS[i // PER_FILM], i % PER_FILM
        clip_id, start = f"{film}-{k:02}", 10.0 * k
        end = start + (3.0 + 4.0 * truth[i] if lengths else 5.0)
        movie_of[clip_id], spans[clip_id] = film, (start, end)
        for name in ("ann", "ben"):
            marked = truth[i] ^ (generator.random() < FLIPPED)
            if name == "ben" and i % 10 == 0:
                continue
            clips.append(of.Clip(clip_id, film, f"{film}.mp4", start, end, "S" if marked else "EN", (), name))
    store = of.open_store(seal_arrays(folder / "store", movie_of, {"b": {"pooled": X}}, spans=spans))
    return of.Manifest(tuple(clips), folder), store, truth


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("experts"))


def evaluated(corpus, experts=None, models=("linear",)):
    manifest, store, _ = corpus
    return om.evaluate(om.load_dataset(store, manifest), list(models), "en_s", experts=experts)


def auc(run):
    rows = run.metrics[run.metrics["metric"] == "auc"]
    return rows.set_index(["task", "model"])["movie_mean"].to_dict()


def test_a_store_has_a_clip_once_and_the_manifest_once_for_each_annotator(corpus):
    manifest, store, _ = corpus
    data = om.load_dataset(store, manifest)
    assert len(manifest) == 240 + 216
    assert len(data) == len(store.clips) == 240
    assert list(data.labels.experts) == ["ann", "ben"]
    for name, labels in data.labels.experts.items():
        own = {clip.clip_id: clip.level for clip in manifest if clip.annotator == name}
        assert labels.levels.tolist() == [own.get(clip_id, "") for clip_id in data.clip_ids.tolist()]
    some = data.take(np.array([3, 7]))
    assert some.labels.experts["ben"].clip_ids.tolist() == some.clip_ids.tolist()


@pytest.mark.parametrize("experts", [None, "merged", "soft"])
def test_a_model_is_tested_on_each_and_where_they_agree_beside_the_other(corpus, experts):
    found = auc(evaluated(corpus, experts))
    tests = {"en_s>en_s@ann", "en_s>en_s@ben", "en_s>en_s@agreed"}
    assert {task for task, _ in found} == tests
    each = [found[f"en_s>en_s@{name}", "linear"] for name in ("ann", "ben")]
    assert found["en_s>en_s@agreed", "linear"] > max(each)
    labels = om.load_dataset(corpus[1], corpus[0]).labels
    both = labels.experts["ben"].levels != ""
    ann, ben = (labels.experts[name].levels[both] == "S" for name in ("ann", "ben"))
    movies = labels.movies[both]
    expected = np.mean([roc_auc_score(ann[movies == film], ben[movies == film]) for film in FILMS])
    assert found["en_s>en_s@ann", OTHER] == pytest.approx(expected)
    assert ("en_s>en_s@agreed", OTHER) not in found


def test_each_expert_may_have_a_model(corpus):
    found = auc(evaluated(corpus, "each"))
    assert {model for _, model in found} >= {"linear@ann", "linear@ben", OTHER, "movie_prior"}
    assert "movie_prior@ann" not in {model for _, model in found}


def test_tests_are_of_clips_that_the_other_judged_too(corpus):
    table = evaluated(corpus).predictions.table
    counts = table[table["model"] == "linear"].groupby("task").size()
    assert counts["en_s>en_s@ann"] == counts["en_s>en_s@ben"] == 216
    other = table[table["model"] == OTHER]
    assert set(other["score"]) == {0.0, 1.0}
    assert other.groupby("task").size().to_dict() == {"en_s>en_s@ann": 216, "en_s>en_s@ben": 216}


def test_soft_labels_are_every_annotators_rows(corpus):
    manifest, store, _ = corpus
    data = om.load_dataset(store, manifest)
    seen = []

    class Counting(om.ClippedScaler):
        def fit(self, X, y=None):
            seen.append(len(X))
            return super().fit(X, y)

    om.evaluate(data, {"counted": make_pipeline(Counting(), RidgeLogistic())}, "en_s", experts="soft")
    assert max(seen) == (240 + 216) * 5 // 6


@pytest.mark.long
def test_noisy_labels_are_what_clips_probably_are_given_how_often_each_annotator_is_right(corpus):
    manifest, store, truth = corpus
    run = evaluated(corpus, "noisy")
    noise = run.record["noise"]
    for own in noise.values():
        assert own["positive"] == pytest.approx(1 - FLIPPED, abs=0.16)
        assert own["negative"] == pytest.approx(1 - FLIPPED, abs=0.16)
    data = om.load_dataset(store, manifest)
    asked = asked_of(data, om.find_target("en_s", data.codebook), [], "noisy")
    rows = np.arange(200)
    copies, _ = without_noise(asked, data, rows)
    assert all((codes[200:] == NOT_ASKED).all() for codes in copies)
    share = np.mean(copies, axis=0)[:200]
    either = np.mean([codes == 1 for codes in asked.noisy.values()], axis=0)[:200]
    assert roc_auc_score(truth[:200], share) > roc_auc_score(truth[:200], either) + 0.02
    assert auc(run)["en_s>en_s@agreed", "linear"] > 0.9


@pytest.mark.long
def test_the_length_of_clips_that_annotators_drew_is_a_baseline(tmp_path):
    found = auc(evaluated(planted(tmp_path, lengths=True)))
    assert found["en_s>en_s@ann", LENGTH] > 0.75
    alike = planted(tmp_path / "alike")
    assert LENGTH not in {model for _, model in auc(evaluated(alike))}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("highest", ("S", ("Body",))),
        ("any", ("S", ("Body", "Clothing"))),
        ("both", ("HN", ("Body",))),
        ("expert", ("HN", ("Clothing", "Body"))),
    ],
)
def test_annotators_are_merged_by_rule(tmp_path, how, expected):
    rows = (
        of.Clip("a", "f", "f.mp4", 0, 4, "S", ("Body",), "ann"),
        of.Clip("a", "f", "f.mp4", 0, 4, "HN", ("Body", "Clothing"), "ben"),
    )
    merged = merge_annotators(of.Manifest(rows, tmp_path), how, "ben")
    (clip,) = merged
    assert (clip.level, set(clip.concepts)) == (expected[0], set(expected[1]))
    assert not merged.is_per_annotator


def test_rows_of_annotators_must_be_of_one_span_and_labels_are_never_taken_from_one_of_them(corpus, tmp_path):
    first = of.Clip("a", "f", "f.mp4", 0, 4, "S", (), "ann")
    for other in (
        of.Clip("a", "f", "f.mp4", 0, 5, "S", (), "ben"),
        of.Clip("a", "f", "f.mp4", 0, 4, "EN", (), "ann"),
        of.Clip("a", "f", "f.mp4", 0, 4, "EN"),
    ):
        with pytest.raises(ManifestError):
            of.Manifest((first, other), tmp_path)
    manifest, store, _ = corpus
    with pytest.raises(ManifestError, match="merge them first"):
        store["b"].to_frame(manifest)
    with pytest.raises(ManifestError):
        merge_annotators(manifest, "expert", "eve")


def test_experts_need_labels_of_several(corpus):
    manifest, store, _ = corpus
    data = om.load_dataset(store, merge_annotators(manifest))
    with pytest.raises(ProtocolError):
        om.evaluate(data, ["linear"], "en_s", experts="each")


@pytest.mark.parametrize(("n_films", "level"), [(1, ""), (2, ""), (0, "EN")])
def test_an_annotator_of_too_few_films_is_named(corpus, n_films, level):
    """Ann's labels would do, and a model of merged ones."""
    data = om.load_dataset(corpus[1], corpus[0])
    ben = data.labels.experts["ben"]
    own = np.isin(ben.movies, FILMS[:n_films])
    experts = {**data.labels.experts, "ben": replace(ben, levels=np.where(own, ben.levels, level))}
    data = replace(data, labels=replace(data.labels, experts=experts))
    with pytest.raises(ProtocolError, match="ben"):
        om.evaluate(data, ["linear"], "en_s", experts="each")


def test_rows_of_annotators_are_kept_in_a_file(corpus, tmp_path):
    manifest, _, _ = corpus
    of.write_manifest(manifest, tmp_path / "windows.csv")
    again = of.read_manifest(tmp_path / "windows.csv")
    for name in ("clip_id", "annotator", "level", "start_s"):
        assert [getattr(clip, name) for clip in again] == [getattr(clip, name) for clip in manifest]
    assert again.is_per_annotator
    lines = (tmp_path / "windows.csv").read_text(encoding="utf-8").splitlines()
    (tmp_path / "twice.csv").write_text("\n".join([*lines, lines[1]]) + "\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="already on line 2"):
        of.read_manifest(tmp_path / "twice.csv")


def test_extraction_takes_a_clip_once(corpus, tmp_path):
    manifest, _, _ = corpus
    work = prepare(manifest, tmp_path / "out", licence="CC0-1.0")
    assert len(work.job.planned_clips()) == 240


@pytest.mark.long
def test_calls_of_people_are_compared_with_calls_and_never_with_rankings(corpus):
    run = evaluated(corpus)
    for block in om.run_report(run).blocks:
        if "@agreed" in block.title:
            continue
        ranks = any(name in block.title for name in ("AP by movie", "AUC by movie"))
        assert (OTHER in [row[0] for row in block.rows]) != ranks
    headers = short_report(run).blocks[0].headers
    rows = {row[0]: dict(zip(headers, row, strict=True)) for row in short_report(run).blocks[0].rows}
    assert [rows[OTHER][name] for name in ("AUC [95 %]", "AP")] == ["-", "-"]
    # Annotators err in .15 of clips, each on their own.
    assert float(rows[OTHER]["balanced accuracy"]) == pytest.approx(0.745, abs=0.08)
