"""How far predictions are taken to be off, by what was held out."""

from __future__ import annotations

import numpy as np
import pytest

from accelbench.predict.signatures import CLASSES
from prediction.calibration import Calibration, _reach
from prediction.cross_fits import folds_of
from prediction.graph_predictor import Cells, GraphTable
from prediction.graphs import graphs_of
from prediction.measurements import TableConfiguration
from prediction.transfer import BOTH_NEW, NEW_HARDWARE, NEW_MODEL

FIGURES = ("macs", "input_elements", "weight_elements", "output_elements", "m", "n", "k",
           "groups", "kernel", "stride", "count")  # fmt: skip


def configuration(hardware: str, runtime: str = "torch 2.4.0 eager") -> TableConfiguration:
    return TableConfiguration(hardware, "cuda", runtime, "amp", "inference", "nchw", "")


def cells(*configurations: TableConfiguration) -> Cells:
    families = ("a", "a", "b", "c", "d", "d")
    number = len(families)
    return Cells(
        configurations, np.zeros(number, dtype=np.int64), np.zeros(number, dtype=np.int64),
        np.ones(number), np.zeros(number), families,
    )  # fmt: skip


def test_a_model_and_a_card_that_are_new_are_off_by_both():
    """Half a logarithm was taken for both, whatever new models were off by."""
    found = Calibration("cuda", {NEW_MODEL: 0.3, NEW_HARDWARE: 0.4})
    assert found.half_width(BOTH_NEW) == pytest.approx(0.5)


def test_a_lone_cpu_says_less_of_others_than_a_card():
    """A new CPU's interval was as narrow as a new card's."""
    assert Calibration("cpu").half_width(NEW_HARDWARE) > 0.5
    assert Calibration("cuda").half_width(NEW_HARDWARE) < 0.3
    assert Calibration("cpu").deviations(NEW_HARDWARE) > Calibration("cuda").deviations(
        NEW_HARDWARE
    )


def test_devices_are_held_out_among_like_software():
    known = cells(configuration("RTX 4090"), configuration("RTX 3090", "torch 1.10 eager"))
    same = _reach(known, [configuration("RTX 5090")])
    older = _reach(known, [configuration("RTX 5090", "torch 2.4.0 inductor")])
    assert same < 10 < older


def test_folds_part_families():
    columns = {"model": ["one"], "img_size": [224], "op_class": [CLASSES[0]],
               **{name: [4.0] for name in FIGURES}}  # fmt: skip
    table = GraphTable.of(graphs_of(columns))
    known = cells(configuration("RTX 4090"))
    folds = folds_of(table, known, 3, 0)
    assert sorted(int(row) for fold in folds for row in fold.rows(known)) == list(range(6))
    for fold in folds:
        unseen = {known.families[row] for row in fold.rows(known)}
        assert not unseen & set(fold.predictor.cells.families)
