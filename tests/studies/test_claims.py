"""Claims of the papers: the released data give the numbers, planted data the verdicts that were planted."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import Clip, Manifest, write_manifest
from obygaze_studies.claims import measures, nulls
from obygaze_studies.claims.claims_report import (
    CLAIMS,
    CONSTANT,
    DATA,
    NONE,
    OPEN,
    Part,
    claims,
    read_input,
    verdict,
    verdict_of,
)
from obygaze_studies.claims.measures import Measured
from obygaze_studies.claims.nulls import Null, permuted_within, planted_beside, signs_by_film
from obygaze_studies.errors import AuditError

WORDS = Path("audits") / "clip-gender-bias" / "sobem_emotion_word_counts_280images.csv"
NAN = float("nan")


@pytest.fixture(scope="module")
def files(shared_data, obygaze12, segments, tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    write_manifest(obygaze12, folder / "obygaze12.csv")
    write_manifest(segments, folder / "segments.csv")
    return [folder / "obygaze12.csv", folder / "segments.csv", shared_data / WORDS]


@pytest.fixture(scope="module")
def report(files):
    return claims(files)


@pytest.fixture(scope="module")
def found(report):
    return report.data.set_index("claim")


@pytest.fixture(scope="module")
def parts(report):
    """The parts of the claims as they are printed: by "claim" or "claim (n)", cells by heading."""
    return {row[0]: dict(zip(one.headers, row, strict=True)) for one in report.blocks for row in one.rows}


def test_a_sentence_of_a_paper_is_counted_once_apart_where_the_data_are_others_and_ours_apart(report, found):
    *printed, ours = report.answers
    tested = [claim for claim in CLAIMS if claim.is_printed]
    assert len({claim.sentence for claim in tested}) == len(tested)
    elsewhere = {claim.name for claim in tested if claim.is_elsewhere}
    for answer, n in zip(printed, (len(tested) - len(elsewhere), len(elsewhere)), strict=True):
        head, _, counts = answer.partition(": ")
        assert int(re.search(r"\d+", head)[0]) == n
        assert sum(int(count) for count in re.findall(r"\d+(?= [a-z])", counts)) == n
    assert set(found.index[found["is_elsewhere"]]) == elsewhere
    assert ours == "of ours, length: undecided"


def test_each_sentence_says_on_which_data_it_is_tested_and_whether_they_are_its_papers(report, found, parts):
    """Segments of another corpus do not test what a paper says of its own films."""
    for claim in CLAIMS:
        row = found.loc[claim.name]
        assert (row["data"], row["is_elsewhere"]) == (DATA[claim.needs], claim.is_elsewhere)
        assert claim.is_elsewhere == (claim.paper == "001" and claim.needs == "mobygaze")
        (note,) = [
            note for one in report.blocks for note in one.notes if note.startswith(f'{claim.name}: "')
        ] or [""]
        assert DATA[claim.needs] in note
    cells = {name: row["data"] for name, row in parts.items()}
    assert cells["overlooked"] != cells["rising (2)"]


def test_a_finding_that_a_paper_cites_is_not_quoted_as_its_own(report):
    cited = [claim for claim in CLAIMS if claim.finding_of]
    assert "clothing-alone" in {claim.name for claim in cited}
    notes = [note for one in report.blocks for note in one.notes]
    for claim in cited:
        assert claim.unmeasured
        assert any(claim.sentence in note and claim.finding_of in note for note in notes)


def test_what_is_counted_is_counted_over_the_units_that_enter(parts):
    assert parts["rising (2)"]["units"] == f"{309 + 292} clips"
    assert parts["rising-annotators (2)"]["units"] == f"{378 + 100} segments"


def test_planted_differences_on_two_sides_are_said_as_they_are_planted(parts):
    for claim, planted in (("not-all-objects", "0.3 or 0.7"), ("length", "0.4 or 0.6")):
        chance = next(text for heading, text in parts[claim].items() if heading.startswith("chance"))
        assert chance.startswith(f"{planted}, a planted difference")


@pytest.mark.long
def test_the_released_annotations_refute_that_every_concept_has_the_same_rate(found):
    row = found.loc["same-rate"]
    assert (row["verdict"], row["p"]) == ("fails", pytest.approx(1 / 2000))
    assert row["low"] > 0.05
    assert "Activity, 34% of HN marks, 26% of NS marks, 15% of S marks" in row["note"]


def test_most_disagreements_are_scenes_that_one_expert_left_easy_and_fewer_than_by_chance(found):
    row = found.loc["overlooked"]
    assert row["verdict"] == "in line with the number; chance gives 0.743"
    assert row["chance_low"] > row["value"] > 0.5
    assert row["value"] == pytest.approx(963 / 1533)
    assert row["note"].startswith("963 of 1,533")
    assert row["low"] > 0.5


def test_s_of_one_concept_and_of_several(found):
    row = found.loc["compositional"]
    assert row["verdict"] == "holds"
    assert "15% with 1" in row["note"]
    assert "92% with 4" in row["note"]
    note = found.loc["clothing-alone", "note"]
    assert "7 of 37" in note
    assert "0 of 22" in note  # of those that have no other concept, heard or told, either


def test_sure_is_sixteen_percent_and_not_the_least_represented(found):
    row = found.loc["sure-share"]
    assert row["verdict"] == "fails"
    assert row["value"] > 0
    assert "HN 309 clips, NS 292 clips" in row["note"]


def test_numbers_of_labels_say_under_which_labels_they_are(found):
    """The paper's labels take 550 of 1,461 clips to EN; as annotated, both parts of a claim turn."""
    of_paper = ("same-rate", "rising", "compositional", "clothing-alone", "sure-share")
    for claim in of_paper:
        assert "550 of the 1,461" in found.loc[claim, "note"], claim
    assert "550 of" not in found.loc["any-visual", "note"]
    assert "S 18.4%" in found.loc["sure-share", "note"]
    for claim in ("any-visual", "length"):
        assert "labels as annotated" in found.loc[claim, "note"]


