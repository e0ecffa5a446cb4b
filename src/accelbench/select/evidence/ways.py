"""How a figure was run, in words: by which engine and version of it, compiled, by how many threads.

An answer in full says all that is known; a table says what tells apart two ways that were measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from accelbench.core.cards import cards
from accelbench.core.protocols import RuntimeInfo
from accelbench.core.rows import Row
from accelbench.select.evidence.cells import EvidenceCell
from accelbench.store.duck import quoted

#: What of a way no cell of a table says by itself.
SETTINGS = ("compiled", "threads", "options", "machine", "device_fingerprint")
#: Which of several machines' figures stands for a device.
BY_FASTEST = ", each device by its fastest"


def engine_said(row: Row) -> str:
    """An engine with its version, where that is known."""
    engine, version = str(row.get("runtime") or ""), str(row.get("engine_version") or "")
    if not version or version.lower().startswith(engine.lower()):
        return version or engine
    return f"{engine} ({version})"


def way_said(row: Row) -> Iterator[str]:
    """A way in full, part by part."""
    yield from (str(row[name]) for name in ("device_name",) if row.get(name))
    yield from filter(None, (engine_said(row), str(row.get("precision") or "")))
    if row.get("compiled"):
        yield "compiled"
    if threads := threads_said(row):
        yield threads


def threads_said(row: Row) -> str:
    """Of how many threads a figure is; "" where nobody says."""
    count = row.get("threads")
    return "" if not count else f"{count} thread{'' if count == 1 else 's'}"


def told_apart_by(cell: EvidenceCell, among: Iterable[EvidenceCell]) -> tuple[str, ...]:
    """The settings in which others of its place, engine, precision and batch differ from it."""

    def named(evidence: EvidenceCell) -> tuple[object, ...]:
        row = evidence.row
        return (
            evidence.hardware,
            evidence.device,
            row.get("runtime"),
            evidence.precision,
            row.get("batch_size"),
        )

    return differing([other.row for other in among if named(other) == named(cell)])


def differing(rows: Sequence[Row]) -> tuple[str, ...]:
    """The settings that are not the same in all."""
    return tuple(name for name in SETTINGS if len({str(row.get(name)) for row in rows}) > 1)


def of_machines(machines: Mapping[str, Sequence[str]], how: str = "") -> str:
    """That figures are of several machines, and which is of which.

    Args:
        machines: each with the hardware whose figures are of it.
        how: which of its figures stands for a device.
    """
    parts = "; ".join(
        f"{', '.join(names) or 'nothing that is faster'} on {machine}"
        for machine, names in machines.items()
    )
    return (
        f"These are results of {len(machines)} machines{how}: {parts}. --machine answers by one of"
        " them."
    )


def engine_sql(runtime: str, conditions: str) -> str:
    """The engine's version in SQL, as conditions have it: by the source, or as a package.

    Args:
        runtime: SQL for the engine's name.
        conditions: SQL for the conditions' text.
    """
    packages = {name: card.engine_packages[0] for name, card in cards().items() if _renamed(card)}
    named = " ".join(
        f"WHEN {quoted(engine)} THEN {quoted(name)}" for engine, name in packages.items()
    )
    called = f"CASE {runtime} {named} ELSE {runtime} END" if named else runtime
    package = f"""replace({called}, '"', '')"""
    paths = (f"""'$.{before}"' || {package} || '"'""" for before in ("packages.", ""))
    versions = ", ".join(f"json_extract_string({conditions}, {path})" for path in paths)
    return (
        f"coalesce(json_extract_string({conditions}, '$.engine'),"
        f" {package} || ' ' || coalesce({versions}))"
    )


def _renamed(card: RuntimeInfo) -> bool:
    """Whether an engine is called otherwise as a package."""
    return bool(card.engine_packages) and card.engine_packages[0] != card.name
