# ruff: noqa: E501 - rows of files are kept as tools write them
"""Who said what of whom, in whose sight, where and when: what a file says is kept, said, or refused."""

import json

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.names import find_film, plain
from obygaze_features.manifest.spans.sources import SOURCES
from tests.manifest.spans.files import aligned, eaf, referring, tabbed, tier

SLOTS = {"t1": 1000, "t2": 5000}
ELAN = ["Tier", "Participant", "Begin Time - ss.msec", "End Time - ss.msec", "Annotation"]
BORIS = ["Observation id", "Media file name", "Subject", "Behavior", "Behavior type", "Start (s)", "Stop (s)"]
EVENTS = ["Observation id", "Media file name", "Subject", "Behavior", "Behavior type", "Time", "Comment"]
CUE = "00:00:01,000 --> 00:00:05,000"
SPAN = {"start": 1, "end": 5}


def boris(*rows, names=BORIS):
    return tabbed(names, *(["o", "a.mp4", *row] if len(row) < len(names) else row for row in rows))


def studio(*results, **note):
    return json.dumps([{"id": 1, "data": {"audio": "a.wav"}, "annotations": [{"result": results, **note}]}])


def labels(name, **more):
    return {"type": "labels", "value": {**SPAN, "labels": [name]}, **more}


def cvat(body):
    return f"<annotations><meta><task><source>a.mp4</source></task></meta>{body}</annotations>"


def track(number, label, more=""):
    shown = f'<attribute name="level">{label}</attribute>'
    return f'<track id="{number}" label="man" {more}><box frame="25" outside="0">{shown}</box><box frame="125" outside="1"/></track>'


# --- whose, and of whom
# ---------------------------------------------------------------------------
OF_TWO = {
    "BORIS, two subjects": boris(["Ann", "S", "STATE", "1", "5"], ["Bob", "EN", "STATE", "1", "5"], ["Ann", "Body", "STATE", "1", "5"]),
    "BORIS, two observations of a film": tabbed(BORIS, *([o, "a.mp4", "", b, "STATE", "1", "5"] for o, b in (("p", "S"), ("q", "EN"), ("p", "Body")))),
    "ELAN text, participants": tabbed(ELAN, ["level", "AB", "1", "5", "S"], ["level", "CD", "1", "5", "EN"], ["concepts", "AB", "1", "5", "Body"]),
    "ELAN text, annotators": tabbed([ELAN[0], "Annotator", *ELAN[2:]], ["level", "AB", "1", "5", "S"], ["level", "CD", "1", "5", "EN"], ["concepts", "AB", "1", "5", "Body"]),
    "EAF, participants": eaf(SLOTS, "".join(tier(f"human: {t}@{who}", aligned(v, "t1", "t2", v), f'ANNOTATOR="AB" PARTICIPANT="{who}"') for t, who, v in (("level", "Ann", "S"), ("level", "Bob", "EN"), ("concepts", "Ann", "Body"))), '<PROPERTY NAME="movie">a</PROPERTY>'),
    "ELAN text, names of tiers": tabbed(ELAN, ["level@AB", "", "1", "5", "S"], ["level@CD", "", "1", "5", "EN"], ["concepts@AB", "", "1", "5", "Body"]),
    "ELAN text without header": tabbed(["level", "AB", "1.0", "5.0", "S"], ["level", "CD", "1.0", "5.0", "EN"], ["x", "AB", "1.0", "5.0", "Body"]),
    "TextGrid": '"ooTextFile"\n"TextGrid"\n0 9 <exists> 3\n' + "".join(f'"IntervalTier" "{t}" 0 9 1 1 5 "{v}"\n' for t, v in (("l@AB", "S"), ("l@CD", "EN"), ("c@AB", "Body"))),
    "CVAT, two tracks": cvat(track(0, "S") + track(1, "EN") + track(0, "Body")),
}  # fmt: skip


@pytest.mark.parametrize("form", OF_TWO)
def test_what_is_said_by_or_of_one_is_not_given_to_another(read, form):
    clips, _ = read({"a.x": OF_TWO[form]})
    assert {clip.level: clip.concepts for clip in clips if clip.level} == {"S": ("Body",), "EN": ()}
    one, other = (
        (c.annotator, c.extras.get("subject"), c.extras.get("observation")) for c in clips if c.level
    )
    assert one != other


