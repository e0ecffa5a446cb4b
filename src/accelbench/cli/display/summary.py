"""The table at the end of a run, within 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import IO, Any

from accelbench.analysis.accuracies import (
    accuracy_against,
    accuracy_among,
    accuracy_heading,
    accuracy_of,
    cost_sentence,
)
from accelbench.cli.display.words import (
    figure,
    marks_without_arm,
    mean_note,
    shapes,
    spread,
    where,
)
from accelbench.core.absent import NO_DATA
from accelbench.core.cards import short_of
from accelbench.core.columns import step_ms
from accelbench.core.figures import Statistic
from accelbench.core.provenance import simulation_of
from accelbench.core.quality_words import QUALITY_SAID
from accelbench.core.rates import unit_beside, unit_of_all
from accelbench.core.reference_words import reference_words
from accelbench.core.visible import visible
from accelbench.core.vocabulary import Quality
from accelbench.run.plan.simulated_cases import measured_of
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
            f"Verified against {reference_words(done)}: {held} of {len(words)}"
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
    """Why nothing was compared, each reason with the models that it is of."""
    models: dict[str, list[str]] = {}
    for row in rows:
        why = (row.get("nulls") or {}).get("verification_error")
        if row.get("verification") == "not_done" and why and why != NOT_ASKED_FOR:
            models.setdefault(str(why), []).append(f"{row['model']} {row['runtime']}")
    return [
        f"Not verified: {', '.join(dict.fromkeys(names))}: {why}" for why, names in models.items()
    ]


def _unasked(row: Mapping[str, Any]) -> bool:
    """Whether nothing was compared because the run was told so."""
    nulls = row.get("nulls") or {}
    return bool(nulls.get("verification_error") == NOT_ASKED_FOR)


def print_summary(rows: Sequence[Mapping[str, Any]], stream: IO[str]) -> None:
    """Every result in a line; nothing of a run that was interrupted before its first."""
    if not rows:
        return
    from accelbench.cli.display.console import console
    from accelbench.cli.display.word_table import WordTable

    # One space between columns: with two, a model and its precision would be broken in two.
    table = WordTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("model")
    table.add_column("where")
    unit = unit_of_all(rows)
    # Free sizes and lopsided intervals are of several words and may be broken between them.
    breakable = {"", "size"} if any(row.get("dimensions") for row in rows) else {""}
    statistic = _statistic(rows)
    for heading in ("batch", "size", f"{statistic} ms", "", unit, "MB"):
        whole = heading not in breakable
        table.add_column(heading, justify="right", no_wrap=whole)
    metered = any(row.get("energy_per_item_joules") for row in rows)
    for heading in ("J/item", "W") if metered else ():
        table.add_column(heading, justify="right", no_wrap=True)
    known = [accuracy_of(row) for row in rows]
    labelled = any(accuracy is not None for accuracy in known)
    if labelled:
        table.add_column(accuracy_heading(rows), justify="right", no_wrap=True)
    table.add_column("quality", no_wrap=True)
    several = _several_launches(rows)
    if several:
        table.add_column("launch", justify="right", no_wrap=True)
    arms = any(row.get("arm") for row in rows)
    if arms:
        table.add_column("arm")
    for row, accuracy in zip(rows, known, strict=True):
        timed = row["status"] == "ok" and step_ms(row) is not None
        place = where(row)
        if row["runtime"] not in ("pytorch", "none", place):
            place = f"{short_of(row['runtime'])}/{place}"
        table.add_row(
            str(row["model"]),
            f"{place} {row['precision']}{marks_without_arm(row)}",
            str(row["batch_size"]),
            shapes(row),
            _step(row, statistic) if timed else NO_DATA,
            spread(row) if timed else "",
            f"{figure(row.get('throughput'))} {unit_beside(row, unit)}".rstrip()
            if timed
            else NO_DATA,
            figure(row.get("memory_peak_mb")) if timed else NO_DATA,
            *(_energy(row) if metered else ()),
            *([accuracy.shown if accuracy else NO_DATA] if labelled else []),
            _worth(row),
            *([str(row.get("launch"))] if several else []),
            *([visible(str(row.get("arm") or ""))] if arms else []),
        )
    console(stream).print(table)
    if any(row.get("quality") == Quality.FIXED and step_ms(row) is not None for row in rows):
        console(stream).print(f"{Quality.FIXED}: {QUALITY_SAID[Quality.FIXED]}.")


def _statistic(rows: Sequence[Mapping[str, Any]]) -> Statistic:
    """What the column of times is: medians, unless all that is known are means of blocks."""
    timed = [row for row in rows if step_ms(row) is not None]
    medians = any(row.get("latency_p50_ms") is not None for row in timed)
    return Statistic.MEDIAN if medians or not timed else Statistic.MEAN


def _step(row: Mapping[str, Any], statistic: Statistic) -> str:
    """What a step took; a mean of blocks among medians says that it is one."""
    shown = figure(step_ms(row))
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
            f"{name}: {accuracy.metric.heading} {accuracy.shown}{within}"
            f" of {accuracy.samples:,} {accuracy.metric.item}"
        )
        base = cells.get((model, runtime, hardware, "fp32", arm))
        cost = accuracy_against(launches, base) if base and precision != "fp32" else None
        if cost is not None:
            lines.append("  " + cost_sentence(precision, "fp32", cost))
    return lines


def _energy(row: Mapping[str, Any]) -> tuple[str, str]:
    """What an item took, and the power meanwhile."""
    return figure(row.get("energy_per_item_joules")), figure(row.get("power_watts"))


def _several_launches(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether lines would read alike but for their launches."""
    return len({row.get("launch") for row in rows}) > 1


def _worth(row: Mapping[str, Any]) -> str:
    """How far a figure may be trusted; where there is none, what became of the case."""
    if row["status"] != "ok":
        return str(row["status"]).replace("_", " ")
    if simulation_of(row) is not None:
        return "a limit"
    return "not timed" if step_ms(row) is None else str(row.get("quality")).replace("_", " ")
