"""What the words of `accelbench run` mean: names, folders and lists, checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from accelbench.core.case import Option
from accelbench.core.columns import AccuracyMetric
from accelbench.core.engine_options import meant, written
from accelbench.core.errors import UsageError
from accelbench.core.figures import FEWEST_LAUNCHES
from accelbench.core.model import ModelSpec
from accelbench.core.plugins import ENGINES, load, registered
from accelbench.core.precision import parse_precision
from accelbench.core.visible import in_quotes
from accelbench.core.vocabulary import Mode, parse_mode
from accelbench.engines.shared.names import runtime_named
from accelbench.hardware.browsers import BROWSER_VARIABLE
from accelbench.hardware.detect import platform_named
from accelbench.models.data.folder import look
from accelbench.models.data.labelled import look_labelled
from accelbench.models.data.labelled_text import TOKENIZER
from accelbench.models.data.pictures import CONFIG, NAMED
from accelbench.models.data.rows import SUFFIX, stored_arrays
from accelbench.models.data.sounds import WAVES, is_sound_word
from accelbench.models.data.text import TABLES, TextTable
from accelbench.models.file_models.given_inputs import GivenInput, given_inputs
from accelbench.models.selection import choose
from accelbench.run.plan.request import AUTO


def models_for(
    names: Sequence[str],
    set_name: str | None,
    categories: Sequence[str],
    specific: Sequence[str],
    every: bool,
    hardware_named: bool,
    models_file: Path | None = None,
    pass_over: Callable[[UsageError], None] | None = None,
    inputs: Iterable[str] | None = None,
    input_file: Path | None = None,
    reference: str = "",
) -> tuple[ModelSpec, ...]:
    """The models asked for; hardware alone means every model."""
    nothing = not (names or set_name or categories or specific or every or models_file)
    return choose(
        names,
        set_name,
        categories,
        specific,
        all_models=every or (nothing and hardware_named),
        models_file=models_file,
        pass_over=pass_over,
        inputs={**given_inputs(inputs), **(_stored(input_file) if input_file else {})},
        reference=reference,
    )


def _stored(path: Path) -> dict[str, GivenInput]:
    path = path.expanduser()
    return {
        name: GivenInput(
            array.dtype, array.shape, array.low, array.high, told=f"as {path.name} has it"
        )
        for name, array in stored_arrays(path).items()
    }


def use_browser(program: Path | None) -> None:
    """Whatever runs in a browser runs in this one: detectors and workers read it from here."""
    if program is None:
        return
    path = _inside(program.expanduser())
    if not path.is_file():
        raise UsageError(
            f"There is no browser at {in_quotes(str(program))}.", "Give the program's path."
        )
    os.environ[BROWSER_VARIABLE] = str(path.absolute())


def _inside(program: Path) -> Path:
    if program.suffix != ".app":
        return program
    return program / "Contents" / "MacOS" / program.stem


def platforms(names: Sequence[str]) -> tuple[str, ...]:
    """Platform names as asked for, checked; an ordinal may follow a colon."""
    names = [name.lower() for name in names]
    if names == ["all"]:
        return ()
    if AUTO in names:
        if len(names) > 1:
            raise UsageError(
                f"--hardware {AUTO} and {', '.join(n for n in names if n != AUTO)} contradict each"
                " other.",
                "Name platforms, or let one be chosen.",
            )
        return (AUTO,)
    return tuple(dict.fromkeys(platform_named(name) for name in names))


#: The two models that the guide's own runner means by both.
_BOTH_MODELS = ("resnet50", "vit_b_16")


def models_named(words: Sequence[str]) -> tuple[str, ...]:
    """Models as the guides' option names them."""
    return tuple(
        name for word in words for name in (_BOTH_MODELS if word.lower() == "both" else (word,))
    )


#: The folder that the results of the guide's own runner go into.
_GUIDE_FOLDER = Path("results", "raw")


def guide_folder(frameworks: Sequence[str] | None, models: Sequence[str] | None) -> Path | None:
    """Return the folder for the guide's CSV if a run is spelled with its two options."""
    return _GUIDE_FOLDER if frameworks and models else None


def launches(count: int | None, frameworks: Sequence[str], against: str | None = None) -> int:
    """Return one launch, or the fewest that decide if frameworks or arms are compared."""
    if count is not None:
        return count
    both = any(name.lower() == "both" for name in frameworks)
    return FEWEST_LAUNCHES if both or against is not None else 1


def weights(source: str) -> str:
    """random, hub, or a folder that is there, by its full path."""
    if source in ("random", "hub"):
        return source
    folder = Path(source).expanduser().absolute()
    if not folder.is_dir():
        raise UsageError(
            f"There is no folder {in_quotes(source)} with weights.",
            "Use random, hub or a folder's path.",
        )
    return str(folder)


