# ruff: noqa: E501 - rows of tables are kept as people write them
"""Tables as people make them: read without editing them, or refused with what to type; never without labels."""

import csv
import re
import shlex

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    UnreadColumnsError,
    frame_rate,
    guess_codebook,
    import_spans,
    load_codebook,
    read_manifest,
)
from obygaze_features.manifest.importers.table_rows import _columns_of_starts
from obygaze_features.manifest.spans.headings import Headings
from tests.command import obygaze


def options_of(refusal):
    """Return the options that a refusal proposes to type, as a shell reads them, for `import_spans`."""
    columns = {}
    wide = []
    words = {}
    other_options = {}
    texts = iter(shlex.split(" ".join(refusal.options)))
    for option, value in zip(texts, texts, strict=True):
        key, _, text = value.partition("=")
        if option == "--column":
            columns.setdefault(key, []).append(text)
        elif option == "--wide":
            (wide,) = csv.reader([value])
        elif option == "--word":
            words[key] = text
        elif option == "--rate":
            other_options["rate"] = frame_rate(value)
        else:
            other_options[option.removeprefix("--")] = value
    return {"columns": columns, "wide": wide, "words": words, **other_options}


def proposed_options(import_files, table, **options):
    """Read a table that is refused, and return the options that the refusal proposes to type."""
    with pytest.raises(UnreadColumnsError) as refusal:
        import_files({"t.csv": table}, **options)
    return options_of(refusal.value)


def import_with_proposed_options(path, codebook=None):
    """Import a table; where it is refused, once more with the options that the refusal names."""
    try:
        imported = import_spans([path], path.parent, codebook=codebook)
    except UnreadColumnsError as refusal:
        imported = import_spans([path], path.parent, codebook=codebook, **options_of(refusal))
    return list(imported.manifest)


@pytest.mark.parametrize(
    ("rows", "levels"),
    [("a,1,5,high\na,6,9.5,low\n", ["high", "low"]), ("a,1,5,1.0\na,6,9.5,2.0\nb,1,5,\n", ["1", "2", None])],
    ids=["words", "floats beside an empty cell"],
)
def test_a_table_of_words_of_its_own_is_read_with_the_codebook_that_is_guessed_of_it(tmp_path, rows, levels):
    """The levels of a table are called "high" and "low", or 1 and 2, which spreadsheets write as 1.0 and 2.0.

    A codebook is guessed from them. With it, and the columns that the refusal proposes, the table is read.
    """
    table = tmp_path / "t.csv"
    table.write_text(f"film,start,end,rating\n{rows}", encoding="utf-8")
    codebook = tmp_path / "own.toml"
    codebook.write_text(guess_codebook(table).to_toml(), encoding="utf-8")

    clips = import_with_proposed_options(table, load_codebook(codebook))

    assert [clip.level for clip in clips] == levels


@pytest.mark.parametrize(
    ("heading", "level", "other"),
    [("tier", "level", "concepts"), ("Was", "Stufe", "Merkmal"), ("track", "V1", "V2")],
    ids=["tier", "names of labels", "track"],
)
def test_a_column_that_says_what_a_row_holds_is_not_proposed_as_the_column_of_films(
    import_files, heading, level, other
):
    """The first column of t.csv says of each row whether its value is a level, such as S, or a concept.

    So do exports of annotation tools ("tier", "track"). The table is refused, with the options that read it:
    as no column names the film, the name of the file is proposed, `--movie t`, and not the first column.
    """
    rows = f"{level},1,2,S\n{other},1,2,Body\n{level},3,4,EN\n"

    options = proposed_options(import_files, f"{heading},start_s,end_s,value\n{rows}")

    assert options == {"columns": {"level": ["value"]}, "wide": [], "words": {}, "movie": "t"}


@pytest.mark.parametrize(
    "heading",
    ["rating", "class", "category", "objectification", "Stufe", "code", "niveau", "tags", "x", "lvl", "AB"],
)
def test_a_column_of_labels_is_proposed_whatever_its_heading(import_files, heading):
    """A table has a column whose heading says little or nothing, and whose two cells are labels.

    Cells that are levels or concepts of the codebook tell that a column holds labels, so it is proposed.
    """
    for first, second in (("S", "EN"), ("Body", "Look; Body"), ("Sure", "")):
        table = f"movie,start_s,end_s,{heading}\na,0,1,{first}\na,1,2,{second}\n"
        options = proposed_options(import_files, table)
        assert [heading] in options["columns"].values()


@pytest.mark.parametrize(
    ("heading", "cells"),
    [("category", ("AB", "CD")), ("starts", ("x", "y")), ("video_2", ("hi", "you")), ("note", ("S?", "ok"))],
)
def test_a_column_whose_cells_do_not_fit_its_heading_is_kept_as_it_is(import_files, heading, cells):
    """The heading may be of labels, times, films or notes, and the cells hold none.

    So the table is read without any question, and the column is one of the person's own.
    """
    first, second = cells
    table = f"movie,start_s,end_s,{heading}\na,0,1,{first}\na,1,2,{second}\n"

    clips, _ = import_files({"t.csv": table})

    assert [clip.extras[heading] for clip in clips] == [first, second]


def test_a_known_word_in_a_heading_of_several_tells_starts_from_ends(import_files):
    """The columns "shot ends at" and "shot begins at" are proposed as ends and starts."""
    table = "movie,shot ends at,shot begins at,level\na,6,1,S\na,9,5,EN\n"
    columns = proposed_options(import_files, table)["columns"]
    assert columns == {"start_s": ["shot begins at"], "end_s": ["shot ends at"]}


def test_a_column_of_names_that_alternate_within_spans_is_of_annotators(import_files):
    """Each span has a row of Ann and one of Bob, so the column "wer" tells who labelled."""
    rows = "a,1,5,S,Ann\na,1,5,EN,Bob\na,6,9,S,Ann\na,6,9,EN,Bob\n"
    columns = proposed_options(import_files, "movie,start_s,end_s,level,wer\n" + rows)["columns"]
    assert columns == {"annotator": ["wer"]}


def test_a_person_can_refuse_to_read_proposed_columns_of_concepts(import_files):
    """A table has the columns Look and tags, which the refusal proposes to read as concepts.

    The person types --column concepts= without a heading, which names no column: the clip has its level
    alone.
    """
    table = "movie,start_s,end_s,level,Look,tags\na,1,2,S,x,Body\n"
    assert proposed_options(import_files, table)["columns"] == {"concepts": ["tags", "Look"]}

    no_column = [""]
    (clip,), _ = import_files({"t.csv": table}, columns={"concepts": no_column})

    assert (clip.level, clip.concepts) == ("S", ())


def test_levels_in_the_column_of_annotators_are_reported(import_files):
    """S and EN are levels, not people. The notice proposes to read the column as that of levels."""
    table = "movie,start_s,end_s,annotator\nf,1,2,S\nf,3,4,EN\n"

    _, notices = import_files({"t.csv": table})
    assert "level=annotator" in notices

    clips, _ = import_files({"t.csv": table}, columns={"level": ["annotator"]})
    assert [(clip.level, clip.annotator) for clip in clips] == [("S", ""), ("EN", "")]


