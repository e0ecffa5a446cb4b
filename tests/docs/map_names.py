"""Whether what a line of the map names in backticks is there: columns, options, files, rules."""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from guides_map import ROOT

from accelbench.store.database import Database

#: A result with a figure.
FIGURE = {
    "result_id": "x", "model": "bert-tiny", "family": "embedding", "mode": "inference",
    "hardware": "cpu", "device_name": "A processor", "runtime": "pytorch", "precision": "fp32",
    "batch_size": 1, "status": "ok", "provenance": "imported", "options": {}, "latency_p50_ms": 8.0,
    "throughput": 125.0, "started_at": "2026-01-01T00:00:00Z",
}  # fmt: skip


@cache
def options(command: str) -> frozenset[str]:
    """Every spelling that a command takes, hidden ones included."""
    import typer

    found = typer.main.get_command(import_module(f"accelbench.cli.commands.{command}").app)
    return frozenset(s for p in found.params for s in (*p.opts, *p.secondary_opts))


def has_column(name: str) -> bool:
    from accelbench.core.columns import BY_NAME

    return name in BY_NAME


def has_extra(name: str) -> bool:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return name in project["optional-dependencies"]


def has_target(name: str) -> bool:
    return bool(re.search(rf"^{re.escape(name)}:", (ROOT / "Makefile").read_text(), re.MULTILINE))


def has_parameter(name: str) -> bool:
    from dataclasses import fields

    from accelbench import BenchmarkConfig

    return name in {f.name for f in fields(BenchmarkConfig)}


def has_key(name: str) -> bool:
    from accelbench.exchange.guide_csv import COLUMNS

    return name in COLUMNS


def has_entry(name: str) -> bool:
    from accelbench.models.selection import KEYS

    return name in KEYS


def keys_in(whole: object) -> frozenset[str]:
    """Every key in nested objects."""
    if not isinstance(whole, Mapping):
        return frozenset()
    return frozenset(whole).union(*(keys_in(value) for value in whole.values()))


def has_method(name: str) -> bool:
    from accelbench import EnhancedHardwareBenchmarkRunner, HardwareSelector

    return hasattr(HardwareSelector, name) or hasattr(EnhancedHardwareBenchmarkRunner, name)


@cache
def answered() -> frozenset[str]:
    """Every key of an answer that rests on a figure."""
    from accelbench import HardwareSelector

    with TemporaryDirectory() as folder:
        database = Database(Path(folder) / "some.duckdb")
        database.bring_in("r", [], [FIGURE])
        answer = HardwareSelector(database.path).select_hardware("embedding", "bert-tiny")
    return keys_in(answer)


@cache
def mapped() -> frozenset[str]:
    from accelbench import HardwareSelector

    return keys_in(HardwareSelector("nothing.duckdb").create_hardware_selection_map())


def has_setting(name: str) -> bool:
    from accelbench.recommend.config import DEFAULTS

    return name in keys_in(DEFAULTS)


def has_task(name: str) -> bool:
    from accelbench.recommend.query import TASKS

    return name in TASKS


def has_rule(name: str) -> bool:
    from accelbench.recommend.platform_rules import RULES

    return any(rule.hardware == name for rule in RULES)


def has_logger(name: str) -> bool:
    import_module("accelbench.recommend.selector")
    return name in logging.root.manager.loggerDict


CHECKS: Mapping[str, Callable[[str], bool]] = {
    "asks": lambda name: name in options("recommend"),
    "method": has_method,
    "answer": lambda name: name in answered(),
    "mapped": lambda name: name in mapped(),
    "setting": has_setting,
    "task": has_task,
    "rule": has_rule,
    "logger": has_logger,
    "parameter": has_parameter,
    "key": has_key,
    "entry": has_entry,
    "column": has_column,
    "option": lambda name: name in options("run"),
    "extra": has_extra,
    "make": has_target,
    "file": lambda name: (ROOT / name).exists(),
    "table": lambda name: True,  # counted where something was measured
    "writes": lambda name: True,  # looked for after the line's command below
    "prints": lambda name: True,
}


def checked(reference: str) -> bool | None:
    """Whether what a reference names is there; None where it is prose."""
    if reference.startswith("accelbench "):
        return True  # run below
    if match := re.fullmatch(r"(accelbench[\w.]*):(\w+)", reference):
        return hasattr(import_module(match[1]), match[2])
    kind, _, name = reference.partition(" ")
    return CHECKS[kind](name) if kind in CHECKS and name else None