def test_nobody_in_focus_is_no_subject_that_keeps_apart(read):
    rows = ["No focal subject", "S", "STATE", "1", "5"], ["Ann", "Body", "STATE", "1", "5"]
    (clip,), _ = read({"a.tsv": boris(*rows)})
    assert (clip.level, clip.concepts) == ("S", ("Body",))


def test_the_comment_of_a_stop_is_kept(read):
    rows = ["", "S", "START", "1", "begins"], ["", "S", "STOP", "5", "ends"]
    (clip,), _ = read({"a.tsv": boris(*rows, names=EVENTS)})
    assert clip.extras["comment"] == "begins; ends"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.vtt", "WEBVTT\n\n00:01.000 --> 00:05.000\n<v.loud Ann>Hi</v>\n"),
        ("f.ass", "[Events]\nFormat: Start, End, Name, Text\nDialogue: 0:00:01.00,0:00:05.00,Ann,Hi\n"),
    ],
)
def test_who_speaks_is_kept(read, name, text):
    (clip,), _ = read({name: text})
    assert (clip.extras["text"], clip.extras["subject"]) == ("Hi", "Ann")


def test_fields_of_rttm_that_are_not_read_are_named(read):
    _, said = read({"a.rttm": "SPEAKER a 1 1 4 <NA> <NA> S 0.93 <NA>\n"})
    assert "confidence" in said
    assert "orthography" not in said


def test_columns_of_elan_that_are_not_read_are_named(read):
    _, said = read({"a.txt": tabbed([*ELAN, "Certainty"], ["level", "", "1", "5", "S", "low"])})
    assert "Certainty" in said


def test_tiers_of_texts_are_kept(read):
    tiers = "".join(f'"IntervalTier" "{name}" 0 9 1 1 5 "hi"\n' for name in ("Ann", "Bob"))
    clips, _ = read({"a.TextGrid": f'"ooTextFile"\n"TextGrid"\n0 9 <exists> 2\n{tiers}'})
    assert [clip.extras["tier"] for clip in clips] == ["Ann", "Bob"]


def test_a_tier_that_is_signed_by_another_than_its_name_says_is_noted(read):
    levels = tier("human: level@AB", aligned("a", "t1", "t2", "S"), 'ANNOTATOR="CD"')
    (clip,), said = read({"f.eaf": eaf(SLOTS, levels)}, movie="a")
    assert clip.annotator == "CD"
    assert "AB" in said


# --- one span, two labels
# ---------------------------------------------------------------------------
def twice(second):
    scene = tier("scene", aligned("a", "t1", "t2", "kiss"))
    return {
        "EAF, two tiers": (eaf(SLOTS, tier("x", aligned("a", "t1", "t2", "S")) + tier("y", aligned("b", "t1", "t2", second))), {"x": "levels", "y": "levels"}),
        "EAF, a subdivision": (eaf(SLOTS, scene + tier("x", referring("b", "a", "S") + referring("c", "a", second))), {"x": "levels"}),
        "RTTM": ("".join(f"SPEAKER a 1 1 4 <NA> <NA> {label} <NA> <NA>\n" for label in ("S", second)), {}),
        "Label Studio": (studio(labels("S"), labels(second)), {}),
        "ActivityNet": (json.dumps({"database": {"a": {"annotations": [{"segment": [1, 5], "label": n} for n in ("S", second)]}}}), {}),
    }  # fmt: skip


@pytest.mark.parametrize("form", twice("S"))
def test_a_label_that_is_there_twice_is_one_clip_and_two_that_differ_are_refused(read, form):
    options = {"movie": "a", "annotator": "AB"} if form.startswith("EAF") else {}
    content, tiers = twice("S")[form]
    clips, said = read({"a.x": content}, tiers=tiers, **options)
    assert [clip.level for clip in clips] == ["S"]
    assert "the same as" in said
    content, tiers = twice("EN")[form]
    with pytest.raises(ManifestError, match=r"a\.x: .*EN.*S"):
        read({"a.x": content}, tiers=tiers, **options)


