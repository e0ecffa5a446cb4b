"""Every `run` of the map is read and planned as it stands: with the documents' own models."""

from __future__ import annotations

import json
import shlex
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from map_commands import modes_in, places_in, spoken
from map_cover import REFUSED_RUNS, RUNS
from map_folder import MODELS_FILE, furnish
from map_running import in_process

from accelbench.core.precision import parse_precision
from accelbench.models.find import every_model, find
from accelbench.run.plan.request import DEFAULT_BATCH_SIZES

#: The guide's word for both of its models.
BOTH_MODELS = {"both": ("resnet50", "vit_b_16")}


def planned(command: str, folder: Path) -> dict[str, Any]:
    """What a command would do; nothing is measured."""
    furnish(folder)
    done = in_process(folder, *shlex.split(command)[1:], "--dry-run", "--json")
    assert done.returncode in (0, 3), done.stderr  # 3: without hardware that is not here
    plan: dict[str, Any] = json.loads(done.stdout)
    for case in plan["cases"]:  # what generates reads a prompt
        case["sequence_length"] = case["sequence_length"] or case["prompt_tokens"]
    return plan


def models_named(command: str) -> set[str]:
    """The ids of the models that a command chooses, by the catalogue's own words about them."""
    said = spoken(command)
    names = [n for option in ("", "--model", "--model-id") for n in said.get(option, ())]
    chosen = {find(name).id for word in names for name in BOTH_MODELS.get(word, (word,))}
    if "--models-file" in said:
        chosen |= {key.replace("_", "-") for key in json.loads(MODELS_FILE)}
    kinds = {*said.get("--category", ()), *said.get("--model-families", ())}
    of_set = set(said.get("--set", ())) - {"custom"}
    for model in every_model():
        in_kind = kinds & {str(model.family), *model.modalities}
        if "--all" in said or in_kind or of_set & set(model.sets):
            chosen.add(model.id)
    if "--specific-models" in said:
        wanted = [find(name) for name in said["--specific-models"]]
        chosen &= {name for model in wanted for name in (model.id, model.small_variant)}
    return chosen


def asked(command: str) -> dict[str, set[Any]]:
    """What a command names of each kind, by the plan's word for the kind."""
    said = spoken(command)
    frameworks = {"both": ("pytorch", "jax")}
    found = {
        "hardware": {place.partition(":")[0] for place in places_in(command)} - {"auto"},
        "runtime": {r for f in said.get("--framework", ()) for r in frameworks.get(f, (f,))},
        "precision": {parse_precision(p) for p in said.get("--precision", ("fp32",))},
        "mode": modes_in(command),
        "batch_size": {
            int(size) for size in (*said.get("--batch-sizes", ()), *said.get("--batch-size", ()))
        },
        "sequence_length": {int(size) for size in said.get("--sequence-lengths", ())},
    }
    return {kind: values for kind, values in found.items() if values}


@pytest.mark.parametrize("command", [*RUNS, *REFUSED_RUNS])
def test_the_plan_has_all_that_the_command_names_and_nothing_else(command, present, tmp_path):
    plan, said, named = planned(command, tmp_path), spoken(command), asked(command)
    cases = plan["cases"]
    assert ("simulated" in {case["status"] for case in cases}) == ("--simulate" in said)
    launches = 5 if "both" in said.get("--framework", ()) else 1
    assert plan["launches"] == int(said.get("--launches", (launches,))[0])
    models = {case["model"] for case in cases}
    if "--limit" in said:
        assert len(cases) == int(said["--limit"][0])
        assert models <= models_named(command)
        return
    assert models == models_named(command)
    assert {tuple(case[kind] for kind in named) for case in cases} == set(product(*named.values()))
    if "batch_size" not in named:
        sizes = {case["batch_size"] for case in cases}
        # A batch of one is not shared by several processes.
        assert min(sizes) == (8 if "--distributed" in said else 1)
        assert sizes <= set(DEFAULT_BATCH_SIZES)
    if not {"hardware", "runtime"} & set(named) and "auto" not in places_in(command):
        assert {case["hardware"] for case in cases} == present
