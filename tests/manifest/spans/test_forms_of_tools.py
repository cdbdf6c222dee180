# ruff: noqa: E501 - rows of files are kept as tools write them
"""Forms that tools and people really write: each is read whole, or refused with its own reason."""

import json
import re
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from tests.manifest.spans.files import VIA_HEAD, alignable_annotation, eaf, ref_annotation, sheet, tier, tsv

SHORT = 'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n10\n<exists>\n1\n"IntervalTier"\n"a"\n0\n10\n1\n1\n5\n"S"\n'
BORIS_7 = "Observation id\to\n\nMedia file(s)\nPlayer #1\ta.mp4\n\nTime offset (s)\t{}\n\nTime\tMedia file path\tSubject\tBehavior\tStatus\n1.0\ta.mp4\t\tS\tSTART\n5.0\ta.mp4\t\tS\tSTOP\n"
TIMES = ["Start (s)", "Stop (s)"]
BORIS_8 = ["Observation id", "Source", "Time offset (s)", "Behavior", "Behavior type", *TIMES]
BORIS_9 = [
    "Observation id",
    "Source",
    "Media duration (s)",
    "Behavior",
    "Behavior type",
    *TIMES,
    "Media file name",
]
ELAN = ("Tier", "Begin Time - hh:mm:ss.ms", "End Time - hh:mm:ss.ms", "Annotation", "File Path")


def boris_table(*media):
    """Write a table of BORIS 8: of each (source, time offset), an observation with S from 1 to 5 s."""
    rows = []
    for n, (source, offset) in enumerate(media):
        rows.append([f"o{n}", source, offset, "S", "STATE", "1", "5"])
    return tsv(BORIS_8, *rows)


def boris_table_of_two_media(start, stop, name):
    """Write a table of BORIS 9 with S in an observation that plays b.mp4 (180 s), then x/a.mp4 (360 s).

    A second player shows c.mp4 (540 s). Times count from the begin of b.mp4. `name` is the medium that the
    table says was shown at the start of the event.
    """
    media = "player #1:b.mp4;x/a.mp4|player #2:c.mp4"
    durations = "180.000;360.000|540"
    return tsv(BORIS_9, ["o", media, durations, "S", "STATE", start, stop, name])


def eaf_with_subdivided_scene(parts):
    """Write a document of ELAN with a scene from 1 to 9 s, which the annotations `parts` of AB divide."""
    scene = tier("scene", alignable_annotation("a", "t1", "t2", "kiss"))
    return eaf({"t1": 1000, "t2": 9000}, scene + tier("human: level@AB", parts))


def elan(*rows, names=ELAN):
    """Write the table that ELAN exports, with tabs, below these headings."""
    return tsv(names, *rows)


def cvat_track(frames, attribute="S"):
    """Write a track of CVAT with a box for each (frame, outside): 1 where the man is no longer in sight."""
    level = f'<attribute name="level">{attribute}</attribute>'
    boxes = ""
    for frame, outside in frames:
        boxes += f'<box frame="{frame}" outside="{outside}">{level}</box>'
    return f'<annotations><meta><task><source>a.mp4</source></task></meta><track id="0" label="man">{boxes}</track></annotations>'


def label_studio_task(result, **task):
    """Write an export of Label Studio: a task about a.mp4 with these regions; `task` changes its fields."""
    usual = {"id": 1, "data": {"video": "/data/upload/1/0a1b2c3d-a.mp4"}, "annotations": [{"result": result}]}
    return json.dumps([usual | task])


