"""The card of a model: everything but its arrays, checked field by field."""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from obygaze_features.io import NO_LICENCE
from obygaze_features.store import StoreError, validate_provenance
from obygaze_features.store.format import FEATURE_ARRAYS
from obygaze_features.store.provenance import NOT_NUMERICS
from obygaze_models.errors import ModelError

FORMAT = "obygaze model"
PROTOCOL = 3
"""Number of the format. It grows when a reader of the last one would misread the next; every number that was
ever written stays readable."""

KINDS = ("linear", "mlp", "pcbm", "cav", "bank", "arrays", "skops")
"""How a file keeps an estimator: the zoo's own, one that gives its arrays, one of scikit-learn's parts."""


@dataclass(frozen=True)
class Card:
    """What a model is, what it was trained on, and how well it did.

    Attributes
    ----------
    model, title : str
        The model's name in the zoo, and as people read it.
    kind : str
        One of `KINDS`.
    estimator : str
        Name of its class.
    parameters : mapping
        What the estimator is made with, as JSON values.
    threshold : float
        The score from which on a clip is called positive.
    target : mapping
        What it answers: name, title, kind, classes (lists of levels, from low to high), concept.
    concepts : tuple of str
        Those it reads clips through, in the order of its arrays.
    backbone, features, pool : str
        The features it reads: group and array of the store, and how rows became one vector per clip.
    n_features : int
        D.
    provenance : mapping
        Of the store's group: another store's features must agree in all that makes numbers differ.
    provenance_sha256 : str
        Digest of those fields: equal for stores of one family.
    store : str
        Fingerprint of the store trained on.
    codebook : mapping
        Name and digest of the codebook that its labels are of.
    manifest_sha256, label_policy : str
        "" if not stated.
    protocol : str
        How the metrics came about.
    seed : int
    movies : tuple of str
        The films trained on: what the model says of their clips is not a prediction.
    n_clips, n_positives : int
        Clips trained on.
    calibration : mapping
        Slope and intercept of the sigmoid that makes scores probabilities, and its expected calibration error
        on films left out; empty for a model that has none. Where known: film_error and worst_film_error, the
        mean and the largest error of the expected share of positive clips of a film left out.
    metrics : tuple of mapping
        Out-of-fold metrics of models trained as this one was, each on all films but one.
    versions : mapping
        Of the software that trained it.
    licence : str
        SPDX expression; NOASSERTION if none is stated.
    citation : str
    clip_s : float or None
        Median length of the clips trained on, in seconds; None where the store does not tell.
    number : int
        The format's number in the file.
    reach : float or None
        Formats 1 and 2, which have no quantiles of distances: the farthest training clip's distance, if told.
    """

    model: str
    title: str
    kind: str
    estimator: str
    parameters: Mapping[str, Any]
    threshold: float
    target: Mapping[str, Any]
    backbone: str
    features: str
    pool: str
    n_features: int
    provenance: Mapping[str, Any]
    provenance_sha256: str
    store: str
    codebook: Mapping[str, str]
    protocol: str
    seed: int
    movies: tuple[str, ...]
    n_clips: int
    n_positives: int
    metrics: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, str]
    concepts: tuple[str, ...] = ()
    calibration: Mapping[str, float] = field(default_factory=dict)
    manifest_sha256: str = ""
    label_policy: str = ""
    licence: str = NO_LICENCE
    citation: str = ""
    clip_s: float | None = None
    number: int = PROTOCOL
    reach: float | None = None

    def to_json(self) -> dict[str, object]:
        """Return the card as JSON values, with the format's name and number.

        Raises
        ------
        ValueError
            It was read from an older format, which is not written any more.
        """
        if self.number != PROTOCOL:
            raise ValueError(f"a card of format {self.number} can't be written as format {PROTOCOL}")
        fields = asdict(self)
        del fields["number"], fields["reach"]
        if self.clip_s is None:
            del fields["clip_s"]
        listed = {name: list(fields[name]) for name in ("movies", "metrics", "concepts")}
        return {"format": FORMAT, "protocol_number": PROTOCOL, **fields, **listed}


