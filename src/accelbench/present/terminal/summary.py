"""The tables and warnings at the end of a run, within 80 columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from accelbench.core.columns import step_ms
from accelbench.core.devices import short_of
from accelbench.core.formatting import (
    NO_DATA,
    describe_references,
    format_count,
    format_value,
    join_first,
)
from accelbench.core.result_statistics import (
    FEWEST_LAUNCHES,
    Statistic,
    best_statistic,
    common_unit,
    differing_unit,
)
from accelbench.core.unusable_reasons import QUALITY_TEXTS, simulation_of
from accelbench.core.vocabulary import Quality
from accelbench.evidence.launches import launches_of
from accelbench.evidence.measurements import merge_groups
from accelbench.judge.accuracies import (
    accuracy_against,
    accuracy_among,
    accuracy_heading,
    accuracy_of,
    cost_sentence,
)
from accelbench.judge.ratios import CANNOT_TELL, LAUNCHES, Faster, Ratio, ratio
from accelbench.judge.run_noise import Histories
from accelbench.judge.warned import Warned, warned
from accelbench.present.document import Document, Notes, Table, TableColumn
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.terminal import print_lines
from accelbench.present.terminal.words import (
    batch_and_shapes,
    case_name,
    marks,
    marks_without_arm,
    mean_note,
    shapes,
    spread,
    where,
)
from accelbench.present.texts import phrase
from accelbench.run.plan.targets import measured_of
from accelbench.run.verify.verdicts import NOT_ASKED_FOR


def trust(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What was verified, and through which workarounds; nothing where nothing was to verify."""
    rows = measured_of(rows)
    done = [row for row in rows if row["status"] == "ok"]
    words = [row.get("verification") for row in done]
    held, own = words.count("ok"), words.count("reference")
    lines = []
    if held or len(words) > own:
        unasked = sum(map(_unasked, done))
        left = len(words) - held - own - unasked
        rest = "; ".join(
            f"{count} {what}"
            for count, what in (
                (own, "are that reference"),
                (unasked, "not asked for"),
                (left, "could not be"),
            )
            if count
        )
        lines.append(
            f"Verified against {describe_references(done)}: {held} of {len(words)}"
            + (f" ({rest})" if rest else "")
        )
        lines += _unverified(done)
    used = sorted(
        {
            f"{row['model']} {row['runtime']}: {', '.join(row['workarounds'])}"
            for row in rows
            if row["status"] == "ok" and row.get("workarounds")
        }
    )
    if used:
        lines.append("Workarounds: " + "; ".join(used))
    return lines


