"""A page with onnxruntime-web, written by hand: what anybody would put up to time a model.

    python benchmarks/bare_page.py wasm|webnn|webgpu FOLDER THREADS STEPS WARMUP

FOLDER is an artefact's; the browser is the one that accelbench takes; the mean and the median in
milliseconds are the last thing printed: a step may be too short for a page's clock. It shares no
code with the browser runtime but its switches and files. `browser_page.py` also has a browser of
ours visit it.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from accelbench.core.protocols import Device
from accelbench.engines.browser.assets import engine_folder
from accelbench.engines.browser.process import SWITCHES
from accelbench.hardware.detect import detect

PAGE = """<!doctype html><script type="module">
const asked = ASKED;
const build = asked.provider === "wasm"
  ? ["ort.wasm.min.mjs", "ort-wasm-simd-threaded"]
  : ["ort.webgpu.min.mjs", "ort-wasm-simd-threaded.asyncify"];
const ort = await import(`/ort/${build[0]}`);
ort.env.wasm.wasmPaths = { mjs: `/ort/${build[1]}.mjs`, wasm: `/ort/${build[1]}.wasm` };
if (asked.threads) ort.env.wasm.numThreads = asked.threads;
const session = await ort.InferenceSession.create("/model/" + asked.file, {
  executionProviders: asked.provider === "webnn"
    ? [{ name: "webnn", deviceType: "cpu" }]
    : [asked.provider],
  externalData: asked.external.map((name) => ({ path: name, data: "/model/" + name })),
});
const feeds = {};
for (const { name, dtype, shape } of asked.inputs) {
  if (!session.inputNames.includes(name)) continue;
  const size = shape.reduce((a, b) => a * b, 1);
  const data = dtype === "int64"
    ? BigInt64Array.from(Array(size), (_, i) => name.includes("mask") ? 1n : BigInt(5 + i % 495))
    : Float32Array.from({ length: size }, () => Math.random() * 2 - 1);
  feeds[name] = new ort.Tensor(dtype, data, shape);
}
for (let i = 0; i < asked.warmup; i++) await session.run(feeds);
const times = [];
const start = performance.now();
for (let i = 0; i < asked.steps; i++) {
  const before = performance.now();
  await session.run(feeds);
  times.push(performance.now() - before);
}
const mean = (performance.now() - start) / asked.steps;
times.sort((a, b) => a - b);
const middle = asked.steps >> 1;
const median = asked.steps % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
const next = await fetch("/done", { method: "POST", body: JSON.stringify({ mean, median }) });
const back = await next.text();
if (back) location.replace(back);
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """Files of three folders, and the page's answer."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *given: Any, roots: dict[str, Path], page: Any, answer: Any) -> None:
        self._roots, self._page, self._answer = roots, page, answer
        super().__init__(*given)

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def translate_path(self, path: str) -> str:
        _, root, name = path.split("/", 2)
        return str(self._roots[root] / name)

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/index.html"):
            super().do_GET()
            return
        body = self._page().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's word
        """Nothing is to be printed."""


class Site:
    """The page on a server of its own, and what it found."""

    def __init__(self, provider: str, folder: Path, threads: int, steps: int, warmup: int) -> None:
        manifest = json.loads((folder / "manifest.json").read_text())
        around = {manifest["file"], "manifest.json"}
        self.asked = {
            "provider": provider,
            "file": manifest["file"],
            "external": [p.name for p in folder.iterdir() if p.name not in around],
            "threads": threads,
            "steps": steps,
            "warmup": warmup,
            "inputs": [
                {
                    "name": one["file_name"],
                    "dtype": one["dtype"],
                    "shape": [1 if size == "batch" else size for size in one["shape"]],
                }
                for one in manifest["inputs"]
            ],
        }
        engine = engine_folder()
        assert engine is not None, "accelbench setup browser"
        self.found: queue.Queue[dict[str, float]] = queue.Queue()
        #: Where the page goes when it has answered; nowhere where it is empty.
        self.back = ""
        handler = partial(
            Handler,
            roots={"ort": engine, "model": folder},
            page=lambda: PAGE.replace("ASKED", json.dumps(self.asked)),
            answer=self._answered,
        )
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def _answered(self, found: dict[str, float]) -> str:
        self.found.put(found)
        return self.back


def main() -> None:
    provider, folder, *numbers = sys.argv[1:]
    site = Site(provider, Path(folder), *map(int, numbers))
    (device, *_) = detect(provider)
    assert isinstance(device, Device), device
    program = str(device.details["path"])
    with tempfile.TemporaryDirectory(prefix="accelbench-page-", ignore_cleanup_errors=True) as home:
        command = [program, "--headless=new", "--no-sandbox", f"--user-data-dir={home}"]
        command += [*SWITCHES[provider], site.address]
        nowhere = subprocess.DEVNULL
        browser = subprocess.Popen(command, stdout=nowhere, stderr=nowhere)
        try:
            print(site.found.get(timeout=300))
        except queue.Empty as error:
            raise SystemExit("the page did not answer") from error
        finally:
            browser.kill()
            browser.wait()


if __name__ == "__main__":
    main()
