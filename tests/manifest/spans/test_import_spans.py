# ruff: noqa: E501 - rows of files are kept as tools write them
"""Spans of every tool's files become clips; each record is used, left out and said, or refused."""

import json
import re
import unicodedata
from fractions import Fraction

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans, load_codebook
from tests.command import obygaze
from tests.manifest.spans.files import EXAMPLES, aligned, eaf, referring, sheet, tier

SLOTS = {"t1": 1000, "t2": 5000, "t3": 7000, "t4": 9000}
LEVEL = tier("human: level", aligned("a1", "t1", "t2", "S"))


@pytest.fixture
def films(tmp_path):
    (tmp_path / "films").mkdir()
    for name in ("a.mp4", "b.mp4"):
        (tmp_path / "films" / name).touch()
    return tmp_path / "films"


@pytest.fixture
def read(tmp_path):
    """Import a text or bytes as a file of this name: clips in short, and the account."""

    def read(content, name="f.txt", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        imported = import_spans([path], tmp_path, **options)
        (account,) = imported.accounts
        assert account.seen == account.used + len(account.left_out)
        assert imported.notices[0] == account.line()
        return [(c.movie, c.start_s, c.end_s, c.level, c.concepts) for c in imported.manifest], account

    return read


@pytest.mark.parametrize("kind", EXAMPLES)
def test_each_kind_is_recognised_by_its_content_and_read(read, kind):
    """The suffix .x says nothing, and the user need not name the kind."""
    example = EXAMPLES[kind]
    for said in ("", kind):
        clips, account = read(example.content, "tt0000042.x", kind=said, **example.options)
        assert account.kind == kind
        assert [clip[1:] for clip in clips] == example.spans
        assert {clip[0] for clip in clips} == {example.movie}
        assert sorted(why for _, why in account.left_out) == sorted(example.left_out)


@pytest.mark.parametrize("rate", [None, Fraction(25)])
def test_frames_of_vian_are_of_24_a_second(read, rate):
    """VIAN always counts 24 frames a second: frame 12 is half a second, whatever rate the user gives."""
    clips, _ = read("movie,segmentation_name,start_ts,end_ts\na,Main,00:00:01:12,00:00:05:06\n", rate=rate)
    assert [clip[1:3] for clip in clips] == [(1.5, 5.25)]


# --- ELAN
# ---------------------------------------------------------------------------
def read_elan(read, *tiers, slots=None, header="", **options):
    """Read a file of one film: clips without the film's name, and the account."""
    options = {"movie": "tt1", "annotator": "AB"} | options
    clips, account = read(eaf(slots or SLOTS, "".join(tiers), header), "film.eaf", **options)
    return [clip[1:] for clip in clips], account


def media(url, origin, kind="video"):
    return f'<MEDIA_DESCRIPTOR MEDIA_URL="file:///{url}" MIME_TYPE="{kind}/x" TIME_ORIGIN="{origin}"/>'


MOVED = [(3.0, 7.0, "S", ())]  # the span of LEVEL, 1 to 5 s, 2 s later


@pytest.mark.parametrize(
    ("media_of_document", "movie"),
    [
        (media("film.mp4", 2000), "tt1"),
        (media("film.mp4", 2000) + media("sound.wav", 500, "audio"), "tt1"),
        (media("film.mp4", 2000) + media("film.wav", 500, "audio"), "film"),
    ],
    ids=["a video", "a video and sound", "a video and sound of its name"],
)
def test_the_offset_of_the_video_moves_all_times(read, media_of_document, movie):
    """TIME_ORIGIN says that the document begins 2000 ms into the film.

    A recorder of sound may have been started at another time. The film is the video.
    """
    clips, _ = read_elan(read, LEVEL, header=media_of_document, movie=movie)
    assert clips == MOVED


def test_of_two_videos_the_offset_of_the_one_named_like_the_film_counts(read):
    two_videos = media("tt1.mp4", 2000) + media("other.mp4", 0)
    clips, _ = read_elan(read, LEVEL, header=two_videos, movie="tt1")
    assert clips == MOVED
    with pytest.raises(ManifestError, match=r"film.eaf.*--movie"):
        read_elan(read, LEVEL, header=two_videos, movie="tt2")


@pytest.mark.parametrize("place", ['MEDIA_URL="file:///C:/f/m%20x.mp4"', 'RELATIVE_MEDIA_URL="./m x.mp4"'])
def test_a_document_names_its_film_by_any_place_of_the_media(read, place):
    document = eaf(SLOTS, LEVEL, f'<MEDIA_DESCRIPTOR {place} MIME_TYPE="video/mp4"/>')
    clips, _ = read(document, annotator="AB")
    assert [movie for movie, *_ in clips] == ["m x"]


def test_an_old_document_names_its_film_by_its_media_file(read):
    document = eaf(SLOTS, LEVEL).replace('MEDIA_FILE=""', 'MEDIA_FILE="m x.mpg"')
    clips, _ = read(document, annotator="AB")
    assert [movie for movie, *_ in clips] == ["m x"]


BODY_AND_LOOK = tier("human: concepts", aligned("a2", "t1", "t2", "Body") + aligned("a3", "t1", "t2", "Look"))
REFERRING = 'PARENT_REF="human: level"'
CLOTHES_BY_CD = tier("human: concepts@CD", referring("a4", "a1", "Clothes"), REFERRING)
LEVEL_BY_AB = tier("human: level", aligned("a1", "t1", "t2", "S"), 'ANNOTATOR="AB"')


def test_concepts_that_refer_to_a_level_are_kept_from_all_tiers(read):
    body_and_look = tier(
        "human: concepts", referring("a2", "a1", "Body") + referring("a3", "a1", "Look"), REFERRING
    )
    clips, _ = read_elan(read, LEVEL, body_and_look)
    assert clips == [(1.0, 5.0, "S", ("Look", "Body"))]
    clips, _ = read_elan(read, LEVEL, body_and_look, CLOTHES_BY_CD)

    assert clips == [(1.0, 5.0, "S", ("Look", "Body", "Clothing"))]


@pytest.mark.parametrize("level", [LEVEL, LEVEL_BY_AB], ids=["unsigned", "signed"])
def test_concepts_at_the_times_of_a_level_are_kept(read, level):
    clips, _ = read_elan(read, level, BODY_AND_LOOK)
    assert clips == [(1.0, 5.0, "S", ("Look", "Body"))]


def test_concepts_of_another_annotator_than_their_levels_are_noted(read):
    _, account = read_elan(read, LEVEL_BY_AB, CLOTHES_BY_CD)
    assert any("signed CD" in note for note in account.notes)


WITHOUT_TIMES_BETWEEN = {"t1": 1000, "t2": None, "t3": None, "t4": 7000}


def test_slots_without_times_are_spread_evenly_between_those_that_have_some(read):
    three = aligned("a1", "t1", "t2", "S") + aligned("a2", "t2", "t3", "EN") + aligned("a3", "t3", "t4", "HN")
    clips, _ = read_elan(read, tier("human: level", three), slots=WITHOUT_TIMES_BETWEEN)
    assert clips == [(1.0, 3.0, "S", ()), (3.0, 5.0, "EN", ()), (5.0, 7.0, "HN", ())]
    with pytest.raises(ManifestError, match=r"film.eaf.*a1"):  # nothing tells where it ends
        read_elan(read, LEVEL, slots=WITHOUT_TIMES_BETWEEN)


def test_a_slot_between_one_that_is_spread_and_its_start_is_halfway(read):
    """The scenes put t2 halfway between 1 and 7 s, at 4 s; the levels then put t3 halfway between 1 and 4 s."""
    scenes = tier("scene", aligned("a3", "t1", "t2", "x") + aligned("a4", "t2", "t4", "x"))
    levels = tier("human: level", aligned("a1", "t1", "t3", "S") + aligned("a2", "t3", "t2", "EN"))
    clips, _ = read_elan(read, levels, scenes, slots=WITHOUT_TIMES_BETWEEN)
    assert clips == [(1.0, 2.5, "S", ()), (2.5, 4.0, "EN", ())]


@pytest.mark.parametrize(
    ("start", "reason"),
    [
        ("1000.5", "'1000.5' is no whole"),
        (-1, "'-1' is no whole"),
        ("", "it has no time"),
    ],
)
def test_a_time_that_cannot_be_read_is_refused_by_file_and_annotation(read, start, reason):
    with pytest.raises(ManifestError, match=rf"film.eaf.*a1.*{reason}"):
        read_elan(read, LEVEL, slots={"t1": start, "t2": 5})


def test_an_unreadable_time_on_an_unread_tier_is_no_error(read):
    words = tier("words", aligned("b1", "t9", "t2", "hello"))
    clips, account = read_elan(read, LEVEL, words, slots=SLOTS | {"t9": "later"})
    assert clips == [(1.0, 5.0, "S", ())]
    assert any("'words' (1)" in note for note in account.notes)  # the tier, and its number of annotations


@pytest.mark.parametrize("name", ["human:level", "Human: level", "human: level ", "HUMAN:  LEVEL@AB"])
def test_a_tier_is_found_whatever_its_blanks_and_case(read, name):
    assert read_elan(read, tier(name, aligned("a1", "t1", "t2", "S")))[0] == [(1.0, 5.0, "S", ())]


COPY = tier("human: level-cp", aligned("a1", "t1", "t2", "S"))


def test_a_tier_almost_named_like_one_of_ours_is_noted_and_read_where_it_is_declared(read):
    clips, account = read_elan(read, COPY)
    assert clips == []
    assert any("did you mean 'human: level'" in note for note in account.notes)

    clips, _ = read_elan(read, COPY, tiers={"human: level-cp": "levels"})
    assert clips == [(1.0, 5.0, "S", ())]
    with pytest.raises(ManifestError, match="no tier"):
        read_elan(read, COPY, tiers={"gaze": "levels"})


def test_a_models_tier_cannot_be_declared(read):
    of_model = tier("obygaze: segments", aligned("a1", "t1", "t2", "S"))
    with pytest.raises(ManifestError, match="model"):
        read_elan(read, of_model, tiers={"obygaze: segments": "levels"})


def test_two_tiers_whose_names_differ_in_a_blank_are_refused(read):
    with pytest.raises(ManifestError, match="rename"):
        read_elan(read, LEVEL, tier("human:level", aligned("a2", "t3", "t4", "S")))


# --- tables
# ---------------------------------------------------------------------------
PLACES = (
    "C:\\films\\{}.mp4", "https://x.example/{}.mp4?t=1", "file:///films/{}.mp4", "~/films/{}.mp4", "{}.mp4",
    "\\\\server\\films\\{}.mp4", "/mnt/films/{}.mp4", "%USERPROFILE%\\films\\{}.mp4", "$HOME/films/{}.mp4",
    "file:///C:%5Cfilms%5C{}.mp4",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_paths_of_every_system_name_their_films(read, films, place):
    """Names are compared with a blank for _, so that "_a" is "a" too: the video of the very name counts."""
    (films / "_a.mp4").touch()
    rows = "".join(f"{place.format(film)},1,2,S\n" for film in ("a", "b"))
    clips, _ = read("video,start_s,end_s,level\n" + rows, "spans.csv", videos=films)
    assert [movie for movie, *_ in clips] == ["a", "b"]


@pytest.mark.parametrize(
    ("place", "video"),
    [("~/films/a.mp4", "films/a.mp4"), ("C:\\f\\b.mp4", "b.mp4"), ("~no-such-user/b.mp4", "b.mp4")],
)
def test_without_a_folder_of_films_a_foreign_path_lies_beside_the_table(tmp_path, monkeypatch, place, video):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "s.csv").write_text(f"video,start_s,end_s\n{place},1,2\n", encoding="utf-8")
    assert [clip.video for clip in import_spans([tmp_path / "s.csv"], tmp_path).manifest] == [video]


COMPOSED = "D\u00e9shabill\u00e9"
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)


