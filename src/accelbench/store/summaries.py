"""Summaries of samples: conditions in SQL of a result next to the samples that it is computed from.

`derived.find_contradictions` joins them: `step_ns` has the samples of whole steps, `timing` and
`per_sample` how they were taken, `phases` the samples of every phase by its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from accelbench.core.vocabulary import Timing
from accelbench.store.duck import quoted
from accelbench.store.rule import EXACT, OWN, ROUNDED, Rule, There

#: Samples are whole nanoseconds: summaries of other programs are of longer numbers.
_NANOSECOND_MS = 1.001e-6
#: The interval of a median spans at least so many √n ranks to each side: of independent samples it
#: spans 0.98, and more of samples that repeat one another.
_LEAST_RANKS = 0.75
PERCENTILES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}
#: A block is accepted if its samples exceed the time that it took by at most 0.1 %, and a tick of
#: the clock a sample, which is at most another 0.1 % of it.
_CLOCKS_APART = 1.01

#: Phases of a step whose samples are kept as `phase:NAME`, with their median in `NAME_ms`.
_PHASES = (
    *("prefill", "decode", "embed", "retrieve", "generate", "forward", "loss", "backward"),
    "optimizer",
)


NOT_BY_SAMPLES = "it is not what its samples give"
_STEP = "step_ns"
#: Samples of single steps: of blocks nothing is known of one step.
_EACH = f"coalesce(timing, {quoted(Timing.EACH.value)}) = {quoted(Timing.EACH.value)}"


def _ms(figure: str) -> str:
    return f"{figure}({_STEP}) / per_sample / 1e6"


def _rank(rank: str) -> str:
    return f"list_sort({_STEP})[least(len({_STEP}), greatest(1, ({rank})::BIGINT))] / 1e6"


def _stamps(request: str) -> str:
    """SQL for the median of a value of each request, from the stamps of its first token on."""
    begins = f"range(0, len({_TOKENS}), greatest(new_tokens, 1))"
    return f"list_median(list_transform({begins}, lambda i: {request})) / 1e6"


#: The stamps of all requests, one after another.
_TOKENS = "phases['tokens']"
#: What samples give, by the name of a column that is joined to their result.
VALUES = {
    "given_count": f"len({_STEP})",
    "given_total": f"list_sum({_STEP}) / 1e6",
    "given_mean": _ms("list_avg"),
    "given_min": _ms("list_min"),
    "given_max": _ms("list_max"),
    "given_p50": _ms("list_median"),
    "given_std": f"list_aggregate({_STEP}, 'stddev_samp') / 1e6",
    "given_std_least": f"list_aggregate({_STEP}, 'stddev_pop') / 1e6",
    **{
        f"given_{name}": f"list_aggregate({_STEP}, 'quantile_cont', {share}) / 1e6"
        for name, share in PERCENTILES.items()
    },
    # Other programs take the sample below or above.
    **{
        f"given_{name}_least": _rank(f"floor((len({_STEP}) - 1) * {share})")
        for name, share in PERCENTILES.items()
    },
    **{
        f"given_{name}_most": _rank(f"ceil(len({_STEP}) * {share}) + 1")
        for name, share in PERCENTILES.items()
    },
    **{f"given_{phase}": f"list_median(phases['phase:{phase}']) / 1e6" for phase in _PHASES},
    "given_ci_low_most": _rank(
        f"floor(len({_STEP}) * 0.5 - {_LEAST_RANKS} * sqrt(len({_STEP})) + 0.5)"
    ),
    "given_ci_high_least": _rank(
        f"ceil(len({_STEP}) * 0.5 + {_LEAST_RANKS} * sqrt(len({_STEP})) + 0.5)"
    ),
    "given_device": "list_median(phases['device']) / 1e6",
    "given_ttft": _stamps(f"{_TOKENS}[i + 1]"),
    "given_tpot": _stamps(
        f"({_TOKENS}[i + new_tokens] - {_TOKENS}[i + 1]) / nullif(new_tokens - 1, 0)"
    ),
}


class _Comparison:
    """Rules that compare columns of a table with the samples that are joined to it."""

    def __init__(self, has: There) -> None:
        self.has = has
        self.own = f"({OWN})" if has("protocol_version") else "false"
        self.count = "sample_count" if has("sample_count") else "NULL"
        self.tolerance = f"CASE WHEN {self.own} THEN {EXACT} ELSE {ROUNDED} END"

    def holds(self, column: str, condition: str, value: str, when: str = "true") -> Iterator[Rule]:
        """Yield that a condition holds of a column whose samples give a value."""
        if self.has(column):
            compared = f"({self.own} OR {self.count} IS NOT NULL) AND ({when})"
            holds = f"coalesce(NOT ({compared}) OR {condition}, true)"
            yield Rule(column, holds, NOT_BY_SAMPLES, value)

    def near(self, column: str, value: str, when: str = "true") -> Iterator[Rule]:
        """Yield that a column is a value of its samples."""
        slack = f"{self.tolerance} * abs({value}) + {_NANOSECOND_MS}"
        yield from self.holds(column, f"abs({column} - {value}) <= {slack}", value, when)


def sample_rules(has: There) -> Iterator[Rule]:
    """Yield the rules of a row next to its samples."""
    yield from _counts(_Comparison(has))
    yield from _steps(_Comparison(has))
    yield from _phases(_Comparison(has))


def _counts(compare: _Comparison) -> Iterator[Rule]:
    yield Rule("samples", f"coalesce(list_min({_STEP}) >= 0, true)", "a sample is below 0")
    if compare.has("latency_mean_ms"):
        empty = "given_count = 0 AND latency_mean_ms IS NOT NULL"
        yield Rule("samples", f"NOT coalesce({empty}, false)", "there is none, and there is a mean")
    same = f"coalesce(given_count = {compare.count}, NOT {compare.own})"
    holds = f"coalesce(given_count IS NULL OR {same}, true)"
    yield Rule("sample_count", holds, NOT_BY_SAMPLES, "given_count")
    fits = f"sampling_ms * {_CLOCKS_APART} >= given_total"
    yield from compare.holds("sampling_ms", fits, "given_total", compare.own)


def _steps(compare: _Comparison) -> Iterator[Rule]:
    yield from compare.near("latency_mean_ms", "given_mean")
    for name in ("min", "max", "p50"):
        yield from compare.near(f"latency_{name}_ms", f"given_{name}", _EACH)
    for name in PERCENTILES:
        yield from _percentile(compare, name)
    ends = ["latency_ci_low_ms", "latency_ci_high_ms"]
    ends += [f"latency_{name}_{end}_ms" for name in PERCENTILES for end in ("low", "high")]
    for column in ends:
        within = f"{column} BETWEEN given_min * (1 - {EXACT}) - {_NANOSECOND_MS}"
        within = f"{within} AND given_max * (1 + {EXACT}) + {_NANOSECOND_MS}"
        nearest = f"CASE WHEN {column} < given_min THEN given_min ELSE given_max END"
        yield from compare.holds(column, within, nearest, f"{compare.own} AND {_EACH}")
    ours = f"{compare.own} AND {_EACH}"
    low = f"latency_ci_low_ms <= given_ci_low_most * (1 + {EXACT}) + {_NANOSECOND_MS}"
    high = f"latency_ci_high_ms >= given_ci_high_least * (1 - {EXACT}) - {_NANOSECOND_MS}"
    yield from compare.holds("latency_ci_low_ms", low, "given_ci_low_most", ours)
    yield from compare.holds("latency_ci_high_ms", high, "given_ci_high_least", ours)
    # Other programs divide by n, where ours divides by n - 1.
    slack = f"({compare.tolerance} * latency_std_ms + {_NANOSECOND_MS})"
    between = f"latency_std_ms BETWEEN given_std_least - {slack} AND given_std + {slack}"
    yield from compare.holds("latency_std_ms", between, "given_std", _EACH)


def _percentile(compare: _Comparison, name: str) -> Iterator[Rule]:
    """Yield that a percentile is the interpolated one, or in other programs near its rank."""
    column, value = f"latency_{name}_ms", f"given_{name}"
    slack = f"({ROUNDED} * {column} + {_NANOSECOND_MS})"
    exact = f"abs({column} - {value}) <= {EXACT} * {value} + {_NANOSECOND_MS}"
    near = f"{column} BETWEEN {value}_least - {slack} AND {value}_most + {slack}"
    close = f"CASE WHEN {compare.own} THEN {exact} ELSE {near} END"
    yield from compare.holds(column, close, value, _EACH)


def _phases(compare: _Comparison) -> Iterator[Rule]:
    """Yield rules of phases, of a device's own timers, and of the stamps of tokens."""
    for phase in _PHASES:
        yield from compare.near(f"{phase}_ms", f"given_{phase}")
    yield from compare.near("device_time_ms", "given_device")
    whole = f"len({_TOKENS}) > 0 AND new_tokens > 0 AND len({_TOKENS}) % new_tokens = 0"
    for name in ("ttft", "tpot"):
        yield from compare.near(f"{name}_ms", f"given_{name}", whole)
