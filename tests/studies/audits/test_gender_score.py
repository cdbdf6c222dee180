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


def score_of_case(case):
    """Compute the score of a case of the oracle from its prior, similarity and confidence."""
    return revise(prior=case["lm"], similarity=case["sim"], confidence=case["p_c"])


def test_gender_scores_of_published_examples_are_those_of_the_authors_code_to_the_last_bit(oracle):
    """A Gender Score is the belief in a caption, revised by an object that is seen in its picture.

    The oracle has what the authors' code gave; at the edges of what is allowed, rounding may differ.
    """
    for case in oracle["gender_score"]["exact_cases"]:
        assert score_of_case(case) == case["gs"], case["name"]
    for case in oracle["gender_score"]["edge_cases"]:
        assert score_of_case(case) == pytest.approx(case["gs"], rel=1e-12)


def test_the_share_of_a_genders_score_in_those_of_both_is_the_published_ratio(oracle):
    """The paper prints the summed scores of man and of woman, and each one's percentage of both."""
    published = oracle["gender_score"]["ratio"]
    man = published["man"]
    woman = published["woman"]

    assert 100 * share(man, woman) == pytest.approx(published["to_m_percent"], rel=1e-12)
    assert 100 * share(woman, man) == pytest.approx(published["to_w_percent"], rel=1e-12)


def test_a_share_of_nothing_is_unknown():
    """If both numbers are 0, neither has a part of their sum."""
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
    """The published similarities, from which scores are computed, have nine digits."""
    report = audit_rows(karpathy_captions)

    for row, result in zip(karpathy_captions, records(report.data), strict=True):
        published = float(row["belief_revision_published"])
        assert result["gs"] == pytest.approx(published, rel=1e-6)


def test_the_genders_that_800_captions_name_are_those_counted_by_hand(karpathy_captions):
    """By hand, 112 captions name a man, of which 9 name a woman too."""
    report = audit_rows(karpathy_captions)

    n_naming = report.record["summary"]["genders_named"]
    assert n_naming["man and woman"] == 9
    assert n_naming["man"] + n_naming["man and woman"] == 112


def test_a_note_says_of_how_many_objects_the_most_frequent_are_shown(karpathy_captions):
    """The report of 800 captions shows some objects, and its record has all of them."""
    report = audit_rows(karpathy_captions)

    n_objects = len(report.record["summary"]["by_object"])
    notes = [note for block in report.blocks for note in block.notes]
    assert any(note.endswith(f"most frequent of {n_objects} objects") for note in notes)


def test_mean_similarities_and_scores_of_an_object_are_near_those_of_the_poster(karpathy_captions):
    """The poster has, of 5,000 captions, similarities of .44 (man) and .46 (woman), and scores of .45.

    We have 800 of these captions, in whose pictures a tennis ball is seen six times.
    """
    report = audit_rows(karpathy_captions, names=["tennis ball"])

    (ball,) = report.record["summary"]["by_object"]
    assert ball["n_captions"] == 6
    assert (ball["distance_man"], ball["distance_woman"]) == pytest.approx((0.44, 0.50), abs=0.005)
    assert (ball["gs_man"], ball["gs_woman"]) == pytest.approx((0.47, 0.39), abs=0.005)


def test_objects_without_captions_of_women_or_of_anybody_have_no_score_of_them(karpathy_captions):
    """Of the 800 captions, those with a motorcycle name only men, and none has a skateboard."""
    report = audit_rows(karpathy_captions, names=["motorcycle", "skateboard"])

    of_object = {row["object"]: row for row in report.record["summary"]["by_object"]}
    assert of_object["motorcycle"]["to_man"] == 1
    assert of_object["motorcycle"]["gs_woman"] is None
    assert of_object["skateboard"]["n_captions"] == 0


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
    """A caption "a man rides" is of a motorcycle, and one of somebody masked of a kitchen and a table.

    With "man" put in, the first is more similar to its object (.5) than with "woman" (.3), so that its gender
    is estimated rightly; of somebody masked nothing is right or wrong. The poster has .84 and .15 for
    motorcycles.
    """
    by_object = {row["object"]: row for row in estimated_genders.record["summary"]["by_object"]}

    assert list(by_object) == ["kitchen", "motorcycle", "table"]
    ride = by_object["motorcycle"]
    score_of_man = revise(prior=0.2, similarity=0.5, confidence=0.5)
    score_of_woman = revise(prior=0.2, similarity=0.3, confidence=0.5)
    assert (ride["distance_man"], ride["distance_woman"]) == (0.5, 0.3)
    assert (ride["gs_man"], ride["gs_woman"]) == pytest.approx((score_of_man, score_of_woman))
    assert ride["to_man"] == pytest.approx(score_of_man / (score_of_man + score_of_woman))
    assert (ride["n_correct_man"], ride["n_correct_woman"], ride["to_man_by_n_correct"]) == (1, 0, 1)
    assert (ride["published_to_man"], ride["published_to_woman"]) == (0.84, 0.15)
    kitchen = by_object["kitchen"]
    assert (kitchen["n_correct_man"], kitchen["n_correct_woman"]) == (0, 0)


