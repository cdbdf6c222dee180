"""Claims of the papers: the released data give the numbers, planted data the verdicts that were planted."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_models.report import NOTHING, Report
from obygaze_studies.claims import claims_report, measures, nulls
from obygaze_studies.claims.claims_report import (
    CLAIMS,
    CONSTANT_NULL,
    DATA,
    NO_NULL,
    OPEN,
    Part,
    claims,
    read_input,
    verdict,
    verdict_of,
)
from obygaze_studies.claims.measures import Measured
from obygaze_studies.claims.nulls import Null, null_of_signs_by_film, permuted_within, planted_off_centre
from obygaze_studies.errors import AuditError

WORDS = Path("audits") / "clip-gender-bias" / "sobem_emotion_word_counts_280images.csv"
NAN = float("nan")


@pytest.fixture(scope="module")
def files(shared_data, obygaze12, segments, tmp_path_factory):
    """The released data: manifests of ObyGaze12 and of MObyGaze's segments, and the counts of words."""
    folder = tmp_path_factory.mktemp("claims")
    write_manifest(obygaze12, folder / "obygaze12.csv")
    write_manifest(segments, folder / "segments.csv")
    return [folder / "obygaze12.csv", folder / "segments.csv", shared_data / WORDS]


class MeasuredClaims(NamedTuple):
    """The report on claims, and the finding of each part of those that were measured, by the claim's name."""

    report: Report
    findings: dict[str, list[Measured]]


@pytest.fixture(scope="module")
def measured_claims(files):
    """The report on all claims, tested on the released data, with the finding of each part of a claim.

    The report prints findings rounded. So the function that measures them is wrapped by one that also notes
    them.
    """
    findings = {}
    measure_parts = claims_report._measure_parts

    def measure_and_note(claims_of_kind, content):
        findings_of_kind = measure_parts(claims_of_kind, content)
        findings.update(findings_of_kind)
        return findings_of_kind

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims_report, "_measure_parts", measure_and_note)
        return MeasuredClaims(claims(files), findings)


@pytest.fixture(scope="module")
def report(measured_claims):
    """The report on all claims, of the released data."""
    return measured_claims.report


@pytest.fixture(scope="module")
def table_of_claims(report):
    """Value, interval, verdict and note of each claim, by its name."""
    return report.data.set_index("claim")


@pytest.fixture(scope="module")
def parts(report):
    """The printed rows: "claim", or "claim (n)" for its n-th part, -> cells by their heading."""
    return cells_of(report)


def cells_of(report):
    """Return the cells of each printed row by their heading, by the row's first cell."""
    return {
        row[0]: dict(zip(block.headers, row, strict=True)) for block in report.blocks for row in block.rows
    }


def chance_cell(cells):
    """Return the cell of a printed row that says what chance gives."""
    (heading,) = [heading for heading in cells if heading.startswith("chance")]
    return cells[heading]


def notes_of(report):
    """List the notes of all blocks."""
    return [note for block in report.blocks for note in block.notes]


def claim_named(name):
    """Return the claim of a name."""
    (claim,) = [claim for claim in CLAIMS if claim.name == name]
    return claim


QUOTED_CLAIMS = [claim for claim in CLAIMS if claim.is_printed]
"""Claims that quote a sentence of a paper."""
QUOTED_CLAIMS_TESTED_ON_OTHER_DATA = [claim for claim in QUOTED_CLAIMS if claim.is_elsewhere]
"""Those of them that are tested on other data than their paper's."""


def test_a_sentence_is_quoted_by_one_claim():
    """A claim quotes the sentence of a paper that it tests: no sentence is tested by two of them."""
    sentences = [claim.sentence for claim in QUOTED_CLAIMS]

    different_sentences = set(sentences)
    assert len(different_sentences) == len(sentences)


def n_sentences_and_n_verdicts(answer):
    """Read from "8 sentences ...: 5 hold, 3 fail" the number of sentences, 8, and of all verdicts, 5 + 3."""
    sentences, _, verdicts = answer.partition(": ")
    n_sentences = int(re.search(r"\d+", sentences)[0])
    return n_sentences, sum(int(count) for count in re.findall(r"\d+(?= [a-z])", verdicts))


@pytest.mark.long
def test_one_answer_is_on_sentences_on_their_papers_data_and_one_on_the_other_sentences(report):
    """The report begins with answers, such as "8 sentences ...: 5 hold, 3 fail".

    The first is on the sentences that are tested on the data of their own paper, the second on the others. As
    each sentence has one verdict, the verdicts of an answer add up to its sentences. A third answer is on the
    claim `length`, which is ours: no paper states it.
    """
    n_on_other_data = len(QUOTED_CLAIMS_TESTED_ON_OTHER_DATA)
    n_on_own_data = len(QUOTED_CLAIMS) - n_on_other_data

    answer_on_own_data, answer_on_other_data, answer_on_our_claim = report.answers

    n_sentences, n_verdicts = n_sentences_and_n_verdicts(answer_on_own_data)
    assert n_sentences == n_on_own_data
    assert n_verdicts == n_sentences
    n_sentences, n_verdicts = n_sentences_and_n_verdicts(answer_on_other_data)
    assert n_sentences == n_on_other_data
    assert n_verdicts == n_sentences
    assert answer_on_our_claim == "of ours, length: undecided"


@pytest.mark.long
def test_the_report_names_the_data_on_which_each_claim_is_tested(report, table_of_claims):
    """They stand in the table of claims, and in the note that quotes the claim's sentence."""
    for claim in CLAIMS:
        name_of_data = DATA[claim.needs]
        (note,) = [note for note in notes_of(report) if note.startswith(f'{claim.name}: "')]

        assert table_of_claims.loc[claim.name, "data"] == name_of_data
        assert name_of_data in note


@pytest.mark.long
def test_a_sentence_of_the_obygaze12_paper_that_is_tested_on_mobygaze_is_marked(table_of_claims, parts):
    """Labels of several annotators were released of MObyGaze alone, the later and larger corpus.

    So sentences of the ObyGaze12 paper (001) on annotators are tested there, and marked `is_elsewhere`. In
    the printed rows, `overlooked` is such a sentence, and `rising` is tested on its paper's own ObyGaze12.
    """
    for claim in CLAIMS:
        is_elsewhere = claim.paper == "001" and claim.needs == "mobygaze"

        assert claim.is_elsewhere == is_elsewhere
        assert table_of_claims.loc[claim.name, "is_elsewhere"] == is_elsewhere

    assert parts["overlooked"]["data"] != parts["rising (2)"]["data"]


