"""How concepts combine: the tests are exact within films, and ObyGaze12 is compositional."""

import json
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from obygaze_features.manifest import Clip, LabelPolicy, Manifest, apply_policy, write_manifest
from obygaze_features.manifest.projection import project, windows
from obygaze_studies.obygaze12.composition import (
    alone_or_combined,
    composition_report,
    concept_pairs,
    concept_sets,
    concept_trend,
    exact_common,
)
from obygaze_studies.obygaze12.statistics import as_text, grouped, statistics
from tests.command import obygaze

small = st.integers(0, 4)


def clips_of(*rows):
    """Make a manifest of clips, each given as (movie, level, concepts)."""
    return Manifest(
        tuple(
            Clip(str(index), movie, level=level, concepts=concepts)
            for index, (movie, level, concepts) in enumerate(rows)
        ),
        Path(),
    )


@given(n_both=small, n_first_alone=small, n_second_alone=small, n_neither=small)
def test_with_one_film_the_test_of_a_pair_is_fishers_exact_test(
    n_both, n_first_alone, n_second_alone, n_neither
):
    """A film has clips with both of two concepts, with one of them and with neither, 0 to 4 of each.

    Fisher's test, of SciPy here, takes these four numbers; ours takes those of clips with both, with the
    first, with the second and of all.
    """
    n_clips = n_both + n_first_alone + n_second_alone + n_neither
    if n_clips == 0:
        return

    ours = exact_common(
        both=[n_both],
        first=[n_both + n_first_alone],
        second=[n_both + n_second_alone],
        clips=[n_clips],
    )

    expected = fisher_exact([[n_both, n_first_alone], [n_second_alone, n_neither]]).pvalue
    assert ours["p"] == pytest.approx(expected, abs=1e-9)


def test_with_two_films_every_exchange_within_films_is_counted():
    """The first film has four clips, the second three. Each clip has, or lacks, each of two concepts.

    By chance, the clips of a film exchange the second concept. Here all exchanges are made, and the clips
    with both concepts are counted in each: `expected` is the mean of these counts. Observed are 3 such clips,
    and p is the probability of all counts that are at most as probable as 3.
    """
    has_first_concept = [1, 1, 0, 0, 1, 1, 0]
    has_second_concept = [1, 1, 0, 0, 1, 0, 0]
    n_observed = int(np.dot(has_first_concept, has_second_concept))
    assert n_observed == 3
    counts = []
    for exchanged_in_first_film in permutations(has_second_concept[:4]):
        for exchanged_in_second_film in permutations(has_second_concept[4:]):
            exchanged = [*exchanged_in_first_film, *exchanged_in_second_film]
            counts.append(int(np.dot(has_first_concept, exchanged)))
    probability_of_count = {count: counts.count(count) / len(counts) for count in set(counts)}
    rounding = 1 + 1e-9
    most_probable = probability_of_count[n_observed] * rounding

    ours = exact_common(both=[2, 1], first=[2, 2], second=[2, 1], clips=[4, 3])

    assert ours["expected"] == pytest.approx(np.mean(counts))
    as_improbable = [
        probability for probability in probability_of_count.values() if probability <= most_probable
    ]
    assert ours["p"] == pytest.approx(sum(as_improbable))


def test_a_film_without_clips_changes_nothing_in_the_test_of_a_pair():
    """Beside a film of no clips is one of six clips: three have both properties, and three neither."""
    with_a_film_without_clips = exact_common(both=[0, 3], first=[0, 3], second=[0, 3], clips=[0, 6])

    assert with_a_film_without_clips == exact_common(both=[3], first=[3], second=[3], clips=[6])


def test_a_link_that_films_alone_explain_is_not_significant():
    """Film a has both properties in every clip and film b none: pooled they go together, within films not."""
    result = exact_common(both=[20, 0], first=[20, 0], second=[20, 0], clips=[20, 20])

    assert result["p"] == 1


def test_a_planted_number_of_concepts_that_rises_with_the_level_is_found():
    """HN clips have one concept, NS two and S three in each of six films.

    All six films rise, so p is 2 / 2^6 = 2 / 64.
    """
    ladder = {"EN": (), "HN": ("Body",), "NS": ("Body", "Look"), "S": ("Body", "Look", "Posture")}
    rising = [(f"m{film}", level, marked) for film in range(6) for level, marked in ladder.items()]

    trend = concept_trend(clips_of(*rising))

    assert trend == {
        "HN_concepts": 1, "NS_concepts": 2, "S_concepts": 3,
        "rises": True, "difference": 2, "films_tested": 6, "p": 2 / 64,
    }  # fmt: skip


