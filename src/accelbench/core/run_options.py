"""RunSpec: every setting of a run, declared once.

The options of `run` and `fleet run`, the keys of plan files and of accelbench.toml, their JSON
Schema, the journal, the wire to workers and the reference page are made from these fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from msgspec import UNSET, Meta, Struct, ValidationError, convert
from msgspec import field as struct_field
from msgspec.inspect import Metadata, NoneType, UnionType, VarTupleType, type_info
from msgspec.structs import FieldInfo, fields
from msgspec.structs import replace as replace_struct

from accelbench.core.axes import AXES, Axis
from accelbench.core.formatting import LARGEST

DEFAULT_TIMEOUT = 600.0


class PlanSection(StrEnum):
    """Section of a plan file that contains a key."""

    SELECTION = "selection"  # the models, at the top level
    MATRIX = "matrix"  # each value gives separate cases
    RUN = "run"  # one value for the whole run
    NONE = "none"  # not in plan files: output, start of the run, programs


GROUPS = (
    "Models",
    "Hardware and engines",
    "Sizes",
    "Inputs and weights",
    "Precision, mode and training",
    "Several processes",
    "Measuring",
    "Verification and workarounds",
    "The run",
    "Output",
)
MODELS, HARDWARE, SIZES, INPUTS, COMPUTING, DISTRIBUTED, MEASURING, CHECKING, RUNS, OUTPUT = GROUPS
_SELECTION, _MATRIX, _NONE = PlanSection.SELECTION, PlanSection.MATRIX, PlanSection.NONE


def option(
    group: str,
    about: str,
    *,
    example: str = "",
    names: str = "",
    section: PlanSection = PlanSection.RUN,
    **extra: Any,
) -> Meta:
    """Describe a field: the group and text of its help, an example, and its option names.

    `section` is its place in plan files; `extra` are further attributes of a `RunField`.
    """
    own = {"group": group, "names": tuple(names.split()), "section": section, **extra}
    return Meta(description=about, examples=[example] if example else None, extra=own)


Whole = Annotated[int, Meta(ge=0, le=LARGEST)]
Count = Annotated[int, Meta(ge=1, le=LARGEST)]
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]


# Three lines an option instead of ten.
# fmt: off
class JobSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that a worker needs in addition to its case."""

    seed: Annotated[Seed, option(MEASURING, "Seed of weights and inputs.", example="7")] = 0
    weights: Annotated[str, option(
        INPUTS, "Weights: random (seeded), hub, or a folder with safetensors.", example="hub",
        words=("random", "hub"))] = "random"
    data: Annotated[str | None, option(
        INPUTS, "Real inputs: a folder of images, sound or text, in class folders if they have"
        " labels; a table of text and label (.csv, .tsv, .jsonl); or arrays with labels (.npz).",
        example="photos/", kind="path", words=("synthetic",))] = None
    accuracy: Annotated[str, option(
        INPUTS, "Metric for labelled --data: top1, top5, f1, perplexity or off; by default chosen"
        " by the labels.", example="top1", metavar="METRIC")] = "auto"
    accuracy_samples: Annotated[Count | None, option(
        INPUTS, "Use at most this many labelled samples; all by default.", example="1000")] = None
    preprocessing: Annotated[str | None, option(
        INPUTS, "How your own model takes its data: imagenet, half, unit or bytes for pictures,"
        " wave:RATE or normalised:RATE for sound, or the path of a preprocessor_config.json or"
        " tokenizer.json; by default the file next to the model.", example="imagenet",
        metavar="RECIPE")] = None
    trust_remote_code: Annotated[bool, option(
        INPUTS, "Run the code that a weights folder contains.", section=_NONE)] = False
    threads: Annotated[Count | None, option(
        COMPUTING, "Threads of the engine; by default the engine's own choice.", section=_MATRIX,
        example="4")] = None
    energy: Annotated[bool, option(
        MEASURING, "Measure energy and power with the device's own meter, in an extra pass of about"
        " 9 s.")] = False
    nodes: Annotated[Count, option(
        DISTRIBUTED, "Machines that run --distributed, each with the same number of processes.",
        names="--nnodes", example="2")] = 1
    rendezvous: Annotated[str | None, option(
        DISTRIBUTED, "Address of machine 0, where the machines meet.", names="--rdzv-endpoint",
        metavar="HOST:PORT", example="10.0.0.1:29500")] = None

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return cls.__struct_fields__

    def with_values(self, **values: Any) -> Self:
        return replace_struct(self, **values)

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.names()}

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Self:
        """Return the settings of plain JSON, with defaults for missing ones.

        Raises ValueError if a setting is unknown to this version or has a wrong value: ignoring it
        would run something other than requested.
        """
        if unknown := [name for name in body if name not in cls.names()]:
            raise ValueError(f"this version does not know the setting {', '.join(unknown)}")
        try:
            return convert(dict(body), cls)
        except ValidationError as error:
            raise ValueError(str(error)) from error


