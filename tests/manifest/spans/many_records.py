# ruff: noqa: E501 - records are kept as tools write them
"""Files of each kind with any number of records: all of one thing, or each of a film, person, tier of its own."""

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tests.manifest.spans.files import alignable_annotation, eaf, ref_annotation, tier


class Pattern(NamedTuple):
    """What a file has above its records, a record, what is below, and what stands between two records.

    In a record, {i} is its number from 0 on, {next} and {later} are numbers that are one and two above, and
    {clock} is hh:mm:ss of as many seconds; in what is above, {n} is the number of records.
    """

    above: str
    record: str
    below: str = ""
    between: str = ""


def written(pattern: Pattern, n: int) -> str:
    """Write a file of n records."""
    records = []
    for i in range(n):
        values = {
            "i": i,
            "next": i + 1,
            "later": i + 2,
            "clock": f"{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}",
        }
        record = pattern.record
        for name, value in values.items():
            record = record.replace(f"{{{name}}}", str(value))
        records.append(record)
    return pattern.above.replace("{n}", str(n)) + pattern.between.join(records) + pattern.below


GRID = 'File type = "ooTextFile"\nObject class = "TextGrid"\n0 9999\n'
TT = '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>'
TASK = '<?xml version="1.0"?><annotations><meta><task><name>f.mp4</name><size>99999</size></task></meta>'
CLIPS = "clip_id,movie,video,start_s,end_s,level,concepts,annotator\n"
EVENTS = "Observation id,Media file,Time,Subject,Behavior,Behavioral category,Status\n"

