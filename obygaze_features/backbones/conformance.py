"""Check that a network can be used frozen: the same answer again, in any batch, for every frame.

A type of network enters by what its class says of itself, and a class may say what it does not keep:
networks that mask at random when they should only look, or that pack a batch into one row, give numbers of
the right form and no features. The check runs the network on pictures of noise. **A pass is about shapes and
repetition, not about meaning**: it does not say that the vector is the one that the authors used, that the
weights are trained, or that a processor's settings are those of the training.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from obygaze_features.backbones.any_encoder import (
    InspectedType,
    PackedPictures,
    inspect_type,
    module_of,
    type_of,
)
from obygaze_features.backbones.own_processor import OwnProcessor, own_processor
from obygaze_features.backbones.weights import find_weights
from obygaze_features.errors import BackboneError, ObygazeError, first_line
from obygaze_features.io import sha256_of, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.text import counted
from obygaze_features.untrusted import read_text

SAME_WITHIN = 1e-4
"""Share of the largest value by which a clip may differ in a batch: products sum in another order there."""
MIN_CHANGE = 1e-5
"""Share of the largest value by which a vector moves at least when a frame is another one."""
N_FRAMES_OF_PICTURES = 2
"""Frames of a clip of the check for networks that see pictures; clips have as many as the network takes."""
USUAL_SIDE = 224
"""Height and width of pictures for a network whose processor cannot be used and that names no side."""
CHECKS = (
    "processor",
    "runs",
    "deterministic",
    "finite",
    "shapes",
    "frames",
    "batch invariant",
    "padding invariant",
    "a changed frame changes the answer",
)
"""What is checked, in this order; what follows on a network that does not run is not tried."""
LIBRARIES = ("transformers", "torch", "torchvision", "timm", "pillow", "obygaze")
"""Libraries on whose versions a pass hangs: they hold networks and processors."""


class Outcome(NamedTuple):
    """Whether a network passes one check, and what was seen."""

    passed: bool
    detail: str


class Finding(NamedTuple):
    """The result of one check.

    Attributes
    ----------
    check
        Name of the check, one of `CHECKS`.
    passed
        Whether the network passes it.
    detail
        What was seen.
    """

    check: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Conformance:
    """The results of all checks of a network.

    Parameters
    ----------
    weights, model_type
        Name of the weights, and type of the network.
    pooled
        From which output of the network its vectors come, such as `pooler_output`; empty if it did not run.
    shapes
        Array -> its shape for one clip; empty if it did not run.
    findings
        The result of each check that was made.
    """

    weights: str
    model_type: str
    pooled: str
    shapes: dict[str, list[int]]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether the network passed every check; False if a check, of those in `CHECKS`, was not made."""
        passed_checks = tuple(finding.check for finding in self.findings if finding.passed)
        return passed_checks == CHECKS  # checks are made in this order

    def failures(self) -> list[Finding]:
        """List the results of the checks that the network failed."""
        return [finding for finding in self.findings if not finding.passed]

    def raise_if_failed(self) -> None:
        """Raise an error if the network failed a check.

        Raises
        ------
        BackboneError
            The message names the checks that failed, and what was seen.
        """
        if self.passed:
            return
        failures = "; ".join(f"{finding.check}: {finding.detail}" for finding in self.failures())
        raise BackboneError(
            f"{self.weights}: a network of type {self.model_type!r} fails the conformance check, and no "
            f"features are made with it ({failures}); 'obygaze weights check {self.weights}' shows all of it"
        )


class Checked(NamedTuple):
    """A network with the results of its check.

    Attributes
    ----------
    conformance
        The results.
    module
        The network as a module that takes prepared clips; None if it could not be loaded so.
    processor
        What prepares its pictures; None if there is none.
    """

    conformance: Conformance
    module: Any
    processor: OwnProcessor | None


