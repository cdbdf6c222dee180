# ruff: noqa: E501 - rows of files are kept as tools write them
"""Spans of every tool's files become clips; each record is used, left out and said, or refused."""

import json
import re
import unicodedata
from fractions import Fraction
from itertools import product

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
def test_each_kind_is_told_by_its_content_and_read(read, kind):
    example = EXAMPLES[kind]
    for said in ("", kind):
        clips, account = read(example.content, "tt0000042.x", kind=said, **example.options)
        assert account.kind == kind
        assert [clip[1:] for clip in clips] == example.spans
        assert {clip[0] for clip in clips} == {example.movie}
        assert sorted(why for _, why in account.left_out) == sorted(example.left_out)


@pytest.mark.parametrize("rate", [None, Fraction(25)])
def test_frames_of_vian_are_of_24_a_second(read, rate):
    clips, _ = read("movie,segmentation_name,start_ts,end_ts\na,Main,00:00:01:12,00:00:05:06\n", rate=rate)
    assert [clip[1:3] for clip in clips] == [(1.5, 5.25)]


# --- ELAN
# ---------------------------------------------------------------------------
def elan(read, *tiers, slots=None, header="", **options):
    """Read a file of one film: clips without the film's name, and the account."""
    options = {"movie": "tt1", "annotator": "AB"} | options
    clips, account = read(eaf(slots or SLOTS, "".join(tiers), header), "film.eaf", **options)
    return [clip[1:] for clip in clips], account


def media(url, origin, kind="video"):
    return f'<MEDIA_DESCRIPTOR MEDIA_URL="file:///{url}" MIME_TYPE="{kind}/x" TIME_ORIGIN="{origin}"/>'


def test_the_offset_of_the_media_moves_all_times(read):
    assert elan(read, LEVEL, header=media("film.mp4", 2000))[0] == [(3.0, 7.0, "S", ())]
    for sound, movie in (("sound", "tt1"), ("film", "film")):
        both = media("film.mp4", 2000) + media(f"{sound}.wav", 500, "audio")
        assert elan(read, LEVEL, header=both, movie=movie)[0] == [(3.0, 7.0, "S", ())]
    two = media("tt1.mp4", 2000) + media("other.mp4", 0)
    assert elan(read, LEVEL, header=two)[0] == [(3.0, 7.0, "S", ())]
    with pytest.raises(ManifestError, match=r"film.eaf.*--movie"):
        elan(read, LEVEL, header=two, movie="tt2")


@pytest.mark.parametrize("place", ['MEDIA_URL="file:///C:/f/m%20x.mp4"', 'RELATIVE_MEDIA_URL="./m x.mp4"'])
def test_a_document_names_its_film_by_any_place_of_the_media(read, place):
    text = eaf(SLOTS, LEVEL, f'<MEDIA_DESCRIPTOR {place} MIME_TYPE="video/mp4"/>')
    old = eaf(SLOTS, LEVEL).replace('MEDIA_FILE=""', 'MEDIA_FILE="m x.mpg"')
    assert [read(each, annotator="AB")[0][0][0] for each in (text, old)] == ["m x"] * 2


def test_all_concepts_of_a_level_are_kept(read):
    below = 'PARENT_REF="human: level"'
    one = tier("human: concepts", referring("a2", "a1", "Body") + referring("a3", "a1", "Look"), below)
    two = tier("human: concepts@CD", referring("a4", "a1", "Clothes"), below)
    beside = tier("human: concepts", aligned("a2", "t1", "t2", "Body") + aligned("a3", "t1", "t2", "Look"))
    for tiers, concepts in (
        ((one,), ("Look", "Body")),
        ((one, two), ("Look", "Body", "Clothing")),
        ((beside,), ("Look", "Body")),
    ):
        clips, _ = elan(read, LEVEL, *tiers)
        assert clips == [(1.0, 5.0, "S", concepts)]
    signed = tier("human: level", aligned("a1", "t1", "t2", "S"), 'ANNOTATOR="AB"')
    assert elan(read, signed, beside)[0] == [(1.0, 5.0, "S", ("Look", "Body"))]
    assert any("signed CD" in note for note in elan(read, signed, two)[1].notes)