def data_folder(path: Path | None) -> str | None:
    """The full path of real inputs that are there, seen to be of use; None for synthetic ones."""
    if path is None or str(path) == "synthetic":
        return None
    if path.suffix.lower() == SUFFIX:
        look_labelled(path.expanduser())
    elif path.suffix.lower() in TABLES:
        TextTable(path).labels()
    else:
        look(path)
    return str(path.expanduser().absolute())


def accuracy_metric(word: str) -> str:
    """What accuracy is measured as: a metric, auto or off."""
    known = (*AccuracyMetric, "auto", "off")
    metric = word.lower().replace("-", "")
    if metric not in known:
        raise UsageError(
            f"Accuracy is not measured as {in_quotes(word)}.", f"Known: {', '.join(known)}."
        )
    return metric


def preparation(word: str | None) -> str | None:
    """A recipe's name, or the full path of one that is there."""
    if word is None or word.lower() in NAMED or is_sound_word(word.lower()):
        return word if word is None else word.lower()
    path = Path(word).expanduser()
    if not path.is_file():
        raise UsageError(
            f"There is no way to prepare samples called {in_quotes(word)}.",
            f"Known: {', '.join(NAMED)}; {' and '.join(f'{name}:RATE' for name in WAVES)} of sound;"
            f" or the path of a {CONFIG} or a {TOKENIZER}.",
        )
    return str(path.absolute())


def label(text: str | None) -> str | None:
    """A run's name, which stands in headings and lists: one line."""
    if text is not None and not text.isprintable():
        raise UsageError(
            f"The label {in_quotes(text)} has characters that cannot be shown.",
            "Use one line of text.",
        )
    return text


def modes(names: Sequence[str], training: bool) -> tuple[Mode, ...]:
    """Inference, training or both; inference where nothing is said."""
    chosen: dict[Mode, None] = {}
    for name in names:
        if name.lower() in ("both", "all"):
            chosen |= dict.fromkeys(Mode)
            continue
        chosen[parse_mode(name, f"Modes: {', '.join(Mode)}, or both.")] = None
    if training:
        chosen = {**chosen, Mode.TRAINING: None}
    return tuple(chosen) or (Mode.INFERENCE,)


#: What an optimiser may be called; the first is meant where none is named.
OPTIMIZERS = ("adamw", "sgd")


def training_options(optimizer: str | None, checkpointing: bool, pure: bool) -> dict[str, Option]:
    """What was set on purpose for training, less what is meant anyway."""
    chosen: dict[str, Option] = {}
    if optimizer is not None:
        if optimizer.lower() not in OPTIMIZERS:
            raise UsageError(
                f"There is no optimizer {in_quotes(optimizer)}.", f"Known: {', '.join(OPTIMIZERS)}."
            )
        if optimizer.lower() != OPTIMIZERS[0]:
            chosen["optimizer"] = optimizer.lower()
    if checkpointing:
        chosen["gradient_checkpointing"] = True
    if pure:
        chosen["pure"] = True
    return chosen


def precisions(names: Sequence[str]) -> tuple[str, ...]:
    """Precisions as stored; fp32 where none is named."""
    return tuple(dict.fromkeys(parse_precision(name) for name in names)) or ("fp32",)


def refuse_pure_autocast(pure: bool, names: Sequence[str]) -> None:
    """Training takes amp-bf16 for bf16, so what was asked for could not be seen any more."""
    autocast = next((name for name in precisions(names) if name.startswith("amp-")), None)
    if pure and autocast is not None:
        raise UsageError(
            f"--pure and {autocast}, which is autocast, contradict each other.",
            f"Use --precision {autocast.removeprefix('amp-')}, or leave out --pure.",
        )


def verification(word: str, only: bool, never: bool) -> str:
    """auto, require, only or off; what contradicts itself is refused."""
    if word not in ("auto", "require"):
        raise UsageError(
            f"There is no way to verify called {in_quotes(word)}.",
            "Use --verify auto or require, --verify-only, or --benchmark-only.",
        )
    given = [
        name
        for name, is_given in (
            ("--verify-only", only),
            ("--benchmark-only", never),
            ("--verify require", word == "require"),
        )
        if is_given
    ]
    if never and len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} contradict each other.", "Leave one out.")
    if only:
        return "only"
    return "off" if never else word


def options(compiled: bool, threads: int | None) -> dict[str, Option]:
    """Only what was set on purpose: it becomes part of a case's identity."""
    chosen: dict[str, Option] = {}
    if compiled:
        chosen["compile"] = True
    if threads is not None:
        chosen["threads"] = threads
    return chosen


def runtime_options(values: Iterable[str] | None) -> dict[str, dict[str, Option]]:
    """What was set for single runtimes, by runtime and name: each seen to be one that it has."""
    by_runtime: dict[str, dict[str, Option]] = {}
    points = registered(ENGINES)
    for setting in written(values):
        name = runtime_named(setting.runtime)
        by_runtime.setdefault(name, {})[setting.name] = meant(
            setting, load(points[name]).info.options
        )
    return by_runtime
