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
    def standardised(self):
        """Standardised features, [N, 8]."""
        return StandardScaler().fit_transform(self.X)


@pytest.fixture(scope="module")
def clips_of_all_labs(three_labs):
    """The clips of all three labs."""
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


@pytest.fixture(scope="module")
def sums_of_all_labs(three_labs):
    """Sums of the three labs, joined."""
    return join([gram(data, CALM_VS_VIOLENT, least=10) for data in three_labs.values()])


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


def test_constant_features_are_not_scaled_and_those_far_from_zero_are(three_labs):
    """Features of one lab are moved by 100, the first is 7 for all clips. StandardScaler does the same."""
    data = three_labs["a"]
    X = data.X + np.float32(100)
    X[:, 0] = 7
    in_task = np.isin(data.levels, ["calm", "violent"])
    scaler = StandardScaler().fit(X[in_task])

    sums = join([gram(replace(data, X=X), CALM_VS_VIOLENT, least=10)])
    planes = sums.linear(penalty=1.0)

    assert_equal_to_eight_digits(planes.scale, scaler.scale_)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 300.0])
def test_ridge_regression_is_that_of_scikit_learn_on_all_clips(sums_of_all_labs, clips_of_all_labs, penalty):
    """`sums_of_all_labs` is made of the sums of three labs, `clips_of_all_labs` has all their clips."""
    expected = Ridge(alpha=penalty).fit(clips_of_all_labs.standardised, clips_of_all_labs.y)

    planes = sums_of_all_labs.linear(penalty=penalty)

    assert_equal_to_eight_digits(planes.weights[0], expected.coef_)
    scores = planes.decision_function(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(scores, expected.predict(clips_of_all_labs.standardised))


def test_least_squares_is_that_of_all_clips(sums_of_all_labs, clips_of_all_labs):
    """Without a penalty many solutions are as good, as one feature is constant: the shortest is taken."""
    X_and_ones = np.column_stack([clips_of_all_labs.standardised, np.ones(len(clips_of_all_labs.y))])
    weights_and_intercept = np.linalg.lstsq(X_and_ones, clips_of_all_labs.y, rcond=None)[0]

    planes = sums_of_all_labs.linear(penalty=0.0)

    assert_equal_to_eight_digits(planes.weights[0], weights_and_intercept[:-1])
    scores = planes.decision_function(clips_of_all_labs.X)[:, 0]
    assert_equal_to_eight_digits(scores, X_and_ones @ weights_and_intercept)


def test_a_concept_that_no_clip_has_cannot_be_learnt(sums_of_all_labs):
    """No clip of the three labs has the third concept, Shouting."""
    assert sums_of_all_labs.about.concepts[:3] == ["Gun", "Dim light", "Shouting"]
    assert sums_of_all_labs.learnable() == ("Gun", "Dim light")


def test_a_ridge_cav_is_that_of_all_clips(sums_of_all_labs, clips_of_all_labs):
    """There are sums of three labs, and all their clips; C is the inverse of the penalty."""
    present = clips_of_all_labs.present.astype(float)
    expected = fit_hyperplanes(
        clips_of_all_labs.standardised, present, names=("Gun", "Dim light"), kind="ridge", C=1 / 10
    )

    planes = sums_of_all_labs.cav(penalty=10.0)

    assert_equal_to_eight_digits(planes.weights, expected.weights)
    assert_equal_to_eight_digits(planes.intercepts, expected.intercepts)
    assert_equal_to_eight_digits(
        planes.distances(clips_of_all_labs.X), expected.distances(clips_of_all_labs.standardised)
    )


@pytest.mark.parametrize(
    ("marked_of_ten", "is_learnable"),
    [((1, 1, 0), True), ((1, 0, 0), False), ((10, 10, 9), False), ((10, 9, 9), True)],
    ids=["in two films", "in one film alone", "absent from a clip of one film alone", "absent in two films"],
)
def test_a_concept_can_be_learnt_if_it_varies_whichever_film_is_left_out(
    sums_of_all_labs, marked_of_ten, is_learnable
):
    """Three films of ten clips each, in some of which the first concept is marked, and no other is.

    The sums of films have the share of clips in which a concept is marked, in columns behind those of
    features and of the label.
    """
    three_films = sums_of_all_labs.without(sums_of_all_labs.about.movies[3:]).sums
    means = three_films.means.copy()
    first_concept = sums_of_all_labs.about.n_features + 1
    means[:, first_concept:] = 0
    means[:, first_concept] = np.array(marked_of_ten) / 10
    planted = replace(sums_of_all_labs, sums=replace(three_films, counts=np.full(3, 10.0), means=means))

    learnable = planted.learnable()

    assert learnable == ((sums_of_all_labs.about.concepts[0],) if is_learnable else ())


def test_cavs_choose_the_penalty_with_the_least_error_on_films_left_out(sums_of_all_labs, clips_of_all_labs):
    """No penalty is given, so one is chosen for each concept: each film is predicted by a CAV of the others.

    `sums_of_all_labs` has only the sums of three labs. It must find the losses, least errors on films left
    out, and the planes of CAVs that are found here on all clips of these labs, `clips_of_all_labs`.
    """
    chosen_on_all_clips = tuned_ridge(
        clips_of_all_labs.standardised, clips_of_all_labs.present.astype(bool), clips_of_all_labs.movies
    )
    error_by_penalty_and_concept = chosen_on_all_clips.losses  # [penalties, concepts]
    least_error_of_each_concept = error_by_penalty_and_concept.min(axis=0)

    cavs = sums_of_all_labs.cav(penalty=None)

    assert_equal_to_eight_digits(cavs.losses, least_error_of_each_concept)
    assert_equal_to_eight_digits(cavs.weights, chosen_on_all_clips.hyperplanes.weights)
    assert_equal_to_eight_digits(cavs.intercepts, chosen_on_all_clips.hyperplanes.intercepts)


def test_a_penalty_can_be_chosen_on_two_films(sums_of_all_labs, clips_of_all_labs):
    """Two films are the fewest: each is left out once. All but the first two are taken out of the sums.

    The expected losses, errors on films left out, and planes are those of the clips of these two films.
    """
    two_films = sums_of_all_labs.about.movies[:2]
    is_of_them = np.isin(clips_of_all_labs.movies, two_films)
    features = StandardScaler().fit_transform(clips_of_all_labs.X[is_of_them])
    labels = clips_of_all_labs.y[is_of_them, None] == 1
    expected = tuned_ridge(features, labels, clips_of_all_labs.movies[is_of_them])

    planes = sums_of_all_labs.without(sums_of_all_labs.about.movies[2:]).linear()

    assert_equal_to_eight_digits(planes.losses, expected.losses.min(axis=0))
    assert_equal_to_eight_digits(planes.weights, expected.hyperplanes.weights)


def test_a_bottleneck_is_that_of_all_clips(sums_of_all_labs, clips_of_all_labs):
    """It is computed here from all clips of the three labs.

    Ridge CAVs give distances, those of a clip by CAVs without its film; a ridge regression of the label on
    the standardised distances is the head. Its penalty is one of five multiples of the mean eigenvalue.
    """
    cavs = tuned_ridge(
        clips_of_all_labs.standardised, clips_of_all_labs.present.astype(bool), clips_of_all_labs.movies
    )
    distances_without_own_film = cavs.distances
    scaler = StandardScaler().fit(distances_without_own_film)
    values = scaler.transform(distances_without_own_film)
    chosen = tuned_ridge(values, (clips_of_all_labs.y == 1)[:, None], clips_of_all_labs.movies).chosen[0]
    mean_eigenvalue = (values**2).sum() / min(values.shape)
    penalty = [100.0, 10.0, 1.0, 0.1, 0.01][chosen] * mean_eigenvalue
    expected_head = Ridge(alpha=penalty).fit(values, clips_of_all_labs.y)
    values_with_all_films = scaler.transform(cavs.hyperplanes.distances(clips_of_all_labs.standardised))
    expected_scores = expected_head.predict(values_with_all_films)

    bottleneck = sums_of_all_labs.bottleneck()

    assert_equal_to_eight_digits(bottleneck.head.mean, scaler.mean_)
    assert_equal_to_eight_digits(bottleneck.head.scale, scaler.scale_)
    assert_equal_to_eight_digits(bottleneck.head.weights[0], expected_head.coef_)
    assert_equal_to_eight_digits(bottleneck.decision_function(clips_of_all_labs.X), expected_scores)


def test_sums_without_a_film_give_the_bytes_of_sums_that_never_had_it(sums_of_all_labs, three_labs):
    """Lab c has the film f5 alone, so that without it the sums are those of the labs a and b."""
    sums_of_a_and_b = join(
        [gram(three_labs["a"], CALM_VS_VIOLENT, least=10), gram(three_labs["b"], CALM_VS_VIOLENT, least=10)]
    )

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
        losses = join([gram(data, CALM_VS_VIOLENT, least=10, at=model) for data in labs.values()])
        step = newton_step(losses, C=0.5)
        rounds.append((planes, step))
        planes = step.planes
        file.unlink()
        save_joint(losses, planes, file)
        if step.is_last:
            break
    return rounds


def test_logistic_regression_is_reached_in_a_few_rounds(
    sums_of_all_labs, three_labs, clips_of_all_labs, tmp_path
):
    """Three labs sum up their losses in at most ten rounds; the last round says that it is the last.

    Its model is that of scikit-learn on the clips of all labs, with the same weight C of losses.
    """
    expected = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000).fit(
        clips_of_all_labs.standardised, clips_of_all_labs.y
    )

    rounds = rounds_of_logistic_regression(three_labs, sums_of_all_labs, tmp_path / "round.model")

    _, last_step = rounds[-1]
    planes = last_step.planes
    assert last_step.is_last
    assert_equal_to_eight_digits(planes.weights[0], expected.coef_[0])
    logits = expected.decision_function(clips_of_all_labs.standardised)
    assert_equal_to_eight_digits(planes.decision_function(clips_of_all_labs.X)[:, 0], logits)
    assert planes.penalties == [1 / 0.5]


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

        write_sums(gram(data, CALM_VS_VIOLENT, least=10), file)
        write_sums(read_sums(file), file_again)

        assert file_again.read_bytes() == file.read_bytes()


