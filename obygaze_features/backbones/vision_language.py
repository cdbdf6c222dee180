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
from obygaze_features.backbones.checkpoint import auto_config, load_from_folder, load_pretrained, plain_config
from obygaze_features.backbones.compute import ATTENTION, Compute, inference
from obygaze_features.backbones.weights import (
    PROCESSOR_FILES,
    TOKENIZER_FILES,
    Weights,
    digest,
    file_of,
    find_weights,
)
from obygaze_features.errors import BackboneError
from obygaze_features.io import sha256_of
from obygaze_features.lines import json_bytes
from obygaze_features.perception import PICTURES, why_unperceived
from obygaze_features.untrusted import read_text

SIDE = 448
"""Height and width of the squares that frames are put on."""
N_FRAMES = 4
YES_AND_NO = ("yes", "no")
"""The answers whose probabilities are compared, in this order."""
FILES_OF_PROCESSOR = (*PROCESSOR_FILES, *TOKENIZER_FILES[:3], "chat_template.jinja", "chat_template.json")
"""Files of a processor, as far as there are any; none is code or a pickle."""


@dataclass(frozen=True)
class Squared:
    """A backbone's `prepare`: put a frame, uint8 `[H, W, 3]`, whole on a black square `[side, side, 3]`."""

    side: int

    def __call__(self, frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Resize a frame so that its long side fits the square, by Pillow's bicubic filter, and centre it."""
        long_side = max(frame.shape[:2])
        height = max(1, round(self.side * frame.shape[0] / long_side))
        width = max(1, round(self.side * frame.shape[1] / long_side))
        resized = Image.fromarray(frame).resize((width, height), Image.Resampling.BICUBIC)
        square = np.zeros((self.side, self.side, 3), np.uint8)
        top = (self.side - height) // 2
        left = (self.side - width) // 2
        square[top : top + height, left : left + width] = np.asarray(resized)
        return square


class Answerer:
    """A backbone's `encode`: uint8 `[B, F, side, side, 3]` to probabilities of yes, `pooled` [B, Q].

    Parameters
    ----------
    model, processor
        A vision-language model of transformers, and its processor.
    questions
        Name -> yes-or-no question; the columns of the result.
    compute
        Device and precision.
    """

    def __init__(self, model: Any, processor: Any, questions: Mapping[str, str], compute: Compute) -> None:
        """Hold the model and its questions (name -> question); the first call moves it to the device."""
        self.model = model
        self.processor = processor
        self.questions = questions
        self.compute = compute
        self.device = compute.torch_device()
        self.has_half_weights = compute.precision == "bfloat16-weights"

    def __call__(self, batch: NDArray[np.uint8]) -> dict[str, NDArray[np.float32]]:
        """Return the probability of yes for each of Q questions about each clip, `pooled` [B, Q].

        Clips are uint8 `[F, side, side, 3]` each.
        """
        dtype = torch.bfloat16 if self.has_half_weights else None
        self.model.to(device=self.device, dtype=dtype)  # does nothing after the first call
        probabilities = [self._probabilities(clip) for clip in batch]
        return {"pooled": np.array(probabilities, dtype=np.float32)}

    def _probabilities(self, clip: NDArray[np.uint8]) -> list[float]:
        """Return the probability of yes for each question about a clip, uint8 `[F, side, side, 3]`."""
        return [self._probability_of_yes(clip, question) for question in self.questions.values()]

    def _probability_of_yes(self, clip: NDArray[np.uint8], question: str) -> float:
        """Return the probability that the model answers "yes" rather than "no" to a question about a clip.

        It is p_yes / (p_yes + p_no), where the model may give other answers too.

        Parameters
        ----------
        clip
            Frames, uint8 `[F, side, side, 3]`.
        question
            A yes-or-no question.
        """
        images = [Image.fromarray(frame) for frame in clip]
        prompt = self.prompt(question, len(images))
        inputs = self.processor(images=[images], text=[prompt], return_tensors="pt")
        tokens_of_answers = self.processor.tokenizer([*YES_AND_NO], add_special_tokens=False).input_ids

        # To score an answer, the network gets the prompt and all tokens of the answer but the last, and
        # returns the log-probabilities of each next token. Where yes and no are one token each, nothing is
        # put after the prompt for either, and both share one call.
        results_of_calls: dict[tuple[int, ...], torch.Tensor] = {}  # tokens after the prompt -> result
        log_p_of_answers = []
        for tokens in tokens_of_answers:
            all_but_last = tuple(tokens[:-1])
            if all_but_last not in results_of_calls:
                results_of_calls[all_but_last] = self._log_probabilities(inputs, all_but_last)
            log_p_of_vocabulary = results_of_calls[all_but_last]  # [tokens, vocabulary]
            columns = torch.tensor(tokens)[:, None]  # [tokens, 1]: the token that each row is read at
            log_p_of_tokens = log_p_of_vocabulary.gather(1, columns)
            log_p_of_answers.append(float(log_p_of_tokens.double().sum()))

        log_p_yes, log_p_no = log_p_of_answers
        return float(1 / (1 + np.exp(log_p_no - log_p_yes)))  # p_yes / (p_yes + p_no)

    def prompt(self, question: str, n_images: int) -> str:
        """Write the prompt for a question about images, by the chat template of the model if it has one.

        Without a template, a prompt of two images is `<image> <image> Does a man speak?`.
        """
        if not getattr(self.processor, "chat_template", None):
            image_token = getattr(self.processor, "image_token", "<image>")
            return " ".join([image_token] * n_images + [question])
        content = [{"type": "image"} for _ in range(n_images)]
        content.append({"type": "text", "text": question})
        messages = [{"role": "user", "content": content}]
        prompt: str = self.processor.apply_chat_template(messages, add_generation_prompt=True)
        return prompt

    def _log_probabilities(self, inputs: Mapping[str, Any], answer_tokens: tuple[int, ...]) -> torch.Tensor:
        """Return the log-probabilities of each next token, `[1 + len(answer_tokens), vocabulary]`.

        The first row is for the token after the prompt, the others for those after each token of the answer.

        Parameters
        ----------
        inputs
            The prompt and images, as the processor prepares them.
        answer_tokens
            First tokens of an answer, which are put after the prompt.
        """
        arguments = {}
        for name, value in _with_answer(inputs, answer_tokens).items():
            argument = value.to(self.device)
            if self.has_half_weights and argument.is_floating_point():
                argument = argument.bfloat16()
            arguments[name] = argument
        n_rows = 1 + len(answer_tokens)
        with inference(self.compute, self.device):
            logits = self.model(**arguments).logits[0, -n_rows:].float()
        return torch.log_softmax(logits, dim=-1).cpu()


def _with_answer(inputs: Mapping[str, Any], answer_tokens: tuple[int, ...]) -> dict[str, torch.Tensor]:
    """Append tokens of an answer to a prompt, and drop the inputs that are no tensors.

    Inputs with a value for each token, such as a mask, get values for the new tokens: that of the last token
    of the prompt.
    """
    prompt_tokens = inputs["input_ids"]  # [1, P]
    appended: dict[str, torch.Tensor] = {}
    for name, value in inputs.items():
        if not torch.is_tensor(value):
            continue
        has_value_per_token = value.shape == prompt_tokens.shape
        if name == "input_ids":
            new_tokens = torch.tensor([answer_tokens], dtype=value.dtype)
            appended[name] = torch.cat([value, new_tokens], dim=1)
        elif has_value_per_token:
            last_value = value[:, -1:]
            repeated = last_value.expand(-1, len(answer_tokens))
            appended[name] = torch.cat([value, repeated], dim=1)
        else:
            appended[name] = value
    return appended


def vlm(
    weights: str | Path | Weights,
    questions: str | Path,
    n_frames: int = N_FRAMES,
    compute: Compute | None = None,
) -> Backbone:
    """Build a backbone whose features are a vision-language model's answers to yes-or-no questions.

    Its group is `answers`. The model gets still pictures. Questions that pictures cannot answer, such as
    those on sound, are left out; the provenance lists them as `absent`, each with the reason.

    Parameters
    ----------
    weights
        A folder or repository that transformers' image-text-to-text classes read, with its processor.
    questions
        The file that `obygaze codebook questions` wrote.
    n_frames
        Frames of a clip that the model gets.
    compute
        Device and precision.

    Raises
    ------
    BackboneError
        There are no questions, transformers has no such model, or it cannot read the processor.
    """
    compute = compute or Compute()
    # `asked` goes to the model; `absent` are the questions that pictures cannot answer, with the reasons.
    asked, absent = read_questions(Path(questions))
    source = find_weights(weights)
    config = auto_config(source)
    if type(config) not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise BackboneError(f"{source.name}: a {config.model_type} takes no images and text")
    digests = _digests_of_processor(source)
    processor = load_from_folder(AutoProcessor, source, "its processor", backend="pil")
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


def _digests_of_processor(weights: Weights) -> dict[str, str]:
    """Return name -> SHA-256 of the files beside the weights that prepare pictures and texts, if there."""
    digests = {}
    for name in FILES_OF_PROCESSOR:
        path = file_of(weights, name)
        if path is not None:
            digests[name] = digest([path])
    return digests


class Questions(NamedTuple):
    """The questions of a file, by whether pictures can answer them.

    Attributes
    ----------
    asked
        Name -> question, for the questions that are asked.
    absent
        Name -> why the question is not asked.
    """

    asked: dict[str, str]
    absent: dict[str, str]


def read_questions(path: Path) -> Questions:
    """Read the questions that `codebook questions` wrote, and set aside those that pictures cannot answer.

    All lines of such a file, one for each clip, have the same questions: the first one is read. The network
    sees pictures only, so that it is not asked of what is heard, for example.

    Raises
    ------
    BackboneError
        The first line of the file has no questions, or none that pictures can answer.
    """
    line = _first_line_of_questions(path)
    asked = {}
    absent = dict(line.absent)
    for name, question in line.questions.items():
        _, _, concept = name.partition(":")  # of `concept:Look`
        how_it_is_conveyed = line.conveyed.get(name, "")  # such as "heard"; "" if that is not known
        why_not_asked = why_unperceived(concept, how_it_is_conveyed, PICTURES)
        if why_not_asked:
            absent[name] = why_not_asked
        else:
            asked[name] = question
    if not asked:
        raise BackboneError(
            f"{path}: pictures can answer none of its questions: {'; '.join(absent.values())}"
        )
    return Questions(asked, absent)


class _LineOfQuestions(NamedTuple):
    """What a line of `codebook questions` says of its questions; each is named like `concept:Look`.

    Attributes
    ----------
    questions
        Name -> question.
    conveyed
        Name -> how a film conveys the concept, such as "heard"; concepts of which that is not known are
        missing.
    absent
        Name -> why the question is not asked, for those that `codebook questions` set aside.
    """

    questions: dict[str, str]
    conveyed: dict[str, str]
    absent: dict[str, str]


def _first_line_of_questions(path: Path) -> _LineOfQuestions:
    """Read the first line of a file of `codebook questions`: a JSON object with questions by their names.

    It may also say how a film conveys the concept that is asked about, and which questions are not asked.

    Raises
    ------
    BackboneError
        It has no questions, or is not such a line: no JSON, no object, or of other values. The advice is the
        same whatever is wrong.
    """
    no_questions = BackboneError(
        f"{path}: no questions in its first line: write it with 'obygaze codebook questions'"
    )
    try:
        first_line, _, _ = read_text(path).partition("\n")
        json_object = json.loads(first_line)
        line = _LineOfQuestions(
            questions=_texts_of(json_object["questions"]),
            conveyed=_texts_of(json_object.get("conveyed", {})),
            absent=_texts_of(json_object.get("absent", {})),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise no_questions from None
    if not line.questions:
        raise no_questions
    return line


def _texts_of(json_object: Any) -> dict[str, str]:
    """Return a JSON object's keys and values as texts; raise an AttributeError if it is no object."""
    return {str(key): str(value) for key, value in json_object.items()}
