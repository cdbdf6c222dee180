# ruff: noqa: E501 - records are kept as tools write them
"""What a source writes it reads back; a change of one record costs that record alone, or is said."""

import re
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Subtitle, import_spans, write_rttm, write_srt, write_textgrid, write_vtt
from obygaze_features.manifest.spans.textgrid import spread_over_tiers
from tests.manifest.spans.files import (
    CVAT,
    EXAMPLES,
    TEXTGRID,
    VIA_HEAD,
    VIAN,
    alignable_annotation,
    eaf,
    sheet,
    tier,
    tsv,
)

WORDS = (
    st.text("aé ‌<&\"'=中\U0001f600", min_size=1, max_size=12)
    .map(lambda text: " ".join(text.split()))
    .filter(bool)
)


@st.composite
def subtitles(draw):
    """Draw one to six subtitles, which may overlap: times in whole milliseconds, up to 10,100 s."""
    drawn = []
    for _ in range(draw(st.integers(1, 6))):
        start_ms = draw(st.integers(0, 10_000_000))
        length_ms = draw(st.integers(9, 100_000))
        drawn.append(Subtitle(start_ms / 1000, (start_ms + length_ms) / 1000, draw(WORDS)))
    return drawn


def rttm_of(spans):
    """Write turns of speech of film tt1, with the text of each span for the name of its speaker."""
    return write_rttm([(span.text, span) for span in spans], "tt1")


def textgrid_of(spans):
    """Write a TextGrid of 20,000 s, which is longer than any of the spans."""
    return write_textgrid({"words": spans}, end_s=20_000.0)


WRITERS = {"srt": write_srt, "vtt": write_vtt, "textgrid": textgrid_of, "rttm": rttm_of}


def milliseconds(time_s):
    return round(1000 * time_s)


def times_in_ms(spans):
    """Return start and end of each span, or clip, in milliseconds and in order."""
    return sorted((milliseconds(span.start_s), milliseconds(span.end_s)) for span in spans)


def times_and_texts_in_ms(spans):
    """Return start and end in milliseconds and the text of each (start_s, end_s, text), in order."""
    return sorted((milliseconds(start_s), milliseconds(end_s), text) for start_s, end_s, text in spans)


@pytest.mark.parametrize("kind", ["srt", "vtt", "textgrid", "rttm"])
@given(spans=subtitles())
def test_written_spans_are_read_back_to_the_millisecond(tmp_path, kind, spans):
    """Up to six spans, each of any times and any text, are written as a file of the kind and imported.

    Spans may overlap. The kinds are SRT and WebVTT for subtitles, TextGrid of the tool
    Praat, and RTTM for turns of speech.
    """
    write_spans = WRITERS[kind]
    path = tmp_path / "tt1.x"
    path.write_text(write_spans(spans), encoding="utf-8", newline="")

    imported = import_spans([path], tmp_path, kind)

    assert times_in_ms(imported.manifest) == times_in_ms(spans)
    (account,) = imported.accounts
    assert account.used == len(spans)


def on_first_free_tiers(spans):
    """Put spans, (start, end, text) in order, one by one on the first tier whose last span has ended.

    Where there is none, a new tier is begun. It returns the spans of each tier, of which there is at least
    one.
    """
    tiers = [[]]
    for span in spans:
        start_s, _, _ = span
        for spans_of_tier in tiers:
            if not spans_of_tier or spans_of_tier[-1][1] <= start_s:
                spans_of_tier.append(span)
                break
        else:
            tiers.append([span])
    return tiers


@given(
    starts_and_lengths=st.lists(
        st.tuples(st.integers(min_value=0, max_value=20), st.integers(min_value=1, max_value=8)), max_size=14
    )
)
def test_each_span_is_on_the_first_tier_that_is_free(starts_and_lengths):
    """A tier is a row of annotations along a film, on which no two spans may overlap.

    Up to 14 spans, which may overlap, are spread over several tiers: each goes to the first tier whose last
    span has ended, as it does where they are put there one by one.
    """
    spans = []
    for start, length in starts_and_lengths:
        spans.append((float(start), float(start + length), "x"))
    spans.sort()

    tiers = [spans_of_tier for _, spans_of_tier in spread_over_tiers("words", spans)]

    assert tiers == on_first_free_tiers(spans)


@given(spans=subtitles())
def test_praatio_reads_the_textgrids_that_are_written(tmp_path, spans):
    """Spans of any times and texts are written as a TextGrid, a file of the tool Praat.

    Praatio, a library for such files, reads the same times and texts.
    """
    praatio = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "f.TextGrid"
    path.write_text(textgrid_of(spans), encoding="utf-8", newline="")

    entries = []
    for tier_of_file in praatio.openTextgrid(str(path), includeEmptyIntervals=False).tiers:
        entries += tier_of_file.entries

    assert times_and_texts_in_ms(entries) == times_and_texts_in_ms(spans)


