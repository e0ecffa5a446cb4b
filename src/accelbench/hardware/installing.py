"""Installation of packages into accelbench's environment, and the extras of its metadata.

Metadata is the same for an editable tree, a folder, a wheel, a git address or an index.
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from accelbench.core import plugins, processes
from accelbench.core.devices import cards
from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.safe_text import in_quotes
from accelbench.hardware.doctor.packages import CLASHES, ORT_BUILDS, Requirement, meets, parse
from accelbench.store.files import create_temporary_folder

PACKAGE, _PLUGIN = "accelbench", "accelbench-"
#: Extras for developers, which are not offered.
_NOT_OFFERED = frozenset({"dev"})

VersionOf = Callable[[str], str | None]


@dataclass(frozen=True)
class ExtraRequirement:
    """Requirement of an extra, as text for an installer and parsed."""

    text: str
    about: Requirement

    def is_met(self, version_of: VersionOf) -> bool:
        """Return whether an accepted version is installed; one that cannot be judged counts."""
        have = version_of(self.about.name)
        return have is not None and meets(have, self.about.spec) is not False


@dataclass(frozen=True)
class Extras:
    """Requirements by extra, and the bounds of all of them."""

    wanted: Mapping[str, tuple[ExtraRequirement, ...]]
    bounds: Mapping[str, str]  # by package

    @property
    def engine_packages(self) -> dict[str, str]:
        """Packages of accelbench's own that install an engine, by extra."""
        return {
            name: need.about.name
            for name, needs in self.wanted.items()
            for need in needs
            if need.about.name == f"{_PLUGIN}{name}"
        }

    @property
    def offered(self) -> tuple[str, ...]:
        return tuple(name for name in self.wanted if name not in _NOT_OFFERED)

    def other_bounds(self, taken: Iterable[ExtraRequirement]) -> tuple[str, ...]:
        """Return bounds of other packages; installers refuse a package with two bounds."""
        own = {need.about.name for need in taken}
        return tuple(bound for name, bound in self.bounds.items() if name not in own)

    def resolve_extra(self, word: str) -> str:
        """Return the extra of a word or of its engine; raise UsageError without one."""
        low = word.lower().replace("_", "-")
        engines = _extras_of_engines()
        name = low if low in self.wanted else engines.get(low, low)
        if name in self.wanted:
            return name
        near = difflib.get_close_matches(low, [*self.offered, *engines], n=3, cutoff=0.6)
        close = list(dict.fromkeys(engines.get(guess, guess) for guess in near))
        raise UsageError(
            f"There is no extra named {in_quotes(word)}.",
            f"Did you mean {' or '.join(close)}?"
            if close
            else f"Known: {', '.join(self.offered)}.",
        )


def _extras_of_engines() -> dict[str, str]:
    return {
        word: card.extra
        for name, card in cards().items()
        for word in (name, *card.aliases)
        if card.extra and word != card.extra
    }


def extras_of(provided: Iterable[str], requires: Iterable[str]) -> Extras:
    """Return the extras of metadata's lines of Provides-Extra and Requires-Dist."""
    wanted: dict[str, list[ExtraRequirement]] = {name: [] for name in provided}
    bounds: dict[str, str] = {}
    for line in requires:
        about = parse(line)
        if about is None:
            continue
        if about.spec and not about.conditional:
            bounds[about.name] = f"{about.name}{about.spec}"
        if about.extra:
            text = line.partition(";")[0].strip() + (about.marker and f"; {about.marker}")
            wanted.setdefault(about.extra, []).append(ExtraRequirement(text, about))
    return Extras({name: tuple(ones) for name, ones in wanted.items()}, bounds)


def installed_extras() -> Extras:
    """Return the extras of this installation; raise SurroundingsError if it is not installed."""
    try:
        provided = metadata(PACKAGE).get_all("Provides-Extra") or []
        extras = extras_of(provided, requires(PACKAGE) or [])
    except PackageNotFoundError:
        raise SurroundingsError(
            "accelbench is not installed in this environment, only found on its path.",
            "Install it, for example from its folder: pip install -e .",
        ) from None
    wanted = {
        name: (*needs, *(more for need in needs for more in _plugin_requirements(need, extras)))
        for name, needs in extras.wanted.items()
    }
    return Extras(wanted, extras.bounds)


