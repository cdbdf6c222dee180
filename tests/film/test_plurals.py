"""One thing is no plural, in either language; and French elides before a name that begins with a vowel."""

import re

import pytest

from obygaze_film.claims import LANGUAGES, Words, phrases
from obygaze_film.claims import kinds as claim_kinds
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.judged_windows import left_out_message
from obygaze_film.notes import counted_message, message

CONTENT = ClaimTime("content")
PLURAL_OF_ONE = re.compile(
    r"(?<![\d.,])1 (more |other |autres? |percentage )?"
    r"(pairs|paires|films|windows|fenêtres|passages|points|clips|extraits|decisions|décisions|lines|lignes"
    r"|répliques|values|valeurs|judgements|jugements)\b"
)


def agreement_of_pair(number, conditions=()):
    """Claim how far two judges, called A and B with a number, agree on their only common window."""
    fields = {"what": "kappa", "time": CONTENT, "number": 0.1, "positive": "S", "n": 1, "alike": 1}
    return claim_kinds.PairKappa(who=(f"A{number}", f"B{number}"), conditions=conditions, **fields)


def agreement_of_three(n_unsure):
    """Claim how far three judges agree on their only common window."""
    return claim_kinds.PanelAgreement(
        who=("A", "B", "C"),
        what="alpha",
        time=CONTENT,
        number=0.1,
        positive="S",
        n_windows=1,
        n_unsure=n_unsure,
    )


BOUNDS = claim_kinds.Bounds(low=0.1, high=0.5, level=0.95)

CLAIMS_OF_ONE = {
    "one common window, one unsure": claim_kinds.JudgedShare(
        who=("A", "B"), what="S", time=CONTENT, number=0.3, interval=BOUNDS,
        conditions=(claim_kinds.BLIND, claim_kinds.SOME_BY_CHANCE),
        model="m", n=1, n_windows=9, positives=(1, 1), worth=None,
        n_unsure=1, unsure_s=8.0, expected=None, expected_s=None,
        agreement=tuple(agreement_of_pair(place, (claim_kinds.AGREE_BY_CHANCE,)) for place in range(4)),
    ),
    "one pair": claim_kinds.ManyPairs(
        who=(),
        what="kappa",
        time=CONTENT,
        number=0.1,
        interval=claim_kinds.Bounds(low=0.1, high=0.1, level=1.0),
        n_pairs=1,
    ),
    "one window of all": agreement_of_three(n_unsure=0),
    "one window that somebody is unsure of": agreement_of_three(n_unsure=1),
    "one window judged, one left": claim_kinds.NoJudgedShare(
        who=("A",), what="share", time=CONTENT, judged=1, sure=0, left=1, least=1
    ),
    "one film": claim_kinds.LearntChange(
        who=("m",), what="AUC", time=CONTENT, number=0.1, n_films=1, is_of_judged=True
    ),
}  # fmt: skip
"""Claims in which something is counted once."""

NOTES_OF_ONE = {
    "films_n": counted_message("films_n", 1),
    "n_decisions": counted_message("n_decisions", 1),
    "n_judgements": counted_message("n_judgements", 1),
    "more_damaged": counted_message("more_damaged", 1, folder="f"),
    "more_clock": counted_message("more_clock", 1, folder="f"),
    "more_twins": counted_message("more_twins", 1, folder="f"),
    "more_nonsense": counted_message("more_nonsense", 1, folder="f"),
    "more_claims": counted_message("more_claims", 1, folder="f"),
    "reason_values": counted_message("reason_values", 1, column="year", least=3),
    "reason_few": message(
        "reason_few", what="a rate", n=0, films=counted_message("films_n", 1), least=5, advice="x"
    ),
}
"""Notes in which something is counted once, by the names of their texts."""


def assert_has_no_plural_of_one(sentence):
    """Check that a sentence counts something once, and has no plural after the 1."""
    assert re.search(r"\b(1|once|une)\b", sentence), sentence
    assert not PLURAL_OF_ONE.search(sentence), sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("claim", CLAIMS_OF_ONE.values(), ids=CLAIMS_OF_ONE)
