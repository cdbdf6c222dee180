"""A tiny CLIP in the hub's format, and a corpus in LSMDC's format whose captions name what the clips show."""

import json
from pathlib import Path

import numpy as np

from obygaze_studies.lsmdc.lsmdc16 import FILES
from tests.lazy_import import lazy_import
from tests.video.encoding import encode

save_file = lazy_import("safetensors.torch", "save_file")
quiet = lazy_import("obygaze_features.backbones.checkpoint", "quiet")
untrained = lazy_import("obygaze_features.backbones.checkpoint", "untrained")

PATTERNS = 16
"""What a video may show; `picture` draws each."""

COLOURS = ("red", "green", "blue", "grey")
SHAPES = ("disc", "bar", "cross", "ring")
WORDS = (".", "a", "shows", "the", "someone", *COLOURS, *SHAPES)
START = "<|startoftext|>"
END = "<|endoftext|>"
VOCABULARY = (*WORDS, "[UNK]", START, END)
SIDE = 32
"""Height and width of a picture, in pixels."""


def tiny_clip(folder: Path, seed: int = 0) -> Path:
    """Write an untrained CLIP (ViT, patches of 8) with a tokenizer of whole words, as the hub has them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import CLIPConfig, CLIPModel

    folder.mkdir(parents=True, exist_ok=True)
    tower = {"hidden_size": 64, "intermediate_size": 256, "num_attention_heads": 1}
    vision = {"num_hidden_layers": 2, "image_size": SIDE, "patch_size": 8}
    text = {"num_hidden_layers": 4, "vocab_size": len(VOCABULARY), "max_position_embeddings": 32}
    config = CLIPConfig(
        text_config=tower | text | {"bos_token_id": 0, "eos_token_id": 2},
        vision_config=tower | vision,
        projection_dim=64,
    )
    with quiet():
        network = untrained(lambda: CLIPModel(config), seed)
        network.save_pretrained(folder)
    tokenizer = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token=VOCABULARY[-3])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([START, END])
    tokenizer.post_processor = processors.TemplateProcessing(
        f"{START} $A {END}", special_tokens=[(token, tokenizer.token_to_id(token)) for token in (START, END)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": START, "eos_token": END}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def write_in_openai_format(tensors: dict, path: Path) -> Path:
    """Write tensors under the names that they have, those of OpenAI, as a file of safetensors."""
    save_file({name: value.contiguous() for name, value in tensors.items()}, path)
    return path


def caption(pattern: int) -> str:
    """Say what a pattern is called: each of the 16 has a colour and a shape of its own."""
    return f"SOMEONE shows the {COLOURS[pattern % 4]} {SHAPES[pattern // 4]}."


def picture(pattern: int, rng: np.random.Generator) -> np.ndarray:
    """Draw one of 16 patterns of 4 x 4 coloured fields, brighter or darker and with other noise each time."""
    fields = np.random.default_rng(pattern).uniform(10, 245, (4, 4, 3))
    drawn = np.kron(fields, np.ones((SIDE // 4, SIDE // 4, 1))) * rng.uniform(0.97, 1.03)
    return (drawn + rng.normal(0, 4, drawn.shape)).clip(0, 255).astype(np.uint8)


def write_video(path: Path, pictures: list, rate: int = 2) -> Path:
    """Write pictures, enlarged twofold, as a video of `rate` pictures a second."""
    large = (np.kron(pixels, np.ones((2, 2, 1), np.uint8)) for pixels in pictures)
    return encode(path, large, "mpeg4", rate)


FILMS = ("0001_American_Beauty", "0019_Pulp_Fiction", "1004_Juno", "3015_CHARLIE_ST_CLOUD")


def clip_id(split: str, number: int) -> str:
    """Name a clip as LSMDC does, FILM_START-END; its minute tells the split, its second the number."""
    start = f"00.{('training', 'validation', 'test').index(split):02}.{number:02}.000"
    return f"{FILMS[number % 4]}_{start}-{start[:-1]}9"


def write_corpus(folder: Path, training: int = 12, held_out: int = 4, seed: int = 0) -> Path:
    """Write annotations and videos of so many clips of each split; return the folder."""
    rng = np.random.default_rng(seed)
    annotations = folder / "annotations"
    videos = folder / "videos"
    annotations.mkdir(parents=True)
    for split, count in (("training", training), ("validation", held_out), ("test", held_out)):
        lines = []
        for number in range(count):
            name = clip_id(split, number)
            place = videos / FILMS[number % 4]
            place.mkdir(parents=True, exist_ok=True)
            frames = [picture(number % PATTERNS, rng) for _ in range(2 * (1 + number % 4))]
            write_video(place / f"{name}.avi", frames)
            times = "\t".join(["00.00.00.000"] * 4)
            lines.append(f"{name}\t{times}\t{caption(number % PATTERNS)}\n")
        (annotations / FILES[split]).write_text("".join(lines))
    return folder
