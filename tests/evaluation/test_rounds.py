"""A round that is under way: what is done, and an annotator whose calls change is told from films that do."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import linregress, t

from obygaze_features.errors import ManifestError
from obygaze_features.manifest import (
    Clip,
    EafTier,
    Level,
    Manifest,
    Scale,
    assign,
    builtin_codebook,
    eaf_document,
    import_spans,
    read_manifest,
    write_documents,
    write_manifest,
)
from obygaze_models.errors import ProtocolError
from obygaze_models.evaluation.rounds import drifts, round_progress
from tests.command import obygaze


def plan_round(folder, *, films=10, clips_a_film=60, annotators_a_film=3, calibration=0):
    """Assign films to AB, CD and EF: a row for each clip and annotator."""
    clips = []
    for film in range(films):
        for number in range(clips_a_film):
            start_s = 5.0 * number
            clips.append(Clip(f"f{film:02}-{number:02}", f"f{film:02}", "", start_s, start_s + 5))
    manifest = Manifest(tuple(clips), folder)
    return assign(manifest, ("AB", "CD", "EF"), annotators_a_film, calibration=calibration)


def label_by_probability(plan, p_s, seed=0):
    """Call clips S with probability `p_s(clip)`, and EN otherwise; a clip is as easy for all annotators."""
    rng = np.random.default_rng(seed)
    easiness = {clip.clip_id: rng.random() for clip in plan}
    labelled = []
    for clip in plan:
        level = "S" if easiness[clip.clip_id] < p_s(clip) else "EN"
        labelled.append(replace(clip, level=level, extras={}))
    return plan.with_clips(labelled)


def p_by_film(clip):
    """Return a probability of S that rises from .2 in film f00 to .5 in f09."""
    film_number = int(clip.movie[1:])
    return 0.2 + 0.3 * film_number / 9


def p_with_drift_of_ab(clip):
    """Add for AB what rises from 0 in the first film that AB annotates to .3 in the tenth."""
    place_in_order = int(clip.extras["order"]) - 1
    drift = 0.3 * place_in_order / 9 if clip.annotator == "AB" else 0
    return p_by_film(clip) + drift


def test_clips_of_a_film_judged_in_part_are_counted(tmp_path):
    """A round has four films of 60 clips. AB has labelled 90 clips: one whole film, and half of the next one.

    CD has not begun. Films that somebody has begun count as done; their clips are counted one by one.
    """
    plan = plan_round(tmp_path, films=4, clips_a_film=60)
    labelled = label_by_probability(plan, lambda _clip: 0.5)
    labelled_by_ab = [clip for clip in labelled if clip.annotator == "AB"]
    one_film_and_a_half = plan.with_clips(labelled_by_ab[:90])

    progress = round_progress(plan, one_film_and_a_half)

    assert len(progress["AB"].done) == 2
    assert progress["AB"].clips_done == 90
    assert progress["CD"].clips_done == 0


@pytest.mark.parametrize(
    ("clip_ids", "number", "message"),
    [
        (["f00-00"], "9", "'f00' of 'AB' has two numbers"),
        (["f00-00", "f00-01"], "2", "is of two films"),
    ],
    ids=["a film with two numbers", "a number of two films"],
)
def test_films_of_unclear_numbers_are_refused(tmp_path, clip_ids, number, message):
    """The round has four films of two clips each; some clips of f00 get another number in the order of AB."""
    plan = plan_round(tmp_path, films=4, clips_a_film=2)
    clips = []
    for clip in plan:
        is_renumbered = clip.annotator == "AB" and clip.clip_id in clip_ids
        extras = {**clip.extras, "order": number} if is_renumbered else clip.extras
        clips.append(replace(clip, extras=extras))

    with pytest.raises(ProtocolError, match=message):
        round_progress(plan.with_clips(clips), plan)


def test_a_clip_with_concepts_alone_is_done(tmp_path):
    """AB gave the first of two clips a level, and named what is in the second one, which has no level."""
    plan = plan_round(tmp_path, films=1, clips_a_film=2)
    first, second = [clip for clip in plan if clip.annotator == "AB"]
    annotated = [replace(first, level="EN", extras={}), replace(second, concepts=("Body",), extras={})]

    progress = round_progress(plan, plan.with_clips(annotated))

    assert progress["AB"].clips_done == 2


def test_a_change_of_the_codebook_is_not_taken_for_drift(tmp_path):
    """The last two of four films were judged when the codebook had been changed."""
    plan = plan_round(tmp_path, films=4, clips_a_film=2)
    labelled = []
    for clip in plan:
        definition = "a" * 64 if clip.movie in ("f00", "f01") else "b" * 64
        labelled.append(replace(clip, level="EN", extras={"definition": definition}))

    with pytest.raises(ManifestError, match="under aaaaaa"):
        round_progress(plan, plan.with_clips(labelled))


def test_drift_in_a_round_on_a_scale_is_that_of_the_ranks_on_the_scale(tmp_path):
    """AB, CD and EF rank clips low or high on the scale valence, and give no level. AB drifts.

    The ranks are made of levels, high of S and low of EN. So AB's drift against the others by ranks must be
    the drift by levels, and all ranked clips must count as done.
    """
    scale = Scale("valence", (Level("low"), Level("high")))
    plan = plan_round(tmp_path)
    codebook = replace(plan.codebook, scales=(scale,))
    plan = replace(plan, codebook=codebook)
    by_level = label_by_probability(plan, p_with_drift_of_ab)
    ranked = []
    for clip in by_level:
        rank = "high" if clip.level == "S" else "low"
        ranked.append(replace(clip, level=None, extras={"valence": rank}))

    by_ranks = round_progress(plan, plan.with_clips(ranked), "scale:valence")["AB"]

    assert by_ranks.clips_done == by_ranks.clips
    by_levels = round_progress(plan, by_level, "en_s")["AB"]
    assert by_ranks.against == by_levels.against


def test_ranks_of_free_segments_are_refused(tmp_path):
    """The round's clips are 5 s long; AB gave a segment of 7 s a level, and a rank on a scale."""
    plan = plan_round(tmp_path, films=4, clips_a_film=2)
    codebook = replace(plan.codebook, scales=(Scale("valence", (Level("low"), Level("high"))),))
    plan = replace(plan, codebook=codebook)
    segment = Clip(
        "s1", "f00", "", start_s=0.0, end_s=7.0, level="S", annotator="AB", extras={"valence": "low"}
    )

    with pytest.raises(ProtocolError, match=r"scale:valence: .* projected by their levels alone"):
        round_progress(plan, plan.with_clips([segment]), "scale:valence")


