# ruff: noqa: E501 - rows of files are kept as tools write them
"""A small sample of each format of the table, made after its tool's documentation."""

import io
import json
import zipfile

from obygaze_features.manifest.spans.formats import FORMATS
from obygaze_features.manifest.spans.span_file import KINDS


def zipped(*names: str) -> bytes:
    """Make a zip archive with members of these names."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, "#4\n")
    return data.getvalue()


READ_KINDS = {known.name: known.kind for known in FORMATS if known.kind}
"""Formats whose samples are those of their kinds, in kinds.toml."""

XML = '<?xml version="1.0" encoding="UTF-8"?>\n'

UNREAD: dict[str, str | bytes] = {
    "ELAN preferences (.pfsx)": XML
    + '<preferences version="1.1" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/Prefs_v1.1.xsd"><pref key="LayoutManager.CurrentMode"><Int>1</Int></pref></preferences>',
    "chronological TextGrid": '"Praat chronological TextGrid text file"\n0 10   ! Time domain.\n1   ! Number of tiers.\n"IntervalTier" "level" 0 10\n1 0 5\n"S"\n',
    "CHAT": "@UTF8\n@Begin\n@Languages:\teng\n@Participants:\tCHI Target_Child, MOT Mother\n@Media:\tfilm, video\n*CHI:\tmore cookie . \x151000_5000\x15\n@End\n",
    "Transcriber (.trs)": XML.replace("UTF-8", "ISO-8859-1")
    + '<!DOCTYPE Trans SYSTEM "trans-14.dtd">\n<Trans scribe="AB" audio_filename="film" version="1"><Episode><Section type="report" startTime="0" endTime="5"><Turn startTime="0" endTime="5"><Sync time="0"/>hello</Turn></Section></Episode></Trans>',
    "Basic transcription (.exb)": XML
    + '<basic-transcription><head><meta-information><referenced-file url="film.mp4"/></meta-information><speakertable/></head><basic-body><common-timeline><tli id="T0" time="0.0"/><tli id="T1" time="5.0"/></common-timeline><tier id="TIE0" category="v" type="t"><event start="T0" end="T1">hello</event></tier></basic-body></basic-transcription>',
    "FOLKER (.flk, .fln)": XML
    + '<folker-transcription><head/><speakers><speaker speaker-id="AB"><name/></speaker></speakers><recording path="film.wav"/><timeline><timepoint timepoint-id="TLI_0" absolute-time="0.0"/></timeline><contribution speaker-reference="AB" start-reference="TLI_0" end-reference="TLI_1"/></folker-transcription>',
    "ANVIL (.anvil)": XML.replace("UTF-8", "UTF-16").replace("UTF-16", "ISO-8859-1")
    + '<annotation>\n<head><specification src="gesture.xml"/><video src="film.avi"/><info key="coder" type="String">AB</info></head><body><track name="gaze" type="primary"><el index="0" start="1.0" end="5.0"><attribute name="token">S</attribute></el></track></body></annotation>',
    "NOVA (.annotation)": '<?xml version="1.0" ?>\n<annotation ssi-v="3">\n    <info ftype="ASCII" size="2" />\n    <meta role="user" annotator="ab" />\n    <scheme name="emotion" type="DISCRETE" color="#FFFFFF">\n        <item id="0" name="happy" color="#FF0000" />\n    </scheme>\n</annotation>\n',
    "TEI, ISO 24624 (spoken language)": XML
    + '<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader/><text><timeline unit="s"><when xml:id="T0" interval="0"/></timeline><body><annotationBlock who="#AB" start="#T0" end="#T1"><u>hello</u></annotationBlock></body></text></TEI>',
    "Toolbox (.txt)": "\\_sh v3.0  400  Text\n\n\\ref 001\n\\ELANBegin 1.0\n\\ELANEnd 5.0\n\\tx hello\n",
    "FLExText (.flextext)": XML
    + '<document version="2"><interlinear-text><item type="title" lang="en">a</item><paragraphs><paragraph/></paragraphs></interlinear-text></document>',
    "labels (.lab)": "0 12500000 sil\n12500000 50000000 hh\n50000000 61000000 ah\n",
    "labels (.txt)": "1.000000\t5.000000\tS\n\\\t100.000000\t2000.000000\n7.500000\t7.500000\tcut\n",
    "Kinovea (.kva)": XML
    + "<KinoveaVideoAnalysis><FormatVersion>2.0</FormatVersion><Producer>Kinovea.0.9.5</Producer><OriginalFilename>film.mp4</OriginalFilename><Keyframes><Keyframe><Title>00:01</Title></Keyframe></Keyframes></KinoveaVideoAnalysis>",
    "Observer XT table": "Date_Time_Absolute_dmy_hmsf;Time_Relative_hmsf;Time_Relative_sf;Duration_sf;Observation;Event_Log;Behavior;Event_Type\n01-02-2024 10:00:01.00;0:00:01.00;1.00;4.00;Obs 1;Log 1;Look;State start\n01-02-2024 10:00:05.00;0:00:05.00;5.00;0.00;Obs 1;Log 1;Look;State stop\n",
    "BORIS project (.boris)": json.dumps(
        {
            "time_format": "hh:mm:ss",
            "project_date": "2024-01-01",
            "project_name": "p",
            "project_format_version": "7.0",
            "subjects_conf": {},
            "behaviors_conf": {"0": {"code": "S"}},
            "observations": {},
        }
    ),
    "Datavyu project (.opf)": zipped("db", "project", "0"),
    "Datavyu spreadsheet (#4)": "#4\nlook (MATRIX,true,)-code|NOMINAL\n00:00:01:000,00:00:05:000,(S)\n",
    "Datavyu cells (CSV)": "trial.ordinal,trial.onset,trial.offset,trial.result,gaze.ordinal,gaze.onset,gaze.offset,gaze.dir\n1,1000,5000,y,1,1200,1300,left\n",
    "VIA 3 project": json.dumps(
        {
            "project": {"pid": "1", "pname": "p", "vid_list": ["1"]},
            "config": {},
            "attribute": {"1": {"aname": "level"}},
            "file": {"1": {"fname": "film.mp4"}},
            "metadata": {"1_a": {"vid": "1", "z": [1, 5], "xy": [], "av": {"1": "S"}}},
            "view": {},
        }
    ),
    "VIA 2 project": json.dumps(
        {
            "_via_settings": {"core": {}},
            "_via_img_metadata": {
                "a.jpg1": {"filename": "a.jpg", "size": 1, "regions": [], "file_attributes": {}}
            },
            "_via_attributes": {},
        }
    ),
    "Label Studio (JSON-MIN, CSV)": json.dumps(
        [
            {
                "video": "film.mp4",
                "id": 1,
                "level": [{"start": 1, "end": 5, "labels": ["S"]}],
                "annotator": 1,
                "annotation_id": 7,
                "created_at": "2024-01-01",
                "lead_time": 3.5,
            }
        ]
    ),
    "Label Studio (CSV, TSV)": 'annotation_id,annotator,created_at,id,lead_time,level,updated_at,video\n7,1,2024-01-01,1,3.5,"[{""start"": 1}]",2024-01-01,film.mp4\n',
    "Prodigy (JSONL)": json.dumps(
        {
            "audio": "film.mp4",
            "text": "film",
            "_input_hash": 12,
            "_task_hash": 34,
            "audio_spans": [{"start": 1.0, "end": 5.0, "label": "S"}],
            "answer": "accept",
        }
    )
    + "\n",
    "COCO (JSON)": json.dumps(
        {
            "info": {},
            "licenses": [],
            "images": [{"id": 1, "file_name": "a.jpg", "width": 4, "height": 4}],
            "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1]}],
            "categories": [{"id": 1, "name": "man", "supercategory": ""}],
        }
    ),
    "Supervisely video (JSON)": json.dumps(
        {
            "size": {"height": 4, "width": 4},
            "description": "",
            "key": "a",
            "tags": [{"name": "S", "value": None, "frameRange": [1, 5]}],
            "objects": [],
            "frames": [],
            "framesCount": 100,
        }
    ),
    "Darwin (JSON)": json.dumps(
        {
            "version": "2.0",
            "schema_ref": "https://darwin-public.s3.eu-west-1.amazonaws.com/darwin_json/2.0/schema.json",
            "item": {
                "name": "film.mp4",
                "path": "/",
                "slots": [{"type": "video", "slot_name": "0", "fps": 25}],
            },
            "annotations": [{"id": "a", "name": "S", "ranges": [[0, 10]], "tag": {}}],
        }
    ),
    "Encord labels (JSON)": json.dumps(
        [
            {
                "label_hash": "a",
                "data_title": "film.mp4",
                "data_type": "video",
                "data_units": {"b": {"labels": {"0": {"objects": [], "classifications": []}}}},
                "object_answers": {},
                "classification_answers": {},
            }
        ]
    ),
    "REFI-QDA codebook (.qdc)": XML
    + '<CodeBook xmlns="urn:QDA-XML:codebook:1.0" origin="ATLAS.ti"><Codes><Code guid="1b594544-2954-4b67-86ff-fb552f090ba8" name="Look" isCodable="true"/></Codes><Sets/></CodeBook>',
    "ATLAS.ti (XML)": XML
    + '<storedHU name="p"><primDocs><primDoc name="film" id="pd_1"/></primDocs><codes><code name="Look" id="co_1"/></codes></storedHU>',
    "NVivo coding summary, transcript": "<Files\\\\film> - § 2 references coded  [12.50% Coverage]\n\nReference 1 - 4.20% Coverage\n\n0:01.0 - 0:05.0\nShe looks.\n",
    "MAXQDA coded segments": "Color\tComment\tDocument group\tDocument name\tCode\tBeginning\tEnd\tWeight score\tSegment\n●\t\tfilms\tfilm\tLook\t0:00:01\t0:00:05\t0\tShe looks.\n",
    "MAXQDA coded segments, in German": "Farbe;Kommentar;Dokumentgruppe;Dokumentname;Code;Anfang;Ende;Gewicht;Segment\n●;;Filme;film.mp4;Blick;0:00:01;0:00:05;0;Sie schaut.\n",
    "Dedoose excerpts": "Media Title,Excerpt Range,Excerpt Creator,Excerpt Date,Excerpt Copy,Codes Applied Combined\nfilm,00:01-00:05,AB,1/1/2024,,Look\n",
    "Transana (XML)": XML.replace("UTF-8", "utf-8")
    + "<Transana>\n<TransanaXMLVersion>2.0</TransanaXMLVersion>\n<EpisodeFile><Episode><ID>film</ID><MediaFile>film.mp4</MediaFile></Episode></EpisodeFile></Transana>",
    "oTranscribe (.otr)": json.dumps(
        {
            "text": '<p><span class="timestamp" data-timestamp="1.5">00:01</span> hello</p>',
            "media": "film.mp4",
            "media-source": "",
            "media-time": 12.3,
        }
    ),
    "YouTube captions (json3)": json.dumps(
        {
            "wireMagic": "pb3",
            "pens": [{}],
            "wsWinStyles": [{}],
            "wpWinPositions": [{}],
            "events": [
                {"tStartMs": 0, "dDurationMs": 90},
                {"tStartMs": 1000, "dDurationMs": 4000, "segs": [{"utf8": "hello"}]},
            ],
        }
    ),
    "Google Speech-to-Text (JSON)": json.dumps(
        {
            "results": [
                {
                    "alternatives": [
                        {
                            "transcript": "hello",
                            "confidence": 0.9,
                            "words": [{"startTime": "1.300s", "endTime": "1.400s", "word": "hello"}],
                        }
                    ],
                    "languageCode": "en-us",
                }
            ]
        }
    ),
    "Deepgram (JSON)": json.dumps(
        {
            "metadata": {"request_id": "a", "duration": 9.0, "channels": 1},
            "results": {
                "channels": [
                    {
                        "alternatives": [
                            {"transcript": "hello", "words": [{"word": "hello", "start": 1.0, "end": 1.4}]}
                        ]
                    }
                ]
            },
        }
    ),
    "AssemblyAI (JSON)": json.dumps(
        {
            "id": "a",
            "language_model": "assemblyai_default",
            "acoustic_model": "assemblyai_default",
            "status": "completed",
            "audio_url": "https://example.org/a.mp3",
            "text": "hello",
            "words": [{"text": "hello", "start": 1000, "end": 1400, "confidence": 0.9, "speaker": None}],
        }
    ),
    "Rev.ai (JSON)": json.dumps(
        {
            "monologues": [
                {
                    "speaker": 0,
                    "elements": [
                        {"type": "text", "value": "Hello", "ts": 1.0, "end_ts": 1.4, "confidence": 0.9}
                    ],
                }
            ]
        }
    ),
    "Azure speech (JSON)": json.dumps(
        {
            "source": "https://example.org/a.wav",
            "timestamp": "2024-01-01T00:00:00Z",
            "durationInTicks": 1,
            "combinedRecognizedPhrases": [{"channel": 0, "display": "Hello."}],
            "recognizedPhrases": [{"offset": "PT1S", "duration": "PT4S", "nBest": [{"display": "Hello."}]}],
        }
    ),
    "Speechmatics (JSON)": json.dumps(
        {
            "format": "2.9",
            "job": {"id": "a"},
            "metadata": {"type": "transcription"},
            "results": [
                {
                    "alternatives": [
                        {"confidence": 0.9, "content": "Hello", "language": "en", "speaker": "S1"}
                    ],
                    "end_time": 1.4,
                    "start_time": 1.0,
                    "type": "word",
                }
            ],
        }
    ),
    "IBM Watson (JSON)": json.dumps(
        {
            "result_index": 0,
            "results": [
                {
                    "final": True,
                    "alternatives": [
                        {"transcript": "hello ", "confidence": 0.9, "timestamps": [["hello", 1.0, 1.4]]}
                    ],
                }
            ],
        }
    ),
    "Vosk, Kaldi (JSON)": json.dumps(
        {"result": [{"conf": 1.0, "end": 1.4, "start": 1.0, "word": "hello"}], "text": "hello"}, indent=2
    ),
    "CTM": ";; made by a recogniser\nfilm 1 1.00 0.40 hello 0.98\nfilm 1 1.50 0.30 there 0.75\n",
    "STM": ';; LABEL "o" "Overall"\nfilm 1 AB 1.00 5.00 <o,f0,male> hello there\nfilm 1 CD 6.00 7.50 <o,f0,female> well\n',
    "UEM": "film 1 0.000 600.000\nfilm2 1 10.5 900\n",
    "ALICE counts": "FileID \t phonemes \t syllables \t words\nfilm\t120\t50\t31\n",
    "SBV": "0:00:01.000,0:00:05.000\nHello.\n\n0:00:06.000,0:00:07.500\n- Well?\n- No.\n",
    "SubViewer (.sub)": "[INFORMATION]\n[TITLE]film\n[AUTHOR]AB\n[END INFORMATION]\n[SUBTITLE]\n[COLF]&HFFFFFF,[STYLE]bd,[SIZE]18,[FONT]Arial\n00:00:01.00,00:00:05.00\nHello.[br]She leaves.\n",
    "MicroDVD (.sub)": "{1}{1}25.000\n{25}{125}Hello.|She leaves.\n",
    "MPL2 (.txt)": "[10][50]/Hello.|She leaves.\n[60][75]Well.\n",
    "LRC": "[ti:film]\n[ar:AB]\n[00:01.00]Hello\n[00:05.00]She leaves\n",
    "SAMI (.smi)": '<SAMI>\n<HEAD><TITLE>film</TITLE><STYLE TYPE="text/css"><!-- P {} .ENCC {Name: English; lang: en-US;} --></STYLE></HEAD>\n<BODY><SYNC Start=1000><P Class=ENCC>Hello.\n<SYNC Start=5000><P Class=ENCC>&nbsp;\n</BODY></SAMI>\n',
    "SCC": "Scenarist_SCC V1.0\n\n00:00:01:00\t9420 9420 94ad 94ad 9470 9470 c8e5 ecec ef80\n",
    "EBU STL": b"850STL25.010009" + b"film".ljust(1009) + bytes(128),
    "OpenSubtitles (XML)": XML
    + '<document id="1"><s id="1"><time id="T1S" value="00:00:01,000"/><w id="1.1">Hello</w><time id="T1E" value="00:00:05,000"/></s></document>',
    "chapters (Matroska XML)": '<?xml version="1.0"?>\n<!-- <!DOCTYPE Chapters SYSTEM "matroskachapters.dtd"> -->\n<Chapters><EditionEntry><ChapterAtom><ChapterTimeStart>00:00:01.000000000</ChapterTimeStart><ChapterTimeEnd>00:00:05.000000000</ChapterTimeEnd><ChapterDisplay><ChapterString>S</ChapterString></ChapterDisplay></ChapterAtom></EditionEntry></Chapters>',
    "chapters (OGM)": "CHAPTER01=00:00:00.000\nCHAPTER01NAME=Intro\nCHAPTER02=00:01:05.500\nCHAPTER02NAME=Kiss\n",
    "metadata (FFmpeg)": ";FFMETADATA1\ntitle=film\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=1000\nEND=5000\ntitle=Kiss\n",
    "chapters (YouTube)": "0:00 Intro\n1:05 The kiss\n1:02:30 - End\n",
    "LosslessCut project (.llc)": "{\n  version: 1,\n  mediaFileName: 'film.mp4',\n  cutSegments: [\n    { start: 1, end: 5, name: 'S' },\n  ],\n}\n",
    "cue points (Kaltura XML)": XML
    + '<scenes><scene-annotation entryId="0_abc"><sceneStartTime>00:00:01</sceneStartTime><sceneEndTime>00:00:05</sceneEndTime><sceneText>S</sceneText></scene-annotation></scenes>',
    "ActivityNet results": json.dumps(
        {
            "version": "VERSION 1.3",
            "results": {"5n7NCViB5TU": [{"label": "S", "score": 0.6, "segment": [1.0, 5.0]}]},
            "external_data": {"used": False},
        }
    ),
    "MovieNet annotations (JSON)": json.dumps(
        {
            "imdb_id": "tt0054215",
            "cast": [{"id": "c", "pid": "nm1", "body": {"bbox": [0, 0, 1, 1]}, "shot_idx": 0}],
            "scene": [
                {"id": "s", "shot": [0, 3], "frame": [0, 99], "place_tag": "room", "action_tag": ["kiss"]}
            ],
            "story": None,
        }
    ),
    "Something-Something (JSON)": json.dumps(
        [
            {
                "id": "74225",
                "label": "spinning cube",
                "template": "Spinning [something]",
                "placeholders": ["cube"],
            }
        ]
    ),
    "THUMOS": "video_validation_0000266  72.8 76.4\nvideo_validation_0000681  44.0 50.9\n",
    "Charades": 'id,subject,scene,quality,relevance,verified,script,objects,descriptions,actions,length\n46GP8,HR43,Kitchen,6,7,Yes,"A person cooks.",food,"A person.",c092 11.90 21.20;c147 0.00 12.60,24.83\n',
    "AVA": "-5KQ66BBWC4,0902,0.077,0.151,0.283,0.811,80,1\n-5KQ66BBWC4,0902,0.077,0.151,0.283,0.811,9,1\n",
    "HACS": "classname,youtube_id,subset,start,end,label\nArchery,a5tR9ZpYxyc,training,7.3,9.3,1\n",
    "Kinetics": "label,youtube_id,time_start,time_end,split\nabseiling,-3B32lodo2M,59,69,train\n",
    "EPIC-Kitchens": "narration_id,participant_id,video_id,narration_timestamp,start_timestamp,stop_timestamp,start_frame,stop_frame,narration,verb,verb_class\nP01_01_0,P01,P01_01,00:00:01.089,00:00:00.14,00:00:03.37,8,202,open door,open,3\n",
    "LSMDC": "0001_American_Beauty_00.00.51.926-00.00.54.129\tSOMEONE looks.\n0001_American_Beauty_00.01.03.000-00.01.05.500\tShe leaves.\n",
    "project (.prproj)": XML + '<PremiereData Version="3">\n<Project ObjectRef="1"/></PremiereData>',
    "session text": "SESSION NAME:\tfilm\nSAMPLE RATE:\t48000.000000\nBIT DEPTH:\t24-bit\nSESSION START TIMECODE:\t01:00:00:00\nTIMECODE FORMAT:\t25 Frame\n",
    "SPSS (.sav)": b"$FL2@(#) SPSS DATA FILE MS Windows 27.0.0\0\0" + bytes(80),
    "Stata (.dta)": b"<stata_dta><header><release>118</release><byteorder>LSF</byteorder></header>"
    + bytes(80),
}
"""Sample of each format that is not read, by the format's name."""


def sample(name: str) -> bytes:
    """Return the sample of a format as bytes."""
    content = KINDS[READ_KINDS[name]]["sample"] if name in READ_KINDS else UNREAD[name]
    return content if isinstance(content, bytes) else content.encode()