@given(spans=subtitles())
def test_pympi_reads_the_textgrids_that_are_written(tmp_path, spans):
    """Spans of any times and texts are written as a TextGrid, a file of the tool Praat.

    Pympi, another library for such files, reads the same times and texts. It also gives the intervals
    between texts, which are empty.
    """
    pympi = pytest.importorskip("pympi.Praat")
    path = tmp_path / "f.TextGrid"
    path.write_text(textgrid_of(spans), encoding="utf-8", newline="")

    intervals_with_text = []
    for tier_of_file in pympi.TextGrid(str(path)).get_tiers():
        for start_s, end_s, text in tier_of_file.get_all_intervals():
            if text:
                intervals_with_text.append((start_s, end_s, text))

    assert times_and_texts_in_ms(intervals_with_text) == times_and_texts_in_ms(spans)


@given(spans=subtitles())
def test_pysubs2_reads_the_subtitles_that_are_written(spans):
    """Subtitles of any times and texts are written as SRT and as WebVTT.

    Pysubs2, a library for subtitles, reads the same times, in milliseconds.
    """
    pysubs2 = pytest.importorskip("pysubs2")
    for kind in ("srt", "vtt"):
        events = pysubs2.SSAFile.from_string(WRITERS[kind](spans), kind)
        assert sorted((event.start, event.end) for event in events) == times_in_ms(spans)


@given(spans=subtitles())
def test_turns_are_written_as_pyannote_writes_them(spans):
    """RTTM has no blanks in names, so a text of several words is joined by _. The order of lines is free."""
    core = pytest.importorskip("pyannote.core")
    annotation = core.Annotation(uri="tt1")
    for number, (start_s, end_s, text) in enumerate(spans):
        annotation[core.Segment(start_s, end_s), number] = "_".join(text.split())

    lines_of_pyannote = annotation.to_rttm().split("\n")

    assert sorted(rttm_of(spans).split("\n")) == sorted(lines_of_pyannote)


@given(spans=subtitles())
def test_intervals_of_a_textgrid_neither_overlap_nor_leave_gaps(spans):
    """Praat demands that the intervals of a tier cover the time from 0 to its end, here 20,000 s.

    So each begins where the one before ends.
    """
    _, *tiers = textgrid_of(spans).split('class = "IntervalTier"')
    for text_of_tier in tiers:
        # The first xmin and xmax are of the tier as a whole, all others of its intervals.
        _, *starts = [float(time) for time in re.findall(r"xmin = (\S+)", text_of_tier)]
        _, *ends = [float(time) for time in re.findall(r"xmax = (\S+)", text_of_tier)]
        assert starts == [0.0, *ends[:-1]]
        assert ends[-1] == 20_000
        assert all(start < end for start, end in zip(starts, ends, strict=True))


