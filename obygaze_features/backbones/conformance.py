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
from obygaze_features.door import read_text
from obygaze_features.errors import BackboneError, ObygazeError, first_line
from obygaze_features.io import sha256_of, write_whole
from obygaze_features.lines import json_bytes
from obygaze_features.text import counted

SAME_WITHIN = 1e-4
"""Share of the largest value by which a clip may differ in a batch: products sum in another order there."""
LEAST_CHANGE = 1e-5
"""Share of the largest value by which a vector moves at least when a frame is another one."""
N_PICTURES = 2
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
        One of `CHECKS`.
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
        Of the network.
    pooled
        Which of its outputs is the vector; empty if it did not run.
    shapes
        Array -> its shape for one clip.
    findings
        The results.
    """

    weights: str
    model_type: str
    pooled: str
    shapes: dict[str, list[int]]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Return whether all checks were made, and the network passed them."""
        return len(self.findings) == len(CHECKS) and all(finding.passed for finding in self.findings)

    def failures(self) -> list[Finding]:
        """Return the results of the checks that the network failed."""
        return [finding for finding in self.findings if not finding.passed]

    def refuse(self) -> None:
        """Raise an error for a network that failed a check.

        Raises
        ------
        BackboneError
            Naming the checks and what was seen.
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
    """Load a network and check that it can be used without training.

    A network that passed an earlier check is not checked again.

    Parameters
    ----------
    inspected
        The network, and how it is called.
    n_frames
        Frames of a clip, of networks that take clips; None is the network's own number.
    even_if_passed
        Whether to check even if the cache has a pass.
    """
    processor, processor_finding = _load_processor(inspected)
    if processor is None and inspected.call.takes_patches:  # only its processor can make the patches
        conformance = Conformance(inspected.weights.name, inspected.model_type, "", {}, (processor_finding,))
        return Checked(conformance, module=None, processor=None)
    module = _load_module(inspected, processor)
    key = _key(inspected, processor, n_frames)
    earlier_pass = None if even_if_passed else _read_pass(key)
    if earlier_pass is not None:
        return Checked(earlier_pass, module, processor)
    conformance = _run_checks(inspected, module, processor, processor_finding, n_frames)
    if conformance.passed:
        _write_pass(key, conformance)
    return Checked(conformance, module, processor)


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
    model_type = type_of(weights)
    return check(inspect_type(weights, model_type, "image"), even_if_passed=True).conformance


def _load_module(inspected: InspectedType, processor: OwnProcessor | None) -> nn.Module:
    """Load the network; one of whole pictures is loaded even without a processor, to check the rest of it."""
    if processor is None:
        # A network of whole pictures does not look at it.
        processor = OwnProcessor("", "{}", scale=(1.0,) * 3, shift=(0.0,) * 3, sides=(1, 1))
    return module_of(inspected, processor)


def _load_processor(inspected: InspectedType) -> tuple[OwnProcessor | None, Finding]:
    """Load the network's processor; return it and the result of the check `processor`.

    The processor is None if it is unusable.
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
    """Run all checks of a loaded network on two clips of noise.

    Parameters
    ----------
    inspected, module, processor
        The network, the module that runs it, and its processor, if there is one.
    processor_finding
        Result of the check of the processor, the first of the results.
    n_frames
        Frames of a clip, of networks that take clips.
    """
    sees_clips = inspected.call.form == "clips"
    frames = inspected.frames("video", n_frames) if sees_clips else N_PICTURES
    clips = _clips(processor, _side(inspected), frames)
    with torch.inference_mode():
        try:
            results = module(clips)
        except Exception as error:  # noqa: BLE001 - networks raise anything
            failure = Finding("runs", passed=False, detail=first_line(error) or type(error).__name__)
            findings = [processor_finding, failure]
            return Conformance(inspected.weights.name, inspected.model_type, "", {}, tuple(findings))
        findings = [
            processor_finding,
            Finding("runs", passed=True, detail=f"2 clips of {frames} frames"),
        ]
        shapes = {name: list(values.shape[1:]) for name, values in results.items()}
        checks: Sequence[tuple[str, Callable[[], Outcome]]] = (
            ("deterministic", lambda: _is_deterministic(module, clips, results)),
            ("finite", lambda: _is_finite(results)),
            ("shapes", lambda: _has_shapes(module, clips, shapes)),
            ("frames", lambda: _has_frames(shapes, frames, needed=not sees_clips)),
            ("batch invariant", lambda: _is_batch_invariant(module, clips, results)),
            ("padding invariant", lambda: _is_padding_invariant(module, clips, results)),
            ("a changed frame changes the answer", lambda: _is_changed_by_frames(module, clips, results)),
        )
        for name, run in checks:
            try:
                findings.append(Finding(name, *run()))
            except Exception as error:  # noqa: BLE001 - networks raise anything
                findings.append(Finding(name, passed=False, detail=first_line(error) or type(error).__name__))
    pooled: Any = module.meaning
    return Conformance(inspected.weights.name, inspected.model_type, pooled, shapes, tuple(findings))


