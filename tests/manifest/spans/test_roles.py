# ruff: noqa: E501 - rows of files are kept as tools write them
"""What a tier holds is decided by the tier, in every format alike: a text alone is never a label."""

import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans, load_codebook
from tests.manifest.spans.written import OF_ONE_TIER, WITH_TIERS, Mark

KINDS = WITH_TIERS | OF_ONE_TIER


def labels_of(clips):
    """The labels that clips have, with their times."""
    return {(c.start_s, c.end_s, c.level, c.concepts) for c in clips if c.level or c.concepts}


def texts_of(clips):
    return sorted(clip.extras.get("text", "") for clip in clips if not (clip.level or clip.concepts))


ROLES = ("levels", "concepts", "labels")


def options_in(notices):
    """Return the roles that notices propose for tiers, {tier: role}, as a shell reads the --tier options."""
    roles = {}
    for quoted_or_one_word in re.findall(r"--tier ('[^']*'|\S+)", notices):
        option = shlex.split(quoted_or_one_word)[0]
        tier, _, role = option.rpartition("=")
        is_placeholder = tier == "NAME"
        if role in ROLES and not is_placeholder:
            roles[tier] = role
    return roles


@pytest.fixture
def written(import_files):
    """Import marks as a tool writes them: clips, and all that is said."""

    def written(kind, *marks, **options):
        return import_files({"tt1.x": KINDS[kind](marks)}, **{"annotator": "AB", "movie": "tt1"} | options)

    return written


# --- one annotation in every format
# ---------------------------------------------------------------------------
BESIDE = {
    "boris": (
        "Observation id,Media file,Subject,Behavior,Behavior type,Start (s),Stop (s),FPS",
        "o,f.mp4,,gaze,STATE,{},{},25",
    ),
    "vian": ("FILM,START_MS,END_MS,SELECTOR_TYPE,Voc:gaze", "f,{}000,{}000,SEGMENT,1"),
    "elan-text": (
        "Tier\tBegin Time - ss.msec\tEnd Time - ss.msec\tDuration - ss.msec\tAnnotation",
        "x\t{}.0\t{}.0\t4.0\tgaze",
    ),
}


def with_columns(kind, headings, *rows):
    """Write a table of a tool with columns of a person beside its own, as {name: content}.

    Of each row, `rows` has the cells of the person's columns; its span lasts from 1 to 5 s, that of the
    next from 11 to 15 s, and so on.
    """
    heading_of_tool, row_of_tool = BESIDE[kind]
    separator = "\t" if "\t" in heading_of_tool else ","
    lines = [separator.join([heading_of_tool, *headings])]
    for number, cells in enumerate(rows):
        times = (10 * number + 1, 10 * number + 5)
        lines.append(separator.join([row_of_tool.format(*times), *cells]))
    name = "f.txt" if kind == "elan-text" else "f.csv"
    return {name: "\n".join(lines) + "\n"}


@pytest.mark.parametrize("kind", BESIDE)
@pytest.mark.parametrize("heads", [("level", "concepts"), ("rating", "Konzepte")])
def test_columns_of_labels_beside_those_of_a_tool_are_labels(import_files, kind, heads):
    """A person added columns for levels and concepts to the table that a tool exported."""
    rows = (("S", "Body; Look"), ("EN", "Clothing"), ("", ""))
    clips, notices = import_files(with_columns(kind, heads, *rows))
    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (11.0, 15.0, "EN", ("Clothing",))}
    assert texts_of(clips) == ["gaze"] * 3
    assert "columns not read (level" not in notices


@pytest.mark.parametrize("kind", BESIDE)
@pytest.mark.parametrize(
    ("cells", "role"),
    [(["S", "sad", ""], "labels"), (["S", "S", "S"], "levels"), (["Body", "Body", "Body"], "concepts")],
    ids=["one label", "levels", "concepts"],
)
def test_an_undeclared_column_with_labels_is_named_with_the_option_that_reads_it(
    import_files, kind, cells, role
):
    """The heading "mood" does not say that the column holds labels, so it is not read as such.

    Its cells look like labels, so the option is proposed.
    """
    rows = [[cell] for cell in cells]
    clips, notices = import_files(with_columns(kind, ["mood"], *rows))

    assert not labels_of(clips)
    assert len(clips) == 3
    # FPS is a column of BORIS's own that is not read either.
    assert re.search(r"columns? not read \((FPS, )?mood\)", notices)
    assert options_in(notices)["mood"] == role


