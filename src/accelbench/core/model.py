"""A model as data: everything needed to build it offline and to feed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from accelbench.core.axes import Part, with_axes
from accelbench.core.identity import digest, said
from accelbench.core.vocabulary import Architecture, Family


@dataclass(frozen=True)
class InputSpec:
    """One named input tensor.

    `shape` holds numbers and the names batch, sequence, image and samples (of
    sound), which a case's shapes fill in, or one of them less a number, as in
    "sequence-96". Integer inputs are drawn from
    [low, high); a float input is standard normal. `constant` fills the tensor
    with one value, `row` gives every item of the batch the same values. `lead`
    is (value, n): each row of ids begins with n times that value, as image
    placeholders do; `last` is the id that each row ends with.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str = "float"  # float (follows the precision), or NumPy's name: float32, int64, bool …
    low: int = 0
    high: int = 0
    # A whole number stays one: the identities of models are made of its spelling.
    constant: int | float | None = None
    row: tuple[int | float, ...] | None = None
    lead: tuple[int, int] | None = None
    last: int | None = None


@dataclass(frozen=True)
class Generation:
    """How a model makes text, token by token.

    A request is one prefill of `inputs` — the prompt, with whatever image or
    sound belongs to it — and then one step a token. The prompt's tokens count
    everything that the model reads before the first token, image places too.
    """

    inputs: tuple[InputSpec, ...]  # of the prefill; "sequence" is the prompt's length
    prompt_tokens: int  # by default
    new_tokens: int  # by default
    max_tokens: int | None = None  # prompt and new together; None: no limit
    min_prompt: int = 1  # image places that must fit, and one token
    #: decoder: the prompt is what the decoder reads. encoder-decoder: an encoder reads the
    #: inputs once, and the decoder goes on from `decoder_input_ids`.
    kind: str = "decoder"


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    `builder` and `config` stand where training needs a head that inference
    does not have; None and {} mean the model as it is.
    """

    loss: str  # a function of accelbench.models.losses
    labels: tuple[InputSpec, ...]  # what the loss takes beside the outputs
    inputs: tuple[InputSpec, ...] | None = None  # None: those of inference
    builder: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)  # added to the model's own


_declared: dict[str, FileFormat] = {}


class FileFormat(str):
    """The name of a format of model files, with what its declaration says of it.

    Ours are declared below; a plugin declares its own where its engine's card names it.
    """

    ONNX: ClassVar[FileFormat]
    OPENVINO: ClassVar[FileFormat]
    TFLITE: ClassVar[FileFormat]
    PT2: ClassVar[FileFormat]
    CALLABLE: ClassVar[FileFormat]

    graph: str = "file"  # what such a file is, in a sentence
    suffix: str = ""  # how its files end
    packages: tuple[str, ...] = ()  # distributions whose versions decide how it is opened
    largest: int = 2**31  # bytes of the largest file that there can be
    mark: bytes = b""  # bytes 4 to 8 of its files, if it is a flatbuffer
    uncounted: str = ""  # why no operators are read from it; empty if they are
    reference_engine: str = ""  # the engine that computes the outputs to compare with
    reference_hardware: str = "cpu"  # the hardware that this engine computes them on
    # the options that it computes them with
    reference_options: Mapping[str, str] = MappingProxyType({})
    unverifiable: str = ""  # why there is nothing to compare with; empty if there is

    def __new__(cls, name: str) -> FileFormat:
        return _declared.get(name) or super().__new__(cls, name)

    @classmethod
    def declare(cls, name: str, graph: str, **facts: Any) -> FileFormat:
        """Make a format known; `facts` are the other attributes."""
        made = _declared[name] = cls(name)
        vars(made).update(facts, graph=graph)
        return made

    @classmethod
    def known(cls) -> tuple[FileFormat, ...]:
        """Return every format that is declared."""
        return tuple(_declared.values())


# Protobuf holds 2 GiB; an OpenVINO graph's XML has none of the weights in it.
FileFormat.ONNX = FileFormat.declare(
    "onnx",
    "ONNX graph",
    suffix=".onnx",
    reference_engine="onnxruntime",
    reference_options={"optimization": "disabled"},
)
FileFormat.OPENVINO = FileFormat.declare(
    "openvino",
    "OpenVINO graph",
    suffix=".xml",
    largest=2**29,
    reference_engine="openvino",
    reference_hardware="openvino",
)
FileFormat.TFLITE = FileFormat.declare(
    "tflite",
    "TensorFlow Lite model",
    suffix=".tflite",
    packages=("ai-edge-litert",),
    mark=b"TFL3",
    reference_engine="litert",
    reference_options={"kernels": "reference"},
)
FileFormat.PT2 = FileFormat.declare("pt2", "program of torch.export", suffix=".pt2", largest=2**40)
FileFormat.CALLABLE = FileFormat.declare("callable", "Python callable")


@dataclass(frozen=True)
class FileOutput:
    """An output of a file's graph; a free dimension by its name."""

    name: str
    dtype: str  # NumPy's name
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class ModelFile:
    """The file that a model is, where no config builds it.

    What is measured is told apart by its digest, a condition as weights are: a file that was
    changed goes on with the history of its name, and comparisons say so.
    """

    format: FileFormat  # of the file
    path: str  # absolute; no part of any identity
    digest: str  # SHA-256 of the file and of what lies beside it
    stamp: str  # what tells, without reading them, that one of those files was changed since
    precision: str  # what most of its weights are stored in
    outputs: tuple[FileOutput, ...]  # in the order of its graph
    beside: tuple[str, ...] = ()  # files that hold weights of it, absolute
    # items that it takes at once, where it takes no other number of them
    fixed_batch: int | None = None
    # of inputs what their values are drawn from, and how that is known
    drawn: Mapping[str, str] = field(default_factory=dict)
    # what a pass costs, as `costs.json` has it of the catalogue's models
    counted: Mapping[str, Any] | None = None
    uncounted: str = ""  # why that is not known
    # of free sizes by name the smallest that it takes, where it says one,
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)  # and the largest
    casts: bool = True  # whether torch may hold it in another floating-point type
    custom: tuple[str, ...] = ()  # operators that no engine brings by itself, as domain:name
    # of free sizes by the file's own name what inputs here call them
    renamed: Mapping[str, str] = field(default_factory=dict)


