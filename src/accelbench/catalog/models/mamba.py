"""Mamba: a state-space model, which carries a state of one size where others keep every token.

transformers goes through the tokens one after the other in Python here: the
fused kernels that the paper's times come from (mamba-ssm) are a package of their
own, for CUDA alone. So a prompt takes longer than its arithmetic asks for: with as
many operations as GPT-2's, three to six times as long (32 to 512 tokens, one core).
The scan is in fp32, and the logits come out in fp32, whatever type the products are in.
"""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import FEW, NEXT_TOKEN, other_size, request, short_request, token_ids
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_VOCABULARY = 50280


def _config(vocabulary: int, hidden: int, layers: int) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "state_size": 16,
        "expand": 2,
        "conv_kernel": 4,
        "layer_norm_epsilon": 1e-5,
        "residual_in_fp32": True,
        # One forward pass keeps no state; generation asks for it itself.
        "use_cache": False,
    }


def _inputs(vocabulary: int) -> tuple[InputSpec, ...]:
    """Ids alone: nothing is padding, and there is no attention that a mask could steer."""
    return (token_ids(vocabulary),)


_LARGEST = ModelSpec(
    id="mamba-130m",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.STATE_SPACE,
    modalities=("text",),
    task="text-generation",
    size="base",
    builder="transformers:MambaForCausalLM",
    config=_config(_VOCABULARY, hidden=768, layers=24),
    inputs=_inputs(_VOCABULARY),
    parameters=129_135_360,
    item="sequences",
    sequence=128,
    generation=request(_inputs(_VOCABULARY)),
    training=NEXT_TOKEN,
    aliases=("mamba",),
    hub_ids=("state-spaces/mamba-130m-hf",),
    small_variant="mamba-tiny",
    sets=("architectures",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="mamba-tiny",  # a size of our own
        size="tiny",
        config=_config(FEW, hidden=128, layers=2),
        inputs=_inputs(FEW),
        parameters=757_632,
        generation=short_request(_inputs(FEW)),
        sets=("small",),
    ),
)
