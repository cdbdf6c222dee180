"""Networks of transformers of any type that has no row in `networks.toml`: their class is inspected.

The signature of the class says how it is called, its own processor prepares the pictures, and its output
says which vector there is: `pooler_output` where that is one vector for each picture, else the mean of
`last_hidden_state` over its places. Transformers says too which class has it inside a classifier. What rows
say beyond that (whose texts share a space, where layers are, which tokens are patches) is not known of such a
type, and not offered.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.class_calls import (
    ClassCall,
    call_of,
    clip_fields,
    network_class,
    pooler_off_arguments,
)
from obygaze_features.backbones.classifiers import (
    TIMM,
    classifier_class,
    is_of_a_classifier,
    load_classifier,
)
from obygaze_features.backbones.encoder_specs import HEADS
from obygaze_features.backbones.own_processor import NUMBER_BITS, OwnProcessor, call_processor
from obygaze_features.backbones.weights import TABLES, Weights
from obygaze_features.errors import BackboneError
from obygaze_features.text import counted

POOLER, HIDDEN = "pooler_output", "last_hidden_state"
"""Fields of a network's output: the vector of a picture or clip; its tokens."""
LANGUAGE_PARTS = ("language_model", "text_model", "lm_head", "decoder")
"""Parts of networks that read or write texts, which no picture passes: they are dropped once loaded."""
DOCUMENTATION_URL = "https://huggingface.co/docs/transformers/model_doc/"
"""Address of the pages on families of networks, without the family's name."""
VISION_CONFIGS: Mapping[str, str] = TABLES["seeing_halves"]
"""Type of networks that join pictures and sound -> path of the vision half's configuration in theirs."""
N_FRAMES = 32
"""Frames of a clip, of networks that see pictures one by one."""
USUAL_CLIP_FRAMES = 16
"""Frames of a clip of a network whose configuration names no number."""


class RowsError(BackboneError):
    """A network gave another number of rows than pictures or clips went in."""


