"""What is proposed for words below a concept's heading that may say yes and no: a command that solves it."""

import re

import pytest

from obygaze_features.errors import ManifestError


def table_below_body(*cells):
    """Write a table of clips with the level HN, whose cells below the heading Body are these."""
    lines = ["movie;start_s;end_s;level;Body"]
    for number, cell in enumerate(cells):
        lines.append(f"f;{number};{number + 1};HN;{cell}")
    return "\n".join(lines) + "\n"


def proposed_words(message):
    """Return word -> meaning of the options --word in a message."""
    pairs = re.findall(r"--word '?([^=]+)=(\w*)", message)
    return dict(pairs)


@pytest.mark.parametrize(("yes", "no"), [("s", "n"), ("S", "N"), ("o", "n"), ("t", "f")])
def test_a_table_with_other_words_for_yes_and_no_is_read_with_the_words_that_its_refusal_proposes(
    import_files, yes, no
):
    """Below the heading Body stand yes, no and yes in words of a language. The Spanish s is no level S here.

    The import is refused, and proposes with options `--word WORD=MEANING` what the words mean. Whoever types
    these gets clips with Body, without, and with Body.
    """
    files = {"t.csv": table_below_body(yes, no, yes)}
    with pytest.raises(ManifestError) as refusal:
        import_files(files, columns={"concepts": ["Body"]})
    meaning_of_words = proposed_words(str(refusal.value))

    clips, _ = import_files(files, columns={"concepts": ["Body"]}, words=meaning_of_words)

    assert [clip.concepts for clip in clips] == [("Body",), (), ("Body",)]


def test_words_for_yes_and_no_that_are_known_in_full_are_read_at_once(import_files):
    """Below the heading Body stand "sì", "non" and "sì": no proposal is needed."""
    table = table_below_body("sì", "non", "sì")

    clips, _ = import_files({"t.csv": table}, columns={"concepts": ["Body"]})

    assert [clip.concepts for clip in clips] == [("Body",), (), ("Body",)]


def test_a_letter_that_may_abbreviate_yes_is_proposed_on_the_condition_that_it_does(import_files):
    """Below the heading Body stand s and n, which may abbreviate yes and no in Spanish, or something else.

    So the option that says that s means yes is proposed with the condition that it is abbreviated.
    """
    with pytest.raises(ManifestError, match="abbreviated: 's' as yes; else change --word") as refusal:
        import_files({"t.csv": table_below_body("s", "n")}, columns={"concepts": ["Body"]})

    assert proposed_words(str(refusal.value)) == {"s": "yes"}


def test_which_of_two_unknown_words_means_yes_is_left_to_the_person(import_files):
    """Below the concept Body stand 是 and 否, of which the import does not know which one means yes.

    If it guessed wrongly, whoever takes the proposal would turn all answers round. So both words are proposed
    with ANSWER, for which the person types yes or no.
    """
    with pytest.raises(ManifestError, match="in place of ANSWER type yes if") as refusal:
        import_files({"t.csv": table_below_body("是", "否")}, columns={"concepts": ["Body"]})

    assert proposed_words(str(refusal.value)) == {"是": "ANSWER", "否": "ANSWER"}


def test_no_level_is_proposed_for_an_unknown_word_in_a_column_of_concepts(import_files):
    """A column headed "concepts" has Body, Look, "surely" and twenty times "s", which are no known concepts.

    "s" and "surely" are like the level S, "sure". But a column of concepts refuses levels: whoever typed
    `--word s=S` would be refused again.
    """
    cells = ["Body", "Look", "surely", *["s"] * 20]
    rows = [f"f;{number};{number + 1};HN;{cell}" for number, cell in enumerate(cells)]
    table = "\n".join(["movie;start_s;end_s;level;concepts", *rows]) + "\n"

    with pytest.raises(ManifestError) as refusal:
        import_files({"t.csv": table})

    assert "s=S" not in str(refusal.value)
    assert "surely=S" not in str(refusal.value)
