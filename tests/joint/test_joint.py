"""Labs that exchange sums over films get the models that all their clips together would give, and no more.

`sums_of_all_labs` is made of the sums of three labs, `clips_of_all_labs` has their clips: each model of the
first is compared with scikit-learn's on the second.
"""

from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
from msgspec import structs
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import obygaze_models as om
from obygaze_features.store import open_store
from obygaze_models.concepts.cav_fitting import fit_hyperplanes
from obygaze_models.concepts.ridge_tuning import tuned_ridge
from obygaze_models.errors import ModelError
from obygaze_models.joint import gram, join, newton_step, read_sums, write_sums
from obygaze_models.joint.files import save_joint
from obygaze_models.joint.sums import RECORD, record_release
from tests.planted_models import corpus

LABS = {"a": ("f0", "f1", "f2"), "b": ("f3", "f4"), "c": ("f5",)}
CALM_VS_VIOLENT = "calm_violent"


@pytest.fixture(scope="module")
def three_labs(tmp_path_factory):
    """Three labs of uneven films, one with one film alone, which has no clip with a gun."""
    parts = {}
    for number, (lab, films) in enumerate(LABS.items()):
        folder = tmp_path_factory.mktemp(lab)
        store, manifest = corpus(folder, "films", films, seed=number, per_film=20 + 17 * number)
        if lab == "c":
            manifest = manifest.with_clips(without_concept(clip, "Gun") for clip in manifest)
        parts[lab] = om.load_dataset(store, manifest)
    return parts


def without_concept(clip, concept):
    """Take a concept's mark from a clip."""
    return replace(clip, concepts=tuple(name for name in clip.concepts if name != concept))


@dataclass(frozen=True)
class Pooled:
    """What one lab with everything would have: the task's clips of all labs."""

    X: np.ndarray  # features, [N, 8]
    y: np.ndarray  # 1 of violent clips, 0 of calm ones, [N]
    present: np.ndarray  # whether Gun and Dim light are marked, [N, 2]
    movies: np.ndarray  # the film of each clip, [N]

    @property
    def standardised_features(self):
        """Standardised features, [N, 8], as scikit-learn's models get them; models of sums standardise X."""
        return StandardScaler().fit_transform(self.X)


@pytest.fixture(scope="module")
def clips_of_all_labs(three_labs):
    """The clips of all three labs that are calm or violent, one after the other: those of the task."""
    parts = []
    for data in three_labs.values():
        in_task = np.isin(data.levels, ["calm", "violent"])
        part = Pooled(
            X=data.X[in_task].astype(np.float64),
            y=(data.levels[in_task] == "violent").astype(float),
            present=data.present.loc[in_task, ["Gun", "Dim light"]].to_numpy(),
            movies=data.movies[in_task],
        )
        parts.append(part)
    return Pooled(
        X=np.concatenate([part.X for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        present=np.concatenate([part.present for part in parts]),
        movies=np.concatenate([part.movies for part in parts]),
    )


N_CLIPS_OF_A_FILM_AT_LEAST = 10
"""Films with fewer clips are left out of sums. Each film of the three labs has 20 clips or more."""


def sums_of_lab(data, target=CALM_VS_VIOLENT, at=None):
    """Sum up a lab's clips as it would for other labs, which must not see the clips themselves.

    The sums are, for each film, the number of its clips, and means and products of their columns: features,
    label and concepts. With a model `at` they are derivatives of its loss instead, for a round of logistic
    regression.
    """
    return gram(data, target, least=N_CLIPS_OF_A_FILM_AT_LEAST, at=at)


@pytest.fixture(scope="module")
def sums_of_all_labs(three_labs):
    """Sums of the three labs, joined: what models are computed from, without the clips."""
    return join([sums_of_lab(data) for data in three_labs.values()])


def assert_equal_to_eight_digits(result, expected):
    """Compare two arrays."""
    np.testing.assert_allclose(result, expected, rtol=1e-8, atol=1e-8)


# --- joint is pooled
# ---------------------------------------------------------------------------
def test_joint_models_standardise_features_by_mean_and_deviation_of_all_clips(
    sums_of_all_labs, clips_of_all_labs
):
    """`sums_of_all_labs` is made of the sums of three labs, `clips_of_all_labs` has all their clips."""
    scaler = StandardScaler().fit(clips_of_all_labs.X)

    planes = sums_of_all_labs.linear(penalty=1.0)

    assert_equal_to_eight_digits(planes.mean, scaler.mean_)
    assert_equal_to_eight_digits(planes.scale, scaler.scale_)


def test_a_constant_feature_is_not_divided_by_its_deviation_and_features_far_from_zero_are(three_labs):
    """A constant feature has the deviation 0, by which nothing can be divided: its scale is 1.

    The first feature is 7 in all clips of lab a. All others are moved by 100, so that their deviations are
    small beside them, and must not be taken for 0. The scales are those of StandardScaler on the clips.
    """
    data = three_labs["a"]
    X = data.X + np.float32(100)
    X[:, 0] = 7
    in_task = np.isin(data.levels, ["calm", "violent"])
    scaler = StandardScaler().fit(X[in_task])
    assert scaler.scale_[0] == 1

    sums = join([sums_of_lab(replace(data, X=X))])
    linear_model = sums.linear(penalty=1.0)

    assert_equal_to_eight_digits(linear_model.scale, scaler.scale_)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 300.0])
