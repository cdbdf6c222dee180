"""Presets give the networks what their own processors would, and say in the store what they do."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from obygaze_features.backbones.presets import IMAGENET, PRESETS, Affine, choose_preset
from obygaze_features.errors import BackboneError
from tests.lazy_import import lazy_import
from tests.rounding import rounding

torch = lazy_import("torch")
CLIPImageProcessorPil = lazy_import("transformers", "CLIPImageProcessorPil")
VideoMAEImageProcessorPil = lazy_import("transformers", "VideoMAEImageProcessorPil")
VivitImageProcessor = lazy_import("transformers", "VivitImageProcessor")
SiglipImageProcessorPil = lazy_import(
    "transformers.models.siglip.image_processing_pil_siglip", "SiglipImageProcessorPil"
)
NAMES = ("obygaze12", *PRESETS)
PIXEL_ROUNDING = rounding("float32", 3, condition=7)
"""Scaled by 255, less a mean, over a deviation of .22: terms of up to 1.5 / .22."""
IMAGENET_STATISTICS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
HALVES = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}
CROP = {"size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224}}
PROCESSORS = {
    "xclip": lambda: VideoMAEImageProcessorPil(**CROP, **IMAGENET_STATISTICS),
    "vivit-hub": lambda: VivitImageProcessor(**CROP, **HALVES, rescale_factor=1 / 127.5),
    "vivit-scenic": lambda: VivitImageProcessor(
        **CROP | {"size": {"shortest_edge": 256}}, rescale_factor=1 / 127.5, do_normalize=False
    ),
    "clip": lambda: CLIPImageProcessorPil(**CROP),
    "siglip": lambda: SiglipImageProcessorPil(size={"height": 224, "width": 224}),
    "siglip2": lambda: SiglipImageProcessorPil(size={"height": 224, "width": 224}, resample=2),
}
# With margins that CLIP and torchvision halve alike.
SIZES = [(224, 224), (272, 638), (241, 431), (180, 320), (320, 180)]


def noise(height, width):
    return np.random.default_rng(height).integers(0, 256, (height, width, 3), dtype=np.uint8)


def pixels_of_preset(preset, frame):
    """Return the pixels of a frame as a preset gives them to the network, [3, h, w]."""
    affine = preset.affine
    scale, shift = (
        torch.tensor(x, dtype=torch.float64).float()[:, None, None] for x in (affine.scale, affine.shift)
    )
    return torch.from_numpy(preset.geometry(frame).transpose(2, 0, 1).copy()).float() * scale + shift


def pixels_of_transformers(name, frame):
    """Return the pixels of a frame as transformers' processor gives them, [3, 224, 224]."""
    pixels = PROCESSORS[name]()([frame], return_tensors="np")["pixel_values"]
    return torch.from_numpy(np.asarray(pixels, np.float32).reshape(3, 224, 224))


TALL = (320, 180)
# Pillow 13 shrinks the rows of a tall frame first, and older versions and ours the columns: where a frame is
# resized to a square, as by SigLIP's processor, the pixels differ.
CASES = [
    (name, size) for name in PROCESSORS for size in SIZES if not (name.startswith("siglip") and size == TALL)
]


@pytest.mark.parametrize(("name", "size"), CASES, ids=str)
def test_presets_give_the_pixels_of_the_processors_of_transformers(name, size):
    """A preset resizes, crops and normalises a frame as the processor of a network does.

    Rounding of float32 is allowed; one of 256 levels would be a difference of .0039 or more.
    """
    height, width = size
    frame = noise(height, width)
    preset = PRESETS[name]

    pixels = pixels_of_preset(preset, frame)

    expected = pixels_of_transformers(name, frame)
    assert preset.geometry(frame).shape == (224, 224, 3)
    assert (pixels - expected).abs().max() <= PIXEL_ROUNDING


