"""Inputs with which commands of networks, audits, tasks and tables succeed, and how they are asked."""

import csv
import json
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from PIL import Image

from obygaze_features.backbones.tiny_checkpoints import tiny_language_model, tiny_text_checkpoint
from obygaze_features.backbones.weights import find_weights
from obygaze_features.manifest import (
    Clip,
    Manifest,
    builtin_codebook,
    concept_texts,
    load_codebook,
    write_manifest,
)
from obygaze_features.store.testing import seal_arrays
from obygaze_studies.eat.eat_tests import Variant, prompt_rows
from obygaze_studies.gender_score.priors import write_priors
from obygaze_studies.saliency.maps_file import SIDE, with_means, write_maps
from tests.studies.lsmdc.corpus import picture, tiny_clip, write_corpus, write_video

LSMDC = "--annotations in/lsmdc/annotations --videos in/lsmdc/videos --batch 4 --epochs 1 --workers 1"
DRAWN = "in/drawn.csv out/drawn --n 2 --workers 1 --licence CC0-1.0"
GENDERS = "--captions in/shoes.csv --objects in/shoe.csv --lm in/lm.csv --sims in/sims.csv"
CASES = {
    "manifest import images": "in/stills --out in/stills.csv",
    "manifest import mediaeval15": "in/mediaeval15 --out out/m15.csv",
    "manifest agreement": "in/segments.csv",
    "train xclip-lsmdc": f"--clip in/lsmdc-clip {LSMDC} --device cpu --out out/lsmdc",
    "gradcam": "in/stills.csv --prompts in/prompts.txt --weights in/clip --out out/maps.zarr",
    "lm": "in/shoes.csv --model in/gpt2 --device cpu --out out/lm.csv",
    "weights fetch": "lab/net --revision v1",
    "search": "in/xclip-1.0.0 dog --weights in/xclip --device cpu",
    "extract": f"{DRAWN} --backbone clip --weights in/clip --device cpu",
    "extract 2": "in/drawn.csv out/described --workers 1 --licence CC0-1.0",
    "evaluate": "in/drawn.csv out/described-1.0.0 --task calm_violent --model linear --save linear "
    "--out out/drawn-run",
    "film run": "in/drawn/f0.mp4 --model out/drawn-run/linear.model --window 1 --hop 1 --shots none "
    "--out in/rerun --workers 1",
    "film thumbnails": "in/drawn/f0.mp4 --scored in/rerun/scored --out out/thumbnails",
    "evaluate 2": "in/marked.csv in/frames-1.0.0 --task concept:Body --model attention --save attention "
    "--out out/attention",
    "predict": "out/attention/attention.model in/frames-1.0.0 --out out/clips.csv --frames out/frames.csv",
    "localise": "out/frames.csv in/segments.csv --positive S --out out/localised.csv",
    "compare": "out/drawn-run out/drawn-run --model linear --against always_positive --out out/compared",
    "audit text-directions": "in/marked.csv in/marked-1.0.0 --texts in/texts-1.0.0 --shifts 100 "
    "--out out/directions.csv",
    "audit eat": "--images in/sobem-1.0.0 --texts in/prompted-1.0.0 --text-items in/prompts.csv "
    "--out out/eat.csv",
    "audit saliency": "--maps in/maps.zarr --roi in/roi.csv --out out/saliency.csv",
    "audit gender-score": f"{GENDERS} --out out/gs.csv",
    "audit words": "--captions in/shoes.csv --items in/items.csv --min-total 1 --ratio O NO "
    "--out out/words.csv",
    "audit alpha": "--ratings in/rated.csv --out out/rated.csv --figure out/rated.pdf --html out/rated.html",
    "paper all": "in/marked.csv in/marked-1.0.0 --protocol strict --out out/strict",
    "paper all 2": "in/published.csv in/marked-1.0.0 --protocol paper --out out/published",
    "paper figure4": "in/segments.csv --movie m0 --window 2 --out out/strict-figure4",
    "task mediaeval15 labels": "in/mediaeval15/clips.csv --out out/m15-labels.csv",
    "task mediaeval15 train": "out/m15.csv in/m15-1.0.0 --subtask violence --run a --out out/runs",
    "task mediaeval15 score": "--truth out/m15.csv --run out/runs/violence-a.trec --out out/m15-scores",
    "task mediaeval15 check": "out/runs --truth out/m15.csv",
}  # fmt: skip


