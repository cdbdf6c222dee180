"""Answer yes-or-no questions about clips with a vision-language model of transformers.

Nothing is generated: of each question the log-probabilities of "yes" and of "no" after it are taken, and the
answer is the probability of yes among the two. Frames are put on black squares, and prepared by the model's
own processor; the prompt is its chat template's, if it has one.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoProcessor
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

from obygaze_features.backbones.backbone import Backbone, BackboneOutput
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config, read_beside
from obygaze_features.backbones.compute import ATTENTION, Compute, inference
from obygaze_features.backbones.weights import (
    PROCESSOR_FILES,
    TOKENIZER_FILES,
    Weights,
    digest,
    file_of,
    find_weights,
)
from obygaze_features.door import read_text
from obygaze_features.errors import BackboneError
from obygaze_features.io import sha256_of
from obygaze_features.lines import json_bytes
from obygaze_features.perception import PICTURES, why_unperceived

SIDE = 448
"""Height and width of the squares that frames are put on."""
N_FRAMES = 4
ANSWERS = ("yes", "no")
PROCESSOR = (*PROCESSOR_FILES, *TOKENIZER_FILES[:3], "chat_template.jinja", "chat_template.json")
"""Files of a processor, as far as there are any; none is code or a pickle."""


@dataclass(frozen=True)
class Squared:
    """Put a frame, uint8 `[H, W, 3]`, whole on a black square `[side, side, 3]`."""

    side: int

    def __call__(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Shrink or enlarge a frame, bicubic, and centre it."""
        height, width = (max(1, round(self.side * edge / max(frame.shape[:2]))) for edge in frame.shape[:2])
        small = np.asarray(Image.fromarray(frame).resize((width, height), Image.Resampling.BICUBIC))
        square = np.zeros((self.side, self.side, 3), np.uint8)
        top, left = (self.side - height) // 2, (self.side - width) // 2
        square[top : top + height, left : left + width] = small
        return square


class Answerer:
    """A backbone's `encode`: uint8 `[B, F, side, side, 3]` to probabilities of yes, `pooled` [B, Q]."""

    def __init__(self, model: Any, processor: Any, questions: Mapping[str, str], compute: Compute) -> None:
        self.model, self.processor, self.questions, self.compute = model, processor, questions, compute
        self.device = compute.torch_device()

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[np.float32]]:
        """Answer the questions about each clip, one clip at a time."""
        half = self.compute.precision == "bfloat16-weights"
        self.model.to(device=self.device, dtype=torch.bfloat16 if half else None)  # the first time alone
        rows = [[self._answer(clip, question) for question in self.questions.values()] for clip in batch]
        return {"pooled": np.array(rows, dtype=np.float32)}

    def _answer(self, clip: NDArray[np.uint8], question: str) -> float:
        images = [Image.fromarray(frame) for frame in clip]
        inputs = self.processor(
            images=[images], text=[self.prompt(question, len(images))], return_tensors="pt"
        )
        told = [*map(tuple, self.processor.tokenizer([*ANSWERS], add_special_tokens=False).input_ids)]
        # Nothing hangs on an answer's last token: answers of one token each are both asked at once.
        after = {begun: self._log_probabilities(inputs, begun) for begun in {ids[:-1] for ids in told}}
        yes, no = (float(after[ids[:-1]].gather(1, torch.tensor([ids]).T).double().sum()) for ids in told)
        return float(1 / (1 + np.exp(no - yes)))

    def prompt(self, question: str, n_images: int) -> str:
        """Write the prompt that a question and images make."""
        if getattr(self.processor, "chat_template", None):
            content = [*([{"type": "image"}] * n_images), {"type": "text", "text": question}]
            asked = [{"role": "user", "content": content}]
            text: str = self.processor.apply_chat_template(asked, add_generation_prompt=True)
            return text
        return " ".join([getattr(self.processor, "image_token", "<image>")] * n_images + [question])

    def _log_probabilities(self, inputs: Mapping[str, Any], begun: tuple[int, ...]) -> torch.Tensor:
        """Give the log-probabilities of every token after the prompt, and after each of an answer begun."""
        ids = inputs["input_ids"]
        longer = {  # whatever is said of each token is said of the answer's as of the prompt's last
            name: torch.cat([value, value[:, -1:].expand(-1, len(begun))], dim=1)
            for name, value in inputs.items()
            if torch.is_tensor(value) and value.shape == ids.shape
        }
        longer["input_ids"][0, ids.shape[1] :] = torch.tensor(begun)
        given = {name: v.to(self.device) for name, v in {**inputs, **longer}.items() if torch.is_tensor(v)}
        if self.compute.precision == "bfloat16-weights":
            given = {name: v.bfloat16() if v.is_floating_point() else v for name, v in given.items()}
        with inference(self.compute, self.device):
            logits = self.model(**given).logits[0, -len(begun) - 1 :].float()
        return torch.log_softmax(logits, dim=-1).cpu()


