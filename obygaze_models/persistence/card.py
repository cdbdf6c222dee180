"""Define the card of a model, everything but its arrays, as one schema per format.

The checks, their messages and docs/model-card.schema.json follow from the classes below.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from obygaze_features.errors import StoreError
from obygaze_features.manifest import BUILTIN, PLANTED, builtin_codebook
from obygaze_features.schema import (
    Count,
    Hex64,
    Licence,
    Number,
    Object,
    SomeText,
    Text,
    Whole,
    check,
    expected,
    fits,
    one_of,
)
from obygaze_features.store import validate_provenance
from obygaze_features.store.format import FEATURE_ARRAYS
from obygaze_features.store.provenance import NOT_NUMERICS
from obygaze_features.text import counted, unsuitable
from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import ArrayEntry
from obygaze_models.persistence.evidence import Evidence, may_be_chance
from obygaze_models.protocol.targets import CodebookRecord, TargetRecord

FORMAT = "obygaze model"
PROTOCOL = 4
"""Number of the format. It grows when a reader of the last one would misread the next. A file of an older one
is refused with the line that makes it anew; fields and arrays that may be absent can come within a number."""

KINDS = (
    *("linear", "mlp", "attention", "attentive", "pcbm", "pcbm_time", "cav", "bank", "fused"),
    *("arrays", "skops"),
)
"""How a file holds an estimator.

It is one of the zoo's kinds; or ``arrays``, for an estimator that gives its own arrays; or ``skops``, for one
of scikit-learn's."""

DIGEST_BYTES = 16
"""Bytes of the SHA-256 of a row trained on that are kept: two rows share them with a chance of 2 ** -128."""

KEPT_VIEWS = 2
"""Views of a clip's signature that are kept: the picture, and it without a twentieth at each side."""

KINDS_OF_LEVELS = ("levels", "ordinal")
"""Kinds of targets whose classes are of levels: two or more, each with levels of its own."""

ROUNDING = 1e-9
"""How far a mean may lie outside of its interval because both were rounded to floats."""

Texts = Annotated[tuple[str, ...], Meta(description="a list of text")]
Names = Annotated[
    tuple[str, ...], Meta(description="a list of names that differ", extra_json_schema={"uniqueItems": True})
]
TextValues = Annotated[dict[str, str], Meta(description="an object of texts")]
Objects = Annotated[tuple[dict[str, Any], ...], Meta(description="a list of objects")]
_Scalar = str | bool | Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | Number | None
Parameters = Annotated[
    dict[str, Any],
    Meta(
        description="an object of text and numbers",
        extra_json_schema={"additionalProperties": {"type": ["string", "boolean", "number", "null"]}},
    ),
]
JOINT = "joint: fitted to sums over films of several labs; penalties chosen by leaving one film out"
"""Protocol of models that were joined from sums: they were evaluated without scores of single clips."""

UNLABELLED = "unlabelled"
"""Name of a parameter: the model's concepts were found without labels, so that they have no probabilities."""

ClipLength = Annotated[float, Meta(gt=0, lt=1e300, description="a number above 0")]
"""Median length of some clips, in seconds."""

CALIBRATION_FIELDS = ("p_skilled", "error", "film_error", "worst_film_error", "film_margin")
"""Fields of `CardFields.calibration`, which explains them."""

Calibrated = Annotated[
    dict[Literal["p_skilled", "error", "film_error", "worst_film_error", "film_margin"], Number],
    Meta(
        description="an object of p_skilled (0 to 1), error, film_error, worst_film_error and film_margin, "
        "or empty",
        extra_json_schema={"anyOf": [{"maxProperties": 0}, {"required": list(CALIBRATION_FIELDS)}]},
    ),
]


class CardTarget(TargetRecord):
    """The target of a model. `concept` is the concept whose presence is the label, or ""."""

    concept: Text


class Population(TypedDict):
    """The clips that a calibration was fitted on.

    `task` and `title` are those of the target that the clips are in: the one trained on, or a wider test.
    `clips` is the number of clips of each level. `levels_left_out` are the codebook's levels of which some
    clips, or all, are not in the target, so that their calibration is unknown. `clip_s` is the clips' median
    length, and absent if that is not known.
    """

    task: Text
    title: Text
    clips: Annotated[dict[str, Count], Meta(description="an object of numbers of clips")]
    n_movies: Count
    levels_left_out: Annotated[list[str], Meta(description="a list of levels")]
    clip_s: NotRequired[ClipLength]


