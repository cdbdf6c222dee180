"""Describe networks of transformers that see, or read texts; `networks.toml` has an entry for each."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers
from msgspec import Struct
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from obygaze_features.backbones.class_calls import processor_names
from obygaze_features.backbones.layers import LayerStack
from obygaze_features.backbones.weights import TABLES, kinds

Read = Callable[[Any, torch.Tensor], tuple[torch.Tensor, torch.Tensor | None]]
"""Calls a network; gives its tokens and one vector of a picture or clip, None for their mean."""
ReadText = Callable[[Any, torch.Tensor], torch.Tensor]
"""Calls a network with tokens, `[B, L]`; gives vectors `[B, D]`."""

HEADS = (
    r"classifier\..*",
    r"(\w+\.)?pooler\..*",
    r"head(_layernorm)?\..*",
    r"fc_norm\..*",
    r"(\w+\.)?mask_token",
    r"(encoder_to_)?decoder\..*",
)
"""Patterns of tensors of classifiers and of training, after the tokens."""

TRAINING = (
    r"(\w+\.)?mask_token",
    r"(encoder_to_)?decoder\..*",
    r"(\w+\.)?pooler\.dense\..*",
    r"predictor\..*",
)
"""Patterns of tensors of training alone, in a file with a classifier."""

SCALES = ("logit_scale", "logit_bias", "prompts_generator")
"""Parts of networks of pictures and texts that only the comparison of both uses."""
PARTS_OF_TEXTS = ("text_model", "text_projection", "predictor", *SCALES)
PARTS_OF_PICTURES = ("vision_model", "visual_projection", "video_model", "mit", *SCALES)
"""Parts that networks which see, or which read, do not use: those of the other half."""


def _first_vector(_model: Any, output: Any) -> torch.Tensor:
    """Return the first of several pooled vectors."""
    vectors: torch.Tensor = output.pooler_output[:, 0]
    return vectors


def _max_over_tokens(_model: Any, output: Any) -> torch.Tensor:
    """Return the maximum of each feature over all tokens, `[B, D]`, in float32."""
    tokens: torch.Tensor = output.last_hidden_state
    return tokens.float().amax(dim=1)


VECTORS: Mapping[str, Callable[[Any, Any], Any]] = {
    "mean": lambda _model, _output: None,
    "pooled": lambda _model, output: output.pooler_output,
    "first": _first_vector,
    "projected": lambda model, output: model.visual_projection(output.pooler_output),
    "image": lambda _model, output: output.image_embeds,
    "class": lambda _model, output: output.last_hidden_state[:, 0],
    "max": _max_over_tokens,
}
"""What a network and its output give as one vector of a picture or clip; None is the mean of the tokens."""


def _projected_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode texts by the text half alone, and project the vectors into the space shared with pictures."""
    vectors: torch.Tensor = model.text_projection(model.text_model(input_ids=tokens).pooler_output)
    return vectors


def _causal_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode texts with an attention mask of ones: without one, each token would also see those after it."""
    everything = torch.ones_like(tokens)
    vectors: torch.Tensor = model.get_text_features(input_ids=tokens, attention_mask=everything).pooler_output
    return vectors


def _masked_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode padded texts, with an attention mask that leaves out the padding tokens."""
    is_word = (tokens != model.config.text_config.pad_token_id).long()
    vectors: torch.Tensor = model.text_model(input_ids=tokens, attention_mask=is_word).pooler_output
    return vectors


TEXT_VECTORS: Mapping[str, ReadText] = {
    "text": lambda model, tokens: model(input_ids=tokens).text_embeds,
    "pooled": lambda model, tokens: model(input_ids=tokens).pooler_output,
    "projected": _projected_text,
    "causal": _causal_text,
    "masked": _masked_text,
}
"""What a network gives as the vector of a text, of its tokens."""


def time_first(hidden: torch.Tensor, *, n_moments: int) -> torch.Tensor:
    """Reorder the patch tokens of clips from position-major to time-major order.

    Parameters
    ----------
    hidden
        `[B, 1 + P T, D]`: the class token, then for each position its T moments.
    n_moments
        Moments of a clip, T.
    """
    n_clips, _, width = hidden.shape
    by_place = hidden[:, 1:].reshape(n_clips, -1, n_moments, width)  # [B, P, T, D]
    patches = by_place.transpose(1, 2).flatten(1, 2)
    return torch.cat([hidden[:, :1], patches], dim=1)


