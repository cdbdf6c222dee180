"""Run a list of works with the code of a checkout, and digest every file that they write.

    python benchmarks/same_bytes.py CHECKOUT DIGESTS.json             write the digests
    python benchmarks/same_bytes.py --against DIGESTS.json CHECKOUT   compare: exit code 1 if a file differs

Only commands and public names are used, so that one script fits every commit
that has them. What a command prints is a file too: said/NUMBER-COMMAND.txt. Needs obygaze[dev] and the data
that tests/README.md names; about seven minutes of CPU.
"""

import csv
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measure import arguments, timed

DATA = Path(os.environ.get("OBYGAZE_TEST_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
LEFT_OUT = re.compile(
    r"\.staging/"  # of a stage: when, in which order and how fast its processes committed clips
    r"|/cache/index\.jsonl$"  # of a training: when the videos were last changed
)
# How far a command was, and how fast; on stderr.
PROGRESS = re.compile(r"^.*( in [\d.]+ (s|min|h)\b|map/s\]).*\n", re.MULTILINE)

ORIGINS = """
import obygaze, obygaze_features, obygaze_models
print(*obygaze.__path__, *obygaze_features.__path__, *obygaze_models.__path__, sep="\\n")
"""
LIBRARY = """
import obygaze_features as of, obygaze_models as om
from pathlib import Path
from sklearn.naive_bayes import GaussianNB
store, manifest = of.open_store("demo/store-1.0.0"), of.read_manifest("demo/manifest.csv")
store["descriptors"].to_frame(manifest).to_csv("library/frame.csv")
of.write_manifest(manifest, Path("library/manifest.csv"))
data = om.load_dataset(store, manifest)
run = om.evaluate(data, {"bayes": GaussianNB(), "linear": om.linear_probe()}, task="hn_s", test="enhn_s")
om.write_run(run, Path("library/run"))
paths = om.save_models(run, data, ["linear"], Path("library/models"), licence="CC-BY-4.0")
om.predict(om.load_model(paths["linear"]), [store]).write(Path("library/predictions.csv"))
kept = om.saved(run)
report = om.comparison_report(om.compare(om.side(kept, "bayes"), om.side(kept, "linear")))
om.write_report(report, Path("library"))
"""
# grad-cam imports torchvision, and uses nothing of it here; transformers must not find a stand-in.
GRADCAM = """
import importlib.util, runpy, sys, transformers, unittest.mock
if not importlib.util.find_spec("torchvision"):
    names = "torchvision", "torchvision.transforms", "torchvision.transforms.functional"
    sys.modules.update({name: unittest.mock.MagicMock() for name in names})
    import pytorch_grad_cam
    for name in names:
        del sys.modules[name]
runpy.run_module("obygaze", run_name="__main__", alter_sys=True)
"""
NAMES = {
    "HOW": "--licence CC0-1.0 --corpus films --workers 2",
    "ON": "--licence CC0-1.0 --device cpu --weights",
    "DEMO": "demo/manifest.csv demo/store-1.0.0",
    "GENDERS": "--captions inputs/shoes.csv --objects inputs/shoe.csv --mode ge",
    "TRAIN": "task mediaeval15 train audits/m15.csv audits/m15-1.0.0 --run a --external --out audits/runs",
    "LSMDC": "--annotations inputs/lsmdc --videos inputs/lsmdc --batch 4 --epochs 2 --workers 2 --device cpu",
    "SPOKEN": '="human: level" ANNOTATOR="AB" LINGUISTIC_TYPE_REF="level"><ANNOTATION><ALIGNABLE_ANNOTATION '
    'ANNOTATION_ID="h1" TIME_SLOT_REF1="ts1" TIME_SLOT_REF2="ts99"><ANNOTATION_VALUE>S</ANNOTATION_VALUE>'
    "</ALIGNABLE_ANNOTATION></ANNOTATION></TIER>",
    "LIBRARY": shlex.quote(LIBRARY),
    "GRADCAM": shlex.quote(GRADCAM),
    "PYTHON": shlex.quote(sys.executable),
    "OBYGAZE": f"{shlex.quote(sys.executable)} -m obygaze",
    "DATA": shlex.quote(str(DATA)),
}
"""What words in capitals stand for in WORKS."""

# Work -> its lines: a command of obygaze, "$" and a line for the shell, or "@" and a function of this script.
WORKS = {
    "demo": "demo --out demo --workers 2",
    "inputs": "@write_inputs",
    "stores": """
        $ sed -n '1p;/^tt9000001-00/s#films/#../demo/films/#p' demo/manifest.csv > ~/first.csv
        $ sed -n '1p;/^tt9000002-00/s#films/#../demo/films/#p' demo/manifest.csv > ~/second.csv
        $ sed -n '1p;/^tt9000001-00[1-4]/s#films/tt9000001/##p' demo/manifest.csv > ~/late.csv
        extract ~/first.csv ~/whole HOW --hash-sources
        extract ~/first.csv ~/shards HOW --shard 0/2
        extract ~/first.csv ~/shards HOW --shard 1/2
        store seal ~/shards --licence CC-BY-4.0 --citation us
        extract ~/first.csv ~/stopped HOW --limit 4
        $ cp -r ~/stopped.staging ~/waiting.staging
        extract ~/first.csv ~/stopped HOW
        $ cp demo/films/tt9000001/tt9000001-00[1-3].mp4 ~
        extract ~/late.csv ~/late HOW
        $ cp demo/films/tt9000001/tt9000001-004.mp4 ~
        extract ~/late.csv ~/late HOW --retry-failed --store-version 1.1.0
        store rm --sealed-stages ~ --yes
        extract ~/second.csv ~/whole HOW --append ~/whole-1.0.0 --store-version 1.1.0
        extract ~/second.csv ~/second HOW
        extract ~/second.csv ~/keyframes HOW --n 4 --sampling keyframes
        extract ~/late.csv ~/networks HOW --backbone xclip --weights xclip=inputs/xclip \
            --tokens xclip=patches --backbone vivit --weights vivit=inputs/vivit --device cpu
        store merge ~/stopped-1.0.0 ~/second-1.0.0 --out ~/merged
        store export ~/networks ~/networks.h5 --to hdf5 --backbone xclip --manifest ~/late.csv
        store export ~/whole-1.1.0 ~/whole.h5ad --to h5ad --manifest demo/manifest.csv
        store import ~/late.csv ~/networks.h5 ~/from-hdf5 --from hdf5 --licence CC0-1.0
        store import ~/late.csv inputs/npy ~/from-npy --from npy --backbone lab --array frames \
            --declared inputs/declared.json --dtype float16 --licence CC-BY-4.0
        store diff ~/whole-1.0.0 ~/whole-1.1.0 --json
        store pack ~/networks --out ~/networks.zip
        store unpack ~/networks.zip --out ~/unpacked-1.0.0
        store pull ~/networks ~/part-1.0.0 --arrays pooled
        store push ~/networks ~/pushed-1.0.0
        store card ~/networks --out ~/card
        store verify ~/networks --full
        store inspect ~/whole
        store inspect ~/networks --json
        store rm ~/keyframes-1.0.0 --yes
        store ls ~
        manifest import images inputs/stills --out ~/stills.csv
        extract ~/stills.csv ~/stills --backbone clip ON inputs/clip
        frames demo/films/tt9000001/tt9000001-001.mp4 --npz ~/frames.npz --sheet ~/frames.png
        frames demo/films/tt9000007/tt9000007.mkv --fps 0.2 --start 20 --end 60 --json
        manifest sheets demo/manifest.csv --concept Body --out ~/sheets
    """,
    "ray": "extract stores/late.csv ~/films HOW --engine ray",
    "texts": """
        codebook show obygaze12 --json
        codebook init --out ~/mine.toml
        codebook check ~/mine.toml
        codebook texts obygaze12 --out ~/thesaurus.csv
        audit eat prompts --out ~/prompts.csv
        audit objects --objects-list inputs/objects.txt --list-texts ~/objects.csv
        audit gender-score GENDERS --list-texts ~/genders.csv
        @join_texts
        extract ~/all.csv ~/clip --backbone clip-text ON inputs/clip
        extract ~/all.csv ~/sentence --backbone sentence ON inputs/sentence
        search stores/networks "a sad man" --backbone xclip --weights inputs/xclip --device cpu --json
        $ OBYGAZE weights verify inputs/clip/vocab.json --sha256 $(printf %064d 0) || [ $? = 3 ]
        search stores/stills 3 --text-store ~/clip
        lm ~/genders.csv --model inputs/gpt2 --device cpu --out ~/lm.csv
    """,
    "evaluate": """
        evaluate DEMO --task hn_s --test enhn_s --model linear --model mlp --model pcbm_dt --model attention \
            --save linear --save mlp --save pcbm_dt --save attention --licence CC-BY-4.0 --out ~/zoo
        evaluate DEMO --task concept:Body --model cav --save cav --out ~/cav --html ~/cav.html
        evaluate DEMO --task levels --model linear --policy paper --out ~/levels
        evaluate DEMO --negative EN --positive S --model mlp --seeds 2 --imbalance weights --out ~/seeds
        evaluate DEMO --task hn_s --model linear --seen --out ~/seen
        evaluate DEMO --task hn_s --model sklearn.naive_bayes:GaussianNB --out ~/bayes \
            --save sklearn.naive_bayes:GaussianNB
        store import demo/manifest.csv inputs/tokens.npz ~/tokens --from table --backbone lab \
            --array tokens --licence CC0-1.0 --allow-missing
        evaluate demo/manifest.csv ~/tokens --task hn_s --model max_frames --reduce top:4 --out ~/top
        compare ~/zoo ~/zoo --model mlp --against linear --out ~/compared --html ~/compared.html
        predict ~/zoo/attention.model demo/store-1.0.0 --out ~/a.csv --frames ~/frames.csv
        localise ~/frames.csv inputs/marked.csv --positive S --json
        predict demo/run/pcbm_lr.model demo/store-1.0.0 --manifest demo/manifest.csv --json
        explain demo/run/pcbm_lr.model demo/store-1.0.0 --clip tt9000002-003 --set Body=0.95
        explain ~/zoo/attention.model demo/store-1.0.0 --clip tt9000002-003 --json
        model card demo/run/pcbm_lr.model --json
        $ sed -n '1p;/^tt900000[1-3]-0[01]/s#films/#../demo/films/#p' demo/manifest.csv > ~/few.csv
        extract ~/few.csv ~/clip --workers 2 --n 2 --backbone clip ON inputs/clip
        evaluate ~/few.csv ~/clip --task concept:Body --model cav --texts texts/clip --out ~/zero-shot
    """,
    "annotations": """
        manifest import obygaze12 DATA/obygaze12 --out ~/twelve.csv
        paper all ~/twelve.csv --only figure2 --out ~/figure2
        manifest stats ~/twelve.csv --sets --out ~/sets --html ~/sets.html
        manifest stats ~/twelve.csv --by genres --policy paper --json
        manifest inspect ~/twelve.csv --json
        folds ~/twelve.csv --task hn_s --test enhn_s --json
        folds ~/twelve.csv --protocol paper --task hn_s --test enhn_s --movies
        folds ~/twelve.csv --protocol paper --task concept:Body --against EN --json
        manifest import mobygaze DATA/mobygaze --out ~/segments.csv --texts ~/texts.csv
        manifest stats ~/segments.csv --by annotator --out ~/by
        manifest stats ~/segments.csv --sweep 0.1,0.3 --out ~/sweep
        manifest agreement ~/segments.csv --json
        $ sed -n '1p;/tt0097576/p' ~/segments.csv > ~/one.csv
        manifest agreement ~/one.csv --alpha 1
        manifest project ~/segments.csv --window 46 --per-annotator --out ~/windows.csv
        paper figure4 ~/segments.csv --movie tt0097576 --span 0 600 --out ~/figure4
    """,
    "paper": """
        store import annotations/twelve.csv inputs/twelve.npz ~/twelve --from table --backbone xclip \
            --licence NOASSERTION --allow-missing
        paper all annotations/twelve.csv ~/twelve --out ~/all --html ~/all.html
    """,
    "film": """
        $ cp demo/films/tt9000007/tt9000007.mkv ~/second.mkv
        manifest import film demo/films/tt9000007/tt9000007.mkv ~/second.mkv --window 8 --hop 8 --shots none \
            --out ~/windows.csv
        extract ~/windows.csv ~/store HOW --shots ~/windows.shots.csv
        film score demo/run/pcbm_lr.model evaluate/zoo/mlp.model ~/store --shots ~/windows.shots.csv \
            --films inputs/facts.csv --out ~/scored
        film report ~/scored/second --language fr --out ~/second.html
        $ for f in eaf vtt srt otio fcpxml7 edl jsonld csv; do \
            OBYGAZE film export ~/scored/tt9000007 --as $f --out ~/film.$f || exit 1; done
        film export ~/scored/tt9000007 --as vtt --tiers segments,shots --model mlp --out ~/more.vtt
        film evaluate ~/scored --truth inputs/truth.csv --out ~/agreement --html ~/agreement.html
        film next ~/scored --n 12 --out ~/next.csv
        film next ~/scored --blind --n 12 --out ~/blind.csv
        $ awk -F, 'NR > 1 {$6 = NR % 3 ? "EN" : "S"; $8 = "AB"} 1' OFS=, ~/blind.csv > ~/judged.csv
        film rate ~/scored ~/judged.csv
        film next ~/scored --n 12 --judged ~/judged.csv --out ~/more.csv
        film report ~/scored --out ~/report.html
        manifest import spans ~/judged.csv --out ~/judgements.csv
        $ sed 's#="human: level" LINGUISTIC_TYPE_REF="level" />#SPOKEN#' ~/film.eaf > ~/elan.eaf
        manifest import spans ~/elan.eaf --out ~/elan.csv
        manifest import film ~/second.mkv --scenes inputs/scenes.csv --out ~/scenes.csv
    """,
    "audits": """
        audit eat --images stores/stills --texts texts/clip --published 'CLIP RN50' --out ~/eat.csv \
            --figure ~/eat.svg --html ~/eat.html
        $ PYTHON -c GRADCAM gradcam stores/stills.csv --pairs inputs/pairs.csv --weights inputs/clip \
            --device cpu --out ~/maps.zarr
        audit saliency --maps ~/maps.zarr --roi inputs/roi.csv --out ~/saliency.csv --figure ~/maps.png
        audit alpha --ratings inputs/ratings.csv --pairs --out ~/alpha.csv --html ~/alpha.html
        audit words --captions inputs/shoes.csv --items inputs/items.csv --min-total 1 --ratio O NO \
            --out ~/words.csv --figure ~/words.pdf
        audit cooc --captions inputs/shoes.csv --objects-list inputs/objects.txt --published BLIP \
            --out ~/cooc.csv
        audit objects --objects-list inputs/objects.txt --images stores/stills --texts texts/clip \
            --out ~/found.csv
        audit gender-score GENDERS --lm texts/lm.csv --texts texts/sentence --published Vilbert --out ~/ge.csv
        manifest import mediaeval15 inputs/m15 --out ~/m15.csv
        store import ~/m15.csv inputs/m15.npz ~/m15 --from table --backbone lab --licence CC0-1.0
        task mediaeval15 labels inputs/m15/clips.csv --out ~/labels.csv
        TRAIN --subtask violence
        TRAIN --subtask affect
        task mediaeval15 check ~/runs --truth ~/m15.csv
        task mediaeval15 score --truth ~/m15.csv --run ~/runs/violence-a.trec \
            --run ~/runs/affect-a.csv --out ~/scores --html ~/scores.html
    """,
    "train": """
        train xclip-lsmdc --clip inputs/wide-clip LSMDC --out ~/run
        extract stores/late.csv ~/films --backbone xclip-lsmdc ON ~/run
        search ~/films "a red disc" --weights ~/run --device cpu --json
    """,
    "library": "$ PYTHON -c LIBRARY",
}
TABLES = """
    facts.csv|movie,title,year|tt9000007,The First,1931|second,The Second,1950
    scenes.csv|start_s,end_s|0,20|20,61.5|61.5,100
    ratings.csv|item_id,r1,r2,r3|a,1,1,1|b,0,0,1|c,1,,0|d,0,0,0
    items.csv|image_id,emotion,level,condition|1_AN1_NO_1,anger,high,NO|1_AN1_O_1,anger,high,O
    shoes.csv|caption_id,image_id,caption|c1,1_AN1_NO_1,an angry man with a shoe|c2,1_AN1_O_1,a sad woman
    shoe.csv|image_id,object,p_c|1_AN1_NO_1,shoe,0.5|1_AN1_O_1,cat,0.4
    objects.txt|shoe|cat
    pairs.csv|image_id,text,group|1_AN1_NO_1,a man,g|1_AN1_O_1,a sad man,h
    roi.csv|image_id,roi,y0,x0,y1,x1|1_AN1_NO_1,face,0,0,112,224|1_AN1_O_1,face,0,0,90,224
    declared.json|{"sampling": {"policy": "uniform", "n": 32}, "space": "lab 1"}
"""


# --- what the works read
# ---------------------------------------------------------------------------
def write_inputs(folder: Path) -> None:
    """Write tiny networks, vectors, pictures and tables that the works read."""
    rng = np.random.default_rng(0)
    write_networks(folder)
    write_vectors(folder, rng)
    write_pictures(folder, rng)
    for line in TABLES.strip().splitlines():
        name, *rows = line.strip().split("|")
        write_lines(folder / name, rows)
    head = "clip_id,movie,video,start_s,end_s,level,concepts,annotator"
    marked = [f"c{n},tt900000{n},,{n % 3}.5,{n % 3 + 2},S,Body,AB" for n in range(1, 7)]
    write_lines(folder / "marked.csv", [head, *marked])
    spans = product(("tt9000007", "second"), ("AB", "CD"), range(6))
    truth = []
    for movie, annotator, n in spans:
        start_s = 20 * n + 3 if annotator == "CD" else 20 * n
        level = ("EN", "S")[n % 2]
        truth.append(f"{movie}-{annotator}-{n},{movie},,{start_s},{20 * n + 12},{level},,{annotator}")
    write_lines(folder / "truth.csv", [head, *truth])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines of text."""
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def write_networks(folder: Path) -> None:
    """Write the tiny untrained networks of the tests, in the files of the hub."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.studies.lsmdc.corpus import tiny_clip
    from tests.tiny_checkpoints import tiny_checkpoint, tiny_language_model, tiny_text_checkpoint

    tiny_checkpoint("vivit", folder / "vivit")
    for name in ("clip", "xclip", "sentence"):
        tiny_text_checkpoint(name, folder / name)
    tiny_language_model(folder / "gpt2", context=77)
    tiny_clip(folder / "wide-clip")


def write_vectors(folder: Path, rng: np.random.Generator) -> None:
    """Write features as other tools would: of clips of the demo, of ObyGaze12 and of a made-up MediaEval."""
    (folder / "npy").mkdir()
    for n in range(1, 5):
        np.save(folder / "npy" / f"tt9000001-00{n}.npy", rng.normal(size=(32, 6)))
    clips = [f"tt900000{movie}-{n:03}" for movie, n in product(range(1, 7), range(1, 25))]
    np.savez(folder / "tokens.npz", clip_id=clips, tokens=rng.normal(size=(144, 8, 12)).astype(np.float16))
    with np.load(DATA / "oracles" / "synth_features.npz") as file:
        np.savez(folder / "twelve.npz", clip_id=file["ids"], pooled=file["features"][:, :16])
    X = rng.normal(size=(60, 4)).astype(np.float32)
    X[::4, 0] += 9
    names = [f"ACCEDE{n:05}.mp4" for n in range(60)]
    levels = ("calm", "neutral", "active")
    np.savez(folder / "m15.npz", clip_id=names, pooled=X)
    rows = [
        f"{name},film{n // 10},{('dev', 'test')[n >= 30]},{(n % 3 - 1) / 2},{levels[n % 3]},{int(n % 4 == 0)}"
        for n, name in enumerate(names)
    ]
    (folder / "m15").mkdir()
    write_lines(folder / "m15" / "clips.csv", ["clip,movie,split,valence,arousal,violence", *rows])


def write_pictures(folder: Path, rng: np.random.Generator) -> None:
    """Write pictures named as SOBEM's, and clips of the demo named and described as LSMDC's."""
    from PIL import Image

    (folder / "stills").mkdir()
    for person, emotion, level, worn in product(range(1, 5), ("AN", "SA", "HA"), (1, 2), ("NO", "O")):
        picture = Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8))
        picture.save(folder / "stills" / f"{person}_{emotion}{level}_{worn}_1.png")
    (folder / "lsmdc").mkdir()
    shown = sorted((folder.parent / "demo" / "films" / "tt9000004").iterdir())
    for index, split in enumerate(("annos_training", "annos_val", "challenge_1000_publictect")):
        rows = []
        for n in range(4):
            name = f"1004_Juno_00.{index:02}.{n:02}.000-00.{index:02}.{n:02}.009"
            (folder / "lsmdc" / f"{name}.avi").write_bytes(shown[4 * index + n].read_bytes())
            rows.append(
                "\t".join([name, *["00.00.00.000"] * 4, f"SOMEONE shows a {('disc', 'bar')[n % 2]}."])
            )
        write_lines(folder / "lsmdc" / f"LSMDC16_{split}.csv", rows)