def codebook_with(folder, *concepts):
    """Write and load a codebook of these concepts."""
    text = 'name = "v"\nversion = "1"\n[[levels]]\nname = "calm"\n'
    text += "".join(f'[[concepts]]\nname = "{concept}"\nvisual = true\n' for concept in concepts)
    (folder / "v.toml").write_text(text, encoding="utf-8")
    return load_codebook(folder / "v.toml")


def test_accents_of_labels_and_annotators_have_one_form(read, films, tmp_path):
    table = (
        "video,start_s,end_s,concepts,annotator\n"
        f"a.mp4,1,2,{DECOMPOSED},L\u00e9a\na.mp4,3,4,{COMPOSED},Le\u0301a \n"
    )
    clips, _ = read(table, "spans.csv", videos=films, codebook=codebook_with(tmp_path, COMPOSED))
    assert [concepts for *_, concepts in clips] == [(COMPOSED,), (COMPOSED,)]
    with pytest.raises(ManifestError):
        codebook_with(tmp_path, COMPOSED, DECOMPOSED)


def test_a_film_beside_the_table_is_found_in_either_form_of_unicode(tmp_path):
    (tmp_path / "Le\u0301a.mp4").touch()
    (tmp_path / "s.csv").write_text("video,start_s,end_s\nL\u00e9a.mp4,1,5\n", encoding="utf-8")
    imported = import_spans([tmp_path / "s.csv"], tmp_path)
    assert not any("missing" in notice for notice in imported.notices)
    assert (tmp_path / imported.manifest.clips[0].video).is_file()


