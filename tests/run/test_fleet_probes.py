"""Probes of the nodes of a fleet: asked of each, stored as calibrations, refused with a reason."""

import pytest
from virtual_fleets import Heard

from accelbench.core.errors import SurroundingsError, UsageError
from accelbench.core.facts import DEVICE_CALIBRATED, HARDWARE_MEASURED, RUN_STARTED
from accelbench.fleet.node_probes import probe_nodes
from accelbench.judge.calibrations import calibrations_at
from accelbench.run import calibrating
from accelbench.store.database import Database
from accelbench.store.journal import read
from calibrating_cluster import Calibrating
from here_cluster import here_cluster
from made_up_calibration import made_calibration


@pytest.fixture
def made_up(monkeypatch):
    monkeypatch.setattr(calibrating, "calibrate", lambda device, *_: made_calibration(device))


def test_every_node_is_calibrated_and_stored_as_by_hardware_calibrate(tmp_path, made_up):
    database = Database(tmp_path / "store.duckdb")
    database.ensure()
    cluster = Calibrating(tmp_path, "abc")
    found = probe_nodes(cluster, ["cpu"], database.journals, Heard())
    assert [each.node for each in found] == ["a", "b", "c"]
    assert all(each.calibration and each.calibration.figures for each in found)
    journals = sorted(database.journals.glob("*.jsonl"))
    assert len(journals) == 3
    for journal in journals:
        assert [fact.kind for fact in read(journal)] == [HARDWARE_MEASURED, DEVICE_CALIBRATED]
    assert not database.fill().problems
    (newest,) = calibrations_at(database.path, lambda text: None).devices  # of one kind of device
    assert newest.device_name == "a cpu"
    _, runs = database.query("SELECT * FROM benchmark_runs")
    assert not runs  # no run was begun
    assert not [f for j in journals for f in read(j) if f.kind == RUN_STARTED]


def test_a_node_that_is_lost_or_cannot_is_told_with_why(tmp_path, monkeypatch):
    def refuses(device, *_):
        raise SurroundingsError("PyTorch cannot use it.", "Look at it.")

    monkeypatch.setattr(calibrating, "calibrate", refuses)
    (found,) = probe_nodes(Calibrating(tmp_path, "a"), [], tmp_path, Heard())
    assert (found.calibration, found.why) == (None, "PyTorch cannot use it.")
    monkeypatch.setattr(calibrating, "calibrate", lambda device, *_: made_calibration(device))
    cluster = Calibrating(tmp_path / "lost", "ab", lost=(1,))
    heard = Heard()
    here, lost = probe_nodes(cluster, [], tmp_path / "lost", heard)
    assert here.calibration is not None
    assert lost.calibration is None
    assert "every node that has cpu was lost" in lost.why
    assert heard.lost == ["b"]


def test_what_has_no_probes_is_refused(tmp_path):
    with pytest.raises(UsageError, match="There are no probes for 'openvino'"):
        probe_nodes(Calibrating(tmp_path, "a"), ["openvino"], tmp_path, Heard())
    with pytest.raises(SurroundingsError, match="No node has cuda"):
        probe_nodes(Calibrating(tmp_path, "a"), ["cuda"], tmp_path, Heard())


def test_a_runner_calibrates_this_machine(tmp_path, monkeypatch):
    """For real, in a second for all probes: what fits into it has a figure."""
    pytest.importorskip("torch")
    monkeypatch.setattr(calibrating, "SECONDS", 1.0)
    heard = Heard()
    with here_cluster(tmp_path, monkeypatch) as cluster:
        (found,) = probe_nodes(cluster(), ["cpu"], tmp_path, heard)
    assert found.calibration is not None, found.why
    assert found.calibration.limits is not None
