"""Whether this process is in a container, by what engines of containers leave there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from accelbench.hardware.common import Files, SystemFiles

#: What Docker and Podman put into every container's root.
_LEFT = ("/.dockerenv", "/run/.containerenv")
#: Set by Podman, LXC, systemd-nspawn and build engines, and by Kubernetes, in what they start.
_VARIABLES = ("container", "KUBERNETES_SERVICE_HOST")
#: In the path of a container's cgroup where the host's hierarchy is seen.
_CGROUPS = ("docker", "kubepods", "containerd", "libpod", "/lxc", "crio-", "buildkit")


def container(files: Files | None = None, variables: Mapping[str, str] | None = None) -> str:
    """What says that this is a container; "" where nothing does."""
    files = files or SystemFiles()
    here = os.environ if variables is None else variables
    for path in _LEFT:
        if files.text(path) is not None:
            return f"{path} is there"
    for name in _VARIABLES:
        if here.get(name):
            return f"the variable {name} is set"
    # The first process has it where a shell's variables were cleared; root alone may look.
    first = (files.text("/proc/1/environ") or "").split("\0")
    if any(variable.startswith("container=") for variable in first):
        return "the first process was started with the variable container"
    groups = files.text("/proc/1/cgroup") or ""
    engine = next((word for word in _CGROUPS if word in groups), "")
    return f"the first process is in a cgroup of {engine.strip('/-')}" if engine else ""
