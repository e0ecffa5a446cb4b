"""Collectives as probes: which there are, what bandwidths mean, what becomes of wrong results."""

from dataclasses import replace

import pytest
import torch

from accelbench.core.calibration import DeviceCalibration, ProbeKind
from accelbench.core.errors import CaseError
from accelbench.engines.pytorch.distributed import rank_session
from accelbench.engines.pytorch.distributed.rank_session import Exchange, opened_collective
from accelbench.present.terminal.hardware import collective_rows, rows_of
from accelbench.run import calibrating
from accelbench.run.calibrating import collective_specs, timed_on
from accelbench.run.conduct.launch_context import Surroundings
from made_up_calibration import PROCESSOR, calibrated_store, made_calibration

MILLISECOND = 10**6


class Ticks:
    """A clock and a group of two ranks, of which a collective takes 1 ms and the second 2 ms."""

    def __init__(self, lost=""):
        self.now, self._lost = 0, lost
        self.opened = []

    def now_ns(self):
        return self.now

    def ask(self, do, **what):
        if do == "open_collective":
            self.opened.append(what["name"])
            if what["name"] == self._lost:
                raise CaseError("rank_lost", "rank 1 ended with exit code 3", "")
            return [None, None]
        took = [n * MILLISECOND * what["steps"] for n in (1, 2)]
        self.now += max(took)
        return took


@pytest.mark.parametrize(
    ("collective", "ranks", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 4, 0.75),
        ("reduce_scatter", 8, 0.875),
        ("broadcast", 8, 1.0),
    ],
)
def test_a_bus_bandwidth_is_that_of_nccl_tests(collective, ranks, factor):
    specs = [spec for spec in collective_specs(ranks) if spec.collective == collective]
    assert [spec.work / spec.size for spec in specs] == [factor] * len(specs)
    assert {spec.ranks for spec in specs} == {ranks}
    assert len({spec.size for spec in specs}) == len(specs) > 3


def test_a_collective_is_over_when_its_last_rank_is_or_is_lost():
    assert all(spec.size % (4 * 3) == 0 for spec in collective_specs(3))

    group = Ticks()
    figures, refusals = timed_on(group, collective_specs(2), group, lambda _done, _of: None)
    assert refusals == []
    assert [entry.spec for entry in figures] == collective_specs(2)
    for entry in figures:
        assert entry.spec.work / entry.value == pytest.approx(0.002)
        assert len(entry.samples_ns) >= 5
        assert set(entry.samples_ns) == {entry.steps * 2 * MILLISECOND}

    group = Ticks(lost="all_gather")
    heard = []
    figures, (refusal,) = timed_on(
        group, collective_specs(2), group, lambda done, of: heard.append((done, of))
    )
    assert {entry.spec.collective for entry in figures} == {"all_reduce"}
    assert refusal.reason == "rank 1 ended with exit code 3"
    assert refusal.name.startswith("probe/all_gather-")


class Answering(Ticks):
    """Ranks that say what they worked, while which others had the machine."""

    def __init__(self, launch):
        super().__init__()
        self.closed = False

    def ask(self, do, **what):
        return [1.5, 2.5] if do == "cpu_seconds" else super().ask(do, **what)

    def close(self):
        self.closed = True


def test_what_others_took_meanwhile_speaks_against_collectives_and_not_against_peaks(monkeypatch):
    monkeypatch.setattr(calibrating, "RankGroup", Answering)
    monkeypatch.setattr(calibrating, "MonotonicClock", lambda: Steady())
    busy = {"foreign": 0.4, "steal": 0.0}
    monkeypatch.setattr(Surroundings, "after", lambda *_: (busy, []))
    found = calibrating._with_collectives(made_calibration(), 2, lambda _done, _of: None)
    (timed,) = found.collectives
    assert (
        "Other processes used 40 % of the CPUs meanwhile: collectives may be too slow"
        in (timed.warnings[0])
    )
    assert found.warnings == ()
    assert found.conditions["collective_environment"] == busy
    (again,) = DeviceCalibration.from_body(found.to_body()).collectives
    assert again == timed


class Steady:
    """A clock that is a second further each time."""

    def __init__(self):
        self.now = 0

    def now_ns(self):
        self.now += 10**9
        return self.now


def test_a_wrong_result_is_refused_before_anything_is_timed(monkeypatch):
    def nothing_done(count, device):
        values = torch.zeros(count, device=device)
        return Exchange(lambda: None, values, values, torch.full_like(values, 3.0))

    monkeypatch.setattr(rank_session.dist, "get_rank", lambda: 0)
    monkeypatch.setitem(rank_session._EXCHANGES, "all_reduce", nothing_done)
    with pytest.raises(CaseError, match="the result of all_reduce over 1,024 bytes is wrong"):
        opened_collective("all_reduce", 1024, "gloo", Ticks())


def timed_calibration():
    group, known = Ticks(), made_calibration()
    figures, _ = timed_on(group, collective_specs(2), group, lambda _done, _of: None)
    return replace(known, figures=(*known.figures, *figures))


def test_a_table_has_what_each_takes_and_both_bandwidths():
    calibration = timed_calibration()
    rows = collective_rows(calibration)
    around = "0.524 … 0.524"
    assert rows[3] == ["all_reduce", "1MiB", "2,000", "0.524", "0.524", around]
    half = next(row for row in rows if row[:2] == ["all_gather", "1MiB"])
    assert half[2:] == ["2,000", "0.524", "0.262", "0.262 … 0.262"]
    assert not any("collective" in cell for row in rows_of(calibration) for cell in row)


def test_they_are_stored_with_every_block_and_change_no_peak(tmp_path):
    calibration = timed_calibration()
    database = calibrated_store(tmp_path / "c.duckdb", calibration, device=PROCESSOR)
    _, rows = database.query(
        "SELECT probe, unit, len(samples) FROM device_calibrations WHERE kind = 'collective'"
    )
    assert len(rows) == len(collective_specs(2))
    assert {(unit, count >= 5) for _, unit, count in rows} == {("B/s", True)}
    assert calibration.limits == made_calibration().limits
    assert calibration.best(ProbeKind.COLLECTIVE) is not None