def test_ridge_regression_on_sums_is_that_of_scikit_learn_on_all_clips(
    sums_of_all_labs, clips_of_all_labs, penalty
):
    """Three labs exchange counts, means and products of their films, and none of their clips.

    The ridge regression that follows from these sums has the weights and scores of scikit-learn's on the
    clips of all labs. Scikit-learn gets standardised features; the model of sums standardises them itself.
    """
    expected = Ridge(alpha=penalty).fit(clips_of_all_labs.standardised_features, clips_of_all_labs.y)

    linear_model = sums_of_all_labs.linear(penalty=penalty)

    assert_equal_to_eight_digits(linear_model.weights[0], expected.coef_)
    scores = linear_model.decision_function(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(scores, expected.predict(clips_of_all_labs.standardised_features))


def test_least_squares_on_sums_is_that_of_numpy_on_all_clips(sums_of_all_labs, clips_of_all_labs):
    """Three labs exchange counts, means and products of their films, and none of their clips.

    A linear model that follows from these sums without a penalty has the weights and scores of numpy's least
    squares on the clips of all labs. As one feature is constant, many weights fit as well; of these, both
    take the shortest vector.
    """
    X_and_ones = np.column_stack([clips_of_all_labs.standardised_features, np.ones(len(clips_of_all_labs.y))])
    weights_and_intercept = np.linalg.lstsq(X_and_ones, clips_of_all_labs.y, rcond=None)[0]

    linear_model = sums_of_all_labs.linear(penalty=0.0)

    assert_equal_to_eight_digits(linear_model.weights[0], weights_and_intercept[:-1])
    scores = linear_model.decision_function(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(scores, X_and_ones @ weights_and_intercept)


def test_a_concept_that_no_clip_has_cannot_be_learnt(sums_of_all_labs):
    """No clip of the three labs has the third concept, Shouting."""
    assert sums_of_all_labs.about.concepts[:3] == ["Gun", "Dim light", "Shouting"]
    assert sums_of_all_labs.learnable() == ("Gun", "Dim light")


def test_ridge_cavs_on_sums_are_those_on_all_clips(sums_of_all_labs, clips_of_all_labs):
    """A CAV of a concept is a hyperplane, here fitted by ridge regression of the concept's presence.

    The CAVs of Gun and Dim light that follow from the sums of three labs are those on the clips of all labs.
    Fits on clips get standardised features, and C, the inverse of the penalty.
    """
    penalty = 10.0
    expected = fit_hyperplanes(
        clips_of_all_labs.standardised_features,
        clips_of_all_labs.present.astype(float),
        names=("Gun", "Dim light"),
        kind="ridge",
        C=1 / penalty,
    )

    cavs = sums_of_all_labs.cav(penalty=penalty)

    assert_equal_to_eight_digits(cavs.weights, expected.weights)
    assert_equal_to_eight_digits(cavs.intercepts, expected.intercepts)
    assert_equal_to_eight_digits(
        cavs.distances(clips_of_all_labs.X), expected.distances(clips_of_all_labs.standardised_features)
    )


def sums_of_three_films_with_gun_in(n_clips_with_gun, joint):
    """Plant sums of three films of ten clips each, so many of which have a gun and no other concept.

    The mean of a concept's column is the share of clips that are marked with it.
    """
    three_films = joint.without(joint.about.movies[3:]).sums
    gun = joint.about.column("Gun")
    assert joint.about.concepts[0] == "Gun"  # so that the columns from `gun` on are those of all concepts
    means = three_films.means.copy()
    means[:, gun:] = 0
    means[:, gun] = np.array(n_clips_with_gun) / 10
    return replace(joint, sums=replace(three_films, counts=np.full(3, 10.0), means=means))


@pytest.mark.parametrize(
    ("n_clips_with_gun", "is_learnable"),
    [
        pytest.param((1, 1, 0), True, id="in two films"),
        pytest.param((1, 0, 0), False, id="in one film alone"),
        pytest.param((10, 10, 9), False, id="absent from one film alone"),
        pytest.param((10, 9, 9), True, id="absent from two films"),
    ],
)
def test_a_concept_is_learnable_if_films_without_any_one_still_have_clips_with_and_without_the_concept(
    sums_of_all_labs, n_clips_with_gun, is_learnable
):
    """A penalty is chosen by leaving out one film at a time, so the other films must show the difference.

    Here three films have ten clips each, and in so many of each there is a gun. Guns in one film alone, or
    clips without a gun in one film alone, are gone when that film is left out.
    """
    joint = sums_of_three_films_with_gun_in(n_clips_with_gun, sums_of_all_labs)

    assert joint.learnable() == (("Gun",) if is_learnable else ())


def test_cavs_choose_the_penalty_with_the_least_error_on_films_left_out(sums_of_all_labs, clips_of_all_labs):
    """No penalty is given, so one is chosen for each concept: each film is predicted by a CAV of the others.

    Three labs exchange counts, means and products of their films, and none of their clips. On these sums the
    same penalties must win as on the clips of all labs: with the same error, and so the same hyperplanes.
    """
    chosen_on_all_clips = tuned_ridge(
        clips_of_all_labs.standardised_features,
        clips_of_all_labs.present.astype(bool),
        clips_of_all_labs.movies,
    )
    error_by_penalty_and_concept = chosen_on_all_clips.losses  # [penalties, concepts]
    least_error_of_each_concept = error_by_penalty_and_concept.min(axis=0)

    cavs = sums_of_all_labs.cav(penalty=None)

    error_of_each_cav = cavs.losses
    assert_equal_to_eight_digits(error_of_each_cav, least_error_of_each_concept)
    assert_equal_to_eight_digits(cavs.weights, chosen_on_all_clips.hyperplanes.weights)
    assert_equal_to_eight_digits(cavs.intercepts, chosen_on_all_clips.hyperplanes.intercepts)


def test_the_penalty_of_a_linear_model_can_be_chosen_on_two_films(sums_of_all_labs, clips_of_all_labs):
    """A penalty is chosen by the error on films left out, so that two films are the fewest: each is left out.

    The sums of three labs are reduced to the films f0 and f1. `tuned_ridge` chooses on the clips of these
    films: the error with the best penalty, and the weights, must be the same.
    """
    in_two_films = np.isin(clips_of_all_labs.movies, ["f0", "f1"])
    features = StandardScaler().fit_transform(clips_of_all_labs.X[in_two_films])
    labels = clips_of_all_labs.y[in_two_films, None] == 1
    expected = tuned_ridge(features, labels, clips_of_all_labs.movies[in_two_films])
    least_error = expected.losses.min(axis=0)  # of losses [penalties, 1]

    linear_model = sums_of_all_labs.without(["f2", "f3", "f4", "f5"]).linear(penalty=None)

    assert_equal_to_eight_digits(linear_model.losses, least_error)
    assert_equal_to_eight_digits(linear_model.weights, expected.hyperplanes.weights)


def test_a_concept_bottleneck_on_sums_is_that_on_all_clips(sums_of_all_labs, clips_of_all_labs):
    """A bottleneck decides by concept values alone, here distances of clips to the CAVs of concepts.

    It is computed from the sums of three labs, and must be the one that is computed here from their clips:

    1. Ridge CAVs are fitted, and each clip's distances to CAVs that were fitted without its film.
    2. The head is a ridge regression of the label on these distances, which are standardised. Its penalty is
       chosen on films left out, of five multiples of the mean eigenvalue.
    3. A clip is scored by the head on its distances to the CAVs of all films.
    """
    cavs = tuned_ridge(
        clips_of_all_labs.standardised_features,
        clips_of_all_labs.present.astype(bool),
        clips_of_all_labs.movies,
    )
    distances_without_own_film = cavs.distances

    scaler = StandardScaler().fit(distances_without_own_film)
    concept_values = scaler.transform(distances_without_own_film)
    is_positive = (clips_of_all_labs.y == 1)[:, None]
    (index_of_best_multiple,) = tuned_ridge(concept_values, is_positive, clips_of_all_labs.movies).chosen
    mean_eigenvalue = (concept_values**2).sum() / min(concept_values.shape)
    penalty = [100.0, 10.0, 1.0, 0.1, 0.01][index_of_best_multiple] * mean_eigenvalue
    expected_head = Ridge(alpha=penalty).fit(concept_values, clips_of_all_labs.y)

    distances_with_all_films = cavs.hyperplanes.distances(clips_of_all_labs.standardised_features)
    expected_scores = expected_head.predict(scaler.transform(distances_with_all_films))

    bottleneck = sums_of_all_labs.bottleneck()

    assert_equal_to_eight_digits(bottleneck.head.mean, scaler.mean_)
    assert_equal_to_eight_digits(bottleneck.head.scale, scaler.scale_)
    assert_equal_to_eight_digits(bottleneck.head.weights[0], expected_head.coef_)
    assert_equal_to_eight_digits(bottleneck.decision_function(clips_of_all_labs.X), expected_scores)


def test_a_model_after_a_film_is_taken_out_is_that_of_labs_that_never_gave_the_film(
    sums_of_all_labs, three_labs
):
    """A film may be withdrawn: then nothing of it may be left in a model, not even a rounding error.

    Lab c has the film f5 alone. When f5 is taken out of the sums of the labs a, b and c, the weights of a
    linear model are to the byte those of the sums of a and b.
    """
    sums_of_a_and_b = join([sums_of_lab(three_labs["a"]), sums_of_lab(three_labs["b"])])

    sums_without_f5 = sums_of_all_labs.without(["f5"])

    weights = sums_without_f5.linear().weights
    weights_of_a_and_b = sums_of_a_and_b.linear().weights
    assert weights.tobytes() == weights_of_a_and_b.tobytes()


@pytest.mark.parametrize("film", ["f0", "f5"])
def test_the_error_on_a_film_is_the_mean_squared_error_on_its_clips(
    sums_of_all_labs, clips_of_all_labs, film
):
    """The model knows f0 and does not know f5. It is fitted here to the clips of all films but f5."""
    is_known = clips_of_all_labs.movies != "f5"
    scaler = StandardScaler().fit(clips_of_all_labs.X[is_known])
    model = Ridge(alpha=1.0).fit(
        scaler.transform(clips_of_all_labs.X[is_known]), clips_of_all_labs.y[is_known]
    )
    of_film = clips_of_all_labs.movies == film
    residuals = model.predict(scaler.transform(clips_of_all_labs.X[of_film])) - clips_of_all_labs.y[of_film]

    model_without_f5 = sums_of_all_labs.without(["f5"]).linear(penalty=1.0)
    errors = sums_of_all_labs.film_errors(model_without_f5)

    assert_equal_to_eight_digits(errors[film], np.mean(residuals**2))


def rounds_of_logistic_regression(labs, joint, file):
    """Do rounds of all labs until one says that it is the last, at most ten; `file` then has its model.

    In a round each lab sums up losses at the model of the round before. The first of these is of one linear
    fit. Returned are the planes before a round, and its step, for each round.
    """
    planes = joint.linear(penalty=1.0)
    save_joint(joint, planes, file)

    rounds = []
    for _ in range(10):
        model = om.load_model(file)
        losses = join([sums_of_lab(data, at=model) for data in labs.values()])
        step = newton_step(losses, C=0.5)
        rounds.append((planes, step))
        planes = step.planes
        file.unlink()
        save_joint(losses, planes, file)
        if step.is_last:
            break
    return rounds


def test_labs_find_the_logistic_regression_on_all_their_clips_in_at_most_ten_rounds(
    sums_of_all_labs, three_labs, clips_of_all_labs, tmp_path
):
    """In each round three labs send the derivatives of their losses at the model of the round before.

    From these one step of Newton's method gives the next model, and says whether it is the last. That model
    is scikit-learn's on the clips of all labs, whose losses have the same weight C = .5. Scikit-learn gets
    standardised features; the model of the labs standardises them itself.
    """
    expected = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000).fit(
        clips_of_all_labs.standardised_features, clips_of_all_labs.y
    )

    rounds = rounds_of_logistic_regression(three_labs, sums_of_all_labs, tmp_path / "round.model")

    _, last_step = rounds[-1]
    assert last_step.is_last
    last_model = last_step.planes
    assert_equal_to_eight_digits(last_model.weights[0], expected.coef_[0])
    logits = expected.decision_function(clips_of_all_labs.standardised_features)
    assert_equal_to_eight_digits(last_model.decision_function(clips_of_all_labs.X)[:, 0], logits)
    penalty = 1 / 0.5  # the inverse of C
    assert last_model.penalties == [penalty]


def test_a_round_of_logistic_regression_says_how_much_it_changed_the_model(
    sums_of_all_labs, three_labs, tmp_path
):
    """The change is the largest change of a weight or intercept over the largest one afterwards."""
    for planes_before, step in rounds_of_logistic_regression(
        three_labs, sums_of_all_labs, tmp_path / "round.model"
    ):
        before = np.append(planes_before.weights, planes_before.intercepts)
        after = np.append(step.planes.weights, step.planes.intercepts)

        largest_change = np.abs(after - before).max() / np.abs(after).max()
        assert_equal_to_eight_digits(step.change, largest_change)


def test_the_card_of_a_logistic_regression_has_a_threshold_of_0_and_no_count_of_positives(
    sums_of_all_labs, three_labs, tmp_path
):
    """A logit of 0 is a probability of one half. Sums of losses do not say how many clips are positive."""
    rounds_of_logistic_regression(three_labs, sums_of_all_labs, tmp_path / "round.model")

    card = om.load_model(tmp_path / "round.model").card
    assert card.threshold == 0.0
    assert card.n_positives == 0


def test_sums_that_are_read_from_a_file_are_written_again_as_they_were(three_labs, tmp_path):
    """Each of three labs sums up the clips of its films, of which each needs ten clips at least."""
    for lab, data in three_labs.items():
        file = tmp_path / f"{lab}.sums"
        file_again = tmp_path / f"{lab}-again.sums"

        write_sums(sums_of_lab(data), file)
        write_sums(read_sums(file), file_again)

        assert file_again.read_bytes() == file.read_bytes()


def test_the_order_in_which_files_of_sums_are_joined_makes_no_difference(
    three_labs, sums_of_all_labs, tmp_path
):
    """The labs a, b and c write their sums to files, which are joined as c, a, b.

    `sums_of_all_labs` joins the same sums as a, b, c. Sums of floats depend on their order, so films are
    sorted before anything is added up: the films and, to the byte, the weights of CAVs are the same.
    """
    for lab, data in three_labs.items():
        write_sums(sums_of_lab(data), tmp_path / f"{lab}.sums")

    joined_as_c_a_b = join([read_sums(tmp_path / f"{lab}.sums") for lab in ("c", "a", "b")])

    assert sums_of_all_labs.about.movies == ["f0", "f1", "f2", "f3", "f4", "f5"]
    assert joined_as_c_a_b.about.movies == sums_of_all_labs.about.movies
    assert joined_as_c_a_b.cav().weights.tobytes() == sums_of_all_labs.cav().weights.tobytes()


def test_a_linear_model_of_sums_gives_clips_the_same_scores_after_saving_and_loading(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """The model is a ridge regression that follows from the sums of three labs, without their clips."""
    linear_model = sums_of_all_labs.linear()
    save_joint(sums_of_all_labs, linear_model, tmp_path / "joint.model")

    loaded = om.load_model(tmp_path / "joint.model")

    scores_before = linear_model.decision_function(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(loaded.logits(clips_of_all_labs.X), scores_before)


def test_the_card_of_a_linear_model_of_sums_says_how_it_was_trained_and_decides(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """A ridge regression of labels 0 and 1 calls a clip positive from a score of .5 on.

    The card has C, the inverse of the penalty, as models of scikit-learn do, and its metrics name the task.
    """
    linear_model = sums_of_all_labs.linear()
    save_joint(sums_of_all_labs, linear_model, tmp_path / "joint.model")

    card = om.load_model(tmp_path / "joint.model").card

    assert card.threshold == 0.5
    assert card.parameters["C"] == pytest.approx(1 / linear_model.penalties[0])
    assert card.n_positives == clips_of_all_labs.y.sum()
    assert [metric["task"] for metric in card.metrics] == [CALM_VS_VIOLENT]


@pytest.fixture
def loaded_joint_model(sums_of_all_labs, tmp_path):
    """A linear model of sums of the films f0 to f5 of three labs, after saving and loading."""
    save_joint(sums_of_all_labs, sums_of_all_labs.linear(), tmp_path / "joint.model")
    return om.load_model(tmp_path / "joint.model")


def test_a_joint_model_flags_clips_of_a_labs_film_as_trained_on(loaded_joint_model, three_labs):
    """The model was made of sums of the films f0 to f5 of three labs, and is asked about those of lab a."""
    store_of_lab_a = open_store(three_labs["a"].group._store.path)

    predicted = om.predict(loaded_joint_model, store_of_lab_a)

    assert set(loaded_joint_model.card.movies) == {"f0", "f1", "f2", "f3", "f4", "f5"}
    assert predicted.has("trained_on").all()


def test_a_joint_model_gives_no_probabilities(loaded_joint_model, three_labs):
    """A calibration makes probabilities p of scores. It needs scores of single clips, which sums don't have.

    Nor is there a distribution of clips to compare new ones with.
    """
    store_of_lab_a = open_store(three_labs["a"].group._store.path)

    predicted = om.predict(loaded_joint_model, store_of_lab_a)

    assert loaded_joint_model.calibration is None
    assert loaded_joint_model.out_of_distribution is None
    assert predicted.table["p"].isna().all()


def test_a_cav_of_sums_gives_clips_the_same_scores_after_saving_and_loading(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """The CAV of Gun follows from sums of three labs. A clip's score is its distance to the hyperplane."""
    cav = sums_of_all_labs.cav("Gun")
    save_joint(sums_of_all_labs, cav, tmp_path / "cav.model", concept="Gun")

    loaded = om.load_model(tmp_path / "cav.model")

    distances_before = cav.distances(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(loaded.logits(clips_of_all_labs.X), distances_before)


def test_the_card_of_a_cav_of_sums_says_how_it_was_trained_and_names_its_concept(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """The CAV of Gun parts clips at its hyperplane, where the distance is 0.

    The card has C, the inverse of the penalty, as models of scikit-learn do; positive clips are those with a
    gun.
    """
    cav = sums_of_all_labs.cav("Gun")
    save_joint(sums_of_all_labs, cav, tmp_path / "cav.model", concept="Gun")

    card = om.load_model(tmp_path / "cav.model").card

    has_gun = clips_of_all_labs.present[:, 0]
    assert card.threshold == 0.0
    assert card.parameters["C"] == pytest.approx(1 / cav.penalties[0])
    assert card.n_positives == has_gun.sum()
    assert [metric["task"] for metric in card.metrics] == ["Gun"]


def test_the_card_of_a_linear_model_of_a_concept_names_the_concept_as_its_target(three_labs, tmp_path):
    """Lab a sums up its clips with the presence of Gun as their label, in place of the level."""
    sums_of_gun = join([sums_of_lab(three_labs["a"], target="concept:Gun")])
    save_joint(sums_of_gun, sums_of_gun.linear(penalty=1.0), tmp_path / "linear.model")

    card = om.load_model(tmp_path / "linear.model").card

    assert card.target["concept"] == "Gun"


def test_the_card_of_a_linear_model_with_a_given_penalty_has_no_metrics(three_labs, tmp_path):
    """Metrics are errors on films left out, which are computed only to choose a penalty: here it is 1."""
    sums_of_gun = join([sums_of_lab(three_labs["a"], target="concept:Gun")])
    save_joint(sums_of_gun, sums_of_gun.linear(penalty=1.0), tmp_path / "linear.model")

    card = om.load_model(tmp_path / "linear.model").card

    assert card.metrics == ()


def test_a_film_of_few_clips_is_left_out_of_sums_and_named(three_labs):
    """A lab has the films f0, f1 and f2, of which f0 has four clips here; sums need ten clips of a film.

    Sums over few clips would come near to the clips themselves. The sums name f0 as left out, and count
    the clips of the two other films alone.
    """
    data = three_labs["a"]
    clips_of_f0 = np.flatnonzero(data.movies == "f0")
    other_clips = np.flatnonzero(data.movies != "f0")
    data_with_four_clips_of_f0 = data.take(np.sort([*clips_of_f0[:4], *other_clips]))

    sums = sums_of_lab(data_with_four_clips_of_f0)

    assert sums.about.movies == ["f1", "f2"]
    assert sums.about.left_out.keys() == {"f0"}
    assert sums.counts.min() >= N_CLIPS_OF_A_FILM_AT_LEAST
    assert f"{int(sums.counts.sum())} clips of 2 films" in repr(sums)


def test_films_that_all_have_too_few_clips_are_not_summed_up(three_labs):
    """Lab a has three films of 20 clips each, and sums are asked for of films of 1,000 clips or more."""
    with pytest.raises(ModelError, match="no film has 1000 clips"):
        gram(three_labs["a"], CALM_VS_VIOLENT, least=1000)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"group": None}, id="features of no store"),
        pytest.param({"modalities": ("another backbone",)}, id="features of several backbones"),
    ],
)
def test_only_features_of_one_backbone_of_a_store_are_summed_up(three_labs, change):
    """Sums say of which store and backbone their features are, as only the same features can be joined."""
    data = replace(three_labs["a"], **change)

    with pytest.raises(ModelError, match="sums are of the features of one backbone of one store"):
        sums_of_lab(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("backbone", "other"),
        ("provenance_sha256", "0" * 64),
        ("concepts", ["Gun"]),
        ("movies", ["f0", "f1"]),
        ("movies", ["F0", "f4"]),
    ],
    ids=["another backbone", "another provenance", "other concepts", "the same films", "in capitals"],
)
def test_sums_of_other_features_or_concepts_or_the_same_films_are_not_joined(three_labs, field, value):
    """Lab a has the films f0, f1 and f2, and lab b has f3 and f4. What the sums of b say of b is changed."""
    sums_of_a = sums_of_lab(three_labs["a"])
    sums_of_b = sums_of_lab(three_labs["b"])
    changed = replace(sums_of_b, about=structs.replace(sums_of_b.about, **{field: value}))

    with pytest.raises(ModelError):
        join([sums_of_a, changed])


def of_positive_clips_alone(labs):
    """Sums of the violent clips of lab b."""
    violent = labs["b"].take(labs["b"].levels == "violent")
    return join([gram(violent, CALM_VS_VIOLENT, least=5)])


def of_one_film(labs):
    """Sums of film f5 alone, in which there is no gun."""
    return join([sums_of_lab(labs["c"])])


@pytest.mark.parametrize(
    ("sums_of", "ask"),
    [
        pytest.param(
            of_positive_clips_alone,
            lambda sums: sums.linear(penalty=1.0),
            id="a model of positive clips alone",
        ),
        pytest.param(of_one_film, lambda sums: sums.linear(), id="a penalty chosen on one film"),
        pytest.param(of_one_film, lambda sums: sums.cav("Gun"), id="a concept that no clip has"),
        pytest.param(of_one_film, lambda sums: sums.cav("Rain"), id="an unknown concept"),
        pytest.param(of_one_film, lambda sums: sums.without(["f9"]), id="leaving out an unknown film"),
        pytest.param(of_one_film, lambda sums: sums.without(["f5"]), id="leaving out the only film"),
        pytest.param(of_one_film, newton_step, id="a Newton step of sums that are no losses"),
    ],
)
def test_what_sums_cannot_give_is_refused(three_labs, sums_of, ask):
    """The sums are of violent clips alone, the positive ones, or of one film, f5, in which there is no gun.

    A model needs clips of both classes; a penalty is chosen on films that are left out, which needs two.
    """
    sums = sums_of(three_labs)

    with pytest.raises(ModelError):
        ask(sums)


# Sums of films are `products` `[films, columns, columns]`, sums over clips of one column times another, each
# less its mean; `means` `[films, columns]`; and `counts` of clips. Columns are features, label and concepts.


def changed_products(sums, change):
    """Copy sums, and let a function change the copy's products in place."""
    products = sums.products.copy()
    change(products, sums.about.n_features, sums)
    return replace(sums, products=products)


def stretch_the_label(products, label, _sums):
    """Let the label go along with features as a label of 0 and 1 cannot."""
    products[:, :label, label] *= 1e6
    products[:, label, :label] *= 1e6


def contradict_among_three_columns(products, _label, _sums):
    """Let column 0 go along with 1, 1 with 2, and 0 against 2: each pair alone is possible."""
    for first, second, correlation in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        product = correlation * np.sqrt(products[:, first, first] * products[:, second, second])
        products[:, first, second] = products[:, second, first] = product


def correlate_two_faint_columns_beyond_1(products, _label, _sums):
    """Let two columns of tiny variance have a correlation of 9."""
    products[:, :2] = products[:, :, :2] = 0
    products[:, :2, :2] = np.array([[1.0, 9.0], [9.0, 1.0]]) * 1e-14


def remove_the_variance_of_the_label(products, label, _sums):
    """Let the label be constant, though its mean is neither 0 nor 1."""
    products[:, label, label] = 0
    products[:, label, :label] = products[:, :label, label] = 0


def let_minus_one_clip_have_label_and_concept(products, label, sums):
    """Let the number of clips that are positive and have the first concept be -1.

    For columns a and b of 0 and 1, their product around the means is sum(a b) - n mean(a) mean(b).
    """
    first_concept = label + 1
    n_with_both = -1
    product = n_with_both - sums.counts * sums.means[:, label] * sums.means[:, first_concept]
    products[:, label, first_concept] = products[:, first_concept, label] = product


@pytest.mark.parametrize(
    "make_impossible",
    [
        stretch_the_label,
        contradict_among_three_columns,
        correlate_two_faint_columns_beyond_1,
        remove_the_variance_of_the_label,
        let_minus_one_clip_have_label_and_concept,
    ],
)
def test_products_of_columns_that_contradict_each_other_are_refused(three_labs, make_impossible, tmp_path):
    """A lab sends, for each film and any two columns (features, label, concepts), their product over clips.

    That is the sum of one column times the other, each less its mean: a covariance times the number of clips.
    In a file products are made impossible: for instance, two columns get a correlation above 1. No clips have
    such sums, so that they are refused when they are read.
    """
    sums = sums_of_lab(three_labs["a"])
    file = tmp_path / "impossible.sums"
    write_sums(changed_products(sums, make_impossible), file)

    with pytest.raises(ModelError):
        read_sums(file)


def with_a_huge_mean_of_the_first_feature(means):
    """Return means of columns of which the first is larger than any feature."""
    means = means.copy()
    means[:, 0] *= 1e200
    return means


def with_asymmetric_columns_0_and_1(products):
    """Change the product of columns 0 and 1, and not that of 1 and 0, which is the same."""
    products = products.copy()
    products[:, 0, 1] *= 0.9
    return products


def assert_refused_when_read(sums, file):
    """Write sums to a file, as a lab that sends wrong ones would; they must not be read."""
    write_sums(sums, file)
    with pytest.raises(ModelError):
        read_sums(file)


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(lambda products: -products, id="negative"),
        pytest.param(lambda products: products + 1e300, id="huge"),
        pytest.param(with_asymmetric_columns_0_and_1, id="x times y is not y times x"),
        pytest.param(np.triu, id="half of them"),
        pytest.param(lambda products: products[:, :-1], id="a column less"),
    ],
)
def test_a_table_of_products_that_is_asymmetric_or_negative_or_huge_is_refused(
    three_labs, impossible, tmp_path
):
    """A lab sends, for each film, a table of the products of any two columns (features, label, concepts).

    The product of two columns is the sum over the film's clips of one times the other, each less its mean. So
    the table is symmetric, and on its diagonal are sums of squares, which are never negative. Here the file
    of lab a's sums has another table.
    """
    sums = sums_of_lab(three_labs["a"])

    assert_refused_when_read(replace(sums, products=impossible(sums.products)), tmp_path / "bad.sums")


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(with_a_huge_mean_of_the_first_feature, id="larger than any feature"),
        pytest.param(lambda means: means * np.nan, id="not a number"),
        pytest.param(lambda means: means + 2, id="of labels above 1"),
    ],
)
def test_means_that_features_and_labels_cannot_have_are_refused(three_labs, impossible, tmp_path):
    """A lab sends, for each film, the mean of each column over its clips: features, label and concepts.

    Features are of float32, so no mean is larger than the largest of these. A label is 0 or 1, so its mean is
    between them. Here the file of lab a's sums has other means.
    """
    sums = sums_of_lab(three_labs["a"])

    assert_refused_when_read(replace(sums, means=impossible(sums.means)), tmp_path / "bad.sums")


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(lambda counts: counts + 1e15, id="huge"),
        pytest.param(lambda counts: counts + 1, id="a clip more than the products have"),
        pytest.param(lambda counts: counts + 0.5, id="half a clip more"),
        pytest.param(lambda counts: counts * 0, id="no clips"),
    ],
)
def test_a_number_of_clips_that_contradicts_the_other_sums_is_refused(three_labs, impossible, tmp_path):
    """A lab sends, for each film, the number of its clips, and means and products of labels and concepts.

    Of these three, the numbers of positive clips can be computed back. With a wrong number of clips they are
    no whole numbers. Here the file of lab a's sums has another number of clips.
    """
    sums = sums_of_lab(three_labs["a"])

    assert_refused_when_read(replace(sums, counts=impossible(sums.counts)), tmp_path / "bad.sums")


