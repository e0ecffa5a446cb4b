"""Model as data: everything needed to build it offline and to feed it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from accelbench.core.axes import Part, with_axes
from accelbench.core.identity import digest, non_default_values
from accelbench.core.vocabulary import Architecture, Family


@dataclass(frozen=True)
class InputSpec:
    """Named input tensor.

    `shape` has numbers and the names batch, sequence, image and samples (of sound), which a case's
    shapes replace, or such a name less a number, as in "sequence-96". Integer inputs are drawn from
    [low, high); a float input is standard normal. `constant` fills the tensor with one value, and
    `row` gives every item of the batch the same values. `lead` is (value, n): each row of ids
    begins with n times that value, as image placeholders do. `last` is the id at the end of each
    row.
    """

    name: str
    shape: tuple[int | str, ...]
    dtype: str = "float"  # float (follows the precision), or NumPy's name: float32, int64, bool …
    low: int = 0
    high: int = 0
    # A whole number stays an int: the identities of models include its spelling.
    constant: int | float | None = None
    row: tuple[int | float, ...] | None = None
    lead: tuple[int, int] | None = None
    last: int | None = None


@dataclass(frozen=True)
class Generation:
    """Sizes and inputs of a model that generates text token by token.

    A request is one prefill of `inputs` (the prompt, with its image or sound) and then one step per
    token. The prompt's tokens include every position that the model reads before the first token,
    also those of images.
    """

    inputs: tuple[InputSpec, ...]  # of the prefill; "sequence" is the prompt's length
    prompt_tokens: int  # by default
    new_tokens: int  # by default
    max_tokens: int | None = None  # prompt and new together; None: no limit
    min_prompt: int = 1  # the positions of an image and one token
    #: decoder: the prompt is what the decoder reads. encoder-decoder: an encoder reads the
    #: inputs once, and the decoder goes on from `decoder_input_ids`.
    kind: str = "decoder"


@dataclass(frozen=True)
class Training:
    """Loss, labels and changes of a model for training.

    `builder` and `config` are set if training needs a head that inference lacks; None and {} keep
    the model.
    """

    loss: str  # a function of accelbench.models.losses
    labels: tuple[InputSpec, ...]  # inputs of the loss in addition to the outputs
    inputs: tuple[InputSpec, ...] | None = None  # None for those of inference
    builder: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)  # added to the model's own


_declared: dict[str, FileFormat] = {}


class FileFormat(str):
    """Format of model files: its name, with the facts of its declaration.

    The built-in formats are declared below. A plugin declares its own in its engine's card.
    """

    ONNX: ClassVar[FileFormat]
    OPENVINO: ClassVar[FileFormat]
    TFLITE: ClassVar[FileFormat]
    PT2: ClassVar[FileFormat]
    CALLABLE: ClassVar[FileFormat]

    graph: str = "file"  # name of such a file in a sentence
    suffix: str = ""  # of its files
    packages: tuple[str, ...] = ()  # distributions that open it, whose versions matter
    largest: int = 2**31  # bytes of the largest possible file
    mark: bytes = b""  # bytes 4 to 8 of its files, if it is a flatbuffer
    uncounted: str = ""  # reason why operators cannot be read; empty if they can
    reference_engine: str = ""  # the engine that computes the outputs to compare with
    reference_hardware: str = "cpu"  # the hardware that this engine computes them on
    # the options that it computes them with
    reference_options: Mapping[str, str] = MappingProxyType({})
    unverifiable: str = ""  # reason why there is no reference; empty if there is one

    def __new__(cls, name: str) -> FileFormat:
        return _declared.get(name) or super().__new__(cls, name)

    @classmethod
    def declare(cls, name: str, graph: str, **facts: Any) -> FileFormat:
        """Register a format; `facts` are the other attributes."""
        made = _declared[name] = cls(name)
        vars(made).update(facts, graph=graph)
        return made

    @classmethod
    def all_formats(cls) -> tuple[FileFormat, ...]:
        """Return every registered format."""
        return tuple(_declared.values())


# Protobuf is limited to 2 GiB; an OpenVINO graph's XML contains no weights.
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
    """Output of a file's graph, with free dimensions by name."""

    name: str
    dtype: str  # NumPy's name
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class ModelFile:
    """File that a model consists of, instead of a config.

    Its digest is a condition, as for weights: a changed file continues the history of its name, and
    comparisons report the change.
    """

    format: FileFormat  # of the file
    path: str  # absolute; not part of any identity
    digest: str  # SHA-256 of the file and of its further files
    stamp: str  # changes when one of those files changes, without reading them
    precision: str  # of most of its stored weights
    outputs: tuple[FileOutput, ...]  # in the order of its graph
    beside: tuple[str, ...] = ()  # further files with weights, absolute
    fixed_batch: int | None = None  # the only batch size that it accepts
    drawn: Mapping[str, str] = field(default_factory=dict)  # source of each input's values
    # cost of a pass, in the form of the catalogue's `costs.json`
    counted: Mapping[str, Any] | None = None
    uncounted: str = ""  # reason why the cost is not known
    # smallest accepted size of free dimensions by name, if the file declares it,
    least: Mapping[str, int] = field(default_factory=dict)
    most: Mapping[str, int] = field(default_factory=dict)  # and the largest
    casts: bool = True  # whether torch may convert it to another floating-point type
    custom: tuple[str, ...] = ()  # operators that no engine includes, as domain:name
    # name in the inputs here of free dimensions by the file's own name
    renamed: Mapping[str, str] = field(default_factory=dict)