def test_the_number_of_shots_is_no_sign_of_the_level_and_no_proof_that_it_is_none(found):
    row = found.loc["length"]
    assert row["value"] == pytest.approx(0.526, abs=5e-4)
    assert row["p"] == pytest.approx(0.22, abs=5e-3)
    assert row["verdict"] == "undecided"


def test_what_the_audited_paper_says_of_its_own_tables(found, parts, shared_data):
    printed = pd.read_csv(shared_data / "audits" / "paper_tables" / "wolfe2023_tables_1_2.csv")
    angry = printed[(printed["condition"] == "angry") & (printed["d"] > 0.8) & (printed["star"] == 1)]
    assert found.loc["anger-large", "value"] == angry.groupby("level").size().min() == 5
    assert found.loc["anger-large", "verdict"] == "fails"
    assert (found.loc[["sex-business", "sex-medicine", "sex-science"], "verdict"] == "holds").all()
    assert found.loc["sadness-medium", "verdict"] == (
        "depends on how it is read: holds as counted in each condition by itself; "
        "fails as the same models in both conditions"
    )
    assert found.loc["anger-positive", "verdict"] == found.loc["sadness-positive", "verdict"] == "holds"
    counts = pd.read_csv(shared_data / WORDS)
    happy = counts[counts["emotion"].str.startswith("HA")]
    names = ["happy", "smile", "smiling", "smiles", "smiley", "laughing"]
    words = happy[[name for name in names if counts[name].sum() >= 100]].sum(axis=1)
    rate = words.groupby(happy["condition"]).sum()
    assert parts["words (3)"]["number [95 %]"].startswith(f"{rate['O'] / rate['NO']:.3f}")
    assert [parts[f"words{place}"]["verdict"] for place in ("", " (2)", " (3)")].count("undecided") == 1
    assert parts["words (3)"]["verdict"] == "holds"
    # Conditions that are exchanged give a ratio of 1: the mean of ratios is above it.
    for place in ("", " (2)", " (3)"):
        assert 0.7 < float(parts[f"words{place}"]["chance, median [95 %]"].split()[0]) < 1.4
    assert found.loc["words", "verdict"] == "undecided"


