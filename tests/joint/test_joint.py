"""Labs that exchange sums over films get the models that all their clips together would give, and no more."""

from dataclasses import replace

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
from obygaze_models.joint.sums import RECORD, recorded
from tests.planted_models import corpus

LABS = {"a": ("f0", "f1", "f2"), "b": ("f3", "f4"), "c": ("f5",)}
TASK = "calm_violent"


@pytest.fixture(scope="module")
def labs(tmp_path_factory):
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
    return replace(clip, concepts=tuple(name for name in clip.concepts if name != concept))


@pytest.fixture(scope="module")
def together(labs):
    """What one lab with everything would have: features, labels, presences, movies of the task's clips."""
    X = []
    y = []
    present = []
    movies = []
    for data in labs.values():
        in_task = np.isin(data.levels, ["calm", "violent"])
        X.append(data.X[in_task].astype(np.float64))
        y.append((data.levels[in_task] == "violent").astype(float))
        present.append(data.present.loc[in_task, ["Gun", "Dim light"]].to_numpy())
        movies.append(data.movies[in_task])
    return np.concatenate(X), np.concatenate(y), np.concatenate(present), np.concatenate(movies)


@pytest.fixture(scope="module")
def joint(labs):
    return join([gram(data, TASK, least=10) for data in labs.values()])


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


# --- joint is pooled
# ---------------------------------------------------------------------------
def test_standardising_is_that_of_all_clips(joint, together):
    X, *_ = together
    scaler, planes = StandardScaler().fit(X), joint.linear(penalty=1.0)
    close(planes.mean, scaler.mean_)
    close(planes.scale, scaler.scale_)


def test_constant_features_are_not_scaled_and_those_far_from_zero_are(labs):
    data = labs["a"]
    X = data.X + np.float32(100)
    X[:, 0] = 7
    planes = join([gram(replace(data, X=X), TASK, least=10)]).linear(penalty=1.0)
    close(planes.scale, StandardScaler().fit(X[np.isin(data.levels, ["calm", "violent"])]).scale_)


@pytest.mark.parametrize("penalty", [1e-3, 1.0, 300.0])
def test_ridge_regression_is_scikit_learns_on_all_clips(joint, together, penalty):
    X, y, _, _ = together
    Z = StandardScaler().fit_transform(X)
    expected = Ridge(alpha=penalty).fit(Z, y)
    found = joint.linear(penalty=penalty)
    close(found.weights[0], expected.coef_)
    close(found.decision_function(X)[:, 0], expected.predict(Z))


def test_least_squares_is_that_of_all_clips(joint, together):
    X, y, _, _ = together
    Z = np.column_stack([StandardScaler().fit_transform(X), np.ones(len(X))])
    expected = np.linalg.lstsq(Z, y, rcond=None)[0]
    found = joint.linear(penalty=0.0)
    close(found.weights[0], expected[:-1])  # one feature is constant: the shortest solution
    close(found.decision_function(X)[:, 0], Z @ expected)


def test_a_ridge_cav_is_that_of_all_clips(joint, together):
    X, _, present, _ = together
    Z, names = StandardScaler().fit_transform(X), joint.learnable()
    assert names == ("Gun", "Dim light")  # shouting is in no clip
    expected = fit_hyperplanes(Z, present.astype(float), names=names, kind="ridge", C=0.1)
    found = joint.cav(penalty=10.0)
    close(found.weights, expected.weights)
    close(found.intercepts, expected.intercepts)
    close(found.distances(X), expected.distances(Z))


@pytest.mark.parametrize(
    ("clips_of_ten_in_each_film", "is_learnable"),
    [((1, 1, 0), True), ((1, 0, 0), False), ((10, 10, 9), False), ((10, 9, 9), True)],
)
def test_a_concept_can_be_learnt_if_it_varies_whichever_film_is_left_out(
    joint, clips_of_ten_in_each_film, is_learnable
):
    """Without any film, the others have a clip with the concept, and one without."""
    n_features = joint.about.n_features
    three_films = joint.without(joint.about.movies[3:]).sums
    means = three_films.means.copy()
    means[:, n_features + 1 :] = 0  # no film has another concept
    means[:, n_features + 1] = np.array(clips_of_ten_in_each_film) / 10
    planted = replace(joint, sums=replace(three_films, counts=np.full(3, 10.0), means=means))
    first_concept = joint.about.concepts[0]
    assert planted.learnable() == ((first_concept,) if is_learnable else ())


