"""How often the demo's model calls clips as they were planted."""

import re

from obygaze.demo_corpus import UNLABELLED, compare_with_planted


def test_a_clip_of_level_ns_not_sure_is_neither_right_nor_wrong(tmp_path):
    """The model calls the clips a and b positive. That is right of a, planted as S, and wrong of b, of EN.

    The clip c, of the level NS (not sure), is counted apart. So the demo prints one line that says: 1 of 2
    clips is called as planted, and 1 is not sure.
    """
    planted = "clip_id,level,concepts\na,S,\nb,EN,\nc,NS,\n"
    (tmp_path / "planted.csv").write_text(planted)
    film = UNLABELLED  # the demo's film that has no labels
    predictions = f"clip_id,movie,called,p\na,{film},1,0.5\nb,{film},1,0.5\nc,{film},0,0.5\n"
    (tmp_path / "predictions.csv").write_text(predictions)

    lines = compare_with_planted(tmp_path)

    (line,) = [line for line in lines if "called as planted" in line]
    n_right, n_of_both, n_not_sure = re.findall(r"\d+", line)
    assert (n_right, n_of_both, n_not_sure) == ("1", "2", "1")