@pytest.mark.long
def test_a_cited_finding_is_attributed_to_the_cited_work_and_says_what_is_not_measured(report):
    """Some sentences of a paper state what another work found, as that clothing alone is not sufficient.

    The note on such a claim in the report names that work (`finding_of`), and not only the paper.
    """
    cited_claims = [claim for claim in CLAIMS if claim.finding_of]
    assert "clothing-alone" in {claim.name for claim in cited_claims}

    for claim in cited_claims:
        (note,) = [note for note in notes_of(report) if note.startswith(f'{claim.name}: "')]
        assert claim.sentence in note
        assert claim.finding_of in note
        assert claim.unmeasured


@pytest.mark.long
def test_a_comparison_of_two_levels_is_said_to_rest_on_the_clips_of_these_levels_alone(parts):
    """The claims "rising" and "rising-annotators" say that more concepts are marked from level to level.

    The second part of each, as in the row "rising (2)", compares HN and NS: clips of EN and S are not among
    its units. ObyGaze12 has 309 clips of HN and 292 of NS, and of MObyGaze 378 and 100 segments count.
    """
    hn_and_ns_of_obygaze12 = parts["rising (2)"]
    hn_and_ns_of_mobygaze = parts["rising-annotators (2)"]

    assert hn_and_ns_of_obygaze12["units"] == f"{309 + 292} clips"
    assert hn_and_ns_of_mobygaze["units"] == f"{378 + 100} segments"


@pytest.mark.long
@pytest.mark.parametrize(("claim", "planted"), [("not-all-objects", "0.3 or 0.7"), ("length", "0.4 or 0.6")])
def test_what_chance_gives_a_claim_of_a_number_near_one_half_is_printed_below_and_above_it(
    parts, claim, planted
):
    """Each claim says that a number is near .5: within a margin of .1 ("not-all-objects") or .05 ("length").

    Such a claim is untrue where the number is off .5, to either side. So the data against which it is tested
    have, planted, a number that is twice the margin below .5, or above: .3 or .7, and .4 or .6.
    """
    printed_cells = parts[claim]

    assert chance_cell(printed_cells).startswith(f"{planted}, a planted difference")


@pytest.mark.long
def test_the_sentence_that_concepts_have_the_same_rates_at_all_levels_fails(table_of_claims):
    """The claim's number is the share of marks that HN and S have on different concepts.

    Up to .05 counts as the same; of the released ObyGaze12 the whole interval is above. None of the test's
    1,999 permutations gives as much as the data, so p is 1 / 2,000.
    """
    row = table_of_claims.loc["same-rate"]

    assert row["verdict"] == "fails"
    assert row["p"] == pytest.approx(1 / 2000)
    assert row["low"] > 0.05
    assert "Activity, 34% of HN marks, 26% of NS marks, 15% of S marks" in row["note"]


@pytest.mark.long
def test_most_disagreements_are_overlooked_scenes_but_more_so_by_chance(table_of_claims):
    """One of two experts left 963 of the 1,533 windows with two labels at EN, which is 63%.

    Labels exchanged at random give 74%, so the number does not support the sentence.
    """
    row = table_of_claims.loc["overlooked"]

    assert row["value"] == pytest.approx(963 / 1533)
    assert row["low"] > 0.5
    assert row["chance_low"] > row["value"]
    assert row["verdict"] == "in line with the number; chance gives 0.743"
    assert row["note"].startswith("963 of 1,533")


@pytest.mark.long
def test_s_is_more_frequent_with_more_concepts(table_of_claims):
    """Of the released clips of HN, NS and S with one concept, 15% are S; with four, 92% are.

    So the sentence that objectification is compositional holds.
    """
    row = table_of_claims.loc["compositional"]

    assert row["verdict"] == "holds"
    assert "15% with 1" in row["note"]
    assert "92% with 4" in row["note"]


@pytest.mark.long
def test_clothing_alone_is_hardly_ever_s(table_of_claims):
    """Of the released clips of HN and S, 37 have Clothing as their only visual concept, and 7 of them are S.

    22 of the 37 have no concept that is heard or told either, and none of them is S.
    """
    note = table_of_claims.loc["clothing-alone", "note"]

    assert "7 of 37" in note
    assert "0 of 22" in note


@pytest.mark.long
def test_the_sentence_that_s_is_the_least_frequent_level_fails(table_of_claims):
    """The number is the share of S less that of the rarest other level. The sentence needs it below 0.

    In the released ObyGaze12 it is above, as NS is rarer than S.
    """
    row = table_of_claims.loc["sure-share"]

    assert row["verdict"] == "fails"
    assert row["value"] > 0
    assert "HN 309 clips, NS 292 clips" in row["note"]
    assert "S 18.4%" in row["note"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("claim", "is_by_labels_of_the_paper"),
    [
        ("same-rate", True),
        ("rising", True),
        ("compositional", True),
        ("clothing-alone", True),
        ("sure-share", True),
        ("any-visual", False),
        ("length", False),
    ],
)
def test_a_note_says_that_the_papers_labels_count_550_clips_as_en(
    table_of_claims, claim, is_by_labels_of_the_paper
):
    """Some claims use the labels as the paper does, which counts 550 clips without a visual concept as EN.

    Others use the labels as annotated. The note on a claim says which.
    """
    note = table_of_claims.loc[claim, "note"]

    assert ("550 of the 1,461" in note) == is_by_labels_of_the_paper
    assert ("labels as annotated" in note) == (not is_by_labels_of_the_paper)


@pytest.mark.long
def test_whether_the_number_of_shots_tells_the_level_is_undecided(table_of_claims):
    """The AUC of the number of shots is 0.526 with p = 0.22, which neither shows nor excludes an effect."""
    row = table_of_claims.loc["length"]

    assert row["value"] == pytest.approx(0.526, abs=5e-4)
    assert row["p"] == pytest.approx(0.22, abs=5e-3)
    assert row["verdict"] == "undecided"