HEAD, TAIL = eaf({f"t{n}": 1000 * n for n in range(1, 60)}, tier("gaze", "|")).split("|")
GRID = TEXTGRID.partition("    item [2]")[0].partition("        intervals [1]")[0]
GRID = GRID.replace("size = 2", "size = 1").replace("size = 3", "size = 6").replace("10\n", "90\n")
BOUTS = ["Behavior", "Behavior type", "Start (s)", "Stop (s)", "Media file name"]
FORMS = {
    "srt": ("", "{n}\n00:00:{a:02},000 --> 00:00:{b:02},000\nword{k}\n\n", ""),
    "vtt": ("WEBVTT\n\n", "00:{a:02}.000 --> 00:{b:02}.000\nword{k}\n\n", ""),
    "rttm": ("", "SPEAKER tt1 1 {a} 4 <NA> <NA> word{k} <NA> <NA>\n", ""),
    "ass": (EXAMPLES["ass"].content.partition("Dialogue")[0], "Dialogue: 0,0:00:{a:02}.00,0:00:{b:02}.00,word{k}\n", ""),
    "eaf": (HEAD, alignable_annotation("a{k}", "t{a}", "t{b}", "S"), TAIL),
    "textgrid": (GRID, ' intervals [{k}]:\n xmin = {a}\n xmax = {b}\n text = "word{k}"\n', ""),
    "cvat": (
        CVAT.partition("<track")[0],
        '<track id="{k}" label="word{k}"><box frame="{first}" outside="0"/><box frame="{last}" outside="1"/></track>',
        "</annotations>",
    ),
    "labelstudio": (
        '[{"id":1,"data":{},"annotations":[{"id":1,"result":[',
        '{{"type": "timelinelabels", "value": {{"ranges": [{{"start": {above}, "end": {last}}}], "timelinelabels": ["word{k}"]}}}},',
        '{"type":"choices"}]}]}]',
    ),
    "answers": ("", '{{"clip_id": "c{k}", "movie": "tt1", "start_s": {a}, "end_s": {b}, "answers": {{"level": "S"}}}}\n', ""),
    "moviegraphs": ('{"moviegraphs":[', '{{"movie": "tt1", "start_s": {a}, "end_s": {b}, "situation": "word{k}"}},', "{}]}"),
    "activitynet": ('{"database":{"tt1":{"annotations":[', '{{"segment": [{a}, {b}], "label": "word{k}"}},', '{"segment":[1]}]}}}'),
    "via": (VIA_HEAD, '"1_{k}","[""a.mp4""]",0,"[{a},{b}]","[]","{{""3"":""word{k}""}}"\n', ""),
    "ttml": ('<tt xmlns="http://www.w3.org/ns/ttml"><body><div>', '<p begin="{a}s" end="{b}s">word{k}</p>\n', "</div></body></tt>"),
    "transcript": ('{"segments":[', '{{"start": {a}, "end": {b}, "text": "word{k}"}},', '{"start": 1}]}'),
    "markers": ("Marker Name\tIn\tOut\n", "word{k}\t00:00:{a:02}:00\t00:00:{b:02}:00\n", ""),
    "edl": ("TITLE: a\nFCM: NON-DROP FRAME\n", "00{n}  001  V  C  00:00:{a:02}:00 00:00:{b:02}:00 00:00:{a:02}:00 00:00:{b:02}:00\n|M:word{k} |D:100\n", ""),
    "xmeml": ("<xmeml><sequence><rate><timebase>25</timebase></rate>", "<marker><name>word{k}</name><in>{first}</in><out>{last}</out></marker>\n", "</sequence></xmeml>"),
    "fcpxml": ("<fcpxml><library><event>", '<keyword start="{a}s" duration="4s" value="word{k}"/>\n', "</event></library></fcpxml>"),
    "otio": (
        '{"OTIO_SCHEMA": "Track.1", "markers": [',
        '{{"name": "word{k}", "marked_range": {{"start_time": {{"rate": 1, "value": {a}}}, "duration": {{"rate": 1, "value": 4}}}}}},',
        '{"name": ""}]}',
    ),
    "jsonld": (
        '{"@context": "http://www.w3.org/ns/anno.jsonld", "items": [',
        '{{"target": "http://a/b.mp4#t={a},{b}", "body": {{"value": "word{k}"}}}},',
        '{"target": ""}]}',
    ),
    "iiif": (
        '{"@context": "http://iiif.io/api/presentation/3/context.json", "items": [{"annotations": [{"items": [',
        '{{"target": "http://a/b#t={a},{b}", "body": {{"value": "word{k}"}}}},',
        '{"target": ""}]}]}]}',
    ),
    "refi-qda": (
        '<Project xmlns="urn:QDA-XML:project:1.0"><CodeBook><Codes>'
        + "".join(f'<Code guid="c{k}" name="word{k}"/>' for k in range(6))
        + '</Codes></CodeBook><Sources><VideoSource name="a.mp4">',
        '<VideoSelection begin="{a}000" end="{b}000"><Coding><CodeRef targetGUID="c{k}"/></Coding></VideoSelection>\n',
        "</VideoSource></Sources></Project>",
    ),
    "vian": (f"segmentation_name,{VIAN}\n", "Main,{a}000,{b}000,4000,word{k}\n", ""),
    "elan-text": ("", "words\t\t{a}.0\t{b}.0\t4.0\tword{k}\n", ""),
    "table": ("movie,start_s,end_s,annotator,text\n", "tt1,{a}.0,{b}.0,word{k},word{k}\n", ""),
    "judgements": ("movie,start_s,end_s,annotator,text,level,seen_score\n", "tt1,{a}.0,{b}.0,word{k},word{k},S,0\n", ""),
    "boris": (tsv(BOUTS), "word{k}\tSTATE\t{a}.0\t{b}.0\ttt1.mp4\n", ""),
}  # fmt: skip
"""Of each kind: what is above the records of a file, a record, and what is below.

A record has the number {k} or {n} = {k} + 1, begins at {a} s and ends at {b} s, or begins in the frame
{first}, which is {above} where frames are counted from 1, and ends with frame {last}."""


def parts_of_file(kind):
    """Return a file of a kind: its head, its six records with word0 to word5, and its tail.

    Record k lasts from 10k + 1 to 10k + 5 s.
    """
    head, record, tail = FORMS[kind]
    records = []
    for k in range(6):
        start_s = 10 * k + 1
        end_s = 10 * k + 5
        first_frame = 25 * start_s  # counted from 0; some kinds count from 1
        records.append(
            record.format(
                k=k, n=k + 1, a=start_s, b=end_s, first=first_frame, above=first_frame + 1, last=25 * end_s
            )
        )
    return head, records, tail


