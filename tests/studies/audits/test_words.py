"""Words of emotion in captions: the authors' counts, the tokeniser, and what is refused."""

import itertools
from typing import NamedTuple

import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.inputs import read_rows
from obygaze_studies.caption_words import (
    EMOTION_WORDS,
    audit_words,
    find_words,
    read_lists,
    tokens,
)
from obygaze_studies.errors import AuditError
from tests.files import rows_of

EMOTIONS = {"AN": "anger", "SA": "sadness", "HA": "happiness"}
"""The authors' codes of emotions; neutral pictures (NE) are no items of the audit."""
LEVELS = {"1": "low", "2": "high"}
CONDITIONS = {"NO": "Nonobjectified", "O": "Objectified"}


class PublishedCounts(NamedTuple):
    """What `audit_words` takes, of the authors' table of 280 images."""

    words_by_image: dict[str, list[tuple[str, ...]]]
    """The words of emotion in each caption of an image."""
    items: dict[str, dict[str, str]]
    """Emotion, level and condition of the 240 images that show an emotion."""


@pytest.fixture(scope="module")
def published_counts_and_items(shared_data):
    """The authors' table tells how often each word is in the captions of an image, and how many there are.

    It does not tell in which caption a word is. All are said to be in the first one here, which changes no
    count of words.
    """
    all_words = dict.fromkeys(itertools.chain.from_iterable(EMOTION_WORDS.values()))  # lists may share words
    words_by_image = {}
    items = {}
    for row in rows_of(shared_data / "audits/clip-gender-bias/sobem_emotion_word_counts_280images.csv"):
        words = []
        for word in all_words:
            words += [word] * int(row[word])
        other_captions = [()] * (int(row["n_captions"]) - 1)
        words_by_image[row["image_id"]] = [tuple(words), *other_captions]

        code = row["emotion"]  # as AN1, anger at the low level; or NE
        if code != "NE":
            items[row["image_id"]] = {
                "emotion": EMOTIONS[code[:2]],
                "level": LEVELS[code[2]],
                "condition": CONDITIONS[row["condition"]],
            }
    return PublishedCounts(words_by_image, items)


def test_the_words_of_each_emotion_are_those_of_the_authors_code(oracle):
    """The package has lists of words of anger, sadness and happiness; the oracle copied the authors'."""
    words_of_emotion = {emotion: list(words) for emotion, words in EMOTION_WORDS.items()}

    assert words_of_emotion == oracle["captions"]["word_lists"]


@pytest.fixture(scope="module")
def audit_of_published(published_counts_and_items):
    return audit_words(*published_counts_and_items, ratio=("Objectified", "Nonobjectified"))


def rows_by_group(report):
    """Return the row of each emotion, level and condition."""
    return {(row["emotion"], row["level"], row["condition"]): row for row in records(report.data)}


def test_counts_and_rates_of_each_emotion_level_and_condition_are_the_oracles(audit_of_published, oracle):
    """The authors counted words of emotion in 1,000 captions of each of 280 images; the oracle adds them up.

    A row of the audit is of an emotion, its level and a condition: whether the person is objectified.
    """
    summary = audit_of_published.record["summary"]
    assert summary["word_totals"] == oracle["captions"]["word_totals"]
    assert summary["left_out_words"] == []
    assert summary["n_captions"] == 280 * 1000

    row_of_group = rows_by_group(audit_of_published)
    expected_rows = oracle["captions"]["expected_full"].values()
    assert len(row_of_group) == len(expected_rows)
    for expected in expected_rows:
        row = row_of_group[expected["emotion"], expected["level"], expected["condition"]]
        for name, value in expected.items():
            assert row[name] == value, name


def test_words_of_emotion_are_less_than_half_as_frequent_where_persons_are_objectified(
    audit_of_published, oracle
):
    """The audit is of the authors' counts in captions of persons who show an emotion at a low or high level.

    A row of objectified persons has the ratio of their rate of words to that of the other persons. The oracle
    names a ratio by emotion and level, such as AN1 for anger at the low level.
    """
    row_of_group = rows_by_group(audit_of_published)

    for code, ratio in oracle["captions"]["ratio_objectified_over_non"].items():
        emotion = EMOTIONS[code[:2]]
        level = LEVELS[code[2]]
        row = row_of_group[emotion, level, "Objectified"]
        assert row["ratio"] == pytest.approx(ratio, rel=1e-12)
        assert row["ratio"] < 0.5


@pytest.mark.parametrize("level", ["low", "high"])
def test_captions_of_an_objectified_angry_person_hardly_ever_name_the_anger(audit_of_published, level):
    """The authors count words of an emotion in captions of pictures of it, at a low and at a high level.

    A person in them is shown objectified or not. Of 1,000 captions of an objectified and angry person, less
    than one has a word of anger, at either level.
    """
    row = rows_by_group(audit_of_published)["anger", level, "Objectified"]

    assert row["per_1000"] < 1


@pytest.mark.parametrize("level", ["low", "high"])
def test_of_persons_who_are_not_objectified_words_of_happiness_are_the_rarest(audit_of_published, level):
    """The authors' counts are of anger, sadness and happiness."""
    row_of_group = rows_by_group(audit_of_published)
    rate_of_emotion = {
        emotion: row_of_group[emotion, level, "Nonobjectified"]["per_1000"] for emotion in EMOTION_WORDS
    }

    assert min(rate_of_emotion, key=rate_of_emotion.get) == "happiness"


