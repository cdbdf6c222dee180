"""Codebooks are data: checked, written and read back as equal; their words are found by any spelling."""

import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import obygaze_features.manifest
from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    BUILTIN,
    Codebook,
    Concept,
    Level,
    Scale,
    Task,
    builtin_codebook,
    codebook_of_text,
    find_codebook,
    load_codebook,
)
from obygaze_features.manifest.codebook import codebook_parameters
from obygaze_features.manifest.codebook_parts import POLICIES, Instance, plain
from obygaze_models.protocol.targets import codebook_record
from tests.violence import VIOLENCE as CODEBOOK_OF_VIOLENCE


def test_every_codebook_of_the_package_is_listed():
    """BUILTIN is the list of their names, written by hand; the files of the package are the truth."""
    folder = Path(obygaze_features.manifest.__file__).parent / "codebooks"

    names_of_files = {path.name.removesuffix(".codebook.toml") for path in folder.glob("*.codebook.toml")}

    assert set(BUILTIN) == names_of_files
    for name in BUILTIN:
        assert builtin_codebook(name).name == name


def test_the_digests_of_built_in_codebooks_do_not_change_unnoticed():
    """A new digest needs a new version in the file: runs and models made with the old one tell them apart."""
    digests = {name: builtin_codebook(name).digest()[:12] for name in BUILTIN}
    assert digests == {"obygaze12": "b71176ad75a2", "mobygaze": "9081efebf39f", "mediaeval15": "babe279c2a1d"}


def load_text_as_codebook(folder, text):
    """Write a text as the file of a codebook, mine.codebook.toml, and load it."""
    path = folder / "mine.codebook.toml"
    path.write_text(text, encoding="utf-8")
    return load_codebook(path)


def test_a_codebook_file_is_read(tmp_path):
    """A codebook of violence is a text of TOML, with three levels, one concept and one task.

    The level "unsure", of label = false, can be given by annotators but is in no task, and so is no label.
    """
    codebook = load_text_as_codebook(tmp_path, CODEBOOK_OF_VIOLENCE)

    assert codebook == Codebook(
        name="violence",
        version="1",
        levels=(Level("calm"), Level("unsure", label=False), Level("violent")),
        concepts=(Concept("Gun", synonyms=("gun", "pistol")),),
        tasks=(Task("calm_violent", negatives=("calm",), positives=("violent",)),),
    )
    assert codebook.labels == ("calm", "violent")


def test_a_codebook_is_found_by_the_path_of_its_file(tmp_path):
    """Where a built-in codebook is named, such as mobygaze, the path of a file may stand."""
    path = tmp_path / "mine.codebook.toml"
    path.write_text(CODEBOOK_OF_VIOLENCE, encoding="utf-8")

    codebook = find_codebook(str(path))

    assert codebook == load_codebook(path)


