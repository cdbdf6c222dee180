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
    """180 segments of six films, 40 % of them EN and 60 % S; of each S, one modality explains why.

    It is vision, sound or speech, a third of S each, and a concept of that modality is marked. There is a
    store of features for each modality. Only those of sound know anything: they show which segments are S by
    sound.
    """
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
    """Tables of a linear model of each modality, by the modality that explains the label, EN or S."""
    manifest, stores = corpus
    return explained_report(manifest, stores, task="en_s", models=("linear",))


def mean(report, tested_on, features, *, trained_on, metric="auc"):
    """Return the mean over films of a metric of the models of some features, on some segments.

    The features are those of one modality; with "max", a segment's score is the largest that the models of
    the three modalities give it. Segments are all ("en_s"), or EN and those of S that a modality explains
    ("explained by audio"). The models are trained on those that their modality explains ("explained"), or on
    all.
    """
    rows = report.data.set_index(["tested_on", "features", "trained_on", "metric"])
    return rows.loc[(tested_on, features, trained_on, metric), "movie_mean"]


@pytest.mark.long
def test_a_model_of_sound_tells_the_segments_whose_label_sound_explains(report):
    """A third of the S segments are so by what is heard, and features of sound tell these from EN.

    They are tested on these segments and EN. A model of sound that was trained on such segments alone is no
    worse there than one that was trained on all segments, also on S which sound does not show.
    """
    auc_by_explained = mean(report, "explained by audio", "audio", trained_on="explained")
    auc_by_all = mean(report, "explained by audio", "audio", trained_on="all")
    ap = mean(report, "explained by audio", "audio", trained_on="explained", metric="average_precision")

    assert auc_by_explained > 0.95
    assert ap > 0.9
    assert auc_by_explained >= auc_by_all - 0.02


@pytest.mark.long
@pytest.mark.parametrize("modality", ["visual", "speech"])
def test_a_modality_whose_features_are_noise_is_at_chance_on_the_segments_that_it_explains(report, modality):
    """Segments that annotators called S for what is seen, or said, are told from others by features of that.

    All features of pictures and speech are noise here. So the AUC must be near .5; with so few segments it
    may be .15 off.
    """
    auc = mean(report, f"explained by {modality}", modality, trained_on="explained")

    assert 0.35 < auc < 0.65


@pytest.mark.long
def test_the_largest_score_of_three_models_tells_segments_that_only_one_of_them_knows(report):
    """A segment's largest score is that of the models of vision, sound and speech which gives it the most.

    Sound knows a third of the S segments, vision and speech none. Over all segments, the AUC of the largest
    score must be above chance. The report has it of models that were trained on the segments that their
    modality explains, and of models that were trained on all.
    """
    rows_of_largest_score = report.data[report.data["features"] == "max"]

    assert mean(report, "en_s", "max", trained_on="explained") > 0.55
    assert set(rows_of_largest_score["trained_on"]) == {"explained", "all"}


@pytest.mark.long
def test_each_modality_has_a_table_and_one_is_for_all_segments(report, corpus):
    """A note says of how many positive segments sound explains the label: those with Soundtrack."""
    manifest, _ = corpus
    n_positive = sum(clip.level == "S" for clip in manifest)
    n_heard = sum("Soundtrack" in clip.concepts for clip in manifest)

    titles = [block.title.partition(":")[0] for block in report.blocks]

    assert titles == ["explained by visual", "explained by audio", "explained by speech", "en_s"]
    assert f"{n_heard} of {n_positive}" in " ".join(report.notes)


def test_features_of_a_text_encoder_convey_concepts_that_are_said_or_told():
    """An encoder with a tokenizer and without a preset of pictures reads texts."""
    no_preset_of_pictures = {"resize": None, "crop": None, "constants": None, "order": None}
    provenance = {"tokenizer": {"sha256": {}}, "preset": no_preset_of_pictures}

    assert perceived(provenance) == ("said", "told")


def test_a_task_of_a_concept_is_refused(corpus):
    """Modalities explain why a segment has a level, so the task must be one of levels, such as en_s."""
    manifest, stores = corpus

    with pytest.raises(TaskError, match="en_s"):
        explained_report(manifest, stores, task="concept:Body")


def test_features_that_do_not_say_what_they_perceive_are_refused(corpus, tmp_path):
    """A modality explains the segments with concepts that it perceives, and this one states none."""
    manifest, _ = corpus
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    features = np.zeros((len(movie_of), 2), dtype=np.float32)
    path = seal_arrays(tmp_path / "unknown", movie_of, {"lab": {"pooled": features}}, perceives=[])
    stores = {"lab": (of.open_store(path), None)}

    with pytest.raises(TaskError, match="perceives"):
        explained_report(manifest, stores)


@pytest.mark.long
def test_the_command_mobygaze_makes_tables_by_the_modality_that_explains_the_label(corpus, tmp_path, capsys):
    """The command is `obygaze mobygaze clips.csv visual=STORE audio=STORE speech=STORE ... --explained-by`.

    One of its tables is of the segments that sound explains, and the report is written to a folder.
    """
    manifest, stores = corpus
    clips = tmp_path / "clips.csv"
    out = tmp_path / "out"
    of.write_manifest(manifest, clips)
    modalities = [f"{name}={store.where}" for name, (store, _) in stores.items()]
    options = ["--model", "linear", "--explained-by", "--out", str(out)]

    root_command().main(["mobygaze", str(clips), *modalities, *options], standalone_mode=False)

    assert "explained by audio" in capsys.readouterr().out
    files_written = list(out.iterdir())
    assert files_written != []
