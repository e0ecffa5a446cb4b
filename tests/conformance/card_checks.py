"""What is known of a runtime without its engine."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from conformance_subject import Subject
from suite import EXAMPLE

from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import API_VERSION, Runtime, RuntimeInfo, Support
from accelbench.core.vocabulary import Mode

ENGINES = {"torch", "transformers", "jax", "onnx", "onnxruntime", "openvino"}

#: Read the card and ask about everything, in a process where an import would show.
READ_CARD = """
import dataclasses, json, sys
from importlib import import_module
from accelbench.models.selection import choose
from accelbench.core.case import Case, Shapes, Target
from accelbench.core.precision import PRECISIONS
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Mode
module, _, name = {card!r}.partition(":")
runtime = getattr(import_module(module), name)()
info = runtime.info
spec = choose([{model!r}], None, (), (), all_models=False)[0]
answers = []
for precision in (*PRECISIONS, "fp7"):
    for mode in Mode:
        target = Target(info.name, {hardware!r})
        case = Case(spec, target, precision, Shapes(1, spec.sequence, spec.image), mode=mode)
        support = runtime.supports(case, Device({hardware!r}, "a device"))
        answers.append([precision, mode.value, support.ok, support.reason, support.message])
runtime.clock()
loaded = sorted({{name.split(".")[0] for name in sys.modules}})
print(json.dumps([dataclasses.asdict(info), answers, loaded], default=list))
"""


@pytest.fixture(scope="class")
def read(subject: Subject) -> tuple[dict[str, Any], list[Any], set[str]]:
    code = READ_CARD.format(card=subject.card, model=subject.model, hardware=subject.hardware)
    # The example's package is not installed: it is found where it lies.
    path = os.pathsep.join(filter(None, [str(EXAMPLE), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    info, answers, loaded = json.loads(done.stdout)
    return info, answers, set(loaded)


class CardChecks:
    """What is known without the engine."""

    def test_reading_and_asking_imports_no_engine(self, read):
        assert not read[2] & ENGINES

    def test_the_card_is_filled_in(self, subject, read):
        info: Mapping[str, Any] = read[0]
        assert info["name"]
        assert subject.hardware in info["hardware"]
        assert set(info["default_for"]) <= set(info["hardware"])
        assert set(info["precisions"]) <= set(PRECISIONS)
        assert subject.precision in info["precisions"]
        assert info["api_version"] == API_VERSION
        assert info["isolation"] in ("fork", "spawn", "remote")

    def test_every_no_has_a_reason(self, read):
        info, answers, _ = read
        for precision, mode, ok, reason, message in answers:
            if not ok:
                assert reason, (precision, mode)
                assert message, (precision, mode)
            else:
                assert precision in info["precisions"]

    def test_everything_the_protocol_names_is_there(self, subject):
        runtime = subject.runtime()
        assert isinstance(runtime, Runtime)
        assert isinstance(runtime.info, RuntimeInfo)
        for name, method in inspect.getmembers(Runtime, inspect.isfunction):
            if name.startswith("_"):
                continue
            wanted = list(inspect.signature(method).parameters)[1:]
            offered = list(inspect.signature(getattr(runtime, name)).parameters)
            assert offered[: len(wanted)] == wanted, name

    def test_what_is_not_offered_is_refused(self, subject):
        runtime = subject.runtime()
        untrained = dataclasses.replace(subject.case().model, training=None)
        for case in (
            dataclasses.replace(subject.case(), precision="int8"),
            dataclasses.replace(subject.case(), mode=Mode.TRAINING, model=untrained),
            dataclasses.replace(subject.case(), options={"no-such-option": 1}),
        ):
            support = runtime.supports(case, subject.device())
            assert isinstance(support, Support)
            if subject.card.endswith("PytorchRuntime"):
                assert not support.ok
                assert support.reason
                assert support.advice
