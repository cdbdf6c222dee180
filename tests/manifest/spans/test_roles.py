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
    """The texts of clips that have no label."""
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
def import_marks(import_files):
    """Return a function that imports marks of film tt1 by AB, as a tool of a kind writes them.

    It returns the clips, and all notices as one text.
    """

    def import_marks(kind, *marks, **options):
        return import_files({"tt1.x": KINDS[kind](marks)}, **{"annotator": "AB", "movie": "tt1"} | options)

    return import_marks


# --- one annotation in every format
# ---------------------------------------------------------------------------
TABLES_OF_TOOLS = {
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


def table_of_tool_with_columns(kind, headings, *rows):
    """Write a table of a tool with columns of a person beside its own, as {name: content}.

    Of each row, `rows` has the cells of the person's columns; its span lasts from 1 to 5 s, that of the
    next from 11 to 15 s, and so on.
    """
    heading_of_tool, row_of_tool = TABLES_OF_TOOLS[kind]
    separator = "\t" if "\t" in heading_of_tool else ","
    lines = [separator.join([heading_of_tool, *headings])]
    for number, cells in enumerate(rows):
        times = (10 * number + 1, 10 * number + 5)
        lines.append(separator.join([row_of_tool.format(*times), *cells]))
    name = "f.txt" if kind == "elan-text" else "f.csv"
    return {name: "\n".join(lines) + "\n"}


@pytest.mark.parametrize("kind", TABLES_OF_TOOLS)
@pytest.mark.parametrize(
    "headings", [("level", "concepts"), ("rating", "Konzepte")], ids=["our headings", "other known headings"]
)
def test_columns_of_levels_and_concepts_that_a_person_added_to_a_tools_table_are_read(
    import_files, kind, headings
):
    """A tool exported a table of three events "gaze", from 1 to 5 s, from 11 to 15 s, and from 21 to 25 s.

    A person added two columns to it, for levels and for concepts, whose headings are known to mean that. They
    are filled for the first two events. The events become clips as well: texts without labels.
    """
    table = table_of_tool_with_columns(kind, headings, ("S", "Body; Look"), ("EN", "Clothing"), ("", ""))

    clips, notices = import_files(table)

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (11.0, 15.0, "EN", ("Clothing",))}
    assert texts_of(clips) == ["gaze", "gaze", "gaze"]
    assert "columns not read (level" not in notices


@pytest.mark.parametrize("kind", TABLES_OF_TOOLS)
@pytest.mark.parametrize(
    ("cells", "role"),
    [
        pytest.param(["S", "sad", ""], "labels", id="a level among other words: labels of either kind"),
        pytest.param(["S", "S", "S"], "levels", id="levels alone"),
        pytest.param(["Body", "Body", "Body"], "concepts", id="concepts alone"),
    ],
)
def test_a_column_whose_cells_look_like_labels_is_not_read_and_the_option_that_reads_it_is_named(
    import_files, kind, cells, role
):
    """A person added a column "mood" to a tool's table. Its heading does not say that it holds labels.

    So it is not read, nor is FPS, a column of the tool BORIS. But there are words of the codebook in its
    cells: the notice proposes the option `--tier mood=ROLE` by which it would be read.
    """
    first, second, third = cells
    table = table_of_tool_with_columns(kind, ["mood"], [first], [second], [third])

    clips, notices = import_files(table)

    assert labels_of(clips) == set()
    assert len(clips) == 3
    assert re.search(r"columns? not read \((FPS, )?mood\)", notices)
    role_proposed_for = options_in(notices)
    assert role_proposed_for["mood"] == role


@pytest.mark.parametrize("kind", TABLES_OF_TOOLS)
def test_an_added_column_without_labels_is_noted_and_not_read(import_files, kind):
    """A person added a column "weather" to the table of a tool, which has two events "gaze".

    Its cells, sun and rain, are no labels, and no option says what they are. So the two events are imported
    as they are, and a notice names the column.
    """
    clips, notices = import_files(table_of_tool_with_columns(kind, ["weather"], ("sun",), ("rain",)))
    assert texts_of(clips) == ["gaze", "gaze"]
    assert "weather" in notices