def test_a_column_replaced_by_another_is_reported(import_files):
    """The person reads "rating" as the level and "Film" as the movie, so the columns of these names go."""
    table = "movie,Film,start_s,end_s,level,rating\nf,g,1,2,7,S\n"

    (clip,), notices = import_files({"t.csv": table}, columns={"level": ["rating"], "movie": ["Film"]})

    assert clip.movie == "g"
    assert clip.level == "S"
    assert "'level' left out" in notices
    assert "column 'movie' left out: 'Film' is read as movie" in notices


def test_two_columns_of_ours_that_were_exchanged_are_exchanged_back(import_files):
    """In a table, the cells below start_s and end_s were exchanged: a span from 1 to 2 s stands there as 2, 1.

    The person says so: `--column start_s=end_s` takes starts from the column end_s, and the other way round.
    """
    table = "movie,start_s,end_s,level\nf,2,1,S\n"

    (clip,), _ = import_files({"t.csv": table}, columns={"start_s": ["end_s"], "end_s": ["start_s"]})

    assert (clip.start_s, clip.end_s) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"levl": ["x"]}, "levl", id="a column that manifests do not have"),
        pytest.param({"start_s": ["a", "b"]}, r"'start_s'.*'a', 'b'", id="two headings of one time"),
        pytest.param({"level": ["Stuffe"]}, "Stuffe", id="a heading that the table does not have"),
    ],
)
def test_an_impossible_choice_of_columns_is_refused(import_files, columns, message):
    """`columns` are what the person typed, {column of a manifest: headings of the table}."""
    with pytest.raises(ManifestError, match=message):
        import_files({"t.csv": "movie,start_s,end_s,Stufe\nf,1,2,S\n"}, columns=columns)


def test_a_heading_that_is_named_counts_in_the_tables_that_have_it(import_files):
    """The person says that "Stufe" is the level. The second table has no such heading, and has a level."""
    files = {
        "a.csv": "movie,start_s,end_s,Stufe\na,1,2,S\n",
        "b.csv": "movie,start_s,end_s,level\nb,1,2,EN\n",
    }

    clips, _ = import_files(files, columns={"level": ["Stufe"]})

    assert [clip.level for clip in clips] == ["S", "EN"]


def test_a_table_with_no_named_heading_but_that_of_its_starts_is_refused_by_a_missing_one(import_files):
    """Of two headings that the person names, the table has "Von": by its times it is still a table of spans."""
    with pytest.raises(ManifestError, match="no column 'Note'; found Von, Bis, Stufe"):
        import_files(
            {"t.csv": "Von,Bis,Stufe\n1,2,S\n3,4,EN\n"}, columns={"start_s": ["Von"], "level": ["Note"]}
        )


@pytest.mark.parametrize(
    ("marks", "reason"), [("1,1", ""), ("0,#N/A", ": '#N/A'")], ids=["two levels in a row", "an error"]
)
def test_marks_that_tell_no_level_are_refused(import_files, marks, reason):
    """The columns EN and S have a 1 where a span is of this level. The second row is right: it is EN."""
    table = f"movie,start_s,end_s,EN,S\nf,1,2,{marks}\nf,3,4,1,0\n"
    with pytest.raises(ManifestError, match=rf"t\.csv: line 2, column level{reason}"):
        import_files({"t.csv": table}, columns={"level": ["EN", "S"]})


def test_a_wide_table_with_a_word_of_no_codebook_is_refused_with_its_place(import_files):
    """A wide table has a column of levels for each annotator, here AB and CD. Sx is no level."""
    table = "movie,start_s,end_s,AB,CD\nf,1,2,Sx,EN\n"
    with pytest.raises(ManifestError, match=r"t\.csv: line 2, column AB: .*'Sx'"):
        import_files({"t.csv": table}, wide=["AB", "CD"])


def test_a_row_of_a_wide_table_that_nobody_labelled_stays_a_clip(import_files):
    """A wide table has a column of levels for each annotator. The second row has neither AB's nor CD's."""
    table = "movie,start_s,end_s,AB,CD\nf,1,2,S,\nf,3,4,,\n"

    clips, _ = import_files({"t.csv": table}, wide=["AB", "CD"])

    assert [(c.start_s, c.level, c.annotator) for c in clips] == [(1.0, "S", "AB"), (3.0, None, "")]


TABLE_WITH_A_ROW_FOR_EACH_CONCEPT = """clip_id,movie,start_s,end_s,annotator,level,concepts,remark
a1,f,0,10,AB,S,Body,slow
a1,f,0,10,AB,S,Look,pan
a1,f,0,10,CD,EN,Look,
a2,f,10,20,AB,HN,Clothing,
"""
"""A table of four rows below its heading: AB has two rows about clip a1, one of Body and one of Look."""


def test_rows_of_one_concept_each_about_one_clip_and_annotator_are_joined(import_files):
    """A table has a row for each concept: AB has two rows about clip a1, of Body, "slow", and of Look, "pan"."""
    clips, notices = import_files({"t.csv": TABLE_WITH_A_ROW_FOR_EACH_CONCEPT})

    labels = [(clip.clip_id, clip.annotator, clip.level, set(clip.concepts)) for clip in clips]
    assert labels == [
        ("a1", "AB", "S", {"Body", "Look"}),
        ("a1", "CD", "EN", {"Look"}),
        ("a2", "AB", "HN", {"Clothing"}),
    ]
    assert clips[0].extras["remark"] == "slow; pan"
    assert "1 row joined" in notices


@pytest.mark.parametrize(
    "row",
    ["a2,f,10,20,AB,HN,Clothing,", "a2,f,10,20,AB,S,Look,", "a2,f,10,30,AB,HN,Look,"],
    ids=["says nothing new", "another level", "another span"],
)
def test_a_second_row_of_a_clip_that_adds_no_label_is_refused(import_files, row):
    """Line 5, the last of a table, is AB's row about a2: HN and Clothing from 10 to 20 s. A row is added.

    A further row about a2 may add a concept to the same level and span, and these three do not.
    """
    table = f"{TABLE_WITH_A_ROW_FOR_EACH_CONCEPT}{row}\n"
    with pytest.raises(ManifestError, match=r"line 6, .*line 5"):
        import_files({"t.csv": table})


def test_a_second_row_about_a_clip_is_refused_where_rows_list_several_concepts(import_files):
    """The clip a1 has the concepts Body and Look in line 2, and Clothing in line 3.

    Some tables have a row for each concept. Here line 2 lists two, so that rows list all concepts of a clip,
    and line 3 contradicts it.
    """
    table = "clip_id,movie,start_s,end_s,concepts\na1,f,0,10,Body;Look\na1,f,0,10,Clothing\n"
    with pytest.raises(ManifestError, match=r"line 3, .*line 2"):
        import_files({"t.csv": table})


@pytest.mark.parametrize(
    ("table", "options"),
    [
        (
            "video;level;Anfang;Ende\na.mp4;S;00:00:01;00:00:05\n",
            "--column start_s=Anfang --column end_s=Ende",
        ),
        (
            "video,level,t_on,t_off\na.mp4,S,1,5\na.mp4,EN,6,7\n",
            "--column start_s=t_on --column end_s=t_off",
        ),
    ],
    ids=["in German", "by a program's names"],
)
def test_columns_of_times_below_other_headings_are_proposed_as_start_and_end(import_files, table, options):
    """The table has neither start_s nor end_s, but two columns hold times, such as "Anfang" and "Ende".

    A row without times would be a whole film. So the table is refused, with the options that read the two.
    """
    with pytest.raises(ManifestError, match=options):
        import_files({"t.csv": table})


