"""`waveform`: networks that hear: wav2vec 2.0, HuBERT, WavLM, AST, the audio half of CLAP, Whisper's encoder.

The class follows from the configuration beside the weights, and samples are prepared by the feature extractor
of transformers with the numbers beside them. The sound of a clip is cut into equal windows, as few as the
network's longest input allows; they are filled up only where the network's input has one length. Its steps in
time are averaged over each part of the clip, between the midpoints of sampled frames.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
from msgspec import Struct
from numpy.typing import NDArray
from transformers.models.auto import feature_extraction_auto
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
    MODEL_MAPPING_NAMES,
)

from obygaze_features.backbones.answers import ClassifierBase, answers_fields, is_multi_label, named_classes
from obygaze_features.backbones.backbone import ANSWERS, Backbone, BackboneOutput, Hearing
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute, inference, is_out_of_memory
from obygaze_features.backbones.encoder_kinds import TRAINING
from obygaze_features.backbones.layered import Depth, LayerHooks, depths_of, layer_groups
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import side_group
from obygaze_features.backbones.runner import BatchSize
from obygaze_features.backbones.weights import TABLES, Weights, find_weights, kinds, object_beside
from obygaze_features.errors import BackboneError, first_line

EXTRACTOR = "preprocessor_config.json"
"""File beside the weights that says how samples are prepared."""
LONGEST_S = 30.0
"""Seconds that a network with inputs of any length hears at once."""
WHISPER = "WhisperModel"
"""The class whose encoder alone hears."""
TRAINING_MASK = r"(\w+\.)?masked_spec_embed"
"""The tensor of what training masks, in a file with a classifier."""
SHORTEST_SAMPLES = 400
"""Samples of the first step of wav2vec 2.0 and its kin; fewer are padded with silence."""
SLOWEST_RATE = 4_000
"""Fewest samples a second that a feature extractor may ask for."""
FASTEST_RATE = 192_000
"""Most samples a second that a feature extractor may ask for."""
WINDOWS_AT_ONCE = 8
"""Windows of a clip that go through the network at once."""

Steps = Callable[[Any, Any, int], Any]
"""Turns a network's output, its configuration and the samples of a window into steps `[B, S, D]`."""


class WaveformKind(Struct, frozen=True, forbid_unknown_fields=True):
    """How networks of one type are read.

    Parameters
    ----------
    network, extractor
        Names of classes of transformers; stated where they are not the usual ones of the type.
    reads
        Key of `STEPS` for the network's output.
    reads_layers
        Key of `STEPS` for the output of its layers; empty is the one of `reads`.
    meaning
        What a step is, for the provenance.
    longest, a_second
        Attribute of the extractor with the length of the longest window, and how many of its units make a
        second; empty if the network takes any length.
    agree
        Field of the extractor -> field of the configuration that must be equal.
    unexpected
        Patterns of tensors in the files that are not used.
    stacks
        Where the layers of these networks are.
    classifier
        Class of transformers for weights with a classifier; empty if transformers has none.
    half
        Dotted name of the field of the configuration that is about the half that hears; empty if all of the
        network does.
    """

    network: str
    extractor: str
    meaning: str
    citation: str
    reads: str = "hidden"
    longest: str = ""
    a_second: int = 1
    agree: dict[str, str] = {}
    unexpected: tuple[str, ...] = ()
    stacks: tuple[LayerStack, ...] = ()
    reads_layers: str = ""
    classifier: str = ""
    half: str = ""

    def hearing_config(self, config: Any) -> Any:
        """Return the part of a configuration that describes the audio network."""
        return attrgetter(self.half)(config) if self.half else config

    def longest_s(self, extractor: Any) -> float:
        """Return the length of the longest window that the network takes, in seconds."""
        if not self.longest:
            return LONGEST_S
        return float(getattr(extractor, self.longest) / self.a_second)


