"""Two signs for yes in a column of marks, and none for no, are asked about: one of them may mean no.

`x` says yes where other cells are empty, and no where others are ticks. Both were read as yes, so that every
row got every concept.
"""

import pytest

from obygaze_features.errors import ManifestError

COLUMNS = {"concepts": ["Body", "Look"]}


def table_of_marks(*rows):
    """Write a table with the marks of each row below the concepts Body and Look."""
    lines = [f"f,{second},{second + 1},S,{body},{look}" for second, (body, look) in enumerate(rows)]
    return "\n".join(["movie,start_s,end_s,level,Body,Look", *lines, ""])


def concepts_of(clips):
    return [clip.concepts for clip in clips]


@pytest.mark.parametrize(
    ("yes", "other"),
    [("✓", "x"), ("☑", "☒"), ("yes", "x"), ("ja", "x"), ("1", "x"), ("x", "*"), ("1", "yes")],
)
def test_a_second_sign_for_yes_is_asked_about(import_files, yes, other):
    with pytest.raises(ManifestError) as refusal:
        import_files({"t.csv": table_of_marks((yes, other), (other, yes))}, columns=COLUMNS)

    assert f"line 2, column Look: {other!r} stands beside {yes!r}, and no sign for no: --word " in str(
        refusal.value
    )
    assert str(refusal.value).count("stands beside") == 1


def test_ticks_and_crosses_of_different_columns_are_asked_about(import_files):
    with pytest.raises(ManifestError, match="line 2, column Look: 'x' stands beside '✓'"):
        import_files({"t.csv": table_of_marks(("✓", "x"), ("✓", "x"))}, columns=COLUMNS)


@pytest.mark.parametrize(
    ("words", "concepts"),
    [
        ({"x": ""}, [("Body",), ("Look",)]),
        ({"x": "no"}, [("Body",), ("Look",)]),
        ({"✓": "no"}, [("Look",), ("Body",)]),
        ({"x": "yes"}, [("Body", "Look"), ("Body", "Look")]),
    ],
    ids=str,
)
def test_the_person_says_what_a_sign_means(import_files, words, concepts):
    clips, said = import_files(
        {"t.csv": table_of_marks(("✓", "x"), ("x", "✓"))}, columns=COLUMNS, words=words
    )

    assert [tuple(sorted(names)) for names in concepts_of(clips)] == concepts
    assert "no label in the files" not in said


@pytest.mark.parametrize(
    "rows",
    [
        [("x", "xx"), ("X", "x")],
        [("✓", "✔"), ("☑", "✓")],
        [("yes", "y"), ("ja", "true")],
        [("1", "1.0"), ("1.0", "1")],
    ],
    ids=str,
)
def test_signs_of_one_kind_say_the_same(import_files, rows):
    clips, _ = import_files({"t.csv": table_of_marks(*rows)}, columns=COLUMNS)

    assert [set(names) for names in concepts_of(clips)] == [{"Body", "Look"}, {"Body", "Look"}]


def test_a_sign_for_no_settles_it(import_files):
    clips, _ = import_files({"t.csv": table_of_marks(("1", "-"), ("x", "1"), ("-", "x"))}, columns=COLUMNS)

    assert [set(names) for names in concepts_of(clips)] == [{"Body"}, {"Body", "Look"}, {"Look"}]


def test_columns_with_signs_of_their_own_are_read(import_files):
    """Below one concept somebody writes 1 and leaves the rest empty, below another x."""
    clips, _ = import_files({"t.csv": table_of_marks(("1", "x"), ("", "x"), ("1", ""))}, columns=COLUMNS)

    assert [set(names) for names in concepts_of(clips)] == [{"Body", "Look"}, {"Look"}, {"Body"}]
