"""`obygaze store import | export | card | cite`: exchange features with other tools, and describe stores."""

import glob
import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import click

import obygaze_features as of
from obygaze_features import manifest as manifests
from obygaze_features import store as stores
from obygaze_features.commands.store_output import sealed_result
from obygaze_features.errors import ManifestError, StoreError
from obygaze_features.file_kinds import NPZ, file_kind, where_damaged
from obygaze_features.io import refuse_existing, write_whole
from obygaze_features.manifest.text_tables import error_context
from obygaze_features.options import LOCAL, Answer, LocalPath, Number
from obygaze_features.schema import Name, expected, fits
from obygaze_features.screen import progress_bar
from obygaze_features.signatures import Force, argument, command, option
from obygaze_features.text import counted, first_few
from obygaze_features.untrusted import open_regular, read_text

if TYPE_CHECKING:
    from obygaze_features.exchange.axes import Axes
    from obygaze_features.exchange.import_items import FileContent, ImportItem


_FIELD = re.compile(r"\{(\w*)\}")
"""A field of a pattern, such as {movie}."""

_ROWS = "rows"
"""Key under which a table whose rows are frames says which columns give clip and time."""


def names_by_pattern(manifest: "manifests.Manifest", pattern: str) -> dict[str, str]:
    """Return clip id -> the name that the clip has in another tool's files, built from a pattern.

    The fields of the pattern, as in {movie}/{video}, are columns of the manifest. Clips without a value for
    one of them are left out: they have no name, and so no features.

    Raises
    ------
    click.UsageError
        The manifest has no such column, or no clip has a name.
    """
    fields = _FIELD.findall(pattern)
    names = {}
    for clip in manifest:
        values = _values_of_fields(clip)
        for field in fields:
            if field not in values:
                raise click.BadParameter(
                    f"{{{field}}}: expected one of {', '.join(values)}", param_hint="--pattern"
                )
        has_all_values = all(values[field] for field in fields)
        if has_all_values:
            names[clip.clip_id] = _fill_pattern(pattern, values)

    if len(manifest) and not names:
        raise click.UsageError(f"no clip of the manifest has a name by {pattern}; choose another --pattern")
    return names


def _values_of_fields(clip: "manifests.Clip") -> dict[str, str]:
    """Return what the fields of a pattern of names, such as {movie}, stand for in a clip: field -> value.

    The value of `video` is the name of the video file without folder and suffix.
    """
    video_path = PurePosixPath(clip.video.replace("\\", "/"))
    return {"clip_id": clip.clip_id, "movie": clip.movie, "video": video_path.stem, **clip.extras}


def _fill_pattern(pattern: str, values: Mapping[str, str]) -> str:
    """Replace the fields of a pattern by their values: "tt1/scene" for {movie}/{video}."""

    def value_of(field: re.Match[str]) -> str:
        """Return the value of a field that was found in the pattern."""
        name = field[1]
        return values[name]

    return _FIELD.sub(value_of, pattern)


def parse_declared(text: str, where: str) -> dict[str, object]:
    """Parse what the user declares of how features were made (provenance), a JSON object.

    Parameters
    ----------
    text
        The JSON text.
    where
        Its name in messages.
    """
    try:
        declared = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = where_damaged(error, text.encode(), "a JSON document")
        raise click.UsageError(f"{where}: {reason}") from error
    if not isinstance(declared, dict):
        raise click.UsageError(f"{where}: expected one JSON object of provenance fields")
    return declared


