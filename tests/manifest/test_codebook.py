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
from tests.violence import VIOLENCE


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
    """`VIOLENCE` is the text of a codebook with three levels, a concept and a task.

    The level "unsure", of label = false, can be given by annotators but is no label.
    """
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)

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
    path.write_text(VIOLENCE, encoding="utf-8")

    codebook = find_codebook(str(path))

    assert codebook == load_codebook(path)


def test_a_codebook_can_be_sent_to_another_process(tmp_path):
    """Workers, which are other processes, get manifests with their codebooks, as pickles."""
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)
    sent = pickle.loads(pickle.dumps(codebook))  # noqa: S301 - the pickle is our own
    assert sent == codebook


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('name = "violence"', 'name = "violence', "line 1"),
        ('version = "1"\n', "", "version"),
        ('name = "violence"', 'name = "a/b"', "name"),
        ('name = "violence"', 'name = "obygaze12"', "name"),
        ('name = "calm"', 'nam = "calm"', "levels"),
        ('name = "calm"', 'name = "a;b"', "levels"),
        ('name = "calm"', 'name = "calm"\nsynonyms = ["Violent"]', "levels"),
        ('name = "calm"', 'name = "calm"\nposition = 1', "levels"),
        ("label = false", 'label = "no"', "levels"),
        ('["gun", "pistol"]', '"gun"', "concepts"),
        ('negative = ["calm"]', 'negative = ["clam"]', "tasks"),
        ('negative = ["calm"]', 'negative = ["violent"]', "tasks"),
        ('negative = ["calm"]', 'negative = ["unsure"]', "tasks"),
        ("[tasks.calm_violent]", "[tasks.levels]", "tasks"),
        ("[tasks.calm_violent]", '[tasks."concept:Gun"]', "tasks"),
        ("[[concepts]]", "[concepts]", "concepts"),
        ('version = "1"', 'version = "1"\npolicies = ["papers"]', "policies"),
        ("[[concepts]]", '[[scales]]\nname = "level"\nlevels = ["a", "b"]\n[[concepts]]', "scales"),
        ("[[concepts]]", '[[scales]]\nname = "x"\nlevels = ["a", "b"]\ncuts = [nan]\n[[concepts]]', "scales"),
    ],
)
def test_an_invalid_codebook_is_refused_with_file_and_key(tmp_path, old, new, key):
    """In `VIOLENCE`, the text of a valid codebook, `old` is replaced by `new`.

    The error is one line. It names the file, and the key of the codebook that is wrong (or the line, if the
    text is no TOML).
    """
    assert old in VIOLENCE
    invalid = VIOLENCE.replace(old, new, 1)

    with pytest.raises(ManifestError, match=key) as error:
        load_text_as_codebook(tmp_path, invalid)

    message = str(error.value)
    assert message.startswith(f"{tmp_path / 'mine.codebook.toml'}: ")
    assert "\n" not in message


@given(st.data())
def test_a_damaged_file_is_a_codebook_or_refused(data):
    """Up to 12 characters of `VIOLENCE`, the text of a valid codebook, are replaced by something else.

    Whatever comes out, it is read, or refused by a ManifestError; no other error is raised.
    """
    first = data.draw(st.integers(0, len(VIOLENCE)))
    behind_last = data.draw(st.integers(first, min(len(VIOLENCE), first + 12)))
    replacement = data.draw(
        st.sampled_from(["", '"', "[", "]]", "=", "1", "1e999", "9" * 400, "9" * 5000, "[" * 3000, "nan"])
    )
    damaged = VIOLENCE[:first] + replacement + VIOLENCE[behind_last:]

    with suppress(ManifestError):
        Codebook(**codebook_parameters(damaged))


@pytest.fixture
def explained_codebook():
    """A codebook whose level a and concept C have explanations, and whose concepts say what conveys them."""
    concepts = (
        Concept("C", means="where C is", modality="visual"),
        Concept("D", visual=False, modality="told"),
    )
    return Codebook("b", "1", (Level("a", means="as a"),), concepts, construct="a construct")


@pytest.fixture
def unexplained_codebook():
    """The same codebook without explanations."""
    return Codebook("b", "1", (Level("a"),), (Concept("C"), Concept("D", visual=False)))


def test_explanations_for_people_change_no_digest(explained_codebook, unexplained_codebook):
    """Two codebooks have the same level a and concepts C and D; in one of them a and C are explained.

    The digest identifies the levels and concepts that labels refer to. Explanations may be improved without
    making old labels invalid.
    """
    assert explained_codebook.digest() == unexplained_codebook.digest()


