"""A film that a model was trained on is known again by what it holds, whatever it is called."""

import json
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from benchmarks.planted.known_films import Drawn, cut, encoded, look, make_sealed_store, trained
from benchmarks.planted.known_films import film as drawn_film
from obygaze_features.same_pictures import VIEWS
from obygaze_features.signature_likeness import SKETCH_BYTES, sketches
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.evaluate_remarks import _equal_films_warnings
from obygaze_models.persistence.card import DIGEST_BYTES
from obygaze_models.prediction import training_films
from obygaze_models.prediction.training_films import (
    KEPT_VIEWS,
    TrainingFilms,
    _collect_trained_rows,
    _find_trained_clips,
    _kept_views,
    _most_similar_film,
    _picture_similarity,
    _recognise_by_features,
    _share_of_same_clips,
    _StoredRows,
    films_with_equal_clips,
    recognise,
)
from tests.command import obygaze

FILMS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def four_films():
    """Pictures and features of the films a, b, c and d, six clips each."""
    rng = np.random.default_rng(0)
    return {movie: drawn_film(rng, look(rng)) for movie in FILMS}


@pytest.fixture(scope="module")
def folder_of_models(tmp_path_factory):
    """A folder with a model in pictures/kept and one in features/kept, as far as they are asked for."""
    return tmp_path_factory.mktemp("known")


@pytest.fixture(scope="module")
def with_pictures(four_films, folder_of_models):
    """A model that was trained on the four films and keeps what their pictures look like."""
    return trained(folder_of_models / "pictures", four_films, with_pictures=True)


@pytest.fixture(scope="module")
def without_pictures(four_films, folder_of_models):
    """A model that was trained on the four films and keeps their features alone."""
    return trained(folder_of_models / "features", four_films, with_pictures=False)


def with_other_features(drawn):
    """Return a film of the same pictures and of features as another extraction would give them."""
    features = np.random.default_rng(1).normal(size=drawn.features.shape)
    return Drawn(drawn.pictures, features.astype(np.float32))


def test_only_the_clips_that_a_new_film_has_from_a_training_film_are_flagged(
    four_films, without_pictures, tmp_path
):
    """The film "mixed" has six clips: the first three of training film b, and three that are new.

    Three of six clips are too few to call the whole film known. The model of the fixture `without_pictures`
    compares features alone.
    """
    rng = np.random.default_rng(5)
    new = drawn_film(rng, look(rng))
    features = np.concatenate([four_films["b"].features[:3], new.features[3:]])
    mixed_film = Drawn(new.pictures, features)
    store = make_sealed_store(tmp_path, "asked", {"mixed": mixed_film}, with_pictures=False)

    result = om.predict(without_pictures, store)

    clips_flagged_as_trained_on = result.table.loc[result.has("trained_on"), "clip_id"].tolist()
    assert clips_flagged_as_trained_on == ["mixed-0", "mixed-1", "mixed-2"]
    films_known_as_a_whole = result.recognition.films
    assert not films_known_as_a_whole


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [encoded, lambda frames: encoded(cut(frames, 0.05)), lambda frames: encoded(cut(frames, 0.1))],
    ids=["encoded", "cropped by 5 %", "cropped by 10 %"],
)
def test_a_copy_is_known_by_its_pictures(four_films, with_pictures, tmp_path, change):
    """The model `with_pictures` was trained on films a, b, c and d, and keeps what their pictures look like.

    It is asked about a copy of c, whose pictures are encoded anew and perhaps cropped. Its features are those
    of another extraction, by which nobody could know it.
    """
    copy = with_other_features(four_films["c"])
    changed_pictures = [change(frames) for frames in copy.pictures]
    changed_copy = Drawn(changed_pictures, copy.features)
    store = make_sealed_store(tmp_path, "asked", {"copy": changed_copy}, with_pictures=True)

    result = om.predict(with_pictures, store)

    assert result.has("trained_on").all()
    assert result.recognition.films["copy"].by == "pictures"
    assert result.recognition.films["copy"].trained_as == "c"
    reason_why_pictures_were_not_compared = result.recognition.why_no_pictures
    assert reason_why_pictures_were_not_compared == ""


@pytest.mark.usefixtures("with_pictures", "without_pictures")
@pytest.mark.parametrize(("folder", "model_keeps_signatures"), [("pictures", True), ("features", False)])
def test_film_run_extracts_signatures_of_pictures_only_for_a_model_that_keeps_them(
    folder_of_models, tmp_path, monkeypatch, capsys, folder, model_keeps_signatures
):
    """`film run` extracts what its model needs of a film; a dry run prints the commands that would do so.

    By signatures of pictures a model recognises a film that it was trained on. The two fixtures saved a model
    that keeps them in the folder pictures, and one that keeps features alone in the folder features. Their
    backbone "net" is made up, so that the test says by which options it is extracted.
    """
    monkeypatch.setattr("obygaze.film_run._feature_options", lambda *_: ["--backbone", "net"])
    (tmp_path / "film.mkv").write_bytes(b"")
    model_file = folder_of_models / folder / "kept" / "linear.model"
    options = ["--model", model_file, "--out", tmp_path / "out", "--dry-run"]

    assert obygaze("film", "run", tmp_path / "film.mkv", *options) == 0

    printed_commands = capsys.readouterr().out
    assert ("--backbone signature" in printed_commands) == model_keeps_signatures