def test_two_rows_of_a_whole_film_are_refused(import_files):
    """The table has no times, so that each row is of the whole film a. Lines 2 and 3 contradict each other."""
    table = "video,level,take\na.mp4,S,one\na.mp4,EN,two\n"
    with pytest.raises(ManifestError, match=r"t\.csv: line 3: .*line 2"):
        import_files({"t.csv": table})


def test_a_refusal_of_thousands_of_words_shows_a_few_and_counts_the_rest(import_files):
    """The column "rating" has 3000 words, and none of them is a level. Fewer than 100 are shown."""
    rows = "".join(f"a,{n},{n + 1},word {n}\n" for n in range(3000))
    table = f"movie,start_s,end_s,rating\n{rows}"

    with pytest.raises(UnreadColumnsError, match=r"2,9\d\d more words .*codebook guess") as refusal:
        import_files({"t.csv": table}, columns={"level": ["rating"]})

    assert len(str(refusal.value)) < 2000
    assert options_of(refusal.value)["columns"] == {"level": ["rating"]}


def test_a_person_is_asked_once_what_the_words_of_several_columns_mean(refusal_of):
    """The words of the column "rating", mild and harsh, are no levels, and those of "seen" no concepts.

    One refusal asks for the meanings of all four. That a codebook could be guessed of the words instead
    (`obygaze codebook guess`) is said once for both columns.
    """
    table = "Film,Beginn,Ende,rating,seen\na,1,2,mild,hats\na,3,4,harsh,gloves\n"

    refusal = refusal_of({"t.csv": table}, columns={"level": ["rating"], "concepts": ["seen"]})

    assert set(options_of(refusal)["words"]) == {"mild", "harsh", "hats", "gloves"}
    assert str(refusal).count("obygaze codebook guess") == 1


def test_as_few_words_as_a_person_can_type_are_all_proposed(import_files):
    """60 rows have 12 words, each of them 5 times. The person shall say of each which level it means."""
    rows = "".join(f"a,{n},{n + 1},word {n % 12}\n" for n in range(60))
    table = f"movie,start_s,end_s,rating\n{rows}"

    options = proposed_options(import_files, table, columns={"level": ["rating"]})

    assert set(options["words"]) == {f"word {n}" for n in range(12)}


# --- cells and rows
# ---------------------------------------------------------------------------
GOOD_CELLS = {"movie": "a", "start_s": "1", "end_s": "2", "level": "S", "concepts": "Body", "annotator": "AB"}


@pytest.mark.parametrize(
    ("error", "column"),
    [("#N/A", column) for column in GOOD_CELLS]
    + [(error, "level") for error in ("#WERT!", "#DIV/0!", "#¡REF!", "#NOM?", "Err:502")],
)
def test_an_error_of_a_spreadsheet_is_refused_in_a_csv_as_in_a_workbook(import_files, error, column):
    """Spreadsheets write such a word, in their language, where a formula has no value. Line 2 is a good row."""
    good_row = GOOD_CELLS
    row_with_error = GOOD_CELLS | {"start_s": "3", "end_s": "4", column: error}
    table = "".join(
        ",".join(cells) + "\n" for cells in (good_row.keys(), good_row.values(), row_with_error.values())
    )

    with pytest.raises(ManifestError, match=rf"t\.csv: line 3, column {column}"):
        import_files({"t.csv": table})


@pytest.mark.parametrize(
    ("footer", "first_cell", "separator"),
    [
        ("Mean,2,3,", "Mean", ","),
        ("n = 2,2,3,", "n = 2", ","),
        ("Summe;2;3;", "Summe", ";"),
        ("Total,,,", "Total", ","),
    ],
)
def test_a_footer_below_the_table_is_reported(import_files, footer, first_cell, separator):
    """A row of means or totals may be read as a film called "Mean". It is on line 5, below three good rows."""
    table = "movie,start_s,end_s,level\nf,1,2,S\nf,3,4,EN\nf,5,6,EN\n".replace(",", separator)

    _, notices = import_files({"t.csv": f"{table}{footer}\n"})

    assert "line 5" in notices
    assert f"'{first_cell}'" in notices


def test_a_row_without_the_level_that_most_have_is_named_by_its_first_cell_that_is_not_empty(import_files):
    """Three rows have the level S. The fourth, on line 5, has neither a level nor a number."""
    table = "number,movie,start_s,end_s,level\nid 0,a,0,1,S\nid 1,a,1,2,S\nid 2,a,2,3,S\n,a,5,6,\n"

    _, notices = import_files({"t.csv": table})

    assert "1 row without a level, which the others have (line 5, 'a')" in notices


def test_a_notice_says_that_rows_of_a_table_without_times_are_taken_as_whole_films(import_files):
    """The film a has the level S and the film b EN. The cells of their starts and ends are empty."""
    table = "movie,start_s,end_s,level\na,,,S\nb,,,EN\n"

    _, notices = import_files({"t.csv": table})

    assert "without times taken as whole films" in notices


ROWS_WITH_AND_WITHOUT_TIMES = {
    "of the same film": ("movie,start_s,end_s,level", "a,{start},{end},S", "a,,,EN"),
    "of other films": ("movie,start_s,end_s,level", "a,{start},{end},S", "b{number},,,EN"),
    "of the same video": ("video,start_s,end_s,level", "a.mp4,{start},{end},S", "a.mp4,,,EN"),
    "of the same video, each a clip": (
        "clip_id,video,start_s,end_s,level",
        "x{start},a.mp4,{start},{end},S",
        "y{number},a.mp4,,,EN",
    ),
}
"""The heading of a table, its rows with times, and its rows without."""


def table_with_rows_without_times(untimed_rows, *, n_timed, n_untimed):
    """Write a table: first rows at 1 to 2 s, 2 to 3 s and so on, then rows without times, which are of these."""
    head, timed, untimed = ROWS_WITH_AND_WITHOUT_TIMES[untimed_rows]
    rows = [timed.format(start=start, end=start + 1) for start in range(1, n_timed + 1)]
    rows += [untimed.format(number=number) for number in range(n_untimed)]
    return "\n".join([head, *rows]) + "\n"


@pytest.mark.parametrize("untimed_rows", ROWS_WITH_AND_WITHOUT_TIMES)
def test_a_row_that_lacks_times_which_most_have_is_left_out(import_files, untimed_rows):
    """Four rows of a table have times and one, on line 6, has none: they were forgotten.

    It is no label of the whole film, and is left out.
    """
    table = table_with_rows_without_times(untimed_rows, n_timed=4, n_untimed=1)

    clips, notices = import_files({"t.csv": table})

    assert [clip.start_s for clip in clips] == [1, 2, 3, 4]
    assert "4 of 5 spans" in notices
    assert "line 6: no times" in notices  # line 1 is the heading