PATTERNS = {
    "srt": Pattern("", "{next}\n{clock},000 --> {clock},900\n<v s{i}>a{i}\n\n"),
    "srt one time": Pattern("", "{next}\n00:00:01,000 --> 00:00:02,000\nw{i}\n\n"),
    "vtt": Pattern("WEBVTT\n\n", "c{i}\n{clock}.000 --> 99:00:00.000 set:{i}\n<v s{i}>a{i}\n\n"),
    "ass": Pattern("[Script Info]\n[Events]\nFormat: Layer, Start, End, Style, Name, Text\n", "Dialogue: 0,0:00:01.00,0:00:02.00,D{i},N{i},t{i}\n"),
    "rttm": Pattern("", "SPEAKER film{i} 1 {i} 2.0 <NA> <NA> S{i} <NA> <NA>\n"),
    "rttm one film": Pattern("", "SPEAKER film 1 1 2.0 <NA> <NA> S{i} <NA> <NA>\n"),
    "textgrid": Pattern(GRID + "<exists> {n}\n", '"IntervalTier" "t{i}" 0 9999 1 0 1 "a{i}"\n'),
    "textgrid intervals": Pattern(GRID + '<exists> 1\n"IntervalTier" "t" 0 99999 {n}\n', '{i} {next} "a{i}"\n'),
    "ttml": Pattern(TT, '<p begin="{i}s" end="{next}s"><span begin="0s">a{i}</span> b<br/>c</p>', "</div></body></tt>"),
    "ttml one text": Pattern(TT + '<p end="9s">', "<span>a{i}</span>", "</p></div></body></tt>"),
    "transcript": Pattern('{"segments": [', '{"start": {i}, "end": {next}, "text": "a{i}", "speaker": "s{i}"}', "]}", ","),
    "transcript of words": Pattern('{"words": [', '{"word": "a{i}", "start": {i}, "end": {next}}', "]}", ","),
    "markers": Pattern("Marker Name\tIn\tOut\tMarker Type\n", "a{i}\t{i}\t{next}\tt{i}\n"),
    "edl": Pattern("TITLE: a\nFCM: NON-DROP FRAME\n", "001 001 V C 00:00:01:00 00:00:01:01 00:00:01:00 00:00:01:01\n|C:c{i} |M:a{i} |D:10\n"),
    "xmeml": Pattern("<xmeml><sequence><rate><timebase>25</timebase></rate>", "<marker><name>a{i}</name><in>{i}</in><out>{later}</out></marker>", "</sequence></xmeml>"),
    "otio": Pattern('{"OTIO_SCHEMA": "Track.1", "markers": [', '{"name": "a{i}", "color": "c{i}", "marked_range": {"start_time": {"rate": 1, "value": {i}}, "duration": {"rate": 1, "value": 1}}}', "]}", ","),
    "jsonld": Pattern('{"@context": "http://www.w3.org/ns/anno.jsonld", "items": [', '{"target": "http://a/f{i}.mp4#t={i},{next}", "body": {"purpose": "p{i}", "value": "a{i}"}}', "]}", ","),
    "iiif": Pattern('{"@context": "http://iiif.io/api/presentation/3/context.json", "items": [{"annotations": [{"items": [', '{"target": "http://a/f{i}#t={i},{next}", "body": {"value": "a{i}"}}', "]}]}]}", ","),
    "elan-text": Pattern("", "t{i}\tp{i}\t{i}.0\t{next}.0\tw{i}\n"),
    "boris": Pattern(EVENTS, "o,f{i}.mp4,{i},s{i},b{i},c{i},START\n"),
    "boris pairs": Pattern(EVENTS, "o{i},f{i}.mp4,1,s{i},b{i},c{i},START\no{i},f{i}.mp4,2,s{i},b{i},c{i},STOP\n"),
    "vian": Pattern("segmentation_name,START_MS,END_MS,SELECTOR_TYPE,annotation_body\n", "s{i},{i}000,{i}500,t,b{i}\n"),
    "answers": Pattern("", '{"clip_id": "c{i}", "movie": "m{i}", "start_s": {i}, "end_s": {next}, "model": "k{i}", "prompt": "p{i}", "answers": {"level:S": "yes", "concept:C{i}": 0.9}}\n'),
    "answers one machine": Pattern("", '{"clip_id": "c{i}", "movie": "m", "start_s": {i}, "end_s": {next}, "model": "k", "prompt": "p", "answers": {"level:S": "yes", "concept:Body": 0.9}}\n'),
    "labelstudio": Pattern("[", '{"id": {i}, "data": {"video": "/upload/1/f{i}.mp4"}, "annotations": [{"completed_by": {i}, "result": [{"from_name": "l{i}", "type": "timelinelabels", "value": {"ranges": [{"start": 1, "end": 5}], "timelinelabels": ["L{i}"]}}]}]}', "]", ","),
    "labelstudio regions": Pattern('[{"id": 1, "data": {"video": "/upload/1/f.mp4", "fps": 25}, "annotations": [{"completed_by": 1, "result": [', '{"id": "r{i}", "from_name": "l{i}", "type": "labels", "value": {"start": {i}, "end": {next}, "labels": ["L{i}"]}}', "]}]}]", ","),
    "activitynet": Pattern('{"database": {', '"v{i}": {"duration": 9, "annotations": [{"segment": [1, 2], "label": "l{i}"}]}', "}}", ","),
    "activitynet one": Pattern('{"database": {"v": {"duration": 99999, "annotations": [', '{"segment": [{i}, {next}], "label": "l{i}"}', "]}}}", ","),
    "via": Pattern("# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata\n", '"m{i}","[""f{i}.mp4""]","0","[{i},{next}]","[]","{""1"":""a{i}""}"\n'),
    "cvat tracks": Pattern(TASK, '<track id="{i}" label="l{i}"><box frame="{i}" outside="0"><attribute name="a{i}">v{i}</attribute></box><box frame="{later}" outside="1"/></track>', "</annotations>"),
    "cvat boxes": Pattern(TASK + '<track id="1" label="l">', '<box frame="{i}" outside="0"><attribute name="a{i}">v{i}</attribute></box>', "</track></annotations>"),
    "cvat images": Pattern(TASK, '<image id="{i}" name="frame_{i}"><tag label="t{i}"><attribute name="a{i}">v{i}</attribute></tag></image>', "</annotations>"),
    "table": Pattern(CLIPS, "c{i},m{i},m{i}.mp4,{i},{next},S,Body;Look,p{i}\n"),
    "table one film": Pattern(CLIPS, "c{i},m,m.mp4,1,2,S,Body;Look,p\n"),
    "table of other headings": Pattern("Film,From,To,Rating,Remark\n", "m,{i},{next},S,he sees {i}\n"),
    "table of ranges": Pattern("Film,When,Rating\n", "m,{i} - {next},S\n"),
    "table overlapping": Pattern("movie,start_s,end_s,level,annotator\n", "m,{i},{i}5000,S,p\nm,{next},{i}5000,EN,p\n"),
    "table errors": Pattern("movie,start_s,end_s,level,annotator\n", "m,{i},x{i},L{i},p\n"),
    "judgements": Pattern("clip_id,movie,start_s,end_s,level,annotator,seen_score\n", "c,m,{i},{next},S,p{i},0\n"),
}  # fmt: skip


def columns_of_a_table(n: int) -> str:
    """Write two rows with n columns beside those of a clip."""
    heads = "".join(f",h{i}" for i in range(n))
    return f"movie,start_s,end_s,level{heads}\n" + f"m,1,2,S{',1' * n}\n" * 2


def columns_of_a_tool(n: int) -> str:
    """Write an event of BORIS with n columns that are not read."""
    heads = "".join(f",h{i}" for i in range(n))
    return f"Observation id,Time,Behavior,Status{heads}\no,1,b,START{',1' * n}\n"


def boris_media(n: int) -> str:
    """Write an observation of many media, in as many rows: n cells in all."""
    n_media = int(n**0.5)
    media = "player #1:" + ";".join(f"f{k}.mp4" for k in range(n_media))
    durations = ";".join(["1"] * n_media)
    rows = "".join(f'o,"{media}","{durations}",{k},{k + 1},b{k}\n' for k in range(n_media))
    return "Observation id,Source,Media duration (s),Start (s),Stop (s),Behavior\n" + rows


