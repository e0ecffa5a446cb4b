"""The tree as a stranger finds it: small files, no loose ends, one version, a licence."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import accelbench

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
SOURCES = sorted(p for folder in (ROOT, *PLUGINS) for p in (folder / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MOST_LINES = 800
LOOSE_ENDS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def test_sources():
    assert len(SOURCES) > 30
    # No source file is too long.
    lengths = {
        p.relative_to(ROOT): len(p.read_text(encoding="utf-8").splitlines()) for p in SOURCES
    }
    assert not {path: n for path, n in lengths.items() if n > MOST_LINES}
    # No two test modules share a name.
    # pytest imports them by their names alone: the second of two is an error of collection.
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]
    # No loose ends are left in the sources.
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if LOOSE_ENDS.search(line)
    ]
    assert not found
    assert not [p for p in SOURCES if p.stem in {"utils", "util", "helpers", "misc", "manager"}]


def test_versions_and_licence():
    # The version is said once.
    assert accelbench.__version__ == PROJECT["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['version']}]" in changelog or "## [Unreleased]" in changelog
    # The licence is there.
    assert PROJECT["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    # Every extra is bounded from above.
    extras = PROJECT["optional-dependencies"]
    loose = [
        requirement
        for requirements in (PROJECT["dependencies"], *extras.values())
        for requirement in requirements
        if "<" not in requirement and not requirement.startswith("accelbench[")
    ]
    assert not loose
    # The constraints pin what is tested.
    pins = {name.lower().replace("_", "-"): version for name, version in pinned().items()}
    tested = ("torch", "int8", "data", "frames", "onnx", "openvino", "jax", "litert")
    tested += ("qnn", "cuda", "dev")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (plugin,) = re.findall(r"^PLUGINS_DEV := (.+)$", makefile, re.MULTILINE)
    asked = [*PROJECT["dependencies"], *project_of(ROOT / plugin)["dependencies"]]
    asked += [one for extra in tested for one in PROJECT["optional-dependencies"][extra]]
    for requirement in asked:
        name = re.split(r"[<>=!\[]", requirement)[0].lower()
        assert name in {*pins, "accelbench"}, requirement
    assert f"TORCH_VERSION := {pins['torch']}\n" in makefile
    assert not [v for v in pins.values() if "+" in v], "local version suffixes are not for others"


def project_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    return found["project"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("folder", PLUGINS, ids=lambda folder: folder.name)
def test_a_plugin_of_this_repository_has_what_a_package_needs(folder):
    about = project_of(folder)
    assert about["name"] == folder.name
    assert about["license"] == PROJECT["license"]
    assert about["version"] == PROJECT["version"]
    assert (folder / about["readme"]).is_file()
    assert all("<" in requirement for requirement in about["dependencies"])
    (asked,) = PROJECT["optional-dependencies"][folder.name.partition("-")[2]]
    assert re.split("[<>=]", asked)[0] == about["name"]


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("extra", ["onnx", "openvino"])
def test_runtimes_of_exported_graphs_bring_both_exporters(extra):
    wanted = {re.split(r"[<>=!]", one)[0] for one in PROJECT["optional-dependencies"][extra]}
    assert {"accelbench[torch]", "onnx", "onnxscript"} <= wanted


def test_the_page_on_installing_says_what_each_extra_brings():
    text = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    table = text.partition("| extra | brings |")[2].partition("\n\n")[0]
    named = {
        name
        for row in table.splitlines()
        for name in re.findall("`(\\w+)`", row.split("|")[1] if "|" in row else "")
    }
    assert named == set(PROJECT["optional-dependencies"]) - {"dev"}


@pytest.mark.parametrize("page", ["README.md", "docs/installing.md", "docs/architecture.md"])
def test_a_page_names_only_targets_that_exist(page):
    targets = set(
        re.findall(
            r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
        )
    )
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE))
    assert named <= targets


def test_pages():
    # The architecture page names every room.
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {p.parent.name for p in (ROOT / "src" / "accelbench").glob("*/__init__.py")}
    assert not {room for room in rooms if f"`{room}/`" not in text}
    # The architecture page points at files that exist.
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    assert len(rows) >= 14
    absent = [
        f"{room}/{name}"
        for room, cell in rows
        for name in re.findall(r"`([^`]+)`", cell)
        if not (ROOT / "src" / "accelbench" / room / name).exists()
    ]
    assert not absent
    # Links of the pages lead somewhere.
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        (page.name, target)
        for page in pages
        if page.name != "from-the-guides.md"  # quotes the guides, their links included
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
        if not target.startswith("https://") and not (page.parent / target).exists()
    ]
    assert not broken
