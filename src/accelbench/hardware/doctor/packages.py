"""Packages: what our extras ask for, what packages ask of each other, and known clashes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from accelbench.core.errors import setting_up
from accelbench.hardware.doctor.finding import Finding, Health
from accelbench.hardware.doctor.versions import Requirement, meets, normal, parse
from accelbench.hardware.doctor.world import World

_OURS = "accelbench"
#: What other extras bring along.
_SHARED = "torch"
#: Extras for those who change this program, and the sum of others.
_NOT_ASKED = frozenset({"dev", "all"})

#: Each carries the module `onnxruntime`: the one installed last has overwritten the others.
ORT_BUILDS = (
    "onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml",
    "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-training",
)  # fmt: skip

#: What people install beside the extras, and what has downgraded them or been left behind.
_BESIDE = (
    "jaxlib", "torchvision", "torchaudio", "torchao", "timm", "optimum", "optimum-onnx",
    "optimum-intel", "keras", "flax", "onnxruntime-gpu", "zeus",
)  # fmt: skip


@dataclass(frozen=True)
class Clash:
    """Packages known not to get along, though their own metadata does not say so."""

    name: str
    packages: tuple[str, ...]
    said: str
    remedy: Callable[[list[str]], str]
    least: int = 2  # how many of them must be there


CLASHES: tuple[Clash, ...] = (
    Clash(
        "one onnxruntime",
        ORT_BUILDS,
        "each carries the module onnxruntime, and the one installed last has overwritten the rest",
        lambda found: (
            f"pip uninstall -y {' '.join(found)}; pip install {found[-1]}"
            "  # another of them goes into another environment"
        ),
    ),
    Clash(
        "amdsmi and ray",
        ("amdsmi", "ray"),
        "ray brings an amdsmi of its own, and `import ray` dies with KeyError: 'libamd_smi.so'",
        lambda _: "pip uninstall -y amdsmi  # or ray in another environment; zeus brings amdsmi",
    ),
)


def extras(world: World) -> list[Finding]:
    """Each extra: whole, absent, in part, or in versions that it was not made for."""
    asked: dict[str, list[Requirement]] = {}
    for text in world.requires_of(_OURS):
        one = parse(text)
        if one and one.name != _OURS and not one.conditional and one.extra not in _NOT_ASKED:
            asked.setdefault(one.extra, []).append(one)
    shared = {one.name for one in asked.get(_SHARED, ())}
    return [
        _extra(world, name, asked[name], frozenset() if name == _SHARED else frozenset(shared))
        for name in sorted(asked)
    ]


def _extra(world: World, extra: str, asked: list[Requirement], shared: frozenset[str]) -> Finding:
    name = f"extra {extra}" if extra else "accelbench itself"
    have = {requirement.name: world.version_of(requirement.name) for requirement in asked}
    unfit = [
        requirement
        for requirement in asked
        if (v := have[requirement.name]) and meets(v, requirement.spec) is False
    ]
    gone = [package for package, version in have.items() if version is None]
    # What accelbench itself needs is no extra: its packages are named.
    needed = (
        f"'{requirement.name}{requirement.spec}'"
        for requirement in asked
        if requirement in unfit or requirement.name in gone
    )
    install = setting_up(extra) if extra else f"pip install {' '.join(needed)}"
    details = {"packages": have}
    if unfit:
        wrong = (
            f"{requirement.name} {have[requirement.name]} where {requirement.spec} is needed"
            for requirement in unfit
        )
        return Finding(name, Health.CLASH, "; ".join(wrong), install, details)
    if not gone:
        # Most extras bring torch's along: its packages are listed once.
        brought = shared if shared <= have.keys() else frozenset()
        listed = ", ".join(f"{p} {version}" for p, version in have.items() if p not in brought)
        listed += f"; and those of extra {_SHARED}" if brought else ""
        return Finding(name, Health.OK, listed, details=details)
    if not extra:
        return Finding(name, Health.BROKEN, f"missing: {', '.join(gone)}", install, details)
    what = "not installed" if len(gone) == len(have) else f"in part; missing: {', '.join(gone)}"
    return Finding(name, Health.MISSING, what, install, details)


def metadata(world: World) -> list[Finding]:
    """What installed packages ask of each other, by their own metadata."""
    ours = [parse(text) for text in world.requires_of(_OURS)]
    names = dict.fromkeys([*(normal(one.name) for one in ours if one), *_BESIDE])
    installed = [name for name in names if world.version_of(name) is not None]
    found = [
        finding
        for package in installed
        if package != _OURS
        for text in world.requires_of(package)
        if (finding := _asked(world, package, parse(text))) is not None
    ]
    if found:
        return found
    said = f"{len(installed)} packages get what they ask of each other"
    return [Finding("packages among themselves", Health.OK, said)]


def _asked(world: World, package: str, one: Requirement | None) -> Finding | None:
    if one is None or one.extra or one.conditional:
        return None
    have = world.version_of(one.name)
    wanted = f"{one.name}{one.spec}"
    who = f"{package} {world.version_of(package)}"
    if have is None:
        said = f"{who} needs {wanted}, which is not installed"
        return Finding(package, Health.BROKEN, said, f"pip install '{wanted}'")
    if meets(have, one.spec) is False:
        said = f"{who} needs {wanted}; {one.name} {have} is installed"
        remedy = f"pip install '{wanted}'  # or another {package}: pip install -U {package}"
        return Finding(package, Health.CLASH, said, remedy)
    return None


def clashes(world: World) -> list[Finding]:
    """Packages known not to get along."""
    findings = []
    for clash in CLASHES:
        found = [name for name in clash.packages if world.version_of(name) is not None]
        if len(found) >= clash.least:
            said = f"{' and '.join(found)} are installed: {clash.said}"
            findings.append(Finding(clash.name, Health.CLASH, said, clash.remedy(found)))
    return findings or [Finding("known clashes", Health.OK, f"none of {len(CLASHES)} is here")]


def torch_build(world: World) -> list[Finding]:
    """A torch for NVIDIA without a driver, and a driver without such a torch."""
    version = world.version_of("torch")
    if version is None:
        return []
    driver = world.files.text("/proc/driver/nvidia/version") is not None
    brought = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu13")
    # Others bring NVIDIA's runtime too, jax[cuda] for one: what the build says comes first.
    for_cpu = "+cpu" in version
    for_cuda = not for_cpu and ("+cu" in version or any(map(world.version_of, brought)))
    cpu = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu"
    if for_cuda and not driver and world.system == "linux":
        said = f"torch {version} is built for CUDA, and no NVIDIA driver is loaded: it runs on the"
        said += " CPU, and takes gigabytes for nothing unless a driver comes"
        return [Finding("torch build", Health.HINT, said, f"Install a driver, or: {cpu}")]
    if driver and for_cpu:
        said = f"an NVIDIA driver is loaded, but torch {version} is built for the CPU alone"
        return [Finding("torch build", Health.HINT, said, "pip install --force-reinstall torch")]
    return [Finding("torch build", Health.OK, f"torch {version} fits what is here")]
