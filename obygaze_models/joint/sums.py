"""Sum up a lab's films: counts, means and products of features, labels and concepts, film by film.

They are all that ridge regression needs. docs/joint.md measures what they reveal: everything of a film with
fewer clips than features, to whoever has the film's features.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray
from scipy.special import expit

from obygaze_features.arguments import checked, made_by
from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import SAFETENSORS, file_kind, why_not
from obygaze_features.io import NO_LICENCE, local_path, make_folder, write_whole
from obygaze_features.locks import locked
from obygaze_features.manifest import Clip, counted
from obygaze_features.manifest.identity import same_films
from obygaze_features.schema import Count, Whole
from obygaze_features.untrusted import MAX_BYTES, open_regular, read_text
from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import check_arrays
from obygaze_models.persistence.card import Sources, check_features_digest, features_digest
from obygaze_models.persistence.model_file import ROW_ARRAYS, check_training_arrays
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import TrainingFilms
from obygaze_models.protocol import find_target
from obygaze_models.protocol.targets import NOT_ASKED, TargetRecord, codebook_record

LEAST = 20
"""Clips that a film must have to be in the sums, by default."""

MAX_CLIPS = 10**7
"""Largest number of clips of a film that is accepted from a file."""

ROUNDING_OF_COUNT = 1e-3
"""Rounding error that is accepted in numbers of clips that are computed back from sums."""

ROUNDING_OF_EIGENVALUES = 1e-9
"""Share of the sum of a matrix's eigenvalues by which the smallest may be below 0 for rounding."""

LABEL: Final = ""
"""Name of the label's column in a clip's vector; the other columns have the names of concepts."""

ARRAYS = ("counts", "means", "products")
"""Names of the arrays of sums in a file."""
START = ("start_mean", "start_scale", "start_weights", "start_intercept")
"""Names of the arrays of the model at which the derivatives of losses were computed."""


