"""A film's share: which clips it is calibrated on, its bracket, and where it is refused."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, builtin_codebook
from obygaze_features.store import open_store
from obygaze_features.store.testing import seal_arrays
from obygaze_film.claims import LANGUAGES, Words
from obygaze_film.claims.of_film import other_windows
from obygaze_film.claims.phrases import windows_sentence
from obygaze_film.score import score_films
from obygaze_film.timeline import Timeline
from obygaze_models.dataset import load_dataset
from obygaze_models.evaluation import evaluate
from obygaze_models.persistence.card import parse_card
from obygaze_models.prediction.final import save_models
from obygaze_models.prediction.saved_model import load_model

pytestmark = pytest.mark.long  # trains and calibrates five models

D = 6
FILMS = tuple(f"tt{number:07}" for number in range(6))
SHARES = (0.5, 0.3, 0.2)
"""Of EN, HN and S: S lies 1.6 above HN on feature 0, EN 0.2 below it."""

SHARE_OF_S = 0.2

RECIPES = {
    "narrow": ("hn_s", None),
    "recipe": ("hn_s", "enhn_s"),
    "several tests": ("hn_s", ["hn_s", "enhn_s"]),
    "other test": ("hn_s", "en_s"),
    "wide": ("enhn_s", None),
    "narrower test": ("enhn_s", "hn_s"),
}
"""What is trained on and tested on."""


LENGTHS = {"EN": 3.0, "HN": 4.5, "S": 5.0}
"""Seconds of the corpus's clips: those trained on are longer than those calibrated on with EN."""


def clips_of(movies, per_film, seed, lengths=None):
    """Draw clips of five seconds, or of their level's `lengths`, and features, in the planted shares."""
    rng = np.random.default_rng(seed)
    clips, rows = [], []
    for movie in movies:
        levels = rng.permutation(
            np.repeat(["EN", "HN", "S"], np.rint(np.array(SHARES) * per_film).astype(int))
        )
        own = 0.2 * rng.normal(size=D)
        for place, level in enumerate(levels.tolist()):
            start = 5.0 * place
            end = start + (lengths or {}).get(level, 5.0)
            clips.append(Clip(f"{movie}-{place:04}", movie, f"{movie}.mp4", start, end, level))
            row = rng.normal(size=D) + own
            row[0] += {"EN": -0.2, "HN": 0.0, "S": 1.6}[level]
            rows.append(row.astype(np.float32))
    return clips, np.stack(rows)