HEADINGS = ["video", "start_s", "end_s", "level"]


def days(seconds):
    """Give seconds as a workbook keeps a time, as a share of a day."""
    return seconds / 86_400


def test_a_workbook_gives_values_and_times_as_clock(read, films):
    in_seconds = ["a.mp4", 1.5, 2.5, "S"]
    as_clock = ["b.mp4", ("time", days(90)), ("time", days(95)), "EN"]
    clips, _ = read(sheet([HEADINGS, in_seconds, as_clock]), "spans.xlsx", videos=films)
    assert clips == [("a", 1.5, 2.5, "S", ()), ("b", 90.0, 95.0, "EN", ())]


@pytest.mark.parametrize(
    ("workbook", "reason"),
    [
        (sheet([HEADINGS, ["a.mp4", days(90), days(95), "S"]]), "day"),
        (sheet([["a"]], {"XFD1048576": 1}), "rows"),
    ],
    ids=["shares of a day that are shown as numbers", "a cell in the last possible row"],
)
def test_a_workbook_that_cannot_be_meant_so_is_refused(read, films, workbook, reason):
    with pytest.raises(ManifestError, match=reason):
        read(workbook, "spans.xlsx", videos=films)


# --- labels of other tools
# ---------------------------------------------------------------------------
def rttm(*turns):
    return "".join(
        f"SPEAKER tt1 1 {start} {end - start} <NA> <NA> {name} <NA> <NA>\n" for start, end, name in turns
    )


