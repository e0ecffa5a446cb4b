"""The commands of the map, made small and short, so that measuring them takes little time."""

from __future__ import annotations

import shlex

from guides_map import lines_with

#: What a command of the map is run with instead, so that all of them take little time.
SMALL = {
    "bert": "bert-tiny",
    "bert-base-uncased": "bert-tiny",
    "clap": "clap-tiny",
    "clip": "clip-tiny",
    "detr": "detr-tiny",
    "gpt2": "gpt2-tiny",
    "llama": "llama-tiny",
    "llava": "llava-tiny",
    "llava-next": "llava-next-tiny",
    "qwen2": "qwen2-tiny",
    "resnet50": "resnet-tiny",
    "t5": "t5-tiny",
    "vit-base": "vit-tiny",
    "vit_b_16": "vit-tiny",
    "wav2vec2": "wav2vec2-tiny",
    "whisper": "whisper-mini",
    "xclip": "xclip-tiny",
}
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
    if command != WHOLE and not {"--hardware", "--device"} & set(words):
        words += ["--hardware", "cpu"]
    for option, value in QUICK.items():
        if option not in words:
            words += [option, value]
        elif option != "--batch-sizes":
            words[words.index(option) + 1] = value
    if {"fp16", "training"} <= set(words) or "webgpu" in places_in(command) or command == WHOLE:
        words += SHORT
    return of_small_set(words)


def of_small_set(words: list[str]) -> list[str]:
    """With two of the small models where a command chooses its models itself."""
    if "--set" in words and words[words.index("--set") + 1] != "custom":
        words[words.index("--set") + 1] = "small"
    elif {"--category", "--model-families", "--all"} & set(words):
        words += ["--set", "small"]
    # What such a command shows is that it chooses and runs; that every small model runs is
    # shown once, in tests/run/test_small_set.py.
    several = {"--set", "--category", "--model-families", "--all"} & set(words)
    if several and "--limit" not in words:
        words += ["--limit", "2"]
    return words


def spoken(command: str) -> dict[str, tuple[str, ...]]:
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


def prints_results(command: str) -> bool:
    """Whether it is asked for its results; what a line says it prints is printed for people."""
    return quickened(command)[0] == "run" and not lines_with(command, "prints")


def told(command: str) -> tuple[str, ...]:
    """The words that a command is run with."""
    return (*quickened(command), *(["--json"] if prints_results(command) else []))
