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
from obygaze_features.errors import BackboneError, first_line
from obygaze_features.file_kinds import file_kind, where_damaged, why_not
from obygaze_features.io import NO_LICENCE, file_sha256, sha256_of
from obygaze_features.untrusted import MAX_BYTES, open_regular, read_text

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

    The file may leave out what is known otherwise. A field that an entry does not state is taken from the
    entry that its field `like` names, and if that does not state it either, from `usual_fields`.

    For example, `read_specs("texts", TextSpec, vision=images)` gives a `TextSpec` for each entry of the table
    `texts`. In its field `vision` the file has a name; the struct has `images[name]` in its place.

    Parameters
    ----------
    table
        Name of the table.
    spec_type
        Type of the structs: msgspec converts each entry to it, and so checks the fields.
    usual_fields
        Name of an entry -> its usual fields.
    tables_of_fields
        As keyword arguments, the fields whose values name an entry of another table, each with that table.
        The name is replaced by the entry.
    """
    entries = {}
    for name, stated_fields in _with_fields_of_similar_entries(TABLES[table]).items():
        entry = {**usual_fields.get(name, {}), **stated_fields}
        for field, other_table in tables_of_fields.items():
            name_in_other_table = entry[field]
            entry[field] = other_table[name_in_other_table]
        entries[name] = entry
    return msgspec.convert(entries, dict[str, spec_type])  # type: ignore[valid-type]


def _with_fields_of_similar_entries(table: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Complete each entry of a table by the fields of the entry that its field `like` names.

    That entry stands before it in the table. The field `like` itself is dropped.
    """
    completed: dict[str, dict[str, Any]] = {}
    for name, fields in table.items():
        similar_entry = completed.get(fields.get("like", ""), {})
        completed[name] = {**similar_entry, **fields}
        completed[name].pop("like", None)
    return completed


def renamed(name: str, table: str) -> str:
    """Translate a tensor's name by replacing the texts that a table of `names` lists.

    Parameters
    ----------
    name
        Name of the tensor.
    table
        Key of the table under `names` in `networks.toml`: text -> what replaces it.
    """
    for text, replacement in TABLES["names"][table].items():
        name = name.replace(text, replacement)
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
MAX_LAYERS = 4096
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
        """Refuse compressed files, which could fill the memory when they are unpacked.

        `torch.save` writes zips that are not compressed.
        """
        for path in self.files:
            if _is_compressed(path):
                raise BackboneError(f"{path}: refused: it is a compressed zip")

    @property
    def name(self) -> str:
        """Return the name used in messages: `owner/name@revision`, `random:SEED`, or a path."""
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
        """Read the network's configuration from the JSON file `name` in the folder of the weights.

        Raises
        ------
        BackboneError
            If there is no such file, or it is no JSON object.
        """
        path = None
        if self.folder is not None:
            path = _file_without_mark(self.folder / name)
        if path is None:
            raise BackboneError(
                f"{self.name}: these tensors alone do not say what the network is: give a folder in the "
                f"hub's format, or its {SINGLE_FILES[0]} or {SINGLE_FILES[1]}, with {name} beside it"
            )
        return read_json(path, dict)

    def record(self) -> dict[str, Any]:
        """Return source, digest and licence of the weights as JSON fields, for the provenance."""
        hub = None
        if self.repository:
            hub = {"repository": self.repository, "revision": self.revision}
        fields: dict[str, Any] = {"hub": hub, "weights_sha256": self.sha256}
        if self.seed is not None:
            fields |= {"untrained": True, "weights": self.name}
        fields["licence"] = licence_of(self)
        return fields


def licence_of(weights: Weights) -> str:
    """Read the licence of weights from their model card, as an SPDX expression such as `Apache-2.0`.

    It is ``LicenseRef-NAME`` if SPDX has no such licence; NOASSERTION if no card states a licence.
    """
    licence: Any = None
    with suppress(Exception):  # whatever the hub, YAML or the file raise: weights need no card
        licence = _licence_on_card(weights)
    if not isinstance(licence, str) or not licence.strip():
        # The card of this repository may be known, though the hub's cache does not have it.
        return LICENCES.get(weights.repository or "", NO_LICENCE)
    try:
        return str(canonicalize_license_expression(licence))
    except InvalidLicenseExpression:
        name = re.sub("[^A-Za-z0-9.-]+", "-", licence.strip())  # SPDX allows no other characters
        return f"LicenseRef-{name[:100]}"


def _licence_on_card(weights: Weights) -> Any:
    """Return what the model card of weights states as their licence; None without a card or a licence.

    The field `license` of a card is one of the hub's list. For any other licence it is "other", and
    `license_name` may say which.
    """
    from huggingface_hub import metadata_load  # noqa: PLC0415 - obygaze[extract]

    path = file_of(weights, MODEL_CARD)
    if path is None:
        return None
    card = metadata_load(path) or {}
    licence = card.get("license")
    if licence == "other":
        licence = card.get("license_name") or licence
    return licence