def open_source(
    source: Path,
    kind: str,
    ids: str | None,
    patterns: Sequence[str],
    labels: Collection[str],
    clips: Collection[str],
    times: str | None,
    *,
    of_frames: bool,
    at_a_rate: bool,
) -> "AbstractContextManager[FileContent]":
    """Open another tool's files, by their kind, to import the features in them.

    Parameters
    ----------
    source
        File or folder.
    kind
        Kind of the files, as in --from.
    ids
        Column or file of ids, for tables.
    patterns
        Patterns of the columns or arrays that are features.
    labels
        Columns of the manifest and concepts, which are no features.
    clips
        Names of the clips.
    times
        Where the times of frames are, as in --times: the name of an array or column, or a pattern of names of
        files. Files are not read here.
    of_frames
        Whether the features are of frames.
    at_a_rate
        Whether a frame rate gives the times.

    Returns
    -------
    AbstractContextManager
        Gives name -> features, and what the source states about them.
    """
    from obygaze_features.exchange.array_choice import ArrayChoice
    from obygaze_features.exchange.import_files import array_files, npz_clips, torch_files
    from obygaze_features.exchange.import_hdf5 import hdf5_items
    from obygaze_features.exchange.import_tables import table_items

    if ids is not None and kind != "table":
        raise click.UsageError(f"--ids is for --from table; the files of --from {kind} are named after clips")
    has_files_of_times = _is_file_pattern(times)
    times_array = None if has_files_of_times else times
    is_table_with_times = kind == "table" and times is not None
    if is_table_with_times and (not of_frames or has_files_of_times):
        raise click.UsageError("--times names a column of a table with a row for each frame (--array frames)")

    # The libraries that read the file would wait for ever if it were a pipe, which this refuses.
    if not source.is_dir():
        open_regular(source).close()

    if kind == "hdf5":
        clip_names = {name.rpartition("/")[2] for name in clips}
        return hdf5_items(source, patterns, clip_names, times_array)
    if kind == "table":
        return table_items(
            source, ids, labels, patterns, of_frames=of_frames, times=times, at_a_rate=at_a_rate
        )

    # Files of arrays: .npy, .npz and those of torch.
    choice = ArrayChoice(tuple(patterns), times=times_array)
    if kind == "npy" and source.is_file() and file_kind(source).name == NPZ:
        return npz_clips(source, choice)
    read_files = array_files if kind == "npy" else torch_files
    return nullcontext((read_files(source, choice), choice.about))


SHOWN = 5


