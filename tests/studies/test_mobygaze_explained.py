"""Modality-specific sets find the modality that explains the label, and leave the others at chance."""

import numpy as np
import pytest

import obygaze_features as of
from obygaze.cli import root_command
from obygaze_features.manifest import builtin_codebook, perceived
from obygaze_features.store.testing import seal_arrays
from obygaze_studies.errors import TaskError
from obygaze_studies.mobygaze import explained_report

FILMS = [f"f{k}" for k in range(6)]
PER_FILM = 30
PERCEIVES = {"visual": ["visual", "moving"], "audio": ["heard"], "speech": ["said"]}
CONCEPTS = {"visual": "Body", "audio": "Soundtrack", "speech": "Speech"}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Segments that are sure by what is seen, heard or said; only sound shows it, where sound explains it."""
    folder = tmp_path_factory.mktemp("explained")
    generator = np.random.default_rng(0)
    n = len(FILMS) * PER_FILM
    explanation = generator.choice(["", "visual", "audio", "speech"], n, p=[0.4, 0.2, 0.2, 0.2])
    clips = []
    movie_of = {}
    for index in range(n):
        film = FILMS[index // PER_FILM]
        clip_id = f"{film}-{index % PER_FILM:02}"
        movie_of[clip_id] = film
        level = "S" if explanation[index] else "EN"
        concepts = (CONCEPTS[explanation[index]],) if explanation[index] else ()
        clips.append(of.Clip(clip_id, film, f"{film}.mp4", level=level, concepts=concepts))
    stores = {}
    for name, perceives in PERCEIVES.items():
        features = generator.normal(size=(n, 6)).astype(np.float32)
        if name == "audio":
            features[explanation == "audio", 0] += 5
        path = seal_arrays(folder / name, movie_of, {name: {"pooled": features}}, perceives=perceives)
        stores[name] = (of.open_store(path), None)
    return of.Manifest(tuple(clips), folder, builtin_codebook("mobygaze")), stores


@pytest.fixture(scope="module")
def report(corpus):
    manifest, stores = corpus
    return explained_report(manifest, stores, task="en_s", models=("linear",))


def mean(report, tested_on, features, trained_on, metric="auc"):
    rows = report.data.set_index(["tested_on", "features", "trained_on", "metric"])
    return rows.loc[(tested_on, features, trained_on, metric), "movie_mean"]


@pytest.mark.long
def test_the_modality_that_explains_the_label_knows_it_on_its_segments_and_others_do_not(report):
    """Trained on what it explains, it is no worse there. The largest score joins the modalities."""
    heard = mean(report, "explained by audio", "audio", "explained")
    assert heard > 0.95
    assert mean(report, "explained by audio", "audio", "explained", "average_precision") > 0.9
    assert heard >= mean(report, "explained by audio", "audio", "all") - 0.02
    for modality in ("visual", "speech"):
        assert 0.35 < mean(report, f"explained by {modality}", modality, "explained") < 0.65
    assert mean(report, "en_s", "max", "explained") > 0.55
    assert {"explained", "all"} == set(report.data.loc[report.data["features"] == "max", "trained_on"])


@pytest.mark.long
def test_each_modality_has_a_table_and_one_is_for_all_segments(report, corpus):
    manifest, _ = corpus
    titles = [block.title.partition(":")[0] for block in report.blocks]
    assert titles == [*(f"explained by {name}" for name in PERCEIVES), "en_s"]
    n_positive = sum(clip.level == "S" for clip in manifest)
    n_heard = sum("Soundtrack" in clip.concepts for clip in manifest)
    assert f"{n_heard} of {n_positive}" in " ".join(report.notes)


def test_features_of_a_text_encoder_convey_concepts_that_are_said_or_told():
    no_preset_of_pictures = {"resize": None, "crop": None, "constants": None, "order": None}
    provenance = {"tokenizer": {"sha256": {}}, "preset": no_preset_of_pictures}
    assert perceived(provenance) == ("said", "told")


def test_a_task_of_no_levels_and_features_that_do_not_say_what_they_perceive_are_refused(corpus, tmp_path):
    manifest, stores = corpus
    with pytest.raises(TaskError, match="en_s"):
        explained_report(manifest, stores, task="concept:Body")

    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    features = np.zeros((len(movie_of), 2), dtype=np.float32)
    path = seal_arrays(tmp_path / "unknown", movie_of, {"lab": {"pooled": features}}, perceives=[])
    with pytest.raises(TaskError, match="perceives"):
        explained_report(manifest, {"lab": (of.open_store(path), None)})


@pytest.mark.long
def test_the_command_makes_the_tables(corpus, tmp_path, capsys):
    manifest, stores = corpus
    of.write_manifest(manifest, tmp_path / "clips.csv")
    places = [f"{name}={store.where}" for name, (store, _) in stores.items()]
    words = ["mobygaze", str(tmp_path / "clips.csv"), *places, "--model", "linear", "--explained-by"]
    root_command().main([*words, "--out", str(tmp_path / "out")], standalone_mode=False)

    assert "explained by audio" in capsys.readouterr().out
    assert list((tmp_path / "out").iterdir())
