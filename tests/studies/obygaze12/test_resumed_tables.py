"""A run that is killed keeps its tables and what it trained, and ends in the bytes of an undisturbed one."""

import pytest
from click import Abort

from obygaze_features import screen
from obygaze_features.errors import ObygazeError
from obygaze_features.manifest import write_manifest
from obygaze_features.store.testing import seal_arrays
from obygaze_studies import unfinished
from obygaze_studies.commands.paper_commands import all_
from obygaze_studies.obygaze12 import figure5, protocol_results
from tests.studies.obygaze12.test_strict_protocol import planted_results


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """The arguments of a run on four planted films."""
    folder = tmp_path_factory.mktemp("tables")
    results = planted_results(of_level=2.0, of_body=2.0, n_movies=4, n_clips=20)
    manifest = results.corpus.manifest
    data = results.source
    write_manifest(manifest, folder / "films.csv")
    movie_of = {clip.clip_id: clip.movie for clip in manifest}
    store = seal_arrays(folder / "films", movie_of, {"toy": {"pooled": data.X}})
    return [str(folder / "films.csv"), str(store), "--protocol", "strict", "--policy", "raw"]


def run(inputs, out):
    """Make all tables by the command, and return the files of the folder `out`."""
    all_.main([*inputs, "--out", str(out)], standalone_mode=False)
    return files(out)


def files(folder):
    """Return the content of each file of a folder by its name."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def kill(*_, **__):
    raise KeyboardInterrupt


def run_killed_before_figure_5(inputs, out, monkeypatch, capsys):
    """Make tables until figure 5, and return the lines that say what was being trained."""
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(figure5, "strict_report", kill)
        patch.setattr(screen, "QUIET_S", 0)  # print progress from the start
        with pytest.raises(Abort):
            run(inputs, out)
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("training")]


def fail_where_anything_is_trained(monkeypatch):
    """Let the function fail that trains and tests models."""
    monkeypatch.setattr(protocol_results, "evaluate", kill)


@pytest.mark.long
@pytest.mark.nightly
def test_a_killed_run_keeps_its_tables_and_gives_the_same_files_without_training_again(
    inputs, tmp_path, monkeypatch, capsys
):
    """A run makes figure 2, tables 2 and 4 and figure 3, and is killed before figure 5; then it is run again.

    Its folder is called `cut.partial` until all is there. All models were trained before the kill, so the
    second run must train nothing and end with the files of a whole run.
    """
    files_of_whole_run = run(inputs, tmp_path / "whole")

    progress = run_killed_before_figure_5(inputs, tmp_path / "cut", monkeypatch, capsys)

    assert any("table2, strict protocol" in line for line in progress)
    assert any("figure3, strict protocol" in line for line in progress)
    files_kept = files(tmp_path / "cut.partial")
    for name, data in files_of_whole_run.items():
        if name.startswith(("figure2", "table2", "table4", "figure3")):
            assert files_kept[name] == data, name
    assert not (tmp_path / "cut").exists()

    fail_where_anything_is_trained(monkeypatch)
    assert run(inputs, tmp_path / "cut") == files_of_whole_run
    assert not (tmp_path / "cut.partial").exists()


@pytest.mark.long  # tables of all models
def test_results_that_a_killed_run_of_another_seed_left_are_removed(inputs, tmp_path, monkeypatch):
    """Results of seed 0 must not be mixed with those of seed 1.

    Both runs are killed where the first model would be trained. Before that, each makes Figure 2, which needs
    no model, in its unfinished folder out.partial. In between, the test puts a result of seed 0 there.
    """
    monkeypatch.setattr(protocol_results, "evaluate", kill)
    unfinished_folder = tmp_path / "out.partial"
    with pytest.raises(Abort):
        run([*inputs, "--seed", "0"], tmp_path / "out")
    (unfinished_folder / "trained" / "strict-toy-hn_s.json").write_text("of another seed")

    with pytest.raises(Abort):
        run([*inputs, "--seed", "1"], tmp_path / "out")

    assert list((unfinished_folder / "trained").iterdir()) == []
    assert "figure2.csv" in files(unfinished_folder)


def test_a_run_continues_in_a_folder_where_one_was_killed_at_its_first_write(tmp_path):
    """The first file that a run writes says what its inputs are. Killed in it, a run leaves a part of it.

    This part has the name of the file between a dot and letters of chance. The next run must remove it and
    begin: with the file, and a folder for what it will train.
    """
    folder_of_killed_run = tmp_path / "out.partial"
    folder_of_killed_run.mkdir()
    (folder_of_killed_run / f".{unfinished.INPUTS_FILE}.0123456789ab.partial").touch()

    with unfinished.unfinished_folder(tmp_path / "out", inputs={}, force=False) as folder:
        assert folder == folder_of_killed_run
        assert sorted(path.name for path in folder.iterdir()) == [unfinished.INPUTS_FILE, "trained"]


def test_a_run_is_refused_where_its_unfinished_folder_would_be_somebody_elses(inputs, tmp_path):
    """A run into `out` works in the folder out.partial, which exists with a file of notes, and must stay."""
    folder_of_notes = tmp_path / "out.partial"
    folder_of_notes.mkdir()
    (folder_of_notes / "notes.txt").write_text("mine")

    with pytest.raises(ObygazeError, match=r"out\.partial"):
        run(inputs, tmp_path / "out")

    assert files(folder_of_notes) == {"notes.txt": b"mine"}