@pytest.mark.parametrize("untimed_rows", ROWS_WITH_AND_WITHOUT_TIMES)
def test_a_table_whose_rows_mostly_lack_times_is_refused(import_files, untimed_rows):
    """Line 2 has times, and the six rows from line 3 on have none: they may be labels, or not filled in."""
    table = table_with_rows_without_times(untimed_rows, n_timed=1, n_untimed=6)
    with pytest.raises(ManifestError, match=r"6 of 7 rows .* no times .*line 3"):
        import_files({"t.csv": table})


@pytest.mark.parametrize(
    ("header", "row_of_a_span", "row_of_a_file"),
    [
        ("video,start_s,end_s,level", "a.mp4,1,2,S", "b{}.mp4,,,EN"),
        ("clip_id,movie,start_s,end_s,level", "x,a,1,2,S", "y{},a,,,EN"),
    ],
    ids=["other videos", "other clips"],
)
def test_rows_without_times_about_other_files_are_clips_of_whole_files(
    import_files, header, row_of_a_span, row_of_a_file
):
    """One row has times. Six have none, and each names a file, or a clip, of its own."""
    rows_of_files = [row_of_a_file.format(n) for n in range(6)]
    table = "\n".join([header, row_of_a_span, *rows_of_files]) + "\n"

    clips, notices = import_files({"t.csv": table})

    assert len(clips) == 1 + 6
    assert "6 rows without times" in notices


@pytest.mark.parametrize("headings", ["Film;Stufe;Anfang;Ende", "Film;Stufe;Start (s);Dauer (s)"])
def test_columns_of_times_that_most_rows_leave_empty_are_times(import_files, headings):
    """One row of seven has times. The columns are proposed as times, and then six rows lack them."""
    rows_without_times = "b0;EN;;\nb1;EN;;\nb2;EN;;\nb3;EN;;\nb4;EN;;\nb5;EN;;\n"
    table = f"{headings}\na;S;1,0;5,0\n{rows_without_times}"

    options = proposed_options(import_files, table)

    assert options["columns"]["start_s"]
    with pytest.raises(ManifestError, match="6 of 7 rows"):
        import_files({"t.csv": table}, **options)


@pytest.mark.parametrize(("first", "second"), [("Isıl", "Isil"), ("ISIL", "ısıl"), ("İpek", "ipek")])
def test_annotators_whose_names_differ_in_the_dot_of_an_i_are_refused_as_one_name(
    import_files, first, second
):
    """Turkish has i with and without a dot, in both cases; programs change one into the other."""
    table = f"movie,start_s,end_s,level,annotator\nf,0,1,S,{first}\nf,1,2,S,{second}\n"
    with pytest.raises(ManifestError, match="one name"):
        import_files({"t.csv": table})


def test_overlapping_levels_of_one_annotator_are_reported(import_files):
    """AB gave S from 1 to 10 s, and EN from 3 to 4 s within it: only one can be meant there."""
    table = "movie,start_s,end_s,level,annotator\nf,1,10,S,AB\nf,3,4,EN,AB\n"

    clips, notices = import_files({"t.csv": table})

    assert len(clips) == 2
    assert "S 1-10 s and EN 3-4 s" in notices
    assert "overlap" in notices


def test_a_number_with_decimals_is_refused_with_the_level_that_it_may_mean(tmp_path):
    """The levels of the codebook are "1" and "2", and a spreadsheet made 2.0 of the 2 in the manifest."""
    (tmp_path / "m.codebook.toml").write_text('name = "v"\nversion = "1"\nlevels = ["1", "2"]\n')
    head = "clip_id,movie,video,start_s,end_s,level,concepts,annotator,codebook\n"
    (tmp_path / "m.csv").write_text(f"{head}c,f,,1,2,2.0,,,v\n")
    with pytest.raises(ManifestError, match=r"did you mean '2'"):
        read_manifest(tmp_path / "m.csv")