def _side(inspected: InspectedType) -> int:
    """Return the side in pixels of the network's square pictures, from its configuration or `USUAL_SIDE`."""
    side = getattr(inspected.seeing_config(), "image_size", None) or USUAL_SIDE
    if isinstance(side, list | tuple):
        side = side[0]
    return int(side)


def _clips(processor: OwnProcessor | None, side: int, n_frames: int) -> torch.Tensor:
    """Make two clips of noise, prepared and normalised as the network takes them, float `[2, F, 3, h, w]`."""
    rng = np.random.default_rng(0)
    if processor is None:
        return torch.from_numpy(rng.normal(size=(2, n_frames, 3, side, side))).float()
    frames = [processor(_coarse_noise(rng)) for _ in range(2 * n_frames)]
    affine = processor.affine
    values = np.stack(frames) * np.array(affine.scale) + np.array(affine.shift)
    clips = values.reshape(2, n_frames, *values.shape[1:])
    return torch.from_numpy(clips.transpose(0, 1, 4, 2, 3)).float().contiguous()


def _coarse_noise(rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Draw a picture of squares that no resizing averages away, uint8 `[360, 640, 3]`."""
    squares = rng.integers(0, 256, (9, 16, 3), dtype=np.uint8)
    return np.kron(squares, np.ones((40, 40, 1), np.uint8))


def _is_deterministic(module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]) -> Outcome:
    """Check that a second run on the same clips gives exactly the same results."""
    second_results = module(clips)
    largest = max(_relative_difference(second_results[name], values) for name, values in results.items())
    if largest == 0:
        return Outcome(True, "the same twice")
    return Outcome(False, f"two runs differ by {largest:.1g} of the largest value")


def _is_finite(results: dict[str, torch.Tensor]) -> Outcome:
    """Check that no array has a NaN or an infinite value."""
    not_finite = [name for name, values in results.items() if not torch.isfinite(values).all()]
    if not_finite:
        return Outcome(False, f"not finite: {', '.join(not_finite)}")
    return Outcome(True, "all values")


def _has_shapes(module: nn.Module, clips: torch.Tensor, shapes: dict[str, list[int]]) -> Outcome:
    """Check that one clip alone gives arrays of the same shapes as each clip of a batch of two."""
    shapes_alone = {name: list(values.shape[1:]) for name, values in module(clips[:1]).items()}
    shapes_in_words = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if shapes_alone != shapes:
        return Outcome(False, f"{shapes_in_words} of two clips, {shapes_alone} of one")
    return Outcome(True, shapes_in_words)


def _has_frames(shapes: dict[str, list[int]], n_frames: int, *, needed: bool) -> Outcome:
    """Check that the array `frames` has one row for each frame.

    Parameters
    ----------
    needed
        Whether the network must give this array.
    """
    if "frames" not in shapes:
        return Outcome(not needed, "one vector a clip")
    n_rows = shapes["frames"][0]
    return Outcome(n_rows == n_frames, f"{counted(n_rows, 'row')} of {counted(n_frames, 'frame')}")


def _is_batch_invariant(module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]) -> Outcome:
    """Check that a clip, and a frame of a network of pictures, gets the same vectors alone as in a batch."""
    largest = 0.0
    for row in range(len(clips)):
        results_alone = module(clips[row : row + 1])
        for name, values in results.items():
            largest = max(largest, _relative_difference(results_alone[name][0], values[row]))
    has_a_row_per_frame = "frames" in results and results["frames"].shape[1] == clips.shape[1]
    if has_a_row_per_frame and not _mixes_frames(module):
        last_frame = module(clips[:1, -1:])
        largest = max(largest, _relative_difference(last_frame["frames"][0, 0], results["frames"][0, -1]))
    detail = f"alone and in a batch differ by {largest:.1g} of the largest value"
    return Outcome(largest <= SAME_WITHIN, detail)


def _mixes_frames(module: nn.Module) -> bool:
    """Return whether the network takes whole clips, so that a frame's vector depends on other frames."""
    call: Any = module.call
    return bool(call.form == "clips")


def _is_padding_invariant(
    module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]
) -> Outcome:
    """Check that padding does not change the results: clips added to a batch, and unused patches."""
    padded = module(torch.cat([clips, clips[-1:], clips[-1:]]))
    largest = max(
        _relative_difference(padded[name][: len(clips)], values) for name, values in results.items()
    )
    added = "a batch filled up with copies"
    if isinstance(module, PackedPictures):
        noisy = module(_with_noise_after_the_patches(clips, module))
        for name, values in results.items():
            largest = max(largest, _relative_difference(noisy[name], values))
        added += ", and noise in patches that stand for nothing,"
    return Outcome(largest <= SAME_WITHIN, f"{added} moves values by {largest:.1g} of the largest value")


