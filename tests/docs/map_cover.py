"""Which commands of the map are measured in `make test`: at least one of each kind.

A kind is what a command has that makes the program go another way: an option, a word that
chooses, a family of models, a platform with a mode or a precision, what it is to write or print.
Few commands, and cheap ones, have them all; the others are measured in `make test-full`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cache
from itertools import product
from math import prod

from guides_map import COMMANDS, REFUSED, lines_with
from map_commands import modes_in, places_in, quickened, spoken

from accelbench.core.precision import parse_precision
from accelbench.engines.shared.names import BOTH
from accelbench.models.find import find

#: Options whose words choose a way; those of the others are names, numbers and paths.
CHOOSING = ("--set", "--framework", "--precision", "--mode", "--category", "--model-families")
#: What a case takes where machines have what it asks for; elsewhere it is refused at once.
SECONDS = {"cpu": 6, "openvino": 4, "auto": 8, "webgpu": 30, "webnn": 20, "wasm": 15}


@cache
def kinds(command: str) -> frozenset[str]:
    """All that a `run` shows of the program.

    The CPU stands for all platforms where none is named; that all are taken, its plan shows.
    """
    said = spoken(command)
    found = {option for option in said if option}
    found |= {f"{option} {word}" for option in CHOOSING for word in said.get(option, ())}
    promised = {kind: lines_with(command, kind) for kind in ("writes", "prints")}
    found |= {f"{kind} {name}" for kind, names in promised.items() for name in names}
    # Both is pytorch and jax, in turns.
    found |= {f"--framework {name}" for name in BOTH if "--framework both" in found}
    places = {place.partition(":")[0] for place in places_in(command)} or {"cpu"}
    if "cpu" in places:  # which every machine has
        found |= {f"a model of {find(name).family}" for name in said[""]}
    precisions = said.get("--precision", ("fp32",))
    shown = (modes_in(command), map(parse_precision, precisions))
    found |= {f"{word} on {place}" for words in shown for word, place in product(words, places)}
    return frozenset(found)


def kinds_in(commands: Iterable[str]) -> frozenset[str]:
    """All that several of them show."""
    return frozenset().union(*map(kinds, commands))


@cache
def cost(command: str) -> int:
    """Roughly the seconds that it takes, small and short as it is made."""
    said = spoken(shlex.join(["accelbench", *quickened(command)]))
    places = [*said.get("--hardware", ()), *said.get("--device", ())] or [*SECONDS]
    each = sum(SECONDS.get(place.partition(":")[0], 2) for place in places)
    several = ("", "--precision", "--mode", "--batch-sizes")
    return each * prod(max(1, len(said.get(option, ()))) for option in several)


def cover(commands: Iterable[str]) -> frozenset[str]:
    """As few and as cheap commands as a greedy choice finds for all that they show.

    What the choice has made needless is left out in the end, the dearest first.
    """
    among = sorted(commands)
    chosen: list[str] = []
    while missing := kinds_in(among) - kinds_in(chosen):
        chosen.append(max(among, key=lambda one: len(kinds(one) & missing) / cost(one)))
    for one in sorted(chosen, key=cost, reverse=True):
        others = [other for other in chosen if other != one]
        if kinds(one) <= kinds_in(others):
            chosen = others
    return frozenset(chosen)


#: What fills all columns that lines name, each for some that no other does. Few, so that this is
#: quick where it is run alone; in `make test` their trials serve `test_the_command_works` too.
FILLING = (
    "accelbench run bert-tiny --hardware cpu --iterations 100",  # percentiles
    "accelbench run bert --mode inference,training",  # parts of a training step
    "accelbench run llama",  # times of tokens
    "accelbench run mamba-tiny --hardware openvino:cpu",  # workarounds, compilation, verification
)

RUNS = [command for command in COMMANDS if shlex.split(command)[1] == "run"]
REFUSED_RUNS = sorted(command for command in REFUSED if shlex.split(command)[1] == "run")
MEASURED = cover(RUNS) | set(FILLING)
