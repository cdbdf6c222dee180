"""`film run` extracts a film as the model's films were, so that the model reads what was extracted."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.extraction.job import REFUSED
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

KEEPS_WHAT_CAN_BE_READ = {"av": "1", "ffmpeg": "1", "on_damage": "what can be read, status partial"}
REFUSES_DAMAGED = KEEPS_WHAT_CAN_BE_READ | {"on_damage": REFUSED}
EIGHT_FRAMES_A_SECOND = {"policy": "fps", "rate": 8.0, "n": None}
TWO_FRAMES_A_CLIP = {"policy": "uniform", "n": 2}


def trained_model(folder, **made_by):
    """Train a model on features that were made in a certain way, and return its file."""
    clips = [
        of.Clip(
            f"{movie}-{index}",
            movie,
            level=("HN", "S")[index % 2],
            start_s=5.0 * index,
            end_s=5.0 * index + 5,
        )
        for movie in ("a", "b", "c", "d")
        for index in range(6)
    ]
    features = np.random.default_rng(0).normal(size=(len(clips), 5)).astype(np.float32)
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    groups = {"descriptors": {"pooled": features}}
    store = of.open_store(seal_arrays(folder / "films", movie_of, groups, spans=spans, **made_by))
    data = om.load_dataset(store, of.Manifest(tuple(clips), folder))
    run = om.evaluate(data, ["linear"], task="hn_s")
    return om.save_models(run, data, ["linear"], folder / "kept")["linear"]


def dry_run(folder, *models):
    """Ask `film run` what it would run for models, and return its exit code."""
    (folder / "film.mkv").write_bytes(b"")
    options = [word for model in models for word in ("--model", model)]
    return obygaze("film", "run", folder / "film.mkv", *options, "--out", folder / "out", "--dry-run")


def planned_commands(capsys, folder, *models):
    """Return the commands that `film run` would run for models, one a line; fail if it refuses them."""
    code = dry_run(folder, *models)
    printed = capsys.readouterr()
    assert code == 0, printed.err
    break_within_command = "\\\n    "
    return printed.out.replace(break_within_command, "")


def refusal(capsys, folder, *models):
    """Return what `film run` says of models that it refuses to run together."""
    assert dry_run(folder, *models) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("sampling", "decoder", "expected_options", "other_options"),
    [
        pytest.param(
            EIGHT_FRAMES_A_SECOND,
            KEEPS_WHAT_CAN_BE_READ,
            ["--per-second 8"],
            ["--n ", "--strict"],
            id="8 frames a second",
        ),
        pytest.param(
            TWO_FRAMES_A_CLIP,
            REFUSES_DAMAGED,
            ["--n 2", "--strict"],
            ["--per-second"],
            id="2 frames a clip, damaged files refused",
        ),
        pytest.param(
            TWO_FRAMES_A_CLIP,
            KEEPS_WHAT_CAN_BE_READ,
            ["--n 2"],
            ["--strict", "--per-second"],
            id="2 frames a clip",
        ),
    ],
)
def test_a_film_is_extracted_with_the_options_by_which_the_models_training_clips_were(
    tmp_path, capsys, sampling, decoder, expected_options, other_options
):
    """The store that a model was trained on says how frames were sampled, and whether damage was refused.

    `film run` plans to extract a film with the same options. With others the model would refuse its features,
    after hours of extraction.
    """
    model = trained_model(tmp_path, sampling=sampling, decoder=decoder)

    plan = planned_commands(capsys, tmp_path, model)

    for option in expected_options:
        assert option in plan
    for option in other_options:
        assert option not in plan


def test_film_run_refuses_two_models_if_the_clips_of_only_one_were_extracted_with_strict(tmp_path, capsys):
    """One extraction cannot both refuse a damaged file (--strict) and keep what can be read of it.

    So the models must be run one by one, and the refusal names --strict, in which they differ.
    """
    models = []
    for name, decoder in (("strict", REFUSES_DAMAGED), ("lenient", KEEPS_WHAT_CAN_BE_READ)):
        (tmp_path / name).mkdir()
        models.append(trained_model(tmp_path / name, sampling=TWO_FRAMES_A_CLIP, decoder=decoder))

    assert "--strict" in refusal(capsys, tmp_path, *models)


FP32 = {
    "dtype": "float32",
    "autocast": None,
    "attention": "sdpa",
    "tf32": False,
    "compiled": False,
    "device": "cpu",
}


@pytest.mark.parametrize(
    ("unlike_fp32", "expected_options"),
    [
        ({}, ""),
        ({"autocast": "bfloat16"}, "--dtype bf16 "),
        ({"autocast": "float16", "compiled": True}, "--dtype fp16 --compile "),
        ({"dtype": "bfloat16"}, "--dtype bf16-weights "),
        ({"tf32": True}, "--tf32 "),
    ],
    ids=["fp32", "bf16", "fp16, compiled", "bf16-weights", "tf32"],
)
def test_a_films_features_are_computed_in_the_precision_of_those_that_the_model_was_trained_on(
    tmp_path, capsys, unlike_fp32, expected_options
):
    """The store that a model was trained on says how its network computed: in FP32, or otherwise in one way.

    `film run` plans to extract the film with the options for that, as the model would refuse features of
    another precision.
    """
    model = trained_model(tmp_path, compute=FP32 | unlike_fp32)

    plan = planned_commands(capsys, tmp_path, model)

    (extract_command,) = [line for line in plan.splitlines() if "obygaze extract" in line]
    assert f"--backbone descriptors {expected_options}--n" in extract_command


def test_two_models_whose_features_of_one_backbone_have_other_precisions_cannot_be_run_together(
    tmp_path, capsys
):
    """Two models were trained on features of the backbone "descriptors", in fp32 and in bf16.

    `film run` extracts a film's features once for all models, and either model refuses those of the other: so
    it refuses both together, at the beginning, and names the backbone. It runs the model of fp32 alone, and
    needs no `--dtype` for that, as fp32 is the default.
    """
    (tmp_path / "fp32").mkdir()
    in_fp32 = trained_model(tmp_path / "fp32", compute=FP32)
    (tmp_path / "bf16").mkdir()
    in_bf16 = trained_model(tmp_path / "bf16", compute=FP32 | {"autocast": "bfloat16"})

    assert "descriptors" in refusal(capsys, tmp_path, in_fp32, in_bf16)
    assert "--dtype" not in planned_commands(capsys, tmp_path, in_fp32)
