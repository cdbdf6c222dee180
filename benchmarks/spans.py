"""Read 50,000 and 200,000 subtitles, spans and rows of a manifest: CPU, whether it is linear, and peers.

Texts and times are made by seed. Subtitles are held against FFmpeg (through PyAV) and pysubs2, TextGrid
against praatio, documents of ELAN against pympi, tables against csv.DictReader, which checks nothing. Times
are medians of CPU seconds, in turn; look at the ratios.

    python benchmarks/spans.py [--spans 50000] [--repeats 3] [--check]
"""

import csv
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from xml.sax.saxutils import escape

import av
import pysubs2
from measure import arguments, in_turn, show, verdict
from praatio import textgrid
from pympi.Elan import Eaf

from obygaze_features.manifest import import_spans, read_manifest, read_subtitles
from obygaze_features.manifest.spans.instant import clock
from obygaze_features.manifest.spans.rttm import write_rttm
from obygaze_features.manifest.spans.subtitles import Subtitle, write_srt, write_vtt
from obygaze_features.manifest.spans.textgrid import write_textgrid

TIMES = 4
LINEAR = 1.3
FFMPEG = 4.5
"""Most CPU a span among four times as many, against fewer; and of a subtitle, against FFmpeg's."""
LEVELS = ("EN", "HN", "S")
ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
)
BORIS = "Observation id,Media file,FPS,Subject,Behavior,Behavioral category,Modifiers,Behavior type"
BORIS += ",Start (s),Stop (s),Duration (s),Comment start,Comment stop\n"


def made(n: int) -> list[Subtitle]:
    """Make spans that do not overlap, in whole centiseconds."""
    generator = random.Random(0)
    last = 0
    spans = []
    for _ in range(n):
        start = last + generator.randrange(1, 90)
        last = start + generator.randrange(50, 400)
        spans.append(Subtitle(start / 100, last / 100, f"word {generator.randrange(n)} & more"))
    return spans


def eaf(spans: Sequence[Subtitle]) -> Iterator[str]:
    """Write a document of ELAN with a tier of levels."""
    yield '<ANNOTATION_DOCUMENT AUTHOR="" DATE="" FORMAT="3.0" VERSION="3.0"'
    yield ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    yield ' xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">'
    yield '<HEADER TIME_UNITS="milliseconds">'
    yield '<MEDIA_DESCRIPTOR MEDIA_URL="film0.mp4" MIME_TYPE="video/mp4"/></HEADER><TIME_ORDER>'
    for n, time in enumerate(time for span in spans for time in span[:2]):
        yield f'<TIME_SLOT TIME_SLOT_ID="t{n}" TIME_VALUE="{round(1000 * time)}"/>'
    yield '</TIME_ORDER><TIER LINGUISTIC_TYPE_REF="d" TIER_ID="human: level" ANNOTATOR="AB">'
    for n in range(len(spans)):
        slots = f'TIME_SLOT_REF1="t{2 * n}" TIME_SLOT_REF2="t{2 * n + 1}"'
        yield f'<ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a{n}" {slots}><ANNOTATION_VALUE>'
        yield f"{LEVELS[n % 3]}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>"
    yield '</TIER><LINGUISTIC_TYPE LINGUISTIC_TYPE_ID="d" TIME_ALIGNABLE="true"/></ANNOTATION_DOCUMENT>'