def test_a_number_of_concepts_that_is_the_same_at_all_levels_does_not_rise():
    """A clip of HN has one concept, and so has one of S."""
    trend = concept_trend(clips_of(("m", "HN", ("Body",)), ("m", "S", ("Look",))))

    assert trend["rises"] is False
    assert trend["difference"] == 0
    assert trend["p"] == 1


def test_whether_the_number_of_concepts_rises_is_unknown_from_one_level():
    """The only clip is of S."""
    assert concept_trend(clips_of(("m", "S", ("Look",))))["rises"] is None


@pytest.fixture(scope="module")
def labelled(obygaze12):
    """ObyGaze12 by the labels of the paper, which counts clips without a visual concept as EN."""
    return apply_policy(obygaze12, LabelPolicy.PAPER)


def test_in_obygaze12_concepts_rise_with_the_level_as_printed(labelled):
    """Printed in section 3.4: 1.26, 1.71, 2.6; the test over films is ours. One film has no S clip."""
    trend = concept_trend(labelled)

    means = [f"{trend[f'{level}_concepts']:.2f}" for level in ("HN", "NS", "S")]
    assert means == ["1.26", "1.71", "2.60"]
    assert trend["rises"]
    assert trend["films_tested"] == 11
    assert trend["p"] == pytest.approx(2 / 2**11)


def assert_concepts_rise_with_the_level_for_each_annotator(labels):
    """Check for MObyGaze's two annotators that concepts rise from HN to S, in a test over its 20 films."""
    labels_of_annotator = grouped(labels, "annotator")
    assert set(labels_of_annotator) == {"annotator1", "annotator2"}
    for labels_of_one in labels_of_annotator.values():
        trend = concept_trend(labels_of_one)
        assert trend["rises"]
        assert trend["p"] < 1e-5
        assert trend["films_tested"] == 20


@pytest.mark.long
def test_in_free_segments_concepts_rise_with_the_level_for_each_annotator(segments):
    """The ObyGaze12 paper says so in section 3.4, without numbers: of HN, NS and S, S has most concepts.

    Labels of single annotators were released of MObyGaze alone, of spans that they delimited freely.
    """
    assert_concepts_rise_with_the_level_for_each_annotator(apply_policy(segments, LabelPolicy.PAPER))


@pytest.mark.long
def test_in_windows_concepts_rise_with_the_level_for_each_annotator(segments):
    """MObyGaze's segments are projected onto windows of 46 s, which are more like ObyGaze12's clips."""
    labels = apply_policy(segments, LabelPolicy.PAPER)

    labels_of_windows = project(labels, windows(labels, seconds=46), per_annotator=True).manifest

    assert_concepts_rise_with_the_level_for_each_annotator(labels_of_windows)


def test_sets_and_pairs_add_up(labelled):
    """Each of the 1,914 clips of ObyGaze12 has one set of concepts; an empty one have 1,003 clips, all EN.

    A pair of concepts is counted at three levels, HN, NS and S, in the clips whose set holds both.
    """
    n_clips_of_set = concept_sets(labelled)
    assert sum(n_of_level.total() for n_of_level in n_clips_of_set.values()) == 1914
    assert n_clips_of_set[()] == {"EN": 1003}

    pairs = {(row["level"], row["name"]): row for row in concept_pairs(labelled)}
    all_pairs = list(combinations(labelled.codebook.visual_concepts, 2))
    assert len(pairs) == 3 * len(all_pairs)
    for (level, name), row in pairs.items():
        pair = set(name.split(" + "))
        n_clips_with_both = 0
        for concepts, n_of_level in n_clips_of_set.items():
            if pair <= set(concepts):
                n_clips_with_both += n_of_level[level]
        assert row["clips"] == n_clips_with_both


def test_body_and_clothing_are_together_in_s_more_often_than_by_chance(labelled):
    """In ObyGaze12, 87 S clips have both; 68.2 would if either were marked at random within each film."""
    (row,) = [
        row for row in concept_pairs(labelled) if (row["level"], row["name"]) == ("S", "Body + Clothing")
    ]

    assert row["clips"] == 87
    assert round(row["expected"], 1) == 68.2
    assert row["p_holm"] < 1e-4


def body_alone_is_hn_and_beside_look_s():
    """Plant four films, each of three HN clips of Body alone and two S clips of Body and Look."""
    rows = []
    for film in ("film0", "film1", "film2", "film3"):
        rows += 3 * [(film, "HN", ("Body",))]
        rows += 2 * [(film, "S", ("Body", "Look"))]
    return clips_of(*rows)


