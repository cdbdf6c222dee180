"""Sum up a lab's films: counts, means and products of features, labels and concepts, film by film.

They are all that ridge regression needs. What they reveal is measured in docs/joint.md: of a film with fewer
clips than features everything, to whoever has its features.
"""

from collections.abc import Iterator, Mapping
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
from obygaze_features.door import MOST_BYTES, open_regular, read_text
from obygaze_features.errors import ObygazeError
from obygaze_features.file_kinds import SAFETENSORS, what, why_not
from obygaze_features.io import NO_LICENCE, local_path, make_folder, write_whole
from obygaze_features.locks import locked
from obygaze_features.manifest import Clip, counted
from obygaze_features.schema import Count, Whole
from obygaze_models.blas import one_blas_thread
from obygaze_models.dataset.dataset import Dataset
from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import expect
from obygaze_models.persistence.card import Sources, check_family, family
from obygaze_models.persistence.model_file import ROWS, check_trained
from obygaze_models.prediction.saved_model import Model
from obygaze_models.prediction.training_films import TrainingFilms
from obygaze_models.protocol import find_target
from obygaze_models.protocol.targets import NOT_ASKED, TargetRecord, codebook_record

LEAST = 20
"""Clips that a film must have to be in the sums."""

MOST_CLIPS = 10**7
"""Clips that no film has."""

WHOLE = 1e-3
"""How far rounding takes a number of clips from a whole one."""

ARRAYS = ("counts", "means", "products")
START = ("start_mean", "start_scale", "start_weights", "start_intercept")