@dataclass(frozen=True)
class InspectedType:
    """How to load and call a transformers network whose type has no row in `networks.toml`.

    Parameters
    ----------
    weights
        The weights.
    model_type
        Their `model_type`.
    cls, config
        Class and configuration of the network.
    call
        How the class, or the classifier around it, is called.
    in_classifier
        Whether the network is loaded inside its classifier.
    is_vision_half
        Whether `cls` and `config` are those of the vision half of a network that joins pictures and sound,
        whose other tensors are not used.
    """

    weights: Weights
    model_type: str
    cls: Any
    config: Any
    call: ClassCall
    in_classifier: bool = False
    is_vision_half: bool = False

    def network(self) -> nn.Module:
        """Load the network with its weights.

        It is loaded inside its classifier if `in_classifier` is True, else without its parts for texts.
        """
        # Where a class can leave out its pooling layer, the weights may lack the layer, and it would get
        # random numbers: it is left out. Where a class has no argument for that, the layer is trained.
        arguments_without_pooler = pooler_off_arguments(self.cls)
        pooler_is_trained = arguments_without_pooler == {}
        if self.in_classifier:
            return load_classifier(self.weights, self.model_type, self.config, keeps_pooler=pooler_is_trained)
        network: nn.Module = load_pretrained(
            self.cls,
            self.weights,
            self.config,
            allow_unexpected=self._names_of_unused_tensors(),
            **arguments_without_pooler,
        )
        # A network that joins pictures and texts has a method for pictures alone, `get_image_features`.
        reads_texts_too = self.call.method != "forward"
        if reads_texts_too:
            _drop_language_parts(network)
        return network

    def _names_of_unused_tensors(self) -> list[str]:
        """List patterns of the names of tensors that the weights may have and the network does not.

        These are the tensors of known heads, such as those of a training. If the network is the half of one
        for pictures and sound, they are all tensors outside this half too.
        """
        patterns = [*HEADS]
        if self.is_vision_half:
            # The names of its tensors begin with the prefix of its class. Those of all others do not.
            prefix = re.escape(self.cls.base_model_prefix)
            patterns.append(rf"(?!{prefix}\.).*")
        return patterns

    def vision_config(self) -> Any:
        """Return the configuration of the part that sees; the whole one if the network has no other part."""
        return _vision_config(self.config)

    def frames(self, backbone: str, n_frames: int | None) -> int:
        """Return the number of frames that the network gets of each clip: as the user says, or its default.

        The default of networks of pictures is `N_FRAMES`. That of networks of clips is the number in their
        configuration, or `USUAL_CLIP_FRAMES` if the configuration has none.

        Parameters
        ----------
        backbone
            `image` or `video`, the backbone that the user named.
        n_frames
            Number of frames by the user; None for the network's default.

        Raises
        ------
        BackboneError
            If the network takes single pictures and `backbone` is `video`, or it takes clips and `backbone`
            is `image`.
        """
        takes_clips = self.call.form == "clips"
        right_backbone = "video" if takes_clips else "image"
        if backbone != right_backbone:
            inputs = "clips" if takes_clips else "pictures"
            raise BackboneError(
                f"{self.weights.name}: a network of type {self.model_type!r} sees {inputs}: "
                f"--backbone {right_backbone}"
            )
        if n_frames:
            return n_frames
        return self._clip_frames_in_config() if takes_clips else N_FRAMES

    def _clip_frames_in_config(self) -> int:
        """Return the number of frames in the configuration of a network of clips, or `USUAL_CLIP_FRAMES`."""
        config = self.vision_config()
        frames_field = clip_fields(config).frames_field
        if not frames_field:
            return USUAL_CLIP_FRAMES
        n_frames: int = getattr(config, frames_field)
        return n_frames

    def record(self) -> dict[str, Any]:
        """Return the provenance fields of the network: its configuration, and the page that documents it."""
        family = self.cls.__module__.split(".")[-2]  # `vit` of `transformers.models.vit.modeling_vit`
        return {
            "architecture": {"type": self.model_type, **plain_config(self.vision_config())},
            "citation": DOCUMENTATION_URL + family,
        }


def _drop_language_parts(network: nn.Module) -> None:
    """Remove the parts of a network that read or write texts, which frees their memory."""
    for part in LANGUAGE_PARTS:
        if isinstance(getattr(network, part, None), nn.Module):
            setattr(network, part, None)


def inspect_type(weights: Weights, model_type: str, backbone: str, *, answers: bool = False) -> InspectedType:
    """Find out from the classes of transformers how networks of a type are loaded and called.

    The class is that of the network; of a network that joins pictures and sound, that of its vision half. But
    a network that was saved inside its classifier is loaded and called through the class of the classifier.

    Parameters
    ----------
    weights
        The weights.
    model_type
        Their `model_type`.
    backbone
        `image` or `video`.
    answers
        Whether the class probabilities are wanted, so that the classifier is needed.

    Raises
    ------
    BackboneError
        If transformers does not know the type, the network takes more than pictures, or a wanted classifier
        is missing.
    """
    # The class that has the weights, with its configuration.
    config = auto_config(weights, model_type)
    type_of_class = model_type
    is_vision_half = model_type in VISION_CONFIGS
    if is_vision_half:
        path_in_config = VISION_CONFIGS[model_type]  # such as `audio_video_config.video_config`
        config = attrgetter(path_in_config)(config)
        type_of_class = config.model_type
    cls = network_class(type_of_class, weights.name)

    # How it, or the classifier around it, is called: the signature says which arguments it takes.
    in_classifier = answers or is_of_a_classifier(weights, model_type)
    called_class = classifier_class(weights, model_type) if in_classifier else cls
    call = call_of(called_class, backbone, weights.name)
    # Some networks of clips have the signature of a network of pictures. A number of frames in their
    # configuration tells them.
    has_number_of_frames = clip_fields(_vision_config(config)).frames_field != ""
    if call.form == "pictures" and has_number_of_frames:
        call = replace(call, form="clips")

    return InspectedType(
        weights=weights,
        model_type=model_type,
        cls=cls,
        config=config,
        call=call,
        in_classifier=in_classifier,
        is_vision_half=is_vision_half,
    )


