"""Claims of the papers: the released data give the numbers, planted data the verdicts that were planted."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_studies.claims import measures, nulls
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


@pytest.fixture(scope="module")
def report(files):
    """The report on all claims, of the released data."""
    return claims(files)


@pytest.fixture(scope="module")
def table(report):
    """Value, interval, verdict and note of each claim, by its name."""
    return report.data.set_index("claim")


@pytest.fixture(scope="module")
def parts(report):
    """The parts of the claims as they are printed: by "claim" or "claim (n)", cells by heading."""
    return {
        row[0]: dict(zip(block.headers, row, strict=True)) for block in report.blocks for row in block.rows
    }


def notes_of(report):
    """List the notes of all blocks."""
    return [note for block in report.blocks for note in block.notes]


def claim_named(name):
    """Return the claim of a name."""
    (claim,) = [claim for claim in CLAIMS if claim.name == name]
    return claim


PRINTED = [claim for claim in CLAIMS if claim.is_printed]
"""Claims that quote a sentence of a paper."""
ELSEWHERE = [claim for claim in PRINTED if claim.is_elsewhere]
"""Those of them that are tested on other data than their paper's."""


def test_a_sentence_is_quoted_by_one_claim():
    assert len({claim.sentence for claim in PRINTED}) == len(PRINTED)


def counts_in(answer):
    """Read "N sentences ...: a hold, b fail, ..." as N and the list of a, b, ..."""
    head, _, verdicts = answer.partition(": ")
    return int(re.search(r"\d+", head)[0]), [int(count) for count in re.findall(r"\d+(?= [a-z])", verdicts)]


def test_sentences_are_counted_apart_where_the_data_are_not_the_papers(report, table):
    on_own_data, on_other_data, of_ours = report.answers
    n_own, verdicts_own = counts_in(on_own_data)
    n_other, verdicts_other = counts_in(on_other_data)
    assert n_own == sum(verdicts_own) == len(PRINTED) - len(ELSEWHERE)
    assert n_other == sum(verdicts_other) == len(ELSEWHERE)
    assert set(table.index[table["is_elsewhere"]]) == {claim.name for claim in ELSEWHERE}
    assert of_ours == "of ours, length: undecided"


@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.name for claim in CLAIMS])
def test_a_sentence_says_on_which_data_it_is_tested(report, table, claim):
    """Segments of another corpus do not test what a paper says of its own films."""
    assert table.loc[claim.name, "data"] == DATA[claim.needs]
    assert table.loc[claim.name, "is_elsewhere"] == claim.is_elsewhere
    assert claim.is_elsewhere == (claim.paper == "001" and claim.needs == "mobygaze")
    (note,) = [note for note in notes_of(report) if note.startswith(f'{claim.name}: "')]
    assert DATA[claim.needs] in note


def test_parts_say_on_which_data_they_are_tested(parts):
    assert parts["overlooked"]["data"] != parts["rising (2)"]["data"]


def test_a_finding_that_a_paper_cites_is_not_quoted_as_its_own(report):
    cited = [claim for claim in CLAIMS if claim.finding_of]
    assert "clothing-alone" in {claim.name for claim in cited}
    for claim in cited:
        assert claim.unmeasured
        (note,) = [note for note in notes_of(report) if note.startswith(f'{claim.name}: "')]
        assert claim.sentence in note
        assert claim.finding_of in note


def test_units_are_those_that_enter_a_number(parts):
    assert parts["rising (2)"]["units"] == f"{309 + 292} clips"
    assert parts["rising-annotators (2)"]["units"] == f"{378 + 100} segments"


@pytest.mark.parametrize(("claim", "planted"), [("not-all-objects", "0.3 or 0.7"), ("length", "0.4 or 0.6")])
def test_differences_that_are_planted_on_two_sides_are_both_named(parts, claim, planted):
    (heading,) = [heading for heading in parts[claim] if heading.startswith("chance")]
    assert parts[claim][heading].startswith(f"{planted}, a planted difference")


@pytest.mark.long
def test_the_rates_of_concepts_differ_between_levels(table):
    row = table.loc["same-rate"]
    assert row["verdict"] == "fails"
    assert row["p"] == pytest.approx(1 / 2000)
    assert row["low"] > 0.05
    assert "Activity, 34% of HN marks, 26% of NS marks, 15% of S marks" in row["note"]