def _with_noise_after_the_patches(clips: torch.Tensor, module: PackedPictures) -> torch.Tensor:
    """Replace the unused rows of packed pictures `[2, F, 3, P + 1, D / 3]`, after the patches, by noise."""
    used = module.used_rows(clips)  # [2, F, P + 1]
    noise = torch.randint(0, 256, clips.shape, generator=torch.Generator().manual_seed(0)).to(clips.dtype)
    return torch.where(used[:, :, None, :, None], clips, noise)


def _is_changed_by_frames(
    module: nn.Module, clips: torch.Tensor, results: dict[str, torch.Tensor]
) -> Outcome:
    """Check that a clip's vector changes if its first frame is replaced, and if its last frame is."""
    frames_without_effect = []
    for frame in (0, clips.shape[1] - 1):
        changed = clips[:1].clone()
        changed[0, frame] = clips[1, frame]
        change = _relative_difference(module(changed)["pooled"][0], results["pooled"][0])
        has_effect = change > LEAST_CHANGE  # False if the change is NaN
        if not has_effect:
            frames_without_effect.append(str(frame + 1))
    if frames_without_effect:
        return Outcome(
            False, f"another picture as frame {' and '.join(frames_without_effect)} changes nothing"
        )
    return Outcome(True, "the first and the last frame")


def _relative_difference(values: torch.Tensor, reference: torch.Tensor) -> float:
    """Return the largest absolute difference of two arrays over the largest absolute value of the reference.

    Infinite if their shapes differ.
    """
    if values.shape != reference.shape:
        return float("inf")
    largest = float(reference.abs().max())
    difference = float((values.float() - reference.float()).abs().max())
    return difference / max(largest, 1e-12)


def _key(inspected: InspectedType, processor: OwnProcessor | None, n_frames: int | None) -> dict[str, Any]:
    """Return all that a pass depends on: digests of weights, configuration and processor, and versions."""
    return {
        "weights": inspected.weights.sha256 or inspected.weights.name,
        "model_type": inspected.model_type,
        "config": sha256_of(json_bytes(json.loads(inspected.config.to_json_string(use_diff=False)))),
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
    """Read the pass of an earlier check from the cache; None if there is none, or it cannot be read.

    Parameters
    ----------
    key
        What the pass depends on, as `_key` gives it.
    """
    path = cache_folder() / f"{sha256_of(json_bytes(key))}.json"
    try:
        written = json.loads(read_text(path))
        findings = tuple(Finding(*finding) for finding in written["findings"])
        conformance = Conformance(
            written["weights"], written["model_type"], written["pooled"], written["shapes"], findings
        )
        has_same_key = written["key"] == key
    except (OSError, ObygazeError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return conformance if has_same_key and conformance.passed else None


def _write_pass(key: dict[str, Any], conformance: Conformance) -> None:
    """Write a pass to the cache; if it cannot be written, the network is only checked again next time."""
    path = cache_folder() / f"{sha256_of(json_bytes(key))}.json"
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json_bytes({"key": key, **asdict(conformance)}))
