"""A film's share: which clips it is calibrated on, its bracket, and where it is refused."""

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import Store, open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.claims.of_film import other_windows
from obygaze_film.claims.phrases import windows_sentence
from obygaze_film.score import score_films
from obygaze_film.timeline import Timeline
from obygaze_models.dataset import Dataset, load_dataset
from obygaze_models.evaluation import evaluate
from obygaze_models.persistence.card import parse_card
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.saved_model import load_model

pytestmark = pytest.mark.long  # trains and calibrates five models

D = 6
FILMS = tuple(f"tt{number:07}" for number in range(6))
SHARES = (0.5, 0.3, 0.2)
"""Of EN, HN and S: S lies 1.6 above HN on feature 0, EN 0.2 below it."""

RECIPES = {
    "narrow": ("hn_s", None),
    "recipe": ("hn_s", "enhn_s"),
    "several tests": ("hn_s", ["hn_s", "enhn_s"]),
    "other test": ("hn_s", "en_s"),
    "wide": ("enhn_s", None),
    "narrower test": ("enhn_s", "hn_s"),
}
"""By name: the task whose clips a model is trained on, and those that it is tested on (None: the same)."""


LENGTHS = {"EN": 3.0, "HN": 4.5, "S": 5.0}
"""Seconds of the corpus's clips: those trained on are longer than those calibrated on with EN."""


def clips_of(movies, per_film, seed, lengths=None):
    """Draw clips and their features; of each film, EN, HN and S have the planted `SHARES`.

    Clips last five seconds, or as long as `lengths` says of their level. Feature 0 tells S from others well,
    and HN from EN a little; all features have noise, and an offset that each film has of its own.
    """
    offset_of_level = {"EN": -0.2, "HN": 0.0, "S": 1.6}
    n_of_levels = np.rint(np.array(SHARES) * per_film).astype(int)
    rng = np.random.default_rng(seed)
    clips, rows = [], []
    for movie in movies:
        levels = rng.permutation(np.repeat(["EN", "HN", "S"], n_of_levels))
        offset_of_film = 0.2 * rng.normal(size=D)
        for index, level in enumerate(levels.tolist()):
            start_s = 5.0 * index
            length_s = 5.0 if lengths is None else lengths[level]
            clip_id = f"{movie}-{index:04}"
            clips.append(Clip(clip_id, movie, f"{movie}.mp4", start_s, start_s + length_s, level))
            row = rng.normal(size=D) + offset_of_film
            row[0] += offset_of_level[level]
            rows.append(row.astype(np.float32))
    return clips, np.stack(rows)


def store_of(folder, name, clips, rows):
    """Seal a store of clips and the rows of their features."""
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    return open_store(seal_arrays(folder / name, movie_of, {"descriptors": {"pooled": rows}}, spans=spans))


class Planted(NamedTuple):
    """What is trained on the planted films.

    Attributes
    ----------
    runs, paths
        By the name of a recipe: the evaluation of a linear model, and the file of the model.
    data
        Dataset of the films trained on.
    new
        Store of three new films.
    """

    runs: dict
    paths: dict
    data: Dataset
    new: Store


@pytest.fixture(scope="module")
def planted_films_and_models(tmp_path_factory):
    """The planted films, and the models and evaluations of each recipe."""
    folder = tmp_path_factory.mktemp("share")
    clips, rows = clips_of(FILMS, per_film=60, seed=0, lengths=LENGTHS)
    manifest = Manifest(tuple(clips), folder, builtin_codebook("obygaze12"))
    data = load_dataset(store_of(folder, "films", clips, rows), manifest)
    runs, paths = {}, {}
    for name, (task, test) in RECIPES.items():
        run = evaluate(data, ["linear"], task, test)
        runs[name] = run
        paths[name] = save_models(run, data, ["linear"], folder / name)["linear"]
    new_clips, new_rows = clips_of(("new1", "new2", "new3"), per_film=400, seed=1)
    new = store_of(folder, "new", new_clips, new_rows)
    return Planted(runs, paths, data, new)


def mean_share(store, path):
    """Return the mean share of a store's films that a model expects."""
    return np.mean([film.rate().value for film in score_films(store, [path])])


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param("recipe", id="trained on HN and S, tested on all levels"),
        pytest.param("several tests", id="trained on HN and S, tested on these and on all levels"),
        pytest.param("wide", id="trained and tested on all levels"),
        pytest.param("narrower test", id="trained on all levels, tested on HN and S"),
    ],
)
def test_a_planted_share_is_recovered_if_a_model_is_calibrated_on_all_levels(
    planted_films_and_models, recipe
):
    """In three new films .2 of the clips are S, the others EN and HN. A model expects about that share.

    All four models are calibrated on clips of all three levels, as new films have. The mean of three films
    has a standard deviation of .027, and may be off by about twice as much.
    """
    expected_share = mean_share(planted_films_and_models.new, planted_films_and_models.paths[recipe])
    assert expected_share == pytest.approx(0.2, abs=0.06)


