"""Labelled samples in a file of arrays: walked through, never trusted, matched to a model."""

import io
import os
import zipfile

import numpy as np
import pytest
from data_makers import case_of

from accelbench.core.errors import CaseError, UsageError
from accelbench.core.model import InputSpec
from accelbench.models.data.labelled import LabelledArrays, batch_of, chosen, look_labelled
from accelbench.models.data.rows import stored_arrays

X = np.arange(21, dtype=np.float32).reshape(7, 3)
LABELS = np.array([0, 1, 2, 0, 1, 2, 0])


def case(*inputs, batch=4):
    return case_of("vision", *(inputs or (InputSpec("x", ("batch", 3), "float32"),)), batch=batch)


def stored(tmp_path, compressed=False, **arrays):
    path = tmp_path / "d.npz"
    save = np.savez_compressed if compressed else np.savez
    save(path, **arrays)
    return path


@pytest.mark.parametrize("compressed", [False, True])
def test_samples_are_walked_through_in_their_order(tmp_path, compressed):
    data = LabelledArrays(str(stored(tmp_path, compressed, x=X, labels=LABELS)), case(), 0)
    walked = list(data.rows())
    assert np.stack([row["x"] for row, _ in walked]).tolist() == X.tolist()
    assert [int(label) for _, label in walked] == LABELS.tolist()
    first = data.digest()
    assert [int(label) for _, label in data.rows()] == LABELS.tolist()
    assert data.digest() == first


def test_the_digest_is_of_samples_and_labels(tmp_path):
    def digest(**arrays):
        data = LabelledArrays(str(stored(tmp_path, **arrays)), case(), 0)
        list(data.rows())
        return data.digest()

    other = LABELS.copy()
    other[6] = 1
    digests = {
        digest(x=X, labels=LABELS),
        digest(x=X, labels=other),
        digest(x=X + 1, labels=LABELS),
        digest(x=X.view(np.int32), labels=LABELS),  # the same bytes
    }
    assert len(digests) == 4


def test_fewer_samples_are_drawn_by_the_seed_and_said(tmp_path):
    path = stored(tmp_path, x=X, labels=LABELS)
    data = LabelledArrays(str(path), case(), 3, most=4)
    places = chosen(7, 4, 3)
    assert places == sorted(places)
    assert [row["x"].tolist() for row, _ in data.rows()] == [X[place].tolist() for place in places]
    assert data.notes == ["4 of 7 samples were drawn for accuracy."]
    assert chosen(7, 9, 3) == list(range(7))


def test_a_batch_that_is_not_full_is_filled_with_its_last_sample():
    mask = InputSpec("mask", ("batch", 2), "int64", constant=1)
    asked = case(InputSpec("x", ("batch", 3), "float32"), mask)
    fed = batch_of(asked, [{"x": X[0]}, {"x": X[1]}], 0)
    assert fed["x"].tolist() == [X[0].tolist(), *[X[1].tolist()] * 3]
    assert fed["mask"].tolist() == [[1, 1]] * 4


def test_what_is_no_labelled_data_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "d.npz"

    def refused(**arrays):
        np.savez(path, **arrays)
        with pytest.raises(UsageError) as caught:
            look_labelled(path)
        return str(caught.value)

    assert "has no array labels: there are x" in refused(x=X)
    assert "which are no whole numbers" in refused(x=X, labels=LABELS.astype(float))
    assert "has 7 labels and 6 rows of 'x'" in refused(x=X[:6], labels=LABELS)
    assert "holds no sample" in refused(x=X[:0], labels=LABELS[:0])
    assert "x is pickled" in refused(x=np.array([{}] * 7), labels=LABELS)
    assert "by columns" in refused(x=np.asfortranarray(X), labels=LABELS)
    path.write_bytes(b"PK not an archive")
    with pytest.raises(UsageError, match="is no archive of arrays"):
        look_labelled(path)
    with pytest.raises(UsageError, match="No such file"):
        look_labelled(tmp_path / "none.npz")


def test_a_header_that_promises_more_than_there_is_ends_in_a_sentence(tmp_path):
    path = tmp_path / "d.npz"
    np.save(tmp_path / "labels.npy", np.zeros(10**6, np.int64))
    np.save(tmp_path / "x.npy", np.zeros((10**6, 3), np.float32))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.npy", (tmp_path / "labels.npy").read_bytes())
        archive.writestr("x.npy", (tmp_path / "x.npy").read_bytes()[:200])
    data = LabelledArrays(str(path), case(), 0)
    with pytest.raises(CaseError, match=r"x of .* ends before its last row"):
        list(data.rows())
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (7, 10**12)"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", header.replace(b"10**12", b"1000000000000") + b", }\n")
        archive.writestr("labels.npy", (tmp_path / "labels.npy").read_bytes())
    with pytest.raises(UsageError):
        look_labelled(path)