def test_penalties_are_those_that_leaving_films_out_chooses_on_all_clips(joint, together):
    X, _, present, movies = together
    Z = StandardScaler().fit_transform(X)
    expected = tuned_ridge(Z, present.astype(bool), movies)
    found = joint.cav()
    close(found.losses, expected.losses.min(axis=0))
    close(found.weights, expected.planes.weights)
    close(found.intercepts, expected.planes.intercepts)


def test_a_bottleneck_is_that_of_all_clips(joint, together):
    """Ridge CAVs, distances without the clip's film, ridge regression of the label on them."""
    X, y, present, movies = together
    Z = StandardScaler().fit_transform(X)
    tuned = tuned_ridge(Z, present.astype(bool), movies)
    values = StandardScaler().fit(tuned.distances)
    found = joint.bottleneck()
    close(found.head.mean, values.mean_)
    close(found.head.scale, values.scale_)
    V = values.transform(tuned.distances)
    rest = tuned_ridge(V, (y == 1)[:, None], movies)
    unit = (V**2).sum() / min(V.shape)
    penalty = np.array([100.0, 10.0, 1.0, 0.1, 0.01])[rest.chosen[0]] * unit
    expected = Ridge(alpha=penalty).fit(V, y)
    close(found.head.weights[0], expected.coef_)
    close(found.decision_function(X), expected.predict(values.transform(tuned.planes.distances(Z))))


def test_leaving_a_film_out_is_never_having_had_it(joint, labs, together):
    X, y, _, movies = together
    rest = joint.without(["f5"])
    never = join([gram(labs[lab], TASK, least=10) for lab in "ab"])
    assert rest.linear().weights.tobytes() == never.linear().weights.tobytes()
    errors = joint.film_errors(rest.linear(penalty=1.0))
    Z = StandardScaler().fit(X[movies != "f5"])
    expected = Ridge(alpha=1.0).fit(Z.transform(X[movies != "f5"]), y[movies != "f5"])
    for film in ("f0", "f5"):
        own = movies == film
        close(errors[film], np.mean((expected.predict(Z.transform(X[own])) - y[own]) ** 2))


def test_logistic_regression_is_reached_in_a_few_rounds(joint, labs, together, tmp_path):
    X, y, _, _ = together
    Z = StandardScaler().fit_transform(X)
    expected = LogisticRegression(C=0.5, tol=1e-12, max_iter=10_000).fit(Z, y)
    save_joint(joint, joint.linear(penalty=1.0), tmp_path / "round-0.model")
    for number in range(10):
        step = take_round(labs, tmp_path, number, C=0.5)
        if step.is_last:
            break
    assert step.is_last
    close(step.planes.weights[0], expected.coef_[0])
    close(step.planes.decision_function(X)[:, 0], expected.decision_function(Z))
    assert step.planes.penalties == [1 / 0.5]


def take_round(labs, folder, number, C):
    """Let labs sum up losses at the model of a round, and write the model of the next round."""
    at = om.load_model(folder / f"round-{number}.model")
    losses = join([gram(data, TASK, least=10, at=at) for data in labs.values()])
    step = newton_step(losses, C=C)
    save_joint(losses, step.planes, folder / f"round-{number + 1}.model")
    return step


def test_the_change_of_a_round_is_that_of_its_weights_against_the_largest(joint, labs, tmp_path):
    planes = joint.linear(penalty=1.0)
    save_joint(joint, planes, tmp_path / "round-0.model")
    step = take_round(labs, tmp_path, 0, C=0.5)
    before = np.append(planes.weights, planes.intercepts)
    after = np.append(step.planes.weights, step.planes.intercepts)
    close(step.change, np.abs(after - before).max() / np.abs(after).max())