def check(inspected: InspectedType, n_frames: int | None = None, *, even_if_passed: bool = False) -> Checked:
    """Load a network and check that it gives features: the same ones again, in any batch, for every frame.

    The results of a network that passes are written to a cache, and are read from there the next time. A
    network of patches without a processor fails and is not loaded: nothing else can make its patches.

    Parameters
    ----------
    inspected
        The type of the network, its weights, and how it is called.
    n_frames
        Frames of a clip, of networks that take clips; None is the network's own number.
    even_if_passed
        Whether to check a network again that has passed.
    """
    processor, processor_finding = _load_processor(inspected)
    if processor is None and inspected.call.takes_patches:
        conformance = _failed(inspected, processor_finding)
        return Checked(conformance, module=None, processor=None)
    module = _load_module(inspected, processor)
    key = _cache_key(inspected, processor, n_frames)
    earlier_pass = None if even_if_passed else _read_pass(key)
    if earlier_pass is not None:
        return Checked(earlier_pass, module, processor)
    conformance = _run_checks(inspected, module, processor, processor_finding, n_frames)
    if conformance.passed:
        _write_pass(key, conformance)
    return Checked(conformance, module, processor)


def _failed(inspected: InspectedType, *findings: Finding) -> Conformance:
    """Return the results of a network that did not run, so that it has neither vectors nor shapes."""
    return Conformance(inspected.weights.name, inspected.model_type, pooled="", shapes={}, findings=findings)


def check_weights(name: str) -> Conformance:
    """Check the network of weights, even if the cache has a pass.

    Parameters
    ----------
    name
        Name, folder or repository, as for `extract --weights`.

    Raises
    ------
    BackboneError
        If there are no such weights, or their type does not take pictures alone.
    """
    weights = find_weights(name)
    # `backbone` matters only for a network that takes both pictures and clips: its pictures are checked.
    inspected = inspect_type(weights, type_of(weights), backbone="image")
    return check(inspected, even_if_passed=True).conformance


def _load_module(inspected: InspectedType, processor: OwnProcessor | None) -> nn.Module:
    """Load the network as a module that takes prepared clips.

    `processor` is None if none can be used; the network must not take patches then.
    """
    if processor is None:
        # `module_of` wants a processor, but reads it only for networks that take patches.
        processor = OwnProcessor(name="", settings="{}", scale=(1.0,) * 3, shift=(0.0,) * 3, sides=(1, 1))
    return module_of(inspected, processor)


def _load_processor(inspected: InspectedType) -> tuple[OwnProcessor | None, Finding]:
    """Load the processor that prepares a network's pictures; return it with the result of the first check.

    The processor is None if it cannot be used. The check itself is part of `own_processor`: pictures stored
    in 8 bits must be those of the processor.
    """
    try:
        processor = own_processor(inspected.weights, inspected.call, inspected.cls)
    except BackboneError as error:
        problem = str(error).removeprefix(f"{inspected.weights.name}: ")
        return None, Finding("processor", passed=False, detail=problem)
    size = "patches" if processor.is_packed else "{} x {} pixels".format(*processor.sides)
    detail = f"{processor.name}, {size}; equal on a picture of noise"
    return processor, Finding("processor", passed=True, detail=detail)