def test_slots_that_two_annotations_share_are_spread_evenly(read):
    slots = {"t1": 1000, "t2": None, "t3": None, "t4": 7000}
    parts = product([""], [("a1", "t1", "t2", "S"), ("a2", "t2", "t3", "EN"), ("a3", "t3", "t4", "HN")])
    body = "".join(aligned(*part) for _, part in parts)
    clips, _ = elan(read, tier("human: level", body), slots=slots)
    assert clips == [(1.0, 3.0, "S", ()), (3.0, 5.0, "EN", ()), (5.0, 7.0, "HN", ())]
    with pytest.raises(ManifestError, match=r"film.eaf.*a1"):
        elan(read, tier("human: level", aligned("a1", "t1", "t2", "S")), slots=slots)
    scene = tier("scene", aligned("a3", "t1", "t2", "x") + aligned("a4", "t2", "t4", "x"))
    words = tier("human: level", aligned("a1", "t1", "t3", "S") + aligned("a2", "t3", "t2", "EN"))
    assert elan(read, words, scene, slots=slots)[0] == [(1.0, 2.5, "S", ()), (2.5, 4.0, "EN", ())]


@pytest.mark.parametrize(
    ("start", "what"),
    [
        ("1000.5", "'1000.5' is no whole"),
        (-1, "'-1' is no whole"),
        ("", "it has no time"),
    ],
)
def test_a_time_that_is_none_names_file_and_annotation(read, start, what):
    with pytest.raises(ManifestError, match=rf"film.eaf.*a1.*{what}"):
        elan(read, LEVEL, slots={"t1": start, "t2": 5})


def test_a_time_that_is_none_on_a_tier_of_texts_costs_nothing(read):
    words = tier("words", aligned("b1", "t9", "t2", "hello"))
    clips, account = elan(read, LEVEL, words, slots=SLOTS | {"t9": "later"})
    assert clips == [(1.0, 5.0, "S", ())]
    assert any("'words' (1)" in note for note in account.notes)


@pytest.mark.parametrize("name", ["human:level", "Human: level", "human: level ", "HUMAN:  LEVEL@AB"])
def test_a_tier_is_found_whatever_its_blanks_and_case(read, name):
    assert elan(read, tier(name, aligned("a1", "t1", "t2", "S")))[0] == [(1.0, 5.0, "S", ())]


def test_a_tier_almost_so_named_is_proposed_and_any_other_can_be_named(read):
    copy = tier("human: level-cp", aligned("a1", "t1", "t2", "S"))
    clips, account = elan(read, copy)
    assert (clips, any("did you mean 'human: level'" in note for note in account.notes)) == ([], True)
    assert elan(read, copy, tiers={"human: level-cp": "levels"})[0] == [(1.0, 5.0, "S", ())]
    with pytest.raises(ManifestError, match="no tier"):
        elan(read, copy, tiers={"gaze": "levels"})
    with pytest.raises(ManifestError, match="model"):
        elan(
            read,
            tier("obygaze: segments", aligned("a1", "t1", "t2", "S")),
            tiers={"obygaze: segments": "levels"},
        )
    with pytest.raises(ManifestError, match="rename"):
        elan(read, LEVEL, tier("human:level", aligned("a2", "t3", "t4", "S")))


# --- tables
# ---------------------------------------------------------------------------
PLACES = (
    "C:\\films\\{}.mp4", "https://x.example/{}.mp4?t=1", "file:///films/{}.mp4", "~/films/{}.mp4", "{}.mp4",
    "\\\\server\\films\\{}.mp4", "/mnt/films/{}.mp4", "%USERPROFILE%\\films\\{}.mp4", "$HOME/films/{}.mp4",
    "file:///C:%5Cfilms%5C{}.mp4",
)  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_paths_of_every_system_name_their_films(read, films, place):
    (films / "_a.mp4").touch()  # the same name as names are compared, and the other one is written
    rows = "".join(f"{place.format(film)},1,2,S\n" for film in "ab")
    clips, _ = read("video,start_s,end_s,level\n" + rows, "spans.csv", videos=films)
    assert [clip[0] for clip in clips] == ["a", "b"]


