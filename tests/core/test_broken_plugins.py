"""Plugins that fail to import, that end the program or print: each is named, none takes it down."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from accelbench.core import plugins
from accelbench.core.errors import EXIT_ENVIRONMENT
from accelbench.core.plugins import ENGINES, HARDWARE, PluginError, load_all
from accelbench.hardware.detect import LazyInventory, detect, is_broken
from accelbench.run.plan.expand import installed_runtimes, plan_for
from accelbench.run.plan.request import Request

#: What each module does, and the exception that is reported of it.
BODIES = {
    "raising": ("raise RuntimeError('libfoo.so.3 is missing')", "RuntimeError"),
    "exiting": ("import sys; sys.exit('no licence')", "SystemExit"),
    "interrupting": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "unbuildable": ("def Thing(): raise OSError('no device')", "OSError"),
    "nameless": ("class Other: pass", "AttributeError"),
    "incomplete": ("class Thing: pass", "AttributeError"),
    "cardless": (
        "class Thing:\n    info = None\n    probe = supports = clock = open = print",
        "TypeError",
    ),
}
PRINTING = "import os\nprint('printed')\nos.write(1, b'written')\n"

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with one plugin into a folder of packages."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def put(name, body, group=ENGINES):
        module = f"broken_{name}"
        about = tmp_path / f"{module}-1.dist-info"
        about.mkdir()
        (tmp_path / f"{module}.py").write_text(body)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: broken-{name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {module}:Thing\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return put


@pytest.mark.parametrize("name", BODIES)
def test_it_is_handed_back_with_its_package_and_its_error(name, install):
    body, kind = BODIES[name]
    install(name, body)
    made = dict(load_all(ENGINES))
    error = made[name]
    assert isinstance(error, PluginError)
    assert error.package == f"broken-{name}"
    assert error.cause.startswith(kind)
    assert error.exit_code == EXIT_ENVIRONMENT
    assert not any(isinstance(one, PluginError) for key, one in made.items() if key != name)


def test_naming_it_raises_its_own_error(install):
    install("raising", BODIES["raising"][0])
    request = Request(models=(), runtimes=("raising",), hardware=("cpu",))
    with pytest.raises(PluginError, match=r"broken-raising.*libfoo\.so\.3"):
        plan_for(request, {}, installed_runtimes())

    install("exiting", BODIES["exiting"][0], HARDWARE)
    nothing = {}
    request = Request(models=(), hardware=("exiting:1",))
    with pytest.raises(PluginError, match=r"broken-exiting.*SystemExit"):
        plan_for(request, nothing, {})


def test_what_was_not_named_is_one_line(install, caplog, monkeypatch):
    monkeypatch.setattr(plugins, "_warned", set())
    install("raising", BODIES["raising"][0])
    assert "raising" not in installed_runtimes()
    assert "raising" not in installed_runtimes()
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == 1
    assert "broken-raising" in warnings[0].getMessage()


@pytest.mark.parametrize("body", ["raise SystemExit(3)", "return [1]", "return []", "1 / 0"])
def test_a_detector_that_fails_when_asked_is_broken(body, install, caplog, monkeypatch):
    monkeypatch.setattr(plugins, "_warned", set())
    install("failing", f"class Thing:\n    def detect(self):\n        {body}\n", HARDWARE)
    (answer,) = detect("failing")
    assert is_broken(answer)
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    assert LazyInventory()["failing"] == [answer]
    assert [record for record in caplog.records if record.levelname == "WARNING"]


def test_what_it_prints_is_no_output(install, capfd):
    install("printing", PRINTING)
    dict(load_all(ENGINES))
    printed = capfd.readouterr()
    assert printed.out == ""
    assert {"printed", "written"} <= set(printed.err.replace("\n", " ").split())


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
def test_the_users_own_interrupt_stays_one(install):
    install("slow", f"import os\nos.kill(os.getpid(), {int(signal.SIGINT)})\n")
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        dict(load_all(ENGINES))
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_command_goes_on_and_its_json_is_whole(install, tmp_path):
    for name in ("raising", "exiting", "interrupting"):
        install(name, PRINTING + BODIES[name][0])
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "accelbench", "hardware", "cpu", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    assert set(json.loads(done.stdout)["broken_runtimes"]) == {"raising", "exiting", "interrupting"}
