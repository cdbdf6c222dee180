"""Keep estimators of other packages: by their own arrays, or by skops if made of scikit-learn's parts."""

import io
import json
import re
import zipfile
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from obygaze_features.errors import first_line
from obygaze_models.errors import ModelError
from obygaze_models.models.registry import ENTRY_POINTS, as_spec
from obygaze_models.persistence.card import Card
from obygaze_models.persistence.estimators import Arrays, EstimatorState

OWN = "own_"
"""Begins the name of every array that an estimator gave itself."""

TRUSTED = (
    "obygaze_models.models.linear.ClippedScaler",
    "obygaze_models.models.ridge_logistic.RidgeLogistic",
)
"""Types, beside those of NumPy, SciPy and scikit-learn that skops trusts, that it may make. Trees it does not
trust: scikit-learn follows the node numbers in them without a look at their range."""

_EPOCH = (1980, 1, 1, 0, 0, 0)


@runtime_checkable
class GivesArrays(Protocol):
    """An estimator that can be kept though it is not of scikit-learn's parts.

    Its class is found again by the name of the entry point (`obygaze.models`) that offers it.
    """

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Return all that was learnt, and every setting, as arrays of floats, int64 or uint8."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Make the fitted estimator of what `to_arrays` gave; refuse other arrays with a ValueError."""


def foreign_to_state(estimator: Any, name: str) -> EstimatorState:
    """Convert another's estimator to parameters and arrays.

    Raises
    ------
    ModelError
        It gives no arrays, and has parts that skops does not trust.
    """
    if isinstance(estimator, GivesArrays):
        given = {OWN + label: np.asarray(array) for label, array in estimator.to_arrays().items()}
        return EstimatorState("arrays", {}, given)
    try:
        from skops import io as skops  # noqa: PLC0415 - obygaze[skops]
    except ModuleNotFoundError:
        raise ModelError(
            f"model {name} can't be kept: its {type(estimator).__name__} has no to_arrays; "
            "one made of scikit-learn's parts can be, with: pip install 'obygaze[skops]'"
        ) from None
    try:
        data = skops.dumps(estimator)
        strange = _strange_types(data)
    except Exception as error:  # noqa: BLE001 - whatever a foreign object raises when it is asked for its state
        strange = [f"{type(estimator).__name__} ({first_line(error)})"]
    if strange:
        raise ModelError(
            f"model {name} can't be kept: {strange[0]:.200} is not trusted in a file; "
            "give the estimator to_arrays and from_arrays (docs/predict.md)"
        )
    return EstimatorState("skops", {}, {"skops": np.frombuffer(_same_every_time(data), dtype=np.uint8)})


def foreign_from_state(card: Card, arrays: Arrays, offered: Mapping[str, Any]) -> Any:
    """Make another's estimator of its parameters and arrays.

    Parameters
    ----------
    card : Card
    arrays : dict of str to ndarray
    offered : mapping of str to estimator, factory or ModelSpec
        By model name; further ones are found among the entry points of installed packages. No module is
        imported because a file names it.

    Raises
    ------
    ModelError
        No package offers it, or the arrays are not what it gave.
    """
    if card.kind == "skops":
        return _from_skops(arrays)
    given: Any = offered.get(card.model)
    if given is None:
        points = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        if card.model not in points:
            raise ModelError(
                f"its estimator {card.estimator} is made by {card.model!r}, "
                f"which no installed package offers as an entry point of {ENTRY_POINTS}: "
                "install that package, or in Python load_model(file, offered={name: estimator})"
            )
        given = points[card.model].load()
    made = as_spec(card.model, given).make(card.seed)
    if not isinstance(made, GivesArrays) or type(made).__name__ != card.estimator:
        raise ModelError(f"it is of a {card.estimator}; {card.model!r} is a {type(made).__name__} here")
    own = {label.removeprefix(OWN): array for label, array in arrays.items()}
    try:
        return type(made).from_arrays(own)
    except Exception as error:
        raise ModelError(f"{card.estimator} refuses its arrays: {error}") from error


def _from_skops(arrays: Arrays) -> Any:
    if set(arrays) != {"skops"} or arrays["skops"].dtype != np.uint8:
        raise ModelError("a model of kind skops has the array skops, of bytes")
    data = arrays["skops"].tobytes()
    from skops import io as skops  # noqa: PLC0415 - obygaze[skops]

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
        plain_sizes = stored and sum(member.file_size for member in members) <= len(data)
        strange = _strange_types(data) if plain_sizes else []
        if plain_sizes and not strange:
            return skops.loads(data, trusted=list(TRUSTED))
    except Exception as error:
        reason = first_line(error, 200)
        raise ModelError(f"its skops archive is damaged ({type(error).__name__}: {reason})") from error
    if not plain_sizes:
        raise ModelError("its skops archive is compressed, or claims more bytes than it has")
    raise ModelError(f"it holds {strange[0]:.200}, which is not trusted in a file: nothing was made of it")


def _strange_types(data: bytes) -> list[str]:
    from skops import io as skops  # noqa: PLC0415 - obygaze[skops]

    return sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED))


def _same_every_time(data: bytes) -> bytes:
    """Return a skops archive's objects numbers in order; skops names them by their places in memory."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    schema = members.pop("schema.json").decode("utf-8")
    numbers: dict[str, str] = {}

    def renumber(match: re.Match[str]) -> str:
        return match[1] + numbers.setdefault(match[2], str(len(numbers) + 1)) + match[3]

    schema = re.sub(r'("__id__": )(\d+)()', renumber, schema)
    schema = re.sub(r'("file": ")(\d+)(\.\w+")', renumber, schema)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(
            zipfile.ZipInfo("schema.json", _EPOCH), json.dumps(json.loads(schema), sort_keys=True)
        )
        for name, content in sorted(
            members.items(), key=lambda item: int(numbers[item[0].partition(".")[0]])
        ):
            stem, _, suffix = name.partition(".")
            archive.writestr(zipfile.ZipInfo(f"{numbers[stem]}.{suffix}", _EPOCH), content)
    return buffer.getvalue()
