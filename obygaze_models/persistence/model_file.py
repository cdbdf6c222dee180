"""Write a model to a file, and read it in two phases: audit the file, then construct the estimator."""

import errno
import io
import json
import os
import re
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import first_line, install_command
from obygaze_features.io import local_path, make_folder, write_whole
from obygaze_features.plugins import MODELS, points
from obygaze_features.signature_likeness import SKETCH_BYTES
from obygaze_features.store.files_remote import as_url
from obygaze_models.errors import ModelError
from obygaze_models.models.names import name_in_zoo
from obygaze_models.models.other_models import as_spec
from obygaze_models.persistence.archive import check_arrays, pack_archive, unpack_archive
from obygaze_models.persistence.card import DIGEST_BYTES, JOINT, KEPT_VIEWS, UNLABELLED, Card, parse_card
from obygaze_models.persistence.estimators import CONVERSIONS, N_LEVELS, Arrays, EstimatorState, is_linear
from obygaze_models.persistence.zoo_list import default_zoo, find_entry, is_name, read_entry, read_limited

SCORE_ARRAYS = ("calibration_draws", "concept_sigmoids", "reach_distances", "reach_mean", "reach_scale")
"""Arrays of the calibration and of the training clips' distances; joint models have none."""

ROW_ARRAYS = ("trained_rows", "trained_row_films")
"""Arrays by which training rows are recognised; every file has them."""

PICTURE_ARRAYS = ("trained_pictures", "trained_picture_films")
"""Arrays by which the pictures of training clips are recognised; in files of stores with signatures."""

FOREIGN_KINDS = ("arrays", "skops")
"""Kinds of estimators of other packages."""

OTHER_ARRAYS = (*SCORE_ARRAYS, *ROW_ARRAYS, *PICTURE_ARRAYS)
"""Names of the arrays in a file that are not the estimator's: calibration, distances and training films. A
new one is named here, and checked in `_check_other_arrays`."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """An audited file: nothing constructed yet.

    Attributes
    ----------
    where : str
        Its path or URL, for messages.
    card : Card
    arrays : mapping of str to ndarray
        Arrays of the estimator.
    other_arrays : mapping of str to ndarray
        The arrays of `OTHER_ARRAYS` that it has: ``calibration_draws`` [B, 2], ``concept_sigmoids`` [K, B,
        2], ``reach_distances`` [Q], ``reach_mean`` and ``reach_scale`` [D], ``trained_rows`` [N, M, 16],
        ``trained_row_films`` [N], ``trained_pictures`` [P, 2, 33] and ``trained_picture_films`` [P].
    """

    where: str
    card: Card
    arrays: Mapping[str, NDArray[Any]]
    other_arrays: Mapping[str, NDArray[Any]]

    @property
    def keeps_pictures(self) -> bool:
        """Whether the file has sketches of pictures, by which training films are recognised in stores."""
        for name in PICTURE_ARRAYS:
            if name not in self.other_arrays or not len(self.other_arrays[name]):
                return False
        return True


def to_state(estimator: Any, name: str = "") -> EstimatorState:
    """Convert a fitted estimator, of the zoo or of another package, to parameters and arrays.

    Parameters
    ----------
    estimator : estimator
    name : str
        Name of its model, for messages.

    Raises
    ------
    ModelError
        The estimator can't be saved.
    """
    # The zoo's estimators have conversions; an estimator of another package converts itself.
    for kind, conversion in CONVERSIONS.items():
        if not isinstance(estimator, conversion.estimator_type):
            continue
        # A pipeline counts as linear only if it is a linear probe.
        if kind == "linear" and not is_linear(estimator):
            continue
        parameters, arrays = conversion.to_state(estimator)
        return EstimatorState(kind, parameters, arrays)
    return foreign_to_state(estimator, name)


def pack(card: Card, arrays: Mapping[str, NDArray[Any]], other_arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes of a model's file; the same model gives the same bytes."""
    return pack_archive(card.to_json(), {**arrays, **other_arrays})