def test_most_disagreements_are_overlooked_scenes_and_chance_gives_more(table):
    row = table.loc["overlooked"]
    assert row["value"] == pytest.approx(963 / 1533)
    assert row["low"] > 0.5
    assert row["chance_low"] > row["value"]
    assert row["verdict"] == "in line with the number; chance gives 0.743"
    assert row["note"].startswith("963 of 1,533")


def test_s_is_more_frequent_with_more_concepts(table):
    row = table.loc["compositional"]
    assert row["verdict"] == "holds"
    assert "15% with 1" in row["note"]
    assert "92% with 4" in row["note"]


def test_clothing_alone_is_hardly_ever_s(table):
    note = table.loc["clothing-alone", "note"]
    assert "7 of 37" in note
    assert "0 of 22" in note  # of those that have no other concept, heard or told, either


def test_s_is_not_the_least_frequent_level(table):
    row = table.loc["sure-share"]
    assert row["verdict"] == "fails"
    assert row["value"] > 0
    assert "HN 309 clips, NS 292 clips" in row["note"]
    assert "S 18.4%" in row["note"]


@pytest.mark.parametrize("claim", ["same-rate", "rising", "compositional", "clothing-alone", "sure-share"])
def test_numbers_under_the_papers_labels_say_so(table, claim):
    """The paper's labels take 550 of 1,461 clips to EN; as annotated, both parts of a claim turn."""
    assert "550 of the 1,461" in table.loc[claim, "note"]


@pytest.mark.parametrize("claim", ["any-visual", "length"])
def test_numbers_under_labels_as_annotated_say_so(table, claim):
    assert "labels as annotated" in table.loc[claim, "note"]
    assert "550 of" not in table.loc[claim, "note"]


def test_the_number_of_shots_is_not_shown_to_tell_the_level_or_not(table):
    row = table.loc["length"]
    assert row["value"] == pytest.approx(0.526, abs=5e-4)
    assert row["p"] == pytest.approx(0.22, abs=5e-3)
    assert row["verdict"] == "undecided"


def test_large_effects_of_anger_are_fewer_than_the_paper_says(table, shared_data):
    printed = pd.read_csv(shared_data / "audits" / "paper_tables" / "wolfe2023_tables_1_2.csv")
    large = printed[(printed["condition"] == "angry") & (printed["d"] > 0.8) & (printed["star"] == 1)]
    assert table.loc["anger-large", "value"] == large.groupby("level").size().min() == 5
    assert table.loc["anger-large", "verdict"] == "fails"


@pytest.mark.parametrize(
    "claim", ["sex-business", "sex-medicine", "sex-science", "anger-positive", "sadness-positive"]
)
def test_sentences_that_the_audited_papers_tables_bear_out(table, claim):
    assert table.loc[claim, "verdict"] == "holds"


def test_medium_effects_of_sadness_depend_on_the_reading(table):
    assert table.loc["sadness-medium", "verdict"] == (
        "depends on how it is read: holds as counted in each condition by itself; "
        "fails as the same models in both conditions"
    )


def test_words_of_smiles_are_counted_by_condition(parts, shared_data):
    counts = pd.read_csv(shared_data / WORDS)
    happy = counts[counts["emotion"].str.startswith("HA")]
    candidates = ["happy", "smile", "smiling", "smiles", "smiley", "laughing"]
    frequent = [word for word in candidates if counts[word].sum() >= 100]
    n_words = happy[frequent].sum(axis=1).groupby(happy["condition"]).sum()
    assert parts["words (3)"]["number [95 %]"].startswith(f"{n_words['O'] / n_words['NO']:.3f}")
    assert parts["words (3)"]["verdict"] == "holds"


def test_one_part_of_the_sentence_on_words_is_undecided(table, parts):
    verdicts = [parts[name]["verdict"] for name in ("words", "words (2)", "words (3)")]
    assert verdicts.count("undecided") == 1
    assert table.loc["words", "verdict"] == "undecided"


@pytest.mark.parametrize("part", ["words", "words (2)", "words (3)"])
def test_conditions_that_are_exchanged_have_a_ratio_near_one(parts, part):
    """The mean of ratios is above 1."""
    assert 0.7 < float(parts[part]["chance, median [95 %]"].split()[0]) < 1.4


def test_claims_without_their_file_say_which_file(files):
    table = claims(files[:1]).data.set_index("claim")
    missing = table[table["verdict"].str.startswith("not computed: needs ")]
    assert set(missing.index) == {
        claim.name for claim in CLAIMS if claim.needs not in {"obygaze12", "printed"}
    }
    assert missing["value"].isna().all()
    assert missing.loc["overlooked", "verdict"].count("manifest import mobygaze") == 1


