"""An axis of time: 24 hours, no line without its day or its year, none over another."""

from __future__ import annotations

from datetime import datetime

import pytest

from accelbench.present.charts.trend import lines, said, time_axis, utc


def words(first: str, last: str, most: int = 4) -> list[str]:
    begin, end = utc(first), utc(last)
    assert begin is not None
    assert end is not None
    return [" ".join(rows) for _, rows in lines(begin, end, most)]


@pytest.mark.parametrize(
    ("first", "last", "told"),
    [
        ("2026-11-22 18:00", "2026-11-22 18:22", ["18:00 2026-11-22", "18:15"]),
        ("2026-11-22 00:30", "2026-11-22 23:00", ["06:00 2026-11-22", "12:00", "18:00"]),
        (
            "2026-11-20 18:00",
            "2026-11-22 18:00",
            ["00:00 2026-11-21", "12:00", "00:00 2026-11-22", "12:00"],
        ),
        ("2026-12-30", "2027-01-03", ["31 Dec 2026", "02 Jan 2027"]),
        ("2025-10-20", "2026-11-22", ["Oct 2025", "Jan 2026", "Jul"]),
        ("2021-03-20", "2026-11-22", ["2021", "2022", "2024", "2026"]),
        ("2021-03-20", "2021-03-20", ["00:00:00 2021-03-20"]),
    ],
)
def test_where_lines_stand_and_what_they_say(first, last, told):
    assert words(first, last) == told


@pytest.mark.parametrize("days", [0, 1, 3, 9, 40, 200, 700, 2000, 9000, 90_000])
def test_there_are_never_more_lines_than_have_room(days):
    begin = datetime.fromisoformat("2001-02-03T04:05:06+00:00")
    end = datetime.fromtimestamp(begin.timestamp() + 86_400 * days + 11, begin.tzinfo)
    for most in (3, 7):
        found = lines(begin, end, most)
        assert 1 <= len(found) <= most
        assert all(begin <= one <= end for one, _ in found)


def test_moments_on_an_axis():
    # A moment of another zone is in utc.
    assert said("2026-01-02 01:00:00+02") == "2026-01-01T23:00:00Z"
    assert said("2026-01-02 01:00:00") == "2026-01-02T01:00:00Z"
    assert said("of old") == "of old"
    # An axis of what is no moment is left to whoever draws.
    assert time_axis(["of old", "2026-01-02"], 4) == {"tickCount": 4}
    assert "06:00" not in str(time_axis(["of old"], 4))
    known = time_axis(["2026-01-02", "2026-01-03"], 4)
    assert known["values"]["expr"].count(",") + 1 == known["labelExpr"].count("? [")