def family(provenance: Mapping[str, Any]) -> str:
    """Digest (SHA-256) the fields of a provenance that make numbers differ."""
    counting = {name: value for name, value in provenance.items() if name not in NOT_NUMERICS}
    return hashlib.sha256(json.dumps(counting, sort_keys=True).encode("utf-8")).hexdigest()


SPDX = r"\(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*( (AND|OR|WITH) \(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*)*"

Rule = tuple[str, Callable[[Any], bool]]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_names(value: object) -> bool:
    return _is_texts(value) and len(set(value)) == len(value)  # type: ignore[call-overload,arg-type]


def _digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_target(value: object) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"name", "title", "kind", "classes", "concept"}
        and all(isinstance(value[name], str) for name in ("name", "title", "kind", "concept"))
        and isinstance(value["classes"], list)
        and all(_is_texts(side) for side in value["classes"])
    )


LICENCE: Rule = (
    f"an SPDX licence expression such as CC-BY-4.0, or {NO_LICENCE}",
    lambda value: isinstance(value, str) and re.fullmatch(SPDX, value) is not None,
)
TEXT: Rule = ("text, not empty", lambda value: isinstance(value, str) and bool(value.strip()))
ANY_TEXT: Rule = ("text", lambda value: isinstance(value, str))
NUMBER: Rule = ("a finite number", _is_number)
COUNT: Rule = ("a whole number, 0 or more", _is_count)
ABOVE_0: Rule = ("a whole number above 0", lambda value: _is_count(value) and value > 0)
DIGEST: Rule = ("64 lower-case hexadecimal digits (SHA-256)", _digest)
OBJECT: Rule = ("an object", lambda value: isinstance(value, dict))
PARAMETERS: Rule = (
    "an object of text and numbers",
    lambda value: (
        isinstance(value, dict)
        and all(v is None or isinstance(v, str | bool) or _is_number(v) for v in value.values())
    ),
)
TEXT_VALUES: Rule = (
    "an object of texts",
    lambda value: isinstance(value, dict) and all(isinstance(v, str) for v in value.values()),
)
TEXTS: Rule = ("a list of text", _is_texts)
OBJECTS: Rule = (
    "a list of objects",
    lambda value: isinstance(value, list) and all(isinstance(v, dict) for v in value),
)
CALIBRATION: Rule = (
    "an object of slope, intercept and error, or empty",
    lambda value: (
        isinstance(value, dict)
        and (
            not value or value.keys() - {"film_error", "worst_film_error"} == {"slope", "intercept", "error"}
        )
        and all(_is_number(v) for v in value.values())
    ),
)


def one_of(*choices: str) -> Rule:
    """Expect one of some words."""
    return f"one of {', '.join(choices)}", lambda value: isinstance(value, str) and value in choices


COMMON: dict[str, Rule] = {
    "estimator": TEXT,
    "parameters": PARAMETERS,
    "threshold": NUMBER,
    "backbone": TEXT,
    "features": one_of(*FEATURE_ARRAYS),
    "pool": one_of("max", "mean", "as stored", "none"),
    "n_features": ABOVE_0,
    "provenance": OBJECT,
    "provenance_sha256": DIGEST,
    "store": DIGEST,
    "protocol": TEXT,
    "seed": COUNT,
    "movies": TEXTS,
    "n_clips": ABOVE_0,
    "n_positives": COUNT,
    "metrics": OBJECTS,
    "versions": TEXT_VALUES,
}

FIELDS: dict[str, Rule] = COMMON | {
    "model": TEXT,
    "title": TEXT,
    "kind": one_of(*KINDS),
    "target": (
        "an object of name, title, kind, classes (lists of levels) and concept",
        _is_target,
    ),
    "concepts": ("a list of names that differ", _is_names),
    "codebook": (
        "an object of name and digest",
        lambda value: TEXT_VALUES[1](value) and value.keys() == {"name", "digest"},
    ),
    "calibration": CALIBRATION,
    "manifest_sha256": ANY_TEXT,
    "label_policy": ANY_TEXT,
    "licence": LICENCE,
    "citation": ANY_TEXT,
}
"""Every field of a card of this format."""