@pytest.mark.parametrize(
    ("place", "video"),
    [("~/films/a.mp4", "films/a.mp4"), ("C:\\f\\b.mp4", "b.mp4"), ("~no-such-user/b.mp4", "b.mp4")],
)
def test_without_a_folder_of_films_a_foreign_path_lies_beside_the_table(tmp_path, monkeypatch, place, video):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / "s.csv").write_text(f"video,start_s,end_s\n{place},1,2\n", encoding="utf-8")
    assert [clip.video for clip in import_spans([tmp_path / "s.csv"], tmp_path).manifest] == [video]


def test_accents_of_labels_and_annotators_have_one_form(read, films, tmp_path):
    concept = "D\u00e9shabill\u00e9"
    text = f'name = "v"\nversion = "1"\n[[levels]]\nname = "calm"\n[[concepts]]\nname = "{concept}"\nvisual = true\n'
    (tmp_path / "v.toml").write_text(text, encoding="utf-8")
    book = load_codebook(tmp_path / "v.toml")
    other = unicodedata.normalize("NFD", concept)
    table = f"video,start_s,end_s,concepts,annotator\na.mp4,1,2,{other},L\u00e9a\na.mp4,3,4,{concept},Le\u0301a \n"
    clips, _ = read(table, "spans.csv", videos=films, codebook=book)
    assert [clip[4] for clip in clips] == [(concept,)] * 2
    twin = f'[[concepts]]\nname = "{other}"\nvisual = true\n'
    (tmp_path / "w.toml").write_text(text + twin, encoding="utf-8")
    with pytest.raises(ManifestError):
        load_codebook(tmp_path / "w.toml")
    with pytest.raises(ManifestError, match="annotator"):
        read("video,start_s,end_s,level,annotator\na.mp4,1,2,,ab\na.mp4,3,4,,AB\n", "s.csv", videos=films)


def test_a_film_beside_the_table_is_found_in_either_form_of_unicode(tmp_path):
    (tmp_path / "Le\u0301a.mp4").touch()
    (tmp_path / "s.csv").write_text("video,start_s,end_s\nL\u00e9a.mp4,1,5\n", encoding="utf-8")
    imported = import_spans([tmp_path / "s.csv"], tmp_path)
    assert not any("missing" in notice for notice in imported.notices)
    assert (tmp_path / imported.manifest.clips[0].video).is_file()


def test_a_workbook_gives_values_and_times_as_clock(read, films):
    pytest.importorskip("python_calamine")
    rows = [
        ["video", "start_s", "end_s", "level"],
        ["a.mp4", 1.5, 2.5, "S"],
        ["b.mp4", ("time", 90 / 86400), ("time", 95 / 86400), "EN"],
    ]
    clips, _ = read(sheet(rows), "spans.xlsx", videos=films)
    assert clips == [("a", 1.5, 2.5, "S", ()), ("b", 90.0, 95.0, "EN", ())]
    days = [rows[0], ["a.mp4", 90 / 86400, 95 / 86400, "S"]]
    with pytest.raises(ManifestError, match="day"):
        read(sheet(days), "spans.xlsx", videos=films)
    with pytest.raises(ManifestError, match="rows"):
        read(sheet([["a"]], {"XFD1048576": 1}), "spans.xlsx", videos=films)


# --- labels of other tools
# ---------------------------------------------------------------------------
def rttm(*turns):
    return "".join(
        f"SPEAKER tt1 1 {start} {end - start} <NA> <NA> {name} <NA> <NA>\n" for start, end, name in turns
    )


