"""What a run warns of, once, with the cases that it concerns."""

from __future__ import annotations

import json
from typing import Any

from shells import QUICK

from accelbench.judge.warned import warned
from accelbench.present.terminal.summary import told, total_line, warning_lines


def row(batch: int = 1, *warnings: str, **more: Any) -> dict[str, Any]:
    return {
        "result_id": f"r{batch}", "case_id": f"{more.get('model')}-{batch}", "model": "bert-tiny",
        "runtime": "pytorch", "hardware": "cpu", "device": "cpu:0", "precision": "fp32",
        "batch_size": batch, "sequence_length": 128, "mode": "inference", "launch": 1,
        "warnings": list(warnings), **more,
    }  # fmt: skip


def test_ranges_of_figures():
    # What differs in its figures alone is one warning with their range.
    rows = [row(1, "It took 9 of 1,024 times.", "Few."), row(8, "It took 30.5 of 1,024 times.")]
    found = warned(rows)
    assert [one.text for one in found] == ["It took 9 to 30.5 of 1,024 times.", "Few."]
    assert [len(one.rows) for one in found] == [2, 1]
    assert told(rows) == [
        {"text": "It took 9 to 30.5 of 1,024 times.", "results": ["r1", "r8"]},
        {"text": "Few.", "results": ["r1"]},
    ]
    (one,) = warned([row(1, "torch 2.13.0 of 2026-01-02, 1,2 and 3."), row(8)])
    assert one.text == "torch 2.13.0 of 2026-01-02, 1,2 and 3."
    # A sentence that has a range already gets one of all its ends.
    said = "Its ends are 1.41 to 32.3 ms."
    others = ("Its ends are 1.44 to 9.67 ms.", "Its ends are 2 ms.")
    assert [one.text for one in warned([row(1, said, *others)])] == [said]
    # Moments have no range.
    said = "Run {} measured since 2026-11-28 09:{} UTC at the same time, for {} s."
    rows = [
        row(1, said.format("a", "02:03", 3)),
        row(8, said.format("a", "07:58", 5)),
        row(32, "It began at 09:02."),
        row(128, "It began at 10:07."),
    ]
    assert [one.text for one in warned(rows)] == [
        said.format("a", "02:03, 2026-11-28 09:07:58", "3 to 5"),
        "It began at 09:02, 10:07.",
    ]
    rows = [row(1, "No fp16 in torch 2.13.0."), row(8, "No fp32 in torch 2.14.0.")]
    assert len(warned(rows)) == 2


def test_which_warnings_are_one():
    # What begins alike is one warning with every sentence of any.
    busy = "Others used {} % of the CPUs.{} Close them."
    rows = [
        row(1, busy.format(12, "")),
        row(2, busy.format(84, " The median took 3 times as long.")),
        row(4, busy.format(40, " The median took 1.2 times as long.") + " Use --threads 1."),
        row(8, "Others used memory."),
    ]
    one, other = warned(rows)
    assert one.text == (
        "Others used 12 to 84 % of the CPUs. The median took 1.2 to 3 times as long. Close them."
        " Use --threads 1."
    )
    assert (len(one.rows), other.text) == (3, "Others used memory.")
    (one,) = warned([row(1, "It was 3.", "It was 4.", "It was 3.")])
    assert (one.text, len(one.rows)) == ("It was 3 to 4.", 1)
    # Each warning names its cases.
    rows = [
        row(1, "Busy.", "Short."),
        row(8, "Busy.", "Short."),
        row(32, "Busy."),
        row(1, "Busy.", "Hot.", model="vit-tiny", sequence_length=None, image_size=32),
    ]
    assert list(warning_lines(rows)) == [
        "Warnings",
        "  ! Busy.",
        "      all 4 results",
        "  ! Short.",
        "      bert-tiny pytorch/cpu fp32 seq 128: batch 1, 8",
        "  ! Hot.",
        "      vit-tiny pytorch/cpu fp32 32px: batch 1",
    ]


def test_how_warnings_are_counted():
    # Many cases are counted and a launch is named where it is not all.
    rows = [row(1, "Odd.", model=f"m{n}") for n in range(7)] + [row(2)]
    assert list(warning_lines(rows))[2].endswith("m3 pytorch/cpu fp32 seq 128: batch 1 and 3 more")
    rows = [row(1), row(1, "Hot.", launch=2), row(8, "Hot."), row(8, "Hot.", launch=2)]
    assert list(warning_lines(rows))[2].endswith("seq 128: batch 1 (launch 2), 8")
    assert list(warning_lines([row(1), row(8, warnings=None)])) == []
    # The total counts unusable results next to those that ended well.
    good, noisy = row(status="ok", quality="converged"), row(2, status="ok", quality="unusable")
    failed = row(3, status="out_of_memory", quality="unusable")
    assert total_line([good], {"ok": 1}) == "Total configurations: 1 (1 ok)"
    assert total_line([good, noisy, failed], {"ok": 2, "out_of_memory": 1}) == (
        "Total configurations: 3 (2 ok, 1 out of memory, 1 unusable)"
    )
    assert total_line([], {}) == "Total configurations: 0 (none finished)"


def test_a_run_says_each_once_below_its_table_and_in_its_document(shell):
    words = ("bert-tiny", "--batch-sizes", "1,2,4", *QUICK)
    done = shell(*words)
    assert done.stdout.count("The number of samples was fixed") == 1
    table, _, below = done.stdout.partition("\nWarnings\n")
    assert "quality" in table
    assert "!" not in table
    assert "all 3 results" in below
    assert "Total configurations" in below
    document = json.loads(shell(*words, "--json").stdout)
    ids = [one["result_id"] for one in document["results"]]
    assert all(one["warnings"] for one in document["results"])  # each its own, as ever
    assert any(one["results"] == ids for one in document["warnings"])
    quiet = shell(*words, "--quiet")
    assert quiet.stdout == ""
