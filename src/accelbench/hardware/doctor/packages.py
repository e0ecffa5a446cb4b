"""Packages: requirements of our extras and of each other, and known clashes.

It handles the parts of PEP 440 and 508 that this project's extras use. Other spellings are not
judged, so that no clash is invented.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from accelbench.core.errors import setup_command
from accelbench.hardware.doctor.world import Finding, Health, World

_NAME = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?$")
#: The marker that an extra is, alone or behind another one.
_EXTRA = re.compile(r"^(?:\(?(?P<rest>.*?)\)?\s+and\s+)?extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]$")
_CLAUSE = re.compile(r"^(===|==|!=|>=|<=|~=|>|<)\s*([0-9][\w.+!-]*?)(\.\*)?$")
_RELEASE = re.compile(r"^v?(\d+(?:\.\d+)*)((?:[._-]?(?:a|b|c|rc|alpha|beta|dev|pre)[\d.]*)?)")


@dataclass(frozen=True)
class Requirement:
    """Required package, with its accepted versions and its condition."""

    name: str
    spec: str
    extra: str = ""  # the extra that asks for it
    marker: str = ""  # a further condition, which is not judged

    @property
    def conditional(self) -> bool:
        return bool(self.marker)


def parse(text: str) -> Requirement | None:
    """Parse a line of Requires-Dist; return None if it cannot be read."""
    match = _NAME.match(text)
    if match is None:
        return None
    name, spec, marker = match.group(1), match.group(2).strip(), (match.group(3) or "").strip()
    asked = _EXTRA.match(marker)
    extra, marker = (asked["extra"], asked["rest"] or "") if asked else ("", marker)
    return Requirement(normal(name), spec, extra, marker)


def normal(name: str) -> str:
    """Return a package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def meets(version: str, spec: str) -> bool | None:
    """Return whether a version is accepted, or None if that cannot be judged."""
    have = _key(version)
    if have is None:
        return None
    answers = [_meets(have, clause.strip()) for clause in spec.split(",") if clause.strip()]
    if False in answers:
        return False
    return None if None in answers else True


Key = tuple[tuple[int, ...], bool]


def _key(version: str) -> Key | None:
    """Return the release and whether it is final (2.0rc1 comes before 2.0), without local parts."""
    match = _RELEASE.match(version.strip())
    if match is None or "!" in version:
        return None
    parts = tuple(int(part) for part in match.group(1).split("."))
    while len(parts) > 1 and parts[-1] == 0:
        parts = parts[:-1]
    return parts, not match.group(2)


def _meets(have: Key, clause: str) -> bool | None:
    match = _CLAUSE.match(clause)
    want = _key(match.group(2)) if match else None
    if match is None or want is None:
        return None
    sign = match.group(1)
    if sign == "~=" or (match.group(3) and sign in ("==", "!=")):
        return _family(have, match.group(2), sign)
    if match.group(3) or sign == "===":
        return None
    return {
        "==": have == want,
        "!=": have != want,
        ">=": have >= want,
        "<=": have <= want,
        ">": have > want,
        "<": have < want and have[0] != want[0],  # 2.0rc1 is not below 2.0 for an index
    }[sign]


def _family(have: Key, text: str, sign: str) -> bool:
    """Return whether ==1.2.* or ~=1.2.3 accepts a version."""
    stated = [int(part) for part in re.findall(r"\d+", text)]
    head = tuple(stated[:-1] if sign == "~=" else stated)
    padded = (*have[0], *([0] * len(head)))[: len(head)]
    same = padded == head
    if sign == "~=":
        want = _key(text)
        return same and want is not None and have >= want
    return same if sign == "==" else not same


_OURS = "accelbench"
#: Extra that others include.
_SHARED = "torch"
#: Extras for developers, and the sum of others, which are not checked.
_UNCHECKED = frozenset({"dev", "all"})

#: Each contains the module `onnxruntime`: the one installed last has overwritten the others.
ORT_BUILDS = (
    "onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-directml",
    "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-training",
)  # fmt: skip

#: Packages that people install in addition to the extras, which have caused wrong versions.
_RELATED = (
    "jaxlib", "torchvision", "torchaudio", "torchao", "timm", "optimum", "optimum-onnx",
    "optimum-intel", "keras", "flax", "onnxruntime-gpu", "zeus",
)  # fmt: skip


@dataclass(frozen=True)
class Clash:
    """Packages that are known to clash, although their metadata allows both."""

    name: str
    packages: tuple[str, ...]
    said: str
    remedy: Callable[[list[str]], str]
    least: int = 2  # fewest of them that clash