@pytest.mark.long
def test_the_sentence_on_large_effects_of_anger_fails_by_the_papers_own_table(table_of_claims, shared_data):
    """An audit says that six of nine models have large effects at high anger and at low anger.

    Large are effects above .8 that are significant, which a star marks in the audit's printed table. By this
    table, five models have one at one of the two levels of anger.
    """
    printed = pd.read_csv(shared_data / "audits" / "paper_tables" / "wolfe2023_tables_1_2.csv")
    is_large = (printed["d"] > 0.8) & (printed["star"] == 1)
    large_effects_of_anger = printed[(printed["condition"] == "angry") & is_large]
    n_models_at_level = large_effects_of_anger.groupby("level").size()
    assert n_models_at_level.min() == 5

    assert table_of_claims.loc["anger-large", "value"] == 5
    assert table_of_claims.loc["anger-large", "verdict"] == "fails"


@pytest.mark.long
@pytest.mark.parametrize(
    "claim", ["sex-business", "sex-medicine", "sex-science", "anger-positive", "sadness-positive"]
)
def test_other_sentences_on_effects_hold_by_the_tables_that_their_paper_prints(table_of_claims, claim):
    """The sentences say how many of nine models have an effect that is above 0, as "eight of nine".

    They count the effects of photographs of professionals in three fields, and of angry and sad faces.
    """
    assert table_of_claims.loc[claim, "verdict"] == "holds"


@pytest.mark.long
def test_the_sentence_on_medium_effects_of_sadness_holds_in_one_of_two_readings(table_of_claims):
    """By the sentence, five models have medium effects or larger "in the high and low sadness conditions".

    It may mean five models in each condition, or five that have such an effect in both. The printed table has
    five in each, but they are not the same models.
    """
    assert table_of_claims.loc["sadness-medium", "verdict"] == (
        "depends on how it is read: holds as counted in each condition by itself; "
        "fails as the same models in both conditions"
    )


@pytest.mark.long
def test_words_of_smiles_are_less_than_half_as_frequent_for_objectified_as_for_other_persons(
    parts, shared_data
):
    """Captions describe pictures of objectified persons (condition O) and of others (NO).

    The third part of the claim `words` is a ratio, O to NO, of how often captions of happy persons ("HA...")
    have a word of smiles. Words of fewer than 100 uses are left out. The part holds below .5.
    """
    counts = pd.read_csv(shared_data / WORDS)
    happy = counts[counts["emotion"].str.startswith("HA")]
    words_of_smiles = ["happy", "smile", "smiling", "smiles", "smiley", "laughing"]
    frequent = [word for word in words_of_smiles if counts[word].sum() >= 100]
    n_words = happy[frequent].sum(axis=1).groupby(happy["condition"]).sum()
    ratio_of_objectified_to_others = n_words["O"] / n_words["NO"]

    part_on_smiles = parts["words (3)"]
    assert ratio_of_objectified_to_others < 0.5
    assert part_on_smiles["number [95 %]"].startswith(f"{ratio_of_objectified_to_others:.3f}")
    assert part_on_smiles["verdict"] == "holds"


@pytest.mark.long
def test_the_sentence_on_words_of_captions_is_undecided_as_one_of_its_parts_is(table_of_claims, parts):
    """The claim `words` has three parts: on words of anger, of sadness and of happiness."""
    all_parts = [parts["words"], parts["words (2)"], parts["words (3)"]]

    assert [part["verdict"] for part in all_parts].count("undecided") == 1
    assert table_of_claims.loc["words", "verdict"] == "undecided"


@pytest.mark.long
@pytest.mark.parametrize("part", ["words", "words (2)", "words (3)"])
def test_by_chance_words_are_as_frequent_for_objectified_as_for_other_persons(parts, part):
    """Each part of the claim `words` is a ratio of objectified to other persons.

    Chance exchanges these two conditions at random. The cell begins with the median of its ratios, which has
    to be near 1.
    """
    median_by_chance = chance_cell(parts[part]).split()[0]

    assert 0.7 < float(median_by_chance) < 1.4


@pytest.mark.long
def test_claims_without_their_file_say_which_file(files):
    """Only the manifest of ObyGaze12 is given; printed tables are in the package.

    Claims on other data have no number. `overlooked` needs MObyGaze, and says by which command it is made.
    """
    manifest_of_obygaze12 = files[0]
    claims_on_other_data = {claim.name for claim in CLAIMS if claim.needs not in {"obygaze12", "printed"}}

    table = claims([manifest_of_obygaze12]).data.set_index("claim")

    missing = table[table["verdict"].str.startswith("not computed: needs ")]
    assert set(missing.index) == claims_on_other_data
    assert missing["value"].isna().all()
    assert missing.loc["overlooked", "verdict"].count("manifest import mobygaze") == 1


@pytest.mark.long
def test_the_four_parts_of_the_sentence_on_thresholds_project_the_segments_only_once(
    segments, measured_claims, monkeypatch
):
    """The claim `thresholds` has a part for each level. All read MObyGaze's segments, projected onto windows.

    `sweep` makes this projection at several thresholds, which takes long, so the parts share it. Each part
    has to have the same note as in the report on all claims, and the first the numbers that it has alone.
    """
    claim = claim_named("thresholds")
    sweep = measures.manifests.sweep
    n_sweeps = 0

    def count_and_sweep(*args):
        nonlocal n_sweeps
        n_sweeps += 1
        return sweep(*args)

    with monkeypatch.context() as patch:
        patch.setattr(measures.manifests, "sweep", count_and_sweep)
        findings = claims_report._measure_parts([claim], segments)["thresholds"]

    assert n_sweeps == 1
    findings_among_all_claims = measured_claims.findings["thresholds"]
    assert [finding.note for finding in findings] == [finding.note for finding in findings_among_all_claims]
    first_part_alone = measures.thresholds(segments, **claim.parts[0].arguments)
    assert findings[0].value == first_part_alone.value
    assert findings[0].low == first_part_alone.low
    assert findings[0].note == first_part_alone.note


@pytest.mark.long
def test_a_file_that_is_given_twice_is_refused(files):
    """Claims are tested on one file of each kind, such as the manifest of ObyGaze12."""
    manifest_of_obygaze12 = files[0]

    with pytest.raises(AuditError, match=r"obygaze12\.csv"):
        claims([manifest_of_obygaze12, manifest_of_obygaze12])