def _whisper_steps(output: Any, _config: Any, n_samples: int) -> Any:
    """Return the steps of a Whisper encoder `[B, S, D]` that belong to the sound, not to the padding."""
    # A step is made of two frames of 10 ms, at 16,000 samples a second.
    n_steps = max(n_samples // 320, 1)
    return output.last_hidden_state[:, :n_steps]


def _ast_steps(output: Any, config: Any, n_samples: int) -> Any:
    """Average an AST's patches of each time over frequency, `[B, S, D]`, without those of the padding."""
    n_bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1
    patches = output.last_hidden_state[:, 2:]  # the first two tokens stand for the whole input
    steps = patches.unflatten(1, (n_bands, -1)).mean(dim=1)  # [B, S, D]
    # A frame is 10 ms at 16,000 samples a second, and patches begin every `time_stride` frames.
    n_steps = max(n_samples // (160 * config.time_stride), 1)
    return steps[:, :n_steps]


STEPS: Mapping[str, Steps] = {
    "hidden": lambda output, _config, _n_samples: output.last_hidden_state,
    "after class token": lambda output, _config, _n_samples: output.last_hidden_state[:, 1:],
    "whisper": _whisper_steps,
    "ast": _ast_steps,
    "clap": lambda output, _config, _n_samples: output.audio_embeds[:, None],
    "window": lambda output, _config, _n_samples: output.last_hidden_state.mean(dim=1, keepdim=True),
}
"""How the steps in time, which divide a window evenly, are read from a network's output."""


def _usual_classes() -> dict[str, dict[str, object]]:
    """Return the usual transformers classes of the types in the table `sounds`, by `model_type`.

    They are defaults for the table's rows: `network`, `extractor` and `classifier`, as far as they exist.
    """
    tables = {
        "network": MODEL_MAPPING_NAMES,
        "extractor": vars(feature_extraction_auto)["FEATURE_EXTRACTOR_MAPPING_NAMES"],
        "classifier": MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
    }
    classes: dict[str, dict[str, object]] = {}
    for model_type in TABLES["sounds"]:
        classes[model_type] = {}
        for field, class_names in tables.items():
            if model_type in class_names:
                classes[model_type][field] = class_names[model_type]
    return classes


KINDS = kinds("sounds", WaveformKind, _usual_classes())
"""`model_type` -> how its networks are read."""

AUDIOSET = 527
"""Number of classes of AudioSet, several of which may be heard at once: each has a probability of its own."""


class Part(NamedTuple):
    """An output of the encoder with a vector for each step: the network's, a layer's, or class probabilities.

    Attributes
    ----------
    side
        Name of its side group; empty for the backbone's main group.
    width
        Length of a vector.
    """

    side: str
    width: int

    @property
    def prefix(self) -> str:
        """What the names of its arrays begin with: empty, or `SIDE/`."""
        return f"{self.side}/" if self.side else ""


def waveform(
    n_frames: int = 32,
    *,
    weights: str,
    track: str = "",
    layers: Layers | str | None = None,
    answers: bool = False,
    compute: Compute | None = None,
) -> Backbone:
    """Build the backbone of an audio network, for clips of `n_frames` sampled frames.

    Parameters
    ----------
    n_frames
        Sampled frames of a clip; the sound is averaged around each of them.
    weights
        Weights of a type of `KINDS`; `random:SEED` is an untrained wav2vec 2.0.
    track
        Language (`fra`) or number of the sound track; empty is the one that players choose by default.
    layers
        Layers that are stored too, each as a side group.
    answers
        Whether to store the probabilities of its classifier's classes too, by their names.
    compute
        Device and precision.

    Raises
    ------
    BackboneError
        If the network's type is not in `KINDS`, or a file in its folder is missing or does not fit it.
    """
    source = find_weights(weights)
    config = transformers.Wav2Vec2Config() if source.seed is not None else auto_config(source)
    kind = KINDS.get(config.model_type)
    if kind is None:
        raise BackboneError(
            f"{source.name}: a network of type {config.model_type!r} is not one that hears here; "
            f"there is {', '.join(KINDS)}"
        )
    audio_config = kind.hearing_config(config)
    for masking in ("mask_time_prob", "mask_feature_prob"):
        if hasattr(audio_config, masking):  # done in training, with a tensor that is not needed then
            setattr(audio_config, masking, 0.0)
    extractor = _extractor(source, kind, audio_config)
    if answers:
        loaded = _load_classifier(source, kind, audio_config)
    else:
        loaded = _load_network(source, kind, audio_config)
    contents = _encoder_parts(
        loaded, kind, audio_config, Layers.of(layers), f"backbone 'waveform', {source.name}"
    )
    parts = contents.parts
    compute = compute or Compute()
    outputs = _outputs(parts, n_frames, compute.frames_dtype(), of_layers=contents.has_layer_frames)
    encoder = WaveformEncoder(
        loaded.called, audio_config, extractor, kind, compute, depths=contents.depths, parts=parts
    )
    provenance = {
        "head": "projection" if config.model_type == "clap" else None,
        "layer": kind.meaning,
        "arrays": {"frames": f"mean over each part of: {kind.meaning}", "pooled": "mean of the frames"},
        **source.record(),
        "architecture": {"type": config.model_type, **plain_config(audio_config)},
        "preset": {
            "name": kind.extractor,
            "resize": f"{encoder.rate} samples a second, mono, by libswresample",
            "crop": f"equal windows of at most {encoder.longest_s:g} s",
            "constants": plain_config(extractor),
            "order": "mono, resample, extract",
            "track": track,
        },
        "compute": compute.record(loaded.called.config._attn_implementation),
        "citation": kind.citation,
    }
    side_groups = []
    for side, fields in contents.side_group_fields.items():
        side_groups.append(side_group("waveform", side, outputs, provenance, fields))
    return Backbone(
        name="waveform",
        n_frames=n_frames,
        prepare=np.asarray,
        encode=encoder,
        outputs=tuple(output for output in outputs if "/" not in output.name),
        provenance=provenance,
        libraries=("torch", "transformers"),
        hears=Hearing(encoder.rate, track),
        side_groups=tuple(side_groups),
    )


class _EncoderParts(NamedTuple):
    """The outputs of an encoder.

    Attributes
    ----------
    parts
        The network's vectors, then those of layers, then class probabilities.
    depths
        The layers.
    side_group_fields
        Name of each side group -> fields of its provenance that differ from those of the backbone.
    has_layer_frames
        Whether layers have a vector for each frame too.
    """

    parts: list[Part]
    depths: list[Depth]
    side_group_fields: dict[str, dict[str, Any]]
    has_layer_frames: bool


def _encoder_parts(
    loaded: "LoadedSound", kind: WaveformKind, config: Any, layers: Layers | None, where: str
) -> _EncoderParts:
    """List the outputs of an encoder: the network's vectors, the wanted layers, and class probabilities.

    Parameters
    ----------
    loaded, kind
        The network, and how it is read.
    config
        Configuration of the audio network.
    layers
        The wanted layers; None for none.
    where
        The network, for messages.
    """
    is_clap = config.model_type == "clap_audio_model"
    parts = [Part("", config.projection_dim if is_clap else config.hidden_size)]
    depths: list[Depth] = []
    side_group_fields: dict[str, dict[str, Any]] = {}
    if layers is not None:
        depths = depths_of(loaded.whole, kind.stacks, layers, where)
        parts += [Part(str(depth.number), layer_width(config, depth.number)) for depth in depths]
        side_group_fields |= layer_groups(depths, layers)
    if loaded.classes:
        parts.append(Part(ANSWERS, len(loaded.classes)))
        side_group_fields[ANSWERS] = _fields_of_answers(loaded.classes, config)
    return _EncoderParts(parts, depths, side_group_fields, layers is not None and layers.frames)


def _outputs(parts: Sequence[Part], n_frames: int, dtype: Any, *, of_layers: bool) -> list[BackboneOutput]:
    """List the arrays of a clip: `pooled` of each part, `frames` of the network and, if wanted, of layers.

    Parameters
    ----------
    of_layers
        Whether layers have `frames` too.
    """
    outputs = []
    for part in parts:
        is_network = part.side == ""
        is_layer = not is_network and part.side != ANSWERS
        if is_network or (is_layer and of_layers):
            outputs.append(BackboneOutput(f"{part.prefix}frames", (n_frames, part.width), dtype))
        outputs.append(BackboneOutput(f"{part.prefix}pooled", (part.width,)))
    return outputs


class LoadedSound(NamedTuple):
    """An audio network with its weights.

    Attributes
    ----------
    called
        What is called with samples: the network, the encoder of a Whisper, or a `ClassifierBase`.
    whole
        The network in which layers have the names that `networks.toml` gives them.
    classes
        Names of the classes of its classifier; empty without one.
    """

    called: Any
    whole: Any
    classes: tuple[str, ...]


def _load_network(source: Weights, kind: WaveformKind, config: Any) -> LoadedSound:
    """Load an audio network without a classifier; of a Whisper, the encoder is called."""
    cls = getattr(transformers, kind.network)
    network: Any = load_pretrained(cls, source, config, allow_unexpected=kind.unexpected)
    called = network.encoder if kind.network == WHISPER else network
    return LoadedSound(called, network, ())


def _load_classifier(source: Weights, kind: WaveformKind, config: Any) -> LoadedSound:
    """Load an audio network with its classifier.

    Raises
    ------
    BackboneError
        If networks of its type have none, or the file has none.
    """
    if not kind.classifier:
        raise BackboneError(
            f"{source.name}: a network of type {config.model_type!r} has no classifier here: "
            "leave out --answers"
        )
    cls = getattr(transformers, kind.classifier)
    classifier: Any = load_pretrained(cls, source, config, allow_unexpected=(*TRAINING, TRAINING_MASK))
    classes = named_classes(classifier.config, source.name)
    if kind.network == WHISPER:  # its classifier has the encoder itself, and no network around it
        return LoadedSound(ClassifierBase(classifier, classifier.encoder), classifier, classes)
    inside = classifier.base_model
    return LoadedSound(ClassifierBase(classifier, inside), inside, classes)


def _fields_of_answers(classes: tuple[str, ...], config: Any) -> dict[str, Any]:
    """Return the provenance fields of the group of class probabilities."""
    of_what = "each class alone" if _is_multi_label(config) else "each class"
    meaning = f"probability of {of_what}, mean over the windows by their parts of the clip"
    return answers_fields(classes, config.model_type, of_frames=False, meaning=meaning)


def layer_width(config: Any, number: int) -> int:
    """Return the length of the vectors of a layer, whose number counts from 1.

    In a CLAP a layer is a stage; each stage but the last merges patches, which doubles the width.
    """
    if config.model_type != "clap_audio_model":
        return int(config.hidden_size)
    n_doublings = min(number, len(config.depths) - 1)
    return int(config.patch_embeds_hidden_size * 2**n_doublings)


def _is_multi_label(config: Any) -> bool:
    """Return whether several classes may be heard at once: as stated, or since they are AudioSet's."""
    if getattr(config, "problem_type", None) is not None:
        return is_multi_label(config)
    return config.model_type == "audio-spectrogram-transformer" and len(config.id2label) == AUDIOSET


class WaveformEncoder:
    """A waveform backbone's `encode`: parts of clips, float32 `[F, L]` with NaN after their ends, to arrays.

    One clip is encoded at a time, its windows together, so that it gets the same bytes in any batch.

    Parameters
    ----------
    network, config, extractor
        The audio network, its configuration and its feature extractor.
    kind
        How networks of its type are read.
    compute
        Device and precision.
    depths
        Layers that are read. Their vectors are appended to the network's until parts of clips are averaged.
    parts
        What these columns are, in order: the network's vector, each layer's, and the class probabilities.
    """

    def __init__(
        self,
        network: Any,
        config: Any,
        extractor: Any,
        kind: WaveformKind,
        compute: Compute,
        *,
        depths: Sequence[Depth] = (),
        parts: Sequence[Part],
    ) -> None:
        """Hold the network, and hook the layers whose tokens are wanted."""
        self.compute = compute
        self.device = compute.torch_device()
        self.rate = int(extractor.sampling_rate)
        self.longest_s = kind.longest_s(extractor)
        self._dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else torch.float32
        self._network = network
        self._config = config
        self._kind = kind
        self._extractor = extractor
        self._depths = depths
        self._parts = parts
        self._hooks = LayerHooks(depths, lambda _depth, tokens: tokens)

    def start(self, clips: NDArray[Any] | Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Encode clips, `[F, L]` each.

        Raises
        ------
        BackboneError
            If a clip does not fit in the memory, or the network and its extractor do not fit together.
        """
        columns = np.stack([self._frames(clip) for clip in clips])  # [B, F, D of all parts]
        dtype = self.compute.frames_dtype()
        arrays: dict[str, NDArray[Any]] = {}
        edges = np.cumsum([part.width for part in self._parts])[:-1]
        for part, frames in zip(self._parts, np.split(columns, edges, axis=2), strict=True):
            if part.side != ANSWERS:
                arrays[f"{part.prefix}frames"] = frames.astype(dtype)
            arrays[f"{part.prefix}pooled"] = frames.mean(axis=1, dtype=np.float64).astype(np.float32)
        return arrays

    __call__ = start

    def _frames(self, sound: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encode a clip, and average its steps over each part around a sampled frame: `[F, L]` to `[F, D]`.

        A part without the middle of any step gets the step nearest to its own middle.
        """
        is_sample = np.isfinite(sound)
        steps, middles = self.steps(sound[is_sample])
        lengths = is_sample.sum(axis=1)
        ends = np.cumsum(lengths)
        frames = []
        for begin, end in zip(ends - lengths, ends, strict=True):
            inside = (middles >= begin) & (middles < end)
            if inside.any():
                frames.append(steps[inside].mean(axis=0))
            else:
                nearest = np.abs(middles - (begin + end) / 2).argmin()
                frames.append(steps[nearest])
        return np.stack(frames)

    def steps(self, samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Encode samples `[N]`: return a vector of each step, `[S, D]`, and the sample in its middle, `[S]`.

        D is the width of all parts together, in their order. The samples are cut into equal windows.
        """
        if len(samples) < SHORTEST_SAMPLES:
            samples = np.pad(samples, (0, SHORTEST_SAMPLES - len(samples)))
        longest = int(self.longest_s * self.rate)
        n_windows = math.ceil(len(samples) / longest)
        size = len(samples) // n_windows
        starts = [number * size for number in range(n_windows)]
        windows = [samples[start : start + size] for start in starts]
        batches = BatchSize("waveform", WINDOWS_AT_ONCE, "window", self.device).map(self._forward, windows)
        steps = np.concatenate(batches)  # [windows, steps of a window, D]
        n_steps = steps.shape[1]
        middles = (np.arange(n_steps) + 0.5) * (size / n_steps)  # in a window
        return np.concatenate(steps), np.concatenate([middles + start for start in starts])

    def _forward(self, windows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Run the network over windows of one length; return `[B, S, D]`.

        Raises
        ------
        BackboneError
            The network does not take what its extractor prepares.
        """
        extract = partial(self._extractor, sampling_rate=self.rate, return_tensors="np")
        extracted = [extract(window) for window in windows]
        try:
            self._network = self._network.to(self.device, self._dtype)  # moves it at the first call
            inputs = {}
            # The mask is left out: it is all ones, since windows have one length.
            for name in extracted[0].keys() - {"attention_mask"}:
                batch = np.concatenate([features[name] for features in extracted])
                value = torch.from_numpy(batch).to(self.device)
                inputs[name] = value.to(self._dtype) if value.is_floating_point() else value
            with inference(self.compute, self.device):
                steps = self._steps_of_parts(inputs, len(windows[0]))
                return np.asarray(torch.cat(steps, dim=2).float().cpu().numpy())
        except (RuntimeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            raise BackboneError(
                f"backbone 'waveform': the network does not take what its {EXTRACTOR} prepares: "
                f"{first_line(error)}"
            ) from error

    def _steps_of_parts(self, inputs: Mapping[str, torch.Tensor], n_samples: int) -> list[torch.Tensor]:
        """Run the network; return the steps `[B, S, D]` of each part, in the order of the parts."""
        output: Any = self._network(**inputs)
        steps = [STEPS[self._kind.reads](output, self._config, n_samples)]
        read_layer = STEPS[self._kind.reads_layers or self._kind.reads]
        for depth in self._depths:
            # The tokens of a layer are read as those of the last one.
            layer_output = SimpleNamespace(last_hidden_state=self._hooks.take(depth))
            steps.append(read_layer(layer_output, self._config, n_samples))
        if isinstance(self._network, ClassifierBase):
            probabilities = self._probabilities(self._network.take_logits())  # [B, Q]
            # A window has one answer, which is repeated for each of its steps.
            n_steps = steps[0].shape[1]
            steps.append(probabilities[:, None].expand(-1, n_steps, -1))
        return steps

    def _probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Turn logits `[B, Q]` into probabilities, by a sigmoid if several classes may be right."""
        logits = logits.float()
        if _is_multi_label(self._config):
            return logits.sigmoid()
        return logits.softmax(dim=-1)


def _extractor(source: Weights, kind: WaveformKind, config: Any) -> Any:
    """Load the feature extractor in the weights' folder; random weights have transformers' default.

    Raises
    ------
    BackboneError
        If there is no such file, it is of another extractor, or it does not fit the network.
    """
    cls = getattr(transformers, kind.extractor)
    if source.seed is not None:
        return cls()
    where = f"{source.name}/{EXTRACTOR}"
    fields = object_beside(source, EXTRACTOR)
    configured_type = fields.get("feature_extractor_type", kind.extractor)
    if not fields or configured_type != kind.extractor:
        problem = f"is of {configured_type!r}" if fields and configured_type else "is missing"
        raise BackboneError(
            f"{where} {problem}; how samples are prepared stands in that of a {kind.extractor}"
        )
    try:
        extractor = cls.from_pretrained(str(source.folder), local_files_only=True)
        longest_s = kind.longest_s(extractor)
        has_usual_rate = SLOWEST_RATE <= extractor.sampling_rate <= FASTEST_RATE
        has_usual_windows = 0.1 <= longest_s <= 2 * LONGEST_S
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(f"{where}: there is no such extractor: {first_line(error)}") from None
    if not (has_usual_rate and has_usual_windows):
        raise BackboneError(
            f"{where}: {extractor.sampling_rate} samples a second and windows of {longest_s:g} s; expected "
            f"{SLOWEST_RATE} to {FASTEST_RATE}, and at most {2 * LONGEST_S:g} s"
        )
    # Such as the number of mel bands, which the network and its extractor each state.
    for extractor_field, config_field in kind.agree.items():
        prepared = getattr(extractor, extractor_field)
        expected = getattr(config, config_field)
        if prepared != expected:
            raise BackboneError(
                f"{where}: {extractor_field} is {prepared}, and the network's {config_field} {expected}"
            )
    return extractor
