"""What a folder holds: layouts, splits, classes, and what lies about that is none of them."""

import json

import pytest

from accelbench.core.errors import UsageError
from accelbench.models.data.folder import classes_of, look


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_class_folders_sorted_by_name_whatever_the_disk_says(tmp_path):
    touch(tmp_path / "b/2.JPEG", tmp_path / "a/10.png", tmp_path / "a/1.jpg", tmp_path / "b/x.md")
    folder = look(tmp_path)
    assert [e.name for e in folder.images] == ["a/1.jpg", "a/10.png", "b/2.JPEG"]
    assert [e.label for e in folder.images] == ["a", "a", "b"]
    assert classes_of(folder.images) == ("a", "b")
    assert folder.holds == "images"


def test_val_is_preferred_over_test_and_train(tmp_path):
    touch(tmp_path / "train/a/1.jpg", tmp_path / "test/a/2.jpg")
    assert [e.name for e in look(tmp_path).images] == ["test/a/2.jpg"]
    touch(tmp_path / "val/a/3.jpg")
    folder = look(tmp_path)
    assert [(e.name, e.label) for e in folder.images] == [("val/a/3.jpg", "a")]


def test_an_empty_val_gives_way_to_train(tmp_path):
    touch(tmp_path / "train/a/1.jpg")
    (tmp_path / "val").mkdir()
    assert [e.name for e in look(tmp_path).images] == ["train/a/1.jpg"]


def test_imagenet_100_in_parts_is_one_split(tmp_path):
    touch(tmp_path / "train.X1/n01/1.JPEG", tmp_path / "train.X2/n02/1.JPEG")
    (tmp_path / "Labels.json").write_text(json.dumps({"n01": "tench, Tinca tinca", "n02": 3}))
    folder = look(tmp_path)
    assert classes_of(folder.images) == ("n01", "n02")
    assert folder.title("n01") == "tench"
    assert folder.title("n02") == "n02"


def test_a_class_may_be_called_train(tmp_path):
    touch(tmp_path / "train/1.jpg", tmp_path / "red_car/1.jpg")
    folder = look(tmp_path)
    assert classes_of(folder.images) == ("red_car", "train")
    assert folder.title("red_car") == "red car"


def test_classes_only_where_every_file_has_one(tmp_path):
    touch(tmp_path / "a/1.jpg", tmp_path / "loose.jpg")
    assert classes_of(look(tmp_path).images) == ()


def test_a_transcript_is_no_text_of_its_own(tmp_path):
    touch(tmp_path / "1.wav", tmp_path / "1.txt", tmp_path / "story.txt")
    folder = look(tmp_path)
    assert [e.name for e in folder.texts] == ["story.txt"]
    assert folder.holds == "sound and text"


def test_hidden_files_are_left_alone_and_links_followed_once(tmp_path):
    touch(tmp_path / "real/1.jpg", tmp_path / "set/.DS_Store", tmp_path / "set/a/._1.jpg")
    (tmp_path / "set/b").symlink_to(tmp_path / "real")
    (tmp_path / "real/loop").symlink_to(tmp_path / "real")
    assert [e.name for e in look(tmp_path / "set").images] == ["b/1.jpg"]


def test_one_file_is_a_folder_of_one(tmp_path):
    touch(tmp_path / "book.txt")
    assert [e.name for e in look(tmp_path / "book.txt").texts] == ["book.txt"]


def test_nothing_there_and_nothing_of_use(tmp_path):
    with pytest.raises(UsageError, match="There is nothing at"):
        look(tmp_path / "absent")
    touch(tmp_path / "notes.md")
    with pytest.raises(UsageError, match="holds no images, sound or text"):
        look(tmp_path)
