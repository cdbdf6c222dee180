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
from obygaze_features.backbones.encoder_specs import TRAINING
from obygaze_features.backbones.layered import LayerHooks, StoredLayer, find_layers, layer_group_fields
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import side_group
from obygaze_features.backbones.runner import BatchSize
from obygaze_features.backbones.weights import TABLES, Weights, find_weights, object_beside, read_specs
from obygaze_features.errors import BackboneError, first_line

EXTRACTOR = "preprocessor_config.json"
"""File beside the weights that says how samples are prepared."""
LONGEST_S = 30.0
"""Seconds that a network with inputs of any length hears at once."""
WHISPER = "WhisperModel"
"""The class whose encoder alone hears."""
TRAINING_MASK = r"(\w+\.)?masked_spec_embed"
"""The tensor of what training masks, in a file with a classifier."""
WHISPER_STEP_SAMPLES = 320
"""Samples of a step of a Whisper: two frames of 10 ms, at 16,000 samples a second."""
AST_FRAME_SAMPLES = 160
"""Samples from one frame of an AST to the next: 10 ms, at 16,000 samples a second."""
SHORTEST_SAMPLES = 400
"""Samples of the first step of wav2vec 2.0 and its kin; fewer are padded with silence."""
SLOWEST_RATE = 4_000
"""Fewest samples a second that a feature extractor may ask for."""
FASTEST_RATE = 192_000
"""Most samples a second that a feature extractor may ask for."""
SHORTEST_WINDOW_S = 0.1
"""Least length of the longest window, in seconds, that a feature extractor may ask for."""
LONGEST_WINDOW_S = 2 * LONGEST_S
"""Greatest length of the longest window, in seconds, that a feature extractor may ask for."""
WINDOWS_AT_ONCE = 8
"""Windows of a clip that go through the network at once."""

Steps = Callable[[Any, Any, int], Any]
"""Turns a network's output, its configuration and the samples of a window into steps `[B, S, D]`."""


class WaveformSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """How audio networks of one type are loaded and called, and what their vectors are.

    Parameters
    ----------
    network, extractor
        Names of classes of transformers; stated where they are not the usual ones of the type.
    output_steps
        How the steps are read from the network's output: a key of `STEPS`.
    layer_steps
        The same for the output of its layers; empty if they are read like the network's output.
    step_meaning
        What a step is, for the provenance.
    longest_field
        Field of the extractor that says how long a window may be; empty if the network takes any length.
    longest_per_second
        How many units of that field make a second: 1 if it is in seconds, 100 if it is in frames of 10 ms.
    equal_fields
        Field of the extractor -> field of the configuration that must be equal.
    unused_tensors
        Patterns of the names of tensors in the files that are not used.
    stacks
        Where the layers of these networks are.
    classifier
        Class of transformers for weights with a classifier; empty if transformers has none.
    audio_config_path
        Dotted name of the field of the configuration that describes the audio network; empty if all of the
        configuration does.
    """

    network: str
    extractor: str
    step_meaning: str
    citation: str
    output_steps: str = "hidden"
    longest_field: str = ""
    longest_per_second: int = 1
    equal_fields: dict[str, str] = {}
    unused_tensors: tuple[str, ...] = ()
    stacks: tuple[LayerStack, ...] = ()
    layer_steps: str = ""
    classifier: str = ""
    audio_config_path: str = ""

    def audio_config(self, config: Any) -> Any:
        """Return the part of a configuration that describes the audio network."""
        return attrgetter(self.audio_config_path)(config) if self.audio_config_path else config

    def longest_s(self, extractor: Any) -> float:
        """Return the length of the longest window that the network takes, in seconds.

        The network's feature extractor states it, unless the network takes windows of any length: for these
        it is 30 s.
        """
        if not self.longest_field:
            return LONGEST_S
        longest = getattr(extractor, self.longest_field)  # in seconds, samples or frames
        return float(longest / self.longest_per_second)


