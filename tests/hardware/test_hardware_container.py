"""What says that this is a container."""

import pytest

from accelbench.hardware.cpu import detect_container


class Some:
    """A few files, and nothing else."""

    def __init__(self, files):
        self._files = files

    def text(self, path):
        return self._files.get(path)

    def names(self, path):
        return []


@pytest.mark.parametrize(
    ("files", "variables", "said"),
    [
        ({"/.dockerenv": ""}, {}, "/.dockerenv is there"),
        ({"/run/.containerenv": ""}, {}, "/run/.containerenv is there"),
        ({}, {"container": "podman"}, "the variable container is set"),
        (
            {},
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            "the variable KUBERNETES_SERVICE_HOST is set",
        ),
        (
            {"/proc/1/environ": "PATH=/bin\0container=lxc\0"},
            {},
            "the first process was started with the variable container",
        ),
        (
            {"/proc/1/cgroup": "0::/kubepods/burstable/pod1/x"},
            {},
            "the first process is in a cgroup of kubepods",
        ),
        ({"/proc/1/cgroup": "0::/init.scope", "/proc/1/environ": "A=container=1"}, {}, ""),
        ({}, {"container": ""}, ""),
    ],
)
def test_what_engines_of_containers_leave(files, variables, said):
    assert detect_container(Some(files), variables) == said
