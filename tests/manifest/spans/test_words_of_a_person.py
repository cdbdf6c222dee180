# ruff: noqa: E501 - a table and its options stand on one line
"""A person may explain any word, those of the codebook too: what they say counts, in every kind of file.

A scale that is turned round, or begins at another number, has the codebook's own words with other meanings.
If words were explained one after the other, 1=0 would change what 2=1 stands for, and all levels became one.
"""

import json
import shlex
from itertools import permutations

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, load_codebook
from obygaze_features.manifest.spans.label_words import LabelWords
from tests.manifest.spans.written import WITH_TIERS, Mark

NUMBERS = 'name = "numbers"\nversion = "1"\nlevels = ["0", "1", "2"]\n'


@pytest.fixture
def codebook_of_0_to_2(tmp_path):
    """A codebook whose levels are called 0, 1 and 2."""
    path = tmp_path / "numbers.toml"
    path.write_text(NUMBERS)
    return load_codebook(path)


def table_of_levels(*levels):
    """Write a table with a row for each level: spans of film f, a second each from 0 s on."""
    rows = [f"f,{second},{second + 1},{level}" for second, level in enumerate(levels)]
    return "\n".join(["movie,start_s,end_s,level", *rows, ""])


def levels_of(clips):
    return [clip.level for clip in clips]


# --- the codebook's own words
# ---------------------------------------------------------------------------
def test_a_scale_that_begins_at_another_number_is_read(import_files, codebook_of_0_to_2):
    """The levels of the codebook are 0, 1 and 2. The person's scale is 1, 2, 3, and so they explain it.

    Each number is read once: the table's 2 becomes 1, and this 1 does not become 0.
    """
    words = {"1": "0", "2": "1", "3": "2"}
    table = table_of_levels("1", "2", "3")

    clips, _ = import_files({"t.csv": table}, words=words, codebook=codebook_of_0_to_2)

    assert levels_of(clips) == ["0", "1", "2"]


def test_a_scale_that_is_turned_round_is_read(import_files, codebook_of_0_to_2):
    """The levels of the codebook are 0, 1 and 2. The person's 0 means 2, and their 2 means 0.

    A spreadsheet may write the person's 2 as 2.0, which is the same word.
    """
    words = {"0": "2", "2": "0"}
    table = table_of_levels("0", "1", "2", "2.0")

    clips, _ = import_files({"t.csv": table}, words=words, codebook=codebook_of_0_to_2)

    assert levels_of(clips) == ["2", "1", "0", "0"]


@pytest.mark.parametrize("order", list(permutations([("EN", "S"), ("S", "NS"), ("NS", "EN")])))
def test_words_mean_the_same_in_whatever_order_they_are_explained(import_files, order):
    """The person says that EN means S, S means NS, and NS means EN; HN stays as it is.

    Words are not explained one after the other: then EN would become S, this NS, and this EN again.
    """
    words = dict(order)

    clips, _ = import_files({"t.csv": table_of_levels("EN", "S", "NS", "HN")}, words=words)

    assert levels_of(clips) == ["S", "NS", "EN", "HN"]


def test_a_word_that_a_person_explains_changes_no_other_spelling_of_its_label(import_files):
    """The person says that the word NS means the level S in their table, as in a scale turned round.

    That says nothing of "Not sure", the title of the codebook's NS: where the table has it, it is NS.
    """
    clips, _ = import_files({"t.csv": table_of_levels("NS", "Not sure", "S")}, words={"NS": "S"})

    assert levels_of(clips) == ["S", "NS", "S"]


def test_a_level_may_be_explained_as_a_concept(import_files):
    """The person says that NS, a level of the codebook, means the concept Look in this table."""
    clips, _ = import_files({"t.csv": table_of_levels("NS", "S")}, words={"NS": "Look"})

    assert [(clip.level, clip.concepts) for clip in clips] == [(None, ("Look",)), ("S", ())]


def test_translations_are_those_of_the_codebook_though_its_words_are_explained():
    """The German word "sicher" is known as a translation of "sure", which is the title of the level S.

    The person explains "sure" as EN, and "not sure" as no label. "sicher" stands for S all the same.
    """
    words = LabelWords(builtin_codebook("obygaze12"), {"sure": "EN", "not sure": ""}).with_guesses()

    assert words.level_of("sure") == "EN"
    assert words.level_of("sicher") == "S"
    assert words.level_of("not sure") == ""


