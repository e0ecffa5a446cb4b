"""Building: exact sizes, seeds that reproduce, each weight drawn by the model's own scheme."""

import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from accelbench.core.case import Shapes
from accelbench.models.build import build, build_module, constructor, parameter_count, skeleton
from accelbench.models.find import every_model, find
from accelbench.models.initial import initialise
from accelbench.models.inputs import make_inputs
from accelbench.models.narrow import weights_digest
from refusals import refusal

TINY = ("bert-tiny", "vit-tiny", "resnet-tiny", "gpt2-tiny")


@pytest.mark.parametrize("spec", every_model(), ids=lambda s: s.id)
def test_parameters_are_exactly_those_stated(spec):
    assert parameter_count(skeleton(spec)) == spec.parameters


@pytest.mark.parametrize("name", TINY)
def test_same_seed_same_bits_and_the_model_runs(name):
    spec = find(name)
    one, again, other = (build(spec, seed) for seed in (1, 1, 2))
    assert weights_digest(one) == weights_digest(again) != weights_digest(other)
    for (key, a), b in zip(one.state_dict().items(), again.state_dict().values(), strict=True):
        assert torch.equal(a, b), key
    assert not one.training
    assert all(p.dtype is torch.float32 and p.device.type == "cpu" for p in one.parameters())
    inputs = {k: torch.from_numpy(v) for k, v in make_inputs(spec, Shapes(2), 0).items()}
    with torch.no_grad():
        outputs = one(**inputs)
    assert all(torch.isfinite(t).all() for t in outputs.values() if isinstance(t, torch.Tensor))


def test_what_is_around_a_build_changes_nothing():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    build(find("bert-tiny"), seed=1)
    assert torch.equal(torch.rand(3), expected)

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = weights_digest(build(find("bert-tiny"), 3))
        torch.set_num_threads(2)
        assert weights_digest(build(find("bert-tiny"), 3)) == one
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", TINY)
def test_weights_are_distributed_as_the_plain_constructor_makes_them(name):
    """Every parameter: constants equal, draws of equal spread and centre."""
    spec = find(name)
    torch.manual_seed(0)
    plain = constructor(spec)().state_dict()
    ours = build(spec, seed=0).state_dict()
    assert plain.keys() == ours.keys()
    for key, expected in plain.items():
        got = ours[key]
        if not expected.is_floating_point() or expected.unique().numel() == 1:
            assert torch.equal(got, expected), key
        elif expected.numel() >= 1000:
            spread = float(expected.std())
            assert abs(float(got.std()) / spread - 1) < 0.1, key
            assert abs(float(got.mean())) < 5 * spread / expected.numel() ** 0.5, key
            halves = got.flatten()[: got.numel() // 2 * 2].reshape(2, -1)
            assert not torch.equal(halves[0], halves[1]), key
            assert torch.equal(got == 0, expected == 0), key  # BERT's padding row


class Awkward(torch.nn.Module):
    """Initialises as real models do: truncation in steps, a zeroed row, a copy, a tie."""

    def __init__(self):
        super().__init__()
        self.truncated = torch.nn.Parameter(torch.empty(40, 50))
        torch.nn.init.trunc_normal_(self.truncated, std=1.0, a=-1.0, b=1.0)
        self.rows = torch.nn.Parameter(torch.empty(6, 8))
        torch.nn.init.normal_(self.rows)
        with torch.no_grad():
            self.rows[2].zero_()
        self.copied = torch.nn.Parameter(self.rows.detach().clone())
        self.derived = torch.nn.Parameter(self.truncated.detach() * 2)
        self.plain = torch.nn.Parameter(torch.empty(5))
        torch.nn.init.constant_(self.plain, 3.0)
        self.head = torch.nn.Linear(8, 6, bias=False)
        self.head.weight = self.rows
        self.register_buffer("steps", torch.arange(4))


def test_fills_are_done_in_order_and_survive_the_cast():
    made, _ = initialise(Awkward, seed=0)
    assert made.truncated.abs().max() <= 1
    assert 0.4 < made.truncated.std() < 0.7
    assert made.rows[2].eq(0).all()
    assert made.rows[3].ne(0).all()
    assert torch.equal(made.copied, made.rows)
    assert torch.equal(made.derived, made.truncated * 2)
    assert made.plain.eq(3).all()
    assert made.head.weight is made.rows
    assert made.steps.tolist() == [0, 1, 2, 3]

    made, digest = initialise(Awkward, seed=0, dtype=torch.float16)
    whole, same = initialise(Awkward, seed=0)
    assert digest == same
    assert made.head.weight is made.rows
    assert made.steps.dtype is torch.int64
    assert torch.equal(made.derived, (whole.truncated * 2).half())
    assert torch.equal(made.copied, made.rows)

    def construct():
        return torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.Conv2d(3, 4, 5))

    torch.manual_seed(11)
    plain = construct()
    made, _ = initialise(construct, seed=11)
    for a, b in zip(plain.parameters(), made.parameters(), strict=True):
        assert torch.equal(a, b)


