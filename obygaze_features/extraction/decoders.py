"""Find decoders: the built-in PyAV, alone or beside a GPU, and those of installed packages.

A custom decoder is a function in an installed package, registered under the entry-point group
`obygaze.decoders`. It takes the tasks of one file and yields a `DecodedClip` for each, as
`obygaze_features.extraction.decode_clips.decode_with_av` does. It runs in the decode workers.
docs/extending.md and docs/decoding.md have examples.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint

from obygaze_features.errors import ExtractError
from obygaze_features.extraction.decode_clips import DecodedClip, DecodeTask, decode_with_av
from obygaze_features.plugins import DECODERS, points
from obygaze_features.video import decoder_versions

PYAV = "pyav"
CUDA = "cuda"
"""PyAV on cores, and NVIDIA's decoder on a GPU beside them (`gpu_pool`), where it gives the same bits."""

BUILT_IN = (PYAV, CUDA)
"""Names of the decoders of this package; others come with packages beside it."""

Decode = Callable[[Sequence[DecodeTask]], Iterator[tuple[int, DecodedClip]]]


def decoder_names() -> tuple[str, ...]:
    """List the decoders, the built-in ones first."""
    installed = {entry.name for entry in points(DECODERS)}
    return *BUILT_IN, *sorted(installed.difference(BUILT_IN))


def load_decoder(name: str) -> Decode:
    """Return the function that decodes clips on a core, by the name of the decoder.

    Decoders other than the built-in ones are in installed packages (entry points).

    Raises
    ------
    ExtractError
        If no decoder has this name, two packages provide it, or it cannot be imported.
    """
    if name in BUILT_IN:
        return decode_with_av
    entry = _entry(name)
    try:
        decode: Decode = entry.load()
    except (ImportError, AttributeError) as error:
        raise ExtractError(f"decoder '{name}': {entry.value} cannot be loaded: {error}") from None
    return decode


def decoder_record(name: str, *, stills: bool = False) -> dict[str, str]:
    """Describe a decoder for the provenance; always includes PyAV's versions, because PyAV probes the files.

    The record of `cuda` is that of PyAV, because a GPU gives the same bits.

    Parameters
    ----------
    name
        Name of the decoder.
    stills
        Whether the clips are still images, which another library decodes.

    Raises
    ------
    ExtractError
        If no decoder has this name.
    """
    versions = decoder_versions(stills=stills)
    if name in BUILT_IN:
        return versions
    record = {"name": name}
    package = _entry(name).dist
    if package is not None:
        record["package"] = f"{package.name} {package.version}"
    return record | versions


def _entry(name: str) -> EntryPoint:
    """Return the entry point of a decoder that an installed package registers under this name.

    Raises
    ------
    ExtractError
        No package registers the name, or packages register different functions under it.
    """
    # Packages that register the same function under the name count once.
    entry_of_function: dict[str, EntryPoint] = {}  # function as "module:name" -> its entry point
    for entry in points(DECODERS):
        if entry.name == name:
            entry_of_function[entry.value] = entry
    if not entry_of_function:
        raise ExtractError(f"no decoder is called '{name}'; there is {', '.join(decoder_names())}")
    if len(entry_of_function) > 1:
        functions = ", ".join(sorted(entry_of_function))
        raise ExtractError(f"more than one decoder is called '{name}': {functions}; uninstall one")
    (only_entry,) = entry_of_function.values()
    return only_entry