@command()
def import_(
    manifest: Annotated[Path, argument()],
    source: Annotated[Path, argument(type=LocalPath(exists=True, path_type=Path))],
    store: Annotated[Path, argument(type=LOCAL)],
    *,
    kind: Annotated[
        Literal["pth", "npy", "hdf5", "table"],
        option(
            "Kind of SOURCE. npy, pth, hdf5: a folder with a file per clip (.npy and .npz, also in "
            "a tar; .pth, .pt and .safetensors; .h5), or one file with a key, group or dataset per "
            "clip. table: one file (CSV, .xlsx, Parquet, .npy, .npz, HDF5, AnnData .h5ad) with a "
            "row per clip or, with --array frames, a row per frame; or a folder of CSV or Parquet "
            "parts.",
            name="from",
        ),
    ],
    ids: Annotated[
        str | None,
        option(
            "For --from table: the column or array with the ids of the rows, or a file with one id "
            "per row.  [default: clip_id, clip_ids, clip, id or ids; obs names of AnnData]",
            type=click.STRING,
            metavar="NAME|FILE",
        ),
    ] = None,
    columns: Annotated[
        tuple[str, ...],
        option(
            "Columns or arrays to read as features, such as 'f[0-9]*'; '!PATTERN' leaves them out; "
            "repeatable.  [default: the only column of lists, array of real numbers, or numbered "
            "series (f0, f1, ...)]",
            metavar="PATTERN",
        ),
    ] = (),
    key: Annotated[
        str | None, option("Exact name of the one array, tensor or column to read as features.")
    ] = None,
    backbone: Annotated[
        str | None,
        option("Name of the backbone in the store. Files that `obygaze store export` wrote have it already."),
    ] = None,
    array: Annotated[
        Literal["pooled", "frames", "tokens"],
        option(
            "What SOURCE has of each clip: one vector (pooled [D]), one per frame (frames [F, D]) "
            "or tokens [T, D]."
        ),
    ] = "pooled",
    axes: Annotated[
        Literal["TD", "DT", "T1D", "TD11"] | None,
        option(
            "Order of the axes in the files: T frames or tokens of D numbers each.  [default: TD, "
            "without axes of length one]"
        ),
    ] = None,
    rate: Annotated[
        float | None,
        option(
            "Frames per second of video: the time of frame i is i / RATE after the clip's start.",
            type=Number(min=0, min_open=True),
            metavar="RATE",
        ),
    ] = None,
    times: Annotated[
        str | None,
        option(
            "Array or column with the times of frames, or a pattern of the names of files with "
            "them ({video}_timestamps_ms). Times are in seconds, or in milliseconds if the name "
            "ends in ms.  [default: time_s; in a table also time, timestamp and such]",
            metavar="NAME|PATTERN",
        ),
    ] = None,
    pattern: Annotated[
        str | None,
        option(
            "How the names of files or groups are built from the manifest's columns. {video} is "
            "the video's file name without folder and suffix. Write the pattern without the suffix "
            "of the files.  [default: {video}; for one file {clip_id}]"
        ),
    ] = None,
    declared: Annotated[
        Path | None, option("JSON file with the provenance fields that you know, such as the weights.")
    ] = None,
    dtype: Annotated[
        Literal["float16", "float32"] | None, option("Convert the values to this data type.")
    ] = None,
    licence: Annotated[
        str,
        option("Licence of the features: an SPDX expression, or NOASSERTION.", envvar="OBYGAZE_LICENCE"),
    ],
    citation: Annotated[str, option("How to cite the store, in one line.")] = "",
    version: Annotated[str, option("Version of the store.", name="store-version")] = "1.0.0",
    allow_missing: Annotated[bool, option("Seal even if some clips of MANIFEST have no features.")] = False,
) -> Answer:
    """Import features extracted with other tools from SOURCE, for the clips of MANIFEST, into a new STORE.

    The names of files, or the ids of rows, are matched with MANIFEST (--pattern). A clip that is there once
    for each of several annotators is stored once; labels are not stored. A clip without a video in
    the manifest has no file, so that it counts as missing. The store is marked as imported. Provenance that
    --declared does not state is recorded as unknown. So are the times of frames, unless the files have them
    (`time_s`) or --rate is given.

    \b
    Examples:
      obygaze store import films.csv XCLIP/ stores/xclip --from pth \\
          --backbone xclip --licence NOASSERTION
      obygaze store import films.csv vivit/ stores/vivit --from npy \\
          --backbone vivit --array tokens --dtype float16 \\
          --pattern {movie}/{video} --declared vivit.json --licence CC-BY-4.0
      obygaze store import films.csv films.h5 stores/films --from hdf5 \\
          --licence CC-BY-4.0
      obygaze store import films.csv all.npy stores/lab --from table \\
          --ids ids.txt --backbone lab --licence CC-BY-4.0
      obygaze store import films.csv all.parquet stores/lab --from table \\
          --ids name --pattern {video} --backbone lab --licence CC-BY-4.0
    """
    from obygaze_features.exchange.columns import LEAVE_OUT
    from obygaze_features.exchange.import_features import Declared, import_features

    # The clips, and the name that each has in the source.
    table = _read_manifest_of_import(manifest, source)
    corpus = {"name": manifest.stem, "manifest_sha256": table.digest()}
    # A store has a clip once, also if several annotators labelled it: labels are not stored.
    table = table.with_clips(table.clips_once)
    if pattern is None:
        pattern = "{clip_id}" if kind == "table" or source.is_file() else "{video}"
    if backbone is not None and not fits(backbone, Name):
        raise click.BadParameter(f"{backbone!r}: expected {expected(Name)}", param_hint="--backbone")
    clip_names = names_by_pattern(table, pattern)

    # The source, of which all names are known when it is open, and features are read one after the other.
    patterns_of_features = list(columns)
    if key:
        patterns_of_features.append(glob.escape(key))
    opened_source = open_source(
        source,
        kind,
        ids,
        patterns=patterns_of_features,
        labels=_names_of_labels(table),
        clips=clip_names.values(),
        times=times,
        of_frames=array == "frames",
        at_a_rate=rate is not None,
    )
    # `items` is name in the source -> features. `about` holds what the source states of itself, as texts,
    # such as `backbone`, `features` and `left_out`.
    with opened_source as (items, about), progress_bar("import") as progress:
        provenance = _read_provenance(declared, source, about)
        name = backbone or about.get("backbone")
        if not name:
            raise click.UsageError("say what the features are called: --backbone")

        # The features of each clip, and names in the source that belong to none.
        matched = _match_clips(items, clip_names, times, table)
        if matched.unknown and not matched.features:
            name_of_first_clip = next(iter(clip_names.values()), "")
            raise StoreError(
                f"{source}: none of its {counted(len(items), 'name')} is a clip's: it has "
                f"{matched.unknown[0]!r}, "
                f"and by --pattern {pattern} clips are called {name_of_first_clip!r}"
            )
        for notice in _notices_on_unmatched(table, matched, allow_missing=allow_missing):
            click.echo(notice, err=True)

        # What the user says of the features, and the import itself. A pattern that begins with `LEAVE_OUT`
        # only says which columns are no features.
        planned = [stores.PlannedClip(clip.clip_id, clip.movie, clip.start_s, clip.end_s) for clip in table]
        are_features_named = any(not wanted.startswith(LEAVE_OUT) for wanted in patterns_of_features)
        declaration = Declared(
            backbone=name,
            array=array,
            provenance=provenance,
            dtype=dtype,
            are_features_named=are_features_named,
            series=_series_name(about.get("features", "")),
            axes=_choose_axes(axes, about, source),
            per_second=rate,
            times=None if kind == "table" else times,  # a table was opened with its column of times
        )
        path = import_features(
            matched.features,
            planned,
            declaration,
            store,
            corpus=corpus,
            progress=progress,
            note=partial(click.echo, err=True),
            licence=licence,
            citation=citation,
            version=version,
            allow_missing=allow_missing,
        )
        for notice in _notices_on_source(about):
            click.echo(notice, err=True)
    return _answer_on_import(path, name, rate)


