"""ExecuTorch: what a program says of itself, and, where the engine is, what it computes."""

import json
import struct
from importlib.util import find_spec

import numpy as np
import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.errors import MissingExtraError
from accelbench.core.model import FileFormat
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.engines.artifacts.cache import Cache
from accelbench.engines.artifacts.make import make
from accelbench.engines.artifacts.recipe import Recipe
from accelbench.models.file_models.kinds import FileRefusedError, format_of
from accelbench.models.file_models.looking import look
from accelbench.models.file_models.models import model_of_file
from accelbench.models.find import find
from accelbench.run.verify.reference import is_own
from accelbench_executorch import ExecutorchRuntime
from accelbench_executorch.program import MalformedProgramError, plan_of
from executorch_programs import PLAIN, XNNPACK, computed, content

CPU = Device("cpu", "a processor")
HAS_ENGINE = find_spec("executorch") is not None
ABSENT = pytest.mark.skipif(not HAS_ENGINE, reason="executorch, which runs .pte, is not installed")
WEIGHTS = 16 * 32 + 32 + 32 * 4 + 4


def written(folder, program=XNNPACK):
    path = folder / "net.pte"
    path.write_bytes(content(program))
    return path


def test_a_program_says_what_was_handed_to_whom():
    lowered, plain = plan_of(content(XNNPACK)), plan_of(content(PLAIN))
    assert (lowered.delegated, lowered.inside, lowered.kernels) == ({"XnnpackBackend": 1}, 2, {})
    assert (plain.delegated, plain.inside) == ({}, 0)
    assert plain.kernels == {"aten::permute_copy": 2, "aten::addmm": 2, "aten::relu": 1}
    assert lowered.weights == plain.weights == WEIGHTS
    assert not lowered.quantised


def test_no_offset_leads_out_of_a_program_unnoticed():
    whole = content(XNNPACK)
    for place in range(0, len(whole) - 4, 12):
        hostile = bytearray(whole)
        hostile[place : place + 4] = b"\xff\xff\xff\x7f"
        try:
            plan_of(bytes(hostile))
        except (MalformedProgramError, struct.error):
            continue
    for cut in (8, 60, 400, 2000):
        with pytest.raises((MalformedProgramError, struct.error)):
            plan_of(whole[:cut])


def test_an_offset_before_the_mark_may_look_like_anything(tmp_path):
    assert content()[:1] == b"<"
    assert format_of(written(tmp_path)) is FileFormat("executorch")
    (tmp_path / "page.pte").write_bytes(b"<html></html>")
    with pytest.raises(FileRefusedError, match="begins as XML or HTML"):
        format_of(tmp_path / "page.pte")


@pytest.mark.skipif(HAS_ENGINE, reason="executorch is installed")
def test_who_lacks_the_engine_is_told_how_to_install_it(tmp_path):
    with pytest.raises(MissingExtraError, match="executorch") as refused:
        model_of_file(str(written(tmp_path)))
    assert "setup executorch" in str(refused.value.advice)


def test_models_of_the_catalogue_are_not_lowered():
    case = Case(find("bert-tiny"), Target("executorch", "cpu"), "fp32", Shapes(1))
    support = ExecutorchRuntime().supports(case, CPU)
    assert (support.ok, support.reason) in ((False, "format"), (False, "package_missing"))


@pytest.mark.full  # which installs the engine
@ABSENT
@pytest.mark.parametrize(("program", "own"), [(XNNPACK, 0), (PLAIN, 5)])
def test_a_program_computes_what_was_lowered(tmp_path, program, own):
    spec = model_of_file(str(written(tmp_path, program)))
    assert (spec.fixed_batch, spec.parameters, spec.inputs[0].shape) == (2, WEIGHTS, (2, 16))
    case = Case(spec, Target("executorch", "cpu"), "fp32", Shapes(2))
    assert not is_own(case)  # nothing else is there to compare it with
    runtime = ExecutorchRuntime()
    folder = make(Recipe(case, runtime.wants(case)), Cache(tmp_path / "cache")).folder
    session = runtime.open(Job(case, CPU, JobSettings(threads=1), str(folder)))
    fed = session.prepare(case)
    found = session.outputs(fed)["out0"]
    assert np.allclose(found, computed(fed[0].numpy()), rtol=1e-5, atol=1e-5)
    details = session.evidence().details
    assert (details["own_kernels"], details["threads"]) == (own, 1)
    json.dumps(details)
    session.close()


@pytest.mark.full  # which installs the engine
@ABSENT
def test_a_part_of_a_program_and_what_only_has_the_name_are_refused(tmp_path):
    path = written(tmp_path)
    path.write_bytes(content()[:2000])
    with pytest.raises(FileRefusedError, match=r"contradicts itself|cannot read it"):
        look(path)
    path.write_bytes(b"\x08\0\0\0ETXX" + b"\0" * 64)
    with pytest.raises(FileRefusedError, match="no ExecuTorch program, whatever its name"):
        look(path)