def _run_checks(
    inspected: InspectedType,
    module: nn.Module,
    processor: OwnProcessor | None,
    processor_finding: Finding,
    n_frames: int | None,
) -> Conformance:
    """Run all checks of a loaded network on two clips of noise; return their results.

    If the network raises an error on the clips, no further check is made.

    Parameters
    ----------
    inspected, module, processor
        The network, the module that runs it, and its processor, if there is one.
    processor_finding
        Result of the check of the processor, the first of the results.
    n_frames
        Frames of a clip, of networks that take clips.
    """
    takes_clips = inspected.call.form == "clips"
    clip_length = inspected.frames("video", n_frames) if takes_clips else N_FRAMES_OF_PICTURES
    clips = _clips(processor, _picture_side(inspected), clip_length)
    with torch.inference_mode():
        try:
            results = module(clips)
        except Exception as error:  # noqa: BLE001 - networks raise anything
            return _failed(inspected, processor_finding, _error_finding("runs", error))
        shapes = {name: list(values.shape[1:]) for name, values in results.items()}
        # Name of a check -> function that makes it. They are functions because a check may raise an error,
        # which `_finding` records as its failure.
        checks: dict[str, Callable[[], Outcome]] = {
            "deterministic": lambda: _is_deterministic(module, clips, results),
            "finite": lambda: _is_finite(results),
            "shapes": lambda: _has_shapes(module, clips, shapes),
            "frames": lambda: _has_frames(shapes, clip_length, needed=not takes_clips),
            "batch invariant": lambda: _is_batch_invariant(module, clips, results),
            "padding invariant": lambda: _is_padding_invariant(module, clips, results),
            "a changed frame changes the answer": lambda: _is_changed_by_frames(module, clips, results),
        }
        ran = Finding("runs", passed=True, detail=f"2 clips of {clip_length} frames")
        findings = [processor_finding, ran]
        findings += [_finding(name, run_check) for name, run_check in checks.items()]
    meaning_of_vectors = str(module.meaning)  # set by the module when it runs
    return Conformance(
        inspected.weights.name,
        inspected.model_type,
        pooled=meaning_of_vectors,
        shapes=shapes,
        findings=tuple(findings),
    )


def _finding(check_name: str, run_check: Callable[[], Outcome]) -> Finding:
    """Run one check of a network, and return its result; if the network raises an error, it has failed."""
    try:
        outcome = run_check()
    except Exception as error:  # noqa: BLE001 - networks raise anything
        return _error_finding(check_name, error)
    return Finding(check_name, outcome.passed, outcome.detail)


def _error_finding(check_name: str, error: Exception) -> Finding:
    """Return the result of a check in which the network raised an error."""
    return Finding(check_name, passed=False, detail=first_line(error) or type(error).__name__)


def _picture_side(inspected: InspectedType) -> int:
    """Return the side in pixels of the network's square pictures, from its configuration or `USUAL_SIDE`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> config = SimpleNamespace(image_size=[384, 384])  # height and width
    >>> _picture_side(SimpleNamespace(vision_config=lambda: config))
    384
    """
    side = getattr(inspected.vision_config(), "image_size", None) or USUAL_SIDE
    if isinstance(side, list | tuple):
        side = side[0]
    return int(side)


def _clips(processor: OwnProcessor | None, side: int, n_frames: int) -> torch.Tensor:
    """Make two clips of noise, prepared and normalised as the network's module takes them.

    They are float `[2, F, 3, h, w]`, or packed patches, as the processor makes them. Without a processor they
    are drawn from a normal distribution, because the values of normalised pictures lie around 0.
    """
    rng = np.random.default_rng(0)
    if processor is None:
        return torch.from_numpy(rng.normal(size=(2, n_frames, 3, side, side))).float()
    frames = np.stack([processor(_coarse_noise(rng)) for _ in range(2 * n_frames)])  # uint8 [2 F, h, w, 3]
    normalisation = processor.affine
    values = frames * np.array(normalisation.scale) + np.array(normalisation.shift)
    clips = values.reshape(2, n_frames, *values.shape[1:])  # [2, F, h, w, 3]
    channels_first = clips.transpose(0, 1, 4, 2, 3)
    return torch.from_numpy(channels_first).float().contiguous()


