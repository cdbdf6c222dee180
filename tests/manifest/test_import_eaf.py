"""What people wrote in ELAN becomes clips; what a model wrote never does."""

import re

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import import_spans
from obygaze_film.exchange import export
from tests.film.page.invented import fake_scored_film
from tests.manifest.spans.files import alignable_annotation, eaf, ref_annotation, tier


@pytest.fixture(scope="module")
def untouched_export():
    """The text of a document of ELAN: 8 tiers of a model's scores of a film, and empty tiers for people."""
    return export(fake_scored_film(n_rows=40, duration_s=600.0), "eaf")


EMPTY_LEVEL_TIER = '<TIER TIER_ID="human: level" LINGUISTIC_TYPE_REF="level" />'
EMPTY_CONCEPTS_TIER = (
    '<TIER TIER_ID="human: concepts" LINGUISTIC_TYPE_REF="concepts" PARENT_REF="human: level" />'
)


def with_annotations_of_ab(export_text, levels=(), concepts=()):
    """Write levels and concepts of the annotator AB on the empty tiers for people of an export, as ELAN does.

    The levels last from 1.5 to 2.75 s, 11.5 to 12.75 s, and so on; the first of the concepts refers to the
    first of them, the second to the second.
    """
    text = export_text
    slots = ""
    levels_of_tier = ""
    for n, level in enumerate(levels):
        start, end = f"start{n}", f"end{n}"
        slots += f'<TIME_SLOT TIME_SLOT_ID="{start}" TIME_VALUE="{10_000 * n + 1500}"/>'
        slots += f'<TIME_SLOT TIME_SLOT_ID="{end}" TIME_VALUE="{10_000 * n + 2750}"/>'
        levels_of_tier += alignable_annotation(f"level{n}", start, end, level)
    concepts_of_tier = ""
    for n, names in enumerate(concepts):
        concepts_of_tier += ref_annotation(f"concepts{n}", f"level{n}", names)
    changes = {
        "</TIME_ORDER>": f"{slots}</TIME_ORDER>",
        EMPTY_LEVEL_TIER: EMPTY_LEVEL_TIER.replace(" />", f' ANNOTATOR="AB">{levels_of_tier}</TIER>'),
        EMPTY_CONCEPTS_TIER: EMPTY_CONCEPTS_TIER.replace(" />", f' ANNOTATOR="AB">{concepts_of_tier}</TIER>'),
    }
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    return text


def test_an_untouched_export_gives_no_clips(tmp_path, untouched_export):
    """The model's 8 tiers are no annotations of people. They are left out and counted."""
    path = tmp_path / "film.eaf"
    path.write_text(untouched_export, encoding="utf-8")

    imported = import_spans([path], tmp_path)

    assert len(imported.manifest) == 0
    assert any("left out 8 tiers" in notice for notice in imported.notices)


@pytest.mark.parametrize("tag", ["ANNOTATION", "ALIGNABLE_ANNOTATION"])
def test_unknown_elements_are_counted_as_left_out(tmp_path, untouched_export, tag):
    """An element that ELAN does not define, here REMARK, may hold something important, so it is listed.

    It stands in place of one of the two elements that enclose an annotation, the level S.
    """
    text = with_annotations_of_ab(untouched_export, levels=["S", "HN"])
    annotation = alignable_annotation("level0", "start0", "end0", "S")
    assert annotation in text
    with_remark = re.sub(rf"(</?){tag}\b", r"\1REMARK", annotation)
    path = tmp_path / "film.eaf"
    path.write_text(text.replace(annotation, with_remark), encoding="utf-8")

    (account,) = import_spans([path], tmp_path).accounts

    assert any("REMARK" in place for place, _ in account.left_out)


@pytest.fixture
def imported_annotations(tmp_path, untouched_export):
    """The import of an export on which AB wrote three levels and two concepts, the last of each empty."""
    text = with_annotations_of_ab(untouched_export, levels=["S", "HN", ""], concepts=["Body; Look", ""])
    path = tmp_path / "film.eaf"
    path.write_text(text, encoding="utf-8")
    return import_spans([path], tmp_path)