def _vision_config(config: Any) -> Any:
    """Return the configuration of the part that sees; the whole one if the network has no other part."""
    return getattr(config, "vision_config", None) or config


def module_of(
    inspected: InspectedType, processor: OwnProcessor
) -> "DensePictures | DenseClips | PackedPictures":
    """Load a transformers network, and wrap it in a torch module that takes prepared clips and gives vectors.

    Parameters
    ----------
    inspected
        The network, and whether it takes pictures, clips or patches.
    processor
        What prepares its pictures; only a network of patches reads it.
    """
    model = inspected.network()
    if inspected.call.form == "clips":
        return DenseClips(model, inspected.call)
    if inspected.call.form == "pictures":
        return DensePictures(model, inspected.call)
    # The network may need further results of the processor, such as how many patches are merged to one. They
    # are the same for all frames.
    black_frame = np.zeros((64, 64, 3), np.uint8)
    picture = call_processor(processor.name, processor.settings, black_frame)
    return PackedPictures(model, inspected.call, processor, picture.other_arguments)


class Vectors(NamedTuple):
    """One vector for each picture, and the name of the output that they come from.

    Attributes
    ----------
    values
        `[N, D]`.
    meaning
        For example `pooler_output`, or how `last_hidden_state` was averaged.
    """

    values: torch.Tensor
    meaning: str


def picture_vectors(output: Any, patch_counts: Sequence[int]) -> Vectors:
    """Reduce the output of a network to one vector `[D]` for each of N pictures (or clips).

    The vector is `pooler_output` where there is one for each picture, else the mean of `last_hidden_state`.

    Parameters
    ----------
    output
        Output of a transformers network for N pictures.
    patch_counts
        Number of patches of each picture, for networks that return the patches of all pictures in one
        sequence; N times 1 for other networks.

    Raises
    ------
    RowsError
        If no output has one row, or a whole number of rows, for each picture.
    """
    n_pictures = len(patch_counts)
    pooled = _pooler_vectors(output, n_pictures)
    if pooled is not None:
        return Vectors(pooled, POOLER)

    hidden = _hidden_state(output)  # a tensor, or a list with a tensor for each picture
    if not torch.is_tensor(hidden):
        return _means_of_list(hidden, n_pictures)
    has_row_per_picture = len(hidden) == n_pictures
    if has_row_per_picture:
        return _means_over_positions(hidden)
    if hidden.ndim == 2:  # the rows of all pictures, one picture after the other
        n_rows_of_pictures = _rows_of_pictures(len(hidden), patch_counts)
        rows_by_picture = torch.split(hidden, n_rows_of_pictures)
        means = [rows.mean(dim=0) for rows in rows_by_picture]
        return Vectors(torch.stack(means), f"mean of {HIDDEN} over its patches")
    raise RowsError(f"{counted(n_pictures, 'picture')} gave {counted(len(hidden), 'row')}")


def _hidden_state(output: Any) -> Any:
    """Return the vectors in a network's output of which a picture's mean is taken.

    They are the output itself if it is a tensor, else its `last_hidden_state`. An output without
    `last_hidden_state` may have several vectors for each picture as `pooler_output`, which are then taken.

    Returns
    -------
    torch.Tensor or list
        A tensor; or a list with a tensor `[T, D]` for each picture.

    Raises
    ------
    RowsError
        The output has none of these.
    """
    if torch.is_tensor(output):
        return output
    hidden = getattr(output, HIDDEN, None)
    if hidden is None:
        hidden = getattr(output, POOLER, None)
    if torch.is_tensor(hidden) or isinstance(hidden, tuple | list):
        return hidden
    outputs = ", ".join(output.keys()) if isinstance(output, Mapping) else type(output).__name__
    raise RowsError(f"its output has neither {POOLER} nor {HIDDEN} ({outputs})")


