"""The Gender Score: published values to the last bit, its properties, and what can't be scored is listed."""

import math

import pytest

from obygaze_models.report import records
from obygaze_studies.audit_common.embeddings import read_embeddings
from obygaze_studies.commands.audit_commands import read_objects
from obygaze_studies.errors import AuditError
from obygaze_studies.gender_score.belief_revision import (
    Detected,
    Scorer,
    embedded_similarity,
    join_objects,
    objects_by_image,
    revise,
)
from obygaze_studies.gender_score.cooc import genders_named, share, with_gender
from obygaze_studies.gender_score.gender_audit import audit_gender_score, needed_texts
from obygaze_studies.gender_score.published_values import TOTALS
from tests.files import rows_of


def caption(name, text, image="i"):
    return {"caption_id": name, "image_id": image, "caption": text}


def scorer(sims, prior=0.2):
    """Every text has the prior; similarities by text."""
    return Scorer(dict.fromkeys(sims, prior), lambda text, _: sims[text])


def test_the_published_scores_come_out_to_the_last_bit(oracle):
    expected = oracle["gender_score"]
    for case in expected["exact_cases"]:
        assert revise(case["lm"], case["sim"], case["p_c"]) == case["gs"], case["name"]
    for case in expected["edge_cases"]:
        assert revise(case["lm"], case["sim"], case["p_c"]) == pytest.approx(case["gs"], rel=1e-12)


def test_the_published_ratio_comes_out(oracle):
    expected = oracle["gender_score"]["ratio"]
    assert 100 * share(expected["man"], expected["woman"]) == pytest.approx(
        expected["to_m_percent"], rel=1e-12
    )
    assert 100 * share(expected["woman"], expected["man"]) == pytest.approx(
        expected["to_w_percent"], rel=1e-12
    )
    assert share(0, 0) is None


@pytest.fixture(scope="module")
def karpathy(shared_data):
    """Rows of 800 captions, and what `audit_gender_score` takes of them."""
    rows = rows_of(shared_data / "audits/captions/karpathy_first800.csv")
    captions = [caption(row["row"], row["caption"], row["row"]) for row in rows]
    objects = {r["row"]: (Detected(r["visual_context"], float(r["p_c"])),) for r in rows}
    sims = {(row["caption"], row["visual_context"]): float(row["sim_recovered"]) for row in rows}
    priors = {row["caption"]: float(row["lm_mean"]) for row in rows}
    return rows, (captions, objects, Scorer(priors, lambda *pair: sims[pair]))


def test_the_scores_of_the_karpathy_captions_come_out(karpathy):
    rows, scored = karpathy
    results = audit_gender_score(*scored)
    for row, result in zip(rows, records(results.data), strict=True):
        # Sims have nine digits, and equal captions of two images their own: look the row's up again.
        expected = float(row["belief_revision_published"])
        assert revise(float(row["lm_mean"]), float(row["sim_recovered"]), float(row["p_c"])) == pytest.approx(
            expected, rel=1e-6
        )
        assert result["gs"] == pytest.approx(expected, rel=1e-6)
    named_by = results.record["summary"]["genders_named"]
    assert (named_by["man"] + named_by["man and woman"], named_by["man and woman"]) == (112, 9)


def test_scores_and_distances_of_the_karpathy_captions_by_object(karpathy):
    """The poster's test split is 5,000 captions, of which 800 are here: 4 to 7 captions an object.

    Poster, Gender Object Distance of one tennis ball: man 0.44, woman 0.46; Gender Score 0.45, 0.45.
    """
    report = audit_gender_score(*karpathy[1], names=["tennis ball", "motorcycle", "skateboard"])
    by_object = {row["object"]: row for row in report.record["summary"]["by_object"]}
    ball = by_object["tennis ball"]
    shown = ("distance_man", "distance_woman", "gs_man", "gs_woman")
    assert [ball["n_captions"], *(round(ball[name], 2) for name in shown)] == [6, 0.44, 0.5, 0.47, 0.39]
    assert (by_object["motorcycle"]["to_man"], by_object["motorcycle"]["gs_woman"]) == (1, None)
    assert by_object["skateboard"]["n_captions"] == 0


