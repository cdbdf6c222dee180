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
    """Make a row of a table of captions, of one image if no other is named."""
    return {"caption_id": name, "image_id": image, "caption": text}


def scorer(sims, prior=0.2):
    """Every text has the prior; similarities by text."""
    return Scorer(dict.fromkeys(sims, prior), lambda text, _: sims[text])


def score_of_case(case):
    """Compute the score of a case of the oracle from its prior, similarity and confidence."""
    return revise(prior=case["lm"], similarity=case["sim"], confidence=case["p_c"])


def test_gender_scores_of_published_examples_are_those_of_the_authors_code_to_the_last_bit(oracle):
    """A score is computed from the caption's prior, its similarity to an object, and the object's confidence.

    Those of edge cases, such as a confidence of 1, may differ in the last digits.
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
    """Audit the Gender Scores of captions by rows of the published table.

    A row has a caption, its prior (`lm_mean`), the one object that is seen in its image (`visual_context`)
    with the confidence `p_c`, and the similarity of both (`sim_recovered`).
    """
    captions = []
    objects = {}
    priors = {}
    similarity_of_pair = {}
    for row in rows:
        image = row["row"]
        text = row["caption"]
        label = row["visual_context"]
        captions.append(caption(row["row"], text, image))
        objects[image] = (Detected(label, confidence=float(row["p_c"])),)
        priors[text] = float(row["lm_mean"])
        similarity_of_pair[text, label] = float(row["sim_recovered"])
    scorer_of_table = Scorer(priors, lambda text, label: similarity_of_pair[text, label])
    return audit_gender_score(captions, objects, scorer_of_table, **options)


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


def test_an_object_has_the_mean_similarity_and_score_of_its_captions_of_men_and_of_women(karpathy_captions):
    """A tennis ball is seen in the pictures of six of the 800 captions, some of men, some of women.

    Means of so few are only roughly those of the Gender Score's poster, of 5,000 captions: similarities, in
    the columns `distance`, of .44 (man) and .46 (woman), and scores of .45.
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
    """The genders of "a man rides" (motorcycle) and of "a [MASK] cooks" (kitchen, table) are estimated.

    A caption is estimated to be of the gender whose word makes it more similar to its objects: riding is more
    similar with "man" (.5 against .3), cooking with "woman" (.6 against .2).
    """
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


@pytest.fixture(scope="module")
def summary_of_objects(estimated_genders):
    """What the estimation has of each object, summed up over the captions of its images."""
    return {row["object"]: row for row in estimated_genders.record["summary"]["by_object"]}


def test_an_estimation_has_scores_of_both_genders_for_each_object(summary_of_objects):
    """A caption "a man rides" is of a motorcycle, of the confidence .5; the prior of all captions is .2.

    With "man" put in, the caption has a similarity of .5 to its object, with "woman" of .3. The ratio to man
    is the part of the former score in both. Another caption is of a kitchen and a table.
    """
    score_of_man = revise(prior=0.2, similarity=0.5, confidence=0.5)
    score_of_woman = revise(prior=0.2, similarity=0.3, confidence=0.5)

    assert list(summary_of_objects) == ["kitchen", "motorcycle", "table"]
    motorcycle = summary_of_objects["motorcycle"]
    assert motorcycle["distance_man"] == 0.5
    assert motorcycle["distance_woman"] == 0.3
    assert motorcycle["gs_man"] == pytest.approx(score_of_man)
    assert motorcycle["gs_woman"] == pytest.approx(score_of_woman)
    assert motorcycle["to_man"] == pytest.approx(score_of_man / (score_of_man + score_of_woman))


def test_an_estimation_counts_for_each_object_the_captions_whose_gender_it_found(summary_of_objects):
    """The caption "a man rides", of a motorcycle, is rightly estimated to be of a man.

    The caption "a [MASK] cooks", of a kitchen, names no gender, so that none is right or wrong. The ratio to
    man by counts is the part of the right captions of men in those of both genders: 1 of 1 + 0.
    """
    motorcycle = summary_of_objects["motorcycle"]
    assert motorcycle["n_correct_man"] == 1
    assert motorcycle["n_correct_woman"] == 0
    assert motorcycle["to_man_by_n_correct"] == 1

    kitchen = summary_of_objects["kitchen"]
    assert kitchen["n_correct_man"] == 0
    assert kitchen["n_correct_woman"] == 0


