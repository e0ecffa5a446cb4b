"""Retrieval and generation in one network. Imports torch.

    question -> embedder -> best k of the index -> passages + question -> generator

Index and passages are buffers, made by the seed like the weights: they travel with the model, count
in its digest and memory, and are not trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel


class RetrievedPassages(NamedTuple):
    """Passages of the index for a question, best first."""

    scores: torch.Tensor  # batch × k
    passages: torch.Tensor  # batch × k, places in the index


class Rag(nn.Module):  # type: ignore[misc]  # mypy skips torch
    """A question embedded, its passages found, and an answer generated from both.

    Only the generator is trained: an index fits only the embedder that made it, and choosing the
    best k has no gradient.
    """

    def __init__(
        self,
        embedder: Mapping[str, Any],
        generator: Mapping[str, Any],
        passages: int,
        passage_tokens: int,
        retrieved: int,
    ) -> None:
        super().__init__()
        self.embedder = BertModel(BertConfig(**embedder), add_pooling_layer=False)
        self.embedder.requires_grad_(False)
        self.generator = GPT2LMHeadModel(GPT2Config(**generator))
        self.retrieved = retrieved
        width, vocabulary = embedder["hidden_size"], generator["vocab_size"]
        index = nn.functional.normalize(torch.randn(passages, width), dim=-1)
        self.register_buffer("index", index)
        self.register_buffer("passages", torch.randint(vocabulary, (passages, passage_tokens)))

    def train(self, mode: bool = True) -> Rag:
        """Train, except for the embedder: dropout would make it find other passages."""
        super().train(mode)
        self.embedder.eval()
        return self

    def gradient_checkpointing_enable(
        self, gradient_checkpointing_kwargs: dict[str, Any] | None = None
    ) -> None:
        self.generator.gradient_checkpointing_enable(gradient_checkpointing_kwargs)

    def embed(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            read = self.embedder(input_ids=input_ids, attention_mask=attention_mask)
            states = read.last_hidden_state
            counted = attention_mask.unsqueeze(-1).to(states.dtype)
            mean = (states * counted).sum(1) / counted.sum(1).clamp(min=1)
            return nn.functional.normalize(mean, dim=-1)

    def retrieve(self, embedding: torch.Tensor) -> RetrievedPassages:
        """Compare every vector of the index: exact search, like FAISS's flat index."""
        return RetrievedPassages(*torch.topk(embedding @ self.index.T, self.retrieved, dim=-1))

    def prompt(
        self, hits: RetrievedPassages, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        passages = self.passages[hits.passages].flatten(1)
        return {
            "input_ids": torch.cat([passages, input_ids], dim=1),
            "attention_mask": torch.cat([torch.ones_like(passages), attention_mask], dim=1),
        }

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        hits = self.retrieve(self.embed(input_ids, attention_mask))
        read = self.prompt(hits, input_ids, attention_mask)
        # A number, also while the model is traced: a size that is a tensor would be taken for
        # the one place to keep.
        output = self.generator(**read, logits_to_keep=int(input_ids.shape[1]))
        return {"logits": output.logits, "scores": hits.scores}
