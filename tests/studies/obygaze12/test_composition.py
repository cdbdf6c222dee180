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
    """Two concepts are exchanged among the clips of each film in every possible way.

    The share of exchanges as improbable as what is observed is p.
    """
    # four clips of one film, three of another
    first = [1, 1, 0, 0, 1, 1, 0]
    second = [1, 1, 0, 0, 1, 0, 0]
    sums = []
    for one_film in permutations(second[:4]):
        for other_film in permutations(second[4:]):
            sums.append(int(np.dot(first, [*one_film, *other_film])))  # noqa: PERF401
    ours = exact_common([2, 1], [2, 2], [2, 1], [4, 3])
    chance = {value: sums.count(value) / len(sums) for value in set(sums)}

    assert ours["expected"] == pytest.approx(np.mean(sums))
    assert ours["p"] == pytest.approx(sum(p for p in chance.values() if p <= chance[3] * (1 + 1e-9)))


def test_a_film_without_clips_expects_nothing():
    assert exact_common([0, 3], [0, 3], [0, 3], [0, 6]) == exact_common([3], [3], [3], [6])


def test_a_link_that_films_alone_explain_is_not_significant():
    """Film a has both properties in every clip and film b none: pooled they go together, within films not."""
    assert exact_common([20, 0], [20, 0], [20, 0], [20, 20])["p"] == 1


def test_a_planted_trend_rises_and_a_flat_one_does_not():
    """HN clips have one concept, NS two and S three in each of six films.

    All six films rise, so p is 2 / 2^6 = 2 / 64.
    """
    ladder = {"EN": (), "HN": ("Body",), "NS": ("Body", "Look"), "S": ("Body", "Look", "Posture")}
    rising = [(f"m{film}", level, marked) for film in range(6) for level, marked in ladder.items()]
    result = concept_trend(clips_of(*rising))
    assert result == {
        "HN_concepts": 1, "NS_concepts": 2, "S_concepts": 3,
        "rises": True, "difference": 2, "films_tested": 6, "p": 2 / 64,
    }  # fmt: skip
    flat = concept_trend(clips_of(("m", "HN", ("Body",)), ("m", "S", ("Look",))))

    assert (flat["rises"], flat["difference"], flat["p"]) == (False, 0, 1)
    assert concept_trend(clips_of(("m", "S", ("Look",))))["rises"] is None


@pytest.fixture(scope="module")
def labelled(obygaze12):
    return apply_policy(obygaze12, LabelPolicy.PAPER)


def test_in_obygaze12_concepts_rise_with_the_level_as_printed(labelled):
    """Printed in section 3.4: 1.26, 1.71, 2.6; the test over films is ours. One film has no S clip."""
    result = concept_trend(labelled)
    means = [f"{result[f'{level}_concepts']:.2f}" for level in ("HN", "NS", "S")]
    assert means == ["1.26", "1.71", "2.60"]
    assert result["rises"]
    assert (result["films_tested"], result["p"]) == (11, pytest.approx(2 / 2**11))


@pytest.mark.long
@pytest.mark.parametrize("projected", [False, True])
def test_the_trend_is_observable_for_every_single_annotator(segments, projected):
    """Printed without numbers (section 3.4); of MObyGaze's two annotators, as marked and on clips."""
    clips = apply_policy(segments, LabelPolicy.PAPER)
    if projected:
        clips = project(clips, windows(clips, seconds=46), per_annotator=True).manifest
    trends = {name: concept_trend(one) for name, one in grouped(clips, "annotator").items()}
    assert set(trends) == {"annotator1", "annotator2"}
    assert all(one["rises"] and one["p"] < 1e-5 and one["films_tested"] == 20 for one in trends.values())


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


def test_a_concept_that_makes_clips_sure_only_beside_others_is_told_apart():
    """Each of four films has three clips of Body alone, which are HN, and two of Body and Look, which are S.

    A count of clips has those that are not S, and those that are. Look is never alone, which tells nothing
    of it.
    """
    row_of_concept = {row["name"]: row for row in alone_or_combined(body_alone_is_hn_and_beside_look_s())}

    body = row_of_concept["Body"]
    assert body["alone"] == (12, 0)
    assert body["combined"] == (0, 8)
    assert body["clips"] == 8
    assert body["p_holm"] < 1e-3

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
    clips = clips_of(("a", "EN", ()), ("a", "HN", ("Body",)), ("a", "S", ("Body", "Posture")))
    text = as_text(statistics(clips), len(clips), {})
    header = next(line for line in text.splitlines() if line.startswith("concept "))
    assert header.split()[1:] == ["of", "HN", "of", "S", "of", "HN", "of", "S"]  # of clips, and of marks


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

    assert (counted["clips"], counted["rows"]) == (inspected["clips"], inspected["rows"]) == (2, 3)
    assert capsys.readouterr().out.startswith(
        "label policy raw: 2 clips, 3 rows of annotators, 0 without level, 0 left out by the policy\n"
    )


def test_the_table_of_sets_has_the_most_frequent_ones_and_counts_them_without_the_empty_set():
    """Nothing was marked in most clips: that is no set of concepts that go together.

    Of two sets, Body is in three clips, of which one is S, and Body with Look in one.
    """
    sets = [("EN", ()), ("EN", ()), ("EN", ()), ("EN", ())]
    sets += [("HN", ("Body",)), ("HN", ("Body",)), ("S", ("Body",)), ("S", ("Body", "Look"))]
    clips = clips_of(*[("film", level, concepts) for level, concepts in sets])

    report = composition_report(clips, LabelPolicy.RAW)

    (table,) = [block for block in report.blocks if block.title == "Sets of concepts"]
    assert [row[0] for row in table.rows] == ["Body", "Look + Body"]
    of_s = list(table.headers).index("S")
    assert [row[of_s] for row in table.rows] == ["1", "1"]
    assert any("2 most frequent of 2 sets" in note for note in table.notes)