def _plugin_requirements(need: ExtraRequirement, extras: Extras) -> Iterator[ExtraRequirement]:
    """Yield requirements of an installed package of an engine, which may be missing."""
    if not need.about.name.startswith(_PLUGIN):
        return
    try:
        lines = requires(need.about.name) or ()
    except PackageNotFoundError:
        return
    for line in lines:
        if line.startswith(PACKAGE):
            for name in re.findall(r"[\w-]+", line.partition("[")[2].partition("]")[0]):
                yield from extras.wanted[name]
        elif (about := parse(line)) is not None:
            yield ExtraRequirement(line, about)


def as_arguments(needs: Iterable[ExtraRequirement]) -> list[str]:
    """Return an installer's arguments for requirements.

    A package of accelbench's own comes from the folder that accelbench was installed from, if that
    still exists, and in the same way: editable or as a copy.
    """
    folder, how = _source()
    words: list[str] = []
    for need in needs:
        if need.about.name.startswith(_PLUGIN) and folder is not None:
            path = folder / "plugins" / need.about.name
            words += [*how, str(path)] if path.is_dir() else [need.text]
        else:
            words.append(need.text)
    return words


def _source() -> tuple[Path | None, tuple[str, ...]]:
    """Return the folder that accelbench was installed from, and the option of the way."""
    about = json.loads(distribution(PACKAGE).read_text("direct_url.json") or "{}")
    if "dir_info" not in about:
        return None, ()
    folder = Path(url2pathname(urlsplit(about["url"]).path))
    return folder, ("--editable",) if about["dir_info"].get("editable") else ()


def requirements_of(extras: Extras, names: Iterable[str]) -> tuple[ExtraRequirement, ...]:
    """Return the requirements of extras, each once."""
    by_text = {need.text: need for name in names for need in extras.wanted[name]}
    return tuple(by_text.values())


def find_missing(
    wanted: Iterable[ExtraRequirement], version_of: VersionOf
) -> tuple[tuple[ExtraRequirement, ...], tuple[str, ...]]:
    """Return the requirements to install, and notes about kept packages.

    A build of ONNX Runtime for other hardware replaces the plain one, which would overwrite it.
    """
    needed, notes = [], []
    for need in wanted:
        other = _find_replacement(need.about.name, version_of)
        if other:
            notes.append(f"{other} is here, in the place of {need.about.name}.")
        elif not need.is_met(version_of):
            needed.append(need)
    return tuple(needed), tuple(notes)


def _find_replacement(name: str, version_of: VersionOf) -> str:
    if name not in ORT_BUILDS or version_of(name) is not None:
        return ""
    return next((other for other in ORT_BUILDS if version_of(other) is not None), "")


def refuse_clashes(needed: Iterable[ExtraRequirement], version_of: VersionOf) -> None:
    """Raise SurroundingsError if packages that are known to clash would be installed together."""
    new = {need.about.name for need in needed}
    for clash in CLASHES:
        coming = [name for name in clash.packages if name in new]
        present = [name for name in clash.packages if version_of(name) is not None]
        if coming and len({*coming, *present}) >= clash.least:
            both = " and ".join(dict.fromkeys([*coming, *present]))
            raise SurroundingsError(
                f"{both} do not get along in one environment: {clash.said}.",
                "Install them in two environments.",
            )


#: Start of pip's lines about unchanged packages.
_AS_BEFORE = "Requirement already satisfied"
_OWN = "Make an environment of its own, and install accelbench there: python3 -m venv .venv"


