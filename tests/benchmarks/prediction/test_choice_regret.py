"""Regret of choosing by predictions, beside a rule that never changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from accelbench.predict.scoring import Predictions
from prediction.choice_regret import MARGIN, ConstantRule, chosen_among, on_a_device, regrets
from prediction.measurements import TableConfiguration, TableMeasurement

EAGER = TableConfiguration("a card", "cuda", "torch 2.4 eager", "amp", "inference", "nchw", "")
COMPILED = replace(EAGER, runtime="torch 2.4 inductor")
HALF = replace(EAGER, precision="bf16")


def row(model: str, place: TableConfiguration, ms: float, batch: int = 8) -> TableMeasurement:
    return TableMeasurement(model, "family", 224, batch, place, ms, 1.0, 1.0, 1.0, "")


def table(*times: dict[TableConfiguration, float], name: str = "m") -> list[TableMeasurement]:
    return [
        row(f"{name}{n}", place, ms) for n, model in enumerate(times) for place, ms in model.items()
    ]


def said(test: list[TableMeasurement], *values: float, half: float = 0.1) -> Predictions:
    size = len(test)
    return Predictions(
        np.log(values), np.full(size, half), ("basis",) * size, np.zeros(size, dtype=bool)
    )


#: Compiled is usually twice as fast as eager.
TRAIN = table({EAGER: 10.0, COMPILED: 5.0}, {EAGER: 30.0, COMPILED: 16.0}, name="known")


def test_the_constant_rule_takes_items_that_configurations_have_in_common():
    # Eager ran the large models alone: its mean is larger, and it is faster all the same.
    train = table(
        {EAGER: 9.0, COMPILED: 10.0}, {COMPILED: 1.0, HALF: 2.0}, {EAGER: 500.0, HALF: 1200.0}
    )
    effects = ConstantRule.of(train, on_a_device).effects
    assert effects[EAGER] < effects[COMPILED] < effects[HALF]


def test_a_configuration_that_was_never_measured_is_taken_for_the_nearest():
    rule = ConstantRule.of(TRAIN, on_a_device)
    other = replace(COMPILED, hardware="another card")
    assert rule.of_configuration(other) == rule.effects[COMPILED]
    assert ConstantRule({}).of_configuration(other) == 0.0


def test_regret_is_what_a_choice_takes_over_the_best():
    # The second model is one of few that eager suits better.
    test = table({EAGER: 20.0, COMPILED: 10.0}, {EAGER: 10.0, COMPILED: 15.0})
    found = regrets(TRAIN, test, said(test, 20.0, 10.0, 10.0, 15.0))
    assert found["choices"] == 2
    assert (found["mean"], found["median"]) == (0.0, 0.0)
    assert (found["constant_mean"], found["constant_median"]) == (25.0, 25.0)
    wrong = regrets(TRAIN, test, said(test, 10.0, 20.0, 10.0, 15.0))
    assert (wrong["mean"], wrong["constant_mean"]) == (50.0, 25.0)  # 100 % over, and 0
    kinds = found["per_kind"]
    assert isinstance(kinds, dict)
    assert kinds["cuda"]["choices"] == 2


def test_within_its_uncertainty_a_prediction_leaves_the_usual_choice():
    half, rule = np.full(2, 0.5), np.array([0.0, 0.01])
    usual, faster = 0, 1
    barely = np.array([0.0, -0.9 * MARGIN * 0.5])
    clearly = np.array([0.0, -1.1 * MARGIN * 0.5])
    assert chosen_among(barely, half, rule, known=True) == usual
    assert chosen_among(clearly, half, rule, known=True) == faster


def test_of_configurations_that_were_never_measured_the_rule_is_a_part_of_the_choice():
    half, rule = np.full(2, 0.5), np.array([0.0, 0.1])
    assert chosen_among(np.array([0.0, -0.03]), half, rule, known=False) == 0
    assert chosen_among(np.array([0.0, -0.06]), half, rule, known=False) == 1


def test_other_batches_devices_and_modes_are_other_choices():
    card = replace(EAGER, hardware="another card")
    test = [
        row("m", EAGER, 10.0), row("m", COMPILED, 5.0, batch=16), row("m", card, 1.0),
        row("m", replace(COMPILED, mode="training"), 1.0),
    ]  # fmt: skip
    found = regrets(TRAIN, test, said(test, 10.0, 5.0, 1.0, 1.0))
    assert found["choices"] == 0
    assert found["mean"] is None
    assert found["per_kind"] == {}
    devices = found["any_device"]
    assert isinstance(devices, dict)
    assert (devices["choices"], devices["mean"]) == (1, 0.0)  # one card against the other


def test_anchors_and_rows_without_a_prediction_are_not_chosen_among():
    test = table({EAGER: 20.0, COMPILED: 10.0, HALF: 5.0})
    predictions = said(test, 20.0, 10.0, 5.0)
    predictions.anchor[2] = True
    assert regrets(TRAIN, test, predictions)["mean"] == pytest.approx(0.0)
    predictions.log_value[0] = np.nan
    assert regrets(TRAIN, test, predictions)["choices"] == 0