OPTIONAL: dict[str, Rule] = {"clip_s": ("a number above 0", lambda value: _is_number(value) and value > 0)}
"""Fields that a card of this format may lack."""

OLD_FIELDS: dict[str, Rule] = COMMON | {
    "estimator": one_of("MLPProbe"),
    "n_epochs": ABOVE_0,
    "manifest_sha256": DIGEST,
    "label_policy": one_of("raw", "paper", "released"),
    "train_task": TEXT,
    "test_task": TEXT,
    "n_positives": ABOVE_0,
    "reach": ("a finite number, 0 or more", lambda value: _is_number(value) and value >= 0),
}
"""Every field of a card of formats 1 and 2, which kept perceptrons alone; `reach` is there since 2."""


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
    number = _number(found, name)
    rules = FIELDS if number == PROTOCOL else OLD_FIELDS
    if number == PROTOCOL:
        rules = rules | {label: rule for label, rule in OPTIONAL.items() if label in found}
    if number == 1:
        rules = {label: rule for label, rule in rules.items() if label != "reach"}
    _check(found, rules, name)
    try:
        validate_provenance(found["provenance"], sealed=True)
    except StoreError as error:
        raise ModelError(f"{name}: the card's {error}") from error
    if family(found["provenance"]) != found["provenance_sha256"]:
        raise ModelError(f"{name}: the card's provenance is not what its provenance_sha256 is of")
    fields = {label: found[label] for label in rules}
    if number != PROTOCOL:
        fields = _as_new(fields) | {"number": number}
    listed = {label: tuple(fields.get(label, ())) for label in ("movies", "metrics", "concepts")}
    return Card(**fields | listed)


def _number(found: Mapping[str, Any], name: str) -> int:
    """Read the format's number, and refuse what is no card of a format known here."""
    if found.get("format") != FORMAT:
        raise ModelError(f"{name}: not a model of obygaze (its card's format is {found.get('format')!r:.80})")
    number: Any = found.get("protocol_number")
    if not _is_count(number) or not number:
        raise ModelError(f"{name}: protocol_number should be a whole number above 0; found {number!r:.80}")
    if number > PROTOCOL:
        raise ModelError(
            f"{name}: model format {number} is newer than this obygaze reads ({PROTOCOL}): update obygaze"
        )
    return int(number)


def _check(found: Mapping[str, Any], rules: Mapping[str, Rule], name: str) -> None:
    """Refuse a card with a field too much, too few, or not what it should be."""
    unknown = sorted(found.keys() - rules.keys() - {"format", "protocol_number", "arrays"})
    if unknown:
        raise ModelError(f"{name}: the card has an unknown field {unknown[0]!r:.80}")
    for label, (words, test) in rules.items():
        if label not in found:
            raise ModelError(f"{name}: the card's field {label!r} is missing; expected {words}")
        if not test(found[label]):
            raise ModelError(f"{name}: the card's {label!r} should be {words}; found {found[label]!r:.80}")


def _as_new(fields: dict[str, Any]) -> dict[str, Any]:
    """Say in the words of format 3 what a card of formats 1 and 2 says."""
    task, n_epochs = fields.pop("train_task"), fields.pop("n_epochs")
    del fields["test_task"]
    # A file that names no `imbalance` is older than it, and had none; nor had any a limit to standardised
    # features.
    parameters = {"imbalance": "none", "clip": None} | fields["parameters"] | {"n_epochs": n_epochs}
    parameters.pop("inner_folds", None)  # perceptrons chose their epochs themselves
    return fields | {
        "model": "mlp",
        "title": "MLP",
        "kind": "mlp",
        "parameters": parameters,
        "target": {"name": task, "title": task, "kind": "levels", "classes": [], "concept": ""},
        "codebook": {"name": "obygaze12", "digest": ""},
    }