def test_claims_without_their_file_say_which_file(files):
    given = claims(files[:1]).data.set_index("claim")
    missing = given[given["verdict"].str.startswith("not computed: needs ")]
    assert set(missing.index) == {
        claim.name for claim in CLAIMS if claim.needs not in {"obygaze12", "printed"}
    }
    assert missing["value"].isna().all()
    assert missing.loc["overlooked", "verdict"].count("manifest import mobygaze") == 1


def test_what_is_no_input_of_a_claim_is_refused(files, tmp_path):
    with pytest.raises(AuditError, match=r"obygaze12\.csv"):
        claims([files[0], files[0]])
    other = tmp_path / "other.csv"
    write_manifest(Manifest((Clip("a", "m", level="EN"),), tmp_path), other)
    with pytest.raises(AuditError, match=r"other\.csv"):
        claims([other])


def test_a_verdict_is_the_intervals_and_a_test_can_only_withhold_it():
    above = Part(statistic="", measure="", null=CONSTANT, least=0.1, alike=False)
    alike = Part(statistic="", measure="", null=CONSTANT, least=0.1, alike=True)

    def of(low, high, p=NAN, claim=above):
        return verdict(claim, Measured((low + high) / 2, low, high, p, p))

    assert [of(0.2, 0.3), of(-0.3, 0.0), of(0.0, 0.3)] == ["holds", "fails", "undecided"]
    assert [of(0.2, 0.3, p=0.2), of(-0.3, 0.0, p=0.2)] == ["undecided", "undecided"]
    assert [of(0.2, 0.3, p=0.2, claim=alike), of(-0.3, 0.0, p=0.2, claim=alike)] == ["holds", "undecided"]
    assert verdict(above, Measured(0.2, unit="models")) == "holds"
    assert verdict(above, Measured(0.2, unit="films")) == "undecided"  # sampled, of too few for an interval


def test_the_least_sure_is_the_one_without_an_interval_whoever_comes_first():
    one = measures.over_units([1.0], "films")
    many = measures.over_units([1.0, 2.0, 3.0, 4.0], "films")
    none = measures.over_units([], "films")
    for given in ([one, many], [many, one]):
        assert measures.lowest(given).value == 1
    assert np.isnan(measures.lowest([many, none]).p)


@pytest.mark.long  # of the whole corpus
def test_segments_of_annotators_who_never_used_a_level_decide_nothing(segments, tmp_path, monkeypatch):
    monkeypatch.setattr(nulls, "N_DRAWS", 20)
    for kept in ({"EN", "HN", "NS"}, {"EN"}):
        clips = segments.with_clips(clip for clip in segments if clip.level in kept)
        write_manifest(clips, tmp_path / "part.csv")
        row = claims([tmp_path / "part.csv"]).data.set_index("claim").loc["rising-annotators"]
        assert (row["verdict"], np.isnan(row["value"])) == ("undecided", True)


def annotated(rng, rates, n_movies=12, n_per_movie=60):
    """Make clips of HN, NS and S with one concept each, drawn at each level's rates, films apart."""
    clips = []
    for movie in range(n_movies):
        shift = rng.dirichlet(np.ones(3))
        for place in range(n_per_movie):
            level = rng.choice(["HN", "NS", "S"], p=shift)
            concept = rng.choice(["Body", "Look", "Activity"], p=rates[level])
            clips.append(Clip(f"m{movie:02}-{place:03}", f"m{movie:02}", level=level, concepts=(concept,)))
    return Manifest(tuple(clips), Path())