@pytest.mark.parametrize("kind", TABLES_OF_TOOLS)
def test_an_unknown_word_in_an_added_column_called_level_is_refused(import_files, kind):
    """A person added a column "level" to the table of a tool such as ELAN, with the cells S and Sx.

    The codebook has no level Sx. It may be a slip, and a level that is passed over would be lost.
    """
    with pytest.raises(ManifestError, match="'Sx'"):
        import_files(table_of_tool_with_columns(kind, ["level"], ("S",), ("Sx",)))


def event_of_boris(level_at_start, level_at_stop):
    """Write an event of BORIS from 1 to 5 s, with a level in the rows of its start and its stop."""
    return (
        "Observation id\tTime\tMedia file path\tBehavior\tStatus\tlevel\n"
        f"o\t1\tf.mp4\tgaze\tSTART\t{level_at_start}\n"
        f"o\t5\tf.mp4\tgaze\tSTOP\t{level_at_stop}\n"
    )


@pytest.mark.parametrize("level_at_stop", ["S", ""])
def test_a_label_at_the_start_and_at_the_stop_of_an_event_is_one(import_files, level_at_stop):
    """BORIS has a row for the start of an event and one for its stop, each with a level, or none."""
    clips, _ = import_files({"b.tsv": event_of_boris("S", level_at_stop)})
    assert labels_of(clips) == {(1.0, 5.0, "S", ())}


def test_an_event_of_two_levels_at_its_start_and_stop_is_refused(import_files):
    """BORIS has a row for the start of an event, here with S, and one for its stop, with EN."""
    with pytest.raises(ManifestError, match="EN"):
        import_files({"b.tsv": event_of_boris("S", "EN")})


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_tiers_named_level_and_concepts_give_the_same_labels_in_every_format(import_marks, kind):
    """A tool's file has the tiers "level" and "concepts", with S, "Body; Look" at the same time, and EN.

    By their names the tiers hold labels, and each tool's file gives the same clips.
    """
    marks = [
        Mark("level", start=1, end=5, text="S"),
        Mark("concepts", start=1, end=5, text="Body; Look"),
        Mark("level", start=6, end=9, text="EN"),
    ]

    clips, _ = import_marks(kind, *marks)

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}


def test_columns_level_and_concepts_of_a_table_are_labels_without_an_option(import_files):
    """A table has the columns level and concepts. AB's clips are S with two concepts, and EN with none.

    Concepts are in the order of the codebook, in which Look comes before Body.
    """
    table = "movie,start_s,end_s,level,concepts,annotator\ntt1,1,5,S,Body; Look,AB\ntt1,6,9,EN,,AB\n"

    clips, _ = import_files({"t.csv": table})

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_of_labels_alone_is_read_and_reported_in_every_format(import_marks, kind):
    """All of three texts on the tier "gaze" are labels, so the tier is taken to hold labels.

    A notice says so ('gaze': 3 of 3). The concepts of a text are those of the level with the same times, in the
    order of the codebook.
    """
    marks = [
        Mark("gaze", start=1, end=5, text="S"),
        Mark("gaze", start=1, end=5, text="Body; Look"),
        Mark("gaze", start=6, end=9, text="EN"),
    ]

    clips, notices = import_marks(kind, *marks)

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}
    assert "'gaze': 3 of 3" in notices


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_with_other_texts_holds_texts_unless_declared(import_marks, kind):
    """Two of three words on a tier, look and S, are also names of labels, and "at" is not: all are texts.

    A notice proposes the option that reads the tier as labels all the same. Tiers of ELAN (eaf) are not read
    at all unless the person says what they hold.
    """
    marks = (
        Mark("words", start=1, end=5, text="look"),
        Mark("words", start=6, end=7, text="at"),
        Mark("words", start=8, end=9, text="S"),
    )

    clips, notices = import_marks(kind, *marks)
    assert labels_of(clips) == set()
    if kind != "eaf":
        assert {"S", "at", "look"} <= set(texts_of(clips))
    assert "'words': 2 of 3" in notices
    assert "read as labels" not in notices

    clips, _ = import_marks(kind, *marks, tiers=options_in(notices))
    assert labels_of(clips) == {(1.0, 5.0, None, ("Look",)), (8.0, 9.0, "S", ())}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_a_tier_of_one_word_holds_texts_unless_declared(import_marks, kind):
    """A tier that only says S may be of something else, such as a speaker. The option is proposed."""
    marks = (Mark("Ann", start=1, end=5, text="S"), Mark("Ann", start=6, end=7, text="S"))

    clips, notices = import_marks(kind, *marks)
    assert labels_of(clips) == set()
    assert options_in(notices) == {"Ann": "levels"}

    clips, _ = import_marks(kind, *marks, tiers={"Ann": "levels"})
    assert labels_of(clips) == {(1.0, 5.0, "S", ()), (6.0, 7.0, "S", ())}


