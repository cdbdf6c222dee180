# ruff: noqa: E501 - rows of files are kept as tools write them
"""Small files as other tools write them, each with what it says."""

import io
import json
import zipfile
from dataclasses import dataclass, field
from fractions import Fraction
from string import ascii_uppercase
from typing import Any
from xml.sax.saxutils import escape


@dataclass(frozen=True)
class Example:
    """A file: start, end, level and concepts of its spans, and why records are left out."""

    content: str | bytes
    spans: list[tuple[float, float, str | None, tuple[str, ...]]]
    left_out: tuple[str, ...] = ()
    movie: str = "tt0000042"
    options: dict[str, Any] = field(default_factory=dict)


def alignable_annotation(name, first, last, text):
    """Write an annotation of ELAN that lasts from one time slot to another, both by their names."""
    return (
        f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="{name}" TIME_SLOT_REF1="{first}" '
        f'TIME_SLOT_REF2="{last}"><ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>'
    )


def ref_annotation(name, above, text, more=""):
    """Write an annotation of ELAN that has the times of another one, which it refers to by its name."""
    return (
        f'<ANNOTATION><REF_ANNOTATION ANNOTATION_ID="{name}" ANNOTATION_REF="{above}" {more}>'
        f"<ANNOTATION_VALUE>{text}</ANNOTATION_VALUE></REF_ANNOTATION></ANNOTATION>"
    )


def tier(name, body, more=""):
    """Write a tier of ELAN with its annotations, and further attributes such as PARTICIPANT."""
    return f'<TIER TIER_ID="{name}" LINGUISTIC_TYPE_REF="l" {more}>{body}</TIER>'


def eaf(slots, tiers, header=""):
    """Write a document of ELAN: its time slots, {name: milliseconds, or None without a time}, and its tiers."""
    order = ""
    for name, value in slots.items():
        time = "" if value is None else f' TIME_VALUE="{value}"'
        order += f'<TIME_SLOT TIME_SLOT_ID="{name}"{time}/>'
    return (
        '<?xml version="1.0"?><ANNOTATION_DOCUMENT AUTHOR="" DATE="2024-01-01T00:00:00+01:00" FORMAT="3.0" '
        f'VERSION="3.0"><HEADER MEDIA_FILE="" TIME_UNITS="milliseconds">{header}</HEADER>'
        f'<TIME_ORDER>{order}</TIME_ORDER>{tiers}<LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="l" '
        'TIME_ALIGNABLE="true" GRAPHIC_REFERENCES="false"/></ANNOTATION_DOCUMENT>'
    )


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
PARTS_OF_A_WORKBOOK = {
    "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/xl/workbook.xml" ContentType="{CONTENT_TYPE}.sheet.main+xml"/>'
    f'<Override PartName="/xl/styles.xml" ContentType="{CONTENT_TYPE}.styles+xml"/>'
    f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{CONTENT_TYPE}.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="rId1" '
    f'Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
    '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
    f'<Relationship Id="rId2" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
    # Style 0 is that of usual cells. Style 1 has format 46, which is [h]:mm:ss in every workbook.
    "xl/styles.xml": f'<styleSheet xmlns="{MAIN}"><cellXfs count="2"><xf numFmtId="0"/>'
    '<xf numFmtId="46" applyNumberFormat="1"/></cellXfs></styleSheet>',
}
"""The parts of a workbook besides its one sheet, which are the same in every workbook of the tests."""


def cell_of_sheet(place, value):
    """Write a cell: a text, a number, or ("time", share of a day), a number formatted as a time."""
    if isinstance(value, tuple):
        _, share_of_day = value
        return f'<c r="{place}" s="1"><v>{share_of_day!r}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'


def sheet(rows, cells=None):
    """Write a workbook (.xlsx) of one sheet, with these rows from A1 on.

    `cells` adds single cells below the rows, by their places: {"XFD1048576": 1}.
    """
    lines = []
    for number, row in enumerate(rows, start=1):
        xml = ""
        for column, value in zip(ascii_uppercase, row, strict=False):
            xml += cell_of_sheet(f"{column}{number}", value)
        lines.append(f'<row r="{number}">{xml}</row>')
    for place, value in (cells or {}).items():
        number = place.lstrip(ascii_uppercase)
        lines.append(f'<row r="{number}">{cell_of_sheet(place, value)}</row>')
    sheet_xml = f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, text in PARTS_OF_A_WORKBOOK.items():
            archive.writestr(name, text)
        archive.writestr("xl/worksheets/sheet1.xml", sheet_xml)
    return content.getvalue()