def test_sums_of_more_clips_than_there_can_be_are_refused(three_labs, tmp_path):
    """Counts and products are those of the same clips, ten million times over."""
    sums = sums_of_lab(three_labs["a"])
    too_many = replace(sums, counts=sums.counts * 1e7, products=sums.products * 1e7)

    assert_refused_when_read(too_many, tmp_path / "bad.sums")


def test_sums_for_ridge_regression_that_come_with_a_model_to_start_from_are_refused(three_labs, tmp_path):
    """Sums for logistic regression have arrays "start_...": the model of the round before, where they start.

    Ridge regression needs no rounds and starts from no model: a file of its sums that has such an array was
    changed, or is of another program.
    """
    sums_for_ridge_regression = sums_of_lab(three_labs["a"])
    with_start = replace(sums_for_ridge_regression, start={"start_mean": np.zeros(3)})

    assert_refused_when_read(with_start, tmp_path / "bad.sums")


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["all negative", "all positive"])
def test_sums_of_films_in_which_all_clips_have_one_label_and_the_same_concepts_are_read(
    three_labs, share, tmp_path
):
    """A file of impossible sums is refused, but such films are possible.

    A lab sends means of columns: features, then the label, then concepts. Where all clips have the same label
    and concepts, their means are all 0 or all 1. They don't vary around their means, so that each product
    with one of these columns is 0.
    """
    sums = sums_of_lab(three_labs["a"])
    label = sums.about.column()
    label_and_concepts = slice(label, None)
    means = sums.means.copy()
    means[:, label_and_concepts] = share
    products = sums.products.copy()
    products[:, label_and_concepts, :] = 0
    products[:, :, label_and_concepts] = 0
    file = tmp_path / "alike.sums"

    write_sums(replace(sums, means=means, products=products), file)

    assert read_sums(file).about == sums.about