def test_an_estimation_has_the_published_ratios_of_an_object_beside_its_own(summary_of_objects):
    """The Gender Score's poster has ratios of objects: of a motorcycle .84 to man and .15 to woman.

    They are of the captioner Vilbert, which the estimation names.
    """
    motorcycle = summary_of_objects["motorcycle"]

    assert motorcycle["published_to_man"] == 0.84
    assert motorcycle["published_to_woman"] == 0.15


def test_a_caption_whose_scores_are_both_0_counts_as_no_estimated_gender():
    """A caption "a man rides" is so improbable (1e-30), and so unlike its object, that its scores round to 0.

    They are equal, but this is no tie, which would go to man: the caption's row names no gender, and the
    motorcycle of its image has no correct one.
    """
    similarity_of_text = {"a man rides": -0.9, "a woman rides": -0.95}
    objects = {"x": (Detected("motorcycle", confidence=0.01),)}
    captions = [caption("1", "a man rides", image="x")]

    report = audit_gender_score(captions, objects, scorer(similarity_of_text, prior=1e-30), mode="ge")

    assert report.data["predicted"].tolist() == [None]
    (motorcycle,) = report.record["summary"]["by_object"]
    assert motorcycle["gs_man"] == 0
    assert motorcycle["gs_woman"] == 0
    assert motorcycle["n_correct_man"] == 0
    assert motorcycle["n_correct_woman"] == 0


def test_examples_show_the_gender_that_was_estimated(estimated_genders):
    """One caption has a man on a motorcycle; in another somebody masked cooks, with a kitchen and a table.

    Scores take the second for a woman, by each of its two objects.
    """
    examples = []
    for _text, gender, label, *_numbers in rows_titled(estimated_genders, "Examples"):
        examples.append((gender, label))

    assert examples == [("man", "motorcycle"), ("woman", "kitchen"), ("woman", "table")]


def test_an_estimation_shows_the_examples_that_the_poster_prints(estimated_genders):
    """The Gender Score's poster has examples without the name of their captioner, in a table of their own.

    For its first example the poster prints a similarity to the object of .44 with "man" in the caption and
    of .46 with "woman", and a score of .45 with either word.
    """
    rows = rows_titled(estimated_genders, "Examples of the poster, whose captioner it does not name")

    _text, _object, similarity_man, similarity_woman, score_man, score_woman = rows[0]
    assert (similarity_man, similarity_woman) == ("0.44", "0.46")
    assert (score_man, score_woman) == ("0.45", "0.45")


def test_the_posters_ratios_by_object_are_those_of_its_tables(shared_data):
    """The package has numbers of the Gender Score's poster (`TOTALS`), and so has a table copied from it.

    They are ratios to man and to woman, by captioner, method and object; a method is scores or counts.
    """
    for printed in rows_of(shared_data / "audits/paper_tables/genderscore_poster_objects.csv"):
        ours = TOTALS[printed["model"]]
        method = "score" if printed["method"] == "Gender Score" else "object"

        assert ours[f"{method}_to_man"][printed["object"]] == float(printed["to_m"])
        assert ours[f"{method}_to_woman"][printed["object"]] == float(printed["to_w"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", 0.0),
        ("prior", 1.5),
        ("prior", math.nan),
        ("similarity", -1.0),
        ("similarity", 1.1),
        ("similarity", math.nan),
        ("confidence", -0.1),
        ("confidence", 1.1),
    ],
)
def test_a_prior_similarity_or_confidence_out_of_range_is_refused(name, value):
    """A prior is a probability above 0, a confidence one from 0 on, and a similarity a cosine above -1.

    One of them is out of its range, and the two others are in theirs.
    """
    arguments = {"prior": 0.2, "similarity": 0.5, "confidence": 0.5}
    arguments[name] = value

    with pytest.raises(AuditError, match=name):
        revise(**arguments)


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
    """Each caption is scored with "man" and with "woman" put in, by its similarity to the image's object.

    That of a man is higher in the first caption and in the third, which is of a woman. The second one is
    masked and as similar with either word: a tie goes to man, and is neither right nor wrong.
    """
    captions = [caption("c1", "a man runs"), caption("c2", "a <MASK> sits"), caption("c3", "a woman naps")]
    similarities = {
        "a man runs": 0.5,
        "a woman runs": 0.1,
        "a man sits": 0.3,
        "a woman sits": 0.3,
        "a man naps": 0.4,
        "a woman naps": 0.2,
    }
    objects = {"i": (Detected("shoe", confidence=0.2),)}

    report = audit_gender_score(captions, objects, scorer(similarities, prior=0.2), mode="ge")

    of_a_man, masked, of_a_woman = records(report.data)
    assert of_a_man["gs_man"] == revise(prior=0.2, similarity=0.5, confidence=0.2)
    assert of_a_man["gs_woman"] == revise(prior=0.2, similarity=0.1, confidence=0.2)
    assert of_a_man["to_man"] == share(of_a_man["gs_man"], of_a_man["gs_woman"])
    assert of_a_man["to_woman"] == 1 - of_a_man["to_man"]
    assert of_a_man["predicted"] == "man"
    assert of_a_man["correct"] is True

    assert masked["gender"] == "masked"
    assert masked["to_man"] == 0.5
    assert masked["predicted"] == "man"
    assert masked["correct"] is None

    assert of_a_woman["predicted"] == "man"
    assert of_a_woman["correct"] is False

    summary = report.record["summary"]
    counts_of_man = summary["by_gender"]["man"]
    counts_of_woman = summary["by_gender"]["woman"]
    assert counts_of_man["n_captions"] == 1  # that name a man
    assert counts_of_man["n_scored"] == 3  # with "man" put in
    assert counts_of_man["n_predicted"] == 3
    assert counts_of_man["n_correct"] == 1
    assert counts_of_woman["n_correct"] == 0
    assert summary["to_man_by_n_correct"] == 1 / (1 + 0)