def test_numbers_of_films_may_be_written_with_a_decimal_point(tmp_path):
    """The column `order` has the number of each film in an annotator's order. Data frames write 1 as 1.0."""
    plan = plan_round(tmp_path, films=4, clips_a_film=2)
    with_point = []
    for clip in plan:
        order = clip.extras["order"]
        with_point.append(replace(clip, extras={**clip.extras, "order": f"{order}.0"}))

    progress = round_progress(plan, plan)
    progress_with_point = round_progress(plan.with_clips(with_point), plan)
    for annotator in ("AB", "CD", "EF"):
        assert progress_with_point[annotator].films == progress[annotator].films


@pytest.mark.parametrize(
    ("column", "spelling", "other_spelling"), [("annotator", "AB", "ab"), ("movie", "f00", "F00")]
)
def test_an_annotator_or_film_in_two_spellings_is_refused(tmp_path, capsys, column, spelling, other_spelling):
    """The plan of the round has one spelling, and the table of what is annotated the other one."""
    plan = plan_round(tmp_path, films=2, clips_a_film=2)
    write_manifest(plan, tmp_path / "round.csv")
    spelled_so = [clip for clip in plan if getattr(clip, column) == spelling]
    annotated = [replace(clip, level="S", **{column: other_spelling}) for clip in spelled_so]
    write_manifest(plan.with_clips(annotated), tmp_path / "done.csv")

    exit_status = obygaze("manifest", "progress", tmp_path / "round.csv", tmp_path / "done.csv")

    assert exit_status == 1
    assert "are one name: spell both alike" in capsys.readouterr().err