def patched(content, *changes):
    """Change the text of a workbook's parts."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            for before, after in changes:
                text = text.replace(before, after)
            new.writestr(name, text)
    return out.getvalue()


def tsv(*rows):
    """Write rows of cells with tabs between them."""
    return "".join("\t".join(row) + "\n" for row in rows)


ASKED = {"movie": "tt0000042", "start_s": 1, "end_s": 5, "model": "tiny", "prompt": "0a"}
ANSWERS = {
    "a": {"level:EN": 0.2, "level:S": 0.7, "concept:Body": 0.5, "concept:Look": "No."},
    "b": {"level:EN": "yes", "level:S": "no", "concept:Body": "no", "concept:Look": 0},
    "c": {"level:EN": "yes", "level:S": "no", "concept:Body": "I cannot tell", "concept:Look": "no"},
    "d": {"level:EN": "yes", "level:S": "no", "concept:Body": "no"},
    "e": {"level:EN": "no", "level:S": "no", "concept:Body": "no", "concept:Look": "no"},
}
LABELSTUDIO = [
    {
        "id": 7,
        "data": {"video": "https://lab.example/films/tt0000042.mp4"},
        "annotations": [
            {
                "id": 3,
                "completed_by": {"email": "ab@lab.example"},
                "result": [
                    {"type": "timelinelabels", "from_name": "level",
                     "value": {"ranges": [{"start": 26, "end": 125}], "timelinelabels": ["S"]}},
                    {"type": "timelinelabels", "from_name": "concepts",
                     "value": {"ranges": [{"start": 26, "end": 125}], "timelinelabels": ["Body"]}},
                    {"type": "videorectangle", "from_name": "box", "value": {
                        "framesCount": 250, "duration": 10.0, "labels": ["Look"],
                        "sequence": [{"frame": 151, "enabled": True}, {"frame": 175, "enabled": False}]}},
                    {"type": "choices", "from_name": "ok", "value": {"choices": ["yes"]}},
                ],
            },
        ],
        "predictions": [{"result": [{"type": "timelinelabels", "value": {"ranges": [{"start": 1, "end": 9}]}}]}],
    }
]  # fmt: skip

CVAT = """<?xml version="1.0" encoding="utf-8"?>
<annotations><version>1.1</version><meta><task><size>300</size><source>tt0000042.mp4</source></task></meta>
<track id="0" label="S" source="manual">
<box frame="25" outside="0" keyframe="1" xtl="1" ytl="1" xbr="2" ybr="2"/>
<box frame="26" outside="0" keyframe="0" xtl="1" ytl="1" xbr="2" ybr="2"/>
<box frame="125" outside="1" keyframe="1" xtl="1" ytl="1" xbr="2" ybr="2"/></track>
<track id="3" label="EN" source="manual">
<box frame="150" outside="0" keyframe="1" xtl="1" ytl="1" xbr="2" ybr="2"/>
<box frame="175" outside="1" keyframe="1" xtl="1" ytl="1" xbr="2" ybr="2"/></track>
<track id="1" label="Body"></track>
<track id="2" label="Body"><box outside="0" keyframe="1"/></track>
</annotations>
"""

TEXTGRID = """File type = "ooTextFile"
Object class = "TextGrid"

xmin = 0
xmax = 10
tiers? <exists>
size = 2
item []:
    item [1]:
        class = "IntervalTier"
        name = "level ""AB"" "
        xmin = 0
        xmax = 10
        intervals: size = 3
        intervals [1]:
            xmin = 0
            xmax = 1
            text = ""
        intervals [2]:
            xmin = 1
            xmax = 5
            text = "S"
        intervals [3]:
            xmin = 5
            xmax = 10
            text = "EN"
    item [2]:
        class = "TextTier"
        name = "points"
        xmin = 0
        xmax = 10
        points: size = 1
        points [1]:
            number = 3
            mark = "x"
