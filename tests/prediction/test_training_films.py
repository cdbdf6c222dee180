"""A film that a model was trained on is known again by what it holds, whatever it is called."""

import json

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from benchmarks.planted.known_films import Drawn, cut, encoded, look, make_sealed_store, trained
from benchmarks.planted.known_films import film as drawn_film
from obygaze_models.prediction.training_films import recognise
from tests.command import obygaze

FILMS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def films():
    """Pictures and features of the films a, b, c and d, six clips each."""
    rng = np.random.default_rng(0)
    return {movie: drawn_film(rng, look(rng)) for movie in FILMS}


@pytest.fixture(scope="module")
def folder_of_models(tmp_path_factory):
    """A folder with a model in pictures/kept and one in features/kept, as far as they are asked for."""
    return tmp_path_factory.mktemp("known")


@pytest.fixture(scope="module")
def with_pictures(films, folder_of_models):
    """A model that was trained on the four films and keeps what their pictures look like."""
    return trained(folder_of_models / "pictures", films, with_pictures=True)


@pytest.fixture(scope="module")
def without_pictures(films, folder_of_models):
    """A model that was trained on the four films and keeps their features alone."""
    return trained(folder_of_models / "features", films, with_pictures=False)


def with_other_features(drawn):
    """Return a film of the same pictures and of features as another extraction would give them."""
    features = np.random.default_rng(1).normal(size=drawn.features.shape)
    return Drawn(drawn.pictures, features.astype(np.float32))


@pytest.mark.long
def test_a_film_under_another_name_is_known_by_its_features(films, without_pictures, tmp_path):
    """The model was trained on films a, b, c and d, and keeps their features; it is asked about film b."""
    store = make_sealed_store(tmp_path, "asked", {"another name": films["b"]}, with_pictures=False)

    result = om.predict(without_pictures, store)

    assert result.has("trained_on").all()
    (known,) = result.recognition.films.values()
    assert known.movie == "another name"
    assert known.trained_as == "b"
    assert known.by == "features"
    assert known.share == 1.0


def test_a_part_of_a_film_among_other_clips_is_flagged_alone(films, without_pictures, tmp_path):
    """The model was trained on film b, of which a new film has the first three clips.

    Three of six clips are too few to call the whole film known.
    """
    rng = np.random.default_rng(5)
    new = drawn_film(rng, look(rng))
    features = np.concatenate([films["b"].features[:3], new.features[3:]])
    mixed_film = Drawn(new.pictures, features)
    store = make_sealed_store(tmp_path, "asked", {"mixed": mixed_film}, with_pictures=False)

    result = om.predict(without_pictures, store)

    flagged = result.table.loc[result.has("trained_on"), "clip_id"].tolist()
    assert flagged == ["mixed-0", "mixed-1", "mixed-2"]
    assert not result.recognition.films


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [encoded, lambda frames: encoded(cut(frames, 0.05)), lambda frames: encoded(cut(frames, 0.1))],
    ids=["encoded", "cropped by 5 %", "cropped by 10 %"],
)
def test_a_copy_is_known_by_its_pictures(films, with_pictures, tmp_path, change):
    """The model was trained on film c and keeps what its pictures look like.

    Of the copy, pictures are encoded anew and perhaps cropped, and features are those of another extraction.
    """
    copy = with_other_features(films["c"])
    pictures_of_clips = [change(frames) for frames in copy.pictures]
    changed_copy = Drawn(pictures_of_clips, copy.features)
    store = make_sealed_store(tmp_path, "asked", {"copy": changed_copy}, with_pictures=True)

    result = om.predict(with_pictures, store)

    assert result.has("trained_on").all()
    assert result.recognition.films["copy"].by == "pictures"
    assert result.recognition.films["copy"].trained_as == "c"
    assert result.recognition.why_no_pictures == ""


@pytest.mark.usefixtures("with_pictures", "without_pictures")
@pytest.mark.parametrize(("folder", "has_signatures"), [("pictures", True), ("features", False)])
def test_film_run_extracts_signatures_of_pictures_for_a_model_that_keeps_them(
    folder_of_models, tmp_path, monkeypatch, capsys, folder, has_signatures
):
    """Signatures are what a film is known again by; models of pictures/ keep them, those of features/ don't.

    The planted models' backbone, "net", is none of ours, so that its options are given here. A dry run
    prints the commands that would run.
    """
    monkeypatch.setattr("obygaze.film_run._feature_options", lambda *_: ["--backbone", "net"])
    (tmp_path / "film.mkv").write_bytes(b"")
    model_file = folder_of_models / folder / "kept" / "linear.model"
    options = ["--model", model_file, "--out", tmp_path / "out", "--dry-run"]

    assert obygaze("film", "run", tmp_path / "film.mkv", *options) == 0

    plan = capsys.readouterr().out
    assert ("--backbone signature" in plan) == has_signatures