def test_a_codebook_can_be_sent_to_another_process(tmp_path):
    """Workers, which are other processes, get manifests with their codebooks, as pickles."""
    codebook = load_text_as_codebook(tmp_path, CODEBOOK_OF_VIOLENCE)
    sent = pickle.loads(pickle.dumps(codebook))  # noqa: S301 - the pickle is our own
    assert sent == codebook


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        pytest.param('name = "violence"', 'name = "violence', "line 1", id="no TOML"),
        pytest.param('version = "1"\n', "", "version", id="no version"),
        pytest.param('name = "violence"', 'name = "a/b"', "name", id="a name that is a path"),
        pytest.param('name = "violence"', 'name = "obygaze12"', "name", id="the name of a built-in codebook"),
        pytest.param('name = "calm"', 'nam = "calm"', "levels", id="a misspelt key of a level"),
        pytest.param(
            'name = "calm"', 'name = "a;b"', "levels", id="a level with a semicolon, which parts labels"
        ),
        pytest.param(
            'name = "calm"',
            'name = "calm"\nsynonyms = ["Violent"]',
            "levels",
            id="a synonym that is another level's name",
        ),
        pytest.param(
            'name = "calm"', 'name = "calm"\nposition = 1', "levels", id="a position of one level alone"
        ),
        pytest.param("label = false", 'label = "no"', "levels", id="a text where true or false must be"),
        pytest.param('["gun", "pistol"]', '"gun"', "concepts", id="a text where a list must be"),
        pytest.param('negative = ["calm"]', 'negative = ["clam"]', "tasks", id="a task of an unknown level"),
        pytest.param(
            'negative = ["calm"]', 'negative = ["violent"]', "tasks", id="a level on both sides of a task"
        ),
        pytest.param(
            'negative = ["calm"]', 'negative = ["unsure"]', "tasks", id="a task with a level that is no label"
        ),
        pytest.param(
            "[tasks.calm_violent]",
            "[tasks.levels]",
            "tasks",
            id="a task with the name of the target of all levels",
        ),
        pytest.param(
            "[tasks.calm_violent]",
            '[tasks."concept:Gun"]',
            "tasks",
            id="a task with the name of the target of a concept",
        ),
        pytest.param("[[concepts]]", "[concepts]", "concepts", id="a table where a list of tables must be"),
        pytest.param(
            'version = "1"', 'version = "1"\npolicies = ["papers"]', "policies", id="an unknown label policy"
        ),
        pytest.param(
            "[[concepts]]",
            '[[scales]]\nname = "level"\nlevels = ["a", "b"]\n[[concepts]]',
            "scales",
            id="a scale with the name of a column that every manifest has",
        ),
        pytest.param(
            "[[concepts]]",
            '[[scales]]\nname = "x"\nlevels = ["a", "b"]\ncuts = [nan]\n[[concepts]]',
            "scales",
            id="a cut of a scale that is not a number",
        ),
    ],
)
def test_an_invalid_codebook_is_refused_with_file_and_key(tmp_path, old, new, key):
    """A valid codebook of violence, a text of TOML, becomes invalid as `old` is replaced in it by `new`.

    It has the levels calm, unsure (which is no label) and violent, the concept Gun and a task, calm_violent.
    The error is one line. It names the file, and the key of the codebook that is wrong, or the line if the
    text is no TOML at all.
    """
    assert old in CODEBOOK_OF_VIOLENCE
    invalid_codebook = CODEBOOK_OF_VIOLENCE.replace(old, new, 1)

    with pytest.raises(ManifestError, match=key) as refusal:
        load_text_as_codebook(tmp_path, invalid_codebook)

    message = str(refusal.value)
    assert message.startswith(f"{tmp_path / 'mine.codebook.toml'}: ")
    assert "\n" not in message


@st.composite
def damaged_codebooks(draw):
    """Draw the text of a valid codebook, of which up to 12 characters are replaced by something else."""
    first = draw(st.integers(0, len(CODEBOOK_OF_VIOLENCE)))
    behind_last = draw(st.integers(first, min(len(CODEBOOK_OF_VIOLENCE), first + 12)))
    replacement = draw(
        st.sampled_from(["", '"', "[", "]]", "=", "1", "1e999", "9" * 400, "9" * 5000, "[" * 3000, "nan"])
    )
    return CODEBOOK_OF_VIOLENCE[:first] + replacement + CODEBOOK_OF_VIOLENCE[behind_last:]


@given(text_of_codebook=damaged_codebooks())
def test_a_damaged_file_is_a_codebook_or_refused(text_of_codebook):
    """Up to 12 characters of a valid codebook are replaced by something else.

    Whatever comes out, it is read, or refused by a ManifestError: any other error fails the test.
    """
    with suppress(ManifestError):
        Codebook(**codebook_parameters(text_of_codebook))


@pytest.fixture
def explained_codebook():
    """A codebook whose level a and concept C have explanations, and whose concepts say what conveys them."""
    concepts = (
        Concept("C", means="where C is", modality="visual"),
        Concept("D", visual=False, modality="told"),
    )
    levels = (Level("a", means="as a"),)
    return Codebook("b", version="1", levels=levels, concepts=concepts, construct="a construct")


@pytest.fixture
def unexplained_codebook():
    """The same codebook without explanations."""
    concepts = (Concept("C"), Concept("D", visual=False))
    return Codebook("b", version="1", levels=(Level("a"),), concepts=concepts)


