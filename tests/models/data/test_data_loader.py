"""The public loader: batches by name, again and again, real or drawn."""

import numpy as np
import pytest
from data_makers import picture, pictures, texts, tones

from accelbench.core.errors import UnsupportedError, UsageError
from accelbench.models.data import create_dataloader


def test_synthetic_batches_by_default():
    loader = create_dataloader(model_name="vit-tiny", batch_size=2, limit=7)
    first, again = list(loader), list(loader)
    assert len(loader) == len(first) == 3  # the seventh item fills no batch
    assert first[0].keys() == {"pixel_values", "labels"}
    assert first[0]["pixel_values"].shape == (2, 3, 64, 64)
    assert not np.array_equal(first[0]["pixel_values"], first[1]["pixel_values"])
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one["pixel_values"], other["pixel_values"])

    loader = create_dataloader()
    assert len(loader) == 10
    batch = next(iter(loader))
    assert batch["pixel_values"].shape == (1, 3, 224, 224)
    assert 0 <= batch["labels"][0] < 1000

    loader = create_dataloader(model_name="resnet50", batch_size=2, input_shape=(2, 3, 64, 64))
    assert next(iter(loader))["pixel_values"].shape == (2, 3, 64, 64)


def test_class_folders_give_labels_and_names(tmp_path):
    picture(tmp_path / "dark/1.png", (0, 0, 0))
    picture(tmp_path / "light/1.png", (255, 255, 255))
    picture(tmp_path / "light/2.png", (250, 250, 250))
    loader = create_dataloader(str(tmp_path), "resnet50", 1, input_shape=(3, 32, 32))
    assert loader.class_names == ("dark", "light")
    assert len(loader) == 3
    batches = list(loader)
    for batch in batches:
        name = loader.class_names[int(batch["labels"][0])]
        assert name == ("light" if batch["pixel_values"].mean() > 0 else "dark")
    assert len({b["pixel_values"].tobytes() for b in batches}) == 3  # each once


def test_order_is_by_name_or_by_seed(tmp_path):
    pictures(tmp_path, ("a",), each=9)

    def greys(**how):
        loader = create_dataloader(str(tmp_path), "vit-tiny", 1, **how)
        return [float(b["pixel_values"].mean()) for b in loader]

    assert greys(shuffle=False) == sorted(greys())
    assert greys(seed=1) == greys(seed=1) != greys(seed=2)
    assert greys(shuffle=False, limit=4) == sorted(greys())[:4]


def test_broken_files_shorten_the_round_and_are_named(tmp_path):
    pictures(tmp_path, ("a",), each=5)
    (tmp_path / "a/2.png").write_bytes(b"nothing")
    loader = create_dataloader(str(tmp_path), "vit-tiny", 2)
    assert len(list(loader)) == len(loader) == 2
    assert loader.skipped == {"a/2.png": "it is no picture"}
    assert len(list(loader)) == 2


def test_pictures_without_classes_have_no_labels(tmp_path):
    picture(tmp_path / "1.png")
    loader = create_dataloader(str(tmp_path), "vit-tiny")
    assert next(iter(loader)).keys() == {"pixel_values"}
    assert loader.class_names == ()


def test_sound_and_text(tmp_path):
    sound = next(iter(create_dataloader(str(tones(tmp_path / "s")), "wav2vec2-tiny", 2)))
    assert sound["input_values"].shape == (2, 32_000)
    text = create_dataloader(str(texts(tmp_path / "t")), "bert-tiny", 2, input_shape=(24,))
    assert next(iter(text))["input_ids"].shape == (2, 24)
    assert "learned from the text" in text.notes[0]


def test_what_is_drawn_beside_is_told_and_differs_by_batch(tmp_path):
    loader = create_dataloader(str(pictures(tmp_path)), "llava-tiny", 2)
    assert loader.notes == ["Drawn, as the files do not give them: input_ids."]
    first, second, *_ = list(loader)
    assert not np.array_equal(first["input_ids"], second["input_ids"])


@pytest.mark.parametrize(
    ("model", "shape", "said"),
    [
        ("resnet50", (224,), r"Use \(3, side, side\)"),
        ("resnet50", (1, 224, 224), "takes no input of shape"),
        ("resnet50", (4, 3, 64, 64), "at batch size 2"),
        ("bert", (3, 224, 224), r"Use \(tokens,\)"),
        ("wav2vec2-tiny", (16_000,), "no other shape than its own"),
    ],
)
def test_shapes_that_a_model_does_not_take(model, shape, said):
    with pytest.raises(UsageError, match=said):
        create_dataloader(model_name=model, batch_size=2, input_shape=shape)


def test_a_model_in_the_place_of_the_data_is_told():
    with pytest.raises(UsageError, match="The first argument is data_source"):
        create_dataloader("resnet50")


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"limit": 0}])
def test_impossible_numbers(wrong):
    with pytest.raises(UsageError, match="of 0 is impossible"):
        create_dataloader(**wrong)


def test_a_folder_of_text_for_a_vision_model(tmp_path):
    with pytest.raises(UnsupportedError, match="vit-tiny takes images"):
        create_dataloader(str(texts(tmp_path)), "vit-tiny")
