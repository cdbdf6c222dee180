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
from obygaze_features.backbones.weights import TABLES, read_specs

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
    """Return the first pooled vector of each clip, `[B, D]`: VideoPrism's `pooler_output` is `[B, 1, D]`."""
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
    """Encode texts, token ids `[B, L]`, by the text half of a network: vectors `[B, D]`.

    They are projected into the space that texts share with pictures.
    """
    pooled = model.text_model(input_ids=tokens).pooler_output
    vectors: torch.Tensor = model.text_projection(pooled)
    return vectors


def _causal_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode texts, token ids `[B, L]`, to vectors `[B, D]`; each token sees only itself and those before it.

    AIMv2 applies its causal mask only if an attention mask is given, here one of all tokens.
    """
    all_tokens = torch.ones_like(tokens)
    vectors: torch.Tensor = model.get_text_features(input_ids=tokens, attention_mask=all_tokens).pooler_output
    return vectors


def _masked_text(model: Any, tokens: torch.Tensor) -> torch.Tensor:
    """Encode padded texts, token ids `[B, L]`, to vectors `[B, D]`; a mask leaves out the padding tokens."""
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


def time_first(hidden: torch.Tensor, *, n_time_steps: int) -> torch.Tensor:
    """Reorder the patch tokens of clips, so that those of the first time step come first.

    Parameters
    ----------
    hidden
        `[B, 1 + P S, D]`: the class token, then for each position its S time steps.
    n_time_steps
        Time steps of a clip, S.

    Returns
    -------
    torch.Tensor
        `[B, 1 + S P, D]`: the class token, then for each time step its P positions.
    """
    n_clips, _, width = hidden.shape
    class_token = hidden[:, :1]
    patches = hidden[:, 1:]
    by_position = patches.reshape(n_clips, -1, n_time_steps, width)  # [B, P, S, D]
    by_time = by_position.transpose(1, 2)  # [B, S, P, D]
    return torch.cat([class_token, by_time.flatten(1, 2)], dim=1)


class EncoderSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How networks of one `model_type` are loaded and called, and what their vectors are.

    Parameters
    ----------
    network
        Class of transformers; given if it is not the default of the type.
    vector_meaning
        What the vector of a frame, or of a clip, is, in words.
    processor
        Class that prepares pictures if the folder of the weights has no processor's configuration; given
        if it is not the default of the type.
    citation
        The paper.
    siglip2_citation
        The paper on SigLIP 2, whose networks have the same `model_type` as SigLIP's; empty for other types.
    pooling
        How one vector is made of the network's output: a key of `VECTORS`.
    of_clips
        Whether its configuration names the frames of a clip: it takes `[B, T, 3, h, w]`, or mixes frames.
    called_part, call_arguments
        Name of the part of the network that is called, empty for all of it; and further arguments of the
        call.
    position_major
        Whether its tokens are ordered by position first, and by time within each position.
    size_field
        Field of the configuration with the side of the input; empty if it takes any multiple of a patch.
    n_prefix_tokens
        Number of tokens before the patch tokens, not counting registers.
    any_length
        Whether it takes any number of frames that is a multiple of a step in time.
    load_arguments
        Further arguments with which the class is loaded.
    untrained_config
        Fields in which the configuration of random weights differs from the class's default.
    family
        Name of the space that its vectors share with those of texts; empty if there is none.
    mixing_part
        Name of the part that mixes the frames of a clip; all other parts encode each frame by itself.
    clip_vector_meaning
        What the vector of a clip is, in words, if each frame has a vector too.
    token_meanings
        Value of the option `tokens` -> what these tokens are, in words.
    preset_names
        Presets whose names are used if a processor's configuration does the same.
    head, layer
        Head and layer whose output the vectors are, for the provenance.
    stacks
        The lists of its blocks, whose outputs can be stored as layers.
    """

    network: str
    vector_meaning: str
    processor: str
    citation: str
    siglip2_citation: str = ""
    pooling: str = "mean"
    of_clips: bool = False
    called_part: str = ""
    call_arguments: dict[str, bool] = {}
    position_major: bool = False
    size_field: str = "image_size"
    n_prefix_tokens: int = 1
    any_length: bool = False
    load_arguments: dict[str, bool] = {}
    untrained_config: dict[str, int] = {}
    family: str = ""
    mixing_part: str = ""
    clip_vector_meaning: str = "its mean over the frames"
    token_meanings: dict[str, str] = {}
    preset_names: tuple[str, ...] = ()
    head: str | None = None
    layer: str = "last hidden state"
    stacks: tuple[LayerStack, ...] = ()

    def pixels_argument(self) -> str:
        """Return the name of the argument with which pictures are passed to the network, or to its part."""
        main_argument: str = getattr(transformers, self.network).main_input_name
        # The main argument of a class that also reads texts is that of the texts.
        return main_argument if main_argument.startswith("pixel_values") else "pixel_values"

    def reader(self) -> Read:
        """Make the function that runs a network on prepared pixels, and returns its tokens and its vector.

        The vector is None where a type has none of its own; the mean of the tokens is used then. What the
        function needs of this object is read before, as torch.compile traces plain values alone.
        """
        vector_of = VECTORS[self.pooling]  # a function of the network and its output
        part_name = self.called_part
        pixels_argument = self.pixels_argument()
        further_arguments = self.call_arguments
        has_tokens_by_position = self.position_major

        def read(model: Any, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
            """Return the tokens, which are the last hidden state, and the vector or None."""
            part = getattr(model, part_name) if part_name else model
            output = part(**{pixels_argument: pixels}, **further_arguments)
            hidden = output.last_hidden_state
            if has_tokens_by_position:
                hidden = time_first(hidden, n_time_steps=pixels.shape[1])
            return hidden, vector_of(model, output)

        return read


class TextSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How the text halves of networks of one `model_type` are loaded, and what their vectors are.

    Parameters
    ----------
    network
        Class of transformers.
    pooling
        How one vector is made of the tokens of a text: a key of `TEXT_VECTORS`.
    vision
        How the vision half with the same space is read; its family and citation are the text half's too.
    pads_to_limit
        Whether texts are filled up to the limit, as in the network's training; others are read at their end
        token.
    """

    network: str
    pooling: str
    vision: EncoderSpec
    head: str = "text projection"
    meaning: str = "text embedding, not normalised"
    pads_to_limit: bool = False


def usual_fields(table: str) -> dict[str, dict[str, object]]:
    """Return `model_type` -> default fields of its entry in a table of `networks.toml`.

    An entry may leave out what transformers knows of the type. That is `network`, the class of the network,
    and `processor`, the class that prepares its pictures. Whether the network takes clips (`of_clips`)
    follows from the table. Networks of texts have no such fields but `network`.

    Parameters
    ----------
    table
        Name of the table: `texts` has networks that read texts, `videos` those that take clips, and all
        others those that take pictures.
    """
    fields_of_types: dict[str, dict[str, object]] = {}
    for model_type in TABLES[table]:
        network = MODEL_MAPPING_NAMES.get(model_type, "")  # transformers' table of types and their classes
        if not isinstance(network, str):  # several classes, the usual one first
            network = network[0]
        fields: dict[str, object] = {"network": network}
        if table != "texts":
            processors = processor_names(model_type_to_module_name(model_type))
            if processors:
                # The variant of a class that uses Pillow is called by the class's name here.
                fields["processor"] = processors[0].removesuffix("Pil")
            fields["of_clips"] = table == "videos"
        fields_of_types[model_type] = fields
    return fields_of_types


IMAGES = read_specs("images", EncoderSpec, usual_fields("images"))
VIDEOS = read_specs("videos", EncoderSpec, usual_fields("videos"))
PICTURES_BY_CLASS = read_specs("pictures_by_class", EncoderSpec, usual_fields("pictures_by_class"))
"""`model_type` -> what is known of networks whose pictures are read as their class says, and texts here."""
TEXTS = read_specs("texts", TextSpec, usual_fields("texts"), vision=IMAGES | VIDEOS | PICTURES_BY_CLASS)
"""`model_type` -> how its networks read pictures, videos, texts."""
INSIDE_CLASSIFIERS = read_specs("inside_classifiers", EncoderSpec, usual_fields("inside_classifiers"))
"""`model_type` -> how its networks are read inside a classifier, where they are read otherwise alone."""
