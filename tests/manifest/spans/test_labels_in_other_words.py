"""Labels in other languages, codes and headings: the first refusal proposes all of them, and none is lost."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import UnreadColumnsError, builtin_codebook, codebook_of_text, import_spans
from obygaze_features.manifest.spans.label_words import LabelWords
from tests.manifest.spans.test_people_tables import options_of

LEVELS = {
    "German": ["leicht negativ", "schwer negativ", "unsicher", "sicher"],
    "French": ["négatif facile", "négatif difficile", "pas sûr", "sûr"],
    "Italian": ["negativo facile", "negativo difficile", "non sicuro", "sicuro"],
    "Spanish": ["negativo fácil", "negativo difícil", "no seguro", "seguro"],
}
CONCEPTS = {
    "German": ["Einstellungsgröße", "Blick", "Körper", "Gefühlsausdruck"],
    "French": ["type de plan", "regard", "corps", "expression d'une émotion"],
    "Italian": ["tipo di inquadratura", "sguardo", "corpo", "espressione di un'emozione"],
    "Spanish": ["tipo de plano", "mirada", "cuerpo", "expresión de emociones"],
}
FOUR_CONCEPTS = ["Type of shot", "Look", "Body", "Expression of emotion"]
"""The concepts in the order of `CONCEPTS`."""
LABELS_OF_FOUR_CLIPS = [
    ("EN", []),
    ("HN", ["Look"]),
    ("NS", ["Body", "Look"]),
    ("S", ["Expression of emotion", "Type of shot"]),
]
"""The level and concepts of four clips, which the tests write in other words."""


def write_table(path, rows):
    """Write rows of cells with tabs between them."""
    lines = ["\t".join(str(cell) for cell in row) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")


def import_with_proposed_words(path, rows, meanings=None):
    """Import rows as a person does who is refused, and pastes the options that the refusal proposes.

    The proposal has LABEL for each word that nobody knows: the person replaces it by the word's meaning, or
    by nothing where `meanings`, {word: label}, lacks the word.
    """
    write_table(path, rows)
    with pytest.raises(UnreadColumnsError) as refusal:
        import_spans([path], path.parent)
    options = options_of(refusal.value)
    words = {}
    for word, label in options.get("words", {}).items():
        if label == "LABEL":
            words[word] = (meanings or {}).get(word, "")
        else:
            words[word] = label
    return import_spans([path], path.parent, **options | {"words": words})


def labels_of(imported):
    return [(clip.level, sorted(clip.concepts)) for clip in imported.manifest]


@pytest.mark.parametrize(
    ("language", "sign"),
    [("German", ", "), ("German", "|"), ("French", "; "), ("Italian", " + "), ("Spanish", " / ")],
)
def test_lists_of_concepts_are_read_in_every_language(tmp_path, language, sign):
    """Each of eight clips has a level and a list of concepts in words of a language, with a sign between.

    The import is refused and proposes what each word means, such as Blick for Look. Read with that, no label
    is lost.
    """
    word_of_level = dict(zip(["EN", "HN", "NS", "S"], LEVELS[language], strict=True))
    word_of_concept = dict(zip(FOUR_CONCEPTS, CONCEPTS[language], strict=True))
    labels_of_eight_clips = [*LABELS_OF_FOUR_CLIPS, *LABELS_OF_FOUR_CLIPS]
    rows = [["Film", "Start", "End", "Niveau", "Concetti"]]
    for number, (level, concepts) in enumerate(labels_of_eight_clips):
        start_s = 100 * number
        list_of_concepts = sign.join(word_of_concept[concept] for concept in concepts)
        rows.append(["Vertigo", start_s, start_s + 10, word_of_level[level], list_of_concepts])

    imported = import_with_proposed_words(tmp_path / "t.tsv", rows)

    assert labels_of(imported) == labels_of_eight_clips


@pytest.mark.parametrize(
    ("language", "yes", "no"),
    [
        ("German", "ja", "nein"),
        ("German", "x", ""),
        ("French", "1", "0"),
        ("Italian", "TRUE", "FALSE"),
        ("Spanish", "✓", ""),
    ],
)
def test_marks_are_read_below_headings_of_every_language(tmp_path, language, yes, no):
    """A table of eight clips has a column for each of four concepts, headed by its name in a language.

    A mark in it says whether a clip has the concept, such as "ja" or "nein". The import is refused and
    proposes which columns are concepts and what their headings mean; read with that, no label is lost.
    """
    labels_of_eight_clips = [*LABELS_OF_FOUR_CLIPS, *LABELS_OF_FOUR_CLIPS]
    rows = [["Film", "Start", "End", "Level", *CONCEPTS[language], "Notes"]]
    for number, (level, concepts) in enumerate(labels_of_eight_clips):
        start_s = 100 * number
        marks = [yes if concept in concepts else no for concept in FOUR_CONCEPTS]
        rows.append(["Vertigo", start_s, start_s + 10, level, *marks, ""])

    imported = import_with_proposed_words(tmp_path / "t.tsv", rows)

    assert labels_of(imported) == labels_of_eight_clips


@pytest.mark.parametrize("heading", ["concepts", "Concepten", "What do you see? (tick all that apply)"])
def test_each_word_that_no_codebook_knows_is_proposed_to_be_given_a_meaning(tmp_path, heading):
    """16 clips have the words Uno, Due, Tre and Quattro for concepts. The person says what they mean."""
    word_of_concept = {
        "Type of shot": "Uno",
        "Look": "Due",
        "Body": "Tre",
        "Expression of emotion": "Quattro",
    }
    concept_of_word = {word: concept for concept, word in word_of_concept.items()}
    labels = LABELS_OF_FOUR_CLIPS * 4
    rows = [["movie", "start_s", "end_s", "level", heading]]
    for number, (level, concepts) in enumerate(labels):
        cell = ", ".join(word_of_concept[concept] for concept in concepts)
        rows.append(["Vertigo", 100 * number, 100 * number + 10, level, cell])

    imported = import_with_proposed_words(tmp_path / "t.tsv", rows, meanings=concept_of_word)

    assert labels_of(imported) == labels


def test_lists_as_programs_write_them_are_read(tmp_path):
    """Python writes a list as ['Body', 'Look'], and an empty one as []. Eight clips are labelled so."""
    rows = [
        ["film", "start", "end", "level", "tags"],
        ["Vertigo", 0, 10, "EN", "[]"],
        ["Vertigo", 100, 110, "HN", "['Look']"],
        ["Vertigo", 200, 210, "NS", "['Body', 'Look']"],
        ["Vertigo", 300, 310, "S", "['Expression of emotion', 'Type of shot']"],
        ["Vertigo", 400, 410, "EN", "[]"],
        ["Vertigo", 500, 510, "HN", "['Look']"],
        ["Vertigo", 600, 610, "NS", "['Body', 'Look']"],
        ["Vertigo", 700, 710, "S", "['Expression of emotion', 'Type of shot']"],
    ]

    imported = import_with_proposed_words(tmp_path / "t.tsv", rows)

    labels_of_four_clips = [
        ("EN", []),
        ("HN", ["Look"]),
        ("NS", ["Body", "Look"]),
        ("S", ["Expression of emotion", "Type of shot"]),
    ]
    assert labels_of(imported) == labels_of_four_clips * 2


NO_SPANS = {
    "copied checkboxes": ([["", "", "", "", "FALSE", "FALSE"]] * 3, "nothing but marks of no"),
    "errors in place of times and film": ([["#N/A", "#N/A", "#N/A", "HN", "", ""]], "cannot be read"),
}
"""Rows below a table, and why they are left out."""


@pytest.mark.parametrize(("rows_left_out", "reason"), NO_SPANS.values(), ids=NO_SPANS)
def test_rows_that_are_no_spans_are_left_out_and_counted(tmp_path, rows_left_out, reason):
    """A table has four rows with the level S and the concept Look, and below them rows that are no spans.

    For example, spreadsheets fill rows below a table with FALSE where checkboxes were copied down. The
    account lists each of these rows with the reason.
    """
    rows = [
        ["film", "start", "end", "level", "Look", "Body"],
        ["Vertigo", 0, 10, "S", "TRUE", "FALSE"],
        ["Vertigo", 100, 110, "S", "TRUE", "FALSE"],
        ["Vertigo", 200, 210, "S", "TRUE", "FALSE"],
        ["Vertigo", 300, 310, "S", "TRUE", "FALSE"],
    ]

    imported = import_with_proposed_words(tmp_path / "t.tsv", rows + rows_left_out)

    assert labels_of(imported) == [("S", ["Look"])] * 4
    (account,) = imported.accounts
    assert len(account.left_out) == len(rows_left_out)
    for _, reason_of_row in account.left_out:
        assert reason in reason_of_row


@pytest.mark.parametrize(
    ("words", "text", "parts"),
    [
        ({"TP": "Type of shot", "E": "Look"}, "TP+E", ("TP", "E")),
        (
            {"Nude, or nearly": "Body"},
            "Look, Nude, or nearly, Body (nudity, parts)",
            ("Look", "Nude, or nearly", "Body (nudity, parts)"),
        ),
    ],
    ids=["the code E, which as a word between two others is Italian for and", "a concept with a comma"],
)
def test_a_cell_of_several_concepts_is_divided_into_known_words(words, text, parts):
    """A cell lists concepts, in words of the codebook and in others that the person explained by `words`.

    It is divided where one word ends and the next begins, and not within a word: a comma or an "e" in a word
    parts nothing. The parts are the words as the cell has them.
    """
    assert LabelWords(builtin_codebook("obygaze12"), words).parts_of(text) == parts


TABLE_OF_MARKS = [
    ["movie", "start_s", "end_s", "annotator", "level", "look", "body"],
    ["Gilda", 5, 25, "AB", "S", "x", "?"],
    ["Gilda", 65, 85, "AB", "S", "", "x"],
    ["Gilda", 125, 145, "AB", "NS", "x", "(x)"],
    ["Gilda", 225, 245, "AB", "NS", "", ""],
]
"""A table with an x below the concepts that a clip has. Two cells below "body" are no such marks."""


def test_a_cell_that_is_no_mark_is_proposed_as_a_word_and_the_marks_of_its_column_are_kept(tmp_path):
    """Four clips have an x below "look" and "body" where they have the concept. Two cells are ? and (x).

    The person says that "(x)", of the third clip, means Body, and gives "?", of the first, no meaning.
    """
    meanings = {"(x)": "Body"}

    imported = import_with_proposed_words(tmp_path / "marks.tsv", TABLE_OF_MARKS, meanings)

    assert labels_of(imported) == [("S", ["Look"]), ("S", ["Body"]), ("NS", ["Body", "Look"]), ("NS", [])]


def test_a_mark_that_says_neither_yes_nor_no_is_refused_with_its_line(tmp_path):
    """A table has an x below the concepts of a clip, but "?" in line 2 and "(x)" in line 4, below "body".

    The person explains "(x)", by an option, and not "?". So the cell of line 2 is refused.
    """
    path = tmp_path / "marks.tsv"
    write_table(path, TABLE_OF_MARKS)
    with pytest.raises(ManifestError, match=r"line 2, column body: '\?'"):
        import_spans([path], tmp_path, columns={"concepts": ["look", "body"]}, words={"(x)": "Body"})


@pytest.mark.parametrize(
    ("column", "cells"),
    [
        ("look", ["2", "1", "0", "2"]),
        ("look", ["strong", "weak", "", "strong"]),
        ("EF", ["EN?", "S", "HN", "skip"]),
    ],
)
def test_a_column_of_labels_that_is_left_unread_is_named_in_a_notice(import_files, column, cells):
    """A table has levels by AB, which are read, and one more column of labels, which is not.

    It has grades of the concept Look, in numbers or words, or the levels of another annotator, EF, some of
    which are doubtful. Nobody can know for sure what it means, so a notice names it.
    """
    lines = [f"movie,start_s,end_s,annotator,level,{column}"]
    for number, cell in enumerate(cells):
        lines.append(f"Gilda,{60 * number},{60 * number + 9},AB,S,{cell}")

    _, notices = import_files({"graded.csv": "\n".join(lines)})

    assert f"'{column}'" in notices


def test_a_column_that_is_kept_and_not_read_is_named_in_a_notice(tmp_path):
    """The person explains the words of "Rating". Those of "What you see" are kept."""
    rows = [
        ["Film", "Start", "Stop", "Rater", "Rating", "What you see"],
        ["Rope", "0:10", "0:20", "Mia", "very", "face; hands"],
        ["Rope", "1:10", "1:25", "Mia", "not", "-"],
        ["Rope", "2:10", "2:22", "Jo", "very", "hands"],
    ]

    imported = import_with_proposed_words(tmp_path / "own.tsv", rows, {"very": "S", "not": "EN"})

    assert [clip.level for clip in imported.manifest] == ["S", "EN", "S"]
    assert "'What you see'" in " ".join(imported.notices)


OWN_CODEBOOK = """
name = "blows"
version = "1"
[[levels]]
name = "calm"
title.fr = "paisible"
[[levels]]
name = "violent"
title.fr = "brutal"
[[concepts]]
name = "Gun"
visual = true
title.fr = "Arme"
[[concepts]]
name = "Blade"
visual = true
title.fr = "Lame"
title.it = "Arma"
[[concepts]]
name = "Bow"
visual = true
title.it = "Arma"
"""


def test_translated_titles_of_an_own_codebook_are_proposed(tmp_path):
    """A lab's codebook of violence has French titles, such as "brutal" for its level violent.

    A table of eight clips is labelled by these titles, paisible with Lame and brutal with Arme in turn. The
    import is refused and proposes what they mean, and with these options it reads the table.
    """
    codebook = codebook_of_text(OWN_CODEBOOK)
    rows = ["movie,start_s,end_s,level,concepts"]
    for start_s in range(0, 800, 200):
        rows.append(f"Vertigo,{start_s},{start_s + 10},paisible,Lame")
        rows.append(f"Vertigo,{start_s + 100},{start_s + 110},brutal,Arme")
    table = tmp_path / "t.csv"
    table.write_text("\n".join(rows), encoding="utf-8")

    with pytest.raises(UnreadColumnsError) as refusal:
        import_spans([table], tmp_path, codebook=codebook)
    options = options_of(refusal.value)
    assert options["words"] == {"paisible": "calm", "brutal": "violent", "Arme": "Gun", "Lame": "Blade"}

    imported = import_spans([table], tmp_path, codebook=codebook, **options)
    assert labels_of(imported) == [("calm", ["Blade"]), ("violent", ["Gun"])] * 4


def test_a_translated_title_stands_for_its_level_or_concept():
    """In French, Lame is the title of the concept Blade, and brutal that of the level violent."""
    words = LabelWords(codebook_of_text(OWN_CODEBOOK)).with_guesses()
    assert words.concept_of("Lame") == "Blade"
    assert words.level_of("brutal") == "violent"


def test_a_translated_title_of_two_concepts_stands_for_neither():
    """In Italian, Arma is the title of Blade, and of Bow."""
    words = LabelWords(codebook_of_text(OWN_CODEBOOK)).with_guesses()
    assert words.concept_of("Arma") == ""


@pytest.mark.parametrize(
    "title", [["S = hard negative"], ["S", "hard negative"]], ids=["in one cell", "in two cells"]
)
def test_a_code_of_the_codebook_that_the_table_explains_otherwise_is_asked_about(tmp_path, title):
    """By its legend a lab's S is the hard negative, HN. By the codebook obygaze12 it is sure: the opposite.

    The person says which holds, and is asked no more.
    """
    path = tmp_path / "a.tsv"
    rows = [title, ["movie", "start_s", "end_s", "level"], ["m", 0, 5, "S"], ["m", 5, 9, "EN"]]

    imported = import_with_proposed_words(path, rows)

    assert labels_of(imported) == [("HN", []), ("EN", [])]
    by_codebook = import_spans([path], tmp_path, words={"S": "S"})
    assert labels_of(by_codebook) == [("S", []), ("EN", [])]


@pytest.mark.parametrize(
    "row_above_headings",
    [
        pytest.param(["S = sure; HN = hard negative", "NS: not sure"], id="a legend as in the codebook"),
        pytest.param(["S", "EN"], id="two levels, which may be two people's labels"),
    ],
)
def test_a_row_above_the_headings_that_gives_no_level_another_meaning_is_no_reason_to_ask(
    tmp_path, row_above_headings
):
    """A legend above the headings of a table may give words other meanings, and then the person is asked.

    This one says of S, HN and NS what the codebook says. A row of S and EN says nothing of what they mean. So
    the table is read by the codebook.
    """
    path = tmp_path / "a.tsv"
    headings = ["movie", "start_s", "end_s", "level"]
    write_table(path, [row_above_headings, headings, ["m", 0, 5, "S"], ["m", 5, 9, "HN"]])

    assert labels_of(import_spans([path], tmp_path)) == [("S", []), ("HN", [])]


@pytest.mark.parametrize(
    ("cell", "concepts"),
    [
        pytest.param("b", ("B",), id="a small letter"),
        pytest.param("\uff22", ("B",), id="a full-width letter"),
        pytest.param("b; Look", ("B", "Look"), id="a small letter in a list"),
    ],
)
def test_a_concept_of_one_letter_is_read_in_any_spelling_of_the_letter(tmp_path, cell, concepts):
    """The codebook has the concepts B and Look, and a table has "b" in its column of concepts.

    A single letter could also be an abbreviation, which is asked about; but here the codebook knows it.
    """
    concepts_of_codebook = "".join(f'[[concepts]]\nname = "{name}"\n' for name in ("B", "Look"))
    codebook = codebook_of_text(
        f'name = "mine"\nversion = "1"\n[[levels]]\nname = "S"\n{concepts_of_codebook}'
    )
    path = tmp_path / "a.tsv"
    write_table(path, [["movie", "start_s", "end_s", "level", "concepts"], ["m", 0, 5, "S", cell]])

    (clip,) = import_spans([path], tmp_path, codebook=codebook).manifest

    assert clip.concepts == concepts


def test_a_level_whose_synonym_is_one_letter_is_read_in_any_case_and_not_lost(tmp_path):
    """The codebook's level "sure" may also be called Y. The first clip has y."""
    levels = '[[levels]]\nname = "EN"\n[[levels]]\nname = "sure"\nsynonyms = ["Y"]\n'
    codebook = codebook_of_text(f'name = "mine"\nversion = "1"\n{levels}')
    path = tmp_path / "a.tsv"
    write_table(path, [["movie", "start_s", "end_s", "level"], ["m", 0, 5, "y"], ["m", 5, 9, "EN"]])

    imported = import_spans([path], tmp_path, codebook=codebook)

    assert labels_of(imported) == [("sure", []), ("EN", [])]