class About(Sources, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Description of sums: their films, features, target and concepts.

    Sums of labs can be joined if all fields agree, except those in `joint.fits.FIELDS_THAT_MAY_DIFFER`.

    Attributes
    ----------
    left_out : dict of str to int
        Film with too few clips -> number of its clips.
    least : int
        Smallest number of clips of a film in the sums.
    at : {"squares", "losses"}
        What the sums are of. "squares", for ridge regression: means and products of clips' vectors. "losses",
        for logistic regression: gradients and curvatures of the logistic loss at a model.
    """

    format: Literal["obygaze sums"] = "obygaze sums"
    number: Literal[2] = 2
    target: TargetRecord
    concepts: list[str]
    movies: Annotated[list[str], Meta(min_length=1)]
    left_out: dict[str, Whole]
    least: Count
    at: Annotated[str, Meta(description="losses or squares")] = "squares"

    @property
    def holds_derivatives(self) -> bool:
        """Whether the sums are gradients and curvatures of the logistic loss, and not means and products."""
        return self.at == "losses"

    def column(self, concept: str = LABEL) -> int:
        """Return the column of a concept, or of the label (`LABEL`), in a clip's vector.

        The vector has the clip's features, then its label, then the presence of each concept.

        Raises
        ------
        ModelError
            There is no such concept.
        """
        if concept == LABEL:
            return self.n_features
        if concept not in self.concepts:
            raise ModelError(f"no concept {concept} in these sums: {', '.join(self.concepts)}")
        return self.n_features + 1 + self.concepts.index(concept)


@made_by("gram(DATA, TASK)")
@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over films of one lab, or of several.

    A clip's vector u [P] is its features [D], its label (1 or 0), and the presence of each concept.

    Attributes
    ----------
    about : About
    counts : ndarray of float64, shape [F]
        Number of clips of each film.
    means : ndarray of float64, shape [F, P]
        Mean of u over each film. If `about.holds_derivatives`: the gradient [F, D + 1] of the logistic loss
        at the model `start`, by the weights of standardised features and the intercept.
    products : ndarray of float64, shape [F, P, P]
        Sum of (u - mean) (u - mean)' over each film. If `about.holds_derivatives`: the curvature
        [F, D + 1, D + 1].
    start : mapping
        If `about.holds_derivatives`: mean, scale, weights and intercept of the model; otherwise empty.
    training : TrainingFilms, optional
        Digests of the clips' rows, by which their films are recognised; no pictures. Sums that were computed
        from other sums have none.
    """

    about: About
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    products: NDArray[np.float64]
    start: Mapping[str, NDArray[np.float64]]
    training: TrainingFilms | None = None

    @property
    def gradients(self) -> NDArray[np.float64]:
        """Gradient of the logistic loss of each film [F, D + 1], of sums that hold derivatives of a loss.

        Such sums (`about.holds_derivatives`) have the fields, and the file format, of sums of clips: the
        gradient has the place of the means.
        """
        return self.means

    @property
    def curvatures(self) -> NDArray[np.float64]:
        """Curvature (Hessian) of the loss of each film [F, D + 1, D + 1], of sums that hold derivatives.

        Such sums (`about.holds_derivatives`) have the fields, and the file format, of sums of clips: the
        curvature has the place of the products.
        """
        return self.products

    def __repr__(self) -> str:
        """Describe the sums in one line: how many clips and films, of which target and backbone."""
        n_clips = int(self.counts.sum())
        about = self.about
        return (
            f"Sums({counted(n_clips, 'clip')} of {counted(len(about.movies), 'film')}, "
            f"{about.target['name']}, {about.backbone})"
        )


@checked
def gram(
    data: Dataset,
    task: str,
    *,
    least: int = LEAST,
    at: Model | None = None,
    licence: str = NO_LICENCE,
    label_policy: str = "",
) -> Sums:
    """Compute sums over the clips of a task in each film: counts, means and products of clips' vectors.

    A clip's vector has its features, its label, and the presence of each concept. (The Gram matrix is the
    matrix of products of these.)

    Parameters
    ----------
    data : Dataset
        Features of one backbone of a store.
    task : str
        Name of a task of two classes.
    least : int
        Films with fewer clips are left out, and listed in `About.left_out`.
    at : Model, optional
        A joint linear model. If it is given, the sums are gradients and curvatures of the logistic loss at
        this model (`newton_step`).
    licence, label_policy : str
        Stored in the description of the sums.

    Raises
    ------
    ModelError
        The task is of ordered levels, the features are of no store or of several, or no film is left.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> sums = om.gram(data, "hn_s", least=5)
    >>> sums.means.shape
    (6, 17)
    >>> om.join([sums]).cav("Body").weights.shape
    (1, 8)
    """
    target = find_target(task, data.codebook)
    if target.kind == "ordinal":
        raise ModelError(f"{task} is of ordered levels: sums are of two classes")
    if data.group is None or data.modalities:
        raise ModelError("sums are of the features of one backbone of one store")

    rows, labels = clips_in_task(data, task)
    # Films are numbered in order of their names: `film_of` [N] is the number of each clip's film, and
    # `n_clips` counts the clips of each film.
    films, film_of, n_clips = np.unique(data.movies[rows], return_inverse=True, return_counts=True)
    summed_films = np.flatnonzero(n_clips >= least)
    small_films = np.flatnonzero(n_clips < least)
    if not len(summed_films):
        raise ModelError(f"no film has {least} clips of {task} or more: there is nothing to sum up")

    about = About(
        backbone=data.backbone,
        features=data.features,
        pool=data.pool,
        store=data.store,
        n_features=data.X.shape[1],
        provenance=dict(data.group.provenance),
        provenance_sha256=features_digest(data.group.provenance),
        codebook=codebook_record(data.codebook),
        target=target.record(),
        concepts=list(data.labels.concepts),
        movies=films[summed_films].tolist(),
        left_out={str(films[film]): int(n_clips[film]) for film in small_films},
        least=least,
        licence=licence,
        label_policy=label_policy,
        at="squares" if at is None else "losses",
    )

    X = data.X[rows].astype(np.float64)
    vectors = np.column_stack([X, labels, data.labels.present[rows]]).astype(np.float64)  # [N, P]
    start = {} if at is None else _read_linear_model(at)  # the arrays of the model
    vectors_of_films = [vectors[film_of == film] for film in summed_films]
    # With a model, these arrays hold gradients and curvatures of its loss instead of means and products.
    means, products = _sum_films(vectors_of_films, start)

    summed_rows = rows[np.isin(film_of, summed_films)]
    return Sums(
        about=about,
        counts=n_clips[summed_films].astype(np.float64),
        means=means,
        products=products,
        start=start,
        # Signatures of the films' pictures are not among the digests: they do not leave the lab.
        training=TrainingFilms.of_clips(replace(data, signatures=None), summed_rows),
    )


def clips_in_task(data: Dataset, task: str) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the rows [N] of a dataset's clips that are in a task, and their labels [N], 1 or 0."""
    labels = find_target(task, data.codebook).of(data.labels)
    rows = np.flatnonzero(labels != NOT_ASKED)
    return rows, labels[rows]


def _sum_films(
    vectors_of_films: Sequence[NDArray[np.float64]], start: Mapping[str, NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the two arrays of `Sums`, from the vectors [N, P] of each film's clips.

    They are the films' means and products [F, ...]. With a model `start` (its arrays, by the names `START`),
    gradients and curvatures of the logistic loss at this model take their place.
    """
    means = []
    products = []
    with one_blas_thread():
        for vectors in vectors_of_films:
            if start:
                mean, products_of_film = _loss_derivatives(vectors, start)
            else:
                mean, products_of_film = _film_moments(vectors)
            means.append(mean)
            products.append(products_of_film)
    return np.stack(means), np.stack(products)


def _film_moments(vectors: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute the mean [P] of a film's vectors [N, P], and the sum of products of their deviations [P, P]."""
    mean = vectors.mean(axis=0)
    return mean, (vectors - mean).T @ (vectors - mean)


def _loss_derivatives(
    vectors: NDArray[np.float64], start: Mapping[str, NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute gradient [D + 1] and curvature (Hessian) [D + 1, D + 1] of the log losses of clips at a model.

    Derivatives are by the D weights of standardised features and, last, by the intercept. From those of all
    labs, a step of Newton's method finds a better model.

    Parameters
    ----------
    vectors : ndarray, shape [N, P]
        Vectors of the clips. The first D columns are features, the next is the label; the concepts after it
        are not read.
    start : mapping
        Arrays of the model, by the names `START`.
    """
    n_features = len(start["start_mean"])
    y = vectors[:, n_features]
    standardised = (vectors[:, :n_features] - start["start_mean"]) / start["start_scale"]
    design = np.column_stack([standardised, np.ones(len(vectors))])  # the intercept is a weight of ones
    weights = np.append(start["start_weights"], start["start_intercept"])
    p = expit(design @ weights)  # each clip's probability to be positive

    # The sums over clips, with a row x of the design, of (p - y) x and of p (1 - p) x x'.
    gradient = design.T @ (p - y)
    curvature_of_clips = p * (1 - p)
    curvature = (design.T * curvature_of_clips) @ design
    return gradient, curvature


def _read_linear_model(model: Model) -> dict[str, NDArray[np.float64]]:
    """Return mean, scale, weights and intercept of a joint linear model, by the names in `START`.

    Such a model is a pipeline of two steps, a scaler and a linear classifier; other models are refused.
    """
    n_steps = len(getattr(model.estimator, "steps", ()))
    if model.card.kind != "linear" or n_steps != 2:
        raise ModelError("curvatures are of linear models, such as `model join` writes")
    (_, scaler), (_, classifier) = model.estimator.steps
    return {
        "start_mean": np.asarray(scaler.mean_, np.float64),
        "start_scale": np.asarray(scaler.scale_, np.float64),
        "start_weights": np.asarray(classifier.coef_[0], np.float64),
        "start_intercept": np.asarray(classifier.intercept_, np.float64),
    }


# --- files
# ---------------------------------------------------------------------------
@checked
def write_sums(sums: Sums, path: Path | str) -> None:
    """Write sums as a safetensors file, whose metadata describe them; the same sums give the same bytes.

    Examples
    --------
    >>> import obygaze_features as of
    >>> import obygaze_models as om
    >>> data = om.load_dataset(of.open_store("stores/films"), of.read_manifest("films.csv"))
    >>> om.write_sums(om.gram(data, "hn_s", least=5), "lab-a.sums")
    >>> len(om.read_sums("lab-a.sums").about.movies)
    6
    """
    from safetensors.numpy import save  # noqa: PLC0415 - for sums alone

    if sums.training is None:
        raise ModelError("sums without digests of their clips' rows can't be kept")

    arrays = {
        "counts": sums.counts,
        "means": sums.means,
        "products": sums.products,
        **sums.start,
        **sums.training.to_arrays(),
    }
    # safetensors takes the memory of an array as it lies, whatever its strides.
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    about = msgspec.json.encode(sums.about, order="sorted").decode()

    place = local_path(path)
    make_folder(place.parent)
    write_whole(place, save(contiguous, {"about": about}))


@checked
def read_sums(path: Path | str) -> Sums:
    """Read the sums of a lab's films from a file that `write_sums` wrote; nothing in it is executed.

    The file is one of safetensors: a JSON text on the lab's films (`About`), and arrays. The arrays `START`,
    of derivatives, are there only if the text says so.

    Raises
    ------
    ModelError
        It is not a file of sums, or its numbers cannot be sums over films.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.read_sums("films.csv")
    Traceback (most recent call last):
    obygaze_models.errors.ModelError: films.csv: not a file of sums...
    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - for sums alone

    place = local_path(path)
    # Refuses devices and files that are too large. safetensors, which opens the file by its name, does not.
    open_regular(place, MAX_BYTES).close()

    try:
        with safe_open(place, "numpy") as file:
            metadata = file.metadata() or {}
            about = msgspec.json.decode(metadata.get("about", ""), type=About)
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no dict
        _check_sums(about, arrays)
    except ObygazeError as error:  # its message is the reason
        raise ModelError(f"{place}: not a file of sums: {error}") from None
    except (SafetensorError, msgspec.MsgspecError, OSError, ValueError, TypeError):
        raise ModelError(f"{place}: not a file of sums: {_why_not_sums(place)}") from None

    return Sums(
        about=about,
        counts=arrays["counts"],
        means=arrays["means"],
        products=arrays["products"],
        start={name: arrays[name] for name in START} if about.holds_derivatives else {},
        training=TrainingFilms.from_arrays({name: arrays[name] for name in ROW_ARRAYS}),
    )


def _why_not_sums(path: Path) -> str:
    """Say why a file that cannot be read as sums is none: it is damaged, or of another kind."""
    if file_kind(path).name == SAFETENSORS:
        return "its description or arrays are not those of sums: get it, or write it, again"
    return why_not(path, "a file of sums")


def _check_sums(about: About, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if the contents of a file can't be sums over films: they would make a joint model wrong."""
    _check_shapes(about, arrays)
    check_features_digest(about.provenance, about.provenance_sha256, location="")
    for movie in (*about.movies, *about.left_out):
        _refuse_impossible_movie(movie)
    # Extreme values overflow in the checks, which then refuse them: numpy need not warn of it.
    with np.errstate(all="ignore"):
        _check_values(about, arrays)


def _refuse_impossible_movie(movie: str) -> None:
    """Raise if no manifest can have a movie of this name."""
    # A clip of a manifest validates the name of its movie when it is made; the clip itself is not needed.
    Clip(clip_id="of the sums", movie=movie)


def _check_shapes(about: About, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if an array of a file is missing, or has another shape or type than the description says.

    The sums may be of clips' vectors (features, label and concepts), or of the derivatives of a loss by a
    linear model's weights and intercept. With derivatives, the file also has the arrays of that model.
    """
    n_films = len(set(about.movies))
    n_features = about.n_features
    start_shapes: dict[str, tuple[int, ...]] = {}
    if about.holds_derivatives:
        width = n_features + 1  # weights of features, and the intercept
        # The model at which the derivatives are.
        start_shapes = {
            "start_mean": (n_features,),
            "start_scale": (n_features,),
            "start_weights": (n_features,),
            "start_intercept": (1,),
        }
    else:
        width = n_features + 1 + len(about.concepts)  # features, label and concepts

    check_arrays(
        {name: array for name, array in arrays.items() if name not in ROW_ARRAYS},
        counts=(n_films,),
        means=(n_films, width),
        products=(n_films, width, width),
        **start_shapes,
    )

    # The arrays of the digests of clips' rows have their own rules. Sums are of one backbone: one input.
    row_arrays = {name: arrays[name] for name in ROW_ARRAYS if name in arrays}
    check_training_arrays(row_arrays, n_inputs=1, n_films=n_films)


def _check_values(about: About, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if arrays of the right shapes break a rule that sums over films obey.

    Numbers of clips are whole, and at least the least that a film must have to be summed up. Sums of products
    u u' over a film's clips, whatever their vectors u are, are symmetric and positive semidefinite. Further
    rules depend on whether the sums are of a loss's derivatives, or of the vectors of clips.
    """
    counts, means, products = (arrays[name] for name in ARRAYS)
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ModelError("a value is not finite")
    is_possible = (counts >= about.least) & (counts <= MAX_CLIPS) & (counts % 1 == 0)
    if not is_possible.all():
        raise ModelError(f"a film has no whole number of clips of at least {about.least}")

    if not np.allclose(products, products.transpose(0, 2, 1), rtol=1e-9, atol=1e-9):
        raise ModelError("products are not symmetric")
    if not all(_is_positive_semidefinite(products_of_film) for products_of_film in products):
        raise ModelError("products are no sums of squares and products of anything")

    if about.holds_derivatives:
        _check_derivatives(counts, means, products)
    else:
        _check_moments(counts, means, products, about.n_features)


def _check_derivatives(
    counts: NDArray[np.float64], gradients: NDArray[np.float64], curvatures: NDArray[np.float64]
) -> None:
    """Raise if derivatives by the intercept are larger than those of any clips: the file was then changed.

    They are derivatives of the logistic loss, summed over the clips of each film. One clip with label y and
    probability p has the first derivative p - y by the intercept, which is at most 1 in size, and the second
    derivative p (1 - p), at most 1/4. So those of n clips are at most n, and n / 4 but for rounding. Other
    derivatives depend on features, whose size has no such bound.

    Parameters
    ----------
    counts : ndarray, shape [F]
        Clips of each film.
    gradients : ndarray, shape [F, D + 1]
        First derivatives by the weights of D features and, last, by the intercept.
    curvatures : ndarray, shape [F, D + 1, D + 1]
        Second derivatives, in the same order.
    """
    by_intercept = gradients[:, -1]
    twice_by_intercept = curvatures[:, -1, -1]
    has_impossible_gradient = abs(by_intercept) > counts
    has_impossible_curvature = twice_by_intercept > counts / 4 + ROUNDING_OF_COUNT
    if (has_impossible_gradient | has_impossible_curvature).any():
        raise ModelError("gradients or curvatures are larger than any")


def _check_moments(
    counts: NDArray[np.float64], means: NDArray[np.float64], products: NDArray[np.float64], n_features: int
) -> None:
    """Raise if means and products can't be those of float32 features, and of labels and concepts 0 or 1.

    Parameters
    ----------
    counts : ndarray, shape [F]
        Clips of each film.
    means : ndarray, shape [F, P]
        Means of clips' vectors: first the features, then the label and the concepts.
    products : ndarray, shape [F, P, P]
        Sums of the products of these around their means.
    n_features : int
    """
    feature_means = means[:, :n_features]
    if (abs(feature_means) > np.finfo(np.float32).max).any():
        raise ModelError("a mean is larger than any feature")
    # The mean of a column of 0 and 1 is a share of the clips.
    shares = means[:, n_features:]
    if ((shares < 0) | (shares > 1)).any():
        raise ModelError("a share of clips is not between 0 and 1")
    if not _are_whole_counts(counts, shares, products[:, n_features:, n_features:]):
        raise ModelError("labels and concepts are in no whole numbers of clips")


def _are_whole_counts(
    counts: NDArray[np.float64], shares: NDArray[np.float64], products: NDArray[np.float64]
) -> bool:
    """Tell whether sums give whole numbers of clips with each label or concept, and with each pair of them.

    For two columns a and b of 0 and 1, sum(a b) is the number of clips that have both. It follows from the
    products around means: sum(a b) = products + n mean(a) mean(b).

    Parameters
    ----------
    counts : ndarray, shape [F]
    shares : ndarray, shape [F, L]
        Share of each film's clips that have the label, and each concept.
    products : ndarray, shape [F, L, L]
        Sums of their products around means.
    """
    for n_clips, shares_of_film, products_of_film in zip(counts, shares, products, strict=True):
        n_with_both = products_of_film + n_clips * shares_of_film[:, None] * shares_of_film  # [L, L]
        are_whole = (abs(n_with_both - n_with_both.round()) <= ROUNDING_OF_COUNT).all()
        are_not_negative = (n_with_both >= -ROUNDING_OF_COUNT).all()
        # A column paired with itself, on the diagonal, gives the number of clips that have it. The column's
        # share gives the same number.
        n_with_one = np.diagonal(n_with_both)
        agree_with_shares = (abs(n_with_one - n_clips * shares_of_film) <= ROUNDING_OF_COUNT).all()
        if not (are_whole and are_not_negative and agree_with_shares):
            return False
    return True


def _is_positive_semidefinite(products: NDArray[np.float64]) -> bool:
    """Tell whether a matrix [P, P] is positive semidefinite, as every sum of products u u' is.

    The Cholesky decomposition succeeds if all eigenvalues are above 0. Eigenvalues of 0, which rounding can
    make negative, must be accepted too: a small number is added to the diagonal, and so to all eigenvalues.
    Before that the matrix is scaled to correlations, so that the number is small compared with any matrix.
    """
    squares = np.diag(products)
    scale = np.sqrt(np.where(squares > 0, squares, 1.0))
    # Entry [i, j] is divided by the scales of both i and j.
    correlations = products / scale / scale[:, None]
    allowance = ROUNDING_OF_EIGENVALUES * len(squares)
    try:
        np.linalg.cholesky(correlations + allowance * np.eye(len(squares)))
    except np.linalg.LinAlgError:
        return False
    return True


# --- a record of the sums that left a lab: sums are refused whose difference from earlier ones tells features
# ---------------------------------------------------------------------------
# Sums are linear in clips. If two releases of a film differ in a few clips, labels or concepts, their
# difference is the sum of these clips' features; with one clip, its features themselves.
RECORD: Final = "sums-given.jsonl"
"""End of the record's file name, after that of the store. It lies beside the store and stays in the lab."""


class ReleasedFilm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A film in released sums: one line of the record next to a store.

    Attributes
    ----------
    movie : str
    features : str
        How the features were made: digest of the provenance, array and pooling.
    task : str
    clips : list of str
        The film's clips in the sums.
    columns : dict of str to list of str
        The clips with the positive label (`LABEL`), and with each concept.
    """

    movie: str
    features: str
    task: str
    clips: list[str]
    columns: dict[str, list[str]]

    def count_differences(self, other: "ReleasedFilm") -> list[int]:
        """Count in how many clips two releases of the film differ, for each of several lists of clips.

        The lists are that of all clips in the sums and, for each column that both releases have (the label or
        a concept), that of the clips that are marked. A clip differs if it is in only one of the two lists.
        """
        common_columns = self.columns.keys() & other.columns.keys()
        lists = [(self.clips, other.clips)]
        lists += [(self.columns[name], other.columns[name]) for name in common_columns]
        return [len(set(clips).symmetric_difference(other_clips)) for clips, other_clips in lists]

    def has_same_clips(self, other: "ReleasedFilm") -> bool:
        """Tell whether two releases have the same clips with the same label and concepts."""
        return self.clips == other.clips and self.columns == other.columns


@contextmanager
def record_release(data: Dataset, sums: Sums, path: Path) -> Iterator[None]:
    """Record sums that leave the lab in a file next to their store; refuse them if they reveal single clips.

    The difference of two sums over nearly the same clips of a film is the sum over the few clips in which
    they differ. So a film is refused that was released before with a few clips more or less.

    Sums are to be written in the block of the ``with`` statement. The record is written when the block
    begins, so that no sums leave without a record, even if the command is interrupted in between. It is
    locked until the block ends, so that no other process releases sums in the meantime.

    Raises
    ------
    ModelError
        A film differs from an earlier release in fewer than `least` clips, or the record is damaged.
    """
    with locked(path.parent, wait=True):
        lines = read_text(path).splitlines() if path.is_file() else []
        releases_of_film = _read_record(lines, path)
        for film in _films_to_record(data, sums):
            # Only sums of the same features can be subtracted from each other.
            releases = _releases_in_any_spelling(film.movie, releases_of_film)
            comparable_releases = [release for release in releases if release.features == film.features]
            _refuse_similar_releases(film, comparable_releases, sums.about.least, path)

            # The same sums of the same clips may leave again, and need no second line.
            is_recorded = any(film.has_same_clips(release) for release in comparable_releases)
            if not is_recorded:
                lines.append(msgspec.json.encode(film).decode())

        write_whole(path, "".join(f"{line}\n" for line in lines))
        yield


def _releases_in_any_spelling(
    movie: str, releases_of_film: Mapping[str, list[ReleasedFilm]]
) -> list[ReleasedFilm]:
    """Return the earlier releases of a film, whose name may be spelt otherwise in the record."""
    releases = list(releases_of_film.get(movie, []))
    for other_name, releases_of_other in releases_of_film.items():
        if other_name != movie and same_films([movie, other_name]):
            releases += releases_of_other
    return releases


def _read_record(lines: Sequence[str], path: Path) -> dict[str, list[ReleasedFilm]]:
    """Parse the lines of a record of released sums: film -> its releases.

    A damaged line raises ModelError, as the release that it recorded could not be compared with further ones,
    and single clips could then be told from two similar sums.
    """
    releases: dict[str, list[ReleasedFilm]] = {}
    for number, line in enumerate(lines, start=1):
        try:
            release = msgspec.json.decode(line, type=ReleasedFilm)
        except msgspec.MsgspecError as error:
            raise ModelError(f"{path}: line {number}: {error}: mend it, as it guards your clips") from None
        releases.setdefault(release.movie, []).append(release)
    return releases


def _refuse_similar_releases(
    film: ReleasedFilm, releases: Sequence[ReleasedFilm], minimum: int, path: Path
) -> None:
    """Raise if a film differs from an earlier release in some clips, but in fewer than `minimum`.

    Subtracting one release from the other would reveal the features of these clips.
    """
    for release in releases:
        differences = [n_clips for n_clips in film.count_differences(release) if 0 < n_clips < minimum]
        if differences:
            raise ModelError(
                f"film {film.movie} differs in {counted(min(differences), 'clip')} from the sums for "
                f"{release.task} that {path} records: subtracting them gives these clips' features. "
                "Give the same clips and labels again, or take the film from the manifest"
            )


def _films_to_record(data: Dataset, sums: Sums) -> Iterator[ReleasedFilm]:
    """Yield the entry of each film in sums for the record of releases: its clips, label and concepts."""
    about = sums.about
    rows, labels = clips_in_task(data, about.target["name"])
    clip_ids = data.clip_ids[rows]
    present = data.labels.present[rows]

    # Name of a column of clips' vectors (label or concept) -> whether each clip is marked in it [N].
    is_marked = {LABEL: labels == 1}
    for name, column in zip(about.concepts, present.T, strict=True):
        is_marked[name] = np.asarray(column) == 1

    # How the features were made, as one text that can be compared.
    features = f"{about.provenance_sha256} {about.features} {about.pool}"
    for movie in about.movies:
        in_film = data.movies[rows] == movie
        columns = {}
        for name, is_marked_clip in is_marked.items():
            columns[name] = np.sort(clip_ids[in_film & is_marked_clip]).tolist()
        yield ReleasedFilm(
            movie=movie,
            features=features,
            task=about.target["name"],
            clips=np.sort(clip_ids[in_film]).tolist(),
            columns=columns,
        )
