"""Text: ids from a tokenizer beside the weights or one learned, packed, captioned, labelled."""

import json
import os
import subprocess
import sys

import pytest
import tokenizers
from data_makers import SENTENCES, a_case, picture, pictures, texts, tones

from accelbench.core.errors import CaseError, UnsupportedError
from accelbench.core.vocabulary import Mode
from accelbench.models.data import Feed
from accelbench.models.data.captions import encoder_for, letters


def ticks():
    return next(_TICKS)


_TICKS = iter(range(0, 10**15, 10**9))


def feed(path, seed=0, weights="random"):
    return Feed(str(path), seed, weights, ticks)


def saved_tokenizer(folder, size=300):
    """A byte-level tokenizer.json with a mark before and after, as BERT's has."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, special_tokens=["<s>", "</s>"], show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    made.train_from_iterator(SENTENCES, trainer)
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    made.enable_truncation(4)  # must not cut our text
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder


def test_a_tokenizer_is_used_or_refused(tmp_path):
    weights = saved_tokenizer(tmp_path / "weights")
    fed = feed(texts(tmp_path / "text"), weights=str(weights))
    ids = fed.batch(a_case("bert-tiny", 3, sequence=40))["input_ids"]
    own = tokenizers.Tokenizer.from_file(str(weights / "tokenizer.json"))
    for row in ids:
        said = own.decode(row.tolist())
        assert said in "".join(SENTENCES) * 2
        assert len(said) > 40  # merged: more than a character an id
    assert "tokenizer.json beside the weights" in fed.details()["notes"][0]

    weights = saved_tokenizer(tmp_path / "weights", size=400)
    encoder = encoder_for(str(weights), [], 0, 260, 260)
    with pytest.raises(UnsupportedError, match="and the model knows 260") as raised:
        encoder.plain("".join(SENTENCES))
    assert raised.value.reason == "tokenizer_mismatch"

    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CaseError, match=r"tokenizer\.json cannot be read"):
        encoder_for(str(tmp_path), [], 0, 300, 300)


def test_without_one_it_is_learned_and_says_so(tmp_path):
    fed = feed(texts(tmp_path / "text"))
    made = fed.batch(a_case("bert-tiny", 2, sequence=16))
    assert made["input_ids"].shape == (2, 16)
    assert made["attention_mask"].all()
    assert "a byte-level BPE of" in fed.details()["notes"][0]
    assert fed.details()["drawn"] == []


def test_learning_gives_the_same_ids_in_every_process(tmp_path):
    code = (
        "import sys; from accelbench.models.data.captions import encoder_for\n"
        "text = open(sys.argv[1]).read()\n"
        "print(encoder_for('random', [text], 0, 400, 400).plain(text))"
    )
    path = texts(tmp_path) / "a.txt"
    told = {
        subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(3)
    }
    assert len(told) == 1
    assert len(json.loads(told.pop())) < len(path.read_text())


def test_a_learned_vocabulary_stays_within_the_models(tmp_path):
    encoder = encoder_for("random", SENTENCES, 10, 280, 300)
    ids = encoder.plain("".join(SENTENCES) + "žluťoučký 漢字")
    assert min(ids) >= 10
    assert max(ids) < 280
    with pytest.raises(UnsupportedError, match="too few for the 256 bytes"):
        encoder_for("random", SENTENCES, 0, 200, 200)


def test_jsonl_gives_its_text_and_names_a_bad_line(tmp_path):
    good = "\n".join(json.dumps({"text": s.strip(), "other": 1}) for s in SENTENCES)
    (tmp_path / "good.jsonl").write_text(good)
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"no": 1}\n')
    fed = feed(tmp_path)
    fed.batch(a_case("bert-tiny", 2, sequence=16))
    assert any("1 of 2 texts; bad.jsonl: line 2 has no" in n for n in fed.details()["notes"])
    assert fed.details()["inputs"] == len(SENTENCES)


def test_what_is_not_utf8_is_skipped_and_nothing_left_is_an_error(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CaseError, match=r"no text to read; a\.txt") as raised:
        feed(tmp_path).batch(a_case("bert-tiny"))
    assert raised.value.reason == "data_unreadable"


def test_a_text_shorter_than_a_row_goes_round(tmp_path):
    (tmp_path / "a.txt").write_text("Short.")
    fed = feed(tmp_path)
    row = fed.batch(a_case("bert-tiny", 1, sequence=64))["input_ids"][0].tolist()
    assert row[:6] * 2 == row[:12]


def test_an_answer_is_what_follows_and_labels_are_one_ahead(tmp_path):
    fed = feed(texts(tmp_path))
    made = fed.batch(a_case("t5-tiny", 2, Mode.TRAINING, sequence=12))
    assert (made["decoder_input_ids"][:, 0] == 0).all()  # T5's start
    assert (made["decoder_input_ids"][:, 1:] == made["labels"][:, :-1]).all()
    plain = fed.batch(a_case("bert-tiny", 2, sequence=24))["input_ids"]
    assert made["input_ids"].shape == (2, 12)
    assert plain.shape == (2, 24)


def test_class_folders_label_whole_documents(tmp_path):
    for name, word in (("neg", "bad"), ("pos", "good")):
        (tmp_path / name).mkdir()
        for i in range(3):
            (tmp_path / name / f"{i}.txt").write_text(f"{word}\n" * (i + 1))
    fed = feed(tmp_path)
    made = fed.batch(a_case("bert-tiny", 6, Mode.TRAINING, sequence=16))
    assert sorted(made["labels"].tolist()) == [0, 0, 0, 1, 1, 1]
    used = made["attention_mask"].sum(axis=1)
    assert len(set(used.tolist())) > 1  # documents of unlike lengths are padded, not packed
    firsts = {(row[0], label) for row, label in zip(made["input_ids"], made["labels"], strict=True)}
    assert len(firsts) == 2


def test_too_many_classes_are_refused(tmp_path):
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.txt").write_text("text\n")
    with pytest.raises(UnsupportedError, match="3 classes, and the model tells 2 apart"):
        feed(tmp_path).batch(a_case("bert-tiny", mode=Mode.TRAINING))


def test_captions_of_classes_end_as_clip_wants(tmp_path):
    fed = feed(pictures(tmp_path))
    made = fed.batch(a_case("clip-tiny", 4, sequence=16))
    ids, mask = made["input_ids"], made["attention_mask"]
    assert (ids[:, -1] == 4095).all()
    for row, used in zip(ids, mask.sum(axis=1), strict=True):
        assert row[used - 1] == 4095
        assert (row[: used - 1] < 4095).all()
    assert len({tuple(row) for row in ids}) == 2  # one caption a class
    assert fed.details()["drawn"] == []


def test_a_prompt_with_places_for_an_image_stays_drawn(tmp_path):
    fed = feed(pictures(tmp_path))
    made = fed.batch(a_case("llava-tiny", 2))
    assert "input_ids" in fed.details()["drawn"]
    assert (made["input_ids"] == 4000).sum() > 0


def test_transcripts_become_whispers_words(tmp_path):
    fed = feed(tones(tmp_path, transcripts=True))
    made = fed.batch(a_case("whisper-mini", 2, Mode.TRAINING))
    said, labels = made["decoder_input_ids"], made["labels"]
    assert (said[:, 0] == 4095).all()
    for row, answer in zip(said, labels, strict=True):
        own = int((answer >= 0).sum())
        assert 0 < own < len(answer)
        assert row[1 : own + 1].tolist() == answer[:own].tolist()
        assert (answer[own:] == -100).all()


def test_letters_are_wav2vec2s(tmp_path):
    assert letters("He's\n in, 7!") == [11, 5, 27, 12, 4, 10, 9, 4]
    fed = feed(tones(tmp_path, transcripts=True))
    labels = fed.batch(a_case("wav2vec2-tiny", 2, Mode.TRAINING))["labels"]
    assert labels[:, :4].tolist() == [[6, 8, 9, 5]] * 2  # T O N E


def test_without_transcripts_labels_are_drawn_and_it_is_said(tmp_path):
    fed = feed(tones(tmp_path))
    fed.batch(a_case("wav2vec2-tiny", 2, Mode.TRAINING))
    assert "labels" in fed.details()["drawn"]
    assert any("not every sound has a .txt" in note for note in fed.details()["notes"])


def test_a_book_of_one_line_has_many_places_and_no_broken_character(tmp_path):
    (tmp_path / "a.txt").write_text("漢字 " * 20_000, encoding="utf-8")
    fed = feed(tmp_path)
    rows = fed.batch(a_case("bert-tiny", 4, sequence=32))["input_ids"]
    assert fed.details()["inputs"] > 20
    assert rows.shape == (4, 32)
    assert fed.details()["skipped_count"] == 0


def test_pictures_without_classes_have_drawn_captions_and_say_so(tmp_path):
    pictures(tmp_path / "all")
    picture(tmp_path / "loose.png")
    fed = feed(tmp_path)
    fed.batch(a_case("clip-tiny", 2))
    assert fed.details()["drawn"] == ["input_ids"]
    assert any("The texts are drawn" in note for note in fed.details()["notes"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipes_and_devices_among_texts_are_not_opened(tmp_path):
    """A pipe would be waited for, and a device has no end."""
    folder = texts(tmp_path / "texts")
    os.mkfifo(folder / "0.txt")
    os.mkfifo(folder / "Labels.json")
    (folder / "1.txt").symlink_to("/dev/zero")
    case = a_case("bert-tiny", 2, sequence=8)
    fed = feed(folder)
    assert fed.batch(case)["input_ids"].shape == (2, 8)
    notes = " ".join(fed.details()["notes"])
    assert "Skipped, as unreadable: 2 of 4 texts; 0.txt: it is no file." in notes
    alone = tmp_path / "alone"
    alone.mkdir()
    os.mkfifo(alone / "0.txt")
    with pytest.raises(CaseError, match=r"There is no text to read; 0\.txt: it is no file\."):
        feed(alone).batch(case)
