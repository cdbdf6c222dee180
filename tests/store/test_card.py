"""The card says in plain words what a store is, and catalogues can read it."""

import json
import re
import sys
from importlib.util import find_spec

import pytest

from obygaze_features.exchange.publish import card_files
from obygaze_features.io import sha256_of
from obygaze_features.store import open_store, seal
from tests.process import execute

from .toy_stores import group, make_sealed_store, make_stage


def front_matter(text):
    """The fields between the two lines of dashes, which we write one a line."""
    head = text.split("---\n")[1]
    return dict(
        line.split(": ", 1) for line in head.splitlines() if not line.startswith((" ", "-", "configs"))
    )


def without_citation(card):
    """The card without the lines to cite it by, which the store's own cannot have."""
    before, _, after = card.partition(b"\n## How to cite\n")
    return before + after[after.index(b"\nCheck it with") :]


@pytest.fixture(scope="module")
def path_of_store(tmp_path_factory):
    return make_sealed_store(tmp_path_factory.mktemp("card"), 20)


def test_the_front_matter_is_what_the_hub_reads(path_of_store):
    """The Hugging Face Hub reads the licence, a name, a size and tags from the head of a README.md.

    The store has 20 clips of the corpus "Toy films" under CC-BY-4.0.
    """
    front = front_matter((path_of_store / "README.md").read_text(encoding="utf-8"))

    assert front["license"] == "cc-by-4.0"
    assert json.loads(front["pretty_name"]) == "Features of Toy films"
    assert json.loads(front["size_categories"]) == ["n<1K"]
    assert {"toy", "video-features"} <= {*json.loads(front["tags"])}


@pytest.mark.parametrize("name", ["README.md", "croissant.json"])
def test_a_store_that_is_sealed_again_has_the_same_card(path_of_store, tmp_path, name):
    """Nothing in a card, such as a date, depends on when or where the store was sealed."""
    sealed_again = make_sealed_store(tmp_path, 20)

    assert (sealed_again / name).read_bytes() == (path_of_store / name).read_bytes()


def test_a_card_made_later_adds_only_how_to_cite_the_store_by_its_fingerprint(path_of_store):
    """A store's card, README.md, cannot cite the store by its fingerprint, which is a digest of all files.

    A card that is made later can. It has a section on how to cite, with the fingerprint in a sentence and in
    BibTeX, and is the card of the store but for that.
    """
    store = open_store(path_of_store)

    regenerated = card_files(store)

    assert regenerated["croissant.json"] == (path_of_store / "croissant.json").read_bytes()
    assert without_citation(regenerated["README.md"]) == (path_of_store / "README.md").read_bytes()

    _, cited = regenerated["README.md"].decode().split("## How to cite")
    assert cited.count(store.fingerprint) == 2  # in the sentence and in BibTeX
    assert f"    @misc{{{path_of_store.name}," in cited.splitlines()
    assert store.attributes["citation"] in cited
    assert "Toy films (Version 1.0.0" in cited


def test_croissant_gives_the_real_digest_of_the_table(path_of_store):
    """Croissant is the JSON in which catalogues of data sets describe files, with their sizes and digests."""
    croissant = json.loads((path_of_store / "croissant.json").read_bytes())
    table = (path_of_store / "data/clips.csv").read_bytes()
    (file,) = croissant["distribution"]
    assert file["sha256"] == sha256_of(table)
    assert file["contentSize"] == f"{len(table)} B"
    assert croissant["license"] == "https://spdx.org/licenses/CC-BY-4.0.html"
    columns = [field["source"]["extract"]["column"] for field in croissant["recordSet"][0]["field"]]
    assert table.decode().splitlines()[0].startswith(",".join(columns))


def test_croissant_states_the_terms_of_responsible_ai(path_of_store):
    """Croissant is the JSON in which catalogues describe data sets; RAI is its part on responsible AI.

    It says how many clips have no features, how they were made, and that they hold no pictures of persons.
    """
    croissant = json.loads((path_of_store / "croissant.json").read_bytes())
    n_without_features = sum(clip.status in {"failed", "missing"} for clip in open_store(path_of_store).clips)
    assert croissant["rai:dataLimitations"].startswith(f"{n_without_features} of 20 clips have no features")
    assert croissant["rai:dataPreprocessingProtocol"].startswith("toy: ")
    assert "no frames" in croissant["rai:personalSensitiveInformation"]
    assert croissant["conformsTo"] == [
        "http://mlcommons.org/croissant/1.1",
        "http://mlcommons.org/croissant/RAI/1.0",
    ]


@pytest.mark.long
@pytest.mark.skipif(not find_spec("mlcroissant"), reason="mlcroissant is not installed")
def test_mlcroissant_accepts_the_description_of_a_store(path_of_store):
    """Mlcroissant is the reference validator of Croissant."""
    command = [sys.executable, "-m", "mlcroissant.scripts.validate", "--jsonld", "croissant.json"]
    process = execute(*command, cwd=path_of_store)
    assert "Done." in process.stderr
    assert "error(s)" not in process.stderr
    assert "not standard" not in process.stderr


def test_the_card_marks_groups_of_untrained_networks_and_imported_ones(tmp_path):
    """Features of random weights, or made by other tools, must not be taken for those of a known model."""
    kinds = [group("a", untrained=True), group("b", imported=True)]

    card = (make_sealed_store(tmp_path, 2, kinds) / "README.md").read_text(encoding="utf-8")

    _, of_a, of_b = re.split("^## [ab]$", card, flags=re.MULTILINE)
    assert "UNTRAINED" in of_a
    assert "IMPORTED" in of_b


def test_a_card_says_that_features_are_of_random_weights(tmp_path):
    """A network whose weights were never trained is good for trying things out alone."""
    kinds = [group("drawn", untrained=True), group("trained")]

    croissant = (make_sealed_store(tmp_path, 4, kinds) / "croissant.json").read_text(encoding="utf-8")
    assert "drawn is of random weights: its features mean nothing." in croissant
    assert "trained is of random weights" not in croissant


@pytest.mark.parametrize(
    ("licence", "name_of_hub"),
    [
        ("CC-BY-NC-4.0", "cc-by-nc-4.0"),
        ("GPL-3.0-or-later", "gpl-3.0"),
        ("LicenseRef-our-lab", "other"),
        ("MIT OR Apache-2.0", "other"),
    ],
)
def test_the_hub_is_told_the_licence_by_its_own_name_or_that_it_has_none(tmp_path, licence, name_of_hub):
    """The Hub refuses a card whose licence is not in its list, and people look for stores by it."""
    store = seal(make_stage(tmp_path, 8).path, tmp_path / "toy", licence=licence, citation="Nobody, 2026")

    front = front_matter((store / "README.md").read_text(encoding="utf-8"))

    assert front["license"] == name_of_hub