def test_a_copy_of_a_file_adds_no_clip_and_lines_of_subtitles_stay(read):
    rttm = "SPEAKER a 1 1 4 <NA> <NA> S <NA> <NA>\nSPEAKER a 1 6 1 <NA> <NA> hi <NA> <NA>\n"
    clips, said = read({"a.rttm": rttm, "copy.rttm": rttm})
    assert len(clips) == 2
    assert "a.rttm" in said
    clips, _ = read({"b.srt": f"1\n{CUE}\nNo!\n\n2\n{CUE}\nNo!\n"})
    assert len(clips) == 2


def test_what_else_a_repeated_label_says_is_named_and_the_order_of_concepts_is_none(read):
    rows = [
        ["o", "a.mp4", "", b, "STATE", "1", "5", m] for b, m in (("S;Body;Look", "x"), ("S;Look;Body", "y"))
    ]
    (clip,), said = read({"a.tsv": tabbed([*BORIS, "Modifier #1"], *rows)})
    assert clip.concepts == ("Look", "Body")
    assert "but for modifiers" in said


def test_words_of_films_are_no_labels(read):
    clips, _ = read({"a.srt": f"1\n{CUE}\nSure\n\n2\n{CUE}\nLook\n"})
    assert [(c.level, c.concepts, c.extras["text"]) for c in clips] == [
        (None, (), "Sure"),
        (None, (), "Look"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        "FILM,START_MS,END_MS,SELECTOR_TYPE,ANNOTATION_BODY,Voc:Body\na,1000,5000,SEGMENT,S,1\n",
        json.dumps({"database": {"a": {"annotations": [{"segment": [1, 5], "label": ["Body", "S"]}]}}}),
    ],
)
def test_a_level_and_concepts_in_one_text_are_both_read(read, content):
    (clip,), _ = read({"a.x": content})
    assert (clip.level, clip.concepts) == ("S", ("Body",))


@pytest.mark.parametrize("other", ["mobygaze", "fights"])
def test_files_of_two_codebooks_are_refused(read, other):
    films = {}
    for name, book in (("a", "obygaze12"), ("b", other)):
        header = f'<PROPERTY NAME="codebook">{book}</PROPERTY><PROPERTY NAME="movie">{name}</PROPERTY>'
        films[f"{name}.eaf"] = eaf(SLOTS, tier("human: level@AB", aligned("a", "t1", "t2", "S")), header)
    with pytest.raises(ManifestError, match=rf"b\.eaf: .*{other}.*--codebook"):
        read(films)


# --- models
# ---------------------------------------------------------------------------
@pytest.mark.parametrize("body", [track(0, "S", 'source="auto"'), '<tag label="S" frame="3" source="auto"/>'])
def test_what_cvat_annotated_by_itself_is_no_label(read, body):
    clips, said = read({"a.xml": cvat(body)})
    assert not clips
    assert "model" in said


@pytest.mark.parametrize(
    "content", [studio(labels("S"), parent_prediction=3), studio(labels("S", origin="prediction"))]
)
def test_a_label_that_a_model_began_is_marked_as_made_in_its_sight(read, content):
    (clip,), _ = read({"a.json": content})
    assert clip.extras["seen_score"] == "1"


def test_what_nobody_marked_is_counted_and_notes_of_regions_are_kept(read):
    _, said = read({"a.json": studio()})
    assert "nothing is marked" in said
    (clip,), _ = read({"b.json": studio(labels("S", meta={"text": ["doubtful"]}))})
    assert clip.extras["comment"] == "doubtful"


# --- times
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "content",
    [
        "movie,segmentation_name,start_ms,end_ms,annotation_0\na,M,00:00:01.000,00:00:05.000,S\n",
        "movie,segmentation_name,start_frame,end_frame,annotation_0\na,M,00:00:01:00,00:00:05:00,S\n",
    ],
)
def test_a_clock_is_one_whatever_its_column_is_called(read, content):
    (clip,), _ = read({"a.csv": content})
    assert (clip.start_s, clip.end_s) == (1.0, 5.0)


def test_frames_of_another_rate_than_the_files_are_refused(read):
    value = {"framesCount": 240, "duration": 10, "labels": ["S"], "sequence": [{"frame": 1}]}
    content = studio({"type": "videorectangle", "value": value})
    with pytest.raises(ManifestError, match=r"a\.json.*24"):
        read({"a.json": content})
    assert read({"a.json": content}, rate=None)[0]