def texts(spans: Sequence[Subtitle]) -> dict[str, str]:
    """Write the spans in each format, by the end of its files' names."""
    clocks = [(clock(span.start_s), clock(span.end_s), span.text) for span in spans]
    rows = [(f"film{n % 7}", span.start_s, span.end_s, LEVELS[n % 3]) for n, span in enumerate(spans)]
    head = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
    return {
        "srt": write_srt(spans),
        "vtt": write_vtt(spans),
        "ass": ASS + "".join(f"Dialogue: 0,{a[1:-1]},{b[1:-1]},D,,0,0,0,,{c}\n" for a, b, c in clocks),
        "TextGrid": write_textgrid({"words": spans}, spans[-1].end_s),
        "rttm": write_rttm([(f"speaker {n % 9}", span) for n, span in enumerate(spans)], "film0"),
        "eaf": "".join(eaf([span._replace(text=escape(span.text)) for span in spans])),
        "elan.txt": "".join(f"words\t\t{a}\t{b}\t{c}\n" for a, b, c in clocks),
        "boris.csv": BORIS
        + "".join(f"o,film0.mp4,25,,look,,,STATE,{a},{b},1,,\n" for _, a, b, _ in rows),
        "judgements.csv": f"{head},seen_score\n"
        + "".join(f",{m},,{a},{b},{level},Body;Look,AB,{n % 2}\n" for n, (m, a, b, level) in enumerate(rows)),
        "manifest.csv": f"{head}\n"
        + "".join(f"c{n},{m},{m}.mp4,{a},{b},{level},Body,AB\n" for n, (m, a, b, level) in enumerate(rows)),
    }  # fmt: skip


def ffmpeg(path: Path) -> None:
    """Read a track of subtitles as FFmpeg does."""
    with av.open(str(path)) as container:
        for packet in container.demux(subtitles=0):
            packet.decode()


def dictionaries(path: Path) -> None:
    """Read a table as dictionaries."""
    with path.open(newline="", encoding="utf-8") as file:
        list(csv.DictReader(file))


def works(path: Path) -> dict[str, Callable[[], object]]:
    """Return what reads a file: ours, and peers."""
    kind = path.name.partition(".")[2]
    peers: dict[str, Callable[[], object]] = {}
    if kind in {"srt", "vtt", "ass"}:
        peers = {"FFmpeg": partial(ffmpeg, path), "pysubs2": partial(pysubs2.load, str(path), format_=kind)}
        return {"ours": partial(read_subtitles, path), **peers}
    if kind == "TextGrid":
        peers["praatio"] = partial(textgrid.openTextgrid, str(path), includeEmptyIntervals=False)
    elif kind == "eaf":
        peers["pympi"] = partial(Eaf, str(path))
    elif kind.endswith("csv"):
        peers["csv"] = partial(dictionaries, path)
    if kind == "manifest.csv":
        return {"ours": partial(read_manifest, path), **peers}
    return {"ours": partial(import_spans, [path], path.parent), **peers}


def main() -> None:
    """Print the table."""
    options = arguments(__doc__, spans=50_000, repeats=3, check=False)
    rows = []
    wrong = []
    with tempfile.TemporaryDirectory(prefix="obygaze-spans-") as name:
        paths = {}
        for n in (options.spans, TIMES * options.spans):
            for kind, text in texts(made(n)).items():
                paths[kind, n] = Path(name, f"film{n}.{kind}")
                paths[kind, n].write_text(text, encoding="utf-8")
        for kind in dict.fromkeys(kind for kind, _ in paths):
            took = in_turn(works(paths[kind, options.spans]), options.repeats)
            many = in_turn({"ours": works(paths[kind, TIMES * options.spans])["ours"]}, 1)["ours"].cpu_s
            ours = took.pop("ours").cpu_s
            row: dict[str, object] = {
                "file": kind,
                "ours, CPU s": ours,
                "of 4 times as many, a span": many / TIMES / ours,
            }
            row |= {f"to {peer}": ours / taken.cpu_s for peer, taken in took.items()}
            rows.append(row)
            if many > LINEAR * TIMES * ours:
                wrong.append(f"{kind}: not linear")
            if "FFmpeg" in took and ours > FFMPEG * took["FFmpeg"].cpu_s:
                wrong.append(f"{kind}: over {FFMPEG} times FFmpeg")
    show(rows)
    verdict(wrong, check=options.check)


if __name__ == "__main__":
    main()