@pytest.mark.parametrize(
    ("model", "store_has_pictures"),
    [("with_pictures", False), ("without_pictures", True), ("without_pictures", False)],
    ids=["the store has none", "the model has none", "neither has any"],
)
def test_a_copy_is_not_known_without_pictures_and_that_is_said(
    request, four_films, tmp_path, model, store_has_pictures
):
    """The model was trained on film c; the copy has the same pictures and the features of another extraction.

    Pictures are compared only if both the model and the store have signatures of them.
    """
    trained_model = request.getfixturevalue(model)
    copy = {"copy": with_other_features(four_films["c"])}
    store = make_sealed_store(tmp_path, "asked", copy, with_pictures=store_has_pictures)

    result = om.predict(trained_model, store)

    assert not result.has("trained_on").any()
    assert result.recognition.why_no_pictures


@pytest.mark.parametrize("name", ["B", "ｂ", "\u212c"], ids=["capital", "full-width letter", "script letter"])
def test_a_film_with_other_features_is_known_by_its_name_however_that_is_spelled(
    four_films, without_pictures, tmp_path, name
):
    """The model was trained on a film "b". It is asked about that film under the name b in other letters.

    The features are those of another extraction, by which the film could not be known.
    """
    film = with_other_features(four_films["b"])
    store = make_sealed_store(tmp_path, "asked", {name: film}, with_pictures=False)

    result = om.predict(without_pictures, store)

    assert result.has("trained_on").all()
    assert result.recognition.films[name].by == "name"


@pytest.mark.long
def test_a_new_film_is_not_recognised_by_a_feature_vector_that_all_films_have(tmp_path):
    """Clips of black pictures have the same feature vector in every film, so it identifies none.

    Each of the four training films, and the new film, has six clips: a black one, and five of random features
    of its own. No clip of the new film may be flagged as one that the model was trained on.
    """
    vector_of_black = np.zeros((1, 6), np.float32)

    def film_with_a_black_clip(seed):
        other_vectors = np.random.default_rng(seed).normal(size=(5, 6)).astype(np.float32)
        return Drawn(pictures=[], features=np.concatenate([vector_of_black, other_vectors]))

    films = {movie: film_with_a_black_clip(seed) for seed, movie in enumerate(FILMS)}
    model = trained(tmp_path, films, with_pictures=False)
    store = make_sealed_store(tmp_path, "asked", {"new": film_with_a_black_clip(9)}, with_pictures=False)

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
    four_films, folder_of_models, tmp_path, capsys
):
    """The model was trained on films a to d and keeps their features. A store has film b, renamed."""
    store = make_sealed_store(tmp_path, "asked", {"another name": four_films["b"]}, with_pictures=False)
    model_file = folder_of_models / "features" / "kept" / "linear.model"

    assert obygaze("predict", model_file, store.path, "--json") == 0

    output = capsys.readouterr()
    document = json.loads(output.out)
    (known,) = document["trained_on"]
    assert known == {"movie": "another name", "trained_as": "b", "by": "features", "share": 1.0}
    for clip in document["clips"]:
        assert "trained_on" in clip["flags"].split(";")
    assert "another name is b" in output.err


def sums_of_a_lab(lab, movies, films, folder):
    """Let a lab sum up its films, write the sums to a file, and return what another lab reads from that.

    Films have six clips, fewer than sums need by default: here they need two of a film.
    """
    films_of_lab = {movie: films[movie] for movie in movies}
    store = make_sealed_store(folder, lab, films_of_lab, with_pictures=True)
    data = om.load_dataset(store, of.Manifest(labelled_clips(movies), folder), backbone="net")
    file = folder / f"{lab}.sums"
    om.write_sums(om.gram(data, "hn_s", least=2), file)
    return om.read_sums(file)


@pytest.fixture(scope="module")
def joint_of_two_labs(four_films, tmp_path_factory):
    """The sums of lab one, which has films c and a, and of lab two, which has d and b."""
    folder = tmp_path_factory.mktemp("labs")
    sums_of_one = sums_of_a_lab("one", ("c", "a"), four_films, folder)
    sums_of_two = sums_of_a_lab("two", ("d", "b"), four_films, folder)
    return om.join([sums_of_one, sums_of_two])


def recognise_renamed_films(joint, films, folder):
    """Save a model of sums, and ask it about films a, b, ... under the names "renamed a", "renamed b", ...

    It can know these by their features only. Returns the film that each known one is recognised as, by its
    new name.
    """
    renamed = {f"renamed {movie}": drawn for movie, drawn in films.items()}
    asked = make_sealed_store(folder, "asked", renamed, with_pictures=False)
    om.save_joint(joint, joint.linear(), folder / "joint.model")
    model = om.load_model(folder / "joint.model")
    known = recognise(model.card, model.training, [asked]).films
    return {film.movie: film.trained_as for film in known.values()}