@pytest.mark.parametrize(
    ("model", "store_has_pictures"),
    [("with_pictures", False), ("without_pictures", True), ("without_pictures", False)],
    ids=["the store has none", "the model has none", "neither has any"],
)
def test_a_copy_is_not_known_without_pictures_and_that_is_said(
    request, films, tmp_path, model, store_has_pictures
):
    """The model was trained on film c; the copy has the same pictures and the features of another extraction.

    Pictures are compared only if both the model and the store have signatures of them.
    """
    trained_model = request.getfixturevalue(model)
    copy = {"copy": with_other_features(films["c"])}
    store = make_sealed_store(tmp_path, "asked", copy, with_pictures=store_has_pictures)

    result = om.predict(trained_model, store)

    assert not result.has("trained_on").any()
    assert result.recognition.why_no_pictures


@pytest.mark.parametrize("name", ["B", "ｂ", "\u212c"], ids=["capital", "full-width letter", "script letter"])
def test_a_film_with_other_features_is_known_by_its_name_however_that_is_spelled(
    films, without_pictures, tmp_path, name
):
    """The model was trained on a film that is called "b"."""
    film = with_other_features(films["b"])
    store = make_sealed_store(tmp_path, "asked", {name: film}, with_pictures=False)

    result = om.predict(without_pictures, store)

    assert result.has("trained_on").all()
    assert result.recognition.films[name].by == "name"


@pytest.mark.long
def test_a_feature_vector_that_all_films_have_makes_no_film_known(tmp_path):
    """Black pictures have one feature vector in whatever film: it is the first of six of every film here."""
    vector_of_black = np.zeros((1, 6), np.float32)

    def film_with_black(seed):
        other_vectors = np.random.default_rng(seed).normal(size=(5, 6)).astype(np.float32)
        return Drawn(pictures=[], features=np.concatenate([vector_of_black, other_vectors]))

    films = {movie: film_with_black(seed) for seed, movie in enumerate(FILMS)}
    model = trained(tmp_path, films, with_pictures=False)
    store = make_sealed_store(tmp_path, "asked", {"new": film_with_black(9)}, with_pictures=False)

    result = om.predict(model, store)

    assert not result.has("trained_on").any()


@pytest.mark.long
def test_features_of_which_there_are_only_eight_different_vectors_make_no_film_known(tmp_path):
    """Such features, of three zeros or ones, are the same in clips that have nothing to do with each other.

    The model is trained on films a to g, and asked about h.
    """
    rng = np.random.default_rng(0)
    films = {}
    for movie in "abcdefgh":
        features = np.zeros((6, 6), np.float32)
        features[:, :3] = rng.integers(0, 2, (6, 3))  # 2 x 2 x 2 values
        films[movie] = Drawn(pictures=[], features=features)
    model = trained(tmp_path, {movie: films[movie] for movie in "abcdefg"}, with_pictures=False)
    store = make_sealed_store(tmp_path, "asked", {"new": films["h"]}, with_pictures=False)

    result = om.predict(model, store)

    assert not result.has("trained_on").any()


@pytest.mark.usefixtures("without_pictures")
def test_the_command_predict_says_under_which_name_the_model_was_trained_on_a_film(
    films, folder_of_models, tmp_path, capsys
):
    """The model was trained on films a to d and keeps their features. A store has film b, renamed."""
    store = make_sealed_store(tmp_path, "asked", {"another name": films["b"]}, with_pictures=False)
    model_file = folder_of_models / "features" / "kept" / "linear.model"

    assert obygaze("predict", model_file, store.path, "--json") == 0

    output = capsys.readouterr()
    document = json.loads(output.out)
    assert [film["trained_as"] for film in document["trained_on"]] == ["b"]
    for clip in document["clips"]:
        assert "trained_on" in clip["flags"].split(";")
    assert "another name is b" in output.err


