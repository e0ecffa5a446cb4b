"""How packages come into accelbench's own environment: by pip or uv, whichever made it."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from importlib.util import find_spec
from pathlib import Path

from accelbench.core import processes
from accelbench.core.errors import SurroundingsError
from accelbench.hardware.extras import PACKAGE
from accelbench.store.scratch import temporary_folder

#: How pip's lines begin about what stays, dozens of them.
_AS_BEFORE = "Requirement already satisfied"
_OWN = "Make an environment of its own, and install accelbench there: python3 -m venv .venv"


@dataclass(frozen=True)
class Environment:
    """A Python environment, as far as an installer is chosen by it."""

    python: str
    folder: Path
    packages: Path  # where it keeps them
    writable: bool
    managed: bool  # by the system's own packages: PEP 668
    pip: bool
    by_uv: bool  # uv made it, or installed accelbench into it
    uv: str | None  # the program

    def refuse(self) -> None:
        """Say why nothing can be installed here.

        Raises:
            SurroundingsError: nothing can.
        """
        if self.managed:
            raise SurroundingsError(
                f"The Python at {self.folder} is managed by the system, not by pip.",
                _OWN,
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
        """uv for an environment of uv's, else pip; the other one where that is missing."""
        have = [name for name, tool in (("pip", self.pip), ("uv", self.uv)) if tool]
        if self.by_uv and "uv" in have:
            return "uv"
        return have[0] if have else ""

    def command(
        self, requirements: Sequence[str], bounds: Path, index: Sequence[str], reinstall: bool
    ) -> list[str]:
        """What installs requirements within bounds; the user's own configuration holds."""
        more = [word for url in index for word in ("--extra-index-url", url)]
        if self.installer == "uv":
            # uv takes a package from the first index that knows its name; pip looks at all.
            strategy = ["--index-strategy", "unsafe-best-match"] if index else []
            again = ["--reinstall"] if reinstall else []
            how = [str(self.uv), "pip", "install", "--python", self.python, *strategy, *again]
        else:
            again = ["--force-reinstall"] if reinstall else []
            quiet = ["--disable-pip-version-check", "--no-input"]
            how = [self.python, "-m", "pip", "install", *quiet, *again]
        return [*how, *more, "-c", str(bounds), *requirements]


def here() -> Environment:
    """The environment that this program runs in."""
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
        by_uv=_made_by_uv(),
        uv=shutil.which("uv"),
    )


def _made_by_uv() -> bool:
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
    """The installed version, asked anew each time: an installation changes it."""
    importlib.invalidate_caches()
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def install(
    environment: Environment,
    requirements: Sequence[str],
    bounds: Sequence[str],
    tell: Callable[[str], None],
    *,
    index: Sequence[str] = (),
    reinstall: bool = False,
) -> None:
    """Bring packages into an environment, with nothing of accelbench itself.

    Args:
        environment: where to.
        requirements: what is asked for, as an installer takes it.
        bounds: the versions that accelbench was made for, of whatever is brought along.
        tell: hears each line of the installer at once.
        index: addresses of package indexes beside the user's own.
        reinstall: Also what is there already.

    Raises:
        SurroundingsError: nothing can be installed here, or the installer could not.
    """
    environment.refuse()
    last = ""

    def heard(line: str) -> None:
        nonlocal last
        last = line.strip() or last
        if not line.startswith(_AS_BEFORE):
            tell(line)

    with temporary_folder() as folder:
        file = folder / "bounds.txt"
        file.write_text("".join(f"{line}\n" for line in bounds), encoding="utf-8")
        command = environment.command(requirements, file, index, reinstall)
        try:
            code = processes.run_heard(command, heard)
        except (OSError, subprocess.SubprocessError) as error:
            raise SurroundingsError(
                f"{environment.installer} cannot be started: {error}.", "Repair it, and try again."
            ) from error
    if code:
        raise SurroundingsError(
            f"{environment.installer} ended with {code}: {last.rstrip('.')}.",
            "Its lines above say why.",
        )
