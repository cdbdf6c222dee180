"""CAVs find planted concepts, equal the reference solver, and say by name what can't be learnt."""

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
    """Each check of scikit-learn runs on each of our estimators: CAVs, banks and bottlenecks."""
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
def test_a_cav_points_along_the_planted_direction_towards_clips_with_the_concept(kind):
    """Clips with the concept lie 3 farther along a direction, among noise of standard deviation 1.

    Each film is moved at random, too, and must not turn the CAV away: its cosine with the direction is above
    .9, so that its sign is right. Clips with the concept have decisions above 0 on average, others below.
    """
    X, present, _movies, direction = clips_with_concept(strength=3.0)

    cav = LinearCAV(kind, C=0.01).fit(X, present)

    cosine = cav.direction_ @ direction
    assert cosine > 0.9
    assert np.linalg.norm(cav.direction_) == pytest.approx(1)
    assert cav.decision_function(X[present]).mean() > 0
    assert cav.decision_function(X[~present]).mean() < 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bias", [-20.0, 20.0])
def test_the_boundary_lies_halfway_between_clips_with_and_without_the_concept_far_from_the_origin(kind, bias):
    """Along the planted direction, clips without the concept lie about `bias`, those with it 6 farther."""
    X, present, _, direction = clips_with_concept(strength=6.0, film=0.0, bias=bias)

    cav = LinearCAV(kind, C=1.0).fit(X, present)

    # The point t * direction is on the boundary where t * (direction_ @ direction) + offset_ is 0.
    boundary = -cav.offset_ / (cav.direction_ @ direction)
    assert boundary == pytest.approx(bias + 6.0 / 2, abs=1.0)
    share_of_right_predictions = (cav.predict(X) == present).mean()
    assert share_of_right_predictions > 0.97


@pytest.mark.parametrize("balanced", [True, False])
def test_a_decision_is_the_signed_distance_to_the_boundary_and_times_norm_the_value_of_svc(balanced):
    """SVC of scikit-learn gives w @ x + b. Divided by the length of w, this is the distance."""
    X, present, *_ = clips_with_concept()
    class_weight = "balanced" if balanced else None
    reference = SVC(kernel="linear", C=0.1, class_weight=class_weight).fit(X, present)
    values_of_svc = reference.decision_function(X)
    length_of_w = np.linalg.norm(reference.coef_)

    cav = LinearCAV(C=0.1, balanced=balanced).fit(X, present)
    distances = cav.decision_function(X)

    assert np.abs(distances - values_of_svc / length_of_w).max() < 1e-6
    assert np.abs(distances * cav.norm_ - values_of_svc).max() < 1e-6


def clips_of_three_concepts(rng, C):
    """Each concept is known of 20 to 59 of 60 clips, and present in about 40 % of these."""
    problems = []
    for _ in range(3):
        n_clips = rng.integers(20, 60)
        rows = np.sort(rng.permutation(60)[:n_clips])
        present = rng.random(rows.size) < 0.4
        present[:2] = (True, False)  # both classes, whatever was drawn
        problems.append((rows, present, C))
    return problems


