"""The card of a model: everything but its arrays, checked field by field."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from obygaze_features.store import StoreError, validate_provenance
from obygaze_features.store.provenance import NOT_NUMERICS
from obygaze_models.errors import ModelError

FORMAT = "obygaze model"
PROTOCOL = 2
"""Number of the format. It grows when a reader of the last one would misread the next; every number that was
ever written stays readable."""


@dataclass(frozen=True)
class Card:
    """What a model is, what it was trained on, and how well it did.

    Attributes
    ----------
    estimator : str
        ``MLPProbe``.
    parameters : mapping
        Its constructor's parameters; a file that names no `imbalance` is older than it, and had none.
    threshold : float
        The logit from which on a clip is called positive.
    n_epochs : int
        Epochs that made the parameters.
    backbone, features, pool : str
        The features it reads: group and array of the store, and how rows became one vector a clip.
    n_features : int
        D.
    provenance : mapping
        Of the store's group: another store's features must agree in all that makes numbers differ.
    provenance_sha256 : str
        Digest of those fields: equal for stores of one family.
    store : str
        Fingerprint of the store trained on.
    manifest_sha256 : str
    label_policy, train_task, protocol : str
    test_task : str
        What the metrics are of.
    seed : int
    movies : tuple of str
        The movies trained on: what the model says of their clips is not a prediction.
    n_clips, n_positives : int
        Clips trained on.
    metrics : tuple of mapping
        Out-of-fold metrics of models trained as this one was, each on all movies but one.
    versions : mapping
        Of the software that trained it.
    reach : float, optional
        Distance from their mean of the training clip that lies farthest from it
        (`obygaze_models.experiments.reach`); since format 2.
    """

    estimator: str
    parameters: Mapping[str, Any]
    threshold: float
    n_epochs: int
    backbone: str
    features: str
    pool: str
    n_features: int
    provenance: Mapping[str, Any]
    provenance_sha256: str
    store: str
    manifest_sha256: str
    label_policy: str
    train_task: str
    test_task: str
    protocol: str
    seed: int
    movies: tuple[str, ...]
    n_clips: int
    n_positives: int
    metrics: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, str]
    reach: float | None = None

    def to_json(self) -> dict[str, object]:
        """Give the card as JSON values, with the format's name and number."""
        fields = asdict(self) | {"movies": list(self.movies), "metrics": list(self.metrics)}
        if self.reach is None:
            del fields["reach"]
        number = 1 if self.reach is None else PROTOCOL
        if number == 1:
            if self.parameters["imbalance"] != "none":
                raise ValueError("the first format can't say that an imbalance was not 'none'")
            fields["parameters"] = {
                name: value for name, value in self.parameters.items() if name != "imbalance"
            }
        return {"format": FORMAT, "protocol_number": number, **fields}


def family(provenance: Mapping[str, Any]) -> str:
    """Digest (SHA-256) the fields of a provenance that make numbers differ."""
    counting = {name: value for name, value in provenance.items() if name not in NOT_NUMERICS}
    return hashlib.sha256(json.dumps(counting, sort_keys=True).encode("utf-8")).hexdigest()


Rule = tuple[str, Callable[[Any], bool]]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


TEXT: Rule = ("text, not empty", lambda value: isinstance(value, str) and bool(value.strip()))
NUMBER: Rule = ("a finite number", _is_number)
COUNT: Rule = ("a whole number, 0 or more", _is_count)
ABOVE_0: Rule = ("a whole number above 0", lambda value: _is_count(value) and value > 0)
DIGEST: Rule = ("64 lower-case hexadecimal digits (SHA-256)", _digest)
OBJECT: Rule = ("an object", lambda value: isinstance(value, dict))
PARAMETERS: Rule = (
    "an object of text and numbers",
    lambda value: (
        isinstance(value, dict) and all(isinstance(v, str) or _is_number(v) for v in value.values())
    ),
)
VERSIONS: Rule = (
    "an object of name: version",
    lambda value: isinstance(value, dict) and all(isinstance(version, str) for version in value.values()),
)
TEXTS: Rule = (
    "a list of text",
    lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
)
OBJECTS: Rule = (
    "a list of objects",
    lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value),
)


def one_of(*choices: str) -> Rule:
    """Expect one of some words."""
    return f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices


FIELDS: dict[str, Rule] = {
    "estimator": one_of("MLPProbe"),
    "parameters": PARAMETERS,
    "threshold": NUMBER,
    "n_epochs": ABOVE_0,
    "backbone": TEXT,
    "features": one_of("pooled", "frames", "tokens"),
    "pool": one_of("max", "mean", "as stored"),
    "n_features": ABOVE_0,
    "provenance": OBJECT,
    "provenance_sha256": DIGEST,
    "store": DIGEST,
    "manifest_sha256": DIGEST,
    "label_policy": one_of("raw", "paper", "released"),
    "train_task": TEXT,
    "test_task": TEXT,
    "protocol": TEXT,
    "seed": COUNT,
    "movies": TEXTS,
    "n_clips": ABOVE_0,
    "n_positives": ABOVE_0,
    "metrics": OBJECTS,
    "versions": VERSIONS,
    "reach": ("a finite number, 0 or more", lambda value: _is_number(value) and value >= 0),
}
"""Every field of a card of this protocol number."""

ADDED: Mapping[str, int] = {"reach": 2}
"""The protocol number since which a field is there, where it is not 1."""


def parse_card(found: Mapping[str, Any], name: str) -> Card:
    """Check a card's JSON object.

    Parameters
    ----------
    found : mapping
    name : str
        The file, for messages.

    Raises
    ------
    ModelError
        It is no card, is of a newer format, or a field is missing, unknown or not what it should be.
    """
    if found.get("format") != FORMAT:
        raise ModelError(f"{name}: not a model of obygaze (its card's format is {found.get('format')!r:.80})")
    number = found.get("protocol_number")
    if not _is_count(number) or not number:
        raise ModelError(f"{name}: protocol_number should be a whole number above 0; found {number!r:.80}")
    if number > PROTOCOL:
        raise ModelError(
            f"{name}: model format {number} is newer than this obygaze reads ({PROTOCOL}): update obygaze"
        )
    rules = {field: rule for field, rule in FIELDS.items() if ADDED.get(field, 1) <= number}
    unknown = sorted(found.keys() - rules.keys() - {"format", "protocol_number", "arrays"})
    if unknown:
        raise ModelError(f"{name}: the card has an unknown field {unknown[0]!r:.80}")
    for field, (words, test) in rules.items():
        if field not in found:
            raise ModelError(f"{name}: the card's field {field!r} is missing; expected {words}")
        if not test(found[field]):
            raise ModelError(f"{name}: the card's {field!r} should be {words}; found {found[field]!r:.80}")
    try:
        validate_provenance(found["provenance"], sealed=True)
    except StoreError as error:
        raise ModelError(f"{name}: the card's {error}") from error
    if family(found["provenance"]) != found["provenance_sha256"]:
        raise ModelError(f"{name}: the card's provenance is not what its provenance_sha256 is of")
    fields = {field: found[field] for field in rules}
    return Card(
        **fields
        | {"parameters": {"imbalance": "none"} | found["parameters"]}
        | {"movies": tuple(found["movies"]), "metrics": tuple(found["metrics"])},
    )