# --- what a refusal proposes reads the table
# ---------------------------------------------------------------------------
READ_BY_PASTING = {
    "capitals, units and titles of levels": ("Film,Start (s),End (s),Class\na,1,5,Sure\na,6,9.5,Easy Negative\n", [(1, 5, "S", set(), ""), (6, 9.5, "EN", set(), "")]),
    "files, clocks and decimal commas": ("Datei;Startzeit;Endzeit;Bewertung;Konzepte\na.mp4;00:00:01;00:00:05;S;Body, Look\na.mp4;00:00:06;00:00:09,5;EN;\n", [(1, 5, "S", {"Look", "Body"}, ""), (6, 9.5, "EN", set(), "")]),
    "raters by number": ("film;from;to;Rater 1;Rater 2\na;1;5;S;EN\na;6;9,5;EN;EN\n", [(1, 5, "S", set(), "Rater 1"), (1, 5, "EN", set(), "Rater 2"), (6, 9.5, "EN", set(), "Rater 1"), (6, 9.5, "EN", set(), "Rater 2")]),
    "a number below each level": ("movie,start_s,end_s,EN,HN,NS,S\na,1,5,0,0,0,1\na,6,9.5,1,0,0,0\n", [(1, 5, "S", set(), ""), (6, 9.5, "EN", set(), "")]),
    "whole films": ("Datei;Stufe\na.mp4;S\nb.mp4;EN\n", [(None, None, "S", set(), ""), (None, None, "EN", set(), "")]),
    "a title and an index": ("My ratings,,,,\n,movie,start_s,end_s,level\n0,a,1,5,S\n1,a,6,9.5,EN\n", [(1, 5, "S", set(), ""), (6, 9.5, "EN", set(), "")]),
    "nobody's level in a column of people": ("movie,start_s,end_s,AB,CD\na,1,5,S,EN\na,6,9.5,EN,\n", [(1, 5, "S", set(), "AB"), (1, 5, "EN", set(), "CD"), (6, 9.5, "EN", set(), "AB")]),
    "ids and no times": ("ID;Bewertung;Merkmale\nc1;S;Look, Body\nc2;EN;keine\nc3;HN;Posture und Body\n", [(None, None, "S", {"Look", "Body"}, ""), (None, None, "EN", set(), ""), (None, None, "HN", {"Posture", "Body"}, "")]),
    "time codes with frames": ("Film;TC in;TC out;Level\nG;00:01:05:12;00:01:20:00;S\nG;00:02:00:00;00:02:10:24;EN\n", [(65.48, 80, "S", set(), ""), (120, 130.96, "EN", set(), "")]),
    "levels said twice": ("movie,start,end,level\nG,1,4,S (Sure)\nG,6,9,EN = Easy Negative\n", [(1, 4, "S", set(), ""), (6, 9, "EN", set(), "")]),
    "units in cells": ("Titre;Départ;Durée;Niveau;Codeur\nG;12 s;5,5 s;S;AL\nG;1 min 5 s;12 s;EN;AL\n", [(12, 17.5, "S", set(), "AL"), (65, 77, "EN", set(), "AL")]),
    "milliseconds": ("filename,start_ms,end_ms,label\na.mp4,1000,3500,S\na.mp4,5000,8000,EN\n", [(1, 3.5, "S", set(), ""), (5, 8, "EN", set(), "")]),
    "a separator that is said": ("sep=;\nFilm;Anfang;Ende;Stufe\nG;1,5;3,5;S\nG;5;9;EN\n", [(1.5, 3.5, "S", set(), ""), (5, 9, "EN", set(), "")]),
    "headings of two lines": ('"Film\nTitle","Start\n(s)","End\n(s)","Objectification\nlevel"\nG,1.5,3,S\nG,4,5,EN\n', [(1.5, 3, "S", set(), ""), (4, 5, "EN", set(), "")]),
    "numbers of two annotators": ("Film;Start;Ende;Klara;Murat\nG;10;15;0;1\nG;20;25;3;3\nG;30;35;2;0\n", [(10, 15, "EN", set(), "Klara"), (10, 15, "HN", set(), "Murat"), (20, 25, "S", set(), "Klara"), (20, 25, "S", set(), "Murat"), (30, 35, "NS", set(), "Klara"), (30, 35, "EN", set(), "Murat")]),
    "marks of two annotators": ("film,start,end,AB level,AB Look,AB Body,CD level,CD Look,CD Body\nG,1,3,S,1,0,HN,0,1\nG,5,8,EN,0,0,NS,1,1\n", [(1, 3, "S", {"Look"}, "AB"), (1, 3, "HN", {"Body"}, "CD"), (5, 8, "EN", set(), "AB"), (5, 8, "NS", {"Look", "Body"}, "CD")]),
    "annotators by number": ("film,start,end,Level1,Concepts1,Level2,Concepts2\nG,1,3,S,Look,HN,Body\nG,4,6,EN,,EN,\n", [(1, 3, "S", {"Look"}, "1"), (1, 3, "HN", {"Body"}, "2"), (4, 6, "EN", set(), "1"), (4, 6, "EN", set(), "2")]),
    "a second annotator beside the level": ("Film;Start;End;Level;Level 2nd coder\nG;1;3;S;HN\nG;4;8;EN;EN\n", [(1, 3, "S", set(), "level"), (1, 3, "HN", set(), "2nd coder"), (4, 8, "EN", set(), "level"), (4, 8, "EN", set(), "2nd coder")]),
    "two times with words": ("Film;Zeitraum;Wertung\nG;von 1:05 bis 1:20;S\nG;2:00–2:30;EN\n", [(65, 80, "S", set(), ""), (120, 150, "EN", set(), "")]),
    "films and people as numbers": ("film_id,rater,start,end,level\n1.0,2.0,1,3,S\n1.0,3.0,1,3,EN\n", [(1, 3, "S", set(), "2"), (1, 3, "EN", set(), "3")]),
    "headings of a language that is not known": ("tytuł;początek;koniec;ocena;elementy\nK;1,5;3;S;Look\nK;5;7,5;EN;\nP;8;9;HN;Body\n", [(1.5, 3, "S", {"Look"}, ""), (5, 7.5, "EN", set(), ""), (8, 9, "HN", {"Body"}, "")]),
    "no headings": ("G;1,5;3;S;Look\nG;5;7,5;EN;\nL;8;9;HN;Body\n", [(1.5, 3, "S", {"Look"}, ""), (5, 7.5, "EN", set(), ""), (8, 9, "HN", {"Body"}, "")]),
    "remarks on rows of their own": ("film,start,end,variable,value\nG,1,3,level,S\nG,1,3,concept,Look\nG,1,3,note,of hands\nG,5,8,level,EN\n", [(1, 3, "S", {"Look"}, ""), (5, 8, "EN", set(), "")]),
    "cells with blanks, bars": ("Film | Start | End | Level \nG | 1 | 3 | S \nG | 5 | 8 | EN \n", [(1, 3, "S", set(), ""), (5, 8, "EN", set(), "")]),
    "a form of two people": ("Zeitstempel,E-Mail,Welcher Clip?,Wie?,Merkmale?\n3.11. 10:12,ann@u.de,c1.mp4,S,Look\n3.11. 10:15,ann@u.de,c2.mp4,EN,\n4.11. 9:12,ben@u.de,c1.mp4,HN,Look\n4.11. 9:13,ben@u.de,c2.mp4,EN,\n", [(None, None, "S", {"Look"}, "ann@u.de"), (None, None, "EN", set(), "ann@u.de"), (None, None, "HN", {"Look"}, "ben@u.de"), (None, None, "EN", set(), "ben@u.de")]),
    "minutes with decimals": ("Film;Start (min);Ende (min);Level\nG;1,5;2;S\nG;3;3,25;EN\n", [(90, 120, "S", set(), ""), (180, 195, "EN", set(), "")]),
    "frames": ("video;start_frame;end_frame;level\na.mp4;25;100;S\na.mp4;150;200;EN\n", [(1, 4, "S", set(), ""), (6, 8, "EN", set(), "")]),
    "labels one a row, no column of kinds": ("Film;Start;End;Person;Label\nG;1;3;A;S\nG;1;3;A;Look\nG;1;3;B;HN\nG;5;8;A;EN\n", [(1, 3, "S", {"Look"}, "A"), (1, 3, "HN", set(), "B"), (5, 8, "EN", set(), "A")]),
    "films on rows of their own": ("Start;End;Level\nGilda;;\n1;3;S\n5;8;EN\nLaura;;\n2;4;HN\n", [(1, 3, "S", set(), ""), (5, 8, "EN", set(), ""), (2, 4, "HN", set(), "")]),
    "films on rows of their own, in their column": ("Film;Start;End;Level\nGilda;;;\n;1;3;S\n;5;8;EN\nLaura;;;\n;2;4;HN\n", [(1, 3, "S", set(), ""), (5, 8, "EN", set(), ""), (2, 4, "HN", set(), "")]),
    "means, totals, a signature": ("Film;Start;End;Level\nG;1;3;S\nG;4;6;EN\nG;8;9;EN\nMean length;;1,7;\nTotal;;5;\ncoded in May;;;\n", [(1, 3, "S", set(), ""), (4, 6, "EN", set(), ""), (8, 9, "EN", set(), "")]),
    "an error in a level": ("Film;Beginn;Ende;Stufe\nG;1;3;S\nG;5;8;#N/A\nG;9;10;EN\n", [(1, 3, "S", set(), ""), (5, 8, "", set(), ""), (9, 10, "EN", set(), "")]),
}  # fmt: skip


@pytest.mark.parametrize("shape", READ_BY_PASTING)
def test_a_table_as_people_make_it_is_read_with_the_options_that_its_refusal_proposes(tmp_path, shape):
    """Tables have shapes that people really use: times in frames, a column for each person, and so on.

    If the import is refused, the options that the refusal names are pasted. Then the clips have the times,
    level, concepts and annotator that the table says, in any order.
    """
    table, labels_in_table = READ_BY_PASTING[shape]
    path = tmp_path / "t.csv"
    path.write_text(table, encoding="utf-8")

    clips = import_with_proposed_options(path)

    labels_read = []
    for clip in clips:
        level = clip.level or ""
        labels_read.append((clip.start_s, clip.end_s, level, set(clip.concepts), clip.annotator))
    assert len(labels_read) == len(labels_in_table)
    for label in labels_in_table:
        assert label in labels_read