@checked
def space_of(family: str, weights: Weights) -> str:
    """Name the space of a network's vectors, such as `clip sha256:…`, for the provenance's field `space`.

    Vectors may be compared if their spaces have the same name. The name depends on the weights alone: the
    image and the text half of a file share it, whether the file came from the hub or a folder.

    Parameters
    ----------
    family
        The family of networks, such as `clip`, with which the name begins.
    weights
        The weights.
    """
    source = f"sha256:{weights.sha256}" if weights.seed is None else f"random:{weights.seed}"
    return f"{family} {source}"


def named_architecture(repository: str | None) -> str | None:
    """Return OpenCLIP's name of the architecture of a repository on the hub.

    None if the repository is not that of one of the nine models in `OPENCLIP`.
    """
    for model in OPENCLIP.values():
        if model.repository == repository:
            return model.architecture
    return None


@checked
def find_weights(source: str | Path | Weights, layout: Layout = TRANSFORMERS) -> Weights:
    """Find the files of a network's weights by a path, `owner/name[@revision]` on the hub, or `random:SEED`.

    Parameters
    ----------
    source
        A path, a name on the hub, or `random:SEED[:TYPE]` for an untrained network. `Weights` are returned as
        they are.
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
        # A file with the name and the configuration that the hub's format wants is as good as its folder.
        in_hub_format = path.name in layout.single and (path.parent / layout.config).is_file()
        return Weights((path,), path.parent if in_hub_format else None, digest([path]))
    if path.is_dir():
        return _weights_in_folder(path, layout)

    # What looks like a path is not looked for on the hub, even if it has the form owner/name.
    hub = _REPOSITORY.fullmatch(source)
    if hub is None or path.suffix in FILE_SUFFIXES or source.startswith((".", "~")):
        raise BackboneError(f"weights '{source}': there is no such file or folder")
    return fetch(hub["repository"], hub["revision"], layout)


def fetch(repository: str, revision: str | None = None, layout: Layout = TRANSFORMERS) -> Weights:
    """Fetch a repository's configuration and weights to the hub's cache, unless they are cached.

    The revision is resolved to a commit first, and every file is of that commit. `HF_HUB_OFFLINE=1` asks the
    cache alone.

    Parameters
    ----------
    repository
        Name on the hub, `owner/name`.
    revision
        A branch, tag or commit; None for `main`.
    layout
        What the files of the repository are called.

    Raises
    ------
    BackboneError
        If there is no such repository, revision or file, or no connection.
    """
    # The first of these files that the repository has tells the commit. It must have a configuration, unless
    # OpenCLIP itself has one for this repository.
    first_files = [layout.config]
    if named_architecture(repository) is not None:
        first_files += layout.single
    folder = _hub_folder(repository, first_files, revision)
    if folder is None:
        source = "the hub's cache" if _offline() else "the hub"
        raise BackboneError(
            f"weights '{repository}@{revision or 'main'}': no file or folder of this name here, "
            f"and {source} has no {first_files[-1]}. {how_to_get(repository)}"
        )
    commit = folder.name  # the cache has a folder for each commit

    def find(file_name: str) -> Path | None:
        """Fetch a file of the commit; None if there is no such file."""
        return _hub_file(repository, file_name, commit)

    paths = _tensor_files(f"{repository}@{commit}", layout, find)
    return Weights(tuple(paths), folder, digest(paths), repository, commit)


def _hub_folder(repository: str, names: Sequence[str], revision: str | None) -> Path | None:
    """Return the folder of a revision in the hub's cache, which is named after its commit.

    Parameters
    ----------
    repository
        Name of the repository, `owner/name`.
    names
        Files of which the first that the repository has is fetched. None is returned if it has none.
    revision
        A branch, tag or commit; None for `main`.
    """
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
    """Return the argument with which `obygaze weights fetch` gets weights.

    It is the name of a backbone that has these weights by default; for other weights, and for a revision, it
    is their name on the hub, quoted for a shell.

    Parameters
    ----------
    name
        Name on the hub, `owner/name[@revision]`, or name of a model in `OPENCLIP`.
    """
    # The table of defaults may have the weights by their repository, or by the name of a model in `OPENCLIP`.
    names_of_weights = {name}
    for model_name, model in OPENCLIP.items():
        if model.repository == name:
            names_of_weights.add(model_name)
    for backbone, default_weights in HUB.items():
        if default_weights in names_of_weights:
            return backbone
    return quote(name)


def hub_name(source: object) -> str:
    """Return weights' name on the hub if they are there: `owner/name[@revision]`, or a name in `OPENCLIP`.

    Empty if the weights are a path or random.

    Parameters
    ----------
    source
        The weights, as for `find_weights`.
    """
    name = str(source)
    if name in OPENCLIP:
        return name
    is_path = Path(name).expanduser().exists() or Path(name).suffix in FILE_SUFFIXES
    if is_path or name.startswith(("random:", ".", "~")):
        return ""
    return name if _REPOSITORY.fullmatch(name) else ""


def is_cached(name: str) -> bool:
    """Return whether the hub's cache has all tensors of a repository, or of a model in `OPENCLIP`."""
    return bool(cached_tensors(name))