def test_a_file_that_is_given_twice_is_refused(files):
    with pytest.raises(AuditError, match=r"obygaze12\.csv"):
        claims([files[0], files[0]])


def test_a_manifest_of_other_clips_is_refused(tmp_path):
    write_manifest(Manifest((Clip("a", "m", level="EN"),), tmp_path), tmp_path / "other.csv")
    with pytest.raises(AuditError, match=r"other\.csv"):
        claims([tmp_path / "other.csv"])


ABOVE = Part(statistic="", measure="", null=CONSTANT_NULL, least=0.1, says_alike=False)
"""A sentence that says: more than .1."""
ALIKE = Part(statistic="", measure="", null=CONSTANT_NULL, least=0.1, says_alike=True)
"""A sentence that says that two things are alike, within .1."""


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.2, 0.3, "holds"), (-0.3, 0.0, "fails"), (0.0, 0.3, "undecided")],
    ids=["above", "below", "across"],
)
def test_an_interval_decides_without_a_test(low, high, expected):
    assert verdict(ABOVE, Measured((low + high) / 2, low, high, NAN, NAN)) == expected


@pytest.mark.parametrize(
    ("part", "low", "high", "expected"),
    [
        (ABOVE, 0.2, 0.3, "undecided"),
        (ABOVE, -0.3, 0.0, "undecided"),
        (ALIKE, 0.2, 0.3, "holds"),
        (ALIKE, -0.3, 0.0, "undecided"),
    ],
)
def test_a_test_can_only_withhold_a_verdict(part, low, high, expected):
    assert verdict(part, Measured((low + high) / 2, low, high, p=0.2, p_holm=0.2)) == expected


def test_a_number_of_models_needs_no_interval():
    assert verdict(ABOVE, Measured(0.2, unit="models")) == "holds"


def test_a_number_of_films_without_an_interval_decides_nothing():
    assert verdict(ABOVE, Measured(0.2, unit="films")) == "undecided"


def test_the_least_sure_number_is_the_one_without_an_interval():
    of_one_film = measures.mean_over_units([1.0], "films")
    of_four_films = measures.mean_over_units([1.0, 2.0, 3.0, 4.0], "films")
    assert measures.lowest([of_one_film, of_four_films]).value == 1
    assert measures.lowest([of_four_films, of_one_film]).value == 1


def test_the_least_sure_number_of_no_films_has_no_p():
    of_four_films = measures.mean_over_units([1.0, 2.0, 3.0, 4.0], "films")
    assert np.isnan(measures.lowest([of_four_films, measures.mean_over_units([], "films")]).p)


@pytest.mark.long  # of the whole corpus
@pytest.mark.parametrize("levels", [{"EN", "HN", "NS"}, {"EN"}], ids=["without S", "EN alone"])
def test_segments_without_a_level_decide_nothing(segments, tmp_path, monkeypatch, levels):
    monkeypatch.setattr(nulls, "N_DRAWS", 20)
    part = segments.with_clips(clip for clip in segments if clip.level in levels)
    write_manifest(part, tmp_path / "part.csv")
    row = claims([tmp_path / "part.csv"]).data.set_index("claim").loc["rising-annotators"]
    assert row["verdict"] == "undecided"
    assert np.isnan(row["value"])


CONCEPTS = ("Body", "Look", "Activity")


def annotated(rng, rates):
    """Make 720 clips of twelve films with one concept each, drawn at its level's rates of `CONCEPTS`.

    Films differ in their shares of the levels HN, NS and S.
    """
    clips = []
    for movie in range(12):
        shares = rng.dirichlet(np.ones(3))
        for place in range(60):
            level = rng.choice(["HN", "NS", "S"], p=shares)
            concept = rng.choice(CONCEPTS, p=rates[level])
            clips.append(Clip(f"m{movie:02}-{place:03}", f"m{movie:02}", level=level, concepts=(concept,)))
    return Manifest(tuple(clips), Path())


@pytest.mark.long  # simulates
def test_planted_rates_that_differ_are_told():
    rates = {"HN": [0.5, 0.3, 0.2], "NS": [0.5, 0.3, 0.2], "S": [0.2, 0.3, 0.5]}
    finding = measures.same_rate(annotated(np.random.default_rng(0), rates), margin=0.05)
    assert finding.p == pytest.approx(1 / 2000)
    assert finding.low < 0.3 < finding.high