def test_a_word_that_stands_for_two_labels_is_refused():
    """1 and 1.0 are one word, as spreadsheets write one for the other. The person explains them as EN and S."""
    with pytest.raises(ManifestError, match=r"word '1\.0' is 'S', and '1', which is the same word, 'EN'"):
        LabelWords(builtin_codebook("obygaze12"), {"1": "EN", "1.0": "S"})


# --- no label
# ---------------------------------------------------------------------------
def test_a_level_of_the_codebook_may_be_read_as_no_label_in_a_table(import_files):
    """The person explains NS by an empty text, which says that it is no label."""
    clips, _ = import_files({"t.csv": table_of_levels("S", "NS", "EN")}, words={"NS": ""})

    assert levels_of(clips) == ["S", None, "EN"]


def test_a_level_of_the_codebook_may_be_read_as_no_label_in_columns_of_annotators(import_files):
    """The table has a column of levels for each annotator, AB and CD. The person says that NS is no label.

    So AB has a level in the first row only, and CD in the second only.
    """
    table = "movie,start_s,end_s,AB,CD\nf,1,2,S,NS\nf,3,4,NS,EN\n"

    clips, _ = import_files({"t.csv": table}, words={"NS": ""}, wide=("AB", "CD"))

    labelled = [clip for clip in clips if clip.level]
    assert [(clip.start_s, clip.annotator, clip.level) for clip in labelled] == [
        (1.0, "AB", "S"),
        (3.0, "CD", "EN"),
    ]


@pytest.mark.parametrize("word", ["S", "s"])
def test_a_level_of_one_letter_is_no_label_in_either_case(import_files, word):
    """The person says that S is no label, and the table has S, or s."""
    clips, _ = import_files({"t.csv": table_of_levels(word, "EN")}, words={"S": ""})

    assert levels_of(clips) == [None, "EN"]


def test_a_concept_of_the_codebook_may_be_read_as_no_label(import_files):
    """The person says that Look is no label. The first clip has Body beside it, and the second Look alone."""
    table = "movie,start_s,end_s,level,concepts\nf,1,2,S,Look;Body\nf,3,4,S,Look\n"

    clips, _ = import_files({"t.csv": table}, words={"Look": ""})

    assert [clip.concepts for clip in clips] == [("Body",), ()]


def test_the_usual_sign_for_yes_may_be_read_as_no(import_files):
    """Below the concept Body stand x and ✓, which both mean yes. The person says that x is no label."""
    table = "movie,start_s,end_s,level,Body\nf,1,2,S,x\nf,3,4,S,✓\n"

    clips, _ = import_files({"t.csv": table}, words={"x": ""}, columns={"concepts": ["Body"]})

    assert [clip.concepts for clip in clips] == [(), ("Body",)]


# --- files of tools
# ---------------------------------------------------------------------------
MARKS_OF_THREE_SPANS = (
    Mark("level", 1, 3, "S"),
    Mark("level", 4, 6, "EN"),
    Mark("level", 7, 9, "NS"),
    Mark("concepts", 1, 3, "Look"),
    Mark("concepts", 4, 6, "Body"),
)


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_tiers_that_are_called_level_and_concepts_are_read_by_a_persons_words(import_files, kind):
    """A file as a tool writes it has S and Look from 1 to 3 s, EN and Body from 4 to 6 s, and NS from 7 to 9 s.

    The person exchanges S and EN, says that Look means Body, and that NS and Body are no labels.
    """
    words = {"S": "EN", "EN": "S", "NS": "", "Look": "Body", "Body": ""}
    content = WITH_TIERS[kind](MARKS_OF_THREE_SPANS)

    clips, notices = import_files({"tt1.x": content}, words=words, movie="tt1", annotator="AB")

    labelled = [clip for clip in clips if clip.level or clip.concepts]
    assert {(clip.start_s, clip.level, clip.concepts) for clip in labelled} == {
        (1.0, "EN", ("Body",)),
        (4.0, "S", ()),
    }
    assert "'NS' is no label, as --word says" in notices
    assert "'Body' is no label, as --word says" in notices


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_whose_other_texts_are_labels_is_read_as_labels(import_files, kind):
    """The name of the tier, "gaze", does not say what it holds: that is told by its texts, S, EN and xx.

    With a text that is no label it would be one of texts. But the person says that xx is no label, so that
    the others tell.
    """
    marks = [
        Mark("gaze", start=1, end=3, text="S"),
        Mark("gaze", start=4, end=6, text="EN"),
        Mark("gaze", start=7, end=9, text="xx"),
    ]
    content = WITH_TIERS[kind](marks)

    clips, notices = import_files({"tt1.x": content}, words={"xx": ""}, movie="tt1", annotator="AB")

    assert {(clip.start_s, clip.level) for clip in clips if clip.level} == {(1.0, "S"), (4.0, "EN")}
    assert "'xx' is no label, as --word says" in notices