def test_a_model_that_never_saw_a_level_refuses_a_share(planted_films_and_models):
    """Half of a film is EN, and the model ("narrow") was trained and calibrated on HN and S alone.

    Less than a fifth of the film is unlike training, so that this is not why.
    """
    film, *_ = score_films(planted_films_and_models.new, [planted_films_and_models.paths["narrow"]])
    rate = film.rate()

    assert film.model().levels_left_out == ["EN"]
    assert rate.value is None
    assert rate.bracket_low is None
    assert rate.calibration_low is None
    assert "EN" in rate.reason
    assert rate.unreliable < 0.2


def test_the_mean_probability_by_a_model_that_never_saw_a_level_is_above_the_share_of_the_film(
    planted_films_and_models,
):
    """.2 of the film's clips are S, .3 HN and .5 EN. The model tells S from HN, and never saw EN.

    Of what it saw .2 / (.2 + .3) = .4 is S. It expects so much of HN and S here, and a little less of EN,
    where nothing is S: the mean is too high by more than .08. This is why such a model gives no share.
    """
    never_saw_en = planted_films_and_models.paths["narrow"]
    film, *_ = score_films(planted_films_and_models.new, [never_saw_en])

    share_of_s = 0.2
    assert film.rows()["p"].mean() > share_of_s + 0.08


def test_a_model_that_never_saw_a_level_gives_scores_and_passages(planted_films_and_models):
    """Only a share depends on how often each level is; scores and passages compare a film's moments."""
    film, *_ = score_films(planted_films_and_models.new, [planted_films_and_models.paths["narrow"]])
    assert film.rows()["logit"].notna().all()
    assert len(film.segments()) > 0


def test_a_model_whose_training_and_test_lack_a_level_each_refuses_a_share(planted_films_and_models):
    """A film has clips of EN, HN and S. A model is trained on HN and S, and tested on EN and S.

    Its training lacks EN, as its card says, and its test lacks HN. Either has what the other lacks, but a
    share needs clips of all levels in one: of none of the three new films is there a share.
    """
    trained_without_en_tested_without_hn = planted_films_and_models.paths["other test"]
    films = score_films(planted_films_and_models.new, [trained_without_en_tested_without_hn])

    assert load_model(trained_without_en_tested_without_hn).card.levels_left_out == ("EN",)
    for film in films:
        assert film.rate().value is None


def test_a_card_names_the_clips_of_training_and_of_calibration(planted_films_and_models):
    """The corpus has 60 clips of each of six films: 180 of EN, 108 of HN and 72 of S.

    The model was trained on HN and S (`target`), and calibrated on clips of all levels (`population`). Half
    of these are of EN, of 3 s, and the others of 4.5 and 5 s: their median is (3 + 4.5) / 2.
    """
    card = load_model(planted_films_and_models.paths["recipe"]).card
    film, *_ = score_films(planted_films_and_models.new, [planted_films_and_models.paths["recipe"]])

    assert card.target["name"] == "hn_s"
    assert card.n_clips == 108 + 72
    assert card.population == {
        "task": "enhn_s",
        "title": "(EN or HN) vs S",
        "clips": {"EN": 180, "HN": 108, "S": 72},
        "n_movies": 6,
        "levels_left_out": [],
        "clip_s": (3 + 4.5) / 2,
    }
    assert film.model().calibration.clips == {"EN": 180, "HN": 108, "S": 72}


def test_by_default_a_model_is_calibrated_on_its_training_clips(planted_films_and_models):
    """The corpus has 180 clips of EN, 108 of HN and 72 of S. Two models are trained on HN and S.

    Of the model "narrow" nothing else is said: its card names the clips of training as those that it is
    calibrated on (`population`). The model "recipe" is to be calibrated on all clips, and so has another
    calibration.
    """
    card_by_default = load_model(planted_films_and_models.paths["narrow"]).card
    card_if_calibrated_on_all = load_model(planted_films_and_models.paths["recipe"]).card

    assert card_by_default.population["clips"] == {"HN": 108, "S": 72}
    assert card_by_default.calibration != card_if_calibrated_on_all.calibration


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_tells_the_median_lengths_of_the_clips_of_training_and_of_calibration(
    planted_films_and_models, language
):
    """The corpus has 180 clips of EN, of 3 s, 108 of HN, of 4.5 s, and 72 of S, of 5 s.

    A model is trained on HN and S: of these 180 clips the 108 shorter ones have 4.5 s, which is the median.
    It is calibrated on all 360: the shorter half has 3 s, the next longer clips 4.5, and the median of an
    even number of clips lies halfway between its two middle ones. As the film's windows have another length,
    a sentence says so, and tells both medians.
    """
    words = Words(language)
    trained_on_hn_and_s_calibrated_on_all = planted_films_and_models.paths["recipe"]
    film, *_ = score_films(planted_films_and_models.new, [trained_on_hn_and_s_calibrated_on_all])

    claim = other_windows(film.model(), film.record.windows)
    sentence = windows_sentence(claim, words)

    assert claim.trained_s == 4.5
    assert claim.calibrated_s == (3 + 4.5) / 2
    assert words.seconds(claim.trained_s) in sentence
    assert words.seconds(claim.calibrated_s) in sentence