@pytest.mark.long  # simulates
def test_equal_rates_are_not_told_apart_whatever_films_do():
    rng = np.random.default_rng(0)
    rates = {"HN": [0.5, 0.3, 0.2], "NS": [0.5, 0.3, 0.2], "S": [0.5, 0.3, 0.2]}
    p = [measures.same_rate(annotated(rng, rates), margin=0.05).p for _ in range(10)]
    assert np.mean(p) > 0.3


@pytest.fixture
def predictions():
    """Predictions of two models for eight films of 80 clips: that of HN vs S is better by 1.5 SDs."""
    rng = np.random.default_rng(1)
    tables = []
    for movie in range(8):
        label = rng.random(80) < 0.3
        for train, strength in (("en_s", 0.5), ("hn_s", 2.0)):
            for test in ("en_s", "enhn_s"):
                score = rng.normal(size=80) + strength * label
                columns = {"model": "mlp", "task": f"{train}>{test}", "movie": f"m{movie}"}
                tables.append(pd.DataFrame(columns | {"label": label.astype(int), "score": score}))
    return pd.concat(tables)


def test_hard_negatives_that_help_are_found_to_help(predictions):
    assert measures.hard_negatives(predictions).low > 0


def test_hard_negatives_that_harm_are_found_to_harm(predictions):
    exchanged = {
        "en_s>en_s": "hn_s>en_s",
        "en_s>enhn_s": "hn_s>enhn_s",
        "hn_s>en_s": "en_s>en_s",
        "hn_s>enhn_s": "en_s>enhn_s",
    }
    worse = predictions.assign(task=predictions["task"].map(exchanged))
    assert measures.hard_negatives(worse).high < 0


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
def with_staging(files, obygaze12, tmp_path_factory):
    """The table of claims for ObyGaze12 and planted staging."""
    path = write_staging(tmp_path_factory.mktemp("staging") / "variables.csv", obygaze12)
    return claims([files[0], path]).data.set_index("claim")


@pytest.mark.long
@pytest.mark.parametrize(
    ("claim", "unmeasured"),
    [
        ("camera-level", "placement of the camera"),
        ("shot-tilt", "whose perspective"),
        ("shot-close", "whose face it is"),
    ],
)
def test_planted_staging_decides_what_is_measured_of_a_sentence(with_staging, claim, unmeasured):
    verdict = with_staging.loc[claim, "verdict"]
    assert verdict.startswith("in part: what is measured holds; not measured")
    assert unmeasured in verdict


@pytest.mark.long
def test_planted_staging_has_the_planted_difference(with_staging):
    assert with_staging.loc["camera-level", "value"] == pytest.approx(0.05, abs=0.005)
    assert with_staging.loc["look-cuts", "verdict"] == "undecided"


@pytest.mark.long
def test_a_tilt_down_refutes_a_tilt_up(files, obygaze12, tmp_path):
    path = write_staging(tmp_path / "variables.csv", obygaze12, tilt=-0.1)
    table = claims([files[0], path]).data.set_index("claim")
    assert table.loc["shot-tilt", "verdict"] == "fails"


def test_staging_without_its_manifest_decides_nothing(obygaze12, tmp_path):
    path = write_staging(tmp_path / "variables.csv", obygaze12)
    table = claims([path]).data.set_index("claim")
    assert "needs variables of ObyGaze12's clips" in table.loc["camera-level", "verdict"]


def test_staging_without_a_column_decides_nothing(files, obygaze12, tmp_path):
    path = write_staging(tmp_path / "variables.csv", obygaze12, columns=("cuts",))
    row = claims([files[0], path]).data.set_index("claim").loc["camera-level"]
    assert row["verdict"] == "undecided"
    assert "0 of 1,914 clips have the column camera" in row["note"]


STAGING = "clip_id,movie,start_s,end_s,camera,tilt,cuts,close\na,m,0,5,0.1,0,10,0\n"


@pytest.mark.parametrize(
    ("row", "message"),
    [("a,m,0,5,0.1,0,10,0\n", "has a row already"), ("x,y,0,5,fast,0,10,0\n", "column camera")],
    ids=["a second row of a clip", "a word"],
)
def test_a_row_that_is_none_of_staging_is_refused(tmp_path, row, message):
    (tmp_path / "variables.csv").write_text(STAGING + row, encoding="utf-8")
    with pytest.raises(ManifestError, match=message):
        claims([tmp_path / "variables.csv"])