def test_a_claim_of_one_has_no_plural(claim, language):
    """Each claim counts something once, as one common window of two judges.

    In English "1 windows" is wrong, and so is "1 fenêtres" in French.
    """
    assert_has_no_plural_of_one(phrases.sentence(claim, Words(language)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_on_pairs_have_no_plural_of_one_window(language):
    """Each of seven pairs of judges has one window in common."""
    pairs = [agreement_of_pair(number) for number in range(7)]
    for sentence in phrases.judges_sentences(pairs, Words(language)):
        assert_has_no_plural_of_one(sentence)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("note", NOTES_OF_ONE.values(), ids=NOTES_OF_ONE)
def test_a_note_that_counts_one_thing_has_the_thing_in_the_singular(note, language):
    """Each note counts one film, decision, judgement, line or value. It is made in English.

    `translated` writes it in a language: "1 line" and "1 ligne" are right, "1 lines" and "1 lignes" wrong.
    """
    assert_has_no_plural_of_one(Words(language).translated(note))


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_passage_and_one_point_of_percentage_are_no_plural(language):
    """One passage reaches the threshold; a distance of .01 of two shares is one point of percentage."""
    words = Words(language)
    assert_has_no_plural_of_one(words.counted("passages", 1))
    assert_has_no_plural_of_one(words.distance(0.01))


def test_french_has_no_plural_below_two():
    """French plurals begin at two: 0 and 1,0 are singular, unlike in English. Given are 600, 60 and 0 s."""
    words = Words("fr")
    assert words.durations(600, 60, 0) == ["10,0 minutes", "1,0 minute", "0 minute"]
    assert words.counted("passages", 0) == "aucun passage n’atteint le seuil"
    assert words.counted("count_films", 0) == "0 film"


FRENCH_NAMES = pytest.mark.parametrize(
    ("name", "of_name"), [("Élise", "d’Élise"), ("CD", "de CD"), ("Hannah", "d’Hannah")]
)


@FRENCH_NAMES
@pytest.mark.parametrize(
    ("key_of_note", "further_fields"),
    [
        ("claim", ["other"]),
        ("two_of_one_id", ["other"]),
        ("row_beside", ["other"]),
        ("clock_ahead", ["clock"]),
        ("import_known", []),
    ],
    ids=[
        "a decision that may not replace another person's",
        "two people's decisions with one id",
        "a row that names another person's decision",
        "a line whose clock is ahead",
        "an import that is known",
    ],
)
def test_a_french_note_on_a_decision_of_a_person_elides_de_before_a_vowel(
    name, of_name, key_of_note, further_fields
):
    """French writes "d'Élise" for "de Élise", also before a mute h, as in Hannah.

    Each note is on what somebody (`who`) decided, and some name another person (`other`). It is made in
    English, and `translated` writes it again in French.
    """
    fields = {"who": name, "path": "p", "line": 1, "name": "n", "act": "a", "reason": "r"}
    for field in further_fields:
        fields[field] = name if field == "other" else 1

    text = Words("fr").translated(message(key_of_note, **fields))

    assert of_name in text
    not_elided = r"\b[Dd]e (?=AB|Élise|Hannah)"
    assert not re.search(not_elided, text)


@FRENCH_NAMES
def test_a_french_sentence_elides_before_a_concept(name, of_name):
    """French writes "d'Élise" and "d'Hannah" for "de ...", and "de CD", as CD begins with a consonant.

    The sentence says that there is more of a concept than usual, "plus d'Élise que". A concept may have any
    name of the codebook, and so the same ones are tried as for people.
    """
    assert f"plus {of_name} que" in Words("fr").say("why_more", concept=name)


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("AB", "part qu’AB"), ("Élise", "part qu’Élise"), ("CD", "part que CD"), ("Hannah", "part qu’Hannah")],
)
def test_a_french_sentence_elides_before_a_judge(name, beginning):
    """French writes "qu'AB" for "que AB": the share that AB would mark."""
    text = Words("fr").say("corrected", who=name, time="t", marked="m", windows="w")
    assert text.startswith(beginning)


def on_one_line_with_plain_spaces(text):
    """Replace line ends and the narrow spaces of French by spaces."""
    return " ".join(str(text).split()).replace("\u202f", " ").replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("why", "fields", "of_one", "of_two"),
    [
        ("why_seen", {}, "1 jugement hors du compte : fait avec", "2 jugements hors du compte : faits avec"),
        ("why_gap", {"column": "place", "gap": 3}, ": tiré après place 3", ": tirés après place 3"),
        ("why_place", {"column": "place"}, ": non tiré par", ": non tirés par"),
        ("why_law", {"law": "successive"}, ": tiré selon une autre loi", ": tirés selon une autre loi"),
        ("why_content", {"column": "content_s"}, "de sa fenêtre", "de leur fenêtre"),
        ("why_film", {"names": "tt01"}, ": d’un autre film (tt01)", ": d’autres films (tt01)"),
        ("why_definition", {}, "qui ne dit pas", "qui ne disent pas"),
    ],
    ids=["seen", "gap", "place", "law", "content", "film", "definition"],
)
def test_a_french_note_on_judgements_agrees_in_number(why, fields, of_one, of_two):
    """A note says why one judgement is left out, or two. French words agree in number: "fait", "faits".

    `why` is the name of a reason's text, such as "why_gap", and `fields` are what is filled into it.
    """
    french = Words("fr")
    reason = message(why, **fields)

    note_on_one = french.translated(left_out_message(1, reason))
    note_on_two = french.translated(left_out_message(2, reason))

    assert of_one in on_one_line_with_plain_spaces(note_on_one)
    assert of_two in on_one_line_with_plain_spaces(note_on_two)