@pytest.mark.parametrize(
    "content",
    [b"", b"not sums", b"\x08\0\0\0\0\0\0\0{}      "],
    ids=["empty", "a text", "an empty header"],
)
def test_a_file_that_holds_no_sums_is_refused(tmp_path, content):
    """A file of sums begins with the length of its header in 8 bytes, and the header in JSON."""
    file = tmp_path / "x.sums"
    file.write_bytes(content)

    with pytest.raises(ModelError):
        read_sums(file)


# In a round of logistic regression a lab sends, for each film, the derivatives of its clips' logistic losses
# at the model of the round before. In its sums the gradients stand in `means`, and the curvatures (second
# derivatives) in `products`.


@pytest.fixture
def derivatives_at_linear_model(three_labs, sums_of_all_labs, tmp_path):
    """What lab a sends in a round of logistic regression that starts from a linear model of all labs.

    These are sums over clips, film by film: gradients and curvatures of logistic losses at that model.
    """
    save_joint(sums_of_all_labs, sums_of_all_labs.linear(penalty=1.0), tmp_path / "start.model")
    return sums_of_lab(three_labs["a"], at=om.load_model(tmp_path / "start.model"))


@pytest.fixture
def derivatives_where_all_p_are_half(three_labs, sums_of_all_labs, tmp_path):
    """What lab a sends in a round of logistic regression that starts from a model whose weights are all 0.

    Such a model gives each clip the probability p = .5. The curvature of a clip's loss in its logit is
    p (1 - p), which is then the largest that there is: 1/4.
    """
    linear_model = sums_of_all_labs.linear(penalty=1.0)
    without_weights = replace(
        linear_model, weights=0 * linear_model.weights, intercepts=0 * linear_model.intercepts
    )
    save_joint(sums_of_all_labs, without_weights, tmp_path / "start.model")
    return sums_of_lab(three_labs["a"], at=om.load_model(tmp_path / "start.model"))


