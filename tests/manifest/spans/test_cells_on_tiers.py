"""The same texts on tiers of a tool's file and in the columns of a table: they say the same."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.codebook import codebook_of_text
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
    """A span has the level S and concepts such as Look, in words as people write them.

    They stand on two tiers of a tool's file, or in two columns of a table, and mean the same in both.
    """
    marks = [Mark("level", start=1, end=5, text=level), Mark("concepts", start=1, end=5, text=concepts)]

    (on_tiers,), _ = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    level_in_table, concepts_in_table = labels_in_table(import_files, level, concepts)

    assert on_tiers.level == "S"
    assert level_in_table == "S"
    assert set(on_tiers.concepts) == set(concepts_in_table)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("concepts", ["Look", "look; Body"])
def test_concepts_alone_among_levels_are_concepts_of_their_span(import_files, kind, concepts):
    """An annotator put concepts without a level where the levels stand, which a table's column reads too."""
    marks = [Mark("level", start=1, end=5, text=concepts), Mark("level", start=6, end=9, text="S")]
    clips, messages = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    table = f'movie;start_s;end_s;level\ntt1;1;5;"{concepts}"\ntt1;6;9;S\n'
    clips_of_table, _ = import_files({"t.csv": table})

    (on_tier,) = [clip for clip in clips if clip.start_s == 1]
    assert on_tier.level is None
    assert "Look" in on_tier.concepts
    assert set(on_tier.concepts) == set(clips_of_table[0].concepts)
    assert "1 span of concepts without a level" in messages


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", ["-", "?", "n/a"])
def test_a_text_that_says_that_there_is_no_level_is_left_out_and_counted(import_files, kind, nothing):
    """An annotator marked a span and gave it no level, as in a cell of a table."""
    marks = [Mark("level", start=1, end=5, text=nothing), Mark("level", start=6, end=9, text="S")]
    clips, messages = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    assert [clip.level for clip in clips] == ["S"]
    assert "there is no level" in messages


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", ["-", "n/a", "none", "keine"])
def test_a_text_on_a_tier_of_labels_that_says_that_there_is_none_is_left_out_and_counted(
    import_files, kind, nothing
):
    """It says what it says on a tier of levels, or of concepts, and is no text of the span."""
    marks = [Mark("gaze", start=1, end=5, text=nothing), Mark("gaze", start=6, end=9, text="S; Look")]
    clips, messages = import_files({"tt1.x": WITH_TIERS[kind](marks)}, tiers={"gaze": "labels"})
    assert [(clip.level, clip.concepts) for clip in clips] == [("S", ("Look",))]
    assert "there is no label" in messages


def test_none_is_a_level_on_a_tier_of_labels_where_the_codebook_has_it(import_files):
    """The lowest level of this codebook is called 0, which elsewhere says that there is no concept."""
    book = codebook_of_text('name = "mine"\nversion = "1"\n[[levels]]\nname = "0"\n[[levels]]\nname = "1"\n')
    marks = [Mark("gaze", start=1, end=5, text="0"), Mark("gaze", start=6, end=9, text="1")]
    files = {"tt1.x": WITH_TIERS["eaf"](marks)}
    clips, _ = import_files(files, tiers={"gaze": "labels"}, codebook=book)
    assert [clip.level for clip in clips] == ["0", "1"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_word_on_a_tier_is_refused_with_what_to_type(import_files, kind):
    """A tier of levels has 99, which people write for a missing value, and S.

    It is refused with the option that explains 99. The person says that it is no label, and S alone is read.
    """
    marks = [Mark("level", start=1, end=5, text="99"), Mark("level", start=6, end=9, text="S")]
    content = WITH_TIERS[kind](marks)
    with pytest.raises(ManifestError, match="--word 99=LABEL"):
        import_files({"tt1.x": content})

    clips, _ = import_files({"tt1.x": content}, words={"99": ""})
    assert [clip.level for clip in clips] == ["S"]