@pytest.mark.parametrize("last", [60, 100, 101])
def test_a_rectangle_that_is_drawn_until_the_last_frame_is_shown_once(read, last):
    value = {"framesCount": 100, "duration": 4, "labels": ["S"], "sequence": [{"frame": 1}, {"frame": last}]}
    (clip,), _ = read({"a.json": studio({"type": "videorectangle", "value": value})})
    assert (clip.start_s, clip.end_s) == (0, 4)


def test_rows_without_times_and_columns_of_labels_are_noted(read):
    table = "movie,start_s,end_s,level,Body\na,1,5,S,1\nTotal,,,,\n"
    _, said = read({"a.csv": table})
    assert "line 3" in said
    assert "Body" in said


@pytest.mark.parametrize("empty", ["NA", "nan", "NULL"])
def test_what_programs_write_for_no_value_is_said_where_it_becomes_a_name(read, empty):
    said = read({"a.csv": f"movie,start_s,end_s,annotator\n{empty},1,5,AB\nm,6,7,{empty}\n"})[1]
    assert f"movie {empty!r}" in said
    assert f"annotator {empty!r}" in said


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("a.vtt", "WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:10.000,MPEGTS:0\n\n00:01.000 --> 00:05.000\nx\n", "X-TIMESTAMP-MAP"),
        ("a.ass", "[Script Info]\nTimer: 50.0\n[Events]\nDialogue: 0,0:00:01.00,0:00:05.00,D,,0,0,0,,x\n", "Timer"),
    ],
)  # fmt: skip
def test_a_header_that_moves_times_is_noted(read, name, text, what):
    assert what in read({name: text})[1]


@pytest.mark.parametrize("start", ["10:00:01.000", "3600"])
def test_films_without_a_span_in_their_first_hour_are_named(read, start):
    table = f"movie,start_s,end_s\nb,10:30:00,10:31:00\nb,{start},11:00:00\na,1,2\na,3601,3602\n"
    note = next(note for note in read({"a.csv": table})[1].split("; ") if "first hour" in note)
    assert "b: " in note
    assert "a: " not in note


def test_pictures_of_their_own_are_no_frames(read):
    clips, said = read({"a.xml": cvat('<image id="0" name="x/1.jpg"><tag label="S"/></image>')})
    assert not clips
    assert "1.jpg" in said


# --- words
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((f"if <{name} and c> then", f"if <{name} and c> then") for name in ("b", "i", "u", "s", "p", "em", "strong", "font")),
        ("<font color='red' size=3>A</font> <b >B</b > <c.yellow>C</c> <br/>D<I>", "A B C D"),
        ("one<br>two", "one two"),
        ('<span style="x: y">A</span>', "A"),
    ],
)  # fmt: skip
def test_what_is_in_angles_is_a_tag_by_its_attributes_alone(read, text, expected):
    (clip,), _ = read({"a.srt": f"1\n{CUE}\n{text}\n"})
    assert clip.extras["text"] == expected


def test_braces_that_are_escaped_are_text(read):
    ass = "[Events]\nDialogue: 0,0:00:01.00,0:00:05.00,D,,0,0,0,,{\\i1}a \\{b\\} c\n"
    assert read({"a.ass": ass})[0][0].extras["text"] == "a {b} c"


@pytest.mark.parametrize(("beside", "is_said"), [("I am fine today", True), ("hi", False)])
def test_words_of_a_tier_of_other_texts_are_read_as_labels_and_said(read, beside, is_said):
    words = ["sure", *beside.split()]
    turns = "".join(f'{n} {n + 1} "{word}"\n' for n, word in enumerate(words))
    grid = f'"ooTextFile"\n"TextGrid"\n0 9 <exists> 1\n"IntervalTier" "words" 0 9 {len(words)}\n{turns}'
    assert ("tier 'words'" in read({"a.TextGrid": grid})[1]) == is_said


