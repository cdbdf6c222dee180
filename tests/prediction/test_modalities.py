"""A model of several modalities is kept, asks for their stores, and says what each is worth."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.store.testing import seal_arrays
from obygaze_models.commands.predict_remarks import remarks
from obygaze_models.errors import ConceptError, ModelError
from obygaze_models.models.fusion import FusedClassifier
from obygaze_models.models.joined_model import WAYS_TO_FUSE
from obygaze_models.models.linear import PENALTIES
from obygaze_models.prediction.explain import describe, explain
from tests.planted_modalities import WIDTHS
from tests.planted_modalities import planted as planted_corpus
from tests.planted_models import load_checking_round_trip

pytestmark = pytest.mark.long  # trains a model of each fusion

SEEN = slice(0, 6)
HEARD = slice(6, 10)
"""Columns of the modalities among a dataset's features."""


@pytest.fixture(scope="module")
def corpus_of_four_films(tmp_path_factory):
    """160 clips of four films, f0 to f3."""
    return planted_corpus(tmp_path_factory.mktemp("modalities"), n_films=4)


@pytest.fixture(scope="module")
def model_files(corpus_of_four_films, tmp_path_factory):
    """The file of a model of each way to fuse."""
    data = corpus_of_four_films.dataset()
    files = {}
    for how in WAYS_TO_FUSE:
        specs = om.fused(["linear"], data, how)
        run = om.evaluate(data, specs, "en_s")
        folder = tmp_path_factory.mktemp(how)
        files[how] = om.save_models(run, data, ["linear"], folder, models=specs, licence="CC0-1.0")["linear"]
    return files


@pytest.mark.parametrize("how", WAYS_TO_FUSE)
def test_a_loaded_model_scores_as_the_one_that_was_trained(corpus_of_four_films, model_files, how, tmp_path):
    """`how` is a way to fuse two modalities. The model of the file is trained here once more."""
    data = corpus_of_four_films.dataset()
    (spec_of_fused, *_specs_of_each) = om.fused(["linear"], data, how)
    trained = spec_of_fused.make(0).fit(data.X, data.levels == "S", groups=data.movies)
    assert isinstance(trained, FusedClassifier)

    loaded = load_checking_round_trip(model_files[how], tmp_path)

    np.testing.assert_allclose(loaded.logits(data.X), trained.decision_function(data.X), atol=1e-6)


@pytest.mark.parametrize("how", ["concat", "late", "mean"])
def test_contributions_of_modalities_add_up_to_the_logit(corpus_of_four_films, model_files, how):
    """Of 160 clips every fifth, 32, has no sound: what is heard contributes NaN there, and adds nothing."""
    data = corpus_of_four_films.dataset()
    model = om.load_model(model_files[how])

    base, contributions = model.estimator.contributions(data.X)  # [clips, seen and heard]

    contribution_of_heard = contributions[:, 1]
    assert np.isnan(contribution_of_heard).sum() == 32
    total = base + np.nansum(contributions, axis=1)
    np.testing.assert_allclose(total, model.logits(data.X), atol=1e-9)


def scores_above_mean(data, columns, is_trained_on):
    """Train a linear probe of some columns; return scores of clips less the mean of training clips."""
    X = data.X[:, columns]
    probe = om.GroupedSelection(om.linear_probe(), PENALTIES)
    probe.fit(X[is_trained_on], data.levels[is_trained_on] == "S", groups=data.movies[is_trained_on])
    has_columns = np.isfinite(X).all(axis=1)
    scores = np.full(len(X), np.nan)
    scores[has_columns] = probe.decision_function(X[has_columns])
    return scores - scores[is_trained_on].mean()


def contribution_of(modality, data, model_file):
    """What "seen" or "heard" contributes to the logit of each clip, by a model of both."""
    _, contributions = om.load_model(model_file).estimator.contributions(data.X)
    column = {"seen": 0, "heard": 1}[modality]
    return contributions[:, column]


def assert_proportional(contributions, scores):
    """Fail unless contributions are a positive multiple of scores: the correlation is 1, and signs agree."""
    assert np.corrcoef(contributions, scores)[0, 1] > 1 - 1e-6
    assert (contributions * scores >= -1e-6).all()


@pytest.mark.parametrize("how", ["late", "mean", "max"])
@pytest.mark.parametrize(
    ("modality", "its_features"), [("seen", SEEN), ("heard", HEARD)], ids=["seen", "heard"]
)
def test_a_modality_contributes_a_multiple_of_the_score_of_the_model_of_that_modality_alone(
    corpus_of_four_films, model_files, how, modality, its_features
):
    """A model of what is seen and heard has a linear model of each modality, and joins their scores.

    The scores, each less its mean on training clips, are summed up by weights ("late"), or their mean or the
    larger one is taken ("mean", "max"). What each modality adds to the logit is its contribution. A linear
    model of one modality is trained here once more, on all clips that have both: what this modality
    contributes to a clip is the clip's score by that model, less the mean score, times a factor.
    """
    data = corpus_of_four_films.dataset()
    has_both = np.isfinite(data.X).all(axis=1)
    scores = scores_above_mean(data, its_features, is_trained_on=has_both)

    contributions = contribution_of(modality, data, model_files[how])

    assert_proportional(contributions[has_both], scores[has_both])