def test_sums_in_files_are_joined_in_any_order(three_labs, sums_of_all_labs, tmp_path):
    """`sums_of_all_labs` has the sums of the labs a, b and c, joined in this order."""
    for lab, data in three_labs.items():
        write_sums(gram(data, CALM_VS_VIOLENT, least=10), tmp_path / f"{lab}.sums")

    c_a_b = join([read_sums(tmp_path / f"{lab}.sums") for lab in ("c", "a", "b")])

    assert sums_of_all_labs.about.movies == ["f0", "f1", "f2", "f3", "f4", "f5"]
    assert c_a_b.about.movies == sums_of_all_labs.about.movies
    assert c_a_b.cav().weights.tobytes() == sums_of_all_labs.cav().weights.tobytes()


def test_a_linear_model_in_a_file_scores_clips_as_the_planes_that_were_saved(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """Its card states C, the inverse of the penalty, as scikit-learn does."""
    planes = sums_of_all_labs.linear()
    save_joint(sums_of_all_labs, planes, tmp_path / "joint.model")

    model = om.load_model(tmp_path / "joint.model")

    assert_equal_to_eight_digits(
        model.logits(clips_of_all_labs.X), planes.decision_function(clips_of_all_labs.X)[:, 0]
    )
    assert model.card.threshold == 0.5
    assert model.card.parameters["C"] == pytest.approx(1 / planes.penalties[0])
    assert model.card.n_positives == clips_of_all_labs.y.sum()
    assert [metric["task"] for metric in model.card.metrics] == [CALM_VS_VIOLENT]


def test_a_joint_model_in_a_file_knows_its_films_and_gives_no_probabilities(
    sums_of_all_labs, three_labs, tmp_path
):
    """Without a calibration there is no probability (column p); all films of the labs were trained on."""
    save_joint(sums_of_all_labs, sums_of_all_labs.linear(), tmp_path / "joint.model")

    model = om.load_model(tmp_path / "joint.model")
    predicted = om.predict(model, open_store(three_labs["a"].group._store.path))

    assert set(model.card.movies) == {"f0", "f1", "f2", "f3", "f4", "f5"}
    assert model.calibration is None
    assert model.out_of_distribution is None
    assert predicted.table["p"].isna().all()
    assert predicted.has("trained_on").all()


def test_a_cav_in_a_file_scores_clips_as_the_plane_that_was_saved_and_names_its_concept(
    sums_of_all_labs, clips_of_all_labs, tmp_path
):
    """Its card states C, the inverse of the penalty, as scikit-learn does. Gun is the first concept."""
    planes = sums_of_all_labs.cav("Gun")
    save_joint(sums_of_all_labs, planes, tmp_path / "cav.model", concept="Gun")

    cav = om.load_model(tmp_path / "cav.model")

    assert_equal_to_eight_digits(cav.logits(clips_of_all_labs.X), planes.distances(clips_of_all_labs.X)[:, 0])
    assert cav.card.threshold == 0.0
    assert cav.card.parameters["C"] == pytest.approx(1 / planes.penalties[0])
    assert cav.card.n_positives == clips_of_all_labs.present[:, 0].sum()
    assert [metric["task"] for metric in cav.card.metrics] == ["Gun"]


def test_a_linear_model_of_a_concept_in_a_file_names_it_as_its_target(three_labs, tmp_path):
    """The penalty is given and not chosen, so that there is no error on films left out to state."""
    sums_of_gun = join([gram(three_labs["a"], "concept:Gun", least=10)])
    save_joint(sums_of_gun, sums_of_gun.linear(penalty=1.0), tmp_path / "linear.model")

    model = om.load_model(tmp_path / "linear.model")

    assert model.card.target["concept"] == "Gun"
    assert model.card.metrics == ()


def test_films_of_few_clips_are_left_out_and_counted(three_labs):
    """Film f0 has four clips here, and sums need ten of a film."""
    data = three_labs["a"]
    is_kept = (data.movies != "f0") | (np.arange(len(data)) < 4)
    data_with_four_clips_of_f0 = data.take(np.flatnonzero(is_kept))

    sums = gram(data_with_four_clips_of_f0, CALM_VS_VIOLENT, least=10)

    assert sums.about.movies == ["f1", "f2"]
    assert sums.about.left_out.keys() == {"f0"}
    assert sums.counts.min() >= 10
    assert f"{int(sums.counts.sum())} clips of 2 films" in repr(sums)


@pytest.mark.parametrize(
    ("change", "least"),
    [({}, 1000), ({"group": None}, 10), ({"modalities": ("b",)}, 10)],
    ids=["films of few clips alone", "features of no store", "features of several stores"],
)
def test_clips_that_cannot_be_summed_up_are_refused(three_labs, change, least):
    """`least` is how many clips a film needs. Lab a has three films of 20 clips each.

    Sums say of which store their features are, and can be of one store alone.
    """
    data = replace(three_labs["a"], **change)

    with pytest.raises(ModelError):
        gram(data, CALM_VS_VIOLENT, least=least)


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
    sums_of_a = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    sums_of_b = gram(three_labs["b"], CALM_VS_VIOLENT, least=10)
    changed = replace(sums_of_b, about=structs.replace(sums_of_b.about, **{field: value}))

    with pytest.raises(ModelError):
        join([sums_of_a, changed])


def of_positive_clips_alone(labs):
    """Sums of the violent clips of lab b."""
    violent = labs["b"].take(labs["b"].levels == "violent")
    return join([gram(violent, CALM_VS_VIOLENT, least=5)])


def of_one_film(labs):
    """Sums of film f5 alone, in which there is no gun."""
    return join([gram(labs["c"], CALM_VS_VIOLENT, least=10)])


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


def let_label_and_concept_share_less_than_no_clip(products, label, sums):
    """Let the label and the first concept be in -1 clips together."""
    first_concept = label + 1
    in_both = -1 - sums.counts * sums.means[:, label] * sums.means[:, first_concept]  # around the means
    products[:, label, first_concept] = products[:, first_concept, label] = in_both


@pytest.mark.parametrize(
    "make_impossible",
    [
        stretch_the_label,
        contradict_among_three_columns,
        correlate_two_faint_columns_beyond_1,
        remove_the_variance_of_the_label,
        let_label_and_concept_share_less_than_no_clip,
    ],
)
def test_products_that_no_clips_can_have_are_refused(three_labs, make_impossible, tmp_path):
    """A lab sends, for each film, sums over clips of one column times another: features, label and concepts.

    In a file these products are made impossible: for instance, two columns go along more than a column with
    itself. Such sums are of no clips, and are refused when they are read.
    """
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    file = tmp_path / "impossible.sums"
    write_sums(changed_products(sums, make_impossible), file)

    with pytest.raises(ModelError):
        read_sums(file)


def multiplied_in_column_0(means):
    means = means.copy()
    means[:, 0] *= 1e200
    return means


def lopsided(products):
    """Change the product of columns 0 and 1, and not that of 1 and 0, which is the same."""
    products = products.copy()
    products[:, 0, 1] *= 0.9
    return products


def assert_refused_when_read(sums, file):
    write_sums(sums, file)
    with pytest.raises(ModelError):
        read_sums(file)


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(lambda products: -products, id="negative"),
        pytest.param(lambda products: products + 1e300, id="huge"),
        pytest.param(lopsided, id="x times y is not y times x"),
        pytest.param(np.triu, id="half of them"),
        pytest.param(lambda products: products[:, :-1], id="a column less"),
    ],
)
def test_sums_of_products_of_columns_that_no_clips_can_have_are_refused(three_labs, impossible, tmp_path):
    """A lab sends, for each film, the sum over its clips of each column (of features, labels) times each.

    Such a table is symmetric, and no sum of squares in it is negative. It is changed in a file.
    """
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)

    assert_refused_when_read(replace(sums, products=impossible(sums.products)), tmp_path / "bad.sums")


