"""Mixtral: a decoder whose feed-forward is eight experts, two of them for each token.

Which experts a token goes to depends on the token and on the weights. The work
does not: two experts a token, whichever they are. But how many tokens share an
expert, and how many experts' weights are read at all, differs from batch to
batch: one token reads two experts of eight a layer, a long prompt reads them
all. Random routers spread tokens about evenly, which trained ones strive for.
"""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import (
    FEW,
    NEXT_TOKEN,
    other_size,
    request,
    rotary_decoder,
    short_request,
    text,
    turning,
)
from accelbench.core.model import ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_VOCABULARY = 32000


def _config(vocabulary: int, hidden: int, *, experts: int, **sizes: Any) -> dict[str, Any]:
    return rotary_decoder(
        vocabulary,
        hidden,
        rope=turning(1000000.0),
        num_local_experts=experts,
        num_experts_per_tok=2,
        # All tokens of an expert in one product, without asking the device which experts were
        # hit, as the loop over experts ("eager") has to: what transformers itself prefers. Both
        # give the same outputs and gradients (fp32 within 1e-6, bf16 within its rounding) and on
        # one core the same time; gathering each token's weights ("batched_mm") took 35 times as
        # long. Autocast does not reach grouped products: there the loop must stand in.
        experts_implementation="grouped_mm",
        **sizes,
    )


_LARGEST = ModelSpec(
    id="mixtral-8x7b",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.MIXTURE_OF_EXPERTS,
    modalities=("text",),
    task="text-generation",
    size="large",
    builder="transformers:MixtralForCausalLM",
    config=_config(
        _VOCABULARY,
        4096,
        feed_forward=14336,
        layers=32,
        heads=32,
        key_value_heads=8,
        experts=8,
        positions=32768,
    ),
    inputs=text(_VOCABULARY),
    parameters=46_702_792_704,
    item="sequences",
    sequence=128,
    max_sequence=32768,
    generation=request(text(_VOCABULARY), 32768),
    training=NEXT_TOKEN,
    aliases=("mixtral",),
    hub_ids=("mistralai/Mixtral-8x7B-v0.1",),
    small_variant="mixtral-tiny",
    sets=("architectures",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="mixtral-tiny",  # a size of our own
        size="tiny",
        config=_config(
            FEW,
            128,
            feed_forward=256,
            layers=2,
            heads=4,
            key_value_heads=2,
            experts=4,
            positions=2048,
        ),
        inputs=text(FEW),
        parameters=1_934_976,
        max_sequence=2048,
        generation=short_request(text(FEW), 2048),
        sets=("small",),
    ),
)