def test_a_manifest_of_other_clips_than_those_of_the_papers_is_refused(tmp_path):
    """The claims are on ObyGaze12 and MObyGaze; this manifest has one clip of a film that is in neither."""
    unknown_clip = Clip("a", "m", level="EN")
    write_manifest(Manifest((unknown_clip,), tmp_path), tmp_path / "other.csv")

    with pytest.raises(AuditError, match=r"other\.csv"):
        claims([tmp_path / "other.csv"])


PART_SAYING_AT_LEAST_A_TENTH = Part(statistic="", measure="", null=CONSTANT_NULL, least=0.1, says_alike=False)
PART_SAYING_ALIKE = Part(statistic="", measure="", null=CONSTANT_NULL, least=0.1, says_alike=True)
"""It says that two things are alike, which is true where the number is at least .1."""


def finding(low, high, p=NAN):
    """Make a number in the middle of its interval, and the p of its test, if it has one."""
    return Measured((low + high) / 2, low, high, p=p, p_holm=p)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (finding(low=0.2, high=0.3), "holds"),
        (finding(low=-0.3, high=0.0), "fails"),
        (finding(low=0.0, high=0.3), "undecided"),
        (finding(low=0.2, high=0.3, p=0.2), "undecided"),
        (finding(low=-0.3, high=0.0, p=0.2), "undecided"),
    ],
    ids=[
        "its interval is above .1",
        "below .1",
        "across .1",
        "above .1, but its test is not significant",
        "below .1, but its test is not significant",
    ],
)
def test_an_interval_decides_unless_a_test_is_not_significant(number, expected):
    """A part of a sentence says that a number is .1 or more.

    It holds, or fails, where the number's whole interval is on one side of .1. A test with p = .2, which is
    not below .05, leaves it undecided all the same.
    """
    assert verdict(PART_SAYING_AT_LEAST_A_TENTH, number) == expected


def test_a_sentence_that_things_are_alike_holds_though_no_test_is_significant():
    """Two things are called alike where a number is .1 or more; its interval is from .2 to .3.

    A test looks for a difference between them. With p = .2 it found none, which is as the sentence says.
    """
    number_of_alike_things = finding(low=0.2, high=0.3, p=0.2)

    assert verdict(PART_SAYING_ALIKE, number_of_alike_things) == "holds"


def test_a_sentence_that_things_are_alike_fails_only_if_a_test_is_significant():
    """Two things are called alike where a number is .1 or more; its interval, from -.3 to 0, is below.

    By the interval the sentence would fail. But a test that looks for a difference between the two found none
    (p = .2), and without a difference that is shown nobody can say that they are unlike.
    """
    number_of_unlike_things = finding(low=-0.3, high=0.0, p=0.2)

    assert verdict(PART_SAYING_ALIKE, number_of_unlike_things) == "undecided"


@pytest.mark.parametrize(
    ("number", "expected"),
    [(Measured(0.2, unit="models"), "holds"), (Measured(0.2, unit="films"), "undecided")],
    ids=["of models", "of films"],
)
def test_a_number_without_an_interval_decides_only_if_it_is_of_all_published_models(number, expected):
    """A part of a sentence says that a number is .1 or more, and the number is .2.

    A number that is counted over all published models is no estimate and needs no interval. Films are a
    sample of all films, so that their number without an interval decides nothing.
    """
    assert verdict(PART_SAYING_AT_LEAST_A_TENTH, number) == expected


def test_a_number_without_an_interval_counts_as_the_lowest():
    """`lowest` chooses the number whose interval begins lowest, for a claim that all numbers should confirm.

    The mean over one film (5), or over no film (NaN), has no interval, so nothing is sure about it. It is
    chosen even if the mean of four films, 2.5, is a smaller number.
    """
    of_no_films = measures.mean_over_units([], "films")
    of_one_film = measures.mean_over_units([5.0], "films")
    of_four_films = measures.mean_over_units([1.0, 2.0, 3.0, 4.0], "films")

    assert measures.lowest([of_one_film, of_four_films]).value == 5
    assert measures.lowest([of_four_films, of_one_film]).value == 5
    assert measures.lowest([of_four_films, of_no_films]).n == 0
    assert np.isnan(measures.lowest([of_four_films, of_no_films]).p)  # nothing is tested over no film


def claim_on_rising_annotators(segments, levels, folder, monkeypatch):
    """Test the claim that compares HN, NS and S of MObyGaze, on segments of some levels of four films."""
    monkeypatch.setattr(nulls, "N_DRAWS", 20)  # few, since what chance gives does not matter
    films = set(segments.movies[:4])
    part_of_segments = segments.with_clips(
        clip for clip in segments if clip.movie in films and clip.level in levels
    )
    write_manifest(part_of_segments, folder / "part.csv")
    table = claims([folder / "part.csv"]).data.set_index("claim")
    return table.loc["rising-annotators"]


@pytest.mark.long
@pytest.mark.parametrize("levels", [{"EN", "HN", "NS"}, {"EN"}], ids=["without S", "EN alone"])
def test_segments_without_a_level_decide_nothing(segments, tmp_path, monkeypatch, levels):
    """No segment has the level S, or none has one of the three that the claim compares."""
    claim = claim_on_rising_annotators(segments, levels, tmp_path, monkeypatch)

    assert claim["verdict"] == "undecided"
    assert np.isnan(claim["value"])


@pytest.mark.long
def test_a_claim_that_compares_levels_has_a_number_on_four_films_with_all_levels(
    segments, tmp_path, monkeypatch
):
    """The claim compares the levels HN, NS and S of MObyGaze; four of its films are enough to measure it.

    So where segments of these four films lack a level and the claim stays undecided, that is for want of the
    level, not of films.
    """
    all_levels = {"EN", "HN", "NS", "S"}

    claim = claim_on_rising_annotators(segments, all_levels, tmp_path, monkeypatch)

    assert np.isfinite(claim["value"])


CONCEPTS = ("Body", "Look", "Activity")


def corpus_with_rates(rng, rates):
    """Make 720 clips of twelve films with one concept each, drawn at its level's rates of `CONCEPTS`.

    Films differ in their shares of the levels HN, NS and S.
    """
    clips = []
    for movie in range(12):
        shares = rng.dirichlet(np.ones(3))
        for index in range(60):
            level = rng.choice(["HN", "NS", "S"], p=shares)
            concept = rng.choice(CONCEPTS, p=rates[level])
            clips.append(Clip(f"m{movie:02}-{index:03}", f"m{movie:02}", level=level, concepts=(concept,)))
    return Manifest(tuple(clips), Path())


