"""A video that rows name for two movies is refused as such, whatever path each of them gives."""

import pytest

from obygaze_features.errors import ManifestError


@pytest.fixture
def videos(tmp_path):
    """A folder `films` with one video, b.mp4."""
    folder = tmp_path / "films"
    folder.mkdir()
    (folder / "b.mp4").write_bytes(b"a video")
    return folder


@pytest.mark.parametrize("second_annotator", ["AB", "CD"])
def test_two_paths_of_one_video_that_are_named_for_two_movies_are_refused(
    import_files, videos, second_annotator
):
    """A table names films/b.mp4 for Alien and b.mp4 for Brazil. Below the folder films, both are one video.

    Under two names it could be trained on and tested.
    """
    table = (
        "movie,video,start_s,end_s,level,annotator\n"
        "Alien,films/b.mp4,0,1,S,AB\n"
        f"Brazil,b.mp4,0,1,S,{second_annotator}\n"
    )

    with pytest.raises(ManifestError) as refused:
        import_files({"t.csv": table}, videos=videos)

    message = str(refused.value)
    assert "line 3" in message
    assert "'films/b.mp4' is of movie 'Brazil', and on line 2 of 'Alien'" in message
    assert "one video is named for two movies" in message


def test_whole_films_of_one_video_are_refused_as_a_video_of_two_movies(import_files, videos):
    """A table without times names one video for Alien and for Brazil, as films/b.mp4 and as b.mp4.

    Times would not tell the rows apart, so the message does not ask for them.
    """
    table = "movie,video,level,annotator\nAlien,films/b.mp4,S,AB\nBrazil,b.mp4,S,AB\n"

    with pytest.raises(ManifestError, match="one video is named for two movies") as refused:
        import_files({"t.csv": table}, videos=videos)

    assert "without times" not in str(refused.value)


def test_two_rows_on_one_clip_of_one_movie_are_refused_for_the_clip_and_not_for_the_video(
    import_files, videos
):
    """AB's two rows are of the same second of Alien, whose video is b.mp4. One says S, the other EN.

    A video that two movies name would be refused. Here one movie names it twice, so the refusal is about the
    clip: one row must say all of it.
    """
    table = "movie,video,start_s,end_s,level,annotator\nAlien,b.mp4,0,1,S,AB\nAlien,b.mp4,0,1,EN,AB\n"

    with pytest.raises(ManifestError, match="is already on line 2: one row says all of a clip"):
        import_files({"t.csv": table}, videos=videos)
