"""`obygaze audit` from stores and tables to a CSV, a JSON document and a figure."""

import csv
import json

import numpy as np
import pytest

from obygaze.cli import main
from obygaze_features.store.testing import seal_arrays
from obygaze_studies.saliency.maps_file import SIDE, with_means, write_maps

SPACE = "toy-clip sha256:0123"


def keep(path, ids, arrays, **more):
    seal_arrays(path, dict.fromkeys(ids, "none"), {"toy": arrays}, **({"space": SPACE} | more))


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """SOBEM-like images of which the clothed lie near emotion, prompts, activations, captions, tables."""
    folder = tmp_path_factory.mktemp("shelf")
    rng = np.random.default_rng(0)
    emotions = [f"{name}{level}" for name in ("AN", "SA", "HA") for level in (1, 2)]
    images = [
        f"{who}_{emotion}_{worn}_1" for who in range(1, 5) for emotion in emotions for worn in ("NO", "O")
    ]
    vectors = rng.normal(size=(len(images), 4)).astype(np.float32)
    vectors[:, 0] += [4.0 if "_NO_" in name else 0.0 for name in images]
    keep(folder / "images", images, {"pooled": vectors})
    run("audit", "eat", "prompts", "--out", folder / "prompts.csv")
    with (folder / "prompts.csv").open(encoding="utf-8", newline="") as file:
        prompts = list(csv.DictReader(file))
    texts = rng.normal(size=(len(prompts), 4)).astype(np.float32)
    texts[:, 0] += [2.0 if row["list"] in {"angry", "sad", "happy"} else 0.0 for row in prompts]
    keep(folder / "texts", [row["text_id"] for row in prompts], {"pooled": texts})
    keep(folder / "other", [row["text_id"] for row in prompts], {"pooled": texts}, space="else sha256:9")
    raw = np.zeros((2, SIDE, SIDE), np.float32)
    raw[0, :50, :50] = raw[1, 150:, :50] = 1.0
    pairs = [
        {"image_id": image, "text": "angry person", "group": "g", "score": 0.5} for image in ("i1", "i2")
    ]
    write_maps(with_means({"space": SPACE, "layer": "it"}, pairs, raw), folder / "maps.zarr")
    tables = {
        "roi.csv": "image_id,roi,y0,x0,y1,x1\ni1,face,0,0,112,224\ni2,face,0,0,112,224\n",
        "items.csv": "image_id,emotion,level,condition\ni1,anger,high,NO\ni2,anger,high,O\n",
        "captions.csv": "caption_id,image_id,caption\nc1,i1,an angry man with a shoe.\n"
        "c2,i2,a woman with a shoe\nc3,i2,a dog\n",
        "ratings.csv": "item_id,r1,r2,r3\na,1,1,1\nb,0,0,1\nc,1,,0\nd,0,0,0\n",
        "objects.csv": "image_id,object,p_c\ni1,shoe,0.5\ni2,shoe,0.5\n",
        "objects.txt": "shoe\ncat\n",
        "lm.csv": "text,lm_mean\nan angry man with a shoe.,0.2\na woman with a shoe,0.1\n"
        "a man with a shoe,0.3\n"
        "an angry woman with a shoe.,0.2\n",
        "sims.csv": "text,object,sim\nan angry man with a shoe.,shoe,0.5\na woman with a shoe,shoe,0.2\n"
        "a man with a shoe,shoe,0.4\nan angry woman with a shoe.,shoe,0.1\n",
    }
    for name, text in tables.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(*arguments):
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    return left.value.code


