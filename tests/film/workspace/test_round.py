"""A round of annotation on the desk: planned, judged on the films' ledgers, imported, and followed."""

import numpy as np
import pytest

from obygaze_features.manifest import Clip, Manifest, assign, read_manifest, write_manifest
from obygaze_film.workspace.decisions import Decisions
from obygaze_models.evaluation.rounds import round_progress
from tests.command import obygaze
from tests.film.page.invented import invented_film

PEOPLE = ("AB", "CD", "EF")


@pytest.fixture
def films(tmp_path):
    """Six scored films of 20 windows, on a desk each."""
    made = {}
    for number in range(6):
        name = f"tt{number + 1:07}"
        film = invented_film(name, duration_s=200.0, n_rows=20, seed=number, unlike_parts=())
        (tmp_path / name).mkdir()
        made[name] = film
    return made


@pytest.mark.long
def test_a_round_on_the_desk_from_the_plan_to_progress(tmp_path, films, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    windows = {
        name: [*film.table[["start_s", "end_s"]].itertuples(index=False)] for name, film in films.items()
    }
    clips = [
        Clip(f"{name}-{k}", name, "", float(start), float(end))
        for name, spans in windows.items()
        for k, (start, end) in enumerate(spans)
    ]
    planned = assign(Manifest(tuple(clips), tmp_path), PEOPLE, 2, calibration=4)
    write_manifest(planned, "round.csv")
    rng = np.random.default_rng(0)
    latent = {clip.clip_id: rng.random() for clip in clips}
    todo = {(clip.movie, clip.annotator): int(clip.extras["order"]) for clip in planned}
    last = max((movie for movie, who in todo if who == "EF"), key=lambda movie: todo[movie, "EF"])
    for name, film in films.items():
        desk = Decisions(tmp_path / name, film, planned.codebook)
        for who in PEOPLE:
            if (name, who) not in todo or (who, name) == ("EF", last):
                continue
            share = 0.3 + (0.15 * (todo[name, who] - 1) if who == "AB" else 0)
            for k, (start, end) in enumerate(windows[name]):
                level = "S" if latent[f"{name}-{k}"] < share else "EN"
                desk.keep("judgement", start, end, who, level=level)
    tables = sorted(path.as_posix() for path in tmp_path.glob("*/judgements.csv"))
    assert obygaze("manifest", "import", "spans", *tables, "--out", "done.csv") == 0
    capsys.readouterr()
    assert obygaze("manifest", "progress", "round.csv", "done.csv", "--task", "en_s") == 0
    said = capsys.readouterr()
    assert f"EF: to do {last}" in said.out
    assert "left out" not in said.err
    found = round_progress(planned, read_manifest("done.csv"), "en_s")
    assert found["AB"].clips_done == found["AB"].clips
    assert found["EF"].clips_done == found["EF"].clips - 20
    assert found["AB"].against.is_found
    assert found["AB"].against.value == max(each.against.value for each in found.values())