def _coarse_noise(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Draw a picture of coloured squares, uint8 `[360, 640, 3]`, that is still noise once it is resized.

    Squares have sides of 40 pixels: noise of single pixels would become grey.
    """
    squares = rng.integers(0, 256, (9, 16, 3), dtype=np.uint8)
    return np.kron(squares, np.ones((40, 40, 1), np.uint8))


def _is_deterministic(module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]) -> Outcome:
    """Check that a second run of a network on the same clips gives exactly the results of the first one."""
    second_results = module(clips)
    differences = [_relative_difference(second_results[name], values) for name, values in results.items()]
    largest = _largest(differences)
    if largest == 0:
        return Outcome(passed=True, detail="the same twice")
    return Outcome(passed=False, detail=f"two runs differ by {largest:.1g} of the largest value")


def _is_finite(results: dict[str, torch.Tensor]) -> Outcome:
    """Check that no array has a NaN or an infinite value."""
    not_finite = [name for name, values in results.items() if not torch.isfinite(values).all()]
    if not_finite:
        return Outcome(passed=False, detail=f"not finite: {', '.join(not_finite)}")
    return Outcome(passed=True, detail="all values")


def _has_shapes(module: nn.Module, clips: torch.Tensor, shapes: dict[str, list[int]]) -> Outcome:
    """Check that one clip alone gives arrays of the same shapes as each clip of a batch of two.

    `shapes` has the shape of each array of the batch, for one clip.
    """
    results_alone = module(clips[:1])
    shapes_alone = {name: list(values.shape[1:]) for name, values in results_alone.items()}
    shapes_in_words = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if shapes_alone != shapes:
        return Outcome(passed=False, detail=f"{shapes_in_words} of two clips, {shapes_alone} of one")
    return Outcome(passed=True, detail=shapes_in_words)


def _has_frames(shapes: dict[str, list[int]], n_frames: int, *, needed: bool) -> Outcome:
    """Check that the array `frames` of a network's results has one row for each frame.

    Parameters
    ----------
    shapes
        Name of each array -> its shape for one clip.
    n_frames
        Frames of a clip.
    needed
        Whether the network must give this array.
    """
    if "frames" not in shapes:
        return Outcome(passed=not needed, detail="one vector a clip")
    n_rows = shapes["frames"][0]
    detail = f"{counted(n_rows, 'row')} of {counted(n_frames, 'frame')}"
    return Outcome(passed=n_rows == n_frames, detail=detail)


def _is_batch_invariant(module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]) -> Outcome:
    """Check that a clip gets the same vectors alone as in a batch, but for rounding.

    Of a network that encodes each frame by itself, the same is checked of a frame.

    Parameters
    ----------
    module
        The network.
    clips
        The clips of the batch.
    results
        Name -> array, of the batch.
    """
    differences = []
    for row in range(len(clips)):
        results_alone = module(clips[row : row + 1])
        for name, values in results.items():
            differences.append(_relative_difference(results_alone[name][0], values[row]))
    has_a_row_per_frame = "frames" in results and results["frames"].shape[1] == clips.shape[1]
    if has_a_row_per_frame and _encodes_frames_alone(module):
        last_frame = module(clips[:1, -1:])
        differences.append(_relative_difference(last_frame["frames"][0, 0], results["frames"][0, -1]))
    largest = _largest(differences)
    detail = f"alone and in a batch differ by {largest:.1g} of the largest value"
    return Outcome(largest <= SAME_WITHIN, detail)


def _encodes_frames_alone(module: nn.Module) -> bool:
    """Return whether a frame's vector does not depend on other frames: False for a network of clips.

    The module holds how the network is called, `call`, whose form is "clips" if it takes whole clips.
    """
    call: Any = module.call
    return bool(call.form != "clips")


def _is_padding_invariant(
    module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]
) -> Outcome:
    """Check that results do not depend on what fills a batch up: further clips, and unused patches.

    Parameters
    ----------
    module
        The network.
    clips
        The clips.
    results
        Name -> array of the clips in a batch that is not filled up.
    """
    last_clip = clips[-1:]
    results_of_larger_batch = module(torch.cat([clips, last_clip, last_clip]))
    differences = []
    for name, values in results.items():
        values_in_larger_batch = results_of_larger_batch[name][: len(clips)]
        differences.append(_relative_difference(values_in_larger_batch, values))
    filling = "a batch filled up with copies"
    if isinstance(module, PackedPictures):
        results_with_noise = module(_with_noise_in_unused_rows(clips, module))
        for name, values in results.items():
            differences.append(_relative_difference(results_with_noise[name], values))
        filling += ", and noise in patches that stand for nothing,"
    largest = _largest(differences)
    return Outcome(largest <= SAME_WITHIN, f"{filling} moves values by {largest:.1g} of the largest value")


def _with_noise_in_unused_rows(clips: torch.Tensor, module: PackedPictures) -> torch.Tensor:
    """Fill the unused rows of packed pictures with noise; clips are `[2, F, 3, P + 1, D / 3]`.

    How pictures are packed into P + 1 rows is described at `PackedPictures`.
    """
    is_used = module.used_rows(clips)  # [2, F, P + 1]
    is_used_by_element = is_used[:, :, None, :, None]  # the same for all channels and elements of a row
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(0, 256, clips.shape, generator=generator).to(clips.dtype)
    return torch.where(is_used_by_element, clips, noise)


def _is_changed_by_frames(
    module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]
) -> Outcome:
    """Check that a clip's vector changes if its first or its last frame is replaced by another picture.

    A network that ignores a frame, because it is called wrongly, gives no features of the clip.

    Parameters
    ----------
    module
        The network.
    clips
        Two clips; frames of the second replace those of the first.
    results
        Name -> array, of these clips.
    """
    frames_without_effect = []
    last = clips.shape[1] - 1
    for frame in (0, last):
        changed_clip = clips[:1].clone()
        changed_clip[0, frame] = clips[1, frame]
        vector = module(changed_clip)["pooled"][0]
        change = _relative_difference(vector, results["pooled"][0])
        has_effect = change > MIN_CHANGE  # False if the change is NaN
        if not has_effect:
            frames_without_effect.append(str(frame + 1))  # users count frames from 1
    if frames_without_effect:
        return Outcome(
            passed=False,
            detail=f"another picture as frame {' and '.join(frames_without_effect)} changes nothing",
        )
    return Outcome(passed=True, detail="the first and the last frame")


def _largest(differences: Sequence[float]) -> float:
    """Return the largest of some differences; NaN if any is NaN, so that the network fails the check.

    Python's own `max` may pass over a NaN, as every comparison with it is false.
    """
    return float(np.max(differences))


def _relative_difference(values: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the largest absolute difference of two arrays over the largest absolute value of the reference.

    Infinite if their shapes differ.
    """
    if values.shape != reference.shape:
        return float("inf")
    largest = float(reference.abs().max())
    difference = float((values.float() - reference.float()).abs().max())
    return difference / max(largest, 1e-12)


def _cache_key(
    inspected: InspectedType, processor: OwnProcessor | None, n_frames: int | None
) -> dict[str, Any]:
    """Return all that the results of a network's check depend on, as fields with plain values.

    If any of it changes, the check is made again. That includes the versions of the libraries that hold
    networks and processors.
    """
    config = json.loads(inspected.config.to_json_string(use_diff=False))  # with the fields left at defaults
    return {
        "weights": inspected.weights.sha256 or inspected.weights.name,
        "model_type": inspected.model_type,
        "config": sha256_of(json_bytes(config)),
        "processor": None if processor is None else sha256_of(json_bytes(asdict(processor))),
        "frames": n_frames,
        **{library: _version(library) for library in LIBRARIES},
    }


def _version(library: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def cache_folder() -> Path:
    """Return the folder in which passed checks are kept, below the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "obygaze" / "conformance"


def _read_pass(key: dict[str, Any]) -> Conformance | None:
    """Read the results of an earlier check that was passed; None if there are none, or they cannot be read.

    Parameters
    ----------
    key
        What the results depend on, as `_cache_key` gives it.
    """
    path = cache_folder() / f"{sha256_of(json_bytes(key))}.json"
    # Whatever is wrong with the file, the network can be checked again.
    try:
        written = json.loads(read_text(path))
        conformance = Conformance(
            written["weights"],
            written["model_type"],
            written["pooled"],
            written["shapes"],
            findings=tuple(Finding(*fields) for fields in written["findings"]),
        )
        has_same_key = written["key"] == key
    except (OSError, ObygazeError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return conformance if has_same_key and conformance.passed else None


def _write_pass(key: dict[str, Any], conformance: Conformance) -> None:
    """Write the results of a passed check to the cache, in a file named by the digest of its key.

    `key` holds what the results depend on. If the file cannot be written, the network is checked again the
    next time.
    """
    path = cache_folder() / f"{sha256_of(json_bytes(key))}.json"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_bytes({"key": key, **asdict(conformance)}))
