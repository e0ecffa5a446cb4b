"""The process in which a device's probes are timed: one device, then it ends.

    python -m accelbench.run.calibrate.calibration_worker REQUEST

REQUEST is JSON: the device, and the seconds of all probes together. It answers in lines of JSON:
first what the engine is and how many probes there are, then each probe's blocks, or why it has
none, and at last the processor time that it took. What the engine prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from accelbench.core.calibration import ProbeSpec
from accelbench.core.clock import MonotonicClock, cpu_seconds
from accelbench.core.errors import AccelbenchError
from accelbench.core.identity import plain
from accelbench.core.jsonc import loads
from accelbench.core.serial import device_from_json
from accelbench.run.calibrate.block_timing import ProbeBlocks, time_probe
from accelbench.run.calibrate.probe_plan import expected_seconds, probes_for, sizes_of
from accelbench.runtimes.pytorch.device_probes import attention_shape, cache_bytes, step_of
from accelbench.runtimes.pytorch.places import TorchPlace, place_for

#: A probe whose step would take longer than this share of its time is left out.
_LONGEST_STEP = 0.5
_LONGEST_REASON = 160

Send = Callable[[dict[str, Any]], None]


def time_all(
    specs: list[ProbeSpec], seconds: float, timed: Callable[[ProbeSpec], ProbeBlocks], send: Send
) -> None:
    """Time probes one after the other and send what comes of each.

    Args:
        specs: the probes, small before large.
        seconds: what each may take.
        timed: times one.
        send: takes each answer.
    """
    before: ProbeSpec | None = None
    took = 0.0
    for spec in specs:
        expected = expected_seconds(spec, before, took)
        if expected is not None and expected > seconds * _LONGEST_STEP:
            about = f"{expected:.0f}" if expected >= 10 else f"{expected:.2g}"
            reason = f"a step would take about {about} s"
            send({"refused": {**_named(spec), "reason": reason}})
            continue
        try:
            blocks = timed(spec)
        except Exception as error:
            send({"refused": {**_named(spec), "reason": _reason(error)}})
            continue
        before, took = spec, blocks.step_seconds
        send({"probe": plain(spec), "steps": blocks.steps, "samples_ns": blocks.samples_ns})


def _named(spec: ProbeSpec) -> dict[str, str]:
    return {"name": spec.name, "precision": spec.precision}


def _reason(error: Exception) -> str:
    text = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]} …"


def serve(request: dict[str, Any], send: Send) -> None:
    """Time the probes of a device."""
    import torch

    device = device_from_json(request["device"])
    place = place_for(torch, device.hardware, device.ordinal)
    threads = torch.get_num_threads()
    shape = attention_shape(device.hardware)
    sizes = sizes_of(device, cache_bytes(torch, place.device), threads, shape)
    specs = probes_for(sizes)
    send({
        "engine": f"torch {torch.__version__}", "threads": threads, "facts": place.facts(),
        "probes": len(specs),
    })  # fmt: skip
    each = float(request["seconds"]) / len(specs)
    with torch.inference_mode():
        time_all(specs, each, lambda spec: _timed(torch, place, spec, each), send)


def _timed(torch: Any, place: TorchPlace, spec: ProbeSpec, seconds: float) -> ProbeBlocks:
    step = step_of(torch, spec, place.device)
    return time_probe(step, place.synchronize, seconds, MonotonicClock())


def main(arguments: list[str]) -> None:
    """Answer one request on what standard output was when it began."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(answer: dict[str, Any]) -> None:
        channel.write(json.dumps(answer) + "\n")
        channel.flush()

    try:
        serve(loads(arguments[0]), send)
    except AccelbenchError as error:
        send({"failed": error.message, "advice": error.advice})
    else:
        send({"ended": cpu_seconds()})


if __name__ == "__main__":
    main(sys.argv[1:])
