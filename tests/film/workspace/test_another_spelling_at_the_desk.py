"""A person who types their name in another spelling at another browser stays one judge."""

import pytest

from obygaze_film.errors import FilmError
from tests.film.workspace.deciding import judge, judge_blindly, levels_in_force, reopen


@pytest.mark.parametrize("spelling", ["ab", "Ab", "AB\u200b", "ＡＢ", "АВ"], ids=ascii)
def test_another_spelling_of_a_name_in_the_ledger_is_refused(decisions, spelling):
    """AB has judged a span. Then somebody types "ab", or AB in other letters that look alike.

    Commands that read tables of judgements refuse two spellings of one name. A line of a ledger is never
    taken away, so that the desk must refuse the other spelling before it is written.
    """
    judge(decisions, start=40, end=48, level="violent", annotator="AB")

    with pytest.raises(FilmError, match=r"is another spelling of AB, .* type AB as your name"):
        judge(reopen(decisions), start=60, end=68, level="calm", annotator=spelling)

    assert levels_in_force(reopen(decisions)) == [("AB", "violent")]


def test_another_spelling_of_a_name_is_refused_in_every_way_to_decide(decisions):
    """Blind judgements and notes are decisions of the same judge."""
    judge_blindly(decisions, "calm", annotator="Zoë")

    with pytest.raises(FilmError, match="another spelling of Zoë"):
        judge_blindly(decisions, "calm", annotator="Zoe")
    with pytest.raises(FilmError, match="another spelling of Zoë"):
        decisions.keep("note", 1, 2, "ZOË", note="dark")


@pytest.mark.parametrize("name", ["AB", "CD", "AB 2"])
def test_a_name_may_judge_if_it_is_exactly_one_of_the_ledger_or_no_spelling_of_one(decisions, name):
    """AB has judged, so that "ab" would be refused as another spelling of the same name.

    AB in the same letters may go on, and so may CD. "AB 2" is nearly AB, but a sign more makes another name.
    """
    judge(decisions, start=40, end=48, level="violent", annotator="AB")

    judge(decisions, start=60, end=68, level="calm", annotator=name)

    assert (name, "calm") in levels_in_force(decisions)


def test_both_spellings_of_a_name_may_go_on_judging_if_both_are_in_the_ledger_already(decisions):
    """AB judged on one machine, and ab on another, whose ledger had no AB; then folders were synchronised.

    A second spelling is refused where the ledger has one. With both in it already, neither is refused.
    """
    judge(decisions, start=40, end=48, level="violent", annotator="AB")
    other_machine = reopen(decisions)
    other_machine._refuse_other_spelling = lambda _name: None  # as of a ledger without AB
    judge(other_machine, start=50, end=58, level="violent", annotator="ab")

    judge(decisions, start=60, end=68, level="calm", annotator="ab")
    judge(decisions, start=70, end=78, level="calm", annotator="AB")

    assert sorted(levels_in_force(decisions)) == [
        ("AB", "calm"),
        ("AB", "violent"),
        ("ab", "calm"),
        ("ab", "violent"),
    ]
