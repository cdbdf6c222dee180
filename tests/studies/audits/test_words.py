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
    word_lists = {emotion: list(words) for emotion, words in EMOTION_WORDS.items()}
    assert word_lists == oracle["captions"]["word_lists"]


@pytest.fixture(scope="module")
def audit_of_published(published_counts_and_items):
    return audit_words(*published_counts_and_items, ratio=("Objectified", "Nonobjectified"))


def rows_by_group(report):
    """Return the row of each emotion, level and condition."""
    return {(row["emotion"], row["level"], row["condition"]): row for row in records(report.data)}


def test_counts_and_rates_of_each_emotion_level_and_condition_are_the_oracles(audit_of_published, oracle):
    summary = audit_of_published.record["summary"]
    assert summary["word_totals"] == oracle["captions"]["word_totals"]
    assert summary["left_out_words"] == []
    assert summary["n_captions"] == 280_000
    row_of_group = rows_by_group(audit_of_published)
    all_expected = oracle["captions"]["expected_full"].values()
    assert len(row_of_group) == len(all_expected)
    for expected in all_expected:
        row = row_of_group[expected["emotion"], expected["level"], expected["condition"]]
        assert {name: row[name] for name in expected} == expected


def test_words_of_emotion_are_less_than_half_as_frequent_where_persons_are_objectified(
    audit_of_published, oracle
):
    """Those of anger are in less than one of 1000 captions; of others, words of happiness are the rarest."""
    row_of_group = rows_by_group(audit_of_published)
    for name, ratio in oracle["captions"]["ratio_objectified_over_non"].items():
        emotion, level = EMOTIONS[name[:2]], LEVELS[name[2]]  # of a name such as AN1
        row = row_of_group[emotion, level, "Objectified"]
        assert row["ratio"] == pytest.approx(ratio, rel=1e-12)
        assert row["ratio"] < 0.5
    for level in ("low", "high"):
        assert row_of_group["anger", level, "Objectified"]["per_1000"] < 1
        rate_of = {
            emotion: row_of_group[emotion, level, "Nonobjectified"]["per_1000"] for emotion in EMOTION_WORDS
        }
        assert min(rate_of, key=rate_of.get) == "happiness"


def test_a_word_that_is_too_rare_is_left_out_and_named(published_counts_and_items, audit_of_published):
    def total(results):
        return sum(row["count"] for row in records(results.data))

    without_rare_words = audit_words(*published_counts_and_items, min_total=102)
    assert without_rare_words.record["summary"]["left_out_words"] == ["anger"]
    assert total(without_rare_words) < total(audit_of_published)


def test_words_are_counted_in_captions_as_the_authors_code_counts_them(shared_data, oracle):
    rows = read_rows(
        shared_data / "audits/clip-gender-bias/captions_fixture_filtered.csv", ["image_id", "caption"]
    )
    counts = find_words(((row["image_id"], row["caption"]) for row in rows), EMOTION_WORDS)
    for image, expected in oracle["captions"]["fixture_expected"].items():
        words = EMOTION_WORDS[EMOTIONS[image.split("_")[1][:2]]]
        assert len(counts[image]) == expected["n_captions"]
        assert sum(caption.count(word) for caption in counts[image] for word in words) == expected["count"]


def test_only_full_stops_and_commas_are_stripped():
    """As in the authors' code, so "sad!" is another word than "sad"."""
    assert tokens("Sad, sad. SAD! sad-faced isn't") == ["sad", "sad", "sad!", "sad-faced", "isn't"]


def test_occurrences_and_captions_are_counted_apart():
    """The caption "sad sad." has two occurrences.

    One of three captions has any, and 2 / 3 are 2000 / 3 per 1000 captions.
    """
    items = {"i": {"emotion": "sadness", "level": "high", "condition": "c"}}
    counts = find_words([("i", "sad sad."), ("i", "happy"), ("i", ""), ("other", "sad")], EMOTION_WORDS)
    results = audit_words(counts, items, min_total=0)
    (row,) = records(results.data)

    assert (row["n_captions"], row["count"], row["captions_with_any"]) == (3, 2, 1)
    assert row["per_1000"] == pytest.approx(2000 / 3)
    assert results.record["summary"]["images_without_item"] == ["other"]
    assert results.record["summary"]["word_totals"]["sad"] == 3


ITEM = {"emotion": "sadness", "level": "high", "condition": "c"}


@pytest.mark.parametrize(
    ("items", "ratio", "message"),
    [
        ({"i": ITEM | {"emotion": "fear"}}, None, "image i: .*'fear'"),
        ({"i": ITEM, "j": ITEM}, None, "image j"),
        ({"i": {"emotion": "sadness"}}, None, "column level"),
        ({"i": ITEM}, ("c", "d"), "'d'"),
    ],
)
def test_a_mistake_names_the_image(items, ratio, message):
    with pytest.raises(AuditError, match=message):
        audit_words(find_words([("i", "sad")], EMOTION_WORDS), items, ratio=ratio)


@pytest.mark.parametrize("message", ["{", "[]", "[]]", '["Glad"]', '["very glad"]', '["glad", "glad"]'])
def test_lists_of_words_that_could_not_be_found_are_refused(tmp_path, message):
    path = tmp_path / "lists.json"
    for text in (message, f'{{"joy": {message}}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AuditError, match=r"lists\.json"):
            read_lists(path)