def test_explanations_for_people_change_no_digest(explained_codebook, unexplained_codebook):
    """Two codebooks have the same level a and concepts C and D; in one of them a and C are explained.

    The digest identifies the levels and concepts that labels refer to. Explanations may be improved without
    making old labels invalid.
    """
    assert explained_codebook.digest() == unexplained_codebook.digest()


def test_explanations_for_people_are_kept_in_the_codebooks_file(explained_codebook):
    """A codebook whose level a and concept C are explained is written as TOML and read again."""
    read_back = Codebook(**codebook_parameters(explained_codebook.to_toml()))

    assert read_back == explained_codebook
    assert read_back.means == {"a": "as a", "C": "where C is"}


def test_explanations_for_people_are_kept_in_the_record_of_a_model(explained_codebook, unexplained_codebook):
    """A file of a model has a record of its codebook. One codebook explains its level a and concept C.

    The other one is the same without explanations.
    """
    record = codebook_record(explained_codebook)
    record_without_explanations = codebook_record(unexplained_codebook)

    assert record["means"] == {"a": "as a", "C": "where C is"}
    assert "means" not in record_without_explanations


def test_a_visual_modality_of_a_non_visual_concept_is_refused():
    """A concept says that it is not visual, and that pictures convey it (modality visual)."""
    with pytest.raises(ManifestError, match="D"):
        Codebook(
            "b",
            version="1",
            levels=(Level("a", means="as a"),),
            concepts=(Concept("D", visual=False, modality="visual"),),
        )


def test_a_modality_that_is_none_is_refused_with_the_concept_and_all_modalities():
    """The motion of Rhythm is called `moving`, not `motion`."""
    text = """
name = "mine"
version = "1"
levels = ["a", "b"]
[[concepts]]
name = "Rhythm"
modality = "motion"
"""
    expected = "Rhythm: modality 'motion': expected one of visual, moving, heard, said, told"
    with pytest.raises(ManifestError, match=expected):
        codebook_of_text(text)


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_codebooks_explain_every_level_and_concept_in_english_and_french(name):
    """Each codebook of the package explains its levels, its concepts, and what levels are levels of.

    This construct, such as objectification, is explained too, all in English and in French.
    """
    codebook = builtin_codebook(name)

    assert codebook.construct
    assert codebook.constructs["fr"]
    assert codebook.means.keys() == {*codebook.level_names, *codebook.concept_names}
    for level_or_concept in (*codebook.levels, *codebook.concepts):
        french = level_or_concept.translations["fr"]
        assert french.title
        assert french.means


@pytest.mark.parametrize("name", BUILTIN)
def test_visual_concepts_of_built_in_codebooks_are_those_of_the_visual_modality(name):
    """A concept says whether it is visual, and what conveys it: pictures, sound, words or the story."""
    for concept in builtin_codebook(name).concepts:
        assert concept.visual == (concept.modality == "visual")


def test_a_comment_in_a_codebooks_file_changes_no_digest(tmp_path):
    """A codebook of violence, a text of TOML, has a comment above or none, and says the same.

    A digest tells codebooks apart by what labels refer to: levels, concepts, tasks and policies.
    """
    codebook = load_text_as_codebook(tmp_path, CODEBOOK_OF_VIOLENCE)
    with_comment = load_text_as_codebook(tmp_path, "# a comment\n" + CODEBOOK_OF_VIOLENCE)
    assert with_comment.digest() == codebook.digest()


def test_the_digest_depends_on_everything_that_labels_refer_to(tmp_path):
    """Of a codebook of violence the version, concepts, levels, tasks or policies are changed.

    With the unchanged one these are six codebooks, whose digests must all differ.
    """
    codebook = load_text_as_codebook(tmp_path, CODEBOOK_OF_VIOLENCE)
    codebooks = [
        codebook,
        replace(codebook, version="2"),
        replace(codebook, concepts=(Concept("Gun", synonyms=("gun",)),)),
        replace(codebook, levels=codebook.levels[::-1]),
        replace(codebook, tasks=()),
        replace(codebook, policies=("paper",)),
    ]

    digests = {codebook.digest() for codebook in codebooks}

    assert len(digests) == 6


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=8).map(str.strip)
words = texts.filter(lambda text: text and not set(text) & set("/\\;:") and text[0] not in ".-").filter(
    lambda text: text != "levels"
)