def test_the_drift_over_films_that_differ_is_that_of_a_line_through_their_mean_calls():
    """An annotator has 40 calls on each of eight films, with a deviation of 1 within a film.

    The films' means rise by .1 a film, but also differ at random by 3: far more than the 40 calls within a
    film explain, so that films are the units. Drift and interval are then those of least squares on eight
    means. The drift is the change over the seven steps from the first film to the last.
    """
    rng = np.random.default_rng(0)
    n_films = 8
    calls_on_films = [rng.normal(0.1 * number + 3 * rng.normal(), 1, 40) for number in range(n_films)]
    places_in_order = range(n_films)

    (drift,) = drifts([(calls_on_films, places_in_order)])

    line = linregress(places_in_order, [calls.mean() for calls in calls_on_films])
    half_width_of_slope = t.ppf(0.975, df=n_films - 2) * line.stderr
    n_steps = n_films - 1
    assert drift.value == pytest.approx(n_steps * line.slope)
    assert drift.high - drift.value == pytest.approx(n_steps * half_width_of_slope)


@pytest.mark.parametrize("n_films", [0, 3])
def test_fewer_than_four_films_have_no_drift(n_films):
    """An annotator's drift is a line through the means of films, here of none or of three with 40 calls each.

    The number of films is given, and no value or interval.
    """
    rng = np.random.default_rng(0)
    calls_on_films = [rng.normal(size=40) for _ in range(n_films)]

    (drift,) = drifts([(calls_on_films, range(n_films))])

    assert drift.films == n_films
    assert np.isnan([drift.value, drift.low, drift.high]).all()


def test_calls_that_are_all_alike_show_no_drift():
    """Nine clips of each of five films are all called 0."""
    calls_on_films = [np.zeros(9), np.zeros(9), np.zeros(9), np.zeros(9), np.zeros(9)]
    (drift,) = drifts([(calls_on_films, range(5))])
    assert not drift.is_found


def test_the_drift_of_an_annotator_against_the_others_is_found(tmp_path):
    """AB, CD and EF annotate ten films. AB's probability of S rises by .3 from the first film to the last.

    `against` is the drift of the differences from the others' calls, which share what a film is like.
    """
    plan = plan_round(tmp_path, films=10)
    annotated = label_by_probability(plan, p_with_drift_of_ab)

    progress = round_progress(plan, annotated, "en_s")

    drift_of_ab = progress["AB"].against
    assert drift_of_ab.is_found
    assert drift_of_ab.value == pytest.approx(0.3, abs=0.06)


@pytest.mark.long
def test_films_that_differ_are_no_drift_of_an_annotator(tmp_path):
    """AB, CD and EF annotate ten films. The share of S rises from film to film for everybody.

    So no annotator drifts against the others.
    """
    plan = plan_round(tmp_path, films=10)
    annotated = label_by_probability(plan, p_by_film)

    progress = round_progress(plan, annotated, "en_s")

    for annotator in ("AB", "CD", "EF"):
        assert not progress[annotator].against.is_found


@pytest.fixture
def elan_round(tmp_path, monkeypatch):
    """A round that is assigned by the command and annotated in ELAN.

    AB has annotated all films, CD all but the last, EF none. The working folder has clips.csv, round.csv, and
    done.csv of the imported files.
    """
    monkeypatch.chdir(tmp_path)
    clips = plan_round(tmp_path, films=6, clips_a_film=20, annotators_a_film=2, calibration=1)
    one_row_a_clip = {clip.clip_id: replace(clip, annotator="", extras={}) for clip in clips}
    write_manifest(clips.with_clips(one_row_a_clip.values()), "clips.csv")
    annotators = ["--annotator", "AB", "--annotator", "CD", "--annotator", "EF"]
    options = ["--each", 2, "--calibration", 1, "--out", "round.csv"]
    assert obygaze("manifest", "assign", "clips.csv", *annotators, *options) == 0
    plan = read_manifest("round.csv")
    films_of_ab = sorted({clip.movie for clip in plan if clip.annotator == "AB"})
    films_of_cd = sorted({clip.movie for clip in plan if clip.annotator == "CD"})
    documents = {f"{film}-AB": elan_document(film, "AB") for film in films_of_ab}
    documents |= {f"{film}-CD": elan_document(film, "CD") for film in films_of_cd[:-1]}
    paths = write_documents(documents, tmp_path / "done", force=False)
    annotated = import_spans(paths, tmp_path).manifest
    write_manifest(annotated, "done.csv")
    return plan, annotated