@pytest.mark.parametrize(
    "title",
    [
        ["Easy negative", "EN", "Hard negative", "HN", "Not sure", "NS"],
        ["EN", "HN", "NS", "Sure"],
        ["Levels:", "EN", "HN", "NS", "S (sure)"],
        ["HN", "a gaze that does not objectify (look)"],
        ["S", "objectifying (body)"],
        ["m", "0", "5", "S", "look"],
    ],
    ids=[
        "meanings first",
        "a list",
        "a list with a remark",
        "an example",
        "another example",
        "another table",
    ],
)
def test_a_title_that_gives_no_label_another_meaning_is_passed_over(tmp_path, title):
    """A row above the header may be a legend: "S", "Easy negative" would say that S is easy negative here.

    Then the import would be refused, with a question. These rows above the header only list levels, say of
    one what the codebook says, or have a remark beside it. The table is read as the codebook has its levels.
    """
    path = tmp_path / "a.tsv"
    rows = [title, ["movie", "start_s", "end_s", "level"], ["m", 0, 5, "S"], ["m", 5, 9, "HN"]]
    rows += [["m", 9, 12, "NS"], ["m", 12, 15, "EN"]]
    write_table(path, rows)

    assert [level for level, _ in labels_of(import_spans([path], tmp_path))] == ["S", "HN", "NS", "EN"]