@pytest.mark.long  # simulates
def test_planted_rates_are_told_from_equal_ones_whatever_films_do():
    rng = np.random.default_rng(0)
    equal = [0.5, 0.3, 0.2]
    moved = [0.2, 0.3, 0.5]
    different = measures.same_rate(annotated(rng, {"HN": equal, "NS": equal, "S": moved}), margin=0.05)
    assert different.p == pytest.approx(1 / 2000)
    assert different.low < 0.3 < different.high
    alike = dict.fromkeys(("HN", "NS", "S"), equal)
    p = [measures.same_rate(annotated(rng, alike), margin=0.05).p for _ in range(10)]
    assert np.mean(p) > 0.3


def test_planted_predictions_tell_whether_hard_negatives_help():
    rng = np.random.default_rng(1)
    rows = []
    for movie in range(8):
        label = rng.random(80) < 0.3
        for train, signal in (("en_s", 0.5), ("hn_s", 2.0)):
            for test in ("en_s", "enhn_s"):
                score = rng.normal(size=80) + signal * label
                part = {"model": "mlp", "task": f"{train}>{test}", "movie": f"m{movie}"}
                rows.append(pd.DataFrame(part | {"label": label.astype(int), "score": score}))
    table = pd.concat(rows)
    assert measures.hard_negatives(table).low > 0
    swapped = table.assign(
        task=table["task"].map(lambda task: {"en": "hn_s", "hn": "en_s"}[task[:2]] + task[4:])
    )
    assert measures.hard_negatives(swapped).high < 0