@st.composite
def names_with_synonyms(draw, at_least=0):
    """Draw names with their synonyms, [(name, synonyms), ...], where no spelling stands for two names.

    The first name alone has synonyms: the spellings that are left when all names are drawn.
    """
    spellings = draw(st.lists(words, unique_by=plain, min_size=at_least, max_size=6))
    n_names = draw(st.integers(at_least, len(spellings)))
    names = spellings[:n_names]
    synonyms_of_first = tuple(spellings[n_names:])
    return [(name, synonyms_of_first if name == names[0] else ()) for name in names]


@st.composite
def tasks_of(draw, levels):
    """Draw no task, or one that tells the first of these levels from the others."""
    if len(levels) < 2:
        return ()
    n_negative = draw(st.integers(1, len(levels) - 1))
    return (Task(draw(words), negatives=tuple(levels[:n_negative]), positives=tuple(levels[n_negative:])),)


@st.composite
def scales(draw):
    """Draw a scale of two to four levels, with one cut less."""
    cuts = sorted(draw(st.sets(st.floats(-1e9, 1e9), min_size=1, max_size=3)))
    levels = [Level(f"l{number}") for number in range(len(cuts) + 1)]
    return Scale("tension", tuple(levels), tuple(cuts))


@st.composite
def codebooks(draw):
    """Draw a codebook of any levels, concepts, tasks, policies and texts, with one scale."""
    levels = []
    for name, synonyms in draw(names_with_synonyms(at_least=1)):
        levels.append(Level(name, label=draw(st.booleans()), synonyms=synonyms))
    instances = (Instance(draw(words), examples=(draw(texts),)),)
    concepts = []
    for name, synonyms in draw(names_with_synonyms()):
        concept = Concept(
            name,
            group=draw(texts),
            visual=draw(st.booleans()),
            synonyms=synonyms,
            instances=instances,
            definition=draw(texts),
        )
        concepts.append(concept)
    return Codebook(
        name=draw(words),
        version=draw(words),
        levels=tuple(levels),
        concepts=tuple(concepts),
        tasks=draw(tasks_of([level.name for level in levels if level.label])),
        policies=tuple(draw(st.sets(st.sampled_from(POLICIES)))),
        scales=(draw(scales()),),
        sub_constructs=(draw(texts),),
        source=draw(texts),
    )


@given(codebook=codebooks())
def test_a_codebook_is_read_back_as_written(codebook):
    """A codebook of any levels, concepts, tasks, scales and texts is written as TOML and read again."""
    read_back = Codebook(**codebook_parameters(codebook.to_toml()))

    assert read_back == codebook
    assert read_back.to_toml() == codebook.to_toml()
    assert read_back.digest() == codebook.digest()