def labels_of(clips):
    """Return text, annotator, level and times of each clip, as a set."""
    return {(c.extras.get("text"), c.annotator, c.level, c.start_s, c.end_s) for c in clips}


def labels_of_other_records(imported, number):
    """Return the labels of all six records but the one of this number, which begins at 10 * number + 1 s."""
    return labels_of(clip for clip in imported.manifest if clip.start_s != 10 * number + 1)


def import_six_records(path, kind):
    """Import a file as its kind.

    The records of ELAN here are levels on a tier "gaze", those of other kinds are texts.
    """
    return import_spans(
        [path],
        path.parent,
        kind,
        tiers={"gaze": "levels"} if kind == "eaf" else None,
        annotator="AB",
        movie="tt1",
        rate=Fraction(25),
    )


HUNDREDTH_OF_A_DAY = ("time", 0.01)
TIME_BELOW_ZERO = ("time", -1)
"""Cells of a workbook that are formatted as a time, which is kept as a share of a day."""


@given(
    changed_row=st.integers(min_value=0, max_value=5),
    changed_column=st.integers(min_value=0, max_value=4),
    other_cell=st.sampled_from(
        ["", "x", "-1", "9:99", "1,5", -1, 0.00001, 1e300, 400.0, HUNDREDTH_OF_A_DAY, TIME_BELOW_ZERO]
    ),
)
def test_a_damaged_cell_costs_its_row_alone_or_refuses_the_file(
    tmp_path, changed_row, changed_column, other_cell
):
    """A workbook has six rows, each a span of 4 s with a text of its own, and one cell of it is replaced.

    The other cell is empty, a word, a number, or a time that may be wrong. Either the file is refused by its
    name, or the other five rows are read as they were before.
    """
    pytest.importorskip("python_calamine")
    headings = ["movie", "start_s", "end_s", "annotator", "text"]
    rows = []
    for k in range(6):
        start_s = 10 * k + 1
        rows.append(["tt1", start_s, start_s + 4, f"word{k}", f"word{k}"])
    workbook = tmp_path / "tt1.xlsx"

    workbook.write_bytes(sheet([headings, *rows]))
    labels_of_other_rows = labels_of_other_records(import_six_records(workbook, "table"), changed_row)
    assert len(labels_of_other_rows) == 5

    rows[changed_row][changed_column] = other_cell
    workbook.write_bytes(sheet([headings, *rows]))
    try:
        imported = import_six_records(workbook, "table")
    except ManifestError as refusal:
        assert str(workbook) in str(refusal)  # noqa: PT017 - a change may be read or refused
    else:
        assert labels_of_other_rows <= labels_of(imported.manifest)


SIGNS = ["", "\0", "x", "-", ":", ",", "\xff", " ", "9", "<", "\t", '"', ";", "\n"]


def damaged(record, data):
    """Put another sign, or none, in place of one sign of a record or of some that follow each other.

    Hypothesis chooses which by `data`. Nothing is put behind the record.
    """
    length = len(record.rstrip())
    first = data.draw(st.integers(0, length - 1), label="first sign that is replaced")
    other_sign = data.draw(st.sampled_from(SIGNS))
    n_replaced = data.draw(st.one_of(st.just(1), st.integers(0, length - first)))
    return record[:first] + other_sign + record[first + n_replaced :]


@pytest.mark.parametrize("kind", EXAMPLES)
@given(number=st.integers(min_value=0, max_value=5), data=st.data())
def test_a_damaged_record_costs_itself_alone_or_is_reported(tmp_path, kind, number, data):
    """A file of a tool has six records between a head and a tail, and some signs of one are replaced.

    The file may then be refused. If it is read, the other five records are read as before, or the account of
    the import says what has changed: more records are left out, or there is another note.
    """
    head, records, tail = parts_of_file(kind)
    path = tmp_path / "tt1.x"
    path.write_text(head + "".join(records) + tail, encoding="latin-1")
    imported_before = import_six_records(path, kind)
    other_records = labels_of_other_records(imported_before, number)
    assert len(other_records) == 5

    damaged_record = damaged(records[number], data)
    assume(damaged_record != records[number])
    records[number] = damaged_record
    path.write_text(head + "".join(records) + tail, encoding="latin-1")
    try:
        imported = import_six_records(path, kind)
    except ManifestError:
        return

    (account_before,) = imported_before.accounts
    (account,) = imported.accounts
    assert account.seen == account.used + len(account.left_out)
    are_others_read_as_before = other_records <= labels_of(imported.manifest)
    are_more_left_out = len(account.left_out) > len(account_before.left_out)
    has_other_notes = account.notes != account_before.notes
    assert are_others_read_as_before or are_more_left_out or has_other_notes
