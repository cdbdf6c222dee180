"""Object-gender co-occurrence: counting rules, the printed ratios, and the captions there are."""

import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.inputs import read_rows
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import ALL_CAPTIONS, audit_cooc, share
from obygaze_studies.gender_score.published_values import TOTALS
from tests.files import rows_of

ONE_CAPTION = [{"caption": "a man with a cat"}]


def cut_to_two_decimals(part, other):
    """Return the part of both as the poster prints it: cut to two decimals, not rounded."""
    return 100 * part // (part + other) / 100


def counts_of_objects(texts, objects):
    """Count captions by object; return the row of each object, and of all captions, by its name."""
    report = audit_cooc([{"caption": text} for text in texts], objects)
    return {row["object"]: row for row in records(report.data)}


def test_a_caption_counts_for_each_gender_that_it_names_in_the_singular():
    """Two captions name a man and two a woman, one of them both. One of two men is counted apart."""
    texts = [
        "A man riding a motor scooter.",
        "a woman and a man on a motor scooter",
        "a woman with a motor scooter",
        "two men, one motor scooter",
        "a dog",
    ]

    counts = counts_of_objects(texts, ["motor scooter"])

    all_captions = counts[ALL_CAPTIONS]
    assert all_captions["n_captions"] == 5
    assert all_captions["man"] == 2
    assert all_captions["woman"] == 2

    motor_scooter = counts["motor scooter"]
    assert motor_scooter["n_captions"] == 4
    assert motor_scooter["man"] == 2
    assert motor_scooter["woman"] == 2
    assert motor_scooter["both"] == 1
    assert motor_scooter["plural_only"] == 1
    assert motor_scooter["to_man"] == pytest.approx(2 / (2 + 2))


def test_a_caption_has_an_object_of_two_words_if_it_has_both_in_their_order():
    """A "scooter motor" is no motor scooter."""
    texts = ["A man riding a motor scooter.", "a woman with a scooter motor"]

    motor_scooter = counts_of_objects(texts, ["motor scooter"])["motor scooter"]

    assert motor_scooter["n_captions"] == 1
    assert motor_scooter["man"] == 1
    assert motor_scooter["woman"] == 0


def test_an_object_that_no_caption_has_is_counted_0_and_has_no_ratio():
    cat = counts_of_objects(["a man and a dog"], ["cat"])["cat"]

    assert cat["n_captions"] == 0
    assert cat["to_man"] is None


def test_of_800_captions_112_name_a_man_54_a_woman_and_nine_both(shared_data):
    """The captions are said to be of Vilbert, whose published counts are printed beside them as a ratio.

    Captions have words and spaces alone, so that a word is found as a text between two spaces.
    """
    captions = read_rows(shared_data / "audits/captions/karpathy_first800.csv", ["row", "caption"])

    rows = records(audit_cooc(captions, ["skateboard"], model="Vilbert").data)

    (of_all_captions,) = [row for row in rows if row["object"] == ALL_CAPTIONS]
    texts = [f" {row['caption']} " for row in captions]
    assert len(texts) == 800
    assert of_all_captions["man"] == sum(" man " in text for text in texts) == 112
    assert of_all_captions["woman"] == sum(" woman " in text for text in texts) == 54
    assert of_all_captions["both"] == 9

    published = TOTALS["Vilbert"]["cooc"]
    assert of_all_captions["published_to_man"] == share(published["man"], published["woman"])


def test_the_ratios_that_the_poster_prints_are_those_of_its_counts_cut_to_two_decimals(shared_data):
    """The package has the counts of the Gender Score's poster (`TOTALS`), by captioner and method.

    A table copied from the poster has them too, and the ratios to man and to woman, cut and not rounded.
    """
    printed_rows = rows_of(shared_data / "audits/paper_tables/genderscore_poster_tables.csv")

    assert len(printed_rows) == 14
    for printed in printed_rows:
        method = "cooc" if printed["method"] == "Co-Occ" else "gender_score"
        counts = TOTALS[printed["model"]][method]
        assert counts == {"man": int(printed["man"]), "woman": int(printed["woman"])}
        assert cut_to_two_decimals(counts["man"], counts["woman"]) == float(printed["to_m_printed"])
        assert cut_to_two_decimals(counts["woman"], counts["man"]) == float(printed["to_w_printed"])


def test_an_object_that_is_listed_twice_is_refused():
    with pytest.raises(AuditError, match="cat"):
        audit_cooc(ONE_CAPTION, ["cat", "cat"])


def test_a_captioner_of_which_nothing_was_published_is_refused_by_its_name():
    """A captioner is named so that published values stand beside the counts; there are none of "Nobody"."""
    with pytest.raises(AuditError, match="Nobody"):
        audit_cooc(ONE_CAPTION, ["cat"], model="Nobody")
