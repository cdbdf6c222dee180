"""One annotation, written as each tool saves it: marks on tiers, at whole seconds of the film tt1."""

import json
from typing import NamedTuple

from tests.manifest.spans.files import alignable_annotation, eaf, tier, tsv


class Mark(NamedTuple):
    """A text on a tier, from one second to another."""

    tier: str
    start: int
    end: int
    text: str


def as_eaf(marks):
    """Write a document of ELAN: a tier for each tier of the marks, signed AB."""
    slots = {}  # a time slot for each second at which a mark begins or ends
    annotations = {}  # XML of the annotations, by tier
    for n, mark in enumerate(marks):
        start, end = f"t{mark.start}", f"t{mark.end}"
        slots |= {start: 1000 * mark.start, end: 1000 * mark.end}
        annotation = alignable_annotation(f"a{n}", start, end, mark.text)
        annotations[mark.tier] = annotations.get(mark.tier, "") + annotation
    tiers = "".join(tier(name, body, 'ANNOTATOR="AB"') for name, body in annotations.items())
    return eaf(slots, tiers, '<PROPERTY NAME="movie">tt1</PROPERTY>')


def as_textgrid(marks):
    """Write a TextGrid of Praat, in its short form: a tier of intervals for each tier of the marks."""
    names = dict.fromkeys(mark.tier for mark in marks)
    lines = ['"ooTextFile"', '"TextGrid"', f"0 999 <exists> {len(names)}"]
    for name in names:
        own = [mark for mark in marks if mark.tier == name]
        lines.append(f'"IntervalTier" "{name}" 0 999 {len(own)}')
        lines += [f'{mark.start} {mark.end} "{mark.text}"' for mark in own]
    return "\n".join(lines)


def as_elan_text(marks):
    """Write the table that ELAN exports, with tabs: a row for each mark."""
    head = ["Tier", "Begin Time - ss.msec", "End Time - ss.msec", "Annotation"]
    return tsv(head, *([mark.tier, f"{mark.start}.0", f"{mark.end}.0", mark.text] for mark in marks))


def as_boris(marks):
    """Write the table of BORIS: a row for each mark, whose tier is the category of a behaviour."""
    head = ["Media file name", "Behavior", "Behavioral category", "Behavior type", "Start (s)", "Stop (s)"]
    rows = (["tt1.mp4", mark.text, mark.tier, "STATE", str(mark.start), str(mark.end)] for mark in marks)
    return tsv(head, *rows)


def as_labelstudio(marks):
    """Write a task of Label Studio: a region for each mark, made with a control named as its tier."""
    regions = [
        {
            "type": "labels",
            "from_name": mark.tier,
            "value": {"start": mark.start, "end": mark.end, "labels": [mark.text]},
        }
        for mark in marks
    ]
    return json.dumps([{"id": 1, "data": {"audio": "tt1.wav"}, "annotations": [{"result": regions}]}])


def as_cvat(marks):
    """Write tracks of CVAT, one for each mark: a box from its first frame on, to its last, at 25 a second."""
    tracks = "".join(
        f'<track id="0" label="scene"><box frame="{25 * mark.start}" outside="0">'
        f'<attribute name="{mark.tier}">{mark.text}</attribute></box>'
        f'<box frame="{25 * mark.end}" outside="1"/></track>'
        for mark in marks
    )
    return f"<annotations><meta><task><source>tt1.mp4</source></task></meta>{tracks}</annotations>"


def as_vian(marks):
    """Write the table of VIAN: a row for each mark, whose tier is a segmentation."""
    rows = "".join(f"{mark.tier},{mark.start}000,{mark.end}000,{mark.text}\n" for mark in marks)
    return f"segmentation_name,start_ms,end_ms,annotation_0\n{rows}"


def as_via(marks):
    """Write the table of VIA: a row for each mark, whose tier is an attribute of any text."""
    names = {mark.tier: str(n) for n, mark in enumerate(marks)}
    attributes = {number: {"aname": name, "options": {}} for name, number in names.items()}
    lines = [f"# ATTRIBUTE = {json.dumps(attributes)}"]
    lines.append("# CSV_HEADER = metadata_id,file_list,temporal_coordinates,metadata")
    for n, mark in enumerate(marks):
        said = json.dumps({names[mark.tier]: mark.text}).replace('"', '""')
        lines.append(f'"1_{n}","[""tt1.mp4""]","[{mark.start},{mark.end}]","{said}"')
    return "\n".join(lines) + "\n"


def as_activitynet(marks):
    """Write a database of ActivityNet, in which labels have no tiers."""
    annotations = [{"segment": [mark.start, mark.end], "label": mark.text} for mark in marks]
    return json.dumps({"database": {"tt1": {"annotations": annotations}}})


