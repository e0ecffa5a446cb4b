"""What a model has against a case, whatever engine it is asked of. Pure."""

from __future__ import annotations

from accelbench.core.case import Case
from accelbench.core.nouns import listed
from accelbench.core.protocols import Runtime
from accelbench.core.vocabulary import Mode, Status
from accelbench.run.plan.request import Refusal


def untrainable(case: Case) -> Refusal | None:
    """Training of a model that nothing says how it is trained."""
    if case.mode is not Mode.TRAINING or case.model.training is not None:
        return None
    message = f"the catalogue does not say how {case.model.id} is trained"
    advice = "Use --mode inference."
    if case.model.file is not None:
        message = f"{case.model.id} is an exported graph, which is not trained"
    if case.model.code is not None:
        message = f"{case.model.id} does not say how it is trained"
        advice = "Give it a loss and example_labels, or use --mode inference."
    if "custom" in case.model.sets:
        class_name = case.model.builder.rpartition(":")[2]
        message = f"{class_name}, the class of {case.model.id}, does not tell how it is trained"
        advice = (
            "Name a class with a head, such as BertForSequenceClassification, in the config's"
            " architectures or as the entry's class, or use --mode inference."
        )
    return Refusal(Status.UNSUPPORTED, "mode", message, advice)


def unopened(runtime: Runtime, case: Case) -> Refusal | None:
    """A file or a callable that the runtime does not open, or not in that precision."""
    file, wanted, name = case.model.graph, case.model.format, runtime.info.name
    if wanted is not None and wanted not in runtime.info.files:
        return Refusal(
            Status.UNSUPPORTED,
            "format",
            f"the {name} runtime does not open {wanted.graph}s",
            "Leave out --framework: each platform has an engine that does, or is left out.",
        )
    if file is None:
        return None
    lacking = [name for name in file.custom if name.rpartition(":")[0] not in runtime.info.domains]
    if lacking:
        return Refusal(
            Status.UNSUPPORTED,
            "operator",
            f"the {name} runtime has no operator {listed(lacking)}",
            "Leave it out of the graph, or measure the part that is of ONNX's operators.",
        )
    if file.precision != "fp32" and case.precision not in (file.precision, "fp32"):
        what = f"{case.model.id} is stored in {file.precision}"
        advice = f"Use --precision {file.precision}, or name the file in fp32 that it was made of."
        return Refusal(Status.UNSUPPORTED, "precision", what, advice)
    if file.precision == "int8" and case.precision != "int8":
        return Refusal(
            Status.UNSUPPORTED,
            "precision",
            f"{case.model.id} is quantised: its products are of int8",
            "Use --precision int8, or name the file that it was quantised from.",
        )
    return None