def test_sentences_that_are_not_tested_are_listed_with_what_would_decide_them():
    notes = [note for note in notes_of(claims([])) if note.startswith("not tested")]
    assert len(notes) == len(OPEN) > 0
    for entry, note in zip(OPEN, notes, strict=True):
        assert "camera" in entry["sentence"] or "close-up" in entry["sentence"]
        assert entry["decided_by"] in note


# --- nulls
# ---------------------------------------------------------------------------


@pytest.mark.long  # of the whole corpus
def test_every_part_names_its_null_and_its_measure_has_that_one(files, monkeypatch):
    monkeypatch.setattr(measures, "N_PERMUTATIONS", 20)
    inputs = {"printed": None}
    for path in files:
        kind, content = read_input(path)
        inputs[kind] = content
    for claim in CLAIMS:
        if claim.needs not in inputs:
            continue
        for part in claim.parts:
            finding = getattr(measures, part.measure)(inputs[claim.needs], **part.arguments)
            if part.null in {NO_NULL, CONSTANT_NULL}:
                assert finding.null is None
            else:
                assert finding.null.kind == part.null
            assert (part.null == NO_NULL) == (finding.unit in measures.COUNTED_UNITS)
            assert (part.null == CONSTANT_NULL) == bool(part.argued)


def null_around(chance):
    """Make the null of a number of .8, with draws that lie around `chance`."""
    return Null("levels", 0.8, float, lambda _, rng: chance + 1e-3 * rng.normal())


IN_LINE = "in line with the number; chance gives"


@pytest.mark.parametrize(
    ("chance", "expected"), [(0.5, "holds"), (0.8, f"{IN_LINE} 0.8"), (0.9, f"{IN_LINE} 0.9")]
)
def test_a_number_holds_where_chance_gives_less(chance, expected):
    part = Part(statistic="", measure="", null="levels", above=0.5)
    finding = Measured(0.8, 0.7, 0.9, unit="films", null=null_around(chance))
    assert verdict(part, finding) == expected


def test_a_number_whose_chance_is_undefined_is_in_line_and_no_more():
    part = Part(statistic="", measure="", null="levels", above=0.5)
    finding = Measured(0.8, 0.7, 0.9, unit="films", null=null_around(NAN))
    assert verdict(part, finding).startswith(IN_LINE)


def test_a_number_below_holds_where_chance_gives_more():
    part = Part(statistic="", measure="", null="levels", below=0.9)
    finding = Measured(0.8, 0.75, 0.85, unit="films", null=null_around(0.9))
    assert verdict(part, finding) == "holds"


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds", "holds"], "holds"),
        ([f"{IN_LINE} 0.3", "holds"], f"{IN_LINE} 0.3"),
        ([f"{IN_LINE} 0.3", "undecided"], "undecided"),
        (["fails", f"{IN_LINE} 0.3"], "fails"),
    ],
)
def test_a_sentence_is_as_sure_as_its_least_sure_part(verdicts, expected):
    assert verdict_of(claim_named("sure-share"), verdicts) == expected


def test_a_sentence_of_which_something_is_unmeasured_holds_in_part():
    assert verdict_of(claim_named("camera-level"), ["holds"]).startswith("in part")
    assert verdict_of(claim_named("camera-level"), ["fails"]) == "fails"


@pytest.mark.parametrize(
    ("verdicts", "expected"), [(["holds", "holds", "holds"], "holds"), (["holds", "fails", "fails"], "fails")]
)
def test_two_readings_that_agree_are_one_verdict(verdicts, expected):
    assert verdict_of(claim_named("sadness-medium"), verdicts) == expected


def test_two_readings_that_disagree_are_both_given():
    claim = claim_named("sadness-medium")
    one_by_one, together = dict.fromkeys(part.reading for part in claim.parts)
    text = verdict_of(claim, ["holds", "holds", "fails"])
    assert f"holds as {one_by_one}" in text
    assert f"fails as {together}" in text


BESIDE = Part(
    statistic="", measure="", null=CONSTANT_NULL, above=0.0, added_because="more of it would be expected"
)
"""A number that its sentence does not name."""


def test_a_number_that_its_sentence_does_not_name_never_holds():
    result = verdict(BESIDE, Measured(0.5, 0.4, 0.6, unit="films"))
    assert result.startswith("in line with the number")
    assert verdict_of(claim_named("look-cuts"), [result]).startswith("in line with the number")


def test_a_number_that_its_sentence_does_not_name_never_fails():
    assert verdict(BESIDE, Measured(-0.5, -0.6, -0.4, unit="films")) == "undecided"