def staging(folder, obygaze12, *, columns="camera,tilt,cuts,close", tilt=0.1):
    """Planted: the camera moves at S, tilts and is close at Type of shot, film by film; cuts tell nothing."""
    rng = np.random.default_rng(0)
    lines = [f"clip_id,movie,start_s,end_s,{columns}"]
    for clip in obygaze12:
        is_shot = "Type of shot" in obygaze12.codebook.visual(clip.concepts)
        values = {
            "camera": (0.1 if clip.level == "S" else 0.05) + 0.01 * rng.normal(),
            "tilt": (tilt if is_shot else 0.0) + 0.01 * rng.normal(),
            "cuts": 10 + rng.normal(),
            "close": float(rng.random() < (0.6 if is_shot else 0.2)),
        }
        cells = ",".join(f"{values[name]:.4f}" for name in columns.split(","))
        lines.append(f"{clip.clip_id},{clip.movie},0,5,{cells}")
    (folder / "variables.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "variables.csv"


@pytest.mark.long
def test_staging_that_is_planted_decides_the_sentences_on_the_camera(files, obygaze12, tmp_path):
    found = claims([files[0], staging(tmp_path, obygaze12)]).data.set_index("claim")
    for name, missing in (
        ("camera-level", "placement of the camera"),
        ("shot-tilt", "whose perspective"),
        ("shot-close", "whose face it is"),
    ):
        assert found.loc[name, "verdict"].startswith("in part: what is measured holds; not measured")
        assert missing in found.loc[name, "verdict"]
    assert found.loc["camera-level", "value"] == pytest.approx(0.05, abs=0.005)
    assert found.loc["look-cuts", "verdict"] == "undecided"
    down = claims([files[0], staging(tmp_path, obygaze12, tilt=-0.1)]).data.set_index("claim")
    assert down.loc["shot-tilt", "verdict"] == "fails"


def test_without_staging_its_manifest_or_a_column_nothing_is_decided(files, obygaze12, tmp_path):
    alone = claims([staging(tmp_path, obygaze12)]).data.set_index("claim")
    assert "needs variables of ObyGaze12's clips" in alone.loc["camera-level", "verdict"]
    part = claims([files[0], staging(tmp_path, obygaze12, columns="cuts")]).data
    row = part.set_index("claim").loc["camera-level"]
    assert row["verdict"] == "undecided"
    assert "0 of 1,914 clips have the column camera" in row["note"]
    path = staging(tmp_path, obygaze12)
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[1] + "\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="has a row already"):
        claims([path])
    path.write_text(whole + "x,y,0,5,fast,0,0,0\n", encoding="utf-8")
    with pytest.raises(ManifestError, match="column camera"):
        claims([path])


def test_sentences_on_the_camera_are_listed_with_what_would_decide_them():
    report = claims([])
    notes = [note for block in report.blocks for note in block.notes if note.startswith("not tested")]
    assert len(notes) == len(OPEN) > 0
    assert all("camera" in entry["sentence"] or "close-up" in entry["sentence"] for entry in OPEN)
    assert all(entry["decided_by"] in note for entry, note in zip(OPEN, notes, strict=True))


# --- nulls
# ---------------------------------------------------------------------------


@pytest.mark.long  # of the whole corpus
def test_every_part_names_its_null_and_its_measure_has_that_one(files, monkeypatch):
    monkeypatch.setattr(measures, "N_PERMUTATIONS", 20)
    found = {}
    for claim in CLAIMS:
        if claim.needs in {"obygaze12", "mobygaze", "words", "printed"}:
            found[claim.name] = claim
    inputs = {"printed": None}
    for path in files:
        kind, content = read_input(path)
        inputs[kind] = content
    for claim in found.values():
        for part in claim.parts:
            finding = getattr(measures, part.measure)(inputs[claim.needs], **part.arguments)
            if part.null in {NONE, CONSTANT}:
                assert finding.null is None
            else:
                assert finding.null.kind == part.null
            assert (part.null == NONE) == (finding.unit in measures.COUNTED)
            assert (part.null == CONSTANT) == bool(part.argued)


def test_a_number_within_its_null_is_in_line_and_no_more():
    part = Part(statistic="", measure="", null="levels", above=0.5)
    finding = Measured(0.8, 0.7, 0.9, unit="films")
    line = "in line with the number; chance gives"
    for chance, said in ((0.5, "holds"), (0.8, f"{line} 0.8"), (0.9, f"{line} 0.9")):
        assert verdict(part, replace(finding, null=around(chance))) == said
    assert verdict(part, replace(finding, null=around(NAN))).startswith(line)
    below = Part(statistic="", measure="", null="levels", below=0.9)
    assert verdict(below, Measured(0.8, 0.75, 0.85, unit="films", null=around(0.9))) == "holds"


def around(chance):
    """Make the null of a number of .8 whose draws lie around another."""
    return Null("levels", 0.8, float, lambda _, rng: chance + 1e-3 * rng.normal())


def test_a_sentence_holds_where_all_parts_do_and_nothing_of_it_is_unmeasured():
    (claim,) = (one for one in CLAIMS if one.name == "sure-share")
    line = "in line with the number; chance gives 0.3"
    assert verdict_of(claim, ["holds", "holds"]) == "holds"
    assert verdict_of(claim, [line, "holds"]) == line
    assert verdict_of(claim, [line, "undecided"]) == "undecided"
    assert verdict_of(claim, ["fails", line]) == "fails"
    (camera,) = (one for one in CLAIMS if one.name == "camera-level")
    assert verdict_of(camera, ["holds"]).startswith("in part")
    assert verdict_of(camera, ["fails"]) == "fails"


def test_a_sentence_of_two_readings_has_the_verdict_of_both_if_they_agree():
    (medium,) = (one for one in CLAIMS if one.name == "sadness-medium")
    each, both = dict.fromkeys(part.reading for part in medium.parts)
    assert verdict_of(medium, ["holds", "holds", "holds"]) == "holds"
    assert verdict_of(medium, ["holds", "fails", "fails"]) == "fails"
    apart = verdict_of(medium, ["holds", "holds", "fails"])
    assert f"holds as {each}" in apart
    assert f"fails as {both}" in apart


def test_a_number_that_the_sentence_does_not_name_neither_holds_nor_fails():
    part = Part(statistic="", measure="", null=CONSTANT, above=0.0, beside="more of it would be expected")
    above = Measured(0.5, 0.4, 0.6, unit="films")
    below = Measured(-0.5, -0.6, -0.4, unit="films")
    assert verdict(part, above).startswith("in line with the number")
    assert verdict(part, below) == "undecided"
    (claim,) = (one for one in CLAIMS if one.name == "look-cuts")
    assert verdict_of(claim, [verdict(part, above)]).startswith("in line with the number")


@pytest.mark.parametrize(
    ("needs", "null"),
    [("words", "conditions within persons"), ("printed", "a planted difference of twice the margin")],
)
def test_claims_seldom_hold_of_released_numbers_that_were_made_untrue(files, needs, null):
    content = read_input(files[2])[1] if needs == "words" else None
    tested = {
        (claim.name, number): (part, getattr(measures, part.measure)(content, **part.arguments))
        for claim in CLAIMS
        for number, part in enumerate(claim.parts)
        if claim.needs == needs and part.null == null
    }
    rng = np.random.default_rng(0)
    n_draws = 200
    n_held = dict.fromkeys(tested, 0)
    for name, (part, finding) in tested.items():
        for _ in range(n_draws):
            untrue = finding.again(finding.null.exchange(finding.null.data, rng))
            n_held[name] += verdict(part, untrue) == "holds"
    assert len(tested) >= 2
    assert max(n_held.values()) <= 20
    assert sum(n_held.values()) <= 0.05 * n_draws * len(tested)


def of_films(values, null):
    return replace(measures.over_units(values, "films"), null=null)


@pytest.mark.long  # simulates
def test_films_whose_signs_are_of_chance_and_planted_differences_seldom_hold():
    """One draw in twenty, at most, of data in which the sentence is untrue by construction."""
    rng = np.random.default_rng(0)
    above = Part(statistic="", measure="", null="signs by film", above=0.0)
    alike = Part(statistic="", measure="", null="planted", least=0.45, most=0.55, alike=True)
    n_held = {"signs": 0, "planted": 0, "true": 0}
    for _ in range(200):
        values = signs_by_film(rng.normal(1, 0.5, 12)).exchange(rng.normal(1, 0.5, 12), rng)
        n_held["signs"] += verdict(above, of_films(values, signs_by_film(values))) == "holds"
        films = rng.normal(0.5, 0.03, 12)
        n_held["true"] += verdict(alike, of_films(films, planted_beside(films, 0.5, 0.05))) == "holds"
        unlike = planted_beside(films, 0.5, 0.05).exchange(films, rng)
        n_held["planted"] += verdict(alike, of_films(unlike, planted_beside(unlike, 0.5, 0.05))) == "holds"
    assert n_held["signs"] <= 10
    assert n_held["planted"] <= 10
    assert n_held["true"] >= 180


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
    one = min(clip.annotator for clip in segments)
    own = levels_exchanged(segments.with_clips(clip for clip in segments if clip.annotator == one), rng)
    return segments.with_clips([*own, *(clip for clip in segments if clip.annotator != one)])


@pytest.mark.long  # simulates
@pytest.mark.parametrize(
    ("needs", "exchange"),
    [("obygaze12", levels_exchanged), ("mobygaze", one_annotators_levels_exchanged)],
)
def test_claims_seldom_hold_of_exchanged_labels(obygaze12, segments, needs, exchange):
    inputs = {"obygaze12": obygaze12, "mobygaze": segments}
    nulls = {"obygaze12": "levels within films", "mobygaze": "one annotator's labels within films"}
    tested = [
        (claim.name, part)
        for claim in CLAIMS
        for part in claim.parts
        if claim.needs == needs and part.null == nulls[needs]
    ]
    rng = np.random.default_rng(0)
    n_draws = 30
    n_held = dict.fromkeys((name for name, _ in tested), 0)
    for _ in range(n_draws):
        exchanged = exchange(inputs[needs], rng)
        for name, part in tested:
            finding = getattr(measures, part.measure)(exchanged, **part.arguments)
            n_held[name] += verdict(part, finding) == "holds"
    assert tested
    assert max(n_held.values()) <= 5  # of 30 draws at .025 more than five come in one of 10,000 runs
    assert sum(n_held.values()) <= 0.1 * n_draws * len(tested)