def test_arrays_are_the_models_inputs_or_say_what_is_not(tmp_path):
    def refused(asked, **arrays):
        path = stored(tmp_path, **arrays)
        with pytest.raises(CaseError) as caught:
            LabelledArrays(str(path), asked, 0)
        return str(caught.value)

    assert "d.npz has no x, which m takes; it has labels, y." in refused(case(), y=X, labels=LABELS)
    assert "has rows of [2], and m is fed [3]" in refused(case(), x=X[:, :2], labels=LABELS)
    ids = InputSpec("x", ("batch", 3), "int64", high=9)
    assert "x of d.npz is float32, and m takes int64" in refused(case(ids), x=X, labels=LABELS)
    fixed = InputSpec("x", (1, 3), "float32")
    assert "its first size is not the batch" in refused(case(fixed), x=X, labels=LABELS)
    path = stored(tmp_path, x=X.astype(np.uint8), labels=LABELS)
    data = LabelledArrays(str(path), case(), 0)
    assert data.notes == ["x is fed with its uint8 as float32, not scaled."]
    assert next(data.rows())[0]["x"].dtype == np.float32


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe.npz"
    os.mkfifo(path)
    for look in (look_labelled, stored_arrays):
        with pytest.raises(UsageError, match="is no file"):
            look(path)


def test_a_header_of_inputs_that_claims_more_than_memory_is_refused(tmp_path):
    header = io.BytesIO()
    claims = {"descr": "<f4", "fortran_order": False, "shape": (2**45,)}
    np.lib.format.write_array_header_1_0(header, claims)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue() + bytes(64))
    with pytest.raises(UsageError, match="claims to hold more than it has"):
        stored_arrays(tmp_path / "x.npz")


def members(path, **parts):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("_", "."), data)
    return path


def in_file(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def damaged(path):
    """A packed file of which some bytes have been lost."""
    numbers = np.random.default_rng(0).random((400, 8))
    np.savez_compressed(path, x=numbers, labels=np.arange(400))
    whole = bytearray(path.read_bytes())
    whole[200:260] = b"\xff" * 60
    path.write_bytes(whole)
    return path


def encrypted(path):
    whole = bytearray(members(path, x_npy=in_file(X), labels_npy=in_file(LABELS)).read_bytes())
    whole[whole.find(b"PK\x03\x04") + 6] |= 1
    whole[whole.find(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(whole)
    return path


def of_text(path):
    return members(path, x_npy=in_file(X), labels_npy=in_file(LABELS), README_txt=b"hello")


def without_an_end(path):
    header = b"{'descr':'<f4'\n"
    begun = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    return members(path, x_npy=begun, labels_npy=in_file(LABELS))


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("read", [stored_arrays, look_labelled])
@pytest.mark.parametrize("second", ["labels.npy", "labels"])
def test_two_arrays_of_one_name_are_refused_by_it(tmp_path, read, second):
    """NumPy reads the last of them, and whoever goes through the archive the first."""
    path = stored(tmp_path, x=X, labels=LABELS)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(second, in_file(LABELS + 1))
    with pytest.raises(UsageError, match="has 'labels' twice"):
        read(path)


@pytest.mark.parametrize("make", [damaged, encrypted, without_an_end, of_text])
@pytest.mark.parametrize("read", [stored_arrays, look_labelled])
def test_a_damaged_file_is_refused_in_a_sentence(tmp_path, read, make):
    path = make(tmp_path / "d.npz")
    if (make, read) == (of_text, look_labelled):
        assert sorted(look_labelled(path)) == ["labels", "x"]  # what is no array is not taken
        return
    with pytest.raises(UsageError, match=r"is no archive|is no plain array|which is no array"):
        read(path)


def test_a_file_that_is_damaged_behind_its_headers_is_refused_where_it_is(tmp_path):
    path = tmp_path / "d.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", in_file(np.zeros((40_000, 3), np.float32)))
        archive.writestr("labels.npy", in_file(np.zeros(40_000, np.int64)))
    whole = bytearray(path.read_bytes())
    whole[300_000] ^= 1  # the sum of the archive is another one
    path.write_bytes(whole)
    with pytest.raises(CaseError, match=r"x of .* is damaged"):
        list(LabelledArrays(str(path), case(), 0).rows())


@pytest.mark.parametrize(
    ("have", "wants", "words"),
    [
        (np.full((7, 3), 300), "uint8", "holds 300, which uint8 cannot"),
        (np.full((7, 3), -1), "uint16", "holds -1, which uint16 cannot"),
        (np.full((7, 3), 1e300), "float32", r"holds 1e\+300, which float32 cannot"),
    ],
)
def test_a_value_that_its_input_cannot_hold_is_not_another_one(tmp_path, have, wants, words):
    path = stored(tmp_path, x=have, labels=LABELS)
    data = LabelledArrays(str(path), case(InputSpec("x", ("batch", 3), wants, 0, 9)), 0)
    with pytest.raises(CaseError, match=words):
        list(data.rows())