def _whisper_steps(output: Any, _config: Any, n_samples: int) -> Any:
    """Return the vectors of a Whisper encoder `[B, S, D]` that belong to the sound, not to the padding.

    A step is 20 ms long. A window had `n_samples` samples, at 16,000 a second, before it was padded to 30 s.
    """
    n_steps = max(n_samples // WHISPER_STEP_SAMPLES, 1)
    return output.last_hidden_state[:, :n_steps]


def _ast_steps(output: Any, config: Any, n_samples: int) -> Any:
    """Average an AST's patches of each time over frequency, `[B, S, D]`, without those of the padding.

    Its input is a spectrogram, filled up to a fixed length. It is cut into overlapping patches: one begins
    every `frequency_stride` mel bins and every `time_stride` frames.

    Parameters
    ----------
    output
        The network's output.
    config
        The network's configuration.
    n_samples
        Samples of a window before it was filled up, at 16,000 a second.
    """
    n_bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1  # patches of one time
    n_summary_tokens = 2  # class token and distillation token, which stand for the whole input
    patches = output.last_hidden_state[:, n_summary_tokens:]  # [B, bands S, D], one band after the other
    by_band = patches.unflatten(1, (n_bands, -1))  # [B, bands, S, D]
    steps = by_band.mean(dim=1)  # [B, S, D]
    samples_per_step = AST_FRAME_SAMPLES * config.time_stride
    n_steps_of_sound = max(n_samples // samples_per_step, 1)
    return steps[:, :n_steps_of_sound]


STEPS: Mapping[str, Steps] = {
    "hidden": lambda output, _config, _n_samples: output.last_hidden_state,
    "after class token": lambda output, _config, _n_samples: output.last_hidden_state[:, 1:],
    "whisper": _whisper_steps,
    "ast": _ast_steps,
    "clap": lambda output, _config, _n_samples: output.audio_embeds[:, None],
    "window": lambda output, _config, _n_samples: output.last_hidden_state.mean(dim=1, keepdim=True),
}
"""How the steps in time, which divide a window evenly, are read from a network's output."""


def _usual_fields() -> dict[str, dict[str, object]]:
    """Return the classes that transformers has for each type of audio network: `model_type` -> fields.

    The fields are `network`, `extractor` and `classifier`, as far as there are such classes. They hold where
    the table `sounds` of `networks.toml` states nothing else.
    """
    class_names_of_fields = {
        "network": MODEL_MAPPING_NAMES,
        "extractor": vars(feature_extraction_auto)["FEATURE_EXTRACTOR_MAPPING_NAMES"],
        "classifier": MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
    }
    fields_of_types: dict[str, dict[str, object]] = {}
    for model_type in TABLES["sounds"]:
        fields_of_types[model_type] = {}
        for field, class_names in class_names_of_fields.items():
            if model_type in class_names:
                fields_of_types[model_type][field] = class_names[model_type]
    return fields_of_types


SOUNDS = read_specs("sounds", WaveformSpec, _usual_fields())
"""`model_type` -> how its networks are read."""

AUDIOSET = 527
"""Number of classes of AudioSet, several of which may be heard at once: each has a probability of its own."""


MAIN_GROUP = ""
"""`GroupColumns.side_group` of the network's own vectors, which are in the backbone's main group."""


class GroupColumns(NamedTuple):
    """The columns of the encoder's vectors that are stored in one group.

    The encoder gives one wide vector for each step: the network's vector, then those of layers, then class
    probabilities.

    Attributes
    ----------
    side_group
        Name of the side group: the number of a layer, or `ANSWERS`; `MAIN_GROUP` for the main group.
    width
        Number of columns.
    """

    side_group: str
    width: int

    def array_name(self, array: str) -> str:
        """Return the name under which `encode` returns an array of the group: `frames`, or `8/frames`."""
        return f"{self.side_group}/{array}" if self.side_group else array


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
        Weights of a type of `SOUNDS`; `random:SEED` is an untrained wav2vec 2.0.
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
        If the network's type is not in `SOUNDS`, or a file in its folder is missing or does not fit it.
    """
    source = find_weights(weights)
    config = transformers.Wav2Vec2Config() if source.seed is not None else auto_config(source)
    spec = SOUNDS.get(config.model_type)
    if spec is None:
        raise BackboneError(
            f"{source.name}: a network of type {config.model_type!r} is not one that hears here; "
            f"there is {', '.join(SOUNDS)}"
        )

    # The network, with what prepares its samples.
    audio_config = spec.audio_config(config)
    _switch_off_masking(audio_config)
    extractor = _extractor(source, spec, audio_config)
    if answers:
        loaded = _load_classifier(source, spec, audio_config)
    else:
        loaded = _load_network(source, spec, audio_config)

    # What is stored: the network's vectors, layers, class probabilities. Each has a group of its own.
    wanted_layers = Layers.of(layers)
    network_name = f"backbone 'waveform', {source.name}"
    contents = _encoder_contents(loaded, spec, audio_config, wanted_layers, network_name)
    compute = compute or Compute()
    with_layer_frames = wanted_layers is not None and wanted_layers.frames
    outputs = _outputs(
        contents.columns, n_frames, compute.frames_dtype(), with_layer_frames=with_layer_frames
    )

    # What computes it, and how a store describes it.
    encoder = WaveformEncoder(
        loaded.called,
        audio_config,
        extractor,
        spec,
        compute,
        stored_layers=contents.stored_layers,
        columns=contents.columns,
    )

    provenance = {
        "head": "projection" if config.model_type == "clap" else None,
        "layer": spec.step_meaning,  # in words, what the vector of a step is
        "arrays": {"frames": f"mean over each part of: {spec.step_meaning}", "pooled": "mean of the frames"},
        **source.record(),
        "architecture": {"type": config.model_type, **plain_config(audio_config)},
        "preset": _preset_record(encoder, spec, extractor, track),
        "compute": compute.record(loaded.called.config._attn_implementation),
        "citation": spec.citation,
    }
    side_groups = []
    for group, fields in contents.side_group_fields.items():
        side_groups.append(side_group("waveform", group, outputs, provenance, fields))
    return Backbone(
        name="waveform",
        n_frames=n_frames,
        prepare=np.asarray,
        encode=encoder,
        outputs=tuple(output for output in outputs if "/" not in output.name),  # of the main group
        provenance=provenance,
        libraries=("torch", "transformers"),
        hears=Hearing(encoder.rate, track),
        side_groups=tuple(side_groups),
    )


def _preset_record(
    encoder: "WaveformEncoder", spec: WaveformSpec, extractor: Any, track: str
) -> dict[str, Any]:
    """Return how sound is prepared for an audio network, as JSON fields for the provenance.

    Parameters
    ----------
    encoder
        The encoder, which knows the rate and the longest window.
    spec
        How networks of its type are read.
    extractor
        The network's feature extractor.
    track
        Language or number of the sound track; empty for the usual one.
    """
    return {
        "name": spec.extractor,
        "resize": f"{encoder.rate} samples a second, mono, by libswresample",
        "crop": f"equal windows of at most {encoder.longest_s:g} s",
        "constants": plain_config(extractor),
        "order": "mono, resample, extract",
        "track": track,
    }


def _switch_off_masking(config: Any) -> None:
    """Switch off, in the configuration of an audio network, that parts of the sound are masked at random.

    Masking is for training. With it, the network would have a tensor for masked parts, which weights without
    their training lack.
    """
    for probability in ("mask_time_prob", "mask_feature_prob"):
        if hasattr(config, probability):
            setattr(config, probability, 0.0)


class _EncoderContents(NamedTuple):
    """What an encoder gives for each step.

    Attributes
    ----------
    columns
        The columns of the network's vectors, then those of each layer, then those of class probabilities.
    stored_layers
        The layers.
    side_group_fields
        Name of each side group -> fields of its provenance that differ from those of the backbone.
    """

    columns: list[GroupColumns]
    stored_layers: list[StoredLayer]
    side_group_fields: dict[str, dict[str, Any]]


def _encoder_contents(
    loaded: "LoadedSound",
    spec: WaveformSpec,
    config: Any,
    wanted_layers: Layers | None,
    network_name: str,
) -> _EncoderContents:
    """List what an encoder gives for each step: the network's vector, wanted layers, class probabilities.

    Parameters
    ----------
    loaded
        The network, with the classes of its classifier if it was loaded with it.
    spec, config
        How networks of its type are read, and its configuration.
    wanted_layers
        The layers that are stored too; None: none.
    network_name
        What messages call the network.
    """
    # A CLAP projects its vectors into the space of texts, which has another width than its layers.
    is_clap = config.model_type == "clap_audio_model"
    width = config.projection_dim if is_clap else config.hidden_size
    columns = [GroupColumns(MAIN_GROUP, width)]
    stored_layers: list[StoredLayer] = []
    side_group_fields: dict[str, dict[str, Any]] = {}
    if wanted_layers is not None:
        # `spec.stacks` says where the lists of the network's layers are.
        stored_layers = find_layers(loaded.network, spec.stacks, wanted_layers, network_name)
        columns += [
            GroupColumns(str(layer.number), layer_width(config, layer.number)) for layer in stored_layers
        ]
        side_group_fields |= layer_group_fields(stored_layers, with_frames=wanted_layers.frames)
    if loaded.classes:
        columns.append(GroupColumns(ANSWERS, len(loaded.classes)))
        side_group_fields[ANSWERS] = _fields_of_answers(loaded.classes, config)
    return _EncoderContents(columns, stored_layers, side_group_fields)


def _outputs(
    columns: Sequence[GroupColumns], n_frames: int, dtype: Any, *, with_layer_frames: bool
) -> list[BackboneOutput]:
    """List the arrays that are stored for a clip, with their shapes.

    Each group has `pooled`, one vector. The main group has `frames` too, and so have layers if wanted. Class
    probabilities have none: a window of sound has one answer. Arrays of side groups are called by the group
    too, as `8/pooled`.

    Parameters
    ----------
    columns
        The columns of each group.
    n_frames, dtype
        Number of rows of `frames`, and their data type.
    with_layer_frames
        Whether layers have `frames` too.
    """
    outputs = []
    for group in columns:
        is_main = group.side_group == MAIN_GROUP
        is_layer = not is_main and group.side_group != ANSWERS
        has_frames = is_main or (is_layer and with_layer_frames)
        if has_frames:
            outputs.append(BackboneOutput(group.array_name("frames"), (n_frames, group.width), dtype))
        outputs.append(BackboneOutput(group.array_name("pooled"), (group.width,)))
    return outputs


class LoadedSound(NamedTuple):
    """An audio network with its weights.

    Attributes
    ----------
    called
        What is called with samples: the network, the encoder of a Whisper, or a `ClassifierBase`.
    network
        The network without its classifier, in which layers have the names that `networks.toml` gives them.
    classes
        Names of the classes of its classifier; empty without one.
    """

    called: Any
    network: Any
    classes: tuple[str, ...]


def _load_network(source: Weights, spec: WaveformSpec, config: Any) -> LoadedSound:
    """Load an audio network without a classifier.

    Parameters
    ----------
    source
        The weights.
    spec
        How networks of its type are loaded.
    config
        Configuration of the audio network.
    """
    network_class = getattr(transformers, spec.network)
    network: Any = load_pretrained(network_class, source, config, allow_unexpected=spec.unused_tensors)
    # A Whisper's decoder writes text; its encoder alone hears.
    called = network.encoder if spec.network == WHISPER else network
    return LoadedSound(called, network, ())


def _load_classifier(source: Weights, spec: WaveformSpec, config: Any) -> LoadedSound:
    """Load an audio network with its classifier, for vectors and class probabilities by one call.

    Parameters
    ----------
    source
        The weights.
    spec
        How networks of its type are loaded.
    config
        Configuration of the audio network.

    Raises
    ------
    BackboneError
        Transformers has no classifier for networks of this type, or the file has no weights of one.
    """
    if not spec.classifier:
        raise BackboneError(
            f"{source.name}: a network of type {config.model_type!r} has no classifier here: "
            "leave out --answers"
        )
    classifier_class = getattr(transformers, spec.classifier)
    unused_tensors = (*TRAINING, TRAINING_MASK)
    classifier: Any = load_pretrained(classifier_class, source, config, allow_unexpected=unused_tensors)
    classes = named_classes(classifier.config, source.name)
    if spec.network == WHISPER:
        # The classifier of a Whisper holds the encoder itself, not a whole network with encoder and decoder.
        # So the names of layers (`encoder.layers`) are looked up in the classifier.
        called = ClassifierBase(classifier, classifier.encoder)
        return LoadedSound(called, network=classifier, classes=classes)
    network = classifier.base_model
    called = ClassifierBase(classifier, network)
    return LoadedSound(called, network=network, classes=classes)


def _fields_of_answers(classes: tuple[str, ...], config: Any) -> dict[str, Any]:
    """Return what the provenance says of a network's answers: a probability for each of its classes.

    A clip is heard in windows, and has the mean of their probabilities, weighted by their shares of the clip.
    """
    classes_in_words = "each class alone" if _is_multi_label(config) else "each class"
    meaning = f"probability of {classes_in_words}, mean over the windows by their parts of the clip"
    return answers_fields(classes, config.model_type, of_frames=False, meaning=meaning)


def layer_width(config: Any, number: int) -> int:
    """Return the length of the vectors of a layer of an audio network; `number` counts from 1.

    In a CLAP a layer is a stage; each stage but the last merges patches, which doubles the width.
    """
    if config.model_type != "clap_audio_model":
        return int(config.hidden_size)
    n_stages = len(config.depths)
    n_doublings = min(number, n_stages - 1)
    return int(config.patch_embeds_hidden_size * 2**n_doublings)


def _is_multi_label(config: Any) -> bool:
    """Return whether several of a classifier's classes may be right for one sound.

    The configuration states it as `problem_type`. Those of ASTs for AudioSet do not; they are told by the
    number of their classes.
    """
    if getattr(config, "problem_type", None) is not None:
        return is_multi_label(config)
    is_ast = config.model_type == "audio-spectrogram-transformer"
    return is_ast and len(config.id2label) == AUDIOSET


class WaveformEncoder:
    """A waveform backbone's `encode`: sound of clips, float32 `[F, L]`, to the arrays of all groups.

    A row is the stretch of sound around one sampled frame, with NaN after its end. One clip is encoded at a
    time, its windows together, so that it gets the same bytes in any batch.

    Parameters
    ----------
    network, config, extractor
        The audio network, its configuration and its feature extractor.
    spec
        How networks of its type are read.
    compute
        Device and precision.
    stored_layers
        Layers whose vectors are stored too.
    columns
        The columns of the encoder's vectors, group by group: the network's, each layer's, class
        probabilities.
    """

    def __init__(
        self,
        network: Any,
        config: Any,
        extractor: Any,
        spec: WaveformSpec,
        compute: Compute,
        *,
        stored_layers: Sequence[StoredLayer] = (),
        columns: Sequence[GroupColumns],
    ) -> None:
        """Hold the network, and set hooks that keep the tokens of the layers that are stored too.

        Each call of the network fills the hooks, and `_step_columns` takes the tokens from them. The network
        is moved to its device by its first call.
        """
        self.compute = compute
        self.device = compute.torch_device()
        self.rate = int(extractor.sampling_rate)
        self.longest_s = spec.longest_s(extractor)
        self._dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else torch.float32
        self._network = network
        self._config = config
        self._spec = spec
        self._extractor = extractor
        self._layers = stored_layers
        self._columns = columns
        self._hooks = LayerHooks(stored_layers, lambda _layer, tokens: tokens)  # keeps tokens as they are

    def start(self, clips: NDArray[Any] | Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Encode the sound of clips, float32 `[F, L]` each, to the arrays of each group of the store.

        A row is the stretch of sound around one sampled frame, with NaN after its end. Extraction calls this
        method of every encoder; here the results are ready when it returns.

        Raises
        ------
        BackboneError
            If a clip does not fit in the memory, or the network and its extractor do not fit together.
        """
        vectors = np.stack([self._frame_vectors(clip) for clip in clips])  # [B, F, columns of all groups]
        dtype = self.compute.frames_dtype()
        arrays: dict[str, NDArray[Any]] = {}
        first_column = 0
        for group in self._columns:
            end_column = first_column + group.width
            frames = vectors[:, :, first_column:end_column]
            first_column = end_column
            if group.side_group != ANSWERS:  # class probabilities are stored for whole clips only
                arrays[group.array_name("frames")] = frames.astype(dtype)
            pooled = frames.mean(axis=1, dtype=np.float64)
            arrays[group.array_name("pooled")] = pooled.astype(np.float32)
        return arrays

    __call__ = start

    def _frame_vectors(self, sound: NDArray[np.float32]) -> NDArray[np.float32]:
        """Encode the sound of a clip, `[F, L]`, to a vector for the stretch around each frame, `[F, D]`.

        It is the mean of the steps whose middles lie in the stretch. A stretch without any gets the step
        nearest to its own middle.
        """
        is_sample = np.isfinite(sound)  # rows are filled up with NaN
        steps, step_middles = self.steps(sound[is_sample])

        lengths = is_sample.sum(axis=1)  # samples of each stretch
        ends = np.cumsum(lengths)
        begins = ends - lengths

        vectors = []
        for begin, end in zip(begins, ends, strict=True):
            is_inside = (step_middles >= begin) & (step_middles < end)
            if is_inside.any():
                vectors.append(steps[is_inside].mean(axis=0))
            else:
                stretch_middle = (begin + end) / 2
                nearest = np.abs(step_middles - stretch_middle).argmin()
                vectors.append(steps[nearest])
        return np.stack(vectors)

    def steps(self, samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Encode samples `[N]`: return a vector of each step, `[S, D]`, and the sample in its middle, `[S]`.

        A vector has the columns of all groups. The samples are cut into equal windows; a remainder of fewer
        samples than there are windows is left out.
        """
        if len(samples) < SHORTEST_SAMPLES:  # too few for a single step
            samples = np.pad(samples, (0, SHORTEST_SAMPLES - len(samples)))

        longest = int(self.longest_s * self.rate)
        n_windows = math.ceil(len(samples) / longest)
        window_size = len(samples) // n_windows
        window_starts = [number * window_size for number in range(n_windows)]
        windows = [samples[start : start + window_size] for start in window_starts]
        batch_size = BatchSize("waveform", WINDOWS_AT_ONCE, "window", self.device)
        steps_of_batches = batch_size.map(self._forward, windows)
        steps = np.concatenate(steps_of_batches)  # [windows, steps of a window, D]

        n_steps_of_window = steps.shape[1]
        samples_per_step = window_size / n_steps_of_window
        middles_in_window = (np.arange(n_steps_of_window) + 0.5) * samples_per_step
        middles = [middles_in_window + start for start in window_starts]
        return np.concatenate(steps), np.concatenate(middles)

    def _forward(self, windows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Encode windows of samples of one length, `[N]` each, to a vector of each step, `[B, S, D]`.

        A vector has the columns of all groups, one group after the other.

        Raises
        ------
        BackboneError
            The network does not take what its extractor prepares.
        RuntimeError
            The memory does not suffice; the caller tries again with fewer windows.
        """
        extract = partial(self._extractor, sampling_rate=self.rate, return_tensors="np")
        inputs_of_windows = [extract(window) for window in windows]
        try:
            self._network = self._network.to(self.device, self._dtype)  # moves it at the first call
            inputs = {}
            # The mask is left out: it is all ones, since windows have one length.
            for name in inputs_of_windows[0].keys() - {"attention_mask"}:
                batch = np.concatenate([window_inputs[name] for window_inputs in inputs_of_windows])
                value = torch.from_numpy(batch).to(self.device)
                inputs[name] = value.to(self._dtype) if value.is_floating_point() else value

            with inference(self.compute, self.device):
                vectors_of_groups = self._step_columns(inputs, len(windows[0]))
                steps = torch.cat(vectors_of_groups, dim=2)
                return np.asarray(steps.float().cpu().numpy())
        except (RuntimeError, ValueError) as error:
            if is_out_of_memory(error):  # the caller tries again with fewer windows
                raise
            raise BackboneError(
                f"backbone 'waveform': the network does not take what its {EXTRACTOR} prepares: "
                f"{first_line(error)}"
            ) from error

    def _step_columns(self, inputs: Mapping[str, torch.Tensor], n_samples: int) -> list[torch.Tensor]:
        """Run the network over windows; return a vector of each step for each group, `[B, S, D]`.

        Parameters
        ----------
        inputs
            Name -> what the feature extractor prepared from the windows.
        n_samples
            Samples of a window.

        Returns
        -------
        list of torch.Tensor
            The network's vectors, then those of each layer, then class probabilities.
        """
        output: Any = self._network(**inputs)
        read_output = STEPS[self._spec.output_steps]
        steps = [read_output(output, self._config, n_samples)]

        read_layer = STEPS[self._spec.layer_steps or self._spec.output_steps]
        for layer in self._layers:
            # Steps are read from a network's output, whose tokens are `last_hidden_state`. For a layer, an
            # object takes the place of the output, and has the layer's tokens under this name.
            layer_output = SimpleNamespace(last_hidden_state=self._hooks.take(layer))
            steps.append(read_layer(layer_output, self._config, n_samples))

        if isinstance(self._network, ClassifierBase):
            probabilities = self._probabilities(self._network.take_logits())  # [B, Q]
            # A window has one answer, which is repeated for each of its steps.
            n_steps = steps[0].shape[1]
            steps.append(probabilities[:, None].expand(-1, n_steps, -1))
        return steps

    def _probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Turn logits `[B, Q]` into probabilities of Q classes.

        This is by a sigmoid if several classes may be right at once, else by the softmax.
        """
        logits = logits.float()
        if _is_multi_label(self._config):
            return logits.sigmoid()
        return logits.softmax(dim=-1)


def _extractor(source: Weights, spec: WaveformSpec, config: Any) -> Any:
    """Load the feature extractor in the weights' folder; random weights have transformers' default.

    A feature extractor prepares samples for a network. It must be of the class that goes with networks of
    this type, and its numbers must be plausible and fit the network.

    Parameters
    ----------
    source
        The weights.
    spec
        How networks of the type are read.
    config
        Configuration of the audio network.

    Raises
    ------
    BackboneError
        If there is no such file, it is of another extractor, or it does not fit the network.
    """
    extractor_class = getattr(transformers, spec.extractor)
    if source.seed is not None:
        return extractor_class()

    file_name = f"{source.name}/{EXTRACTOR}"
    fields = object_beside(source, EXTRACTOR)  # empty if there is no such file
    configured_type = fields.get("feature_extractor_type", spec.extractor)
    if not fields or configured_type != spec.extractor:
        problem = f"is of {configured_type!r}" if fields and configured_type else "is missing"
        raise BackboneError(
            f"{file_name} {problem}; how samples are prepared stands in that of a {spec.extractor}"
        )

    # A stranger's file may ask for anything: for windows, for example, that fill the memory.
    try:
        extractor = extractor_class.from_pretrained(str(source.folder), local_files_only=True)
        longest_s = spec.longest_s(extractor)
        has_usual_rate = SLOWEST_RATE <= extractor.sampling_rate <= FASTEST_RATE
        has_usual_windows = SHORTEST_WINDOW_S <= longest_s <= LONGEST_WINDOW_S
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(f"{file_name}: there is no such extractor: {first_line(error)}") from None
    if not has_usual_rate or not has_usual_windows:
        raise BackboneError(
            f"{file_name}: {extractor.sampling_rate} samples a second and windows of {longest_s:g} s; "
            f"expected {SLOWEST_RATE} to {FASTEST_RATE}, and at most {LONGEST_WINDOW_S:g} s"
        )
    _check_equal_fields(extractor, config, spec.equal_fields, file_name)
    return extractor


def _check_equal_fields(extractor: Any, config: Any, equal_fields: Mapping[str, str], file_name: str) -> None:
    """Raise an error if the feature extractor and the network state different numbers, such as of mel bands.

    Parameters
    ----------
    extractor, config
        The feature extractor, and the configuration of the audio network.
    equal_fields
        Field of the extractor -> field of the configuration that must be equal.
    file_name
        The extractor's file, for the message.
    """
    for extractor_field, config_field in equal_fields.items():
        extractor_value = getattr(extractor, extractor_field)
        network_value = getattr(config, config_field)
        if extractor_value != network_value:
            raise BackboneError(
                f"{file_name}: {extractor_field} is {extractor_value}, "
                f"and the network's {config_field} {network_value}"
            )
