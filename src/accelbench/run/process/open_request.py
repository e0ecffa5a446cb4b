"""What a worker is asked to open, as it goes over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.protocols import Device
from accelbench.core.serial import case_to_json, device_to_json
from accelbench.run.plan.run_settings import RunSettings


def open_request(
    settings: RunSettings,
    case: Case,
    device: Device,
    artefact: str | None = None,
    spill: Path | None = None,
) -> dict[str, Any]:
    """The request that opens a case's model on a device, with everything the run has settled."""
    return {
        "do": "open",
        "job": {
            "case": case_to_json(case),
            "device": device_to_json(device),
            "seed": settings.seed,
            "threads": settings.threads,
            "weights": settings.weights,
            "artefact": artefact,
            "spill": None if spill is None else str(spill),
            "data": settings.data,
            "trust_remote_code": settings.trust_remote_code,
        },
    }
