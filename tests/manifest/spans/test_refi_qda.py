# ruff: noqa: E501 - rows of files are kept as tools write them
"""Projects of REFI-QDA: coded selections in time, by coder; everything else counted."""

import io
import zipfile

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest.spans import refi_qda
from obygaze_features.manifest.spans.refi_qda import CodedSpan, refi_qda_archive, refi_qda_project

CODEBOOK = (
    '<Users><User guid="U1" name="Ann"/><User guid="U2" id="bob"/></Users><CodeBook><Codes>'
    '<Code guid="L" name="level" isCodable="false"><Code guid="S" name="S" isCodable="true"/>'
    '<Code guid="E" name="EN" isCodable="true"/></Code><Code guid="B" name="Body" isCodable="true"/>'
    '<Code guid="K" name="kiss" isCodable="true"/></Codes></CodeBook>'
)


def project(sources, codebook=CODEBOOK, namespace="urn:QDA-XML:project:1.0"):
    """Write the document of a project: its codebook and its sources, which are films, sounds, texts or pictures.

    The usual codebook has the users Ann (U1) and bob (U2), the levels S (S) and EN (E), and beside the levels
    the codes Body (B) and kiss (K); in brackets stand the identifiers by which selections name them.
    """
    return f'<?xml version="1.0" encoding="utf-8"?><Project name="p" xmlns="{namespace}">{codebook}<Sources>{sources}</Sources></Project>'