def assert_read_as_they_were_written(derivatives, file):
    """Write gradients and curvatures of a lab's losses to a file, and compare those that are read from it."""
    write_sums(derivatives, file)

    read = read_sums(file)

    assert read.about == derivatives.about
    assert np.array_equal(read.gradients, derivatives.gradients)
    assert np.array_equal(read.curvatures, derivatives.curvatures)


def test_gradients_and_curvatures_of_a_labs_losses_are_read_as_they_were_written(
    derivatives_at_linear_model, tmp_path
):
    """Lab a sends them in a round of logistic regression that starts from a linear model of all labs."""
    assert_read_as_they_were_written(derivatives_at_linear_model, tmp_path / "a.sums")


def test_the_largest_curvatures_that_losses_can_have_are_read(derivatives_where_all_p_are_half, tmp_path):
    """A file with larger curvatures than clips can have is refused, and these are just possible.

    At a model of which all weights are 0, each clip of lab a has the probability p = .5, and its loss the
    largest curvature p (1 - p) that there is, 1/4.
    """
    assert_read_as_they_were_written(derivatives_where_all_p_are_half, tmp_path / "a.sums")


@pytest.mark.parametrize("factor", [-1.0, 1e9], ids=["negative", "huge"])
def test_negative_or_huge_curvatures_of_losses_are_refused(derivatives_at_linear_model, tmp_path, factor):
    """The curvature of a clip's logistic loss in its logit is p (1 - p): never negative, and at most 1/4.

    What lab a sends in a round of logistic regression is multiplied in its file.
    """
    derivatives = derivatives_at_linear_model
    changed = replace(derivatives, products=factor * derivatives.curvatures)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_twice_the_largest_curvatures_that_losses_can_have_are_refused(
    derivatives_where_all_p_are_half, tmp_path
):
    """At a model of which all weights are 0, each clip has the probability p = .5.

    There the curvature of its logistic loss, p (1 - p), is the largest that there is. Lab a says twice of it.
    """
    derivatives = derivatives_where_all_p_are_half
    changed = replace(derivatives, products=2.0 * derivatives.curvatures)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_gradients_of_losses_that_are_larger_than_the_number_of_clips_are_refused(
    derivatives_at_linear_model, tmp_path
):
    """The gradient of a clip's logistic loss by the intercept is p - y, which is between -1 and 1.

    So the sum over a film is at most its number of clips. Lab a says a thousand million more.
    """
    derivatives = derivatives_at_linear_model
    changed = replace(derivatives, means=derivatives.gradients + 1e9)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_the_error_on_a_labs_films_is_that_of_a_model_of_all_other_labs_films(
    sums_of_all_labs, clips_of_all_labs
):
    """Lab b has two of six films, f3 and f4. From sums, `lab_error` gives two mean squared errors on them.

    They are those of a ridge model of the four other films, as scikit-learn fits it on their clips, and of
    calling each clip by the mean label of the four films.
    """
    is_lab_b = np.isin(clips_of_all_labs.movies, ["f3", "f4"])
    y_of_lab_b = clips_of_all_labs.y[is_lab_b]
    y_of_others = clips_of_all_labs.y[~is_lab_b]
    scaler = StandardScaler().fit(clips_of_all_labs.X[~is_lab_b])
    model = Ridge(alpha=3.0).fit(scaler.transform(clips_of_all_labs.X[~is_lab_b]), y_of_others)
    predicted = model.predict(scaler.transform(clips_of_all_labs.X[is_lab_b]))

    error, error_of_mean = sums_of_all_labs.lab_error(["f3", "f4"], penalty=3.0)

    assert_equal_to_eight_digits(error, np.mean((predicted - y_of_lab_b) ** 2))
    assert_equal_to_eight_digits(error_of_mean, np.mean((y_of_others.mean() - y_of_lab_b) ** 2))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("movies", ["../x", "f1", "f2"]),
        ("movies", ["f\u202e0", "f1", "f2"]),
        ("movies", ["", "f1", "f2"]),
        ("movies", ["f0", "f0", "f1"]),
        ("provenance_sha256", "0" * 64),
        ("provenance", {}),
    ],
    ids=[
        "a film named by a path",
        "a film's name with a mark that turns text",
        "a film without a name",
        "a film twice",
        "another digest of the provenance",
        "no provenance",
    ],
)
def test_sums_of_films_or_a_provenance_that_no_model_may_have_are_refused(three_labs, tmp_path, field, value):
    """Sums come from other labs. One field of good sums, of the films f0, f1 and f2, is changed."""
    sums = sums_of_lab(three_labs["a"])
    bad_sums = replace(sums, about=structs.replace(sums.about, **{field: value}))
    write_sums(bad_sums, tmp_path / "bad.sums")

    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


