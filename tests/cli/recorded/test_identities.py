"""Identities: one question keeps its `case_id` and its line of history whatever is renamed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from accelbench.core.case import Case, Shapes, Target, result_id, series_key
from accelbench.core.protocols import Device
from accelbench.core.vocabulary import Mode
from accelbench.models.inputs import settle
from accelbench.models.selection import choose
from recordings import held

#: One of each family and architecture that the catalogue has in this size.
MODELS = choose((), "small", (), (), all_models=False)


def cases() -> Iterator[tuple[str, Case]]:
    for model in MODELS:
        asked = Case(model, Target("pytorch", "cpu"), "fp32", settle(model, Shapes(8)))
        yield f"{model.id} inference", asked
        yield f"{model.id} training", replace(asked, mode=Mode.TRAINING)
    first = next(iter(MODELS))
    asked = Case(first, Target("pytorch", "cpu"), "fp32", settle(first, Shapes(1)))
    for runtime, hardware in (("onnxruntime", "cuda"), ("openvino", "openvino"), ("jax", "tpu")):
        yield f"{runtime} on {hardware}", replace(asked, target=Target(runtime, hardware))
    yield "a unit", replace(asked, target=Target("openvino", "openvino", "gpu"))
    yield "another precision", replace(asked, precision="amp-fp16")
    yield "options", replace(asked, options={"compile": True, "threads": 2})
    yield "several processes", replace(asked, world_size=4)
    yield "a scenario", replace(asked, scenario="offline")


def test_identities():
    # Identities.
    card = Device("cuda", "A card", memory_bytes=24 * 2**30, count=2)
    held(
        "identities",
        {
            name: {
                "case_id": case.case_id,
                "series_key": series_key(case, card.fingerprint, 2),
                "result_id": result_id("a-run", case, card.fingerprint, 3, "a"),
            }
            for name, case in cases()
        },
    )
    # The fingerprint of a device.
    unit = Device("openvino", "A processor", unit="cpu", vendor="Intel", power_limit_watts=65.0)
    card = Device("cuda", "A card", memory_bytes=24 * 2**30, count=2)
    held("fingerprints", {one.name: one.fingerprint for one in (unit, card)})