@dataclass(frozen=True)
class PartOfClaim:
    """A part of a claim.

    Attributes
    ----------
    claim
        Name of the claim.
    part
        The part, with its measure and its null.
    """

    claim: str
    part: Part

    def measured(self, content):
        """Measure it in data."""
        return getattr(measures, self.part.measure)(content, **self.part.arguments)


def parts_tested(needs, null):
    """List the parts that are measured in some data and have some null."""
    tested = []
    for claim in CLAIMS:
        if claim.needs == needs:
            tested += [PartOfClaim(claim.name, part) for part in claim.parts if part.null == null]
    return tested


@pytest.mark.parametrize(
    ("needs", "null"),
    [("words", "conditions within persons"), ("printed", "a planted difference of twice the margin")],
    ids=["words", "printed"],
)
def test_claims_seldom_hold_of_released_numbers_that_were_made_untrue(files, needs, null):
    content = read_input(files[2])[1] if needs == "words" else None
    tested = parts_tested(needs, null)
    assert len(tested) >= 2
    rng = np.random.default_rng(0)
    n_holding = []
    for part_of_claim in tested:
        finding = part_of_claim.measured(content)
        untrue = [finding.measure_again(finding.null.randomise(finding.null.data, rng)) for _ in range(200)]
        n_holding.append([verdict(part_of_claim.part, draw) for draw in untrue].count("holds"))
    assert max(n_holding) <= 20
    assert sum(n_holding) <= 0.05 * 200 * len(tested)


def of_films(values, null):
    """Make the finding of a value for each film."""
    return replace(measures.mean_over_units(values, "films"), null=null)


@pytest.mark.long  # simulates
def test_a_difference_whose_signs_are_of_chance_seldom_holds():
    rng = np.random.default_rng(0)
    above = Part(statistic="", measure="", null="signs by film", above=0.0)
    n_holding = 0
    for _ in range(200):
        values = null_of_signs_by_film(rng.normal(1, 0.5, 12)).randomise(rng.normal(1, 0.5, 12), rng)
        if verdict(above, of_films(values, null_of_signs_by_film(values))) == "holds":
            n_holding += 1
    assert n_holding <= 10


@pytest.mark.long  # simulates
def test_a_planted_difference_is_seldom_called_alike_and_no_difference_mostly():
    rng = np.random.default_rng(0)
    alike = Part(statistic="", measure="", null="planted", least=0.45, most=0.55, says_alike=True)
    n_true_holding = 0
    n_planted_holding = 0
    for _ in range(200):
        films = rng.normal(0.5, 0.03, 12)
        if verdict(alike, of_films(films, planted_off_centre(films, 0.5, 0.05))) == "holds":
            n_true_holding += 1
        unlike = planted_off_centre(films, 0.5, 0.05).randomise(films, rng)
        if verdict(alike, of_films(unlike, planted_off_centre(unlike, 0.5, 0.05))) == "holds":
            n_planted_holding += 1
    assert n_planted_holding <= 10
    assert n_true_holding >= 180


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


def held_of_exchanged(tested, manifest, exchange, n_draws):
    """Count for each part how often it holds of labels that were exchanged."""
    rng = np.random.default_rng(0)
    n_holding = Counter()
    for _ in range(n_draws):
        exchanged = exchange(manifest, rng)
        for part_of_claim in tested:
            if verdict(part_of_claim.part, part_of_claim.measured(exchanged)) == "holds":
                n_holding[part_of_claim.claim] += 1
    return n_holding


@pytest.mark.long  # simulates
def test_claims_seldom_hold_of_exchanged_levels(obygaze12):
    tested = parts_tested("obygaze12", "levels within films")
    n_holding = held_of_exchanged(tested, obygaze12, levels_exchanged, n_draws=30)
    assert tested
    assert max(n_holding.values(), default=0) <= 5  # of 30 draws at .025, more come in one of 10,000 runs
    assert n_holding.total() <= 0.1 * 30 * len(tested)


@pytest.mark.long  # simulates
def test_claims_seldom_hold_of_one_annotators_exchanged_levels(segments):
    tested = parts_tested("mobygaze", "one annotator's labels within films")
    n_holding = held_of_exchanged(tested, segments, one_annotators_levels_exchanged, n_draws=30)
    assert tested
    assert max(n_holding.values(), default=0) <= 5
    assert n_holding.total() <= 0.1 * 30 * len(tested)
