"""What a worker is asked to open, as it goes over the wire."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accelbench.core.case import Case
from accelbench.core.job_settings import JobSettings
from accelbench.core.protocols import Device, Job
from accelbench.core.serial import job_to_json


def open_request(
    settings: JobSettings,
    case: Case,
    device: Device,
    artefact: str | None = None,
    spill: Path | None = None,
) -> dict[str, Any]:
    """The request that opens a case's model on a device, with everything the run has settled."""
    job = Job(case, device, settings, artefact, None if spill is None else str(spill))
    return {"do": "open", "job": job_to_json(job)}