# --- names of films
# ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "movie"),
    [
        ("Dr. No.srt", "Dr. No"),
        ("Mr. Smith.1939.srt", "Mr. Smith.1939"),
        ("tt0000042.en.srt", "tt0000042"),
        ("Alien.pt-BR.forced.srt", "Alien"),
        ("rocky.iv.srt", "rocky.iv"),
        ("dr.no.srt", "dr.no"),
    ],
)
def test_a_film_is_named_by_the_whole_name_of_its_file_without_its_language(read, name, movie):
    (clip,), said = read({name: f"1\n{CUE}\nHi\n"})
    assert clip.movie == movie
    assert ("Alien" not in name) or ".pt-BR" in said


@pytest.mark.parametrize("column", ["movie", "video"])
def test_movies_of_one_id_are_said(read, column):
    names = ("tt0000042_AB", "tt0000042_scene_2", "tt00000421", "tt0000043")
    said = read({"a.csv": f"{column},start_s,end_s\n" + "".join(f"{name},1,5\n" for name in names)})[1]
    assert "2 movies begin with tt0000042 " in said
    assert "tt0000043 (" not in said


def test_a_film_that_an_export_does_not_name_is_said_to_be_named_by_its_file(read):
    task = {"id": 1, "data": {"text": "x"}, "annotations": [{"result": [labels("S")]}]}
    (clip,), said = read({"project-1.json": json.dumps([task])})
    assert clip.movie == "project-1"
    assert "film 'project-1'" in said
    assert "by the file's name" not in read({"a.srt": f"1\n{CUE}\nHi\n"})[1]


def test_times_without_a_name_and_a_length_are_said_to_be_begins_and_ends(read):
    rows = (["level", "AB", "1.0", "5.0", "S"], ["level", "AB", "6.0", "7.0", "EN"])
    assert "begins and ends" in read({"a.txt": tabbed(*rows)})[1]


def test_a_page_of_imdb_names_its_film(read):
    (clip,), _ = read({"a.csv": "movie,start_s,end_s\nhttps://www.imdb.com/title/tt0000042/?ref_=x,1,5\n"})
    assert clip.movie == "tt0000042"


def test_articles_behind_a_comma_are_in_front(read):
    assert plain("Matrix, The (1999)") == plain("The Matrix (1999)")
    assert plain("Avventura, L’ (1960)") == plain("L'Avventura (1960)")
    with pytest.raises(ManifestError, match="one name"):
        read({"a.csv": 'movie,start_s,end_s\n"Matrix, The",1,5\nThe Matrix,6,7\n'})


@pytest.mark.parametrize(
    "twin", ["Ocean’s_11 – A", "ocean`s 11 - a", "Ocean's 11 \u2011 A\u200b", "\ufeffOcean's  11 - A"]
)
def test_signs_that_programs_write_for_each_other_are_one(read, twin):
    assert plain(twin) == plain("Ocean's 11 - A")
    with pytest.raises(ManifestError, match="one name"):
        read({"a.csv": f"movie,start_s,end_s\nOcean's 11 - A,1,5\n{twin},6,7\n"})


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (json.dumps([{"id": n, "data": {"x": "y"}, "annotations": []} for n in (1, 2)]), "task 1"),
        (tabbed(BORIS, *([o, "NA", "", "S", "STATE", "1", "5"] for o in "pq")), "without media"),
        (cvat("").replace("</meta>", "<task><source>b.mp4</source></task></meta>"), "each task"),
    ],
)  # fmt: skip
def test_what_is_of_several_films_and_names_none_is_refused(read, content, what):
    with pytest.raises(ManifestError, match=rf"f\.x: .*{what}"):
        read({"f.x": content})


def test_a_number_that_is_an_id_and_a_title_is_refused():
    titles = {"tt0001917": "Other", "tt8579674": "1917"}
    with pytest.raises(ManifestError, match="2 films"):
        find_film("1917", titles, titles)


def test_videos_of_one_name_are_refused_and_films_without_one_are_said(read, tmp_path):
    for place in ("x/a.mp4", "y/a.mkv"):
        (tmp_path / "films" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "films" / place).write_bytes(b"x")
    with pytest.raises(ManifestError, match=r"x/a\.mp4"):
        read({"a.csv": "movie,start_s,end_s\na,1,5\n"}, videos=tmp_path / "films")
    _, said = read({"b.csv": "movie,start_s,end_s\nb,1,5\n"}, videos=tmp_path / "films")
    assert "missing on disk: b" in said