def test_estimation_sums_up_by_object_and_shows_examples_with_the_posters_beside():
    sims = {"a man rides": 0.5, "a woman rides": 0.3, "a man cooks": 0.2, "a woman cooks": 0.6}
    captions = [caption("1", "a man rides", "x"), caption("2", "a [MASK] cooks", "y")]
    objects = {"x": (Detected("motorcycle", 0.5),), "y": (Detected("kitchen", 0.5), Detected("table", 0.5))}
    report = audit_gender_score(captions, objects, scorer(sims), mode="ge", model="Vilbert")
    rows = {row["object"]: row for row in report.record["summary"]["by_object"]}
    assert list(rows) == ["kitchen", "motorcycle", "table"]
    ride = rows["motorcycle"]
    scores = revise(0.2, 0.5, 0.5), revise(0.2, 0.3, 0.5)
    assert (ride["distance_man"], ride["distance_woman"]) == (0.5, 0.3)
    assert (ride["gs_man"], ride["gs_woman"]) == pytest.approx(scores)
    assert ride["to_man"] == pytest.approx(share(*scores))
    assert (ride["n_correct_man"], ride["n_correct_woman"], ride["to_man_by_n_correct"]) == (1, 0, 1)
    assert (ride["published_to_man"], ride["published_to_woman"]) == (0.84, 0.15)
    assert rows["kitchen"]["n_correct_man"] == rows["kitchen"]["n_correct_woman"] == 0  # masked
    blocks = {block.title: block for block in report.blocks}
    shown = [row[1:3] for row in blocks["Examples"].rows]
    assert shown == [("man", "motorcycle"), ("woman", "kitchen"), ("woman", "table")]
    poster = blocks["Examples of the poster, whose captioner it does not name"]
    assert poster.rows[0][2:] == ("0.44", "0.46", "0.45", "0.45")


def test_the_posters_ratios_by_object_are_those_of_its_tables(shared_data):
    for row in rows_of(shared_data / "audits/paper_tables/genderscore_poster_objects.csv"):
        of = TOTALS[row["model"]]
        what = "score" if row["method"] == "Gender Score" else "object"
        ours = (of[f"{what}_to_{gender}"][row["object"]] for gender in ("man", "woman"))
        assert [*ours] == [float(row["to_m"]), float(row["to_w"])]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_value_out_of_range_is_refused(place):
    outside = ((0.0, 1.5, math.nan), (-1.0, 1.1, math.nan), (-0.1, 1.1))
    for value in outside[place]:
        values = [0.2, 0.5, 0.5]
        values[place] = value
        with pytest.raises(AuditError, match=("prior", "similarity", "confidence")[place]):
            revise(*values)


def test_genders_are_whole_words_and_filled_in_with_their_stops():
    assert genders_named("A man, and a woman.") == ("man", "woman")
    assert genders_named("a salesman and women") == ()
    assert with_gender("A man, a Man. mankind", "woman") == "A woman, a woman. mankind"
    assert with_gender("a [MASK] and a <MASK> man", "woman") == "a woman and a woman man"


def test_estimation_puts_both_genders_in_and_ties_go_to_man():
    captions = [caption("c1", "a man runs"), caption("c2", "a <MASK> sits"), caption("c3", "a woman naps")]
    sims = {"a man runs": 0.5, "a woman runs": 0.1, "a man sits": 0.3, "a woman sits": 0.3}
    sims |= {"a man naps": 0.4, "a woman naps": 0.2}
    objects = {"i": (Detected("shoe", 0.2),)}
    results = audit_gender_score(captions, objects, scorer(sims), mode="ge")
    first, tie, wrong = records(results.data)
    assert first["gs_man"] == revise(0.2, 0.5, 0.2)
    assert first["gs_woman"] == revise(0.2, 0.1, 0.2)
    assert first["to_man"] == share(first["gs_man"], first["gs_woman"])
    assert first["to_woman"] == 1 - first["to_man"]
    assert (first["predicted"], first["correct"]) == ("man", True)
    assert (tie["predicted"], tie["to_man"], tie["correct"], tie["gender"]) == ("man", 0.5, None, "masked")
    assert (wrong["predicted"], wrong["correct"]) == ("man", False)
    counted = results.record["summary"]["by_gender"]
    assert [counted["man"][name] for name in ("n_captions", "n_scored", "n_predicted", "n_correct")] == [
        *(1, 3, 3, 1)
    ]
    assert counted["woman"]["n_correct"] == 0
    assert results.record["summary"]["to_man_by_n_correct"] == 1


def test_objects_of_any_classifier_and_detector_are_read_several_at_once(tmp_path):
    (tmp_path / "clip.csv").write_text("image_id,object,p_c\ni,shoe,0.2\nj,car,0.5\n")
    (tmp_path / "rcnn.csv").write_text("image,x0,class,score\ni,1,shoe,0.9\ni,2,shoe,0.4\ni,3,sock,0.6\n")
    rows = read_objects((tmp_path / "clip.csv", tmp_path / "rcnn.csv"))
    assert objects_by_image(rows) == {
        "i": (Detected("shoe", 0.9), Detected("sock", 0.6)),
        "j": (Detected("car", 0.5),),
    }
    (tmp_path / "bad.csv").write_text("image,thing,score\ni,shoe,0.9\n")
    with pytest.raises(AuditError, match="no column object, nor one of label"):
        read_objects((tmp_path / "bad.csv",))