def test_a_caption_without_any_score_estimates_no_gender_by_object_either():
    """The caption is so improbable, and so far from the object, that both scores round to 0.

    That is no tie: the caption's row names no gender.
    """
    sims = {"a man rides": -0.9, "a woman rides": -0.95}
    objects = {"x": (Detected("motorcycle", confidence=0.01),)}
    captions = [caption("1", "a man rides", "x")]

    report = audit_gender_score(captions, objects, scorer(sims, prior=1e-30), mode="ge")

    assert report.data["predicted"].tolist() == [None]
    (ride,) = report.record["summary"]["by_object"]
    assert (ride["gs_man"], ride["gs_woman"]) == (0, 0)
    assert (ride["n_correct_man"], ride["n_correct_woman"]) == (0, 0)


def test_examples_show_the_gender_that_was_estimated(estimated_genders):
    """One caption has a man on a motorcycle; in another somebody masked cooks, with a kitchen and a table.

    Scores take the second for a woman, by each of its two objects.
    """
    examples = []
    for _text, gender, label, *_numbers in rows_titled(estimated_genders, "Examples"):
        examples.append((gender, label))

    assert examples == [("man", "motorcycle"), ("woman", "kitchen"), ("woman", "table")]


def test_examples_of_the_poster_are_shown_too(estimated_genders):
    """Its first example has similarities of .44 with man and .46 with woman, and both scores are .45."""
    title = "Examples of the poster, whose captioner it does not name"

    first, *_others = rows_titled(estimated_genders, title)

    _text, _object, *numbers = first
    assert numbers == ["0.44", "0.46", "0.45", "0.45"]


def test_the_posters_ratios_by_object_are_those_of_its_tables(shared_data):
    """The tables have a ratio to man and one to woman, for each captioner, object and method.

    A second copy of them, a CSV file, has the same numbers as ours.
    """
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
    """One of three good numbers, .2, .5 and .5, is replaced.

    A prior is a probability above 0, a similarity a cosine above -1, and a confidence a probability.
    """
    with pytest.raises(AuditError, match=message):
        revise(prior, similarity, confidence)


def test_a_caption_names_the_genders_that_are_whole_words_of_it():
    """Neither salesman nor women is the word man or the word woman."""
    assert genders_named("A man, and a woman.") == ("man", "woman")
    assert genders_named("a salesman and women") == ()


def test_the_other_gender_is_put_in_for_whole_words_and_keeps_commas():
    """Mankind has the letters of man, and is another word."""
    assert with_gender("A man, a Man. mankind", "woman") == "A woman, a woman. mankind"


def test_where_a_caption_has_masks_a_gender_is_put_in_for_these_alone():
    """A mask stands for a word that is to be estimated, here two of them; the man who is named stays one."""
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
    """A classifier's table and a detector's have other names for the image, the object and the confidence.

    A shoe is found three times in image i, and kept with its largest confidence.
    """
    of_classifier = tmp_path / "clip.csv"
    of_classifier.write_text("image_id,object,p_c\ni,shoe,0.2\nj,car,0.5\n")
    of_detector = tmp_path / "rcnn.csv"
    of_detector.write_text("image,x0,class,score\ni,1,shoe,0.9\ni,2,shoe,0.4\ni,3,sock,0.6\n")

    rows = read_objects((of_classifier, of_detector))

    assert objects_by_image(rows) == {
        "i": (Detected("shoe", confidence=0.9), Detected("sock", confidence=0.6)),
        "j": (Detected("car", confidence=0.5),),
    }


