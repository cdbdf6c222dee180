"""Pictures are turned as the file asks."""

from itertools import product

import numpy as np

from obygaze_features.video.picture import CollectedFrames, RgbPicture, Shown, turn_of_matrix


def shown(picture: np.ndarray, a: int, b: int, c: int, d: int) -> np.ndarray:
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


def test_turns_and_mirrors_do_what_the_matrix_says():
    picture = np.arange(12).reshape(3, 4)
    result = set()
    for matrix in product((-1, 0, 1), repeat=4):
        turns, mirrored, oblique = turn_of_matrix(*matrix)
        if not oblique:
            result.add((turns, mirrored))
            upright = np.rot90(picture, -turns)
            assert np.array_equal(upright[:, ::-1] if mirrored else upright, shown(picture, *matrix))
    assert result == {*product(range(4), (False, True))}
    assert turn_of_matrix(1, 1, -1, 1) == (0, False, True)


def test_what_surrounds_the_text_of_credits_is_not_called_bars():
    credits_page = np.zeros((90, 160, 3), np.uint8)
    credits_page[40:50, 60:100] = 255
    collected = CollectedFrames()
    collected.note(0, RgbPicture(credits_page, Shown(0, False, "bt709", False), corrupt=False, remarks=()))
    _, remarks = collected.describe()
    (remark,) = remarks
    assert remark.startswith("the edges of all pictures are black, 97% of them")
    assert "bars" not in remark
