"""Tables with columns of several annotators, beside columns that belong to none of them."""

import pytest

from obygaze_features.errors import ManifestError


def table(headings, *rows):
    """Write a table of spans of film f, with further columns; each row has the cells of these."""
    lines = [f"movie,start_s,end_s,{headings}"]
    for number, cells in enumerate(rows, start=1):
        lines.append(f"f,{number},{number}.5,{cells}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "heading",
    ["final", "level_final", "Consensus", "adjudicated", "gold standard", "Konsens-Stufe", "old_level"],
)
def test_what_several_people_decided_is_nobodys_column(refusal_of, heading):
    """AB and CD have a column each, and a third one holds what was decided of both.

    As a third annotator it would agree with the others by construction.
    """
    refusal = refusal_of({"t.csv": table(f"AB,CD,{heading}", "S,EN,S", "EN,EN,EN")})
    assert refusal.options == ("--wide AB,CD",)
    assert repr(heading) in str(refusal)


@pytest.mark.parametrize("heading", ["model", "gpt4", "predicted level", "Vorhersage"])
def test_a_models_column_is_nobodys_and_no_option_reads_it(refusal_of, heading):
    """AB and CD have a column each, and a third one holds what a model says, which is no label of people."""
    refusal = refusal_of({"t.csv": table(f"AB,CD,{heading}", "S,EN,S", "EN,EN,EN")})
    assert refusal.options == ("--wide AB,CD",)
    assert "level=" not in str(refusal)


@pytest.mark.parametrize(
    "headings",
    ["AB,AB_confidence,CD,CD_confidence", "Stufe AB,Sicherheit AB,Stufe CD,Sicherheit CD"],
)
def test_how_sure_an_annotator_is_is_no_label(import_files, refusal_of, headings):
    """AB and CD have a column of levels each, and one of how sure they are, in words that are levels too.

    The refusal proposes two annotators, and only their levels are read.
    """
    content = table(headings, "EN,sure,S,not sure", "S,not sure,HN,sure")
    assert refusal_of({"t.csv": content}).options == ("--wide AB,CD",)

    clips, _ = import_files({"t.csv": content}, wide=["AB", "CD"])
    assert [(clip.annotator, clip.level) for clip in clips] == [
        ("AB", "EN"),
        ("CD", "S"),
        ("AB", "S"),
        ("CD", "HN"),
    ]


def test_a_second_column_of_levels_is_no_second_person(import_files):
    """The columns level and rating both hold levels, and neither heading names anybody."""
    clips, notices = import_files({"t.csv": table("level,rating", "S,EN", "EN,EN")})

    assert [(clip.level, clip.annotator) for clip in clips] == [("S", ""), ("EN", "")]
    assert "--column level=rating" in notices


@pytest.mark.parametrize("heading", ["final", "consensus"])
def test_the_only_column_of_levels_is_proposed_although_its_heading_says_that_people_agreed(
    refusal_of, heading
):
    """A table has no levels but those in a column "final" or "consensus", which people agreed on.

    Beside columns of annotators it would be left out. Here the refusal proposes to read it as the level.
    """
    assert refusal_of({"t.csv": table(heading, "S", "EN")}).options == (f"--column level={heading}",)


def test_the_person_is_asked_of_a_column_called_prediction_where_it_has_the_only_levels(refusal_of):
    """Below "prediction" usually stands what a model says, which is no label of people.

    As the table has no other levels, the person is asked whether people gave these.
    """
    assert "what a model says" in str(refusal_of({"t.csv": table("prediction", "S", "EN")}))


def test_remarks_of_an_annotator_are_no_levels(import_files, refusal_of):
    """Annotator 1 has a column of levels and one of remarks, and Annotator 2 a column of levels.

    Both headings of Annotator 1 hold the name, but only the column of levels is read as theirs: two rows of
    two people are four clips.
    """
    content = table("Annotator 1 level,Annotator 1 remark,Annotator 2 level", "S,clear,EN", "EN,,EN")
    assert refusal_of({"t.csv": content}).options == ("--wide 'Annotator 1,Annotator 2'",)

    clips, _ = import_files({"t.csv": content}, wide=["Annotator 1", "Annotator 2"])
    assert [clip.level for clip in clips] == ["S", "EN", "EN", "EN"]


def test_times_of_one_annotator_are_not_read_as_those_of_another(import_files, refusal_of):
    """Each annotator chose the spans, so that each has columns of times: CD marked other times than AB."""
    content = (
        "movie,AB start,AB end,AB level,CD start,CD end,CD level\nf,1,2,S,1.5,2.5,EN\nf,3,4,EN,3,4.5,EN\n"
    )
    refusal = refusal_of({"t.csv": content})
    assert "times of their own" in str(refusal)
    assert "CD" in str(refusal)
    assert "--wide" not in str(refusal)

    columns = {"start_s": ["CD start"], "end_s": ["CD end"], "level": ["CD level"]}
    clips, _ = import_files({"t.csv": content}, columns=columns, annotator="CD")
    assert [(clip.start_s, clip.level, clip.annotator) for clip in clips] == [
        (1.5, "EN", "CD"),
        (3.0, "EN", "CD"),
    ]


def test_a_column_headed_by_an_annotator_and_a_number_is_that_annotators_levels(import_files):
    """The heading "Ann 1" does not say that its column holds levels.

    But the person says that Ann has columns of her own (`wide`), and its cells are levels: it is hers.
    """
    clips, _ = import_files({"t.csv": table("Ann 1", "S", "EN")}, wide=["Ann"])

    assert [clip.level for clip in clips] == ["S", "EN"]


def test_a_column_of_levels_beside_that_of_an_annotator_is_refused(import_files):
    """Ann has a column of levels, "Ann 1", and the table another one, "level", of nobody.

    A row has one level of Ann, so the person must leave one of the two out.
    """
    with pytest.raises(ManifestError, match="leave one of them out"):
        import_files({"t.csv": table("level,Ann 1", "S,S", "EN,EN")}, wide=["Ann"])
