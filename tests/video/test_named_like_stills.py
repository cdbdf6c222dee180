"""Files that are named like still images, and are none, are refused for what is wrong with them."""

import pytest

from obygaze_features.video import uniform
from tests.video.conftest import draw_number, reason_of_refusal
from tests.video.encoding import encode


@pytest.mark.parametrize("name", ["missing.png", "frame_%03d.png", "*.jpg"])
def test_a_picture_that_is_not_there_is_missing_whatever_is_asked_of_it(tmp_path, name):
    """Names of whole sequences of pictures, as FFmpeg takes them, are names of one file here."""
    assert "no such file" in reason_of_refusal(tmp_path / name, uniform(8))


def test_a_film_named_like_a_picture_is_refused_as_a_film(tmp_path):
    """An MP4 of 12 pictures is renamed to a.jpg, and frames of it are asked for.

    Even if that is one frame, the reason of the refusal says that the file is a film.
    """
    film = encode(tmp_path / "a.mp4", map(draw_number, range(12)))
    named_like_picture = film.rename(tmp_path / "a.jpg")

    assert "film" in reason_of_refusal(named_like_picture, uniform(8))
    assert "film" in reason_of_refusal(named_like_picture, uniform(1))