TABLE_OF_TWO_OWN_WORDS = "Film,Start,End,Objectification\nG,1,3,ja klar\nG,5,8,gar nicht\nG,9,10,gar nicht\n"
"""A table whose levels are called "ja klar" and "gar nicht", which no codebook has."""


def test_words_that_only_a_person_can_explain_are_asked_for(import_files):
    """The levels of a table are called "ja klar" and "gar nicht", which no codebook knows.

    The proposal has LABEL in place of their meanings. The person types Sure and EN, and the table is read.
    """
    options = proposed_options(import_files, TABLE_OF_TWO_OWN_WORDS)
    assert options["words"] == {"gar nicht": "LABEL", "ja klar": "LABEL"}

    options["words"] = {"gar nicht": "EN", "ja klar": "Sure"}
    clips, _ = import_files({"t.csv": TABLE_OF_TWO_OWN_WORDS}, **options)

    assert [clip.level for clip in clips] == ["S", "EN", "EN"]


def test_a_word_may_not_be_explained_by_what_is_no_level_or_concept(import_files):
    """A table has the level "gar nicht". The person explains it as EM, and mistyped it for EN."""
    options = proposed_options(import_files, TABLE_OF_TWO_OWN_WORDS)
    options["words"] = {"gar nicht": "EM"}
    with pytest.raises(ManifestError, match="'EM' is no level or concept"):
        import_files({"t.csv": TABLE_OF_TWO_OWN_WORDS}, **options)


def test_what_a_person_named_is_kept_in_what_is_proposed(import_files):
    """The person said that "Film" is the movie. The other four headings are proposed beside it."""
    table = "Film;Beginn;Ende;Stufe;Kürzel\nG;1;3;S;AB\n"

    options = proposed_options(import_files, table, columns={"movie": ["Film"]})

    assert options["columns"] == {
        "movie": ["Film"],
        "start_s": ["Beginn"],
        "end_s": ["Ende"],
        "level": ["Stufe"],
        "annotator": ["Kürzel"],
    }


def test_tables_that_need_other_options_than_the_first_are_named(import_files):
    """Three tables need options to be read. The first and the third have the same headings.

    The second says Anfang in place of Beginn, so that the options of the first do not read it.
    """
    files = {
        "a.csv": "Film;Beginn;Ende;Stufe\nG;1;3;S\n",
        "b.csv": "Film;Anfang;Ende;Stufe\nG;1;3;S\n",
        "c.csv": "Film;Beginn;Ende;Stufe\nL;1;3;S\n",
    }

    with pytest.raises(UnreadColumnsError) as refusal:
        import_files(files)

    assert "b.csv" in str(refusal.value)
    assert "c.csv" not in str(refusal.value)


def test_a_table_with_one_of_the_headings_that_a_person_names_for_another_is_named(import_files):
    """The person names the starts and levels of the first table. The second has the same starts alone."""
    files = {"a.csv": "Film,Von,Bis,Note\nG,1,2,S\nG,3,4,EN\n", "b.csv": "Von,Bis,Level AB\n1,2,S\n3,4,EN\n"}

    with pytest.raises(UnreadColumnsError) as refusal:
        import_files(files, columns={"start_s": ["Von"], "level": ["Note"]})

    assert "end_s=Bis" in str(refusal.value)
    assert "import apart, as they need other options: b.csv" in str(refusal.value)


@pytest.mark.parametrize(
    ("first_mark", "second_mark", "is_proposed"),
    [("x", "-", True), ("x", "", True), ("x", "x", False), ("-", "", False)],
)
def test_a_column_that_says_yes_in_some_rows_only_is_proposed_as_a_concept(
    import_files, first_mark, second_mark, is_proposed
):
    """The codebook has no concept Kiss, so the column is not read; an x says yes, and - or nothing no.

    With the same answer in every row, the column says nothing of a span.
    """
    table = f"movie,start_s,end_s,level,Kiss\nG,1,3,S,{first_mark}\nG,5,8,S,{second_mark}\n"

    _, notices = import_files({"t.csv": table})

    assert ("--column concepts=Kiss" in notices) == is_proposed


