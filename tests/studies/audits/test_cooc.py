"""Object-gender co-occurrence: counting rules, the printed ratios, and the captions there are."""

import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.inputs import read_rows
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.cooc import ALL_CAPTIONS, audit_cooc, share
from obygaze_studies.gender_score.published_values import TOTALS
from tests.files import rows_of

TEXTS = [
    "A man riding a motor scooter.",
    "a woman and a man on a motor scooter",
    "a woman with a scooter motor",
    "two men, one motor scooter",
    "a dog",
]
CAPTIONS = [{"caption": text} for text in TEXTS]


def cut_to_two_decimals(part, other):
    """Return the part of both as the poster prints it: cut to two decimals, not rounded."""
    return 100 * part // (part + other) / 100


def test_captions_are_counted_that_name_a_man_or_a_woman_and_the_words_of_an_object_in_a_row():
    """Two of the five captions name a man, two a woman; the caption of both counts for each."""
    rows = records(audit_cooc(CAPTIONS, ["motor scooter", "cat"]).data)
    row_of_object = {row["object"]: row for row in rows}

    of_all = row_of_object[ALL_CAPTIONS]
    assert of_all["n_captions"] == len(TEXTS)
    assert (of_all["man"], of_all["woman"]) == (2, 2)
    of_scooter = row_of_object["motor scooter"]
    assert of_scooter["n_captions"] == 3  # not the one of a "scooter motor"
    assert (of_scooter["man"], of_scooter["woman"], of_scooter["both"]) == (2, 1, 1)
    assert of_scooter["plural_only"] == 1  # the one of two men
    assert of_scooter["to_man"] == pytest.approx(2 / (2 + 1))
    of_cat = row_of_object["cat"]
    assert (of_cat["n_captions"], of_cat["to_man"]) == (0, None)


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


def test_an_object_that_is_listed_twice_and_an_unknown_captioner_are_refused():
    for objects, model, place in ((["cat", "cat"], None, "cat"), (["cat"], "Nobody", "Nobody")):
        with pytest.raises(AuditError, match=place):
            audit_cooc(CAPTIONS, objects, model=model)