def write(folder: Path) -> None:
    """Write everything that CASES read and do not make."""
    _weights(folder)
    _films(folder)
    _marked(folder)
    _audits(folder)
    _mediaeval(folder / "mediaeval15")


def _weights(folder: Path) -> None:
    tiny_clip(folder / "lsmdc-clip")
    write_corpus(folder / "lsmdc", training=4, held_out=2)
    tiny_text_checkpoint("clip", folder / "clip")
    tiny_language_model(folder / "gpt2")
    tiny_text_checkpoint("xclip", folder / "xclip")
    repository = folder / "hub" / "models--lab--net"
    shutil.copytree(folder / "clip", repository / "snapshots" / ("0123456789abcdef" * 3)[:40])
    (repository / "refs").mkdir()
    (repository / "refs" / "v1").write_text(("0123456789abcdef" * 3)[:40])
    found = find_weights(folder / "xclip").sha256
    width = json.loads((folder / "xclip" / "config.json").read_text())["projection_dim"]
    rows = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    seal_arrays(
        folder / "xclip", dict.fromkeys("abcd", "m"), {"xclip": {"pooled": rows}}, weights_sha256=found
    )
    (folder / "stills").mkdir()
    for name, colour in (("warm", "red"), ("cold", "blue")):
        Image.new("RGB", (64, 64), colour).save(folder / "stills" / f"{name}.png")
    (folder / "prompts.txt").write_text("a cat\n")