def test_names_of_speakers_are_labels_where_the_person_says_so_alone(read):
    clips, account = read(rttm((1, 5, "Sure"), (1, 5, "body"), (2, 3, "Ann")))
    assert {clip[3:] for clip in clips} == {(None, ())}
    assert any("'Ann'" not in note for note in account.notes) or not account.notes
    declared = {"speaker": "labels"}
    clips, _ = read(rttm((1, 5, "Sure"), (1, 5, "body"), (2, 3, "Ann"), (7, 9, "Look")), tiers=declared)
    assert clips == [
        ("tt1", 1.0, 5.0, "S", ("Body",)), ("tt1", 2.0, 3.0, None, ()), ("tt1", 7.0, 9.0, None, ("Look",)),
    ]  # fmt: skip
    look = read(rttm((7, 9, "Look"), (7, 9, "body")), tiers=declared)[0]
    assert look == [("tt1", 7.0, 9.0, None, ("Look", "Body"))]
    with pytest.raises(ManifestError, match=r"f.txt.*line 1.*'Ann'"):
        read(rttm((2, 3, "Ann")), tiers={"speaker": "levels"})


def test_a_word_that_is_a_level_and_a_concept_is_said(read, tmp_path):
    text = 'name = "v"\nversion = "1"\n[[levels]]\nname = "calm"\ntitle = "at;rest"\n[[concepts]]\nname = "Calm"\n'
    (tmp_path / "v.toml").write_text(text)
    book = load_codebook(tmp_path / "v.toml")
    mixed = {"speaker": "labels"}
    clips, account = read(rttm((1, 5, "calm")), codebook=book, tiers=mixed)
    assert [clip[3] for clip in clips] == ["calm"]
    assert any("'calm'" in note and "--tier" in note for note in account.notes)
    whole = read(rttm((1, 5, "At;rest")), codebook=book, tiers=mixed)[0]
    assert whole == [("tt1", 1.0, 5.0, "calm", ())]
    assert not read(rttm((1, 5, "calm")), codebook=book, tiers={"speaker": "concepts"})[1].notes


def test_times_in_frames_need_their_rate(read):
    example = EXAMPLES["cvat"]
    with pytest.raises(ManifestError, match="--rate"):
        read(example.content, kind="cvat")


def test_a_span_ends_in_its_film_where_the_length_is_known(films, tmp_path):
    (tmp_path / "s.csv").write_text(
        "video,start_s,end_s\na.mp4,1,2\na.mp4,9,12\na.mp4,30,31\n", encoding="utf-8"
    )
    imported = import_spans([tmp_path / "s.csv"], tmp_path, videos=films, length_of=lambda _: 10.0)
    assert [(clip.start_s, clip.end_s) for clip in imported.manifest] == [(1.0, 2.0), (9.0, 10.0)]
    (account,) = imported.accounts
    assert (account.seen, account.used, account.left_out[0][0]) == (3, 2, "line 4")
    assert any("line 3: cut at the end" in note for note in account.notes)
    assert json.dumps(account.record())


@pytest.mark.parametrize("options", [{"kind": "elan"}, {"tiers": {"gaze": "level"}}])
def test_a_kind_and_a_role_that_there_are_not_are_refused(read, options):
    with pytest.raises(ManifestError, match=r"expected .*(eaf|levels)"):
        read("", **options)


@pytest.mark.parametrize("kind", EXAMPLES)
@pytest.mark.parametrize("content", ["x", "x\ty\n", "<a/>", "{}", "WEBVTT\n\nx\n"])
def test_a_file_of_another_kind_than_was_said_gives_nothing_or_one_error(read, kind, content):
    try:
        clips, _ = read(content, kind=kind)
    except ManifestError as error:
        said = str(error)
        assert "f.txt" in said
    else:
        assert not clips


@pytest.mark.parametrize("content", [b"", b"<svg/>", b"hello", b"{}", b"\0" * 99, bytes(range(256))])
def test_what_is_no_such_file_is_one_error(read, content):
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
def test_no_text_of_a_library_says_why_a_file_is_not_read(read, name):
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
