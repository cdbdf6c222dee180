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


def test_gender_scores_of_published_examples_are_those_of_the_authors_code_to_the_last_bit(oracle):
    for case in oracle["gender_score"]["exact_cases"]:
        assert revise(case["lm"], case["sim"], case["p_c"]) == case["gs"], case["name"]
    for case in oracle["gender_score"]["edge_cases"]:
        assert revise(case["lm"], case["sim"], case["p_c"]) == pytest.approx(case["gs"], rel=1e-12)


def test_the_share_of_a_genders_score_in_those_of_both_is_the_published_ratio(oracle):
    expected = oracle["gender_score"]["ratio"]
    man, woman = expected["man"], expected["woman"]
    assert 100 * share(man, woman) == pytest.approx(expected["to_m_percent"], rel=1e-12)
    assert 100 * share(woman, man) == pytest.approx(expected["to_w_percent"], rel=1e-12)
    assert share(part=0, remainder=0) is None


@pytest.fixture(scope="module")
def karpathy_captions(shared_data):
    """Rows of 800 captions, with their published scores."""
    return rows_of(shared_data / "audits/captions/karpathy_first800.csv")


def audit_rows(rows, **options):
    """Audit captions with their objects, similarities and priors."""
    captions = [caption(row["row"], row["caption"], row["row"]) for row in rows]
    objects = {r["row"]: (Detected(r["visual_context"], float(r["p_c"])),) for r in rows}
    sims = {(row["caption"], row["visual_context"]): float(row["sim_recovered"]) for row in rows}
    priors = {row["caption"]: float(row["lm_mean"]) for row in rows}
    return audit_gender_score(captions, objects, Scorer(priors, lambda *pair: sims[pair]), **options)


def test_the_gender_scores_of_800_captions_are_the_published_ones(karpathy_captions):
    """The genders that captions name were counted by hand, as in the audit of co-occurrence."""
    report = audit_rows(karpathy_captions)
    for row, result in zip(karpathy_captions, records(report.data), strict=True):
        published = float(row["belief_revision_published"])
        assert result["gs"] == pytest.approx(published, rel=1e-6)  # similarities have nine digits
    n_naming = report.record["summary"]["genders_named"]
    assert n_naming["man and woman"] == 9
    assert n_naming["man"] + n_naming["man and woman"] == 112
    notes = [note for block in report.blocks for note in block.notes]
    n_objects = len(report.record["summary"]["by_object"])
    assert any(note.endswith(f"most frequent of {n_objects} objects") for note in notes)


def test_mean_similarities_and_scores_of_an_object_are_near_those_of_the_poster(karpathy_captions):
    """The poster has 0.44 and 0.46, 0.45 and 0.45, of 5,000 captions, of which we have 800."""
    report = audit_rows(karpathy_captions, names=["tennis ball", "motorcycle", "skateboard"])
    of_object = {row["object"]: row for row in report.record["summary"]["by_object"]}
    ball = of_object["tennis ball"]
    assert ball["n_captions"] == 6
    assert (ball["distance_man"], ball["distance_woman"]) == pytest.approx((0.44, 0.50), abs=0.005)
    assert (ball["gs_man"], ball["gs_woman"]) == pytest.approx((0.47, 0.39), abs=0.005)
    names_only_men = of_object["motorcycle"]
    assert names_only_men["to_man"] == 1
    assert names_only_men["gs_woman"] is None
    in_no_image = of_object["skateboard"]
    assert in_no_image["n_captions"] == 0


@pytest.fixture(scope="module")
def estimated_genders():
    """Estimation of a man on a motorcycle, and of somebody masked who cooks, in a picture of two objects."""
    sims = {"a man rides": 0.5, "a woman rides": 0.3, "a man cooks": 0.2, "a woman cooks": 0.6}
    captions = [caption("1", "a man rides", "x"), caption("2", "a [MASK] cooks", "y")]
    objects = {
        "x": (Detected("motorcycle", confidence=0.5),),
        "y": (Detected("kitchen", confidence=0.5), Detected("table", confidence=0.5)),
    }
    return audit_gender_score(captions, objects, scorer(sims, prior=0.2), mode="ge", model="Vilbert")


