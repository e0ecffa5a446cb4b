"""What the jax runtime says before it is opened, and how XLA's text of a program is read."""

import subprocess
import sys

import pytest


def test_reading_the_card_imports_no_engine():
    code = """
import sys
from accelbench.core.plugins import ENGINES, load, find_entry_points
card = load(find_entry_points(ENGINES)["jax"])
card = card() if isinstance(card, type) else card
assert card.info.name == "jax" and card.info.default_for == ("tpu",)
print(*sorted({name.split(".")[0] for name in sys.modules} & {"jax", "jaxlib", "torch", "numpy"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == ""


def test_a_template_that_has_imported_everything_runs_one_thread():
    """A second one would not be there after a fork, and what it held would stay locked."""
    pytest.importorskip("jax")
    if not sys.platform.startswith("linux"):
        pytest.skip("threads are counted in /proc")
    code = """
import os
from importlib import import_module
from accelbench.engines.jax import JaxRuntime
for module in JaxRuntime.info.preload:
    import_module(module)
print(len(os.listdir("/proc/self/task")))
"""
    environment = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=120, check=True, env=environment,
    )  # fmt: skip
    assert done.stdout.split()[-1] == "1"


UPCAST = """
%wrapped (p: bf16[64,64]) -> f32[64,64] {
  %p = bf16[64,64]{1,0} parameter(0)
  ROOT %convert.3 = f32[64,64]{1,0} convert(%p)
}
ENTRY %main (a: bf16[64,64], b: bf16[64,64]) -> bf16[64,64] {
  %a.1 = bf16[64,64]{1,0} parameter(0)
  %wrapped_convert = f32[64,64]{1,0} fusion(%a.1), kind=kLoop, calls=%wrapped
  %b.1 = bf16[64,64]{1,0} parameter(1)
  %wrapped_convert.1 = f32[64,64]{1,0} fusion(%b.1), kind=kLoop, calls=%wrapped
  %dot.1 = f32[64,64]{1,0} dot(%wrapped_convert, %wrapped_convert.1), lhs_contracting_dims={1}
  ROOT %back = bf16[64,64]{1,0} convert(%dot.1)
}
"""
NARROW = """
ENTRY %main {
  %a = bf16[8,8]{1,0} parameter(0)
  %k = bf16[3,3,8,8]{3,2,1,0} parameter(1)
  %dot.2 = f32[8,8]{1,0} dot(%a, %a), lhs_contracting_dims={1}
  %conv = (bf16[8,8]{1,0}, s8[0]{0}) custom-call(%a, %k), custom_call_target="__cudnn$convForward"
  %gemm = bf16[8,8]{1,0} custom-call(%a, %a), custom_call_target="__cublas$lt$matmul"
  %w = f32[8,8]{1,0} convert(%a)
  ROOT %dot.3 = f32[8,8]{1,0} dot(%w, %w), lhs_contracting_dims={1}
  %other = bf16[8]{0} custom-call(%a), custom_call_target="TopK"
}
"""


class TestProductsOfAProgram:
    def test_what_counts_is_what_a_product_reads(self):
        pytest.importorskip("jax")
        from accelbench.engines.jax.programs import multiplied_in

        assert multiplied_in(UPCAST) == {"float32": 1.0}
        assert multiplied_in(NARROW) == {"bfloat16": 0.75, "float32": 0.25}
        assert multiplied_in("ENTRY %main {\n  ROOT %a = f32[2]{0} parameter(0)\n}") == {}

    @pytest.mark.parametrize("name", ["float32", "bfloat16"])
    def test_of_a_program_that_xla_has_just_compiled(self, name):
        jax = pytest.importorskip("jax")
        from accelbench.engines.jax.programs import multiplied_in

        x = jax.numpy.ones((8, 8), name)
        text = jax.jit(lambda a: a @ a).lower(x).compile().as_text()
        found = multiplied_in(text)
        assert sum(found.values()) == 1.0
        if name == "float32":
            assert found == {"float32": 1.0}