RANGES = {"ranges": [{"start": 26, "end": 125}], "timelinelabels": ["S"]}
STRETCH = {"type": "timelinelabels", "value": RANGES}
EAF = eaf({"t1": 1000, "t2": 5000}, tier("human: level@AB", alignable_annotation("x", "t1", "t2", "S")))
CLOCKS = ("00:00:01.000", "00:00:05.000")
READ = {
    "BORIS 7 with what stands above the table": BORIS_7.format("0.0"),
    "BORIS offset as clock, live": boris_table(("NA", "00:00:00.000")),
    "BORIS offset as a German spreadsheet saves it": boris_table(("a.mp4", "0,000")),
    **{f"BORIS, header {how}": boris_table(("a.mp4", "0")).replace("\t".join(BORIS_8), header) for how, header in (("in capitals", "\t".join(BORIS_8).upper()), ("with blanks", " \t".join(BORIS_8)))},
    **{f"BORIS offset {none}": boris_table(("a.mp4", none)) for none in ("NA", "nan", "")},
    "BORIS two players": boris_table(("player #1:films/a.mp4|player #2:b.mp4", "0")),
    "BORIS two players, of versions 8.9": boris_table(("player #1: films/a.mp4 player #2: b.mp4", "0")),
    "BORIS 7 with two players": BORIS_7.format("0.0").replace("\n\nTime off", "\nPlayer #2\tb.mp4\n\nTime off"),
    "BORIS a file that is not found": tsv(BORIS_9, ["o", "a.mp4", "9", "S", "STATE", "1", "5", "Not found"]),
    "BORIS second of two media": boris_table_of_two_media("181", "185", "x/a.mp4"),
    "BORIS with a row of nothing": boris_table(("a.mp4", "0")) + "\t" * 6 + "\n",
    "TextGrid short, old": SHORT.replace("ooTextFile", "ooTextFile short").replace("Object class = ", ""),
    "RTTM with other records first": "LEXEME a 1 1 4 hi lex x <NA> <NA>\nSPEAKER a 1 1 4 <NA> <NA> S <NA> <NA>\n",
    "ELAN as CSV": "Tier,Begin Time - ss.msec,End Time - ss.msec,Annotation\nlevel,1.000,5.000,S\n",
    "ELAN saved by a spreadsheet": "sep=;\nTier;Begin Time - ss.msec;End Time - ss.msec;Annotation\nlevel;1,0;5,0;S\n",
    "RTTM with tabs": "SPEAKER\ta\t1\t1\t4\t<NA>\t<NA>\tS\t<NA>\t<NA>\n",
    "ELAN in German": elan(["level", "", "1.0", "1000", "5.0", "5000", "4.0", "4000", "S"], names=("Zeile", "Teilnehmer", *(f"{name} - {form}" for name in ("Anfangszeit", "Endzeit", "Dauer") for form in ("ss.msec", "msec")), "Anmerkung")),
    "ELAN in German, whole seconds": elan(["level", "", "1", "5", "4", "S"], names=("Zeile", "Teilnehmer", *(f"{name} - ss.msec" for name in ("Anfangszeit", "Endzeit", "Dauer")), "Anmerkung")),
    "ELAN without names of tiers": elan(["1.0", "5.0", "S"], names=("Begin Time - ss.msec", "End Time - ss.msec", "Annotation")),
    "ELAN without header, numbers as participant": tsv(["level", "12", *CLOCKS, "00:00:04.000", "S"]),
    "ELAN without header, in milliseconds, numbers as participant": tsv(["level", "12", "1000", "5000", "4000", "S"]),
    **{f"ELAN without header and durations, {start}, numbers as participant": tsv(["level", "0", start, end, "S"]) for start, end in (("1.0", "5.0"), ("00:00:01", "00:00:05"))},
    "ELAN without header, with its file": tsv(["level", "", *CLOCKS, "00:00:04.000", "S", "C:\\d\\a.eaf"]),
    "ELAN with ids and descriptions": elan(["level", *CLOCKS, "S", "a1", "a word of the vocabulary", "a.mp4"], names=("Tier", "Begin Time - hh:mm:ss.ms", "End Time - hh:mm:ss.ms", "Annotation", "Annotation ID", "Description", "File Path")),
    "ELAN whose media are not moved": "#a.mp4 -- offset: 0\n" + elan(["level", *CLOCKS, "S", "a.eaf"]),
    "ELAN tier that begins with a quote": elan(['"level"', *CLOCKS, "S", "a.eaf"]),
    "ELAN in a workbook, below a title": sheet([["Tags of film a"], ["of", "2024"], ELAN[:4], ["level", *CLOCKS, "S"]]),
    "ELAN as CSV, below a title": "Tags, of film a\n" + ",".join(ELAN[:4]) + "\n" + ",".join(("level", *CLOCKS, "S")) + "\n",
    "VIAN milliseconds behind a colon": "movie,segmentation_name,start_ts,end_ts,annotation_0\na,Main,00:00:01:000,00:00:05:000,S\n",
    "VIAN frames": "movie_name,segmentation_name,start_frame,end_frame,annotation_0\na,Main,25,125,S\n",
    "VIAN of several films": "movie_name,segmentation_name,start_ms,end_ms,annotation_0\na,Main,1000,5000,S\n",
    "VIA segments alone": '# CSV_HEADER = metadata_id,file_list,temporal_segment_start,temporal_segment_end,metadata\n"1_a","[""a.mp4""]",1,5,"{""level"":""S""}"\n"1_b","[""a.mp4""]",7,,"{""level"":""S""}"\n',
    "VIA checkbox": VIA_HEAD + '"1_b","[""a.mp4""]",0,"[1,5]","[]","{""1"":{""1"":true,""0"":false}}"\n',
    "Label Studio upload": label_studio_task([STRETCH]),
    "Label Studio other fields": label_studio_task([STRETCH], data={"note": "Mr. A. said", "film": "<video src='https://x.example/a.mp4' width=9/>"}),
    **{f"Label Studio, a {name} before the film": label_studio_task([STRETCH], data={name: said, "film": "x/a.mp4"}) for name, said in (("poster", "x/b.jpg"), ("title", "Mr.Smith"), ("uploader", "bob@lab.edu"))},
    "Label Studio beside places in texts and time series": label_studio_task([{"type": "labels", "value": {"start": 1, "end": 5, "labels": ["S"]}}, {"type": "labels", "value": {"start": 6, "end": 9, "text": "abc", "labels": ["S"]}}, {"type": "paragraphlabels", "value": {"start": "6", "end": "9", "startOffset": 0, "endOffset": 4, "paragraphlabels": ["S"]}}, {"type": "timeserieslabels", "value": {"start": 6, "end": 9, "instant": False, "timeserieslabels": ["S"]}}]),
    "ActivityNet with a long head": json.dumps({"taxonomy": "x" * 99_999, "database": {"a": {"annotations": [{"segment": [1, 5], "label": ["S"]}]}}}),
    "ActivityNet's videos without a database around them": json.dumps({"a": {"duration_second": 5, "annotations": [{"segment": [1, 7], "label": "S"}]}}),
    "CVAT attribute": cvat_track([(25, 0), (125, 1)]),
    "CVAT without source and step": cvat_track([(25, 0), (125, 1)]).replace("a.mp4", "").replace("<task>", "<task><frame_filter></frame_filter>"),
    "CVAT below a comment of several lines": "<?xml version='1.0'?>\n<!-- one\n > two -->\n" + cvat_track([(25, 0), (125, 1)]),
    "CVAT attribute that nobody chose": cvat_track([(25, 0), (125, 1)], "__undefined__").replace('"man"', '"S"'),
    "CVAT skeleton, whose points are outside": cvat_track([]).replace('"man">', '"S">' + "".join(f'<skeleton frame="{frame}"><points outside="{a}"/><points outside="{b}"/></skeleton>' for frame, a, b in ((25, 0, 0), (26, 1, 0), (125, 1, 1)))),
    "table in capitals": "Movie, START_S ,End_s,Level\na,1,5,S\n",
    "table with a line of blanks": "movie,start_s,end_s,level\n   \na,1,5,S\n",
    "table that was joined": "movie,start_s,end_s,level\n\ufeffa,1,5,S\n",
    "table with an empty column at the left": ",movie,start_s,end_s,level\n,a,1,5,S\n",
    "table with a sign of its own": "sep=|\nmovie|start_s|end_s|level\na|1|5|S\n",
    "table with titles": '"My table"\n\nmovie,start_s,end_s,level\na,1,5,S\n',
    "video of a page": "video,start_s,end_s,level\nhttps://www.youtube.com/watch?v=a&t=1,1,5,S\n",
    "EAF": EAF,
    **{f"EAF in {name}": EAF.replace("?>", said).replace("@AB", "@Zoë").encode(name) for name, said in (("latin-1", " encoding='latin-1'?>"), ("shift_jis_2004", " encoding='shift_jis_2004'?>"), ("cp1252", "?>"), ("utf-16-be", " encoding='UTF-16'?>"))},
    "EAF first half of a subdivision": eaf_with_subdivided_scene(ref_annotation("b", "a", "S") + ref_annotation("c", "a", "", 'PREVIOUS_ANNOTATION="b"')),
    "EAF below the first half of a subdivision": eaf_with_subdivided_scene(ref_annotation("d", "b", "S")).replace("<TIER", tier("half", ref_annotation("c", "a", "y", 'PREVIOUS_ANNOTATION="b"') + ref_annotation("b", "a", "x")) + "<TIER", 1),
    "EAF below a subdivision that stands behind it": eaf_with_subdivided_scene(ref_annotation("d", "b", "S") + ref_annotation("e", "c", "") + ref_annotation("f", "c", "", 'PREVIOUS_ANNOTATION="e"')).replace("<LINGUISTIC", tier("half", ref_annotation("b", "a", "x") + ref_annotation("c", "a", "y", 'PREVIOUS_ANNOTATION="b"')) + "<LINGUISTIC", 1),
    "EAF below a subdivision without times that stands behind it": eaf({"t1": 1000, "t2": None, "t3": None, "t4": 9000}, tier("human: level@AB", alignable_annotation("d", "t1", "t2", "S") + alignable_annotation("e", "t2", "t3", "") + alignable_annotation("f", "t3", "t4", ""), 'PARENT_REF="half"') + tier("half", alignable_annotation("b", "t1", "t2", "x") + alignable_annotation("c", "t2", "t4", "y"))),
    "EAF milliseconds with a point": eaf({"t1": "1000.0", "t2": "5000.0"}, tier("human: level@AB", alignable_annotation("x", "t1", "t2", "S"))),
    "EAF an id twice to which none refers": eaf({"t1": 1000, "t2": 5000, "t3": 9000}, tier("human: level@AB", alignable_annotation("x", "t1", "t2", "S") + alignable_annotation("x", "t2", "t3", "EN"))),
    "EAF with a document type": EAF.replace("<ANN", '<!DOCTYPE ANNOTATION_DOCUMENT SYSTEM "EAFv3.0.dtd">\n<ANN', 1),
    "BORIS whose other behaviours have codes of one letter": tsv(BORIS_8, *(["o", "a.mp4", "0", code, "STATE", start, end] for code, start, end in (("S", "1", "5"), ("s", "6", "9")))),
    "table with tabs, whose quotes are letters": 'movie\tstart_s\tend_s\tlevel\ttitle\na\t1\t5\tS\t"Giliap\n',
    **{f"table of a data frame with its index, from {first}": f"{mark},movie,start_s,end_s,level\n{first},a,1,5,S\n{first + 1},a,5,6,EN\n" for first, mark in ((0, ""), (1, '""'))},
    "EAF without a header": re.sub("<HEADER.*</HEADER>", "", EAF),
}  # fmt: skip


