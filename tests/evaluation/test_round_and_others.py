"""A round under way, in a table that has more than it: a machine, a pilot film, a score in sight."""

from dataclasses import replace

from obygaze_features.manifest import write_manifest
from obygaze_models.evaluation.rounds import round_progress
from tests.command import obygaze
from tests.evaluation.test_rounds import label_by_probability, p_with_drift_of_ab, plan_round


def labels_of_the_machine(annotated):
    """Return a machine's labels of the clips of AB: as they come, half of them S."""
    rows = []
    for number, clip in enumerate(row for row in annotated if row.annotator == "AB"):
        level = "S" if number % 2 else "EN"
        rows.append(replace(clip, annotator="qwen-vl", level=level, extras={"model": "qwen-vl"}))
    return rows


def test_people_of_a_round_are_not_compared_with_a_machine_that_labelled_the_same_clips(tmp_path):
    """AB, CD and EF annotate a round of six films of 20 clips; AB's calls drift, to be seen against others.

    A machine, which is not in the plan, labelled AB's clips too. The drift of all three must be what it is
    without the machine. In a table with a machine, the column `model` has its name, and is empty for people.
    """
    plan = plan_round(tmp_path, films=6, clips_a_film=20)
    annotated = label_by_probability(plan, p_with_drift_of_ab)
    people = [replace(clip, extras={"model": ""}) for clip in annotated]
    with_machine = annotated.with_clips([*people, *labels_of_the_machine(annotated)])

    assert round_progress(plan, with_machine, "en_s") == round_progress(plan, annotated, "en_s")


def test_clips_not_yet_labelled_are_not_done_because_of_a_row_of_a_film_outside_of_the_round(tmp_path):
    """AB has labelled ten of the clips of a round so far. The table also has a row of a pilot film.

    If labels are not of the round's clips, they count as free segments, between which the annotator saw
    nothing: all other clips of these films would be done, with the level EN. The row of the pilot film does
    not make them so: ten clips are done, and the same films are begun as without it.
    """
    plan = plan_round(tmp_path, films=6, clips_a_film=20)
    first_clips = [clip for clip in plan if clip.annotator == "AB"][:10]
    begun = plan.with_clips(replace(clip, level="S", extras={}) for clip in first_clips)
    of_pilot = replace(begun.clips[0], clip_id="pilot", movie="pilot")

    with_pilot = round_progress(plan, begun.with_clips([*begun, of_pilot]))["AB"]

    without_pilot = round_progress(plan, begun)["AB"]
    assert with_pilot.done == without_pilot.done  # films
    assert with_pilot.clips_done == 10


def test_after_an_annotator_judged_two_drawn_windows_of_a_film_only_their_clips_are_done(tmp_path):
    """AB is to label the 20 clips of a film, and has judged two windows S that have the times of two of them.

    Rows with the column `place`, the position in a draw, are windows that were drawn at random. Nobody looked
    at the film between these. Rows without it would be free segments, between which the annotator looked and
    marked nothing: all 20 clips would be done.
    """
    plan = plan_round(tmp_path, films=1, clips_a_film=20)
    first_clips = [clip for clip in plan if clip.annotator == "AB"][:2]
    drawn_windows = [
        replace(clip, clip_id=f"window{place}", level="S", extras={"place": str(place)})
        for place, clip in enumerate(first_clips, start=1)
    ]

    progress = round_progress(plan, plan.with_clips(drawn_windows))

    assert progress["AB"].clips_done == 2


def test_labels_in_sight_of_a_score_are_counted(tmp_path, monkeypatch, capsys):
    """AB judged at the desk and saw a model's score. CD and EF judged blindly."""
    monkeypatch.chdir(tmp_path)
    plan = plan_round(tmp_path, films=6, clips_a_film=20)
    annotated = []
    for clip in label_by_probability(plan, p_with_drift_of_ab):
        seen_score = "1" if clip.annotator == "AB" else "0"
        annotated.append(replace(clip, extras={"seen_score": seen_score}))
    done = plan.with_clips(annotated)

    progress = round_progress(plan, done, "en_s")

    assert progress["AB"].clips_done == progress["AB"].in_sight == 120
    assert progress["CD"].in_sight == 0

    write_manifest(plan, "round.csv")
    write_manifest(done, "done.csv")
    assert obygaze("manifest", "progress", "round.csv", "done.csv", "--task", "en_s") == 0
    assert "120 judgements in sight of a model's score" in capsys.readouterr().out