def test_objects_of_any_classifier_and_detector_are_read_several_at_once(tmp_path):
    """The tables of a classifier and of a detector call their columns otherwise.

    A shoe is found in image i by the classifier, and twice by the detector: the highest confidence counts.
    """
    by_classifier = tmp_path / "clip.csv"
    by_classifier.write_text("image_id,object,p_c\ni,shoe,0.2\nj,car,0.5\n")
    by_detector = tmp_path / "rcnn.csv"
    by_detector.write_text("image,x0,class,score\ni,1,shoe,0.9\ni,2,shoe,0.4\ni,3,sock,0.6\n")

    rows = read_objects((by_classifier, by_detector))

    assert objects_by_image(rows) == {
        "i": (Detected("shoe", confidence=0.9), Detected("sock", confidence=0.6)),
        "j": (Detected("car", confidence=0.5),),
    }


def test_a_table_without_a_column_of_objects_is_refused(tmp_path):
    """The column of objects is called `thing`, which no classifier or detector calls it."""
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


def test_two_objects_of_an_image_may_be_scored_as_one_object_with_both_labels_and_the_mean_confidence():
    """A shoe and a sock are seen with confidences of .2 and .6. Joined, they are one object "shoe sock".

    The caption's similarity to "shoe sock" is .4, and its prior .2, from which `revise` computes its score.
    """
    row = score_of_shoe_and_sock(labels="joined")

    mean_confidence = (0.2 + 0.6) / 2
    score = revise(prior=0.2, similarity=0.4, confidence=mean_confidence)
    assert row["objects"] == "shoe sock"
    assert row["gs"] == pytest.approx(score)


def test_no_objects_joined_are_none():
    """An image may have no object."""
    assert join_objects(()) == ()


def test_a_caption_that_lacks_something_has_no_score_and_says_what():
    """A score needs the caption's prior, an object in its image with a confidence, and their similarity.

    Captions are named for what each lacks. Those without a score are left out and counted, and never as 0.
    """
    captions = [
        caption("lacks nothing", "a man", image="of a shoe"),
        caption("lacks a prior", "a woman", image="of a shoe"),
        caption("lacks an object", "a man", image="of nothing"),
        caption("lacks a similarity", "one man", image="of a shoe"),
        caption("lacks a confidence", "a man", image="of a shoe at 1.2"),
    ]
    objects = {
        "of a shoe": (Detected("shoe", confidence=0.2),),
        "of a shoe at 1.2": (Detected("shoe", confidence=1.2),),
    }
    similarities = {"a man": 0.5}
    priors = {"a man": 0.2, "one man": 0.2}
    scorer_that_lacks_some = Scorer(
        priors, lambda text, label: similarities.get(text, f"no {text!r}, {label!r}")
    )

    report = audit_gender_score(captions, objects, scorer_that_lacks_some)

    complete, *incomplete = records(report.data)
    assert complete["left_out"] is None
    word_of_reason = {
        "lacks a prior": "a woman",
        "lacks an object": "image of nothing",
        "lacks a similarity": "one man",
        "lacks a confidence": "shoe",
    }
    assert {row["caption_id"] for row in incomplete} == word_of_reason.keys()
    for row in incomplete:
        assert word_of_reason[row["caption_id"]] in row["left_out"]
        assert row["gs"] is None

    summary = report.record["summary"]
    assert summary["n_left_out"] == 4
    assert summary["by_gender"]["woman"]["mean"] is None