def write_model(
    path: Path, card: Card, arrays: Mapping[str, NDArray[Any]], other_arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a model file atomically."""
    data = pack(card, arrays, other_arrays)
    make_folder(path.parent)
    write_whole(path, data)


def read_model(source: Path | str, zoo: Path | str | None = None) -> ModelFile:
    """Read and audit a model file; no byte of it is executed, and memory is bounded by its size.

    Parameters
    ----------
    source : Path or str
        A path; a URL that begins with https://, http://, s3:// or hf:// (these need `obygaze[remote]`); or
        NAME or NAME@VERSION of a model in a list.
    zoo : Path or str, optional
        Folder or URL of the list; None for $OBYGAZE_ZOO, or the list of models that obygaze ships.

    Raises
    ------
    ModelError
        The file is not a model's, is damaged, newer than this reader, or contradicts itself.
    """
    location, data = find_bytes(source, zoo)
    return audit(location, data)


def find_bytes(source: Path | str, zoo: Path | str | None = None) -> tuple[str, bytes]:
    """Read the bytes of a model's file, and return its path or URL with them.

    The arguments are those of `read_model`.

    Raises
    ------
    ModelError
        The path is not a file, or a list has no such model.
    FileNotFoundError
        There is no such file.
    """
    if is_name(str(source)):
        # A name in a list of models.
        place = zoo or default_zoo()
        entry = find_entry(str(source), place)
        return read_entry(entry, place)

    # A URL or a path.
    location = as_url(source) or str(local_path(source))
    _refuse_folder(Path(location))
    folder, name = os.path.split(location)
    data = read_limited(folder, name, links=True)
    if data is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), location)
    return location, data


def _refuse_folder(path: Path) -> None:
    """Raise if something exists at a path that is not a regular file, from which no model can be read.

    The message for a folder names up to three models in it. A path at which nothing exists is no error here.
    """
    if path.is_file() or not path.exists():
        return
    models = sorted(path.glob("*.model"))  # of a folder; there are none for a pipe or a device
    hint = ""
    if models:
        hint = f"; it holds {', '.join(map(str, models[:3]))}: name one"
    raise ModelError(f"{path} is a folder, a pipe or a device, not the file of a model{hint}")


def audit(location: str, data: bytes) -> ModelFile:
    """Read card and arrays of a model file, and check that they fit together; no byte of it is executed.

    Parameters
    ----------
    location : str
        Path or URL of the file, for messages.
    data : bytes

    Raises
    ------
    ModelError
        As `read_model`.
    """
    document, arrays = unpack_archive(data, location)
    card = parse_card(document, location)
    # The arrays of the estimator are checked when it is made (`construct`). The others belong to the
    # calibration, or tell which films were trained on, and have fixed names.
    arrays_of_estimator = {name: array for name, array in arrays.items() if name not in OTHER_ARRAYS}
    other_arrays = {name: arrays[name] for name in OTHER_ARRAYS if name in arrays}
    try:
        _check_other_arrays(card, other_arrays)
    except ModelError as error:
        raise ModelError(f"{location}: {error}") from error
    return ModelFile(location, card, arrays_of_estimator, other_arrays)


def construct(file: ModelFile, offered: Mapping[str, Any] | None = None) -> Any:
    """Make the fitted estimator of an audited file.

    Parameters
    ----------
    file : ModelFile
    offered : mapping, optional
        Name of a model -> its estimator, for external ones (`foreign_from_state`).

    Raises
    ------
    ModelError
        Card and arrays don't fit together.
    """
    card = file.card
    arrays = dict(file.arrays)
    try:
        if card.kind in FOREIGN_KINDS:
            return foreign_from_state(card, arrays, offered or {})
        return CONVERSIONS[card.kind].from_state(card, arrays)
    except KeyError as error:
        # A conversion looks up the parameters that it needs.
        raise ModelError(f"{file.where}: the card's parameter {error} is missing") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{file.where}: {first_line(error)}") from error


def _check_other_arrays(card: Card, other_arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if the arrays of a file that are not the estimator's do not fit the model's card.

    They are those of the calibration and of distances, and those by which training films are recognised.
    """
    score_arrays = {}
    training_arrays = {}
    for name, array in other_arrays.items():
        if name in SCORE_ARRAYS:
            score_arrays[name] = array
        else:
            training_arrays[name] = array
    _check_score_arrays(card, score_arrays)
    check_training_arrays(training_arrays, n_inputs=len(card.inputs), n_films=len(card.movies))


def _check_score_arrays(card: Card, score_arrays: Mapping[str, NDArray[Any]]) -> None:
    """Raise if the arrays for calibration and out-of-distribution distances do not fit the model's card.

    ``reach_distances`` are quantiles of the training clips' distances, and so must rise.
    """
    check_arrays(score_arrays, **_shapes_of_score_arrays(card, score_arrays))
    if (np.diff(score_arrays.get("reach_distances", ())) < 0).any():
        raise ModelError("reach_distances are not in rising order")


def _shapes_of_score_arrays(
    card: Card, score_arrays: Mapping[str, NDArray[Any]]
) -> dict[str, tuple[int, ...]]:
    """Return the shapes that the `SCORE_ARRAYS` of a model's file should have: name -> shape.

    They are what scores are judged by: how far training clips reach (``reach_...``, quantiles of distances
    and the moments of features), and the draws of calibrations. The card does not say how many draws a
    calibration has: any number is right, and is taken from the array itself.
    """
    # A model of several labs' sums was made without their clips, and has none of these.
    if card.protocol == JOINT:
        return {}
    n_concepts = len(card.concepts)
    shapes: dict[str, tuple[int, ...]] = {
        "reach_distances": (N_LEVELS,),
        "reach_mean": (card.n_features,),
        "reach_scale": (card.n_features,),
    }
    slope_and_intercept = 2  # of a draw
    if card.calibration:
        n_draws = _count_draws(score_arrays, "calibration_draws")
        shapes["calibration_draws"] = (n_draws, slope_and_intercept)
    # Concepts that were found without labels have no probabilities.
    has_labels_of_concepts = not card.parameters.get(UNLABELLED)
    if n_concepts and has_labels_of_concepts:
        n_draws = _count_draws(score_arrays, "concept_sigmoids")
        shapes["concept_sigmoids"] = (n_concepts, n_draws, slope_and_intercept)
    return shapes


def _count_draws(score_arrays: Mapping[str, NDArray[Any]], name: str) -> int:
    """Return the number of draws in an array [..., draws, 2] of slopes and intercepts.

    It is 1 for an array that is missing, empty or of another shape: any number would do, as `check_arrays`
    refuses such an array.
    """
    array = score_arrays.get(name, np.empty(0))
    if array.ndim < 2:
        return 1
    return max(int(array.shape[-2]), 1)


def check_training_arrays(trained: Mapping[str, NDArray[Any]], *, n_inputs: int, n_films: int) -> None:
    """Raise if the arrays of a file by which training films are recognised are not valid.

    Parameters
    ----------
    trained : mapping of str to ndarray
        Digests of rows and, if there are any, sketches of pictures, each with the films they are of.
    n_inputs : int
        Number of modalities that the model reads.
    n_films : int
        Number of films that it was trained on.

    Raises
    ------
    ModelError
        An array is wrong; the message names the first.
    """
    # None stands for any number of rows.
    shapes: dict[str, tuple[int | None, ...]] = {
        "trained_rows": (None, n_inputs, DIGEST_BYTES),
        "trained_row_films": (None,),
    }
    has_pictures = any(name in trained for name in PICTURE_ARRAYS)
    if has_pictures:
        shapes |= {"trained_pictures": (None, KEPT_VIEWS, SKETCH_BYTES), "trained_picture_films": (None,)}
    differing_names = sorted(trained.keys() ^ shapes.keys())
    if differing_names:
        name = differing_names[0]
        problem = "missing" if name in shapes else "one too many"
        raise ModelError(f"the array {name!r} is {problem}")
    for name, shape in shapes.items():
        _check_training_array(name, trained[name], shape, n_films)
    # Digests, and sketches, have an array of the same length that says which film each of them is of.
    for name, films_name in (ROW_ARRAYS, PICTURE_ARRAYS):
        if name in trained and len(trained[name]) != len(trained[films_name]):
            raise ModelError(f"the arrays {name} and {films_name} are not of one length")


def _check_training_array(
    name: str, array: NDArray[Any], shape: tuple[int | None, ...], n_films: int
) -> None:
    """Raise if an array by which training films are recognised has a wrong shape, type or number of a film.

    Arrays whose names end in "_films" hold numbers of films, from 0 to `n_films` - 1; the others hold bytes.
    None in `shape` stands for any size.
    """
    holds_films = name.endswith("_films")
    kind = "i" if holds_films else "u"  # numpy's letters for signed and unsigned integers, which bytes are
    if not _has_shape(array, shape) or array.dtype.kind != kind:
        raise ModelError(f"the array {name} should be of shape {list(shape)}; found {list(array.shape)}")
    if holds_films:
        has_unknown_film = int(array.min()) < 0 or int(array.max()) >= n_films
        if has_unknown_film:
            raise ModelError(f"the array {name} names a film that is not among the movies")


def _has_shape(array: NDArray[Any], shape: tuple[int | None, ...]) -> bool:
    """Tell whether an array has a shape, in which None stands for any size."""
    if array.ndim != len(shape):
        return False
    return all(expected in (None, size) for expected, size in zip(shape, array.shape, strict=True))


# --- estimators of other packages: by their own arrays, or by skops if made of scikit-learn's parts
# ---------------------------------------------------------------------------
OWN_PREFIX = "own_"
"""Begins the name of every array that `to_arrays` of an estimator returned."""

TRUSTED_TYPES = (
    "obygaze_models.models.scaling.ClippedScaler",
    "obygaze_models.models.ridge_logistic.RidgeLogistic",
)
"""Types that skops may make, beside those of NumPy, SciPy and scikit-learn that it trusts. It does not trust
trees: scikit-learn follows the node numbers in them without checking their range."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can state, so that bytes do not depend on the clock."""


@runtime_checkable
class GivesArrays(Protocol):
    """An estimator that can be kept though it is not of scikit-learn's parts.

    Its class is found again by the name of the entry point (`obygaze.models`) that offers it.
    """

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return all that was learnt, and every setting, as arrays of floats, int64 or uint8."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make the fitted estimator from the arrays of `to_arrays`; refuse others with a ValueError."""


def foreign_to_state(estimator: Any, name: str) -> EstimatorState:
    """Convert an estimator of another package to arrays, by which it can be made again without pickle.

    An estimator that has the method `to_arrays` gives its own arrays. One that is made of scikit-learn's
    parts is converted to a skops archive, whose bytes are an array.

    Raises
    ------
    ModelError
        The estimator has no `to_arrays`, and has parts that skops does not trust.
    """
    if isinstance(estimator, GivesArrays):
        arrays = {OWN_PREFIX + label: np.asarray(array) for label, array in estimator.to_arrays().items()}
        return EstimatorState("arrays", {}, arrays)
    data = _make_reproducible(_to_skops(estimator, name))
    return EstimatorState("skops", {}, {"skops": np.frombuffer(data, dtype=np.uint8)})


def _to_skops(estimator: Any, name: str) -> bytes:
    """Convert an estimator made of scikit-learn's parts to a skops archive; `name` is for messages.

    Raises
    ------
    ModelError
        skops is not installed, or can't convert the estimator, or does not trust a part of it.
    """
    try:
        from skops import io as skops  # noqa: PLC0415 - obygaze[skops]
    except ModuleNotFoundError:
        raise ModelError(
            f"model {name} can't be kept: its {type(estimator).__name__} has no to_arrays (docs/predict.md); "
            "one made of scikit-learn's parts, but for trees, can be, with: "
            f"{install_command('obygaze[skops]')}"
        ) from None
    # What will not be read from a file is not written: the types in it must be trusted.
    data = b""
    try:
        data = skops.dumps(estimator)
        problems = _untrusted_types(data)
    except Exception as error:  # noqa: BLE001 - whatever a foreign object raises when it is asked for its state
        problems = [f"{type(estimator).__name__} ({first_line(error)})"]
    if problems:
        raise ModelError(
            f"model {name} can't be kept: {problems[0]:.200} is not trusted in a file; "
            "give the estimator to_arrays and from_arrays (docs/predict.md)"
        )
    return data


def foreign_from_state(card: Card, arrays: Arrays, offered: Mapping[str, Any]) -> Any:
    """Make a fitted estimator of another package from its arrays.

    Parameters
    ----------
    card : Card
    arrays : dict of str to ndarray
    offered : mapping of str to estimator, factory or ModelSpec
        Name of a model, without the annotator it was trained for -> its estimator. Others are found among the
        entry points of installed packages. A file can not cause any other module to be imported.

    Raises
    ------
    ModelError
        No package offers the estimator, or it refuses the arrays.
    """
    if card.kind == "skops":
        return _from_skops(arrays)

    # The file holds the estimator's arrays, but not its class. It is offered under the model's name, without
    # the annotator in it.
    name = offered_name(card.model, offered)
    model: Any = offered.get(name)
    if model is None:
        model = _load_entry_point(card)
    # What is offered may be an estimator, a function that makes one, or a spec. One is made to see its class.
    unfitted = as_spec(name, model).make(card.seed)
    estimator_class = type(unfitted)
    can_be_made_of_arrays = isinstance(unfitted, GivesArrays)
    if not can_be_made_of_arrays or estimator_class.__name__ != card.estimator:
        raise ModelError(f"it is of a {card.estimator}; {name!r} is a {estimator_class.__name__} here")
    # In the file the names of the estimator's own arrays have a prefix.
    own_arrays = {label.removeprefix(OWN_PREFIX): array for label, array in arrays.items()}
    try:
        return estimator_class.from_arrays(own_arrays)
    except Exception as error:
        raise ModelError(f"{card.estimator} refuses its arrays: {error}") from error


def offered_name(model: str, offered: Collection[str]) -> str:
    """Return by which of the `offered` names the estimator of a saved model is found.

    A file holds an estimator's arrays, but not its class, if this is of another package. The package, or the
    caller of `load_model`, offers the class under the model's name. A model that was trained for one
    annotator has the annotator in its name: if this name is not offered, the one without the annotator is.
    """
    if model in offered:
        return model
    return name_in_zoo(model)


def _load_entry_point(card: Card) -> Any:
    """Load what an installed package offers under the name of a card's model, by its entry points.

    It is an estimator, a factory or a ModelSpec. Only packages that the user installed are imported, whatever
    the file says.
    """
    entry_points = {point.name: point for point in points(MODELS)}
    name = offered_name(card.model, entry_points)
    if name not in entry_points:
        raise ModelError(
            f"its estimator {card.estimator} is made by {name!r}, "
            f"which no installed package offers as an entry point of {MODELS}: "
            "install that package, or in Python load_model(file, offered={name: estimator})"
        )
    return entry_points[name].load()


def _from_skops(arrays: Arrays) -> Any:
    """Make an estimator from a skops archive, if all types in it are trusted.

    `arrays` holds the archive's bytes under the name "skops".
    """
    if set(arrays) != {"skops"} or arrays["skops"].dtype != np.uint8:
        raise ModelError("a model of kind skops has the array skops, of bytes")
    data = arrays["skops"].tobytes()
    from skops import io as skops  # noqa: PLC0415 - obygaze[skops]

    # A refusal is raised after the block: in it, it would be taken for damage.
    try:
        refusal = _why_refused(data)
        estimator = None if refusal else skops.loads(data, trusted=list(TRUSTED_TYPES))
    except Exception as error:
        reason = first_line(error, longest=200)
        raise ModelError(f"its skops archive is damaged ({type(error).__name__}: {reason})") from error
    if refusal:
        raise ModelError(refusal)
    return estimator


def _why_refused(data: bytes) -> str:
    """Return the reason why a skops archive, given as bytes, must not be loaded; "" if it may be."""
    # A compressed archive could take up far more memory than its size.
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist())
    if is_compressed:
        return "its skops archive is compressed"
    untrusted = _untrusted_types(data)
    if untrusted:
        return f"it holds {untrusted[0]:.200}, which is not trusted in a file: nothing was made of it"
    return ""


