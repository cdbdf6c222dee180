"""Labels in other languages, codes and headings: the first refusal proposes all of them, and none is lost."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import UnreadColumnsError, builtin_codebook, codebook_of_text, import_spans
from obygaze_features.manifest.spans.label_words import LabelWords
from tests.manifest.spans.files import open_document
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
NAMES = ["Type of shot", "Look", "Body", "Expression of emotion"]
"""The concepts in the order of `CONCEPTS`."""
MEANT = [
    ("EN", []),
    ("HN", ["Look"]),
    ("NS", ["Body", "Look"]),
    ("S", ["Expression of emotion", "Type of shot"]),
]
"""The level and concepts of four clips, which the tests write in other words."""
UNKNOWN = ["Uno", "Due", "Tre", "Quattro"]
"""Words that no codebook knows, for the concepts of `NAMES`."""


def read_by_pasting(path, rows, meanings=None):
    """Import rows as a person does who is refused, and pastes the options that the refusal proposes.

    The proposal has LABEL for each word that nobody knows: the person replaces it by the word's meaning, or
    by nothing where `meanings` lacks the word.
    """
    path.write_text("\n".join("\t".join(map(str, row)) for row in rows), encoding="utf-8")
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
    words_of_levels = dict(zip(["EN", "HN", "NS", "S"], LEVELS[language], strict=True))
    words_of_concepts = dict(zip(NAMES, CONCEPTS[language], strict=True))
    rows = [["Film", "Start", "End", "Niveau", "Concetti"]]
    for at, (level, concepts) in enumerate(MEANT * 2):
        cell = sign.join(words_of_concepts[name] for name in concepts)
        rows.append(["Vertigo", 100 * at, 100 * at + 10, words_of_levels[level], cell])

    assert labels_of(read_by_pasting(tmp_path / "t.tsv", rows)) == MEANT * 2


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
    """Each concept has a column with a mark for yes."""
    rows = [["Film", "Start", "End", "Level", *CONCEPTS[language], "Notes"]]
    for at, (level, concepts) in enumerate(MEANT * 2):
        marks = [yes if name in concepts else no for name in NAMES]
        rows.append(["Vertigo", 100 * at, 100 * at + 10, level, *marks, ""])
    assert labels_of(read_by_pasting(tmp_path / "t.tsv", rows)) == MEANT * 2


@pytest.mark.parametrize("heading", ["concepts", "Concepten", "What do you see? (tick all that apply)"])
def test_each_word_that_no_codebook_knows_is_proposed_to_be_given_a_meaning(tmp_path, heading):
    word_of = dict(zip(NAMES, UNKNOWN, strict=True))
    meaning_of = dict(zip(UNKNOWN, NAMES, strict=True))
    rows = [["movie", "start_s", "end_s", "level", heading]]
    for at, (level, concepts) in enumerate(MEANT * 4):
        cell = ", ".join(word_of[name] for name in concepts)
        rows.append(["Vertigo", 100 * at, 100 * at + 10, level, cell])

    assert labels_of(read_by_pasting(tmp_path / "t.tsv", rows, meaning_of)) == MEANT * 4


def test_lists_as_programs_write_them_are_read(tmp_path):
    rows = [["film", "start", "end", "level", "tags"]]
    for at, (level, concepts) in enumerate(MEANT * 2):
        rows.append(["Vertigo", 100 * at, 100 * at + 10, level, repr(concepts)])
    assert labels_of(read_by_pasting(tmp_path / "t.tsv", rows)) == MEANT * 2


NO_SPANS = {
    "copied checkboxes": ([["", "", "", "", "FALSE", "FALSE"]] * 3, "nothing but marks of no"),
    "errors in place of times and film": ([["#N/A", "#N/A", "#N/A", "HN", "", ""]], "cannot be read"),
}
"""Rows below a table, and why they are left out."""


@pytest.mark.parametrize(("rows_left_out", "reason"), NO_SPANS.values(), ids=NO_SPANS)
def test_rows_that_are_no_spans_are_left_out_and_counted(tmp_path, rows_left_out, reason):
    """Spreadsheets fill rows below a table with FALSE where checkboxes were copied down."""
    rows = [["film", "start", "end", "level", "Look", "Body"]]
    rows += [["Vertigo", 100 * at, 100 * at + 10, "S", "TRUE", "FALSE"] for at in range(4)]
    imported = read_by_pasting(tmp_path / "t.tsv", rows + rows_left_out)
    (account,) = imported.accounts
    assert labels_of(imported) == [("S", ["Look"])] * 4
    assert len(account.left_out) == len(rows_left_out)
    assert all(reason in why for _, why in account.left_out)


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
    ids=['a code of one letter, which is "and" in Italian', "a concept with a comma"],
)
def test_a_cell_of_several_concepts_is_divided_between_words(words, text, parts):
    assert LabelWords(builtin_codebook("obygaze12"), words).parts_of(text) == parts


def test_a_spreadsheet_of_open_document_is_read(tmp_path):
    cells = [["movie", "start_s", "end_s", "level"], ["Vertigo", "1", "5", "S"], ["Vertigo", "9", "12", "EN"]]
    path = tmp_path / "codes.ods"
    open_document(path, cells)
    imported = import_spans([path], tmp_path)
    assert labels_of(imported) == [("S", []), ("EN", [])]


MARKED = [
    ["movie", "start_s", "end_s", "annotator", "level", "look", "body"],
    ["Gilda", 5, 25, "AB", "S", "x", "?"],
    ["Gilda", 65, 85, "AB", "S", "", "x"],
    ["Gilda", 125, 145, "AB", "NS", "x", "(x)"],
    ["Gilda", 225, 245, "AB", "NS", "", ""],
]


def test_a_cell_that_is_no_mark_is_proposed_as_a_word_and_the_marks_of_its_column_are_kept(tmp_path):
    """In `MARKED`, "(x)" below body is given the meaning Body, and "?" none."""
    imported = read_by_pasting(tmp_path / "marks.tsv", MARKED, {"(x)": "Body"})
    expected = [("S", ["Look"]), ("S", ["Body"]), ("NS", ["Body", "Look"]), ("NS", [])]
    assert labels_of(imported) == expected


def test_a_mark_that_says_neither_yes_nor_no_is_refused_with_its_line(tmp_path):
    path = tmp_path / "marks.tsv"
    path.write_text("\n".join("\t".join(map(str, row)) for row in MARKED), encoding="utf-8")
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
def test_a_column_of_labels_that_is_left_unread_is_named_in_a_notice(tmp_path, column, cells):
    path = tmp_path / "graded.csv"
    rows = [f"Gilda,{60 * at},{60 * at + 9},AB,S,{cell}" for at, cell in enumerate(cells)]
    path.write_text("\n".join([f"movie,start_s,end_s,annotator,level,{column}", *rows]), encoding="utf-8")
    notices = import_spans([path], tmp_path).notices
    assert f"{column!r}" in " ".join(notices)


def test_a_column_that_is_kept_and_not_read_is_named(tmp_path):
    rows = [
        ["Film", "Start", "Stop", "Rater", "Rating", "What you see"],
        ["Rope", "0:10", "0:20", "Mia", "very", "face; hands"],
        ["Rope", "1:10", "1:25", "Mia", "not", "-"],
        ["Rope", "2:10", "2:22", "Jo", "very", "hands"],
    ]
    imported = read_by_pasting(tmp_path / "own.tsv", rows, {"very": "S", "not": "EN"})

    assert [clip.level for clip in imported.manifest] == ["S", "EN", "S"]
    assert "'What you see'" in " ".join(imported.notices)


OWN = """
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
    """The table uses the French titles. They are proposed as words, and read after the person agrees."""
    book = codebook_of_text(OWN)
    rows = ["movie,start_s,end_s,level,concepts"]
    for at in range(8):
        level, concept = ("brutal", "Arme") if at % 2 else ("paisible", "Lame")
        rows.append(f"Vertigo,{100 * at},{100 * at + 10},{level},{concept}")
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    with pytest.raises(UnreadColumnsError) as refusal:
        import_spans([path], tmp_path, codebook=book)
    options = options_of(refusal.value)
    assert options["words"] == {"paisible": "calm", "brutal": "violent", "Arme": "Gun", "Lame": "Blade"}
    imported = import_spans([path], tmp_path, codebook=book, **options)

    assert labels_of(imported) == [("calm", ["Blade"]), ("violent", ["Gun"])] * 4


def test_a_translated_title_of_two_concepts_stands_for_neither():
    words = LabelWords(codebook_of_text(OWN)).with_guesses()
    assert words.concept_of("Arma") == ""  # Italian for Blade, and for Bow
    assert words.concept_of("Lame") == "Blade"
    assert words.level_of("brutal") == "violent"
