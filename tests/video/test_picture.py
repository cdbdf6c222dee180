"""Pictures are turned as the file asks."""

from itertools import product

import numpy as np
import pytest

from obygaze_features.video.picture import CollectedFrames, RgbPicture, Shown, turn_of_matrix


def moved_by_matrix(picture: np.ndarray, a: int, b: int, c: int, d: int) -> np.ndarray:
    """Move every pixel by x' = a x + c y, y' = b x + d y (ISO/IEC 14496-12), then back into view."""
    height, width = picture.shape
    y, x = np.mgrid[0:height, 0:width]
    new_x = a * x + c * y
    new_y = b * x + d * y
    new_x = new_x - new_x.min()
    new_y = new_y - new_y.min()
    moved = np.empty((new_y.max() + 1, new_x.max() + 1), picture.dtype)
    moved[new_y, new_x] = picture
    return moved


def test_quarter_turns_and_mirroring_do_what_the_matrix_says():
    """A file asks players to turn its pictures by a matrix of four numbers; all of -1, 0 and 1 are tried.

    Other turns than those by quarters are oblique, and not done.
    """
    picture_of_twelve_pixels = np.arange(12).reshape(3, 4)

    for matrix in product((-1, 0, 1), repeat=4):
        quarter_turns, is_mirrored, is_oblique = turn_of_matrix(*matrix)

        if is_oblique:
            continue
        turned = np.rot90(picture_of_twelve_pixels, -quarter_turns)  # clockwise
        if is_mirrored:
            turned = turned[:, ::-1]
        moved_pixel_by_pixel = moved_by_matrix(picture_of_twelve_pixels, *matrix)
        assert np.array_equal(turned, moved_pixel_by_pixel)


def test_matrices_of_minus_1_0_and_1_give_every_quarter_turn_with_and_without_mirroring():
    """A turn is a number of quarters, 0 to 3, and whether the picture is mirrored: eight in all."""
    turns = set()
    for matrix in product((-1, 0, 1), repeat=4):
        quarter_turns, is_mirrored, is_oblique = turn_of_matrix(*matrix)
        if not is_oblique:
            turns.add((quarter_turns, is_mirrored))

    assert turns == {
        *((0, False), (1, False), (2, False), (3, False)),
        *((0, True), (1, True), (2, True), (3, True)),
    }


def test_a_matrix_that_turns_by_half_a_quarter_is_oblique():
    """By 45 degrees, pixels do not come to lie on pixels, so such a turn is not done."""
    quarter_turns, is_mirrored, is_oblique = turn_of_matrix(1, b=1, c=-1, d=1)

    assert is_oblique
    assert quarter_turns == 0
    assert not is_mirrored


@pytest.mark.parametrize(
    ("text_height", "text_width", "percentage"),
    [(10, 40, "97"), (8, 8, ">99")],
    ids=["1 - 400 / 14400 = 97.2 %", "1 - 64 / 14400 = 99.6 %, which is not all"],
)
def test_black_around_the_text_of_credits_is_remarked_and_not_called_bars(
    text_height, text_width, percentage
):
    """A page of credits of 160 x 90 = 14,400 pixels is black but for a white field, which stands for text.

    A remark on the pictures of a window says how much of them is black at the edges. It must not speak of
    bars, which are black edges of a picture of another shape: pixels alone do not tell which these are.
    """
    page_of_credits = np.zeros((90, 160, 3), np.uint8)
    page_of_credits[40 : 40 + text_height, 60 : 60 + text_width] = 255
    as_stored = Shown(rotation=0, mirrored=False, matrix="bt709", full_range=False)
    collected = CollectedFrames()
    collected.note(0, RgbPicture(page_of_credits, as_stored, corrupt=False, remarks=()))

    _, (remark,) = collected.describe()

    assert remark.startswith(f"the edges of all pictures are black, {percentage}% of them")
    assert "bars" not in remark
