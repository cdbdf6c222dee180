# ruff: noqa: E501 - rows of files are kept as tools write them
"""Who said what of whom, in whose sight, where and when: what a file says is kept, said, or refused."""

import json
from fractions import Fraction
from typing import NamedTuple

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.identity import plain
from tests.manifest.spans.files import VIA_HEAD, alignable_annotation, eaf, ref_annotation, sheet, tier, tsv

SLOTS = {"t1": 1000, "t2": 5000}
ELAN = ["Tier", "Participant", "Begin Time - ss.msec", "End Time - ss.msec", "Annotation"]
BORIS = ["Observation id", "Media file name", "Subject", "Behavior", "Behavior type", "Start (s)", "Stop (s)"]
EVENTS = ["Observation id", "Media file name", "Subject", "Behavior", "Behavior type", "Time", "Comment"]
CUE = "00:00:01,000 --> 00:00:05,000"
SPAN = {"start": 1, "end": 5}
TABLE = "clip_id,movie,start_s,end_s,level,annotator\nc0,a,1,5,S,AB\n"


def boris(*rows, names=BORIS):
    """Write a table of BORIS of observation "o" of a.mp4; a row has the cells behind these two, or all."""
    return tsv(names, *(["o", "a.mp4", *row] if len(row) < len(names) else row for row in rows))


def studio(*results, **note):
    """Write an export of Label Studio with one task about a.wav, which has one annotation of these results."""
    return json.dumps([{"id": 1, "data": {"audio": "a.wav"}, "annotations": [{"result": results, **note}]}])


def labels(name, **more):
    """Write a result of Label Studio: a label from 1 to 5 s."""
    return {"type": "labels", "value": {**SPAN, "labels": [name]}, **more}


def cvat(body):
    """Write a document of CVAT about a.mp4 with these tracks."""
    return f"<annotations><meta><task><source>a.mp4</source></task></meta>{body}</annotations>"


def track(number, label, more="", attribute="level"):
    """Write a track of CVAT from frame 25 to 125, whose boxes have a label as the value of an attribute."""
    shown = f'<attribute name="{attribute}">{label}</attribute>'
    return f'<track id="{number}" label="man" {more}><box frame="25" outside="0">{shown}</box><box frame="125" outside="1"/></track>'


# --- whose, and of whom
# ---------------------------------------------------------------------------
LABELS_OF_TWO_SOURCES = {
    "BORIS, two subjects": boris(["Ann", "S", "STATE", "1", "5"], ["Bob", "EN", "STATE", "1", "5"], ["Ann", "Body", "STATE", "1", "5"]),
    "BORIS, two observations of a film": tsv(BORIS, *([o, "a.mp4", "", b, "STATE", "1", "5"] for o, b in (("p", "S"), ("q", "EN"), ("p", "Body")))),
    "ELAN text, participants": tsv(ELAN, ["level", "AB", "1", "5", "S"], ["level", "CD", "1", "5", "EN"], ["concepts", "AB", "1", "5", "Body"]),
    "ELAN text, annotators": tsv([ELAN[0], "Annotator", *ELAN[2:]], ["level", "AB", "1", "5", "S"], ["level", "CD", "1", "5", "EN"], ["concepts", "AB", "1", "5", "Body"]),
    "EAF, participants": eaf(SLOTS, "".join(tier(f"human: {t}@{who}", alignable_annotation(v, "t1", "t2", v), f'ANNOTATOR="AB" PARTICIPANT="{who}"') for t, who, v in (("level", "Ann", "S"), ("level", "Bob", "EN"), ("concepts", "Ann", "Body"))), '<PROPERTY NAME="movie">a</PROPERTY>'),
    "ELAN text, names of tiers": tsv(ELAN, ["level@AB", "", "1", "5", "S"], ["level@CD", "", "1", "5", "EN"], ["concepts@AB", "", "1", "5", "Body"]),
    "ELAN text without header": tsv(["level", "AB", "1.0", "5.0", "S"], ["level", "CD", "1.0", "5.0", "EN"], ["concepts", "AB", "1.0", "5.0", "Body"]),
    "TextGrid": '"ooTextFile"\n"TextGrid"\n0 9 <exists> 3\n' + "".join(f'"IntervalTier" "{t}" 0 9 1 1 5 "{v}"\n' for t, v in (("l@AB", "S"), ("l@CD", "EN"), ("concepts@AB", "Body"))),
    "CVAT, two tracks": cvat(track(0, "S") + track(1, "EN") + track(0, "Body", attribute="concepts")),
}  # fmt: skip


def source_of(clip):
    """By whom, of whom and in which observation a label is."""
    return clip.annotator, clip.extras.get("subject"), clip.extras.get("observation")


@pytest.mark.parametrize("content", LABELS_OF_TWO_SOURCES.values(), ids=LABELS_OF_TWO_SOURCES)
def test_labels_of_one_span_become_one_clip_only_if_they_are_of_one_person_subject_or_observation(
    import_files, content
):
    """A file has, of the span from 1 to 5 s, the labels S and Body of one source, and EN of another.

    In a table of BORIS, for example, S and Body are of the subject Ann, and EN of Bob; elsewhere sources are
    annotators, observations or tracks. S and Body are joined to one clip, and EN is a clip of its own, though
    all have the same times.
    """
    file_whose_format_is_told_by_its_content = {"a.x": content}

    clips, _ = import_files(file_whose_format_is_told_by_its_content)

    (clip_of_s,) = [clip for clip in clips if clip.level == "S"]
    (clip_of_en,) = [clip for clip in clips if clip.level == "EN"]
    assert clip_of_s.concepts == ("Body",)
    assert clip_of_en.concepts == ()
    assert source_of(clip_of_s) != source_of(clip_of_en)


# --- one span, two labels
# ---------------------------------------------------------------------------
KISS_SCENE = tier("scene", alignable_annotation("a", "t1", "t2", "kiss"))
OF_AB_IN_A = {"movie": "a", "annotator": "AB"}


def two_labels_of_one_span(first, second):
    """Files that give one span two levels, by how they say so: the content, and the options to read it."""
    return {
        "EAF, two tiers": (
            eaf(
                SLOTS,
                tier("x", alignable_annotation("a", "t1", "t2", first))
                + tier("y", alignable_annotation("b", "t1", "t2", second)),
            ),
            {"tiers": {"x": "levels", "y": "levels"}, **OF_AB_IN_A},
        ),
        "EAF, two of one annotation": (
            eaf(
                SLOTS,
                KISS_SCENE + tier("x", ref_annotation("b", "a", first) + ref_annotation("c", "a", second)),
            ),
            {"tiers": {"x": "levels"}, **OF_AB_IN_A},
        ),
        "RTTM": (
            "".join(f"SPEAKER a 1 1 4 <NA> <NA> {label} <NA> <NA>\n" for label in (first, second)),
            {"tiers": {"speaker": "levels"}},
        ),
        "Label Studio": (studio(labels(first), labels(second)), {"tiers": {"label": "levels"}}),
        "ActivityNet": (
            json.dumps(
                {
                    "database": {
                        "a": {"annotations": [{"segment": [1, 5], "label": n} for n in (first, second)]}
                    }
                }
            ),
            {"tiers": {"label": "levels"}},
        ),
    }