def test_several_objects_are_averaged_or_joined():
    objects = (Detected("shoe", 0.2), Detected("sock", 0.6))
    texts = {"shoe": 0.5, "sock": 0.1, "shoe sock": 0.4}
    both = Scorer({"a man": 0.2}, lambda _, label: texts[label])
    (row,) = records(audit_gender_score([caption("c", "a man")], {"i": objects}, both).data)
    assert row["gs"] == pytest.approx((revise(0.2, 0.5, 0.2) + revise(0.2, 0.1, 0.6)) / 2)
    as_one = audit_gender_score([caption("c", "a man")], {"i": objects}, both, labels="joined")
    (row,) = records(as_one.data)
    assert row["gs"] == pytest.approx(revise(0.2, 0.4, 0.4))
    assert row["objects"] == "shoe sock"
    assert join_objects(()) == ()


def test_what_lacks_something_is_listed_and_never_counts_as_0():
    captions = [
        caption("ok", "a man"),
        caption("no prior", "a woman"),
        caption("no object", "a man", "j"),
        caption("no sim", "one man"),
        caption("bad p_c", "a man", "k"),
    ]
    objects = {"i": (Detected("shoe", 0.2),), "k": (Detected("shoe", 1.2),)}
    known = {"a man": 0.5}
    given_ = Scorer(
        {"a man": 0.2, "one man": 0.2}, lambda text, label: known.get(text, f"no {text!r}, {label!r}")
    )
    results = audit_gender_score(captions, objects, given_)
    reasons = {row["caption_id"]: row["left_out"] for row in records(results.data)}
    assert reasons.pop("ok") is None
    places = {"no prior": "a woman", "no object": "image j", "no sim": "one man", "bad p_c": "shoe"}
    assert all(places[name] in reason for name, reason in reasons.items())
    assert all(row["gs"] is None for row in records(results.data) if row["left_out"])
    assert results.record["summary"]["by_gender"]["woman"]["mean"] is None
    assert results.record["summary"]["n_left_out"] == 4


def test_estimation_leaves_out_captions_of_both_genders_or_none():
    captions = [caption("c1", "a man"), caption("c2", "a man and a woman"), caption("c3", "a dog")]
    sims = {"a man": 0.5, "a woman": 0.4}
    results = audit_gender_score(captions, {"i": (Detected("x", 0.2),)}, scorer(sims), mode="ge")
    assert [bool(row["left_out"]) for row in records(results.data)] == [False, True, True]
    assert results.record["summary"]["genders_named"] == {"man": 1, "man and woman": 1, "none": 1}


def test_nothing_to_score_is_an_error_with_the_first_reason():
    with pytest.raises(AuditError, match="c: image i"):
        audit_gender_score([caption("c", "a man")], {}, scorer({"a man": 0.5}))


def test_similarities_come_from_a_text_store(tmp_path, keep):
    path = keep(tmp_path / "texts", ["t1", "t2", "t3"], [[1, 0], [3, 4], [0, 2]], failed={"t3": "too long"})
    ids = {"a man": "t1", "shoe": "t2", "sock": "t3"}
    similarity = embedded_similarity(read_embeddings(path), ids)
    assert similarity("a man", "shoe") == pytest.approx(0.6)
    assert "hat" in similarity("a man", "hat")
    assert "t3" in similarity("a man", "sock")


def test_the_texts_that_need_embeddings_are_listed_once():
    captions = [caption("c1", "a man"), caption("c2", "a woman"), caption("c3", "a dog")]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]
    each = needed_texts(captions, objects, "gs", "each")
    assert each == ["a man", "a woman", "a dog", "shoe", "sock"]
    as_one = needed_texts(captions, objects, "ge", "joined")
    assert as_one == ["a man", "a woman", "shoe sock"]


def test_published_counts_stand_beside_estimation_alone():
    given_ = [caption("c", "a man")], {"i": (Detected("x", 0.2),)}, scorer({"a man": 0.1, "a woman": 0.2})
    summary = audit_gender_score(*given_, mode="ge", model="Vilbert").record["summary"]
    assert summary["by_gender"]["man"]["published"] == 526
    assert summary["to_man_by_published"] == share(526, 161)
    for mode, model in (("ge", "GPT"), ("gs", "Vilbert")):
        with pytest.raises(AuditError):
            audit_gender_score(*given_, mode=mode, model=model)
