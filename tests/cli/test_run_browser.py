"""`accelbench run` and `hardware` with a browser that is named and not there."""

import json

from shells import Command

from accelbench.core.errors import EXIT_ENVIRONMENT, EXIT_USAGE
from accelbench.hardware.browsers import BROWSER_VARIABLE


def test_an_option_that_leads_nowhere_is_refused_before_anything_is_measured(
    shell, monkeypatch, capfd
):
    words = ("resnet-tiny", "--hardware", "webgpu", "--browser", "/nowhere", "--no-database")
    said = "There is no browser at '/nowhere'. Give the program's path."
    assert said in shell.refused(*words, code=EXIT_USAGE)
    hardware = Command("hardware", monkeypatch, capfd)
    code, out, err = hardware("webgpu", "--browser", "/nowhere")
    assert (code, out, err) == (EXIT_USAGE, "", f"accelbench: {said}\n")


def test_a_name_in_the_environment_that_leads_nowhere_ends_each_case_with_what_to_do(
    command, monkeypatch, tmp_path
):
    monkeypatch.setenv(BROWSER_VARIABLE, str(tmp_path / "gone"))
    monkeypatch.chdir(tmp_path)
    words = ("resnet-tiny", "--hardware", "wasm", "--batch-sizes", "1", "--no-database")
    code, out, err = command("run")(*words, "--json")
    assert code == EXIT_ENVIRONMENT
    assert "Nothing was measured on wasm" in err
    (case,) = json.loads(out)["results"]
    assert (case["status"], case["reason"]) == ("unsupported", "hardware_absent")
    assert f"there is no program at {tmp_path / 'gone'}" in case["message"]
    assert case["advice"] == "Name a browser's program, or none: unset ACCELBENCH_BROWSER"
