"""The head of the map: how many lines each state has, and what its tests run in another's place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from guides_map import MAP, WORKS, Line
from map_commands import (
    AS_DOCUMENTED,
    BOTH_SMALL,
    FEW,
    QUICK,
    SEARCHED,
    SHORT,
    SMALL,
    SOME_CASES,
    WHOLE,
)

#: What stands between them is made: `ACCELBENCH_GOLDEN=write pytest tests/docs/test_guides_map.py`.
BEGINS, ENDS = "<!-- made: {name} -->", "<!-- end: {name} -->"
REFUSES = "refuses rightly here"
BATCHES = "--batch-sizes"


def counts(lines: Sequence[Line]) -> str:
    """How many lines of each document have each state."""
    kinds = [(line.document, REFUSES if line.lacks else line.state) for line in lines]
    found = Counter(kinds)
    due = sorted({state for _, state in kinds} - {WORKS, REFUSES})
    states = [WORKS, REFUSES, *due]
    documents = list(dict.fromkeys(line.document for line in lines))
    rows = [[name, *(found[name, state] for state in states)] for name in documents]
    rows.append(["all", *(sum(found[name, one] for name in documents) for one in states)])
    return _table(
        ["document", *states, "lines"],
        [[first, *numbers, sum(numbers)] for first, *numbers in rows],
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def swaps() -> str:
    """What the tests run in the place of what the documents say."""
    models = ", ".join(f"{name} → {small}" for name, small in sorted(SMALL.items()))
    fixed = " ".join(f"{name} {value}" for name, value in QUICK.items() if name != BATCHES)
    documented = "\n".join(f"  - `{command}`" for command in AS_DOCUMENTED)
    return f"""\
- Models: {models}. Where a command chooses its models itself, it is {SOME_CASES} cases of the set
  small, or as many as it names platforms.
- Counts: `{fixed}`, whatever a line says; a line that names small models itself keeps its own.
- Batch sizes above {FEW[-1]}: as many of {", ".join(FEW)} as the line has; without any,
  {QUICK[BATCHES]}.
- Sequences: {SHORT[-1]} tokens for fp16 training, WebGPU and `{WHOLE}`.
- Hardware: where a line names none, the CPU; `{WHOLE}` takes all that is present.
- `--framework both`: one launch of each, where the command takes five in turns; `--model both` is
  {BOTH_SMALL} in `make test`, both models themselves in `make test-full`.
- `recommend --verify`: `{" ".join(SEARCHED)}`; in `make test` in fp32 alone.
- Nothing, but for the CPU where no hardware is named: in `make test-full` these run as they stand:
{documented}"""


def made() -> Mapping[str, str]:
    """What the page holds between its marks, by their names."""
    from guides_map import LINES

    return {"counts": counts(LINES), "swaps": swaps()}


def parts_of(text: str) -> Mapping[str, str]:
    """What stands between the marks of a page."""
    return {name: _halves(text, name)[1].strip("\n") for name in made()}


def _halves(text: str, name: str) -> tuple[str, str, str]:
    before, begins, rest = text.partition(BEGINS.format(name=name))
    between, ends, after = rest.partition(ENDS.format(name=name))
    assert begins, f"{MAP.name} has no {begins or BEGINS.format(name=name)}"
    assert ends, f"{MAP.name} has no {ENDS.format(name=name)}"
    return before + begins, between, ends + after


def write() -> None:
    """Put what is made into the page."""
    text = MAP.read_text(encoding="utf-8")
    for name, block in made().items():
        before, _, after = _halves(text, name)
        text = f"{before}\n\n{block}\n\n{after}"
    MAP.write_text(text, encoding="utf-8")
