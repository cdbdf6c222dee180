"""Association tests made of stores: selections, prompts, published values, and every mistake in one line."""

import json
import math

import numpy as np
import pytest

from obygaze_models.report import records, to_csv, to_json
from obygaze_studies.audit_common.embeddings import check_same_space, read_embeddings
from obygaze_studies.eat import audit_eat, critical_d
from obygaze_studies.eat_stimuli import (
    EFFECTS,
    SELECTIONS,
    WORDS,
    EatTest,
    prompts,
    read_tests,
    select,
    sobem_items,
)
from obygaze_studies.errors import AuditError
from tests.files import rows_of

PLANTED_TEST = EatTest("t", {"side": "X"}, {"side": "Y"}, ("A0", "A1"), ("B0", "B1"))


@pytest.fixture(scope="session")
def stimuli(shared_data):
    return json.loads((shared_data / "audits/stimuli/stimuli.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def audit_synthetic(tmp_path_factory, save_vectors):
    """Return a function that audits four images X, near two texts A, and four Y, near two texts B."""
    folder = tmp_path_factory.mktemp("planted")
    rng = np.random.default_rng(0)
    centre = {"X": 1.0, "A": 1.0, "Y": -1.0, "B": -1.0}

    def vectors(side, n):
        near = rng.normal(size=(n, 5)) * 0.5
        near[:, 0] += centre[side]
        return near

    images = [f"{side}{row}" for side in "XY" for row in range(4)]
    texts = [f"{side}{row}" for side in "AB" for row in range(2)]
    save_vectors(folder / "images", images, np.vstack([vectors("X", 4), vectors("Y", 4)]))
    save_vectors(folder / "texts", texts, np.vstack([vectors("A", 2), vectors("B", 2)]))

    def run(tests=(PLANTED_TEST,), **changes):
        given = {
            "images": read_embeddings(folder / "images"),
            "texts": read_embeddings(folder / "texts"),
            "items": {name: {"item_id": name, "side": name[0]} for name in images},
            "text_ids": {name: name for name in texts},
            **changes,
        }
        return audit_eat(given.pop("images"), given.pop("texts"), tests=tests, **given)

    return run


def test_a_planted_association_has_a_large_effect_with_a_star(audit_synthetic):
    """Four images X lie near the texts A, and four Y near the texts B. A star marks a significant effect d.

    Eight images can be divided into two sets of four in 70 ways. Only the observed one gives such an effect.
    """
    (row,) = records(audit_synthetic([PLANTED_TEST]).data)

    assert row["d"] > 1
    assert row["star"] is True
    n_partitions = math.comb(8, 4)
    assert row["n_partitions"] == n_partitions
    assert row["p_exact"] == 1 / n_partitions


def test_where_both_sets_of_images_are_exchanged_the_effect_has_the_opposite_sign(audit_synthetic):
    """Images X are compared with Y, and Y with X; the second effect is as significant, below 0."""
    exchanged = EatTest("exchanged", x=PLANTED_TEST.y, y=PLANTED_TEST.x, a=PLANTED_TEST.a, b=PLANTED_TEST.b)

    row, row_of_exchanged = records(audit_synthetic([PLANTED_TEST, exchanged]).data)

    assert row_of_exchanged["d"] == pytest.approx(-row["d"])
    assert row_of_exchanged["star"] is True


def test_a_model_of_which_the_paper_has_no_effects_is_refused_by_its_name(audit_synthetic):
    """A model is named so that the paper's effects stand beside ours; RN50 is not in the paper."""
    with pytest.raises(AuditError, match="'RN50'"):
        audit_synthetic(model="RN50")


def test_more_targets_than_can_be_counted_are_sampled_with_the_seed(tmp_path, save_vectors):
    """Of 23 targets X and 23 Y there are too many partitions into two sets to count, so 500 are drawn.

    The same seed draws the same partitions and gives the same bytes. The vectors serve as images and texts.
    """
    rng = np.random.default_rng(0)
    ids = [f"i{index:02}" for index in range(46)]
    save_vectors(tmp_path / "both", ids, rng.normal(size=(46, 4)))
    embeddings = read_embeddings(tmp_path / "both")
    test = EatTest(name="t", x=tuple(ids[:23]), y=tuple(ids[23:]), a=("i00",), b=("i30",))

    def audit(seed):
        return audit_eat(
            embeddings,
            embeddings,
            items={name: {} for name in ids},
            text_ids={name: name for name in ids},
            tests=[test],
            n_perm=500,
            seed=seed,
        )

    first = audit(seed=1)
    again = audit(seed=1)
    of_other_seed = audit(seed=2)

    (row,) = records(first.data)
    assert row["p_exact"] is None
    assert row["n_perm"] == 500
    assert to_csv(first.data) == to_csv(again.data)
    assert to_json(first) == to_json(again)
    assert to_csv(first.data) != to_csv(of_other_seed.data)


def filled(templates, words):
    """Put each word into each template."""
    return [template.format(word) for template in templates for word in words]


@pytest.mark.parametrize("name", WORDS)
def test_prompts_of_code_and_paper_differ_in_words_of_business_and_templates_of_anger(stimuli, name):
    """A prompt is a word of a list, put into a template such as "a photo of a {}".

    `stimuli` has the lists and templates of the authors' code and of their paper, which differ in two places:
    the list "business" has other words, and the list "angry" is put into other templates.
    """
    words_of_code = stimuli["business_code" if name == "business" else name]
    words_of_paper = stimuli["business_paper" if name == "business" else name]
    templates_of_code = stimuli["templates_code_for_angry" if name == "angry" else "templates_paper"]
    templates_of_paper = stimuli["templates_paper"]

    assert list(WORDS[name]) == words_of_code
    assert list(prompts(name, "code")) == filled(templates_of_code, words_of_code)
    assert list(prompts(name, "paper")) == filled(templates_of_paper, words_of_paper)


def test_the_package_has_the_tests_of_both_tables_of_the_paper_and_no_others(stimuli):
    """`SELECTIONS` has the tests of Tables 1 and 2, and `stimuli` all tests of the authors' code."""
    ready = [test.name for tests in SELECTIONS.values() for test in tests]

    assert sorted(ready) == sorted(test["name"] for test in stimuli["tests"])


@pytest.fixture(scope="module")
def sobem():
    """All images of SOBEM, by names such as 3_AN1_NO_2: person, emotion and level, condition, hair."""
    names = [
        f"{person}_{emotion}_{condition}_{hair}"
        for person in range(1, 11)
        for emotion in ("AN1", "AN2", "SA1", "SA2", "HA1", "HA2", "NE")
        for condition in ("NO", "O")
        for hair in (1, 2)
    ]
    with pytest.raises(AuditError, match=r"cat\.jpg"):
        sobem_items([*names, "cat.jpg"])
    return sobem_items(names)


@pytest.mark.parametrize("test", SELECTIONS["table1"], ids=lambda test: test.name)
def test_a_ready_test_of_table_1_selects_the_images_and_prompts_of_the_authors_code(stimuli, sobem, test):
    """A test compares two sets of images of SOBEM, X and Y, by their nearness to the prompts A and B.

    The authors' code selects a set by what its images' names contain, such as AN2_NO: anger at the high
    level, not objectified. Ours selects by emotion, level and condition. Each set has two images of each of
    ten persons, with one of two hairstyles each.
    """
    (test_of_code,) = [case for case in stimuli["tests"] if case["name"] == test.name]

    for side, targets in (("X", test.x), ("Y", test.y)):
        part_of_name = test_of_code[side].removeprefix("sobem:")

        selected = select(targets, sobem, f"set {side}")

        assert len(selected) == 10 * 2
        assert all(part_of_name in name for name in selected)

    assert test.a == test_of_code["A"]
    assert test.b == test_of_code["B"]


def name_of_cell(cell):
    """The ready test that a cell of the tables is of: of an emotion at a level, or of a profession."""
    if cell["table"].startswith("table1"):
        return f"emotion_{cell['condition']}_{cell['level']}"
    return f"sex_{cell['condition']}"


@pytest.fixture(scope="module")
def printed_cells(shared_data):
    """The cells of Tables 1 and 2, typed off the paper."""
    return rows_of(shared_data / "audits/paper_tables/wolfe2023_tables_1_2.csv")


def test_the_published_effects_are_those_printed(printed_cells):
    """The package has the effects that the audited paper prints (`EFFECTS`), and so has a table of ours.

    Each of the 81 cells has the effect d of a model and a test, and a star where it is significant.
    """
    printed = {}
    for cell in printed_cells:
        model_and_test = cell["model"], name_of_cell(cell)
        has_star = cell["star"] == "1"
        printed[model_and_test] = float(cell["d"]), has_star

    ours = {}
    for model, effect_of_test in EFFECTS.items():
        for test, effect in effect_of_test.items():
            ours[model, test] = effect.d, effect.star

    assert len(printed_cells) == 81
    assert ours == printed


def test_printed_effects_have_a_star_where_they_are_significant_by_their_size_but_for_one():
    """The authors print effects d of tests on twice 20 images, with a star where a one-sided p is below .05.

    From the critical effect on, d is significant: larger ones must have a star, smaller ones none. One effect
    of .51 contradicts that. It lies near the critical one, and the authors estimate p by 1,000 random
    shuffles, which may fall on either side. Effects are printed to .01, so each may be off by .005.
    """
    critical = critical_d(20, m=20)
    rounding = 0.005
    contradictory = []
    for model, effects in EFFECTS.items():
        for name, effect in effects.items():
            is_surely_smaller = abs(effect.d) + rounding <= critical
            is_surely_larger = abs(effect.d) - rounding >= critical
            if effect.star and is_surely_smaller:
                contradictory.append((model, name, effect.d))
            if not effect.star and is_surely_larger:
                contradictory.append((model, name, effect.d))

    assert contradictory == [("CLIP ViT-B16", "emotion_sad_high", 0.51)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": {"side": "Z"}}, "test t, set X.*side Z"),
        ({"y": {"mood": "Z"}}, "test t, set Y.*column mood"),
        ({"x": ("X9",)}, "test t, set X.*X9"),
        ({"a": ("A0", "A7")}, "test t, set A.*'A7'"),
        ({"b": "angry"}, "test t, set B.*'angry person'"),
        ({"y": {"side": "X"}}, "test t: X0"),
        ({"a": ("A0",), "b": ("A0",)}, "test t: "),
    ],
    ids=[
        "no image of this side",
        "no such column",
        "no such image",
        "no such text",
        "no prompts of these words",
        "an image in both sets",
        "a text in both sets",
    ],
)
def test_a_mistake_names_the_test_the_set_and_the_id(audit_synthetic, changes, message):
    """The valid test `t` is of images X0 to X3 (side X) and Y0 to Y3 (side Y), and texts A0, A1, B0 and B1.

    `changes` has a set that is selected otherwise: by ids, by a column of images, or by a list of words.
    """
    sets = {"x": {"side": "X"}, "y": {"side": "Y"}, "a": ("A0", "A1"), "b": ("B0", "B1")}
    test_with_mistake = EatTest("t", **(sets | changes))

    with pytest.raises(AuditError, match=message):
        audit_synthetic([test_with_mistake])


def test_an_image_without_features_is_named(audit_synthetic, tmp_path, save_vectors):
    """The images are X0 to X3 and Y0 to Y3, of which Y2 has failed: its file was empty.

    The test `t` compares the images X with the images Y.
    """
    images = ["X0", "X1", "X2", "X3", "Y0", "Y1", "Y2", "Y3"]
    failed = {"Y2": "the file is empty (0 bytes)"}
    path = save_vectors(tmp_path / "bad", images, np.eye(8, 5) + 1, failed=failed)

    with pytest.raises(AuditError, match=r"test t, set Y: Y2.*bad-1\.0\.0, group toy"):
        audit_synthetic(images=read_embeddings(path))


@pytest.mark.parametrize(
    ("space", "size"),
    [("other-clip sha256:9", 5), ("toy-clip sha256:0123", 6)],
    ids=["another network", "another number of features"],
)
def test_unequal_spaces_are_refused_and_both_named(audit_synthetic, tmp_path, save_vectors, space, size):
    """Images and texts can be compared where one network embedded both, as their stores say in `space`.

    The images are in the space "toy-clip sha256:0123", of 5 numbers; texts of another store are not.
    """
    texts = ["A0", "A1", "B0", "B1"]
    save_vectors(tmp_path / "other", texts, np.eye(4, size), space=space)

    with pytest.raises(AuditError, match=r"images-1.0.0, group toy .*other-1.0.0, group toy"):
        audit_synthetic(texts=read_embeddings(tmp_path / "other"))


def test_embeddings_of_a_store_that_names_no_space_are_not_compared_with_any(tmp_path, save_vectors):
    """The space says which network made the embeddings. Without it, not even a store and itself compare."""
    save_vectors(tmp_path / "old", ["a"], np.ones((1, 2)), space=None)
    embeddings = read_embeddings(tmp_path / "old")
    assert embeddings.space is None

    with pytest.raises(AuditError, match="'space'"):
        check_same_space(embeddings, embeddings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", ""),
        ('[{"name": "t"}]', r"\[0\]"),
        ('[{"name": "t", "X": {}, "Y": ["b"], "A": "sad", "B": "sad"}]', r"\[0\]\.X"),
        ('[{"name": "t", "X": [], "Y": ["b"], "A": "sad", "B": "sad"}]', r"\[0\]\.X"),
        ('[{"name": "t", "X": ["a", "a"], "Y": ["b"], "A": "sad", "B": "sad"}]', "test t, set X"),
        ('[{"name": "t", "X": ["a"], "Y": ["b"], "A": "glad", "B": "sad"}]', "test t, set A"),
        (json.dumps([{"name": "t", "X": ["a"], "Y": ["b"], "A": "sad", "B": "angry"}] * 2), "called t"),
    ],
    ids=[
        "not JSON",
        "fields are missing",
        "a set of nothing selected",
        "an empty set",
        "an image twice",
        "unknown words",
        "two tests of one name",
    ],
)
def test_a_bad_file_of_tests_is_refused(tmp_path, text, message):
    """A test in the file has a name, two sets of images, X and Y, and two lists of words, A and B."""
    path = tmp_path / "tests.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AuditError, match=rf"tests\.json.*{message}"):
        read_tests(path)
