"""Losses of training, one function per kind of task, in fp32. It imports torch on use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from accelbench.core.errors import CaseError, MissingExtraError, UsageError
from accelbench.core.safe_text import in_quotes

if TYPE_CHECKING:
    from torch import Tensor

Loss = Callable[[Any, Mapping[str, "Tensor"]], "Tensor"]

#: A label that is not judged: padding, or the place of an image in a text.
IGNORED = -100

#: DETR's published weights of the parts of its cost and of its loss, and of "no object".
_DETR = {
    "class_cost": 1.0, "bbox_cost": 5.0, "giou_cost": 2.0, "bbox_loss_coefficient": 5.0,
    "giou_loss_coefficient": 2.0, "eos_coefficient": 0.1, "auxiliary_loss": False,
}  # fmt: skip


#: The loss that an owner's module brings, and where the module has it: no layer of its own.
OWN, _KEPT = "own", "_accelbench_loss"


def bring(module: Any, loss: Callable[..., Any]) -> None:
    """Attach an owner's loss to a module, past torch's registration of attributes."""
    object.__setattr__(module, _KEPT, loss)


def loss_of_module(name: str, module: Any) -> Loss:
    """Return the loss of a name, or the one that a module brings; raise UsageError without one.

    An owner's loss is called with the outputs and the labels in their order.
    """
    if name != OWN:
        return find_loss(name)
    brought = getattr(module, _KEPT)

    def loss(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
        labels = (value for key, value in fed.items() if key.partition("_")[0] == "labels")
        made: Tensor = brought(outputs, *labels)
        return made

    return loss


def find_loss(name: str) -> Loss:
    """Return the loss of a name, or raise UsageError."""
    loss = _LOSSES.get(name)
    if loss is None:
        raise UsageError(
            f"There is no loss named {in_quotes(name)}.", f"Losses: {', '.join(_LOSSES)}."
        )
    return loss


def classification(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return the cross-entropy of one class per item."""
    return _cross_entropy(_of(outputs, "logits"), fed["labels"])


def causal_lm(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return the cross-entropy of each next token; without labels, a text labels itself.

    If there are more positions than labels, labels belong to the last ones: what precedes them
    (passages, for example) was given.
    """
    labels = fed["labels"] if "labels" in fed else fed["input_ids"]
    logits = _of(outputs, "logits")[:, -labels.shape[1] :]
    return _cross_entropy(logits[:, :-1], labels[:, 1:])


def seq2seq_lm(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return the cross-entropy of each token of the answer; the decoder was fed those before it."""
    return _cross_entropy(_of(outputs, "logits"), fed["labels"])


def contrastive(outputs: Any, _fed: Mapping[str, Tensor]) -> Tensor:
    """Return how well pictures, films or sounds and their texts find each other in the batch.

    A batch of one has nothing to distinguish: its loss is 0 from the start.
    """
    import torch

    logits = _of(outputs, "logits_per_image", "logits_per_video", "logits_per_audio").float()
    own = torch.arange(len(logits), device=logits.device)
    return (_cross_entropy(logits, own) + _cross_entropy(logits.t(), own)) / 2


def detection(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return DETR's set loss: predictions matched to objects, then classes, corners and overlap.

    It is transformers' own. SciPy does the matching on the host, so every step waits for the
    device.
    """
    criterion = _set_criterion()
    logits, boxes = _of(outputs, "logits").float(), _of(outputs, "pred_boxes").float()
    targets = [
        {"class_labels": classes, "boxes": corners.float()}
        for classes, corners in zip(fed["class_labels"], fed["boxes"], strict=True)
    ]
    weights = SimpleNamespace(**_DETR, num_labels=logits.shape[-1] - 1)
    loss: Tensor = criterion(logits, targets, logits.device, boxes, weights)[0]
    return loss


def ctc(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return connectionist temporal classification; 0 is the blank, labels below it are padding.

    torch wants the labels' lengths on the host: a step waits for the device once.
    """
    from torch.nn.functional import ctc_loss, log_softmax

    logits, labels = _of(outputs, "logits").float(), fed["labels"]
    batch, frames = logits.shape[:2]
    return ctc_loss(
        log_softmax(logits, dim=-1).transpose(0, 1),
        labels.clamp(min=0),
        (frames,) * batch,
        tuple((labels >= 0).sum(-1).tolist()),
        blank=0,
    )


def denoising(outputs: Any, fed: Mapping[str, Tensor]) -> Tensor:
    """Return the difference of the predicted noise and the added noise."""
    from torch.nn.functional import mse_loss

    return mse_loss(_of(outputs, "sample").float(), fed["noise"].float())


_LOSSES: dict[str, Loss] = {
    loss.__name__: loss
    for loss in (classification, causal_lm, seq2seq_lm, contrastive, detection, ctc, denoising)
}


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    from torch.nn.functional import cross_entropy

    classes = logits.shape[-1]
    return cross_entropy(
        logits.float().reshape(-1, classes), labels.reshape(-1), ignore_index=IGNORED
    )


def _of(outputs: Any, *names: str) -> Tensor:
    import torch

    if isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        for name in names:
            output = outputs.get(name)
            if isinstance(output, torch.Tensor):
                return output
    raise CaseError(
        "no_outputs", f"the loss needs the output {' or '.join(names)}, which the model lacks"
    )


def _set_criterion() -> Callable[..., Any]:
    from importlib.util import find_spec

    # transformers would say of either only that a name is not defined.
    for module, package, extra in (("scipy", "scipy", "torch"), ("PIL", "pillow", "torch")):
        if find_spec(module) is None:
            raise MissingExtraError(package, extra, "The loss of object detection")
    from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss

    criterion: Callable[..., Any] = ForObjectDetectionLoss
    return criterion
