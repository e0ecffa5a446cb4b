import pytest
from scipy.stats import t as reference

from accelbench.measure.student import t_cdf, t_quantile


# Two-sided 95 % and 99 % points as printed in every statistics book.
@pytest.mark.parametrize(
    ("df", "p975", "p995"),
    [
        (1, 12.706, 63.657),
        (2, 4.303, 9.925),
        (4, 2.776, 4.604),
        (9, 2.262, 3.250),
        (30, 2.042, 2.750),
        (120, 1.980, 2.617),
    ],
)
def test_the_printed_table(df, p975, p995):
    assert round(t_quantile(0.975, df), 3) == p975
    assert round(t_quantile(0.995, df), 3) == p995


@pytest.mark.parametrize("df", [0.5, 1, 1.5, 2, 3, 7.3, 30, 1000, 1e6])
@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.005, 0.025, 0.3, 0.49, 0.6, 0.9, 0.9999])
def test_quantiles_agree_with_scipy(p, df):
    assert t_quantile(p, df) == pytest.approx(reference.ppf(p, df), rel=1e-9)


@pytest.mark.parametrize("df", [0.5, 1, 2.5, 10, 300])
@pytest.mark.parametrize("t", [-1e6, -30, -2, -0.01, 0, 0.3, 4, 1e3, float("inf"), float("-inf")])
def test_the_distribution_function_agrees_with_scipy(t, df):
    assert t_cdf(t, df) == pytest.approx(reference.cdf(t, df), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("df", [1, 4, 39.5])
def test_quantile_and_distribution_function_are_inverse_and_symmetric(df):
    for p in (0.01, 0.2, 0.5, 0.7, 0.995):
        assert t_cdf(t_quantile(p, df), df) == pytest.approx(p, rel=1e-10)
        assert t_quantile(p, df) == pytest.approx(-t_quantile(1 - p, df), rel=1e-9)


@pytest.mark.parametrize(("p", "df"), [(0, 5), (1, 5), (-0.1, 5), (0.9, 0), (0.9, -1)])
def test_what_has_no_quantile_is_refused(p, df):
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(p, df)
