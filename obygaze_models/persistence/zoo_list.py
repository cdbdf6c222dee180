"""List shared models in one file, `zoo.toml`, beside them: name, version, digest, and what a model is.

A list is in a folder, here, on a server, on S3 or on the Hub. Models are found by ``NAME`` (the highest
version) or ``NAME@VERSION``.
"""

import os
import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.resources import files as package_files
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from obygaze_features.errors import InputError, StoreError
from obygaze_features.file_kinds import where_damaged
from obygaze_features.io import sha256_of
from obygaze_features.schema import END, Count, Hex64, Licence, Number, SomeText, Text, misfit
from obygaze_features.store.objects import files_in, read_or_none
from obygaze_features.untrusted import MAX_TOML_BYTES, decoded, parse_toml
from obygaze_models.errors import ModelError
from obygaze_models.persistence.archive import MAX_FILE
from obygaze_models.persistence.card import Card

LIST = "zoo.toml"
"""Name of the file with the list."""

MODEL_SUFFIX = ".model"
ZOO_VARIABLE = "OBYGAZE_ZOO"
"""Environment variable with the folder or URL of the list in which models are looked up by name."""

Version = Annotated[
    str, Meta(pattern=rf"^(0|[1-9]\d{{0,8}})(\.(0|[1-9]\d{{0,8}})){{2}}{END}", description="a version X.Y.Z")
]
_NAME_AND_VERSION = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,99})(?:@([0-9.]+))?")
SHOWN_METRICS = ("within_movie_auc", "average_precision", "qwk")
"""Metrics that a list shows, in their order; each is a mean over films."""