def n_words_counted(report):
    """Add the counts of all emotions, levels and conditions."""
    return sum(row["count"] for row in records(report.data))


def test_a_word_that_is_too_rare_is_left_out_and_named(published_counts_and_items, audit_of_published):
    """In the authors' counts "anger" alone, of all words of emotion, is used fewer than 102 times."""
    without_rare_words = audit_words(*published_counts_and_items, min_total=102)

    assert without_rare_words.record["summary"]["left_out_words"] == ["anger"]
    assert n_words_counted(without_rare_words) < n_words_counted(audit_of_published)


def test_words_are_counted_in_captions_as_the_authors_code_counts_them(shared_data, oracle):
    """The oracle has, for some images of the authors' captions, how many words their code counts in them.

    It counts words of the emotion that the image shows, whose code is in the image's name, as in 3_AN1_NO_2.
    """
    rows = read_rows(
        shared_data / "audits/clip-gender-bias/captions_fixture_filtered.csv", ["image_id", "caption"]
    )

    words_found = find_words([(row["image_id"], row["caption"]) for row in rows], EMOTION_WORDS)

    for image, expected in oracle["captions"]["fixture_expected"].items():
        _person, emotion_and_level, *_ = image.split("_")
        words_of_emotion = EMOTION_WORDS[EMOTIONS[emotion_and_level[:2]]]
        words_of_captions = words_found[image]
        assert len(words_of_captions) == expected["n_captions"]

        n_words = 0
        for words in words_of_captions:
            n_words += sum(words.count(word) for word in words_of_emotion)
        assert n_words == expected["count"]


def test_only_full_stops_and_commas_are_stripped():
    """As in the authors' code, so "sad!" is another word than "sad"."""
    assert tokens("Sad, sad. SAD! sad-faced isn't") == ["sad", "sad", "sad!", "sad-faced", "isn't"]


ITEM = {"emotion": "sadness", "level": "high", "condition": "c"}
"""A row of the table of images: which emotion is shown, how strongly, and in which condition."""


@pytest.fixture
def audit_of_sad_captions():
    """An audit of image i, which shows sadness, and of an image `other` that is not in the table of images.

    Image i has three captions: with the word sad twice, with another word, and without a word.
    """
    words = find_words([("i", "sad sad."), ("i", "happy"), ("i", ""), ("other", "sad")], EMOTION_WORDS)
    return audit_words(words, {"i": ITEM}, min_total=0)  # words count however rare they are


def test_a_word_that_is_twice_in_a_caption_counts_twice_and_the_caption_once(audit_of_sad_captions):
    """Of three captions of an image, one is "sad sad.". Two words in 3 captions are 2000 / 3 in 1000."""
    (row,) = records(audit_of_sad_captions.data)

    assert row["n_captions"] == 3
    assert row["count"] == 2
    assert row["captions_with_any"] == 1
    assert row["per_1000"] == pytest.approx(2000 / 3)


def test_captions_of_an_image_that_is_not_in_the_table_count_in_totals_alone(
    audit_of_sad_captions,
):
    """The word sad is twice in captions of the image i, and once in that of the image `other`.

    It is not known which emotion the latter shows, so that it has no row and is named.
    """
    summary = audit_of_sad_captions.record["summary"]

    assert summary["images_without_item"] == ["other"]
    assert summary["word_totals"]["sad"] == 2 + 1


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"i": ITEM | {"emotion": "fear"}}, "image i: .*'fear'"),
        ({"i": ITEM, "j": ITEM}, "image j"),
        ({"i": {"emotion": "sadness"}}, "column level"),
    ],
    ids=["an emotion without a list of words", "an image without captions", "no level"],
)
def test_a_mistake_in_the_table_of_images_is_named(items, message):
    """The only caption is of the image i. `items` has the emotion, level and condition of each image."""
    words_of_image_i = find_words([("i", "sad")], EMOTION_WORDS)

    with pytest.raises(AuditError, match=message):
        audit_words(words_of_image_i, items)


def test_a_ratio_to_a_condition_that_no_image_has_is_refused():
    """The only image has the condition c, and a ratio of c to d is asked for."""
    words_of_image_i = find_words([("i", "sad")], EMOTION_WORDS)
    item_of_condition_c = {"emotion": "sadness", "level": "high", "condition": "c"}

    with pytest.raises(AuditError, match="'d'"):
        audit_words(words_of_image_i, {"i": item_of_condition_c}, ratio=("c", "d"))


@pytest.mark.parametrize("bad_list", ["{", "[]", "[]]", '["Glad"]', '["very glad"]', '["glad", "glad"]'])
def test_lists_of_words_that_could_not_be_found_are_refused(tmp_path, bad_list):
    """The file is of JSON: a list of small single words for each emotion, as in {"joy": ["glad"]}."""
    path = tmp_path / "lists.json"

    without_an_emotion = bad_list
    of_joy = f'{{"joy": {bad_list}}}'
    for text in (without_an_emotion, of_joy):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AuditError, match=r"lists\.json"):
            read_lists(path)