# --- what sums reveal (`benchmarks/planted/sums.py` attacks them)
# ---------------------------------------------------------------------------
def release_sums(data, folder, n_clips_of_film_at_least=10):
    """Compute sums for another lab, and record in a folder's file `RECORD` which clips of a film are in them.

    Sums are refused if the record shows that they differ from earlier ones in few clips: the difference
    would reveal these clips.
    """
    sums = gram(data, CALM_VS_VIOLENT, least=n_clips_of_film_at_least)
    with record_release(data, sums, folder / RECORD):
        return sums


def n_records(folder):
    """Count the records of a folder: one line for each film whose sums were released."""
    return len((folder / RECORD).read_text("utf-8").splitlines())


def with_level(data, row, level):
    """Give a clip another level."""
    levels = data.levels.copy()
    levels[row] = level
    return replace(data, labels=replace(data.labels, levels=levels))


def with_concept_turned(data, row):
    """Mark a clip with the first concept, or take that mark away."""
    present = data.labels.present.copy()
    present[row, 0] = not present[row, 0]
    return replace(data, labels=replace(data.labels, present=present))


def without_clip(data, row):
    """Leave a clip out."""
    return data.take(np.delete(np.arange(len(data)), row))


def first_violent_clip(data):
    """Return the row of the first violent clip of film f0."""
    return np.flatnonzero((data.movies == "f0") & (data.levels == "violent"))[0]