class Score(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A metric on films left out: its mean over films, the 95 % interval, and the chance level."""

    task: SomeText
    metric: SomeText
    value: Number
    low: Number | None = None
    high: Number | None = None
    chance: Number | None = None
    films: Count


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"octets": "bytes"}):
    """A model of a list.

    Attributes
    ----------
    name, version : str
    sha256 : str
        Digest of the file.
    octets : int
        Size of the file in bytes.
    page_sha256 : str
        Digest of the model's page.
    title : str
        What kind of model it is, as tables show it.
    task, codebook : str
        Its target, and the codebook that the target is of.
    reads : list of str
        Backbones that it reads.
    weights : list of str
        Digests of the backbones' weights; a backbone without weights has none.
    licence, citation : str
    films, clips : int
        Number of films and of clips that it was trained on.
    scores : list of Score
        Metrics on films left out.
    """

    name: Annotated[str, Meta(pattern=rf"^[A-Za-z0-9][A-Za-z0-9_-]{{0,99}}{END}", description="a name")]
    version: Version
    sha256: Hex64
    page_sha256: Hex64
    octets: Annotated[int, Meta(ge=1, le=MAX_FILE, description="a file's size")]
    title: SomeText
    task: SomeText
    codebook: Text
    reads: list[SomeText]
    weights: list[Hex64]
    licence: Licence
    citation: Text
    films: Count
    clips: Count
    scores: list[Score]

    @property
    def label(self) -> str:
        """NAME@VERSION."""
        return f"{self.name}@{self.version}"

    @property
    def file(self) -> str:
        """Name of its file. It is computed, so that no list can name another file."""
        return f"{self.name}-{self.version}{MODEL_SUFFIX}"

    @property
    def page(self) -> str:
        """Name of its page."""
        return f"{self.name}-{self.version}.md"


class _ListFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a list."""

    model: list[Entry] = []


def default_zoo() -> str:
    """Return the folder or URL of the list to look models up in: $OBYGAZE_ZOO, or the models shipped."""
    return os.environ.get(ZOO_VARIABLE) or str(package_files("obygaze_models") / "zoo")


def read_zoo(location: Path | str) -> list[Entry]:
    """Read the list of a folder or URL, in the order of names and versions.

    Raises
    ------
    ModelError
        There is no list, or it is not one that `model push` writes.
    """
    data = read_limited(location, LIST, MAX_TOML_BYTES)
    if data is None:
        raise ModelError(f"{location}: there is no {LIST}; `obygaze model push` makes one beside the models")
    return parse_list(data, location)


def parse_list(data: bytes, location: Path | str) -> list[Entry]:
    """Parse the bytes of a list of models, and sort its entries by name and version.

    `location` is the folder or URL of the list, for messages.

    Raises
    ------
    ModelError
        It is not a list as `model push` writes it; the message names the folder or URL.
    """
    try:
        listed = msgspec.convert(parse_toml(decoded(data)), _ListFile).model
    except msgspec.ValidationError as error:
        raise ModelError(f"{location}/{LIST}: not a list of models: {misfit(error)}") from None
    except UnicodeDecodeError as error:
        raise ModelError(f"{location}/{LIST}: {where_damaged(error, data, 'a list of models')}") from None
    except ValueError as error:
        raise ModelError(f"{location}/{LIST}: not a list of models: {error}") from None

    n_by_label = Counter(entry.label for entry in listed)
    repeated = sorted(label for label, n in n_by_label.items() if n > 1)
    if repeated:
        raise ModelError(f"{location}/{LIST}: {repeated[0]} is listed twice")
    return sorted(listed, key=_name_and_version)


def write_list(entries: Sequence[Entry]) -> bytes:
    """Write the TOML text of a list of models, sorted by name and version, as bytes."""
    import tomli_w  # noqa: PLC0415 - only where a list is written

    in_order = sorted(entries, key=_name_and_version)
    return tomli_w.dumps({"model": msgspec.to_builtins(in_order)}).encode("utf-8")


def find_entry(wanted: str, location: Path | str) -> Entry:
    """Find a model in a list by ``NAME``, for its highest version, or by ``NAME@VERSION``.

    Raises
    ------
    ModelError
        There is no list, or the model is not in it; the message suggests models that are.
    """
    entries = read_zoo(location)
    name, _, version = wanted.partition("@")
    matching = []
    for entry in entries:
        is_wanted_version = entry.version == version or not version
        if entry.name == name and is_wanted_version:
            matching.append(entry)
    if not matching:
        hint = _hint_for_missing(wanted, entries)
        raise ModelError(f"{location}: no model {wanted} in its list, nor a file of this name here; {hint}")
    return max(matching, key=lambda entry: _version_numbers(entry.version))


def _hint_for_missing(wanted: str, entries: Sequence[Entry]) -> str:
    """Write a hint for the error that a list has no model of a name: what the user may have meant.

    That is a file of this name here, another version of the model, a model of a similar name, or, if there is
    none of these, any model of the list. `wanted` is NAME or NAME@VERSION.
    """
    name, _, _ = wanted.partition("@")
    if Path(f"{wanted}.model").is_file():
        return f"did you mean the file {wanted}.model?"
    other_versions = [entry for entry in entries if entry.name == name]
    similar_names = get_close_matches(name, {entry.name for entry in entries}, 1)
    if similar_names and not other_versions:
        return f"did you mean {similar_names[0]}?"
    labels = [entry.label for entry in other_versions or entries]
    return f"it has {', '.join(labels) or 'none'}"


def is_name(text: str) -> bool:
    """Tell whether a text is NAME or NAME@VERSION of a model in a list.

    If a file has this path, the file is meant.
    """
    has_form = _NAME_AND_VERSION.fullmatch(text) is not None
    return has_form and not Path(text).exists()


def read_entry(entry: Entry, place: Path | str) -> tuple[str, bytes]:
    """Read the file of a model in a list, check its digest, and return its path or URL and its bytes.

    `place` is the folder or URL of the list, beside which its models are.

    Raises
    ------
    ModelError
        The file is missing, or is not the one that was listed.
    """
    location = f"{place}/{entry.file}"
    data = read_limited(place, entry.file, entry.octets, links=True)
    if data is None:
        raise ModelError(f"{location}: is listed, but not there")
    if sha256_of(data) != entry.sha256:
        raise ModelError(f"{location}: not the file that was listed as {entry.label}: its digest is another")
    return location, data


def read_page(entry: Entry, location: Path | str) -> str:
    """Read the page of a model in a list; "" if it has none.

    Raises
    ------
    ModelError
        It is not the page that was listed.
    """
    data = read_limited(location, entry.page, MAX_TOML_BYTES, links=True)
    if data is None:
        return ""
    if sha256_of(data) != entry.page_sha256:
        raise ModelError(f"{location}/{entry.page}: not the page that was listed: its digest is another")
    return data.decode("utf-8", "replace")


def entry_of(card: Card, data: bytes, name: str, version: str, page_sha256: str) -> Entry:
    """Make the entry of a model in a list, from its card, its bytes and the digest of its page."""
    scores = []
    for row in card.metrics:
        score = _score_of_metric(row)
        if score is not None:
            scores.append(score)
    # A model reads one modality or several. A backbone without weights has no digest of them.
    inputs = card.inputs
    digests = [modality["provenance"].get("weights_sha256") for modality in inputs]
    return Entry(
        name=name,
        version=version,
        sha256=sha256_of(data),
        page_sha256=page_sha256,
        octets=len(data),
        title=card.title,
        licence=card.licence,
        citation=card.citation,
        task=card.target["name"],
        codebook=card.codebook["name"],
        reads=[modality["backbone"] for modality in inputs],
        weights=[digest for digest in digests if isinstance(digest, str)],
        films=len(card.movies),
        clips=card.n_clips,
        scores=sorted(scores, key=lambda score: SHOWN_METRICS.index(score.metric)),
    )


def _score_of_metric(row: Any) -> Score | None:
    """Make the score of a list from a row of a card's metrics; None if lists do not show the metric."""
    if row["metric"] not in SHOWN_METRICS or row.get("movie_mean") is None:
        return None
    # The interval for retrained models, if there is one; otherwise that of the models that were tested.
    low, high = row.get("method_low"), row.get("method_high")
    if low is None:
        low, high = row.get("movie_low"), row.get("movie_high")
    return Score(
        task=row["task"],
        metric=row["metric"],
        value=round(row["movie_mean"], 4),
        low=_rounded(low),
        high=_rounded(high),
        chance=_rounded(row.get("movie_chance")),
        films=row["n_movies"],
    )


def _rounded(value: float | None) -> float | None:
    """Round a number to the four decimals of a list; None stays None."""
    if value is None:
        return None
    return round(value, 4)


def _name_and_version(entry: Entry) -> tuple[str, tuple[int, ...]]:
    """Return what the entries of a list are sorted by: their names, then their versions."""
    return entry.name, _version_numbers(entry.version)


def _version_numbers(version: str) -> tuple[int, ...]:
    """Split a version X.Y.Z into its numbers, by which versions are sorted."""
    return tuple(int(number) for number in version.split("."))


def read_limited(
    location: Path | str, name: str, maximum: int = MAX_FILE, *, links: bool = False
) -> bytes | None:
    """Read a file of a folder or URL, of at most `maximum` bytes; None if there is no such file.

    Parameters
    ----------
    location : Path or str
        The folder or URL.
    name : str
        Name of the file.
    maximum : int
        Largest size in bytes.
    links : bool
        Whether symbolic links are followed.

    Raises
    ------
    ModelError
        The file is larger, or can't be read.
    """
    try:
        return read_or_none(files_in(location, links=links), name, maximum)
    except (StoreError, InputError) as error:
        raise ModelError(str(error)) from None
