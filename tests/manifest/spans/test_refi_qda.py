# ruff: noqa: E501 - rows of files are kept as tools write them
"""Projects of REFI-QDA: coded selections in time, by coder; everything else counted."""

import io
import zipfile

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans.refi_qda import CodedSpan, refi_qda_archive, refi_qda_project

BOOK = (
    '<Users><User guid="U1" name="Ann"/><User guid="U2" id="bob"/></Users><CodeBook><Codes>'
    '<Code guid="L" name="level" isCodable="false"><Code guid="S" name="S" isCodable="true"/>'
    '<Code guid="E" name="EN" isCodable="true"/></Code><Code guid="B" name="Body" isCodable="true"/>'
    '<Code guid="K" name="kiss" isCodable="true"/></Codes></CodeBook>'
)


def project(sources, book=BOOK, namespace="urn:QDA-XML:project:1.0"):
    return f'<?xml version="1.0" encoding="utf-8"?><Project name="p" xmlns="{namespace}">{book}<Sources>{sources}</Sources></Project>'


def archive(document, name="project.qde", **media):
    """Pack a document under a name, behind media, {name: content}, which are not compressed."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name_of_medium, content in media.items():
            packed.writestr(name_of_medium, content, zipfile.ZIP_STORED)
        packed.writestr(name, document)
    return data.getvalue()


def coding(code, user=""):
    return f'<Coding guid="x" creatingUser="{user}"><CodeRef targetGUID="{code}"/></Coding>'


def selection(begin, end, *codings, user="U1", kind="Video"):
    inner = "".join(codings)
    return f'<{kind}Selection guid="y" begin="{begin}" end="{end}" creatingUser="{user}">{inner}</{kind}Selection>'


def labelled(clips):
    return sorted((c.movie, c.start_s, c.end_s, c.level or "", c.concepts, c.annotator) for c in clips)


def test_selections_of_video_and_sound_are_spans_by_their_coders(import_files):
    video = (
        f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"), coding("E", "U2"))}</VideoSource>'
    )
    sound = f'<AudioSource name="song.wav">{selection(6000, 7500, coding("s"), kind="Audio")}</AudioSource>'
    clips, _ = import_files({"a.qde": project(video + sound)})

    assert labelled(clips) == [
        ("film", 1.0, 5.0, "EN", (), "bob"),
        ("film", 1.0, 5.0, "S", (), "Ann"),
        ("song", 6.0, 7.5, "S", (), "Ann"),
    ]


def test_an_archive_is_read_by_its_document_and_media_stay_closed(import_files):
    video = (
        f'<VideoSource name="film" path="internal://0.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    )
    clips, _ = import_files({"a.qdpx": archive(project(video), **{"Sources/0.mp4": "x" * 1000})})
    assert labelled(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


def project_with_office_file(office):
    """Pack a project of one coded span together with a document of an office program.

    A project may hold texts that were coded, such as a transcript in Word.
    """
    document = archive("x", name="[Content_Types].xml", **{office: "x"})
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    return archive(project(video), **{"Sources/0.docx": document})


@pytest.mark.parametrize("office", ["word/document.xml", "xl/workbook.xml"])
def test_office_files_inside_a_project_do_not_hide_it(import_files, office):
    """Office files are zip archives, as projects are.

    One inside a project must not make the whole look like a text or workbook, nor where the last 40 bytes are
    missing, so that the project can't be read.
    """
    whole = project_with_office_file(office)
    clips, _ = import_files({"a.qdpx": whole})
    assert labelled(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]
    with pytest.raises(ManifestError, match="damaged, or cut short: the document in it"):
        import_files({"b.qdpx": whole[:-40]})


def test_top_level_codes_are_text_unless_read_as_labels(import_files):
    """A code below "level" is a level.

    Body and kiss are at the top of the codebook, so nothing says that they are labels.
    """
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("B"), coding("K"))}</VideoSource>'
    clips, notices = import_files({"a.qde": project(video)})
    assert [(clip.concepts, clip.extras.get("text")) for clip in clips] == [((), "Body"), ((), "kiss")]
    assert "--tier code=labels" in notices
    clips, _ = import_files({"a.qde": project(video)}, tiers={"code": "labels"})
    assert [clip.concepts for clip in clips if clip.concepts] == [("Body",)]


def test_codes_without_a_time_are_left_out_and_counted(import_files):
    """Codes of texts, pictures and PDFs are at no time of a film."""
    texts = (
        '<TextSource name="notes"><PlainTextSelection startPosition="1" endPosition="2">'
        + coding("S")
        + "</PlainTextSelection></TextSource>"
    )
    others = (
        texts + f'<PDFSource name="p"/><PictureSource name="i">{coding("S")}{coding("E")}</PictureSource>'
    )
    video = f'<VideoSource name="film.mp4">{selection(1, 2)}{selection(1000, 5000, coding("S"), coding("nowhere"))}</VideoSource>'
    clips, notices = import_files({"a.qde": project(others + video)})

    assert labelled(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]
    for reason in ("of a text", "of a picture", "of a PDF", "without a code", "not in the codebook"):
        assert reason in notices


def test_codes_of_a_transcript_have_the_times_of_its_sync_points(import_files):
    """In identifiers, which are GUIDs, capitals do not count: P1 is p1."""
    points = '<SyncPoint guid="p1" timeStamp="1000" position="0"/><SyncPoint guid="p2" timeStamp="5000" position="9"/>'
    coded = f'<TranscriptSelection fromSyncPoint="P1" toSyncPoint="p2" creatingUser="U1">{coding("S")}</TranscriptSelection>'
    film = f'<VideoSource name="film.mp4"><Transcript>{points}{coded}</Transcript></VideoSource>'
    clips, _ = import_files({"a.qde": project(film)})
    assert labelled(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


def test_a_code_of_a_whole_source_is_of_the_whole_film(import_files):
    """ATLAS.ti names the document after the project, where the standard says project.qde."""
    document = project(f'<VideoSource name="film.mp4">{coding("S", "U1")}</VideoSource>')
    for files in ({"a.qde": document}, {"a.qdpx": archive(document, name="My study.qde")}):
        clips, _ = import_files(files)
        assert labelled(clips) == [("film", None, None, "S", (), "Ann")]


@pytest.mark.parametrize(
    "content",
    [
        archive(project(""))[:60],
        archive("no XML"),
        archive(
            project(
                "",
                book="<CodeBook><Codes>"
                + '<Code guid="a" name="b">' * 200
                + "</Code>" * 200
                + "</Codes></CodeBook>",
            )
        ),
        archive("x", name="other.txt"),
    ],
    ids=["cut off", "no XML", "codes nested too deep", "no project"],
)
def test_a_damaged_or_strange_archive_is_one_error(import_files, content):
    with pytest.raises(ManifestError, match=r"a\.qdpx"):
        import_files({"a.qdpx": content})


def test_a_code_at_the_greatest_depth_is_read_and_a_deeper_one_refused(import_files):
    """The codes lie in each other, and the innermost is the level S: the 100th, or the 101st."""
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'

    def below(n_codes):
        codes = '<Code guid="L" name="level">' * n_codes + '<Code guid="S" name="S"/>' + "</Code>" * n_codes
        return project(
            video,
            book=f'<Users><User guid="U1" name="Ann"/></Users><CodeBook><Codes>{codes}</Codes></CodeBook>',
        )

    clips, _ = import_files({"a.qde": below(99)})
    assert labelled(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]
    with pytest.raises(ManifestError, match="nested too deep"):
        import_files({"a.qde": below(100)})


def damaged_archives():
    """Cut an archive of a project off, early, in the middle and late, and overwrite a part of it."""
    whole = archive(project(""))
    return {
        "cut off after 20 bytes": whole[:20],
        "cut off in the middle": whole[: len(whole) // 2],
        "cut off 10 bytes before its end": whole[:-10],
        "20 bytes overwritten": whole[:80] + bytes(20) + whole[100:],
    }


@pytest.mark.parametrize("damage", damaged_archives())
@pytest.mark.parametrize("name", ["a.qdpx", "a.zip"])
def test_a_damaged_archive_is_told_as_a_project_that_is_damaged(import_files, damage, name):
    """The project in it tells what it is, unless too little of it is left: then only its suffix does."""
    content = damaged_archives()[damage]
    is_told = name == "a.qdpx" or b"project.qde" in content
    reason = r"a project of REFI-QDA .* that is damaged" if is_told else "unpack it first"
    with pytest.raises(ManifestError, match=reason):
        import_files({name: content})
    with pytest.raises(ManifestError, match=r"a project of REFI-QDA .* that is damaged"):
        import_files({name: content}, kind="refi-qda")


SPANS = [
    CodedSpan(1.0, 5.0, (("level", "S"), ("concepts", "Body")), "AB <&> \"'", "why & how"),
    CodedSpan(1.0, 5.0, (("level", "EN"),), "CD"),
]


def test_what_is_written_comes_back_with_coders_and_codes(import_files):
    document = refi_qda_project(SPANS, "tt0000042", "made by hand")
    data = refi_qda_archive(document)
    assert data == refi_qda_archive(document)
    clips, _ = import_files({"a.qdpx": data})

    assert labelled(clips) == [
        ("tt0000042", 1.0, 5.0, "EN", (), "CD"),
        ("tt0000042", 1.0, 5.0, "S", ("Body",), "AB <&> \"'"),
    ]


def test_a_project_without_selections_is_written_too(import_files):
    clips, _ = import_files({"a.qdpx": refi_qda_archive(refi_qda_project([], "tt0000042"))})
    assert not clips