def test_a_model_of_rounds_has_logits_and_counts_no_positive_clip(joint, labs, tmp_path):
    save_joint(joint, joint.linear(penalty=1.0), tmp_path / "round-0.model")
    take_round(labs, tmp_path, 0, C=0.5)
    card = om.load_model(tmp_path / "round-1.model").card
    assert card.threshold == 0.0
    assert card.n_positives == 0  # sums of losses do not tell


# --- files
# ---------------------------------------------------------------------------
def test_sums_in_files_give_the_same_bytes_in_any_order(labs, joint, tmp_path):
    for lab, data in labs.items():
        write_sums(gram(data, TASK, least=10), tmp_path / f"{lab}.sums")
        write_sums(read_sums(tmp_path / f"{lab}.sums"), tmp_path / "again.sums")
        assert (tmp_path / "again.sums").read_bytes() == (tmp_path / f"{lab}.sums").read_bytes()
    read = join([read_sums(tmp_path / f"{lab}.sums") for lab in "cab"])
    assert read.about.movies == joint.about.movies == sorted(sum(LABS.values(), ()))
    assert read.cav().weights.tobytes() == joint.cav().weights.tobytes()


def test_a_kept_linear_model_scores_clips_as_it_is(joint, together, tmp_path):
    X, y, _, _ = together
    planes = joint.linear()
    save_joint(joint, planes, tmp_path / "joint.model")
    model = om.load_model(tmp_path / "joint.model")
    close(model.logits(X), planes.decision_function(X)[:, 0])
    assert model.card.threshold == 0.5
    assert model.card.parameters["C"] == pytest.approx(1 / planes.penalties[0])
    assert model.card.n_positives == y.sum()
    assert [metric["task"] for metric in model.card.metrics] == [TASK]


def test_a_kept_cav_scores_clips_as_it_is(joint, together, tmp_path):
    X, _, present, _ = together
    planes = joint.cav("Gun")
    save_joint(joint, planes, tmp_path / "joint.model", concept="Gun")
    model = om.load_model(tmp_path / "joint.model")
    close(model.logits(X), planes.distances(X)[:, 0])
    assert model.card.threshold == 0.0
    assert model.card.parameters["C"] == pytest.approx(1 / planes.penalties[0])
    assert model.card.n_positives == present[:, 0].sum()
    assert [metric["task"] for metric in model.card.metrics] == ["Gun"]


def test_a_penalty_that_was_given_has_no_error_on_films_left_out(joint, tmp_path):
    save_joint(joint, joint.linear(penalty=0.1), tmp_path / "joint.model")
    assert om.load_model(tmp_path / "joint.model").card.metrics == ()


def test_a_joint_model_knows_its_films_and_has_no_probabilities(joint, labs, tmp_path):
    save_joint(joint, joint.linear(), tmp_path / "joint.model")
    model = om.load_model(tmp_path / "joint.model")
    assert set(model.card.movies) == {movie for movies in LABS.values() for movie in movies}
    assert model.calibration is None
    assert model.out_of_distribution is None
    predicted = om.predict(model, open_store(labs["a"].group._store.path))
    assert predicted.table["p"].isna().all()
    assert predicted.has("trained_on").all()


def test_a_joint_model_of_a_concept_that_was_asked_for_says_so(labs, tmp_path):
    alone = join([gram(labs["a"], "concept:Gun", least=10)])
    save_joint(alone, alone.linear(penalty=1.0), tmp_path / "gun.model")
    assert om.load_model(tmp_path / "gun.model").card.target["concept"] == "Gun"


# --- what is refused
# ---------------------------------------------------------------------------
def with_four_clips_of_one_film(data):
    return data.take(np.flatnonzero((data.movies != "f0") | (np.arange(len(data)) < 4)))


