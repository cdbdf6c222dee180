"""`s` and `n` below a concept say yes and no, also where `S` is a level: no column of a further annotator."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans


def table_of_levels_and_answers(folder, heading_of_levels, concept, answers):
    """Write a table of five clips with the levels HN, EN, S, HN and HN, and answers below a concept."""
    rows = [f"movie,start_s,end_s,{heading_of_levels},{concept}"]
    levels = ("HN", "EN", "S", "HN", "HN")
    for number, (level, answer) in enumerate(zip(levels, answers, strict=True)):
        rows.append(f"m,{5 * number},{5 * number + 5},{level},{answer}")
    path = folder / "ratings.csv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def clips_of(path, **options):
    """Import the table, and return its clips in their order."""
    codebook = builtin_codebook("obygaze12")
    return list(import_spans([path], path.parent, codebook=codebook, **options).manifest)


@pytest.mark.parametrize(
    ("answers", "yes"),
    [(("s", "n", "s", "n", "s"), "s"), (("S", "N", "S", "N", "S"), "S"), (("S", "n", "S", "S", "S"), "S")],
    ids=["small letters", "capitals: S is a level too", "both, and one no"],
)
@pytest.mark.parametrize("heading_of_levels", ["level", "rating"])
def test_answers_s_and_n_below_a_concept_are_proposed_as_yes_and_no_and_not_as_levels(
    tmp_path, heading_of_levels, answers, yes
):
    """Somebody answered in Spanish, s for sí and n for no, whether each of five clips has the concept Body.

    The clips also have levels, in a column "level" or "rating". S is one of the levels, but even in capitals
    the column Body must not be taken for the levels of a further annotator, which the option `--wide` would
    read. The import is refused, and proposes to read the column as a concept, and s (or S) as yes.
    """
    table = table_of_levels_and_answers(tmp_path, heading_of_levels, "Body", answers)

    with pytest.raises(ManifestError) as refusal:
        clips_of(table)

    assert f"--column concepts=Body --word {yes}=yes" in str(refusal.value)
    assert "--wide" not in str(refusal.value)


@pytest.mark.parametrize(
    ("answers", "yes"),
    [(("s", "n", "s", "n", "s"), "s"), (("S", "N", "S", "N", "S"), "S"), (("S", "n", "S", "S", "S"), "S")],
    ids=["small letters", "capitals: S is a level too", "both, and one no"],
)
@pytest.mark.parametrize("heading_of_levels", ["level", "rating"])
def test_answers_s_and_n_below_a_concept_are_read_where_the_person_says_that_s_means_yes(
    tmp_path, heading_of_levels, answers, yes
):
    """Somebody answered in Spanish, s for sí and n for no, whether each of five clips has the concept Body.

    The clips also have levels, in a column "level" or "rating". The person's options say that the column Body
    holds a concept, that "rating" holds the levels, and that s (or S) means yes. Then a clip has Body where
    the answer is s, and its level is read from the other column, even if S is both an answer and a level.
    """
    table = table_of_levels_and_answers(tmp_path, heading_of_levels, "Body", answers)
    columns = {"concepts": ["Body"]}
    if heading_of_levels != "level":
        columns["level"] = [heading_of_levels]

    clips = clips_of(table, columns=columns, words={yes: "yes"})

    for clip, answer in zip(clips, answers, strict=True):
        assert clip.concepts == (("Body",) if answer == yes else ())
    assert [clip.level for clip in clips] == ["HN", "EN", "S", "HN", "HN"]


def test_levels_below_a_concept_are_no_answers(tmp_path):
    """Below the heading Body stand S and HN, which are two levels: nobody abbreviates no as HN.

    The column "rating" has levels too, so the refusal asks which of the two columns is the level.
    """
    levels_below_body = ("S", "HN", "S", "HN", "S")
    table = table_of_levels_and_answers(tmp_path, "rating", "Body", levels_below_body)

    with pytest.raises(ManifestError) as refusal:
        clips_of(table)

    assert "--column level=Body" in str(refusal.value)
    assert "--column level=rating" in str(refusal.value)
    assert "--word" not in str(refusal.value)