TIER_OF_FORMATS_OF_TEXTS = {
    "rttm": "SPEAKER",
    "srt": "subtitle",
    "vtt": "subtitle",
    "ass": "subtitle",
    "ttml": "subtitle",
    "transcript": "subtitle",
    "moviegraphs": "situation",
}
"""What an import calls the only tier of a format that names none."""


@pytest.mark.parametrize(("kind", "tier"), TIER_OF_FORMATS_OF_TEXTS.items(), ids=TIER_OF_FORMATS_OF_TEXTS)
def test_texts_of_subtitles_or_speakers_are_read_as_labels_if_the_person_says_that_they_are(
    import_marks, kind, tier
):
    """A file of subtitles or speakers has the texts "S;Body;Look", from 1 to 5 s, and "EN", from 6 to 9 s.

    Such formats have no named tiers: all texts are of one tier, which options call "subtitle" or "SPEAKER".
    The texts are no labels unless the person says so. A notice names the option, `--tier subtitle=labels`,
    and with it both texts are read as labels.
    """
    no_tier = ""
    marks = [Mark(no_tier, start=1, end=5, text="S;Body;Look"), Mark(no_tier, start=6, end=9, text="EN")]
    as_labels = {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}

    clips, notices = import_marks(kind, *marks)
    assert labels_of(clips) != as_labels
    assert options_in(notices) == {tier: "labels"}

    clips, _ = import_marks(kind, *marks, tiers={tier: "labels"})
    assert labels_of(clips) == as_labels


def test_activitynet_gives_labels_without_a_declaration(import_marks):
    """A file of ActivityNet has "S;Body;Look" from 1 to 5 s, and EN from 6 to 9 s.

    Such databases hold labels and no spoken texts, so that the person need not say so.
    """
    marks = [Mark("", start=1, end=5, text="S;Body;Look"), Mark("", start=6, end=9, text="EN")]

    clips, notices = import_marks("activitynet", *marks)

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body")), (6.0, 9.0, "EN", ())}
    assert options_in(notices) == {}


def test_every_format_of_one_tier_is_tested():
    """Formats that name no tiers have one: those of texts are tested together, and ActivityNet by itself."""
    assert OF_ONE_TIER.keys() == {"activitynet", *TIER_OF_FORMATS_OF_TEXTS}


# --- roles over all files of an import
# ---------------------------------------------------------------------------
def textgrid_of(*marks):
    return WITH_TIERS["textgrid"](marks)


def test_a_tier_of_labels_alone_in_all_files_holds_labels(import_files):
    """The tier "gaze" of two films has one text each, S and EN. All of its two texts are levels.

    So it is taken to hold labels, which a notice says.
    """
    files = {
        "a.TextGrid": textgrid_of(Mark("gaze", start=1, end=5, text="S")),
        "b.TextGrid": textgrid_of(Mark("gaze", start=1, end=5, text="EN")),
    }

    clips, notices = import_files(files)

    assert [clip.level for clip in clips] == ["S", "EN"]
    assert "'gaze': 2 of 2" in notices


def test_a_tier_with_another_text_in_one_file_holds_texts_in_all(import_files):
    """The tier "gaze" of two films has S and EN, which are levels, and that of a third one "kiss".

    What a tier holds is decided for all files together: with a text that is no label, it holds texts.
    """
    files = {
        "a.TextGrid": textgrid_of(Mark("gaze", start=1, end=5, text="S")),
        "b.TextGrid": textgrid_of(Mark("gaze", start=1, end=5, text="EN")),
        "c.TextGrid": textgrid_of(Mark("Gaze", start=1, end=5, text="kiss")),
    }

    clips, notices = import_files(files)

    assert labels_of(clips) == set()
    assert "'gaze': 2 of 3" in notices