@pytest.mark.long  # simulates
def test_a_planted_difference_between_rates_of_concepts_is_found_and_measured():
    """The rates are those of Body, Look and Activity: at S, Body is .3 rarer and Activity .3 more frequent.

    So .3 of the marks are on other concepts. None of the test's 1,999 permutations of levels gives as much as
    the data, so p is 1 / 2,000.
    """
    rates = {"HN": [0.5, 0.3, 0.2], "NS": [0.5, 0.3, 0.2], "S": [0.2, 0.3, 0.5]}
    corpus = corpus_with_rates(np.random.default_rng(0), rates)

    difference = measures.same_rate(corpus, margin=0.05)

    assert difference.p == pytest.approx(1 / 2000)
    assert difference.low < 0.3 < difference.high


@pytest.mark.long  # simulates
def test_equal_rates_of_concepts_are_not_told_apart_where_films_differ_in_their_levels():
    """Body, Look and Activity have the same rates at all levels, but films differ in their levels.

    So p is about 0.5 on average; over ten corpora its mean has a standard error of .09.
    """
    rng = np.random.default_rng(0)
    rates = {"HN": [0.5, 0.3, 0.2], "NS": [0.5, 0.3, 0.2], "S": [0.5, 0.3, 0.2]}

    p_values = []
    for _ in range(10):
        corpus = corpus_with_rates(rng, rates)
        p_values.append(measures.same_rate(corpus, margin=0.05).p)

    assert np.mean(p_values) > 0.3


def test_training_on_hard_negatives_is_found_to_help_or_to_harm():
    """In eight films of 80 clips the model of HN vs S is better by 1.5 SDs, or that of EN vs S.

    The measure is how much better HN vs S is: its interval is above 0, or below.
    """

    def predictions(strength_of_training_task):
        rng = np.random.default_rng(1)
        tables = []
        for movie in range(8):
            label = rng.random(80) < 0.3
            for train, strength in strength_of_training_task.items():
                for test in ("en_s", "enhn_s"):
                    score = rng.normal(size=80) + strength * label
                    columns = {"model": "mlp", "task": f"{train}>{test}", "movie": f"m{movie}"}
                    tables.append(pd.DataFrame(columns | {"label": label.astype(int), "score": score}))
        return pd.concat(tables)

    where_it_helps = measures.hard_negatives(predictions({"en_s": 0.5, "hn_s": 2.0}))
    where_it_harms = measures.hard_negatives(predictions({"en_s": 2.0, "hn_s": 0.5}))

    assert where_it_helps.low > 0
    assert where_it_harms.high < 0


def test_the_gain_of_hard_negatives_is_measured_within_each_seed_and_film():
    """Models are trained on HN vs S or EN vs S, with seeds 0 and 1, and tested on four films of four clips.

    In the first three films one clip is positive. Models trained on HN rank it first, an average precision of
    1; those trained on EN rank it last of four, 1 / 4. So the gain is .75. Film m3 has positive clips alone,
    in which there is nothing to rank, and is left out. With seed 1 all scores are higher by 10: ranked
    together with those of seed 0, they would give other precisions.
    """
    rows = []
    for train, test in product(("hn_s", "en_s"), ("en_s", "enhn_s")):
        for movie, seed, clip in product(range(4), range(2), range(4)):
            is_positive = movie == 3 or clip == 0
            score_by_rank = -clip if train == "hn_s" else clip  # clip 0 first, or last
            row = {
                "model": "mlp",
                "task": f"{train}>{test}",
                "movie": f"m{movie}",
                "seed": seed,
                "label": int(is_positive),
                "score": float(10 * seed + score_by_rank),
            }
            rows.append(row)

    gain = measures.hard_negatives(pd.DataFrame(rows))

    assert gain.value == pytest.approx(1 - 1 / 4)
    n_films = gain.n
    assert n_films == 3


def write_staging(path, obygaze12, *, columns=("camera", "tilt", "cuts", "close"), tilt=0.1):
    """Write variables in which staging is planted, and return the path.

    The camera moves more at S; it tilts by `tilt` and is close more often at Type of shot; cuts tell nothing.
    """
    rng = np.random.default_rng(0)
    rows = []
    for clip in obygaze12:
        is_shot = "Type of shot" in obygaze12.codebook.visual(clip.concepts)
        row = {
            "clip_id": clip.clip_id,
            "movie": clip.movie,
            "start_s": 0,
            "end_s": 5,
            "camera": (0.1 if clip.level == "S" else 0.05) + 0.01 * rng.normal(),
            "tilt": (tilt if is_shot else 0.0) + 0.01 * rng.normal(),
            "cuts": 10 + rng.normal(),
            "close": float(rng.random() < (0.6 if is_shot else 0.2)),
        }
        rows.append(row)
    table = pd.DataFrame(rows)[["clip_id", "movie", "start_s", "end_s", *columns]]
    table.to_csv(path, index=False, float_format="%.4f", lineterminator="\n")
    return path


@pytest.fixture(scope="module")
def table_with_staging(files, obygaze12, tmp_path_factory):
    """Verdict and value of each claim, by its name, for ObyGaze12 and the staging of `write_staging`."""
    path = write_staging(tmp_path_factory.mktemp("staging") / "variables.csv", obygaze12)
    return claims([files[0], path]).data.set_index("claim")


@pytest.mark.long
def test_sentences_on_staging_hold_in_part_and_say_what_is_not_measured(table_with_staging):
    """Staging was planted for the clips of ObyGaze12 as the sentences say, but for cuts, which tell nothing.

    The camera moves by .1 at S and by .05 at other levels. Of each sentence something is not measured.
    """
    unmeasured_of_claim = {
        "camera-level": "placement of the camera",
        "shot-tilt": "whose perspective",
        "shot-close": "whose face it is",
    }

    for claim, unmeasured in unmeasured_of_claim.items():
        verdict = table_with_staging.loc[claim, "verdict"]
        assert verdict.startswith("in part: what is measured holds; not measured")
        assert unmeasured in verdict

    difference_of_camera = 0.1 - 0.05
    assert table_with_staging.loc["camera-level", "value"] == pytest.approx(difference_of_camera, abs=0.005)
    assert table_with_staging.loc["look-cuts", "verdict"] == "undecided"