@pytest.mark.parametrize(
    "impossible",
    [
        pytest.param(multiplied_in_column_0, id="a huge one"),
        pytest.param(lambda means: means * np.nan, id="no numbers"),
        pytest.param(lambda means: means + 2, id="shifted by 2"),
    ],
)
def test_means_that_do_not_fit_the_products_are_refused(three_labs, impossible, tmp_path):
    """A lab sends, for each film, the mean of each column over its clips; it is changed in a file.

    A label is 0 or 1, and so is its mean between them.
    """
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)

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
def test_counts_that_do_not_fit_the_products_are_refused(three_labs, impossible, tmp_path):
    """A lab sends, for each film, the count of its clips; it is changed in a file."""
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)

    assert_refused_when_read(replace(sums, counts=impossible(sums.counts)), tmp_path / "bad.sums")


def test_sums_of_more_clips_than_there_can_be_are_refused(three_labs, tmp_path):
    """Counts and products are those of the same clips, ten million times over."""
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    too_many = replace(sums, counts=sums.counts * 1e7, products=sums.products * 1e7)

    assert_refused_when_read(too_many, tmp_path / "bad.sums")


def test_sums_of_no_round_that_have_the_start_of_one_are_refused(three_labs, tmp_path):
    """Only a round of logistic regression starts from the model of the round before."""
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    with_start = replace(sums, start={"start_mean": np.zeros(3)})

    assert_refused_when_read(with_start, tmp_path / "bad.sums")