class CodeKind(StrEnum):
    """What the object is that a piece of code gives."""

    MODULE = "module"  # of torch: any engine that takes torch's modules runs it
    CALLABLE = "callable"  # anything else that can be called: it is timed as it is


#: Modules that build models of packages by name, each with the package's name behind this.
PACKAGE_MODELS = "accelbench.models.package_models.of_"


@dataclass(frozen=True)
class ModelCode:
    """The Python object that a model is, where its owner's code makes it.

    As of a file, what is measured is told apart by a digest that is a condition: code that was
    changed goes on with the history of its name, and comparisons say so.
    """

    kind: CodeKind  # what the object is
    module: str  # the name that it is imported by
    attribute: str  # of the module; dots lead to attributes of attributes
    path: str  # of the file that is run, absolute; "" of a module that is imported by its name
    folder: str  # on the search path while it is imported, absolute
    digest: str  # SHA-256 of the sources
    sources: tuple[str, ...]  # the owner's files that were imported, absolute
    # how the attribute gives the object: "itself", or by a call of a "class" or a "factory"
    made_by: str
    reference: str = ""  # an attribute of the same module whose answers are the right ones
    # the attribute, and how that is made, whose example it is called with: of a reference, which is
    # compared with that; () where it has its own
    example_of: tuple[str, ...] = ()
    # items that it takes at once, where it takes no other number of them
    fixed_batch: int | None = None
    # of inputs what their values are drawn from, and how that is known
    drawn: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what was found of it that a reader should know
    # what a pass costs, as `costs.json` has it of the catalogue's models
    counted: Mapping[str, Any] | None = None
    uncounted: str = ""  # why that is not known

    @property
    def package(self) -> str:
        """The package that builds it by name; "" of an owner's own code."""
        prefixed = self.module.startswith(PACKAGE_MODELS)
        return self.module.removeprefix(PACKAGE_MODELS) if prefixed else ""


