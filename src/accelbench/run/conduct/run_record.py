"""What a run says of itself when it begins, so that it can be gone on with: plain JSON and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from accelbench import __version__
from accelbench.catalog.file_models.unchanged import as_here
from accelbench.core.case import Case
from accelbench.core.errors import StoreError
from accelbench.core.identity import plain
from accelbench.core.serial import (
    case_from_json,
    case_to_json,
    device_from_json,
    device_to_json,
)
from accelbench.core.vocabulary import Status
from accelbench.hardware.rooflines import Roofline
from accelbench.run.plan.against import Against, AgainstKind
from accelbench.run.plan.arms import OtherArm
from accelbench.run.plan.request import Plan, Planned, Refusal
from accelbench.run.plan.run_settings import RunSettings


def settled(run_id: str, begun: Mapping[str, Any]) -> tuple[RunSettings, Plan]:
    """The settings and the plan a run began with."""
    try:
        plan = Plan(tuple(_planned_from_json(p) for p in begun["plan"]))
        return RunSettings.from_dict(begun["settings"]), plan
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"Run {run_id} was begun by accelbench {begun.get('accelbench')}, whose plan this"
            f" version ({__version__}) cannot read.",
            "Use that version, or start a new run.",
        ) from error


def arm_to_json(other: OtherArm) -> dict[str, Any]:
    """The arm that a run is compared with."""
    against = other.against
    return {
        "kind": against.kind.value,
        "name": against.name,
        "word": against.word,
        "settings": other.settings.to_dict(),
        "plan": [planned_to_json(p) for p in other.plan.cases],
    }


def arm_settled(run_id: str, begun: Mapping[str, Any]) -> OtherArm | None:
    """The same back; None where the run has no arms."""
    named = begun.get("against")
    if named is None:
        return None
    settings, plan = settled(run_id, {**begun, **named})
    return OtherArm(
        Against(AgainstKind(named["kind"]), named["name"], named["word"]), plan, settings
    )


def planned_to_json(planned: Planned) -> dict[str, Any]:
    """A case of a plan."""
    return {
        "case": case_to_json(planned.case),
        "device": device_to_json(planned.device) if planned.device else None,
        "refusal": asdict(planned.refusal) if planned.refusal else None,
        "roofline": plain(planned.roofline) if planned.roofline else None,
        "as_stored": planned.as_stored,
    }


def _here(case: Case) -> Case:
    """A case of another process, or another machine: a model's file may be a copy here."""
    file = case.model.file
    return case if file is None else replace(case, model=replace(case.model, file=as_here(file)))


def _planned_from_json(body: Mapping[str, Any]) -> Planned:
    refusal, roofline = body["refusal"], body.get("roofline")
    return Planned(
        case=_here(case_from_json(body["case"])),
        device=device_from_json(body["device"]) if body["device"] else None,
        refusal=Refusal(**{**refusal, "status": Status(refusal["status"])}) if refusal else None,
        roofline=Roofline(**{**roofline, "platforms": tuple(roofline["platforms"])})
        if roofline
        else None,
        as_stored=body.get("as_stored", False),
    )