def cached_tensors(name: str) -> list[Path]:
    """Return the paths of the tensor files of a repository, or of a model in `OPENCLIP`, in the hub's cache.

    Empty unless all of them are there: a fetch that was interrupted may leave some.
    """
    layout = TRANSFORMERS  # what the files of the repository are called
    if name in OPENCLIP:
        name = OPENCLIP[name].repository
        layout = OPEN_CLIP
    repository, _, revision = name.partition("@")

    def find(file_name: str) -> Path | None:
        """Return the path of a file in the cache; None if it is not there."""
        from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - obygaze[extract]

        path = try_to_load_from_cache(repository, file_name, revision=revision or None)
        return Path(path) if isinstance(path, str) else None

    try:
        return _tensor_files(name, layout, find)
    except BackboneError:  # none of these files, or not all that an index names
        return []


def file_of(weights: Weights, name: str) -> Path | None:
    """Return the path of a file beside the weights, such as a tokenizer's; None if there is no such file.

    The file of a repository is fetched to the hub's cache, unless it is cached.

    Raises
    ------
    BackboneError
        If the hub cannot be asked, or the file begins with a byte order mark.
    """
    if weights.repository is not None:
        return _file_without_mark(_hub_file(weights.repository, name, weights.revision))
    if weights.folder is None:
        return None
    return _file_without_mark(weights.folder / name)


def _file_without_mark(path: Path | None) -> Path | None:
    """Return a file's path, after checking that the file does not begin with a byte order mark.

    None if there is no such file. The libraries that open the files beside weights misread such a mark; a
    model card, which is not opened by them, may have one.

    Raises
    ------
    BackboneError
        If the file begins with a byte order mark.
    """
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
    """Read a JSON file beside the weights, such as a tokenizer's configuration; empty if there is none.

    Raises
    ------
    BackboneError
        If it is no JSON object, or the hub cannot be asked.
    """
    path = file_of(weights, name)
    return {} if path is None else read_json(path, dict)


def read_json(path: Path, kind: type[Json]) -> Json:
    """Read a JSON file that holds an object (`kind` is `dict`) or an array (`list`).

    It may be a stranger's file, beside weights.

    Raises
    ------
    BackboneError
        If the file is no JSON, holds something else, or asks for more layers or labels than `MAX_LAYERS`.
    """
    try:
        document = json.loads(read_text(path), object_hook=_refuse_huge_numbers)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BackboneError(f"{path}: {where_damaged(error, path, 'a JSON file')}") from None
    except ValueError as error:
        raise BackboneError(f"{path}: {error}") from None
    # Not all JSON is what the user meant to save. For example, a server's error message that was saved in
    # place of the file is a kind of its own, with a remedy (to fetch the file again).
    is_of_another_kind = file_kind(path).remedy != ""
    if is_of_another_kind:
        raise BackboneError(f"{path}: {why_not(path, 'a JSON file')}")
    if not isinstance(document, kind):
        raise BackboneError(f"{path}: expected a JSON {kind.__name__}, found {type(document).__name__}")
    return document