@pytest.mark.long
def test_a_joint_model_knows_the_films_of_all_labs(joint_of_two_labs, four_films, tmp_path):
    """Lab one has films c and a, and lab two d and b; one model is made of the sums of both.

    It is asked about the same films, a under the name "renamed a" and so on.
    """
    recognised_as = recognise_renamed_films(joint_of_two_labs, four_films, tmp_path)

    assert recognised_as == {"renamed a": "a", "renamed b": "b", "renamed c": "c", "renamed d": "d"}


@pytest.mark.long
def test_a_joint_model_does_not_know_a_film_that_was_left_out(joint_of_two_labs, four_films, tmp_path):
    """Lab one has films c and a, and lab two d and b; a model is made of the sums of all films but b.

    It is asked about all four films, a under the name "renamed a" and so on: "renamed b" is new to it.
    """
    sums_without_b = joint_of_two_labs.without(["b"])

    recognised_as = recognise_renamed_films(sums_without_b, four_films, tmp_path)

    assert recognised_as == {"renamed a": "a", "renamed c": "c", "renamed d": "d"}


@pytest.mark.long
def test_the_same_training_gives_the_same_file(four_films, folder_of_models, tmp_path, with_pictures):
    """`with_pictures` is a model that was trained before in the same way, in the folder pictures."""
    again = trained(tmp_path, four_films, with_pictures=True)

    first_file = folder_of_models / "pictures" / "kept" / "linear.model"
    second_file = tmp_path / "kept" / "linear.model"
    assert second_file.read_bytes() == first_file.read_bytes()
    assert np.array_equal(again.training.pictures, with_pictures.training.pictures)


