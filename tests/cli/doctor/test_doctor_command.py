"""`accelbench doctor` as a command: its answer, its page, and what it imports."""

import io
import json
import subprocess
import sys
from dataclasses import replace

from doctor_world import installed
from shells import ended

from accelbench.cli.commands import doctor as command
from accelbench.hardware.doctor.checks import examine
from accelbench.hardware.doctor.world import Finding, Health
from accelbench.present.terminal.documents import show
from accelbench.present.terminal.hardware import doctor_document


def run(monkeypatch, capsys, world, *arguments):
    monkeypatch.setattr(command, "world", lambda db, timeout: world)
    return ended(monkeypatch, "doctor", *arguments), capsys.readouterr().out


def test_the_command_says_no_only_where_something_installed_is_ill(here, monkeypatch, capsys):
    code, out = run(monkeypatch, capsys, here, "--json")
    said = json.loads(out)
    assert (code, said["ok"]) == (0, True)
    assert said["counts"]["missing"] > 0
    ticks = iter(range(0, 10**9, 50))
    ill = replace(installed(here, ray="2.60", amdsmi="6.4"), clock_ns=lambda: next(ticks))
    code, out = run(monkeypatch, capsys, ill, "--json")
    said = json.loads(out)
    assert (code, said["ok"], said["counts"]["clash"]) == (3, False, 1)
    (clash,) = [one for one in said["checks"] if one["status"] == "clash"]
    assert clash["group"] == "packages"
    assert "pip uninstall -y amdsmi" in clash["remedy"]


def test_the_page_fits_80_columns_and_shows_what_a_terminal_would_obey(here):
    hostile = Finding(
        "evil\x1b[2J", Health.BROKEN, "said\x1b]0;title\x07 " + "x" * 200, "[red]mend"
    )
    out = io.StringIO()
    show(doctor_document([*examine(here), ("browser", hostile)]), out, width=80)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "[red]mend" in text
    assert "Something needs mending:" in text


def test_nothing_heavy_is_imported_by_looking():
    code = (
        "import sys, json; from accelbench.cli.commands.doctor import world;"
        "from dataclasses import replace; from accelbench.hardware.doctor.checks import examine;"
        "found = examine(replace(world(None, 60), detect=dict, runtimes=list));"
        "sys.stderr.write(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert not loaded & {"torch", "jax", "onnx", "onnxruntime", "openvino", "duckdb", "numpy"}