def test_tiers_of_one_name_by_several_annotators_have_one_role(import_files):
    """A tier is read as levels if it has two of them or more: one word alone may mean anything.

    The tier "gaze" of AB says S alone, and that of CD EN alone; they count as one tier with both levels.
    """
    textgrid = textgrid_of(
        Mark("gaze@AB", start=1, end=5, text="S"), Mark("gaze@CD", start=1, end=5, text="EN")
    )

    clips, _ = import_files({"a.TextGrid": textgrid})

    assert {clip.annotator: clip.level for clip in clips} == {"AB": "S", "CD": "EN"}


@pytest.mark.parametrize("kind", WITH_TIERS)
def test_an_unknown_level_on_a_tier_called_level_is_refused(import_marks, kind):
    """A tier says by its name that it holds levels. It has S, and Sx, which is none of the codebook."""
    with pytest.raises(ManifestError, match=r"tt1\.x: .*'Sx'"):
        import_marks(kind, Mark("level", start=1, end=5, text="S"), Mark("level", start=6, end=7, text="Sx"))


@pytest.mark.parametrize("kind", ["eaf", "textgrid"])
def test_decisions_on_conflicts_are_no_labels_unless_their_tier_is_named(import_marks, kind):
    """A file has S and EN on a tier of decisions, which several annotators made together.

    They are of none of them, and no labels. The person names the tier as one of levels, and they are read.
    """
    decisions = [
        Mark("human: decision level", start=1, end=5, text="S"),
        Mark("human: decision level", start=6, end=7, text="EN"),
    ]

    clips, _ = import_marks(kind, *decisions)
    assert labels_of(clips) == set()

    clips, _ = import_marks(kind, *decisions, tiers={"human: decision level": "levels"})
    assert labels_of(clips) == {(1.0, 5.0, "S", ()), (6.0, 7.0, "EN", ())}


def test_a_comma_stands_between_concepts_where_no_concept_has_one(import_marks):
    """Usually a semicolon stands between concepts. No concept of the codebook has a comma in its name."""
    level = Mark("level", start=1, end=5, text="S")
    concepts = Mark("concepts", start=1, end=5, text="Body, Look")

    clips, _ = import_marks("textgrid", level, concepts)

    assert labels_of(clips) == {(1.0, 5.0, "S", ("Look", "Body"))}


def test_a_concept_with_a_comma_in_its_name_is_one(import_marks, tmp_path):
    """The codebook has the concepts "sun, moon", "sun" and "moon". A text on a tier says "sun, moon".

    Elsewhere a comma stands between two concepts, but here it is in the name of one.
    """
    text = 'name = "v"\nversion = "1"\nlevels = ["S"]\nconcepts = ["sun, moon", "sun", "moon"]\n'
    (tmp_path / "v.toml").write_text(text)
    codebook = load_codebook(tmp_path / "v.toml")

    clips, _ = import_marks("textgrid", Mark("concepts", start=1, end=5, text="sun, moon"), codebook=codebook)

    assert labels_of(clips) == {(1.0, 5.0, None, ("sun, moon",))}


# --- real kinds of tiers
# ---------------------------------------------------------------------------
def test_a_phoneme_s_is_no_level_and_the_words_beside_it_are_kept(import_marks):
    """A speech aligner writes a tier of words, "sells" and "look", and one of phonemes, S EH1 L Z.

    Here S is no level and look no concept: the other texts of the tiers show that they hold none.
    """
    words = [Mark("words", start=0, end=4, text="sells"), Mark("words", start=4, end=10, text="look")]
    phonemes = [
        Mark("phones", start=0, end=1, text="S"),
        Mark("phones", start=1, end=2, text="EH1"),
        Mark("phones", start=2, end=3, text="L"),
        Mark("phones", start=3, end=4, text="Z"),
    ]
    clips, _ = import_marks("textgrid", *words, *phonemes)

    assert not labels_of(clips)
    assert texts_of(clips) == ["EH1", "L", "S", "Z", "look", "sells"]


