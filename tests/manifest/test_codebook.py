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
    """BUILTIN is written by hand, and the files of the package are the truth."""
    folder = Path(obygaze_features.manifest.__file__).parent / "codebooks"
    assert {path.name for path in folder.glob("*.codebook.toml")} == {
        f"{name}.codebook.toml" for name in BUILTIN
    }
    assert [builtin_codebook(name).name for name in BUILTIN] == list(BUILTIN)


def test_the_digests_of_built_in_codebooks_do_not_change_unnoticed():
    """A new digest needs a new version in the file: runs and models made with the old one tell them apart."""
    digests = {name: builtin_codebook(name).digest()[:12] for name in BUILTIN}
    assert digests == {"obygaze12": "b71176ad75a2", "mobygaze": "9081efebf39f", "mediaeval15": "babe279c2a1d"}


def load_text_as_codebook(folder, text):
    path = folder / "mine.codebook.toml"
    path.write_text(text, encoding="utf-8")
    return load_codebook(path)


def test_a_codebook_file_is_read(tmp_path):
    """A level with label = false, such as "unsure", can be given by annotators but is no label."""
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)
    assert codebook == Codebook(
        "violence",
        "1",
        (Level("calm"), Level("unsure", label=False), Level("violent")),
        (Concept("Gun", synonyms=("gun", "pistol")),),
        (Task("calm_violent", ("calm",), ("violent",)),),
    )
    assert codebook.labels == ("calm", "violent")
    assert find_codebook(str(tmp_path / "mine.codebook.toml")) == codebook
    assert pickle.loads(pickle.dumps(codebook)) == codebook  # noqa: S301 - workers get manifests so