def rows_titled(report, title):
    """The rows of the block of a report that has this title."""
    (block,) = (block for block in report.blocks if block.title == title)
    return block.rows


def test_estimation_is_summed_up_by_object_beside_the_posters_ratios(estimated_genders):
    """A masked caption, of the kitchen, is estimated neither right nor wrong."""
    by_object = {row["object"]: row for row in estimated_genders.record["summary"]["by_object"]}
    assert list(by_object) == ["kitchen", "motorcycle", "table"]
    ride = by_object["motorcycle"]
    score_of_man, score_of_woman = (
        revise(prior=0.2, similarity=0.5, confidence=0.5),
        revise(prior=0.2, similarity=0.3, confidence=0.5),
    )
    assert (ride["distance_man"], ride["distance_woman"]) == (0.5, 0.3)
    assert (ride["gs_man"], ride["gs_woman"]) == pytest.approx((score_of_man, score_of_woman))
    assert ride["to_man"] == pytest.approx(share(score_of_man, score_of_woman))
    assert (ride["n_correct_man"], ride["n_correct_woman"], ride["to_man_by_n_correct"]) == (1, 0, 1)
    assert (ride["published_to_man"], ride["published_to_woman"]) == (0.84, 0.15)
    kitchen = by_object["kitchen"]
    assert (kitchen["n_correct_man"], kitchen["n_correct_woman"]) == (0, 0)


def test_examples_show_the_gender_that_was_estimated_beside_the_posters_examples(estimated_genders):
    examples = [
        (gender, of_object) for _, gender, of_object, *_ in rows_titled(estimated_genders, "Examples")
    ]
    assert examples == [("man", "motorcycle"), ("woman", "kitchen"), ("woman", "table")]
    first, *_ = rows_titled(estimated_genders, "Examples of the poster, whose captioner it does not name")
    _text, _object, *numbers = first
    assert numbers == ["0.44", "0.46", "0.45", "0.45"]


def test_the_posters_ratios_by_object_are_those_of_its_tables(shared_data):
    for row in rows_of(shared_data / "audits/paper_tables/genderscore_poster_objects.csv"):
        ratios_of_captioner = TOTALS[row["model"]]
        method = "score" if row["method"] == "Gender Score" else "object"
        assert ratios_of_captioner[f"{method}_to_man"][row["object"]] == float(row["to_m"])
        assert ratios_of_captioner[f"{method}_to_woman"][row["object"]] == float(row["to_w"])


@pytest.mark.parametrize(
    ("prior", "similarity", "confidence", "message"),
    [
        (0.0, 0.5, 0.5, "prior"),
        (1.5, 0.5, 0.5, "prior"),
        (math.nan, 0.5, 0.5, "prior"),
        (0.2, -1.0, 0.5, "similarity"),
        (0.2, 1.1, 0.5, "similarity"),
        (0.2, math.nan, 0.5, "similarity"),
        (0.2, 0.5, -0.1, "confidence"),
        (0.2, 0.5, 1.1, "confidence"),
    ],
)
def test_a_prior_similarity_or_confidence_out_of_range_is_refused(prior, similarity, confidence, message):
    with pytest.raises(AuditError, match=message):
        revise(prior, similarity, confidence)


def test_a_caption_names_the_genders_that_are_whole_words_of_it():
    assert genders_named("A man, and a woman.") == ("man", "woman")
    assert genders_named("a salesman and women") == ()


def test_the_other_gender_is_put_in_for_whole_words_or_for_masks_alone_and_keeps_commas():
    assert with_gender("A man, a Man. mankind", "woman") == "A woman, a woman. mankind"
    assert with_gender("a [MASK] and a <MASK> man", "woman") == "a woman and a woman man"


