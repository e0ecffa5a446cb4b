"""Whose figures may be compared with others: the one place that says it.

What compares, warns of regressions, learns or recommends asks here, so that a figure that
nobody measured can never slip into it.
"""

from __future__ import annotations

from collections.abc import Mapping

from accelbench.core.rows import Json, Row
from accelbench.core.vocabulary import Provenance

#: Measured, here or elsewhere. What was predicted or simulated is nobody's measurement.
COMPARABLE = (Provenance.MEASURED, Provenance.IMPORTED)

#: The same for rows of benchmark_results.
#: The arm of an interleaved run that is measured as a run without arms is; the other may be of
#: another environment, commit or setting, and speaks only in what the two are compared with each
#: other for.
THIS_ARM = "this"

THIS_ARM_SQL = f"coalesce(arm, '') IN ('', '{THIS_ARM}')"

COMPARABLE_SQL = (
    f"provenance IN ({', '.join(repr(source.value) for source in COMPARABLE)}) AND {THIS_ARM_SQL}"
)

#: How the run begins that a table of somebody else's came in. Our own results keep the runs that
#: they are of, on whatever machine those were: who measured is told by the provenance.
IMPORT = "import-"

#: `of_import` of a row of benchmark_results.
OF_IMPORT_SQL = f"starts_with(coalesce(run_id, ''), '{IMPORT}')"

#: Of a side that a file of `compare` refused: what it was not alike in, where no column says it.
REFUSED_THERE = "refused_there"

#: Where a simulated result says, among its conditions, what it was calculated from.
SIMULATION = "simulation"


def comparable(row: Row) -> bool:
    """Whether a result's figures may be compared with others, learned from and recommended by."""
    return row.get("provenance") in COMPARABLE and of_this_arm(row)


def of_import(row: Row) -> bool:
    """Whether a result came in a table of somebody else's, and is of no run of ours.

    Such a table may have figures of years and of many versions, none of which takes another's
    place; results of ours, measured here or brought in by their files, are launches of runs.
    """
    return str(row.get("run_id") or "").startswith(IMPORT)


def of_this_arm(row: Row) -> bool:
    """Whether a result is of a run without arms, or of the arm that is measured as one is."""
    return (row.get("arm") or THIS_ARM) == THIS_ARM


def simulation_of(row: Row) -> Json | None:
    """What a result was calculated from, where `--simulate` made it; else None.

    Provenance alone does not tell: results of the runtime that follows a script are simulated
    as well, and they go the whole way of a measurement.
    """
    conditions = row.get("conditions")
    basis = conditions.get(SIMULATION) if isinstance(conditions, Mapping) else None
    return basis if isinstance(basis, Mapping) else None


def source_of(row: Row) -> str:
    """Whose an imported figure is; empty for what was measured here."""
    conditions = row.get("conditions")
    source = conditions.get("source") if isinstance(conditions, Mapping) else None
    name = source.get("name") if isinstance(source, Mapping) else None
    return str(name or "")
