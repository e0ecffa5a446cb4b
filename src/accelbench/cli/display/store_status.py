"""What a database holds, as `db status` shows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from accelbench.cli.display.imports import named
from accelbench.core.absent import batch_text
from accelbench.core.documented_peaks import MOST_OF_PEAK, describe_rate
from accelbench.core.nouns import counted

#: As many as a few lines hold: somebody else's tables have thousands of models.
_MOST_NAMES = 24
#: Results that were refused, of which each is a line.
_MOST_REFUSED = 5


def status_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines of `db status`, each a name and a text."""
    tables, journals = summary["tables"], summary["journals"]
    lines = [
        ("database", summary["database"]),
        ("size", f"{summary['size_bytes'] / 2**20:.1f} MB, schema {summary['schema_version']}"),
        *((name, str(count)) for name, count in tables.items()),
        ("results by status", _counted(summary["results_by_status"])),
        ("by provenance", _counted(summary["results_by_provenance"])),
        ("unusable results", _counted(summary["unusable_by_reason"])),
        ("runs by status", _counted(summary["runs_by_status"])),
        ("models", _named(summary["models"])),
        ("hardware", ", ".join(summary["hardware"]) or "none"),
        ("machines", named(summary["machines"])),
    ]
    if summary["first_result_at"]:
        lines.append(("measured", f"{summary['first_result_at']} to {summary['last_result_at']}"))
    lines.append(("journals", f"{journals['known']} in {journals['folder']}"))
    if journals["orphans"]:
        lines.append(("not filled in", ", ".join(journals["orphans"])))
    refused = [
        f"result {a['result_id']} of run {a['run_id']}: {a['why']}" for a in summary["refused"]
    ]
    more = len(refused[_MOST_REFUSED:])
    messages = [*refused[:_MOST_REFUSED], *([f"and {more} more; --json has all"] if more else [])]
    lines += [("not stored", message) for message in messages]
    lines += [("implausible", text) for text in _implausible(summary["implausible"])]
    for name, numbers in journals["corrupt_lines"].items():
        lines.append(("damaged", f"{name}, line(s) {', '.join(map(str, numbers))}"))
    return lines


def _implausible(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the calculation of each implausible result; none of them is ranked or learned from."""
    if results:
        count = counted(len(results), "imported result")
        yield f"{count} above {MOST_OF_PEAK:g} times the documented peak; not used in rankings"
    for one in results[:_MOST_REFUSED]:
        where = " ".join(str(one[name]) for name in ("runtime", "precision") if one[name])
        place = f"{where} on {one['device_name']}"
        batch = batch_text(one["batch_size"])
        yield f"{one['model']}, {batch}, {place}: {describe_rate(one['implausible_rate'])}"
    if more := len(results[_MOST_REFUSED:]):
        yield f"and {more} more; --json has all"


def _named(names: Sequence[str]) -> str:
    """The first of many names; all of them are in --json."""
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES]) or "none"
    return f"{shown} and {more} more" if more > 0 else shown


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items()) or "none"