SAME_LABEL_TWICE = two_labels_of_one_span("S", "S")
LABELS_THAT_DIFFER = two_labels_of_one_span("S", "EN")


@pytest.mark.parametrize(("content", "options"), SAME_LABEL_TWICE.values(), ids=SAME_LABEL_TWICE)
def test_a_label_that_a_span_has_twice_is_one_clip(import_files, content, options):
    """The file gives one span the level S twice, as its tool can. The second says nothing new, and is noted."""
    clips, notices = import_files({"a.x": content}, **options)

    assert [clip.level for clip in clips] == ["S"]
    assert "the same as" in notices


@pytest.mark.parametrize(("content", "options"), LABELS_THAT_DIFFER.values(), ids=LABELS_THAT_DIFFER)
def test_a_span_of_two_levels_is_refused_with_both(import_files, content, options):
    """The file gives one span S and EN. A span has one level by one annotator, and nothing tells which is meant."""
    with pytest.raises(ManifestError, match=r"a\.x: .*EN.*S"):
        import_files({"a.x": content}, **options)


def document_with_codebook(movie, codebook):
    """Write a document of ELAN that names its film and its codebook, with a level S of AB."""
    header = f'<PROPERTY NAME="codebook">{codebook}</PROPERTY><PROPERTY NAME="movie">{movie}</PROPERTY>'
    return eaf(SLOTS, tier("human: level@AB", alignable_annotation("a", "t1", "t2", "S")), header)


@pytest.mark.parametrize("other_codebook", ["mobygaze", "fights"])
def test_files_of_two_codebooks_are_refused(import_files, other_codebook):
    """A manifest has one codebook. The error names the option that chooses it."""
    files = {
        "a.eaf": document_with_codebook("a", "obygaze12"),
        "b.eaf": document_with_codebook("b", other_codebook),
    }
    with pytest.raises(ManifestError, match=rf"b\.eaf: .*{other_codebook}.*--codebook"):
        import_files(files)


# --- what each record says
# ---------------------------------------------------------------------------
class Case(NamedTuple):
    """Files, the facts that their clips keep, and texts that are, or are not, in the import's messages."""

    files: dict
    options: dict
    n_clips: int
    facts: dict
    """The values of a field, one for each clip, by the field's name."""
    texts_of_messages: tuple
    texts_of_no_message: tuple


def expect_import(content, *notices, never=(), name="a.x", n=1, options=None, **facts):
    """Expect that a file, or files {name: content}, are imported as `n` clips with these facts.

    A fact is a field of a clip or a column of its extras: `level="S"` for every clip, or a list of a value
    for each clip. The import's messages contain each of `notices`, and none of `never`.
    """
    files = content if isinstance(content, dict) else {name: content}
    facts_by_clip = {}
    for field, value in facts.items():
        facts_by_clip[field] = value if isinstance(value, list) else [value] * n
    return Case(files, options or {}, n, facts_by_clip, notices, never)


def fact_of(clip, name):
    """A field of a clip, or what its extra column of this name holds."""
    return getattr(clip, name) if hasattr(clip, name) else clip.extras.get(name)


def srt(text):
    """Write a file of one subtitle, from 1 to 5 s."""
    return f"1\n{CUE}\n{text}\n"


def textgrid(*tiers):
    """Write a TextGrid: each tier is its name and its words, which last a second each from 0 s on."""
    blocks = []
    for name, *words in tiers:
        intervals = "".join(f'{n} {n + 1} "{word}"\n' for n, word in enumerate(words))
        blocks.append(f'"IntervalTier" "{name}" 0 9 {len(words)}\n{intervals}')
    return f'"ooTextFile"\n"TextGrid"\n0 9 <exists> {len(tiers)}\n{"".join(blocks)}'


def signed(url, annotator="AB"):
    """Write a document of ELAN of a medium, with the level S of an annotator."""
    media = f'<MEDIA_DESCRIPTOR MEDIA_URL="{url}"/>'
    return eaf(SLOTS, tier(f"human: level@{annotator}", alignable_annotation("a", "t1", "t2", "S")), media)


def rectangle(last):
    """Write a task of Label Studio about 100 frames in 4 s, with a rectangle S at frame 1 and a last one."""
    value = {"framesCount": 100, "duration": 4, "labels": ["S"], "sequence": [{"frame": 1}, {"frame": last}]}
    return studio({"type": "videorectangle", "value": value})


def table(*rows, head="movie,start_s,end_s"):
    return "".join(f"{row}\n" for row in (head, *rows))


def asked(*ids, **more):
    """Write the answers of the machine m about clips of film a, each of the level S from 1 to 5 s."""
    said = {"movie": "a", "start_s": 1, "end_s": 5, "model": "m", "answers": {"level": "S"}} | more
    return "".join(json.dumps({"clip_id": name, **said}) + "\n" for name in ids)


LATE = ("b,10:30:00,10:31:00", "b,{},11:00:00", "a,1,2", "a,3601,3602")
OF_ONE_ID = ("tt0000042_AB", "tt0000042_scene_2", "tt00000421", "tt0000043")
SHEETS = {
    "sep=;": "sep=;\nvideo;start_s;end_s;level\na.mp4;1,5;2,5;S\n",
    "empty columns": "video,start_s,end_s,level,,\na.mp4,1.5,2.5,S,,\n",
    "a title": "My fights\n\nvideo,start_s,end_s,level\na.mp4,1.5,2.5,S\n",
    "a heading with a comma": 'video;start_s;end_s;level;"a, b"\na.mp4;1,5;2,5;S;x\n',
    "cells too many": "video,start_s,end_s,level\na.mp4,1.5,2.5,S,,\n",
    "clock": 'video,start_s,end_s,level\na.mp4,"00:00:01,500",00:00:02.5,S\n',
    "time codes and a row of nothing": "video;start_s;end_s;level\r\na.mp4;00:00:01:12;00:00:02:12;S\r\n;;;\r\n",
    "tabs and UTF-16": "\ufeffvideo\tstart_s\tend_s\tlevel\r\na.mp4\t1,5\t2,5\tS\r\n".encode("utf-16-le"),
    "a file as movie": "movie,start_s,end_s,level\nC:\\films\\a.mp4,1.5,2.5,S\n",
    "cells of blanks": "video,start_s,end_s,level\na.mp4,1.5,2.5,S, ,\n , , , \n",
    "ids like numbers": "video,start_s,end_s,level,clip_id\na.mp4,1.5,2.5,S,NA\n",
}  # fmt: skip
KISS = "SPEAKER a 1 1 4 <NA> <NA> S <NA> <NA>\nSPEAKER a 1 6 1 <NA> <NA> hi <NA> <NA>\n"
GRAPH = {
    "movie": "tt1", "start_s": 3, "end_s": 40.5, "situation": "Sure", "scene": "bar", "characters": ["Ann", "Bob"],
    "interactions": [{"from": "Ann", "what": "asks", "to": "Bob"}, "smiles"],
}  # fmt: skip