def test_a_concept_whose_clips_are_s_only_beside_other_concepts_has_a_small_p():
    """Each of four films has three clips of Body alone, which are HN, and two of Body and Look, which are S.

    So of the clips of Body alone 12 are not S and none is, and of those with more concepts 8 are. The test
    compares the two pairs of counts.
    """
    row_of_concept = {row["name"]: row for row in alone_or_combined(body_alone_is_hn_and_beside_look_s())}

    body = row_of_concept["Body"]
    n_not_s, n_s = body["alone"]
    assert (n_not_s, n_s) == (12, 0)
    n_not_s, n_s = body["combined"]
    assert (n_not_s, n_s) == (0, 8)
    n_s_with_other_concepts = body["clips"]
    assert n_s_with_other_concepts == 8
    assert body["p_holm"] < 1e-3


def test_a_concept_that_is_never_alone_has_a_p_of_1():
    """Look stands beside Body in 8 clips of S, which cannot be compared with clips of Look alone."""
    row_of_concept = {row["name"]: row for row in alone_or_combined(body_alone_is_hn_and_beside_look_s())}

    look = row_of_concept["Look"]
    assert look["alone"] == (0, 0)
    assert look["combined"] == (0, 8)
    assert look["p"] == 1


def test_the_share_of_s_is_printed_for_each_number_of_concepts():
    """Clips with one concept, Body, are all HN, and those with two, Body and Look, all S."""
    manifest = body_alone_is_hn_and_beside_look_s()

    by_number_of_concepts = composition_report(manifest, LabelPolicy.RAW).blocks[0]

    share_of_s = {row[0]: row[-1] for row in by_number_of_concepts.rows}
    assert share_of_s == {"1": "0.0%", "2": "100.0%"}


def test_a_level_at_which_nothing_was_marked_has_no_column_of_concepts():
    """Of three clips, that of EN has no concept. HN and S have concepts, and NS has no clip.

    The table of concepts has two columns for a level: the share of its clips with a concept, and the share of
    its marks. So there are two of HN and two of S.
    """
    clips = clips_of(("a", "EN", ()), ("a", "HN", ("Body",)), ("a", "S", ("Body", "Posture")))

    text = as_text(statistics(clips), len(clips), {})

    header = next(line for line in text.splitlines() if line.startswith("concept "))
    columns_of_shares = header.removeprefix("concept ").split()
    of_clips = ["of", "HN", "of", "S"]
    of_marks = ["of", "HN", "of", "S"]
    assert columns_of_shares == [*of_clips, *of_marks]


def test_a_clip_that_two_people_labelled_is_one_clip_in_counts_too(tmp_path, capsys):
    """AB and CD labelled a clip, and AB another: 2 clips, 3 rows of annotators."""
    rows = [
        Clip("1", "film", level="S", annotator="AB"),
        Clip("1", "film", level="HN", annotator="CD"),
        Clip("2", "film", level="EN", annotator="AB"),
    ]
    write_manifest(Manifest(tuple(rows), tmp_path), tmp_path / "film.csv")
    obygaze("manifest", "inspect", tmp_path / "film.csv", "--json")
    inspected = json.loads(capsys.readouterr().out)

    obygaze("manifest", "stats", tmp_path / "film.csv", "--policy", "raw", "--json")
    counted = json.loads(capsys.readouterr().out)["policies"]["raw"]
    obygaze("manifest", "stats", tmp_path / "film.csv", "--policy", "raw")

    assert counted["clips"] == inspected["clips"] == 2
    assert counted["rows"] == inspected["rows"] == 3
    assert capsys.readouterr().out.startswith(
        "label policy raw: 2 clips, 3 rows of annotators, 0 without level, 0 left out by the policy\n"
    )


def test_clips_without_a_concept_are_no_row_in_the_table_of_sets_of_concepts():
    """Four clips have no concept. Three have Body alone, of which one is S, and one of S has Body and Look.

    So the table has two sets, the more frequent one first, with the number of clips at each level.
    """
    without_a_concept = 4 * [("film", "EN", ())]
    body_alone = [("film", "HN", ("Body",)), ("film", "HN", ("Body",)), ("film", "S", ("Body",))]
    body_and_look = [("film", "S", ("Body", "Look"))]
    clips = clips_of(*without_a_concept, *body_alone, *body_and_look)

    report = composition_report(clips, LabelPolicy.RAW)

    (table,) = [block for block in report.blocks if block.title == "Sets of concepts"]
    assert [row[0] for row in table.rows] == ["Body", "Look + Body"]
    column_of_s = list(table.headers).index("S")
    assert [row[column_of_s] for row in table.rows] == ["1", "1"]
    assert any("2 most frequent of 2 sets" in note for note in table.notes)