@pytest.mark.parametrize("share", [0.0, 1.0], ids=["all negative", "all positive"])
def test_films_in_which_all_clips_have_one_label_and_the_same_concepts_are_read(three_labs, share, tmp_path):
    """Their means are 0 or 1 in the columns of label and concepts, and products around the means are 0."""
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    label = sums.about.n_features  # concepts are behind it
    means = sums.means.copy()
    means[:, label:] = share
    products = sums.products.copy()
    products[:, label:, :] = 0
    products[:, :, label:] = 0
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


# In a round of logistic regression a lab sums up its losses at the model of the round: `means` are gradients
# then, and `products` curvatures.


def losses_at(planes, labs, joint, folder):
    """Let lab a sum up its losses in a round of logistic regression that starts from these planes.

    In such sums, `means` hold gradients of the losses and `products` their curvatures.
    """
    save_joint(joint, planes, folder / "at.model")
    return gram(labs["a"], CALM_VS_VIOLENT, least=10, at=om.load_model(folder / "at.model"))


@pytest.fixture
def linear_model_of_all_labs(sums_of_all_labs):
    """Of a linear model of all labs."""
    return sums_of_all_labs.linear(penalty=1.0)


@pytest.fixture
def planes_that_know_nothing(linear_model_of_all_labs):
    """All weights are 0: each clip has probability one half, where a loss has its largest curvature."""
    return replace(
        linear_model_of_all_labs,
        weights=0 * linear_model_of_all_labs.weights,
        intercepts=0 * linear_model_of_all_labs.intercepts,
    )


