"""One thing is no plural, in either language; and French elides before a name that begins with a vowel."""

import re

import pytest

from obygaze_film.claims import LANGUAGES, Words, kinds, phrases
from obygaze_film.claims.kinds import ClaimTime
from obygaze_film.judged_windows import left_out_message
from obygaze_film.notes import counted_message, message

CONTENT = ClaimTime("content")
PLURAL_OF_ONE = re.compile(
    r"(?<![\d.,])1 (more |other |autres? |percentage )?"
    r"(pairs|paires|films|windows|fenêtres|passages|points|clips|extraits|decisions|décisions|lines|lignes"
    r"|répliques|values|valeurs|judgements|jugements)\b"
)


def pair(place, conditions=()):
    """Claim how far two judges agree on their only common window."""
    fields = {"what": "kappa", "time": CONTENT, "number": 0.1, "positive": "S", "n": 1, "alike": 1}
    return kinds.PairKappa(who=(f"A{place}", f"B{place}"), conditions=conditions, **fields)


def panel(n_unsure):
    """Claim how far three judges agree on their only common window."""
    return kinds.PanelAgreement(
        who=("A", "B", "C"),
        what="alpha",
        time=CONTENT,
        number=0.1,
        positive="S",
        n_windows=1,
        n_unsure=n_unsure,
    )


BOUNDS = kinds.Bounds(0.1, 0.5, 0.95)

CLAIMS_OF_ONE = {
    "one common window, one unsure": kinds.JudgedShare(
        who=("A", "B"), what="S", time=CONTENT, number=0.3, interval=BOUNDS,
        conditions=(kinds.BLIND, kinds.SOME_BY_CHANCE), model="m", n=1, n_windows=9, positives=(1, 1),
        worth=None, n_unsure=1, unsure_s=8.0, expected=None, expected_s=None,
        agreement=tuple(pair(place, (kinds.AGREE_BY_CHANCE,)) for place in range(4)),
    ),
    "one pair": kinds.ManyPairs(
        who=(), what="kappa", time=CONTENT, number=0.1, interval=kinds.Bounds(0.1, 0.1, 1.0), n_pairs=1
    ),
    "one window of all": panel(n_unsure=0),
    "one window that somebody is unsure of": panel(n_unsure=1),
    "one window judged, one left": kinds.NoJudgedShare(
        who=("A",), what="share", time=CONTENT, judged=1, sure=0, left=1, least=1
    ),
    "one film": kinds.LearntChange(
        who=("m",), what="AUC", time=CONTENT, number=0.1, n_films=1, is_of_judged=True
    ),
}  # fmt: skip
"""Claims in which something is counted once."""

NOTES_OF_ONE = (
    *(counted_message(key, 1) for key in ("films_n", "n_decisions", "n_judgements")),
    *(
        counted_message(f"more_{kind}", 1, folder="f")
        for kind in ("damaged", "clock", "twins", "nonsense", "claims")
    ),
    counted_message("reason_values", 1, column="year", least=3),
    message("reason_few", what="a rate", n=0, films=counted_message("films_n", 1), least=5, advice="x"),
)
"""Notes in which something is counted once."""


def assert_is_no_plural(sentence):
    """Check that a sentence counts something once, and has no plural after the 1."""
    assert re.search(r"\b(1|once|une)\b", sentence), sentence
    assert not PLURAL_OF_ONE.search(sentence), sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("claim", CLAIMS_OF_ONE.values(), ids=CLAIMS_OF_ONE)
def test_a_claim_of_one_has_no_plural(claim, language):
    """In English "1 windows" is wrong, and so is "1 fenêtres" in French."""
    assert_is_no_plural(phrases.sentence(claim, Words(language)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_on_pairs_have_no_plural_of_one_window(language):
    """Each of seven pairs of judges has one window in common."""
    for sentence in phrases.judges_sentences([pair(place) for place in range(7)], Words(language)):
        assert_is_no_plural(sentence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_note_on_one_has_no_plural(language):
    words = Words(language)
    for note in NOTES_OF_ONE:
        assert_is_no_plural(words.translated(note))
    assert_is_no_plural(words.counted("passages", 1))
    assert_is_no_plural(words.distance(0.01))


def test_french_has_no_plural_below_two_minutes_nor_of_no_passage():
    """French plurals begin at two: 0 and 1,0 are singular, unlike in English."""
    words = Words("fr")
    assert words.durations(600, 60, 0) == ["10,0 minutes", "1,0 minute", "0 minute"]
    assert words.counted("passages", 0) == "aucun passage n’atteint le seuil"
    assert words.counted("count_films", 0) == "0 film"


FRENCH_NAMES = pytest.mark.parametrize(
    ("name", "of_name"), [("Élise", "d’Élise"), ("CD", "de CD"), ("Hannah", "d’Hannah")]
)


@FRENCH_NAMES
@pytest.mark.parametrize(
    ("key", "names_two_people"),
    [
        ("claim", True),
        ("two_of_one_id", True),
        ("row_beside", True),
        ("clock_ahead", False),
        ("import_known", False),
    ],
)
def test_a_french_note_elides_before_a_vowel(name, of_name, key, names_two_people):
    """French writes "d'AB" for "de AB", also before a mute h, as in Hannah.

    A note is made in English, and `translated` writes it again in French.
    """
    fields = {"who": name, "path": "p", "line": 1, "name": "n", "act": "a", "reason": "r"}
    if names_two_people:
        fields["other"] = name
    if key == "clock_ahead":
        fields["clock"] = 1
    text = Words("fr").translated(message(key, **fields))

    assert of_name in text
    assert not re.search(r"\b[Dd]e (?=AB|Élise|Hannah)", text)  # not elided


@FRENCH_NAMES
def test_a_french_sentence_elides_before_a_concept(name, of_name):
    assert f"plus {of_name} que" in Words("fr").say("why_more", concept=name)


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("AB", "part qu’AB"), ("Élise", "part qu’Élise"), ("CD", "part que CD"), ("Hannah", "part qu’Hannah")],
)
def test_a_french_sentence_elides_before_a_judge(name, beginning):
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
    """In French the participle agrees too: one is "fait" and two are "faits"."""

    def french_note(n):
        note = left_out_message(n, message(why, **fields))
        return on_one_line_with_plain_spaces(Words("fr").translated(note))

    assert of_one in french_note(1)
    assert of_two in french_note(2)
