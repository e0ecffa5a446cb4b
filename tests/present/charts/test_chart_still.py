"""A picture in which nothing is pointed at looks as the one that can be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest
from made_up_charts import HOSTILE, spec_of, values

from accelbench.present.charts import CHARTS, draw
from accelbench.present.charts.draw import still

pytest.importorskip("vl_convert")

#: Words of marks, which a picture that stands still has none of.
_WORDS = re.compile(r' (?:aria-[a-z]+|role|aria-roledescription)="[^"]*"')
#: What the engine numbers over all that it draws.
_NUMBERED = re.compile(r"(clip|gradient_)\d+")


def looks(svg: str) -> str:
    return _NUMBERED.sub("", _WORDS.sub("", svg))


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        yield from value
        for member in value.values():
            yield from keys(member)
    elif isinstance(value, list | tuple):
        for member in value:
            yield from keys(member)


@pytest.mark.parametrize("name", CHARTS)
def test_it_looks_the_same(name):
    spec = spec_of(name)
    alone, whole = draw.svg(still(spec)), draw.svg(spec)
    assert looks(alone) == looks(whole)
    assert len(alone) < len(whole)


def test_still_pictures():
    # Names chosen with bad intent look the same.
    for names in pairwise(HOSTILE):
        spec = spec_of("pareto", names)
        assert looks(draw.svg(still(spec))) == looks(draw.svg(spec))
    # Nothing is told of a mark and what only that told is left out.
    spec = spec_of("pareto")
    alone = still(spec)
    assert "tooltip" in set(keys(spec))
    assert "tooltip" not in set(keys(alone))
    told, drawn = ({name for record in values(one) for name in record} for one in (spec, alone))
    assert {"samples", "date"} <= told
    assert not {"samples", "date"} & drawn
    assert {"ms", "value", "paint"} <= drawn
    assert "aria" not in spec["config"]  # what was given stays as it is