def test_estimation_takes_the_gender_of_the_higher_score_and_counts_those_that_are_right():
    """In the first caption a man is the more similar, and in the third, which is of a woman, too.

    The second is masked, with equal similarities: a tie goes to man, and is neither right nor wrong.
    """
    captions = [caption("c1", "a man runs"), caption("c2", "a <MASK> sits"), caption("c3", "a woman naps")]
    sims = {"a man runs": 0.5, "a woman runs": 0.1, "a man sits": 0.3, "a woman sits": 0.3}
    sims |= {"a man naps": 0.4, "a woman naps": 0.2}
    objects = {"i": (Detected("shoe", confidence=0.2),)}

    report = audit_gender_score(captions, objects, scorer(sims, prior=0.2), mode="ge")

    man, masked, woman = records(report.data)
    assert man["gs_man"] == revise(prior=0.2, similarity=0.5, confidence=0.2)
    assert man["gs_woman"] == revise(prior=0.2, similarity=0.1, confidence=0.2)
    assert man["to_man"] == share(man["gs_man"], man["gs_woman"])
    assert man["to_woman"] == 1 - man["to_man"]
    assert (man["predicted"], man["correct"]) == ("man", True)
    assert (masked["gender"], masked["to_man"]) == ("masked", 0.5)
    assert (masked["predicted"], masked["correct"]) == ("man", None)
    assert (woman["predicted"], woman["correct"]) == ("man", False)

    summary = report.record["summary"]
    of_man, of_woman = summary["by_gender"]["man"], summary["by_gender"]["woman"]
    assert of_man["n_captions"] == 1  # that name a man
    assert of_man["n_scored"] == 3  # with "man" put in
    assert of_man["n_predicted"] == 3
    assert of_man["n_correct"] == 1
    assert of_woman["n_correct"] == 0
    assert summary["to_man_by_n_correct"] == 1 / (1 + 0)


def test_objects_of_any_classifier_and_detector_are_read_several_at_once(tmp_path):
    (tmp_path / "clip.csv").write_text("image_id,object,p_c\ni,shoe,0.2\nj,car,0.5\n")
    (tmp_path / "rcnn.csv").write_text("image,x0,class,score\ni,1,shoe,0.9\ni,2,shoe,0.4\ni,3,sock,0.6\n")
    rows = read_objects((tmp_path / "clip.csv", tmp_path / "rcnn.csv"))
    assert objects_by_image(rows) == {
        "i": (Detected("shoe", confidence=0.9), Detected("sock", confidence=0.6)),
        "j": (Detected("car", confidence=0.5),),
    }
    (tmp_path / "bad.csv").write_text("image,thing,score\ni,shoe,0.9\n")

    with pytest.raises(AuditError, match="no column object, nor one of label"):
        read_objects((tmp_path / "bad.csv",))


def score_of_shoe_and_sock(**options):
    """Score a caption of prior .2, in whose image a shoe (.2) and a sock (.6) are detected."""
    objects = (Detected("shoe", confidence=0.2), Detected("sock", confidence=0.6))
    similarity_of = {"shoe": 0.5, "sock": 0.1, "shoe sock": 0.4}
    scorer = Scorer({"a man": 0.2}, lambda _, label: similarity_of[label])
    (row,) = records(audit_gender_score([caption("c", "a man")], {"i": objects}, scorer, **options).data)
    return row


def test_the_score_of_a_caption_with_two_objects_is_the_mean_of_its_scores_by_each():
    by_shoe, by_sock = (
        revise(prior=0.2, similarity=0.5, confidence=0.2),
        revise(prior=0.2, similarity=0.1, confidence=0.6),
    )
    assert score_of_shoe_and_sock()["gs"] == pytest.approx((by_shoe + by_sock) / 2)


def test_objects_may_be_joined_to_one_of_both_labels_and_of_their_mean_confidence():
    row = score_of_shoe_and_sock(labels="joined")
    mean_confidence = (0.2 + 0.6) / 2
    assert row["objects"] == "shoe sock"
    assert row["gs"] == pytest.approx(revise(prior=0.2, similarity=0.4, confidence=mean_confidence))
    assert join_objects(()) == ()


