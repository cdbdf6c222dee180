"""CAVs find what is planted, equal the reference solver, and say by name what can't be learnt."""

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


def planted(*, n_movies=12, n_per_movie=60, n_features=32, strength=2.0, film=1.5, bias=0.0, seed=0):
    """Move clips by `strength` along a unit direction when a concept is there, by `film` with their movie.

    Movies are moved at random, and differ in how often the concept is there. All are shifted by `bias` along
    the direction, so that the concept begins at bias + strength / 2.

    Returns features, presences, movies and the direction.
    """
    rng = np.random.default_rng(seed)
    movies = np.repeat(np.arange(n_movies), n_per_movie)
    axis = rng.normal(size=n_features)
    axis /= np.linalg.norm(axis)
    share_of_movie = rng.uniform(0.15, 0.45, n_movies)
    present = rng.random(movies.size) < share_of_movie[movies]
    X = rng.normal(size=(movies.size, n_features)) + (bias + strength * present[:, None]) * axis
    shift_of_movie = film * rng.normal(size=(n_movies, n_features)) / np.sqrt(n_features) * 2
    X += shift_of_movie[movies]
    return X, present, movies, axis


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_direction_is_recovered_with_its_sign_through_film_effects(kind):
    X, present, _, axis = planted(strength=3.0)
    cav = LinearCAV(kind, C=0.01).fit(X, present)
    assert cav.direction_ @ axis > 0.9
    assert np.linalg.norm(cav.direction_) == pytest.approx(1)
    assert cav.decision_function(X[present]).mean() > 0 > cav.decision_function(X[~present]).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [-20.0, 20.0])
def test_a_planted_bias_off_the_origin_is_recovered(kind, bias):
    X, present, _, axis = planted(strength=6.0, film=0.0, bias=bias)
    cav = LinearCAV(kind, C=1.0).fit(X, present)
    begins = -cav.offset_ / (cav.direction_ @ axis)
    assert begins == pytest.approx(bias + 3.0, abs=1.0)
    assert (cav.predict(X) == present).mean() > 0.97


@pytest.mark.parametrize("balanced", [True, False])
def test_the_decision_is_the_signed_distance_and_norm_gives_the_raw_value(balanced):
    X, present, *_ = planted()
    class_weight = "balanced" if balanced else None
    reference = SVC(kernel="linear", C=0.1, class_weight=class_weight).fit(X, present)
    raw_values = reference.decision_function(X)
    cav = LinearCAV(C=0.1, balanced=balanced).fit(X, present)
    distances = cav.decision_function(X)
    assert np.abs(distances - raw_values / np.linalg.norm(reference.coef_)).max() < 1e-6
    assert np.abs(distances * cav.norm_ - raw_values).max() < 1e-6


@pytest.mark.long  # for other seeds, sizes and penalties than those of the oracle below
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.1, 1.0, 10.0]), st.booleans())
def test_svms_on_a_shared_gram_matrix_equal_svc_one_by_one(seed, C, balanced):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8)).astype(np.float32)
    problems = []
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


def test_ridge_has_the_direction_of_scikit_learns():
    X, present, *_ = planted()
    C = 0.05
    reference = Ridge(alpha=1 / C).fit(X, present.astype(float))
    plane = ridge_hyperplanes(X, present[:, None], C)
    assert np.abs(plane.weights[0] - reference.coef_).max() < 1e-10


def test_a_bank_is_its_cavs_and_names_its_columns():
    X, first, *_ = planted()
    present = np.column_stack([first, np.roll(first, 5)])
    bank = ConceptBank("ridge", C=0.1, concepts=["Body", "Look"]).fit(X, present)
    distances = bank.distances(X)
    assert bank.get_feature_names_out().tolist() == ["Body", "Look"]
    for column in (0, 1):
        alone = LinearCAV("ridge", C=0.1).fit(X, present[:, column])
        assert np.abs(distances[:, column] - alone.decision_function(X)).max() < 1e-10
    assert np.allclose(bank.transform(X).mean(axis=0), 0)
    assert np.allclose(bank.transform(X).std(axis=0), 1)


def test_a_cav_is_fitted_without_its_unused_clips():
    X, present, *_ = planted()
    labels = present.astype(float)
    labels[::3] = np.nan
    is_used = ~np.isnan(labels)
    planes = ConceptBank(C=0.1).fit(X, labels).hyperplanes_
    alone = LinearCAV(C=0.1).fit(X[is_used], labels[is_used])
    assert np.allclose(planes.weights[0] / planes.norms[0], alone.direction_)


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_do_not_depend_on_the_number_of_threads(kind):
    X, present, *_ = planted()
    values = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads, user_api="blas"):
            values.append(ConceptBank(kind).fit_transform(X, present))
    assert values[0].tobytes() == values[1].tobytes()


@pytest.mark.parametrize(
    ("value", "words"), [(1.0, "Look is in all of the 720"), (0.0, "in none of the 720")]
)
def test_a_constant_concept_is_refused(value, words):
    X, present, *_ = planted()
    labels = np.column_stack([present, np.full(len(X), value)])
    with pytest.raises(ConceptError, match=words):
        ConceptBank(concepts=["Body", "Look"]).fit(X, labels)


def test_names_that_do_not_fit_the_columns_are_refused():
    X, present, *_ = planted()
    with pytest.raises(ConceptError, match="Look"):
        ConceptBank(concepts=["Body", "Look"]).fit(X, present)


@pytest.fixture(scope="module")
def synthetic(shared_data):
    """Features of the original code's run, and the row of each clip."""
    with np.load(shared_data / "oracles" / "synth_features.npz", allow_pickle=False) as file:
        features, ids = file["features"], file["ids"]
    return features, {clip_id: row for row, clip_id in enumerate(ids.tolist())}


@pytest.mark.parametrize("concept", ["Body", "Look", "Exp_of__emotion"])
def test_a_cav_has_the_originals_decision_values(shared_data, synthetic, concept):
    X, row_of = synthetic
    with np.load(shared_data / "oracles" / "cav_svm_split0.npz", allow_pickle=False) as file:
        oracle = {name: file[name] for name in file.files if name.startswith(f"{concept}/")}

    def clips_of(side):
        return X[[row_of[clip_id] for clip_id in oracle[f"{concept}/{side}/ids"].tolist()]]

    cav = LinearCAV(C=float(oracle[f"{concept}/C"])).fit(clips_of("train"), oracle[f"{concept}/train/y"])
    for side in ("train", "val", "test"):
        clips = clips_of(side)
        expected = oracle[f"{concept}/{side}/decision_function"]
        assert np.abs(cav.decision_function(clips) * cav.norm_ - expected).max() < 1e-6
        assert np.array_equal(cav.predict(clips), oracle[f"{concept}/{side}/pred_predict"])
