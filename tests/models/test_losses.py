"""The losses of training, against numbers made by hand and against other ways to the same."""

import math

import pytest
import torch
from torch.nn import functional

from accelbench.core.errors import CaseError, MissingExtraError, UsageError
from accelbench.models import losses
from accelbench.models.catalogue import MODELS
from accelbench.models.selection import choose

NAMES = (
    "classification", "causal_lm", "seq2seq_lm", "contrastive", "detection", "ctc", "denoising",
)  # fmt: skip


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def detections(batch=2, queries=5, classes=3):
    return {
        "logits": drawn(batch, queries, classes + 1),
        "pred_boxes": drawn(batch, queries, 4, seed=1).sigmoid(),
    }


OBJECTS = {
    "class_labels": torch.tensor([[0, 2], [1, 1]]),
    "boxes": torch.tensor([[[0.5, 0.5, 0.2, 0.2], [0.3, 0.4, 0.1, 0.3]]] * 2),
}


class TestNames:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_loss_has_its_name(self, name):
        assert losses.find_loss(name) is getattr(losses, name)

    def test_names_of_losses(self):
        with pytest.raises(UsageError) as caught:
            losses.find_loss("hinge")
        assert "hinge" in caught.value.message
        assert all(name in caught.value.advice for name in NAMES)
        named = {m.training.loss for m in MODELS if m.training is not None}
        assert named <= set(NAMES)
        assert "classification" in named


class TestByHand:
    def test_losses_by_hand(self):
        loss = losses.classification({"logits": torch.zeros(3, 4)}, {"labels": torch.arange(3)})
        assert loss.item() == pytest.approx(math.log(4))
        logits = torch.tensor([[math.log(3.0), 0.0]])
        loss = losses.classification(logits, {"labels": torch.tensor([0])})
        assert loss.item() == pytest.approx(-math.log(3 / 4))

        ids = torch.tensor([[0, 1, 2]])
        logits = torch.full((1, 3, 3), -50.0)
        logits[0, 0, 1] = logits[0, 1, 2] = 50.0  # each position knows the token after it
        logits[0, 2, 0] = 50.0  # what comes after the last nobody asks
        assert losses.causal_lm({"logits": logits}, {"input_ids": ids}).item() == pytest.approx(0)
        turned = {"input_ids": ids.flip(1)}
        assert losses.causal_lm({"logits": logits}, turned).item() > 10

        logits, ids = drawn(1, 4, 5), torch.tensor([[1, 2, 3, 4]])
        labels = torch.tensor([[-100, -100, 3, 4]])
        loss = losses.causal_lm({"logits": logits}, {"input_ids": ids, "labels": labels})
        expected = functional.cross_entropy(logits[0, 1:3], torch.tensor([3, 4]))
        assert loss.item() == pytest.approx(expected.item())

        logits, ids = drawn(1, 6, 5), torch.tensor([[1, 2, 3]])
        loss = losses.causal_lm({"logits": logits}, {"input_ids": ids})
        expected = functional.cross_entropy(logits[0, 3:5], torch.tensor([2, 3]))
        assert loss.item() == pytest.approx(expected.item())

        logits, labels = drawn(2, 3, 5), torch.tensor([[1, 2, -100], [4, 0, 3]])
        loss = losses.seq2seq_lm({"logits": logits}, {"labels": labels})
        rows = [functional.cross_entropy(logits[0, i], labels[0, i]) for i in range(2)]
        rows += [functional.cross_entropy(logits[1, i], labels[1, i]) for i in range(3)]
        assert loss.item() == pytest.approx(torch.stack(rows).mean().item())

        assert losses.contrastive({"logits_per_image": torch.tensor([[3.0]])}, {}).item() == 0
        fed = {"noise": torch.tensor([1.0, 3.0])}
        assert losses.denoising({"sample": torch.tensor([1.0, 1.0])}, fed).item() == 2
        # a-, -a and aa, of even chances each: 3/4; the padding below 0 counts for nothing.
        fed = {"labels": torch.tensor([[1, -100]])}
        loss = losses.ctc({"logits": torch.zeros(1, 2, 2)}, fed)
        assert loss.item() == pytest.approx(-math.log(3 / 4))

    @pytest.mark.parametrize("name", ["logits_per_image", "logits_per_video", "logits_per_audio"])
    def test_pairs_are_found_in_both_directions(self, name):
        logits = torch.tensor([[2.0, 1.0], [3.0, 0.0]])
        rows = (math.log(1 + math.exp(-1)) + math.log(1 + math.exp(3))) / 2
        columns = (math.log(1 + math.exp(1)) + math.log(1 + math.exp(1))) / 2
        assert losses.contrastive({name: logits}, {}).item() == pytest.approx((rows + columns) / 2)


