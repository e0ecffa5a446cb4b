"""What the words of `accelbench run` mean: names, folders and lists, checked.

What the options of a run mean together: a RunSpec, its request, and contradictions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accelbench.cli.arguments.run_spec_options import SPELLINGS
from accelbench.core.axes import AXES
from accelbench.core.case import Option
from accelbench.core.columns import AccuracyMetric
from accelbench.core.errors import UsageError
from accelbench.core.formatting import parse_duration, parse_integers, split_words
from accelbench.core.free_dimensions import parse_combinations
from accelbench.core.model import ModelSpec
from accelbench.core.option_types import parse_settings, resolve_setting
from accelbench.core.plugins import ENGINES, find_entry_points, load
from accelbench.core.precision import parse_precision
from accelbench.core.result_statistics import FEWEST_LAUNCHES
from accelbench.core.run_options import DISTRIBUTED, RunField, RunSpec, run_fields
from accelbench.core.safe_text import in_quotes
from accelbench.core.vocabulary import Mode, parse_mode
from accelbench.engines.shared.names import runtime_named, runtimes_named
from accelbench.hardware.browsers import BROWSER_VARIABLE
from accelbench.hardware.detect import GPU, parse_platform
from accelbench.judge.filters import hardware_words, model_words
from accelbench.models.data.folder import look
from accelbench.models.data.labelled import look_labelled
from accelbench.models.data.labelled_text import TOKENIZER
from accelbench.models.data.pictures import CONFIG, NAMED
from accelbench.models.data.rows import SUFFIX, stored_arrays
from accelbench.models.data.sounds import WAVES, is_sound_word
from accelbench.models.data.text import TABLES, TextTable
from accelbench.models.file_models.given_inputs import GivenInput, parse_inputs
from accelbench.models.selection import choose
from accelbench.run.plan.request import AUTO, AUTO_STRATEGY, STRATEGIES, Distribution, Request


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
        inputs={**parse_inputs(inputs), **(_stored(input_file) if input_file else {})},
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
    return tuple(dict.fromkeys(parse_platform(name) for name in names))


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
    points = find_entry_points(ENGINES)
    for setting in parse_settings(values):
        name = runtime_named(setting.runtime)
        by_runtime.setdefault(name, {})[setting.name] = resolve_setting(
            setting, load(points[name]).info.options
        )
    return by_runtime


#: The values of a command's parameters, by name.
Typed = Mapping[str, Any]


def in_one_spelling(typed: Typed, given: frozenset[str]) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the values and the typed names without the documents' spellings.

    What was typed goes before a default of the project's, whichever spelling it was typed in.
    """
    whole = dict(typed)
    names = {field.name: name for field, name in SPELLINGS.items() if name}
    for spelling, name in names.items():
        value = whole.pop(spelling)
        if spelling not in given:
            continue
        before = whole[name] if name in given else None
        if spelling == "model_id":
            value = models_named(model_words(value))
        if spelling == "training":
            value = ["training"]
        if spelling == "small_models":
            value = "small"
        whole[name] = [*(before or ()), *value] if isinstance(value, (list, tuple)) else value
    return whole, frozenset(names.get(name, name) for name in given)


def sizes_of(typed: Mapping[str, list[str] | None]) -> dict[str, Any]:
    """Return the sizes in lists of words, by the fields of a request."""
    return {
        axis.option_key: parse_combinations(typed[axis.option_key])
        if axis.text
        else parse_integers(typed[axis.option_key], axis.option, least=axis.least)
        for axis in AXES
        if axis.option_key in typed
    }


def _read(field: RunField, value: Any) -> Any:
    if field.kind == "duration":
        return parse_duration(value, field.option)
    if not field.several:
        return value
    if field.kind == "number":
        return parse_integers(value, field.option, least=field.least or 0)
    if field.name == "hardware":
        return hardware_words(value or ())
    return tuple(value or ()) if field.whole or not field.names else split_words(value)


