"""Find decoders: the built-in PyAV and those of installed packages.

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

Decode = Callable[[Sequence[DecodeTask]], Iterator[tuple[int, DecodedClip]]]


def decoder_names() -> tuple[str, ...]:
    """List the decoders, the built-in one first."""
    installed = {entry.name for entry in points(DECODERS)}
    return PYAV, *sorted(installed - {PYAV})


def load_decoder(name: str) -> Decode:
    """Return a decoder's function.

    Raises
    ------
    ExtractError
        If no decoder has this name, two packages provide it, or it cannot be imported.
    """
    if name == PYAV:
        return decode_with_av
    entry = _entry(name)
    try:
        decode: Decode = entry.load()
    except (ImportError, AttributeError) as error:
        raise ExtractError(f"decoder '{name}': {entry.value} cannot be loaded: {error}") from None
    return decode


def decoder_record(name: str, *, stills: bool = False) -> dict[str, str]:
    """Describe a decoder for the provenance; always includes PyAV's versions, because PyAV probes the files.

    Raises
    ------
    ExtractError
        If no decoder has this name.
    """
    versions = decoder_versions(stills=stills)
    if name == PYAV:
        return versions
    record = {"name": name}
    package = _entry(name).dist
    if package is not None:
        record["package"] = f"{package.name} {package.version}"
    return record | versions


def _entry(name: str) -> EntryPoint:
    """Return the one entry point of this name; packages that name the same function count once."""
    entries = {entry.value: entry for entry in points(DECODERS) if entry.name == name}
    if not entries:
        raise ExtractError(f"no decoder is called '{name}'; there is {', '.join(decoder_names())}")
    if len(entries) > 1:
        values = ", ".join(sorted(entries))
        raise ExtractError(f"more than one decoder is called '{name}': {values}; uninstall one")
    return next(iter(entries.values()))