def _read_manifest_of_import(manifest: Path, source: Path) -> "manifests.Manifest":
    """Read the manifest of an import; say so if the user has exchanged it with the source.

    The source of an import may be a table of CSV too.
    """
    try:
        return manifests.read_manifest(manifest)
    except (ManifestError, OSError):
        is_no_table = manifest.exists() and manifest.suffix.lower() != ".csv"
        is_source_table = source.suffix.lower() == ".csv"
        if is_no_table and is_source_table:
            raise click.UsageError(f"the order is MANIFEST SOURCE STORE: {manifest} is no manifest") from None
        raise


def _answer_on_import(path: Path, name: str, rate: float | None) -> Answer:
    """Return what to print of an imported store: its summary, and the sizes of a clip's arrays.

    Parameters
    ----------
    path
        The store.
    name
        The group of the imported features.
    rate
        Frames in a second of the video, if they were declared.
    """
    group = of.open_store(path)[name]
    shapes = {array: list(group.clip_shape(array)) for array in group.arrays}
    answer = sealed_result(path, arrays=shapes)
    sizes = ", ".join(_size_in_words(group, array) for array in shapes)
    if rate is not None:
        sizes += f", {rate:g} a second"
    return replace(answer, text=f"{answer.text}\neach clip has: {sizes}")


def _names_of_labels(manifest: "manifests.Manifest") -> set[str]:
    """Return the names by which columns of a table of features are known as labels, not features.

    Somebody may have joined the labels of the clips to their features. Columns with the name of a concept, or
    of a further column of the manifest (`extras`, such as a second rating), are therefore not imported: a
    model would learn labels from themselves.
    """
    names = {concept.name for concept in manifest.codebook.concepts}
    for clip in manifest:
        names.update(clip.extras)
    return names


class _Matched(NamedTuple):
    """The names of a source, matched with the clips of a manifest.

    Attributes
    ----------
    features
        Clip id -> its features.
    unknown
        Names that belong to no clip.
    """

    features: "Mapping[str, ImportItem]"
    unknown: tuple[str, ...]


def _is_file_pattern(times: str | None) -> bool:
    """Return whether --times is a pattern of separate files, such as {video}_ms, and no name of an array."""
    return times is not None and "{" in times


def _match_clips(
    items: "Mapping[str, ImportItem]",
    clip_names: Mapping[str, str],
    times: str | None,
    table: "manifests.Manifest",
) -> _Matched:
    """Find the features of each clip among the named features of a source.

    Parameters
    ----------
    items
        Name in the source -> features, or times.
    clip_names
        Clip id -> the name of its features in the source.
    times
        The option --times. If it is a pattern, such as {video}_ms, it gives the name of the file that holds
        the times of a clip's frames: these are found too, and put beside the features.
    table
        The manifest of the clips.
    """
    from obygaze_features.exchange.import_items import match_to_clips, with_times
    from obygaze_features.file_kinds import FILM_SUFFIXES

    # Clip id -> features, and the names that are those of no clip's features.
    features, names_without_features = match_to_clips(items, clip_names, FILM_SUFFIXES)
    if times is None or not _is_file_pattern(times):
        return _Matched(features, names_without_features)

    # The files of times are among these names: whatever is neither features nor times is unknown.
    names_of_times = names_by_pattern(table, times)
    times_of_clips, names_without_times = match_to_clips(items, names_of_times, FILM_SUFFIXES)
    unknown = tuple(name for name in names_without_features if name in names_without_times)
    return _Matched(with_times(features, times_of_clips, times), unknown)


