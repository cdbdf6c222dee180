"""`s` and `n` below a concept say yes and no, also where `S` is a level: no column of a further annotator."""

import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import builtin_codebook, import_spans


def table(folder, heading_of_levels, concept, answers):
    """Write a table of spans with a column of levels and one below a concept; return its path."""
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
    [
        (("s", "n", "s", "n", "s"), "s"),  # Spanish, Italian, Portuguese
        (("S", "N", "S", "N", "S"), "S"),  # spelled as the level of sure sexism
        (("S", "n", "S", "S", "S"), "S"),
    ],
)
@pytest.mark.parametrize("heading_of_levels", ["level", "rating"])
def test_they_are_asked_about_as_yes_and_no_of_the_concept(tmp_path, heading_of_levels, answers, yes):
    path = table(tmp_path, heading_of_levels, "Body", answers)
    columns = {"concepts": ["Body"]}
    if heading_of_levels != "level":
        columns["level"] = [heading_of_levels]

    # given no option, the import asks
    with pytest.raises(ManifestError) as refusal:
        clips_of(path)
    assert f"--column concepts=Body --word {yes}=yes" in str(refusal.value)
    assert "--wide" not in str(refusal.value)

    # when the table is read as it proposes, then the answers are the concept's, and the levels stay
    clips = clips_of(path, columns=columns, words={yes: "yes"})
    assert [clip.concepts for clip in clips] == [("Body",) if answer == yes else () for answer in answers]
    assert [clip.level for clip in clips] == ["HN", "EN", "S", "HN", "HN"]


def test_levels_below_a_concept_are_no_answers(tmp_path):
    """S and HN are two levels: nobody abbreviates no as HN, and which column is the level is asked."""
    path = table(tmp_path, "rating", "Body", ("S", "HN", "S", "HN", "S"))

    with pytest.raises(ManifestError) as refusal:
        clips_of(path)

    assert "--column level=Body" in str(refusal.value)
    assert "--column level=rating" in str(refusal.value)
    assert "--word" not in str(refusal.value)