def test_answers_of_machines_are_in_the_codebooks_own_words(import_files):
    """A person explains the words of their table. Machines were asked in the codebook's words, and keep them.

    The person's words turn S and EN round, and take Look as no label (an empty meaning). The machine m
    answered S and Look, which stay. The person's table has S, which becomes EN.
    """
    answer = {
        "clip_id": "f-1", "movie": "f", "start_s": 1, "end_s": 3, "model": "m",
        "answers": {"level": "S", "concept:Look": "yes"},
    }  # fmt: skip
    words = {"S": "EN", "EN": "S", "Look": ""}

    clips, _ = import_files({"a.jsonl": json.dumps(answer), "t.csv": table_of_levels("S")}, words=words)

    assert {(clip.annotator, clip.level, clip.concepts) for clip in clips} == {
        ("m", "S", ("Look",)),
        ("", "EN", ()),
    }


# --- what is said
# ---------------------------------------------------------------------------
def test_a_notice_names_explained_words_that_are_not_in_the_files(import_files):
    """A mistyped option changes nothing, which would not be seen otherwise.

    The table has S and "unclear". The person explained also "vilent" and "oddly so", which it does not have.
    """
    words = {"unclear": "NS", "vilent": "S", "oddly so": ""}

    clips, notices = import_files({"t.csv": table_of_levels("S", "unclear")}, words=words)

    assert levels_of(clips) == ["S", "NS"]
    assert "no label in the files is written so: --word vilent=S, --word 'oddly so='" in notices


@pytest.mark.parametrize(
    ("table", "options"),
    [
        ("movie,start_s,end_s,level,concepts\nf,1,2,S,Body; leer\n", {"words": {"leer": "Look"}}),
        ("movie,start_s,end_s,level,Agree?\nf,1,2,S,x\n", {"words": {"Agree?": ""}, "columns": {"concepts": ["Agree?"]}}),
        ("movie,start_s,end_s,level,Leer\nf,1,2,S,x\n", {"words": {"Leer": "Look"}, "columns": {"concepts": ["Leer"]}}),
        ("movie,start_s,end_s,level\nf,1,2,S\nf,3,4,#N/A\n", {"words": {"#N/A": ""}}),
        ("movie,start_s,end_s,Leer (AB)\nf,1,2,x\n", {"words": {"Leer": "Look"}, "wide": ("AB",)}),
    ],
    ids=["in a list", "a heading of marks, as no label", "a heading of marks", "an error of a spreadsheet", "in a heading with a name"],
)  # fmt: skip
def test_words_in_lists_headings_and_errors_are_read(import_files, table, options):
    """The person explains a word that the table has, but not as a whole cell of the column of levels.

    It is one of several in a cell, stands in a heading (of a column of marks, or of the annotator AB's own),
    or is an error of a spreadsheet. An empty meaning says that it is no label. The word is found, so that no
    notice says that the files do not have it.
    """
    _, notices = import_files({"t.csv": table}, **options)

    assert "no label in the files is written so" not in notices


def test_all_numbers_of_a_scale_that_seems_to_begin_at_another_number_are_asked_about(
    refusal_of, codebook_of_0_to_2
):
    """The codebook's levels are 0 to 2, and a table has 1 to 3: perhaps all are counted from 1.

    The codebook lacks the 3 alone. But if only the 3 were asked about, 1 and 2 would be read as the levels 1
    and 2, one too high. So the import is refused, and proposes what each of the three numbers may mean.
    """
    refusal = refusal_of({"t.csv": table_of_levels("1", "2", "3")}, codebook=codebook_of_0_to_2)

    _, _, proposal = str(refusal).partition(": give ")
    options, _, _ = proposal.partition(";")
    assert shlex.split(options) == ["--word", "1=0", "--word", "2=1", "--word", "3=2"]
    assert "if 1 is 0 and 3 is 2" in str(refusal)


def test_a_number_beside_explained_ones_is_asked_about_alone(import_files, codebook_of_0_to_2):
    """Levels are 0 to 2, and the table has 1 to 3. The person explained 1 and 2, and forgot 3."""
    table = table_of_levels("1", "2", "3")

    with pytest.raises(ManifestError, match="say what it stands for: --word 3=LABEL"):
        import_files({"t.csv": table}, codebook=codebook_of_0_to_2, words={"1": "0", "2": "1"})
