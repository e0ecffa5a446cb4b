"""Deployments: where a model is to run, and the platforms that are there. Pure."""

from __future__ import annotations

from collections.abc import Mapping

#: Where a model is to run says what can be chosen at all; of equals, and with nothing measured, the
#: first is first.
DEPLOYMENTS: Mapping[str, tuple[str, ...]] = {
    "development": ("cpu",),
    "mac": ("mps", "cpu"),
    "intel": ("openvino", "cpu"),
    "edge": ("openvino", "qnn", "cpu"),
    "mobile": ("qnn", "cpu"),
    "browser": ("webnn", "webgpu", "wasm"),
    "battery": ("qnn", "mps", "cpu"),
}
#: Pages in a browser: nobody's server or laptop runs a model there without meaning to.
BROWSERS = frozenset(DEPLOYMENTS["browser"])
