"""`obygaze film thumbnails`: small pictures of a scored film's segments, from the reader's own copy."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from obygaze_features.options import PATH

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDEST = 160
"""Width of a picture in pixels, and of no smaller frame."""

QUALITY = 80
"""JPEG quality."""


@click.command()
@click.argument("films", type=PATH, nargs=-1, required=True, metavar="FILM...")
@click.option("--scored", type=PATH, required=True, help="What 'obygaze film score' wrote.")
@click.option("--out", type=PATH, required=True, help="Folder to write: MOVIE/RANK.jpg.")
def thumbnails(films: tuple[Path, ...], scored: Path, out: Path) -> None:
    """Save a small picture of each segment's highest point, for 'obygaze film report --thumbnails'.

    FILMs are your own copies. Pictures are at most 160 pixels wide. Nothing else of a film is saved.

    \b
    Examples:
      obygaze film thumbnails film.mkv --scored scored --out pictures
      obygaze film report scored --thumbnails pictures --out film.html
    """
    from obygaze_features.errors import OutputError
    from obygaze_features.io import whole_folder

    if out.exists():
        raise OutputError(f"{out} exists already: choose another --out")
    peaks = {film: _peaks(scored, film.stem) for film in films}
    click.echo(
        f"warning: {out} will contain frames of films: pass them on only where you have the right to",
        err=True,
    )
    with whole_folder(out) as partial:
        for film, times in peaks.items():
            (partial / film.stem).mkdir()
            for rank, picture in _pictures(film, times).items():
                (partial / film.stem / f"{rank}.jpg").write_bytes(picture)
    click.echo(f"{out}: pictures of {sum(map(len, peaks.values()))} segments")


def _peaks(scored: Path, movie: str) -> dict[int, float]:
    """Read the time of each segment's highest point by rank; of the first model, which the page shows."""
    from obygaze_features.errors import OutputError
    from obygaze_features.manifest import read_table

    places = [path for path in (scored / movie / "segments.csv", scored / "segments.csv") if path.is_file()]
    if not places:
        raise OutputError(
            f"{scored}: no segments.csv of film {movie!r}: give a folder of 'obygaze film score'"
        )
    rows = read_table(places[0], needed=("movie", "model", "rank", "peak_s")).rows
    own = [row.cells for row in rows if row.cells["movie"] == movie]
    if rows and not own:
        raise OutputError(f"{places[0]} is of film {rows[0].cells['movie']!r}, not of {movie!r}")
    return {int(row["rank"]): float(row["peak_s"]) for row in own if row["model"] == own[0]["model"]}


def _pictures(film: Path, times: dict[int, float]) -> dict[int, bytes]:
    """Take the first frame from each time on, in one pass over the film, as JPEG."""
    from obygaze_features.errors import VideoError
    from obygaze_features.video import read_windows, uniform

    ranks = list(times)
    spans = [(times[rank], times[rank] + 1.0) for rank in ranks]
    found = {}
    for number, result in read_windows(film, spans, [(uniform(1), _jpeg)]):
        if isinstance(result, VideoError):
            raise result
        found[ranks[number]] = result[0].images[0]
    return found


def _jpeg(frame: "NDArray[np.uint8]") -> bytes:
    """Shrink a frame [H, W, 3] and encode it."""
    import io

    from PIL import Image

    picture = Image.fromarray(frame)
    width = min(WIDEST, picture.width)
    small = picture.resize((width, max(1, picture.height * width // picture.width)), Image.Resampling.BOX)
    file = io.BytesIO()
    small.save(file, "JPEG", quality=QUALITY)
    return file.getvalue()