def test_curvatures_and_gradients_of_clips_are_read(
    three_labs, sums_of_all_labs, linear_model_of_all_labs, tmp_path
):
    losses = losses_at(linear_model_of_all_labs, three_labs, sums_of_all_labs, tmp_path)
    write_sums(losses, tmp_path / "a.sums")

    assert read_sums(tmp_path / "a.sums").about == losses.about


def test_the_largest_possible_curvatures_are_read(
    three_labs, sums_of_all_labs, planes_that_know_nothing, tmp_path
):
    """Where all probabilities are one half, each loss has the largest curvature that there is."""
    losses = losses_at(planes_that_know_nothing, three_labs, sums_of_all_labs, tmp_path)
    write_sums(losses, tmp_path / "a.sums")

    assert read_sums(tmp_path / "a.sums").about == losses.about


@pytest.mark.parametrize("factor", [-1.0, 1e9], ids=["negative", "huge"])
def test_curvatures_that_no_clips_can_have_are_refused(
    three_labs, sums_of_all_labs, linear_model_of_all_labs, tmp_path, factor
):
    """The curvature of a logistic loss in its logit is p (1 - p): never negative, and at most a quarter."""
    losses = losses_at(linear_model_of_all_labs, three_labs, sums_of_all_labs, tmp_path)
    changed = replace(losses, products=factor * losses.products)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_twice_the_largest_possible_curvatures_are_refused(
    three_labs, sums_of_all_labs, planes_that_know_nothing, tmp_path
):
    """Where all probabilities are one half, each loss has the largest curvature that there is."""
    losses = losses_at(planes_that_know_nothing, three_labs, sums_of_all_labs, tmp_path)
    changed = replace(losses, products=2.0 * losses.products)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_huge_gradients_are_refused(three_labs, sums_of_all_labs, linear_model_of_all_labs, tmp_path):
    """The gradient of one clip's loss is at most its features."""
    losses = losses_at(linear_model_of_all_labs, three_labs, sums_of_all_labs, tmp_path)
    changed = replace(losses, means=losses.means + 1e9)

    assert_refused_when_read(changed, tmp_path / "a.sums")


