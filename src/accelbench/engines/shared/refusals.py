"""The catalogue of reasons for which engines refuse a case. Imports no engine.

A key is a reason's code; behind a stroke stands what tells apart refusals of one code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec

from accelbench.core.case import Case
from accelbench.core.errors import setup_command
from accelbench.core.protocols import Support
from accelbench.core.vocabulary import Mode

#: What the engines that train torch's modules train them with.
OPTIMIZERS = ("adamw", "sgd")
#: What may be asked of the engines that run torch's modules.
MODULE_OPTIONS = {
    Mode.INFERENCE: frozenset({"compile", "threads"}),
    Mode.TRAINING: frozenset({"compile", "threads", "optimizer", "gradient_checkpointing", "pure"}),
}

_ONE_FORWARD = "Measure a forward pass: --new-tokens 0."
_TEXTS: Mapping[str, tuple[str, str]] = {
    # -- of several engines
    "package_missing": ("the {engine} runtime needs the package {package}, which is not installed",
                        "Install it with: {command}"),
    "mode": ("the {engine} runtime does not train",
             "Use --framework pytorch or jax, or --mode inference."),
    "generation": ("the {engine} runtime does not generate token by token", _ONE_FORWARD),
    "option": ("the {engine} runtime has no option {options}", "It has {known}; {remark}."),
    "option/mode": ("the {engine} runtime has no option {options} in {mode}", "It has {known}."),
    "option/optimizer": ("the {engine} runtime does not train with the optimizer {optimizer}",
                         "It trains with {known}."),
    "option/pure": ("pure training is of half-precision weights, and {precision} has none",
                    "Use --precision bf16 or fp16, or leave out --pure."),
    "precision": ("{why}", "It runs {known}."),
    "precision/stored": ("{model} is stored in {stored}; {kind}s are not quantised", "{how}"),
    "format": ("{title} opens a file with its {kind}, and {model} is not converted to one",
               "Name a {suffix} file, or use --framework pytorch, onnxruntime or openvino."),
    "no_generation": ("{model} does not generate text", "Leave out --new-tokens."),
    "no_training": ("the catalogue does not say how {model} is trained", "Use --mode inference."),
    "distributed/strategy": ("the {engine} runtime has no strategy {strategy}",
                             "Use --strategy {known}."),
    # -- JAX
    "distributed/training_only": (
        "the jax runtime shares out training alone",
        "Use --mode training, or --framework pytorch with --strategy tp.",
    ),
    "distributed/one_device": ("one process of JAX has one device of {hardware}",
                               "Use --hardware {known}."),
    "distributed/accumulate": ("the jax runtime takes the whole of a batch at once",
                               "Leave out --accumulate, or use a smaller batch."),
    "option/always_compiled": ("the jax runtime always compiles", "Leave out the option compile."),
    "generation/compiled": (
        "the jax runtime does not generate token by token",
        "Measure a forward pass with --new-tokens 0, or use --framework pytorch.",
    ),
    "loss": ("the jax runtime does not train {model}: {why}", "Use --framework pytorch."),
    "gradient_checkpointing": (
        (
            "the jax runtime has no gradient checkpointing: the graph that it is handed no longer"
            " knows the model's layers"
        ),
        "Leave out --gradient-checkpointing, or use a smaller batch.",
    ),
    "autocast": ("training in {precision} means autocast, which JAX does not have",
                 "Use --precision fp32, or --pure to train half-precision weights."),
    # -- PyTorch
    "distributed/no_backend": ("torch's collectives have no backend on {hardware}",
                               "Use --hardware cpu, cuda or rocm."),
    "option/compiled_ranks": ("a compiled step of several processes is not measured",
                              "Leave out --compile."),
    "precision/half_ranks": (
        (
            "each process would find a loss scale of its own, and half-precision weights are not"
            " shared out"
        ),
        "Use --precision fp32 or bf16, without --pure.",
    ),
    "distributed/whole_batch": (
        "the {loss} loss of {model} is of the whole batch, which parts of it do not give",
        "Use --strategy tp without --accumulate, or one process.",
    ),
    "distributed/independent": (
        (
            "processes that each infer a part of the batch exchange nothing: they are as many"
            " independent runs"
        ),
        "Use --strategy tp, or measure one process with its part of the batch.",
    ),
    "distributed/several_passes": (
        "a step of {model} is of several models or passes, which are not split",
        "Measure one process.",
    ),
    "precision/int8_ranks": ("products that torchao has quantised are not split over processes",
                             "Use --precision fp32 or bf16."),
    "tensor_parallel": ("nothing says how the products of {model} are split over processes",
                        "Use {instead}."),
    "tensor_parallel/uneven": (
        "{name} of {model} is {count}, which {processes} processes cannot share evenly",
        "Use another number of processes, or {instead}.",
    ),
    "precision/int8_training": ("a model quantised to int8 is not trained",
                                "Use --mode inference, or --precision bf16."),
    "option/int8_compiled": (
        "torch.compile of a model quantised by torchao did not come to an end here",
        "Leave out --compile.",
    ),
    "precision/named_types": (
        "nodes of {model} name a floating-point type, so that it is not cast to {precision}",
        (
            "Export it in {precision}, use amp-{precision}, or let an engine convert it:"
            " --framework onnxruntime,openvino."
        ),
    ),
    "option/compile_mode": ("pytorch.{option}={mode} is of torch.compile", "Add --compile."),
    "option/no_gpu": ("{mode} records the launches of a GPU, and there are none on {hardware}",
                      "Leave it out, or use pytorch.{option}=max-autotune."),
    "generation_compiled": ("each new token reads a longer cache, and would be compiled anew",
                            "Leave out --compile, or measure a forward pass with --new-tokens 0."),
    # -- engines that open files
    "provider": ("ONNX Runtime has no provider {provider} on {hardware}", "It has {known}."),
    "option/hint": ("OpenVINO has no performance hint {hint}", "It has {known}."),
    "precision/unit": ("{why}", "It computes {known} there."),
    "not_set_up": ("the browser runtime's engine, onnxruntime-web, has not been fetched",
                   "Fetch it with: {command}"),
    "browser_kind": (
        "{browser} is no browser of Chromium's kind, and is not driven",
        "Use Chrome, Edge or Chromium: --browser PATH, or the one of accelbench setup browser.",
    ),
    "not_a_callable": (
        "{model} is no callable of your own, which is what the python runtime times",
        "Leave out --framework, or name a function: accelbench run mine.py:function",
    ),
}  # fmt: skip


def refuse(key: str, **values: object) -> Support:
    """Return a refusal of the catalogue with its values filled in."""
    message, advice = _TEXTS[key]
    return no(key.partition("/")[0], message.format(**values), advice.format(**values))


def no(reason: str, message: str, advice: str) -> Support:
    """Return a refusal that a single engine gives."""
    return Support(ok=False, reason=reason, message=message, advice=advice)


def missing(engine: str, packages: Iterable[str], extra: str) -> Support | None:
    """Refuse if a package is not installed, by its import name."""
    for package in packages:
        if find_spec(package) is None:
            name, command = package.replace("_", "-"), setup_command(extra)
            return refuse("package_missing", engine=engine, package=name, command=command)
    return None


def beyond_forward(
    engine: str, case: Case, options: Collection[str], remark: str
) -> Support | None:
    """Refuse what an engine cannot do that makes forward passes only; `remark` ends its advice."""
    if case.mode is Mode.TRAINING:
        return refuse("mode", engine=engine)
    if case.generates:
        return refuse("generation", engine=engine)
    unknown = ", ".join(sorted(set(case.options).difference(options)))
    if not unknown:
        return None
    known = ", ".join(sorted(options))
    return refuse("option", engine=engine, options=unknown, known=known, remark=remark)


def not_listed(
    engine: str, case: Case, precisions: Collection[str], why: Mapping[str, str] | None = None
) -> Support | None:
    """Refuse a precision that is not among these; `why` has reasons of single ones."""
    precision = case.precision
    if precision in precisions:
        return None
    said = (why or {}).get(precision, f"the {engine} runtime does not run {precision}")
    return refuse("precision", why=said, known=", ".join(precisions))


def not_quantised(case: Case, how: str) -> Support | None:
    """Refuse int8 of a file in floats, which nothing here quantises."""
    file = case.model.file
    if case.precision != "int8" or file is None or file.precision == "int8":
        return None
    kind = file.format.graph
    return refuse(
        "precision/stored", model=case.model.id, stored=file.precision, kind=kind, how=how
    )


def not_an_option(engine: str, case: Case, options: Collection[str]) -> Support | None:
    """Refuse options that an engine does not have in the case's mode."""
    unknown = ", ".join(sorted(set(case.options).difference(options)))
    if not unknown:
        return None
    known, mode = ", ".join(sorted(options)), case.mode.value
    return refuse("option/mode", engine=engine, options=unknown, mode=mode, known=known)


def writes_nothing(case: Case) -> Support | None:
    """Refuse to generate with a model that gives no text."""
    return None if case.model.generation else refuse("no_generation", model=case.model.id)


def no_such_sharing(engine: str, case: Case, strategies: Sequence[str]) -> Support | None:
    """Refuse a strategy that an engine does not have; the first is meant if none is named."""
    strategy = case.options.get("strategy", strategies[0])
    if strategy in strategies:
        return None
    known = f"{', '.join(strategies[:-1])} or {strategies[-1]}"
    return refuse("distributed/strategy", engine=engine, strategy=strategy, known=known)


def not_trained(engine: str, case: Case) -> Support | None:
    """Refuse training that no engine has: of this model, by this optimizer, in pure fp32."""
    if case.model.training is None:
        return refuse("no_training", model=case.model.id)
    optimizer = case.options.get("optimizer", OPTIMIZERS[0])
    if optimizer not in OPTIMIZERS:
        known = " or ".join(OPTIMIZERS)
        return refuse("option/optimizer", engine=engine, optimizer=optimizer, known=known)
    if case.options.get("pure") and case.precision not in ("fp16", "bf16"):
        return refuse("option/pure", precision=case.precision)
    return None