SPEAKERS_ARE_LABELS = {"speaker": "labels"}


def test_names_of_speakers_are_labels_where_the_person_says_so(read):
    """A level and a concept at the same times are of one clip, and so are two concepts."""
    turns = rttm((1, 5, "Sure"), (1, 5, "body"), (2, 3, "Ann"), (7, 9, "Look"), (7, 9, "body"))
    clips, _ = read(turns, tiers=SPEAKERS_ARE_LABELS)
    assert clips == [
        ("tt1", 1.0, 5.0, "S", ("Body",)),
        ("tt1", 2.0, 3.0, None, ()),
        ("tt1", 7.0, 9.0, None, ("Look", "Body")),
    ]
    clips, _ = read(turns)
    assert {(level, concepts) for *_, level, concepts in clips} == {(None, ())}


def test_a_name_that_is_no_level_is_refused_where_speakers_are_levels(read):
    with pytest.raises(ManifestError, match=r"f.txt.*line 1.*'Ann'"):
        read(rttm((2, 3, "Ann")), tiers={"speaker": "levels"})


CALM_IS_BOTH = """
name = "v"
version = "1"
[[levels]]
name = "calm"
title = "at;rest"
[[concepts]]
name = "Calm"
"""


def test_a_word_that_is_both_level_and_concept_is_the_level(read, tmp_path):
    """The codebook has a level "calm", at;rest by its title, and a concept "Calm".

    The choice is reported, with the option to change it. On a tier of concepts there is no choice.
    """
    (tmp_path / "v.toml").write_text(CALM_IS_BOTH)
    codebook = load_codebook(tmp_path / "v.toml")
    calm = rttm((1, 5, "calm"))
    ((*_, level, _),), account = read(calm, codebook=codebook, tiers=SPEAKERS_ARE_LABELS)
    assert level == "calm"
    assert any("'calm'" in note and "--tier" in note for note in account.notes)
    _, account = read(calm, codebook=codebook, tiers={"speaker": "concepts"})
    assert not account.notes

    clips, _ = read(rttm((1, 5, "At;rest")), codebook=codebook, tiers=SPEAKERS_ARE_LABELS)
    assert clips == [("tt1", 1.0, 5.0, "calm", ())]  # a title with a semicolon is one label


