"""RunSpec: what its fields declare, and values that do not fit them."""

import pytest

from accelbench.cli.arguments.resolved_values import spec_of
from accelbench.cli.arguments.run_spec_options import defaults
from accelbench.core.formatting import format_duration, parse_duration
from accelbench.core.run_options import (
    GROUPS,
    JobSettings,
    RunSettings,
    RunSpec,
    field_of,
    run_fields,
)


def test_every_option_has_its_place():
    fields = run_fields()
    assert {one.group for one in fields} == set(GROUPS)
    assert [one.name for one in fields if not one.about] == []
    keys = [key for one in fields for key in (one.key, *one.columns)]
    assert len(keys) == len(set(keys))

    assert spec_of(defaults()) == RunSpec(sizes=spec_of(defaults()).sizes)
    assert not any(spec_of(defaults()).sizes.values())
    for key in ("batch_sizes", "batch-sizes", "batch_size"):
        known = field_of(key)
        assert known.name == "batch_sizes"
    assert field_of("browser") is None  # a plan that somebody sends starts no program
    settings = RunSpec(threads=4, launches=3).for_options({"threads": 2, "compile": True})
    assert (settings.threads, settings.launches) == (2, 3)
    assert set(JobSettings.names()) < set(RunSettings.names()) < set(RunSpec.names())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"launches": "many"}, r"int.*\$\.launches"),
        ({"launches": 0}, r">= 1.*\$\.launches"),
        ({"seed": -1}, r">= 0.*\$\.seed"),
        ({"timeout": None}, r"\$\.timeout"),
    ],
)
def test_a_journal_with_a_wrong_value_is_refused_by_its_path(body, said):
    with pytest.raises(ValueError, match=said):
        RunSettings.from_dict(body)


@pytest.mark.parametrize("text", ["90s", "10m", "1h", "0.5s", "36h"])
def test_a_duration_is_read_as_it_is_written(text):
    assert format_duration(parse_duration(text, "--timeout") or 0) == text