class RunSettings(JobSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a run that its journal records."""

    run_id: str = ""  # given when the run starts
    launches: Annotated[Count, option(
        MEASURING, "Fresh processes for each case, 1 by default, 5 for --framework both and"
        " --against; verdicts need five or more.", example="5", unset=None)] = 1
    iterations: Annotated[Count | None, option(
        MEASURING, "Take exactly this many samples, instead of enough for the precision goal.",
        example="100")] = None
    warmup: Annotated[Whole | None, option(
        MEASURING, "Take exactly this many warm-up steps, instead of until steady.",
        example="10")] = None
    timeout: Annotated[float, option(
        MEASURING, "Limit for loading and for each case (10m by default), for describing a model"
        " (5m), and for --against to answer (2m).", example="20m", kind="duration",
        unset=None)] = DEFAULT_TIMEOUT
    budget: Annotated[float | None, option(
        MEASURING, "Limit for the whole run; every case gets a share.", kind="duration",
        example="10m")] = None
    verify: Annotated[str, option(
        CHECKING, "Compare outputs with PyTorch in fp32 on the CPU: auto; require, which fails a"
        " case that cannot be verified; only; or off.", example="require")] = "auto"
    fix: bool = True
    profile: Annotated[bool, option(
        MEASURING, "Show where the time of each case goes, by operator, from a separate session."
    )] = False

    def to_dict(self) -> dict[str, Any]:
        names = dict.fromkeys(("run_id", *RunSettings.names()))
        return {name: getattr(self, name) for name in names}

    def for_options(self, options: Mapping[str, Any]) -> Self:
        """Return the settings of a case, whose options replace those of its job."""
        own = JobSettings.names()
        return self.with_values(**{name: options[name] for name in own if name in options})


Words = tuple[str, ...]


class RunSpec(RunSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Complete request for a run."""

    models: Annotated[Words, option(
        MODELS, "Names, aliases or hub ids; accelbench models lists them. Or your own: model.onnx,"
        " model.py:make. Or plan files: YAML, TOML or JSON.", example="bert-base",
        section=_SELECTION, metavar="MODEL", argument=True, columns=("model",))] = ()
    set_name: Annotated[str | None, option(
        MODELS, "A set of models: key, architectures, small or custom.", section=_SELECTION,
        names="--set --models-set", example="small")] = None
    models_file: Annotated[Path | None, option(
        MODELS, "A JSON file that describes models of your own.", section=_SELECTION,
        names="--models-file --custom-models", example="models.json")] = None
    category: Annotated[Words, option(
        MODELS, "Families or modalities: vision, text, embedding …", section=_SELECTION,
        example="vision")] = ()
    specific: Annotated[Words, option(
        MODELS, "Only these models of the set.", section=_SELECTION, names="--specific-models",
        example="bert-tiny")] = ()
    every: Annotated[bool, option(
        MODELS, "Every model of the catalogue.", section=_SELECTION, names="--all")] = False
    limit: Annotated[Count | None, option(
        RUNS, "Measure at most this many cases.", example="20")] = None
    hardware: Annotated[Words, option(
        HARDWARE, "Platforms, such as cpu, cuda:1 or gpu; all present by default; auto uses, for"
        " each model, what accelbench recommend names.", example="cpu,cuda", section=_MATRIX)] = ()
    simulate: Annotated[bool, option(
        HARDWARE, "Calculate limits from the data sheet of hardware that is named but absent, such"
        " as cuda:a100-80gb; they are not measured and never compared.")] = False
    browser: Annotated[Path | None, option(
        HARDWARE, "The program of the browser that runs webgpu, webnn and wasm.", section=_NONE,
        example="/usr/bin/chromium")] = None
    framework: Annotated[Words, option(
        HARDWARE, "Engines, such as pytorch or onnxruntime; both is pytorch and jax, in turns.",
        example="pytorch,onnxruntime", section=_MATRIX, columns=("runtime",))] = ()
    batch_sizes: Annotated[tuple[Count, ...], option(
        SIZES, "Items in one step; 1, 8, 32 and 128 as memory allows by default.", example="1,8",
        section=_MATRIX, columns=("batch_size",))] = ()
    sizes: dict[str, tuple[Any, ...]] = struct_field(default_factory=dict)  # by `Axis.asked`
    inputs: Annotated[Words, option(
        INPUTS, "Type, shape and values of an input of your own model, if its file or example"
        " lacks them: ids=int64[batch,128]:0..30522.", example="ids=int64[batch,128]:0..30522",
        names="--input", metavar="NAME=…", section=_NONE, whole=True)] = ()
    reference: Annotated[str, option(
        INPUTS, "The function that gives the right answers for a callable of your own, from the"
        " same file.", metavar="NAME", section=_NONE, example="expected")] = ""
    input_file: Annotated[Path | None, option(
        INPUTS, "Arrays for the inputs of a model file, by name; other inputs are random.",
        metavar="FILE.npz", section=_NONE, example="inputs.npz")] = None
    precision: Annotated[Words, option(
        COMPUTING, "fp32, fp16, bf16, int8, amp-fp16 or amp-bf16; fp32 by default, or the engine's"
        " first if it lacks fp32.", example="fp32,bf16", section=_MATRIX)] = ()
    mode: Annotated[Words, option(
        COMPUTING, "inference, training, or both; inference by default.", section=_MATRIX,
        example="training")] = ()
    optimizer: Annotated[str | None, option(
        COMPUTING, "For training: adamw (the default) or sgd.", section=_MATRIX,
        example="sgd")] = None
    checkpointing: Annotated[bool, option(
        COMPUTING, "For training: recompute activations, which needs less memory and more time.",
        section=_MATRIX, names="--gradient-checkpointing")] = False
    pure: Annotated[bool, option(
        COMPUTING, "For training in fp16 or bf16: half-precision weights, no autocast.",
        section=_MATRIX)] = False
    compiled: Annotated[bool, option(
        COMPUTING, "Compile with the engine's own compiler; its time is reported separately.",
        section=_MATRIX, names="--compile")] = False
    runtime_options: Annotated[Words, option(
        COMPUTING, "An option of one engine, such as openvino.hint=throughput.", section=_MATRIX,
        names="--option", metavar="RUNTIME.NAME=VALUE", whole=True,
        example="openvino.hint=throughput")] = ()
    distributed: Annotated[bool, option(
        DISTRIBUTED, "Make each step with several processes or devices.")] = False
    gpu_count: Annotated[Count | None, option(
        DISTRIBUTED, "Number of GPUs, one process each; 2 by default.", example="4")] = None
    processes: Annotated[Count | None, option(
        DISTRIBUTED, "Number of processes on any hardware; on a CPU they share its cores.",
        names="--processes --world-size", example="2")] = None
    max_memory_gb: Annotated[float | None, option(
        DISTRIBUTED, "Memory limit of each process; the free memory by default.",
        example="40")] = None
    strategy: Annotated[str | None, option(
        DISTRIBUTED, "ddp, fsdp2, fsdp or tp; auto, the default, uses the first that fits.",
        example="fsdp2")] = None
    accumulate: Annotated[Count | None, option(
        DISTRIBUTED, "Micro-batches in one step; by default as many as memory requires.",
        example="4")] = None
    no_baseline: Annotated[bool, option(DISTRIBUTED, "Do not measure one process as well.")] = False
    node_rank: Annotated[Whole | None, option(
        DISTRIBUTED, "Number of this machine: 0 measures, the others take part.", section=_NONE,
        example="1")] = None
    against: Annotated[str | None, option(
        RUNS, "Measure in turns with another environment (a folder, a Python, a command that"
        " starts one), commit:REVISION, or a setting such as threads=1, and compare with it.",
        example="commit:main", metavar="ENV", section=_NONE)] = None
    threshold: Annotated[float | None, option(
        RUNS, "For --against: exit as `accelbench check` does; 0.1 means 10 % slower.",
        section=_NONE, example="0.1")] = None
    verify_only: Annotated[bool, option(CHECKING, "Verify, and time nothing.")] = False
    benchmark_only: Annotated[bool, option(CHECKING, "Time, and verify nothing.")] = False
    no_fix: Annotated[bool, option(CHECKING, "Do not try workarounds if a model fails.")] = False
    save_plan: Annotated[Path | None, option(
        RUNS, "Write the run as a plan file, in the format of its suffix, and measure nothing.",
        metavar="FILE", section=_NONE, example="nightly.yaml")] = None
    plan_schema: Annotated[bool, option(
        RUNS, "Print the JSON Schema of plan files.", section=_NONE)] = False
    dry_run: Annotated[bool, option(
        RUNS, "Show the plan and its estimated duration.", section=_NONE)] = False
    resume: Annotated[str | None, option(
        RUNS, "Continue an interrupted run: its id, or last.", metavar="RUN", section=_NONE,
        example="last")] = None
    db: Annotated[Path | None, option(
        OUTPUT, "The database; else $ACCELBENCH_DB, else ./accelbench.duckdb.", section=_NONE,
        example="results.duckdb")] = None
    no_database: Annotated[bool, option(
        OUTPUT, "Keep only the journal and the files asked for.", section=_NONE)] = False
    output_dir: Annotated[Path | None, option(
        OUTPUT, "Folder for result files: raw_results/MODEL_HARDWARE_….json, and profiles/",
        section=_NONE, example="results/")] = None
    output_ci: Annotated[Path | None, option(
        OUTPUT, "One JSON file with every result of this run.", section=_NONE,
        example="results.json")] = None
    compare: Annotated[bool, option(
        OUTPUT, "Compare the results along every axis at the end.", section=_NONE)] = False
    create_report: Annotated[bool, option(
        OUTPUT, "Write a report as HTML at the end, into --output-dir if it is given.",
        section=_NONE)] = False
    prices: Annotated[Path | None, option(
        OUTPUT, "For --compare and --create-report: a JSON file of prices, for costs; else"
        " $ACCELBENCH_PRICES.", section=_NONE, example="prices.json")] = None
    label: Annotated[str | None, option(RUNS, "A name for this run.", example="nightly")] = None
    as_json: Annotated[bool, option(
        OUTPUT, "Print one JSON document on standard output, and progress on standard error.",
        section=_NONE, names="--json")] = False
    quiet: Annotated[bool, option(
        OUTPUT, "Print only errors.", section=_NONE, names="--quiet -q")] = False

# fmt: on


@dataclass(frozen=True)
class RunField:
    """A setting of a run, or an option of another command."""

    name: str  # of the field, which is the parameter of the command
    names: tuple[str, ...]  # of the option, with dashes; empty for an argument
    # of one value
    kind: Literal["text", "number", "truth", "fraction", "path", "duration"] = "text"
    several: bool = False  # whether it takes a list
    whole: bool = False  # whether commas do not separate the values of its list
    default: Any = None  # of the option
    section: PlanSection = PlanSection.NONE  # its place in plan files
    least: int | None = None  # of a number
    most: int | None = None
    group: str = ""
    about: str = ""  # what it does
    example: str = ""
    metavar: str | None = None
    columns: tuple[str, ...] = ()  # further names, those of columns of results
    words: tuple[str, ...] = ()  # values of a path that are not paths
    hidden: bool = False  # whether help leaves it out
    axis: Axis | None = field(default=None, compare=False)

    @property
    def option(self) -> str:
        return self.names[0] if self.names else ""

    @property
    def key(self) -> str:
        return self.option.lstrip("-").replace("-", "_") or self.name

    @property
    def is_path(self) -> bool:
        return self.kind == "path" or bool(self.words)


@cache
def run_fields() -> tuple[RunField, ...]:
    """Return every setting that has an option, in the order of the help."""
    made = [one for info in fields(RunSpec) for one in _fields_of(info)]
    return tuple(sorted(made, key=lambda one: GROUPS.index(one.group)))


def _fields_of(info: FieldInfo) -> list[RunField]:
    if info.name == "sizes":
        return list(map(size_field, AXES))
    metas = [one for one in getattr(info.type, "__metadata__", ()) if one.extra]
    if not metas:
        return []
    meta, extra = metas[-1], dict(metas[-1].extra)
    several, value = _value_of(info.type)
    kind: Any = extra.pop("kind", None) or _KINDS.get(type(value).__name__, "path")
    argument = extra.pop("argument", False)
    names = extra.pop("names", ()) or (f"--{info.name.replace('_', '-')}",)
    default = extra.pop("unset", info.default)
    return [
        RunField(
            name=info.name,
            names=() if argument else names,
            kind=kind,
            several=several,
            default=None if several or default is UNSET else default,
            least=getattr(value, "ge", None),
            most=getattr(value, "le", None),
            about=meta.description or "",
            example=str((meta.examples or [""])[0]),
            **extra,
        )
    ]


_KINDS = {"StrType": "text", "IntType": "number", "BoolType": "truth", "FloatType": "fraction"}


def _value_of(type_: Any) -> tuple[bool, Any]:
    info: Any = type_info(type_)
    info = info.type if isinstance(info, Metadata) else info
    if isinstance(info, UnionType):
        info = next(one for one in info.types if not isinstance(one, NoneType))
    several = isinstance(info, VarTupleType)
    return several, info.item_type if several else info


def size_field(axis: Axis) -> RunField:
    """Return the option of an axis of sizes."""
    return RunField(
        name=axis.option_key,
        names=(axis.option,),
        kind="text" if axis.text else "number",
        several=True,
        whole=axis.text,
        section=PlanSection.MATRIX,
        least=None if axis.text else axis.least,
        most=None if axis.text else LARGEST,
        group=SIZES,
        about=axis.help,
        columns=() if axis.column == axis.option_key else (axis.column,),
        axis=axis,
    )


@cache
def _fields_by_key() -> dict[str, RunField]:
    known = plan_fields()
    return {name: one for one in known for name in one.columns} | {one.key: one for one in known}


def plan_fields(section: PlanSection | None = None) -> list[RunField]:
    """Return the settings that plan files have, or those of a section."""
    return [
        one
        for one in run_fields()
        if one.section is not PlanSection.NONE and section in (None, one.section)
    ]


def field_of(key: str) -> RunField | None:
    """Return the setting that a key of a plan file means; dashes may stand for underscores."""
    return _fields_by_key().get(key.replace("-", "_"))