def test_numbers_name_films_and_lists_name_people(read):
    graph = {"movie": 42, "start_s": 1, "end_s": 5, "interactions": [{"from": "Ann", "what": "asks", "to": ["Bob", "Cid"], "when": 3}]}  # fmt: skip
    (clip,), said = read({"a.json": json.dumps({"moviegraphs": [graph]})})
    assert (clip.movie, clip.extras["text"]) == ("42", "Ann: asks: Bob, Cid")
    assert "when" in said


# --- answers of machines
# ---------------------------------------------------------------------------
ASKED = {"clip_id": "c0", "movie": "a", "start_s": 1, "end_s": 5, "model": "m"}
TABLE = "clip_id,movie,start_s,end_s,level,annotator\nc0,a,1,5,S,AB\n"


@pytest.mark.parametrize(
    "line",
    [
        json.dumps({**ASKED, "start_s": "00:00:01", "end_s": "00:00:05", "answers": {"level": "S"}}),
        json.dumps({**ASKED, "answers": {"level": "S", "level:S": "no"}}),
    ],
)
def test_an_answer_that_is_unclear_is_left_out(read, line):
    assert not read({"a.jsonl": line + "\n"})[0]


def test_a_question_twice_in_an_object_is_no_answer(read):
    good = json.dumps({**ASKED, "answers": {"level": "S"}})
    bad = good.replace('"c0"', '"c1"').replace('{"level": "S"}', '{"level": "S", "level": "EN"}')
    assert [clip.clip_id for clip in read({"a.jsonl": f"{good}\n{bad}\n"})[0]] == ["c0"]


def test_answers_about_clips_of_no_table_are_said(read):
    lines = "".join(
        json.dumps({**ASKED, "clip_id": c, "answers": {"level": "S"}}) + "\n" for c in ("c0", "c9")
    )
    assert "c9" in read({"t.csv": TABLE, "a.jsonl": lines}, annotator="vlm")[1]
    assert "c9" not in read({"a.jsonl": lines}, annotator="vlm")[1]


def test_an_error_of_a_server_costs_its_own_line_alone(read):
    good = json.dumps({**ASKED, "answers": {"level": "S"}})
    clips, said = read({"a.jsonl": f'{{"error": "overloaded"}}\n{good}\n'})
    assert len(clips) == 1
    assert "line 1" in said


@pytest.mark.parametrize(
    "content",
    [
        boris(["", "S", "STATE", "1.234", "5.240"]).replace("\t", ";"),
        "movie;segmentation_name;start_ms;end_ms\na;M;1.000;5.000\n",
        tabbed(ELAN, ["l", "", "1.234", "5.240", "S"]).replace("\t", ";"),
    ],
)
def test_tools_tables_that_a_spreadsheet_saved_may_have_thousands(read, content):
    with pytest.raises(ManifestError, match=r"a\.csv.*could be"):
        read({"a.csv": content})


@pytest.mark.parametrize("kind", SOURCES)
def test_a_file_that_is_no_text_is_refused_as_what_it_is(read, kind):
    with pytest.raises(ManifestError, match=r"a\.x: .*PNG picture"):
        read({"a.x": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR-->\n"}, kind=kind)


@pytest.mark.parametrize(
    "content",
    [
        "movie,start_s,end_s,text\na,1,5,go --> there\n",
        tabbed(["level", "", "1.0", "5.0", "4.0", "go --> there"]),
        tabbed([*BORIS, "Comment"], ["o", "a.mp4", "", "S", "STATE", "1", "5", "go --> there"]),
    ],
)
def test_an_arrow_in_a_cell_makes_no_subtitles(read, content):
    (clip,), _ = read({"a.x": content})
    assert "go --> there" in clip.extras.values()


def test_concepts_in_a_file_of_their_own_belong_to_the_levels_of_another(read):
    line = "SPEAKER a 1 {} 4 <NA> <NA> {} <NA> <NA>\n"
    levels, concepts = line.format(1, "S"), line.format(1, "Body") + line.format(9, "Look")
    for files in ({"l.rttm": levels, "c.rttm": concepts}, {"c.rttm": concepts, "l.rttm": levels}):
        clips, _ = read(files)
        assert {(clip.level, clip.concepts) for clip in clips} == {("S", ("Body",)), (None, ("Look",))}