def test_a_table_without_a_column_of_objects_is_refused(tmp_path):
    """No tool calls the column of objects "thing"."""
    table = tmp_path / "bad.csv"
    table.write_text("image,thing,score\ni,shoe,0.9\n")

    with pytest.raises(AuditError, match="no column object, nor one of label"):
        read_objects((table,))


def score_of_shoe_and_sock(**options):
    """Score a caption of prior .2, in whose image a shoe (.2) and a sock (.6) are detected."""
    objects = (Detected("shoe", confidence=0.2), Detected("sock", confidence=0.6))
    similarity_of = {"shoe": 0.5, "sock": 0.1, "shoe sock": 0.4}
    scorer = Scorer({"a man": 0.2}, lambda _, label: similarity_of[label])
    (row,) = records(audit_gender_score([caption("c", "a man")], {"i": objects}, scorer, **options).data)
    return row


def test_the_score_of_a_caption_with_two_objects_is_the_mean_of_its_scores_by_each():
    """A shoe and a sock are seen with confidences of .2 and .6.

    The caption's similarity to them is .5 and .1, and its prior .2.
    """
    row = score_of_shoe_and_sock()

    by_shoe = revise(prior=0.2, similarity=0.5, confidence=0.2)
    by_sock = revise(prior=0.2, similarity=0.1, confidence=0.6)
    assert row["gs"] == pytest.approx((by_shoe + by_sock) / 2)


def test_objects_may_be_joined_to_one_of_both_labels_and_of_their_mean_confidence():
    """A shoe and a sock are seen with confidences of .2 and .6.

    The caption's similarity to "shoe sock" is .4, and its prior .2.
    """
    row = score_of_shoe_and_sock(labels="joined")

    assert row["objects"] == "shoe sock"
    mean_confidence = (0.2 + 0.6) / 2
    assert row["gs"] == pytest.approx(revise(prior=0.2, similarity=0.4, confidence=mean_confidence))


def test_no_objects_joined_are_none():
    """An image may have no object."""
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
    """To estimate ("ge") is to ask whether a caption with "man" or with "woman" fits the picture better.

    Of three captions only the first has one gender that could be replaced; each has the same object.
    """
    captions = [caption("c1", "a man"), caption("c2", "a man and a woman"), caption("c3", "a dog")]
    objects = {"i": (Detected("x", confidence=0.2),)}
    similarities = scorer({"a man": 0.5, "a woman": 0.4})

    report = audit_gender_score(captions, objects, similarities, mode="ge")

    assert [bool(row["left_out"]) for row in records(report.data)] == [False, True, True]
    assert report.record["summary"]["genders_named"] == {"man": 1, "man and woman": 1, "none": 1}


def test_nothing_to_score_is_an_error_with_the_first_reason():
    """The only caption, c, is of image i, in which no object was found."""
    no_objects = {}

    with pytest.raises(AuditError, match="c: image i"):
        audit_gender_score([caption("c", "a man")], no_objects, scorer({"a man": 0.5}))


def test_similarities_come_from_a_text_store_or_there_is_the_reason_why_not(tmp_path, save_vectors):
    """A similarity is a cosine: of (1, 0) and (3, 4) it is 3 / 5.

    "hat" is no text of the store, and the embedding of "sock", t3, failed.
    """
    path = save_vectors(
        tmp_path / "texts", ["t1", "t2", "t3"], [[1, 0], [3, 4], [0, 2]], failed={"t3": "too long"}
    )
    similarity = embedded_similarity(read_embeddings(path), {"a man": "t1", "shoe": "t2", "sock": "t3"})

    assert similarity("a man", "shoe") == pytest.approx(0.6)
    assert "hat" in similarity("a man", "hat")
    assert "t3" in similarity("a man", "sock")


def test_the_texts_that_need_embeddings_are_listed_once():
    """To score captions as they are ("gs"), each caption and each object's label needs one."""
    captions = [caption("c1", "a man"), caption("c2", "a woman"), caption("c3", "a dog")]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]

    texts = needed_texts(captions, objects, mode="gs", labels="each")

    assert texts == ["a man", "a woman", "a dog", "shoe", "sock"]


def test_texts_of_an_estimation_are_of_both_genders_and_of_joined_labels():
    """To estimate ("ge"), each caption that names a gender needs both, which are here the same two texts."""
    captions = [caption("c1", "a man"), caption("c2", "a woman"), caption("c3", "a dog")]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]

    texts = needed_texts(captions, objects, mode="ge", labels="joined")

    assert texts == ["a man", "a woman", "shoe sock"]


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