def test_estimation_leaves_out_captions_of_both_genders_or_none():
    """Estimation puts "man" and "woman" in the place of the one gender that a caption names."""
    captions = [caption("c1", "a man"), caption("c2", "a man and a woman"), caption("c3", "a dog")]
    objects = {"i": (Detected("shoe", confidence=0.2),)}
    similarities = {"a man": 0.5, "a woman": 0.4}

    report = audit_gender_score(captions, objects, scorer(similarities), mode="ge")

    of_one_gender, of_both, of_none = records(report.data)
    assert not of_one_gender["left_out"]
    assert of_both["left_out"]
    assert of_none["left_out"]
    assert report.record["summary"]["genders_named"] == {"man": 1, "man and woman": 1, "none": 1}


def test_nothing_to_score_is_an_error_with_the_first_reason():
    """The only caption, c, is of image i, in which no object was found."""
    no_objects = {}

    with pytest.raises(AuditError, match="c: image i"):
        audit_gender_score([caption("c", "a man")], no_objects, scorer({"a man": 0.5}))


def test_similarities_come_from_a_text_store_or_there_is_the_reason_why_not(tmp_path, save_vectors):
    """In the store "a man" has the vector (1, 0) and "shoe" (3, 4), whose cosine is .6.

    "sock", the text t3, has failed, and "hat" is not in the store.
    """
    vectors = [[1, 0], [3, 4], [0, 2]]
    path = save_vectors(tmp_path / "texts", ["t1", "t2", "t3"], vectors, failed={"t3": "too long"})
    id_of_text = {"a man": "t1", "shoe": "t2", "sock": "t3"}

    similarity = embedded_similarity(read_embeddings(path), id_of_text)

    assert similarity("a man", "shoe") == pytest.approx(0.6)
    assert "hat" in similarity("a man", "hat")
    assert "t3" in similarity("a man", "sock")


def test_scores_need_embeddings_of_all_captions_and_of_each_object():
    """Three captions are of one image, in which a shoe and a sock were found. Scores are the mode "gs"."""
    captions = [caption("c1", "a man"), caption("c2", "a woman"), caption("c3", "a dog")]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]

    assert needed_texts(captions, objects, "gs", "each") == ["a man", "a woman", "a dog", "shoe", "sock"]


def test_estimation_needs_embeddings_of_each_caption_that_names_a_gender_with_man_and_with_woman():
    """Estimation, the mode "ge", puts "man" and "woman" into each caption that names one gender.

    Of the caption "a man jumps" it needs "a woman jumps" too. Both texts of "a man" are those of "a woman",
    and are listed once; "a dog" names no gender. The objects of the image, a shoe and a sock, are joined.
    """
    captions = [
        caption("c1", "a man"),
        caption("c2", "a woman"),
        caption("c3", "a man jumps"),
        caption("c4", "a dog"),
    ]
    objects = [{"image_id": "i", "object": label, "p_c": 0.4} for label in ("shoe", "sock")]

    texts = needed_texts(captions, objects, "ge", "joined")

    assert texts == ["a man", "a woman", "a man jumps", "a woman jumps", "shoe sock"]


def audit_of_one_caption(mode, model):
    """Audit "a man", said to be by a captioner, by Gender Scores ("gs") or by estimation ("ge")."""
    objects = {"i": (Detected("shoe", confidence=0.2),)}
    similarities = {"a man": 0.1, "a woman": 0.2}
    return audit_gender_score([caption("c", "a man")], objects, scorer(similarities), mode=mode, model=model)


def test_an_estimation_of_a_published_captioner_has_its_published_counts():
    """By the poster, 526 captions of the captioner Vilbert are estimated to be of a man, 161 of a woman."""
    summary = audit_of_one_caption(mode="ge", model="Vilbert").record["summary"]

    assert summary["by_gender"]["man"]["published"] == 526
    assert summary["to_man_by_published"] == share(part=526, remainder=161)


@pytest.mark.parametrize(
    ("mode", "model"),
    [("ge", "GPT"), ("gs", "Vilbert")],
    ids=["an estimation of an unpublished captioner", "scores of a published one"],
)
def test_published_counts_of_an_unknown_captioner_or_of_scores_are_refused(mode, model):
    """The poster has counts of estimation ("ge") alone, and of a few captioners, of which GPT is none."""
    with pytest.raises(AuditError):
        audit_of_one_caption(mode=mode, model=model)