def test_times_in_frames_need_their_rate(read):
    example = EXAMPLES["cvat"]
    with pytest.raises(ManifestError, match="--rate"):
        read(example.content, kind="cvat")


def test_a_span_ends_in_its_film_where_the_length_is_known(films, tmp_path):
    """The film is 10 s long. A span until 12 s is cut at 10 s, and one from 30 s on is left out."""
    (tmp_path / "s.csv").write_text(
        "video,start_s,end_s\na.mp4,1,2\na.mp4,9,12\na.mp4,30,31\n", encoding="utf-8"
    )
    imported = import_spans([tmp_path / "s.csv"], tmp_path, videos=films, length_of=lambda _: 10.0)
    assert [(clip.start_s, clip.end_s) for clip in imported.manifest] == [(1.0, 2.0), (9.0, 10.0)]
    (account,) = imported.accounts

    assert (account.seen, account.used, account.left_out[0][0]) == (3, 2, "line 4")
    assert any("line 3: cut at the end" in note for note in account.notes)
    assert json.dumps(account.record())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"kind": "elan"}, "expected .*eaf"), ({"tiers": {"gaze": "level"}}, "expected .*levels")],
    ids=["a kind", "a role"],
)
def test_an_unknown_kind_or_role_is_refused_with_those_that_exist(read, options, message):
    with pytest.raises(ManifestError, match=message):
        read("", **options)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_a_file_of_another_kind_than_stated_gives_nothing_or_one_error(read, kind):
    for content in ("x", "x\ty\n", "<a/>", "{}", "WEBVTT\n\nx\n"):
        clips, message = [], "f.txt"
        try:
            clips, _ = read(content, kind=kind)
        except ManifestError as error:
            message = str(error)
        assert not clips
        assert "f.txt" in message


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"hello", b"{}", b"\0" * 99, bytes(range(256))])
def test_content_of_no_known_kind_is_one_error(read, content):
    with pytest.raises(ManifestError, match=r"f.txt"):
        read(content)


BROKEN = {
    "a.eaf": '<?xml version="1.0"?><ANNOTATION_DOCUMENT><TIER></ANNOTATION_DOCUMENT>',
    "a.csv": 'movie,start_s,end_s,level\nm,1,2,"S\n',
    "b.csv": 'movie,start_s,end_s,level\nm,1,2,"S"x\n',
    "c.csv": f'movie,start_s,end_s,level\nm,1,2,"{"x" * 140000}"\n',
    "a.json": '[{"id":1,"annotations":[}]',
    "a.xlsx": "PK\3\4[Content_Types].xml",
    "a.xml": "<?a?><!--a-->" * 40 + "<annotated/>",  # would take years if parts ended anywhere
}
LIBRARIES = re.compile("mismatched|unexpected|expected after|limit|Expecting|column 2|calamine|codec")


@pytest.mark.parametrize("name", BROKEN)
def test_errors_do_not_quote_the_parsers(read, name):
    """`LIBRARIES` finds words with which parsers of XML, JSON, CSV and workbooks report errors."""
    with pytest.raises(ManifestError) as error:
        read(BROKEN[name], name)
    assert not LIBRARIES.search(str(error.value))


@pytest.mark.parametrize("encoding", ["utf-16", "klingon"])
def test_an_encoding_that_is_not_the_file_s_is_refused_in_our_words(read, encoding):
    with pytest.raises(ManifestError, match=encoding) as error:
        read("1\n00:00:01,000 --> 00:00:02,000\nA\u00e9\n".encode("latin-1"), "a.srt", encoding=encoding)
    assert "codec" not in str(error.value)


def test_a_file_without_spans_leaves_no_manifest(tmp_path, capsys):
    path = tmp_path / "a.rttm"
    path.write_text("SPEAKER f 1 1.5 0.0 <NA> <NA> A <NA> <NA>\n")
    out = tmp_path / "a.csv"
    assert obygaze("manifest", "import", "spans", path, "--out", out) == 3
    assert not out.exists()
    shown = capsys.readouterr()
    assert shown.out == f"no span to import: {out} is not written\n"
    assert "0 of 1 span read (rttm); line 1: it has no length" in shown.err
    assert obygaze("manifest", "import", "spans", path, "--out", out, "--json") == 3
    answer = json.loads(capsys.readouterr().out)

    assert (answer["manifest"], answer["clips"], answer["accounts"][0]["seen"]) == (None, 0, 1)