@pytest.mark.long
def test_a_joint_model_knows_the_films_of_all_labs_but_none_that_was_left_out(films, tmp_path):
    """Lab one has films c and a, lab two d and b. Their files of sums are joined to one model.

    The model is asked about the same films under other names; then again without film b.
    """
    sums = []
    for lab, movies in (("one", ("c", "a")), ("two", ("d", "b"))):
        store = make_sealed_store(
            tmp_path, lab, {movie: films[movie] for movie in movies}, with_pictures=True
        )
        data = om.load_dataset(store, of.Manifest(labelled_clips(movies), tmp_path), backbone="net")
        om.write_sums(om.gram(data, "hn_s", least=2), tmp_path / f"{lab}.sums")
        sums.append(om.read_sums(tmp_path / f"{lab}.sums"))
    joint = om.join(sums)
    renamed = {f"other {movie}": films[movie] for movie in FILMS}
    asked = make_sealed_store(tmp_path, "asked", renamed, with_pictures=False)

    def names_by_which_films_are_known(joint, name):
        om.save_joint(joint, joint.linear(), tmp_path / name)
        model = om.load_model(tmp_path / name)
        known = recognise(model.card, model.training, [asked]).films
        return {film.movie: film.trained_as for film in known.values()}

    of_all = {"other a": "a", "other b": "b", "other c": "c", "other d": "d"}
    assert names_by_which_films_are_known(joint, "joint.model") == of_all
    without_b = {"other a": "a", "other c": "c", "other d": "d"}
    assert names_by_which_films_are_known(joint.without(["b"]), "without.model") == without_b


@pytest.mark.long
def test_the_same_training_gives_the_same_file(films, folder_of_models, tmp_path, with_pictures):
    """`with_pictures` is a model that was trained before in the same way, in the folder pictures."""
    again = trained(tmp_path, films, with_pictures=True)

    first_file = folder_of_models / "pictures" / "kept" / "linear.model"
    second_file = tmp_path / "kept" / "linear.model"
    assert second_file.read_bytes() == first_file.read_bytes()
    assert np.array_equal(again.training.pictures, with_pictures.training.pictures)


@pytest.mark.long
def test_a_new_film_is_not_known(with_pictures, tmp_path):
    """It is drawn at random, as are the four films whose pictures and features the model keeps.

    `with_pictures` is that model. A film that it knew would have "trained_on" as the flag of its clips.
    """
    rng = np.random.default_rng(7)
    new_film = drawn_film(rng, look(rng))
    store = make_sealed_store(tmp_path, "asked", {"new": new_film}, with_pictures=True)

    result = om.predict(with_pictures, store)

    assert not result.has("trained_on").any()


def labelled_clips(movies):
    """Label six clips of each movie HN and S by turns."""
    clips = []
    for movie in movies:
        for number in range(6):
            level = "S" if number % 2 else "HN"
            clips.append(of.Clip(f"{movie}-{number}", movie, level=level))
    return tuple(clips)


@pytest.mark.long
def test_evaluate_says_which_films_have_equal_features(films, tmp_path, capsys):
    """Film b is in the store once more, as "b again". The store has features alone, no signatures.

    So copies of other features cannot be found, which is said where a model is kept.
    """
    films_with_a_copy = {**films, "b again": films["b"]}
    store = make_sealed_store(tmp_path, "twice", films_with_a_copy, with_pictures=False)
    manifest_file = tmp_path / "m.csv"
    clips = labelled_clips(films_with_a_copy)
    of.write_manifest(of.Manifest(clips, tmp_path), manifest_file)
    options = ["--task", "hn_s", "--model", "linear", "--save", "linear", "--out", tmp_path / "run"]

    assert obygaze("evaluate", manifest_file, store.path, *options) == 0

    output = capsys.readouterr().err
    assert "b and b again have equal features in 100% of their clips" in output
    assert "no store here has a signature" in output


@pytest.mark.long
def test_evaluate_says_which_films_share_a_recap(films, tmp_path, capsys):
    """Film c begins with two of the six clips of film b: a third of its clips is trained on and tested."""
    features = np.concatenate([films["b"].features[:2], films["c"].features[2:]])
    films_with_a_recap = {**films, "c": Drawn(films["c"].pictures, features)}
    store = make_sealed_store(tmp_path, "recap", films_with_a_recap, with_pictures=False)
    manifest_file = tmp_path / "m.csv"
    clips = labelled_clips(films_with_a_recap)
    of.write_manifest(of.Manifest(clips, tmp_path), manifest_file)
    options = ["--task", "hn_s", "--model", "linear", "--out", tmp_path / "run"]

    assert obygaze("evaluate", manifest_file, store.path, *options) == 0

    warning = "b and c have equal features in 33% of their clips, which are trained on and tested"
    assert warning in capsys.readouterr().err