def test_levels_and_concepts_on_the_tiers_for_people_become_clips(imported_annotations):
    """AB gave S from 1.5 to 2.75 s, with the concepts Body and Look, and HN from 11.5 to 12.75 s."""
    first, second = imported_annotations.manifest.clips

    assert (first.start_s, first.end_s, first.level, first.concepts) == (1.5, 2.75, "S", ("Look", "Body"))
    assert (second.start_s, second.end_s, second.level, second.concepts) == (11.5, 12.75, "HN", ())
    for clip in (first, second):
        assert clip.movie == "tt0000042"
        assert clip.annotator == "AB"


def test_annotations_beside_a_models_tiers_were_made_with_the_score_in_sight(imported_annotations):
    """AB wrote into an export of a film that a model scored, which has the model's tiers."""
    for clip in imported_annotations.manifest:
        assert clip.extras["seen_score"] == "1"


def test_annotations_without_a_text_are_left_out_and_counted(imported_annotations):
    """AB wrote three levels and two concepts, and left the last of each empty: 5 seen, 3 used."""
    (account,) = imported_annotations.accounts

    assert (account.seen, account.used) == (5, 3)
    assert [reason for _, reason in account.left_out] == ["no text", "no text"]


@pytest.fixture
def document_of_lea(tmp_path):
    """The path of a document of ELAN with the level "sure" and the concept "body", on tiers of Léa D.

    It has no tiers of a model, and does not say which film it is of.
    """
    level = tier("human: level@Léa D.", alignable_annotation("level", "t1", "t2", "sure"))
    concepts = tier("human: concepts@Léa D.", alignable_annotation("concepts", "t1", "t2", "body"))
    path = tmp_path / "own.eaf"
    path.write_text(eaf({"t1": 0, "t2": 500}, level + concepts), encoding="utf-8")
    return path


def test_annotators_may_be_named_in_tiers(document_of_lea, tmp_path):
    """A document of ELAN has the tiers "human: level@Léa D." and "human: concepts@Léa D.", of Léa D.

    On them stand "sure", the title of S, and "body", which is the concept Body.
    """
    (clip,) = import_spans([document_of_lea], tmp_path, movie="tt1").manifest.clips

    assert (clip.clip_id, clip.annotator) == ("tt1-Lea-D-0001", "Léa D.")
    assert (clip.level, clip.concepts) == ("S", ("Body",))


def test_labels_of_a_document_without_a_model_are_not_called_blind(document_of_lea, tmp_path):
    """A document of ELAN has labels of Léa D., and no scores of a model.

    She may have seen a model's score on a page, so that nothing is known: the column seen_score is not
    filled.
    """
    (clip,) = import_spans([document_of_lea], tmp_path, movie="tt1").manifest

    assert clip.level == "S"
    assert "seen_score" not in clip.extras


def test_labels_on_a_tier_of_praat_say_as_little_of_a_score_as_those_on_a_tier_of_elan(
    document_of_lea, tmp_path
):
    """Léa D. gave the level "sure", from 0 to .5 s, in a document of ELAN and in a TextGrid of Praat.

    Neither says whether she saw a model's score. Both labels become clips with the same further columns.
    """
    textgrid = tmp_path / "tt1.TextGrid"
    textgrid.write_text(
        'File type = "ooTextFile"\nObject class = "TextGrid"\n0\n1\n<exists>\n1\n'
        '"IntervalTier"\n"human: level@Léa D."\n0\n1\n1\n0\n0.5\n"sure"\n',
        encoding="utf-8",
    )

    (in_elan,) = import_spans([document_of_lea], tmp_path, movie="tt1").manifest
    (in_praat,) = import_spans([textgrid], tmp_path).manifest

    assert in_elan.extras == in_praat.extras


def test_labels_on_tiers_of_elan_whose_names_say_blind_are_blind(document_of_lea, tmp_path):
    """The tiers of Léa D. are renamed to "human: level, blind@Léa D." and "human: concepts, blind@Léa D."."""
    text = document_of_lea.read_text(encoding="utf-8")
    text = text.replace("human: level@", "human: level, blind@")
    text = text.replace("human: concepts@", "human: concepts, blind@")
    blind_document = tmp_path / "blind.eaf"
    blind_document.write_text(text, encoding="utf-8")

    (clip,) = import_spans([blind_document], tmp_path, movie="tt1").manifest

    assert clip.extras["seen_score"] == "0"


