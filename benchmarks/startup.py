"""Start-up: `accelbench --help` against a bare typer program with two commands.

python benchmarks/startup.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from keeping import bounded, interleaved, keep

LIMIT = 1.3

BARE = """
import typer

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    print(name)


@app.command()
def bye(name: str) -> None:
    print(name)


app()
"""


def seconds(command: list[str]) -> float:
    """Wall time of one process, the best of three: a start is either cold or it is not."""
    best = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([*command, "--help"], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "bare.py"
        program.write_text(BARE)
        bare = [sys.executable, str(program)]
        ours = [str(Path(sys.executable).with_name("accelbench"))]
        figures = interleaved(lambda: seconds(ours), lambda: seconds(bare), 10)
    reached = bounded("start-up", figures, LIMIT)
    keep("startup", {**figures, "reached": reached})


if __name__ == "__main__":
    main()
