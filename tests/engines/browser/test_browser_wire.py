"""Messages between the worker and the page, from both sides."""

import json
import shutil
import struct
import subprocess
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from accelbench.engines.browser.page_link import DTYPES, packed, unpacked

PAGE = Path(str(files("accelbench.engines.browser") / "page"))
SHAPES = [(), (1,), (5,), (2, 3), (3, 1, 2), (0,), (2, 0, 3)]

#: Takes a message apart and puts the same together again; says what it has seen.
NODE = """
import { packed, unpacked } from "%s";
const parts = [];
for await (const part of process.stdin) parts.push(part);
// A buffer of its own, as a page's: views into it count from its beginning.
const { body, arrays } = unpacked(new Uint8Array(Buffer.concat(parts)).buffer);
const seen = {};
for (const [name, { data }] of Object.entries(arrays)) {
  seen[name] = { kind: data.constructor.name, values: Array.from(data, String) };
}
delete body.arrays;
const said = packed({ ...body, seen }, arrays);
process.stdout.write(Buffer.from(await said.arrayBuffer()));
"""


def some(dtype, shape):
    count = int(np.prod(shape))
    values = np.arange(count) - count // 2
    return (values % 2 if dtype == "bool" else values).astype(dtype).reshape(shape)


def same(found, given):
    assert list(found) == list(given)
    for name, array in given.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape), name
        np.testing.assert_array_equal(found[name], array)


EVERY = {
    f"{dtype} {number}": some(dtype, shape)
    for dtype in sorted(DTYPES)
    for number, shape in enumerate(SHAPES)
}
EXTREMES = {
    "longs": np.array([2**63 - 1, -(2**63), 2**53 + 1]),
    "doubles": np.array([np.inf, -0.0, np.nan, 5e-324]),
    "halves": np.array([65504.0, -np.inf, 6e-8], "float16"),
    "bytes": np.array([-128, 127], "int8"),
}


def message(head, after=b""):
    """A message as it should not be made."""
    words = head if isinstance(head, bytes) else json.dumps(head).encode()
    words += b" " * (-(4 + len(words)) % 8)
    return struct.pack("<I", len(words)) + words + after


def described(**more):
    return {"arrays": [{"name": "x", "dtype": "float32", "shape": [2], **more}]}


@pytest.mark.parametrize("dtype", sorted(DTYPES))
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arrays_come_out_as_they_went_in(dtype, shape):
    body, arrays = unpacked(packed({"do": "feed"}, {"x": some(dtype, shape)}))
    assert body == {"do": "feed"}
    same(arrays, {"x": some(dtype, shape)})


