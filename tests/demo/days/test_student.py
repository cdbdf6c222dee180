"""A student's day: from videos and a spreadsheet in German to the page of a film that nobody labelled."""

import csv
from pathlib import Path

import pytest

from tests.files import rows_of

pytestmark = [pytest.mark.long, pytest.mark.nightly]

LEVELS = {"EN": "keine", "HN": "leicht", "S": "stark"}
CONCEPTS = {
    "Body": "Körper",
    "Posture": "Haltung",
    "Clothing": "Kleidung",
    "Look": "Blick",
    "Appearance": "Aussehen",
    "Activity": "Tätigkeit",
    "Type of shot": "Einstellung",
    "Expression of emotion": "Gefühl",
}
LABELLED_FILMS = ("tt9000001", "tt9000002", "tt9000003", "tt9000004")


def write_spreadsheet(path: Path, labels: Path) -> None:
    """Write labels of four films as a German Excel saves a table, in the student's own words."""
    with path.open("w", encoding="cp1252", newline="") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["Datei", "Film", "Objektifizierung", "Konzepte"])
        for row in rows_of(labels):
            is_early = row["clip_id"][-3:] <= "016"
            if row["movie"] in LABELLED_FILMS and row["level"] in LEVELS and is_early:
                concepts = [CONCEPTS[name] for name in row["concepts"].split(";") if name]
                video = Path(row["video"]).name
                table.writerow([video, row["movie"], LEVELS[row["level"]], ", ".join(concepts)])


def fill_in_the_task(codebook: Path) -> None:
    """Remove the signs before the three lines of the task, as the codebook asks, and put the levels in."""
    text = codebook.read_text(encoding="utf-8")
    for line, filled in (
        ("# [tasks.mine]", "[tasks.mine]"),
        ('# negative = ["keine"]', 'negative = ["keine", "leicht"]'),
        ('# positive = ["stark"]', 'positive = ["stark"]'),
    ):
        assert line in text
        text = text.replace(line, filled)
    codebook.write_text(text, encoding="utf-8")


def test_a_student_comes_from_a_spreadsheet_to_the_page_of_a_new_film(person, demo_folder):
    """A student has videos, and a table of German labels of four films: three levels and eight concepts.

    `person.types` runs a command in the student's folder, expects its exit code, and returns what it printed.
    Each command is one that the program, or its page, told the student to type.
    """
    (person.folder / "films").symlink_to(demo_folder / "films")
    write_spreadsheet(person.folder / "labels.csv", demo_folder / "labels.csv")

    # The table has words of no built-in codebook: one is guessed from it, and names the command that imports.
    message = person.types("obygaze manifest import spans labels.csv --videos films --out clips.csv", 1)
    assert "obygaze codebook guess" in message
    printed = person.types("obygaze codebook guess labels.csv --out mine.toml")
    command = printed.strip().rpartition("then: ")[2]
    assert command.startswith("obygaze manifest import spans")
    fill_in_the_task(person.folder / "mine.toml")
    assert "3 levels, 8 concepts, 1 task" in person.types("obygaze codebook check mine.toml")
    printed = person.types(command.replace("FOLDER", "films"))
    clips = rows_of(person.folder / "clips.csv")
    _header, *lines_of_table = (person.folder / "labels.csv").read_text("cp1252").splitlines()
    assert len(clips) == len(lines_of_table)
    assert f"{len(clips)} clips of 4 movies" in printed

    # Features are extracted. One video is damaged, and the exit code 3 says that something is left out.
    assert f"clips to do    {len(clips)}" in person.types("obygaze extract clips.csv stores/mine --dry-run")
    assert not (person.folder / "stores").exists()
    person.types("obygaze extract clips.csv stores/mine --licence CC-BY-4.0", 3)
    assert "nothing wrong" in person.types("obygaze store verify stores/mine --full")

    # Two models are tested, and one is kept.
    printed = person.types(
        "obygaze evaluate clips.csv stores/mine --task mine --model linear --model pcbm_lr "
        "--save pcbm_lr --out run"
    )
    assert "pcbm_lr of all 4 movies kept in run/pcbm_lr.model" in printed
    assert (person.folder / "run" / "report.md").is_file()

    # It predicts six clips of a new film, and explains the first by concepts in the student's own words.
    new = person.folder / "new"
    new.mkdir()
    for video in sorted((demo_folder / "films" / "tt9000005").glob("*-00[1-6].mp4")):
        (new / video.name).symlink_to(video)
    person.types("obygaze manifest import folder new --out new.csv")
    person.types("obygaze extract new.csv stores/new --licence CC-BY-4.0")
    printed = person.types("obygaze predict run/pcbm_lr.model stores/new --out predictions.csv")
    assert "AUC on films left out" in printed
    assert "6 clips in predictions.csv, each with a probability" in printed
    first = rows_of(person.folder / "predictions.csv")[0]
    printed = person.types(f"obygaze explain run/pcbm_lr.model stores/new --clip {first['clip_id']}")
    assert f"{float(first['p']):.2f}" in printed
    assert "Körper" in printed

    # A whole film gets a page.
    person.types(
        "obygaze film run films/tt9000007/tt9000007.mkv --model run/pcbm_lr.model "
        "--title 'Der siebte Film' --window 8 --hop 8 --out seventh"
    )
    page = (person.folder / "seventh" / "report.html").read_text(encoding="utf-8")
    assert "Der siebte Film" in page
    assert "stark" in page
