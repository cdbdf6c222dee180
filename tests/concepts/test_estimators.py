"""CAVs find what is clips_with_concept, equal the reference solver, and say by name what can't be learnt."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from obygaze_models.concepts import (
    ConceptBank,
    ConceptBottleneck,
    LinearCAV,
    ridge_hyperplanes,
    svm_hyperplanes,
)
from obygaze_models.concepts.cav_fitting import KINDS
from obygaze_models.errors import ConceptError

ESTIMATORS = [
    *(LinearCAV(kind) for kind in KINDS),
    ConceptBank(),
    ConceptBank("mean_difference"),
    ConceptBottleneck(),
    ConceptBottleneck("elastic_net"),
    ConceptBottleneck("tree"),
]


# The elastic net's solver is slow on columns of unlike scale, which some checks have and standardised concept
# values have not.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_estimators_keep_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


def clips_with_concept(*, strength=2.0, film=1.5, bias=0.0):
    """Move clips by `strength` along a unit direction when a concept is there, by `film` with their movie.

    Movies are moved at random, and differ in how often the concept is there. All are shifted by `bias` along
    the direction, so that the concept begins at bias + strength / 2.

    Returns features, presences, movies and the direction.
    """
    rng = np.random.default_rng(0)
    n_movies, n_features = 12, 32
    movies = np.repeat(np.arange(n_movies), 60)
    axis = rng.normal(size=n_features)
    axis /= np.linalg.norm(axis)
    share_of_movie = rng.uniform(0.15, 0.45, n_movies)
    present = rng.random(movies.size) < share_of_movie[movies]
    X = rng.normal(size=(movies.size, n_features)) + (bias + strength * present[:, None]) * axis
    shift_of_movie = film * rng.normal(size=(n_movies, n_features)) / np.sqrt(n_features) * 2
    X += shift_of_movie[movies]
    return X, present, movies, axis


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_direction_is_recovered_with_its_sign_although_films_are_moved_too(kind):
    X, present, _, direction = clips_with_concept(strength=3.0)
    cav = LinearCAV(kind, C=0.01).fit(X, present)
    assert cav.direction_ @ direction > 0.9
    assert np.linalg.norm(cav.direction_) == pytest.approx(1)
    assert cav.decision_function(X[present]).mean() > 0 > cav.decision_function(X[~present]).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [-20.0, 20.0])
def test_the_boundary_lies_halfway_between_clips_with_and_without_the_concept_far_from_the_origin(kind, bias):
    strength = 6.0
    X, present, _, direction = clips_with_concept(strength=strength, film=0.0, bias=bias)
    cav = LinearCAV(kind, C=1.0).fit(X, present)
    # The point t * direction is on the boundary where t * (direction_ @ direction) + offset_ is 0.
    boundary = -cav.offset_ / (cav.direction_ @ direction)
    assert boundary == pytest.approx(bias + strength / 2, abs=1.0)
    assert (cav.predict(X) == present).mean() > 0.97


@pytest.mark.parametrize("balanced", [True, False])
def test_a_decision_is_the_signed_distance_to_the_boundary_and_times_norm_the_value_of_svc(balanced):
    X, present, *_ = clips_with_concept()
    class_weight = "balanced" if balanced else None
    reference = SVC(kernel="linear", C=0.1, class_weight=class_weight).fit(X, present)
    raw_values = reference.decision_function(X)
    cav = LinearCAV(C=0.1, balanced=balanced).fit(X, present)
    distances = cav.decision_function(X)
    assert np.abs(distances - raw_values / np.linalg.norm(reference.coef_)).max() < 1e-6
    assert np.abs(distances * cav.norm_ - raw_values).max() < 1e-6


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.1, 1.0, 10.0]), st.booleans())
def test_svms_of_several_concepts_that_are_fitted_together_equal_svc_on_each(seed, C, balanced):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8)).astype(np.float32)
    problems = []  # rows of the clips, presences, penalty
    for _ in range(3):
        rows = np.sort(rng.permutation(60)[: rng.integers(20, 60)])
        present = rng.random(rows.size) < 0.4
        # Both classes, whatever was drawn.
        present[0] = True
        present[1] = False
        problems.append((rows, present, C))
    planes = svm_hyperplanes(X, problems, balanced=balanced)
    for number, (rows, present, _) in enumerate(problems):
        reference = SVC(kernel="linear", C=C, class_weight="balanced" if balanced else None)
        reference.fit(X[rows].astype(np.float64), present)
        assert np.abs(planes.decisions(X)[:, number] - reference.decision_function(X)).max() < 1e-6


def test_ridge_has_the_weights_of_scikit_learns_ridge():
    X, present, *_ = clips_with_concept()
    C = 0.05
    reference = Ridge(alpha=1 / C).fit(X, present.astype(float))
    (weights,) = ridge_hyperplanes(X, present[:, None], C).weights
    assert np.abs(weights - reference.coef_).max() < 1e-10


def test_a_bank_has_the_distances_of_one_concept_activation_vector_for_each_concept():
    X, first, *_ = clips_with_concept()
    present = np.column_stack([first, np.roll(first, 5)])
    bank = ConceptBank("ridge", C=0.1, concepts=["Body", "Look"]).fit(X, present)

    for column in (0, 1):
        cav = LinearCAV("ridge", C=0.1).fit(X, present[:, column])
        assert np.abs(bank.distances(X)[:, column] - cav.decision_function(X)).max() < 1e-10
    assert bank.get_feature_names_out().tolist() == ["Body", "Look"]
    assert np.allclose(bank.transform(X).mean(axis=0), 0)
    assert np.allclose(bank.transform(X).std(axis=0), 1)


def test_a_concept_is_learnt_without_the_clips_whose_presence_is_nan():
    X, present, *_ = clips_with_concept()
    labels = present.astype(float)
    labels[::3] = np.nan
    is_used = ~np.isnan(labels)
    hyperplanes = ConceptBank(C=0.1).fit(X, labels).hyperplanes_
    alone = LinearCAV(C=0.1).fit(X[is_used], labels[is_used])
    assert np.allclose(hyperplanes.weights[0] / hyperplanes.norms[0], alone.direction_)


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_a_bank_do_not_depend_on_the_number_of_threads(kind):
    X, present, *_ = clips_with_concept()
    values = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads, user_api="blas"):
            values.append(ConceptBank(kind).fit_transform(X, present))
    assert values[0].tobytes() == values[1].tobytes()


def test_a_constant_concept_and_names_that_do_not_fit_the_columns_are_refused():
    X, present, *_ = clips_with_concept()  # of 720 clips
    bank = ConceptBank(concepts=["Body", "Look"])
    with pytest.raises(ConceptError, match="Look is in all of the 720"):
        bank.fit(X, np.column_stack([present, np.ones(720)]))
    with pytest.raises(ConceptError, match="in none of the 720"):
        bank.fit(X, np.column_stack([present, np.zeros(720)]))
    with pytest.raises(ConceptError, match="Look"):
        bank.fit(X, present)


@pytest.fixture(scope="module")
def original_clips(shared_data):
    """Features of the original code's run, and the row of each clip."""
    with np.load(shared_data / "oracles" / "synth_features.npz", allow_pickle=False) as file:
        features, ids = file["features"], file["ids"]
    return features, {clip_id: row for row, clip_id in enumerate(ids.tolist())}


@pytest.mark.parametrize("concept", ["Body", "Look", "Exp_of__emotion"])
def test_a_svm_cav_has_the_decision_values_and_predictions_of_the_papers_code(
    shared_data, original_clips, concept
):
    X, row_of = original_clips
    with np.load(shared_data / "oracles" / "cav_svm_split0.npz", allow_pickle=False) as file:
        original = {
            name.removeprefix(f"{concept}/"): file[name]
            for name in file.files
            if name.startswith(f"{concept}/")
        }

    def features_of(side):
        return X[[row_of[clip_id] for clip_id in original[f"{side}/ids"].tolist()]]

    cav = LinearCAV(C=float(original["C"])).fit(features_of("train"), original["train/y"])
    for side in ("train", "val", "test"):
        clips = features_of(side)
        values = cav.decision_function(clips) * cav.norm_
        assert np.abs(values - original[f"{side}/decision_function"]).max() < 1e-6
        assert np.array_equal(cav.predict(clips), original[f"{side}/pred_predict"])
