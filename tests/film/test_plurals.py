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
    known = {"what": "kappa", "time": CONTENT, "number": 0.1, "positive": "S", "n": 1, "alike": 1}
    return kinds.PairKappa(who=(f"A{place}", f"B{place}"), conditions=conditions, **known)


def of_one(words):
    """Sentences in which something is counted once."""
    doubtful = [pair(place, (kinds.AGREE_BY_CHANCE,)) for place in range(4)]
    share = kinds.JudgedShare(
        who=("A", "B"), what="S", time=CONTENT, number=0.3, interval=kinds.Bounds(0.1, 0.5, 0.95),
        conditions=(kinds.BLIND, kinds.SOME_BY_CHANCE), model="m", n=1, n_windows=9, positives=(1, 1),
        worth=None, n_unsure=1, unsure_s=8.0, expected=None, expected_s=None, agreement=tuple(doubtful),
    )  # fmt: skip
    yield phrases.sentence(share, words)
    yield from phrases.judges_sentences([pair(place) for place in range(7)], words)
    yield phrases.sentence(
        kinds.ManyPairs(
            who=(), what="kappa", time=CONTENT, number=0.1, interval=kinds.Bounds(0.1, 0.1, 1.0), n_pairs=1
        ),
        words,
    )
    for n_unsure in (0, 1):
        known = {"who": (), "what": "alpha", "time": CONTENT, "number": 0.1, "positive": "S"}
        known |= {"n_judges": 3, "n_windows": 1}
        yield phrases.sentence(kinds.PanelAgreement(n_unsure=n_unsure, **known), words)
    few = kinds.NoJudgedShare(who=("A",), what="share", time=CONTENT, judged=1, sure=0, left=1, least=1)
    yield phrases.sentence(few, words)
    learnt = kinds.LearntChange(
        who=("m",), what="AUC", time=CONTENT, number=0.1, n_films=1, is_of_judged=True
    )
    yield phrases.sentence(learnt, words)
    yield words.apart(0.01)
    yield words.counted("passages", 1)
    for key in ("films_n", "n_decisions", "n_judgements"):
        yield words.again(counted_message(key, 1))
    for kind in ("damaged", "clock", "twins", "nonsense", "claims"):
        yield words.again(counted_message(f"more_{kind}", 1, folder="f"))
    yield words.again(counted_message("reason_values", 1, column="year", least=3))
    yield words.again(message("reason_few", n=0, films=counted_message("films_n", 1), least=5, advice="x"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_counted_once_is_no_plural(language):
    for sentence in of_one(Words(language)):
        assert re.search(r"\b(1|once|une)\b", sentence), sentence
        assert not PLURAL_OF_ONE.search(sentence), sentence


def test_french_has_no_plural_below_two_minutes_nor_of_no_passage():
    words = Words("fr")
    assert words.durations(600, 60, 0) == ["10,0 minutes", "1,0 minute", "0 minute"]
    assert words.counted("passages", 0) == "aucun passage n’atteint le seuil"
    assert words.counted("count_films", 0) == "0 film"


@pytest.mark.parametrize(
    ("name", "written"), [("AB", "d’AB"), ("Élise", "d’Élise"), ("CD", "de CD"), ("Hannah", "d’Hannah")]
)
def test_french_elides_before_a_name_in_every_text(name, written):
    words = Words("fr")
    facts = {"path": "p", "line": 1, "name": "n", "act": "a", "reason": "r"}
    for note in (
        message("claim", who=name, other=name, **facts),
        message("two_of_one_id", who=name, other=name, **facts),
        message("row_beside", who=name, other=name, **facts),
        message("clock_ahead", who=name, clock=1, **facts),
        message("import_known", who=name, **facts),
    ):
        text = words.again(note)
        assert written in text
        assert not re.search(r"\b[Dd]e (?=AB|Élise|Hannah)", text)
    assert f"plus {written} que" in words.say("why_more", concept=name)
    assert words.say("corrected", who=name, time="t", marked="m", windows="w").startswith(
        "part que CD" if name == "CD" else f"part qu’{name}"
    )


def test_english_elides_nothing():
    assert "more Activity than usual" in Words("en").say("why_more", concept="Activity")


@pytest.mark.parametrize(
    ("why", "known", "one", "several"),
    [
        ("why_seen", {}, "1 jugement hors du compte : fait avec", "2 jugements hors du compte : faits avec"),
        ("why_gap", {"column": "place", "gap": 3}, ": tiré après place 3", ": tirés après place 3"),
        ("why_place", {"column": "place"}, ": non tiré par", ": non tirés par"),
        ("why_law", {"law": "successive"}, ": tiré selon une autre loi", ": tirés selon une autre loi"),
        ("why_content", {"column": "content_s"}, "de sa fenêtre", "de leur fenêtre"),
        ("why_film", {"names": "tt01"}, ": d’un autre film (tt01)", ": d’autres films (tt01)"),
        ("why_definition", {}, "qui ne dit pas", "qui ne disent pas"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.startswith("why_") else "",
)
def test_of_one_judgement_what_is_said_of_it_is_in_the_singular_in_french(why, known, one, several):
    french = Words("fr")
    notes = [left_out_message(n, message(why, **known)) for n in (1, 2)]
    of_one, of_two = (" ".join(str(french.again(note)).split()) for note in notes)
    assert one in of_one.replace("\u202f", " ").replace("\u00a0", " ")
    assert several in of_two.replace("\u202f", " ").replace("\u00a0", " ")


def test_one_judgement_of_another_film_is_no_plural_in_english():
    note = left_out_message(1, message("why_film", names="tt01"))
    assert note == "left out 1 judgement of another film (tt01)"
    assert (
        left_out_message(2, message("why_film", names="tt01"))
        == "left out 2 judgements of other films (tt01)"
    )