#: The builder of sentence-transformers models: a transformer with its pooling.
SENTENCE_ENCODER = ".networks.sentence:SentenceEncoder"


@dataclass(frozen=True)
@with_axes(lambda axis: axis.field, None, Part.INPUT, Part.PASSES)
class ModelSpec:
    """Something to run. What is called as an axis of sizes is the model's own size."""

    id: str
    family: Family
    architecture: Architecture
    modalities: tuple[str, ...]
    task: str
    size: str  # tiny · small · base · large
    builder: str  # "transformers:BertModel" — a function of the catalogue's builders
    config: Mapping[str, Any]
    inputs: tuple[InputSpec, ...]
    parameters: int  # exact count of the built model, held by a test
    item: str = "items"  # what one element of a batch is: images, sequences, …
    sequence: int | None = None  # default sequence length
    image: int | None = None  # default image side
    max_sequence: int | None = None
    audio: int | None = None  # default seconds of sound
    sampling_rate: int | None = None  # of that sound, in hertz
    fixed_audio: bool = False  # the model takes this many seconds and no other
    steps: int | None = None  # default denoising steps an image
    dims: str | None = None  # free dimensions of a file's own names; "?" of those without a size
    procedure: str = "forward"  # what one inference step is: forward · denoise · rag
    generation: Generation | None = None
    training: Training | None = None
    aliases: tuple[str, ...] = ()
    hub_ids: tuple[str, ...] = ()
    small_variant: str | None = None  # the model to advise when this one does not fit
    sets: tuple[str, ...] = field(default=())  # key, small
    file: ModelFile | None = None  # what it is, in place of builder and config
    folder: str | None = None  # of weights of its own; no part of its identity, as they are none
    code: ModelCode | None = None  # what makes it, in place of builder and config

    def weights_from(self, setting: str) -> str:
        """Where its weights come from: its own folder, or what a run says of all models."""
        return self.folder or setting

    @property
    def own(self) -> ModelFile | ModelCode | None:
        """What its owner brought, a file or code; None of what a config builds."""
        return self.file or self.code

    @property
    def is_own(self) -> bool:
        """Whether its owner brought it, as a file or as code; nothing is known of it but that."""
        return self.own is not None

    @property
    def format(self) -> FileFormat | None:
        """What an engine must open to run it; None of what torch builds."""
        if self.code is not None:
            return FileFormat.CALLABLE if self.code.kind is CodeKind.CALLABLE else None
        return None if self.graph is None else self.graph.format

    @property
    def graph(self) -> ModelFile | None:
        """The file that engines open as it is; None of one that torch makes a module of."""
        return None if self.file is None or self.file.format is FileFormat.PT2 else self.file

    @property
    def fixed_batch(self) -> int | None:
        """Items that it takes at once, where it takes no other number of them."""
        return None if self.own is None else self.own.fixed_batch

    @cached_property
    def config_digest(self) -> str:
        """Changes whenever what would be built or fed changes."""
        return digest(said({"builder": self.builder, "config": self.config, "inputs": self.inputs}))

    @property
    def trained(self) -> ModelSpec:
        """The model as it is trained: with the head, and fed with the labels, of training."""
        how = self.training
        if how is None:
            raise ValueError(f"{self.id} has no training")
        return replace(
            self,
            builder=how.builder or self.builder,
            config={**self.config, **how.config},
            inputs=(*(self.inputs if how.inputs is None else how.inputs), *how.labels),
        )


@dataclass(frozen=True)
class AnalyticCost:
    """What one step costs on paper, found without running the model."""

    flops: float  # multiply and add counted apart
    bytes_moved: float  # weights, inputs, outputs and intermediate results, each once
    activation_bytes: float  # the sum of intermediate results of one forward pass
    peak_activation_bytes: float  # the largest amount alive at once
    weight_bytes: float
