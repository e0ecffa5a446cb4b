"""No table of the terminal breaks a word, however long names are, at 80 columns and at 120."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich import box
from shells import ended
from stored_rows import store

from accelbench import cli
from accelbench.present.document import Table, columns
from accelbench.present.terminal.console import WordTable, console
from accelbench.present.terminal.documents import fitted

DB = "accelbench.duckdb"
WIDTHS = (80, 120)
MODEL = "a_model.of-somebody.who.likes.names.that-go-on.onnx"
DEVICE = "AMD-EPYC-7B13-64-Core-Processor-of-a-cloud's-machine"
ENGINES = ("onnxruntime", "an-engine-from-a-plugin-package")
OPTION = "a_setting_of_a_plugin=throughput_of_everything"
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
COMMIT = "0123456789abcdef"
WORD = st.text("abcdefghij-_/.:=", min_size=1, max_size=60)


def drawn(made: WordTable, width: int) -> list[str]:
    stream = io.StringIO()
    console(stream, width=width).print(made)
    return stream.getvalue().splitlines()


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.lists(WORD, min_size=1, max_size=4).map(" ".join),
            st.lists(WORD, min_size=1, max_size=3).map(" ".join),
            *([st.from_regex(r"\A[0-9]{1,3}(,[0-9]{3}){0,2}\Z")] * 4),
            WORD,
        ),
        min_size=1,
        max_size=4,
    ),
    width=st.sampled_from([62, *WIDTHS]),
    ruled=st.booleans(),
)
def test_every_word_and_figure_of_a_table_is_whole(rows, width, ruled):
    made = WordTable(box=box.SIMPLE_HEAD if ruled else None, pad_edge=False)
    for place, head in enumerate(("name", "where", "ms", "MB", "items/s", "error", "by")):
        made.add_column(head, **({"justify": "right", "no_wrap": True} if 2 <= place < 6 else {}))
    for row in rows:
        made.add_row(*row)
    lines = drawn(made, width)
    assert max(map(len, lines)) <= width
    words = [word for line in lines for word in line.split()]
    for word in (word for row in rows for cell in row for word in cell.split()):
        assert word in words, "\n".join(lines)


def test_tables_of_names_and_figures():
    # Names stand above their figures where both do not fit beside each other.
    rows = [(f"cpu {DEVICE}", "pytorch", "1.05", "25.6"), ("cuda", "jax", "0.85", "1,024")]
    made = fitted(Table(columns(("hardware", "engine", "p50 ms", "MB"), (2, 3)), rows), 60)
    assert [line.rstrip() for line in drawn(made, 60)] == [
        "hardware",
        "  engine   p50 ms     MB",
        "────────────────────────",
        f"cpu {DEVICE}",
        "  pytorch    1.05   25.6",
        "cuda",
        "  jax        0.85  1,024",
    ]
    # Where not even figures fit each has its heading.
    heads = columns(("on", "p50 ms", "items/s"), (1, 2))
    made = fitted(Table(heads, [("cpu", "1,234.5", "9,876")]), 16)
    assert [line.rstrip() for line in drawn(made, 16)] == [
        "cpu",
        "  p50 ms 1,234.5",
        "  items/s 9,876",
    ]
    # rich's own is for pairs of a name and a sentence alone.
    allowed = {"tables.py": 1, "word_table.py": 1}
    for path in sorted(Path(str(cli.__file__)).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        of_rich = re.search(r"rich\.table import .*\bTable\b", text)
        plain = len(re.findall(r"(?<!Word)\bTable\((?=\S)", text)) if of_rich else 0
        assert plain <= allowed.get(path.name, 0), path.name


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """A store in which every name is long, measured four times."""
    for day in range(1, 5):
        rows = [
            {
                "model": MODEL,
                "runtime": engine,
                "device_name": DEVICE,
                "batch_size": batch,
                "options": {OPTION.partition("=")[0]: OPTION.partition("=")[2]},
                "latency_p50_ms": 1234.5 * batch * place,
                "latency_ci_low_ms": 1000.0 * batch * place,
                "latency_ci_high_ms": 2345.6 * batch * place,
                "verification": "ok",
                "verification_error": 1e-6,
                "series_key": f"{engine}-{batch}",
                "started_at": f"2026-03-0{day}T03:04:05.000000Z",
                "quality": "unsteady",
            }
            for place, engine in enumerate(ENGINES, 1)
            for batch in BATCHES
        ]
        about = {"git_commit": COMMIT}
        store(tmp_path / DB, *rows, run=f"r{day}", about=about)
    return tmp_path


ASKED = [
    ("compare", "--pivot"),
    ("compare", "--by", "runtime"),
    ("recommend", MODEL),
    ("recommend",),
    ("recommend", MODEL, "--max-latency-ms", "9000", "--memory-mb", "4000"),
    ("history", "--all"),
    ("db", "sql", "SELECT DISTINCT model, device_name, runtime, batch_size FROM benchmark_results"),
    (),
]


@pytest.mark.usefixtures("long_names")
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_a_command_shows_long_names_whole(words, columns, command, monkeypatch, capsys):
    command("compare")  # in the store's folder
    monkeypatch.setenv("COLUMNS", str(columns))
    assert ended(monkeypatch, *words) in (0, 4)
    out = capsys.readouterr().out
    lines = out.splitlines()
    names = [name for name in (MODEL, DEVICE, *ENGINES, OPTION) if name[:9] in out]
    assert MODEL in names
    for name in names:
        # Every line that begins such a name has all of it.
        begun = [line for line in lines if name[:9] in line]
        assert all(name in line for line in begun), out
        broken = [line for line in lines if line.strip() and name.endswith(line.strip()[:12])]
        assert all(name in line for line in broken if len(line.strip()) >= 12), out


def test_a_pivot_shows_as_many_batches_at_a_time_as_there_is_room_for(long_names, command):
    _, out, _ = command("compare")("--pivot", "--db", str(long_names / DB))
    heads = [line.split() for line in out.splitlines() if "batch" in line.split()]
    shown = [int(batch) for line in heads for batch in re.findall(r"batch (\d+)", " ".join(line))]
    assert shown == list(BATCHES)
    assert len(heads) > 1
    assert max(map(len, out.splitlines())) <= 80