def test_a_labs_error_is_that_of_a_model_of_all_others(sums_of_all_labs, clips_of_all_labs):
    """Lab b has the films f3 and f4. Beside it stands the error of the others' mean label."""
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
    sums = gram(three_labs["a"], CALM_VS_VIOLENT, least=10)
    bad_sums = replace(sums, about=structs.replace(sums.about, **{field: value}))
    write_sums(bad_sums, tmp_path / "bad.sums")

    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


# --- what sums reveal (`benchmarks/planted/sums.py` attacks them)
# ---------------------------------------------------------------------------
def release_sums(data, folder, least=10):
    """Compute sums, as for another lab, and record them in a folder's file `RECORD`."""
    sums = gram(data, CALM_VS_VIOLENT, least=least)
    with record_release(data, sums, folder / RECORD):
        return sums


def n_records(folder):
    """Count the records of films whose sums were released."""
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


def raw_products(sums):
    """Undo the centring of products: sums over clips of one column times another."""
    return sums.products + sums.counts[:, None, None] * sums.means[:, :, None] * sums.means[:, None]


def test_the_difference_of_two_sums_would_reveal_the_features_of_a_clip(three_labs):
    """One clip of f0, the first film, is violent (1) in the first sums and calm (0) in the second.

    The sums of features times the label differ by its features. That is why sums that differ from earlier
    ones in few clips are refused, whatever `least` is.
    """
    data = three_labs["a"]
    clip = first_violent_clip(data)
    before = raw_products(gram(data, CALM_VS_VIOLENT, least=10))
    after = raw_products(gram(with_level(data, clip, "calm"), CALM_VS_VIOLENT, least=10))

    label = data.X.shape[1]  # the column behind those of features
    difference_of_f0 = before[0] - after[0]
    revealed = difference_of_f0[:label, label]

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