def store_of(folder, name, clips, rows):
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    return open_store(seal_arrays(folder / name, movie_of, {"descriptors": {"pooled": rows}}, spans=spans))


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Models and runs by recipe, the data of the training films, and a store of three new films."""
    folder = tmp_path_factory.mktemp("share")
    clips, rows = clips_of(FILMS, 60, seed=0, lengths=LENGTHS)
    manifest = Manifest(tuple(clips), folder, builtin_codebook("obygaze12"))
    data = load_dataset(store_of(folder, "films", clips, rows), manifest)
    runs = {name: evaluate(data, ["linear"], task, test) for name, (task, test) in RECIPES.items()}
    paths = {name: save_models(run, data, ["linear"], folder / name)["linear"] for name, run in runs.items()}
    new = store_of(folder, "new", *clips_of(("new1", "new2", "new3"), 400, seed=1))
    return SimpleNamespace(paths=paths, runs=runs, data=data, new=new)


def mean_share(store, path):
    return np.mean([film.rate().value for film in score_films(store, [path])])


@pytest.mark.parametrize("recipe", ["recipe", "wide", "narrower test", "several tests"])
def test_a_planted_share_is_recovered_where_the_calibration_knows_all_levels(planted, recipe):
    """The margin is twice the SD of the mean of three new films, .027, whose shares lie .032 apart.

    Over many such corpora the mean is unbiased: .198 over 85 of them, asked about 30 new films each.
    """
    assert mean_share(planted.new, planted.paths[recipe]) == pytest.approx(SHARE_OF_S, abs=0.06)


@pytest.fixture(scope="module")
def scored_without_en(planted):
    """A film scored by a model that was trained and calibrated on HN and S alone, and never saw EN."""
    film, *_ = score_films(planted.new, [planted.paths["narrow"]])
    return film


def test_a_model_that_never_saw_a_level_of_films_refuses_their_share_and_names_the_level(scored_without_en):
    rate = scored_without_en.rate()
    assert rate.value is None
    assert rate.bracket_low is None
    assert rate.calibration_low is None
    assert "EN" in rate.reason
    assert rate.unreliable < 0.2  # so that this is not why
    assert scored_without_en.model().levels_left_out == ["EN"]


def test_the_share_that_is_refused_for_a_level_left_out_would_be_too_high(scored_without_en):
    assert scored_without_en.rows()["p"].mean() > SHARE_OF_S + 0.08


def test_a_film_whose_share_is_refused_has_scores_and_passages(scored_without_en):
    assert scored_without_en.rows()["logit"].notna().all()
    assert len(scored_without_en.segments()) > 0


def test_a_test_of_other_clips_does_not_stand_for_a_film(planted):
    assert load_model(planted.paths["other test"]).card.levels_left_out == ("EN",)
    assert all(film.rate().value is None for film in score_films(planted.new, [planted.paths["other test"]]))


@pytest.fixture(scope="module")
def counts(planted):
    """How many clips of the training films each level has."""
    return {level: int((planted.data.levels == level).sum()) for level in ("EN", "HN", "S")}


def test_a_card_says_which_clips_the_model_was_trained_on_and_which_it_was_calibrated_on(planted, counts):
    """It was trained on HN and S (`target`), and calibrated on clips of all levels (`population`)."""
    card = load_model(planted.paths["recipe"]).card
    assert card.target["name"] == "hn_s"
    assert card.n_clips == counts["HN"] + counts["S"]
    assert card.population == {
        "task": "enhn_s",
        "title": "(EN or HN) vs S",
        "clips": counts,
        "n_movies": len(FILMS),
        "levels_left_out": [],
        "clip_s": np.median([LENGTHS[level] for level in planted.data.levels]),
    }


def test_a_model_without_another_test_is_calibrated_on_the_clips_that_it_was_trained_on(planted, counts):
    card = load_model(planted.paths["narrow"]).card
    assert card.population["clips"] == {level: counts[level] for level in ("HN", "S")}
    assert card.calibration != load_model(planted.paths["recipe"]).card.calibration


def test_a_scored_film_says_which_clips_its_model_was_calibrated_on(planted, counts):
    film, *_ = score_films(planted.new, [planted.paths["recipe"]])
    assert film.model().calibration.clips == counts


def test_lengths_are_of_the_clips_that_a_sentence_names(planted):
    """Not of all clips of the corpus: those trained on are some of those calibrated on."""
    learnt = [LENGTHS[level] for level in planted.data.levels if level != "EN"]
    every = [LENGTHS[level] for level in planted.data.levels]
    (film, *_) = score_films(planted.new, [planted.paths["recipe"]])
    claim = other_windows(film.model(), film.record.windows)
    assert (claim.trained_s, claim.calibrated_s) == (np.median(learnt), np.median(every))
    for language in LANGUAGES:
        words = Words(language)
        said = windows_sentence(claim, words)
        assert words.seconds(claim.trained_s) in said
        assert words.seconds(claim.calibrated_s) in said


def test_a_calibration_on_a_wider_test_is_fitted_to_the_scores_of_films_left_out_of_training(planted):
    """A sigmoid fitted to scores expects their share of positives, but for Platt's smoothed labels."""
    calibration = load_model(planted.paths["recipe"]).calibration
    held_out = planted.runs["recipe"].predictions.table.query("model == 'linear'")
    p = calibration.probability(held_out["score"])
    assert p.mean() == pytest.approx((planted.data.levels == "S").mean(), abs=0.005)


def model_of_unknown_clips(path, *, codebook="obygaze12"):
    """Read a model as an earlier version kept it: its card does not name the clips calibrated on."""
    model = load_model(path)
    card = model.card.to_json() | {"arrays": {}}
    del card["population"]
    card["codebook"]["name"] = codebook
    return replace(model, card=parse_card(json.loads(json.dumps(card)), "nameless.model"))


def rate_by(planted, model):
    film, *_ = score_films(planted.new, [model])
    return film.rate()


def test_a_model_that_names_no_clips_is_taken_to_be_calibrated_on_its_task(planted):
    """Its task has all levels, so that a share is given."""
    rate = rate_by(planted, model_of_unknown_clips(planted.paths["wide"]))
    assert rate.value == pytest.approx(SHARE_OF_S, abs=0.06)
    assert rate.bracket_low < rate.value < rate.bracket_high


def test_a_model_that_names_no_clips_and_whose_task_lacks_a_level_gives_no_share(planted):
    rate = rate_by(planted, model_of_unknown_clips(planted.paths["recipe"]))
    assert rate.value is None
    assert "EN" in rate.reason


def test_a_model_that_names_no_clips_and_whose_codebook_is_not_built_in_gives_no_share(planted):
    rate = rate_by(planted, model_of_unknown_clips(planted.paths["wide"], codebook="violence"))
    assert rate.value is None
    assert len(rate.reason.splitlines()) == 1


def test_the_bracket_of_a_share_is_the_margin_of_films_and_the_band_that_of_the_calibration(planted):
    film, *_ = score_films(planted.new, [planted.paths["recipe"]])
    rate = film.rate()
    margin = load_model(planted.paths["recipe"]).calibration.film_margin
    assert (rate.bracket_low, rate.bracket_high) == (max(rate.value - margin, 0), min(rate.value + margin, 1))
    assert rate.calibration_low < rate.value < rate.calibration_high


def test_a_share_is_read_back_with_its_bracket_and_its_band(planted, tmp_path):
    film, *_ = score_films(planted.new, [planted.paths["recipe"]])
    film.write(tmp_path)
    assert Timeline.read(tmp_path).rate() == film.rate()