"""

BORIS = ["Observation id", "Media file name", "Subject", "Behavior", "Behavioral category", "Behavior type"]
VIAN = "start_ms,end_ms,duration_ms,annotation_0_text"
VIA_HEAD = """# Exported using VGG Image Annotator (http://www.robots.ox.ac.uk/~vgg/software/via)
# ATTRIBUTE = {"1":{"aname":"level","options":{"0":"EN","1":"S"}},"2":{"aname":"concepts","options":{"0":"Body","1":"Look"}}}
# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata
"""
POINT = "a point event, which has no end"
NO_LENGTH = "a marker without length, or of the one frame that its editor gives a point"


def otio_marker(name, first, n_frames):
    """Describe a marker of OpenTimelineIO in frames of 25 a second."""
    times = {
        what: {"OTIO_SCHEMA": "RationalTime.1", "rate": 25.0, "value": value}
        for what, value in (("start_time", first), ("duration", n_frames))
    }
    marked = {"OTIO_SCHEMA": "TimeRange.1"} | times
    return {"OTIO_SCHEMA": "Marker.2", "name": name, "color": "RED", "marked_range": marked}


def web_annotation(target, text):
    """Describe an annotation of the web of one text."""
    return {
        "type": "Annotation",
        "motivation": "tagging",
        "body": {"type": "TextualBody", "value": text},
        "target": target,
    }


EXAMPLES = {
    "eaf": Example(
        eaf({"t1": 1000, "t2": 5000}, tier("human: level@AB", alignable_annotation("a1", "t1", "t2", "S")), "").replace(
            "</HEADER>", '<PROPERTY NAME="movie">tt0000042</PROPERTY></HEADER>'
        ),
        [(1.0, 5.0, "S", ())],
    ),
    "boris": Example(
        tsv(
            [*BORIS, "Start (s)", "Stop (s)"],
            ["o", "films/tt0000042.mp4", "A", "S", "level", "STATE", "1.0", "5.0"],
            ["o", "films/tt0000042.mp4", "A", "body", "concepts", "STATE", "1.0", "5.0"],
            ["o", "films/tt0000042.mp4", "A", "hit", "", "POINT", "6.0", "6.0"],
            ["o", "films/tt0000042.mp4", "A", "S", "level", "STATE", "7.0", "NA"],
        ),
        [(1.0, 5.0, "S", ("Body",))],
        (POINT, "no time ('NA' is not a finite number of seconds)"),
    ),
    "elan-text": Example(
        tsv(
            ["level", "", "00:00:01.000", "1.0", "00:00:05.000", "5.0", "00:00:04.000", "4.0", "S"],
            ["level", "", "00:00:07.000", "7.0", "00:00:09.000", "9.0", "00:00:02.000", "2.0", "EN"],
            ["level", "", "00:00:10.000", "10.0", "00:00:11.000", "11.0", "00:00:01.000", "1.0", ""],
        ),
        [(1.0, 5.0, "S", ()), (7.0, 9.0, "EN", ())],
        ("no text",),
    ),
    "textgrid": Example(
        TEXTGRID, [(1.0, 5.0, "S", ()), (5.0, 10.0, "EN", ())], ("no text", "a point, which has no end")
    ),
    "rttm": Example(
        ";; a comment\nSPEAKER tt0000042 1 1.000 4.000 <NA> <NA> S <NA> <NA>\nSPKR-INFO tt0000042 1 <NA> <NA>\n",
        [(1.0, 5.0, None, ())],
        ("a record SPKR-INFO, no SPEAKER",),
    ),
    "labelstudio": Example(
        json.dumps(LABELSTUDIO),
        [(1.0, 5.0, "S", ("Body",)), (6.0, 7.0, None, ())],
        ("a model's prediction, which is no label", "of type choices, without a stretch of time"),
    ),
    "cvat": Example(
        CVAT, [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        ("a shape without the number of its frame", "it is shown nowhere"),
        options={"rate": Fraction(25)},
    ),
    "vian": Example(
        f",segment_id,segmentation_name,{VIAN}\n0,1,Main,1000,5000,4000,S\n1,2,Main,7000,,,EN\n",
        [(1.0, 5.0, "S", ())],
        ("no end",),
    ),
    "via": Example(
        VIA_HEAD + '"1_a","[""tt0000042.mp4""]",0,"[1.0,5.0]","[]","{""1"":""1"",""2"":""0,1""}"\n'
        '"1_b","[""tt0000042.mp4""]",0,"[2.5]","[]","{""1"":""1""}"\n',
        [(1.0, 5.0, "S", ("Look", "Body"))],
        ("a frame, which is no span",),
    ),
    "activitynet": Example(
        json.dumps({"database": {"tt0000042": {"duration": 9, "annotations": [
            {"segment": [1.0, 5.0], "label": "S"}, {"segment": [1.0], "label": "EN"}]}}}),
        [(1.0, 5.0, "S", ())],
        ("its times cannot be read",),
    ),
    "answers": Example(
        "".join(json.dumps({**ASKED, "clip_id": name, "answers": said}) + "\n" for name, said in ANSWERS.items()),
        [(1.0, 5.0, "S", ("Body",)), (1.0, 5.0, "EN", ())],
        ("concept:Body refused or unclear", "no answer to concept:Look", "several levels are the likeliest"),
        options={"annotator": "vlm"},
    ),
    "moviegraphs": Example(
        json.dumps({"moviegraphs": [
            {"movie": "tt0000042", "start_s": 1, "end_s": 5, "situation": "date", "scene": None, "characters": ["Ann", 3],
             "interactions": [{"from": "Ann", "what": "looks at", "to": "Bob"}, {"from": "Ann"}]},
            {"movie": "tt0000042", "start_s": 6, "end_s": 7, "situation": ""}, 3, {"situation": "x"}]}),
        [(1.0, 5.0, None, ())] * 3,
        (
            "no situation, scene, description, character or interaction", "no JSON object", "its times cannot be read",
            *(f"{tier}: not a text, or without what is said" for tier in ("character", "interaction")),
        ),
    ),
    "srt": Example("1\n00:00:01,000 --> 00:00:05,000\nHi\n\n2\n00:00:06,000 -->\nYou\n", [(1.0, 5.0, None, ())],
                   ("its times cannot be read",)),
    "vtt": Example("WEBVTT\n\n00:01.000 --> 00:05.000\nHi\n\n00:07.000 --> 00:06.000\nYou\n", [(1.0, 5.0, None, ())],
                   ("it ends before it starts",)),
    "ass": Example(
        "[Script Info]\n\n[Events]\nFormat: Layer, Start, End, Text\nDialogue: 0,0:00:01.00,0:00:05.00,Hi, you\n"
        "Comment: 0,0:00:01.00,0:00:05.00,no\n", [(1.0, 5.0, None, ())], ("a comment",)),
    "ttml": Example(
        '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter" ttp:frameRate="25" xml:lang="en">'
        '<body><div begin="1s"><p begin="0s" end="00:00:04:00">Hi</p><p begin="6s" dur="0s">You</p></div></body></tt>',
        [(1.0, 5.0, None, ())],
        ("it has no length",),
    ),
    "transcript": Example(
        json.dumps({"text": " Hi. You.", "segments": [
            {"id": 0, "seek": 0, "start": 1.0, "end": 5.0, "text": " Hi."}, {"id": 1, "start": 6.0, "text": " You."}],
            "language": "en"}),
        [(1.0, 5.0, None, ())],
        ("its times cannot be read",),
    ),
    "markers": Example(
        tsv(
            ["Marker Name", "Description", "In", "Out", "Duration", "Marker Type"],
            ["S", "", "00:00:01:00", "00:00:05:00", "00:00:04:00", "level"],
            ["EN", "", "00:00:06:00", "00:00:07:00", "00:00:01:00", "level"],
            ["cut", "", "00:00:08:00", "00:00:08:00", "00:00:00:00", "Comment"],
        ),
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        (NO_LENGTH,),
        options={"rate": Fraction(25)},
    ),
    "edl": Example(
        "TITLE: tt0000042\nFCM: NON-DROP FRAME\n\n"
        "001  001      V     C        01:00:01:00 01:00:01:01 01:00:01:00 01:00:01:01  \n"
        " |C:ResolveColorBlue |M:S |D:100\n\n"
        "002  001      V     C        01:00:06:00 01:00:06:01 01:00:06:00 01:00:06:01  \n"
        " |C:ResolveColorBlue |M:EN |D:25\n\n"
        "003  001      V     C        01:00:08:00 01:00:08:01 01:00:08:00 01:00:08:01  \n"
        " |C:ResolveColorBlue |M:cut |D:1\n",
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        (NO_LENGTH,),
        options={"rate": Fraction(25), "start": "01:00:00:00"},
    ),
    "xmeml": Example(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE xmeml>\n<xmeml version="5"><sequence><name>film</name><rate>'
        "<timebase>25</timebase><ntsc>FALSE</ntsc></rate><marker><name>S</name><comment/><in>25</in><out>125</out></marker>"
        "<marker><name>EN</name><in>150</in><out>175</out></marker><marker><name>cut</name><in>200</in><out>-1</out></marker>"
        "</sequence></xmeml>",
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        (NO_LENGTH,),
    ),
    "fcpxml": Example(
        '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE fcpxml>\n<fcpxml version="1.10"><resources>'
        '<asset id="r1" name="tt0000042" src="file:///films/tt0000042.mov" start="3600s" duration="9s"/></resources><library>'
        '<event><project><sequence><spine><asset-clip ref="r1" offset="0s" start="3600s" duration="9s">'
        '<keyword start="3601s" duration="4s" value="S"/><keyword start="90150/25s" duration="1s" value="EN"/>'
        '<marker start="3608s" duration="1/25s" value="cut"/></asset-clip></spine></sequence></project></event></library></fcpxml>',
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        (NO_LENGTH,),
    ),
    "otio": Example(
        json.dumps({"OTIO_SCHEMA": "Timeline.1", "name": "film", "tracks": {"OTIO_SCHEMA": "Stack.1", "children": [
            {"OTIO_SCHEMA": "Track.1", "children": [{"OTIO_SCHEMA": "Clip.2", "name": "tt0000042", "markers": [
                otio_marker("S", first=25, n_frames=100), otio_marker("EN", first=150, n_frames=25), otio_marker("cut", first=200, n_frames=0)]}]}]}}),
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        (NO_LENGTH,),
    ),
    "jsonld": Example(
        json.dumps({"@context": "http://www.w3.org/ns/anno.jsonld", "type": "AnnotationPage", "items": [
            web_annotation("http://example.org/tt0000042.mp4#t=1,5", "S"),
            web_annotation({"source": "urn:film:tt0000042", "selector": {"value": "t=6,7"}}, "EN"),
            web_annotation("http://example.org/tt0000042.mp4", "HN")]}),
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        ("of no stretch of time",),
    ),
    "iiif": Example(
        json.dumps({"@context": "http://iiif.io/api/presentation/3/context.json", "type": "Manifest",
            "metadata": [{"label": {"en": ["Movie"]}, "value": {"none": ["tt0000042"]}}],
            "items": [{"type": "Canvas", "annotations": [{"type": "AnnotationPage", "items": [
                web_annotation("https://example.org/canvas#t=1,5", "S"),
                web_annotation("https://example.org/canvas#t=6,7", "EN"),
                web_annotation("https://example.org/canvas#xywh=1,1,2,2", "HN")]}]}]}),
        [(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())],
        ("of no stretch of time",),
    ),
    "refi-qda": Example(
        '<?xml version="1.0" encoding="utf-8"?>\n<Project xmlns="urn:QDA-XML:project:1.0" name="p" origin="NVivo"><Users>'
        '<User guid="U1" name="AB"/></Users><CodeBook><Codes><Code guid="C0" name="level" isCodable="false">'
        '<Code guid="C1" name="S" isCodable="true"/></Code><Code guid="C9" name="concepts" isCodable="false">'
        '<Code guid="C2" name="Body" isCodable="true"/></Code></Codes></CodeBook><Sources>'
        '<TextSource guid="T1" name="notes"/><VideoSource guid="V1" name="tt0000042.mp4" path="internal://V1.mp4">'
        '<VideoSelection guid="S1" begin="1000" end="5000" creatingUser="U1">'
        '<Coding guid="K1"><CodeRef targetGUID="c1"/></Coding><Coding guid="K2"><CodeRef targetGUID="C2"/></Coding>'
        '</VideoSelection><VideoSelection guid="S2" begin="1" end="2"/></VideoSource></Sources></Project>',
        [(1.0, 5.0, "S", ("Body",))],
        ("of a text, which has no times", "a selection without a code"),
    ),
    "judgements": Example(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator,seen_score\n"
        "a,tt0000042,,1.0,5.0,S,Body,AB,0\nb,tt0000042,,6.0,7.0,,,AB,0\n",
        [(1.0, 5.0, "S", ("Body",))],
        ("without a level",),
    ),
    "table": Example("movie,start_s,end_s,level,concepts\ntt0000042,1.0,5.0,S,Body\n", [(1.0, 5.0, "S", ("Body",))]),
}  # fmt: skip
"""Files of kinds of `SOURCES`, with more records than the samples in kinds.toml and what is left out."""
