"""A link in an output folder does not choose where files are made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from bodies import body

from accelbench.api.enhanced import EnhancedHardwareBenchmarkRunner
from accelbench.cli.services.running import OutputPlaces, ProfileFiles
from accelbench.core.errors import UsageError
from accelbench.exchange import aggregate, tree

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links are a privilege there")
RUN = {"run_id": "r", "started_at": "2026-01-02T03:04:05.000000Z", "command": "accelbench run"}
FOLDERS = ("raw_results", "processed_results", "profiles", "visualizations", "journals")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    found = tmp_path / "elsewhere"
    found.mkdir()
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    found = tmp_path / "out"
    found.mkdir()
    return found


@pytest.mark.parametrize("name", FOLDERS)
def test_a_link_to_elsewhere_is_refused_before_anything_is_measured(name, out, elsewhere):
    (out / name).symlink_to(elsewhere)
    says = f"{name} is a link to {elsewhere}; accelbench does not write through links"
    with pytest.raises(UsageError, match=says):
        OutputPlaces(use_database=False, output_dir=out).check()
    runner = EnhancedHardwareBenchmarkRunner(output_dir=out, no_database=True, verbose=False)
    with pytest.raises(UsageError, match=says):
        runner.run_benchmark("bert-tiny", hardware="cpu", batch_sizes=[1])
    assert list(elsewhere.iterdir()) == []
    assert [one.name for one in out.iterdir()] == [name]


def write_profile(out: Path) -> Any:
    return ProfileFiles(out, [])({"model": "m", "hardware": "cpu", "precision": "fp32"}, None)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("raw_results", lambda out: tree.write_output(out, RUN, [body(0)])),
        ("processed_results", aggregate.update_aggregate),
        ("profiles", write_profile),
    ],
)
def test_one_that_appears_while_it_is_measured_is_not_written_through_either(
    name, write, out, elsewhere
):
    (out / name).symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(UsageError, match="is a link to"):
        write(out)
    assert list(elsewhere.iterdir()) == []


def test_links_within_the_folder_and_to_it_are_fine(tmp_path, out, elsewhere):
    (out / "kept").mkdir()
    (out / "raw_results").symlink_to("kept")
    (tmp_path / "named").symlink_to(out)
    OutputPlaces(use_database=False, output_dir=tmp_path / "named").check()
    tree.write_output(tmp_path / "named", RUN, [body(0)])
    assert len(list((out / "kept").iterdir())) == 1


def test_a_link_in_the_place_of_a_file_is_replaced_or_passed_by(out, elsewhere):
    kept = elsewhere / "kept.json"
    kept.write_text("theirs")
    (out / "processed_results").mkdir()
    (out / "processed_results" / aggregate.NAME).symlink_to(kept)
    tree.write_output(out, RUN, [body(0)])
    assert kept.read_text() == "theirs"
    assert not (out / "processed_results" / aggregate.NAME).is_symlink()