def test_sums_of_a_film_in_another_spelling_are_compared_with_earlier_ones(three_labs, tmp_path):
    """f0 is F0 in the second manifest, in which one of its clips has another level."""
    data = three_labs["a"]
    release_sums(data, tmp_path)
    changed_data = with_level(data, first_violent_clip(data), "calm")
    movies = np.where(data.movies == "f0", "F0", data.movies)
    renamed = replace(changed_data, labels=replace(changed_data.labels, movies=movies))

    with pytest.raises(ModelError, match="film F0 differs in 1 clip"):
        release_sums(renamed, tmp_path)

    assert n_records(tmp_path) == 3


def test_a_record_of_released_sums_names_the_positive_clips_of_a_film(three_labs, tmp_path):
    """Lab b has two films. The column of the label is called "", those of concepts by their names."""
    data = three_labs["b"]

    release_sums(data, tmp_path, least=2)

    first_line, _second_line = (tmp_path / RECORD).read_text("utf-8").splitlines()
    record = msgspec.json.decode(first_line)
    is_positive = (data.movies == record["movie"]) & (data.levels == "violent")
    assert record["columns"][""] == sorted(data.clip_ids[is_positive])


def test_sums_that_differ_in_half_of_a_films_clips_are_released_and_recorded_once(three_labs, tmp_path):
    """Lab b has the films f3 and f4. The second sums lack half of the clips of f3, so f3 is recorded again.

    Both sums may be released again, and are not recorded again.
    """
    data = three_labs["b"]
    rows_of_f3 = np.flatnonzero(data.movies == "f3")
    data_of_half_f3 = without_clip(data, rows_of_f3[: len(rows_of_f3) // 2])

    release_sums(data, tmp_path, least=2)
    assert n_records(tmp_path) == 2
    release_sums(data_of_half_f3, tmp_path, least=2)
    assert n_records(tmp_path) == 3

    release_sums(data, tmp_path, least=2)
    release_sums(data_of_half_f3, tmp_path, least=2)
    assert n_records(tmp_path) == 3


def test_sums_of_other_features_may_differ_in_one_clip(three_labs, tmp_path):
    """Pooled by their maximum, features are others than by their mean: no difference reveals them."""
    data = three_labs["a"]
    release_sums(data, tmp_path)
    changed_data = with_level(data, first_violent_clip(data), "calm")
    changed_data_of_maxima = replace(changed_data, pool="max")

    release_sums(changed_data_of_maxima, tmp_path)

    assert n_records(tmp_path) == 6  # of three films, for either kind of features


def test_a_damaged_record_stops_and_is_named(three_labs, tmp_path):
    """Without the record nobody knows which sums were released."""
    (tmp_path / RECORD).write_text("{}\n", "utf-8")

    with pytest.raises(ModelError, match=RECORD):
        release_sums(three_labs["a"], tmp_path)