@pytest.fixture
def import_content(tmp_path):
    """Import a text as the file a.x; documents of ELAN, which name no film here, are of film a."""

    def import_content(content):
        path = tmp_path / "a.x"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        letters = path.read_bytes().replace(b"\0", b"")  # UTF-16 has a zero beside each letter
        movie = "a" if b"ANNOTATION_DOCUMENT" in letters else ""
        return import_spans([path], tmp_path, rate=Fraction(25), movie=movie)

    return import_content


def test_an_event_that_lasts_into_the_next_medium_is_in_both_media(import_content):
    """BORIS played b.mp4, 180 s long, and then a.mp4. The event lasts from 170 to 185 s since b.mp4 began.

    So it is in the last 10 s of b.mp4 and in the first 5 s of a.mp4. The account notes that the times, which
    go on over both media, were counted anew in each.
    """
    table = boris_table_of_two_media(start="170", stop="185", name="x/a.mp4")

    imported = import_content(table)

    spans = [(clip.movie, clip.start_s, clip.end_s) for clip in imported.manifest]
    assert spans == [("b", 170.0, 180.0), ("a", 0.0, 5.0)]
    (account,) = imported.accounts
    assert account.left_out == []
    assert "times of media one after the other are counted in each" in account.notes


def test_a_part_of_an_event_that_is_shorter_than_a_frame_is_left_out(import_content):
    """BORIS played b.mp4, 180 s long, and then a.mp4. The event lasts from 179.999 to 185 s since b.mp4 began.

    So it is in the last millisecond of b.mp4 and in the first 5 s of a.mp4. No frame fits into the former,
    which is left out, and the account says so.
    """
    table = boris_table_of_two_media(start="179.999", stop="185", name="x/a.mp4")

    imported = import_content(table)

    spans = [(clip.movie, clip.start_s, clip.end_s) for clip in imported.manifest]
    assert spans == [("a", 0.0, 5.0)]
    (account,) = imported.accounts
    assert len(account.left_out) == 1
    assert "times of media one after the other are counted in each" in account.notes