class Input(TypedDict):
    """One of several modalities that a model reads; the fields are those of the card of a single one."""

    name: SomeText
    backbone: SomeText
    features: Annotated[str, one_of(*FEATURE_ARRAYS)]
    pool: Annotated[str, one_of("max", "mean", "first", "last", "as stored")]
    n_features: Count
    provenance: Object
    provenance_sha256: Hex64
    store: Hex64


OPTIONAL_FIELDS = ("clip_s", "reduced_by", "population", "evidence", "modalities", "labelled_by")
"""Fields of a card that a file may lack."""

MEASURED_FIELDS = ("movie_mean", "movie_low", "movie_high", "movie_chance", "method_low", "method_high")
"""Numbers of a metric of a card; each is absent or null if it is undefined."""

Measured = msgspec.defstruct(
    "Measured",
    [
        ("task", Text),
        ("metric", Text),
        ("n_movies", Whole),
        *((name, Number | None, None) for name in MEASURED_FIELDS),
    ],
)
"""A metric of a model, with the values that pages and lists of models show."""
METRICS: Any = Annotated[list[Measured], Meta(description="metrics, each of a task")]  # type: ignore[valid-type]


class Sources(Struct, frozen=True, kw_only=True):
    """The features and labels that a model, or sums over films, were made from; see `CardFields`."""

    backbone: SomeText
    features: Annotated[str, one_of(*FEATURE_ARRAYS)]
    pool: Annotated[str, one_of("max", "mean", "first", "last", "as stored", "none")]
    n_features: Count
    provenance: Object
    provenance_sha256: Hex64
    store: Hex64
    codebook: CodebookRecord
    label_policy: Text
    licence: Licence


class CardFields(Sources, frozen=True, kw_only=True):
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
        The lowest score at which a clip is called positive.
    target : mapping
        The target: name, title, kind, classes (lists of levels, from low to high), concept.
    concepts : tuple of str
        The concepts that the model decides by, in the order of its arrays.
    backbone, features, pool : str
        The features it reads: group and array of the store, and how rows became one vector per clip.
    n_features : int
        D.
    provenance : mapping
        Provenance of the store's group. Features of another store must agree with it in all fields that
        influence their values.
    provenance_sha256 : str
        Digest of these fields (`features_digest`).
    store : str
        Fingerprint of the store trained on.
    codebook : mapping
        Record of the labels' codebook.
    manifest_sha256, label_policy : str
        "" if not stated.
    protocol : str
        How the model was evaluated, which gave its metrics.
    seed : int
    movies : tuple of str
        The films trained on; the model's scores of their clips are no predictions.
    n_clips, n_positives : int
        Clips trained on.
    calibration : mapping
        Figures of the calibration, as in `Calibration`: p_skilled, the posterior probability that scores rise
        with the label within films; error, the expected calibration error on films left out; film_error and
        worst_film_error, the mean and the largest error of the expected share of positive clips of a film
        left out; and film_margin, half the width of the 80 % bracket around a new film's expected share.
        Empty for a model without calibration.
    metrics : tuple of mapping
        Out-of-fold metrics of models trained as this one was, each on all films but one.
    versions : mapping
        Versions of the software that trained the model.
    licence : str
        SPDX expression; NOASSERTION if none is stated.
    citation : str
    """

    estimator: SomeText
    parameters: Parameters
    threshold: Number
    protocol: SomeText
    seed: Whole
    movies: Texts
    n_clips: Count
    n_positives: Whole
    metrics: Objects
    versions: TextValues
    model: SomeText
    title: SomeText
    kind: Annotated[str, one_of(*KINDS)]
    target: CardTarget
    concepts: Names
    calibration: Calibrated
    manifest_sha256: Text
    citation: Text


class ModelCard(CardFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The JSON document card.json of a model file of format 4."""

    format: Literal["obygaze model"]
    protocol_number: Literal[4]
    arrays: Annotated[dict[str, ArrayEntry], Meta(description="dtype and shape of every array")]
    clip_s: ClipLength | UnsetType = UNSET
    reduced_by: SomeText | UnsetType = UNSET
    population: Annotated[Population, Meta(description="an object of what was calibrated on")] | UnsetType = (
        UNSET
    )
    evidence: Annotated[Evidence, Meta(description="an object of what films left out show")] | UnsetType = (
        UNSET
    )
    modalities: (
        Annotated[tuple[Input, ...], Meta(min_length=2, max_length=8, description="a list of modalities")]
        | UnsetType
    ) = UNSET
    labelled_by: Annotated[Texts, Meta(description="a list of names")] | UnsetType = UNSET


