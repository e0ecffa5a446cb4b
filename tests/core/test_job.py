"""A job as plain JSON and back, and how runtimes of other packages read it."""

import json
from dataclasses import replace

import pytest

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.protocols import Device, Job
from accelbench.core.run_options import JobSettings
from accelbench.core.serial import job_from_json, job_to_json
from accelbench.models.find import find

CASE = Case(find("bert-tiny"), Target("pytorch", "cpu"), "fp32", Shapes(2, sequence=16))
JOB = Job(
    CASE,
    Device("cpu", "a processor"),
    JobSettings(seed=3, weights="hub", data="/pictures", trust_remote_code=True, threads=2),
    artefact="/made",
    spill="/spilled",
)


def test_a_job_is_read_by_workers_of_other_versions():
    assert job_from_json(json.loads(json.dumps(job_to_json(JOB)))) == JOB

    # They may be of another environment: renaming one of these raises the wire's version.
    assert job_to_json(JOB).keys() == {
        *("case", "device", "artefact", "spill"),
        *("seed", "threads", "weights", "data", "trust_remote_code"),
    }

    body = {name: value for name, value in job_to_json(JOB).items() if name in ("case", "device")}
    assert job_from_json(body) == Job(CASE, JOB.device)
    read = {name: getattr(JOB, name) for name in JobSettings.names()}
    assert read == JOB.settings.to_dict()
    with pytest.raises(AttributeError, match="a job has no haste"):
        _ = JOB.haste
    # An older worker would refuse every job for a setting that it does not know.
    metered = replace(JOB, settings=JOB.settings.with_values(energy=True))
    assert job_to_json(metered)["energy"] is True
    assert job_from_json(json.loads(json.dumps(job_to_json(metered)))) == metered
    with pytest.raises(ValueError, match="does not know the setting haste"):
        job_from_json({**job_to_json(JOB), "haste": 7})
