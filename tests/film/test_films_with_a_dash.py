"""Films and models go through all steps of a run as they were named, also where a name begins with a dash."""

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
    """A run writes into the folder -out, where its step `extract MANIFEST STORE` reads and writes files.

    As -out/windows.csv, the manifest would be taken for an option; ./-out/windows.csv is the same file.
    """
    plan = Plan(Path("-out"), films=["film.mkv"], models=["gaze.model"], shots="none")

    step = plan.extract_step(features=[], workers=None)

    assert format_command(step.words) == "$ obygaze extract ./-out/windows.csv ./-out/features"


def test_speech_is_measured_if_the_run_is_to_measure_sound():
    """`film run --variables --sound` runs `film variables --sound`, which measures speech besides."""
    plan = Plan(Path("out"), films=["film.mkv"], models=["gaze.model"], shots="none")

    with_sound = plan.variables_step(sound=True)
    without_sound = plan.variables_step(sound=False)

    assert "--sound" in with_sound.words
    assert "--sound" not in without_sound.words


def test_film_score_gets_models_as_they_were_named_to_film_run():
    """`film run` runs `film score MODEL MODEL MODEL`. A model may be named by a URL, a path or a name.

    To tidy up these words as paths would change what they mean: "https://..." would lose a slash, and
    "./gaze", a file, become "gaze", a name in the list of published models.
    """
    models = ["https://lab.example.org/gaze.model", "./gaze", "gaze@1.0.0"]
    plan = Plan(Path("out"), films=["film.mkv"], models=models, shots="none")

    command = format_command(plan.score_step([]).words)

    words = command.replace("\\\n", "").split()
    assert words[:7] == ["$", "obygaze", "film", "score", *models]
