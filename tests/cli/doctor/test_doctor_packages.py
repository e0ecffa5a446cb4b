"""`accelbench doctor`: extras, versions, and packages that clash."""

from dataclasses import replace

import pytest
from doctor_world import Records, healths, installed, only

from accelbench.hardware.doctor import packages
from accelbench.hardware.doctor.packages import meets, parse
from accelbench.hardware.doctor.world import Health


def test_extras_and_requirements(here):
    # Extras are whole absent or in versions they were not made for.
    found = packages.extras(installed(here, torch="2.13.0+cpu", jax="0.12.0"))
    assert healths(found) == {
        "accelbench itself": Health.OK,
        "extra jax": Health.CLASH,
        "extra torch": Health.OK,
    }
    (jax,) = [one for one in found if one.name == "extra jax"]
    assert jax.said == "jax 0.12.0 where <0.12,>=0.7 is needed"
    assert jax.remedy == "accelbench setup jax"
    assert healths(packages.extras(here))["extra torch"] is Health.MISSING
    # What packages ask of each other is held against what is there.
    needs = {"torch": ["sympy>=1.13", "numpy<2; python_version < '3'", "setuptools; extra == 'x'"]}
    found = only(packages.metadata(installed(here, needs, torch="2.13", sympy="1.12")))
    assert found.health is Health.CLASH
    assert found.said == "torch 2.13 needs sympy>=1.13; sympy 1.12 is installed"
    absent = only(packages.metadata(installed(here, needs, torch="2.13")))
    assert absent.health is Health.BROKEN
    assert only(packages.metadata(installed(here, needs, torch="2.13", sympy="1.14"))).health is (
        Health.OK
    )


@pytest.mark.parametrize(
    "there",
    [
        {"onnxruntime": "1.31.1", "onnxruntime_openvino": "1.24"},
        {"onnxruntime_gpu": "1.31.1", "onnxruntime_directml": "1.24"},
        {"amdsmi": "6.4", "ray": "2.60"},
    ],
)
def test_packages_that_overwrite_or_break_each_other_clash(here, there):
    found = only(packages.clashes(installed(here, **there)))
    assert found.health is Health.CLASH
    assert found.remedy.startswith("pip uninstall -y ")
    for package in there:
        alone = installed(here, **{package: there[package]}, onnxruntime_qnn="2.7")
        assert only(packages.clashes(alone)).health is Health.OK


def test_torch_jax_and_metadata(here):
    # A torch that does not fit the driver is worth knowing.
    driver = Records(__proc__driver__nvidia__version="NVRM 580")
    builds = {"2.13.0+cu128": (Health.HINT, Health.OK), "2.13.0+cpu": (Health.OK, Health.HINT)}
    for version, (without, with_driver) in builds.items():
        world = installed(here, torch=version)
        assert only(packages.torch_build(world)).health is without
        assert only(packages.torch_build(replace(world, files=driver))).health is with_driver
    assert packages.torch_build(here) == []
    # What jax brings does not make torch a build for cuda.
    brought = {"torch": "2.13.0+cpu", "nvidia_cuda_runtime_cu12": "12.9"}
    assert only(packages.torch_build(installed(here, **brought))).health is Health.OK
    plain = {**brought, "torch": "2.13.0"}  # as it comes from PyPI, where only that tells
    assert only(packages.torch_build(installed(here, **plain))).health is Health.HINT
    # A line of metadata is read with its extra.
    one = parse("Torch.Audio[fast] (>=2.6,<3) ; extra == 'torch'")
    assert (one.name, one.spec, one.extra, one.conditional) == (
        "torch-audio", ">=2.6,<3", "torch", False,
    )  # fmt: skip
    assert parse("x>=1; python_version<'3.8'").conditional
    assert parse("; nonsense") is None


@pytest.mark.parametrize(
    ("version", "spec", "answer"),
    [
        ("2.13.0+cpu", "<3,>=2.6", True),
        ("2.13.0", "==2.13", True),
        ("3.0.0", "<3", False),
        ("3.0rc1", "<3", False),
        ("2.6rc1", ">=2.6", False),
        ("2.6.0.post1", ">=2.6", True),
        ("0.10.2", "<0.12,>=0.7", True),
        ("1.4.9", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("1.5.0", "==1.4.*", False),
        ("1.4.7", "!=1.4.*", False),
        ("1.4.7", "!=1.4.7", False),
        ("2026.4.1", "<2027,>=2025.2", True),
        ("1.0", "", True),
        ("1.0", "@ https://example.org/x.whl", None),
        ("1!2.0", ">=1", None),
        ("nightly", ">=1", None),
    ],
)
def test_versions_meet_requirements_or_are_not_judged(version, spec, answer):
    assert meets(version, spec) is answer