def _pooler_vectors(output: Any, n_pictures: int) -> torch.Tensor | None:
    """Return the field `pooler_output` of a network's output as `[N, D]`, one vector for each picture.

    None if there is no such field, or it has not one vector for each picture: `[N, T, D]` is T vectors, but
    `[N, D, 1, 1]`, which convolutional networks give, is one.
    """
    pooled = getattr(output, POOLER, None)
    if not torch.is_tensor(pooled) or pooled.ndim < 2 or len(pooled) != n_pictures:
        return None
    further_lengths = pooled.shape[2:]
    has_one_vector = all(length == 1 for length in further_lengths)
    return pooled.flatten(1) if has_one_vector else None


def _means_of_list(hidden: Sequence[Any], n_pictures: int) -> Vectors:
    """Average the tokens of each picture, from a list with a tensor `[T, D]` for each; return `[N, D]`.

    Pictures may have different numbers of tokens.

    Raises
    ------
    RowsError
        If the list has not one tensor for each picture.
    """
    if len(hidden) != n_pictures:
        raise RowsError(f"{counted(n_pictures, 'picture')} gave {counted(len(hidden), 'row')}")
    means = [rows.reshape(-1, rows.shape[-1]).mean(dim=0) for rows in hidden]
    return Vectors(torch.stack(means), f"mean of {HIDDEN} over its tokens")


def _means_over_positions(hidden: torch.Tensor) -> Vectors:
    """Average tokens `[N, T, D]`, or the positions of maps `[N, D, h, w]` or `[N, h, w, D]`, to `[N, D]`.

    Vectors `[N, D]` stay as they are.
    """
    if hidden.ndim == 2:
        return Vectors(hidden, HIDDEN)
    if hidden.ndim == 3:
        return Vectors(hidden.mean(dim=1), f"mean of {HIDDEN} over its tokens")
    # Pictures are square, so that height and width are the two equal axes. Maps whose three axes are all
    # equal count as [N, D, h, w], the layout of torch.
    _, second, third, fourth = hidden.shape
    channels_last = second == third and third != fourth
    height_and_width = (1, 2) if channels_last else (2, 3)
    return Vectors(hidden.mean(dim=height_and_width), f"mean of {HIDDEN} over its places")


