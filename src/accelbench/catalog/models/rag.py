"""RAG: a question embedded, passages found in an index, an answer generated from both.

The prompt's tokens are all that the generator reads: the passages, and then the
question, whose length is what is left of the prompt. A forward pass and
training have no prompt: their sequence is the question.
"""

from __future__ import annotations

from typing import Any

from accelbench.catalog.own import FEW, NEXT_TOKEN, other_size
from accelbench.core.model import Generation, InputSpec, ModelSpec
from accelbench.core.vocabulary import Architecture, Family

_RETRIEVED = 3  # passages a question


def _config(
    embedder: dict[str, Any], generator: dict[str, Any], passages: int, passage_tokens: int
) -> dict[str, Any]:
    return {
        "embedder": embedder,
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        # No token begins or ends a text: GPT-2's own lies beyond a small vocabulary.
        "generator": {**generator, "use_cache": False, "bos_token_id": None, "eos_token_id": None},
        "passages": passages,
        "passage_tokens": passage_tokens,
        "retrieved": _RETRIEVED,
    }


def _question(vocabulary: int, length: str) -> tuple[InputSpec, ...]:
    """Ids below the smaller vocabulary: embedder and generator read the same ones.

    Each has a tokenizer of its own, and the text would be cut twice; in number and cost
    that is the same.
    """
    ids = InputSpec("input_ids", ("batch", length), "int64", 0, vocabulary)
    return (ids, InputSpec("attention_mask", ("batch", length), "int64", constant=1))


def _answers(
    vocabulary: int, passage_tokens: int, prompt_tokens: int, new_tokens: int, max_tokens: int
) -> Generation:
    before = _RETRIEVED * passage_tokens
    return Generation(
        _question(vocabulary, f"sequence-{before}"),
        prompt_tokens,
        new_tokens,
        max_tokens,
        min_prompt=before + 1,
    )


#: The question is its own label; the loss is the generator's, and so is what learns.
_TRAINING = NEXT_TOKEN

_BERT_WORDS = 30522
_GPT2_WORDS = 50257

_LARGEST = ModelSpec(
    id="rag-base",
    family=Family.TEXT_GENERATION,
    architecture=Architecture.RAG,
    modalities=("text",),
    task="retrieval-augmented-generation",
    size="base",
    builder="accelbench.catalog.networks.rag:Rag",
    config=_config(
        # all-MiniLM-L6-v2
        {
            "vocab_size": _BERT_WORDS,
            "hidden_size": 384,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 1536,
        },
        # GPT-2
        {"vocab_size": _GPT2_WORDS, "n_positions": 1024},
        passages=100_000,
        passage_tokens=32,
    ),
    inputs=_question(_BERT_WORDS, "sequence"),
    # GPT-2's 124,439,808 and MiniLM's 22,713,216 less the 147,840 of its pooler, which
    # mean pooling has no use for. The index (38,400,000 numbers) is a buffer.
    parameters=147_005_184,
    item="sequences",
    sequence=32,
    max_sequence=512,
    procedure="rag",
    # MiniLM reads 512 tokens: so many a question may have, and the passages before it 96.
    generation=_answers(
        _BERT_WORDS, passage_tokens=32, prompt_tokens=128, new_tokens=32, max_tokens=608
    ),
    training=_TRAINING,
    aliases=("rag",),
    small_variant="rag-tiny",
    sets=("architectures",),
)
MODELS = (
    _LARGEST,
    other_size(
        _LARGEST,
        id="rag-tiny",  # a size of our own
        size="tiny",
        config=_config(
            {
                "vocab_size": FEW,
                "hidden_size": 64,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 256,
            },
            {"vocab_size": FEW, "n_positions": 1024, "n_embd": 128, "n_layer": 2, "n_head": 2},
            passages=1_000,
            passage_tokens=16,
        ),
        inputs=_question(FEW, "sequence"),
        parameters=1_447_296,
        sequence=16,
        generation=_answers(FEW, passage_tokens=16, prompt_tokens=64, new_tokens=8, max_tokens=560),
        sets=("small",),
    ),
)
