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


@pytest.fixture(scope="module")
def row_of_object():
    """The row of the audit of `TEXTS` for all captions, for the motor scooter, and for a cat."""
    return {row["object"]: row for row in records(audit_cooc(CAPTIONS, ["motor scooter", "cat"]).data)}


def test_captions_are_counted_that_name_a_man_or_a_woman(row_of_object):
    """Two of the five captions name a man, two a woman; the caption of both counts for each."""
    of_all = row_of_object[ALL_CAPTIONS]
    assert of_all["n_captions"] == len(TEXTS)
    assert (of_all["man"], of_all["woman"]) == (2, 2)


def test_captions_of_an_object_are_those_with_the_words_of_its_name_in_a_row(row_of_object):
    of_scooter = row_of_object["motor scooter"]
    assert of_scooter["n_captions"] == 3  # not the one of a "scooter motor"
    assert (of_scooter["man"], of_scooter["woman"], of_scooter["both"]) == (2, 1, 1)
    assert of_scooter["plural_only"] == 1  # the one of two men
    assert of_scooter["to_man"] == pytest.approx(2 / (2 + 1))


def test_an_object_that_no_caption_names_has_no_ratio(row_of_object):
    assert row_of_object["cat"]["n_captions"] == 0
    assert row_of_object["cat"]["to_man"] is None


@pytest.fixture(scope="module")
def karpathy_captions(shared_data):
    return read_rows(shared_data / "audits/captions/karpathy_first800.csv", ["row", "caption"])


@pytest.fixture(scope="module")
def row_of_karpathy_captions(karpathy_captions):
    """The row of the audit for all of 800 captions, with the published ratio of the captioner Vilbert."""
    rows = records(audit_cooc(karpathy_captions, ["skateboard"], model="Vilbert").data)
    (of_all,) = [row for row in rows if row["object"] == ALL_CAPTIONS]
    return of_all


def test_of_800_captions_112_name_a_man_54_a_woman_and_nine_both(karpathy_captions, row_of_karpathy_captions):
    captions = [f" {row['caption']} " for row in karpathy_captions]  # these have words and spaces alone
    assert row_of_karpathy_captions["man"] == sum(" man " in text for text in captions)
    assert row_of_karpathy_captions["woman"] == sum(" woman " in text for text in captions)
    counts = [row_of_karpathy_captions[name] for name in ("man", "woman", "both")]
    assert counts == [112, 54, 9]


def test_the_published_ratio_of_a_captioner_is_computed_from_its_published_counts(row_of_karpathy_captions):
    n_man, n_woman = TOTALS["Vilbert"]["cooc"]["man"], TOTALS["Vilbert"]["cooc"]["woman"]
    assert row_of_karpathy_captions["published_to_man"] == share(n_man, n_woman)


def test_the_ratios_that_the_poster_prints_are_those_of_its_counts_cut_to_two_decimals(shared_data):
    rows = rows_of(shared_data / "audits/paper_tables/genderscore_poster_tables.csv")
    assert len(rows) == 14
    for row in rows:
        method = "cooc" if row["method"] == "Co-Occ" else "gender_score"
        counts = TOTALS[row["model"]][method]
        assert counts == {"man": int(row["man"]), "woman": int(row["woman"])}
        assert cut_to_two_decimals(counts["man"], counts["woman"]) == float(row["to_m_printed"])
        assert cut_to_two_decimals(counts["woman"], counts["man"]) == float(row["to_w_printed"])


def test_an_object_that_is_listed_twice_and_an_unknown_captioner_are_refused():
    for objects, model, place in ((["cat", "cat"], None, "cat"), (["cat"], "Nobody", "Nobody")):
        with pytest.raises(AuditError, match=place):
            audit_cooc(CAPTIONS, objects, model=model)