class CodeKind(StrEnum):
    """Kind of the object that a user's code makes."""

    MODULE = "module"  # a torch module, for every engine that accepts those
    CALLABLE = "callable"  # any other callable, which is timed unchanged


#: Prefix of the modules that build models of packages by name.
PACKAGE_MODELS = "accelbench.models.package_models.of_"


@dataclass(frozen=True)
class ModelCode:
    """Python object that a user's code makes, used as a model.

    Its digest is a condition, as for files: changed code continues the history of its name, and
    comparisons report the change.
    """

    kind: CodeKind
    module: str  # import name
    attribute: str  # of the module; dots lead to attributes of attributes
    path: str  # of the executed file, absolute; "" for a module imported by name
    folder: str  # on the search path during the import, absolute
    digest: str  # SHA-256 of the sources
    sources: tuple[str, ...]  # the user's imported files, absolute
    made_by: str  # "itself", or the call of a "class" or a "factory"
    reference: str = ""  # attribute of the same module that gives the right answers
    # for a reference: attribute and `made_by` of the object whose example it uses; () for its own
    example_of: tuple[str, ...] = ()
    fixed_batch: int | None = None  # the only batch size that it accepts
    drawn: Mapping[str, str] = field(default_factory=dict)  # source of each input's values
    notes: tuple[str, ...] = ()  # findings that a reader should know
    # cost of a pass, in the form of the catalogue's `costs.json`
    counted: Mapping[str, Any] | None = None
    uncounted: str = ""  # reason why the cost is not known

    @property
    def package(self) -> str:
        """Package that builds the model by name; "" for a user's own code."""
        prefixed = self.module.startswith(PACKAGE_MODELS)
        return self.module.removeprefix(PACKAGE_MODELS) if prefixed else ""


#: The builder of sentence-transformers models: a transformer with its pooling.
SENTENCE_ENCODER = ".networks.sentence:SentenceEncoder"


@dataclass(frozen=True)
@with_axes(lambda axis: axis.field, None, Part.INPUT, Part.PASSES)
class ModelSpec:
    """Model to run. Fields with the name of an axis are the model's default sizes."""

    id: str
    family: Family
    architecture: Architecture
    modalities: tuple[str, ...]
    task: str
    size: str  # tiny · small · base · large
    builder: str  # "transformers:BertModel" — a function of the catalogue's builders
    config: Mapping[str, Any]
    inputs: tuple[InputSpec, ...]
    parameters: int  # exact count of the built model, checked by a test
    item: str = "items"  # what one element of a batch is: images, sequences, …
    sequence: int | None = None  # default sequence length
    image: int | None = None  # default image side
    max_sequence: int | None = None
    audio: int | None = None  # default seconds of sound
    sampling_rate: int | None = None  # of that sound, in hertz
    fixed_audio: bool = False  # the model accepts only this many seconds
    steps: int | None = None  # default denoising steps an image
    dims: str | None = None  # free dimensions by the file's own names; "?" without a size
    procedure: str = "forward"  # of one inference step: forward · denoise · rag
    generation: Generation | None = None
    training: Training | None = None
    aliases: tuple[str, ...] = ()
    hub_ids: tuple[str, ...] = ()
    small_variant: str | None = None  # advised if this model does not fit
    sets: tuple[str, ...] = field(default=())  # key, small
    file: ModelFile | None = None  # replaces builder and config
    folder: str | None = None  # of its own weights; not part of its identity
    code: ModelCode | None = None  # replaces builder and config

    def weights_setting(self, setting: str) -> str:
        """Return the folder of its own weights, or the setting of the run."""
        return self.folder or setting

    @property
    def user_source(self) -> ModelFile | ModelCode | None:
        """The user's file or code that defines the model; None if a config builds it."""
        return self.file or self.code

    @property
    def is_user_model(self) -> bool:
        """Whether a user's file or code defines the model."""
        return self.user_source is not None

    @property
    def format(self) -> FileFormat | None:
        """Format that an engine must open to run it; None if torch builds it."""
        if self.code is not None:
            return FileFormat.CALLABLE if self.code.kind is CodeKind.CALLABLE else None
        return None if self.graph is None else self.graph.format

    @property
    def graph(self) -> ModelFile | None:
        """File that engines open unchanged; None if torch makes a module of it."""
        return None if self.file is None or self.file.format is FileFormat.PT2 else self.file

    @property
    def fixed_batch(self) -> int | None:
        """The only batch size that it accepts; None if it accepts any."""
        return None if self.user_source is None else self.user_source.fixed_batch

    @cached_property
    def config_digest(self) -> str:
        """Digest of everything that is built and fed."""
        return digest(
            non_default_values(
                {"builder": self.builder, "config": self.config, "inputs": self.inputs}
            )
        )

    @property
    def training_variant(self) -> ModelSpec:
        """The model for training, with the head and the labels of training."""
        training = self.training
        if training is None:
            raise ValueError(f"{self.id} has no training")
        return replace(
            self,
            builder=training.builder or self.builder,
            config={**self.config, **training.config},
            inputs=(
                *(self.inputs if training.inputs is None else training.inputs),
                *training.labels,
            ),
        )


@dataclass(frozen=True)
class AnalyticCost:
    """Cost of one step, calculated without running the model."""

    flops: float  # a multiplication and an addition count as two
    bytes_moved: float  # weights, inputs, outputs and intermediate results, each once
    activation_bytes: float  # the sum of intermediate results of one forward pass
    peak_activation_bytes: float  # the largest amount alive at once
    weight_bytes: float