def _untrusted_types(data: bytes) -> list[str]:
    """List the types in a skops archive, given as bytes, that neither skops nor we trust.

    To make an object of an untrusted type could execute code.
    """
    from skops import io as skops  # noqa: PLC0415 - obygaze[skops]

    return sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED_TYPES))


def _make_reproducible(data: bytes) -> bytes:
    """Rewrite a skops archive such that the same estimator always gives the same bytes.

    skops numbers objects by their addresses in memory, which differ from run to run; here they are renumbered
    in order of appearance. Members are sorted, and have no times.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}

    # The schema describes the estimator's objects; the other members hold their arrays.
    schema = members.pop("schema.json").decode("utf-8")
    schema, number_of_address = _renumber_objects(schema)
    files = []
    for name, content in members.items():
        # The file of an object's array is named after the object, such as "140245.npy".
        address, _, suffix = name.partition(".")
        files.append((number_of_address[address], suffix, content))

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        sorted_schema = json.dumps(json.loads(schema), sort_keys=True)
        archive.writestr(zipfile.ZipInfo("schema.json", _EPOCH), sorted_schema)
        for number, suffix, content in sorted(files):
            archive.writestr(zipfile.ZipInfo(f"{number}.{suffix}", _EPOCH), content)
    return buffer.getvalue()


def _renumber_objects(schema: str) -> tuple[str, dict[str, int]]:
    """Renumber the objects of a skops archive's schema, 1, 2, ... in order of appearance.

    Returns
    -------
    schema : str
        With the new numbers.
    number_of_address : dict of str to int
        The old number of an object, which is its address -> the new one.
    """
    number_of_address: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        """Replace the address in a match by the object's number."""
        address = match["address"]
        number = number_of_address.setdefault(address, len(number_of_address) + 1)
        return match[0].replace(address, str(number))

    # An object's address is in its field "__id__": 140245, and in the name of its file, "file": "140245.npy".
    schema = re.sub(r'"__id__": (?P<address>\d+)', renumber, schema)
    schema = re.sub(r'"file": "(?P<address>\d+)\.\w+"', renumber, schema)
    return schema, number_of_address
