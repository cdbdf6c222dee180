"""A saved model is trained on the labels that the run trained it on, where several people labelled."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

import obygaze_features as of
import obygaze_models as om
from obygaze_features.manifest import write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_models.errors import ModelError
from obygaze_models.protocol.targets import concept_target
from tests.command import obygaze
from tests.planted_models import Corpus

FILMS = [f"film{number}" for number in range(4)]
CLIPS_A_FILM = 24


def plant_clips_of_ann_and_ben(folder):
    """Plant 96 clips of four films, labelled S or EN by Ann and by Ben; clips of S show Body.

    Ann calls every fourth clip S, 24 clips, and Ben every second, 48 clips: those of Ann and 24 others.
    Merged, a clip is S if one of them calls it S: the labels of Ben.
    """
    generator = np.random.default_rng(0)
    movie_of = {}
    X = []
    clips = []
    for film in FILMS:
        for number in range(CLIPS_A_FILM):
            clip_id = f"{film}-{number:02}"
            movie_of[clip_id] = film
            X.append(generator.normal(size=4) + 3 * (number % 4 == 0))
            for annotator, step in (("ann", 4), ("ben", 2)):
                is_positive = number % step == 0
                level, concepts = ("S", ("Body",)) if is_positive else ("EN", ())
                clips.append(of.Clip(clip_id, film, level=level, concepts=concepts, annotator=annotator))
    store = seal_arrays(folder / "store", movie_of, {"lab": {"pooled": np.array(X, np.float32)}})
    return Corpus(of.open_store(store), of.Manifest(tuple(clips), folder))


def saved_and_loaded(run, data, name, folder):
    """Save a model of a run, and read it back from its file."""
    (file,) = om.save_models(run, data, [name], folder / "kept").values()
    return om.load_model(file)


def test_a_saved_model_of_one_annotators_labels_was_trained_on_these_labels(tmp_path):
    """Ann calls 24 of 96 clips S, and the other 72 EN; Ben calls 48 of them S.

    With `experts="each"` a model is trained on the labels of each, of Ann under the name "linear@ann". Its
    card must have the 24 clips of Ann as positive, not the 48 that Ben, or either of them, calls S.
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    data = om.load_dataset(planted.store, planted.manifest)
    run = om.evaluate(data, ["linear"], "en_s", experts="each")

    card = saved_and_loaded(run, data, "linear@ann", tmp_path).card

    assert card.n_positives == 24
    assert card.labelled_by == ("ann",)
    assert card.population["clips"] == {"EN": 72, "S": 24}


class MeanOfFeatures(ClassifierMixin, BaseEstimator):
    """A lab's own estimator, which can be saved as it gives its arrays."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.mean_ = X.mean()
        return self

    def decision_function(self, X):
        return X.mean(axis=1) - self.mean_

    def to_arrays(self):
        return {"mean": np.array([self.mean_])}

    @classmethod
    def from_arrays(cls, arrays):
        estimator = cls()
        estimator.classes_ = np.array([0, 1])
        (estimator.mean_,) = arrays["mean"]
        return estimator


def test_the_file_of_a_labs_own_model_of_one_annotator_is_read_with_the_models_class_alone(tmp_path):
    """A lab evaluates its own estimator under the name "mine". The model of Ann's labels is then "mine@ann".

    To read that model's file, the lab offers the estimator "mine" once more, and none called "mine@ann". The
    estimator scores a clip by the mean of its features, so that the clip of the highest mean must be first.
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    data = om.load_dataset(planted.store, planted.manifest)
    own_models = {"mine": MeanOfFeatures()}
    run = om.evaluate(data, own_models, "en_s", experts="each")
    (file,) = run.save(data, ["mine@ann"], tmp_path / "kept").values()

    model = om.load_model(file, offered=own_models)

    assert model.card.labelled_by == ("ann",)
    clip_of_highest_score = model.logits(data.X).argmax()
    assert clip_of_highest_score == data.X.mean(axis=1).argmax()


def test_a_saved_model_of_merged_labels_has_the_positive_clips_of_either_annotator(tmp_path):
    """Ben calls 48 of 96 clips S, among them the 24 that Ann calls S: merged, 48 clips are positive."""
    planted = plant_clips_of_ann_and_ben(tmp_path)
    data = om.load_dataset(planted.store, planted.manifest)
    run = om.evaluate(data, ["linear"], "en_s")

    card = saved_and_loaded(run, data, "linear", tmp_path).card

    assert card.n_positives == 48
    assert card.labelled_by == ("ann", "ben")