def test_films_of_few_clips_are_left_out_and_counted(labs):
    sums = gram(with_four_clips_of_one_film(labs["a"]), TASK, least=10)
    assert sums.about.movies == ["f1", "f2"]
    assert sums.about.left_out.keys() == {"f0"}
    assert sums.counts.min() >= 10
    assert f"{int(sums.counts.sum())} clips of 2 films" in repr(sums)


def test_films_of_few_clips_alone_are_refused(labs):
    with pytest.raises(ModelError):
        gram(labs["a"], TASK, least=1000)


@pytest.mark.parametrize("change", [{"group": None}, {"modalities": ("b",)}])
def test_features_of_no_store_or_of_several_are_refused(labs, change):
    with pytest.raises(ModelError):
        gram(replace(labs["a"], **change), TASK, least=10)


def test_sums_that_do_not_belong_together_are_refused(labs):
    a, b = (gram(labs[lab], TASK, least=10) for lab in "ab")
    with pytest.raises(ModelError):
        join([a, a])
    for name, other in (("backbone", "other"), ("provenance_sha256", "0" * 64), ("concepts", ["Gun"])):
        changed = replace(b, about=structs.replace(b.about, **{name: other}))
        with pytest.raises(ModelError):
            join([a, changed])


def test_what_cannot_be_fitted_is_refused(labs):
    alone = join([gram(labs["c"], TASK, least=10)])
    two = join([gram(labs["a"].take(labs["a"].movies != "f0"), TASK, least=10)])
    assert len(two.about.movies) == 2
    assert np.isfinite(two.linear().losses).all()
    violent = join([gram(labs["b"].take(labs["b"].levels == "violent"), TASK, least=5)])
    for fit in (
        lambda: violent.linear(penalty=1.0),  # all of its clips are positive
        alone.linear,  # one film: no penalty can be chosen
        lambda: alone.cav("Gun"),  # in none of its clips
        lambda: alone.cav("Rain"),
        lambda: alone.without(["f9"]),
        lambda: alone.without(["f5"]),
        lambda: newton_step(alone),
    ):
        with pytest.raises(ModelError):
            fit()


def with_products(change):
    def spoil(sums):
        products = sums.products.copy()
        change(products, sums.about.n_features, sums)
        return replace(sums, products=products)

    return spoil


def stretched(products, d, _):
    products[:, :d, d] *= 1e6
    products[:, d, :d] *= 1e6


def beyond_what_three_can(products, *_):
    """Let three columns go along with each other, but the first against the last: each pair is possible."""
    for first, second, sign in ((0, 1, 0.9), (1, 2, 0.9), (0, 2, -0.9)):
        size = sign * np.sqrt(products[:, first, first] * products[:, second, second])
        products[:, first, second] = products[:, second, first] = size


def faint(products, *_):
    """Let two columns of tiny variance, and nothing else, go along with each other more than they can."""
    products[:, :2] = products[:, :, :2] = 0
    products[:, :2, :2] = np.array([[1.0, 9.0], [9.0, 1.0]]) * 1e-14


def lopsided(products, *_):
    products[:, 0, 1] *= 0.9


def without_variance(products, d, _):
    products[:, d, d] = 0
    products[:, d, :d] = products[:, :d, d] = 0


def together_too_often(products, d, sums):
    """A concept in fewer clips than it shares with the label."""
    products[:, d, d + 1] = products[:, d + 1, d] = -sums.counts * sums.means[:, d] * sums.means[:, d + 1] - 1


def renamed(*movies):
    return lambda sums: replace(sums, about=structs.replace(sums.about, movies=list(movies)))