def test_a_calibration_is_fitted_to_scores_of_films_left_out(planted_films_and_models):
    """A logistic curve that is fitted to scores gives them, on average, the share of positives.

    The scores are those of films left out of training, by the model "recipe", which is calibrated on clips
    of all levels. Platt's labels, which are not quite 0 and 1, move the mean a little: up to .005 here.
    """
    calibration = load_model(planted_films_and_models.paths["recipe"]).calibration
    held_out = planted_films_and_models.runs["recipe"].predictions.table.query("model == 'linear'")
    p = calibration.probability(held_out["score"])
    positive_share = (planted_films_and_models.data.levels == "S").mean()
    assert p.mean() == pytest.approx(positive_share, abs=0.005)


def model_of_unknown_clips(path, *, codebook="obygaze12"):
    """Read a model whose card does not say on which clips it is calibrated, as it has no `population`."""
    model = load_model(path)
    card = model.card.to_json() | {"arrays": {}}  # which a card in a file has
    del card["population"]
    card["codebook"]["name"] = codebook
    as_in_file = json.loads(json.dumps(card))
    return replace(model, card=parse_card(as_in_file, "nameless.model"))


def rate_by(planted, model):
    """Return what a model expects of the first of the new films."""
    film, *_ = score_films(planted.new, [model])
    return film.rate()


def test_a_model_whose_card_names_no_clips_is_taken_to_be_calibrated_on_its_task(planted_films_and_models):
    """A model was trained to tell S from EN and HN. Its card does not say on which clips it is calibrated.

    A share may be given only by a model that is calibrated on all levels that clips of films have. Without
    another word, the clips of its task are taken, which are of all three: so the model gives a share of S,
    near the planted one, .2.
    """
    trained_on_all_levels = planted_films_and_models.paths["wide"]

    rate = rate_by(planted_films_and_models, model_of_unknown_clips(trained_on_all_levels))

    assert rate.value == pytest.approx(0.2, abs=0.06)
    assert rate.bracket_low < rate.value < rate.bracket_high


def test_a_share_is_refused_if_the_card_names_no_clips_and_the_task_lacks_a_level(planted_films_and_models):
    """A model's card does not say on which clips it is calibrated, so that the clips of its task are taken.

    Its task, HN against S, has none of EN, as half of a film is. The reason for which no share is given names
    EN.
    """
    trained_on_hn_and_s = planted_films_and_models.paths["recipe"]

    rate = rate_by(planted_films_and_models, model_of_unknown_clips(trained_on_hn_and_s))

    assert rate.value is None
    assert "EN" in rate.reason


def test_a_share_is_refused_if_the_card_names_no_clips_and_a_codebook_whose_levels_are_unknown(
    planted_films_and_models,
):
    """A model's card does not say on which clips it is calibrated; its codebook is called "violence".

    Which levels clips of films have by that codebook is unknown, and so whether the task has all of them. No
    share is given, for a reason of one line.
    """
    trained_on_all_levels = planted_films_and_models.paths["wide"]

    rate = rate_by(
        planted_films_and_models, model_of_unknown_clips(trained_on_all_levels, codebook="violence")
    )

    assert rate.value is None
    assert len(rate.reason.splitlines()) == 1


def test_the_bracket_of_a_share_is_the_error_measured_on_films(planted_films_and_models):
    """`film_margin` is measured with films left out of training. A share lies between 0 and 1.

    The band around it, from `calibration_low` to `calibration_high`, is how far it would differ with other
    calibrations that fit as well.
    """
    margin = load_model(planted_films_and_models.paths["recipe"]).calibration.film_margin
    film, *_ = score_films(planted_films_and_models.new, [planted_films_and_models.paths["recipe"]])
    rate = film.rate()

    assert rate.bracket_low == max(rate.value - margin, 0)
    assert rate.bracket_high == min(rate.value + margin, 1)
    assert rate.calibration_low < rate.value < rate.calibration_high


def test_a_share_is_read_back_with_its_film(planted_films_and_models, tmp_path):
    """A scored film is written to a folder; read again, it has the same share with all its bounds."""
    film, *_ = score_films(planted_films_and_models.new, [planted_films_and_models.paths["recipe"]])
    film.write(tmp_path)
    assert Timeline.read(tmp_path).rate() == film.rate()
