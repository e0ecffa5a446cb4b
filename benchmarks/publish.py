"""A published bundle at scale: what it weighs, and how soon its pages are there.

Public tables are repeated until there are so many results, each run's launches a configuration of
their own, as in `dashboard.py`. They are published, and looked at in Chromium from a plain server
of files on loopback: the first paint as the browser reports it, the moment at which the table
answers, and a filter from its change to the next frame.

    python benchmarks/publish.py --tidy timm.parquet aihub.parquet …  [--results 100000]
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from dashboard import made

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "present"))

from chrome import Chrome, program

FIRST_PAINT_S = 1.5
_TIMES = 5
_PAGES = ("index.html", "results.html", "models.html", "charts.html")

_PAINT = """
new Promise((done) => new PerformanceObserver((list) => {
  for (const one of list.getEntries())
    if (one.name === 'first-contentful-paint') done(one.startTime);
}).observe({type: 'paint', buffered: true}))
"""
_READY = "document.documentElement.dataset.ready === 'yes' ? performance.now() : 0"
#: Set a filter as a hand would; what is shown afterwards is there with the frame after it.
_FILTERED = """
(async () => {
  const one = document.querySelector('#filters input[type=checkbox]');
  const start = performance.now();
  one.click();
  await new Promise(requestAnimationFrame);
  await new Promise((done) => { const turn = new MessageChannel(); turn.port1.onmessage = done;
    turn.port2.postMessage(0); });
  return performance.now() - start;
})()
"""


class _Files(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """A plain server of files on loopback."""
    handler = functools.partial(_Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def looked_at(folder: Path, tab: Chrome) -> dict[str, Any]:
    """Figures of one bundle."""
    figures: dict[str, Any] = {"first_paint_ms": {}}
    with hosted(folder) as address:
        for page in (page for page in _PAGES if (folder / page).is_file()):
            times = []
            for _ in range(_TIMES):
                tab.go(f"{address}/{page}")
                times.append(float(tab.js(_PAINT)))
            figures["first_paint_ms"][page] = median(times)
        tab.go(f"{address}/results.html")
        tab.until(lambda: tab.js(_READY))
        figures["table_ready_ms"] = tab.js(_READY)
        figures["configurations"] = tab.js("document.querySelector('#count').textContent")
        figures["filter_ms"] = median(float(tab.js(_FILTERED)) for _ in range(_TIMES))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidy", type=Path, nargs="+", required=True)
    parser.add_argument("--results", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=100)
    given = parser.parse_args()
    where = program()
    if where is None:
        raise SystemExit("no Chromium is here: accelbench setup browser --with-chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = made(folder, given.tidy, given.results, many=True)
        bundle = folder / "bundle"
        start = time.monotonic()
        words = ["publish", str(bundle), "--db", str(file), "--pages", str(given.pages)]
        subprocess.run([sys.executable, "-m", "accelbench", *words], check=True)
        seconds = time.monotonic() - start
        sizes = {path: path.stat().st_size for path in bundle.rglob("*") if path.is_file()}
        with Chrome(where) as tab:
            figures = looked_at(bundle, tab)
        figures |= {
            "publish_s": seconds,
            "files": len(sizes),
            "bytes": sum(sizes.values()),
            "parquet_bytes": sizes[bundle / "results.parquet"],
        }
    sys.stdout.write(json.dumps(figures, indent=1) + "\n")
    worst = max(figures["first_paint_ms"].values()) / 1000
    verdict = "within" if worst <= FIRST_PAINT_S else "over"
    sys.stdout.write(f"first paint {worst:.2f} s: {verdict} {FIRST_PAINT_S} s\n")


if __name__ == "__main__":
    main()
