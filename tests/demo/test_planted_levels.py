"""How often the demo's model calls clips as they were planted."""

import re

from obygaze.demo_corpus import UNLABELLED, compare_with_planted


def test_a_clip_of_level_ns_not_sure_is_neither_right_nor_wrong(tmp_path):
    """Of two clips that are sure, a is called as planted, and b is not."""
    planted = [("a", "S"), ("b", "EN"), ("c", "NS")]
    (tmp_path / "planted.csv").write_text(
        "clip_id,level,concepts\n" + "".join(f"{name},{level},\n" for name, level in planted)
    )
    called = [("a", 1), ("b", 1), ("c", 0)]
    (tmp_path / "predictions.csv").write_text(
        "clip_id,movie,called,p\n" + "".join(f"{name},{UNLABELLED},{yes},0.5\n" for name, yes in called)
    )
    (counted,) = [line for line in compare_with_planted(tmp_path) if "called as planted" in line]
    n_right, n_sure, n_not_sure = map(int, re.findall(r"\d+", counted))
    assert (n_right, n_sure, n_not_sure) == (1, 2, 1)
