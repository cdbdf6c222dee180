# ruff: noqa: C408, E501, UP031 - rows of files are kept as tools write them
"""Files of each kind with any number of records: all of one thing, or each of a film, person, tier of its own."""

import json
from collections.abc import Callable, Sequence

from tests.manifest.spans.files import aligned, eaf, referring, tier

XML = '<?xml version="1.0"?>'


def table(header: str, rows: Sequence[str]) -> str:
    """Write a table of lines."""
    return "\n".join([header, *rows, ""])


FILES: dict[str, Callable[[int], str]] = {
    "srt": lambda n: "".join(
        f"{i + 1}\n{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02},000 --> {i // 3600:02}:{i // 60 % 60:02}:{i % 60:02},900\n<v s{i}>a{i}\n\n"
        for i in range(n)
    ),
    "srt one time": lambda n: "".join(f"{i + 1}\n00:00:01,000 --> 00:00:02,000\nw{i}\n\n" for i in range(n)),
    "vtt": lambda n: (
        "WEBVTT\n\n"
        + "".join(
            f"c{i}\n{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}.000 --> 99:00:00.000 set:{i}\n<v s{i}>a{i}\n\n"
            for i in range(n)
        )
    ),
    "ass": lambda n: (
        "[Script Info]\n[Events]\nFormat: Layer, Start, End, Style, Name, Text\n"
        + "".join(f"Dialogue: 0,0:00:01.00,0:00:02.00,D{i},N{i},t{i}\n" for i in range(n))
    ),
    "rttm": lambda n: "".join(f"SPEAKER film{i} 1 {i} 2.0 <NA> <NA> S{i} <NA> <NA>\n" for i in range(n)),
    "rttm one film": lambda n: "".join(f"SPEAKER film 1 1 2.0 <NA> <NA> S{i} <NA> <NA>\n" for i in range(n)),
    "textgrid": lambda n: (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n0 9999\n<exists> %d\n' % n
        + "".join(f'"IntervalTier" "t{i}" 0 9999 1 0 1 "a{i}"\n' for i in range(n))
    ),
    "textgrid intervals": lambda n: (
        'File type = "ooTextFile"\nObject class = "TextGrid"\n0 9999\n<exists> 1\n"IntervalTier" "t" 0 99999 %d\n'
        % n
        + "".join(f'{i} {i + 1} "a{i}"\n' for i in range(n))
    ),
    "ttml": lambda n: (
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>'
        + "".join(
            f'<p begin="{i}s" end="{i + 1}s"><span begin="0s">a{i}</span> b<br/>c</p>' for i in range(n)
        )
        + "</div></body></tt>"
    ),
    "ttml one text": lambda n: (
        '<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p end="9s">'
        + "".join(f"<span>a{i}</span>" for i in range(n))
        + "</p></div></body></tt>"
    ),
    "transcript": lambda n: json.dumps(
        {"segments": [{"start": i, "end": i + 1, "text": f"a{i}", "speaker": f"s{i}"} for i in range(n)]}
    ),
    "transcript of words": lambda n: json.dumps(
        {"words": [{"word": f"a{i}", "start": i / 10, "end": i / 10 + 0.1} for i in range(n)]}
    ),
    "markers": lambda n: table(
        "Marker Name\tIn\tOut\tMarker Type",
        [f"a{i}\t{i}\t{i + 1}\tt{i}" for i in range(n)],
    ),
    "edl": lambda n: (
        "TITLE: a\nFCM: NON-DROP FRAME\n"
        + "".join(
            f"{i % 900 + 100} 001 V C 00:00:01:00 00:00:01:01 00:00:01:00 00:00:01:01\n|C:c{i} |M:a{i} |D:10\n"
            for i in range(n)
        )
    ),
    "xmeml": lambda n: (
        "<xmeml><sequence><rate><timebase>25</timebase></rate>"
        + "".join(f"<marker><name>a{i}</name><in>{i}</in><out>{i + 9}</out></marker>" for i in range(n))
        + "</sequence></xmeml>"
    ),
    "fcpxml": lambda n: (
        "<fcpxml><resources>"
        + "".join(f'<asset id="r{i}" src="file:///f{i}.mov"/>' for i in range(n))
        + "</resources><spine>"
        + "".join(
            f'<asset-clip ref="r{i}"><keyword start="{i}s" duration="1s" value="a{i}"/></asset-clip>'
            for i in range(n)
        )
        + "</spine></fcpxml>"
    ),
    "otio": lambda n: json.dumps(
        {
            "OTIO_SCHEMA": "Track.1",
            "markers": [
                {
                    "name": f"a{i}",
                    "color": f"c{i}",
                    "marked_range": {
                        "start_time": {"rate": 1, "value": i},
                        "duration": {"rate": 1, "value": 1},
                    },
                }
                for i in range(n)
            ],
        }
    ),
    "jsonld": lambda n: json.dumps(
        {
            "@context": "http://www.w3.org/ns/anno.jsonld",
            "items": [
                {"target": f"http://a/f{i}.mp4#t={i},{i + 1}", "body": {"purpose": f"p{i}", "value": f"a{i}"}}
                for i in range(n)
            ],
        }
    ),
    "iiif": lambda n: json.dumps(
        {
            "@context": "http://iiif.io/api/presentation/3/context.json",
            "items": [
                {
                    "annotations": [
                        {
                            "items": [
                                {"target": f"http://a/f{i}#t={i},{i + 1}", "body": {"value": f"a{i}"}}
                                for i in range(n)
                            ]
                        }
                    ]
                }
            ],
        }
    ),
    "refi-qda": lambda n: (
        '<Project xmlns="urn:QDA-XML:project:1.0"><CodeBook><Codes>'
        + "".join(f'<Code guid="c{i}" name="a{i}"/>' for i in range(n))
        + '</Codes></CodeBook><Sources><VideoSource name="f.mp4">'
        + "".join(
            f'<VideoSelection begin="{i}000" end="{i + 1}000"><Coding><CodeRef targetGUID="c{i}"/></Coding></VideoSelection>'
            for i in range(n)
        )
        + "</VideoSource></Sources></Project>"
    ),
    "elan-text": lambda n: "".join(f"t{i}\tp{i}\t{i}.0\t{i + 1}.0\tw{i}\n" for i in range(n)),
    "boris": lambda n: table(
        "Observation id,Media file,Time,Subject,Behavior,Behavioral category,Status",
        [f"o{i % 2 and i},f{i}.mp4,{i},s{i},b{i},c{i},{'START' if i % 2 else 'STOP'}" for i in range(n)],
    ),
    "boris pairs": lambda n: table(
        "Observation id,Media file,Time,Subject,Behavior,Behavioral category,Status",
        [
            f"o{i // 2},f{i // 2}.mp4,{i},s{i // 2},b{i // 2},c{i // 2},{'STOP' if i % 2 else 'START'}"
            for i in range(n)
        ],
    ),
    "boris media": lambda n: table(
        "Observation id,Source,Media duration (s),Start (s),Stop (s),Behavior",
        [
            f'o,"player #1:{";".join(f"f{k}.mp4" for k in range(int(n**0.5)))}","{";".join("1" for k in range(int(n**0.5)))}",{i},{i + 1},b{i}'
            for i in range(int(n**0.5))
        ],
    ),
    "vian": lambda n: table(
        "segmentation_name,START_MS,END_MS,SELECTOR_TYPE,annotation_body",
        [f"s{i},{i * 1000},{i * 1000 + 500},t,b{i}" for i in range(n)],
    ),
    "answers": lambda n: "".join(
        json.dumps(
            dict(
                clip_id=f"c{i}",
                movie=f"m{i}",
                start_s=i,
                end_s=i + 1,
                model=f"k{i}",
                prompt=f"p{i}",
                answers={"level:S": "yes", f"concept:C{i}": 0.9},
            )
        )
        + "\n"
        for i in range(n)
    ),
    "answers one machine": lambda n: "".join(
        json.dumps(
            dict(
                clip_id=f"c{i}",
                movie="m",
                start_s=i,
                end_s=i + 1,
                model="k",
                prompt="p",
                answers={"level:S": "yes", "concept:Body": 0.9},
            )
        )
        + "\n"
        for i in range(n)
    ),
    "answers many questions": lambda n: "".join(
        json.dumps(
            dict(
                clip_id=f"c{i}",
                movie="m",
                start_s=i,
                end_s=i + 1,
                model="k",
                prompt="p",
                answers={f"level:{k}": k / n for k in range(n)},
            )
        )
        + "\n"
        for i in range(2)
    ),
    "labelstudio": lambda n: json.dumps(
        [
            dict(
                id=i,
                data=dict(video=f"/upload/1/f{i}.mp4"),
                annotations=[
                    dict(
                        completed_by=i,
                        result=[
                            dict(
                                from_name=f"l{i}",
                                type="timelinelabels",
                                value=dict(ranges=[dict(start=1, end=5)], timelinelabels=[f"L{i}"]),
                            )
                        ],
                    )
                ],
            )
            for i in range(n)
        ]
    ),
    "labelstudio regions": lambda n: json.dumps(
        [
            dict(
                id=1,
                data=dict(video="/upload/1/f.mp4", fps=25),
                annotations=[
                    dict(
                        completed_by=1,
                        result=[
                            dict(
                                id=f"r{i}",
                                from_name=f"l{i}",
                                type="labels",
                                value=dict(start=i, end=i + 1, labels=[f"L{i}"]),
                            )
                            for i in range(n)
                        ],
                    )
                ],
            )
        ]
    ),
    "activitynet": lambda n: json.dumps(
        {
            "database": {
                f"v{i}": {"duration": 9, "annotations": [{"segment": [1, 2], "label": f"l{i}"}]}
                for i in range(n)
            }
        }
    ),
    "activitynet one": lambda n: json.dumps(
        {
            "database": {
                "v": {
                    "duration": 99999,
                    "annotations": [{"segment": [i, i + 1], "label": f"l{i}"} for i in range(n)],
                }
            }
        }
    ),
    "via": lambda n: (
        "# CSV_HEADER = metadata_id,file_list,flags,temporal_coordinates,spatial_coordinates,metadata\n"
        + "".join(
            f'"m{i}","[""f{i}.mp4""]","0","[{i},{i + 1}]","[]","{{""1"":""a{i}""}}"\n' for i in range(n)
        )
    ),
    "cvat tracks": lambda n: (
        '<?xml version="1.0"?><annotations><meta><task><name>f.mp4</name><size>99999</size></task></meta>'
        + "".join(
            f'<track id="{i}" label="l{i}"><box frame="{i}" outside="0"><attribute name="a{i}">v{i}</attribute></box><box frame="{i + 2}" outside="1"/></track>'
            for i in range(n)
        )
        + "</annotations>"
    ),
    "cvat boxes": lambda n: (
        '<?xml version="1.0"?><annotations><meta><task><name>f.mp4</name><size>99999</size></task></meta><track id="1" label="l">'
        + "".join(
            f'<box frame="{i}" outside="{i % 2}"><attribute name="a{i}">v{i}</attribute></box>'
            for i in range(n)
        )
        + "</track></annotations>"
    ),
    "cvat images": lambda n: (
        '<?xml version="1.0"?><annotations><meta><task><name>f.mp4</name></task></meta>'
        + "".join(
            f'<image id="{i}" name="frame_{i:06}"><tag label="t{i}"><attribute name="a{i}">v{i}</attribute></tag></image>'
            for i in range(n)
        )
        + "</annotations>"
    ),
    "eaf tiers": lambda n: eaf(
        {**{f"t{i}": i * 10 for i in range(2 * n)}},
        "".join(
            tier(
                f"T{i}",
                aligned(f"a{i}", f"t{2 * i}", f"t{2 * i + 1}", f"w{i}"),
                f'ANNOTATOR="p{i}" PARENT_REF="T{i - 1}" PARTICIPANT="q{i}"',
            )
            for i in range(n)
        ),
    ),
    "eaf chain": lambda n: eaf(
        {"t0": 0, "t1": None},
        tier("T", aligned("a0", "t0", "t1", "w"))
        + tier("U", "".join(referring(f"a{i}", f"a{i - 1}", f"w{i}") for i in range(1, n))),
    ),
    "eaf flat refs": lambda n: eaf(
        {"t0": 0, "t1": 1000},
        tier("T", aligned("a0", "t0", "t1", "w"))
        + tier(
            "U",
            "".join(
                referring(f"a{i}", "a0", f"w{i}", f'PREVIOUS_ANNOTATION="a{i - 1}"' if i > 1 else "")
                for i in range(1, n)
            ),
        ),
    ),
    "eaf open run": lambda n: eaf(
        {**{f"k{i}": i for i in range(n)}, **{f"u{i}": None for i in range(n)}},
        tier(
            "T",
            "".join(aligned(f"x{i}", f"k{i}", "u0", "w") for i in range(n))
            + "".join(aligned(f"y{i}", f"u{i}", f"u{i + 1}", "w") for i in range(n - 1)),
        ),
    ),
    "eaf rounds": lambda n: eaf(
        {"u0": 0, **{f"u{i}": None for i in range(1, n)}, **{f"k{i}": 5 * i for i in range(1, n)}},
        "".join(
            tier(
                f"T{n - i}",
                aligned(f"a{i}", f"u{i - 1}", f"u{i}", "w") + aligned(f"b{i}", f"u{i}", f"k{i}", "w"),
            )
            for i in range(1, n)
        ),
    ),
    "table": lambda n: table(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator",
        [f"c{i},m{i},m{i}.mp4,{i},{i + 1},S,Body;Look,p{i}" for i in range(n)],
    ),
    "table one film": lambda n: table(
        "clip_id,movie,video,start_s,end_s,level,concepts,annotator",
        [f"c{i},m,m.mp4,1,2,S,Body;Look,p" for i in range(n)],
    ),
    "table of other headings": lambda n: table(
        "Film,From,To,Rating,Remark", [f"m,{i},{i + 1},S,he sees {i}" for i in range(n)]
    ),
    "table of ranges": lambda n: table("Film,When,Rating", [f"m,{i} - {i + 1},S" for i in range(n)]),
    "table overlapping": lambda n: table(
        "movie,start_s,end_s,level,annotator",
        [f"m,{i},{i + 5000},{'S' if i % 2 else 'EN'},p{i % 3}" for i in range(n)],
    ),
    "table errors": lambda n: table(
        "movie,start_s,end_s,level,annotator", [f"m,{i},x{i},L{i},p" for i in range(n)]
    ),
    "judgements": lambda n: table(
        "clip_id,movie,start_s,end_s,level,annotator,seen_score",
        [f"c{i % 7},m,{i},{i + 1},S,p{i},0" for i in range(n)],
    ),
    "wide": lambda n: table(
        ",".join(["movie", "start_s", "end_s", "level", *(f"h{i}" for i in range(n))]),
        [",".join(["m", "1", "2", "S", *("1" for i in range(n))])] * 2,
    ),
    "csv columns unread": lambda n: table(
        "Observation id,Time,Behavior,Status," + ",".join(f"h{i}" for i in range(n)),
        ["o,1,b,START," + ",".join("1" for i in range(n))],
    ),
}