def _rows_of_pictures(n_rows: int, patch_counts: Sequence[int]) -> list[int]:
    """Return how many rows of a network's output belong to each picture.

    Some networks merge patches: 4 patches to a row, for example. Every row has the same number of patches. So
    pictures of 8 and 12 patches that give 5 rows together have 2 and 3 of them.

    Parameters
    ----------
    n_rows
        Number of rows of the output, of all pictures together.
    patch_counts
        Number of patches of each picture.

    Raises
    ------
    RowsError
        If the rows cannot be divided among the pictures.
    """
    n_patches = sum(patch_counts)
    patches_per_row = n_patches // max(n_rows, 1)  # without rows the patches do not fit, see below
    fits = patches_per_row > 0 and n_rows * patches_per_row == n_patches
    has_whole_rows = fits and all(count % patches_per_row == 0 for count in patch_counts)
    if not has_whole_rows:
        raise RowsError(f"{counted(len(patch_counts), 'picture')} gave {counted(n_rows, 'row')}")
    return [count // patches_per_row for count in patch_counts]


class DensePictures(nn.Module):
    """A network of pictures of one size, applied to all frames of clips.

    It takes whole pictures ("dense"), unlike `PackedPictures`, which takes their patches.

    Attributes
    ----------
    meaning
        From which output of the network its vectors come, such as `pooler_output`, as the last call found
        out; empty before the first call.
    """

    def __init__(self, model: nn.Module, call: ClassCall) -> None:
        """Hold the network, and the method and arguments (`call`) by which it is called with pictures."""
        super().__init__()
        self.model = model
        self.call = call
        self.meaning = ""  # not known before the first output

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`: return `frames` [B, F, D] and their means `pooled` [B, D].

        Also notes in `meaning` which output of the network the vectors come from: that is only seen in the
        output.
        """
        n_clips, n_frames = pixels.shape[:2]
        pictures = pixels.flatten(0, 1)  # [B F, 3, h, w]
        output = _called(self.model, self.call, {self.call.pixels_argument: pictures})
        no_patches = [1] * len(pictures)  # pictures are not cut into patches before the network
        vectors = picture_vectors(output, patch_counts=no_patches)
        self.meaning = vectors.meaning
        frames = vectors.values.reshape(n_clips, n_frames, -1)
        return {"frames": frames, "pooled": frames.float().mean(dim=1)}


class DenseClips(nn.Module):
    """A network of whole clips; it also gives `frames` if its output has one row for each frame.

    It takes whole pictures ("dense"), not patches of them.

    Attributes
    ----------
    meaning
        From which output of the network its vectors come, such as `pooler_output`, as the last call found
        out; empty before the first call.
    """

    def __init__(self, model: nn.Module, call: ClassCall) -> None:
        """Hold the network, and the method and arguments (`call`) by which it is called with pictures."""
        super().__init__()
        self.model = model
        self.call = call
        self.meaning = ""  # not known before the first output

    def forward(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips `[B, F, 3, h, w]`: return `pooled` [B, D], and `frames` [B, F, D] where possible.

        There are `frames` if the network gives one token for each frame. Also sets `meaning`, the output of
        the network that the vectors come from.
        """
        n_clips, n_frames = pixels.shape[:2]
        output = _called(self.model, self.call, {self.call.pixels_argument: pixels})
        vectors = picture_vectors(output, patch_counts=[1] * n_clips)
        self.meaning = vectors.meaning
        results = {"pooled": vectors.values.float()}
        hidden: Any = getattr(output, HIDDEN, None)
        # The class does not say what its tokens stand for. If there are as many as frames, they are taken for
        # the frames.
        has_token_per_frame = torch.is_tensor(hidden) and hidden.ndim == 3 and hidden.shape[1] == n_frames
        if has_token_per_frame:
            results["frames"] = hidden
        return results


def _called(model: nn.Module, call: ClassCall, arguments: Mapping[str, Any]) -> Any:
    """Call a network by the method that takes pictures alone, such as `forward`; return its output."""
    method = getattr(model, call.method)
    return method(**arguments)


class PackedPictures(nn.Module):
    """A network that takes patches in place of pictures, applied to all frames of clips.

    Frames reach a network as 8-bit arrays of one size with three channels. How many patches a frame has
    depends on its form, so `OwnProcessor` packs a frame into P + 1 rows of D elements, with room for P
    patches of D elements each. The first row is the header: the number of patches that are used, then their
    grid. The rows after it are the patches; unused ones are last. All rows together are stored as an array
    `[P + 1, D / 3, 3]`, which arrives here with the channels first, `[3, P + 1, D / 3]`.

    Parameters
    ----------
    model, call
        The network, and how it is called.
    processor
        What prepared the pictures; its scale and shift are applied here to the values of a patch.
    other_arguments
        Name of an argument that the processor gives -> its value, among them those in `call.other_arguments`.

    Attributes
    ----------
    meaning
        From which output of the network its vectors come, as the last call found out; empty before.
    """

    scale: torch.Tensor
    shift: torch.Tensor

    def __init__(
        self, model: nn.Module, call: ClassCall, processor: OwnProcessor, other_arguments: Mapping[str, Any]
    ) -> None:
        """Store the network, its further arguments, and the scale and shift that turn bytes into values."""
        super().__init__()
        self.model = model
        self.call = call
        self.meaning = ""
        # The header of a packed picture, its first row, has the number of patches and then the sides of their
        # grid. These are time, height and width for networks called with grids, and height and width for
        # those called with shapes (`ClassCall.form`).
        self.n_grid_sides = 3 if call.form == "grid" else 2
        self.further_values: dict[str, NDArray[Any]] = {}  # required argument -> its value for one picture
        for name in call.other_arguments:
            if name not in other_arguments:
                raise BackboneError(f"{type(model).__name__}.{call.method} needs {name} beside pictures")
            self.further_values[name] = np.asarray(other_arguments[name])
        self.register_buffer("scale", torch.tensor(processor.scale), persistent=False)
        self.register_buffer("shift", torch.tensor(processor.shift), persistent=False)

    def forward(self, prepared: torch.Tensor) -> dict[str, torch.Tensor]:
        """Encode clips of packed patches `[B, F, 3, P + 1, D / 3]`: `frames` [B, F, E], `pooled` [B, E].

        A frame comes as P + 1 rows of D elements: a header, with the number of used patches and the lengths
        of their grid, and then the patches. Also notes in `meaning` which output of the network the vectors
        come from: that is only seen in the output.
        """
        n_clips, n_frames = prepared.shape[:2]
        rows = _packed_rows(prepared)  # [N, P + 1, D], of the N = B F pictures
        headers = rows[:, 0]
        patches = rows[:, 1:] * self.scale + self.shift  # [N, P, D]

        # A header has the number of used patches, then the sides of their grid (two or three).
        header_numbers = _decode_numbers(headers, 1 + self.n_grid_sides)  # [N, 3 or 4]
        patch_counts = header_numbers[:, 0]
        grids = header_numbers[:, 1:]

        arguments = {
            **self._further_arguments(len(rows), prepared.device),
            **self._patch_arguments(patches, patch_counts),
            self.call.grid_argument: grids,
        }
        output = _called(self.model, self.call, arguments)
        vectors = self._vectors(output, patch_counts.tolist())
        self.meaning = vectors.meaning
        frames = vectors.values.reshape(n_clips, n_frames, -1)
        return {"frames": frames, "pooled": frames.float().mean(dim=1)}

    def _patch_arguments(self, patches: torch.Tensor, patch_counts: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the arguments that hold the patches, and the mask if the network takes one.

        A network that takes grids gets the used patches of all pictures as one sequence. A network that takes
        shapes gets P patches for every picture; the unused ones are 0, and the mask leaves them out.

        Parameters
        ----------
        patches
            Patches of each picture, `[N, P, D]`; those after its count are unused.
        patch_counts
            Number of used patches of each picture, `[N]`.
        """
        is_used = torch.arange(patches.shape[1], device=patches.device) < patch_counts[:, None]  # [N, P]
        if self.call.form == "grid":
            return {self.call.pixels_argument: patches[is_used]}  # [used patches, D]
        arguments = {self.call.pixels_argument: patches * is_used[:, :, None]}
        if self.call.mask_argument:
            arguments[self.call.mask_argument] = is_used.long()
        return arguments

    def used_rows(self, prepared: torch.Tensor) -> torch.Tensor:
        """Return which rows of the frames of packed clips are used, bool `[B, F, P + 1]`.

        A frame is packed into P + 1 rows. Row 0 is its header, which begins with the number of its patches.
        So many rows after it hold patches; the rows behind these are unused, as the frame has fewer patches
        than there is room for. With 2 patches and room for 4, the rows 0, 1 and 2 are used.

        Parameters
        ----------
        prepared
            Packed frames of clips, `[B, F, 3, P + 1, D / 3]`: see the class.
        """
        n_clips, n_frames = prepared.shape[:2]
        rows = _packed_rows(prepared)  # [N, P + 1, D], of the N = B F frames
        headers = rows[:, 0]
        patch_counts = _decode_numbers(headers, n_numbers=1)  # [N, 1]
        row_numbers = torch.arange(rows.shape[1], device=prepared.device)
        is_used = row_numbers <= patch_counts  # [N, P + 1]
        return is_used.reshape(n_clips, n_frames, -1)

    def _vectors(self, output: Any, patch_counts: list[int]) -> Vectors:
        """Reduce a network's output to one vector for each picture, without tokens of unused patches.

        It is the network's own vector (`pooler_output`) if there is one. Else it is the mean over the tokens
        of the picture's patches.

        Parameters
        ----------
        output
            Output of the network for N pictures.
        patch_counts
            Number of used patches of each picture.
        """
        n_pictures = len(patch_counts)
        has_own_vectors = _pooler_vectors(output, n_pictures) is not None
        hidden: Any = getattr(output, HIDDEN, None)
        # A network that gets P patches for every picture gives tokens [N, P, D], also of unused patches. One
        # that gets the used patches of all pictures in one sequence gives [used patches, D].
        has_tokens_of_unused = torch.is_tensor(hidden) and hidden.ndim == 3 and len(hidden) == n_pictures
        if has_own_vectors or not has_tokens_of_unused:
            return picture_vectors(output, patch_counts)

        means = []
        for tokens, n_used in zip(hidden, patch_counts, strict=True):
            means.append(tokens[:n_used].mean(dim=0))
        return Vectors(torch.stack(means), f"mean of {HIDDEN} over its patches")

    def _further_arguments(self, n_pictures: int, device: torch.device) -> dict[str, Any]:
        """Return the network's further required arguments, such as a size, repeated for each picture.

        They are tensors on the device of the network: name -> tensor.
        """
        arguments: dict[str, Any] = {}
        for name, value in self.further_values.items():
            arguments[name] = torch.from_numpy(value.ravel()).to(device).repeat(n_pictures)
        return arguments


def _packed_rows(prepared: torch.Tensor) -> torch.Tensor:
    """Return the rows of packed frames, `[B F, P + 1, D]`: for each frame a header, and then P patches.

    Frames reach a network as pictures with three channels. So the D elements of a row were stored as a line
    of D / 3 pixels of three channels each, and the channels then came first, as in all pictures for networks.
    Here they come last again, so that the elements of a row are together and in their order.

    Parameters
    ----------
    prepared
        Packed frames of B clips of F frames, `[B, F, 3, P + 1, D / 3]`.

    Examples
    --------
    One clip of one frame with P = 1: two rows of D = 6 elements.

    >>> rows = torch.arange(12).reshape(2, 6)
    >>> as_picture = rows.reshape(2, 2, 3)  # [P + 1, D / 3, 3]
    >>> prepared = as_picture.permute(2, 0, 1)[None, None]
    >>> _packed_rows(prepared)
    tensor([[[ 0,  1,  2,  3,  4,  5],
             [ 6,  7,  8,  9, 10, 11]]])
    """
    channels_first = prepared.flatten(0, 1)  # [N, 3, P + 1, D / 3]
    channels_last = channels_first.permute(0, 2, 3, 1)  # [N, P + 1, D / 3, 3]
    return channels_last.flatten(2)


def _decode_numbers(headers: torch.Tensor, n_numbers: int) -> torch.Tensor:
    """Decode the first whole numbers, int64 `[N, n_numbers]`, of the headers `[N, D]` of packed pictures.

    Each number takes `NUMBER_BITS` elements, one for each bit, the lowest bit first. An element is 0 or 255:
    larger numbers would not survive the half precision in which a network may get them.
    """
    elements = headers[:, : n_numbers * NUMBER_BITS]
    is_set = elements > 127  # half-way from 0 to 255
    bits = is_set.long().reshape(len(headers), n_numbers, NUMBER_BITS)
    powers = 2 ** torch.arange(NUMBER_BITS, device=headers.device)
    return (bits * powers).sum(dim=2)


def type_of(weights: Weights) -> str:
    """Return the `model_type` of weights, by their configuration; `TIMM` for a configuration of timm.

    Random weights have their type in their name: `vit` in `random:7:vit`.

    Raises
    ------
    BackboneError
        If random weights name no type, or there is no configuration.
    """
    if weights.seed is not None:
        if not weights.network:
            raise BackboneError(f"{weights.name}: expected random:{weights.seed}:TYPE")
        return weights.network
    config = weights.config()
    is_of_timm = "model_type" not in config and "architecture" in config
    return TIMM if is_of_timm else str(config.get("model_type"))