SMALL = [s for s in every_model() if "small" in s.sets]


@pytest.mark.parametrize("spec", SMALL, ids=lambda s: s.id)
@pytest.mark.parametrize("trained", [False, True], ids=["inference", "training"])
def test_built_in_sixteen_bits_it_is_the_fp32_model_cast(spec, trained):
    """Ties and buffers too; and its digest is that of the fp32 weights."""
    spec = spec.training_variant if trained and spec.training else spec
    whole = build_module(spec, seed=3)
    narrow = build_module(spec, seed=3, dtype=torch.bfloat16)
    assert narrow.digest == whole.digest == weights_digest(whole.module)
    for module in (whole.module, narrow.module):
        assert not module.training
    cast = whole.module.to(torch.bfloat16)
    for kind in ("named_parameters", "named_buffers"):
        ours = dict(getattr(narrow.module, kind)(remove_duplicate=False))
        theirs = dict(getattr(cast, kind)(remove_duplicate=False))
        assert ours.keys() == theirs.keys()
        for name, expected in theirs.items():
            assert ours[name].dtype is expected.dtype, name
            assert torch.equal(ours[name], expected), name
    assert parameter_count(narrow.module) == parameter_count(cast)  # what was tied is tied


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak from /proc")
def test_a_model_never_all_exists_in_fp32_where_sixteen_bits_are_wanted():
    program = (
        "import re, torch\n"
        "from accelbench.models.initial import initialise\n"
        "def peak():\n"
        "    return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "def construct():\n"
        "    layers = [torch.nn.Linear(4096, 2048, bias=False) for _ in range(16)]\n"
        "    return torch.nn.Sequential(*layers)\n"
        "initialise(lambda: torch.nn.Linear(64, 64), 0, torch.bfloat16)\n"
        "before = peak()\n"
        "module, _ = initialise(construct, 0, torch.bfloat16)\n"
        "print((peak() - before) / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    # 256 MiB of weights, and one tensor of 32 MiB with what is summed from it; fp32 is 512.
    assert 256 <= float(done.stdout) < 256 + 2 * 32 + 32


def test_the_digest_sees_values_places_names_and_types():
    def digest(weight, name="weight"):
        module = torch.nn.Module()
        module.register_buffer(name, weight)
        return weights_digest(module)

    base = torch.arange(50_000, dtype=torch.float32)
    changed, swapped, last = base.clone(), base.clone(), base.clone()
    changed[12_345] += 1
    swapped[100], swapped[20_000] = base[20_000], base[100]
    last[-1] = 0
    all_digests = [
        digest(base), digest(changed), digest(swapped), digest(last), digest(base, "other"),
        digest(base.reshape(2, -1)), digest(base.view(torch.int32)), digest(base[:-1]),
        digest(base.flip(0)), digest(torch.empty(0)),
    ]  # fmt: skip
    assert len(set(all_digests)) == len(all_digests)
    assert digest(base.clone()) == digest(base)


def test_a_builder_of_another_package():
    spec = replace(
        find("bert-tiny"), builder="torch.nn:Linear", config={"in_features": 3, "out_features": 2}
    )
    assert parameter_count(build(spec, seed=0)) == 8
    with refusal("builder_missing"):
        build(replace(spec, builder="torch.nn:Lineal"), seed=0)
    with refusal("builder_missing"):
        build(replace(spec, builder="transformers:BertModell"), seed=0)