def test_a_language_is_no_level(import_marks):
    """A tier of languages has EN twice, which is English here and no level, and FR, for French.

    FR shows that the tier holds no labels, and a notice says that 2 of its 3 texts would be some.
    """
    marks = [
        Mark("language", start=0, end=4, text="EN"),
        Mark("language", start=4, end=8, text="EN"),
        Mark("language", start=8, end=9, text="FR"),
    ]
    for kind in WITH_TIERS:
        clips, notices = import_marks(kind, *marks)
        assert not labels_of(clips)
        assert "'language': 2 of 3" in notices


@pytest.mark.parametrize(
    ("first_speaker", "second_speaker"), [("S", "A"), ("SPEECH", "FEM"), ("S", "EN"), ("look", "body")]
)
def test_a_speaker_is_no_label_whatever_the_name(import_marks, first_speaker, second_speaker):
    """Two turns of speech in a file of RTTM name their speakers, in words that may be labels.

    They are kept as texts.
    """
    clips, _ = import_marks(
        "rttm", Mark("", start=1, end=5, text=first_speaker), Mark("", start=2, end=6, text=second_speaker)
    )

    assert labels_of(clips) == set()
    assert texts_of(clips) == sorted([first_speaker, second_speaker])


@pytest.mark.parametrize("kind", ["textgrid", "rttm", "srt", "vtt"])
def test_the_export_of_a_scored_film_gives_no_label_when_it_is_imported(tmp_path, kind):
    """A film that a model scored is exported with the model's words, such as "S". They are no person's labels."""
    from obygaze_film.exchange import export
    from tests.film.page.invented import fake_scored_film

    film = fake_scored_film(n_rows=40, duration_s=600.0)
    path = tmp_path / f"film.{kind}"
    path.write_text(export(film, kind), encoding="utf-8")

    imported = import_spans([path], tmp_path, annotator="AB", movie="tt0000042")

    assert labels_of(imported.manifest) == set()


# --- no mark changes another's label
# ---------------------------------------------------------------------------
TEXTS = st.sampled_from(["S", "EN", "Body", "Look", "kiss", "S;Body", "words"])


@given(
    tiers_and_texts=st.lists(st.tuples(st.sampled_from(["gaze", "words"]), TEXTS), max_size=5),
    levels=st.lists(st.sampled_from(["S", "EN"]), max_size=3),
    moved_level=st.sampled_from(["S", "EN"]),
    tier_before=st.sampled_from(["gaze", "words"]),
    kind=st.sampled_from(sorted(WITH_TIERS)),
)
def test_moving_a_mark_changes_no_other_label_without_a_notice(
    tmp_path, tiers_and_texts, levels, moved_level, tier_before, kind
):
    """A mark with a level, from 91 to 95 s, is moved from the tier "gaze" or "words" to the tier "level".

    A tier of labels alone is read as labels, and one of other texts too is not. So the mark's old tier may
    change from one to the other, and its other marks with it: then the notices of what tiers hold must change
    too.
    """
    other_marks = []
    for number, (tier, text) in enumerate([*tiers_and_texts, *(("level", level) for level in levels)]):
        start_s = 10 * number + 1
        other_marks.append(Mark(tier, start=start_s, end=start_s + 4, text=text))
    mark_before = Mark(tier_before, start=91, end=95, text=moved_level)
    mark_after = Mark("level", start=91, end=95, text=moved_level)

    before = import_as_tool_writes(kind, [*other_marks, mark_before], tmp_path)
    after = import_as_tool_writes(kind, [*other_marks, mark_after], tmp_path)

    are_other_labels_the_same = labels_but_from_91_s(before) == labels_but_from_91_s(after)
    is_a_change_noticed = notices_of_roles(before) != notices_of_roles(after)
    assert are_other_labels_the_same or is_a_change_noticed


def import_as_tool_writes(kind, marks, folder):
    """Write marks of film tt1 by AB as a tool of a kind writes them, and import the file."""
    path = folder / "tt1.x"
    path.write_text(WITH_TIERS[kind](marks), encoding="utf-8")
    return import_spans([path], folder, kind, annotator="AB", movie="tt1", rate=25)


def labels_but_from_91_s(imported):
    """The labels of all clips but the one that begins at 91 s."""
    return {label for label in labels_of(imported.manifest) if label[0] != 91}


def notices_of_roles(imported):
    """Return what is noted of the roles of tiers over all files; notices of one file name it, tt1.x."""
    return [notice for notice in imported.notices if " tier" in notice and ".x:" not in notice]
