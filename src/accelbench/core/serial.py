"""Cases, models, devices and jobs as plain JSON and back: for journals and for workers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import ValidationError, convert

from accelbench.core.case import Case
from accelbench.core.identity import plain
from accelbench.core.model import ModelSpec
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings

T = TypeVar("T")


def case_to_json(case: Case) -> dict[str, Any]:
    """Everything needed to ask the same again, on another machine too."""
    body: dict[str, Any] = plain(case)
    return body


def case_from_json(body: Mapping[str, Any]) -> Case:
    """Return the case of `case_to_json`, with the same case_id; raise ValueError for others."""
    return _read(body, Case)


def model_from_json(body: Mapping[str, Any]) -> ModelSpec:
    """Return a model spec of its plain form; raise ValueError for others."""
    return _read(body, ModelSpec)


def _read(body: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return convert(body, kind, dec_hook=_as_kind)
    except ValidationError as error:
        raise ValueError(str(error)) from error


def _as_kind(kind: type[T], value: Any) -> T:
    """Return a value of a type of our own, such as a format of files."""
    return value if isinstance(value, kind) else kind(value)  # type: ignore[call-arg]


def device_to_json(device: Device) -> dict[str, Any]:
    """A device with its fingerprint beside it."""
    return {**plain(device), "fingerprint": device.fingerprint}


def device_from_json(body: Mapping[str, Any]) -> Device:
    """The inverse of `device_to_json`."""
    return Device(**{k: v for k, v in body.items() if k != "fingerprint"})


#: Settings that every version of the wire's workers knows. Others are said where they are set:
#: an older worker refuses a setting that it does not know, and does without one that nobody set.
_KNOWN_TO_ALL = frozenset({"seed", "weights", "data", "trust_remote_code", "threads"})


def job_to_json(job: Job) -> dict[str, Any]:
    """A job, its settings by their names beside what is of this one alone."""
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
    """Return the job; raise ValueError if it has a setting that this version does not know."""
    settings = dict(body)
    case, device = settings.pop("case"), settings.pop("device")
    alone = {name: settings.pop(name, None) for name in ("artefact", "spill")}
    return Job(
        case_from_json(case), device_from_json(device), JobSettings.from_dict(settings), **alone
    )
