"""Workarounds: small declared changes that make a model go through an exporter or an engine.

They are tried in order when a cell fails with words or a reason that an entry knows, one more at a
time; what was applied is recorded in the result, and `--no-fix` turns them all off. None changes
what the model computes: a cell is verified with its workarounds as without.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench.core.model import FileFormat, ModelSpec

#: A pattern that nothing matches.
_NOTHING = r"(?!)"

#: What a workaround acts on: the module that is traced, or how it is exported.
Acts = Literal["module", "export"]


@dataclass(frozen=True)
class Workaround:
    """One declared change."""

    name: str
    acts: Acts
    cures: str  # a pattern of what a failing cell says
    what: str
    why: str
    builders: str = ""  # a pattern of the builders it is for; "" for all
    fixes_batch: bool = False
    at_once: str = _NOTHING  # a pattern of the builders that it is applied to from the start

    def fits(self, model: ModelSpec) -> bool:
        # Of files graphs in ONNX alone can be made for fixed sizes: an engine's own is opened as it
        # is.
        if model.graph is not None and model.graph.format is not FileFormat.ONNX:
            return False
        return re.search(self.builders, model.builder) is not None


WORKAROUNDS: tuple[Workaround, ...] = (
    Workaround(
        "scan_by_doubling",
        "module",
        cures=_NOTHING,
        what="the recurrence over tokens is computed in log2(n) steps over all of them",
        why="traced as it is, transformers' loop is unrolled token by token: 128 copies of each"
        " layer, which took 15 s to export and 6.5 s to open where this takes 6 and 0.4",
        builders="Mamba",
        at_once="Mamba",  # without it the cell works, but is another's
    ),
    Workaround("experts_in_batches", "module", cures=r"aten::histc|grouped_mm",
               what="each token's expert weights are gathered and multiplied (batched_mm)",
               why="the grouped products that transformers prefers have no ONNX operator"),
    Workaround("no_packed_sequences", "module", cures=r"aten::diff",
               what="transformers does not look for several sequences packed into one row",
               why="it looks by differences of positions, which the exporter has no operator "
               "for; inputs here are never packed"),
    Workaround("product_for_einsum", "module", cures=r"fallback: .*Einsum",
               what="each video is compared with its texts by a product of matrices, not by "
               "einsum", why="the NPU has no Einsum and leaves it to the CPU", builders="XCLIP"),
    Workaround("layer_norm_written_out", "module", cures=r"unlike_the_cpu",
               what="layer norms are written out as means, products and a root",
               why="QNN's emulation gives wrong numbers for all items but the first where a "
               "layer norm in float follows the sum of an embedding"),
    Workaround("token_types_as_zeros", "module", cures=r"gatherElements only supports constant",
               what="the types of tokens that nobody gives are zeros, not read from a table of "
               "zeros", why="they are read by GatherElements at the tokens' places, which "
               "Chromium's WebNN takes and then refuses: it wants places that are known "
               "beforehand"),
    Workaround("gather_for_scatter", "module", cures=r"fallback: .*(NonZero|ScatterND)",
               what="each place of an image in the text reads the row of the image that is its "
               "own", why="masked_scatter becomes NonZero and ScatterND, whose sizes depend on "
               "numbers: the NPU leaves them to the CPU", builders="Llava"),
    Workaround(
        "image_sizes_as_numbers",
        "module",
        cures=r"__round__|GuardOnDataDependentSymNode|image_sizes",
        what="the sizes of the images are written into the graph",
        why="how many tiles an image has decides the shapes of everything after it",
        builders="LlavaNext",
        fixes_batch=True,
        at_once="LlavaNext",  # as fixed_batch for LLaVA
    ),
    Workaround(
        "fixed_batch",
        "export",
        cures=r"wrong_outputs|exceeds the remaining size|num_splits|[Ss]hape|[Dd]imension"
        r"|broadcast|INVALID_ARGUMENT|Non-zero status code|exit code|killed by SIG",
        what="exported for one batch size",
        why="what a trace takes for a constant may depend on the batch, such as where in a row"
        " of tokens the places of an image are",
        fixes_batch=True,
        # To find it out took 17 minutes and 28 GB of disk at seven billion weights, each time.
        at_once="Llava(?!Next)",
    ),
    Workaround("eager_attention", "module", cures=r"scaled_dot_product_attention|sdpa",
               what="attention is written out as products and a softmax",
               why="an exporter may not know the fused operator with these arguments"),
    Workaround("graph_exporter", "export", cures=r"export_failed|wrong_outputs",
               what="exported by torch.export instead of by tracing",
               why="what a trace misses, such as branches on sizes, the graph keeps; it takes 3 "
               "to 20 times as long, so it comes last"),
)  # fmt: skip

_BY_NAME = {fix.name: fix for fix in WORKAROUNDS}


def at_once(model: ModelSpec) -> tuple[str, ...]:
    """Return what is applied before anything has failed."""
    return tuple(
        fix.name for fix in WORKAROUNDS if fix.fits(model) and re.search(fix.at_once, model.builder)
    )


def next_for(model: ModelSpec, failure: str, applied: Sequence[str]) -> str | None:
    """Return the first entry that knows a failure's words and was not applied yet."""
    for fix in WORKAROUNDS:
        if fix.name not in applied and fix.fits(model) and re.search(fix.cures, failure):
            return fix.name
    return None


def find(name: str) -> Workaround:
    """Return the entry of that name."""
    return _BY_NAME[name]


def fixes_batch(names: Sequence[str]) -> bool:
    """Return whether an artefact made with these is for one batch size."""
    return any(_BY_NAME[name].fixes_batch for name in names)
