"""Pictures: every mode comes out as upright RGB, resized and normalised as published."""

from dataclasses import replace

import numpy as np
import pytest
from data_makers import picture
from PIL import Image

from accelbench.models.data import pictures
from accelbench.models.data.pictures import (
    PictureRecipe,
    best_grid,
    decode,
    fit_picture,
    normalise_pixels,
)
from accelbench.models.data.rows import UnreadableError
from accelbench.models.find import every_model, find

PLAIN = PictureRecipe("plain", (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), filter="BICUBIC")


def middle(image):
    found = image.getpixel((image.width // 2, image.height // 2))
    assert isinstance(found, tuple)
    return tuple(int(value) for value in found)


@pytest.mark.parametrize(
    ("name", "mode"),
    [("a.png", "RGB"), ("a.png", "RGBA"), ("a.png", "P"), ("a.jpg", "CMYK"), ("a.webp", "RGB")],
)
def test_every_mode_becomes_rgb(tmp_path, name, mode):
    image = decode(picture(tmp_path / name, (204, 51, 0), mode=mode).read_bytes())
    assert image.mode == "RGB"
    assert np.abs(np.subtract(middle(image), (204, 51, 0))).max() <= 8  # JPEG and WebP lose some


def test_modes_bits_and_exif(tmp_path):
    image = decode(picture(tmp_path / "a.png", (90, 90, 90), mode="L").read_bytes())
    assert middle(image) == (90, 90, 90)
    path = tmp_path / "deep.png"
    Image.fromarray(np.full((8, 8), 128 << 8, np.uint16)).save(path)
    assert middle(decode(path.read_bytes())) == (128, 128, 128)
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    path = picture(tmp_path / "a.jpg", size=(40, 20), exif=exif)
    assert decode(path.read_bytes()).size == (20, 40)

    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "a.jpg")
    data = (tmp_path / "a.jpg").read_bytes()
    with pytest.raises(UnreadableError):
        decode(data[: len(data) // 2])


@pytest.mark.parametrize("data", [b"", b"no picture at all"])
def test_what_is_no_picture_says_so_without_an_address(data):
    with pytest.raises(UnreadableError) as raised:
        decode(data)
    assert str(raised.value) == "it is no picture"


def test_cuts_and_margins():
    # A picture of three stripes, twice as wide as high: the outer ones are lost.
    pixels = np.zeros((100, 200, 3), np.uint8)
    pixels[:, 50:150] = 255
    found = normalise_pixels(fit_picture(Image.fromarray(pixels), 50, 50, PLAIN), PLAIN)
    assert found.shape == (3, 50, 50)
    assert found[:, :, 2:-2].min() > 0.95

    # 256 / 224 of the size: an eighth of each side is cut away, half of it at either end.
    pixels = np.zeros((256, 256, 3), np.uint8)
    pixels[16:240, 16:240] = 255
    how = replace(PLAIN, margin=256 / 224)
    assert normalise_pixels(fit_picture(Image.fromarray(pixels), 224, 224, how), how).min() == 1.0

    grids = [[336, 672], [672, 336], [672, 672], [1008, 336], [336, 1008]]
    assert best_grid((336, 336), grids) == (336, 672)  # nothing gained by a larger one
    assert best_grid((1000, 300), grids) == (1008, 336)
    assert best_grid((640, 640), grids) == (672, 672)


@pytest.mark.parametrize("size", [(7, 1000), (1000, 7), (1, 1)])
def test_odd_proportions_still_fill_the_target(size):
    assert fit_picture(Image.new("RGB", size), 24, 16, PLAIN).size == (16, 24)


@pytest.mark.parametrize(
    ("model", "red"),
    [
        ("resnet-50", (1 - 0.485) / 0.229),
        ("detr", (1 - 0.485) / 0.229),
        ("vit-base", 1.0),
        ("clip-base", (1 - 0.48145466) / 0.26862954),
        ("llava-next", (1 - 0.48145466) / 0.26862954),
        ("xclip-base", (1 - 0.485) / 0.229),
        ("vit-gpt2", 1.0),
    ],
)
def test_published_normalisation(model, red):
    how = pictures.preprocessing(find(model))
    assert how is not None
    made = normalise_pixels(Image.new("RGB", (4, 4), (255, 0, 0)), how)
    assert made.dtype == np.float32
    assert made[0] == pytest.approx(red, rel=1e-6)


def test_every_model_that_takes_pictures_has_a_published_way():
    taking = [m for m in every_model() if any(t.name == "pixel_values" for t in m.inputs)]
    assert taking
    assert [m.id for m in taking if pictures.preprocessing(m) is None] == []


def test_tiles_are_the_whole_then_the_grid_padded_with_black():
    tiles = pictures.tile_picture(
        Image.new("RGB", (50, 70), (255, 255, 255)), (32, 32), (32, 64), 32, PLAIN
    )
    assert [t.shape for t in tiles] == [(3, 32, 32)] * 3
    assert tiles[0].min() == 1.0
    # The picture stands in the middle of the two tiles: half of each is black.
    assert tiles[1][:, :, :16].max() == 0.0
    assert tiles[1][:, :, 16:].min() == 1.0
    assert tiles[2][:, :, :16].min() == 1.0
    assert tiles[2][:, :, 16:].max() == 0.0


def noise(height, width):
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    ("model", "processor", "how"),
    [
        ("clip-base", "CLIPImageProcessorPil", {}),
        (
            "resnet-50",  # whose published config names ConvNeXT's processor
            "ConvNextImageProcessorPil",
            {
                "size": {"shortest_edge": 224},
                "crop_pct": 224 / 256,
                "resample": 3,
                "image_mean": [0.485, 0.456, 0.406],
                "image_std": [0.229, 0.224, 0.225],
            },
        ),
    ],
)
def test_pixels_are_those_of_transformers_own_processor(model, processor, how):
    import transformers

    image = noise(333, 500)
    theirs = getattr(transformers, processor)(**how)(image, return_tensors="np")["pixel_values"][0]
    ours = pictures.preprocessing(find(model))
    assert ours is not None
    assert np.allclose(
        normalise_pixels(fit_picture(image, 224, 224, ours), ours), theirs, atol=1e-6
    )


def test_tiles_are_those_of_transformers_own_processor():
    from transformers.models.llava_next.image_processing_pil_llava_next import (
        LlavaNextImageProcessorPil,
    )

    spec, image = find("llava-next"), noise(336, 336)
    grids = spec.config["image_grid_pinpoints"]
    side = {"height": 336, "width": 336}
    own = LlavaNextImageProcessorPil(
        size={"shortest_edge": 336}, crop_size=side, image_grid_pinpoints=grids
    )
    theirs = own(image, return_tensors="np")["pixel_values"][0]
    how = pictures.preprocessing(spec)
    assert how is not None
    ours = pictures.tile_picture(image, (336, 336), best_grid((336, 336), grids), 336, how)
    assert np.allclose(np.stack(ours), theirs, atol=1e-6)


def test_no_program_is_started_for_a_picture(tmp_path, monkeypatch):
    """Pillow hands EPS to Ghostscript, whatever the file is called."""
    from PIL import EpsImagePlugin

    asked = []
    monkeypatch.setattr(EpsImagePlugin, "has_ghostscript", lambda: asked.append(1) or False)
    monkeypatch.setattr(EpsImagePlugin, "gs_binary", False)
    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", lambda *words, **_: asked.append(words))
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n%%EOF\n"
    with pytest.raises(UnreadableError, match="it is no picture"):
        pictures.decode(eps)
    assert not asked
