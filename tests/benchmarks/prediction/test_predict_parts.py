"""The parts of a prediction, each by hand."""

import numpy as np
import pytest

from accelbench.predict.scoring import Predictions, score
from accelbench.predict.signatures import CLASSES
from predict_tables import FAMILIES, operators
from prediction.anchors import ResidualInputs, choose_anchors, condition
from prediction.boosting import _ridge, fit_regression
from prediction.graphs import graphs_of
from prediction.intervals import half_width, weighted_quantile
from prediction.network_training import NetworkTargets, _Fit, train_network
from prediction.operator_features import operator_features, pooled_features
from prediction.operator_network import ConfigurationLimits, GraphBatches, OperatorNetwork


def some_graphs():
    rng = np.random.default_rng(0)
    rows = [row for n, f in enumerate(FAMILIES) for row in operators(rng, f, n)]
    return graphs_of({name: [row[name] for row in rows] for name in rows[0]})


def test_pooled_shares_sum_to_one():
    pooled = pooled_features(some_graphs())
    assert pooled.shares.shape == (len(FAMILIES), len(CLASSES))
    assert np.allclose(pooled.shares.sum(axis=1), 1)
    assert np.isfinite(pooled.values).all()


def test_numpy_evaluates_what_torch_trained():
    torch = pytest.importorskip("torch")
    graphs = some_graphs()
    features = operator_features(graphs)
    limits = ConfigurationLimits(
        np.array([71.0, 165.0]), np.array([936.0, 1008.0]), np.array([2.0, 2.0]), np.array([0, 1])
    )
    chosen = np.array([4, 0, 2])
    batch = np.array([[1.0, 64.0], [8.0, 8.0], [256.0, 2.0]])
    targets = NetworkTargets(chosen, np.log(np.array([[1, 2], [3, np.nan], [2, 1.0]])), batch)
    fit = _Fit(torch, graphs, features, targets, limits, seed=3)
    fit.begin(4)
    for _ in range(4):
        fit.step(np.array([0, 1, 2]))
    expected = fit._log_ms(np.array([0, 1, 2])).detach().numpy()
    weights = {name: value.detach().double().numpy() for name, value in fit.weights.items()}
    network = OperatorNetwork(weights, limits)
    for number in range(2):
        pairs = GraphBatches(chosen, batch[:, number])
        found = np.log(network.times(graphs, network.hidden(features), pairs, number).total)
        assert found == pytest.approx(expected[:, number], abs=1e-4)


def test_training_twice_gives_the_same_weights():
    pytest.importorskip("torch")
    graphs = some_graphs()
    features = operator_features(graphs)
    limits = ConfigurationLimits(
        np.array([71.0]), np.array([936.0]), np.array([2.0]), np.array([0])
    )
    number = len(graphs)
    targets = NetworkTargets(np.arange(number), np.zeros((number, 1)), np.ones((number, 1)))
    first, second = (
        train_network(graphs, features, targets, limits, epochs=2).weights for _ in range(2)
    )
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_an_anchor_shifts_a_whole_device():
    rng = np.random.default_rng(1)
    inputs = ResidualInputs(
        rng.dirichlet(np.ones(4), 60), rng.normal(size=(60, 3)), np.zeros(60, dtype=np.int64),
        np.full(60, 0.03),
    )  # fmt: skip
    truth = 0.3 + 0.1 * inputs.shares[:, 0] + rng.normal(0, 0.01, 60)
    anchors = choose_anchors(inputs, 8)
    assert len(set(anchors)) == 8
    mean, deviation = condition(inputs, anchors, truth[anchors])
    assert np.median(np.abs(mean - truth)) < 0.03
    assert (deviation > 0).all()
    assert deviation.mean() < 0.15


def test_anchors_take_turns_among_configurations():
    """All anchors lay in the first of two configurations whose shares are alike."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.ones(5), 50)
    inputs = ResidualInputs(
        np.vstack([shares, shares]), np.zeros((100, 1)), np.repeat([0, 1], 50), np.full(100, 0.1)
    )  # fmt: skip
    chosen = choose_anchors(inputs, 10)
    assert np.bincount(inputs.configuration[chosen]).tolist() == [5, 5]


def test_anchors_are_models_that_were_measured_elsewhere():
    """An anchor on a model that is itself predicted says more of the model than of the device."""
    rng = np.random.default_rng(5)
    noise = np.where(np.arange(60) % 3 == 0, 0.1, 0.09)
    inputs = ResidualInputs(
        rng.dirichlet(np.ones(4), 60), np.zeros((60, 1)), np.zeros(60, dtype=np.int64), noise
    )
    assert (noise[choose_anchors(inputs, 10)] == 0.09).all()


def test_anchors_tell_computing_from_memory():
    """Ten anchors gained nothing where a card's arithmetic and its memory erred apart."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet(np.full(6, 0.5), 300)
    truth = shares @ np.array([0.3, -0.2, 0.1, -0.3, 0.2, 0.0]) + rng.normal(0, 0.01, 300)
    inputs = ResidualInputs(
        shares, np.zeros((300, 1)), np.zeros(300, dtype=np.int64), np.full(300, 0.09)
    )
    chosen = choose_anchors(inputs, 10)
    mean, _ = condition(inputs, chosen, truth[chosen])
    assert np.median(np.abs(truth - mean)) < 0.5 * np.median(np.abs(truth))


def test_more_anchors_than_rows_are_all_rows():
    inputs = ResidualInputs(
        np.eye(3), np.zeros((3, 1)), np.zeros(3, dtype=np.int64), np.full(3, 0.1)
    )
    assert list(choose_anchors(inputs, 10)) == [0, 1, 2]


def test_quantiles_count_weights():
    values = np.arange(1.0, 101.0)
    assert weighted_quantile(values, np.ones(100), 0.9) == 91
    assert np.isnan(weighted_quantile(np.zeros(0), np.zeros(0), 0.9))


def test_a_large_family_does_not_drown_the_others():
    errors = np.concatenate([np.full(900, 0.01), np.full(40, 0.5)])
    families = ["large"] * 900 + [f"small {n}" for n in range(40)]
    assert half_width(errors, families) == 0.5


def test_ridge_finds_a_linear_law():
    rng = np.random.default_rng(2)
    features = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 3, 200)])
    target = features[:, 0] * 2 + features[:, 3]
    fit = _ridge(features, target, None, (3,))
    assert np.abs(fit(features) - target).mean() < 0.3


def test_scores_leave_anchors_out():
    predictions = Predictions(
        np.log(np.array([1.1, 5.0, 2.0])), np.full(3, 0.2), ("a",) * 3,
        np.array([False, True, False]),
    )  # fmt: skip
    found = score(predictions, np.array([1.0, 1.0, 1.0]), np.arange(3))
    assert (found["n"], found["mdape"], found["within25"]) == (2, 55.0, 50.0)
    assert found["coverage90"] == 50.0


def test_boosting_takes_columns_of_which_nothing_is_known():
    """A table without parameters ended in an error of scikit-learn's own."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    known = rng.normal(size=200)
    features = np.column_stack([known, np.full(200, np.nan), np.zeros(200)])
    fit = fit_regression(features, np.sign(known), trees=20)
    found = fit(np.array([[-2.0, np.nan, 0.0], [2.0, 1.0, 0.0]]))
    assert found[0] < 0 < found[1]