def sums_of_features_times_label(sums, movie):
    """Return sum(x y) over a film's clips, of features x and the label y: [D].

    Sums have products around the means, sum((x - mean(x)) (y - mean(y))), which are
    sum(x y) - n mean(x) mean(y).
    """
    film = sums.about.movies.index(movie)
    label = sums.about.column()  # columns before it are features
    means_of_features = sums.means[film, :label]
    mean_label = sums.means[film, label]
    return sums.products[film, :label, label] + sums.counts[film] * means_of_features * mean_label


def test_the_difference_of_two_sums_would_reveal_the_features_of_a_clip(three_labs):
    """One clip of film f0 is violent (label 1) in the first sums, and calm (label 0) in the second.

    The clip adds its features times 1 to the first sum of features times labels, and nothing to the second,
    so that the two differ by its features. That is why sums that differ from earlier ones in few clips are
    refused, however many clips a film has.
    """
    data = three_labs["a"]
    clip = first_violent_clip(data)
    sums_with_clip_violent = sums_of_lab(data)
    sums_with_clip_calm = sums_of_lab(with_level(data, clip, "calm"))

    revealed = sums_of_features_times_label(sums_with_clip_violent, "f0") - sums_of_features_times_label(
        sums_with_clip_calm, "f0"
    )

    assert revealed == pytest.approx(data.X[clip], abs=1e-9)