def _films(folder: Path) -> None:
    """Draw four films of five seconds, in which every other second is violent."""
    rng, clips = np.random.default_rng(0), []
    (folder / "drawn").mkdir()
    for movie in ("f0", "f1", "f2", "f3"):
        frames = [picture(n // 4 % 2, rng) for n in range(40)]
        write_video(folder / "drawn" / f"{movie}.mp4", frames, rate=4)
        clips += [
            Clip(f"{movie}-{n}", movie, f"drawn/{movie}.mp4", float(n), n + 1.0, ("calm", "violent")[n % 2])
            for n in range(10)
        ]
    codebook = load_codebook(folder / "violence.codebook.toml")
    write_manifest(Manifest(tuple(clips), folder, codebook), folder / "drawn.csv")


def _marked(folder: Path) -> None:
    """Keep clips of four movies with concepts, texts in their space, and two people's segments."""
    codebook, rng = builtin_codebook("obygaze12"), np.random.default_rng(0)
    names = codebook.visual_concepts
    clips = []
    for movie, place in product(range(4), range(16)):
        there = tuple(name for name in names if rng.random() < 0.4)
        level = "S" if "Body" in there else ("EN", "HN")[place % 2]
        start = 4.0 * place
        clips.append(Clip(f"m{movie}-{place:02}", f"m{movie}", "", start, start + 4, level, concepts=there))
    write_manifest(Manifest(tuple(clips), folder), folder / "marked.csv")
    released = [
        replace(clip, video=f"films/{clip.clip_id}.mp4", extras=_folds(clip, n))
        for n, clip in enumerate(clips)
    ]
    write_manifest(Manifest(tuple(released), folder), folder / "published.csv")
    movie_of = {clip.clip_id: clip.movie for clip in clips}
    spans = {clip.clip_id: (clip.start_s, clip.end_s) for clip in clips}
    seen = np.array([[name in clip.concepts for name in names] for clip in clips])
    X = (3.0 * seen + rng.normal(size=seen.shape)).astype(np.float32)
    arrays = {"pooled": X, "frames": np.stack([X, X + 1, X - 1, X], axis=1)}
    space = "xclip sha256:0123"
    seal_arrays(folder / "marked", movie_of, {"xclip": {"pooled": X}}, space=space)
    seal_arrays(folder / "frames", movie_of, {"xclip": arrays}, spans=spans, n_frames=4)
    texts = {f"t{place}": one.text for place, one in enumerate(concept_texts(codebook))}
    vectors = rng.normal(size=(len(texts), len(names))).astype(np.float32)
    seal_arrays(
        folder / "texts",
        dict.fromkeys(texts, ""),
        {"xclip-text": {"pooled": vectors}},
        texts=texts,
        space=space,
    )
    segments = [
        Clip(
            f"m{movie}-{who}-{place}",
            f"m{movie}",
            "",
            8.0 * place + 1 + shift,
            8.0 * place + 4 + shift,
            ("S", "HN")[place % 2],
            concepts=("Body",),
            annotator=who,
        )
        for movie, (who, shift), place in product(range(4), (("ann", 0.0), ("bea", 0.5)), range(8))
    ]
    write_manifest(Manifest(tuple(segments), folder), folder / "segments.csv")


def _folds(clip: Clip, place: int) -> dict[str, str]:
    """Give a clip its folds of ObyGaze12's split files, which the protocol `paper` reads."""
    asked = {"en_s": "EN S", "hn_s": "HN S", "enhn_s": "EN HN S", "en_hn_s": "EN HN S"}
    folds = {f"fold_{name}": (levels, place // 6 % 10) for name, levels in asked.items()}
    folds |= {f"fold_movieset_{name}": (asked[name], int(clip.movie[1:])) for name in ("hn_s", "enhn_s")}
    return {name: str(fold) if clip.level in levels.split() else "" for name, (levels, fold) in folds.items()}


def _audits(folder: Path) -> None:
    rng, space = np.random.default_rng(0), "toy-clip sha256:0123"
    images = [
        f"{who}_{emotion}{level}_{worn}_1"
        for who, emotion, level, worn in product(range(1, 5), ("AN", "SA", "HA"), (1, 2), ("NO", "O"))
    ]
    asked = prompt_rows(Variant.CODE)
    with (folder / "prompts.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(asked[0]))
        table.writeheader()
        table.writerows(asked)
    for name, ids in (("sobem", images), ("prompted", [row["text_id"] for row in asked])):
        rows = rng.normal(size=(len(ids), 4)).astype(np.float32)
        seal_arrays(folder / name, dict.fromkeys(ids, "none"), {"toy": {"pooled": rows}}, space=space)
    pairs = [{"image_id": name, "text": "angry person", "group": "g", "score": 0.5} for name in ("i1", "i2")]
    raw = np.ones((2, SIDE, SIDE), np.float32)
    write_maps(with_means({"space": space, "layer": "it"}, pairs, raw), folder / "maps.zarr")
    man, woman = "an angry man with a shoe", "a sad woman with a shoe"
    swapped = [man.replace("man", "woman"), woman.replace("woman", "man")]
    tables = {
        "roi.csv": ["image_id,roi,y0,x0,y1,x1", "i1,face,0,0,112,224", "i2,face,0,0,112,224"],
        "items.csv": ["image_id,emotion,level,condition", "i1,anger,high,NO", "i2,anger,high,O"],
        "shoes.csv": ["caption_id,image_id,caption", f"c1,i1,{man}", f"c2,i2,{woman}"],
        "rated.csv": ["item_id,r1,r2,r3", "a,1,1,1", "b,0,0,1", "c,1,,0", "d,0,0,0"],
        "shoe.csv": ["image_id,object,p_c", "i1,shoe,0.5", "i2,shoe,0.5"],
        "sims.csv": ["text,object,sim", *(f"{text},shoe,0.3" for text in (man, woman, *swapped))],
    }
    for name, lines in tables.items():
        (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    priors = {text: {"n_tokens": 6, "lm_mean": 0.2} for text in (man, woman, *swapped)}
    write_priors(folder / "lm.csv", priors, {})


def _mediaeval(folder: Path) -> None:
    """Keep the annotations of 60 clips of six movies, and a store of features that tell the violent ones."""
    folder.mkdir()
    lines, movie_of = ["clip,movie,split,valence,arousal,violence"], {}
    X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    for row in range(60):
        clip, split = f"ACCEDE{row:05}.mp4", ("dev", "test")[row >= 30]
        movie_of[clip] = f"film{row // 10}"
        valence, arousal = (row % 3 - 1) / 2, ("calm", "neutral", "active")[row % 3]
        lines.append(f"{clip},{movie_of[clip]},{split},{valence},{arousal},{int(row % 4 == 0)}")
        X[row, 0] += 9 * (row % 4 == 0)
    (folder / "clips.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")
    seal_arrays(folder.with_name("m15"), movie_of, {"descriptors": {"pooled": X}})
