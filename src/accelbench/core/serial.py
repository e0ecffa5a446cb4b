"""Cases, models, devices and jobs as plain JSON and back: for journals and for workers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.identity import plain
from accelbench.core.model import (
    CodeKind,
    FileFormat,
    FileOutput,
    Generation,
    InputSpec,
    ModelCode,
    ModelFile,
    ModelSpec,
    Training,
)
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.vocabulary import Architecture, Family, Mode


def case_to_json(case: Case) -> dict[str, Any]:
    """Everything needed to ask the same again, on another machine too."""
    body: dict[str, Any] = plain(case)
    return body


def case_from_json(body: Mapping[str, Any]) -> Case:
    """The inverse of `case_to_json`; the case_id is the same."""
    return Case(
        model=model_from_json(body["model"]),
        target=Target(**body["target"]),
        precision=body["precision"],
        shapes=Shapes(**body["shapes"]),
        mode=Mode(body["mode"]),
        scenario=body["scenario"],
        world_size=body["world_size"],
        options=dict(body["options"]),
    )


def model_from_json(body: Mapping[str, Any]) -> ModelSpec:
    """A model spec from its plain form."""
    fields = dict(body)
    fields["family"] = Family(fields["family"])
    fields["architecture"] = Architecture(fields["architecture"])
    for name in ("modalities", "aliases", "hub_ids", "sets"):
        fields[name] = tuple(fields[name])
    fields["inputs"] = _inputs(fields["inputs"])
    generation, training = fields.get("generation"), fields.get("training")
    if generation is not None:
        fields["generation"] = Generation(**{**generation, "inputs": _inputs(generation["inputs"])})
    if training is not None:
        own = training["inputs"]
        fields["training"] = Training(
            **{
                **training,
                "labels": _inputs(training["labels"]),
                "inputs": None if own is None else _inputs(own),
            }
        )
    if fields.get("file") is not None:
        fields["file"] = _file(fields["file"])
    if fields.get("code") is not None:
        code = {name: _hashable(value) for name, value in fields["code"].items()}
        fields["code"] = ModelCode(**{**code, "kind": CodeKind(code["kind"])})
    return ModelSpec(**fields)


def _file(body: Mapping[str, Any]) -> ModelFile:
    outputs = tuple(
        FileOutput(**{name: _hashable(value) for name, value in output.items()})
        for output in body["outputs"]
    )
    return ModelFile(
        **{
            **body,
            "format": FileFormat(body["format"]),
            "outputs": outputs,
            "beside": tuple(body["beside"]),
            "custom": tuple(body.get("custom", ())),
        }
    )


def _inputs(bodies: Iterable[Mapping[str, Any]]) -> tuple[InputSpec, ...]:
    return tuple(InputSpec(**{k: _hashable(v) for k, v in body.items()}) for body in bodies)


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