@pytest.mark.long
@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0.01, 0.1, 1.0, 10.0]), st.booleans())
def test_svms_of_several_concepts_that_are_fitted_together_equal_svc_on_each(seed, C, balanced):
    """Support vector machines of three concepts are fitted together for speed, each on its clips of 60.

    Their decision values are those of scikit-learn's SVC on one concept after the other. `C` is the weight of
    errors; `balanced` gives both classes the same weight.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 8)).astype(np.float32)
    problems = clips_of_three_concepts(rng, C)

    together = svm_hyperplanes(X, problems, balanced=balanced).decisions(X)

    for concept, (rows, present, _) in enumerate(problems):
        alone = SVC(kernel="linear", C=C, class_weight="balanced" if balanced else None)
        alone.fit(X[rows].astype(np.float64), present)
        assert np.abs(together[:, concept] - alone.decision_function(X)).max() < 1e-6


def test_ridge_has_the_weights_of_scikit_learns_ridge():
    """Our C is the inverse of the penalty that scikit-learn calls alpha: 0.05 = 1 / 20."""
    X, present, *_ = clips_with_concept()
    reference = Ridge(alpha=20).fit(X, present.astype(float))

    (weights,) = ridge_hyperplanes(X, present[:, None], C=0.05).weights

    assert np.abs(weights - reference.coef_).max() < 1e-10


def two_concepts():
    """Features of 720 clips, and the presences of two concepts: a planted one and one of other clips."""
    X, first, *_ = clips_with_concept()
    second = np.roll(first, 5)
    return X, np.column_stack([first, second])


def test_a_bank_has_the_distances_of_one_concept_activation_vector_for_each_concept():
    """A bank of two concepts gives each clip two distances, as two vectors that are fitted alone do."""
    X, present = two_concepts()

    distances = ConceptBank("ridge", C=0.1).fit(X, present).distances(X)

    first = LinearCAV("ridge", C=0.1).fit(X, present[:, 0])
    second = LinearCAV("ridge", C=0.1).fit(X, present[:, 1])
    assert np.abs(distances[:, 0] - first.decision_function(X)).max() < 1e-10
    assert np.abs(distances[:, 1] - second.decision_function(X)).max() < 1e-10


def test_the_values_of_a_bank_are_named_by_concept_and_standardised_on_the_training_clips():
    """Standardised values have the mean 0 and the standard deviation 1."""
    X, present = two_concepts()

    bank = ConceptBank("ridge", C=0.1, concepts=["Body", "Look"]).fit(X, present)
    values = bank.transform(X)

    assert bank.get_feature_names_out().tolist() == ["Body", "Look"]
    assert np.allclose(values.mean(axis=0), 0)
    assert np.allclose(values.std(axis=0), 1)


def test_a_concept_is_learnt_without_the_clips_whose_presence_is_nan():
    """Of every third clip it is not known whether the concept is there."""
    X, present, *_ = clips_with_concept()
    presences = present.astype(float)
    presences[::3] = np.nan
    is_known = ~np.isnan(presences)

    hyperplanes = ConceptBank(C=0.1).fit(X, presences).hyperplanes_

    of_known_clips = LinearCAV(C=0.1).fit(X[is_known], presences[is_known])
    direction = hyperplanes.weights[0] / hyperplanes.norms[0]
    assert np.allclose(direction, of_known_clips.direction_)


@pytest.mark.parametrize("kind", KINDS)
def test_the_values_of_a_bank_do_not_depend_on_the_number_of_threads(kind):
    """The bits are the same whether the linear algebra (BLAS) runs in one thread or in two."""
    X, present, *_ = clips_with_concept()

    with threadpool_limits(limits=1, user_api="blas"):
        values_of_one_thread = ConceptBank(kind).fit_transform(X, present)
    with threadpool_limits(limits=2, user_api="blas"):
        values_of_two_threads = ConceptBank(kind).fit_transform(X, present)

    assert values_of_one_thread.tobytes() == values_of_two_threads.tobytes()


def test_a_concept_that_is_in_all_clips_or_in_none_is_refused():
    """Look, the second concept, does not vary, so that nothing can be learnt of it."""
    X, present, *_ = clips_with_concept()  # of 720 clips
    bank = ConceptBank(concepts=["Body", "Look"])

    with pytest.raises(ConceptError, match="Look is in all of the 720"):
        bank.fit(X, np.column_stack([present, np.ones(720)]))
    with pytest.raises(ConceptError, match="in none of the 720"):
        bank.fit(X, np.column_stack([present, np.zeros(720)]))


def test_names_of_two_concepts_for_one_column_of_presences_are_refused():
    """The message names the concept without a column, Look."""
    X, present_of_one_concept, *_ = clips_with_concept()

    with pytest.raises(ConceptError, match="Look"):
        ConceptBank(concepts=["Body", "Look"]).fit(X, present_of_one_concept)


@pytest.fixture(scope="module")
def features_of_original_run(shared_data):
    """What the original code was run on: clip id -> features."""
    with np.load(shared_data / "oracles" / "synth_features.npz", allow_pickle=False) as file:
        return dict(zip(file["ids"].tolist(), file["features"], strict=True))


def read_original_run(path, concept):
    """Read what the original code recorded for a concept: its C, and ids, labels and values of each part."""
    prefix = f"{concept}/"
    with np.load(path, allow_pickle=False) as file:
        return {name.removeprefix(prefix): file[name] for name in file.files if name.startswith(prefix)}


@pytest.mark.parametrize("concept", ["Body", "Look", "Exp_of__emotion"])
def test_a_svm_cav_has_the_decision_values_and_predictions_of_the_papers_code(
    shared_data, features_of_original_run, concept
):
    """The published code was run once; its values of training, validation and test clips are kept.

    Its value is w @ x + b, which is our distance to the boundary times the length of w.
    """
    original = read_original_run(shared_data / "oracles" / "cav_svm_split0.npz", concept)

    def features_of(part):
        ids = original[f"{part}/ids"].tolist()
        return np.stack([features_of_original_run[clip_id] for clip_id in ids])

    cav = LinearCAV(C=float(original["C"])).fit(features_of("train"), original["train/y"])

    for part in ("train", "val", "test"):
        clips = features_of(part)
        values = cav.decision_function(clips) * cav.norm_
        assert np.abs(values - original[f"{part}/decision_function"]).max() < 1e-6
        assert np.array_equal(cav.predict(clips), original[f"{part}/pred_predict"])