@pytest.mark.long
def test_no_clip_of_a_new_film_is_flagged_as_trained_on(with_pictures, tmp_path):
    """A new film is drawn at random, as are the four films that the model of `with_pictures` was trained on.

    The model keeps what pictures and features of these look like, and compares the new film with both.
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
def test_evaluate_says_which_films_have_equal_features(four_films, tmp_path, capsys):
    """Film b is in the store once more, as "b again". The store has features alone, no signatures.

    So copies of other features cannot be found, which is said where a model is kept.
    """
    films_with_a_copy = {**four_films, "b again": four_films["b"]}
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
def test_evaluate_says_which_films_share_a_recap(four_films, tmp_path, capsys):
    """Film c begins with two of the six clips of film b: a third of its clips is trained on and tested."""
    features = np.concatenate([four_films["b"].features[:2], four_films["c"].features[2:]])
    films_with_a_recap = {**four_films, "c": Drawn(four_films["c"].pictures, features)}
    store = make_sealed_store(tmp_path, "recap", films_with_a_recap, with_pictures=False)
    manifest_file = tmp_path / "m.csv"
    clips = labelled_clips(films_with_a_recap)
    of.write_manifest(of.Manifest(clips, tmp_path), manifest_file)
    options = ["--task", "hn_s", "--model", "linear", "--out", tmp_path / "run"]

    assert obygaze("evaluate", manifest_file, store.path, *options) == 0

    warning = "b and c have equal features in 33% of their clips, which are trained on and tested"
    assert warning in capsys.readouterr().err


def test_films_that_share_few_clips_or_nearly_all_do_not_share_none_or_all():
    """Of 1,000 clips two films share 4 (a shot), and two others all but 4."""
    shot, copy = _equal_films_warnings([("a", "b", 0.004), ("c", "d", 0.996)])
    assert "a and b have equal features in <1% of their clips" in shot
    assert "c and d have equal features in >99% of their clips" in copy


# --- films and rows that are planted by number
# ---------------------------------------------------------------------------
def digest_of(row):
    """Return a digest that is the number of a row; 0 is that of a clip without features."""
    return bytes([row]) + bytes(DIGEST_BYTES - 1)


def rows_trained_on(*films):
    """Plant what a model keeps of its training films to know them again, of features alone: digests of rows.

    Each film is a list of rows, which are named by numbers: `rows_trained_on([1, 2], [3])` are two films, of
    two rows and of one. Of pictures nothing is kept.
    """
    digests = [digest_of(row) for rows in films for row in rows]
    film_of_row = [film for film, rows in enumerate(films) for _ in rows]
    training = TrainingFilms(
        digests=np.frombuffer(b"".join(digests), np.uint8).reshape(-1, 1, DIGEST_BYTES),
        films_of_digests=np.array(film_of_row, np.int64),
        pictures=np.empty((0, len(KEPT_VIEWS), SKETCH_BYTES), np.uint8),
        picture_films=np.empty(0, np.int64),
    )
    return _collect_trained_rows(training, modality=0)


def rows_of_stores(n_words=0, **films):
    """Plant the rows of a film's clips, each row a number: `m=[1, 91]` are clips m0 and m1 of a film m.

    Clips of a film `_` are of no named film, and called _0, _1, ... In a store of texts, each clip is a text
    of `n_words` words.
    """
    clip_ids = [f"{movie}{place}" for movie, rows in films.items() for place in range(len(rows))]
    movies = [movie.strip("_") for movie, rows in films.items() for _ in rows]
    digests = [digest_of(row) for rows in films.values() for row in rows]
    return _StoredRows(clip_ids, movies, np.full(len(movies), n_words), np.array(digests, f"S{DIGEST_BYTES}"))


def known_as(trained, *stored):
    """Return the films that are known by their rows, as film -> (training film, share of common rows).

    `stored` are the rows of the same films in one modality or more. The training films of `trained` are
    called first, second and third; in each modality they have the same rows.
    """
    card = SimpleNamespace(movies=["first", "second", "third"])
    known = _recognise_by_features(card, [trained] * len(stored), stored)
    return {movie: (film.trained_as, film.share) for movie, film in known.items()}


NOT_KNOWN = None
"""In place of the share of a film that is not recognised."""


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        pytest.param([1, 2, 3, 91, 92, 93], NOT_KNOWN, id="3 of 6 rows"),
        pytest.param([1, 2, 3, 4, 91, 92], 4 / 6, id="4 of 6 rows"),
        pytest.param([1], 1, id="the only row of a film of one clip"),
        pytest.param([1, 1, 1, 91], NOT_KNOWN, id="1 of 2 rows, as the row that occurs thrice counts once"),
        pytest.param(
            [1, 2, 3, 91, 91, 91], 3 / 4, id="3 of 4 rows, as the new row that occurs thrice is one"
        ),
        pytest.param([1, 2, 3, 91, 92, 0], 3 / 5, id="3 of 5 rows, as a clip without features has none"),
        pytest.param([1, 2, 3, 4, *range(91, 99)], 4 / 6, id="4 of the 6 rows of the training film"),
        pytest.param([1, 2, 3, *range(91, 99)], NOT_KNOWN, id="3 of the 6 rows of the training film"),
        pytest.param([0, 0], NOT_KNOWN, id="no row, as no clip has features"),
    ],
)
def test_a_film_is_recognised_by_more_than_half_of_the_different_rows_of_the_shorter_film(rows, share):
    """A row of features is named by a number, and 0 stands for a clip without features.

    The model was trained on a first film of rows 1 to 6, and a second of rows 11 to 16; rows from 91 on are
    new. The rows that a film m has in common with the first are divided by the rows of the shorter of the
    two. A lower limit would flag new films, and a higher one miss films that the model has seen.
    """
    trained = rows_trained_on([*range(1, 7)], [*range(11, 17)])

    recognised = known_as(trained, rows_of_stores(m=rows))

    if share is NOT_KNOWN:
        assert recognised == {}
    else:
        assert recognised == {"m": ("first", share)}


def test_a_film_is_taken_for_the_training_film_with_which_it_shares_most_rows_in_any_modality():
    """A model was trained on a first film of rows 1 to 6, and a second of rows 11 to 16.

    In one modality film m has four of its six rows from the first film, which would do to recognise it as
    the first. In another modality it has all rows of the second, a share of 1: it is the second, in whatever
    order the modalities come. So it is if rows of both films are in one modality, five and six. The film
    "new" has only rows of no training film (from 91 on), and is recognised as none.
    """
    trained = rows_trained_on([*range(1, 7)], [*range(11, 17)])
    like_first = rows_of_stores(m=[1, 2, 3, 4, 91, 92], new=[93])
    like_second = rows_of_stores(m=[*range(11, 17)], new=[94])
    like_both = rows_of_stores(m=[1, 2, 3, 4, 5, *range(11, 17)])

    assert known_as(trained, like_first, like_second) == {"m": ("second", 1.0)}
    assert known_as(trained, like_second, like_first) == {"m": ("second", 1.0)}
    assert known_as(trained, like_both) == {"m": ("second", 1.0)}


def test_a_clip_without_features_is_no_row_of_a_film():
    """A row of features is named by a number, and 0 stands for a clip without features.

    The first training film has the rows 1 and 2 and such a clip, the second such a clip alone: the first has
    two rows, the second none. Of two films that a model is asked about, a has the row 1, and m the row 1 and
    such a clip. All rows of either film, one, are of the first training film: the share is 1.
    """
    trained = rows_trained_on([1, 2, 0], [0])

    recognised = known_as(trained, rows_of_stores(a=[1], m=[1, 0]))

    assert trained.n_rows == {0: 2}  # by the number of the training film
    assert recognised == {"a": ("first", 1), "m": ("first", 1)}


@pytest.mark.parametrize(
    ("n_films_with_row", "n_films", "identifies_films"),
    [(3, 3, True), (3, 8, True), (4, 8, False), (4, 15, False), (4, 16, True), (5, 16, False), (5, 20, True)],
)
def test_a_row_of_features_that_many_training_films_have_identifies_none(
    n_films_with_row, n_films, identifies_films
):
    """A row may be of black pictures, which many films have.

    So no film is recognised by a row that at least four films have, if these are more than a quarter of all
    films. Here each film has two rows of its own, and the first few have the row 99 too.
    """
    row_in_several_films = 99
    films = []
    for film in range(n_films):
        own_rows = [2 * film + 1, 2 * film + 2]
        if film < n_films_with_row:
            films.append([*own_rows, row_in_several_films])
        else:
            films.append(own_rows)

    trained = rows_trained_on(*films)

    rows_that_identify_films = trained.films_of_digest
    assert (digest_of(row_in_several_films) in rows_that_identify_films) is identifies_films
    n_identifying = 2 * n_films + 1 if identifies_films else 2 * n_films
    assert len(rows_that_identify_films) == n_identifying
    assert trained.n_rows[0] == 3  # the row counts among those of its film, even if it identifies none


@pytest.mark.parametrize(
    ("n_common", "min_share"),
    [
        pytest.param(0, 0.5, id="no common row"),
        pytest.param(1, (0.1 + 1) / 2, id="1 common row of 10"),
        pytest.param(2, (0.2 + 1) / 2, id="2 common rows"),
        pytest.param(8, (0.8 + 1) / 2, id="8 common rows"),
        pytest.param(9, 0.5, id="9 common rows, so many that both are one film under two names"),
        pytest.param(10, 0.5, id="all rows in common: one film under two names"),
    ],
)
def test_the_more_rows_training_films_share_by_chance_the_more_a_film_must_share_to_be_recognised(
    n_common, min_share
):
    """Two training films have ten rows each, some in common; a third film has one row, which neither has.

    Different films that share rows show that rows are equal by chance. So a film is recognised only by a
    share of common rows above the middle between the share by chance and 1. Two training films that are one
    under two names show nothing by their common rows, and the middle between 0 and 1 stands.
    """
    rows_of_first = [*range(1, 11)]
    other_rows = range(21, 21 + 10 - n_common)
    rows_of_second = [*rows_of_first[:n_common], *other_rows]

    trained = rows_trained_on(rows_of_first, rows_of_second, [50])

    assert trained.min_share == pytest.approx(min_share)


def training_rows_of_two_films(n_in_both):
    """Plant a first training film of rows 1 to 20, of which a second one has so many of the last too."""
    rows_in_both = range(21 - n_in_both, 21)
    return rows_trained_on([*range(1, 21)], [*range(31, 51 - n_in_both), *rows_in_both])


@pytest.mark.parametrize(
    ("rows", "n_in_both", "is_flagged"),
    [
        pytest.param([1, 2, 91, 92, 93, 94, 95], 0, False, id="2 rows"),
        pytest.param([1, 2, 3, 91, 92, 93, 94], 0, True, id="3 rows"),
        pytest.param([1, 2, 2, 2, 91, 92, 93], 0, False, id="2 different rows, one of them thrice"),
        pytest.param([1, 2, 3, 4, 91, 92, 93, 94, 95], 1, False, id="4 rows, and 1 in both films"),
        pytest.param([1, 2, 3, 4, 5, 91, 92, 93, 94, 95], 1, True, id="5 rows, and 1 in both films"),
        pytest.param([1, 2, 3, 4, 5, 6, 91, 92, 93, 94, 95, 96], 2, False, id="6 rows, and 2 in both films"),
    ],
)
def test_clips_are_flagged_if_their_film_has_at_least_three_training_rows(rows, n_in_both, is_flagged):
    """A film that is not recognised as a whole may have clips of a training film: as a trailer or a recap.

    Three different rows of the film m must equal training rows, and two more for each row that both training
    films have, as this shows that rows of different films are equal by chance. Rows 1 to 20 are of the first
    training film, those from 91 on of none. The clips m0, m1, ... have the film's rows in their order.
    """
    trained = training_rows_of_two_films(n_in_both)

    flagged = _find_trained_clips([trained], [rows_of_stores(m=rows)], known={})

    clips_with_training_rows = {f"m{place}" for place, row in enumerate(rows) if row <= 20}
    assert flagged == (clips_with_training_rows if is_flagged else set())


def test_clips_of_a_film_that_is_recognised_as_a_whole_are_not_flagged_singly():
    """Three rows of film m equal rows of a training film, for which clips of an unknown film are flagged."""
    trained = training_rows_of_two_films(n_in_both=0)
    rows = rows_of_stores(m=[1, 2, 3, 91, 92, 93, 94])

    assert _find_trained_clips([trained], [rows], known={"m": "known as a whole"}) == set()


def test_equal_rows_of_clips_without_a_film_are_not_counted_together():
    """Clips of which no film is named may be of different films, so three rows of them show nothing."""
    trained = training_rows_of_two_films(n_in_both=0)
    rows_of_unnamed_films = rows_of_stores(_=[1, 2, 3, 91, 92, 93, 94])

    assert _find_trained_clips([trained], [rows_of_unnamed_films], known={}) == set()


@pytest.mark.parametrize(
    ("n_words", "flagged_texts"), [(7, set()), (8, {"_0", "_2"})], ids=["7 words", "8 words"]
)
def test_a_single_text_is_flagged_as_trained_on_if_it_has_at_least_eight_words(n_words, flagged_texts):
    """A model was trained on four texts, whose rows of features are named 1 to 4.

    It is asked about three texts of no named film, _0, _1 and _2: the first and the last are training texts,
    and the text _1, of row 91, is new. Shorter texts, such as "Thank you very much", are in many films, and
    so equal to a training text by chance.
    """
    trained = rows_trained_on([1, 2, 3, 4])
    texts = rows_of_stores(n_words, _=[1, 91, 2])

    assert _find_trained_clips([trained], [texts], known={}) == flagged_texts


def kept_clips_of_three_films(n_sketches):
    """What a model keeps of six training clips: the film of each, a digest, and of the first ones a sketch.

    A digest is of features, and a sketch of pictures. Clips 0 to 5 are of films 0, 1, 2, 1, 0, 2.
    Every byte of a digest or a sketch is the clip's number.
    """
    film_of_clip = np.array([0, 1, 2, 1, 0, 2])
    clips = np.arange(6, dtype=np.uint8)
    return TrainingFilms(
        digests=np.tile(clips[:, None, None], (1, 1, DIGEST_BYTES)),
        films_of_digests=film_of_clip,
        pictures=np.tile(clips[:n_sketches, None, None], (1, len(KEPT_VIEWS), SKETCH_BYTES)),
        picture_films=film_of_clip[:n_sketches],
    )


def digests_by_film(kept):
    """Return (film, clip) of the digests."""
    return list(zip(kept.films_of_digests.tolist(), kept.digests[:, 0, 0].tolist(), strict=True))


def sketches_by_film(kept):
    """Return (film, clip) of the sketches."""
    return list(zip(kept.picture_films.tolist(), kept.pictures[:, 0, 0].tolist(), strict=True))


def those_with_sketch(films_and_clips, n_sketches):
    """Return the pairs (film, clip) whose clip has a sketch: it is one of the first `n_sketches`."""
    return [(film, clip) for film, clip in films_and_clips if clip < n_sketches]


@pytest.mark.parametrize("n_sketches", [0, 5], ids=["no sketches", "sketches of clips 0 to 4"])
def test_films_selected_from_those_that_a_model_keeps_are_numbered_in_the_order_of_selection(n_sketches):
    """A model keeps the clips 0 to 5, of films 0, 1, 2, 1, 0, 2: a digest of each, and perhaps a sketch.

    Films 2 and 0 are selected, and become films 0 and 1. A clip under the number of another film would let a
    film be recognised as one that it is not.
    """
    kept = kept_clips_of_three_films(n_sketches)

    selected = kept.of_films([2, 0])

    clips_of_former_film_2 = [(0, 2), (0, 5)]  # (new number of the film, clip)
    clips_of_former_film_0 = [(1, 0), (1, 4)]
    films_and_clips = clips_of_former_film_2 + clips_of_former_film_0
    assert digests_by_film(selected) == films_and_clips
    assert sketches_by_film(selected) == those_with_sketch(films_and_clips, n_sketches)


@pytest.mark.parametrize("n_sketches", [0, 5], ids=["no sketches", "sketches of clips 0 to 4"])
def test_nothing_is_kept_of_films_of_which_none_is_selected(n_sketches):
    """A model keeps digests of six clips of three films, and perhaps sketches."""
    selected = kept_clips_of_three_films(n_sketches).of_films([])

    assert digests_by_film(selected) == []
    assert sketches_by_film(selected) == []


@pytest.mark.parametrize("n_sketches", [0, 5], ids=["no sketches", "sketches of clips 0 to 4"])
def test_films_of_several_models_get_different_numbers_when_they_are_joined(n_sketches):
    """Three models keep what 3, 1 and 3 films are recognised by. Together these are films 0 to 6.

    So films of the first model are 0 to 2, the film of the second is 3, and films of the third are 4 to 6.
    The first and the third model keep the clips 0 to 5, and the second the clips 1 and 3.
    """
    first = third = kept_clips_of_three_films(n_sketches)
    second = first.of_films([1])

    joined = TrainingFilms.concatenated([first, second, third], n_films=[3, 1, 3])

    of_first = [(0, 0), (1, 1), (2, 2), (1, 3), (0, 4), (2, 5)]  # (film, clip)
    of_second = [(3, 1), (3, 3)]
    of_third = [(4, 0), (5, 1), (6, 2), (5, 3), (4, 4), (6, 5)]
    films_and_clips = of_first + of_second + of_third
    assert digests_by_film(joined) == films_and_clips
    assert sketches_by_film(joined) == those_with_sketch(films_and_clips, n_sketches)


@pytest.mark.parametrize("n_sketches", [0, 5], ids=["no sketches", "sketches of clips 0 to 4"])
def test_what_a_model_keeps_of_its_training_films_is_the_same_after_writing_and_reading(n_sketches):
    """A model keeps digests of clips 0 to 5, of films 0, 1, 2, 1, 0, 2, and perhaps sketches of pictures.

    Without sketches the model's file has no array of them.
    """
    kept = kept_clips_of_three_films(n_sketches)

    arrays = kept.to_arrays()
    read = TrainingFilms.from_arrays(arrays)

    assert ("trained_pictures" in arrays) == (n_sketches > 0)
    films_and_clips = [(0, 0), (1, 1), (2, 2), (1, 3), (0, 4), (2, 5)]
    assert digests_by_film(read) == films_and_clips
    assert sketches_by_film(read) == those_with_sketch(films_and_clips, n_sketches)


# --- pictures that are planted as signs
# ---------------------------------------------------------------------------
N_SIGNS = 264


def planted_clips(*clips):
    """Plant mean frames of clips, each (number, unlike): its signs, of which so many are turned.

    Clips of two numbers are about as unlike as chance makes them; all views of a clip are the same.
    """
    means = []
    for number, n_turned in clips:
        signs = np.random.default_rng(number).choice([-1.0, 1.0], N_SIGNS)
        signs[:n_turned] *= -1
        means.append(np.tile(signs / N_SIGNS**0.5, (len(VIEWS), 1)))
    return np.array(means, np.float32)


def sketches_of(*clips):
    """Sketch the kept views of planted clips."""
    return np.stack([sketches(_kept_views(mean)) for mean in planted_clips(*clips)])


AS_IT_WAS, LIKE_BY_60, LIKE_BY_48 = 0, 52, 68
"""How many signs of a clip are turned: the cosine of its sketches is 1 - 2 turned / 264."""


def clips_like(*numbers, cosine=1.0):
    """Clips by their numbers, each with as many of its 264 signs turned as gives that cosine of sketches."""
    n_turned = {1.0: AS_IT_WAS, 0.6: LIKE_BY_60, 0.48: LIKE_BY_48}[cosine]
    return [(number, n_turned) for number in numbers]


THREE_CLIPS, FOUR_CLIPS = clips_like(1, 2, 3), clips_like(1, 2, 3, 4)
ONE_NEW, TWO_NEW, FOUR_NEW = clips_like(91), clips_like(91, 92), clips_like(91, 92, 93, 94)


@pytest.mark.parametrize(
    ("new", "trained", "share"),
    [
        pytest.param(THREE_CLIPS, THREE_CLIPS, 1, id="the same"),
        pytest.param(clips_like(1, 2) + ONE_NEW, FOUR_CLIPS, 2 / 3, id="shorter than the training film"),
        pytest.param(clips_like(1) + FOUR_NEW, THREE_CLIPS, 1 / 3, id="longer"),
        pytest.param(clips_like(1, 1) + TWO_NEW, FOUR_CLIPS, 2 / 4, id="as long, one clip twice"),
        pytest.param(FOUR_NEW, THREE_CLIPS, 0, id="new"),
        pytest.param(
            clips_like(1, 2, cosine=0.6) + clips_like(3, cosine=0.48),
            THREE_CLIPS,
            2 / 3,
            id="three clips are the same from a cosine of .5 on",
        ),
        pytest.param(
            clips_like(1, cosine=0.6) + clips_like(2),
            THREE_CLIPS,
            1 / 2,
            id="one of two new clips is too unlike",
        ),
        pytest.param(
            clips_like(1, cosine=0.6) + clips_like(2) + ONE_NEW,
            clips_like(1, 2),
            1 / 2,
            id="one of two trained clips is too unlike",
        ),
        pytest.param(clips_like(1), clips_like(1), 1, id="one clip"),
        pytest.param(clips_like(1), clips_like(2), 0, id="another clip"),
    ],
)
@pytest.mark.parametrize("n_compared_at_once", [2, 2048])
def test_clips_that_look_the_same_in_two_films_are_a_share_of_the_shorter_film(
    monkeypatch, new, trained, share, n_compared_at_once
):
    """Each clip of a new film and of a training film is a number: clips of the same number look the same.

    So do clips whose sketches of pictures have a cosine of at least .5, as .6 but not .48; where a film has
    one or two clips, which may be similar by chance, of at least .7, so that .6 is too unlike. It makes no
    difference how many clips are compared at once.
    """
    monkeypatch.setattr(training_films, "N_CLIPS_AT_ONCE", n_compared_at_once)

    assert _share_of_same_clips(planted_clips(*new), sketches_of(*trained)) == pytest.approx(share)


@pytest.mark.parametrize(
    ("new", "most_similar_film", "share"),
    [
        pytest.param(clips_like(1, 2, 3), 0, 1, id="all clips of film 0"),
        pytest.param(clips_like(11, 12, 13), 2, 1, id="all clips of film 2"),
        pytest.param(clips_like(1, 11, 12), 2, 2 / 3, id="one clip of film 0, two of film 2"),
        pytest.param(FOUR_NEW, 0, 0, id="no clip of either"),
    ],
)
def test_a_film_is_taken_for_the_training_film_that_shares_most_of_its_pictures(
    new, most_similar_film, share
):
    """Of training film 0 the model has seen the clips 1 to 3, and of film 2 the clips 11 to 13.

    It keeps sketches of their pictures, in no order of films, and none of film 1.
    """
    training = TrainingFilms(
        digests=np.zeros((6, 1, DIGEST_BYTES), np.uint8),
        films_of_digests=np.array([0, 0, 0, 2, 2, 2]),
        pictures=sketches_of(*clips_like(1, 11, 2, 12, 3, 13)),
        picture_films=np.array([0, 2, 0, 2, 0, 2]),
    )

    film_and_share = _most_similar_film(planted_clips(*new), training)

    assert film_and_share == pytest.approx((most_similar_film, share))


@pytest.mark.parametrize(
    ("view", "trained_view", "is_compared"),
    [
        ("picture", "picture", True),
        ("inner", "picture", True),
        ("picture", "inner", True),
        ("inner", "inner", False),
        ("frame", "picture", False),
    ],
)
def test_two_clips_are_compared_whole_and_with_one_of_them_cut_at_its_sides(view, trained_view, is_compared):
    """The view "picture" is all that a clip shows, and "inner" the same without a twentieth at each side.

    A copy whose sides were cut off looks as a whole like the inner view of the other clip, whichever of the
    two was cut. Both cut views ("inner" and "inner") need no comparison: then the whole pictures are alike.
    Nor is the view "frame" compared. Here one view of a new clip equals one view of a training clip, and all
    their other views differ.
    """
    (view_of_both,) = clips_like(2)
    new = planted_clips(*clips_like(1))
    new[0, VIEWS.index(view)] = planted_clips(view_of_both)[0, 0]
    trained = sketches_of(*clips_like(3))
    trained[0, KEPT_VIEWS.index(trained_view)] = sketches_of(view_of_both)[0, 0]

    (similarity,) = _picture_similarity(new, trained).ravel()

    assert (similarity > 0.99) == is_compared


# --- films of one dataset
# ---------------------------------------------------------------------------
def dataset_of_rows(folder, **films):
    """Load a dataset of films, given as the rows of their clips: `a=[1, 2]` is a film a of two clips.

    Clips of the same number have equal features. Those of the number -1 are one value throughout, as the
    features of a black clip.
    """
    rows = [row for rows_of_film in films.values() for row in rows_of_film]
    features = np.array([[row, min(0, row)] for row in rows], np.float32)
    movie_of = {f"{movie}-{place}": movie for movie, rows in films.items() for place in range(len(rows))}
    store = of.open_store(seal_arrays(folder / "rows", movie_of, {"net": {"pooled": features}}))
    clips = [of.Clip(clip_id, movie, level="S") for clip_id, movie in movie_of.items()]
    return om.load_dataset(store, of.Manifest(tuple(clips), folder), backbone="net")


def test_pairs_of_films_with_equal_clips_are_listed_unless_their_common_clips_are_in_many_films(tmp_path):
    """Each clip is a number: clips of the same number have equal features. Films are a to e.

    Films b and c have all four clips of b in common, and c and d two of the four of d that count (21 and 50):
    the pair with the larger share comes first. Clip 50 is in four films, so that by it alone, as of a and b,
    no pair is listed. The clips -1 of d and e are black, with one value in all features, and do not count.
    """
    in_four_films = 50
    black = -1
    data = dataset_of_rows(
        tmp_path,
        a=[1, 2, 3, in_four_films],
        b=[11, 12, 13, in_four_films],
        c=[11, 12, 13, 21, in_four_films],
        d=[21, 31, 32, in_four_films, black],
        e=[41, 42, 43, 44, black],
    )

    assert films_with_equal_clips(data) == [("b", "c", 1.0), ("c", "d", 2 / 4)]


def test_films_that_share_most_clips_are_listed_even_if_many_films_have_these_clips(tmp_path):
    """Four films have two clips of three in common, as copies of one film have: all six pairs are listed."""
    data = dataset_of_rows(tmp_path, a=[1, 2, 11], b=[1, 2, 21], c=[1, 2, 31], d=[1, 2, 41])

    share_of_pair = {(film, other): share for film, other, share in films_with_equal_clips(data)}

    assert share_of_pair == dict.fromkeys(combinations("abcd", 2), 2 / 3)


def test_films_that_share_half_of_their_clips_are_not_listed_if_many_films_have_these_clips(tmp_path):
    """Four films have one clip of two in common, which may be the same black clip."""
    data = dataset_of_rows(tmp_path, a=[1, 11], b=[1, 21], c=[1, 31], d=[1, 41])

    assert films_with_equal_clips(data) == []


def test_films_of_black_clips_alone_have_nothing_in_common(tmp_path):
    """The features of a black clip are one number throughout (here -1), in whatever film: they identify none.

    Film a has two such clips, and film b has one.
    """
    black_clip = -1

    data = dataset_of_rows(tmp_path, a=[black_clip, black_clip], b=[black_clip])

    assert films_with_equal_clips(data) == []


def test_a_film_that_is_known_in_several_ways_is_said_to_be_by_its_features(
    four_films, without_pictures, tmp_path
):
    """Film b has its name and its features; a name alone is a weaker sign. Film x is known in no way."""
    rng = np.random.default_rng(9)
    asked = {"b": four_films["b"], "x": drawn_film(rng, look(rng))}
    store = make_sealed_store(tmp_path, "asked", asked, with_pictures=False)

    recognition = recognise(without_pictures.card, without_pictures.training, [store])

    assert [*recognition.films] == ["b"]
    assert recognition.films["b"].by == "features"
    assert recognition.knows("b-0", "b")
    assert not recognition.knows("x-0", "x")
    assert recognition.clips == frozenset()
