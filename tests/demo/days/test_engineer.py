"""An engineer's night: a job array under a real Slurm, one task lost, and another film added later."""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.extraction.slurm_cluster import ABSENT, Slurm
from tests.files import rows_of

pytestmark = [
    pytest.mark.long,
    pytest.mark.nightly,
    pytest.mark.skipif(
        bool(ABSENT), reason=f"no Slurm here ({', '.join(ABSENT)}): apt-get install slurm-wlm"
    ),
    pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]


@pytest.fixture
def cluster(person):
    """A Slurm of three nodes, which the person's commands reach."""
    folder = Path(tempfile.mkdtemp(prefix="slurm"))
    slurm = Slurm(folder, person.environment)
    person.environment = slurm.environment | {"PATH": person.environment["PATH"] + ":/usr/sbin:/sbin"}
    try:
        slurm.begin()
        yield slurm
    finally:
        slurm.stop()
        shutil.rmtree(folder, ignore_errors=True)


def write_manifests(folder: Path, demo: Path) -> None:
    """Write the table of two nights: three films, and one that comes later."""
    header, *lines = (demo / "labels.csv").read_text(encoding="utf-8").splitlines()
    for name, films in (
        ("night.csv", ("tt9000001", "tt9000002", "tt9000003")),
        ("later.csv", ("tt9000004",)),
    ):
        rows = [line for line in lines if line.startswith(films)]
        (folder / name).write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def test_an_engineer_makes_a_store_in_a_night_and_adds_to_it(person, cluster, demo_folder):
    """Three films are extracted by three tasks under Slurm, of which one is lost; a fourth film comes later.

    `person.types` runs a command in the person's folder, expects its exit code, and returns its output. The
    features must be those of a demo, which extracted the same films in one run on one machine.
    """
    (person.folder / "films").symlink_to(demo_folder / "films")
    write_manifests(person.folder, demo_folder)
    for name in ("night", "later"):
        table = f"{name}.csv --videos films --out {name}-clips.csv"
        person.types(f"obygaze manifest import spans {table}")

    plan_the_night(person)
    check_that_a_misspelt_table_is_refused_before_anything_is_queued(person, cluster)
    array_job, sealing_job = submit(person)
    lose_task_2(cluster, array_job)
    check_that_a_stage_with_clips_left_to_do_is_not_sealed(person, cluster, sealing_job)
    do_task_2_again_and_seal(person, cluster)
    add_the_film_of_the_next_night(person)
    check_that_the_features_are_those_of_one_run_on_one_machine(person, demo_folder)

    person.types("obygaze store pack stores/night-1.1.0")
    inspected = person.types("obygaze store inspect stores/night-1.1.0.zip")
    assert re.search(r"clips\.ok +94", inspected), (
        "of 96 clips two have failed: their videos are damaged or lost"
    )


def plan_the_night(person):
    assert "fault" not in person.types("obygaze doctor stores/night --for extract")
    assert "clips to do    72" in person.types("obygaze extract night-clips.csv stores/night --dry-run")
    person.types(
        "obygaze slurm init jobs --licence CC0-1.0 --tasks 3 "
        "--sbatch gres=none --sbatch mem=700M --sbatch cpus-per-task=1"
    )


def check_that_a_misspelt_table_is_refused_before_anything_is_queued(person, cluster):
    printed = person.types("bash jobs/submit.sh nigth-clips.csv stores/night", 1)
    assert "nothing was submitted" in printed
    assert cluster.ask("squeue", "-h").split() == []


def submit(person):
    """Submit the job array and what seals after it; return the numbers of both jobs."""
    submitted = person.types("bash jobs/submit.sh night-clips.csv stores/night --corpus films")
    (array,) = re.findall(r"Job array (\d+)", submitted)
    (sealing,) = re.findall(r"Submitted batch job (\d+)", submitted)
    return array, sealing


def lose_task_2(cluster, array_job):
    """Cancel the last of the three tasks, 0 to 2; the others complete."""
    cluster.ask("scancel", f"{array_job}_2")
    ended = cluster.wait(array_job)
    completed = {task for task, job in ended.items() if job["JobState"] == "COMPLETED"}
    assert completed == {"0", "1"}


def check_that_a_stage_with_clips_left_to_do_is_not_sealed(person, cluster, sealing_job):
    """The log of sealing says what to run again."""
    assert cluster.wait(sealing_job)[""]["JobState"] == "FAILED"
    log = (person.folder / f"seal-{sealing_job}.log").read_text(encoding="utf-8")
    assert "--array=2 does these again" in log


def do_task_2_again_and_seal(person, cluster):
    printed = person.types(
        "sbatch --parsable --array=2 jobs/array.sbatch night-clips.csv stores/night --corpus films"
    )
    job = printed.strip()
    assert cluster.wait(job)["2"]["JobState"] == "COMPLETED"
    person.types("obygaze store seal stores/night --licence CC0-1.0")
    assert "nothing wrong" in person.types("obygaze store verify stores/night --full")


def add_the_film_of_the_next_night(person):
    """It joins the store, as its next version."""
    person.types("obygaze extract later-clips.csv stores/later --corpus films --licence CC0-1.0")
    merged = "stores/night stores/later --out stores/night --store-version 1.1.0"
    person.types(f"obygaze store merge {merged}")
    assert "nothing wrong" in person.types("obygaze store verify stores/night-1.1.0 --full")
    clips = rows_of(person.folder / "stores" / "night-1.1.0" / "data" / "clips.csv")
    assert len(clips) == 4 * 24  # films, and clips of each


def check_that_the_features_are_those_of_one_run_on_one_machine(person, demo_folder):
    """The demo's store has seven films, of which the first four are compared; no array differs.

    The exit code 3 says that the stores differ, as the last three films are in one alone.
    """
    (person.folder / "one-run").symlink_to(demo_folder / "store-1.0.0")
    compared = json.loads(person.types("obygaze store diff stores/night-1.1.0 one-run --json", 3))
    assert compared["only_first"] == []
    films_of_demo_alone = {clip_id.split("-")[0] for clip_id in compared["only_second"]}
    assert films_of_demo_alone == {"tt9000005", "tt9000006", "tt9000007"}
    for array in compared["arrays"]:
        assert array["changed"] == 0
