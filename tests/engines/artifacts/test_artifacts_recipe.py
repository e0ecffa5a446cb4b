"""Keys: another artefact has another one, and the same has the same. Manifests come back."""

import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import ArtifactFormat
from accelbench.engines.artifacts import recipe as recipes
from accelbench.engines.artifacts.recipe import FORMATS, Manifest, Recipe, Tensor, load
from accelbench.models.find import find
from accelbench.models.inputs import settle


def recipe(model="bert-tiny", batch=1, static=False, **more):
    spec = find(model)
    shapes = settle(spec, Shapes(batch, **more))
    return Recipe(
        Case(spec, Target("onnxruntime", "cpu"), "fp32", shapes), ArtifactFormat("onnx", static)
    )


BASE = recipe()


def in_format(kind):
    return replace(BASE, wanted=ArtifactFormat(kind))


@pytest.mark.parametrize(
    "other",
    [
        recipe("vit-tiny"),
        recipe(sequence=64),
        recipe(static=True),
        replace(BASE, seed=1),
        replace(BASE, weights="hub"),
        replace(BASE, workarounds=("eager_attention",)),
        replace(BASE, workarounds=("fixed_batch",)),
        *(in_format(kind) for kind in FORMATS if kind != "onnx"),
    ],
)
def test_what_makes_another_artefact_has_another_key(other):
    assert other.key != BASE.key


def test_what_is_in_a_key():
    same = [
        recipe(batch=8),  # any batch fits
        replace(BASE, case=replace(BASE.case, target=Target("openvino", "openvino"))),
        replace(BASE, case=replace(BASE.case, precision="int8")),  # the format says it
        replace(BASE, case=replace(BASE.case, options={"threads": 2})),
        replace(BASE, trust_remote_code=True),
    ]
    assert {one.key for one in same} == {BASE.key}
    assert recipe("unet-tiny", steps=2).key == recipe("unet-tiny", steps=5).key
    both = ("eager_attention", "no_packed_sequences")
    assert replace(BASE, workarounds=both).key == replace(BASE, workarounds=both[::-1]).key

    assert recipe(batch=1, static=True).key != recipe(batch=8, static=True).key
    fixed = replace(BASE, workarounds=("fixed_batch",))
    assert fixed.static
    assert fixed.key != replace(fixed, case=recipe(batch=8).case).key


def test_other_packages_make_another_artefact(monkeypatch):
    before, quantised = BASE.key, in_format("onnx-int8").key
    real = recipes.version
    newer = {"onnxruntime": "99"}
    monkeypatch.setattr(recipes, "version", lambda name: newer.get(name) or real(name))
    assert BASE.key == before  # an export does not need ONNX Runtime
    assert in_format("onnx-int8").key != quantised


def test_new_weights_in_a_folder_are_seen(tmp_path):
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "model.safetensors"
    file.write_bytes(b"1234")
    local = replace(BASE, weights=str(tmp_path))
    before = local.key
    assert local.key == before
    os.utime(file, ns=(1, 1))
    touched = local.key
    file.write_bytes(b"12345")
    assert len({before, touched, local.key, BASE.key}) == 4


def test_another_commit_of_the_hub_is_another_artefact(tmp_path, monkeypatch):
    constants = pytest.importorskip("huggingface_hub").constants
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    hub = replace(BASE, weights="hub")
    unknown = hub.key
    name = hub.case.model.hub_ids[0].replace("/", "--")
    folder = tmp_path / f"models--{name}"
    for commit in ("a" * 40, "b" * 40):
        (folder / "snapshots" / commit).mkdir(parents=True)
        (folder / "snapshots" / commit / "config.json").write_text("{}")
    (folder / "snapshots" / ("d" * 40)).mkdir()  # nothing of it was fetched
    (folder / "refs").mkdir()
    keys = [unknown]
    for commit in ("a" * 40, "b" * 40, "c" * 40, "d" * 40):  # the last two are not there
        (folder / "refs" / "main").write_text(commit)
        keys.append(hub.key)
    assert len(set(keys)) == 3
    assert keys[3] == keys[4] == unknown
    assert BASE.key == replace(BASE, weights="random").key


tensors = st.builds(
    Tensor,
    name=st.text(max_size=9),
    file_name=st.text(max_size=9),
    dtype=st.sampled_from(["float32", "int64", "bool"]),
    shape=st.lists(st.integers(1, 99) | st.just("batch"), max_size=4),
)
manifests = st.builds(
    Manifest,
    key=st.text(max_size=9),
    format=st.sampled_from(FORMATS),
    model=st.text(max_size=9),
    file=st.just("model.onnx"),
    inputs=st.tuples(tensors),
    outputs=st.tuples(tensors, tensors),
    batch=st.none() | st.integers(1, 99),
    weights_digest=st.text(max_size=9),
    workarounds=st.lists(st.text(max_size=9), max_size=2),
    quantiser=st.none() | st.just({"method": "q", "calibration": {"seeds": [1, 2]}}),
    versions=st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    seconds=st.dictionaries(st.text(max_size=5), st.floats(0, 1e6), max_size=2),
)


@given(manifests)
def test_a_manifest_comes_back_as_it_was(tmp_path_factory, one):
    folder = tmp_path_factory.mktemp("manifest")
    one.save(folder)
    assert load(folder) == one
