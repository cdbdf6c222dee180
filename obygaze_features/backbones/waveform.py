"""`waveform`: networks that hear: wav2vec 2.0, HuBERT, WavLM, AST, the audio half of CLAP, Whisper's encoder.

The class follows from the configuration beside the weights, and samples are prepared by the feature extractor
of transformers with the numbers beside them. The sound of a clip is cut into equal windows, as few as the
network's longest input allows; they are filled up only where the network's input has one length. Its steps in
time are averaged over each part of the clip, between the midpoints of sampled frames.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from msgspec import Struct
from numpy.typing import NDArray

from obygaze_features.backbones.backbone import Backbone, BackboneOutput, Hearing
from obygaze_features.backbones.checkpoint import auto_config, load_pretrained, plain_config
from obygaze_features.backbones.compute import Compute, inference, is_out_of_memory
from obygaze_features.backbones.layered import Depth, Taps, depths_of, layer_groups
from obygaze_features.backbones.layers import Layers, LayerStack
from obygaze_features.backbones.network import side_group
from obygaze_features.backbones.runner import BatchSize
from obygaze_features.backbones.weights import Weights, find_weights, kinds, object_beside
from obygaze_features.errors import BackboneError, first_line

EXTRACTOR = "preprocessor_config.json"
LONGEST_S = 30.0
"""Seconds that a network with inputs of any length hears at once."""
SHORTEST = 400
"""Samples of the first step of wav2vec 2.0 and its kin; fewer are padded with silence."""
SLOWEST, FASTEST = 4_000, 192_000
WINDOWS_AT_ONCE = 8

Steps = Callable[[Any, Any, int], Any]
"""Turns a network's output, its configuration and the samples of a window into steps `[B, S, D]`."""