def _unverified(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    models: dict[str, list[str]] = {}
    for row in rows:
        why = (row.get("nulls") or {}).get("verification_error")
        if row.get("verification") == "not_done" and why and why != NOT_ASKED_FOR:
            models.setdefault(str(why), []).append(f"{row['model']} {row['runtime']}")
    return [
        phrase("run.not-verified", names=", ".join(dict.fromkeys(names)), why=why)
        for why, names in models.items()
    ]


def _unasked(row: Mapping[str, Any]) -> bool:
    nulls = row.get("nulls") or {}
    return bool(nulls.get("verification_error") == NOT_ASKED_FOR)


def print_summary(rows: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """Every result in a line; nothing of a run that was interrupted before its first."""
    if not rows:
        return
    unit, statistic = common_unit(rows), _statistic(rows)
    timed = [row["status"] == "ok" and step_ms(row) is not None for row in rows]
    known = [accuracy_of(row) for row in rows]
    # Free sizes are of several words and may be broken between them.
    whole_sizes = not any(row.get("dimensions") for row in rows)
    rates = [
        f"{format_value(r.get('throughput'))} {differing_unit(r, unit)}".rstrip() for r in rows
    ]
    columns: list[tuple[TableColumn, Sequence[str]]] = [
        (TableColumn("model"), [str(row["model"]) for row in rows]),
        (TableColumn("where"), [_place(row) for row in rows]),
        (TableColumn("batch", is_number=True), [str(row["batch_size"]) for row in rows]),
        (TableColumn("size", is_number=whole_sizes), [shapes(row) for row in rows]),
        (_number(f"{statistic} ms"), _if(timed, [_step(row, statistic) for row in rows])),
        (TableColumn(""), _if(timed, [spread(row) for row in rows], "")),
        (_number(unit), _if(timed, rates)),
        (_number("MB"), _if(timed, [format_value(row.get("memory_peak_mb")) for row in rows])),
    ]
    if any(row.get("energy_per_item_joules") for row in rows):
        columns += [
            (_number("J/item"), [format_value(row.get("energy_per_item_joules")) for row in rows]),
            (_number("W"), [format_value(row.get("power_watts")) for row in rows]),
        ]
    if any(accuracy is not None for accuracy in known):
        shown = [accuracy.shown if accuracy else NO_DATA for accuracy in known]
        columns.append((_number(accuracy_heading(rows)), shown))
    columns.append((TableColumn("quality", is_whole=True), [_worth(row) for row in rows]))
    if len({row.get("launch") for row in rows}) > 1:
        columns.append((_number("launch"), [str(row.get("launch")) for row in rows]))
    if any(row.get("arm") for row in rows):
        columns.append((TableColumn("arm"), [str(row.get("arm") or "") for row in rows]))
    table = Table.of_columns(columns, is_compact=True)
    fixed = any(row.get("quality") == Quality.FIXED and step_ms(row) is not None for row in rows)
    notes = [f"{Quality.FIXED}: {QUALITY_TEXTS[Quality.FIXED]}."] if fixed else []
    show(Document("", [table, Notes(notes)] if notes else [table]), stream)


def _number(label: str) -> TableColumn:
    return TableColumn(label, is_number=True)


def _if(known: Sequence[bool], cells: Sequence[str], otherwise: str = NO_DATA) -> list[str]:
    return [cell if is_known else otherwise for is_known, cell in zip(known, cells, strict=True)]


def _place(row: Mapping[str, Any]) -> str:
    place = where(row)
    if row["runtime"] not in ("pytorch", "none", place):
        place = f"{short_of(row['runtime'])}/{place}"
    return f"{place} {row['precision']}{marks_without_arm(row)}"


def _statistic(rows: Sequence[Mapping[str, Any]]) -> Statistic:
    timed = [row for row in rows if step_ms(row) is not None]
    medians = any(row.get("latency_p50_ms") is not None for row in timed)
    return Statistic.MEDIAN if medians or not timed else Statistic.MEAN


def _step(row: Mapping[str, Any], statistic: Statistic) -> str:
    shown = format_value(step_ms(row))
    if note := mean_note([row]):
        return f"{shown}{note}"
    median = row.get("latency_p50_ms") is not None
    return shown if median or statistic is Statistic.MEAN else f"{shown} {Statistic.MEAN}"


def accuracies(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each cell's accuracy with its interval, and what it is above that in fp32; batches once."""
    cells: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if accuracy_of(row) is not None:
            cell = (row["model"], row["runtime"], row["hardware"], row["precision"], row.get("arm"))
            cells.setdefault(tuple(str(part or "") for part in cell), []).append(row)
    lines = []
    for (model, runtime, hardware, precision, arm), launches in cells.items():
        accuracy = accuracy_among(launches)
        assert accuracy is not None  # else it were no cell
        within = f" ({accuracy.interval})" if accuracy.interval else ""
        name = " ".join(filter(None, (model, f"{runtime}/{hardware}", precision, arm)))
        lines.append(
            phrase(
                "run.accuracy",
                name=name,
                heading=accuracy.metric.heading,
                shown=accuracy.shown,
                within=within,
                samples=accuracy.samples,
                item=accuracy.metric.item,
            )
        )
        base = cells.get((model, runtime, hardware, "fp32", arm))
        cost = accuracy_against(launches, base) if base and precision != "fp32" else None
        if cost is not None:
            lines.append("  " + cost_sentence(precision, "fp32", cost))
    return lines


def _worth(row: Mapping[str, Any]) -> str:
    if row["status"] != "ok":
        return str(row["status"]).replace("_", " ")
    if simulation_of(row) is not None:
        return "a limit"
    return "not timed" if step_ms(row) is None else str(row.get("quality")).replace("_", " ")


#: Operators in a table; the JSON document and the files have all of them.
TOP = 10

_APART = phrase("run.profile-legend")

#: Steps that differ by more were not of one kind.
_ALIKE = 2.0


def print_profiles(profiles: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """A heading and a table for each, or why there is none."""
    for profile in profiles:
        print_lines(["", *heading(profile)], stream)
        if profile["why_not"] is None:
            _print_table(profile, stream)
            print_lines([profile["remark"]] if profile["remark"] else [], stream)
    if any(profile["why_not"] is None for profile in profiles):
        print_lines(("", _APART), stream)


def heading(row: Mapping[str, Any]) -> list[str]:
    """Which case, and what is known of it as a whole, in lines."""
    way = f"{row['runtime']}/{row['hardware']} {row['precision']}{marks(row)}"
    case = f"{row['model']} {way} {batch_and_shapes(row)}"
    if row["why_not"] is not None:
        return [phrase("run.no-profile", case=case, why_not=row["why_not"])]
    steps = "1 step" if row["steps"] == 1 else f"{row['steps']} steps"
    emulated = ", on an emulation" if row["emulated"] else ""
    return [
        phrase("run.profile-title", case=case, emulated=emulated),
        (
            phrase(
                "run.profile-mean",
                profiler=row["profiler"],
                steps=steps,
                wall_ms=format_value(row["wall_ms"]),
                explained=row["explained"],
            )
        ),
        *_unlike(row["walls_ms"]),
    ]


def _unlike(walls: Sequence[float]) -> list[str]:
    low, high = min(walls), max(walls)
    if high <= _ALIKE * low:
        return []
    return [(phrase("run.profile-uneven", low=format_value(low), high=format_value(high)))]


def _print_table(profile: Mapping[str, Any], stream: IO[str]) -> None:
    columns = [
        TableColumn("operator"),
        *map(_number, ("calls", "ms", "share")),
        TableColumn("where"),
    ]
    rows = [_cells(kind) for kind in profile["kinds"][:TOP]]
    if rest := profile["kinds"][TOP:]:
        took, share = (sum(kind[name] for kind in rest) for name in ("total_ms", "share"))
        others = "1 other" if len(rest) == 1 else f"{len(rest)} others"
        rows.append((others, "", format_value(took), f"{share:.1%}", ""))
    show(Document("", [Table(columns, rows, is_compact=True)]), stream)


def _cells(kind: Mapping[str, Any]) -> tuple[str, ...]:
    calls = f"{kind['calls']:g}"
    took, share = format_value(kind["total_ms"]), f"{kind['share']:.1%}"
    return (kind["kind"], calls, took, share, kind["where"])


Row = Mapping[str, Any]


def print_frameworks(rows: Sequence[Row], stream: IO[str], pair: Sequence[str]) -> None:
    """How long the second takes in terms of the first."""
    lines = list(compared(rows, pair))
    if lines:
        print_lines(["", *lines], stream)


def compared(rows: Sequence[Row], pair: Sequence[str]) -> Iterator[str]:
    """A sentence a model and size, by the ratio that every comparison gives."""
    first, second = pair
    groups: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for row in launches_of(measured_of(rows)):
        counts = row["answered"] and not row.get("emulated") and best_statistic(row) is not None
        if row["runtime"] in pair and counts:
            key = (
                row["model"],
                row["hardware"],
                row["precision"],
                row["mode"],
                batch_and_shapes(row),
            )
            groups.setdefault(key, {}).setdefault(str(row["runtime"]), []).append(row)
    for (model, hardware, precision, mode, size), launched in groups.items():
        if first not in launched or second not in launched:
            continue
        both = merge_groups([launched[runtime] for runtime in pair])
        ours, theirs = (one.usable_rows for one in both)
        if not ours or not theirs:
            continue
        known = ratio(ours, theirs, Histories())
        if known is None:
            continue
        about = f"{model} {hardware} {precision} {mode} {size}"
        yield f"{about}: {_said(known, first, second)}"


def _said(known: Ratio, first: str, second: str) -> str:
    least = min(known.launches)
    few = "" if least >= FEWEST_LAUNCHES else f", {FEWEST_LAUNCHES} decide"
    launches = f"{format_count(least, 'launch', 'launches')} a side{few}"
    if not known.told:
        why = f"{CANNOT_TELL}; {launches}"
        if known.direction is Faster.UNSURE:
            return phrase("run.faster-unknown", first=first, second=second, why=why)
        slower = second if known.direction is Faster.FASTER else first
        return phrase("run.slower-without-factor", slower=slower, why=why)
    about = [launches, known.otherwise] if known.otherwise else [launches]
    if known.of == LAUNCHES and known.low is not None and known.high is not None:
        about = [f"95 % interval {known.ends_text('{:.2f}'.format, ' … ')}", *about]
        if known.direction is Faster.UNSURE:
            return phrase(
                "run.faster-inconclusive", first=first, second=second, about="; ".join(about)
            )
    return phrase(
        "run.times-as-long",
        second=second,
        value=known.value,
        first=first,
        about="; ".join(about),
    )


def total_line(rows: Sequence[Row], counts: Mapping[str, int]) -> str:
    """Return how many results a run has, by status, and how many `ok` ones are unusable."""
    by_status = [f"{n} {status.replace('_', ' ')}" for status, n in sorted(counts.items())]
    useless = sum(bool(row["answered"]) and not row["times_usable"] for row in launches_of(rows))
    parts = [*by_status, *([f"{useless} unusable"] if useless else [])]
    return f"Total configurations: {len(rows)} ({', '.join(parts) or 'none finished'})"


#: As many cases are named; of more, how many.
_MOST_NAMED = 4


def warning_lines(rows: Sequence[Row]) -> Iterable[str]:
    """The lines; none where nothing was warned of."""
    warnings = warned(rows)
    if warnings:
        yield "Warnings"
    for warning in warnings:
        yield f"  ! {warning.text}"
        yield f"      {_concerned(warning, rows)}"


def _concerned(warning: Warned, rows: Sequence[Row]) -> str:
    if len(warning.rows) == len(rows) > 1:
        return f"all {len(rows)} results"
    launches, totals = Counter(map(_case, warning.rows)), Counter(map(_case, rows))
    batches: dict[str, dict[str, None]] = {}
    for row in warning.rows:
        # A launch is named where not all launches of its case are warned.
        whole = launches[_case(row)] == totals[_case(row)]
        launch = "" if whole else f" (launch {row.get('launch')})"
        name = f"{case_name(row)} {shapes(row)}".strip()
        batches.setdefault(name, {})[f"{row['batch_size']}{launch}"] = None
    named = [f"{name}: batch {', '.join(these)}" for name, these in batches.items()]
    return join_first(named, _MOST_NAMED, "; ")


def _case(row: Row) -> tuple[Any, Any]:
    return row.get("case_id"), row.get("device")


def told(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The same for machines: each warning with the ids of its results."""
    return [
        {"text": warning.text, "results": [row["result_id"] for row in warning.rows]}
        for warning in warned(rows)
    ]