@pytest.mark.parametrize(
    ("old", "new", "place"),
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
def test_an_invalid_codebook_is_refused_with_file_and_key(tmp_path, old, new, place):
    """In a valid codebook `old` is replaced by `new`.

    The error is one line, and names the file and the key.
    """
    assert old in VIOLENCE
    with pytest.raises(ManifestError, match=place) as caught:
        load_text_as_codebook(tmp_path, VIOLENCE.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'mine.codebook.toml'}: ")
    assert "\n" not in str(caught.value)


@given(st.data())
def test_a_damaged_file_is_a_codebook_or_refused(data):
    """Up to 12 characters of a valid file are replaced by something else.

    Whatever comes out, nothing but a ManifestError is raised.
    """
    at = data.draw(st.integers(0, len(VIOLENCE)))
    until = data.draw(st.integers(at, min(len(VIOLENCE), at + 12)))
    put = data.draw(
        st.sampled_from(["", '"', "[", "]]", "=", "1", "1e999", "9" * 400, "9" * 5000, "[" * 3000, "nan"])
    )
    with suppress(ManifestError):
        Codebook(**codebook_parameters(VIOLENCE[:at] + put + VIOLENCE[until:]))


EXPLAINED = Codebook(
    "b",
    "1",
    (Level("a", means="as a"),),
    (
        Concept("C", means="where C is", modality="visual"),
        Concept("D", visual=False, modality="told"),
    ),
    construct="a construct",
)
UNEXPLAINED = Codebook("b", "1", (Level("a"),), (Concept("C"), Concept("D", visual=False)))


def test_explanations_for_people_are_kept_and_change_no_digest():
    """The digest identifies the levels and concepts that labels refer to.

    Explanations may be improved without making old labels invalid.
    """
    assert EXPLAINED.digest() == UNEXPLAINED.digest()
    assert EXPLAINED.means == {"a": "as a", "C": "where C is"}
    assert Codebook(**codebook_parameters(EXPLAINED.to_toml())) == EXPLAINED
    assert codebook_record(EXPLAINED)["means"] == EXPLAINED.means
    assert "means" not in codebook_record(UNEXPLAINED)


def test_a_visual_modality_of_a_non_visual_concept_is_refused():
    """Concept D says that it is not visual, and that pictures convey it."""
    with pytest.raises(ManifestError, match="D"):
        Codebook("b", "1", (Level("a", means="as a"),), (Concept("D", visual=False, modality="visual"),))


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_codebooks_explain_every_level_and_concept_in_english_and_french(name):
    book = builtin_codebook(name)
    assert book.construct
    assert book.constructs["fr"]
    assert book.means.keys() == {*book.level_names, *book.concept_names}
    assert all(concept.visual == (concept.modality == "visual") for concept in book.concepts)
    for part in (*book.levels, *book.concepts):
        french = part.translations["fr"]
        assert french.title
        assert french.means


def test_the_digest_depends_on_every_word_but_not_on_comments(tmp_path):
    """Each of the five changes gives a digest of its own; a comment in the file changes nothing."""
    codebook = load_text_as_codebook(tmp_path, VIOLENCE)
    assert load_text_as_codebook(tmp_path, "# remark\n" + VIOLENCE).digest() == codebook.digest()
    others = [
        replace(codebook, version="2"),
        replace(codebook, concepts=(Concept("Gun", synonyms=("gun",)),)),
        replace(codebook, levels=codebook.levels[::-1]),
        replace(codebook, tasks=()),
        replace(codebook, policies=("paper",)),
    ]

    assert len({book.digest() for book in (codebook, *others)}) == len(others) + 1


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
    cuts = sorted(draw(st.sets(st.floats(-1e9, 1e9), min_size=1, max_size=3)))
    levels = [Level(f"l{number}") for number in range(len(cuts) + 1)]
    return Scale("tension", tuple(levels), tuple(cuts))


@st.composite
def codebooks(draw):
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


@given(codebooks())
def test_a_codebook_is_read_back_as_written(codebook):
    again = Codebook(**codebook_parameters(codebook.to_toml()))
    assert again == codebook
    assert again.to_toml() == codebook.to_toml()
    assert again.digest() == codebook.digest()


def test_a_key_of_thousands_of_parts_is_refused_unread(tmp_path):
    """A key of dots takes a TOML reader quadratic time."""
    path = tmp_path / "a.toml"
    path.write_text("a" + ".a" * 40_000 + " = 1\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"a\.toml"):
        load_codebook(path)


def test_concepts_separated_by_a_comma_are_refused_with_the_right_separator():
    """A cell of several concepts separates them by semicolons."""
    with pytest.raises(ManifestError, match="by ;"):
        builtin_codebook("obygaze12").concept_spelled("Activity, body")


WRONG = ["version = 1", 'colour = "red"', "tasks = {x = {negative = 'a'}}", f"x = {'1' * 5000}", "{"]


@pytest.mark.parametrize("wrong", WRONG)
def test_errors_do_not_quote_the_libraries(tmp_path, wrong):
    """A library's text has names in backticks, places such as $.name, Expected, or a function of sys."""
    path = tmp_path / "c.toml"
    path.write_text(wrong)
    with pytest.raises(ManifestError) as error:
        load_codebook(path)
    message = str(error.value).replace(str(path), "")
    assert not any(of_library in message for of_library in ("`", "$", "Expected", "sys."))


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


def test_texts_are_english_by_default_and_given_in_a_language_that_the_codebook_has():
    """The level N and the definition of Blood have no French text, and nothing is in German.

    Such texts are given as the codebook writes them; a title that is not written is the name.
    """
    book = codebook_of_text(TRANSLATED)
    violent, not_violent = book.levels
    (blood,) = book.concepts
    assert (violent.title, violent.means, book.construct) == ("Violent", "a blow is seen", "violence")

    french = violent.in_language("fr")
    assert (french.title, french.means) == ("Violent, en français", "un coup est vu")
    assert blood.in_language("fr").title == "Sang"
    assert book.constructs == {"fr": "la violence"}

    assert not_violent.in_language("fr").title == "N"
    assert not_violent.in_language("fr").means == "no blow"
    assert blood.in_language("fr").means == "blood is seen"
    assert blood.in_language("de").title == "Blood"
    assert codebook_of_text(book.to_toml()) == book


def test_a_translation_changes_no_digest():
    """Labels of a French and of an English annotator are about the same codebook."""
    plain = TRANSLATED.replace(".en", "")
    lines = [line for line in plain.splitlines() if ".fr" not in line]
    book, untranslated = codebook_of_text(TRANSLATED), codebook_of_text("\n".join(lines))
    assert book != untranslated
    assert book.digest() == untranslated.digest()
    assert book.definition() == untranslated.definition()


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
    with pytest.raises(ManifestError, match=reason):
        codebook_of_text(TRANSLATED.replace('means.fr = "un coup est vu"', line))