def test_a_key_of_thousands_of_parts_is_refused_unread(tmp_path):
    """The key is a.a.a... of 40,001 parts, which would take a reader of TOML quadratic time, or minutes."""
    path = tmp_path / "a.toml"
    path.write_text("a" + ".a" * 40_000 + " = 1\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"a\.toml"):
        load_codebook(path)


def test_concepts_separated_by_a_comma_are_refused_with_the_right_separator():
    """A cell of several concepts separates them by semicolons."""
    with pytest.raises(ManifestError, match="by ;"):
        builtin_codebook("obygaze12").concept_spelled("Activity, body")


@pytest.mark.parametrize(
    "invalid",
    ["version = 1", 'colour = "red"', "tasks = {x = {negative = 'a'}}", f"x = {'1' * 5000}", "{"],
    ids=["a number", "an unknown key", "a text for a list", "5000 digits", "no TOML"],
)
def test_errors_do_not_quote_the_libraries(tmp_path, invalid):
    """A codebook is read by libraries for TOML and for types, which may fail: then we say why in our words.

    A library's text has names in backticks, places such as $.name, Expected, or a function of sys.
    """
    path = tmp_path / "c.toml"
    path.write_text(invalid)

    with pytest.raises(ManifestError) as error:
        load_codebook(path)

    message = str(error.value).replace(str(path), "")
    for words_of_libraries in ("`", "$", "Expected", "sys."):
        assert words_of_libraries not in message


CODEBOOK_IN_ENGLISH_AND_FRENCH = """
name = "blows"
version = "1"
construct.en = "violence"
construct.fr = "la violence"

[[levels]]
name = "V"
title.en = "Violent"
title.fr = "Violent, en français"
means.en = "a blow is seen"
means.fr = "un coup est vu"

[[levels]]
name = "N"
means = "no blow"

[[concepts]]
name = "Blood"
title.fr = "Sang"
definition = "blood is seen"
"""


def test_texts_are_english_by_default():
    """In a codebook of violence the level V has a title and a meaning in English and in French."""
    codebook = codebook_of_text(CODEBOOK_IN_ENGLISH_AND_FRENCH)
    violent, _ = codebook.levels

    assert (violent.title, violent.means) == ("Violent", "a blow is seen")
    assert codebook.construct == "violence"


def test_texts_are_given_in_a_language_that_the_codebook_has():
    """In a codebook of violence the level V has a title and a meaning in English and in French.

    The concept Blood has a title in French, Sang, and the construct, which levels are levels of, a name.
    """
    codebook = codebook_of_text(CODEBOOK_IN_ENGLISH_AND_FRENCH)
    violent, _ = codebook.levels
    (blood,) = codebook.concepts

    french = violent.in_language("fr")

    assert (french.title, french.means) == ("Violent, en français", "un coup est vu")
    assert blood.in_language("fr").title == "Sang"
    assert codebook.constructs == {"fr": "la violence"}


def test_texts_that_are_not_translated_are_given_as_the_codebook_writes_them():
    """In a codebook of violence, the level N and the meaning of the concept Blood have no French text.

    Nothing is in German (de). A title that is not written at all is the name.
    """
    codebook = codebook_of_text(CODEBOOK_IN_ENGLISH_AND_FRENCH)
    _, not_violent = codebook.levels
    (blood,) = codebook.concepts

    assert not_violent.in_language("fr").title == "N"
    assert not_violent.in_language("fr").means == "no blow"
    assert blood.in_language("fr").means == "blood is seen"
    assert blood.in_language("de").title == "Blood"


def test_translations_are_written_and_read_back():
    """A codebook has titles and meanings in English and French."""
    codebook = codebook_of_text(CODEBOOK_IN_ENGLISH_AND_FRENCH)
    assert codebook_of_text(codebook.to_toml()) == codebook


def test_a_translation_changes_no_digest():
    """One codebook has texts in English and French, and another one the same English texts alone.

    Labels of a French and of an English annotator are about the same codebook, so neither its digest nor its
    definition (the digest of what annotators read) may differ.
    """
    lines = CODEBOOK_IN_ENGLISH_AND_FRENCH.replace(".en", "").splitlines()
    untranslated = codebook_of_text("\n".join(line for line in lines if ".fr" not in line))

    translated = codebook_of_text(CODEBOOK_IN_ENGLISH_AND_FRENCH)

    assert translated != untranslated
    assert translated.digest() == untranslated.digest()
    assert translated.definition() == untranslated.definition()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("means.french = 'a'", "is no language"),
        ("title.F = 'a'", "is no language"),
        ("means.fr = 3", r"means\.fr: 3 is no text"),
    ],
    ids=["a word", "a letter", "a number for a text"],
)
def test_a_translation_into_no_language_or_that_is_no_text_is_refused(line, reason):
    """In a codebook with French texts, the line stands in place of means.fr = "un coup est vu".

    Languages are named by two small letters, and what is translated is a text.
    """
    invalid = CODEBOOK_IN_ENGLISH_AND_FRENCH.replace('means.fr = "un coup est vu"', line)
    with pytest.raises(ManifestError, match=reason):
        codebook_of_text(invalid)