@pytest.fixture
def audit(monkeypatch, tmp_path, capsys):
    """Run an audit in an empty folder; gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments):
        capsys.readouterr()
        code = run("audit", *arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


@pytest.fixture
def commands(shelf):
    """Every audit, as it would be typed, without --out."""
    eat = ["eat", "--images", shelf / "images", "--texts", shelf / "texts"]
    eat += ["--text-items", shelf / "prompts.csv", "--published", "CLIP RN50"]
    saliency = ["saliency", "--maps", shelf / "maps.zarr", "--roi", shelf / "roi.csv"]
    gender = ["gender-score", "--captions", shelf / "captions.csv", "--objects", shelf / "objects.csv"]
    gender += ["--lm", shelf / "lm.csv", "--sims", shelf / "sims.csv"]
    words = ["words", "--captions", shelf / "captions.csv", "--items", shelf / "items.csv"]
    cooc = ["cooc", "--captions", shelf / "captions.csv", "--objects-list", shelf / "objects.txt"]
    return {
        "eat": eat,
        "saliency": saliency,
        "gender-score": gender,
        "words": [*words, "--min-total", 1, "--ratio", "O", "NO"],
        "alpha": ["alpha", "--ratings", shelf / "ratings.csv", "--pairs"],
        "cooc": [*cooc, "--published", "BLIP"],
    }


NAMES = ["eat", "saliency", "gender-score", "words", "alpha", "cooc"]


@pytest.mark.parametrize("name", NAMES)
def test_an_audit_leaves_a_table_a_document_and_a_figure_the_same_every_time(audit, commands, tmp_path, name):
    kept = []
    for folder in ("one", "two"):
        out, figure = tmp_path / folder / "found.csv", tmp_path / folder / "found.svg"
        code, shown, err = audit(*commands[name], "--out", out, "--figure", figure)
        assert code == 0, err
        assert shown
        kept.append({path.name: path.read_bytes() for path in out.parent.iterdir() if path.is_file()})
    assert kept[0] == kept[1]
    assert set(kept[0]) == {"found.csv", "found.json", "found.md", "found.tex", "found.svg"}
    document = json.loads(kept[0]["found.json"])
    assert document["record"]["audit"] == name
    rows = list(csv.DictReader(kept[0]["found.csv"].decode().splitlines()))
    assert len(rows) == len(document["rows"])
    assert list(rows[0]) == list(document["rows"][0])


def test_json_on_stdout_is_the_document_that_is_kept(audit, commands, tmp_path):
    _, shown, _ = audit(*commands["alpha"], "--out", "a.csv", "--json")
    assert shown == (tmp_path / "a.json").read_text(encoding="utf-8")


def test_results_are_replaced_only_by_force(audit, commands):
    alpha = [*commands["alpha"], "--out", "a.csv"]
    assert audit(*alpha)[0] == 0
    code, _, err = audit(*alpha)
    assert code == 1
    assert err == "obygaze: error: a.csv exists already: give --force to replace it, or choose another name\n"
    assert audit(*alpha, "--force")[0] == 0


def test_embeddings_of_a_part_alone_are_used_and_counted(audit, commands, shelf, tmp_path):
    with (shelf / "prompts.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["text_id"] for row in csv.DictReader(file)]
    vectors = np.random.default_rng(1).normal(size=(len(ids), 4)).astype(np.float32)
    keep(tmp_path / "cut", ids, {"pooled": vectors}, partial={ids[0]: "cut at 77 of 90 tokens"})
    eat = [tmp_path / "cut" if word == shelf / "texts" else word for word in commands["eat"]]
    code, _, err = audit(*eat, "--out", "eat.csv")
    assert code == 0
    assert f"group toy: 1 of 240 embeddings are partial, such as {ids[0]}: cut at 77 of 90 tokens" in err
    record = json.loads((tmp_path / "eat.json").read_text(encoding="utf-8"))["record"]
    assert record["n_partial"] == {"images": 0, "texts": 1}


def test_the_tests_of_table_1_run_on_sobem_names(audit, commands, tmp_path):
    code, _, err = audit(*commands["eat"], "--out", "eat.csv")
    assert code == 0, err
    rows = json.loads((tmp_path / "eat.json").read_text(encoding="utf-8"))["rows"]
    assert [row["test"] for row in rows][:2] == ["emotion_angry_high", "emotion_angry_low"]
    assert all(row["d"] > 1 and row["star"] and row["n_x"] == 4 and row["n_a"] == 30 for row in rows)
    assert all(row["n_partitions"] == 70 for row in rows)
    assert [row["published_d"] for row in rows] == [0.70, 0.49, 0.44, 0.52, -0.24, -0.19]


def test_ones_own_tests_run_on_ones_own_items(audit, commands, tmp_path):
    sides = ("1_AN1_NO_1", "2_AN1_NO_1", "1_AN1_O_1", "2_AN1_O_1")
    items = "item_id,side\n" + "".join(f"{name},{name[6:-2]}\n" for name in sides)
    (tmp_path / "items.csv").write_text(items, encoding="utf-8")
    test = {"name": "mine", "X": {"side": "NO"}, "Y": {"side": "O"}, "A": ["sad person"], "B": ["person"]}
    (tmp_path / "tests.json").write_text(json.dumps([test]), encoding="utf-8")
    code, shown, err = audit(
        *commands["eat"], "--items", "items.csv", "--tests", "tests.json", "--out", "e.csv"
    )
    assert code == 0, err
    assert ["mine", "2", "2"] in [line.split()[:3] for line in shown.splitlines()]


def test_stores_of_two_spaces_are_refused_in_one_line(audit, shelf):
    code, _, err = audit(
        *("eat", "--images", shelf / "images", "--texts", shelf / "other"),
        *("--text-items", shelf / "prompts.csv", "--out", "eat.csv"),
    )
    assert code == 1
    assert err.count("\n") == 1
    assert f"'{SPACE}'" in err
    assert "'else sha256:9'" in err


def test_the_prompts_of_both_variants_are_written(audit, tmp_path):
    for variant, words in (("code", "a photo of an angry person"), ("paper", "a photo of a angry person")):
        code, _, err = audit("eat", "prompts", "--variant", variant, "--out", f"{variant}.csv")
        assert code == 0
        assert "240 prompts" in err
        assert f",{words}," in (tmp_path / f"{variant}.csv").read_text(encoding="utf-8")


def test_captions_that_cannot_be_scored_are_listed(audit, commands):
    code, shown, err = audit(*commands["gender-score"], "--out", "gs.csv")
    assert code == 0
    assert "left out c3: no prior for 'a dog'" in err
    assert "Share of man\nby    share\n" in shown
    code, shown, err = audit(
        *commands["gender-score"], "--mode", "ge", "--published", "Vilbert", "--out", "ge.csv"
    )
    assert code == 0, err
    assert "published    0.7656" in shown
    assert "left out c3: names no gender and has no mask" in err


def test_many_captions_fill_neither_the_screen_nor_the_list_of_those_left_out(audit, commands, tmp_path):
    rows = "".join(f"n{place},i1,a dog\n" for place in range(120)) + "s,i1,an angry man with a shoe.\n"
    (tmp_path / "many.csv").write_text(f"caption_id,image_id,caption\n{rows}", encoding="utf-8")
    code, shown, err = audit(*commands["gender-score"], "--captions", "many.csv", "--out", "gs.csv")
    assert code == 0, err
    assert "the first 20 of 121 rows: --out and --json have all" in shown
    assert shown.count("\nn") == 20
    assert err.splitlines()[-1] == "left out 120, such as n0: no prior for 'a dog'"
    assert (tmp_path / "gs.csv").read_text(encoding="utf-8").count("\nn") == 120


def test_the_texts_to_embed_are_listed_for_the_extractor(audit, commands, tmp_path):
    code, _, _ = audit(*commands["gender-score"], "--mode", "ge", "--list-texts", "texts.csv")
    assert code == 0
    with (tmp_path / "texts.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    assert texts[0] == "an angry man with a shoe."
    assert texts[1] == "an angry woman with a shoe."
    assert texts[-1] == "shoe"
    assert len(texts) == len(set(texts)) == 5


def test_overlays_are_drawn_only_when_asked_and_need_every_picture(audit, commands, tmp_path):
    from matplotlib.image import imsave

    asked = [*commands["saliency"], "--out", "maps.csv", "--overlays", "laid", "--pictures", "."]
    code, _, err = audit(*asked)
    assert code == 1
    assert "no picture of i1" in err
    for name in ("i1", "i2"):
        imsave(tmp_path / f"{name}.png", np.zeros((8, 6, 3)))
    code, _, err = audit(*asked)
    assert code == 0, err
    assert sorted(path.name for path in (tmp_path / "laid").iterdir()) == ["0000-i1.png", "0001-i2.png"]


def test_examples_are_drawn_with_their_pictures_only_when_asked(audit, commands, tmp_path):
    from matplotlib.image import imread, imsave

    asked = [*commands["gender-score"], "--mode", "ge", "--out", "ge.csv", "--sheet", "sheet.png"]
    code, _, err = audit(*asked)
    assert (code, "--sheet and --pictures go together" in err) == (2, True)
    asked += ["--pictures", "."]
    code, _, err = audit(*asked)
    assert (code, "no picture of i" in err, err.count("\n")) == (1, True, 1)
    imsave(tmp_path / "i1.png", np.full((8, 6, 3), 1.0) * [1, 0, 0])
    (tmp_path / "i2.jpg").write_bytes(b"no picture")
    code, _, err = audit(*asked)
    assert (code, "i2.jpg: not a picture that can be read" in err, err.count("\n")) == (1, True, 1)
    assert not (tmp_path / "ge.csv").exists()
    imsave(tmp_path / "i2.png", np.full((6, 8, 3), 1.0) * [0, 0, 1])
    code, _, err = audit(*asked)
    assert code == 0, err
    drawn = imread(tmp_path / "sheet.png")[..., :3]
    for colour in ([1, 0, 0], [0, 0, 1]):
        assert (drawn == np.array(colour, np.float32)).all(axis=-1).mean() > 0.02
    code, _, err = audit(*asked, "--force", "--mode", "gs")
    assert (code, "--mode ge" in err) == (2, True)
    code, _, err = audit(*asked)
    assert code == 1, "nothing is replaced unasked"
    assert "examples" in json.loads((tmp_path / "ge.json").read_text())["record"]["summary"]


def test_objects_to_sum_up_by_are_a_list_and_clip_needs_its_stores(audit, commands, shelf, tmp_path):
    (tmp_path / "two.txt").write_text("motorcycle\nvase\n", encoding="utf-8")
    asked = ("--mode", "ge", "--objects-list", "two.txt", "--out", "ge.csv", "--json")
    rows = json.loads(audit(*commands["gender-score"], *asked)[1])["record"]["summary"]["by_object"]
    assert {row["object"] for row in rows} == {"motorcycle", "vase"}
    code, _, err = audit("objects", "--objects-list", "two.txt", "--out", "o.csv")
    assert code == 2
    assert "Missing option '--images'" in err
    code, _, err = audit("objects", "--objects-list", "two.txt", "--list-texts", "p.csv")
    assert (code, err) == (0, "2 texts kept in p.csv\n")
    images, texts = ("--images", shelf / "images"), ("--texts", shelf / "texts")
    code, _, err = audit("objects", "--objects-list", "two.txt", *images, *texts, "--out", "o.csv")
    assert code == 1
    assert err.count("\n") == 1
    assert "--list-texts" in err or "does not carry its texts" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["eat", "--out", "e.csv"], "Missing option '--images'"),
        (["gender-score", "--out", "g.txt"], "should end in .csv"),
        (["alpha", "--out", "a.csv", "--figure", "a.gif"], "should end in .pdf, .png or .svg"),
        (["saliency", "--out", "m.zarr"], "should end in .csv"),
    ],
)
def test_a_wrong_use_is_said_before_any_work(audit, commands, arguments, words):
    name, *rest = arguments
    code, _, err = audit(*(["eat"] if name == "eat" else commands[name]), *rest)
    assert code == 2
    assert words in err
