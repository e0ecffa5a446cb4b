"""The commands of the map, made small and short, so that measuring them takes little time."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from guides_map import lines_with

#: What a command of the map is run with instead, so that all of them take little time.
SMALL = {
    "bert": "bert-tiny", "bert-base-uncased": "bert-tiny", "clap": "clap-tiny", "clip": "clip-tiny",
    "detr": "detr-tiny", "gpt2": "gpt2-tiny", "llama": "llama-tiny", "llava": "llava-tiny",
    "llava-next": "llava-next-tiny", "qwen2": "qwen2-tiny", "resnet50": "resnet-tiny",
    "t5": "t5-tiny", "vit": "vit-tiny", "vit-base": "vit-tiny", "vit_b_16": "vit-tiny",
    "wav2vec2": "wav2vec2-tiny", "whisper": "whisper-mini", "xclip": "xclip-tiny",
}  # fmt: skip
#: Sizes of batches where a line has larger ones: steps take long, and JAX compiles for each.
FEW = ("1", "2", "4", "8")
#: On a thread of its own: of two commands at a time that both count on all cores, each waits at
#: every step for threads that do not run. Training in fp16 took 84 s of the cores' time, and 32 s
#: on one thread.
QUICK = {"--iterations": "3", "--warmup": "1", "--batch-sizes": "1", "--threads": "1"}
#: Where a processor only plays the part of what is asked for, few tokens show as much: fp16 took
#: 16 s then, and a GPU of a browser 48 s, where it was 68 s.
SHORT = ("--sequence-lengths", "16")
#: A search by measuring goes on to the largest batch that fits: of two it is soon found.
SEARCHED = ("--batch-sizes", "1,2", "--sequence-length", "16")
#: How many cases where a command chooses its models itself, or one on each platform that it names:
#: that every small model runs is shown once, in tests/run/test_small_set.py.
SOME_CASES = 2
#: What stands for both models of the guide.
BOTH_SMALL = "resnet-tiny,vit-tiny"
#: What takes at most a few minutes on two cores with the documents' own models and counts.
AS_DOCUMENTED = (
    "accelbench run resnet50 --framework pytorch --batch-sizes 1 4 --iterations 10 --warmup 3",
    (
        "accelbench run --framework pytorch --model resnet50 --batch-sizes 1 16 --iterations 20"
        " --warmup 5"
    ),
    "accelbench run --set small --hardware cpu cuda --batch-sizes 1 4 8 --specific-models bert t5",
    "accelbench run --set small --specific-models bert --hardware cpu",
    "accelbench run bert --hardware cpu --batch-sizes 1,2 --compare",
    "accelbench run bert-tiny --hardware cpu --precision fp16",
    "accelbench run bert-tiny resnet-tiny --hardware cpu",
)
#: Shows that all hardware that is present is taken; elsewhere the CPU stands for all of it.
WHOLE = "accelbench run bert"


def with_fewer(words: list[str]) -> list[str]:
    """Batches of eight items at most: as many as a line has, and spelled as it does."""
    if "--batch-sizes" not in words:
        return words
    first = words.index("--batch-sizes") + 1
    last = next((n for n in range(first, len(words)) if words[n].startswith("--")), len(words))
    asked = words[first:last]
    sizes = [size for word in asked for size in word.split(",")]
    if all(int(size) <= int(FEW[-1]) for size in sizes):
        return words
    few = FEW[: len(sizes)]
    return [*words[:first], *(few if len(asked) > 1 else [",".join(few)]), *words[last:]]


def quickened(command: str) -> list[str]:
    """The words of a map's command; a `run` is made small and short."""
    words = shlex.split(command)[1:]
    if words[0] in ("run", "compare", "plot", "recommend"):
        words = [SMALL.get(word, word) for word in words]
    if words[0] == "recommend" and "--verify" in words:
        words += SEARCHED
    if words[0] != "run":
        return words
    words = with_fewer(words)
    if command != WHOLE:
        words = on_the_cpu(words)
    if "both" in words:
        words += ["--launches", "1"]
    small = all(model in SMALL.values() for model in spoken(command)[""] or ("",))
    for option, value in quick_of(words).items():
        if option not in words and option.removesuffix("s") not in words:
            words += [option, value]
        elif option == "--gpu-count" or (
            option in words and option != "--batch-sizes" and not small
        ):
            words[words.index(option) + 1] = value
    if {"fp16", "training"} <= set(words) or "webgpu" in places_in(command) or command == WHOLE:
        words += SHORT
    return of_small_set(words, max(SOME_CASES, len(places_in(command))))


def quick_of(words: list[str]) -> dict[str, str]:
    """What makes a run short; two processes show what more of them do, each with an item."""
    if "--gpu-count" not in words:
        return QUICK
    return {**QUICK, "--gpu-count": "2", "--batch-sizes": "2"}


def on_the_cpu(words: list[str]) -> list[str]:
    """With the CPU for all hardware where none is named."""
    named = {"--hardware", "--device"} & set(words)
    return words if named else [*words, "--hardware", "cpu"]


def of_small_set(words: list[str], cases: int) -> list[str]:
    """With a few cases of small models where a command chooses its models itself."""
    if "--set" in words and words[words.index("--set") + 1] != "custom":
        words[words.index("--set") + 1] = "small"
    elif {"--category", "--model-families", "--all"} & set(words):
        words += ["--set", "small"]
    several = {"--set", "--category", "--model-families", "--all"} & set(words)
    if several and "--limit" not in words:
        words += ["--limit", str(cases)]
    return words


@cache
def spoken(command: str) -> Mapping[str, tuple[str, ...]]:
    """The words that follow each option of a command, lists taken apart; under "" the models."""
    found: dict[str, tuple[str, ...]] = {"": ()}
    option = ""
    for word in shlex.split(command)[2:]:
        if word.startswith("--"):
            option = word
            found[option] = ()
        else:
            found[option] += tuple(word.split(","))
    return found


def places_in(command: str) -> tuple[str, ...]:
    """The hardware that a command names."""
    said = spoken(command)
    return (*said.get("--hardware", ()), *said.get("--device", ()))


def modes_in(command: str) -> set[str]:
    """The modes that it measures."""
    said = spoken(command)
    trained = {"--training", "--training-mode", "--distributed"} & set(said)
    return set(said.get("--mode", ("training",) if trained else ("inference",)))


def prints_results(command: str) -> bool:
    """Whether it is asked for its results; what a line says it prints is printed for people."""
    return quickened(command)[0] == "run" and not lines_with(command, "prints")


def told(command: str) -> tuple[str, ...]:
    """The words that a command is run with."""
    return (*quickened(command), *_for_results(command))


def told_quickly(command: str) -> tuple[str, ...]:
    """The same in `make test`: a search goes through one precision there in place of four, and
    both of the guide's models are small.

    On full-size models PyTorch and JAX took 48 s, where small ones take 12.
    """
    words = list(told(command))
    if ("--model", "both") in pairwise(words):
        words[words.index("--model") + 1] = BOTH_SMALL
    return (*words, *(["--precision", "fp32"] if "--verify" in words else []))


def told_as_documented(command: str) -> tuple[str, ...]:
    """The words that a command is run with where its models and counts are the documents' own."""
    return (*on_the_cpu(shlex.split(command)[1:]), *_for_results(command))


def _for_results(command: str) -> tuple[str, ...]:
    return ("--json",) if prints_results(command) else ()