@pytest.mark.parametrize("kind", BESIDE)
def test_an_undeclared_column_without_labels_is_noted_and_not_read(import_files, kind):
    clips, notices = import_files(with_columns(kind, ["weather"], ("sun",), ("rain",)))
    assert texts_of(clips) == ["gaze"] * 2
    assert "weather" in notices


@pytest.mark.parametrize("kind", BESIDE)
def test_a_word_of_no_codebook_in_a_column_called_level_is_refused(import_files, kind):
    with pytest.raises(ManifestError, match="'Sx'"):
        import_files(with_columns(kind, ["level"], ("S",), ("Sx",)))


EVENT = "Observation id\tTime\tMedia file path\tBehavior\tStatus\tlevel\no\t1\tf.mp4\tgaze\tSTART\tS\no\t5\tf.mp4\tgaze\tSTOP\t{}\n"
"""An event of BORIS from 1 to 5 s, with a label in the rows of its start and its stop."""


def test_a_label_at_the_start_and_at_the_stop_of_an_event_is_one(import_files):
    for label_at_stop in ("S", ""):
        clips, _ = import_files({"b.tsv": EVENT.format(label_at_stop)})
        assert labels_of(clips) == {(1.0, 5.0, "S", ())}
    with pytest.raises(ManifestError, match="EN"):
        import_files({"b.tsv": EVENT.format("EN")})