def vian_keyword(cell):
    """Write a table of VIAN with a segment from 1 to 5 s, and this cell in the column of the keyword Body."""
    return f"FILM,START_MS,END_MS,SELECTOR_TYPE,Voc:Body\na,1000,5000,SEGMENT,{cell}\n"


def two_signed(first, second):
    """Two files of ELAN by two annotators, and the media that each names."""
    return {"x.eaf": signed(first), "y.eaf": signed(second, annotator="CD")}


def cue_of_digits(digits):
    """Write a subtitle in whose times these digits stand for the thousandths of a second."""
    return f"1\n{CUE.replace('000', digits)}\nhi\n"


ASKS = {"from": "Ann", "what": "asks", "to": ["Bob", "Cid"], "when": 3}
CASES = {
    "nobody in focus is no subject that keeps apart": expect_import(boris(["No focal subject", "S", "STATE", "1", "5"], ["Ann", "Body", "STATE", "1", "5"]), level="S", concepts=("Body",)),
    "the comment of a STOP": expect_import(boris(["", "S", "START", "1", "begins"], ["", "S", "STOP", "5", "ends"], names=EVENTS), comment="begins; ends"),
    "who speaks, WebVTT": expect_import("WEBVTT\n\n00:01.000 --> 00:05.000\n<v.loud Ann &amp; Bo>Hi</v>\n", text="Hi", subject="Ann & Bo"),
    "who speaks, ASS": expect_import("[Events]\nFormat: Start, End, Name, Text\nDialogue: 0:00:01.00,0:00:05.00,Ann,Hi\n", text="Hi", subject="Ann"),
    "fields of RTTM": expect_import("SPEAKER a 2 1 4 <NA> <NA> S 0.93 <NA>\n", "(channel, confidence)", never=("orthography",)),
    "columns of ELAN": expect_import(tsv([*ELAN, "Certainty", "Empty"], ["level", "", "1", "5", "S", "low", ""]), "1 column not read (Certainty)"),
    "a tier that is signed by another than its name says": expect_import(eaf(SLOTS, tier("human: level@AB", alignable_annotation("a", "t1", "t2", "S"), 'ANNOTATOR="CD"')), "AB", options={"movie": "a"}, annotator="CD"),
    "a level and concepts in one text, VIAN": expect_import("FILM,START_MS,END_MS,SELECTOR_TYPE,ANNOTATION_BODY,Voc:Body\na,1000,5000,SEGMENT,S,1\n", level="S", concepts=("Body",)),
    "a keyword 1.0, VIAN": expect_import(vian_keyword("1.0"), never=["keyword"], text="Body"),
    "a keyword 0, VIAN": expect_import(vian_keyword("0"), never=["keyword"], text=None),
    "a keyword True, VIAN": expect_import(vian_keyword("True"), "1 keyword not read (Voc:Body True)", text=None),
    "BORIS that names no offset": expect_import(boris(["", "S", "STATE", "1", "5"]), "no Time offset (s)", text="S"),
    "BORIS that names an offset of 0": expect_import(tsv([*BORIS, "Time offset (s)"], ["o", "a.mp4", "", "S", "STATE", "1", "5", "0.0"]), never=["offset"], text="S"),
    "two STARTs": expect_import(boris(*(["", "S", kind, time, ""] for kind, time in (("START", "0"), ("START", "1"), ("STOP", "5"))), names=EVENTS), "line 2: START without STOP", "no Source lists media", start_s=1, end_s=5),
    "a STOP without START": expect_import(boris(*(["", "S", kind, time, ""] for kind, time in (("START", "1"), ("STOP", "5"), ("STOP", "7"))), names=EVENTS), "line 4: STOP without START", start_s=1, end_s=5),
    "a POINT while a state goes on": expect_import(boris(*(["", "S", kind, time, ""] for kind, time in (("START", "1"), ("POINT", "3"), ("STOP", "5"))), names=EVENTS), "line 3", start_s=1, end_s=5),
    "a turn of nobody": expect_import("SPEAKER a 1 1 4 <NA> <NA> <NA> <NA> <NA>\n", text=None),
    "a turn of no length": expect_import("SPEAKER a 1 1 0 <NA> <NA> S <NA> <NA>\n", "it has no length", n=0),
    "a row of ELAN with a cell too many": expect_import(tsv(ELAN, ["level", "", "1", "5", "S"], ["level", "", "6", "7", "S", "x"]), "line 3: 6 cells where others have 5", start_s=1),
    "ELAN in a workbook": expect_import(sheet([ELAN, ["level", "", 1, 5, "S"]]), start_s=1, end_s=5, level="S"),
    **{f"ELAN in frames of {form}": expect_import(tsv(["Tier", f"Begin Time - hh:mm:ss:ff {form}", f"End Time - hh:mm:ss:ff {form}", "Annotation"], ["l", start, "00:00:05:00", "S"]), start_s=1.4, end_s=5, text="S", options={"rate": None}) for form, start in (("PAL", "00:00:01:10"), ("PAL-50fps", "00:00:01:20"))},
    "ELAN in Italian, with its file": expect_import(tsv([*(f"{name} - ss.msec" for name in ("Inizio", "Fine", "Durata")), "Annotazione", "Nome file"], ["1.0", "5.0", "4.0", "S", "b.eaf"]), "header in another language", movie="b", text="S"),
    "media of ELAN that begin later": expect_import(eaf(SLOTS, tier("human: level@AB", alignable_annotation("a", "t1", "t2", "S")), "".join(f'<MEDIA_DESCRIPTOR MEDIA_URL="{name}.mp4" TIME_ORIGIN="2000"/>' for name in "bc")), "'b.mp4' is taken as the film", "(TIME_ORIGIN), 2000 ms", options={"movie": "a"}, start_s=3, end_s=7),
    "a level and concepts in one text, ActivityNet": expect_import(json.dumps({"database": {"a": {"annotations": [{"segment": [1, 5], "label": ["Body", "S"]}]}}}), level="S", concepts=("Body",)),
    **{f"a segment of ActivityNet from {start} to {end} s of 5": expect_import(json.dumps({"database": {"a": {"duration": 5, "annotations": [{"segment": [1, 5], "label": "S"}, {"segment": [start, end], "label": "EN"}]}}}), said, n=n) for start, end, n, said in ((4, 6, 2, "cut at the end of its video, 5 s"), (5, 6, 1, "begins behind the end of its video, 5 s"))},
    "an element of CVAT of no kind that is known": expect_import(cvat("<skeletons/> stray"), "element skeletons: of a kind that is not read", "left out: 'stray'", n=0),
    "a frame of CVAT with shapes and a tag with a box that is ticked": expect_import(cvat('<image id="25" name="frame_000025"><box/><tag label="S"><attribute name="Body">true</attribute></tag></image>'), "image 25: shapes of single frames", start_s=1, end_s=1.04, level="S", concepts=("Body",), options={"tiers": {"label": "levels", "checkbox": "concepts"}}),
    "a tag of CVAT without its frame": expect_import(cvat('<tag label="S"/>'), "without the number of its frame", n=0),
    "a track that CVAT annotated by itself": expect_import(cvat(track(0, "S", 'source="auto"')), "model", n=0),
    "a tag that CVAT annotated by itself": expect_import(cvat('<tag label="S" frame="3" source="auto"/>'), "model", n=0),
    "a track, and a tag, that a model of CVAT helped to draw": expect_import(cvat(track(0, "S", 'source="semi-auto"') + '<tag label="S" frame="3" source="semi-auto"/>'), n=3, seen_score="1"),
    "a box that CVAT drew by itself": expect_import(cvat(track(0, "S", 'source="manual"').replace("<box", '<box source="auto"')), n=2, seen_score="1"),
    "a label that a model's prediction began": expect_import(studio(labels("S"), parent_prediction=3), seen_score="1"),
    "a label that was a prediction": expect_import(studio(labels("S", origin="prediction")), seen_score="1"),
    "whose a label is": expect_import(studio(labels("S"), completed_by={"email": "AB"}), annotator="AB"),
    "what was cancelled": expect_import(studio(labels("S"), was_cancelled=True), "cancelled", n=0),
    "labels of one region": expect_import(studio({"type": "labels", "value": {**SPAN, "labels": ["kiss", "hug"]}}), n=2, text=["kiss", "hug"]),
    "a film by a suffix that films seldom have": expect_import(studio(labels("S")).replace("audio", "video").replace("a.wav", "b.vid"), movie="b.vid"),
    "a key of a rectangle without its frame": expect_import(rectangle(last=None), "without a stretch of time", n=0),
    "what nobody marked": expect_import(studio(), "nothing is marked", n=0),
    "notes of regions": expect_import(studio(labels("S", meta={"text": ["doubtful"]})), comment="doubtful"),
    "a clock in a column of milliseconds": expect_import("movie,segmentation_name,start_ms,end_ms,annotation_0\na,M,00:00:01.000,00:00:05.000,S\n", start_s=1, end_s=5),
    "a clock in a column of frames": expect_import("movie,segmentation_name,start_frame,end_frame,annotation_0\na,M,00:00:01:00,00:00:05:00,S\n", start_s=1, end_s=5),
    **{f"a rectangle that is drawn until frame {last} of 100": expect_import(rectangle(last), start_s=0, end_s=4) for last in (60, 100, 101)},
    "rows without times, columns of labels": expect_import(table("a,1,5,S,1", "Total,,,,", head="movie,start_s,end_s,level,Body"), "line 3", "a sum", n=1, options={"columns": {"concepts": ["Body"]}}, concepts=("Body",)),
    **{f"{empty} for no value": expect_import(table(f"{empty},1,5,AB", f"m,6,7,{empty}", head="movie,start_s,end_s,annotator"), f"movie {empty!r}", f"annotator {empty!r}", n=2) for empty in ("NA", "nan", "NULL")},
    "a film NA, RTTM": expect_import("SPEAKER NA 1 1 4 <NA> <NA> S <NA> <NA>\n", "movie 'NA'"),
    "no film, RTTM": expect_import("SPEAKER <NA> 1 1 4 <NA> <NA> S <NA> <NA>\n", "film 'a'", movie="a", never=("taken as",)),
    "an annotator null, ELAN": expect_import(tsv([ELAN[0], "Annotator", *ELAN[2:]], ["l", "null", "1", "5", "S"]), "annotator 'null'"),
    "a header of WebVTT that moves times": expect_import("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:10.000,MPEGTS:0\n\n00:01.000 --> 00:05.000\nx\n", "X-TIMESTAMP-MAP"),
    **{f"a header of ASS, Timer: {speed}": expect_import(f"[Script Info]\nTimer: {speed}\n[Events]\nDialogue: 0,0:00:01.00,0:00:05.00,D,,0,0,0,,x\n", *words, never=never) for speed, words, never in (("50.0", ["Timer"], ()), ("100,0000", [], ("Timer",)))},
    **{f"a film whose first span is at {start}": expect_import(table(*LATE).format(start), "first hour (b: ", n=4, never=("a: 00",)) for start in ("10:00:01.000", "3600")},
    "pictures of their own": expect_import(cvat('<image id="0" name="x/1.jpg"><tag label="S"/></image>'), "1.jpg", n=0),
    **{f"<{name} and c>": expect_import(srt(f"if <{name} and c> then"), text=f"if <{name} and c> then") for name in ("b", "i", "u", "s", "p", "em", "strong", "font")},
    "tags": expect_import(srt("<font color='red' size=3>A</font> <b >B</b > <c.yellow>C</c> <br/>D<I>"), text="A B C D"),
    "a break": expect_import(srt("one<br>two"), text="one two"),
    "a tag with a colon": expect_import(srt('<span style="x: y">A</span>'), text="A"),
    "braces that are escaped": expect_import("[Events]\nDialogue: 0,0:00:01.00,0:00:05.00,D,,0,0,0,,{\\i1}a \\{b\\p1\\} c\n", text="a {b\\p1} c"),
    "a word of the codebook on a tier of others": expect_import(textgrid(("words", "sure", "I", "am", "fine", "today")), "'words': 1 of 5", "--tier words=labels", n=5, level=None),
    "a word of the codebook on a tier of few others": expect_import(textgrid(("words", "sure", "hi")), "'words': 1 of 2", n=2, level=None),
    **{f"the film of {name}": expect_import(srt("Hi"), *words, name=name, movie=movie) for name, movie, *words in (("Dr. No.srt", "Dr. No"), ("Mr. Smith.1939.srt", "Mr. Smith.1939"), ("tt0000042.x.srt", "tt0000042"), ("Alien.pt-BR.forced.srt", "Alien", ".pt-BR"), ("Alien.it.vtt", "Alien", ".it"), ("rocky.iv.srt", "rocky.iv"), ("dr.no.srt", "dr.no", "film 'dr.no'"), ("Say.It.srt", "Say.It"), *((f"film.{more}.srt", "film", f".{more}") for more in ("mp4", "mkv.en", "EN", "SDH", "es-419", "zh-Hant-TW.default", "fil", "eaf")))},
    **{f"the media {url}": expect_import(signed(url), movie=movie) for url, movie in (("file:///C:/films/Rocky #1.mp4", "Rocky #1"), ("./O Brother? 2000.mp4", "O Brother? 2000"), ("FILE:/f/Who? id=3.mp4", "Who? id=3"), ("file://srv/f/a%20b%23.mp4", "a b#"), ("https://x.example/a.mp4?b#c", "a"))},
    **{f"--movie {told}": expect_import(content, n=1, movie=movie, options={"movie": told}) for content in (textgrid(("a", "hi")), table("1,5", head="start_s,end_s"), table("b.mp4,1,5", head="video,start_s,end_s"), signed("b.mp4")) for told, movie in (("C:\\f\\tt0000042.mp4", "tt0000042"), ("https://www.imdb.com/title/tt0000042/fullcredits", "tt0000042"), ("\\\\srv\\s\\a.mkv", "a"), (" a  b", "a b"))},
    **{f"films {one} and {other}": expect_import({one: content, other: content.replace("hi", "you").replace("AB", "CD")}, *words, n=2, never=never) for one, other, content, words, never in (("x/a.TextGrid", "y/a.TextGrid", textgrid(("a", "hi")), ["1 movie named", "y/a)"], []), ("x/a.en.srt", "y/a.fr.srt", srt("hi"), ["1 movie named"], []), ("x/a.srt", "b.srt", srt("hi"), [], ["folders"]))},
    "media in folders of two films": expect_import(two_signed("file:///C:/f/a.mp4", "file:///D:/g/a.mp4"), "1 movie named", n=2, movie="a"),
    "media in one folder, written in two ways": expect_import(two_signed("file:///C:/F/a.mp4", "c:\\f\\a.mp4"), n=2, movie="a", never=["folders"]),
    "media of one name, picture and sound": expect_import(two_signed("a.mp4", "./f/a.wav"), n=2, movie="a", never=["folders"]),
    **{f"{column}s of one id": expect_import(table(*(f"{name},1,5" for name in OF_ONE_ID), head=f"{column},start_s,end_s"), "2 movies begin with tt0000042 ", n=4, never=("tt0000043 (",)) for column in ("movie", "video")},
    "a film that an export does not name": expect_import(json.dumps([{"id": 1, "data": {"text": "x"}, "annotations": [{"result": [labels("S")]}]}]), "film 'project-1'", name="project-1.json", movie="project-1"),
    "a film that subtitles are of": expect_import(srt("Hi"), never=("by the file's name",)),
    "what VIA says of its film and attribute": expect_import(VIA_HEAD.replace("level", "note") + '"1_b","[""b.mp4""]",0,"[1,5]","[]","{""1"":""hi""}"\n', movie="b", text="hi", tier="note"),
    "a text of VIA with a comma": expect_import(VIA_HEAD + '"1_b","[""b.mp4""]",0,"[1,5]","[]","{""3"":""well, yes""}"\n', text="well, yes"),
    "a page of IMDb": expect_import(table("https://www.imdb.com/title/tt0000042/?ref_=x,1,5"), movie="tt0000042"),
    "a number for a film, a list of people": expect_import(json.dumps({"moviegraphs": [{"movie": 42, "start_s": 1, "end_s": 5, "mood": "x", "interactions": [ASKS]}]}), "2 keys not read (mood, when of interactions)", movie="42", text="Ann: asks: Bob, Cid"),
    "an answer about a clip of no table": expect_import({"t.csv": TABLE, "a.jsonl": asked("c0", "c9")}, "c9", n=3, options={"annotator": "vlm"}),
    "answers without a table": expect_import(asked("c0", "c9"), never=("c9",), n=2, options={"annotator": "vlm"}),
    "an error of a server": expect_import('{"error": "overloaded"}\n' + asked("c0"), "line 1"),
    "an arrow in a cell": expect_import(table("a,1,5,go --> there", head="movie,start_s,end_s,text"), text="go --> there"),
    "an arrow in a cell of ELAN": expect_import(tsv(["words", "", "1.0", "5.0", "4.0", "go --> there"]), text="go --> there"),
    "an arrow in a cell of BORIS": expect_import(tsv([*BORIS, "Comment"], ["o", "a.mp4", "", "S", "STATE", "1", "5", "go --> there"]), comment="go --> there"),
    "an answer whose times are a clock": expect_import(asked("c0", start_s="00:00:01", end_s="00:00:05"), n=0),
    "a level that is named and denied": expect_import(asked("c0", answers={"level": "S", "level:S": "no"}), n=0),
    "a question twice in an object": expect_import(asked("c0") + asked("c1").replace('{"level": "S"}', '{"level": "S", "level": "EN"}'), clip_id="c0"),
    "a tier of texts": expect_import(textgrid(("Ann", "hi")), text="hi", tier="Ann"),
    **{f"a spreadsheet's form: {form}": expect_import(content, movie="a", start_s=1.5, end_s=2.5, level="S", never=("whole films",), options={"rate": Fraction(24)}) for form, content in SHEETS.items()},
    "thousands of Germany": expect_import("video;start_s;end_s;level\na.mp4;999,5;1000,5;S\n", start_s=999.5, end_s=1000.5),
    "thousands of America": expect_import('video,start_s,end_s,level\na.mp4,"1,234.5","1,280",S\n', start_s=1234.5, end_s=1280.0),
    "a copy of a file": expect_import({"a.rttm": KISS, "copy.rttm": KISS}, "a.rttm", n=2),
    "the same words twice at one time": expect_import(f"1\n{CUE}\nNo!\n\n2\n{CUE}\nNo!\n", n=2),
    "what else a repeated label says, concepts in any order": expect_import(tsv([*BORIS, "Modifier #1"], *(["o", "a.mp4", "", label, "STATE", "1", "5", modifier] for label, modifier in (("S;Body;Look;", "x"), ("S;Look;Body", "y")))), "but for modifiers", concepts=("Look", "Body")),
    "words of films": expect_import(f"1\n{CUE}\nSure\n\n2\n{CUE}\nLook\n", n=2, level=None, concepts=(), text=["Sure", "Look"]),
    "all texts of a graph": expect_import(json.dumps({"moviegraphs": [GRAPH]}), n=6, movie="tt1", start_s=3.0, end_s=40.5, tier=["situation", "scene", "character", "character", "interaction", "interaction"], text=["Sure", "bar", "Ann", "Bob", "Ann: asks: Bob", "smiles"]),
    "one text of a graph as the level": expect_import(json.dumps({"moviegraphs": [GRAPH]}), level="S", tier="situation", options={"tiers": {"situation": "levels"}}),
    "letters of a wrong encoding that are controls": expect_import("1\n00:00:01,000 --> 00:00:05,000\n\x9cuvre\n", "U+0080 to U+009F", text="uvre"),
    "a NUL in a table of a tool": expect_import(boris(["", "S\0", "STATE", "1", "5"]), "NUL left out", text="S"),
    **{f"a file on the disk of Label Studio {place}": expect_import(studio(labels("S")).replace("a.wav", f"/data/local-files/?d={place}"), movie="a b") for place in ("a%20b.wav", "x%5Ca%20b.wav", "x/a%20b.wav")},
    "times below a second alone": expect_import(table("a,0.25,0.75"), "first second"),
    "a turn in the first second": expect_import("SPEAKER a 1 0.25 0.5 <NA> <NA> S <NA> <NA>\n", never=("first second",)),
    "a tier that is not there": expect_import(textgrid(("gaze", "S")), "no tier 'gaez' is there (did you mean 'gaze'?)", n=0, options={"tiers": {"gaez": "levels"}}),
    "a tier that is there": expect_import(textgrid(("gaze", "S")), never=("no tier",), level="S", options={"tiers": {"Gaze ": "levels"}}),
    "whether the score was in sight, between blanks": expect_import("movie,start_s,end_s,level,annotator,seen_score\na,1,5,S,AB, 0 \n", seen_score="0"),
    "whether the score was in sight, as data frames write it": expect_import("movie,start_s,end_s,level,annotator,seen_score\na,1,5,S,AB,1.0\n", seen_score="1"),
    "tiers of texts": expect_import(textgrid(("Ann", "hi"), ("Bob", "hi")), n=2, text="hi", tier=["Ann", "Bob"]),
    "subtitles in frames": expect_import("1\n00:00:01:12 --> 00:00:05:00\nHi\n", start_s=1.48, end_s=5.0),
    **{f"subtitles in frames without their rate {sign}": expect_import(f"1\n00:00:01{sign}12 --> 00:00:05{sign}00\nHi\n", "--rate", n=0, options={"rate": None}) for sign in ":;"},
    **{f"subtitles in drop frame {sign}": expect_import(f"1\n00{sign}00{sign}01;12 --> 00{sign}01{sign}00;02\nHi\n", start_s=1.4014, end_s=60.06, options={"rate": Fraction(30000, 1001)}) for sign in ":;"},
    "blanks that end no cue": expect_import("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:900000\n\n00:01.000 --> 00:05.000\n \nhello\n", "X-TIMESTAMP-MAP", text="hello"),
    "lines of another encoding": expect_import(b"".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},500\n{word}\n\n".encode(encoding) for n, (word, encoding) in enumerate([*[("Déjà", "utf-8")] * 3, ("café", "cp1252")], start=1)), "line 15", n=4, text=[*["Déjà"] * 3, "café"]),
    "a text beside concepts at its times": expect_import(studio(labels("Body", from_name="concepts"), {"type": "textarea", "value": {**SPAN, "text": ["a note"]}}, {"type": "rating", "value": {**SPAN, "rating": 4}}), n=3, concepts=[(), (), ("Body",)], text=["a note", "4", ""]),
    "a text beside a level and concepts": expect_import(tsv(*([tier, "", "1.0", "5.0", "4.0", text] for tier, text in (("level", "S"), ("note", "hi"), ("concept", "Body")))), n=2, level=["S", None], concepts=[("Body",), ()]),
    "every line of events of ASS": expect_import("[Script Info]\n[Events]\n; a remark\n" + "".join(f"{kind}: 0,0:00:01.00,0:00:05.00,Default,,0,0,0,,x\n" for kind in ("Dialogue", "Picture", "Sound", "Movie", "Dia}ogue", "")), "1 of 6 spans", "1 more left out", "a picture", "a sound", "a dia}ogue", "a line of no kind"),
    "a dialogue among the fonts of ASS": expect_import("[Events]\nDialogue: 0,0:00:01.00,0:00:05.00,D,,0,0,0,,x\n[Fonts]\nDialogue: 0,0:00:06.00,0:00:07.00,D,,0,0,0,,y\n", "line 4: in [fonts]", text="x"),
    **{f"a block of SRT without times {block!r}": expect_import(f"2\n00:00:02,000 --> 00:00:02,500\nhi\n\n{block}\n\n4\n00:00:04,000 --> 00:00:04,500\nhi\n", "line 5: text without times", never=("empty line",), n=2, text="hi") for block in ("3\nyou", "3\n00:00:06,000 :07,000\nyou", "3\n\nyou")},
    "a block of SRT without times, blank lines below numbers": expect_import("2\n\n00:00:02,000 --> 00:00:02,500\nhi\n\n3\nyou\n\n4\n\n00:00:04,000 --> 00:00:04,500\nhi\n", "2 of 3 spans", "line 6: text without times", never=("empty line",), n=2, text="hi"),
    "a block of SRT without times below one without a text": expect_import("1\n00:00:02,000 --> 00:00:02,500\n\n2\nyou\n\n3\n00:00:04,000 --> 00:00:04,500\nhi\n", "line 2: no text", "line 4: text without times", n=1, text="hi"),
    "a line above the name of a cue of WebVTT": expect_import(f"WEBVTT\n\nyou\n1\n{CUE.replace(',', '.')}\nhi\n", "line 3: text without times", n=1, text="hi"),
    **{f"a number of SRT, {number!r}": expect_import(f"5\n{CUE}\nhi{number}00:00:06,000 --> 00:00:07,000\nyou\n", n=2, text=["hi", "you"]) for number in ("\n\n6\n\n", "\n6\n")},
    "5 digits of milliseconds": expect_import(cue_of_digits("5"), "line 2: digits of", start_s=1.005),
    "50 digits of milliseconds": expect_import(cue_of_digits("50"), "line 2: digits of", start_s=1.05),
    "500 digits of milliseconds": expect_import(cue_of_digits("500"), start_s=1.5, never=["digits of"]),
    "a place of WebVTT in hundredths": expect_import(f"WEBVTT\n\n{CUE.replace(',', '.')} line:84.66%\nhi\n", never=("digits of",)),
    "words behind the times of SRT": expect_import(f"1\n{CUE} Ann\nhi\n", text="Ann hi", never=("setting",)),
    "words behind the times of WebVTT": expect_import(f"WEBVTT\n\n{CUE.replace(',', '.')} two words\nhi\n", "1 setting not read (two words)", text="hi"),
    "a comment of WebVTT with a line of blanks": expect_import(f"WEBVTT\n\nNOTE a\n \nb\n\n{CUE.replace(',', '.')}\nhi\n", "1 of 1 span"),
    "a text of SRT with an empty line": expect_import("1\n00:00:01,000 --> 00:00:05,000\nCount:\n\n2\n\n2\n00:00:06,000 --> 00:00:07,000\nyou\n", "empty line", n=2, text=["Count: 2", "you"]),
    "a row above the header of a tool": expect_import("My fights,,\n" + "segmentation_name,start_ms,end_ms\nM,1000,5000\n", "1 row above the header"),
    "times without a name and a length": expect_import(tsv(["level", "AB", "1.0", "5.0", "S"], ["level", "AB", "6.0", "7.0", "EN"]), "begins and ends", n=2),
    "a line above the annotations of ELAN": expect_import("damaged\n" + tsv(["level", "", "00:00:01.000", "00:00:05.000", "00:00:04.000", "S"]), "1 line above"),
    "what a model wrote": expect_import("".join(f"SPEAKER a 1 1 4 <NA> <NA> {label} <NA> <NA>\n" for label in ("S", "obygaze:_segments")), "1 of 2 spans", "of a model", text="S", seen_score="1"),
    "a turn of a thousandth": expect_import("SPEAKER a 1 1 0.001 <NA> <NA> S <NA> <NA>\n", "shorter than a frame", n=0),
    "concepts below a tier that is not read": expect_import(eaf(SLOTS, tier("scene", alignable_annotation("a", "t1", "t2", "kiss")) + tier("x", ref_annotation("b", "a", "Body"))), concepts=("Body",), options={"movie": "a", "annotator": "AB", "tiers": {"x": "concepts"}}),
    "what is new in a copy": expect_import({"a.rttm": KISS, "copy.rttm": KISS.replace("hi", "ho")}, "a.rttm", n=3),
    "a folder of one video, and a row without": expect_import("video,movie,start_s,end_s\nx/a.mp4,,1,5\n,x,6,7\n", n=2, movie="x", never=("videos are taken",)),
    "media of a film in two folders": expect_import(tsv(BORIS, *([o, f"{o}/a.mp4", "", "S", "STATE", "1", "5"] for o in "pq")), n=2, movie="m", options={"movie": "m"}),
    "films in a folder, and in one each": expect_import("video,start_s,end_s\nC:\\f\\a.mp4,1,5\nC:\\f\\b.mp4,1,5\n", n=2, never=("folders",)),
    "films in folders of their own": expect_import("video,start_s,end_s\n/f/x/a.mp4,1,5\n/f/y/b.mp4,1,5\n", n=2, never=("folders",)),
    "a film in folders": expect_import("video,start_s,end_s\nm/x/a.mp4,1,5\nm/y/a.mp4,1,5\n", n=2, movie="m"),
    "a late span of a film whose length is known": expect_import("video,start_s,end_s\na.mp4,3601,3602\n", never=("first hour",), options={"length_of": lambda _: 7200.0}),
    "modifiers and comments of BORIS": expect_import(tsv(["Observation id", "observer", "Media file", "Behavior", "Modifiers", "Behavior type", "Start (s)", "Stop (s)", "Comment start"], ["o", "AB", "f.mp4", "Look", "man|close", "STATE", "1", "2", "unsure"], ["o", "AB", "f.mp4", "Look", "", "STATE", "3", "4", ""]), "observer", n=2, modifiers=["man|close", ""], comment=["unsure", ""]),
    "keys of ActivityNet": expect_import(json.dumps({"database": {"v": {"annotations": [{"segment": [1, 2], "sentence": "x"}, {"segment": [1, 2], "label": "S", "score": 1}]}}}), "(sentence, score)"),
    "a sound file and its stem": expect_import("".join(f"SPEAKER {film} 1 1 1 <NA> <NA> Ann <NA> <NA>\n" for film in ("sounds/film0.wav", "film0")), n=2, movie="film0"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_whatever_a_record_of_a_file_says_is_in_its_clip_or_in_a_message(import_files, case):
    """Nothing that a file says may be lost silently: a case is a file in a form that tools write.

    In one, a table of BORIS has a comment "begins" beside the START of an event, and "ends" beside its STOP:
    the clip must have the comment "begins; ends". In another, ELAN's table has a column "Certainty", and a
    message must say that it is not read. A case has the number of clips, the facts that they keep, {field:
    its value in each clip}, and texts that must, or must never, be in the messages of the import.
    """
    clips, messages = import_files(case.files, **case.options)

    assert len(clips) == case.n_clips
    for field, values in case.facts.items():
        assert [fact_of(clip, field) for clip in clips] == values, field
    for text in case.texts_of_messages:
        assert text in messages
    for text in case.texts_of_no_message:
        assert text not in messages


def test_a_movie_that_can_be_no_name_is_refused_as_the_option(import_files):
    """The user gives the name of the film by the option --movie. With a slash it is no name."""
    with pytest.raises(ManifestError, match="--movie"):
        import_files({"a.csv": "start_s,end_s\n1,5\n"}, movie="../a")


def task_of_24_frames_a_second():
    """Write a task of Label Studio about a video of 240 frames in 10 s."""
    value = {"framesCount": 240, "duration": 10, "labels": ["S"], "sequence": [{"frame": 1}]}
    return studio({"type": "videorectangle", "value": value})


def test_a_file_that_says_its_rate_of_frames_needs_no_other(import_files):
    """The file counts frames. It says that there are 240 in 10 s, or 24 per second; the user says nothing."""
    clips, _ = import_files({"a.json": task_of_24_frames_a_second()}, rate=None)
    assert clips


def test_another_rate_of_frames_than_the_files_is_refused(import_files):
    """The file has 240 frames in 10 s, which are 24 per second, where the user says 25."""
    with pytest.raises(ManifestError, match=r"a\.json.*24"):
        import_files({"a.json": task_of_24_frames_a_second()}, rate=Fraction(25))


# --- names of films
# ---------------------------------------------------------------------------
def test_a_table_of_a_title_with_its_article_in_two_places_is_refused(import_files):
    """In a catalogue "Matrix, The" is "The Matrix". As two films, one could be trained on and one tested."""
    with pytest.raises(ManifestError, match="one name"):
        import_files({"a.csv": 'movie,start_s,end_s\n"Matrix, The",1,5\nThe Matrix,6,7\n'})


@pytest.mark.parametrize(
    "twin",
    ["Ocean’s_11 – A", "ocean`s 11 - a", "Ocean's 11 \u2011 A\u200b", "\ufeffOcean's  11 - A"],
    ids=["curly quote, en dash", "backquote", "hard hyphen, zero-width space", "byte order mark"],
)
def test_names_that_differ_only_in_quotes_dashes_and_blanks_are_one_film(import_files, twin):
    """A table that has both is refused: they would be two films. Names are one if their plain forms are."""
    table_of_both = f"movie,start_s,end_s\nOcean's 11 - A,1,5\n{twin},6,7\n"

    assert plain(twin) == plain("Ocean's 11 - A")
    with pytest.raises(ManifestError, match="one name"):
        import_files({"a.csv": table_of_both})


TWO_TASKS_WITHOUT_FILMS = json.dumps([{"id": n, "data": {"x": "y"}, "annotations": []} for n in (1, 2)])
TWO_OBSERVATIONS_WITHOUT_MEDIA = tsv(
    BORIS, ["p", "NA", "", "S", "STATE", "1", "5"], ["q", "NA", "", "S", "STATE", "1", "5"]
)
TWO_TASKS_OF_CVAT = cvat("").replace("</meta>", "<task><source>b.mp4</source></task></meta>")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (TWO_TASKS_WITHOUT_FILMS, "task 1"),
        (TWO_OBSERVATIONS_WITHOUT_MEDIA, "without media"),
        (TWO_TASKS_OF_CVAT, "each task"),
    ],
    ids=["Label Studio", "BORIS", "CVAT"],
)
def test_a_file_of_several_films_whose_records_name_none_is_refused(import_files, content, what):
    """A file of a tool has two tasks, or two observations, and none of them names its film.

    As they may be of different films, all of them cannot be taken as of the film f, after the file's name.
    """
    with pytest.raises(ManifestError, match=rf"f\.x: .*{what}"):
        import_files({"f.x": content})