def join_texts(folder: Path) -> None:
    """Join the lists of texts of a folder, so that each network is started once."""
    texts = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            texts += [row["text"] for row in csv.DictReader(file)]
    rows = (f'{n},"{text}"' for n, text in enumerate(dict.fromkeys(texts)))
    write_lines(folder / "all.csv", ["text_id,text", *rows])


# --- running and comparing
# ---------------------------------------------------------------------------
class WorkError(Exception):
    """A command of a work failed; the message holds what it said."""


def run_work(name: str, root: Path, checkout: Path) -> None:
    """Run the lines of a work in `root`, and keep what each said in the work's folder."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "SLURM_"))}
    fixed = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "COLUMNS": "100", "PYTHONPATH": str(checkout)}
    options: dict[str, Any] = {"cwd": root, "env": environment | fixed, "capture_output": True, "text": True}
    variables = re.compile("|".join(rf"\b{key}\b" for key in NAMES))
    home = re.compile(r"(?<= )~(?=[ /\n]|$)")
    folder = root / name
    if name != "demo":  # which makes its own
        folder.mkdir()
    for number, line in enumerate(WORKS[name].strip().replace("\\\n", " ").splitlines(), 1):
        words = home.sub(name, variables.sub(lambda match: NAMES[match[0]], line.strip()))
        if words.startswith("@"):
            globals()[words[1:]](folder)
            continue
        script = words[1:] if words.startswith("$") else f"exec {NAMES['OBYGAZE']} {words}"
        process = subprocess.run(["sh", "-c", script], check=False, **options)
        stderr = PROGRESS.sub("", process.stderr)
        output = f"{line}\nexit code {process.returncode}\n{process.stdout}--- stderr\n{stderr}"
        if process.returncode not in {0, 3}:  # 3: done, but some clips failed, or a film is unlike all others
            raise WorkError(output)
        (folder / "said").mkdir(exist_ok=True)
        path = folder / "said" / f"{number:02}-{words.strip('$ ').split()[0].rpartition('/')[2]}.txt"
        path.write_text(output.replace(str(root), "."), encoding="utf-8")
    origins = subprocess.run([sys.executable, "-c", ORIGINS], check=True, **options)
    if any(not Path(path).is_relative_to(checkout) for path in origins.stdout.splitlines()):
        raise WorkError(f"the code is not that of {checkout}, but\n{origins.stdout}")


def digests_of(folder: Path) -> dict[str, str]:
    """Digest every file of a work by its path."""
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not LEFT_OUT.search(name := path.relative_to(folder).as_posix())
    }


def compare(digests: dict[str, dict[str, str]], truth: dict[str, dict[str, str]]) -> bool:
    """Print of each work whether its files are equal, or those that differ; give whether all are."""
    for name, ours in digests.items():
        theirs = truth.get(name, {})
        differ = [file for file in sorted(ours.keys() | theirs.keys()) if ours.get(file) != theirs.get(file)]
        print(f"{name}: {len(differ)} files differ" if differ else f"{name}: equal ({len(ours)} files)")
        for file in differ:
            if file not in ours:
                print(f"  {file} is missing")
            elif file not in theirs:
                print(f"  {file} is new")
            else:
                print(f"  {file}")
    return digests == {name: truth.get(name) for name in digests}


def main() -> None:
    """Run the works; write their digests, or compare them."""
    parser = arguments(__doc__, parse=False)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("digests", type=Path, nargs="?", help="file to write")
    parser.add_argument("--against", type=Path, metavar="DIGESTS", help="compare with these digests")
    options = parser.parse_args()
    if not (options.digests or options.against):
        parser.error("give DIGESTS.json to write, or --against")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        failed = False
        for name in WORKS:
            try:
                took = timed(partial(run_work, name, root, options.checkout.resolve()))
                print(f"{name}: {took.wall_s:.0f} s, of CPU {took.cpu_s:.0f} s", file=sys.stderr, flush=True)
            except WorkError as error:
                failed = True
                print(f"{name}: FAILED: {error}", file=sys.stderr)
        digests = {name: digests_of(root / name) for name in WORKS}
    if options.digests:
        options.digests.write_text(json.dumps(digests, indent=1), encoding="utf-8")
    equal = not options.against or compare(digests, json.loads(options.against.read_text(encoding="utf-8")))
    sys.exit(failed or not equal)


if __name__ == "__main__":
    main()