@pytest.mark.parametrize("how", ["late", "mean", "max"])
def test_clips_without_sound_are_scored_by_a_model_of_what_is_seen_that_was_trained_on_all_clips(
    corpus_of_four_films, model_files, how
):
    """A model of what is seen and heard joins the scores of a model of each, which need clips that have both.

    For clips without sound it has another model of what is seen, trained on all clips, also those without
    sound. That model is trained here once more: what is seen contributes to a clip without sound its score by
    this model, less the mean score, times a factor.
    """
    data = corpus_of_four_films.dataset()
    is_not_heard = ~np.isfinite(data.X).all(axis=1)
    all_clips = np.ones(len(data), bool)
    scores = scores_above_mean(data, SEEN, is_trained_on=all_clips)

    contributions = contribution_of("seen", data, model_files[how])

    assert_proportional(contributions[is_not_heard], scores[is_not_heard])


def test_clips_without_sound_are_predicted_and_flagged(corpus_of_four_films, model_files):
    """Of 160 clips every fifth, 32, has no sound. A few clips are unlike the training clips."""
    model = om.load_model(model_files["late"])
    seen, heard = corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]

    predictions = om.predict(model, [seen, heard], corpus_of_four_films.manifest)

    assert len(predictions.table) == len(corpus_of_four_films.manifest) == 160
    assert not predictions.excluded
    assert predictions.has("without_heard").sum() == 32
    assert predictions.has("unlike").mean() < 0.02
    assert predictions.table["p"].notna().mean() > 0.98


def test_the_order_in_which_stores_of_modalities_are_given_changes_no_prediction(
    corpus_of_four_films, model_files
):
    """The model reads two stores, of what is seen and of what is heard."""
    model = om.load_model(model_files["late"])
    seen, heard = corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]

    seen_first = om.predict(model, [seen, heard], corpus_of_four_films.manifest)
    heard_first = om.predict(model, [heard, seen], corpus_of_four_films.manifest)

    assert heard_first.to_csv() == seen_first.to_csv()


def stores_of_both_modalities(corpus, folder, films_of_stores):
    """Put what is seen and heard in clips with sound into one store for each list of films."""
    seen, heard = corpus.stores["seen"], corpus.stores["heard"]
    row_of = {clip.clip_id: row for row, clip in enumerate(seen.clips)}
    rows = [row_of[clip.clip_id] for clip in heard.clips]
    arrays = {"seen": seen["seen"].pooled()[rows], "heard": heard["heard"].pooled()}

    stores = []
    for films in films_of_stores:
        is_in = np.array([clip.movie in films for clip in heard.clips])
        movie_of = {clip.clip_id: clip.movie for clip in heard.clips if clip.movie in films}
        groups = {modality: {"pooled": X[is_in]} for modality, X in arrays.items()}
        stores.append(of.open_store(seal_arrays(folder / "-".join(films), movie_of, groups)))
    return stores


def test_a_store_of_both_modalities_gives_the_same_as_a_store_of_each(
    corpus_of_four_films, model_files, tmp_path
):
    """The corpus has a store of what is seen in all clips, and one of what is heard in those with sound.

    A third store holds both, of the clips with sound. These clips have the same logits either way.
    """
    model = om.load_model(model_files["concat"])
    store_of_both = stores_of_both_modalities(corpus_of_four_films, tmp_path, [["f0", "f1", "f2", "f3"]])

    by_store_of_both = om.predict(model, store_of_both).table
    by_store_of_each = om.predict(
        model, [corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]]
    ).table

    has_sound = by_store_of_each["clip_id"].isin(by_store_of_both["clip_id"])
    of_clips_with_sound = by_store_of_each[has_sound].reset_index(drop=True)
    assert of_clips_with_sound["logit"].equals(by_store_of_both["logit"])


def test_films_in_several_stores_of_both_modalities_give_the_same_as_in_one(
    corpus_of_four_films, model_files, tmp_path
):
    """Film f0 lies in one store and f1, f2 and f3 in another; then all four in one."""
    model = om.load_model(model_files["concat"])
    one_store = stores_of_both_modalities(corpus_of_four_films, tmp_path, [["f0", "f1", "f2", "f3"]])
    two_stores = stores_of_both_modalities(corpus_of_four_films, tmp_path, [["f0"], ["f1", "f2", "f3"]])

    by_one_store = om.predict(model, one_store).table
    by_two_stores = om.predict(model, two_stores).table

    assert by_two_stores.equals(by_one_store)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["seen"], "no store given has features of heard"),
        (["seen", "heard", "noise"], "noise has no features of seen"),
        (["seen", "heard", "heard"], "in two stores"),
    ],
    ids=["a modality is missing", "a store of another modality", "a store twice"],
)
def test_stores_that_do_not_fit_the_model_are_refused(corpus_of_four_films, model_files, names, message):
    """The model reads what is seen and what is heard, from a store of each."""
    model = om.load_model(model_files["late"])
    stores = [corpus_of_four_films.stores[name] for name in names]

    with pytest.raises(ModelError, match=message):
        om.predict(model, stores)


