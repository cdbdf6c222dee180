"""The same texts on tiers of a tool's file and in the columns of a table: they say the same."""

import pytest

from obygaze_features.errors import ManifestError
from tests.manifest.spans.written import WITH_TIERS, Mark

KINDS = ["eaf", "textgrid", "elan-text", "boris"]


def labels_in_table(import_files, level, concepts):
    """Return the level and concepts that a table's row gives its span."""
    header = "movie;start_s;end_s;level;concepts"
    (clip,), _ = import_files({"t.csv": f'{header}\ntt1;1;5;"{level}";"{concepts}"\n'})
    return clip.level, clip.concepts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("level", "concepts"),
    [
        ("S", "Look"),
        ("sure", "Look + Body"),
        ("S (Sure)", "Look/Body"),
        ("S, Clothing", "Look"),
        ("S", "none"),
    ],
)
def test_tiers_say_what_a_table_says(import_files, kind, level, concepts):
    """A span has a level and concepts, in words as people write them."""
    marks = [Mark("level", start=1, end=5, text=level), Mark("concepts", start=1, end=5, text=concepts)]
    (clip,), _ = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    table_level, table_concepts = labels_in_table(import_files, level, concepts)
    assert clip.level == table_level == "S"
    assert set(clip.concepts) == set(table_concepts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", ["-", "?", "n/a"])
def test_a_text_that_says_that_there_is_no_level_is_left_out_and_counted(import_files, kind, nothing):
    """An annotator marked a span and gave it no level, as in a cell of a table."""
    marks = [Mark("level", start=1, end=5, text=nothing), Mark("level", start=6, end=9, text="S")]
    clips, messages = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    assert [clip.level for clip in clips] == ["S"]
    assert "there is no level" in messages


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_word_on_a_tier_is_refused_with_what_to_type(import_files, kind):
    """A tier of levels has 99, which people write for a missing value."""
    marks = [Mark("level", start=1, end=5, text="99"), Mark("level", start=6, end=9, text="S")]
    content = WITH_TIERS[kind](marks)
    with pytest.raises(ManifestError, match="--word 99=LABEL"):
        import_files({"tt1.x": content})

    clips, _ = import_files({"tt1.x": content}, words={"99": ""})
    assert [clip.level for clip in clips] == ["S"]
