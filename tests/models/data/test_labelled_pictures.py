"""Labelled pictures: class folders, recipes that are said, and files that cannot be read."""

import json
import os

import numpy as np
import pytest
from data_makers import case_of
from PIL import Image

from accelbench.core.errors import CaseError
from accelbench.core.model import InputSpec
from accelbench.core.run_options import JobSettings
from accelbench.models.data.folder import look
from accelbench.models.data.labelled_feed import LabelledPictures
from accelbench.models.data.pictures import NAMED, PictureRecipe, recipe_in, recipe_of

RGB = InputSpec("image", ("batch", 3, 8, 8), "float32")


def case(input_=RGB, **config):
    return case_of("vision", input_, **config)


def pictures(root):
    for number, name in enumerate(("ant", "bee", "cat")):
        (root / name).mkdir(parents=True)
        for shade in (0, 255):
            colour = (40 * number, shade, 0)
            Image.new("RGB", (10 + number, 20), colour).save(root / name / f"{shade}.png")
    return root


def labelled(root, asked=None, **settings):
    settings = {"preprocessing": "unit", **settings}
    return LabelledPictures(look(root), asked or case(), JobSettings(data=str(root), **settings))


def test_pictures_of_any_size_are_numbered_by_the_order_of_their_folders(tmp_path):
    data = labelled(pictures(tmp_path / "p"))
    walked = list(data.rows())
    assert [int(label) for _, label in walked] == [0, 0, 1, 1, 2, 2]
    pixels = walked[3][0]["image"]
    assert (pixels.dtype, pixels.shape) == (np.float32, (3, 8, 8))
    assert pixels[:, 4, 4].tolist() == [np.float32(40) / np.float32(255), 1.0, 0.0]
    assert data.classes == 3
    assert data.notes[0] == (
        "Pictures as unit says: resized by the shorter side, the middle cut out (bilinear),"
        " times 0.003922, less 0, over 1."
    )


def test_classes_are_numbered_as_a_file_or_a_config_says(tmp_path):
    root = pictures(tmp_path / "p")
    config = case(label2id={"ant": 7, "bee": 5, "cat": 0})
    numbers = {int(label) for _, label in labelled(root, config).rows()}
    assert numbers == {7, 5, 0}
    assert labelled(root, config).classes is None
    (root / "classes.txt").write_text("cat\ndog\nbee\nant\n")
    data = labelled(root, config)
    assert [int(label) for _, label in data.rows()] == [3, 3, 2, 2, 0, 0]
    assert data.classes == 4
    (root / "classes.txt").write_text("cat\nbee\n")
    with pytest.raises(CaseError, match="no line for the class 'ant'"):
        labelled(root)


