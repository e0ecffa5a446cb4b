"""Labelled text: tables, class folders and plain text, in ids of the model's own tokenizer."""

import json
import os

import numpy as np
import pytest
import tokenizers
from data_makers import case_of

from accelbench.core.errors import CaseError, UsageError
from accelbench.core.model import InputSpec
from accelbench.core.run_options import JobSettings
from accelbench.models.data.labelled_feed import labelled_data
from accelbench.models.data.labelled_text import TextWindows

WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "bad", "film", "good", "the", "very"]
IDS = InputSpec("input_ids", ("batch", "sequence"), "int64", 0, len(WORDS))
MASK = InputSpec("attention_mask", ("batch", "sequence"), "int64", constant=1)
TYPES = InputSpec("token_type_ids", ("batch", "sequence"), "int64", 0, 2)


def tokenizer(folder, marks=True, pad=True):
    """A word a token, with a mark before a text and one behind it, as BERT's has."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    if marks:
        made.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    folder.mkdir(exist_ok=True)
    path = folder / "tokenizer.json"
    made.save(str(path))
    if not pad:
        path.write_text(path.read_text(encoding="utf-8").replace("[PAD]", "[EMPTY]"))
    return folder


def case(*inputs, length=6, **config):
    return case_of("text", *(inputs or (IDS, MASK)), sequence=length, **config)


def samples(data, beside, asked=None, **settings):
    job = JobSettings(data=str(data), **{"weights": str(beside), **settings})
    found = labelled_data(job, asked or case())
    assert found is not None
    return found


def table(path, text):
    path.write_text(text, encoding="utf-8")
    return path


CSV = 'label,text\n1,"the good, very good film"\n0,bad\n1,the good film the good film\n'


def test_a_table_is_in_ids_cut_as_the_tokenizer_cuts_and_masked_where_it_is_filled(tmp_path):
    data = samples(table(tmp_path / "d.csv", CSV), tokenizer(tmp_path / "m"))
    walked = list(data.rows())
    assert [int(label) for _, label in walked] == [1, 0, 1]
    ids = [row["input_ids"].tolist() for row, _ in walked]
    assert ids == [[1, 7, 6, 3, 8, 2], [1, 4, 2, 0, 0, 0], [1, 7, 6, 5, 7, 2]]  # marks stay
    assert [row["attention_mask"].sum() for row, _ in walked] == [6, 3, 6]
    assert data.classes is None  # numbers are the model's own
    assert data.count == 3
    assert data.notes[0] == (
        "Text is in 6 ids of the tokenizer.json beside the model: 2 of 3 were cut, 1 filled up"
        " with the id 0."
    )
    first = data.digest()
    list(data.rows())
    assert data.digest() == first
    longer = samples(tmp_path / "d.csv", tmp_path / "m", case(length=5))
    list(longer.rows())
    assert longer.digest() != first


def test_names_of_classes_are_numbered_as_the_model_says(tmp_path):
    beside = tokenizer(tmp_path / "m")
    rows = [{"text": "good film", "label": "fine"}, {"text": "bad", "label": "awful"}]
    path = table(tmp_path / "d.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    data = samples(path, beside)
    assert [int(label) for _, label in data.rows()] == [1, 0]
    assert data.classes == 2
    told = samples(path, beside, case(IDS, MASK, label2id={"fine": 0, "awful": 5}))
    assert [int(label) for _, label in told.rows()] == [0, 5]
    assert told.classes is None
    table(tmp_path / "classes.txt", "fine\nso-so\nawful\n")
    assert [int(label) for _, label in samples(path, beside).rows()] == [0, 2]


def test_two_texts_need_an_input_that_tells_them_apart(tmp_path):
    beside = tokenizer(tmp_path / "m")
    path = table(tmp_path / "d.tsv", "text\ttext_pair\tlabel\ngood\tbad film\t0\n")
    (row, _) = next(iter(samples(path, beside, case(IDS, MASK, TYPES, length=7)).rows()))
    assert row["input_ids"].tolist() == [1, 6, 2, 4, 5, 2, 0]
    assert row["token_type_ids"].tolist() == [0, 0, 0, 1, 1, 1, 0]
    with pytest.raises(CaseError, match="no input that tells one from the other"):
        list(samples(path, beside).rows())


def test_a_folder_per_class_is_read_and_what_is_no_text_is_counted(tmp_path):
    root = tmp_path / "reviews"
    for name, text in (("neg/a.txt", "bad film\nvery bad"), ("pos/a.txt", "good")):
        (root / name).parent.mkdir(parents=True)
        (root / name).write_text(text)
    (root / "pos" / "b.jsonl").write_text('{"text": "very good"}\n\n{"text": "the film"}\n')
    (root / "pos" / "c.txt").write_bytes(b"\xff\xfe")
    (root / "pos" / "d.txt").write_text("")
    data = samples(root, tokenizer(tmp_path / "m"))
    walked = list(data.rows())
    assert [int(label) for _, label in walked] == [0, 1, 1, 1]
    assert walked[0][0]["input_ids"].tolist() == [1, 4, 5, 8, 4, 2]
    assert set(data.facts["skipped"]) == {"pos/c.txt", "pos/d.txt"}
    assert data.notes[-1] == "Skipped, as unreadable: 2 of the texts."


@pytest.mark.parametrize("drawn", [None, 2])
def test_plain_text_is_windows_that_do_not_overlap(tmp_path, drawn):
    beside = tokenizer(tmp_path / "m", marks=False)
    root = tmp_path / "books"
    root.mkdir()
    (root / "a.txt").write_text("the good film\nthe bad film the very")
    (root / "b.txt").write_text("good")  # one token: nothing that could be predicted
    (root / "c.txt").write_text("good film very")
    data = samples(root, beside, case(length=4), accuracy="perplexity", accuracy_samples=drawn)
    assert isinstance(data, TextWindows)
    ids = [[7, 6, 5, 7], [4, 5, 7, 8], [6, 5, 8, 0]]
    labels = [*ids[:2], [6, 5, 8, -100]]
    walked = [(row["input_ids"].tolist(), label.tolist()) for row, label in data.rows()]
    whole = list(zip(ids, labels, strict=True))
    assert (data.count, len(walked)) == (drawn or 3,) * 2
    if drawn is None:
        assert walked == whole
    else:
        assert all(window in whole for window in walked)
        assert "2 of 3 samples were drawn for accuracy." in data.notes


def test_a_long_document_has_its_marks_once(tmp_path, monkeypatch):
    monkeypatch.setattr("accelbench.models.data.labelled_text._AT_ONCE", 16)
    path = table(tmp_path / "a.txt", "the film\n" * 8)
    data = samples(path, tokenizer(tmp_path / "m"), case(length=20), accuracy="perplexity")
    ((row, _),) = data.rows()
    assert row["input_ids"][:18].tolist() == [1, *[7, 5] * 8, 2]


def test_what_is_no_table_is_refused_with_its_line(tmp_path):
    beside = tokenizer(tmp_path / "m")

    def said(name, text):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises((CaseError, UsageError)) as caught:
            samples(path, beside)
        return caught.value.message

    assert "has no column label: it has 'text', 'sentiment'" in said("a.csv", "text,sentiment\n")
    assert "has 3 cells in line 2, not 2" in said("a.csv", "text,label\ngood, film,1\n")
    assert "has no label in line 3" in said("a.csv", "text,label\ngood,1\nbad,\n")
    assert "holds no sample" in said("a.csv", "text,label\n")
    assert "is not text in UTF-8" in said("a.csv", b"text,label\n\xff,1\n")
    assert "has no text in line 2" in said("a.jsonl", '{"text":"a","label":1}\n{"label":1}\n')
    assert "has no JSON in line 2" in said("a.jsonl", '{"text":"a","label":1}\n{\n')
    assert "has no label in line 2" in said(
        "a.jsonl", '{"text":"a","label":1}\n{"text":"b","label":true}\n'
    )


def test_no_tokenizer_is_learned_or_guessed(tmp_path):
    path = table(tmp_path / "d.csv", CSV)
    with pytest.raises(CaseError, match=r"how m takes text: there is no tokenizer\.json") as caught:
        samples(path, tmp_path)
    assert "--preprocessing" in caught.value.advice
    asked = tokenizer(tmp_path / "elsewhere") / "tokenizer.json"
    named = samples(path, tmp_path, preprocessing=str(asked))
    assert len(list(named.rows())) == 3
    asked.write_text("{}")
    with pytest.raises(CaseError, match="is no tokenizer that can be read"):
        samples(path, tmp_path, preprocessing=str(asked))


def test_ids_and_masks_that_do_not_fit(tmp_path):
    beside = tokenizer(tmp_path / "m")
    few = InputSpec("input_ids", ("batch", "sequence"), "int64", 0, 8)
    with pytest.raises(CaseError, match="gives the id 8, and the model knows 8"):
        list(samples(table(tmp_path / "d.csv", CSV), beside, case(few, MASK)).rows())

    path = table(tmp_path / "d.csv", CSV)
    beside = tokenizer(tmp_path / "m", pad=False)
    with pytest.raises(CaseError, match="Nothing says which id fills a text up to 6"):
        list(samples(path, beside, case(IDS)).rows())
    (beside / "tokenizer_config.json").write_text('{"pad_token": "[UNK]", "padding_side": "left"}')
    data = samples(path, beside, case(IDS))
    assert [row["input_ids"].tolist() for row, _ in data.rows()][1] == [3, 3, 3, 1, 4, 2]
    assert "with the id 3, which no mask of the model leaves out." in data.notes[0]


def test_a_mask_that_lets_through_at_zero_is_one_where_a_text_is_filled_up(tmp_path):
    hides = InputSpec("padding_mask", ("batch", "sequence"), "bool", constant=0)
    path = table(tmp_path / "d.csv", CSV)
    data = samples(path, tokenizer(tmp_path / "m"), case(IDS, hides))
    assert [row["padding_mask"].tolist() for row, _ in data.rows()][1] == [False] * 3 + [True] * 3
    added = InputSpec("mask", ("batch", "sequence"), "float32", constant=0)
    rows = [row for row, _ in samples(path, tmp_path / "m", case(IDS, added)).rows()]
    assert set(rows[1]) == {"input_ids"}  # a one that is added to scores would leave nothing out


def test_inputs_that_no_text_is_are_refused(tmp_path):
    beside = tokenizer(tmp_path / "m")
    wave = InputSpec("wave", ("batch", 16), "float32")
    with pytest.raises(CaseError, match=r"m takes wave \[2, 16\], which no text"):
        samples(table(tmp_path / "d.csv", CSV), beside, case(wave))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "d.csv")
    with pytest.raises(CaseError, match="it is no file"):
        samples(tmp_path / "d.csv", tokenizer(tmp_path / "m"))


def test_values_are_of_the_type_that_the_model_takes(tmp_path):
    ids = InputSpec("tokens", ("batch", 6), "int32", 0, len(WORDS))
    mask = InputSpec("mask", ("batch", 6), "float32", constant=1)
    places = InputSpec("position_ids", ("batch", 6), "int32", 0, 6)
    path = table(tmp_path / "d.csv", CSV)
    data = samples(path, tokenizer(tmp_path / "m"), case(ids, mask, places))
    row = [row for row, _ in data.rows()][1]
    assert {name: str(values.dtype) for name, values in row.items()} == {
        "tokens": "int32", "mask": "float32", "position_ids": "int32",
    }  # fmt: skip
    assert row["position_ids"].tolist() == [0, 1, 2, 2, 2, 2]
    assert np.array_equal(row["mask"], [1, 1, 1, 0, 0, 0])
