"""Films and models whose names begin with a dash go through all steps of a run."""

from pathlib import Path

from obygaze.film_run import Plan
from obygaze.pipeline import format_command


def test_a_film_that_begins_with_a_dash_is_no_option_of_a_step():
    """Whoever types `film run ... -- "-film.mkv"` said that it is a film; each step has to say so too."""
    plan = Plan(Path("out"), films=["-film.mkv"], models=["-gaze.model"], shots="own")

    printed = [
        format_command(step.words)
        for step in (plan.cut_step("8", "4"), plan.variables_step(sound=False), plan.score_step([]))
    ]

    assert printed[0].startswith("$ obygaze manifest import film ./-film.mkv --window 8")
    assert printed[1].startswith("$ obygaze film variables ./-film.mkv --windows")
    assert printed[2].startswith("$ obygaze film score ./-gaze.model out/features-1.0.0")


def test_a_run_writes_into_a_folder_that_begins_with_a_dash():
    """Its manifest is a word of `extract` that follows no option."""
    plan = Plan(Path("-out"), films=["film.mkv"], models=["gaze.model"], shots="none")

    assert format_command(plan.extract_step([], None).words) == (
        "$ obygaze extract ./-out/windows.csv ./-out/features"
    )