class Card(CardFields, frozen=True, kw_only=True):
    """A card that was read, or that is to be written.

    Attributes
    ----------
    clip_s : float or None
        Median length of the clips trained on, in seconds; None if the file does not say.
    reduced_by : str
        How the tokens it reads are reduced (`obygaze_models.reduction`); "" if they are read as stored.
    population : mapping or None
        The clips that the calibration was fitted on; None without calibration.
    evidence : mapping or None
        How well models that were trained like this one did on films left out; None if no film was left out.
    modalities : tuple of mapping
        The modalities, in the order of their features, of a model that reads several. The fields `backbone`
        and `store` are then of all modalities, and `provenance` is of the first. Empty for other models.
    labelled_by : tuple of str
        Who labelled the clips trained on, by the column `annotator` of the manifest; empty if that is not
        stated.
    """

    clip_s: float | None = None
    reduced_by: str = ""
    population: Population | None = None
    evidence: Evidence | None = None
    modalities: tuple[Input, ...] = ()
    labelled_by: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The modalities that the model reads; for a model of one backbone, one made of the card's fields."""
        if self.modalities:
            return self.modalities
        # A card has all fields of an `Input`, such as `backbone` and `store`, except for the name.
        fields = {name: getattr(self, name) for name in Input.__annotations__ if name != "name"}
        only_input = Input(name=self.backbone, **fields)  # type: ignore[typeddict-item]  # a card has all
        return (only_input,)

    def input_columns(self) -> Iterator[tuple[Input, slice]]:
        """Yield each of several modalities with its columns in X [N, D]; none for a model of one backbone.

        X has the features of the modalities side by side, in the order of the card.
        """
        start = 0
        for modality in self.modalities:
            stop = start + modality["n_features"]
            yield modality, slice(start, stop)
            start = stop

    @property
    def no_skill(self) -> bool:
        """Whether the model may be no better than chance; False if that is not known (no film left out)."""
        return self.evidence is not None and may_be_chance(self.evidence)

    @property
    def is_planted(self) -> bool:
        """Whether a program gave the labels of the clips trained on, so that nobody judged them."""
        return self.labelled_by == (PLANTED,)

    @property
    def has_planted(self) -> bool:
        """Whether a program gave the labels of some of the clips trained on, or of all."""
        return PLANTED in self.labelled_by

    @property
    def is_of_codebook_levels(self) -> bool:
        """Whether the target's classes are levels of the codebook, and not those of a further scale."""
        is_further_scale = self.target["name"].startswith("scale:")
        return self.target["kind"] == "levels" and not is_further_scale

    @property
    def levels_left_out(self) -> tuple[str, ...] | None:
        """Levels of the codebook that the calibration was not fitted on; None if the card does not tell.

        With a calibration, its population lists them. Without one, they are the levels that are not among the
        target's classes; targets that are not of the codebook's levels leave none out.
        """
        if self.population is not None:
            return tuple(self.population["levels_left_out"])
        if not self.is_of_codebook_levels:
            return ()

        codebook_name = self.codebook["name"]
        if codebook_name not in BUILTIN:
            # A card names its codebook, but does not list its levels.
            return None
        levels_of_target = set(chain.from_iterable(self.target["classes"]))
        levels = builtin_codebook(codebook_name).labels
        return tuple(level for level in levels if level not in levels_of_target)

    def to_json(self) -> dict[str, object]:
        """Return the card as JSON values, with the format's name and number.

        Fields that a file may lack (`OPTIONAL_FIELDS`) are left out if they are empty.
        """
        document: dict[str, object] = {"format": FORMAT, "protocol_number": PROTOCOL}
        for name, value in asdict(self).items():
            is_left_out = name in OPTIONAL_FIELDS and not value
            if not is_left_out:
                document[name] = value
        return document