def test_a_document_that_does_not_name_its_film_is_refused_unless_the_user_does(document_of_lea, tmp_path):
    """A document of ELAN, own.eaf, has a level and a concept of Léa D., and does not say of which film.

    The user does not say it either.
    """
    with pytest.raises(ManifestError, match=r"own.eaf"):
        import_spans([document_of_lea], tmp_path)


def with_a_level_that_is_none(text):
    """Have AB give the level "Sur", which the codebook doesn't have."""
    return with_annotations_of_ab(text, levels=["Sur"])


def with_a_concept_that_is_none(text):
    """Have AB mark the concept "Bodi", which the codebook doesn't have."""
    return with_annotations_of_ab(text, levels=["S", "HN"], concepts=["Bodi"])


def without_the_annotator(text):
    """Let the tiers of AB's levels name no annotator."""
    return with_annotations_of_ab(text, levels=["S", "HN"]).replace('ANNOTATOR="AB"', "")


def without_the_end_of_the_first_level(text):
    """Take the time from the slot, at 2.75 s, where AB's first level ends."""
    return with_annotations_of_ab(text, levels=["S", "HN"]).replace('TIME_VALUE="2750"', "")


def no_document_of_elan(_):
    return "<a/>"


def with_a_document_type(text):
    """Put a document type with an entity before the document, as XML allows and attackers use."""
    return text.replace("<ANN", "<!DOCTYPE a [<!ENTITY b 'c'>]><ANN", 1)


def in_frames_of_pal(text):
    """Say that all times of the document are frames, 25 a second, and not milliseconds."""
    return text.replace('TIME_UNITS="milliseconds"', 'TIME_UNITS="PAL-frames"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_a_level_that_is_none, r"film.eaf"),
        (with_a_concept_that_is_none, "'Bodi'"),
        (without_the_annotator, "nobody's"),
        (without_the_end_of_the_first_level, "it has no time"),
        (no_document_of_elan, "film.eaf: .*root is 'a'"),
        (with_a_document_type, "document type"),
        (in_frames_of_pal, "PAL-frames"),
    ],
)
def test_a_document_that_cannot_be_read_is_refused_with_the_reason(
    tmp_path, untouched_export, change, message
):
    """A film that a model scored was exported as a document of ELAN. People annotate it, and it is imported.

    Here the levels S and HN of AB were written on it with a mistake, or it was damaged otherwise: `change`
    says what is wrong.
    """
    document = tmp_path / "film.eaf"
    document.write_text(change(untouched_export), encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        import_spans([document], tmp_path, kind="eaf")


@pytest.mark.parametrize(
    ("headings", "row"),
    [
        pytest.param(
            "clip_id,movie,start_s,end_s,level,annotator",
            "tt1-Lea-D-0001,tt1,7,9,EN,Léa D.",
            id="a manifest that does not say whether a score was seen",
        ),
        pytest.param(
            "clip_id,movie,start_s,end_s,level,annotator,seen_score",
            "tt1-Lea-D-0001,tt1,7,9,EN,Léa D.,1",
            id="a manifest of labels in sight of a score",
        ),
    ],
)
def test_clips_of_a_document_of_elan_get_ids_that_no_manifest_imported_with_it_has(
    document_of_lea, tmp_path, headings, row
):
    """Clips of a document get ids by their film, annotator and number: the first would be tt1-Lea-D-0001.

    A manifest of an earlier import, which is imported beside the document, has that id for a clip from 7 to
    9 s. So the clip of the document, from 0 to .5 s, becomes tt1-Lea-D-0002.
    """
    earlier_manifest = tmp_path / "earlier.csv"
    earlier_manifest.write_text(f"{headings}\n{row}\n", encoding="utf-8")

    clips = import_spans([document_of_lea, earlier_manifest], tmp_path, movie="tt1").manifest

    id_of_level = {clip.level: clip.clip_id for clip in clips}
    assert id_of_level == {"EN": "tt1-Lea-D-0001", "S": "tt1-Lea-D-0002"}