@pytest.mark.parametrize(
    "change_a_clip",
    [lambda data, clip: with_level(data, clip, "calm"), without_clip, with_concept_turned],
    ids=["another level", "a clip less", "a concept more or less"],
)
def test_sums_that_differ_from_earlier_ones_in_a_clip_are_refused(three_labs, change_a_clip, tmp_path):
    """Lab a releases sums over its films f0, f1 and f2, and records for each film which clips are in them.

    Then one clip of f0 is changed: the difference to the earlier sums would reveal what this clip has. So
    the new sums are refused, and nothing more is recorded.
    """
    data = three_labs["a"]
    release_sums(data, tmp_path)
    assert n_records(tmp_path) == 3

    changed_data = change_a_clip(data, first_violent_clip(data))
    with pytest.raises(ModelError, match="f0"):
        release_sums(changed_data, tmp_path)

    assert n_records(tmp_path) == 3


def with_film_renamed(data, movie, new_name):
    """Call a film by another name."""
    movies = np.where(data.movies == movie, new_name, data.movies)
    return replace(data, labels=replace(data.labels, movies=movies))


def test_sums_are_compared_with_earlier_ones_of_the_film_if_its_name_is_in_other_case(three_labs, tmp_path):
    """Lab a releases sums of its films f0, f1 and f2, for which three records are kept.

    Then it calls f0 "F0", and one clip of that film has another level. The difference to the earlier sums of
    f0 would reveal this clip, so that the new sums are refused, and nothing more is recorded.
    """
    data = three_labs["a"]
    release_sums(data, tmp_path)
    data_with_a_change = with_level(data, first_violent_clip(data), "calm")
    renamed = with_film_renamed(data_with_a_change, "f0", "F0")

    with pytest.raises(ModelError, match="film F0 differs in 1 clip"):
        release_sums(renamed, tmp_path)

    assert n_records(tmp_path) == 3


def test_a_record_of_released_sums_names_the_positive_clips_of_a_film(three_labs, tmp_path):
    """Lab b has two films. The column of the label is called "", those of concepts by their names."""
    data = three_labs["b"]

    release_sums(data, tmp_path, n_clips_of_film_at_least=2)

    first_line, _second_line = (tmp_path / RECORD).read_text("utf-8").splitlines()
    record = msgspec.json.decode(first_line)
    is_positive = (data.movies == record["movie"]) & (data.levels == "violent")
    assert record["columns"][""] == sorted(data.clip_ids[is_positive])


def test_each_set_of_clips_of_a_film_whose_sums_are_released_is_recorded_once(three_labs, tmp_path):
    """Lab b releases sums of its films f3 and f4, and then sums without half of the clips of f3.

    Half of the clips are so many that the difference reveals none of them: both may be released. There
    are then two records of f3, of all clips and of half of them, and one of f4. When both sums are released
    again, nothing is new, and no record is added.
    """
    data = three_labs["b"]
    rows_of_f3 = np.flatnonzero(data.movies == "f3")
    data_with_half_of_f3 = without_clip(data, rows_of_f3[: len(rows_of_f3) // 2])

    release_sums(data, tmp_path, n_clips_of_film_at_least=2)
    assert n_records(tmp_path) == 2  # f3 and f4
    release_sums(data_with_half_of_f3, tmp_path, n_clips_of_film_at_least=2)
    assert n_records(tmp_path) == 3  # and the half of f3

    release_sums(data, tmp_path, n_clips_of_film_at_least=2)
    release_sums(data_with_half_of_f3, tmp_path, n_clips_of_film_at_least=2)
    assert n_records(tmp_path) == 3


def test_sums_are_not_compared_with_earlier_ones_of_features_that_were_pooled_otherwise(three_labs, tmp_path):
    """Sums that differ from earlier ones in one clip are refused: the difference would reveal its features.

    Lab a first releases sums of features that are means over frames. Then it changes one clip's level, and
    releases sums of features that are maxima over frames. The difference of such sums reveals nothing.
    """
    data = three_labs["a"]
    release_sums(data, tmp_path)
    data_with_a_change = with_level(data, first_violent_clip(data), "calm")

    release_sums(replace(data_with_a_change, pool="max"), tmp_path)

    assert n_records(tmp_path) == 2 * 3  # of three films, for either kind of features


def test_a_damaged_record_stops_and_is_named(three_labs, tmp_path):
    """Without the record nobody knows which sums were released."""
    (tmp_path / RECORD).write_text("{}\n", "utf-8")

    with pytest.raises(ModelError, match=RECORD):
        release_sums(three_labs["a"], tmp_path)