class WaveformKind(Struct, frozen=True, forbid_unknown_fields=True):
    """How networks of one type are read.

    Parameters
    ----------
    network, extractor
        Names of classes of transformers.
    reads
        Of `STEPS`.
    meaning
        What a step is.
    longest, a_second
        Attribute of the extractor with the longest window, and its units a second; without, any length is
        taken.
    agree
        Field of the extractor -> field of the configuration that must be equal.
    unexpected
        Patterns of tensors in the files that are not used.
    stacks
        Where its layers are, whose tokens are read as the last ones are.
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

    def longest_s(self, extractor: Any) -> float:
        """Return the longest window, in seconds."""
        return float(getattr(extractor, self.longest) / self.a_second) if self.longest else LONGEST_S


def _whisper_steps(output: Any, _config: Any, n_samples: int) -> Any:
    """Leave out the steps of the silence that fills the input: two frames of ten milliseconds make a step."""
    return output.last_hidden_state[:, : max(n_samples // 320, 1)]


def _ast_steps(output: Any, config: Any, n_samples: int) -> Any:
    """Average over frequency; leave out the classes' two tokens, and what fills the input."""
    bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1
    steps = output.last_hidden_state[:, 2:].unflatten(1, (bands, -1)).mean(dim=1)
    return steps[:, : max(n_samples // (160 * config.time_stride), 1)]


STEPS: Mapping[str, Steps] = {
    "hidden": lambda output, _config, _n_samples: output.last_hidden_state,
    "whisper": _whisper_steps,
    "ast": _ast_steps,
    "clap": lambda output, _config, _n_samples: output.audio_embeds[:, None],
}
"""How steps in time, which divide a window evenly, are read of a network's output."""

KINDS = kinds("sounds", WaveformKind)
"""`model_type` -> how its networks are read."""


def waveform(
    n_frames: int = 32,
    *,
    weights: str,
    track: str = "",
    layers: Layers | str | None = None,
    compute: Compute | None = None,
) -> Backbone:
    """Build a network that hears, for clips of `n_frames` sampled frames.

    Parameters
    ----------
    track
        Language (`fra`) or number of the sound track; empty is the one that players choose.
    layers
        Layers that are stored beside, each as a group of its own.

    Raises
    ------
    BackboneError
        If the network is of none of `KINDS`, or a file beside the weights is missing or does not fit.
    """
    source = find_weights(weights)
    config = transformers.Wav2Vec2Config() if source.seed is not None else auto_config(source)
    kind = KINDS.get(config.model_type)
    if kind is None:
        raise BackboneError(
            f"{source.name}: a network of type {config.model_type!r} is not one that hears here; "
            f"there is {', '.join(KINDS)}"
        )
    own = config.audio_config if config.model_type == "clap" else config
    for masking in ("mask_time_prob", "mask_feature_prob"):
        if hasattr(own, masking):  # of training, where a tensor stands for what is masked
            setattr(own, masking, 0.0)
    extractor = _extractor(source, kind, own)
    network: Any = load_pretrained(
        getattr(transformers, kind.network), source, own, allow_unexpected=kind.unexpected
    )
    compute = compute or Compute()
    depths: list[Depth] = []
    groups: dict[str, dict[str, Any]] = {}
    wanted = Layers.of(layers)
    if wanted is not None:
        depths = depths_of(network, kind.stacks, wanted, f"backbone 'waveform', {source.name}")
        groups = layer_groups(depths, wanted)
    encoder = WaveformEncoder(network, own, extractor, kind, compute, depths=depths)
    width = own.projection_dim if config.model_type == "clap" else own.hidden_size
    dtype: Any = compute.frames_dtype()
    outputs = (BackboneOutput("frames", (n_frames, width), dtype), BackboneOutput("pooled", (width,)))
    provenance = {
        "head": "projection" if config.model_type == "clap" else None,
        "layer": kind.meaning,
        "arrays": {"frames": f"mean over each part of: {kind.meaning}", "pooled": "mean of the frames"},
        **source.record(),
        "architecture": {"type": config.model_type, **plain_config(own)},
        "preset": {
            "name": kind.extractor,
            "resize": f"{encoder.rate} samples a second, mono, by libswresample",
            "crop": f"equal windows of at most {encoder.longest_s:g} s",
            "constants": plain_config(extractor),
            "order": "mono, resample, extract",
            "track": track,
        },
        "compute": compute.record(network.config._attn_implementation),
        "citation": kind.citation,
    }
    beside = []
    for name, fields in groups.items():
        of_layer = [replace(output, name=f"{name}/{output.name}") for output in outputs]
        if wanted is not None and not wanted.frames:
            del of_layer[0]
        beside.append(side_group("waveform", name, of_layer, provenance, fields))
    return Backbone(
        name="waveform",
        n_frames=n_frames,
        prepare=np.asarray,
        encode=encoder,
        outputs=outputs,
        provenance=provenance,
        libraries=("torch", "transformers"),
        hears=Hearing(encoder.rate, track),
        beside=tuple(beside),
    )


class WaveformEncoder:
    """A waveform backbone's `encode`: parts of clips, float32 `[F, L]` with NaN after their ends, to arrays.

    Every clip goes through alone, its windows together, so that it gets the same bytes in any batch.

    Parameters
    ----------
    depths
        Layers whose steps stand beside those of the network, column by column, until clips are averaged.
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
    ) -> None:
        self.compute = compute
        self.device = compute.torch_device()
        self.rate = int(extractor.sampling_rate)
        self.longest_s = kind.longest_s(extractor)
        self._dtype = torch.bfloat16 if compute.precision == "bfloat16-weights" else torch.float32
        self._network, self._config, self._kind = network, config, kind
        self._extractor = extractor
        self._depths = depths
        self._taps = Taps(depths, lambda _depth, tokens: tokens)

    def start(self, clips: NDArray[Any] | Sequence[NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Encode clips, `[F, L]` each.

        Raises
        ------
        BackboneError
            If a clip does not fit in the memory, or the network and its extractor do not fit together.
        """
        every = np.stack([self._frames(clip) for clip in clips])
        dtype = self.compute.frames_dtype()
        arrays: dict[str, NDArray[Any]] = {}
        prefixes = ["", *(f"{depth.number}/" for depth in self._depths)]
        for prefix, frames in zip(prefixes, np.split(every, len(prefixes), axis=2), strict=True):
            arrays[f"{prefix}frames"] = frames.astype(dtype)
            arrays[f"{prefix}pooled"] = frames.mean(axis=1, dtype=np.float64).astype("f4")
        return arrays

    __call__ = start

    def _frames(self, parts: NDArray[np.float32]) -> NDArray[np.float32]:
        lengths = np.isfinite(parts).sum(axis=1)
        steps, middles = self.steps(parts[np.isfinite(parts)])
        ends = np.cumsum(lengths)
        frames = []
        for begin, end in zip(ends - lengths, ends, strict=True):
            inside = (middles >= begin) & (middles < end)
            nearest = np.abs(middles - (begin + end) / 2).argmin()
            frames.append(steps[inside].mean(axis=0) if inside.any() else steps[nearest])
        return np.stack(frames)

    def steps(self, samples: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Return the steps `[S, D]` for samples `[N]`, and the sample in the middle of each, `[S]`.

        D is the network's width, then that of each layer.
        """
        if len(samples) < SHORTEST:
            samples = np.pad(samples, (0, SHORTEST - len(samples)))
        longest = int(self.longest_s * self.rate)
        count = -(-len(samples) // longest)
        size = len(samples) // count
        windows = [samples[number * size : (number + 1) * size] for number in range(count)]
        at_once = BatchSize("waveform", WINDOWS_AT_ONCE, "window", self.device)
        steps = [step for part in at_once.map(self._forward, windows) for step in part]
        n_steps = len(steps[0])
        middles = (np.arange(n_steps) + 0.5) * (size / n_steps)
        return np.concatenate(steps), np.concatenate([middles + number * size for number in range(count)])

    def _forward(self, windows: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Run the network over windows of one length; return `[B, S, D]`."""
        given = [self._extractor(window, sampling_rate=self.rate, return_tensors="np") for window in windows]
        try:
            self._network = self._network.to(self.device, self._dtype)  # the first time alone
            inputs = {}
            for name in given[0].keys() - {"attention_mask"}:  # all ones: windows of one length
                value = torch.from_numpy(np.concatenate([each[name] for each in given])).to(self.device)
                inputs[name] = value.to(self._dtype) if value.is_floating_point() else value
            network = self._network.encoder if self._kind.network == "WhisperModel" else self._network
            with inference(self.compute, self.device):
                last: Any = network(**inputs)
                layers = [SimpleNamespace(last_hidden_state=self._taps.take(depth)) for depth in self._depths]
                read = STEPS[self._kind.reads]
                steps = [read(output, self._config, len(windows[0])) for output in (last, *layers)]
                return np.asarray(torch.cat(steps, dim=2).float().cpu().numpy())
        except (RuntimeError, ValueError) as error:
            if is_out_of_memory(error):
                raise
            raise BackboneError(
                f"backbone 'waveform': the network does not take what its {EXTRACTOR} prepares: "
                f"{first_line(error)}"
            ) from error


def _extractor(source: Weights, kind: WaveformKind, config: Any) -> Any:
    """Make the feature extractor of the numbers beside the weights.

    Raises
    ------
    BackboneError
        If there are none, or they are another extractor's, or not this network's.
    """
    cls = getattr(transformers, kind.extractor)
    if source.seed is not None:
        return cls()
    beside = object_beside(source, EXTRACTOR)
    where = f"{source.name}/{EXTRACTOR}"
    named = beside.get("feature_extractor_type", kind.extractor) if beside else None
    if named != kind.extractor:
        told = f"is of {named!r}" if named else "is missing"
        raise BackboneError(f"{where} {told}; how samples are prepared stands in that of a {kind.extractor}")
    try:
        extractor = cls.from_pretrained(str(source.folder), local_files_only=True)
        longest_s = kind.longest_s(extractor)
        fits = SLOWEST <= extractor.sampling_rate <= FASTEST and 0.1 <= longest_s <= 2 * LONGEST_S
    except Exception as error:  # noqa: BLE001 - transformers lets any of them out of strangers' files
        raise BackboneError(f"{where}: there is no such extractor: {first_line(error)}") from None
    if not fits:
        raise BackboneError(
            f"{where}: {extractor.sampling_rate} samples a second and windows of {longest_s:g} s; expected "
            f"{SLOWEST} to {FASTEST}, and at most {2 * LONGEST_S:g} s"
        )
    for ours, theirs in kind.agree.items():
        if getattr(extractor, ours) != getattr(config, theirs):
            raise BackboneError(
                f"{where}: {ours} is {getattr(extractor, ours)}, and the network's {theirs} "
                f"{getattr(config, theirs)}"
            )
    return extractor