@dataclass(frozen=True)
class Environment:
    """Python environment, with the facts that decide about the installer."""

    python: str
    folder: Path
    packages: Path  # the folder of its packages
    writable: bool
    managed: bool  # by the system's own packages: PEP 668
    pip: bool
    by_uv: bool  # uv made it, or installed accelbench into it
    uv: str | None  # the program

    def refuse(self) -> None:
        if self.managed:
            raise SurroundingsError(
                f"The Python at {self.folder} is managed by the system, not by pip.", _OWN
            )
        if not self.writable:
            raise SurroundingsError(f"{self.packages} cannot be written.", _OWN)
        if not self.installer:
            missing = "uv made this environment, and neither uv nor pip is found"
            raise SurroundingsError(
                f"{missing if self.by_uv else 'This environment has no pip'}: {self.folder}.",
                f"Bring pip: {self.python} -m ensurepip",
            )

    @property
    def installer(self) -> str:
        """Uv for an environment that uv made, else pip; the other one if that is missing."""
        have = [name for name, tool in (("pip", self.pip), ("uv", self.uv)) if tool]
        if self.by_uv and "uv" in have:
            return "uv"
        return have[0] if have else ""

    def command(
        self, requirements: Sequence[str], bounds: Path, index: Sequence[str], reinstall: bool
    ) -> list[str]:
        more = [word for url in index for word in ("--extra-index-url", url)]
        if self.installer == "uv":
            # uv uses the first index with a package's name; pip searches all.
            strategy = ["--index-strategy", "unsafe-best-match"] if index else []
            again = ["--reinstall"] if reinstall else []
            how = [str(self.uv), "pip", "install", "--python", self.python, *strategy, *again]
        else:
            again = ["--force-reinstall"] if reinstall else []
            quiet = ["--disable-pip-version-check", "--no-input"]
            how = [self.python, "-m", "pip", "install", *quiet, *again]
        return [*how, *more, "-c", str(bounds), *requirements]


def current_environment() -> Environment:
    """Return the environment of this program."""
    packages = Path(sysconfig.get_path("purelib"))
    own = sys.prefix != sys.base_prefix
    managed = not own and (Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").is_file()
    return Environment(
        python=sys.executable,
        folder=Path(sys.prefix),
        packages=packages,
        writable=os.access(packages, os.W_OK),
        managed=managed,
        pip=find_spec("pip") is not None,
        by_uv=_is_uv_environment(),
        uv=shutil.which("uv"),
    )


def _is_uv_environment() -> bool:
    try:
        about = (Path(sys.prefix) / "pyvenv.cfg").read_text(encoding="utf-8")
        if any(line.partition("=")[0].strip() == "uv" for line in about.splitlines()):
            return True
    except OSError:
        pass
    try:
        return (distribution(PACKAGE).read_text("INSTALLER") or "").strip() == "uv"
    except PackageNotFoundError:
        return False


def version_of(package: str) -> str | None:
    """Return the installed version, read again each time because an installation changes it."""
    importlib.invalidate_caches()
    return plugins.version_of(package)


def install(
    environment: Environment,
    requirements: Sequence[str],
    bounds: Sequence[str],
    on_line: Callable[[str], None],
    *,
    index: Sequence[str] = (),
    reinstall: bool = False,
) -> None:
    """Install packages, except accelbench itself; `on_line` receives the installer's lines.

    `bounds` are versions of other packages that accelbench accepts, `index` further indexes.
    """
    environment.refuse()
    last = ""

    def heard(line: str) -> None:
        nonlocal last
        last = line.strip() or last
        if not line.startswith(_AS_BEFORE):
            on_line(line)

    with create_temporary_folder() as folder:
        file = folder / "bounds.txt"
        file.write_text("".join(f"{line}\n" for line in bounds), encoding="utf-8")
        command = environment.command(requirements, file, index, reinstall)
        try:
            code = processes.run_with_lines(command, heard)
        except (OSError, subprocess.SubprocessError) as error:
            raise SurroundingsError(
                f"{environment.installer} cannot be started: {error}.", "Repair it, and try again."
            ) from error
    if code:
        raise SurroundingsError(
            f"{environment.installer} ended with {code}: {last.rstrip('.')}.",
            "Its lines above say why.",
        )