def test_a_caption_that_lacks_something_has_no_score_and_says_what():
    """Captions are named for what each lacks. Those without a score are counted, and never as 0."""
    captions = [
        caption("nothing", "a man", image="of a shoe"),
        caption("a prior", "a woman", image="of a shoe"),
        caption("an object", "a man", image="of nothing"),
        caption("a similarity", "one man", image="of a shoe"),
        caption("a confidence", "a man", image="of a shoe at 1.2"),
    ]
    objects = {
        "of a shoe": (Detected("shoe", confidence=0.2),),
        "of a shoe at 1.2": (Detected("shoe", confidence=1.2),),
    }
    sims = {"a man": 0.5}
    priors = {"a man": 0.2, "one man": 0.2}
    known = Scorer(priors, lambda text, label: sims.get(text, f"no {text!r}, {label!r}"))

    report = audit_gender_score(captions, objects, known)

    of_nothing, *incomplete = records(report.data)
    assert of_nothing["left_out"] is None
    words = {"a prior": "a woman", "an object": "image of nothing"}
    words |= {"a similarity": "one man", "a confidence": "shoe"}
    assert {row["caption_id"] for row in incomplete} == words.keys()
    for row in incomplete:
        assert words[row["caption_id"]] in row["left_out"]
        assert row["gs"] is None
    summary = report.record["summary"]
    assert summary["n_left_out"] == 4
    assert summary["by_gender"]["woman"]["mean"] is None


def test_estimation_leaves_out_captions_of_both_genders_or_none():
    captions = [caption("c1", "a man"), caption("c2", "a man and a woman"), caption("c3", "a dog")]
    sims = {"a man": 0.5, "a woman": 0.4}
    results = audit_gender_score(captions, {"i": (Detected("x", confidence=0.2),)}, scorer(sims), mode="ge")
    assert [bool(row["left_out"]) for row in records(results.data)] == [False, True, True]
    assert results.record["summary"]["genders_named"] == {"man": 1, "man and woman": 1, "none": 1}


def test_nothing_to_score_is_an_error_with_the_first_reason():
    with pytest.raises(AuditError, match="c: image i"):
        audit_gender_score([caption("c", "a man")], {}, scorer({"a man": 0.5}))


def test_similarities_come_from_a_text_store_or_there_is_the_reason_why_not(tmp_path, save_vectors):
    path = save_vectors(
        tmp_path / "texts", ["t1", "t2", "t3"], [[1, 0], [3, 4], [0, 2]], failed={"t3": "too long"}
    )
    similarity = embedded_similarity(read_embeddings(path), {"a man": "t1", "shoe": "t2", "sock": "t3"})
    assert similarity("a man", "shoe") == pytest.approx(0.6)  # the cosine of (1, 0) and (3, 4)
    assert "hat" in similarity("a man", "hat")  # a text without an id
    assert "t3" in similarity("a man", "sock")


def test_the_texts_that_need_embeddings_are_listed_once():
    captions = [caption("c1", "a man"), caption("c2", "a woman"), caption("c3", "a dog")]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]
    each = needed_texts(captions, objects, "gs", "each")
    assert each == ["a man", "a woman", "a dog", "shoe", "sock"]
    as_one = needed_texts(captions, objects, "ge", "joined")
    assert as_one == ["a man", "a woman", "shoe sock"]


def audit_of_one_caption(*, mode, captioner):
    """Audit the one caption "a man" of a captioner: "gs" scores it as it is, "ge" estimates its gender."""
    objects = {"i": (Detected("x", confidence=0.2),)}
    similarities = scorer({"a man": 0.1, "a woman": 0.2})
    return audit_gender_score([caption("c", "a man")], objects, similarities, mode=mode, model=captioner)


def test_an_estimation_has_the_published_totals_of_its_captioner_beside_its_own():
    """For the captioner Vilbert the paper prints Gender Scores of 526 for man and of 161 for woman."""
    summary = audit_of_one_caption(mode="ge", captioner="Vilbert").record["summary"]

    assert summary["by_gender"]["man"]["published"] == 526
    assert summary["to_man_by_published"] == 526 / (526 + 161)


@pytest.mark.parametrize(
    ("mode", "captioner"),
    [
        pytest.param("ge", "GPT", id="an estimation for a captioner that the paper lacks"),
        pytest.param("gs", "Vilbert", id="scores without an estimation"),
    ],
)
def test_totals_that_the_paper_does_not_print_cannot_be_asked_for(mode, captioner):
    """The paper prints totals of its own captioners alone, such as Vilbert, and only by estimation ("ge")."""
    with pytest.raises(AuditError):
        audit_of_one_caption(mode=mode, captioner=captioner)
