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


def import_marks(import_files, table, **options):
    """Import a table of marks, whose columns Body and Look the person called concepts."""
    return import_files({"t.csv": table}, columns=COLUMNS, **options)


def concepts_of(clips):
    """Return the concepts of each clip, without their order."""
    return [set(clip.concepts) for clip in clips]


@pytest.mark.parametrize(
    ("yes", "other"),
    [("✓", "x"), ("☑", "☒"), ("yes", "x"), ("ja", "x"), ("1", "x"), ("x", "*"), ("1", "yes")],
)
def test_two_signs_that_may_both_mean_yes_are_asked_about_if_no_sign_means_no(import_files, yes, other):
    """A column of marks has a sign for yes, and for no another one or an empty cell.

    Below Body and Look, every cell here has one of two signs that people use for yes, such as 1 and x: one of
    them must mean no, but which? The second sign is met below Look in line 2, and is asked about once.
    """
    table = table_of_marks((yes, other), (other, yes))

    with pytest.raises(ManifestError) as refusal:
        import_marks(import_files, table)

    question = f"line 2, column Look: {other!r} stands beside {yes!r}, and no sign for no: --word "
    assert question in str(refusal.value)
    assert str(refusal.value).count("stands beside") == 1


def test_ticks_and_crosses_of_different_columns_are_asked_about(import_files):
    """Body has ticks only, and Look crosses only: a cross may be yes, or the opposite of a tick."""
    table = table_of_marks(("✓", "x"), ("✓", "x"))

    with pytest.raises(ManifestError, match="line 2, column Look: 'x' stands beside '✓'"):
        import_marks(import_files, table)


@pytest.mark.parametrize(
    ("words", "concepts"),
    [
        ({"x": ""}, [{"Body"}, {"Look"}]),
        ({"x": "no"}, [{"Body"}, {"Look"}]),
        ({"✓": "no"}, [{"Look"}, {"Body"}]),
        ({"x": "yes"}, [{"Body", "Look"}, {"Body", "Look"}]),
    ],
    ids=["x is nothing", "x is no", "✓ is no", "x is yes too"],
)
def test_the_person_says_what_a_sign_means(import_files, words, concepts):
    """The first row has ✓ below Body and x below Look, the second the reverse.

    `words` is what the person says of one sign. The other one then means what it usually does: yes.
    """
    table = table_of_marks(("✓", "x"), ("x", "✓"))

    clips, notices = import_marks(import_files, table, words=words)

    assert concepts_of(clips) == concepts
    assert "no label in the files" not in notices


@pytest.mark.parametrize(
    "rows",
    [
        [("x", "xx"), ("X", "x")],
        [("✓", "✔"), ("☑", "✓")],
        [("yes", "y"), ("ja", "true")],
        [("1", "1.0"), ("1.0", "1")],
    ],
    ids=["crosses", "ticks", "words", "numbers"],
)
def test_signs_of_one_kind_say_the_same(import_files, rows):
    """Two rows have marks below Body and Look, which look different and are all crosses, or all ticks.

    None of them is the opposite of another, so each means yes.
    """
    clips, _ = import_marks(import_files, table_of_marks(*rows))

    assert concepts_of(clips) == [{"Body", "Look"}, {"Body", "Look"}]


def test_a_sign_for_no_settles_that_the_other_signs_mean_yes(import_files):
    """Each row has the marks of Body and of Look. As "-" says no, neither 1 nor x can mean it."""
    table = table_of_marks(("1", "-"), ("x", "1"), ("-", "x"))

    clips, _ = import_marks(import_files, table)

    assert concepts_of(clips) == [{"Body"}, {"Body", "Look"}, {"Look"}]


def test_columns_with_signs_of_their_own_are_read(import_files):
    """Below Body there is 1 or nothing, below Look x or nothing. An empty cell says no."""
    table = table_of_marks(("1", "x"), ("", "x"), ("1", ""))

    clips, _ = import_marks(import_files, table)

    assert concepts_of(clips) == [{"Body", "Look"}, {"Look"}, {"Body"}]