@pytest.mark.parametrize(
    ("table", "notice"),
    [
        ("video,start_s,end_s\nx/a.mp4,1,5\nx/b.mp4,1,5\n", "all 2 videos are taken as of one"),
        ("movie,start_s,end_s\na,0,5400000\n", "milliseconds"),
        (
            "video,start_s,end_s\nC:\\f\\x\\1.mp4,1,5\nC:\\f\\x\\2.mp4,1,5\nC:\\f\\y\\3.mp4,1,5\n",
            "videos of 2 folders",
        ),
    ],
    ids=["videos in a folder of one film", "times in milliseconds", "a folder of each film"],
)
def test_a_table_that_may_be_meant_otherwise_is_read_with_a_notice(import_files, table, notice):
    """A table is read as it most likely is meant, and a notice says what was taken for granted.

    Two videos in a folder are taken as parts of one film, and videos of two folders as of two. An end of
    5,400,000 s would be of a film of 62 days: are these milliseconds?
    """
    _, notices = import_files({"a.csv": table})
    assert notice in notices


def test_what_follows_a_dot_belongs_to_a_films_name(import_files, tmp_path):
    """Psycho.1998 is another film than Psycho. What follows the dot is no suffix of a file.

    There are videos of these two, and none of Psycho.II.
    """
    (tmp_path / "Psycho.mkv").write_bytes(b"x")
    (tmp_path / "Psycho.1998.mkv").write_bytes(b"x")
    table = "movie,start_s,end_s\nPsycho,1,5\nPsycho.1998,1,5\nPsycho.II,1,5\n"

    clips, notices = import_files({"a.csv": table}, videos=tmp_path)

    assert [clip.video for clip in clips] == ["Psycho.mkv", "Psycho.1998.mkv", ""]
    assert "missing on disk: Psycho.II" in notices


