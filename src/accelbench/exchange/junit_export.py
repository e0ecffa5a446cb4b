"""JUnit XML: a test case a question, so that a pipeline shows what failed and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from accelbench.core.absent import UNKNOWN_MODEL
from accelbench.core.launch_failures import why_unusable
from accelbench.core.visible import visible
from accelbench.core.vocabulary import Quality, Status
from accelbench.core.worth import answered, usable_launches
from accelbench.exchange.left_out import Entries, entries
from accelbench.exchange.series import MEASURES, newest, value

_LEFT_OUT = (Status.UNSUPPORTED, Status.SKIPPED)


def write_junit(path: Path, rows: Sequence[Mapping[str, Any]]) -> Entries:
    """Write one case a question; how many, and what is in none."""
    suite = ET.Element("testsuite", name="accelbench")
    counts = {"tests": 0, "failures": 0, "skipped": 0}
    for name, launches in newest(rows):
        worst = next((row for row in launches if row.get("status") != Status.OK), launches[0])
        case = ET.SubElement(suite, "testcase", name=visible(name), classname=_model(worst))
        counts["tests"] += 1
        latency = value(launches, MEASURES[0])
        if latency is not None:  # a throughput, or a failure, took no time that is known
            case.set("time", f"{latency.median / 1e3:.6f}")
        _properties(case, launches)
        status = worst.get("status")
        if status != Status.OK:
            kind = "skipped" if status in _LEFT_OUT else "failure"
            counts["skipped" if kind == "skipped" else "failures"] += 1
            element = ET.SubElement(case, kind, message=visible(str(worst.get("message") or "")))
            if kind == "failure":
                element.set("type", visible(str(worst.get("reason") or status)))
            element.text = visible(str(worst.get("advice") or ""))
        elif useless := _useless(launches):
            counts["skipped"] += 1
            ET.SubElement(case, "skipped", message=useless)
    for word, count in counts.items():
        suite.set(word, str(count))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    return entries(counts["tests"], (), rows)


def _useless(launches: Sequence[Mapping[str, Any]]) -> str:
    """Why nothing is judged by times of which all launches ended well; "" where it may be."""
    ended = [row for row in launches if answered(row)]
    if not ended or usable_launches(ended):
        return ""
    return f"{Quality.UNUSABLE.value}: {why_unusable(ended)}"


def _properties(case: ET.Element, launches: Sequence[Mapping[str, Any]]) -> None:
    known = [(quantity, value(launches, quantity)) for quantity in MEASURES]
    if not any(result for _, result in known):
        return
    listed = ET.SubElement(case, "properties")
    for measure, figure in known:
        if figure is not None:
            name = f"{measure.name} ({measure.unit})"
            ET.SubElement(listed, "property", name=name, value=f"{figure.median:.6g}")


def _model(row: Mapping[str, Any]) -> str:
    return visible(str(row.get("model") or UNKNOWN_MODEL))
