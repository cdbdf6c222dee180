"""`obygaze manifest import`: make manifests from annotations, folders and films."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from obygaze_features import manifest as manifests
from obygaze_features.commands.manifest_file import (
    complete_codebook,
    folder_for,
    write_imported,
)
from obygaze_features.options import PROBLEMS_FOUND, Answer, Output, completed, declared


def _roles(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse NAME=levels and NAME=concepts; a tier's name may hold "="."""
    roles: dict[str, str] = {}
    for value in values:
        name, _, role = value.rpartition("=")
        if not name or role not in {"levels", "concepts"}:
            raise click.BadParameter(f"{value!r}: expected NAME=levels or NAME=concepts", ctx, param)
        if roles.setdefault(name, role) != role:
            raise click.BadParameter(f"{name!r} is levels or concepts, not both", ctx, param)
    return roles


@declared(
    __package__,
    "manifest import spans",
    kind={"shell_complete": completed(lambda _: tuple(manifests.SOURCES))},
    tiers={"callback": _roles},
    codebook={"shell_complete": complete_codebook},
)
def spans(
    files: tuple[Path, ...],
    tiers: dict[str, str],
    decisions: bool,
    rate: str | None,
    codebook: str | None,
    output: Output,
    **given: Any,
) -> Answer:
    """Import spans of films: annotations, judgements, subtitles, tables.

    Reads ELAN (.eaf and tab-delimited text), BORIS (tabular or aggregated events), Praat TextGrid, RTTM,
    Label Studio (JSON), CVAT (XML), VIAN and VIA (CSV), ActivityNet, MovieGraphs (JSON), SRT, WebVTT,
    ASS, answers of machines to `codebook questions` (JSON lines; refusals and gaps are counted, never
    guessed), judgements of `film open` and `film next`, and tables (CSV, .xlsx) with the columns start_s,
    end_s, and video or movie, and if you have them clip_id, level, concepts, annotator. Each file prints one
    line: how many spans were read, which were left out and why. Without any span the exit code is 3.

    In ELAN the tiers "human: level" and "human: concepts" are read, unless --tier names others; the annotator
    is the tier's attribute, or follows an @ in its name. A model's tiers never become labels; what was made
    in their sight is marked seen_score=1. Elsewhere a label that the codebook has becomes a level or concept,
    and any other stands in the column text. Times are seconds, hh:mm:ss.ms, or hh:mm:ss:ff with --rate.

    \b
    Examples:
      obygaze manifest import spans film.eaf --annotator AB --out film.csv
      obygaze manifest import spans scenes.csv --videos films --out scenes-in.csv
      obygaze manifest import spans events.tsv --codebook violence.toml \\
          --tier violence=levels --out fights.csv
      obygaze manifest import spans tt0118715-ab.csv blind-*.csv --out judged.csv
      obygaze manifest import spans judged.csv answers.jsonl \\
          --annotator qwen-vl --out with-machine.csv
    """
    from obygaze_features.manifest.spans.eaf import DECIDED

    if decisions and tiers:
        raise click.UsageError("--decisions names its tiers: give no --tier with it")
    fps = None if rate is None else manifests.frame_rate(rate)
    labels = manifests.find_codebook(codebook) if codebook else None
    imported = manifests.import_spans(
        files,
        folder_for(output, labels),
        tiers=dict(DECIDED) if decisions else tiers,
        codebook=labels,
        rate=fps,
        length_of=_length_of,
        **given,
    )
    more = {"accounts": [account.record() for account in imported.accounts]}
    answer = write_imported(imported, output, more=more)
    return replace(answer, code=PROBLEMS_FOUND * (not imported.manifest.clips))


def _length_of(path: Path) -> float | None:
    """Read a video's length of its header; None where there is none, or PyAV is not installed."""
    from obygaze_features.errors import VideoError

    try:
        from obygaze_features.video.source import opened

        with opened(path) as source:
            return source.container.duration / 1e6 if source.container.duration else None
    except (ModuleNotFoundError, VideoError, OSError):
        return None


@declared(__package__, "manifest import folder", codebook={"shell_complete": complete_codebook})
def import_folder_(source: Path, codebook: str, output: Output) -> Answer:
    """Import a folder of videos.

    Makes one clip per file below SOURCE. A clip's id is its path without suffix, separators turned into "-";
    its movie is the first sub-folder, or the file's name. A codebook of your own is kept beside the manifest
    (films.csv: films.codebook.toml). Spans of the videos are read by 'manifest import spans --videos'.

    \b
    Examples:
      obygaze manifest import folder films --out films.csv
    """
    labels = manifests.find_codebook(codebook)
    return write_imported(manifests.import_folder(source, folder_for(output, labels), labels), output)


@declared(__package__, "manifest import images")
def import_images_(source: Path, output: Output) -> Answer:
    """Import a folder of still images, each a clip of one frame.

    Makes one clip per .jpg, .png, .webp, .avif, .bmp or .tif below SOURCE. Its id is its path without suffix,
    separators turned into "-"; its movie is the first sub-folder, or SOURCE for images at the top.

    \b
    Examples:
      obygaze manifest import images stills --out stills.csv
      obygaze extract stills.csv stores/stills --backbone clip
    """
    return write_imported(manifests.import_images(source, folder_for(output)), output)