def answers_to_many_questions(n: int) -> str:
    """Write answers about two clips, each to n questions."""
    answers = {f"level:{k}": k / n for k in range(n)}
    asked = {"movie": "m", "start_s": 0, "end_s": 1, "model": "k", "prompt": "p", "answers": answers}
    return "".join(json.dumps(asked | {"clip_id": name}) + "\n" for name in ("c0", "c1"))


def fcpxml(n: int) -> str:
    """Write n clips of n films."""
    assets = "".join(f'<asset id="r{i}" src="file:///f{i}.mov"/>' for i in range(n))
    clip = '<asset-clip ref="r{i}"><keyword start="{i}s" duration="1s" value="a{i}"/></asset-clip>'
    above = f"<fcpxml><resources>{assets}</resources><spine>"
    return written(Pattern(above, clip, "</spine></fcpxml>"), n)


def refi_qda(n: int) -> str:
    """Write n selections, each with a code of its own."""
    codes = "".join(f'<Code guid="c{i}" name="a{i}"/>' for i in range(n))
    above = f'<Project xmlns="urn:QDA-XML:project:1.0"><CodeBook><Codes>{codes}</Codes></CodeBook><Sources><VideoSource name="f.mp4">'
    selection = '<VideoSelection begin="{i}000" end="{next}000"><Coding><CodeRef targetGUID="c{i}"/></Coding></VideoSelection>'
    return written(Pattern(above, selection, "</VideoSource></Sources></Project>"), n)


def eaf_tiers(n: int) -> str:
    """Write n tiers, each below the one before."""
    slots = {f"t{i}": 10 * i for i in range(2 * n)}
    tiers = ""
    for i in range(n):
        annotation = alignable_annotation(f"a{i}", f"t{2 * i}", f"t{2 * i + 1}", f"w{i}")
        tiers += tier(f"T{i}", annotation, f'ANNOTATOR="p{i}" PARENT_REF="T{i - 1}" PARTICIPANT="q{i}"')
    return eaf(slots, tiers)


FIRST = tier("T", alignable_annotation("a0", "t0", "t1", "w"))


def eaf_chain(n: int) -> str:
    """Write n annotations, each of which refers to the one before."""
    chain = "".join(ref_annotation(f"a{i}", f"a{i - 1}", f"w{i}") for i in range(1, n))
    return eaf({"t0": 0, "t1": None}, FIRST + tier("U", chain))


def eaf_subdivided(n: int) -> str:
    """Write an annotation that is divided into n."""
    parts = ref_annotation("a1", "a0", "w1")
    for i in range(2, n):
        parts += ref_annotation(f"a{i}", "a0", f"w{i}", f'PREVIOUS_ANNOTATION="a{i - 1}"')
    return eaf({"t0": 0, "t1": 1000}, FIRST + tier("U", parts))


def eaf_open_run(n: int) -> str:
    """Write n annotations that end in one slot without a time, from which n such slots follow each other."""
    slots = {f"k{i}": i for i in range(n)} | {f"u{i}": None for i in range(n)}
    into_first = "".join(alignable_annotation(f"x{i}", f"k{i}", "u0", "w") for i in range(n))
    run = "".join(alignable_annotation(f"y{i}", f"u{i}", f"u{i + 1}", "w") for i in range(n - 1))
    return eaf(slots, tier("T", into_first + run))


def eaf_rounds(n: int) -> str:
    """Write n tiers, of which each gives a time to a slot that the tier before it needs."""
    slots: dict[str, int | None] = {"u0": 0}
    slots |= {f"u{i}": None for i in range(1, n)}
    slots |= {f"k{i}": 5 * i for i in range(1, n)}
    tiers = ""
    for i in range(1, n):
        annotations = alignable_annotation(f"a{i}", f"u{i - 1}", f"u{i}", "w") + alignable_annotation(
            f"b{i}", f"u{i}", f"k{i}", "w"
        )
        tiers += tier(f"T{n - i}", annotations)
    return eaf(slots, tiers)


FILES: Mapping[str, Callable[[int], str] | Pattern] = PATTERNS | {
    "columns of a table": columns_of_a_table,
    "columns of a tool that are not read": columns_of_a_tool,
    "boris media": boris_media,
    "answers many questions": answers_to_many_questions,
    "fcpxml": fcpxml,
    "refi-qda": refi_qda,
    "eaf tiers": eaf_tiers,
    "eaf chain": eaf_chain,
    "eaf subdivided": eaf_subdivided,
    "eaf open run": eaf_open_run,
    "eaf rounds": eaf_rounds,
}


def file_of(kind: str, n: int) -> str:
    """Write a file of a kind with n records."""
    file = FILES[kind]
    return written(file, n) if isinstance(file, Pattern) else file(n)
