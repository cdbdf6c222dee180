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


def cut(part, other):
    """Give the part of both as the poster prints it: cut to two decimals, not rounded."""
    return 100 * part // (part + other) / 100


def test_words_are_counted_by_caption_and_labels_word_by_word():
    whole, scooter, none = records(audit_cooc(CAPTIONS, ["motor scooter", "cat"]).data)
    assert (whole["object"], whole["n_captions"], whole["man"], whole["woman"]) == (ALL_CAPTIONS, 5, 2, 2)
    counts = ("n_captions", "man", "woman", "both", "plural_only")
    assert [scooter[name] for name in counts] == [3, 2, 1, 1, 1]
    assert scooter["to_man"] == pytest.approx(2 / 3)
    assert (none["n_captions"], none["to_man"]) == (0, None)


def test_the_counts_of_the_first_800_karpathy_captions(shared_data):
    rows = read_rows(shared_data / "audits/captions/karpathy_first800.csv", ["row", "caption"])
    (whole,) = (
        row
        for row in records(audit_cooc(rows, ["skateboard"], model="Vilbert").data)
        if row["object"] == ALL_CAPTIONS
    )
    alone = [f" {row['caption']} " for row in rows]
    assert whole["man"] == sum(" man " in one for one in alone) == 112
    assert whole["woman"] == sum(" woman " in one for one in alone) == 54
    assert whole["both"] == 9
    assert whole["published_to_man"] == share(702, 311)


def test_all_28_printed_ratios_are_counts_cut_to_two_decimals(shared_data):
    rows = rows_of(shared_data / "audits/paper_tables/genderscore_poster_tables.csv")
    for row in rows:
        printed = TOTALS[row["model"]]
        counts = printed["cooc" if row["method"] == "Co-Occ" else "gender_score"]
        assert counts == {"man": int(row["man"]), "woman": int(row["woman"])}
        assert cut(counts["man"], counts["woman"]) == float(row["to_m_printed"])
        assert cut(counts["woman"], counts["man"]) == float(row["to_w_printed"])
    assert len(rows) == 14


def test_an_object_that_is_listed_twice_and_an_unknown_captioner_are_refused():
    for objects, model, place in ((["cat", "cat"], None, "cat"), (["cat"], "Nobody", "Nobody")):
        with pytest.raises(AuditError, match=place):
            audit_cooc(CAPTIONS, objects, model=model)