def _size_in_words(group: "stores.Group", array: str) -> str:
    """Describe the shape of a clip's array, such as "32 frames of 768 numbers", so that swapped axes show.

    Parameters
    ----------
    group
        The group of features.
    array
        Name of the array in it: pooled, frames or tokens.
    """
    *other_sizes, n_numbers = group.clip_shape(array)
    if not other_sizes:
        return f"one vector of {counted(n_numbers, 'number')}"
    if group.is_ragged(array):  # clips have different numbers of frames
        sizes = group.row_size[group.usable]
        rows = f"{sizes.min()} to {sizes.max()} {array}"
    else:
        rows = counted(other_sizes[0], array.removesuffix("s"))
    return f"{rows} of {counted(n_numbers, 'number')}"


def _choose_axes(axes: "Axes | None", about: Mapping[str, str], source: Path) -> "Axes | None":
    """Return the order of the axes of the features; in a table with a row for each frame it must be TD.

    TD are T frames or tokens, each of D numbers. `axes` is the option --axes, None if it is not given.
    """
    if _ROWS not in about:
        return axes
    if axes not in (None, "TD"):
        raise click.UsageError(f"--axes {axes}: in {source} a row is a frame, so its axes are TD")
    return "TD"


def _series_name(features: str) -> str:
    """Return what numbered columns of features are called without their numbers: `f` for `f0`, `f1`, ...

    Parameters
    ----------
    features
        Names of the columns, one on each line; empty if there are none.
    """
    first_column, _, _ = features.partition("\n")
    return first_column.rstrip("0123456789")


def _notices_on_source(about: Mapping[str, str]) -> list[str]:
    """Return notices on how the rows of a table were read, and on columns or files that were left out.

    Parameters
    ----------
    about
        What the source states of itself, as texts.
    """
    notices = []
    if _ROWS in about:
        notices.append(f"rows: {about[_ROWS]}")
    if "left_out" in about:
        notices.append(f"left out: {about['left_out']}")
    return notices


def _read_provenance(declared: Path | None, source: Path, about: Mapping[str, str]) -> dict[str, object]:
    """Read the provenance from the file of --declared or, without one, from the source itself.

    A source may state its `provenance`, as JSON text.
    """
    if declared is not None:
        return parse_declared(read_text(declared), str(declared))
    if about.get("provenance"):
        return parse_declared(about["provenance"], f"{source}, provenance")
    return {}


def _notices_on_unmatched(
    table: "manifests.Manifest", matched: _Matched, *, allow_missing: bool
) -> list[str]:
    """Return notices on names that belong to no clip, and on the number of clips without features.

    Parameters
    ----------
    table
        The manifest of the clips.
    matched
        The names of the source, matched with the clips.
    allow_missing
        Whether clips may be without features; otherwise sealing reports them as an error.
    """
    notices = []
    unknown = matched.unknown
    if unknown:
        last_parts = {name.rpartition("/")[2] for name in unknown}
        are_ids_of_clips = not last_parts.isdisjoint(table.by_id.keys())
        hint = "; some are ids of clips: give --pattern '{clip_id}'" if are_ids_of_clips else ""
        notices.append(
            f"left out: {len(unknown)} that belong to no clip of the manifest: "
            f"{first_few(unknown, SHOWN)}{hint}"
        )
    n_absent = len(table) - len(matched.features)
    if allow_missing and n_absent:
        notices.append(f"missing: {n_absent} of {counted(len(table), 'clip')} have no features")
    return notices


