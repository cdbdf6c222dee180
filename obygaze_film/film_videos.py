"""Find the videos that people have of scored films, and make the media of the desk from them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from obygaze_features.errors import ObygazeError
from obygaze_film.timeline import Timeline


def make_media_of_films(films: Mapping[Path, Timeline], tell: Callable[[object], object]) -> None:
    """Make the stills, the colours and the sound curve that the desk shows of films.

    A file that fails does not stop the others.

    Parameters
    ----------
    films : mapping of Path to Timeline
        File of a video -> film.
    tell : callable
        Called with the error of each file that fails.
    """
    from obygaze_film.workspace.media import make_media  # noqa: PLC0415 - slow, and many need no video

    for path, film in films.items():
        try:
            make_media(path, film)
        except (ObygazeError, OSError) as error:
            tell(error)


def videos_of_films(videos: Sequence[Path], films: Sequence[Timeline]) -> Mapping[str, Path]:
    """Find by their names which file of a video is a copy of which film; return movie -> file.

    Raises
    ------
    ObygazeError
        A file is no readable video (`check_file`), a name is no film's, or two files are of one film.
    """
    if not videos:
        return {}
    from obygaze_features.video import check_file  # noqa: PLC0415 - slow, and many need no video
    from obygaze_film.rows import match_files  # noqa: PLC0415 - slow too

    for path in videos:
        check_file(path)
    movies = [film.movie for film in films]
    return match_files(movies, videos)