@pytest.mark.long
def test_a_planted_tilt_downwards_refutes_the_sentence_on_tilts_upwards(files, obygaze12, tmp_path):
    """The camera tilts by -.1, downwards, in clips with the concept Type of shot, and not in others."""
    manifest_of_obygaze12 = files[0]
    staging = write_staging(tmp_path / "variables.csv", obygaze12, tilt=-0.1)

    table = claims([manifest_of_obygaze12, staging]).data.set_index("claim")

    assert table.loc["shot-tilt", "verdict"] == "fails"


def test_variables_of_staging_without_the_manifest_decide_nothing(obygaze12, tmp_path):
    """The table of staging has variables of ObyGaze12's clips, such as the camera's motion, and no labels.

    Without the manifest no claim can be measured on it; a dash stands in the printed row.
    """
    staging = write_staging(tmp_path / "variables.csv", obygaze12)

    report = claims([staging])

    table = report.data.set_index("claim")
    assert "needs variables of ObyGaze12's clips" in table.loc["camera-level", "verdict"]
    printed_cells = cells_of(report)["camera-level"]
    assert printed_cells["number [95 %]"] == NOTHING
    assert printed_cells["units"] == NOTHING


@pytest.mark.long
def test_variables_without_the_column_camera_leave_its_sentence_undecided(files, obygaze12, tmp_path):
    """Of staging, cuts alone were measured; the sentence is about how much the camera moves."""
    manifest_of_obygaze12 = files[0]
    staging = write_staging(tmp_path / "variables.csv", obygaze12, columns=("cuts",))

    table = claims([manifest_of_obygaze12, staging]).data.set_index("claim")

    row = table.loc["camera-level"]
    assert row["verdict"] == "undecided"
    assert "0 of 1,914 clips have the column camera" in row["note"]


STAGING_CSV = "clip_id,movie,start_s,end_s,camera,tilt,cuts,close\na,m,0,5,0.1,0,10,0\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [("a,m,0,5,0.1,0,10,0\n", "has a row already"), ("x,y,0,5,fast,0,10,0\n", "column camera")],
    ids=["a second row of a clip", "a word"],
)
def test_a_bad_row_of_staging_is_refused(tmp_path, row, message):
    """The table has a good row of the clip a, behind which the bad one stands; `camera` is its fifth cell."""
    (tmp_path / "variables.csv").write_text(STAGING_CSV + row, encoding="utf-8")

    with pytest.raises(ManifestError, match=message):
        claims([tmp_path / "variables.csv"])


def test_sentences_that_are_not_tested_are_listed_with_what_would_decide_them():
    """The package has a list of them, `OPEN`. The report has a note on each, also where no file is given."""
    report = claims([])

    notes = [note for note in notes_of(report) if note.startswith("not tested")]
    assert OPEN
    for open_sentence, note in zip(OPEN, notes, strict=True):
        assert open_sentence["decided_by"] in note


# --- nulls
# ---------------------------------------------------------------------------


def test_a_part_that_is_held_against_a_constant_says_why_this_is_what_chance_gives():
    """A part of a claim has a null: how its number behaves if the sentence is untrue.

    Mostly it is made by exchanging labels, which needs no argument. A constant needs one (`argued`).
    """
    for claim in CLAIMS:
        for part in claim.parts:
            is_argued_for = part.argued != ""
            assert (part.null == CONSTANT_NULL) == is_argued_for, claim.name


@pytest.mark.long  # of the whole corpus
def test_every_measure_has_the_null_that_its_part_names(measured_claims):
    """A part of a claim names its null: the way in which data are made of which the sentence is untrue.

    The measure has to return such a null, so that the report tells the truth of how a sentence was tested.
    There is none to return for a constant, nor for numbers that are counted over all there is (NO_NULL):
    these are not a sample. The released data, and the tables that papers print, are measured here.
    """
    kinds_measured = {claim.needs for claim in CLAIMS if claim.name in measured_claims.findings}
    assert kinds_measured == {"printed", "obygaze12", "mobygaze", "words"}

    measured_here = [claim for claim in CLAIMS if claim.needs in kinds_measured]
    for claim in measured_here:
        for part, measured in zip(claim.parts, measured_claims.findings[claim.name], strict=True):
            if part.null in {NO_NULL, CONSTANT_NULL}:
                assert measured.null is None, claim.name
            else:
                assert measured.null.kind == part.null, claim.name
            is_counted_over_all = measured.unit in measures.COUNTED_UNITS
            assert (part.null == NO_NULL) == is_counted_over_all, claim.name


@pytest.mark.parametrize(
    ("range_of_part", "chance", "expected"),
    [
        ({"above": 0.52}, 0.5, "holds"),
        ({"above": 0.52}, 0.8, "in line with the number; chance gives 0.8"),
        ({"above": 0.52}, 0.9, "in line with the number; chance gives 0.9"),
        ({"above": 0.5}, NAN, "in line with the number; chance gives"),
        ({"below": 0.95}, 1.0, "holds"),
    ],
    ids=[
        "the part says 'above .52', and chance gives less than the data",
        "'above .52', and chance gives as much",
        "'above .52', and chance gives more",
        "'above .5', and chance is undefined",
        "'below .95', and chance gives more",
    ],
)
def test_a_part_holds_only_where_chance_gives_numbers_that_support_it_less(range_of_part, chance, expected):
    """A part of a sentence says that a number is above, or below, a bound. The number is .8, from .7 to .9.

    Data in which the sentence is untrue (the null) give numbers near `chance`. If these speak for the
    sentence as much as .8 does, the number is in line with the sentence, but does not support it.
    """

    def draw_near_chance(_data, rng):
        return chance + 0.001 * rng.normal()

    null = Null("levels", data=0.8, statistic=float, randomise=draw_near_chance)
    number = Measured(value=0.8, low=0.7, high=0.9, unit="films", null=null)
    part = Part(statistic="", measure="", null="levels", **range_of_part)

    assert verdict(part, number).startswith(expected)