@command()
def export(
    store: Annotated[str, argument(type=click.STRING)],
    file: Annotated[Path, argument(type=LOCAL)],
    *,
    backbone: Annotated[
        str | None, option("Backbone whose features are exported; needed if the store has several.")
    ] = None,
    kind: Annotated[
        Literal["hdf5", "h5ad"],
        option(
            "hdf5: one group per clip, with all arrays. h5ad: AnnData with the pooled features "
            "(one vector per clip).",
            name="to",
        ),
    ],
    manifest: Annotated[
        Path | None,
        option(
            "Manifest of the clips; adds their level and concepts, in `obs` (h5ad) or as attributes (hdf5)."
        ),
    ] = None,
) -> Answer:
    """Write a store's features as HDF5 or AnnData, for tools that do not read Zarr.

    The file also has the movie, start, end and status of each clip. With --manifest it also has the level
    and the concepts, separated by semicolons.

    \b
    Examples:
      obygaze store export stores/films films.h5 --to hdf5
      obygaze store export stores/films films.h5ad --to h5ad \\
          --backbone xclip-base-patch16 --manifest films.csv
    """
    from obygaze_features.exchange.export import export_anndata, export_hdf5

    opened_store = of.open_store(store)
    if backbone is None:
        if len(opened_store) != 1:
            raise click.UsageError(f"--backbone: choose one of {', '.join(opened_store)}")
        backbone = opened_store.names[0]

    labels = None
    if manifest is not None:
        labels = _read_labels(manifest)  # `level` and `concepts` -> clip id -> text
        group = opened_store[backbone]
        written_ids = {
            clip_id for clip_id, usable in zip(group.clip_ids, group.usable, strict=True) if usable
        }
        n_unknown = len(written_ids - labels["level"].keys())
        if n_unknown:
            click.echo(f"no labels for {counted(n_unknown, 'clip')}: {manifest} does not have them", err=True)

    export_features = export_hdf5 if kind == "hdf5" else export_anndata
    n_written, n_left_out = export_features(opened_store, backbone, file, labels)
    document = {"file": str(file), "backbone": backbone, "clips": n_written, "left_out": n_left_out}
    return Answer(
        document,
        f"{file}: {counted(n_written, 'clip')} of {backbone}; {n_left_out} without features left out",
    )


def _read_labels(manifest: Path) -> dict[str, dict[str, str]]:
    """Return the labels of a manifest's clips: "level" and "concepts" -> clip id -> text.

    Raises
    ------
    ManifestError
        Names the file, if a clip has labels of several annotators.
    """
    labels = manifests.read_manifest(manifest)
    with error_context(manifest):
        clips = labels.by_id.values()
    return {
        "level": {clip.clip_id: clip.level or "" for clip in clips},
        "concepts": {clip.clip_id: ";".join(clip.concepts) for clip in clips},
    }


@command()
def card(
    store: Annotated[str, argument(type=click.STRING)],
    *,
    licence: Annotated[
        str | None, option("Licence, an SPDX expression; needed if the store was sealed without one.")
    ] = None,
    out: Annotated[
        Path | None, option("Folder to write README.md and croissant.json to, outside the store.", type=LOCAL)
    ] = None,
    force: Force = False,
) -> Answer:
    """Write a store's dataset card and croissant.json anew, outside the store.

    A sealed store never changes, so that the card in it stays as it is. Without --out, print the card.

    \b
    Examples:
      obygaze store card stores/films
      obygaze store card stores/films --out shared --licence CC-BY-4.0
    """
    from obygaze_features.exchange.publish import card_files

    files = card_files(of.open_store(store), licence)
    if out is None:
        texts = {name: data.decode() for name, data in files.items()}
        return Answer(texts, texts["README.md"].removesuffix("\n"))
    refuse_existing(*(out / name for name in files), force=force)
    out.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_whole(out / name, data)
    written = [str(out / name) for name in files]
    return Answer({"files": written}, "\n".join(written))


@command()
def cite(
    store: Annotated[str, argument(type=click.STRING)],
) -> Answer:
    """Print a reference and a BibTeX entry for STORE, with its version and fingerprint.

    The fingerprint is a SHA-256 that identifies the store's content. If the store was sealed with a
    citation, both contain it; a citation in BibTeX is printed only after the BibTeX entry.

    \b
    Examples:
      obygaze store cite stores/films
      obygaze store cite stores/films --json | jq -r .bibtex >> paper.bib
    """
    from obygaze_features.exchange import cite

    citation = cite(store)
    return Answer(citation.record(), f"{citation.apa()}\n\n{citation.bibtex()}")
