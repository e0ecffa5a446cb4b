"""A session's real inputs: chosen by seed, skipped past what is broken, timed, digested."""

import itertools

import numpy as np
import pytest
from data_makers import a_case, picture, pictures, texts, tones

from accelbench.core.errors import CaseError, MissingExtraError, UnsupportedError, UsageError
from accelbench.core.vocabulary import Mode
from accelbench.models.data import Feed
from accelbench.models.find import every_model
from accelbench.models.inputs import input_shapes, make_inputs


def feed(path, seed=0, step_ns=10**9):
    """With a clock that moves on by a step at every look."""
    return Feed(str(path), seed, "random", itertools.count(0, step_ns).__next__)


@pytest.mark.parametrize(
    "model", [m for m in every_model() if "small" in m.sets], ids=lambda m: m.id
)
@pytest.mark.parametrize("mode", list(Mode))
def test_every_small_model_is_fed_or_refused_in_a_sentence(tmp_path, model, mode):
    """The shapes are those of synthetic inputs; whoever is refused is a denoiser."""
    pictures(tmp_path / "data" / "pictures", each=4)
    tones(tmp_path / "data" / "sounds", transcripts=True)
    texts(tmp_path / "data" / "words")
    case = a_case(model.id, 2, mode)
    if "sample" in {t.name for t in case.model.inputs}:
        with pytest.raises(UnsupportedError, match="which no file") as raised:
            feed(tmp_path / "data").batch(case)
        assert raised.value.reason == "no_real_inputs"
        return
    made = feed(tmp_path / "data").batch(case)
    drawn = make_inputs(case.model, case.shapes, 0, mode)
    assert list(made) == list(drawn)
    assert {n: a.shape for n, a in made.items()} == input_shapes(case.model, case.shapes, mode)
    assert {n: a.dtype for n, a in made.items()} == {n: a.dtype for n, a in drawn.items()}
    assert all(np.isfinite(a).all() for a in made.values())


def test_the_same_seed_is_the_same_batch_and_another_another(tmp_path):
    pictures(tmp_path, each=8)
    case = a_case("vit-tiny", 4)
    one, again, other = feed(tmp_path, 1), feed(tmp_path, 1), feed(tmp_path, 2)
    first = one.batch(case)["pixel_values"]
    assert np.array_equal(first, again.batch(case)["pixel_values"])
    assert np.array_equal(first, one.batch(case)["pixel_values"])  # prepared a second time
    assert not np.array_equal(first, other.batch(case)["pixel_values"])
    assert one.columns()["data_digest"] == again.columns()["data_digest"]
    assert one.columns()["data_digest"] != other.columns()["data_digest"]


def test_labels_belong_to_the_pictures_they_come_with(tmp_path):
    picture(tmp_path / "dark/1.png", (0, 0, 0))
    picture(tmp_path / "light/1.png", (255, 255, 255))
    made = feed(tmp_path).batch(a_case("vit-tiny", 2, Mode.TRAINING))
    light = made["pixel_values"].mean(axis=(1, 2, 3)) > 0
    assert made["labels"].tolist() == light.astype(int).tolist()


def test_the_digest_is_of_the_bytes_that_were_read(tmp_path):
    pictures(tmp_path, ("a",), each=2)
    case = a_case("vit-tiny", 2)
    fed = feed(tmp_path)
    fed.batch(case)
    before = fed.columns()["data_digest"]
    picture(tmp_path / "a/0.png", (1, 2, 3))
    fed.batch(case)
    assert fed.columns()["data_digest"] != before


def test_broken_files_are_skipped_counted_and_named(tmp_path):
    pictures(tmp_path, ("a",), each=3)
    (tmp_path / "a/zz.png").write_bytes(b"nothing")
    fed = feed(tmp_path)
    made = fed.batch(a_case("vit-tiny", 3))
    assert len({row.tobytes() for row in made["pixel_values"]}) == 3
    details = fed.details()
    assert details["skipped"] == {"a/zz.png": "it is no picture"}
    assert details["skipped_count"] == 1
    assert "Skipped, as unreadable: 1 of 4 inputs." in details["notes"]