@pytest.mark.parametrize(
    "spoil",
    [
        with_products(stretched),
        with_products(faint),
        with_products(lopsided),
        with_products(without_variance),
        with_products(beyond_what_three_can),
        with_products(together_too_often),
        lambda sums: replace(sums, products=-sums.products),
        lambda sums: replace(sums, products=sums.products + 1e300),
        lambda sums: replace(sums, means=sums.means * np.where(np.arange(sums.means.shape[1]) < 1, 1e200, 1)),
        lambda sums: replace(sums, counts=sums.counts + 1e15),
        lambda sums: replace(sums, counts=sums.counts * 1e7, products=sums.products * 1e7),
        lambda sums: replace(sums, counts=sums.counts + 1),
        renamed("../x", "f1", "f2"),
        renamed("f\u202e0", "f1", "f2"),
        renamed("", "f1", "f2"),
        lambda sums: replace(sums, counts=sums.counts + 0.5),
        lambda sums: replace(sums, counts=sums.counts * 0),
        lambda sums: replace(sums, means=sums.means * np.nan),
        lambda sums: replace(sums, means=sums.means + 2),
        lambda sums: replace(sums, products=sums.products[:, :-1]),
        lambda sums: replace(sums, products=np.triu(sums.products)),
        lambda sums: replace(sums, about=structs.replace(sums.about, movies=["f0", "f0", "f1"])),
        lambda sums: replace(sums, start={"start_mean": np.zeros(3)}),
    ],
)
def test_arrays_that_no_films_have_are_refused(labs, spoil, tmp_path):
    write_sums(spoil(gram(labs["a"], TASK, least=10)), tmp_path / "bad.sums")
    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


def test_films_whose_clips_are_all_alike_are_possible(labs, tmp_path):
    sums = gram(labs["a"], TASK, least=10)
    for share in (0.0, 1.0):
        means, products = sums.means.copy(), sums.products.copy()
        means[:, sums.about.n_features :] = share
        products[:, sums.about.n_features :] = products[:, :, sums.about.n_features :] = 0
        write_sums(replace(sums, means=means, products=products), tmp_path / "alike.sums")
        assert read_sums(tmp_path / "alike.sums").about == sums.about


@pytest.fixture
def losses(labs, joint, tmp_path):
    """Sums of a lab's losses at a joint model."""
    save_joint(joint, joint.linear(penalty=1.0), tmp_path / "at.model")
    return gram(labs["a"], TASK, least=10, at=om.load_model(tmp_path / "at.model"))


@pytest.fixture
def largest_losses(labs, joint, tmp_path):
    """Sums of losses at a model that knows nothing, where each clip has the largest possible curvature."""
    planes = joint.linear(penalty=1.0)
    knows_nothing = replace(planes, weights=0 * planes.weights, intercepts=0 * planes.intercepts)
    save_joint(joint, knows_nothing, tmp_path / "nothing.model")
    return gram(labs["a"], TASK, least=10, at=om.load_model(tmp_path / "nothing.model"))


@pytest.mark.parametrize("factor", [-1.0, 1e9])
def test_curvatures_that_no_films_have_are_refused(losses, factor, tmp_path):
    write_sums(replace(losses, products=factor * losses.products), tmp_path / "bad.sums")
    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


def test_gradients_that_no_films_have_are_refused(losses, tmp_path):
    write_sums(replace(losses, means=losses.means + 1e9), tmp_path / "bad.sums")
    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


def test_the_largest_curvatures_are_read_and_larger_ones_refused(losses, largest_losses, tmp_path):
    for sums in (losses, largest_losses):
        write_sums(sums, tmp_path / "good.sums")
        assert read_sums(tmp_path / "good.sums").about == sums.about
    write_sums(replace(largest_losses, products=2 * largest_losses.products), tmp_path / "bad.sums")
    with pytest.raises(ModelError):
        read_sums(tmp_path / "bad.sums")


def test_a_labs_error_is_that_of_a_model_of_all_others(joint, together):
    X, y, _, movies = together
    own = np.isin(movies, LABS["b"])
    Z = StandardScaler().fit(X[~own])
    expected = Ridge(alpha=3.0).fit(Z.transform(X[~own]), y[~own]).predict(Z.transform(X[own]))
    error, of_share = joint.lab_error(LABS["b"], 3.0)
    close(error, np.mean((expected - y[own]) ** 2))
    close(of_share, np.mean((y[~own].mean() - y[own]) ** 2))


