"""What keeps somebody out of a page, and whom a page asks for anything."""

from __future__ import annotations

from chrome import Chrome

from accelbench.engines.browser.assets import Package

#: What finds barriers. Its licence is not ours: it is fetched for the tests and kept nowhere else.
AXE = Package(
    "axe-core",
    "4.14.1",
    "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    {"package/axe.min.js": "axe.min.js"},
    "MPL-2.0",
)


def hosts(tab: Chrome) -> set[str]:
    """Whom the page asked for anything; a browser draws its own signs from data."""
    return {"/".join(one.split("/")[:3]) for one in tab.asked() if not one.startswith("data:")}


def barriers(tab: Chrome, axe: str) -> list[str]:
    tab.js(f"{axe}; 1")
    found: list[str] = tab.js(
        "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations"
        ".map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`))"
    )
    return found