def elan_document(film, annotator):
    """Write what somebody marked in a film as an ELAN file."""
    codebook = builtin_codebook("obygaze12")
    spans = [(0.0, 12.0, "S"), (12.0, 40.0, "HN"), (50.0, 62.0, "S")]
    tier = EafTier(f"human: level@{annotator}", "level", spans, annotator=annotator)
    vocabulary = {"levels": ("levels", codebook.level_names)}
    return eaf_document([tier], {"codebook": codebook.name, "movie": film}, vocabulary)


def test_progress_of_a_round_in_elan_says_what_is_to_do(elan_round, capsys):
    """Of a round in ELAN, AB has annotated all films of their list, CD all but the last, and EF none.

    The plan is in round.csv, and what was annotated in done.csv.
    """
    plan, annotated = elan_round

    progress = round_progress(plan, annotated)

    assert progress["AB"].to_do == []
    assert progress["AB"].clips_done == progress["AB"].clips
    (film_to_do,) = progress["CD"].to_do
    assert progress["EF"].done == []

    # The command prints the same.
    capsys.readouterr()  # what was printed before is of no interest
    assert obygaze("manifest", "progress", "round.csv", "done.csv") == 0
    assert f"CD: to do {film_to_do}" in capsys.readouterr().out


def test_a_manifest_without_the_numbers_of_films_is_no_round(elan_round):
    """A plan of a round has a column `order`, the number of each film in an annotator's order.

    What people annotated has no such column, and is given in place of the plan.
    """
    _, annotated = elan_round
    with pytest.raises(ProtocolError, match="order"):
        round_progress(annotated, annotated)


@pytest.mark.usefixtures("elan_round")
def test_the_command_makes_templates_for_an_annotator_of_a_round():
    """The plan of a round, round.csv, is in the working folder. A template is a blank document of ELAN."""
    exit_code = obygaze("codebook", "template", "round.csv", "f00.mp4", "--annotator", "AB", "--out", "blank")
    assert exit_code == 0


def test_clips_of_other_annotators_and_films_are_counted_as_left_out(elan_round, capsys):
    """A round has the films f00 to f05, for AB, CD and EF. One clip of GH is annotated, and one of a film f9.

    The command counts both as left out.
    """
    _, annotated = elan_round
    one_clip = annotated.clips[0]
    of_guest = replace(one_clip, annotator="GH")
    of_other_film = replace(one_clip, clip_id="x", movie="f9")
    write_manifest(annotated.with_clips([*annotated, of_guest, of_other_film]), "more.csv")
    capsys.readouterr()

    assert obygaze("manifest", "progress", "round.csv", "more.csv") == 0

    message = capsys.readouterr().err
    assert "GH (1)" in message
    assert "f9 (1)" in message


def test_progress_of_a_round_of_whole_files_is_counted_though_they_have_no_times(tmp_path):
    """The clips were cut out of films beforehand. Their labels are of these clips: nothing is projected."""
    plan = plan_round(tmp_path)
    whole_files = plan.with_clips(replace(clip, start_s=None, end_s=None) for clip in plan)
    labelled = label_by_probability(whole_files, lambda _: 0.5)

    progress = round_progress(whole_files, labelled)

    assert progress == round_progress(plan, label_by_probability(plan, lambda _: 0.5))