def test_what_cannot_be_read_is_skipped_and_counted(tmp_path, monkeypatch):
    root = pictures(tmp_path / "p")
    (root / "ant" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    Image.new("1", (400, 400)).save(root / "bee" / "bomb.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # twice as many are a bomb to Pillow
    (root / "cat" / "linked.png").symlink_to(root / "ant" / "0.png")
    data = labelled(root)
    assert len(list(data.rows())) == 7  # the link is a picture like any other
    assert "Skipped, as unreadable: 2 of 9 pictures." in data.notes
    assert "decompression bomb" in data.facts["skipped"]["bee/bomb.png"]
    for path in root.rglob("*.png"):
        path.unlink()
        path.write_bytes(b"nothing")
    with pytest.raises(CaseError, match=r"None of the 9 pictures can be read; ant/0\.png"):
        list(labelled(root).rows())


def test_channels_may_be_last_or_one_and_other_inputs_are_refused(tmp_path):
    root = pictures(tmp_path / "p")
    last = case(InputSpec("image", ("batch", 8, 6, 3), "float32"))
    assert next(labelled(root, last).rows())[0]["image"].shape == (8, 6, 3)
    grey = case(InputSpec("image", ("batch", 1, 8, 8), "float32"))
    assert next(labelled(root, grey).rows())[0]["image"].shape == (1, 8, 8)
    with pytest.raises(CaseError, match="three means, and m takes pictures of one channel"):
        labelled(root, grey, preprocessing="imagenet")
    ids = case(InputSpec("ids", ("batch", 8), "int64", high=9))
    with pytest.raises(CaseError, match=r"m takes ids \[2, 8\], which no picture"):
        labelled(root, ids)


def test_a_recipe_is_read_or_asked_for_and_never_guessed(tmp_path):
    root = pictures(tmp_path / "p")
    with pytest.raises(CaseError, match="Nothing says how pictures are prepared for m") as caught:
        labelled(root, preprocessing=None)
    assert "--preprocessing: imagenet, half, unit, bytes" in caught.value.advice
    config = {"size": {"height": 8, "width": 8}, "image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(config))
    data = labelled(root, preprocessing=None, weights=str(tmp_path))
    assert data.facts["preprocessing"]["std"] == [0.25] * 3
    assert data.facts["preprocessing"]["stretched"]
    assert next(data.rows())[0]["image"].min() == -2.0
    larger = case(InputSpec("image", ("batch", 3, 16, 16), "float32"))
    with pytest.raises(CaseError, match="makes pictures of 8 × 8, and m is fed 16 × 16"):
        labelled(root, larger, preprocessing=None, weights=str(tmp_path))
    (tmp_path / "preprocessor_config.json").write_text('{"size": {"longest_edge": 9}}')
    with pytest.raises(CaseError, match="it has no size of one side or of two"):
        recipe_of(None, [tmp_path])


def test_published_configs_are_what_their_processors_do():
    """Those of google/vit-base-patch16-224, openai/clip-vit-base-patch32, microsoft/resnet-50."""
    vit = recipe_in(
        {"do_normalize": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
         "resample": 2, "size": 224}
    )  # fmt: skip
    assert (vit.filter, vit.stretched, vit.size) == ("BILINEAR", True, (224, 224))
    clip = recipe_in({"crop_size": 224, "do_center_crop": True, "resample": 3, "size": 224})
    assert (clip.filter, clip.stretched, clip.size) == ("BICUBIC", False, (224, 224))
    assert (clip.mean, clip.std) == ((0.0,), (1.0,))
    resnet = recipe_in({"crop_pct": 0.875, "resample": 3, "size": {"shortest_edge": 224}})
    assert (resnet.margin, resnet.size) == (1 / 0.875, (224, 224))
    cut = recipe_in({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}})
    assert (cut.margin, cut.size) == (256 / 224, (224, 224))


@pytest.mark.parametrize("name", NAMED)
def test_a_recipe_is_its_own_arithmetic(name):
    recipe = NAMED[name]
    values = np.random.default_rng(0).integers(0, 256, (5, 5, 3), np.uint8)
    plain = PictureRecipe("x", recipe.mean, recipe.std, recipe.scale)
    expected = (values * np.float32(recipe.scale) - np.float32(recipe.mean)) / np.float32(
        recipe.std
    )
    made = plain.pixels(Image.fromarray(values), 5, 5, 3)
    assert np.allclose(made.transpose(1, 2, 0), expected, atol=1e-6)


def test_pictures_cut_out_otherwise_are_other_samples(tmp_path):
    root = pictures(tmp_path / "p")

    def digest(**config):
        path = tmp_path / "preprocessor_config.json"
        path.write_text(json.dumps({"size": {"height": 8, "width": 8}, **config}))
        data = labelled(root, preprocessing=str(path))
        list(data.rows())
        return data.digest()

    whole = {"size": {"shortest_edge": 8}, "do_center_crop": True, "crop_size": 8}
    border = {**whole, "size": {"shortest_edge": 12}}
    assert digest(**whole) == digest(**whole)
    assert digest(**whole) != digest(**border)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_skipped_and_not_waited_for(tmp_path):
    root = pictures(tmp_path / "p")
    os.mkfifo(root / "ant" / "1.png")
    (root / "bee" / "1.png").symlink_to("/dev/zero")
    data = labelled(root)
    assert len(list(data.rows())) == 6
    assert data.facts["skipped"] == {"ant/1.png": "it is no file", "bee/1.png": "it is no file"}