@pytest.mark.parametrize("form", READ)
def test_a_form_that_tools_write_is_read_whole(import_content, form):
    """A tool may write several forms of files. This one says S of film a from 1 to 5 s, a level or a text.

    S must be read with these times, and nowhere else; the account counts each record as used or left out.
    """
    imported = import_content(READ[form])

    spans_of_s = []
    for clip in imported.manifest:
        label = clip.level or clip.extras.get("text")
        if label == "S":
            spans_of_s.append((clip.movie, clip.start_s, clip.end_s))
    assert spans_of_s == [("a", 1.0, 5.0)]
    (account,) = imported.accounts
    assert account.seen == account.used + len(account.left_out)


REFUSED = {
    "BORIS offset above the table": (BORIS_7.format("10.0"), "offset"),
    "BORIS offset in small letters": (boris_table(("a.mp4", "10")).replace("Time offset", "time offset"), "moved"),
    "BORIS two media without observation": (tsv(BORIS_8[1:], ["a.mp4", "", "S", "STATE", "1", "5"], ["b.mp4", "", "S", "STATE", "1", "5"]), "Observation id"),
    "BORIS media one after the other": (boris_table(("player #1:a.mp4;b.mp4", "0")), "2 media"),
    "BORIS media one after the other, above the table": (BORIS_7.format("0.0").replace("\n\nTime off", "\nPlayer #1\tb.mp4\n\nTime off"), "2 media"),
    "BORIS media one after the other, one without a length": (boris_table_of_two_media("1", "5", "b.mp4").replace("180.000;", ";"), "2 media"),
    "BORIS two films of one name": (boris_table(("player #1:C:\\one\\a.mp4", "0"), ("player #1:C:\\two\\a.mp4", "0")), "both be movie"),
    "RTTM two films of one name": ("SPEAKER one/a.mp4 1 1 4 <NA> <NA> S <NA> <NA>\nSPEAKER two/a.mp4 1 6 1 <NA> <NA> S <NA> <NA>\n", "both be movie"),
    "a table without a film": ("start_s,end_s\n1,2\n", "no column video or movie"),
    "a time that R does not know": ("movie,start_s,end_s\na,NA,2\n", "line 2, column start_s: .*empty"),
    "a list of scenes without ends": ("movie,Start Time (seconds)\na,1\n", "no column end_s"),
    "a list of cuts": ("TITLE: a\nFCM: NON-DROP FRAME\n", "no event"),
    "a timeline of Premiere that is cut": ('<?xml version="1.0"?>\n<!DOCTYPE xmeml>\n<xmeml version="4">', "Final Cut Pro 7 XML"),
    "a table of a scale": ("movie,start_s,end_s,codebook,valence\na,1,2,mediaeval15,blue\n", "line 2, column valence"),
    "a table of thousands that a spreadsheet saved": ("movie;start_s;end_s\na;1.234;5.240\n", "could be"),
    "EAF of nobody": (eaf({"t1": 1000, "t2": 5000}, tier("human: level", alignable_annotation("x", "t1", "t2", "S"))), "annotator in ELAN"),
    "VIAN with a cell too many": ("segmentation_name,start_ms,end_ms\nM,1,2,3\n", "line 2: 4 cells"),
    "TextGrid binary": (b"ooBinaryFile\x08TextGrid\x81", "found a binary file"),
    "TextGrid that does not say whether it has tiers": (SHORT.replace("<exists>\n", ""), "1 where <exists>"),
    "TextGrid with a quote in a text": (SHORT.replace('"S"', '"S"x"'), '"S"x where a text in quotes'),
    "TextGrid with more than its tiers": (SHORT + "7\n", "line 16: 7 after the last tier"),
    "TextGrid with a tier of no kind": (SHORT.replace("IntervalTier", "PointTier"), 'line 8: "PointTier" is no tier'),
    "TextGrid with half a tier": (SHORT.replace("<exists>\n1", "<exists>\n1.5"), "line 7: 1.5 where a number of tiers"),
    "TextGrid cut short": (SHORT.partition('"S"')[0], "ends where a text in quotes was expected"),
    "another object of Praat": (SHORT.replace("TextGrid", "PitchTier"), "PitchTier"),
    "ELAN in frames of NTSC": (elan(["l", "00:00:01:00", "00:00:05:00", "S"], names=("Tier", "Begin Time - hh:mm:ss:ff NTSC", "End Time - hh:mm:ss:ff NTSC", "Annotation")), "hh:mm:ss.ms"),
    "ELAN whose media are moved": ("#a.mp4 -- offset: 200\n" + elan(["l", *CLOCKS, "S", "a.eaf"]), "moved by 200 ms"),
    **{f"ELAN without header, behind the text {note}": (tsv(["level", "", *CLOCKS, "00:00:04.000", "S", note]), "1 column after the text") for note in ("note", "He looks.")},
    "ELAN in French without durations": (elan(["l", *CLOCKS, "S"], names=("Acteur", "Début - hh:mm:ss.ms", "Durée - hh:mm:ss.ms", "Annotation")), "a header in English"),
    "ELAN with durations in place of ends": (elan(["level", "1.0", "4.0", "S"], names=("Tier", "Begin Time - ss.msec", "Duration - ss.msec", "Annotation")), "no begin and end times"),
    "ELAN in Spanish, a column for each tier": (elan([*CLOCKS, "00:00:04.000", "S", "hola"], names=(*(f"{name} - hh:mm:ss.ms" for name in ("Tiempo inicial", "Tiempo final", "Duración")), "nivel", "notas")), "a header in English"),
    "ELAN without header, in milliseconds, which of them are begins": (tsv(["level", "0", "1000", "5000", "S"]), "a header in English"),
    "a table of sounds with frequencies behind begins and ends": (tsv(["Nr", "View", "Channel", "Begin (s)", "End (s)", "Low (Hz)", "High (Hz)", "Word"], *(["1", "View 1", "1", f"{n}.5", f"{n}.9", "900.5", "1200.5", "S"] for n in range(9))), "start_s=Begin"),
    "VIA without its attributes": (VIA_HEAD.replace("}}", "}"), "ATTRIBUTE"),
    "VIA project": ('{"project":{},"metadata":{"1":{"vid":"1","z":[1,5]}}}', "VIA"),
    "ActivityNet results": ('{"results":{"a":[{"segment":[1,5]}]}}', "model"),
    **{f"JSON of other tools, {key}": (json.dumps([{"start": 1, "end": 5, key: [{"result": [STRETCH]}]}]), "of no format that is known") for key in ("segments", "completions")},
    "TextGrid with decimal commas": (SHORT.replace("\n10\n", "\n9,5\n"), "line 5: 9,5"),
    "a film twice": ('{"database":{"a":{"annotations":[]},"a":{"annotations":[]}}}', "twice"),
    "CVAT in a namespace": ('<annotations xmlns="urn:x"/>', "its root is '{urn:x}annotations'"),
    "JSON of other tools, annotations of a list of films": (json.dumps([{"film": name, "annotations": [{"start": 1, "end": 5}]} for name in "ab"]), "no annotations of Label Studio"),
    "Label Studio, a task that is none": ('[{"data":{"video":"a.mp4"},"annotations":[]},3]', "task 2: no annotations"),
    "BORIS, a project": ('{"time_format": "hh:mm:ss", "behaviors_conf": {}}', "BORIS project"),
    "Label Studio, JSON-MIN": ('[{"id":1,"video":"a.mp4","annotator":1,"annotation_id":2}]', "JSON-MIN"),
    "another JSON": ('{"images":[]}', "the nearest are"),
    "three digits of frames": ("movie,start_s,end_s\na,00:00:01:012,00:00:05:000\n", "digits"),
    "a date for a time": ("movie,start_s,end_s\na,1609459201.5,1609459205.5\n", "line 2.* a date, not a time"),
    "a film by two ids": ("movie,start_s,end_s\ntt0054215,1,2\n54215,3,4\n", "tt0054215"),
    **{f"a table's times {times}": (f"video,start_s,end_s,level\na.mp4,{times},S\n", "(line 2|column)") for times in ('"1,234","1,280"', "0.00104166666666667,0.00105324074074074", "0.0208333333333333,0.0416666666666667", "0.0104166666666667,0.0208333333333333,S\nb.mp4,00:30:00,00:45:00", "1.5,1.501")},
    **{f"a level that is none, {text}": (f"video,start_s,end_s,level\na.mp4,1.5,2.5,{text}\n", rf"line 2, column level: .*\({hint}") for text, hint in (("Sur", "did you mean 'S'"), ("xyzzy", "expected one of EN, HN, NS, S"))},
    **{f"two films of one name, column {column}": (f"{column},start_s,end_s,level\nC:\\one\\film.mp4,1,2,S\nC:\\two\\film.mp4,1,2,S\n", f"line 3, column {column}") for column in ("video", "movie")},
    "a picture whose id and name differ": ('<annotations><meta/><image id="1" name="frame_000100.PNG"><tag label="S"/></image></annotations>', "frame_000100"),
    "a quote never closed": ('movie,start_s,end_s,note\na,1,2,"x\n', "line 2"),
    **{f"subtitles, {text[:6]}": (text, "then import the|SubRip") for text in ("[00:01.00]Hi\n", "Scenarist_SCC V1.0\n\n00:00:00;22\t9425 94ad\n", "850STL25.0110009 Film\n")},
    "EAF two values of an annotation": (EAF.replace("</ANNOTATION_VALUE>", "</ANNOTATION_VALUE><ANNOTATION_VALUE>EN</ANNOTATION_VALUE>"), "S; EN"),
    "EAF a part of no chain": (eaf_with_subdivided_scene(ref_annotation("b", "a", "S", 'PREVIOUS_ANNOTATION="z"')), "no time"),
    "ELAN in a workbook, media moved": (sheet([["#a.mp4 -- offset: 120"], ELAN[:4], ["level", *CLOCKS, "S"]]), "moved by 120 ms"),
    "EAF slot twice": (EAF.replace("<TIME_SLOT TIME_SLOT_ID=\"t2\"", '<TIME_SLOT TIME_SLOT_ID="t2" TIME_VALUE="1"/><TIME_SLOT TIME_SLOT_ID="t2"'), "t2"),
    "EAF slot that is not there": (EAF.replace('REF2="t2"', 'REF2="t3"').replace("</TIME_ORDER>", '<TIME_SLOT TIME_SLOT_ID="t4"/></TIME_ORDER>'), "slot 't3'"),
    **{f"EAF offset of {origin!r}": (EAF.replace("</HEADER>", f'<MEDIA_DESCRIPTOR MEDIA_URL="a.mp4" TIME_ORIGIN="{origin}"/></HEADER>'), f"TIME_ORIGIN '{origin}'") for origin in ("1.5", "-")},
    "EAF reference to nothing": (EAF.replace('"x"', '""').replace("</TIER>", ref_annotation("y", "", "S") + "</TIER>"), "annotation 'y': it has no time"),
    "EAF annotation twice": (eaf({"t1": 1000, "t2": 5000}, tier("human: level", alignable_annotation("x", "t1", "t2", "S")) + tier("human: concepts", ref_annotation("x", "x", "Body"))), "id of 2 annotations"),
}  # fmt: skip