def features_digest(provenance: Mapping[str, Any]) -> str:
    """Compute the SHA-256 of the fields of a provenance that influence the features' values.

    A model can read the features of every store with the same digest.
    """
    # `NOT_NUMERICS` are the fields that do not influence values, such as the licence.
    influential_fields = {name: value for name, value in provenance.items() if name not in NOT_NUMERICS}
    text = json.dumps(influential_fields, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def check_features_digest(provenance: Mapping[str, Any], digest: str, location: str) -> None:
    """Raise if a provenance is not valid, or has another digest (`features_digest`) than the one given.

    A file with another digest was changed by hand, or damaged. `location` begins the message.
    """
    try:
        # That of a sealed store, which has more fields than that of a store in the making.
        validate_provenance(provenance, sealed=True)
    except StoreError as error:
        raise ModelError(f"{location}{error}") from error
    if features_digest(provenance) != digest:
        raise ModelError(f"{location}provenance is not what its provenance_sha256 is of")


def parse_card(document: Mapping[str, Any], name: str) -> Card:
    """Validate the JSON object of a model's card, and convert it.

    Parameters
    ----------
    document : mapping
    name : str
        Name of the file, for messages.

    Raises
    ------
    ModelError
        The object is no card; or its format is older or newer; or a field is missing, unknown or wrong.
    """
    # --- the format, and the types of the fields
    _check_format(document, name)
    check(document, (ModelCard,), f"{name}: the card", error=ModelError, page="docs/predict.md")

    # --- whether fields fit together
    modalities = document.get("modalities", ())
    # The card itself and each modality have a provenance with its digest.
    for described in (document, *modalities):
        check_features_digest(described["provenance"], described["provenance_sha256"], f"{name}: the card's ")
    n_features_of_modalities = sum(modality["n_features"] for modality in modalities)
    if modalities and n_features_of_modalities != document["n_features"]:
        raise ModelError(
            f"{name}: the card's modalities have not its {counted(document['n_features'], 'feature')}"
        )
    _check_field_values(document, name)
    return msgspec.convert(document, Card)


def _check_field_values(document: Mapping[str, Any], name: str) -> None:
    """Raise if the value of a card's field is wrong in a way that the type of the field does not express.

    Parameters must be single values, concepts must differ, and a calibration must be empty or whole. `name`
    is the file's name, for messages.
    """
    if not all(fits(value, _Scalar) for value in document["parameters"].values()):
        raise _wrong_field(document, "parameters", Parameters, name)
    concepts = document["concepts"]
    if len(set(concepts)) < len(concepts):
        raise _wrong_field(document, "concepts", Names, name)
    calibration = document["calibration"]
    if calibration:
        has_all_fields = {*CALIBRATION_FIELDS} == calibration.keys()
        if not has_all_fields or not 0 <= calibration["p_skilled"] <= 1:
            raise _wrong_field(document, "calibration", Calibrated, name)
    if not fits(document["metrics"], METRICS):
        raise _wrong_field(document, "metrics", METRICS, name)
    _refuse_contradictions(document, name)


def _refuse_contradictions(document: Mapping[str, Any], name: str) -> None:
    """Refuse a card whose fields contradict each other, or whose names are no text of one line.

    A card may have been written by hand. `name` is the file's name, for messages.

    Raises
    ------
    ModelError
        More clips are positive than there are; a metric is of less than no clips; the
        interval of the AUC ends before it begins, or does not hold the AUC; the target has no two classes
        that differ, or a class without a level; or a name holds a character that changes how a page shows
        it, or is a concept's and empty.
    """
    n_clips = document["n_clips"]
    n_positives = document["n_positives"]
    if n_positives > n_clips:
        raise ModelError(f"{name}: the card: {n_positives} of {counted(n_clips, 'clip')} are positive")
    for metric in document["metrics"]:
        n_tested = metric.get("n_clips", 0)
        if not fits(n_tested, Whole):
            raise ModelError(
                f"{name}: the card: 'metrics': n_clips should be {expected(Whole)}; found {n_tested!r:.80}"
            )
    if "evidence" in document:
        _refuse_wrong_interval(document["evidence"], name)
    _refuse_wrong_classes(document["target"], name)
    _refuse_names_that_change_a_page(document, name)


def _refuse_wrong_interval(evidence: Evidence, name: str) -> None:
    """Refuse an interval of the AUC that ends before it begins, or that does not hold the AUC.

    `name` is the file's name, for messages.
    """
    auc = evidence["auc"]
    low = evidence["auc_low"]
    high = evidence["auc_high"]
    if low is None or high is None:
        return
    if low > high:
        raise ModelError(f"{name}: the card: 'evidence': auc_low {low:g} is above auc_high {high:g}")
    if auc is not None and not low - ROUNDING <= auc <= high + ROUNDING:
        raise ModelError(
            f"{name}: the card: 'evidence': auc {auc:g} is not between auc_low {low:g} and auc_high {high:g}"
        )


def _refuse_wrong_classes(target: CardTarget, name: str) -> None:
    """Refuse classes of a target among which a clip has no place, or more than one.

    The target of a concept has no classes of levels: there, `classes` lists at most the levels of the clips
    that are used. `name` is the file's name, for messages.
    """
    classes = target["classes"]
    if not all(classes):
        raise ModelError(f"{name}: the card: 'target': a class should have a level or more; found none")
    if target["kind"] not in KINDS_OF_LEVELS:
        return
    if len(classes) < 2:
        n_classes = counted(len(classes), "class", "classes")
        raise ModelError(f"{name}: the card: 'target': expected two classes or more; found {n_classes}")
    n_classes_of_level = Counter(level for levels in classes for level in set(levels))
    for level, n_classes_with_it in n_classes_of_level.items():
        if n_classes_with_it > 1:
            raise ModelError(
                f"{name}: the card: 'target': the level {level!r:.80} is in {n_classes_with_it} classes"
            )


def _refuse_names_that_change_a_page(document: Mapping[str, Any], name: str) -> None:
    """Refuse a name with a line break, or with a character that turns the text around it; and empty concepts.

    `name` is the file's name, for messages.
    """
    target = document["target"]
    names_of_field = {
        "title": (document["title"],),
        "model": (document["model"],),
        "estimator": (document["estimator"],),
        "backbone": (document["backbone"],),
        "protocol": (document["protocol"],),
        "movies": document["movies"],
        "labelled_by": document.get("labelled_by", ()),
        "concepts": document["concepts"],
        "target": (target["name"], target["title"], target["concept"], *chain(*target["classes"])),
        "codebook": (document["codebook"]["name"],),
    }
    for field, names in names_of_field.items():
        for text in names:
            is_empty_concept = field == "concepts" and not text.strip()
            problem = "is empty" if is_empty_concept else unsuitable(text)
            if problem:
                raise ModelError(f"{name}: the card: {field!r}: {text!r:.80} {problem}")


def _wrong_field(document: Mapping[str, Any], field: str, kind: object, name: str) -> ModelError:
    """Make the error for a field of a card with a wrong value; `kind` is the type that it should have."""
    return ModelError(
        f"{name}: the card: {field!r} should be {expected(kind)}; found {document[field]!r:.80}"
    )


def _check_format(document: Mapping[str, Any], name: str) -> None:
    """Raise if a document is no card of this format; for an older one, say how to train the model again."""
    if document.get("format") != FORMAT:
        raise ModelError(
            f"{name}: not a model of obygaze (its card's format is {document.get('format')!r:.80})"
        )
    number: Any = document.get("protocol_number")
    if not fits(number, Count):
        raise ModelError(f"{name}: protocol_number should be a whole number above 0; found {number!r:.80}")
    if number > PROTOCOL:
        raise ModelError(
            f"{name}: model format {number} is newer than this obygaze reads ({PROTOCOL}): update obygaze"
        )
    if number < PROTOCOL:
        raise ModelError(
            f"{name}: model format {number} is older than this obygaze reads ({PROTOCOL}), which keeps what "
            f"films are known again by: train it again: {_retraining_command(document)}"
        )


def _retraining_command(document: Mapping[str, Any]) -> str:
    """Write the command that trains a model of an older format again, as far as its card tells."""
    if document.get("protocol") == JOINT:
        return "obygaze model sums MANIFEST STORE --task TASK --out SUMS, then obygaze model join SUMS"
    # Cards of the first formats have their task in another field.
    task = document.get("train_task")
    target = document.get("target")
    if isinstance(target, Mapping):
        task = target.get("name")
    option = ""
    # The card is not validated: a text that is no name of a task must not become part of a command.
    could_be_name = isinstance(task, str) and task.isprintable() and " " not in task
    if could_be_name:
        option = f" --task {task}"
    model = document.get("model", "mlp")
    return f"obygaze evaluate MANIFEST STORE{option} --save {model!s:.60} --out FOLDER"