def test_messages_keep_their_arrays_in_order():
    body, arrays = unpacked(packed({"id": 1, "what": "größer ↔"}, EVERY | EXTREMES))
    assert body == {"id": 1, "what": "größer ↔"}
    same(arrays, EVERY | EXTREMES)
    assert unpacked(packed({"a": [1, None]})) == ({"a": [1, None]}, {})
    assert unpacked(message({"a": 1})) == ({"a": 1}, {})
    data = packed({}, {"x": np.ones(4)})
    assert np.shares_memory(unpacked(data)[1]["x"], np.frombuffer(data, "uint8"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        packed({"time": float("nan")})


@pytest.mark.parametrize("filling", range(9))
def test_arrays_begin_at_multiples_of_eight(filling):
    odd = {"a": np.ones(3, "int8"), "b": np.full(1, 7.0), "c": np.ones((), "float16")}
    data = packed({"x": "." * filling}, odd)
    assert len(data) % 8 == 0
    assert data.index(struct.pack("<d", 7.0)) % 8 == 0
    begin = np.frombuffer(data, "uint8").ctypes.data
    for array in unpacked(data)[1].values():
        assert (array.ctypes.data - begin) % 8 == 0


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.arange(12, dtype="int32")[::3],
        np.arange(3, dtype=">i8"),
        np.array(1.5, ">f4"),
        np.float32(2.5),
    ],
)
def test_arrays_in_another_order_are_put_in_order(array):
    found = unpacked(packed({}, {"x": array}))[1]["x"]
    assert found.shape == array.shape
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([object()]),
        np.ones(2, "complex64"),
        np.ones(2, "uint16"),
        np.array(["2026-01-02"], "datetime64[s]"),
    ],
    ids=lambda array: str(array.dtype),
)
def test_what_no_page_knows_is_not_sent(array):
    with pytest.raises(ValueError, match="cannot be given odd"):
        packed({}, {"odd": array})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        struct.pack("<I", 3) + b"{}",
        struct.pack("<I", 2**32 - 1) + b"{}",
        message(b""),
        message(b"{"),
        message(b"\xff\xfe"),
        message([1]),
        message("words"),
        message({"arrays": 3}),
        message({"arrays": {"x": 1}}),
        message({"arrays": [3]}),
        message({"arrays": [{}]}),
        message(described(dtype="string"), b"\0" * 8),
        message(described(dtype="object"), b"\0" * 8),
        message(described(dtype=["float32"]), b"\0" * 8),
        message(described(shape=3), b"\0" * 8),
        message(described(shape=[-1]), b"\0" * 8),
        message(described(shape=[-1, -2]), b"\0" * 8),
        message(described(shape=[2.0]), b"\0" * 8),
        message(described(shape=["2"]), b"\0" * 8),
        message(described(shape=[True]), b"\0" * 8),
        message(described(shape=[3]), b"\0" * 8),
        message(described(shape=[2**31 - 1] * 4), b"\0" * 8),
        message(described(shape=[0, 10**30]), b"\0" * 8),
        message(described(), b"\0" * 7),
        message(described()),
    ],
    ids=lambda data: ascii(data)[:60],
)
def test_what_is_no_message_is_refused(data):
    with pytest.raises(ValueError):
        unpacked(data)


@pytest.mark.parametrize("cut", [1, 3, 4, 9, 40])
def test_a_message_that_was_cut_is_refused(cut):
    whole = packed({"a": 1}, {"x": np.arange(8.0)})
    with pytest.raises(ValueError):
        unpacked(whole[:-cut])


# -- the other side


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page's module, which takes a message apart and gives it back."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node, which reads the page's own module, is not installed")
    script = tmp_path_factory.mktemp("page") / "there_and_back.mjs"
    script.write_text(NODE % (PAGE / "wire.mjs").as_uri(), encoding="utf-8")

    def there_and_back(data):
        done = subprocess.run(
            [node, str(script)], input=data, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    return there_and_back


def test_the_page_does_the_same(page):
    given = EVERY | EXTREMES
    body, arrays = unpacked(page(packed({"id": 7, "what": "größer ↔"}, given)))
    seen = body.pop("seen")
    assert body == {"id": 7, "what": "größer ↔"}
    same(arrays, given)
    # It has not merely carried the bytes: it has seen these numbers.
    assert seen["longs"] == {
        "kind": "BigInt64Array",
        "values": ["9223372036854775807", "-9223372036854775808", "9007199254740993"],
    }
    assert seen["doubles"]["values"] == ["Infinity", "0", "NaN", "5e-324"]
    assert seen["bytes"] == {"kind": "Int8Array", "values": ["-128", "127"]}
    assert seen["halves"]["values"] == [str(bits) for bits in given["halves"].view("uint16")]
    assert seen["float32 3"]["values"] == ["-3", "-2", "-1", "0", "1", "2"]
    assert seen["float32 0"]["values"] == ["0"]
    assert seen["float32 5"]["values"] == []

    assert unpacked(page(packed({"id": 1}))) == ({"id": 1, "seen": {}}, {})
    source = (PAGE / "wire.mjs").read_text(encoding="utf-8")
    table = source.partition("const VIEWS = {")[2].partition("}")[0]
    assert {line.split(":")[0].strip() for line in table.splitlines() if ":" in line} == DTYPES