class EncoderKind(Struct, frozen=True, forbid_unknown_fields=True):
    """How networks of one `model_type` are read.

    Parameters
    ----------
    network
        Class of transformers; given if it is not the default of the type.
    vector
        What the vector of a frame, or of a clip, is, in words.
    processor
        Class that prepares pictures if the folder of the weights has no processor's configuration; given
        if it is not the default of the type.
    citation
        The paper.
    second
        The paper on a second generation of the same `model_type`, such as SigLIP 2; empty if there is none.
    reads
        How the vector is read from the output: a key of `VECTORS`.
    of_clips
        Whether its configuration names the frames of a clip: it takes `[B, T, 3, h, w]`, or mixes frames.
    part, how
        The part of the network that is called, empty for all of it; and further arguments of the call.
    by_place
        Whether its tokens are ordered by position first, and by time within each position.
    side
        Field of the configuration with the side of the input; empty if it takes any multiple of a patch.
    prefix
        Number of tokens before the patch tokens, not counting registers.
    flexible
        Whether it takes any number of frames that is a multiple of a step in time.
    settings
        Further arguments with which the class is loaded.
    untrained
        Fields in which the configuration of random weights differs from the class's default.
    family
        Name of the space that its vectors share with those of texts; empty if there is none.
    mixes
        Name of the part that mixes the frames of a clip; all other parts encode each frame by itself.
    pooled, tokens
        What the vector of a clip is, if each frame has one too; and name of tokens -> what they are.
    names
        Presets whose names are used if a processor's configuration does the same.
    head, layer
        Head and layer whose output the vectors are, for the provenance.
    stacks
        The lists of its blocks, whose outputs can be stored as layers.
    """

    network: str
    vector: str
    processor: str
    citation: str
    second: str = ""
    reads: str = "mean"
    of_clips: bool = False
    part: str = ""
    how: dict[str, bool] = {}
    by_place: bool = False
    side: str = "image_size"
    prefix: int = 1
    flexible: bool = False
    settings: dict[str, bool] = {}
    untrained: dict[str, int] = {}
    family: str = ""
    mixes: str = ""
    pooled: str = "its mean over the frames"
    tokens: dict[str, str] = {}
    names: tuple[str, ...] = ()
    head: str | None = None
    layer: str = "last hidden state"
    stacks: tuple[LayerStack, ...] = ()

    def pixels(self) -> str:
        """Return the name of the argument that takes pictures, of the network or the part that is called."""
        main: str = getattr(transformers, self.network).main_input_name
        # Of a class that reads texts too, the argument of its texts is the main one.
        return main if main.startswith("pixel_values") else "pixel_values"

    def reader(self) -> Read:
        """Make the function that runs a network and returns its tokens and vector (None for their mean).

        It is a plain function of plain values, so that torch.compile can trace it.
        """
        vector_of = VECTORS[self.reads]
        part = self.part
        pixels_argument = self.pixels()
        further_arguments = self.how
        is_by_place = self.by_place

        def read(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
            """Return the last hidden state and the vector, if the type has one, of prepared pixels."""
            called_part = getattr(model, part) if part else model
            output = called_part(**{pixels_argument: pixels}, **further_arguments)
            hidden = output.last_hidden_state
            if is_by_place:
                hidden = time_first(hidden, n_moments=pixels.shape[1])
            return hidden, vector_of(model, output)

        return read


class TextKind(Struct, frozen=True, forbid_unknown_fields=True):
    """How text towers of one `model_type` are read.

    Parameters
    ----------
    network
        Class of transformers.
    reads
        Of `TEXT_VECTORS`.
    sees
        The half with the same space, whose family and citation are the text's too.
    padded
        Whether texts are filled up to the limit, as in the network's training; others are read at their end
        token.
    """

    network: str
    reads: str
    sees: EncoderKind
    head: str = "text projection"
    meaning: str = "text embedding, not normalised"
    padded: bool = False


def usual_classes(table: str) -> dict[str, dict[str, object]]:
    """Return `model_type` -> default transformers classes, for the types in a table of `networks.toml`.

    The values are defaults for the rows of the table: `network`, the class; for networks of pictures or clips
    also `processor`, the class that prepares pictures, and `of_clips`.
    """
    classes: dict[str, dict[str, object]] = {}
    for model_type in TABLES[table]:
        network = MODEL_MAPPING_NAMES.get(model_type, "")
        facts: dict[str, object] = {"network": network if isinstance(network, str) else network[0]}
        if table != "texts":
            processors = processor_names(model_type_to_module_name(model_type))
            if processors:
                facts["processor"] = processors[0].removesuffix("Pil")
            facts["of_clips"] = table == "videos"
        classes[model_type] = facts
    return classes


IMAGES = kinds("images", EncoderKind, usual_classes("images"))
VIDEOS = kinds("videos", EncoderKind, usual_classes("videos"))
PICTURES_BY_CLASS = kinds("pictures_by_class", EncoderKind, usual_classes("pictures_by_class"))
"""`model_type` -> what is known of networks whose pictures are read as their class says, and texts here."""
TEXTS = kinds("texts", TextKind, usual_classes("texts"), sees=IMAGES | VIDEOS | PICTURES_BY_CLASS)
"""`model_type` -> how its networks read pictures, videos, texts."""
INSIDE_CLASSIFIERS = kinds("inside_classifiers", EncoderKind, usual_classes("inside_classifiers"))
"""`model_type` -> how its networks are read inside a classifier, where they are read otherwise alone."""