class TestDetection:
    def test_it_is_detrs_by_any_matching_that_is_cheapest(self):
        """By brute force over every matching of two objects to five predictions."""
        from itertools import permutations

        from transformers.loss.loss_for_object_detection import generalized_box_iou

        def corners(boxes):
            x, y, w, h = boxes.unbind(-1)
            return torch.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], -1)

        outputs = detections()
        targets = []
        apart = overlap = 0.0
        for i in range(2):
            logits, found = outputs["logits"][i], outputs["pred_boxes"][i]
            classes, boxes = OBJECTS["class_labels"][i], OBJECTS["boxes"][i]
            chance = logits.softmax(-1)
            giou = generalized_box_iou(corners(found), corners(boxes))
            cost = -chance[:, classes] + 5 * torch.cdist(found, boxes, p=1) - 2 * giou
            best = min(permutations(range(5), 2), key=lambda p: float(cost[list(p), [0, 1]].sum()))
            wanted = [3] * 5
            for k, query in enumerate(best):
                wanted[query] = int(classes[k])
                apart += float((found[query] - boxes[k]).abs().sum())
                overlap += float(1 - giou[query, k])
            targets += wanted
        weights = torch.tensor([1.0, 1.0, 1.0, 0.1])
        classes_loss = functional.cross_entropy(
            outputs["logits"].reshape(-1, 4), torch.tensor(targets), weights
        )
        expected = classes_loss.item() + 5 * apart / 4 + 2 * overlap / 4
        assert losses.detection(outputs, OBJECTS).item() == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("missing", ["scipy", "PIL"])
    def test_what_is_not_installed_is_named(self, missing, monkeypatch):
        from importlib import util

        def find(name, real=util.find_spec):
            return None if name == missing else real(name)

        monkeypatch.setattr(util, "find_spec", find)
        with pytest.raises(MissingExtraError):
            losses.detection(detections(), OBJECTS)


def fed_and_outputs(name):
    return {
        "classification": ({"logits": drawn(2, 4)}, {"labels": torch.tensor([1, 3])}),
        "causal_lm": ({"logits": drawn(2, 5, 7)}, {"input_ids": torch.arange(10).view(2, 5) % 7}),
        "seq2seq_lm": ({"logits": drawn(2, 5, 7)}, {"labels": torch.arange(10).view(2, 5) % 7}),
        "contrastive": ({"logits_per_image": drawn(3, 3)}, {}),
        "detection": (detections(), OBJECTS),
        "ctc": ({"logits": drawn(2, 8, 5)}, {"labels": torch.tensor([[1, 2, 3], [4, 4, 1]])}),
        "denoising": ({"sample": drawn(2, 3)}, {"noise": drawn(2, 3, seed=1)}),
    }[name]


class TestPrecision:
    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    @pytest.mark.parametrize("name", NAMES)
    def test_half_outputs_give_the_loss_of_the_same_values_in_fp32(self, name, dtype):
        outputs, fed = fed_and_outputs(name)
        half = {k: v.to(dtype) for k, v in outputs.items()}
        whole = {k: v.float() for k, v in half.items()}
        found = losses.find_loss(name)(half, fed)
        assert found.dtype is torch.float32
        assert found.shape == ()
        assert found.item() == losses.find_loss(name)(whole, fed).item()

    @pytest.mark.parametrize("name", NAMES)
    def test_it_can_be_learnt_from(self, name):
        outputs, fed = fed_and_outputs(name)
        leaves = {k: v.clone().requires_grad_() for k, v in outputs.items()}
        losses.find_loss(name)(leaves, fed).backward()
        for leaf in leaves.values():
            assert torch.isfinite(leaf.grad).all()
            assert leaf.grad.abs().sum() > 0


def test_outputs_without_what_the_loss_needs_are_an_error_of_the_case():
    with pytest.raises(CaseError) as caught:
        losses.classification({"hidden": torch.zeros(1)}, {"labels": torch.zeros(1)})
    assert caught.value.reason == "no_outputs"
    assert "logits" in caught.value.message


@pytest.mark.parametrize("model", ["gpt2-tiny", "t5-tiny"])
def test_it_is_the_loss_that_the_library_gives_its_models(model):
    """Their own forward takes labels; ours must not say another thing of the same outputs."""
    from accelbench.core.case import Shapes
    from accelbench.core.vocabulary import Mode
    from accelbench.models.build import build
    from accelbench.models.inputs import make_inputs

    spec = choose([model], None, (), (), all_models=False)[0]
    arrays = make_inputs(spec, Shapes(2, 8), 0, Mode.TRAINING)
    fed = {name: torch.from_numpy(array) for name, array in arrays.items()}
    labels = fed.get("labels", fed["input_ids"])
    module = build(spec.training_variant, 0)
    with torch.no_grad():
        found = module(**{**fed, "labels": labels})
        assert losses.find_loss(spec.training.loss)(found, fed).item() == pytest.approx(
            found.loss.item(), rel=1e-6
        )