DECLARED = (Mark("level", 1, 5, "S"), Mark("concepts", 1, 5, "Body; Look"), Mark("level", 6, 9, "EN"))
SAME = {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_tiers_named_level_and_concepts_give_the_same_labels_in_every_format(written, kind):
    clips, _ = written(kind, *DECLARED)
    assert labels_of(clips) == SAME


def test_a_table_gives_the_same_labels_as_tiers_do(import_files):
    head = "movie,start_s,end_s,level,concepts,annotator\n"
    clips, _ = import_files({"t.csv": f"{head}tt1,1,5,S,Body; Look,AB\ntt1,6,9,EN,,AB\n"})
    assert labels_of(clips) == SAME


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_of_labels_alone_is_read_and_reported_in_every_format(written, kind):
    """Three of three texts on the tier "gaze" are labels, so the tier is taken to hold labels.

    The user is told.
    """
    clips, said = written(kind, *(mark._replace(tier="gaze") for mark in DECLARED))
    assert labels_of(clips) == SAME
    assert "'gaze': 3 of 3" in said


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_with_other_texts_holds_texts_unless_declared(written, kind):
    """Two of three words are also names of labels, and "at" is not: these are spoken words.

    The option reads them as labels all the same.
    """
    marks = (Mark("words", 1, 5, "look"), Mark("words", 6, 7, "at"), Mark("words", 8, 9, "S"))
    clips, notices = written(kind, *marks)
    assert not labels_of(clips)
    if kind != "eaf":  # tiers of ELAN that are not declared are not read at all
        assert {"S", "at", "look"} <= set(texts_of(clips))
    assert "'words': 2 of 3" in notices
    assert "read as labels" not in notices
    clips, _ = written(kind, *marks, tiers=options_in(notices))

    assert labels_of(clips) == {(1.0, 5.0, None, ("Look",)), (8.0, 9.0, "S", ())}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_of_one_word_holds_texts_unless_declared(written, kind):
    """A tier that only says S may be of something else, such as a speaker. The option is proposed."""
    marks = (Mark("Ann", 1, 5, "S"), Mark("Ann", 6, 7, "S"))
    clips, said = written(kind, *marks)
    assert not labels_of(clips)
    assert options_in(said) == {"Ann": "levels"}
    clips, _ = written(kind, *marks, tiers=options_in(said))
    assert labels_of(clips) == {(1.0, 5.0, "S", ()), (6.0, 7.0, "S", ())}


LEVEL_WITH_CONCEPTS_AND_LEVEL_ALONE = (Mark("", 1, 5, "S;Body;Look"), Mark("", 6, 9, "EN"))
OF_NO_NAMED_TIER = {
    "rttm": "SPEAKER",
    "srt": "subtitle",
    "vtt": "subtitle",
    "ass": "subtitle",
    "ttml": "subtitle",
    "transcript": "subtitle",
    "moviegraphs": "situation",
}
"""What an import calls the only tier of a format that names none."""


@pytest.mark.parametrize(("kind", "tier"), OF_NO_NAMED_TIER.items(), ids=OF_NO_NAMED_TIER)
def test_a_format_of_texts_gives_labels_once_its_tier_is_declared(written, kind, tier):
    """Subtitles and speakers are texts. They are labels only where the person says so."""
    clips, said = written(kind, *LEVEL_WITH_CONCEPTS_AND_LEVEL_ALONE)
    assert labels_of(clips) != SAME
    assert options_in(said) == {tier: "labels"}
    clips, _ = written(kind, *LEVEL_WITH_CONCEPTS_AND_LEVEL_ALONE, tiers={tier: "labels"})
    assert labels_of(clips) == SAME


def test_the_labels_of_activitynet_are_the_same_unasked(written):
    clips, said = written("activitynet", *LEVEL_WITH_CONCEPTS_AND_LEVEL_ALONE)
    assert labels_of(clips) == SAME
    assert options_in(said) == {}


def test_every_format_of_one_tier_is_tested():
    assert OF_ONE_TIER.keys() == {"activitynet", *OF_NO_NAMED_TIER}


# --- roles over all files of an import
# ---------------------------------------------------------------------------
def test_a_role_is_that_of_all_tiers_of_the_name_over_all_files(import_files):
    """The tier "gaze" of two films holds labels alone.

    With a third film, in which it says "kiss", it holds texts in all three.
    """
    as_textgrid = WITH_TIERS["textgrid"]
    files = {
        "a.TextGrid": as_textgrid([Mark("gaze", 1, 5, "S")]),
        "b.TextGrid": as_textgrid([Mark("gaze", 1, 5, "EN")]),
    }
    clips, notices = import_files(files)
    assert [clip.level for clip in clips] == ["S", "EN"]
    assert "'gaze': 2 of 2" in notices
    with_another_word = files | {"c.TextGrid": as_textgrid([Mark("Gaze", 1, 5, "kiss")])}
    clips, notices = import_files(with_another_word)

    assert not labels_of(clips)
    assert "'gaze': 2 of 3" in notices


def test_tiers_of_one_name_by_several_annotators_have_one_role(import_files):
    marks = [Mark("gaze@AB", 1, 5, "S"), Mark("gaze@CD", 1, 5, "EN")]
    clips, _ = import_files({"a.TextGrid": WITH_TIERS["textgrid"](marks)})
    assert {clip.annotator: clip.level for clip in clips} == {"AB": "S", "CD": "EN"}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_label_that_is_unknown_on_a_declared_tier_is_refused(written, kind):
    with pytest.raises(ManifestError, match=r"tt1\.x: .*'Sx'"):
        written(kind, Mark("level", 1, 5, "S"), Mark("level", 6, 7, "Sx"))


@pytest.mark.parametrize("kind", ["eaf", "textgrid"])
def test_decisions_on_conflicts_are_no_labels_unless_their_tier_is_named(written, kind):
    """Decisions are made by several annotators together, so they are of none of them."""
    decisions = [Mark("human: decision level", 1, 5, "S"), Mark("human: decision level", 6, 7, "EN")]
    clips, _ = written(kind, *decisions)
    assert not labels_of(clips)
    clips, _ = written(kind, *decisions, tiers={"human: decision level": "levels"})
    assert labels_of(clips) == {(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())}


def test_a_comma_stands_between_concepts_where_no_concept_has_one(written):
    clips, _ = written("textgrid", Mark("level", 1, 5, "S"), Mark("concepts", 1, 5, "Body, Look"))
    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body"))}


def test_a_concept_with_a_comma_in_its_name_is_one(written, tmp_path):
    text = 'name = "v"\nversion = "1"\nlevels = ["S"]\nconcepts = ["sun, moon", "sun", "moon"]\n'
    (tmp_path / "v.toml").write_text(text)
    codebook = load_codebook(tmp_path / "v.toml")
    clips, _ = written("textgrid", Mark("concepts", 1, 5, "sun, moon"), codebook=codebook)
    assert labels_of(clips) == {(1.0, 5.0, None, ("sun, moon",))}


# --- real kinds of tiers
# ---------------------------------------------------------------------------
def test_a_phoneme_s_is_no_level_and_the_words_beside_it_are_kept(written):
    """A tier of phonemes, as speech aligners write it, spells "sells" as S EH1 L Z."""
    words = [Mark("words", 0, 4, "sells"), Mark("words", 4, 10, "look")]
    phonemes = [
        Mark("phones", 0, 1, "S"),
        Mark("phones", 1, 2, "EH1"),
        Mark("phones", 2, 3, "L"),
        Mark("phones", 3, 4, "Z"),
    ]
    clips, _ = written("textgrid", *words, *phonemes)

    assert not labels_of(clips)
    assert texts_of(clips) == ["EH1", "L", "S", "Z", "look", "sells"]


def test_a_language_is_no_level(written):
    """EN is the code of English here, and FR shows that the tier is of languages."""
    marks = [Mark("language", 0, 4, "EN"), Mark("language", 4, 8, "EN"), Mark("language", 8, 9, "FR")]
    for kind in WITH_TIERS:
        clips, said = written(kind, *marks)
        assert not labels_of(clips)
        assert "'language': 2 of 3" in said


@pytest.mark.parametrize("names", [("S", "A"), ("SPEECH", "FEM"), ("S", "EN"), ("look", "body")])
def test_a_speaker_is_no_label_whatever_the_name(written, names):
    clips, _ = written("rttm", *(Mark("", 1 + n, 5 + n, name) for n, name in enumerate(names)))
    assert not labels_of(clips)
    assert texts_of(clips) == sorted(names)


def test_the_export_of_a_film_gives_no_label_of_its_own_words(tmp_path):
    from obygaze_film.exchange import export
    from tests.film.page.invented import invented_film

    film = invented_film(n_rows=40, duration_s=600.0)
    for kind in ("textgrid", "rttm", "srt", "vtt"):
        path = tmp_path / f"film.{kind}"
        path.write_text(export(film, kind), encoding="utf-8")
        imported = import_spans([path], tmp_path, annotator="AB", movie="tt0000042")
        assert not [clip for clip in imported.manifest if clip.level or clip.concepts]


# --- no mark changes another's label
# ---------------------------------------------------------------------------
TEXTS = st.sampled_from(["S", "EN", "Body", "Look", "kiss", "S;Body", "words"])


@given(
    rest=st.lists(st.tuples(st.sampled_from(["gaze", "words"]), TEXTS), max_size=5),
    declared=st.lists(st.tuples(st.just("level"), st.sampled_from(["S", "EN"])), max_size=3),
    moved=st.sampled_from(["S", "EN"]),
    home=st.sampled_from(["gaze", "words"]),
    kind=st.sampled_from(sorted(WITH_TIERS)),
)
def test_moving_a_mark_changes_no_other_label_without_a_notice(tmp_path, rest, declared, moved, home, kind):
    """Without the mark, the tier that it was on may hold labels alone, or no longer enough of them."""
    others = [Mark(name, 10 * n + 1, 10 * n + 5, text) for n, (name, text) in enumerate([*rest, *declared])]
    path = tmp_path / "tt1.x"
    path.write_text(WITH_TIERS[kind]([*others, Mark(home, 91, 95, moved)]), encoding="utf-8")
    before = import_spans([path], tmp_path, kind, annotator="AB", movie="tt1", rate=25)
    path.write_text(WITH_TIERS[kind]([*others, Mark("level", 91, 95, moved)]), encoding="utf-8")
    after = import_spans([path], tmp_path, kind, annotator="AB", movie="tt1", rate=25)

    if labels_but_from_91_s(before) != labels_but_from_91_s(after):
        assert notices_of_roles(before) != notices_of_roles(after)


def labels_but_from_91_s(imported):
    return {label for label in labels_of(imported.manifest) if label[0] != 91}


def notices_of_roles(imported):
    """Return what is noted of the roles of tiers over all files; notices of one file name it, tt1.x."""
    return [notice for notice in imported.notices if " tier" in notice and ".x:" not in notice]