@pytest.mark.parametrize("form", REFUSED)
def test_a_form_that_would_be_misread_is_refused_with_its_own_reason(import_content, form):
    """A tool's file is in a form that would give wrong times, films or labels, if it were read as usual.

    It is refused, and the error names the reason that is of this form.
    """
    content, reason = REFUSED[form]
    with pytest.raises(ManifestError, match=reason):
        import_content(content)


LEFT_OUT = {
    **{f"EAF from 5 s to {end} ms": eaf({"t1": 5000, "t2": end}, tier("human: level@AB", alignable_annotation("x", "t1", "t2", "S"))) for end in (5000, 1000)},
    "RTTM name with a blank": "SPEAKER my a 1 1 4 <NA> <NA> S <NA> <NA>\n",
    "VIA metadata cut": VIA_HEAD + '"1_b","[""a.mp4""]",0,"[1,5]","[]","{""1"":"\n',
    "VIA as a spreadsheet saves it": VIA_HEAD + '"1_b";"[""a.mp4""]";0;"[1,5]";"[]";"{""1"":""1""}"\n',
    "Label Studio frame 0": label_studio_task([{"type": "timelinelabels", "value": {"ranges": [{"start": 0, "end": 9}], "timelinelabels": ["S"]}}]),
    "VIA two files": VIA_HEAD + '"1_b","[""a.mp4"",""b.mp4""]",0,"[1,5]","[]","{""1"":""1""}"\n',
    "Label Studio draft": label_studio_task([], drafts=[{"result": [STRETCH]}]),
    "Label Studio null": label_studio_task([None]),
    "ActivityNet video that is none": '{"database":{"a":null}}',
    "ActivityNet time that is no number": '{"database":{"a":{"annotations":[{"segment":[1,NaN],"label":"S"}]}}}',
    "ActivityNet label that is none": '{"database":{"a":{"annotations":[{"segment":[1,5],"label":{}}]}}}',
    "TextGrid behind its end": SHORT.replace("\n5\n", "\n50\n"),
    "ActivityNet annotation that is none": '{"database":{"a":{"annotations":["x"]}}}',
    "BORIS a file that is not at its time": boris_table_of_two_media("1", "5", "a.mp4"),
    "BORIS times by dates": boris_table_of_two_media("1609459201.5", "1609459205.5", "Not found"),
    "CVAT a shape before the first frame": cvat_track([(-1, 0), (125, 1)]),
    "SRT a number before half a line of times": "2-> 00:00:05,000\nHi\n\n3\n00:00:07,000 --> 00:00:06,000\nx\n",
    "SRT half a line of times": "1\n00:00:01,000 --\n> 00:00:05,000\nHi\n\n2\n00:00:07,000 --> 00:00:06,000\nx\n",
}  # fmt: skip