@pytest.fixture
def two_videos(tmp_path):
    """A folder with the videos x/a.mp4 and y/a.mkv, of one name."""
    videos = tmp_path / "films"
    for place in ("x/a.mp4", "y/a.mkv"):
        (videos / place).parent.mkdir(parents=True)
        (videos / place).write_bytes(b"x")
    return videos


def test_a_film_of_two_videos_of_its_name_is_refused(import_files, two_videos):
    """The folder of videos has x/a.mp4 and y/a.mkv, and the table names the film a."""
    with pytest.raises(ManifestError, match=r"x/a\.mp4"):
        import_files({"a.csv": "movie,start_s,end_s\na,1,5\n"}, videos=two_videos)


def test_two_documents_whose_videos_have_one_name_are_refused(import_files, two_videos):
    """One document of ELAN is of x/a.mp4, and one of y/a.mkv: both would be of film a.

    They have a level each, of AB and of CD, for the same time. Were these taken as of one film, two people
    would seem to agree on it.
    """
    documents = {"x.eaf": signed("x/a.mp4", annotator="AB"), "y.eaf": signed("y/a.mkv", annotator="CD")}
    with pytest.raises(ManifestError, match=r"y\.eaf: .*both be movie"):
        import_files(documents, videos=two_videos)


def test_a_film_without_a_video_is_noted(import_files, two_videos):
    """The folder of videos has x/a.mp4 and y/a.mkv, and the table names the film b."""
    _, notices = import_files({"b.csv": "movie,start_s,end_s\nb,1,5\n"}, videos=two_videos)
    assert "missing on disk: b\n" in notices