def test_a_decision_of_late_fusion_is_the_sum_of_its_modalities_and_the_base(
    corpus_of_four_films, model_files
):
    """Late fusion adds up the scores of a model of each modality."""
    stores = [corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]]
    model = om.load_model(model_files["late"])

    explanation = explain(model, stores, clip_id="f0-01", set_to={})

    assert explanation.modalities.keys() == {"seen", "heard", "base"}
    assert sum(explanation.modalities.values()) == pytest.approx(explanation.decision.logit)


def test_a_decision_by_the_maximum_is_the_sum_of_the_base_and_the_largest_modality(
    corpus_of_four_films, model_files
):
    """Of what is seen and what is heard, the one that says more for the level decides alone."""
    stores = [corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]]
    model = om.load_model(model_files["max"])

    explanation = explain(model, stores, clip_id="f0-01", set_to={})

    largest = max(explanation.modalities["seen"], explanation.modalities["heard"])
    assert explanation.modalities["base"] + largest == pytest.approx(explanation.decision.logit)


def clip_without_sound(model, stores):
    """Return the id of the first clip that is predicted without what is heard."""
    predictions = om.predict(model, stores)
    return predictions.table.loc[predictions.has("without_heard"), "clip_id"].iloc[0]


def test_an_explanation_says_which_modality_is_absent(corpus_of_four_films, model_files):
    """A clip without sound is explained: what is heard has no contribution."""
    stores = [corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]]
    model = om.load_model(model_files["late"])
    unheard_clip = clip_without_sound(model, stores)

    explanation = explain(model, stores, unheard_clip, set_to={})

    assert explanation.modalities["heard"] is None
    assert "absent" in describe(explanation, model)


def test_a_model_of_several_modalities_refuses_to_set_a_concept_by_hand(corpus_of_four_films, model_files):
    """An explanation may set a concept of a clip to another value, if the model decides by concepts.

    This one decides by features of what is seen and heard, and knows no Body. It is asked about a clip
    without sound, for which it has a model of its own: that one doesn't know it either.
    """
    stores = [corpus_of_four_films.stores["seen"], corpus_of_four_films.stores["heard"]]
    model = om.load_model(model_files["late"])
    unheard_clip = clip_without_sound(model, stores)

    with pytest.raises(ConceptError):
        explain(model, stores, unheard_clip, set_to={"Body": 0.5})


@pytest.mark.parametrize(
    "name", ["mlp", "linear:seen"], ids=["a fused perceptron", "a model of one of the modalities"]
)
def test_only_fused_linear_models_of_all_modalities_are_saved(corpus_of_four_films, tmp_path, name):
    """Evaluated are linear models and perceptrons, each of both modalities and of one of them."""
    data = corpus_of_four_films.dataset()
    specs = om.fused(["linear", "mlp"], data, "late")
    run = om.evaluate(data, specs, "en_s")

    with pytest.raises(ModelError, match=f"model {name}"):
        om.save_models(run, data, [name], tmp_path, models=specs)


def stores_of_a_clip_that_is_cut_short(folder, *, cut):
    """Keep a clip of 8 s in a store of what is seen and one of what is heard.

    In the stores in `cut` its file has no pictures in its last 5 s.
    """
    stores = []
    for name in ("seen", "heard"):
        is_cut = name in cut
        path = seal_arrays(
            folder / name,
            {"new-00": "new"},
            {name: {"pooled": np.zeros((1, WIDTHS[name]), np.float32)}},
            spans={"new-00": (0.0, 8.0)},
            partial={"new-00": f"the file of {name} is cut off"} if is_cut else {},
            without_pictures_s={"new-00": [(3.0, 8.0)]} if is_cut else {},
        )
        stores.append(of.open_store(path))
    return stores


@pytest.mark.parametrize("cut", ["seen", "heard"])
def test_an_explanation_says_what_could_not_be_read_in_whichever_store_it_is(model_files, tmp_path, cut):
    """The file is cut off in one of the two stores; predictions flag the clip as partial in both cases."""
    model = om.load_model(model_files["concat"])
    stores = stores_of_a_clip_that_is_cut_short(tmp_path, cut=[cut])

    explained = explain(model, stores, "new-00", set_to={})

    assert om.predict(model, stores).has("partial").all()
    assert explained.read_in_part == f"the file of {cut} is cut off"
    assert explained.unread_s == 5


def test_a_clip_of_which_half_is_missing_in_two_stores_is_counted_once(model_files, tmp_path):
    """5 of the 8 s of the only clip have no pictures, in what is seen and in what is heard."""
    model = om.load_model(model_files["concat"])
    stores = stores_of_a_clip_that_is_cut_short(tmp_path, cut=["seen", "heard"])

    lines = remarks(om.predict(model, stores), model, stores)

    (on_partial_clips,) = [line for line in lines if "partial" in line]
    assert "less than half of 1 clip was read" in on_partial_clips
