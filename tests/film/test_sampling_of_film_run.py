"""`film run` extracts a film as the model's films were, so that the model reads what was extracted."""

import numpy as np
import pytest

import obygaze_features as of
import obygaze_models as om
from obygaze_features.extraction.job import REFUSED
from obygaze_features.store.testing import seal_arrays
from tests.command import obygaze

DECODER = {"av": "1", "ffmpeg": "1", "on_damage": "what can be read, status partial"}
STRICT = DECODER | {"on_damage": REFUSED}
EACH_SECOND = {"policy": "fps", "rate": 8.0, "n": None}
UNIFORM = {"policy": "uniform", "n": 2}


def trained_models(folder, **made_by):
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


def planned(capsys, folder, *models):
    """Return the commands that `film run` would run for models; fail if it refuses them."""
    code = dry_run(folder, *models)
    printed = capsys.readouterr()
    assert code == 0, printed.err
    return printed.out


def refusal(capsys, folder, *models):
    """Return what `film run` says of models that it refuses to run together."""
    assert dry_run(folder, *models) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("sampling", "decoder", "expected_options", "other_options"),
    [
        (EACH_SECOND, DECODER, ["--per-second 8"], ["--n ", "--strict"]),
        (UNIFORM, STRICT, ["--n 2", "--strict"], ["--per-second"]),
        (UNIFORM, DECODER, ["--n 2"], ["--strict", "--per-second"]),
    ],
    ids=["frames a second", "strict", "neither"],
)
def test_a_film_is_sampled_and_refused_as_the_films_trained_on(
    tmp_path, capsys, sampling, decoder, expected_options, other_options
):
    """The clips of a model were sampled by 8 frames a second, or 2 in all; "strict" refused damaged ones.

    `film run` plans to extract a film by the same options. Otherwise it would be extracted for hours, and
    then not be scored.
    """
    model = trained_models(tmp_path, sampling=sampling, decoder=decoder)

    plan = planned(capsys, tmp_path, model).replace("\\\n    ", "")  # commands on one line each

    for option in expected_options:
        assert option in plan
    for option in other_options:
        assert option not in plan


def test_a_strict_model_and_another_are_run_one_by_one(tmp_path, capsys):
    """One extraction cannot both refuse a damaged file and keep what can be read of it."""
    files = []
    for name, decoder in (("strict", STRICT), ("lenient", DECODER)):
        (tmp_path / name).mkdir()
        files.append(trained_models(tmp_path / name, sampling=UNIFORM, decoder=decoder))

    assert "--strict" in refusal(capsys, tmp_path, *files)


FP32 = {
    "dtype": "float32",
    "autocast": None,
    "attention": "sdpa",
    "tf32": False,
    "compiled": False,
    "device": "cpu",
}


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, ""),
        ({"autocast": "bfloat16"}, "--dtype bf16 "),
        ({"autocast": "float16", "compiled": True}, "--dtype fp16 --compile "),
        ({"dtype": "bfloat16"}, "--dtype bf16-weights "),
        ({"tf32": True}, "--tf32 "),
    ],
    ids=["fp32", "bf16", "fp16, compiled", "bf16-weights", "tf32"],
)
def test_networks_compute_in_the_precision_of_the_features_trained_on(tmp_path, capsys, changes, wanted):
    """The model refuses features of another precision."""
    model = trained_models(tmp_path, compute=FP32 | changes)

    plan = planned(capsys, tmp_path, model).replace("\\\n    ", "")

    (extract_line,) = [line for line in plan.splitlines() if "obygaze extract" in line]
    assert f"--backbone descriptors {wanted}--n" in extract_line


def test_models_whose_features_of_one_backbone_were_made_differently_are_run_one_by_one(tmp_path, capsys):
    """One extraction makes the features of one of them; the other would refuse them at the end."""
    files = []
    for name, changes in (("exact", {}), ("fast", {"autocast": "bfloat16"})):
        (tmp_path / name).mkdir()
        files.append(trained_models(tmp_path / name, compute=FP32 | changes))

    assert "descriptors" in refusal(capsys, tmp_path, *files)
    assert "--dtype" not in planned(capsys, tmp_path, files[0])