def test_a_file_that_holds_no_sums_is_refused(tmp_path):
    for content in (b"", b"not sums", b"\x08\0\0\0\0\0\0\0{}      "):
        (tmp_path / "x.sums").write_bytes(content)
        with pytest.raises(ModelError):
            read_sums(tmp_path / "x.sums")


def test_sums_whose_provenance_no_model_may_have_are_refused(labs, tmp_path):
    sums = gram(labs["a"], TASK, least=10)
    for other in ({"provenance_sha256": "0" * 64}, {"provenance": {}}):
        write_sums(replace(sums, about=structs.replace(sums.about, **other)), tmp_path / "a.sums")
        with pytest.raises(ModelError, match="provenance"):
            read_sums(tmp_path / "a.sums")


# --- what sums reveal (`benchmarks/planted/sums.py` attacks them)
# ---------------------------------------------------------------------------
def given_out(data, path, task=TASK, least=10):
    sums = gram(data, task, least=least)
    with recorded(data, sums, path / RECORD):
        return sums


def with_level(data, row, level):
    levels = data.levels.copy()
    levels[row] = level
    return replace(data, labels=replace(data.labels, levels=levels))


def with_concept(data, row):
    present = data.labels.present.copy()
    present[row, 0] ^= True
    return replace(data, labels=replace(data.labels, present=present))


def test_sums_that_differ_from_earlier_ones_in_a_few_clips_are_refused(labs, tmp_path):
    """Subtracted, they give the features of these clips, whatever `least` is."""
    data = labs["a"]
    sums = given_out(data, tmp_path)
    own = np.flatnonzero((data.movies == "f0") & (data.levels == "violent"))
    mended = with_level(data, own[0], "calm")
    raw = [each.products + each.counts[:, None, None] * each.means[:, :, None] * each.means[:, None]
           for each in (sums, gram(mended, TASK, least=10))]  # fmt: skip
    d = data.X.shape[1]
    assert (raw[0] - raw[1])[0, :d, d] == pytest.approx(data.X[own[0]], abs=1e-9)
    fewer = data.take(np.delete(np.arange(len(data)), own[0]))
    for other in (mended, fewer, with_concept(data, own[0])):
        with pytest.raises(ModelError, match="f0"):
            given_out(other, tmp_path)
    assert len((tmp_path / RECORD).read_text("utf-8").splitlines()) == len(sums.about.movies)


def test_each_film_is_recorded_once_for_each_choice_of_clips(labs, tmp_path):
    """Of films that differ in many clips, or of whose clips a concept alone differs, both are given out."""
    data = labs["b"]
    films = len(given_out(data, tmp_path, least=2).about.movies)
    record = msgspec.json.decode((tmp_path / RECORD).read_text("utf-8").splitlines()[0])
    of_label = data.clip_ids[(data.movies == record["movie"]) & (data.levels == "violent")]
    assert record["columns"][""] == sorted(of_label)
    first = np.flatnonzero(data.movies == "f3")
    half = data.take(np.delete(np.arange(len(data)), first[: len(first) // 2]))
    for times in range(2):
        for given in (half, data):
            given_out(given, tmp_path, least=2)
            assert len((tmp_path / RECORD).read_text("utf-8").splitlines()) == films + 1, times


def test_the_same_clips_again_and_other_features_are_given_out(labs, tmp_path):
    data = labs["a"]
    given_out(data, tmp_path)
    record = (tmp_path / RECORD).read_bytes()
    assert record == (given_out(data, tmp_path) and (tmp_path / RECORD).read_bytes())
    mended = with_level(data, np.flatnonzero(data.levels == "violent")[0], "calm")
    given_out(replace(mended, pool="max"), tmp_path)


def test_a_damaged_record_stops_and_is_named(labs, tmp_path):
    (tmp_path / RECORD).write_text("{}\n", "utf-8")
    with pytest.raises(ModelError, match=RECORD):
        given_out(labs["a"], tmp_path)
