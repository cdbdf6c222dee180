"""A day of a lab that was sent the address of a store: no films, no GPU, and the base install."""

import re

import pandas as pd
import pytest

from tests.files import rows_of
from tests.store.serving import serving

pytestmark = [pytest.mark.long, pytest.mark.nightly]


def damage(path):
    """Change one byte in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_lab_studies_a_store_that_it_was_sent(person_with_the_base, demo_folder):
    """A lab with the base install has the address of a store of 168 clips, and a colleague's table of labels.

    `person.types` runs a command in the lab's folder, expects its exit code, and returns what it printed.
    """
    person = person_with_the_base

    # A colleague mails a table of labels of the first four films, by clip.
    labels = pd.read_csv(demo_folder / "labels.csv", dtype=str, keep_default_na=False)
    judged = labels[(labels["level"] != "") & (labels["movie"] <= "tt9000004")]
    judged[["clip_id", "level", "concepts"]].to_csv(person.folder / "mine.csv", index=False)

    # The store is looked at, verified and copied from its address; a model is tested there and on the copy.
    with serving(demo_folder) as server:
        address = f"{server.url}/store-1.0.0"
        assert re.search(r"clips\.ok +166", person.types(f"obygaze store inspect {address}"))
        assert "nothing wrong" in person.types(f"obygaze store verify {address} --full")
        person.types(f"obygaze store pull {address} stores/films-1.0.0")
        join_labels_to_clips(person)
        person.types("obygaze manifest import spans labels.csv --out clips.csv")
        models = "--task hn_s --test enhn_s --model linear --model pcbm_lr"
        printed_there = person.types(f"obygaze evaluate clips.csv {address} {models} --out there")
    printed_here = person.types(f"obygaze evaluate clips.csv stores/films {models} --save pcbm_lr --out here")
    assert printed_there.splitlines()[0] == printed_here.splitlines()[0]
    assert metrics_of_run(person.folder / "there") == metrics_of_run(person.folder / "here")
    person.types("obygaze predict here/pcbm_lr.model stores/films --out predictions.csv")

    # A file of the copy is damaged; verifying names it, and pulling again mends it. The exit code 3 says so.
    damaged = next((person.folder / "stores" / "films-1.0.0").rglob("c/0/0"))
    damage(damaged)
    problems = person.types("obygaze store verify stores/films --full", 3)
    assert damaged.relative_to(person.folder / "stores" / "films-1.0.0").as_posix() in problems
    with serving(demo_folder) as server:
        person.types(f"obygaze store pull {server.url}/store-1.0.0 stores/films-1.0.0")
    assert "nothing wrong" in person.types("obygaze store verify stores/films --full")

    # What is cited in a paper has the fingerprint that verifying prints.
    verified = person.types("obygaze store verify stores/films")
    fingerprint = verified.rpartition("fingerprint ")[2].strip()
    assert fingerprint in person.types("obygaze store cite stores/films")

    person.types("obygaze store export stores/films films.h5ad --to h5ad --manifest clips.csv")
    assert (person.folder / "films.h5ad").is_file()

    # Films are not read with the base install: the answer is the line that installs what reads them.
    message = person.types("obygaze extract clips.csv stores/more --licence CC0-1.0", 1)
    assert "pip install" in message
    assert "video" in message


def join_labels_to_clips(person):
    """Join the labels to the store's clips as docs/sharing.md does."""
    person.types(
        'python -c "import pandas as pd\n'
        "clips = pd.read_csv('stores/films-1.0.0/data/clips.csv', dtype=str)\n"
        "clips = clips.rename(columns={'clip': 'clip_id'})\n"
        "mine = pd.read_csv('mine.csv', dtype=str)\n"
        "clips[['clip_id', 'movie', 'start_s', 'end_s']].merge(mine).to_csv('labels.csv', index=False)\""
    )


def metrics_of_run(run):
    """Read all numbers of a run but for the times that it took."""
    return [tuple(row.values()) for row in rows_of(run / "metrics.csv")]