CLASHES: tuple[Clash, ...] = (
    Clash(
        "one onnxruntime",
        ORT_BUILDS,
        "each carries the module onnxruntime, and the one installed last has overwritten the rest",
        lambda names: (
            f"pip uninstall -y {' '.join(names)}; pip install {names[-1]}"
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
    """Check whether each extra is complete, absent, incomplete or has other versions."""
    by_extra: dict[str, list[Requirement]] = {}
    for text in world.requires_of(_OURS):
        need = parse(text)
        if need and need.name != _OURS and not need.conditional and need.extra not in _UNCHECKED:
            by_extra.setdefault(need.extra, []).append(need)
    shared = {requirement.name for requirement in by_extra.get(_SHARED, ())}
    return [
        _extra(world, name, by_extra[name], frozenset() if name == _SHARED else frozenset(shared))
        for name in sorted(by_extra)
    ]


def _extra(world: World, extra: str, needs: list[Requirement], shared: frozenset[str]) -> Finding:
    name = f"extra {extra}" if extra else "accelbench itself"
    have = {requirement.name: world.version_of(requirement.name) for requirement in needs}
    unfit = [
        requirement
        for requirement in needs
        if (v := have[requirement.name]) and meets(v, requirement.spec) is False
    ]
    gone = [package for package, version in have.items() if version is None]
    # The requirements of accelbench itself are not an extra, so its packages are named.
    needed = (
        f"'{requirement.name}{requirement.spec}'"
        for requirement in needs
        if requirement in unfit or requirement.name in gone
    )
    install = setup_command(extra) if extra else f"pip install {' '.join(needed)}"
    details = {"packages": have}
    if unfit:
        wrong = (
            f"{requirement.name} {have[requirement.name]} where {requirement.spec} is needed"
            for requirement in unfit
        )
        return Finding(name, Health.CLASH, "; ".join(wrong), install, details)
    if not gone:
        # Most extras include torch's: its packages are listed once.
        brought = shared if shared <= have.keys() else frozenset()
        listed = ", ".join(f"{p} {version}" for p, version in have.items() if p not in brought)
        listed += f"; and those of extra {_SHARED}" if brought else ""
        return Finding(name, Health.OK, listed, details=details)
    if not extra:
        return Finding(name, Health.BROKEN, f"missing: {', '.join(gone)}", install, details)
    what = "not installed" if len(gone) == len(have) else f"in part; missing: {', '.join(gone)}"
    return Finding(name, Health.MISSING, what, install, details)


def metadata(world: World) -> list[Finding]:
    """Check the requirements of installed packages for each other."""
    ours = [parse(text) for text in world.requires_of(_OURS)]
    names = dict.fromkeys([*(normal(need.name) for need in ours if need), *_RELATED])
    installed = [name for name in names if world.version_of(name) is not None]
    findings = [
        finding
        for package in installed
        if package != _OURS
        for text in world.requires_of(package)
        if (finding := _check_requirement(world, package, parse(text))) is not None
    ]
    if findings:
        return findings
    note = f"{len(installed)} packages get what they ask of each other"
    return [Finding("packages among themselves", Health.OK, note)]


def _check_requirement(world: World, package: str, need: Requirement | None) -> Finding | None:
    if need is None or need.extra or need.conditional:
        return None
    have = world.version_of(need.name)
    wanted = f"{need.name}{need.spec}"
    who = f"{package} {world.version_of(package)}"
    if have is None:
        text = f"{who} needs {wanted}, which is not installed"
        return Finding(package, Health.BROKEN, text, f"pip install '{wanted}'")
    if meets(have, need.spec) is False:
        text = f"{who} needs {wanted}; {need.name} {have} is installed"
        remedy = f"pip install '{wanted}'  # or another {package}: pip install -U {package}"
        return Finding(package, Health.CLASH, text, remedy)
    return None


def clashes(world: World) -> list[Finding]:
    """Check for packages known to clash."""
    findings = []
    for clash in CLASHES:
        names = [name for name in clash.packages if world.version_of(name) is not None]
        if len(names) >= clash.least:
            text = f"{' and '.join(names)} are installed: {clash.said}"
            findings.append(Finding(clash.name, Health.CLASH, text, clash.remedy(names)))
    return findings or [Finding("known clashes", Health.OK, f"none of {len(CLASHES)} is here")]


def torch_build(world: World) -> list[Finding]:
    """Check for a torch for NVIDIA without a driver, and for a driver without such a torch."""
    version = world.version_of("torch")
    if version is None:
        return []
    driver = world.files.text("/proc/driver/nvidia/version") is not None
    brought = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime-cu13")
    # Other packages, such as jax[cuda], include NVIDIA's runtime too: the build's own version
    # decides.
    for_cpu = "+cpu" in version
    for_cuda = not for_cpu and ("+cu" in version or any(map(world.version_of, brought)))
    cpu = "pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cpu"
    if for_cuda and not driver and world.system == "linux":
        text = f"torch {version} is built for CUDA, and no NVIDIA driver is loaded: it runs on the"
        text += " CPU, and takes gigabytes for nothing unless a driver comes"
        return [Finding("torch build", Health.HINT, text, f"Install a driver, or: {cpu}")]
    if driver and for_cpu:
        text = f"an NVIDIA driver is loaded, but torch {version} is built for the CPU alone"
        return [Finding("torch build", Health.HINT, text, "pip install --force-reinstall torch")]
    return [Finding("torch build", Health.OK, f"torch {version} fits what is here")]
