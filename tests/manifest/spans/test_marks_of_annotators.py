"""Columns of marks that are headed by a label, and by an annotator or what a program writes beside it."""

import pytest


def labels_by_annotator(clips):
    """Return of each clip who annotated it, its level and its concepts."""
    return [(clip.annotator, clip.level, clip.concepts) for clip in clips]


@pytest.mark.parametrize(
    "headings",
    [
        "AB_level_S,AB_level_EN,CD_level_S,CD_level_EN",
        "S (AB),EN (AB),S (CD),EN (CD)",
        "AB: sure,AB: easy negative,CD: sure,CD: easy negative",
    ],
)
def test_each_annotator_has_a_column_of_marks_for_each_level(import_files, refusal_of, headings):
    """AB and CD have a column for each of two levels, S and EN, with a 1 where they gave it.

    These are two annotators, and not four: the refusal proposes to read them so, and each has a level in
    each of two rows.
    """
    ab_gives_s_and_cd_en = "f,1,2,1,0,0,1"
    both_give_en = "f,3,4,0,1,0,1"
    content = f"movie,start_s,end_s,{headings}\n{ab_gives_s_and_cd_en}\n{both_give_en}\n"
    assert refusal_of({"t.csv": content}).options == ("--wide AB,CD",)

    clips, _ = import_files({"t.csv": content}, wide=["AB", "CD"])
    assert labels_by_annotator(clips) == [
        ("AB", "S", ()),
        ("CD", "EN", ()),
        ("AB", "EN", ()),
        ("CD", "EN", ()),
    ]


def test_the_concepts_of_two_annotators_are_not_put_together(import_files, refusal_of):
    """AB and CD have a column of marks for each of two concepts. In the first row AB saw Look, CD Body."""
    content = "movie,start_s,end_s,Look (AB),Body (AB),Look (CD),Body (CD)\nf,1,2,1,0,0,1\nf,3,4,0,1,0,1\n"
    assert refusal_of({"t.csv": content}).options == ("--wide AB,CD",)

    clips, _ = import_files({"t.csv": content}, wide=["AB", "CD"])
    of_first_row = labels_by_annotator(clips)[:2]
    assert of_first_row == [("AB", None, ("Look",)), ("CD", None, ("Body",))]


def test_a_table_whose_columns_of_levels_are_headed_by_annotators_is_refused_with_their_names(refusal_of):
    """The columns "AB" and "CD" hold levels; "AB Look", "AB comment" and "CD concepts" hold other things.

    The option `--wide` names the annotators who have columns of their own.
    """
    headings = "movie,start_s,end_s,AB,AB Look,AB comment,CD,CD concepts"
    rows = ["f,1,2,S,1,clear,EN,", "f,3,4,EN,0,,EN,Body"]

    refusal = refusal_of({"t.csv": "\n".join([headings, *rows, ""])})

    assert refusal.options == ("--wide AB,CD",)


def test_a_column_headed_by_an_annotator_and_a_concept_or_concepts_holds_marks_of_that_annotator(
    import_files,
):
    """The columns "AB" and "CD" hold levels. Each row becomes a clip labelled by AB, and one labelled by CD.

    "AB Look" is 1 where AB marked Look, as in the first row. "CD concepts" lists concepts of CD, as Body in
    the second row.
    """
    headings = "movie,start_s,end_s,AB,AB Look,AB comment,CD,CD concepts"
    rows = ["f,1,2,S,1,clear,EN,", "f,3,4,EN,0,,EN,Body"]

    clips, _ = import_files({"t.csv": "\n".join([headings, *rows, ""])}, wide=["AB", "CD"])

    labels_of_first_row = [("AB", "S", ("Look",)), ("CD", "EN", ())]
    labels_of_second_row = [("AB", "EN", ()), ("CD", "EN", ("Body",))]
    assert labels_by_annotator(clips) == labels_of_first_row + labels_of_second_row


@pytest.mark.parametrize("headings", ["Anna look,Ben look", "woman look,man look"])
def test_a_person_is_asked_whether_unknown_words_beside_a_concept_in_headings_are_annotators(
    refusal_of, headings
):
    """Two columns are headed by a name and the concept Look: "Anna look" and "Ben look", for example.

    Anna and Ben may be annotators, but a woman and a man may be whom the film shows: only a person knows. The
    refusal names the option for annotators.
    """
    refusal = refusal_of({"t.csv": f"movie,start_s,end_s,level,{headings}\nf,1,2,S,1,0\nf,3,4,EN,0,1\n"})
    names = ",".join(heading.removesuffix(" look") for heading in headings.split(","))
    assert f"are annotators, give --wide {names}" in str(refusal)


def test_columns_that_count_votes_for_a_level_are_not_proposed_as_columns_of_annotators(import_files):
    """Below the headings S and EN stands how many people gave this level: 2 and 1, and 0 and 3.

    S and EN are levels, and no annotators for whom the option --wide would be proposed. Nor are the counts
    levels. So the clips have none, and a notice says it.
    """
    content = "movie,start_s,end_s,S,EN\nf,1,2,2,1\nf,3,4,0,3\n"
    clips, notices = import_files({"t.csv": content})
    assert {clip.level for clip in clips} == {None}
    assert "--wide" not in notices
    assert "no row has a level" in notices


def test_mechanical_turks_columns_of_answers(import_files, refusal_of):
    """Mechanical Turk writes a table with a column of true and false for each label, and who answered.

    The refusal proposes the column of annotators. With the columns of labels named too, each row has its
    worker's labels; the marks of who approved are none.
    """
    content = (
        "WorkerId,Input.video,Answer.level.S,Answer.level.EN,Answer.concept.Look,Approve\n"
        "W1,f1.mp4,true,false,true,x\n"
        "W2,f1.mp4,false,true,false,\n"
        "W1,f2.mp4,true,false,true,x\n"
    )
    refusal = refusal_of({"t.csv": content})
    assert "--column annotator=WorkerId" in refusal.options
    assert "--wide" not in str(refusal)

    columns = {
        "level": ["Answer.level.S", "Answer.level.EN"],
        "concepts": ["Answer.concept.Look"],
        "video": ["Input.video"],
        "annotator": ["WorkerId"],
    }
    clips, _ = import_files({"t.csv": content}, columns=columns)
    assert labels_by_annotator(clips) == [("W1", "S", ("Look",)), ("W2", "EN", ()), ("W1", "S", ("Look",))]