def test_explanations_for_people_are_kept_in_the_codebooks_file(explained_codebook):
    """The level a and the concept C have an explanation, what they mean."""
    again = Codebook(**codebook_parameters(explained_codebook.to_toml()))
    assert again == explained_codebook
    assert again.means == {"a": "as a", "C": "where C is"}


def test_explanations_for_people_are_kept_in_the_record_of_a_model(explained_codebook, unexplained_codebook):
    """A file of a model has a record of its codebook. The level a and the concept C are explained in one.

    The other codebook is the same without explanations.
    """
    record = codebook_record(explained_codebook)
    record_without_explanations = codebook_record(unexplained_codebook)

    assert record["means"] == {"a": "as a", "C": "where C is"}
    assert "means" not in record_without_explanations


def test_a_visual_modality_of_a_non_visual_concept_is_refused():
    """Concept D says that it is not visual, and that pictures convey it."""
    with pytest.raises(ManifestError, match="D"):
        Codebook("b", "1", (Level("a", means="as a"),), (Concept("D", visual=False, modality="visual"),))


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
    """The construct is what the levels are levels of, such as objectification."""
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
    """`VIOLENCE` is the text of a codebook. With a comment above, it says the same.

    A digest tells codebooks apart by what labels refer to: levels, concepts, tasks and policies.
    """
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)
    with_comment = load_text_as_codebook(tmp_path, "# remark\n" + VIOLENCE)
    assert with_comment.digest() == codebook.digest()


def test_the_digest_depends_on_everything_that_labels_refer_to(tmp_path):
    """Of a codebook the version, concepts, levels, tasks or policies are changed: six different digests."""
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)
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
    again = Codebook(**codebook_parameters(codebook.to_toml()))

    assert again == codebook
    assert again.to_toml() == codebook.to_toml()
    assert again.digest() == codebook.digest()


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


TRANSLATED = """
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
    """`TRANSLATED` is a codebook of violence, whose level V is titled and explained in English and French."""
    codebook = codebook_of_text(TRANSLATED)
    violent, _ = codebook.levels

    assert (violent.title, violent.means) == ("Violent", "a blow is seen")
    assert codebook.construct == "violence"


def test_texts_are_given_in_a_language_that_the_codebook_has():
    """`TRANSLATED` is a codebook of violence. Its level V has a title and a meaning in English and in French.

    The concept Blood has a title in French, Sang.
    """
    codebook = codebook_of_text(TRANSLATED)
    violent, _ = codebook.levels
    (blood,) = codebook.concepts

    french = violent.in_language("fr")

    assert (french.title, french.means) == ("Violent, en français", "un coup est vu")
    assert blood.in_language("fr").title == "Sang"
    assert codebook.constructs == {"fr": "la violence"}


def test_texts_that_are_not_translated_are_given_as_the_codebook_writes_them():
    """In `TRANSLATED`, the level N and the definition of Blood have no French text, and nothing is in German.

    A title that is not written is the name.
    """
    codebook = codebook_of_text(TRANSLATED)
    _, not_violent = codebook.levels
    (blood,) = codebook.concepts

    assert not_violent.in_language("fr").title == "N"
    assert not_violent.in_language("fr").means == "no blow"
    assert blood.in_language("fr").means == "blood is seen"
    assert blood.in_language("de").title == "Blood"


def test_translations_are_written_and_read_back():
    """`TRANSLATED` is a codebook with titles and meanings in English and French."""
    codebook = codebook_of_text(TRANSLATED)
    assert codebook_of_text(codebook.to_toml()) == codebook


def test_a_translation_changes_no_digest():
    """Labels of a French and of an English annotator are about the same codebook.

    `TRANSLATED` is a codebook with texts in both languages. The other one has its English texts alone.
    """
    lines = TRANSLATED.replace(".en", "").splitlines()
    untranslated = codebook_of_text("\n".join(line for line in lines if ".fr" not in line))

    translated = codebook_of_text(TRANSLATED)

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
    """In `TRANSLATED`, a codebook with French texts, the line stands in place of means.fr = "un coup est vu".

    Languages are named by two small letters.
    """
    invalid = TRANSLATED.replace('means.fr = "un coup est vu"', line)
    with pytest.raises(ManifestError, match=reason):
        codebook_of_text(invalid)