def test_a_batch_larger_than_the_folder_repeats_and_says_so(tmp_path):
    pictures(tmp_path, ("a",), each=2)
    fed = feed(tmp_path)
    made = fed.batch(a_case("vit-tiny", 5))["pixel_values"]
    assert len({row.tobytes() for row in made}) == 2
    assert any("larger than the 2 in the folder" in note for note in fed.details()["notes"])


def test_what_cannot_be_read_is_said(tmp_path):
    for i in range(3):
        path = tmp_path / "a" / f"{i}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"nothing")
    with pytest.raises(CaseError, match=r"None of the 3 inputs can be read; a/\d\.png") as raised:
        feed(tmp_path).batch(a_case("vit-tiny"))
    assert raised.value.reason == "data_unreadable"

    with pytest.raises(UsageError, match="There is nothing at"):
        feed(tmp_path / "absent")


@pytest.mark.parametrize(
    ("make", "model", "said"),
    [
        (texts, "vit-tiny", "takes images, but .* holds text only"),
        (pictures, "bert-tiny", "takes text, but .* holds images only"),
        (texts, "whisper-mini", "takes sound, but .* holds text only"),
        (tones, "clip-tiny", "takes images, but .* holds sound only"),
    ],
)
def test_a_folder_of_something_else_is_refused(tmp_path, make, model, said):
    make(tmp_path)
    with pytest.raises(UnsupportedError, match=said) as raised:
        feed(tmp_path).batch(a_case(model))
    assert raised.value.reason == "data_mismatch"


def test_loading_is_timed_over_other_batches_and_once(tmp_path):
    pictures(tmp_path, each=3)
    fed = feed(tmp_path, step_ns=500_000_000)  # each batch seems to take half a second
    fed.batch(a_case("vit-tiny", 2))
    assert fed.details()["loads_ms"] == [500.0] * 4  # two seconds are then over
    assert fed.columns()["data_load_ms"] == 500.0
    fed = feed(tmp_path, step_ns=5_000_000_000)
    fed.batch(a_case("vit-tiny", 2))
    assert fed.details()["loads_ms"] == [5000.0] * 3  # never fewer than three
    looks = itertools.count()
    counted = Feed(str(tmp_path), 0, "random", looks.__next__)
    counted.batch(a_case("vit-tiny", 2))
    before = next(looks)
    counted.batch(a_case("vit-tiny", 2))
    assert next(looks) == before + 1


def test_a_video_is_consecutive_pictures_of_one_folder(tmp_path):
    pictures(tmp_path, ("a", "b"), each=16)
    case = a_case("xclip-tiny", 2)
    frames = input_shapes(case.model, case.shapes)["pixel_values"][1]
    fed = feed(tmp_path)
    videos = fed.batch(case)["pixel_values"][:, :, 0, 0, 0]
    assert videos.shape == (2, frames)
    # The tenth picture comes after the ninth, not after the first.
    greys = {name: [7 * (1 + i * 16 + j) for j in range(16)] for i, name in enumerate("ab")}
    restored = np.rint((videos * 0.229 + 0.485) * 255).astype(int).tolist()
    whole = [greys[n][k : k + frames] for n in "ab" for k in range(0, 16 - frames + 1, frames)]
    assert all(video in whole for video in restored)


def test_a_short_video_says_so(tmp_path):
    pictures(tmp_path, ("a", "b"), each=1)
    fed = feed(tmp_path)
    fed.batch(a_case("xclip-tiny", 2))
    assert any("2 of 2 videos have fewer than" in note for note in fed.details()["notes"])


def test_a_missing_decoder_names_its_extra(tmp_path, monkeypatch):
    pictures(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r"needs the package pillow.*accelbench setup data"):
        feed(tmp_path).batch(a_case("vit-tiny"))
