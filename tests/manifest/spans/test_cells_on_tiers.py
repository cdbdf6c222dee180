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
def test_a_text_of_concepts_on_a_tier_of_levels_gives_its_span_these_concepts_and_no_level(
    import_files, kind, concepts
):
    """An annotator wrote a concept or two where levels stand: on a tier "level" of a tool's file.

    Such a span becomes a clip with the concepts and without a level, and a message counts it. The same text
    in a table's column of levels is read as the same concepts.
    """
    marks = [Mark("level", start=1, end=5, text=concepts), Mark("level", start=6, end=9, text="S")]
    file_of_tool = WITH_TIERS[kind](marks)
    table = f'movie;start_s;end_s;level\ntt1;1;5;"{concepts}"\ntt1;6;9;S\n'

    clips, messages = import_files({"tt1.x": file_of_tool})
    clips_of_table, _ = import_files({"t.csv": table})

    (clip_of_concepts,) = [clip for clip in clips if clip.start_s == 1]
    assert clip_of_concepts.level is None
    assert "Look" in clip_of_concepts.concepts
    assert sorted(clip_of_concepts.concepts) == sorted(clips_of_table[0].concepts)
    assert "1 span of concepts without a level" in messages


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", ["-", "?", "n/a"])
def test_a_text_that_says_that_there_is_no_level_is_left_out_and_counted(import_files, kind, nothing):
    """A tier of levels has two spans: one of S, and one of "-", "?" or "n/a", by which there is no level.

    Such a word is read as in a cell of a table. The span is left out, with the reason.
    """
    marks = [Mark("level", start=1, end=5, text=nothing), Mark("level", start=6, end=9, text="S")]
    clips, messages = import_files({"tt1.x": WITH_TIERS[kind](marks)})
    assert [clip.level for clip in clips] == ["S"]
    assert "there is no level" in messages


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nothing", ["-", "n/a", "none", "keine"])
def test_a_span_on_a_tier_of_labels_whose_text_means_none_is_left_out_with_a_message(
    import_files, kind, nothing
):
    """The person says that the tier "gaze" of a tool's file holds labels. One span there has the text "none".

    That, or "-", "n/a" or "keine", means that there is no label: it is no text to be kept in a clip of its
    own.
    """
    marks = [Mark("gaze", start=1, end=5, text=nothing), Mark("gaze", start=6, end=9, text="S; Look")]
    file_of_tool = WITH_TIERS[kind](marks)

    clips, messages = import_files({"tt1.x": file_of_tool}, tiers={"gaze": "labels"})

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