@pytest.mark.parametrize("experts", ["soft", "noisy"])
def test_a_model_that_was_trained_on_several_labels_of_a_clip_cannot_be_saved(tmp_path, experts):
    """Ann and Ben labelled the same clips. With "soft" or "noisy" a model is evaluated that learns from both.

    A saved model is trained anew on one label of each clip, merged. The file would hold another model than
    the one whose results it states.
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    data = om.load_dataset(planted.store, planted.manifest)
    run = om.evaluate(data, ["linear"], "en_s", experts=experts)

    with pytest.raises(ModelError, match=f"--experts {experts} are trained on several labels of a clip"):
        om.save_models(run, data, ["linear"], tmp_path / "kept")


def test_a_model_of_a_concept_that_several_people_marked_is_saved(tmp_path):
    """The run tests concept:Body@ann and concept:Body@ben, which are no concepts of the codebook."""
    planted = plant_clips_of_ann_and_ben(tmp_path)
    data = om.load_dataset(planted.store, planted.manifest)
    run = om.evaluate(data, ["linear"], "concept:Body")

    card = saved_and_loaded(run, data, "linear", tmp_path).card

    assert (card.target["concept"], card.n_positives) == ("Body", 48)


def labels_of_ann_without_her_name(manifest):
    """Return Ann's labels, as of a manifest that only one person labelled and that does not name her."""
    return [replace(clip, annotator="") for clip in manifest if clip.annotator == "ann"]


def test_the_card_of_a_model_of_a_concept_against_clips_of_a_level_names_both(tmp_path):
    """The target concept:Body-vs-EN tells clips with Body from those of the level EN without Body.

    Ann labelled 96 clips, every fourth as S with Body and all others as EN; the manifest names no annotator.
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    manifest = planted.manifest.with_clips(labels_of_ann_without_her_name(planted.manifest))
    data = om.load_dataset(planted.store, manifest)
    run = om.evaluate(data, ["linear"], concept_target("Body", data.codebook, ["EN"]))

    card = saved_and_loaded(run, data, "linear", tmp_path).card

    assert (card.target["name"], card.target["concept"]) == ("concept:Body-vs-EN", "Body")


def test_evaluate_saves_the_model_of_one_annotator_by_a_name_that_has_the_annotator(tmp_path, capsys):
    """Ann and Ben labelled clips; `--experts each` trains linear@ann, of 24 positive clips, and linear@ben.

    `--save linear` names neither, which the command says, with the names there are. `--save linear@ann` does.
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    write_manifest(planted.manifest, tmp_path / "labels.csv")
    arguments = [
        "evaluate",
        tmp_path / "labels.csv",
        planted.store.path,
        "--task",
        "en_s",
        "--experts",
        "each",
    ]
    arguments += ["--model", "linear", "--out", tmp_path / "run"]

    assert obygaze(*arguments, "--save", "linear") != 0
    assert "not among the models of this evaluation: linear@ann, linear@ben" in capsys.readouterr().err

    assert obygaze(*arguments, "--save", "linear@ann") == 0
    assert om.load_model(tmp_path / "run" / "linear@ann.model").card.n_positives == 24


def test_evaluate_says_how_many_films_a_saved_model_was_trained_on(tmp_path, capsys):
    """A manifest has four films, film0 to film3, in which Ann labelled clips EN or S, and film4.

    Of film4 all clips are HN, which the task EN vs S does not use. So the model is trained on four films: its
    card lists these, and the command says "all 4 movies".
    """
    planted = plant_clips_of_ann_and_ben(tmp_path)
    clips_of_four_films = labels_of_ann_without_her_name(planted.manifest)
    clips_of_film4 = [of.Clip(f"film4-{number:02}", "film4", level="HN") for number in range(4)]
    clips = (*clips_of_four_films, *clips_of_film4)
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    X = np.random.default_rng(0).normal(size=(len(movie_of), 4)).astype(np.float32)
    store = seal_arrays(tmp_path / "five-films", movie_of, {"lab": {"pooled": X}})
    write_manifest(of.Manifest(clips, tmp_path), tmp_path / "labels.csv")

    words = ["evaluate", tmp_path / "labels.csv", store, "--task", "en_s", "--model", "linear"]
    assert obygaze(*words, "--save", "linear", "--out", tmp_path / "run") == 0

    card = om.load_model(tmp_path / "run" / "linear.model").card
    assert list(card.movies) == ["film0", "film1", "film2", "film3"]
    assert "linear of all 4 movies kept in" in capsys.readouterr().err