def test_a_table_with_tabs_and_a_heading_row_is_no_text_of_elan(import_files):
    """ELAN exports rows with tabs and two times too, often without headings.

    This table has headings, in French, and is read as a person's: "Début" is proposed as the start.
    """
    table = "Film\tPlan\tDébut\tFin\tNiveau\nC\t12\t00:02:10.500\t00:02:16.000\tHN\n"

    options = proposed_options(import_files, table)

    assert options["columns"]["start_s"] == ["Début"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-8-sig", "utf-8"])
def test_a_heading_is_named_in_any_encoding(import_files, encoding):
    """The table has the ü of Begründung as one sign; the person types u and two dots, in Unicode's other form."""
    table = "Film;start_s;end_s;Begründung\nG;1;3;Look\n".encode(encoding)
    columns = {"movie": ["Film"], "concepts": ["Begru\u0308ndung"]}

    (clip,), _ = import_files({"t.csv": table}, columns=columns)

    assert clip.concepts == ("Look",)


def test_a_missing_film_is_not_filled_in_where_others_are_repeated(import_files):
    """Film a is written in each of its rows, so an empty cell is a mistake and not "as above"."""
    with pytest.raises(ManifestError, match="line 4"):
        import_files({"t.csv": "movie,start_s,end_s,level\na,1,2,S\na,3,4,EN\n,5,6,S\n"})


def test_a_mistyped_time_in_the_last_row_is_refused(import_files):
    """The last row has the start "5x". Remarks below a table have no times either, and are left out.

    But this row has an end and a level, so it is a clip with a slip, and is refused by its line.
    """
    table = "movie,start_s,end_s,level\na,1,2,S\na,3,4,EN\na,5x,6,S\n"
    with pytest.raises(ManifestError, match="line 4, column start_s"):
        import_files({"t.csv": table})


def test_a_legend_below_a_table_is_left_out(import_files):
    """Two rows are clips. The last row explains what EN means, and has no times and no level."""
    table = "movie,start_s,end_s,level\na,1,2,S\na,3,4,EN\nEN,easy negative,,\n"

    clips, notices = import_files({"t.csv": table})

    assert len(clips) == 2
    assert "line 4, 'EN'" in notices


# --- a codebook of the words that are there
# ---------------------------------------------------------------------------
@pytest.mark.parametrize("sign", [";", ",", " / ", "|", " + "])
def test_a_codebook_is_guessed_by_the_signs_between_concepts_that_the_import_reads(tmp_path, sign):
    """Each cell of a table lists two of the concepts Leib, Stimme and Raum, with a sign between them.

    The guessed codebook has these three, and with it the import reads the list of the first clip.
    """
    table = tmp_path / "t.csv"
    table.write_text(
        "movie,video,level,concepts\n"
        f'F,0.mp4,keine,"Leib{sign}Stimme"\n'
        f'F,1.mp4,keine,"Stimme{sign}Raum"\n'
        f'F,2.mp4,keine,"Raum{sign}Leib"\n'
        "F,9.mp4,stark,",
        encoding="utf-8",
    )

    guessed = guess_codebook(table)
    assert {concept.name for concept in guessed.concepts} == {"Leib", "Stimme", "Raum"}

    codebook = tmp_path / "mine.toml"
    codebook.write_text(guessed.to_toml(), encoding="utf-8")
    imported = import_spans([table], tmp_path, codebook=load_codebook(codebook))
    assert imported.manifest.clips[0].concepts == ("Leib", "Stimme")


@pytest.fixture
def codebook_guessed_of_tags(tmp_path):
    """The codebook that is guessed of a table in which a person named the column of concepts, "Tags".

    The column "Ort" has the words in and out, of which the program can't know whether they are levels.
    """
    table = tmp_path / "tags.csv"
    table.write_text(
        "Film,Beginn,Ende,Tags,Ort\na,0,4,Gun;Dim light,in\na,5,9,Gun,out\nb,0,4,Blood,in\n", encoding="utf-8"
    )
    return guess_codebook(table, Headings({"concepts": ["Tags"]}))


def test_a_codebook_that_is_guessed_of_concepts_alone_asks_for_the_column_of_levels(codebook_guessed_of_tags):
    """The column "Tags" has concepts, and "Ort" (in, out) may have levels. No level is guessed of it."""
    assert [concept.name for concept in codebook_guessed_of_tags.concepts] == ["Gun", "Dim light", "Blood"]
    assert codebook_guessed_of_tags.levels == ()
    notice_of_no_level, notice_of_column = codebook_guessed_of_tags.notices()
    assert "a codebook needs one" in notice_of_no_level
    assert notice_of_column == "if a column of it holds levels, give --column level=Ort"


def test_a_codebook_that_is_guessed_of_concepts_alone_is_written_with_the_level_unrated(
    codebook_guessed_of_tags, tmp_path
):
    """A codebook must have a level, and in this one only concepts were guessed: Gun, Dim light and Blood."""
    (tmp_path / "own.toml").write_text(codebook_guessed_of_tags.to_toml(), encoding="utf-8")

    assert load_codebook(tmp_path / "own.toml").level_names == ("unrated",)


def test_of_a_table_without_levels_and_concepts_the_column_that_may_hold_levels_is_proposed(tmp_path):
    """Besides the film and its times there is only the column "Ort", of the words in and out."""
    table = tmp_path / "tags.csv"
    table.write_text("Film,Beginn,Ende,Ort\na,0,4,in\na,5,9,out\nb,0,4,in\n", encoding="utf-8")

    with pytest.raises(ManifestError, match=r"levels or concepts: give --column level=Ort$"):
        guess_codebook(table)


def test_levels_and_concepts_are_guessed_with_their_counts_and_likely_slips(tmp_path):
    """A codebook is guessed from a table of eight clips: its levels are the words of "rating".

    There "Low " is low, and "hihg" may be a slip of its twin high. Words don't say their order, so a notice
    asks the person to order the levels.
    """
    table = tmp_path / "t.csv"
    table.write_text(
        "film,rating,tags\n"
        "f,low,sun; moon\n"
        "f,low,sun; moon\n"
        "f,low,sun; moon\n"
        "f,Low ,sun\n"
        "f,hihg,\n"
        "f,high,Moon\n"
        "f,high,\n"
        "f,high,\n"
    )

    guessed = guess_codebook(table)

    high, hihg, low = guessed.levels
    assert (high.name, high.frequency, high.twin) == ("high", 3, "")
    assert (hihg.name, hihg.frequency, hihg.twin) == ("hihg", 1, "high")
    assert (low.name, low.frequency, low.twin) == ("low", 4, "")
    assert [(word.name, word.frequency) for word in guessed.concepts] == [("sun", 4), ("moon", 4)]
    assert any("order" in notice for notice in guessed.notices())

    (tmp_path / "own.toml").write_text(guessed.to_toml(), encoding="utf-8")
    assert load_codebook(tmp_path / "own.toml").level_names == ("high", "hihg", "low")


def test_levels_that_are_numbers_stand_in_their_order(tmp_path):
    """2 comes before 10, which as words would be the other way round. One film has no score."""
    table = tmp_path / "t.csv"
    table.write_text("film,score\na,10.0\nb,2.0\nc,\nd,2.0\n")

    guessed = guess_codebook(table)

    assert [(word.name, word.frequency) for word in guessed.levels] == [("2", 2), ("10", 1)]
    assert guessed.is_in_order


def test_a_table_without_a_column_of_levels_is_told_what_to_type(tmp_path):
    """Nothing says that the column "x", of a and b in turn, holds levels. The person can say so."""
    table = tmp_path / "t.csv"
    table.write_text("film,x\nf0,a\nf1,b\nf2,a\nf3,b\nf4,a\nf5,b\nf6,a\nf7,b\nf8,a\n")
    with pytest.raises(ManifestError, match=r"--column level=x"):
        guess_codebook(table)

    guessed = guess_codebook(table, Headings({"level": ["x"]}))
    assert [word.name for word in guessed.levels] == ["a", "b"]


@pytest.fixture
def guess_and_import(tmp_path, monkeypatch, capsys):
    """Guess a codebook of a table, then run the command that the guess ends with: the manifest."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films").mkdir()

    def guess_and_import(table, *options):
        (tmp_path / "own.csv").write_text(table, encoding="utf-8")
        assert obygaze("codebook", "guess", "own.csv", *options, "--out", "mine.toml") == 0
        command = re.search("obygaze (manifest .*)", capsys.readouterr().out)[1]
        assert obygaze(*shlex.split(command.replace("FOLDER", "films"))) == 0
        return read_manifest("clips.csv")

    return guess_and_import


TABLES_TO_GUESS_FROM = {
    "in German": (
        "Datei;Film;Objektifizierung;Konzepte\na/1.mp4;Küste;keine;\na/2.mp4;Küste;stark;Blick, Haut\n", [],
        [("Küste", "keine"), ("Küste", "stark")],
    ),
    "a column for each annotator": (
        "video,AB,CD\nf/1.mp4,low,high\n", ["--wide", "AB,CD"], [("f", "low"), ("f", "high")],
    ),
    "a column that a person named": (
        "clip,Stufe,Note\na.mp4,1,x\nb.mp4,2,y\nc.mp4,1,x\n", ["--column", "level=Stufe"],
        [("a", "1"), ("b", "2"), ("c", "1")],
    ),
}  # fmt: skip
"""A table, options of the guess, and the movie and level of each clip."""


@pytest.mark.parametrize(
    ("table", "options", "movies_and_levels"), TABLES_TO_GUESS_FROM.values(), ids=TABLES_TO_GUESS_FROM
)
def test_the_command_that_codebook_guess_prints_imports_the_table(
    guess_and_import, table, options, movies_and_levels
):
    """`obygaze codebook guess` writes a codebook of a person's table, and prints how to import the table.

    The fixture runs both commands. The tables are in German, with a column for each annotator, or with a
    column of levels that the person named; the manifest must have the film and the level of every row.
    """
    manifest = guess_and_import(table, *options)

    assert [(clip.movie, clip.level) for clip in manifest] == movies_and_levels


def test_one_row_of_very_many_cells_is_the_reason_why_a_table_is_refused(import_files):
    """Else its 50,000 short rows would be filled up to 50,004 cells each, which takes all the memory allowed.

    The long row has four cells as the others, and 50,000 empty ones.
    """
    short_rows = "f,1,2,S\n" * 50_000
    row_of_many_cells = "f,1,2,S" + "," * 50_000 + "\n"
    table = "movie,start_s,end_s,level\n" + short_rows + row_of_many_cells
    with pytest.raises(ManifestError, match="50,004 columns, where at most 1,000 are read"):
        import_files({"t.csv": table})


@pytest.mark.parametrize(
    ("columns_of_times", "starts"),
    [
        (["end_s", "start_s", "Begin"], ["start_s"]),
        (["Ende", "Beginn"], ["Beginn"]),
        (["x", "y"], ["x", "y"]),
    ],
    ids=["its own name", "a heading", "no heading tells"],
)
def test_columns_of_starts_are_told_by_their_headings(columns_of_times, starts):
    """Of some columns of times, those that may hold starts are looked for.

    A column that is called start_s comes before any other heading of starts. Where no heading tells, each of
    the columns may hold them.
    """
    assert _columns_of_starts(columns_of_times) == starts


def test_two_columns_of_the_same_few_words_of_no_codebook_are_levels_of_two_annotators(import_files):
    """Both columns say calm or tense. A third one, of other words, and a fourth, of one word, are neither's."""
    rows = ["a,0,1,calm,calm,indoors,x", "a,1,2,tense,calm,outdoors,x", "a,2,3,tense,tense,indoors,x"]
    table = "movie,start_s,end_s,first,second,place,done\n" + "".join(f"{row}\n" for row in rows)

    options = proposed_options(import_files, table)

    assert options["wide"] == ["first", "second"]
    assert options["words"].keys() == {"calm", "tense"}


@pytest.mark.parametrize(
    ("cells", "are_concepts"),
    [
        (["calm; red", "red; blue", "calm; blue"], True),
        (["a.mp4; b.mp4", "b.mp4; c.mp4", "a.mp4; c.mp4"], False),
        (["He looks at her face, then he leaves", "She walks to the old house, and he too"] * 2, False),
        (["00:01,00:05"] * 3, False),
    ],
    ids=["words", "files", "sentences", "one time"],
)
def test_lists_of_a_few_words_are_asked_for_as_concepts_and_other_lists_are_kept(
    import_files, cells, are_concepts
):
    """The column "parts" of a table may hold lists of a few words, which may be concepts: it is asked about.

    Files, sentences or times are kept as they are, without a question, and are no concepts of a clip.
    """
    rows = ["movie,start_s,end_s,level,parts"]
    for number, cell in enumerate(cells):
        level = "EN" if number == 0 else "S"
        rows.append(f'a,{number},{number + 1},{level},"{cell}"')
    table = "\n".join(rows)

    if are_concepts:
        assert proposed_options(import_files, table)["columns"] == {"concepts": ["parts"]}
    else:
        clips, _ = import_files({"t.csv": table})
        assert [clip.extras["parts"] for clip in clips] == cells
        assert all(clip.concepts == () for clip in clips)


def test_a_second_column_of_levels_beside_named_annotators_is_mentioned_with_its_option(import_files):
    """A table has a column of annotators, with Ann and Bob, and two columns of levels: "level" and "second".

    Where rows name their annotators, the columns do not stand for one each. So "level" is read, and a notice
    names the option that reads "second" in its place.
    """
    rows = "a,0,1,Ann,S,EN\na,0,1,Bob,EN,S\na,2,3,Ann,EN,EN\n"

    clips, notices = import_files({"t.csv": f"movie,start_s,end_s,annotator,level,second\n{rows}"})

    assert [clip.level for clip in clips] == ["S", "EN", "EN"]
    assert "--column level=second" in notices


@pytest.mark.parametrize("name", ["AB", "Ann B"])
def test_the_annotator_whom_a_row_above_the_table_names_is_proposed_for_all_rows(import_files, name):
    """Without, the clips would be of nobody, and cannot be compared with those of another annotator."""
    table = f"Annotator: {name}\n\nfilm;Beginn;Ende;Stufe\na;0;1;S\na;1;2;EN\n"

    options = proposed_options(import_files, table)
    clips, _ = import_files({"t.csv": table}, **options)

    assert options["annotator"] == name
    assert [(clip.annotator, clip.level) for clip in clips] == [(name, "S"), (name, "EN")]


@pytest.mark.parametrize(
    ("headings", "rows", "annotators"),
    [
        pytest.param(
            "x,y",
            ["calm,calm", "tense,tense", "loud,odd", "calm,calm", "tense,tense"],
            ["x", "y"],
            id="two of three words in common",
        ),
        pytest.param(
            "x,y",
            ["p,p", "q,q", "r,r", "t,t", "p,q"],
            ["x", "y"],
            id="as many words as the codebook has levels",
        ),
        pytest.param("x,y", ["calm,tense", "tense,calm", "calm,calm"], ["x", "y"], id="words are repeated"),
        pytest.param(
            "Level AB,Level CD", ["calm,a", "tense,b", "calm,a"], ["AB", "CD"], id="headed as levels"
        ),
        pytest.param(
            "Ann,Bob,agreed",
            ["S,EN,EN", "S,S,S", "EN,EN,EN"],
            ["Ann", "Bob"],
            id="beside what both agreed on",
        ),
        pytest.param("Ann,Bob,total", ["S,EN,EN", "S,S,S", "EN,EN,EN"], ["Ann", "Bob"], id="beside a sum"),
    ],
)
def test_columns_with_mostly_the_same_few_words_are_proposed_as_levels_by_annotators(
    import_files, headings, rows, annotators
):
    """A table is refused with the option that reads it, `--wide x,y`: a column of levels for each annotator.

    So are columns proposed of which each has more than half of its words in common with another, at least two
    and at most as many as the codebook has levels (four), some of them repeated. Headings such as "Level AB"
    name annotators by themselves, and those of results of several annotators, such as "agreed", none.
    """
    table = table_with_times(headings, rows)

    assert proposed_options(import_files, table)["wide"] == annotators


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            ["calm,calm", "tense,loud", "calm,calm", "tense,loud"], id="half of the words in common"
        ),
        pytest.param(
            ["p,p", "q,q", "r,r", "t,t", "u,u", "p,q"], id="more words than the codebook has levels"
        ),
        pytest.param(["calm,tense", "tense,calm"], id="no word is repeated"),
        pytest.param(["calm,calm", "calm,calm"], id="one word alone"),
    ],
)
def test_a_table_with_columns_that_need_not_be_levels_by_annotators_is_read_without_them(import_files, rows):
    """Levels by annotators are a few words (at most four here), mostly common to all columns, and repeated.

    The columns x and y are not like that, so nobody is asked about them: the clips are read, and have no
    level.
    """
    clips, _ = import_files({"t.csv": table_with_times("x,y", rows)})

    assert len(clips) == len(rows)
    assert all(clip.level is None for clip in clips)


def table_with_times(headings, rows):
    """Write a table of spans of film a, 0 to 1 s, 1 to 2 s, ..., with further columns."""
    lines = [f"a,{n},{n + 1},{row}" for n, row in enumerate(rows)]
    return "\n".join([f"movie,start_s,end_s,{headings}", *lines])