def _refuse_huge_numbers(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object of a configuration as it is, unless it asks for too many layers or labels.

    A network of so many might fill the memory before anything else is checked.

    Raises
    ------
    ValueError
        If a field such as `num_layers` is larger than `MAX_LAYERS`.
    """
    for name, value in fields.items():
        is_count = _COUNT_FIELD.fullmatch(name) is not None and isinstance(value, int)
        if is_count and value > MAX_LAYERS:
            raise ValueError(f"{name} is {value}, and {MAX_LAYERS} is the most")
    return fields


def digest(files: Sequence[Path]) -> str:
    """Compute the SHA-256 of a file, or one SHA-256 of several files.

    Several files have that of the lines `digest  name`, sorted by name, as `sha256sum` writes them.
    """
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
            return any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        return False  # not a zip: loading says what it is


def _weights_in_folder(folder: Path, layout: Layout) -> Weights:
    """Find the files with the weights in a folder, and compute their digest.

    Every file of the folder is opened once, to refuse pipes, devices and files that are too large, because
    transformers will read some of the files beside the weights.
    """
    path_of_name = {}
    for path in folder.iterdir():
        if path.exists() and not path.is_dir():
            max_bytes = None if path.suffix in FILE_SUFFIXES else MAX_BYTES  # tensors may be of any size
            open_regular(path, max_bytes).close()
        if path.is_file():
            path_of_name[path.name] = path
    paths = _tensor_files(str(folder), layout, path_of_name.get)
    return Weights(tuple(paths), folder, digest(paths))


def _tensor_files(location: str, layout: Layout, find: Callable[[str], Path | None]) -> list[Path]:
    """Return the paths of the files with a network's tensors: one file, or the shards that an index names.

    Parameters
    ----------
    location
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
    index_names = [f"{name}.index.json" for name in layout.single]
    for name in index_names:
        index = find(name)
        if index is None:
            continue
        path_of_shard = {shard: find(shard) for shard in _shards(index)}
        absent_shards = [shard for shard, path in path_of_shard.items() if path is None]
        if absent_shards:
            raise BackboneError(f"{index} names {', '.join(absent_shards)}, which the folder does not have")
        return [path for path in path_of_shard.values() if path is not None]
    raise BackboneError(f"{location}: there is none of {', '.join((*layout.single, *index_names))}")


def _shards(index: Path) -> tuple[str, ...]:
    """Return the sorted names of the files in which an index says that the tensors are (shards).

    The index is JSON: `{"weight_map": {"encoder.bias": "model-00001-of-00002.safetensors", ...}}`.
    """
    try:
        names = set(read_json(index, dict)["weight_map"].values())
    except (KeyError, TypeError, AttributeError):
        raise BackboneError(f"{index}: not an index of shards (a JSON object with 'weight_map')") from None
    # A name with a folder could lead out of the folder of the weights.
    if not names or any(not isinstance(name, str) or Path(name).name != name for name in names):
        raise BackboneError(f"{index}: 'weight_map' should name files beside it")
    return tuple(sorted(names))


def _hub_file(repository: str, name: str, revision: str | None) -> Path | None:
    """Fetch one file of a repository to the hub's cache; return its path, or None if there is no such file.

    The hub, or with HF_HUB_OFFLINE=1 its cache on this machine, says whether a repository has a file. Without
    a network the cache is read too, but a file that it lacks may be on the hub: that is an error.

    Parameters
    ----------
    repository, name
        Name of the repository, `owner/name`, and of the file in it.
    revision
        A branch, tag or commit; None for `main`.

    Raises
    ------
    BackboneError
        It is not known whether the file exists: there is no network, no repository or no revision, or the
        repository's name is not valid.
    """
    from huggingface_hub import errors, hf_hub_download  # noqa: PLC0415 - obygaze[extract]

    why_no_network = _why_no_network()
    only_cache = why_no_network != ""
    advice = f". {how_to_get(repository)}"
    try:
        return Path(hf_hub_download(repository, name, revision=revision, local_files_only=only_cache))
    except errors.RemoteEntryNotFoundError:  # the hub has answered that there is no such file
        return None
    except errors.EntryNotFoundError as error:  # the cache lacks it, and the hub did not answer
        if _offline():
            return None
        problem = first_line(error)
    except errors.HFValidationError as error:  # the repository's name is not one that the hub allows
        problem = first_line(error)
        advice = ""  # there is no such repository to get files from
    except (OSError, errors.HTTPError) as error:  # type: ignore[attr-defined]  # HTTPError is not exported
        # The hub has no such repository or revision, or does not answer.
        problem = first_line(error)
    raise BackboneError(
        f"weights '{repository}@{revision or 'main'}': no file or folder of this name here, "
        f"and {name} cannot be had from the hub: {why_no_network or problem}{advice}"
    )


def _why_no_network() -> str:
    """Return why the host name of the hub cannot be resolved; empty if it can, or need not be resolved.

    Without a network, the hub's client would try again and again for some time. Behind a proxy, or with the
    cache alone, this machine need not resolve the name, so that nothing is checked.
    """
    from huggingface_hub.constants import ENDPOINT  # noqa: PLC0415 - obygaze[extract]

    if getproxies() or _offline():
        return ""
    host_name = urlsplit(ENDPOINT).hostname
    try:
        socket.getaddrinfo(host_name, None)
    except OSError as error:
        return f"{host_name}: {error.strerror}"
    return ""


def _offline() -> bool:
    """Return whether the hub's client may use its cache alone, as the variable HF_HUB_OFFLINE says."""
    from huggingface_hub import is_offline_mode  # noqa: PLC0415 - obygaze[extract]

    return is_offline_mode()