def test_videos_of_one_name_are_told_apart_by_folders_in_a_table(import_files, two_videos):
    """The folder of videos, `films`, has x/a.mp4 and y/a.mkv. Their films are called x and y."""
    table = "video,start_s,end_s\nx/a.mp4,1,5\ny/a.mkv,1,5\n"

    clips, _ = import_files({"c.csv": table}, videos=two_videos)

    assert [(clip.movie, clip.video) for clip in clips] == [("x", "films/x/a.mp4"), ("y", "films/y/a.mkv")]


@pytest.mark.parametrize(
    "content",
    [
        boris(["", "S", "STATE", "1.234", "5.240"]).replace("\t", ";"),
        "movie;segmentation_name;start_ms;end_ms\na;M;1.000;5.000\n",
        tsv(ELAN, ["l", "", "1.234", "5.240", "S"]).replace("\t", ";"),
    ],
    ids=["BORIS", "VIAN", "ELAN"],
)
def test_times_whose_point_may_mean_thousands_are_refused(import_files, content):
    """A spreadsheet in German separates by semicolons, and writes 1.234 for 1234."""
    with pytest.raises(ManifestError, match=r"a\.csv.*could be"):
        import_files({"a.csv": content})


@pytest.mark.parametrize("kind", ["", "srt", "table", "eaf"])
def test_a_picture_is_refused_as_a_picture_whatever_kind_is_asked_for(import_files, kind):
    """The picture has an arrow -->, by which subtitles are told among texts."""
    picture_with_arrow = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR-->\n"
    with pytest.raises(ManifestError, match=r"a\.x: .*PNG picture"):
        import_files({"a.x": picture_with_arrow}, kind=kind)