def as_rttm(marks):
    """Write turns of speech, in which the text of a mark is the name of the speaker."""
    return "".join(
        f"SPEAKER tt1 1 {mark.start} {mark.end - mark.start} <NA> <NA> {mark.text} <NA> <NA>\n"
        for mark in marks
    )


def as_srt(marks):
    """Write subtitles in the form SRT."""
    return "".join(
        f"{n}\n00:00:{mark.start:02},000 --> 00:00:{mark.end:02},000\n{mark.text}\n\n"
        for n, mark in enumerate(marks, start=1)
    )


def as_vtt(marks):
    """Write subtitles in the form WebVTT."""
    cues = (f"00:{mark.start:02}.000 --> 00:{mark.end:02}.000\n{mark.text}\n\n" for mark in marks)
    return "WEBVTT\n\n" + "".join(cues)


def as_ass(marks):
    """Write subtitles in the form ASS."""
    lines = (f"Dialogue: 0,0:00:{mark.start:02}.00,0:00:{mark.end:02}.00,{mark.text}\n" for mark in marks)
    return "[Events]\nFormat: Layer, Start, End, Text\n" + "".join(lines)


def as_moviegraphs(marks):
    """Write graphs of MovieGraphs, in which the text of a mark is the situation."""
    graphs = [
        {"movie": "tt1", "start_s": mark.start, "end_s": mark.end, "situation": mark.text} for mark in marks
    ]
    return json.dumps({"moviegraphs": graphs})


def as_markers(marks):
    """Write the table of markers of Premiere: the tier of a mark is the type of its marker."""
    rows = ([mark.text, f"00:00:{mark.start:02}:00", f"00:00:{mark.end:02}:00", mark.tier] for mark in marks)
    return tsv(["Marker Name", "In", "Out", "Marker Type"], *rows)


def as_jsonld(marks):
    """Write annotations of the web: the tier of a mark is the purpose of a text."""
    items = [
        {
            "target": f"urn:film:tt1#t={mark.start},{mark.end}",
            "body": {"purpose": mark.tier, "value": mark.text},
        }
        for mark in marks
    ]
    return json.dumps({"@context": "http://www.w3.org/ns/anno.jsonld", "items": items})


def as_refi_qda(marks):
    """Write a project of REFI-QDA: each text is a code below one that is named as its tier."""
    codes = dict.fromkeys((mark.tier, mark.text) for mark in marks)
    book = "".join(
        f'<Code guid="{n}a" name="{above}"><Code guid="{n}" name="{name}"/></Code>'
        for n, (above, name) in enumerate(codes)
    )
    places = {code: n for n, code in enumerate(codes)}
    selections = "".join(
        f'<VideoSelection begin="{mark.start}000" end="{mark.end}000"><Coding>'
        f'<CodeRef targetGUID="{places[mark.tier, mark.text]}"/></Coding></VideoSelection>'
        for mark in marks
    )
    return (
        '<Project xmlns="urn:QDA-XML:project:1.0"><CodeBook><Codes>'
        f'{book}</Codes></CodeBook><Sources><VideoSource name="tt1.mp4">{selections}'
        "</VideoSource></Sources></Project>"
    )


def as_ttml(marks):
    """Write subtitles in the form TTML."""
    texts = "".join(f'<p begin="{mark.start}s" end="{mark.end}s">{mark.text}</p>' for mark in marks)
    return f'<tt xmlns="http://www.w3.org/ns/ttml"><body><div>{texts}</div></body></tt>'


def as_transcript(marks):
    """Write a transcript as Whisper does, in JSON."""
    segments = [{"start": mark.start, "end": mark.end, "text": mark.text} for mark in marks]
    return json.dumps({"segments": segments})


WITH_TIERS = {
    "eaf": as_eaf,
    "textgrid": as_textgrid,
    "elan-text": as_elan_text,
    "boris": as_boris,
    "labelstudio": as_labelstudio,
    "cvat": as_cvat,
    "vian": as_vian,
    "via": as_via,
    "markers": as_markers,
    "jsonld": as_jsonld,
    "refi-qda": as_refi_qda,
}
"""Kinds whose marks are on tiers that people name."""

OF_ONE_TIER = {
    "activitynet": as_activitynet,
    "rttm": as_rttm,
    "srt": as_srt,
    "vtt": as_vtt,
    "ass": as_ass,
    "ttml": as_ttml,
    "transcript": as_transcript,
    "moviegraphs": as_moviegraphs,
}
"""Kinds in which no mark says on which tier it is."""
