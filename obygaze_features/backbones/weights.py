"""Find a network's weights: on the hub, in a folder or file, or random from a seed.

`microsoft/xclip-base-patch16-zero-shot@REVISION` is the hub, `folder/` a folder in the hub's format
(`config.json` and the weights), `file.bin` one file, and `random:7` an untrained network. The provenance
records the source.
"""

import json
import re
import socket
import tomllib
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from shlex import quote
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

import msgspec
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from obygaze_features.arguments import checked
from obygaze_features.door import MOST_BYTES, open_regular, read_text
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.file_kinds import file_kind, where_damaged, why_not
from obygaze_features.io import NO_LICENCE, file_sha256, sha256_of

Spec = TypeVar("Spec", bound=msgspec.Struct)
Json = TypeVar("Json", dict[str, Any], list[Any])
CONFIG = "config.json"
SINGLE_FILES = ("model.safetensors", "pytorch_model.bin")
"""Names of a file with all tensors, in the order of preference."""
FILE_SUFFIXES = (".safetensors", ".bin", ".pt", ".pth")

TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER_FILES = (
    "tokenizer.json",
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
"""Files of which a tokenizer may consist."""

PROCESSOR_FILES = ("processor_config.json", "video_preprocessor_config.json", "preprocessor_config.json")
"""Files that describe how pictures are prepared; the first that exists counts."""

SENTENCE_KINDS = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
SENTENCE_FILES = (
    "modules.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    *(f"sentence_{kind}_config.json" for kind in SENTENCE_KINDS),
)
"""Files in which sentence-transformers describes a sentence encoder."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Names of the files of a folder or repository.

    Parameters
    ----------
    config
        Name of the configuration.
    single
        Names of a file with all tensors, in the order of preference.
    """

    config: str
    single: tuple[str, ...]


TRANSFORMERS = Layout(CONFIG, SINGLE_FILES)
OPEN_CLIP = Layout("open_clip_config.json", ("open_clip_model.safetensors", "open_clip_pytorch_model.bin"))

TABLES: dict[str, Any] = tomllib.loads(
    files(__package__).joinpath("networks.toml").read_text(encoding="utf-8")
)
"""The tables of `networks.toml`."""


def read_specs(
    table: str,
    spec_type: type[Spec],
    usual_fields: Mapping[str, Mapping[str, object]] = MappingProxyType({}),
    **tables_of_fields: Mapping[str, object],
) -> dict[str, Spec]:
    """Read a table of `networks.toml`: name of each entry -> the entry as a struct.

    A field that an entry does not state is taken from the entry that its field `like` names, and if that does
    not state it either, from `usual_fields`.

    Parameters
    ----------
    table
        Name of the table.
    spec_type
        Type of the structs.
    usual_fields
        Name of an entry -> its usual fields.
    tables_of_fields
        Name of a field whose value names an entry of another table -> that table. The value is replaced by
        the entry.
    """
    stated: dict[str, Any] = {}  # name of an entry -> the fields of itself and of the entry that it is like
    for name, fields in TABLES[table].items():
        similar_entry = stated.get(fields.get("like"), {})  # it stands before this one in the table
        stated[name] = {**similar_entry, **fields}
        stated[name].pop("like", None)
    entries = {}
    for name, fields in stated.items():
        entry = {**usual_fields.get(name, {}), **fields}
        for field, other_table in tables_of_fields.items():
            entry[field] = other_table[entry[field]]
        entries[name] = entry
    return msgspec.convert(entries, dict[str, spec_type])  # type: ignore[valid-type]


def renamed(name: str, table: str) -> str:
    """Translate a tensor's name by replacing the parts that a table of `names` lists."""
    for part, other in TABLES["names"][table].items():
        name = name.replace(part, other)
    return name


HUB: Mapping[str, str] = TABLES["hub"]
"""Backbone -> the repository, or the name in `OPENCLIP`, that it loads unless told otherwise."""


class OpenClip(NamedTuple):
    """A model that has a name in the literature.

    Parameters
    ----------
    repository
        Where OpenCLIP has it on the hub.
    architecture
        OpenCLIP's name of its configuration. All nine were trained with the approximation of GELU by a
        sigmoid, which configurations of the same weights leave out here and there.
    """

    repository: str
    architecture: str


OPENCLIP = {
    name: OpenClip(repository, architecture)
    for name, (repository, architecture) in TABLES["openclip"].items()
}
"""The nine models of Tables 1 and 2 of Wolfe et al. (FAccT 2023), as the tables call them."""

LICENCES: Mapping[str, str] = MappingProxyType({HUB["xclip"]: "MIT"})
"""Repository -> the licence that its card names, where the card is not in the hub's cache."""

MODEL_CARD = "README.md"
"""File of a repository that names its licence."""
MOST_LAYERS = 4096
"""Most layers, or labels, that a configuration may ask for."""
_COUNT_FIELD = re.compile(r"num_labels|.*(layers?|depths?|blocks?)")
"""Names of the fields of a configuration that such a number stands in."""
_REPOSITORY = re.compile(r"(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_RANDOM = re.compile(r"random:(?P<seed>\d+)(:(?P<network>[a-z0-9_.-]+))?", re.ASCII)


@dataclass(frozen=True)
class Weights:
    """Weights with their digest, or the seed of random ones.

    Parameters
    ----------
    files
        The files with the tensors; empty for an untrained network.
    folder
        Where `config.json` lies too, or None for one file of a format of its own.
    sha256
        Of the file; of several, that of the lines `digest  name` in the order of names.
    repository, revision
        On the hub, with the commit in full.
    seed
        Of an untrained network.
    network
        Its `model_type`, where the seed names one.
    """

    files: tuple[Path, ...] = ()
    folder: Path | None = None
    sha256: str | None = None
    repository: str | None = None
    revision: str | None = None
    seed: int | None = None
    network: str | None = None

    def __post_init__(self) -> None:
        """Refuse files that could fill the memory when they are unpacked: `torch.save` compresses nothing."""
        for path in self.files:
            if _is_compressed(path):
                raise BackboneError(f"{path}: refused: it is a compressed zip")

    @property
    def name(self) -> str:
        """Return the name used in messages."""
        if self.repository:
            return f"{self.repository}@{self.revision}"
        if self.seed is not None and self.network:
            return f"random:{self.seed}:{self.network}"
        if self.seed is not None:
            return f"random:{self.seed}"
        if self.folder is None and not self.files:
            return "no weights"
        return str(self.folder or self.files[0])

    def config(self, name: str = CONFIG) -> dict[str, Any]:
        """Read the configuration, a JSON file in the folder of the weights.

        Raises
        ------
        BackboneError
            If there is none, or it is no JSON object.
        """
        path = None if self.folder is None else _without_mark(self.folder / name)
        if path is None:
            raise BackboneError(
                f"{self.name}: these tensors alone do not say what the network is: give a folder in the "
                f"hub's format, or its {SINGLE_FILES[0]} or {SINGLE_FILES[1]}, with {name} beside it"
            )
        return read_json(path, dict)

    def record(self) -> dict[str, Any]:
        """Return the source and licence of the weights, for the provenance."""
        hub = None
        if self.repository:
            hub = {"repository": self.repository, "revision": self.revision}
        record: dict[str, Any] = {"hub": hub, "weights_sha256": self.sha256}
        if self.seed is not None:
            record |= {"untrained": True, "weights": self.name}
        record["licence"] = licence_of(self)
        return record


def licence_of(weights: Weights) -> str:
    """Read the licence from the model card in the weights' folder, as an SPDX expression.

    It is ``LicenseRef-NAME`` if SPDX has no such licence; NOASSERTION if no card states one.
    """
    from huggingface_hub import metadata_load  # noqa: PLC0415 - obygaze[extract]

    licence: Any = None
    with suppress(Exception):  # whatever the hub, YAML or the file raise: weights need no card
        path = file_of(weights, MODEL_CARD)
        if path is not None:
            card = metadata_load(path) or {}
            licence = card.get("license")
            if licence == "other":
                licence = card.get("license_name") or licence
    if not isinstance(licence, str) or not licence.strip():
        return LICENCES.get(weights.repository or "", NO_LICENCE)
    try:
        return str(canonicalize_license_expression(licence))
    except InvalidLicenseExpression:
        return f"LicenseRef-{re.sub('[^A-Za-z0-9.-]+', '-', licence.strip())[:100]}"


@checked
def space_of(family: str, weights: Weights) -> str:
    """Name the space that a network maps into, `clip sha256:…`, for the provenance's field `space`.

    The weights alone decide it: the image and the text half of one file share it, whether the file came from
    the hub or a folder.
    """
    source = f"sha256:{weights.sha256}" if weights.seed is None else f"random:{weights.seed}"
    return f"{family} {source}"


def named_architecture(repository: str | None) -> str | None:
    """Return OpenCLIP's name of the architecture of a repository in `OPENCLIP`; None for others."""
    for model in OPENCLIP.values():
        if model.repository == repository:
            return model.architecture
    return None


@checked
def find_weights(source: str | Path | Weights, layout: Layout = TRANSFORMERS) -> Weights:
    """Find weights by `random:SEED[:TYPE]`, a path, or `owner/name[@revision]` on the hub.

    Parameters
    ----------
    source
        Weights that were found before are returned as they are.
    layout
        What the files of a folder or repository are called.

    Raises
    ------
    BackboneError
        If there is nothing of that name, or it cannot be fetched.
    """
    if isinstance(source, Weights):
        return source
    source = str(source)
    random = _RANDOM.fullmatch(source)
    if random is not None:
        return Weights(seed=int(random["seed"]), network=random["network"])
    if source.startswith("random:"):
        raise BackboneError(f"weights '{source}': random: wants a seed, as in random:0 or random:0:dinov2")
    path = Path(source).expanduser()
    if path.is_file():
        in_hub_format = path.name in layout.single and (path.parent / layout.config).is_file()
        return Weights((path,), path.parent if in_hub_format else None, digest([path]))
    if path.is_dir():
        return _in_folder(path, layout)
    hub = _REPOSITORY.fullmatch(source)
    if hub is None or path.suffix in FILE_SUFFIXES or source.startswith((".", "~")):
        raise BackboneError(f"weights '{source}': there is no such file or folder")
    return fetch(hub["repository"], hub["revision"], layout)


def fetch(repository: str, revision: str | None = None, layout: Layout = TRANSFORMERS) -> Weights:
    """Fetch a repository's configuration and weights to the hub's cache, unless they are cached.

    The revision is resolved to a commit first, and every file is of that commit. `HF_HUB_OFFLINE=1` asks the
    cache alone.

    Raises
    ------
    BackboneError
        If there is no such repository, revision or file, or no connection.
    """
    needed_files = [layout.config]  # one of them must be there
    if named_architecture(repository) is not None:  # then no configuration is needed
        needed_files += layout.single
    folder = _hub_folder(repository, needed_files, revision)
    if folder is None:
        source = "the hub's cache" if _offline() else "the hub"
        raise BackboneError(
            f"weights '{repository}@{revision or 'main'}': no file or folder of this name here, "
            f"and {source} has no {needed_files[-1]}. {how_to_get(repository)}"
        )
    commit = folder.name  # the cache has a folder for each commit
    paths = _tensor_files(f"{repository}@{commit}", layout, lambda name: _hub_file(repository, name, commit))
    return Weights(tuple(paths), folder, digest(paths), repository, commit)


def _hub_folder(repository: str, names: Sequence[str], revision: str | None) -> Path | None:
    """Fetch the first of some files that exists; return its folder, which is named after the commit."""
    for name in names:
        path = _hub_file(repository, name, revision)
        if path is not None:
            return path.parent
    return None


def how_to_get(name: str) -> str:
    """Explain in one line how to get weights of the hub: fetch them, copy a cache, or give a folder.

    Parameters
    ----------
    name
        Name on the hub, `owner/name[@revision]`, or name of a model in `OPENCLIP`.
    """
    from huggingface_hub import constants  # noqa: PLC0415 - obygaze[extract]

    repository = name.partition("@")[0]
    if repository in OPENCLIP:
        repository = OPENCLIP[repository].repository
    on_that_machine = " (unset HF_HUB_OFFLINE there)" if _offline() else ""
    cache = constants.HF_HUB_CACHE
    folder = f"models--{repository.replace('/', '--')}"
    layout = TRANSFORMERS if named_architecture(repository) is None else OPEN_CLIP
    licence = LICENCES.get(repository, "stated on its card on the hub")
    fetch_command = f"obygaze weights fetch {_name_to_fetch(name)}"
    return (
        f"Three ways to get them: (1) on a machine with a network{on_that_machine}: {fetch_command}; "
        f"(2) for a machine without one, carry the folder {folder} from such a machine's cache "
        f"into this one's, {cache} (HF_HUB_CACHE sets which), and set HF_HUB_OFFLINE=1; (3) from files that "
        f"you have: --weights FOLDER, with {layout.config} and {layout.single[0]}. Their licence: {licence}"
    )


def _name_to_fetch(name: str) -> str:
    """Return the argument of `obygaze weights fetch` for weights: the backbone whose default they are.

    For other weights, and for a revision, it is their own name in quotes.
    """
    names = {name}  # by which `HUB` may have these weights
    for model_name, model in OPENCLIP.items():
        if model.repository == name:
            names.add(model_name)
    for backbone, default_weights in HUB.items():
        if default_weights in names:
            return backbone
    return quote(name)


def hub_name(source: object) -> str:
    """Return weights as a name on the hub, `owner/name[@revision]` or one of `OPENCLIP`; else empty.

    Parameters
    ----------
    source
        As for `find_weights`.
    """
    text = str(source)
    if text in OPENCLIP:
        return text
    is_path = Path(text).expanduser().exists() or Path(text).suffix in FILE_SUFFIXES
    if is_path or text.startswith(("random:", ".", "~")):
        return ""
    return text if _REPOSITORY.fullmatch(text) else ""


def is_cached(name: str) -> bool:
    """Return whether the hub's cache has all tensors of a repository, or of a model in `OPENCLIP`."""
    return bool(cached_tensors(name))


def cached_tensors(name: str) -> list[Path]:
    """Return the files with the tensors of a repository, or of a model in `OPENCLIP`, in the hub's cache.

    Empty unless all of them are there: a fetch that was interrupted may leave some.
    """
    layout = TRANSFORMERS
    if name in OPENCLIP:
        name = OPENCLIP[name].repository
        layout = OPEN_CLIP
    repository, _, revision = name.partition("@")

    def find(file: str) -> Path | None:
        """Return the path of a file in the cache."""
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - obygaze[extract]

        path = try_to_load_from_cache(repository, file, revision=revision or None)
        return Path(path) if isinstance(path, str) else None

    try:
        return _tensor_files(name, layout, find)
    except BackboneError:  # none of these files, or not all that an index names
        return []


def file_of(weights: Weights, name: str) -> Path | None:
    """Return the path of another file of a folder or repository, such as a tokenizer's.

    None if there is none.

    Raises
    ------
    BackboneError
        If the hub cannot be asked, or the file begins with a byte order mark.
    """
    if weights.repository is not None:
        return _without_mark(_hub_file(weights.repository, name, weights.revision))
    if weights.folder is None:
        return None
    return _without_mark(weights.folder / name)


def _without_mark(path: Path | None) -> Path | None:
    """Return the path if it is a file, else None; refuse a byte order mark, which libraries misread."""
    if path is None or not path.is_file():
        return None
    with open_regular(path) as file:
        if path.name != MODEL_CARD and file.read(len(BOM_UTF8)) == BOM_UTF8:
            raise BackboneError(
                f"{path}: begins with a byte order mark, which the library that opens it does not read: "
                "save it as UTF-8 without one"
            )
    return path


def object_beside(weights: Weights, name: str) -> dict[str, Any]:
    """Read another JSON object of a folder or repository; empty if there is no such file.

    Raises
    ------
    BackboneError
        If it is no JSON object, or the hub cannot be asked.
    """
    path = file_of(weights, name)
    return {} if path is None else read_json(path, dict)


def read_json(path: Path, kind: type[Json]) -> Json:
    """Read a JSON file.

    Raises
    ------
    BackboneError
        If it is no JSON of this kind (`dict`: an object, `list`: an array).
    """
    try:
        document = json.loads(read_text(path), object_hook=_refuse_huge_numbers)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BackboneError(f"{path}: {where_damaged(error, path, 'a JSON file')}") from None
    except ValueError as error:
        raise BackboneError(f"{path}: {error}") from None
    # An error message of a server, saved in place of the file, may be JSON too.
    is_known_as_another_file = file_kind(path).remedy != ""
    if is_known_as_another_file:
        raise BackboneError(f"{path}: {why_not(path, 'a JSON file')}")
    if not isinstance(document, kind):
        raise BackboneError(f"{path}: expected a JSON {kind.__name__}, found {type(document).__name__}")
    return document


def _refuse_huge_numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object, unless it asks for so many layers or labels that memory might run out."""
    for name, value in fields.items():
        if _COUNT_FIELD.fullmatch(name) and isinstance(value, int) and value > MOST_LAYERS:
            raise ValueError(f"{name} is {value}, and {MOST_LAYERS} is the most")
    return fields


def digest(files: Sequence[Path]) -> str:
    """Compute the SHA-256 of a file; for several files, that of the lines `digest  name`, sorted by name."""
    digests = {path.name: file_sha256(path) for path in files}
    if len(digests) == 1:
        (only_digest,) = digests.values()
        return only_digest
    lines = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests))
    return sha256_of(lines.encode())


def _is_compressed(path: Path) -> bool:
    """Return whether a file is a zip with compressed members."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(member.compress_type for member in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return False  # not a zip: loading says what it is


def _in_folder(folder: Path, layout: Layout) -> Weights:
    """Find the weights in a folder.

    Every file is opened once, to refuse pipes, devices and files that are too large: transformers reads what
    lies beside the weights by its name.
    """
    path_of_name = {}
    for path in folder.iterdir():
        if path.exists() and not path.is_dir():
            limit = None if path.suffix in FILE_SUFFIXES else MOST_BYTES
            open_regular(path, limit).close()
        if path.is_file():
            path_of_name[path.name] = path
    paths = _tensor_files(str(folder), layout, path_of_name.get)
    return Weights(tuple(paths), folder, digest(paths))


def _tensor_files(where: str, layout: Layout, find: Callable[[str], Path | None]) -> list[Path]:
    """Return the file with all tensors, or the files that an index of shards names.

    Parameters
    ----------
    where
        The folder or repository, for messages.
    layout
        What its files are called.
    find
        Returns the path of a file by its name; None if there is none.
    """
    for name in layout.single:
        path = find(name)
        if path is not None:
            return [path]
    indices = [f"{name}.index.json" for name in layout.single]
    for name in indices:
        index = find(name)
        if index is None:
            continue
        path_of_shard = {shard: find(shard) for shard in _shards(index)}
        absent = [shard for shard, path in path_of_shard.items() if path is None]
        if absent:
            raise BackboneError(f"{index} names {', '.join(absent)}, which the folder does not have")
        return [path for path in path_of_shard.values() if path is not None]
    raise BackboneError(f"{where}: there is none of {', '.join((*layout.single, *indices))}")


def _shards(index: Path) -> tuple[str, ...]:
    """Return the names of the files that an index of shards names, in order."""
    try:
        names = set(read_json(index, dict)["weight_map"].values())
    except (KeyError, TypeError, AttributeError):
        raise BackboneError(f"{index}: not an index of shards (a JSON object with 'weight_map')") from None
    if not names or any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise BackboneError(f"{index}: 'weight_map' should name files beside it")
    return tuple(sorted(names))


def _hub_file(repository: str, name: str, revision: str | None) -> Path | None:
    """Fetch one file of a repository to the hub's cache; None if the repository does not have it.

    Raises
    ------
    BackboneError
        It is not known whether the file exists: there is no network, no repository or no revision.
    """
    from huggingface_hub import errors, hf_hub_download  # noqa: PLC0415 - obygaze[extract]

    why_no_network = _no_network()
    only_cache = why_no_network != ""
    try:
        return Path(hf_hub_download(repository, name, revision=revision, local_files_only=only_cache))
    except errors.RemoteEntryNotFoundError:  # the hub has answered that there is no such file
        return None
    except (OSError, errors.HTTPError, errors.EntryNotFoundError, errors.HFValidationError) as error:  # type: ignore[attr-defined]  # HTTPError is not exported
        is_absent_from_cache = isinstance(error, errors.EntryNotFoundError)
        if is_absent_from_cache and _offline():  # with HF_HUB_OFFLINE=1 the cache decides what exists
            return None
        is_invalid_name = isinstance(error, errors.HFValidationError)
        advice = "" if is_invalid_name else f". {how_to_get(repository)}"
        raise BackboneError(
            f"weights '{repository}@{revision or 'main'}': no file or folder of this name here, "
            f"and {name} cannot be had from the hub: {why_no_network or first_line(error)}{advice}"
        ) from None


def _no_network() -> str:
    """Return why the hub's host name cannot be resolved; empty if it can, or need not be.

    Without a network, the hub's client would try again and again for some time. Behind a proxy, or with the
    cache alone, this machine need not resolve the name, so that nothing is checked.
    """
    from huggingface_hub.constants import ENDPOINT  # noqa: PLC0415 - obygaze[extract]

    if getproxies() or _offline():
        return ""
    try:
        socket.getaddrinfo(urlsplit(ENDPOINT).hostname, None)
    except OSError as error:
        return f"{urlsplit(ENDPOINT).hostname}: {error.strerror}"
    return ""


def _offline() -> bool:
    """Return whether the hub's client may use its cache alone."""
    from huggingface_hub import is_offline_mode  # noqa: PLC0415 - obygaze[extract]

    return is_offline_mode()