IN_LINE_VERDICT = "in line with the number; chance gives 0.3"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds", "holds"], "holds"),
        ([IN_LINE_VERDICT, "holds"], IN_LINE_VERDICT),
        ([IN_LINE_VERDICT, "undecided"], "undecided"),
        (["fails", IN_LINE_VERDICT], "fails"),
    ],
    ids=["two hold", "one in line", "one undecided", "one fails"],
)
def test_the_worst_verdict_on_a_part_is_the_verdict_on_the_sentence(verdicts, expected):
    """The sentence of the claim `sure-share` has two parts, each of which has a verdict.

    From the best to the worst they are: holds, in line with the number, undecided, fails.
    """
    sentence_of_two_parts = claim_named("sure-share")

    assert verdict_of(sentence_of_two_parts, verdicts) == expected


def test_a_sentence_of_which_something_is_unmeasured_holds_in_part():
    """Of the sentence `camera-level`, how the camera moves is measured, and where it is placed is not.

    What is not measured may still be false, so the sentence can't hold wholly. It can fail by what is
    measured.
    """
    claim = claim_named("camera-level")

    assert verdict_of(claim, ["holds"]).startswith("in part")
    assert verdict_of(claim, ["fails"]) == "fails"


def test_a_verdict_of_a_sentence_of_two_readings_is_given_once_where_they_agree():
    """The sentence `sadness-medium` can be read in two ways.

    Its first two parts belong to one reading, of which the worse verdict counts, the third to the other.
    """
    claim = claim_named("sadness-medium")

    assert verdict_of(claim, ["holds", "holds", "holds"]) == "holds"
    assert verdict_of(claim, ["holds", "fails", "fails"]) == "fails"
    where_they_disagree = verdict_of(claim, ["holds", "holds", "fails"])
    assert f"holds as {claim.parts[0].reading}" in where_they_disagree
    assert f"fails as {claim.parts[2].reading}" in where_they_disagree


PART_THAT_THE_SENTENCE_DOES_NOT_NAME = Part(
    statistic="", measure="", null=CONSTANT_NULL, above=0.0, added_because="more of it would be expected"
)
"""It is true where a number is above 0. We expect this by the sentence, which does not mention the number."""


def test_a_sentence_does_not_hold_by_a_number_that_it_does_not_name():
    """The whole interval, from .4 to .6, is above 0. Had the sentence named the number, it would hold.

    As it is, the number is only in line with it. The claim `look-cuts` has such a part and no other, so this
    is the verdict on its sentence too.
    """
    above_0 = Measured(value=0.5, low=0.4, high=0.6, unit="films")

    verdict_on_part = verdict(PART_THAT_THE_SENTENCE_DOES_NOT_NAME, above_0)

    assert verdict_on_part.startswith("in line with the number")
    assert verdict_of(claim_named("look-cuts"), [verdict_on_part]) == verdict_on_part


def test_a_sentence_does_not_fail_by_a_number_that_it_does_not_name():
    """The whole interval, from -.6 to -.4, is below 0. Had the sentence named the number, it would fail."""
    below_0 = Measured(value=-0.5, low=-0.6, high=-0.4, unit="films")

    assert verdict(PART_THAT_THE_SENTENCE_DOES_NOT_NAME, below_0) == "undecided"


@dataclass(frozen=True)
class PartOfClaim:
    """A part of a claim."""

    claim: str  # name of the claim
    part: Part  # the part, with its measure and its null

    def measured(self, content):
        """Measure the part's number in the content of an input file (None for printed tables)."""
        return getattr(measures, self.part.measure)(content, **self.part.arguments)


def parts_tested(needs, null):
    """List the parts of all claims that are measured in a kind of data and have a kind of null.

    Parameters
    ----------
    needs
        The kind of data, such as "obygaze12" or "words".
    null
        The way in which such data are made that the sentence is untrue of, such as "levels within films".
    """
    tested = []
    for claim in CLAIMS:
        if claim.needs == needs:
            tested += [PartOfClaim(claim.name, part) for part in claim.parts if part.null == null]
    return tested


@pytest.mark.long
@pytest.mark.parametrize(
    ("needs", "null"),
    [("words", "conditions within persons"), ("printed", "a planted difference of twice the margin")],
    ids=["words", "printed"],
)
def test_claims_seldom_hold_of_data_that_are_randomised_so_that_they_are_untrue(files, needs, null):
    """The data are counts of words in captions, or tables that a paper prints (which need no file).

    The null of a part says how to randomise its data so that the sentence is untrue of them: it exchanges
    the conditions of each person, or moves the mean away from where the sentence says that it is. In each of
    100 such data sets the part is measured and judged. It may hold by chance in 5 of them, on average over
    parts, and in 10 at most.
    """
    file_of_words = files[2]
    content = read_input(file_of_words)[1] if needs == "words" else None
    tested = parts_tested(needs, null)
    assert len(tested) >= 2
    n_data_sets = 100
    rng = np.random.default_rng(0)
    n_holding_of_parts = []
    for part_of_claim in tested:
        measured_in_released_data = part_of_claim.measured(content)
        null_of_part = measured_in_released_data.null
        n_holding = 0
        for _ in range(n_data_sets):
            untrue_data = null_of_part.randomise(null_of_part.data, rng)
            measured = measured_in_released_data.measure_again(untrue_data)
            if verdict(part_of_claim.part, measured) == "holds":
                n_holding += 1
        n_holding_of_parts.append(n_holding)

    assert max(n_holding_of_parts) <= 0.1 * n_data_sets
    assert sum(n_holding_of_parts) <= 0.05 * n_data_sets * len(tested)


@pytest.mark.long  # simulates
def test_a_mean_above_0_seldom_holds_where_the_signs_of_films_are_random():
    """Twelve films have numbers of about 1 or -1, as a coin falls: their true mean is 0.

    In 200 such data sets "the mean is above 0" may hold by chance in 5 %, which are 10.
    """
    rng = np.random.default_rng(0)
    mean_above_0 = Part(statistic="", measure="", null="signs by film", above=0.0)

    n_holding = 0
    for _ in range(200):
        about_1 = rng.normal(loc=1, scale=0.5, size=12)
        number_of_film = about_1 * rng.choice([-1, 1], size=12)
        mean = measures.mean_over_units(number_of_film, "films")
        measured = replace(mean, null=null_of_signs_by_film(number_of_film))
        if verdict(mean_above_0, measured) == "holds":
            n_holding += 1

    assert n_holding <= 10


