"""Whether a result counts is decided in `evidence` only: other code reads its columns.

Decisions by `quality`, `status`, `verification`, `emulated` or `provenance` are looked for in every
source: as an operand of a comparison or as a condition, and in SQL. The packages that measure,
store and import results produce these columns, and may read them.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src/accelbench"
COLUMNS = frozenset(("quality", "status", "verification", "emulated", "provenance"))
#: They make the columns, or define the rules.
PRODUCERS = (
    *(
        "evidence",
        "measure",
        "run",
        "runtimes",
        "artifacts",
        "catalog",
        "hardware",
        "store",
        "core",
    ),
    *("exchange/imports", "api/in_process.py", "pytest_plugin"),
)
_SQL = re.compile(
    rf"\b({'|'.join(sorted(COLUMNS))})\b\)?(, '\w*'\))? *(=|<>|!=|IN\b|IS\b|NOT IN\b)"
)
#: Decisions that are left, by file: a number may become smaller, and no file may be added.
LEFT: dict[str, int] = {
    "api/benchmark.py": 1, "api/result.py": 9, "api/running.py": 1, "cli/commands/matrix.py": 1,
    "cli/services/measuring.py": 1, "cli/commands/predict.py": 1, "cli/services/recommending.py": 1,
    "cli/services/searching.py": 4, "engines/pytorch/distributed/group.py": 1,
    "exchange/aggregate.py": 2, "exchange/baselines.py": 1, "exchange/series.py": 4,
    "exchange/trackers/tracked_result.py": 3, "exchange/trackers/wandb_tracker.py": 2,
    "judge/accuracies.py": 1, "judge/arms.py": 2, "judge/attempts.py": 3, "judge/baselines.py": 1,
    "judge/comparison.py": 3, "judge/costs.py": 1, "judge/filters.py": 1,
    "judge/findings/collected.py": 4, "judge/findings/finding.py": 1, "judge/findings/tasks.py":
    1, "judge/findings/versus.py": 1, "judge/older_runs.py": 4, "judge/machine_matrix.py": 1,
    "judge/overview.py": 2, "judge/pivot.py": 1, "judge/points.py": 1, "judge/process_spread.py": 2,
    "judge/regressions.py": 3, "judge/run_noise.py": 3, "judge/summary.py": 7,
    "judge/versions.py": 1, "present/chart_data.py": 2, "present/charts/marks.py": 1,
    "present/charts/spread.py": 1, "present/charts/trend.py": 1,
    "present/dashboard/common_ground.py": 6, "present/dashboard/entity_pages.py": 5,
    "present/dashboard/explore_points.py": 1, "present/dashboard/overview.py": 2,
    "present/dashboard/page_query.py": 1, "present/dashboard/results_page.py": 1,
    "present/dashboard/run_pages.py": 2, "present/dashboard/cells.py": 3,
    "present/dashboard/details.py": 1, "present/dashboard/snapshot.py": 6,
    "present/report_parts.py": 2, "present/publishing/bundle.py": 1, "present/series.py": 4,
    "present/table_export.py": 3, "present/terminal/compare.py": 2, "present/terminal/dropped.py":
    2, "present/terminal/history.py": 1,
    "present/terminal/recommend_cells.py": 1, "present/terminal/store_status.py": 1,
    "present/terminal/summary.py": 8, "present/terminal/watch.py": 1, "present/terminal/words.py":
    1, "recommend/constraints/measurement_candidates.py": 3, "recommend/evidence/cells.py": 5,
    "recommend/evidence/reader.py": 1, "recommend/evidence/sql.py": 5,
    "recommend/pricing.py": 1, "recommend/selector.py": 2,
}  # fmt: skip


def test_results_are_judged_in_one_place():
    found = Counter(
        str(path.relative_to(ROOT))
        for path in sorted(ROOT.rglob("*.py"))
        if not str(path.relative_to(ROOT)).startswith(PRODUCERS)
        for _ in decisions(ast.parse(path.read_text(encoding="utf-8")))
    )
    assert {name: n for name, n in found.items() if n > LEFT.get(name, 0)} == {}
    assert {name: n for name, n in LEFT.items() if n > found[name]} == {}, "lower these numbers"


def decisions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what decides by one of the columns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from filter(reads_column, (node.left, *node.comparators))
        elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
            yield from filter(reads_column, node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield from filter(reads_column, alternatives(node.operand))
        elif isinstance(node, ast.If | ast.IfExp | ast.While):
            yield from filter(reads_column, alternatives(node.test))
        elif isinstance(node, ast.comprehension):
            yield from filter(reads_column, node.ifs)
        elif isinstance(node, ast.Constant) and _SQL.search(str(node.value)):
            yield node


def alternatives(node: ast.expr) -> list[ast.expr]:
    """Return the parts of a condition with `or`; elsewhere `or` gives a default."""
    is_or = isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or)
    return node.values if is_or else [node]


def reads_column(node: ast.AST) -> bool:
    """Return whether an expression is such a column of a row."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        names = node.args[:1] if node.func.attr == "get" else []
    elif isinstance(node, ast.Subscript):
        names = [node.slice]
    else:
        return False
    return any(isinstance(name, ast.Constant) and name.value in COLUMNS for name in names)


def test_decisions_are_found():
    source = """
if row.get("emulated"): ...
x = row["quality"] == "unusable" and not row.get("provenance")
y = "SELECT 1 WHERE coalesce(verification, '') <> 'failed'"
z = str(row.get("status"))
"""
    assert len(list(decisions(ast.parse(source)))) == 4