def archive(document, name="project.qde", **media):
    """Pack a document under a name, behind media, {name: content}, which are not compressed."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name_of_medium, content in media.items():
            packed.writestr(name_of_medium, content, zipfile.ZIP_STORED)
        packed.writestr(name, document)
    return data.getvalue()


def coding(code, user=""):
    """Write that a user gave a code, both by their identifiers."""
    return f'<Coding guid="x" creatingUser="{user}"><CodeRef targetGUID="{code}"/></Coding>'


def selection(begin_ms, end_ms, *codings, user="U1", kind="Video"):
    """Write a selection of a film or a sound by a user, Ann where none is given, with codes."""
    inner = "".join(codings)
    return f'<{kind}Selection guid="y" begin="{begin_ms}" end="{end_ms}" creatingUser="{user}">{inner}</{kind}Selection>'


def labels_of(clips):
    """Return movie, start, end, level, concepts and annotator of each clip, in order."""
    return sorted((c.movie, c.start_s, c.end_s, c.level or "", c.concepts, c.annotator) for c in clips)


def test_selections_of_video_and_sound_are_spans_by_their_coders(import_files):
    """In a project, Ann selected 1 to 5 s of film.mp4 and 6 to 7.5 s of song.wav, and gave both the code S.

    Bob added the code EN to the first. The document names coders and codes by identifiers: Ann, who made the
    selections, is U1, bob is U2, and the code EN is E. Identifiers mean the same in small letters and
    capitals.
    """
    code_s_by_ann = coding("S")
    code_en_by_bob = coding("E", user="U2")
    code_s_by_ann_in_small_letters = coding("s")
    of_film = selection(1000, 5000, code_s_by_ann, code_en_by_bob, user="U1")
    of_song = selection(6000, 7500, code_s_by_ann_in_small_letters, user="U1", kind="Audio")
    video = f'<VideoSource name="film.mp4">{of_film}</VideoSource>'
    sound = f'<AudioSource name="song.wav">{of_song}</AudioSource>'

    clips, _ = import_files({"a.qde": project(video + sound)})

    assert labels_of(clips) == [
        ("film", 1.0, 5.0, "EN", (), "bob"),
        ("film", 1.0, 5.0, "S", (), "Ann"),
        ("song", 6.0, 7.5, "S", (), "Ann"),
    ]


def test_an_archive_is_read_by_its_document_whatever_media_it_holds(import_files):
    """A project may be an archive of a document and of films. Here the film is 1000 letters x, and no video.

    Only the document is read, so this does no harm. In all documents here Ann is who gave the codes; in this
    one it is S, from 1000 to 5000 ms of the film.
    """
    coded = selection(1000, 5000, coding("S"))
    document = project(f'<VideoSource name="film" path="internal://0.mp4">{coded}</VideoSource>')
    media = {"Sources/0.mp4": "x" * 1000}

    clips, _ = import_files({"a.qdpx": archive(document, **media)})

    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


def test_an_archive_that_macos_packed_again_is_read_by_its_document(import_files):
    """Beside each file, macOS packs a hidden one with its attributes, which is no document."""
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    hidden = {"__MACOSX/Study/._Study.qde": b"\x00\x05\x16\x07"}

    clips, _ = import_files({"a.qdpx": archive(project(video), name="Study/Study.qde", **hidden)})

    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


def test_an_archive_of_two_projects_is_refused_and_names_both(import_files):
    """The codings of one of two projects, first.qde and second.qde, would be lost if the first alone was read."""
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    two_projects = archive(project(video), name="second.qde", **{"first.qde": project(video)})

    with pytest.raises(ManifestError, match=r"a\.qdpx.* 2 projects, first\.qde, second\.qde"):
        import_files({"a.qdpx": two_projects})


def project_with_office_file(part_of_office_file):
    """Pack a project of one coded span together with an office file that has a part of this name.

    A project may hold texts that were coded, such as a transcript in Word.
    """
    document = archive("x", name="[Content_Types].xml", **{part_of_office_file: "x"})
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    return archive(project(video), **{"Sources/0.docx": document})


OFFICE_FILES = pytest.mark.parametrize("part_of_office_file", ["word/document.xml", "xl/workbook.xml"])
"""A text of Word, and a workbook of Excel."""


@OFFICE_FILES
def test_an_office_file_inside_a_project_does_not_hide_it(import_files, part_of_office_file):
    """Office files are zip archives, as projects are.

    One inside a project must not make the whole look like a text or a workbook.
    """
    whole = project_with_office_file(part_of_office_file)

    clips, _ = import_files({"a.qdpx": whole})

    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


@OFFICE_FILES
def test_a_project_that_is_cut_short_is_not_taken_for_the_office_file_that_it_holds(
    import_files, part_of_office_file
):
    """A project is a zip archive. In it are texts that were coded, as office files: zip archives as well.

    A zip archive ends with its list of contents. Without its last 40 bytes the project can't be read, but the
    list of the office file inside is whole, and may be found. The message must be about the project.
    """
    cut_short = project_with_office_file(part_of_office_file)[:-40]

    with pytest.raises(ManifestError, match="damaged, or cut short: the document in it"):
        import_files({"b.qdpx": cut_short})


def test_top_level_codes_are_text_unless_read_as_labels(import_files):
    """Codes below "level" are levels. Body (B) and kiss (K) stand above all others, and so are texts.

    Where the person says that codes are labels, Body is a concept; kiss is neither a level nor a concept,
    and stays a text.
    """
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("B"), coding("K"))}</VideoSource>'

    clips, notices = import_files({"a.qde": project(video)})
    assert [(clip.concepts, clip.extras.get("text")) for clip in clips] == [((), "Body"), ((), "kiss")]
    assert "--tier code=labels" in notices

    clips, _ = import_files({"a.qde": project(video)}, tiers={"code": "labels"})
    assert [clip.concepts for clip in clips if clip.concepts] == [("Body",)]


def test_codes_without_a_time_are_left_out_and_counted(import_files):
    """Ann, who made all of a project, coded a text and a picture, and made two selections of film.mp4.

    Texts and pictures have no time. One selection has no code. The other, of 1 to 5 s, has the code S and one
    that the project does not list. So S is all that can be read; notices say why each of the others is not.
    """
    coded_text = f'<PlainTextSelection startPosition="1" endPosition="2">{coding("S")}</PlainTextSelection>'
    text = f'<TextSource name="notes">{coded_text}</TextSource>'
    pdf = '<PDFSource name="p"/>'
    picture = f'<PictureSource name="i">{coding("S")}{coding("E")}</PictureSource>'
    without_code = selection(begin_ms=1, end_ms=2)
    with_unknown_code = selection(1000, 5000, coding("S"), coding("nowhere"))
    video = f'<VideoSource name="film.mp4">{without_code}{with_unknown_code}</VideoSource>'

    clips, notices = import_files({"a.qde": project(text + pdf + picture + video)})

    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]
    for reason in ("of a text", "of a picture", "of a PDF", "without a code", "not in the codebook"):
        assert reason in notices


def test_codes_of_a_transcript_have_the_times_of_its_sync_points(import_files):
    """A sync point says at which time (in ms) a place of the transcript is spoken.

    In identifiers, which are GUIDs, capitals do not count: P1 is p1.
    """
    points = '<SyncPoint guid="p1" timeStamp="1000" position="0"/><SyncPoint guid="p2" timeStamp="5000" position="9"/>'
    coded = f'<TranscriptSelection fromSyncPoint="P1" toSyncPoint="p2" creatingUser="U1">{coding("S")}</TranscriptSelection>'
    film = f'<VideoSource name="film.mp4"><Transcript>{points}{coded}</Transcript></VideoSource>'

    clips, _ = import_files({"a.qde": project(film)})

    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]


def test_a_code_of_a_whole_source_is_of_the_whole_film(import_files):
    """The film itself has the code S, not a selection of it, so the clip has no times."""
    document = project(f'<VideoSource name="film.mp4">{coding("S", "U1")}</VideoSource>')

    clips, _ = import_files({"a.qde": document})

    assert labels_of(clips) == [("film", None, None, "S", (), "Ann")]


def test_the_document_of_an_archive_may_have_any_name(import_files):
    """ATLAS.ti names the document after the project, where the standard says project.qde."""
    document = project(f'<VideoSource name="film.mp4">{coding("S", "U1")}</VideoSource>')

    clips, _ = import_files({"a.qdpx": archive(document, name="My study.qde")})

    assert labels_of(clips) == [("film", None, None, "S", (), "Ann")]


CODES_IN_200_LEVELS = (
    "<CodeBook><Codes>" + '<Code guid="a" name="b">' * 200 + "</Code>" * 200 + "</Codes></CodeBook>"
)


@pytest.mark.parametrize(
    "content",
    [
        archive(project(""))[:60],
        archive("no XML"),
        archive(project("", codebook=CODES_IN_200_LEVELS)),
        archive("x", name="other.txt"),
    ],
    ids=["cut off", "no XML", "codes nested too deep", "no project"],
)
def test_a_damaged_or_strange_archive_is_refused_by_its_name(import_files, content):
    """An archive of a project, a.qdpx, is a zip file with a document in XML. This one is none, or damaged."""
    with pytest.raises(ManifestError, match=r"a\.qdpx"):
        import_files({"a.qdpx": content})


@pytest.mark.parametrize("bytes_too_many", [0, 1])
def test_a_document_that_is_larger_than_what_is_held_in_memory_is_refused_unread(
    import_files, monkeypatch, bytes_too_many
):
    """An archive of few bytes may hold a document of many. Here documents of up to 1 MB are read.

    Ann gave a span of a film the level S; blanks behind it make the document so long.
    """
    monkeypatch.setattr(refi_qda, "MAX_BYTES", 1 << 20)
    film = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    content = archive(project(film).ljust((1 << 20) + bytes_too_many))

    if bytes_too_many:
        with pytest.raises(ManifestError, match=r"a\.qdpx: project\.qde in it is larger than 1 MB"):
            import_files({"a.qdpx": content})
    else:
        clips, _notices = import_files({"a.qdpx": content})
        assert [clip.level for clip in clips] == ["S"]


def project_with_s_below(n_codes):
    """Write a project in which Ann gave S, a code that lies in this many codes, one in the other."""
    codes = '<Code guid="L" name="level">' * n_codes + '<Code guid="S" name="S"/>' + "</Code>" * n_codes
    codebook = f'<Users><User guid="U1" name="Ann"/></Users><CodeBook><Codes>{codes}</Codes></CodeBook>'
    video = f'<VideoSource name="film.mp4">{selection(1000, 5000, coding("S"))}</VideoSource>'
    return project(video, codebook=codebook)


def test_a_code_at_the_greatest_depth_is_read_and_a_deeper_one_refused(import_files):
    """Codes may be nested up to 100 deep: S is the 100th, below 99 others, or the 101st."""
    clips, _ = import_files({"a.qde": project_with_s_below(n_codes=99)})
    assert labels_of(clips) == [("film", 1.0, 5.0, "S", (), "Ann")]

    with pytest.raises(ManifestError, match="nested too deep"):
        import_files({"a.qde": project_with_s_below(n_codes=100)})


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
    """The suffix .qdpx tells that the file is a project, and so does the name project.qde inside.

    A file a.zip that is cut off before this name may be any archive.
    """
    content = damaged_archives()[damage]
    if name == "a.qdpx" or b"project.qde" in content:
        reason = r"a project of REFI-QDA .* that is damaged"
    else:
        reason = "unpack it first"

    with pytest.raises(ManifestError, match=reason):
        import_files({name: content})


@pytest.mark.parametrize("damage", damaged_archives())
@pytest.mark.parametrize("name", ["a.qdpx", "a.zip"])
def test_an_archive_that_the_user_calls_a_project_is_told_as_a_damaged_one(import_files, damage, name):
    """The user says that the file is a project (kind refi-qda), so that its name does not matter."""
    content = damaged_archives()[damage]
    with pytest.raises(ManifestError, match=r"a project of REFI-QDA .* that is damaged"):
        import_files({name: content}, kind="refi-qda")


def project_of_two_coders():
    """Write a project of two coders' spans. The first one's name has signs that mean something in XML."""
    spans = [
        CodedSpan(
            start_s=1.0,
            end_s=5.0,
            codes=(("level", "S"), ("concepts", "Body")),
            coder="AB <&> \"'",
            comment="why & how",
        ),
        CodedSpan(start_s=1.0, end_s=5.0, codes=(("level", "EN"),), coder="CD"),
    ]
    return refi_qda_project(spans, "tt0000042", "made by hand")


def test_a_project_that_obygaze_wrote_is_read_back_with_its_coders_and_codes(import_files):
    """The coder called AB <&> "' gave S and Body from 1 to 5 s of tt0000042, and CD gave EN.

    The signs in the name have a meaning in XML, in which projects are written.
    """
    content = refi_qda_archive(project_of_two_coders())

    clips, _ = import_files({"a.qdpx": content})

    assert labels_of(clips) == [
        ("tt0000042", 1.0, 5.0, "EN", (), "CD"),
        ("tt0000042", 1.0, 5.0, "S", ("Body",), "AB <&> \"'"),
    ]


def test_an_archive_of_one_document_has_the_same_bytes_each_time():
    """A project of two coders is packed twice, into archives of the same bytes.

    No time of writing is in them, so that an archive's digest is of its content.
    """
    document = project_of_two_coders()

    first = refi_qda_archive(document)
    second = refi_qda_archive(document)

    assert first == second


def test_a_project_without_selections_can_be_written_and_read(import_files):
    """Nobody coded anything of the film tt0000042: the project has no spans."""
    without_selections = refi_qda_project([], "tt0000042")

    clips, _ = import_files({"a.qdpx": refi_qda_archive(without_selections)})

    assert not clips