def n_data_sets_with_a_mean_of_one_half(true_mean):
    """Count of how many of 100 data sets the sentence "the mean of films is .5, within .05" holds.

    In each data set, twelve films have numbers around the true mean. The sentence is held against data whose
    mean is planted twice the margin away from .5 (its null), and so clearly elsewhere.
    """
    is_one_half = Part(statistic="", measure="", null="planted", least=0.45, most=0.55, says_alike=True)
    data_sets = np.random.default_rng(0).normal(loc=true_mean, scale=0.03, size=(100, 12))

    n_holding = 0
    for number_of_film in data_sets:
        null = planted_off_centre(number_of_film, centre=0.5, margin=0.05)
        measured = replace(measures.mean_over_units(number_of_film, "films"), null=null)
        if verdict(is_one_half, measured) == "holds":
            n_holding += 1
    return n_holding


@pytest.mark.long  # simulates
def test_the_sentence_that_a_mean_is_one_half_mostly_holds_where_it_is_true():
    """The films of 100 data sets have a true mean of .5."""
    assert n_data_sets_with_a_mean_of_one_half(true_mean=0.5) >= 90


@pytest.mark.long  # simulates
def test_the_sentence_that_a_mean_is_one_half_seldom_holds_where_it_is_untrue():
    """The films of 100 data sets have a true mean of .6, and .05 is the margin: 5 may pass by chance."""
    assert n_data_sets_with_a_mean_of_one_half(true_mean=0.5 + 2 * 0.05) <= 5


def levels_exchanged(manifest, rng):
    """Exchange the levels of clips within each film."""
    clips = sorted(manifest, key=lambda clip: clip.movie)
    films = np.unique([clip.movie for clip in clips], return_inverse=True)[1]
    levels = permuted_within(np.array([clip.level for clip in clips]), films, rng)
    return manifest.with_clips(
        replace(clip, level=str(level)) for clip, level in zip(clips, levels, strict=True)
    )


def one_annotators_levels_exchanged(segments, rng):
    """Exchange the levels of one annotator's segments within each film."""
    first = min(clip.annotator for clip in segments)
    exchanged = levels_exchanged(segments.with_clips(c for c in segments if c.annotator == first), rng)
    return segments.with_clips([*exchanged, *(clip for clip in segments if clip.annotator != first)])


N_MANIFESTS = 10


def n_holding_by_claim(tested, manifest, exchange):
    """Count for each claim in how many of ten manifests with exchanged labels its part holds.

    Parameters
    ----------
    tested
        The parts of claims.
    manifest
        The released labels.
    exchange
        Function from these labels, and a generator of random numbers, to a manifest with exchanged labels.
    """
    rng = np.random.default_rng(0)
    n_holding = Counter()
    for _ in range(N_MANIFESTS):
        exchanged = exchange(manifest, rng)
        for part_of_claim in tested:
            if verdict(part_of_claim.part, part_of_claim.measured(exchanged)) == "holds":
                n_holding[part_of_claim.claim] += 1
    return n_holding


@pytest.mark.long  # simulates
def test_claims_seldom_hold_where_levels_are_exchanged_within_films(obygaze12):
    """The claims are on levels of ObyGaze12, and untrue where each film's clips have exchanged levels.

    Each is tested in ten such manifests. A part holds by chance with p = .025: in more than 3 of 10
    manifests, once in 10,000 runs. Over all parts a tenth may hold.
    """
    tested = parts_tested("obygaze12", "levels within films")
    assert tested

    n_holding = n_holding_by_claim(tested, obygaze12, exchange=levels_exchanged)

    assert max(n_holding.values(), default=0) <= 3
    n_verdicts = N_MANIFESTS * len(tested)
    assert n_holding.total() <= 0.1 * n_verdicts


@pytest.mark.long  # simulates
@pytest.mark.nightly
def test_claims_on_two_annotators_seldom_hold_where_the_levels_of_one_are_exchanged(segments):
    """The claims are on the two annotators of MObyGaze, and untrue where one's levels are exchanged in films.

    Each is tested in ten such manifests. A part holds by chance with p = .025: in more than 3 of 10
    manifests, once in 10,000 runs. Over all parts a tenth may hold.
    """
    tested = parts_tested("mobygaze", "one annotator's labels within films")
    assert tested

    n_holding = n_holding_by_claim(tested, segments, exchange=one_annotators_levels_exchanged)

    assert max(n_holding.values(), default=0) <= 3
    n_verdicts = N_MANIFESTS * len(tested)
    assert n_holding.total() <= 0.1 * n_verdicts


def part_of_range(**ends):
    """A part of a sentence that is true of a number in a range, and held against a constant."""
    return Part(statistic="a number", measure="a_measure", null=CONSTANT_NULL, **ends)


@pytest.mark.parametrize(
    ("count", "expected"), [(2, "fails"), (3, "holds"), (7, "holds"), (8, "fails")], ids=str
)
def test_at_least_three_and_at_most_seven_is_true_of_three_and_of_seven(count, expected):
    """The number is a count, which needs no interval and no test."""
    counted = Measured(value=count, p_holm=NAN, unit="clips")

    assert verdict(part_of_range(least=3, most=7), counted) == expected


@pytest.mark.parametrize(("count", "expected"), [(3, "fails"), (4, "holds"), (7, "fails")], ids=str)
def test_more_than_three_and_fewer_than_seven_is_true_of_neither_three_nor_seven(count, expected):
    """The number is a count, which needs no interval and no test."""
    counted = Measured(value=count, p_holm=NAN, unit="clips")

    assert verdict(part_of_range(above=3, below=7), counted) == expected


@pytest.mark.parametrize(
    ("low", "high", "p_holm", "expected"),
    [
        (0.1, 0.29, 0.001, "fails"),
        (0.1, 0.3, 0.001, "undecided"),
        (0.3, 0.7, 0.001, "holds"),
        (0.7, 0.9, 0.001, "undecided"),
        (0.71, 0.9, 0.001, "fails"),
        (0.4, 0.5, 0.0499, "holds"),
        (0.4, 0.5, 0.05, "undecided"),
    ],
)
def test_a_sampled_number_is_decided_by_where_its_whole_interval_lies(low, high, p_holm, expected):
    """The part is true from .3 to .7, both included; p is significant below .05."""
    finding = Measured(value=(low + high) / 2, low=low, high=high, p_holm=p_holm, unit="film")

    decided = verdict(part_of_range(least=0.3, most=0.7), finding)

    assert decided.startswith(expected)