@pytest.mark.parametrize("form", LEFT_OUT)
def test_a_record_that_cannot_be_read_is_listed_as_left_out(import_content, form):
    """A tool's file can be read, but its only record cannot, so that there is no clip.

    The account of the import lists the record as left out.
    """
    imported = import_content(LEFT_OUT[form])

    assert not imported.manifest.clips
    (account,) = imported.accounts
    assert account.left_out


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("'", id="a quote"),
        pytest.param(",", id="two empty cells"),
        pytest.param(",'", id="an empty cell and a quote"),
        pytest.param(",,\n,,\n", id="two rows of empty cells"),
        pytest.param("\t\t\n", id="empty cells between tabs"),
        pytest.param(";", id="empty cells between semicolons"),
        pytest.param("\n", id="an empty line"),
        pytest.param("Behavior,Time\nS,1\n", id="two of the headings of BORIS"),
        pytest.param("segmentation_name,x\nM,1\n", id="one of the headings of VIAN"),
    ],
)
@pytest.mark.parametrize("kind", ["vian", "boris", "table", "elan-text"])
def test_a_table_that_lacks_columns_of_its_kind_is_refused_by_its_name(import_files, kind, content):
    """Each kind of table needs columns of the film, of times and of labels. These files lack some or all.

    The person says of which kind the file a.x is, and the message names the file.
    """
    with pytest.raises(ManifestError, match=r"a\.x"):
        import_files({"a.x": content}, kind=kind)


def test_an_import_for_one_film_refuses_a_file_of_two(import_files):
    """The user says that all spans are of film a, but the table names the videos a.mp4 and b.mp4."""
    with pytest.raises(ManifestError, match="both be movie 'a'"):
        import_files({"a.x": boris_table(("a.mp4", "0"), ("b.mp4", "0"))}, movie="a")


@pytest.mark.parametrize(
    "video",
    ["a" * 300 + ".mp4", "a/" * 3000 + "b.mp4", "a\1/b\1.mp4"],
    ids=["a name of 304 letters", "3000 folders in each other", "a control character"],
)
def test_a_name_that_no_disk_holds_is_refused_with_its_line(import_content, video):
    """The table a.x names its only video, on line 2, by a name that is too long, or has a control character."""
    with pytest.raises(ManifestError, match=r"a\.x: line 2, column video"):
        import_content(f"video,start_s,end_s\n{video},1,2\n")
