"""`obygaze search`: rank a store's clips by their similarity to a text, or to a clip."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import obygaze_features as of
from obygaze_features import backbones
from obygaze_features.errors import SearchError
from obygaze_features.options import Answer, Output, declared
from obygaze_features.screen import table
from obygaze_features.text import composed

if TYPE_CHECKING:
    from obygaze_features.text_search import Ranking


@declared(__package__, "search")
def search(
    store: str,
    query: str | None,
    like: str | None,
    sheet: Path | None,
    manifest: Path | None,
    output: Output,
    **chosen: Any,
) -> Answer:
    """Find the clips of STORE (a path or URL) that are nearest to the text QUERY, or like a clip or a file.

    QUERY is encoded with the text half of the network that made the store, which must have the same weights:
    clip, openclip, xclip and xclip-lsmdc have one. The score is the cosine, the times are those of the clip
    in its video. Scores of two texts, or of two backbones, are not in one scale.

    With --like no network runs, but for a file, whose features are extracted by the backbone of STORE. The
    score is the cosine of vectors standardised over the store.

    \b
    Examples:
      obygaze search stores/films "a woman seen from behind"
      obygaze search https://lab.example/films-1.0.0 "a kiss" --top 20 --json
      obygaze search stores/films "a kiss" --backbone xclip-lsmdc \\
          --weights runs/lsmdc
      obygaze extract queries.csv stores/queries --backbone xclip-text
      obygaze search stores/films "a kiss" --text-store stores/queries
      obygaze search stores/films --like tt0097576-012 --sheet hits \\
          --manifest films.csv
      obygaze search stores/films --like trailer.mp4 --backbone descriptors
    """
    from obygaze_features.text_search import COLUMNS

    if chosen["text_store"] is not None and (chosen["weights"] or like):
        raise click.UsageError("--text-store has the text's vector: leave out --weights and --like")
    if (query is None) == (like is None):
        raise click.UsageError("give a text, or --like CLIP_ID|FILE")
    if (sheet is None) != (manifest is None):
        raise click.UsageError("--sheet and --manifest go together")
    if query is not None:
        ranking = of.search(store, query, **chosen)
    else:
        del chosen["text_store"]
        ranking = _alike(store, str(like), **chosen)
    if sheet is not None and manifest is not None:
        _draw(ranking, sheet, manifest)
    cells = [(*row[:3], *map(_time, row[3:5]), f"{row[5]:z.4f}") for row in ranking.rows()]
    without = f"; {ranking.n_without} more have no features" if ranking.n_without else ""
    told = [f"{ranking.n_clips} clips ranked by {ranking.backbone}{without}"]
    told += [f"note: {note}" for note in ranking.notes]
    shown = table(cells, COLUMNS, right=(0, 3, 4, 5))
    return Answer(asdict(ranking), shown, [] if output.json else told)


def _alike(
    store: str, like: str, *, backbone: str | None, weights: str | None, top: int, device: str
) -> "Ranking":
    """Rank by a clip of the store; or by a file, extracted into a folder that goes again."""
    opened = of.open_store(store)
    path = Path(like)
    if any(composed(like) in opened[name].clip_ids for name in opened.names) or not path.is_file():
        return of.search_like(opened, like, backbone=backbone, top=top)
    from obygaze_features.backbones.registry import made_by
    from obygaze_features.commands.extract_output import note
    from obygaze_features.text_search import choose_group

    group = choose_group(opened, backbone)
    name, source = made_by(group.provenance, weights)
    network = {"weights": source, "compute": backbones.Compute(device)} if source else {}
    made = of.load_backbone(name, group.n_frames, **network)
    with tempfile.TemporaryDirectory() as folder:
        clips = of.Manifest((of.Clip("file", "file", str(path.absolute())),), Path(folder))
        with_file = of.extract(
            clips, Path(folder, "file"), [made], workers=1, licence="CC0-1.0", progress=False, note=note
        )
        (read,) = with_file.clips
        if read.status == "failed":
            raise SearchError(f"{path}: {read.reason}")
        if read.reason:
            note(f"{path}: {read.reason}")
        return of.search_like(opened, "file", other=with_file, backbone=group.name, top=top)


def _draw(ranking: "Ranking", sheet: Path, manifest: Path) -> None:
    """Draw the clips found on a contact sheet, best first."""
    from obygaze_features.extraction.sheets import write_sheets

    clips = of.read_manifest(manifest)
    known = {clips.by_id[hit.clip_id]: (hit.score, 0.0) for hit in ranking if hit.clip_id in clips.by_id}
    for drawn in write_sheets(clips, {"found": known}, sheet, n=len(known), force=False):
        counts = f"{drawn['n_drawn']} of {len(ranking)} clips"
        click.echo(f"{counts} drawn in {sheet / str(drawn['file'])}", err=True)


def _time(seconds: float | None) -> str:
    """Write a time as h:mm:ss.s; a hyphen where it is not known."""
    if seconds is None:
        return "-"
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest // 10:02d}.{rest % 10}"