def with_block(spec: RunSpec, block: Typed) -> RunSpec:
    """Return a spec with other values of some options."""
    own = {f.name: _read(f, block[f.name]) for f in run_fields() if f.name in block and not f.axis}
    return spec.with_values(**own, sizes={**spec.sizes, **sizes_of(block)})


def spec_of(typed: Typed) -> RunSpec:
    """Return what the options of a command line ask for."""
    read = {f.name: _read(f, typed[f.name]) for f in run_fields() if not f.axis}
    unset = [f.name for f in run_fields() if f.several is False and read.get(f.name, 0) is None]
    own = {name: value for name, value in read.items() if name not in unset}
    own["weights"] = weights(typed["weights"])
    own["data"] = data_folder(typed["data"])
    own["accuracy"] = accuracy_metric(typed["accuracy"])
    own["preprocessing"] = preparation(typed["preprocessing"])
    if typed["input_file"] is not None:
        own["accuracy"] = "off"  # its arrays are fed as they are
        own["data"] = str(typed["input_file"].expanduser().absolute())
    own["launches"] = launches(typed["launches"], split_words(typed["framework"]), typed["against"])
    own["verify"] = verification(typed["verify"], typed["verify_only"], typed["benchmark_only"])
    own["label"] = label(typed["label"])
    return RunSpec(**own, sizes=sizes_of(typed), fix=not typed["no_fix"])


def means_training(spec: RunSpec) -> bool:
    """Return whether --distributed means training: no mode is named, nor tokens to generate."""
    named = spec.mode or spec.sizes.get("new_tokens") or spec.sizes.get("prompt_tokens")
    return spec.distributed and not named


def request_of(spec: RunSpec, models: tuple[ModelSpec, ...]) -> Request:
    """Return the request for these models."""
    refuse_pure_autocast(spec.pure, spec.precision)
    how = distribution_of(spec)
    # Whoever counts GPUs means GPUs: a processor is not taken in their place.
    usual = (GPU,) if how and spec.gpu_count else ()
    sizes: dict[str, Any] = spec.sizes
    return Request(
        models=models,
        hardware=platforms(spec.hardware or usual),
        runtimes=runtimes_named(spec.framework),
        batch_sizes=spec.batch_sizes,
        **sizes,
        precisions=precisions(spec.precision),
        modes=modes(spec.mode, training=means_training(spec)),
        options=options(spec.compiled, spec.threads),
        runtime_options=runtime_options(spec.runtime_options),
        training_options=training_options(spec.optimizer, spec.checkpointing, spec.pure),
        distribution=how,
        simulate=spec.simulate,
    )


_MEETING = "--rdzv-endpoint HOST:PORT, the same on every machine; HOST is machine 0."


def distribution_of(spec: RunSpec) -> Distribution | None:
    """Return how several processes make each step; None if one process does."""
    if not spec.distributed:
        usual = RunSpec()
        for field in run_fields():
            name = field.name
            if field.group == DISTRIBUTED and getattr(spec, name) != getattr(usual, name):
                raise UsageError(f"{field.option} requires --distributed.", "Add it.")
        return None
    if spec.gpu_count and spec.processes and spec.gpu_count != spec.processes:
        raise UsageError("--gpu-count and --processes contradict each other.", "Leave one out.")
    count = (spec.gpu_count or spec.processes or 2) * spec.nodes
    if count < 2:
        raise UsageError(
            "--distributed requires several processes, and one was asked for.",
            "Use 2 or more, or leave out --distributed.",
        )
    _check_meeting(spec)
    known, strategy = (AUTO_STRATEGY, *STRATEGIES), (spec.strategy or AUTO_STRATEGY).lower()
    if strategy not in known:
        raise UsageError(f"There is no strategy {in_quotes(strategy)}.", f"Use {', '.join(known)}.")
    gib = spec.max_memory_gb
    if gib is not None and not 0 < gib < 2**20:
        raise UsageError(f"{gib:g} GiB of memory is impossible.", "Use more than 0.")
    return Distribution(
        processes=count,
        strategy=strategy,
        accumulate=spec.accumulate,
        memory_bytes=None if gib is None else int(gib * 2**30),
        baseline=not spec.no_baseline,
        nodes=spec.nodes,
    )