@pytest.mark.parametrize(
    "document", ['{"results":{"a":[{"segment":[1,5]}]}}', '{"a":{}}', '{"database":null}', "[]"]
)
def test_json_without_annotated_videos_is_no_activitynet_database(import_files, document):
    """Such a database is {"database": {video: {"annotations": [...]}}}, or what is in it."""
    with pytest.raises(ManifestError, match=r"a\.json: not a database"):
        import_files({"a.json": document}, kind="activitynet")


def test_concepts_in_a_file_of_their_own_belong_to_the_levels_of_another(import_files):
    """Body lasts from 0 to 1 s, as the level S in the other file does, so it belongs to that clip.

    Look, from 1 to 2 s, is a clip of its own. The order of the files does not matter.
    """
    levels = textgrid(("level", "S", ""))
    concepts = textgrid(("concepts", "Body", "Look"))
    for files in ({"l.x": levels, "c.x": concepts}, {"c.x": concepts, "l.x": levels}):
        clips, _ = import_files(files, movie="a")
        assert {(clip.level, clip.concepts) for clip in clips} == {("S", ("Body",)), (None, ("Look",))}


def test_a_clip_that_two_tables_have_is_refused_with_the_names_of_both_tables(import_files):
    """The tables a and b both have the clip x, and no annotator is named who would tell the rows apart."""
    table = "clip_id,movie,start_s,end_s,level\nx,m,1,2,S\n"
    with pytest.raises(ManifestError, match=r"[\\/]a, .*[\\/]b: clip 'x'"):
        import_files({"a": table, "b": table})