def vlm(
    weights: str | Path | Weights,
    questions: str | Path,
    n_frames: int = N_FRAMES,
    compute: Compute | None = None,
) -> Backbone:
    """Build a backbone whose features are a vision-language model's answers: the group `answers`.

    It gets pictures of moments. Questions about what they do not convey are not asked, and stand in the
    provenance as `absent`, each with the reason.

    Parameters
    ----------
    weights
        A folder or repository that transformers' image-text-to-text classes read, with its processor.
    questions
        What `obygaze codebook questions` wrote.

    Raises
    ------
    BackboneError
        There are no questions, or transformers has no such model or cannot read its processor.
    """
    compute = compute or Compute()
    asked, absent = read_questions(Path(questions))
    source = find_weights(weights)
    config = auto_config(source)
    if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise BackboneError(f"{source.name}: a {config.model_type} takes no images and text")
    digests = {name: digest([path]) for name in PROCESSOR if (path := file_of(source, name)) is not None}
    processor = read_beside(AutoProcessor, source, "its processor", backend="pil")
    model = load_pretrained(MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)], source, config)
    outputs = (BackboneOutput("pooled", (len(asked),)),)
    return Backbone(
        name="answers",
        n_frames=n_frames,
        prepare=Squared(SIDE),
        encode=Answerer(model, processor, asked, compute),
        outputs=outputs,
        provenance={
            "head": None,
            "layer": "log-probabilities of yes and no",
            "arrays": {"pooled": "probability of yes, of each question"},
            **source.record(),
            "architecture": {"features": list(asked), **plain_config(config)},
            "questions": dict(asked),
            "perceives": list(PICTURES),
            "absent": absent,
            "prompt": sha256_of(json_bytes(asked)),
            "preset": {
                "resize": f"longest edge to {SIDE}, pillow-bicubic, on a black square",
                "crop": None,
                "constants": digests,
                "order": "resize, uint8; then the model's own processor, of these files",
            },
            "compute": compute.record(ATTENTION),
            "citation": "docs/annotators.md",
        },
        libraries=("torch", "transformers", "tokenizers", "pillow"),
    )


class AskedAndAbsent(NamedTuple):
    """Questions of a file.

    Attributes
    ----------
    asked
        Name -> question, of what pictures convey or of which the file does not say what does.
    absent
        Name of a question that is not asked -> why.
    """

    asked: dict[str, str]
    absent: dict[str, str]


def read_questions(path: Path) -> AskedAndAbsent:
    """Read the questions of a file of `codebook questions`, and part them by what conveys their concepts.

    Raises
    ------
    BackboneError
        Its first line has none, or none that pictures can answer.
    """
    try:
        line = json.loads(read_text(path).partition("\n")[0])
        questions = {str(name): str(text) for name, text in line["questions"].items()}
        conveyed = {str(name): str(modality) for name, modality in line.get("conveyed", {}).items()}
        absent = {str(name): str(reason) for name, reason in line.get("absent", {}).items()}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        questions, conveyed, absent = {}, {}, {}
    if not questions:
        raise BackboneError(
            f"{path}: no questions in its first line: write it with 'obygaze codebook questions'"
        )
    asked = {}
    for name, question in questions.items():
        reason = why_unperceived(name.partition(":")[2], conveyed.get(name, ""), PICTURES)
        if reason:
            absent[name] = reason
        else:
            asked[name] = question
    if not asked:
        raise BackboneError(
            f"{path}: pictures can answer none of its questions: {'; '.join(absent.values())}"
        )
    return AskedAndAbsent(asked, absent)