def _check_meeting(spec: RunSpec) -> None:
    rank, place = spec.node_rank, spec.rendezvous
    if spec.nodes == 1:
        if place or rank is not None:
            raise UsageError("--node-rank and --rdzv-endpoint require --nnodes.", "Add --nnodes.")
        return
    if place is not None and (":" not in place or not place.rpartition(":")[2].isdecimal()):
        raise UsageError(f"{in_quotes(place)} is not HOST:PORT.", f"Give {_MEETING}")
    if rank is not None and rank >= spec.nodes:
        raise UsageError(
            f"There is no machine {rank} of {spec.nodes}.", f"--node-rank is 0 to {spec.nodes - 1}."
        )


def refuse_no_meeting(spec: RunSpec) -> None:
    """Refuse several machines without a place where they meet."""
    if spec.nodes > 1 and not spec.rendezvous:
        raise UsageError("Several machines need a place where they meet.", f"Give {_MEETING}")


#: What may be given with --resume: everything else was settled when the run began.
WITH_RESUME = frozenset(
    {"resume", "db", "no_database", "output_dir", "output_ci", "as_json", "quiet"}
    | {"save", "compare", "create_report", "prices", "threshold"}
)
#: Options that exclude each other, and why.
_CONFLICTS = (
    ("profile", "verify_only", "without timing there is no profile"),
    ("energy", "verify_only", "without timed steps there is no energy to measure"),
    ("against", "profile", "--against compares times"),
    ("against", "verify_only", "--against compares times"),
    ("against", "simulate", "--against compares times"),
    ("simulate", "verify_only", "without a run there are no outputs"),
    ("input_file", "data", "both are inputs"),
    ("no_database", "db", "one stores results, the other does not"),
)
#: Options that require one of others.
_REQUIREMENTS = (
    ("threshold", ("against", "resume"), "--against; `accelbench check` judges other runs"),
    ("prices", ("compare", "create_report"), "--compare or --create-report"),
    ("accuracy", ("data",), "labelled data, named with --data"),
    ("accuracy_samples", ("data",), "labelled data, named with --data"),
    ("preprocessing", ("data",), "labelled data, named with --data"),
)


def refuse_contradictions(given: Mapping[str, str], typed: Typed) -> None:
    """Refuse options that contradict each other."""
    settled = [option for name, option in given.items() if name not in WITH_RESUME]
    if "resume" in given and settled:
        raise UsageError(
            f"A resumed run keeps its settings: {settled[0]} cannot be given anew.",
            "Leave it out, or start a new run.",
        )
    for one, other, why in _CONFLICTS:
        if one in given and other in given:
            raise UsageError(
                f"{given[one]} and {given[other]} contradict each other: {why}.", "Leave one out."
            )
    for name, others, what in _REQUIREMENTS:
        if name in given and not given.keys() & set(others):
            raise UsageError(f"{given[name]} requires {what}.", "Add it, or leave this out.")
    if "simulate" in given and typed["verify"] == "require":
        raise UsageError(
            "--simulate and --verify require contradict each other: without a run there are no"
            " outputs.",
            "Leave one out.",
        )


def refuse_simulating_all(spec: RunSpec) -> None:
    """Refuse --simulate without a platform: only named hardware can be absent and simulated."""
    if spec.simulate and [name.lower() for name in spec.hardware] in ([], ["all"], ["auto"]):
        raise UsageError(
            "--simulate requires --hardware: only hardware that is named and absent is simulated.",
            "Name it, such as --hardware cuda:a100-80gb.",
        )
