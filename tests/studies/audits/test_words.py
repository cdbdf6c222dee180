"""Words of emotion in captions: the authors' counts, the tokeniser, and what is refused."""

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
CONDITIONS = {"NO": "Nonobjectified", "O": "Objectified"}


@pytest.fixture(scope="module")
def published(shared_data):
    """The words counted in all captions of the 280 images, NE ones among them, and the 240 items."""
    counts = {}
    items = {}
    for row in rows_of(shared_data / "audits/clip-gender-bias/sobem_emotion_word_counts_280images.csv"):
        words = {word: int(row[word]) for list_ in EMOTION_WORDS.values() for word in list_}
        every = tuple(word for word, count in words.items() for _ in range(count))
        counts[row["image_id"]] = [every, *[()] * (int(row["n_captions"]) - 1)]
        if row["emotion"][:2] in EMOTIONS:
            items[row["image_id"]] = {
                "emotion": EMOTIONS[row["emotion"][:2]],
                "level": {"1": "low", "2": "high"}[row["emotion"][2]],
                "condition": CONDITIONS[row["condition"]],
            }
    return counts, items


def test_the_lists_are_those_of_the_code(oracle):
    assert {emotion: list(words) for emotion, words in EMOTION_WORDS.items()} == oracle["captions"][
        "word_lists"
    ]


def test_the_published_captions_give_the_published_rates(published, oracle):
    wanted = oracle["captions"]
    results = audit_words(*published, ratio=("Objectified", "Nonobjectified"))
    assert results.record["summary"]["word_totals"] == wanted["word_totals"]
    assert results.record["summary"]["left_out_words"] == []
    assert results.record["summary"]["n_captions"] == 280_000
    result = {(row["emotion"], row["level"], row["condition"]): row for row in records(results.data)}
    assert len(result) == len(wanted["expected_full"]) == 12
    for expected in wanted["expected_full"].values():
        row = result[expected["emotion"], expected["level"], expected["condition"]]
        assert {name: row[name] for name in expected} == expected
    for name, ratio in wanted["ratio_objectified_over_non"].items():
        level = {"1": "low", "2": "high"}[name[2]]
        row = result[EMOTIONS[name[:2]], level, "Objectified"]
        assert row["ratio"] == pytest.approx(ratio, rel=1e-12)
        assert row["ratio"] < 0.5, "the paper's claim"
    assert all(wanted["paper_claims_checked"].values())
    rate = {group: row["per_1000"] for group, row in result.items()}
    assert all(rate["anger", level, "Objectified"] < 1 for level in ("low", "high"))
    for level in ("low", "high"):
        shown = {emotion: rate[emotion, level, "Nonobjectified"] for emotion in EMOTION_WORDS}
        assert min(shown, key=shown.get) == "happiness"


def test_a_word_that_is_too_rare_is_left_out_and_named(published):
    results = audit_words(*published, min_total=102)
    assert results.record["summary"]["left_out_words"] == ["anger"]
    assert sum(row["count"] for row in records(results.data)) < sum(
        row["count"] for row in records(audit_words(*published).data)
    )


def test_captions_are_split_as_the_code_splits_them(shared_data, oracle):
    rows = read_rows(
        shared_data / "audits/clip-gender-bias/captions_fixture_filtered.csv", ["image_id", "caption"]
    )
    counts = find_words(((row["image_id"], row["caption"]) for row in rows), EMOTION_WORDS)
    for image, expected in oracle["captions"]["fixture_expected"].items():
        words = EMOTION_WORDS[EMOTIONS[image.split("_")[1][:2]]]
        assert len(counts[image]) == expected["n_captions"]
        assert sum(caption.count(word) for caption in counts[image] for word in words) == expected["count"]


def test_only_full_stops_and_commas_are_stripped():
    assert tokens("Sad, sad. SAD! sad-faced isn't") == ["sad", "sad", "sad!", "sad-faced", "isn't"]


def test_occurrences_and_captions_are_counted_apart():
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
    ("items", "ratio", "place"),
    [
        ({"i": ITEM | {"emotion": "fear"}}, None, "image i: .*'fear'"),
        ({"i": ITEM, "j": ITEM}, None, "image j"),
        ({"i": {"emotion": "sadness"}}, None, "column level"),
        ({"i": ITEM}, ("c", "d"), "'d'"),
    ],
)
def test_a_mistake_names_the_image(items, ratio, place):
    with pytest.raises(AuditError, match=place):
        audit_words(find_words([("i", "sad")], EMOTION_WORDS), items, ratio=ratio)


@pytest.mark.parametrize("words", ["{", "[]", "[]]", '["Glad"]', '["very glad"]', '["glad", "glad"]'])
def test_lists_of_words_that_could_not_be_found_are_refused(tmp_path, words):
    path = tmp_path / "lists.json"
    for text in (words, f'{{"joy": {words}}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(AuditError, match=r"lists\.json"):
            read_lists(path)