@pytest.mark.parametrize(
    ("n_pixels_too_many", "margin_of_clip", "margin_of_xclip"),
    [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 2, 1), (5, 2, 2), (7, 4, 3)],
)
def test_the_margin_of_a_crop_is_rounded_to_even_for_clip_and_down_for_xclip(
    n_pixels_too_many, margin_of_clip, margin_of_xclip
):
    """Of a side with too many pixels, half of them is cut off before the crop: of 1 pixel, .5 of a pixel.

    CLIP's own library, torchvision, rounds a half to even; transformers, as for X-CLIP, rounds down.
    """
    side = 224 + n_pixels_too_many

    assert PRESETS["clip"].geometry.margin(side, 224) == margin_of_clip
    assert PRESETS["xclip"].geometry.margin(side, 224) == margin_of_xclip


def test_the_preset_obygaze12_normalises_as_x_clip_does():
    """X-CLIP's frames are normalised by the means and deviations of ImageNet."""
    preset = choose_preset("obygaze12", ("xclip", "obygaze12"))

    assert preset.affine == Affine.of(*IMAGENET)


def test_a_preset_of_another_backbone_is_refused():
    """X-CLIP has the presets xclip and obygaze12, and is asked for one of ViViT's."""
    presets_of_xclip = ("xclip", "obygaze12")

    with pytest.raises(BackboneError, match=r"'vivit-hub' .*xclip, obygaze12"):
        choose_preset("vivit-hub", presets_of_xclip)


@pytest.mark.parametrize("name", NAMES)
def test_a_geometry_survives_pickling(name):
    """A geometry is how a preset resizes and crops a frame.

    Frames are prepared in worker processes, to which it is sent as a pickle.
    """
    presets_of_backbone = ("clip", name)
    geometry = choose_preset(name, presets_of_backbone).geometry
    frame = noise(height=90, width=120)

    unpickled = pickle.loads(pickle.dumps(geometry))  # noqa: S301 - our own

    assert unpickled == geometry
    assert hash(unpickled) == hash(geometry)
    assert np.array_equal(unpickled(frame), geometry(frame))


def test_decode_workers_need_neither_torch_nor_transformers():
    """Importing these libraries takes seconds and memory in each worker, and decoding needs none of them.

    A new process imports what workers import, and prints which of the two are loaded.
    """
    code = (
        "import sys; import obygaze_features.backbones.presets, obygaze_features.backbones.weights; "
        "print({'torch', 'transformers'} & {*sys.modules})"
    )

    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert result.stdout.strip() == "set()"


RECORDS = {
    "obygaze12": ("squash to 224x224, opencv-bilinear", None),
    "xclip": ("shortest edge to 224, pillow-bilinear", "centre 224x224, half a pixel rounded down"),
    "vivit-hub": ("shortest edge to 224, pillow-bilinear", "centre 224x224, half a pixel rounded down"),
    "vivit-scenic": ("shortest edge to 256, pillow-bilinear", "centre 224x224, half a pixel rounded down"),
    "clip": ("shortest edge to 224, pillow-bicubic", "centre 224x224, half a pixel rounded even"),
    "siglip": ("squash to 224x224, pillow-bicubic", None),
    "siglip2": ("squash to 224x224, pillow-bilinear", None),
}
"""Name of a preset -> the words of its record in a store on how frames are resized and cropped."""


@pytest.mark.parametrize("name", RECORDS)
def test_the_record_of_a_preset_in_a_store_stays_the_same(name):
    """Stores of earlier versions hold the words of RECORDS, and stores are compared by them."""
    presets_of_backbone = ("clip", name)
    resize, crop = RECORDS[name]

    record = choose_preset(name, presets_of_backbone).record()

    assert record["resize"] == resize
    assert record["crop"] == crop


def test_the_table_of_records_has_every_preset():
    """RECORDS is written by hand: whoever adds a preset must add there how a store describes it."""
    # obygaze12 is not in PRESETS, as it takes its normalisation from the backbone.
    all_presets = {"obygaze12", *PRESETS}

    assert RECORDS.keys() == all_presets
