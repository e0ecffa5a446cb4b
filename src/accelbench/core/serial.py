"""Cases, models, devices and jobs as plain JSON and back, for journals and workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from accelbench.core.case import Case
from accelbench.core.identity import to_plain
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings

T = TypeVar("T")


def case_to_json(case: Case) -> dict[str, Any]:
    """Return everything needed to measure the same case again, also on another machine."""
    body: dict[str, Any] = to_plain(case)
    return body


def case_from_json(body: Mapping[str, Any]) -> Case:
    """Return the case of `case_to_json`, with the same case_id; raise ValueError for others."""
    return _read(body, Case)


def model_from_json(body: Mapping[str, Any]) -> ModelSpec:
    """Return a model spec of its plain form; raise ValueError for others."""
    return _read(body, ModelSpec)


def _read(body: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return convert(body, kind, dec_hook=_convert_own_type)
    except ValidationError as error:
        raise ValueError(str(error)) from error


def _convert_own_type(kind: type[T], value: Any) -> T:
    """Return a value of one of our own types, such as a format of files."""
    return value if isinstance(value, kind) else kind(value)  # type: ignore[call-arg]


def device_to_json(device: Device) -> dict[str, Any]:
    """Return a device with its fingerprint."""
    return {**to_plain(device), "fingerprint": device.fingerprint}


def device_from_json(body: Mapping[str, Any]) -> Device:
    """Return the device of `device_to_json`."""
    return Device(**{k: v for k, v in body.items() if k != "fingerprint"})


#: Settings that every version of workers knows. Others are sent only if they differ from their
#: default, because an older worker refuses settings that it does not know.
_KNOWN_TO_ALL = frozenset({"seed", "weights", "data", "trust_remote_code", "threads"})


def job_to_json(job: Job) -> dict[str, Any]:
    """Return a job, with its settings and its own fields in one object."""
    usual = JobSettings()
    settings = {name: getattr(job.settings, name) for name in JobSettings.names()}
    return {
        **{n: v for n, v in settings.items() if n in _KNOWN_TO_ALL or v != getattr(usual, n)},
        "case": case_to_json(job.case),
        "device": device_to_json(job.device),
        "artefact": job.artefact,
        "spill": job.spill,
    }


def job_from_json(body: Mapping[str, Any]) -> Job:
    """Return the job; raise ValueError if this version does not know one of its settings."""
    settings = dict(body)
    case, device = settings.pop("case"), settings.pop("device")
    own_fields = {name: settings.pop(name, None) for name in ("artefact", "spill")}
    return Job(
        case_from_json(case),
        device_from_json(device),
        JobSettings.from_dict(settings),
        **own_fields,
    )
