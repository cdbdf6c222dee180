"""A person who types their name in another spelling at another browser stays one judge."""

import pytest

from obygaze_film.errors import FilmError
from tests.film.workspace.deciding import judge, judge_blindly, levels_in_force, reopen


@pytest.mark.parametrize("spelling", ["ab", "Ab", "AB\u200b", "ＡＢ", "АВ"], ids=ascii)
def test_another_spelling_of_a_name_in_the_ledger_is_refused(decisions, spelling):
    """With both in the ledger, which keeps its lines, commands that read the tables would refuse them."""
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
def test_the_same_spelling_and_other_people_decide(decisions, name):
    """Names of other people may be near."""
    judge(decisions, start=40, end=48, level="violent", annotator="AB")

    judge(decisions, start=60, end=68, level="calm", annotator=name)

    assert (name, "calm") in levels_in_force(decisions)


def test_who_has_two_spellings_in_the_ledger_already_goes_on_with_either(decisions):
    """Folders of two machines were synchronised: there AB and ab decided, each alone."""
    judge(decisions, start=40, end=48, level="violent", annotator="AB")
    machine_of_ab = reopen(decisions)
    machine_of_ab._refuse_other_spelling = lambda _name: None  # its ledger had no AB
    judge(machine_of_ab, start=50, end=58, level="violent", annotator="ab")

    judge(decisions, start=60, end=68, level="calm", annotator="ab")
    judge(decisions, start=70, end=78, level="calm", annotator="AB")

    assert len(levels_in_force(decisions)) == 4