class About(Sources, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What sums are of; two labs' sums are joined if all but `store`, `licence` and `left_out` agree."""

    format: Literal["obygaze sums"] = "obygaze sums"
    number: Literal[2] = 2
    target: TargetRecord
    concepts: list[str]
    movies: Annotated[list[str], Meta(min_length=1)]
    left_out: dict[str, Whole]
    least: Count
    at: Annotated[str, Meta(description="losses or squares")] = "squares"

    def column(self, concept: str = "") -> int:
        """Find the place of a concept, or of the label, in a clip's vector.

        Raises
        ------
        ModelError
            No such concept.
        """
        if concept and concept not in self.concepts:
            raise ModelError(f"no concept {concept} in these sums: {', '.join(self.concepts)}")
        return self.n_features + (1 + self.concepts.index(concept) if concept else 0)


@made_by("gram(DATA, TASK)")
@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over films of one lab, or of several.

    A clip's vector u [P] is its features [D], its label (1 or 0), and the presence of each concept.

    Attributes
    ----------
    about : About
    counts : ndarray of float64, shape [F]
        Clips of each film.
    means : ndarray of float64, shape [F, P]
    products : ndarray of float64, shape [F, P, P]
        Sums of (u - mean) (u - mean)'. Of losses (`about.at`), `means` are gradients and `products`
        curvatures [F, D + 1, D + 1] of the logistic loss at `start`, in standardised features and a 1.
    start : mapping
        Of losses: mean, scale, weights and intercept where they were computed.
    training : TrainingFilms, optional
        Digests of the clips' rows, by which their films are known again; no pictures. Sums that are computed
        of sums have none.
    """

    about: About
    counts: NDArray[np.float64]
    means: NDArray[np.float64]
    products: NDArray[np.float64]
    start: Mapping[str, NDArray[np.float64]]
    training: TrainingFilms | None = None

    def __repr__(self) -> str:
        clips, about = int(self.counts.sum()), self.about
        return f"Sums({clips} clips of {len(about.movies)} films, {about.target['name']}, {about.backbone})"


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
    """Sum up the clips of a task, film by film.

    Parameters
    ----------
    data : Dataset
        Of one backbone of a store.
    task : str
        Of two classes.
    least : int
        A film with fewer clips is left out, and counted.
    at : Model, optional
        A joint linear model: give gradients and curvatures of the logistic loss there (`newton_step`).
    licence, label_policy : str

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
    own, labels = asked_clips(data, task)
    films, movie_of, n = np.unique(data.movies[own], return_inverse=True, return_counts=True)
    kept = np.flatnonzero(n >= least)
    if not len(kept):
        raise ModelError(f"no film has {least} clips of {task} or more: there is nothing to sum up")
    X = data.X[own].astype(np.float64)
    U = np.column_stack([X, labels, data.labels.present[own]]).astype(np.float64)
    about = About(
        **{name: getattr(data, name) for name in ("backbone", "features", "pool", "store")},
        n_features=X.shape[1],
        provenance=dict(data.group.provenance),
        provenance_sha256=family(data.group.provenance),
        codebook=codebook_record(data.codebook),
        target=target.record(),
        concepts=list(data.labels.concepts),
        movies=films[kept].tolist(),
        left_out={str(films[film]): int(n[film]) for film in np.flatnonzero(n < least)},
        least=least,
        licence=licence,
        label_policy=label_policy,
        at="squares" if at is None else "losses",
    )
    start = {} if at is None else _start(at)
    clips = (U[movie_of == film] for film in kept)
    with one_blas_thread():
        parts = [_losses(own, start) if start else _moments(own) for own in clips]
    means, products = (np.stack(each) for each in zip(*parts, strict=True))
    summed_up = own[np.isin(movie_of, kept)]
    training = TrainingFilms.of_clips(replace(data, signatures=None), summed_up)
    return Sums(about, n[kept].astype(np.float64), means, products, start, training)


def asked_clips(data: Dataset, task: str) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Find the clips that a task asks for: their rows [N], and their labels [N], 1 or 0."""
    labels = find_target(task, data.codebook).of(data.labels)
    own = np.flatnonzero(labels != NOT_ASKED)
    return own, labels[own]


def _moments(U: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean = U.mean(axis=0)
    return mean, (U - mean).T @ (U - mean)


def _losses(
    U: NDArray[np.float64], start: Mapping[str, NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mean, scale, weights, intercept = (start[name] for name in START)
    X, y = U[:, : len(mean)], U[:, len(mean)]
    Z = np.column_stack([(X - mean) / scale, np.ones(len(X))])
    p = expit(Z @ np.append(weights, intercept))
    return Z.T @ (p - y), (Z.T * (p * (1 - p))) @ Z


def _start(model: Model) -> dict[str, NDArray[np.float64]]:
    if model.card.kind != "linear" or len(getattr(model.estimator, "steps", ())) != 2:
        raise ModelError("curvatures are of linear models, such as `model join` writes")
    scaler, head = (step for _, step in model.estimator.steps)
    arrays = (scaler.mean_, scaler.scale_, head.coef_[0], head.intercept_)
    return {name: np.asarray(each, np.float64) for name, each in zip(START, arrays, strict=True)}


# --- files
# ---------------------------------------------------------------------------
@checked
def write_sums(sums: Sums, path: Path | str) -> None:
    """Write sums as a safetensors file, whose metadata say what they are of; the same sums, the same bytes.

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
    arrays = {name: getattr(sums, name) for name in ARRAYS} | dict(sums.start) | sums.training.to_arrays()
    whole = {name: np.ascontiguousarray(each) for name, each in arrays.items()}
    place = local_path(path)
    make_folder(place.parent)
    write_whole(place, save(whole, {"about": msgspec.json.encode(sums.about, order="sorted").decode()}))


@checked
def read_sums(path: Path | str) -> Sums:
    """Read what `write_sums` wrote; nothing in it is executed.

    Raises
    ------
    ModelError
        It is not a file of sums, or its arrays are none of films.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.read_sums("films.csv")
    Traceback (most recent call last):
    obygaze_models.errors.ModelError: films.csv: not a file of sums...
    """
    from safetensors import SafetensorError, safe_open  # noqa: PLC0415 - for sums alone

    place = local_path(path)
    open_regular(place, MOST_BYTES).close()  # safetensors opens the name itself
    try:
        with safe_open(place, "numpy") as file:
            about = msgspec.json.decode((file.metadata() or {}).get("about", ""), type=About)
            arrays = {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118 - no dict
        _check(about, arrays)
    except ObygazeError as error:
        raise ModelError(f"{place}: not a file of sums: {error}") from None
    except (SafetensorError, msgspec.MsgspecError, OSError, ValueError, TypeError):
        other = "its description or arrays are not those of sums: get it, or write it, again"
        reason = other if what(place).name == SAFETENSORS else why_not(place, "a file of sums")
        raise ModelError(f"{place}: not a file of sums: {reason}") from None
    counts, means, products = (arrays.pop(name) for name in ARRAYS)
    training = TrainingFilms.from_arrays({name: arrays.pop(name) for name in ROWS})
    return Sums(about, counts, means, products, arrays, training)


def _check(about: About, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse arrays that no films have: sums of strangers must not upset a joint model unseen."""
    films, d, losses = len(set(about.movies)), about.n_features, about.at == "losses"
    p = d + 1 if losses else d + 1 + len(about.concepts)
    shapes: dict[str, tuple[int, ...]] = {"counts": (films,), "means": (films, p), "products": (films, p, p)}
    if losses:
        shapes |= dict(zip(START, ((d,), (d,), (d,), (1,)), strict=True))
    expect({name: array for name, array in arrays.items() if name not in ROWS}, **shapes)
    check_trained({name: arrays[name] for name in ROWS if name in arrays}, n_inputs=1, n_films=films)
    check_family(about.provenance, about.provenance_sha256, "")
    for movie in (*about.movies, *about.left_out):
        Clip("of the sums", movie)  # names are those of manifests
    with np.errstate(all="ignore"):
        for is_wrong, what in _wrongs(about, arrays):
            if is_wrong:
                raise ModelError(what)


def _wrongs(about: About, arrays: Mapping[str, NDArray[Any]]) -> Iterator[tuple[bool, str]]:
    """Yield whether no films can have such sums, and why."""
    counts, means, products = (arrays[name] for name in ARRAYS)
    d, n = about.n_features, counts[:, None]
    yield not all(np.isfinite(array).all() for array in arrays.values()), "a value is not finite"
    small, large = counts < about.least, counts > MOST_CLIPS
    yield bool((small | large | (counts % 1 != 0)).any()), f"a film has not {about.least} whole clips or more"
    yield not np.allclose(products, products.transpose(0, 2, 1), 1e-9, 1e-9), "products are not symmetric"
    yield not all(map(_is_of_squares, products)), "products are no sums of squares and products of anything"
    if about.at == "losses":
        too_much = (products[:, d, d] > counts / 4 + WHOLE) | (abs(means[:, d]) > counts)
        yield bool(too_much.any()), "gradients or curvatures are larger than any"
        return
    yield bool((abs(means[:, :d]) > np.finfo(np.float32).max).any()), "a mean is larger than any feature"
    shares = means[:, d:]
    yield bool(((shares < 0) | (shares > 1)).any()), "a share of clips is not between 0 and 1"
    # Of what is 0 or 1 the products count clips; that of a column with itself is n p (1 - p).
    both = products[:, d:, d:] + n[:, None] * shares[:, :, None] * shares[:, None]
    own = abs(np.diagonal(both, axis1=1, axis2=2) - n * shares)
    wrong = (abs(both - both.round()) > WHOLE).any() or (both < -WHOLE).any() or (own > WHOLE).any()
    yield bool(wrong), "labels and concepts are in no whole numbers of clips"


def _is_of_squares(products: NDArray[np.float64]) -> bool:
    """Whether a matrix can be a sum of u u': of its correlations no eigenvalue is below 0.

    Then squares are not below 0, and correlations at most 1 (Cauchy and Schwarz).
    """
    squares = np.diag(products)
    scale = np.sqrt(np.where(squares > 0, squares, 1.0))
    correlations = products / scale / scale[:, None]
    try:
        np.linalg.cholesky(correlations + 1e-9 * len(squares) * np.eye(len(squares)))
    except np.linalg.LinAlgError:
        return False
    return True


# --- a record of what was given out: others are refused that give clips' features by subtraction
# ---------------------------------------------------------------------------
# Sums are linear in clips. Two deliveries of a film whose clips, labels or concepts differ in a few clips
# differ by the features of these clips, whoever subtracts them; of one clip, by its features themselves.
RECORD: Final = "sums-given.jsonl"
"""End of the record's name, after that of the store, beside which it is; it stays in the lab."""


class SumsGiven(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A film in sums that were given out.

    Attributes
    ----------
    movie : str
    features : str
        What they were made by: digest of the provenance, array and pooling.
    task : str
    clips : list of str
        The film's clips in the sums.
    columns : dict of str to list of str
        The clips with the positive label (``""``), and with each concept.
    """

    movie: str
    features: str
    task: str
    clips: list[str]
    columns: dict[str, list[str]]

    def apart(self, other: "SumsGiven") -> Iterator[int]:
        """Count in how many clips this film's clips, labels and concepts differ from another delivery's."""
        yield len({*self.clips} ^ {*other.clips})
        for name in self.columns.keys() & other.columns.keys():
            yield len({*self.columns[name]} ^ {*other.columns[name]})


@contextmanager
def recorded(data: Dataset, sums: Sums, path: Path) -> Iterator[None]:
    """Record that sums are given out, in a file beside their store, and hold it while they are written.

    Raises
    ------
    ModelError
        A film's clips differ from those of earlier sums, in fewer than `least`; or the record is damaged.
    """
    with locked(path.parent, wait=True):
        lines = read_text(path).splitlines() if path.is_file() else []
        earlier: dict[str, list[SumsGiven]] = {}
        for number, line in enumerate(lines, 1):
            try:
                given = msgspec.json.decode(line, type=SumsGiven)
            except msgspec.MsgspecError as error:
                raise ModelError(
                    f"{path}: line {number}: {error}: mend it, as it guards your clips"
                ) from None
            earlier.setdefault(given.movie, []).append(given)
        for film in _films(data, sums):
            known = [given for given in earlier.get(film.movie, ()) if given.features == film.features]
            for given in known:
                if few := [n for n in film.apart(given) if 0 < n < sums.about.least]:
                    raise ModelError(
                        f"film {film.movie} differs in {counted(min(few), 'clip')} from the sums for "
                        f"{given.task} that {path} records: subtracting them gives these clips' features. "
                        "Give the same clips and labels again, or take the film from the manifest"
                    )
            if not any(given.columns == film.columns and given.clips == film.clips for given in known):
                lines.append(msgspec.json.encode(film).decode())
        write_whole(path, "".join(f"{line}\n" for line in lines))
        yield


def _films(data: Dataset, sums: Sums) -> Iterator[SumsGiven]:
    about = sums.about
    rows, labels = asked_clips(data, about.target["name"])
    names, present = data.clip_ids[rows], data.labels.present[rows]
    columns = {"": labels, **dict(zip(about.concepts, present.T, strict=True))}
    for movie in about.movies:
        own = data.movies[rows] == movie
        yield SumsGiven(
            movie=movie,
            features=f"{about.provenance_sha256} {about.features} {about.pool}",
            task=about.target["name"],
            clips=np.sort(names[own]).tolist(),
            columns={
                name: np.sort(names[own & (np.asarray(column) == 1)]).tolist()
                for name, column in columns.items()
            },
        )
