"""Where each reason of a result that is not ok belongs: what it says something about.

A platform is incompatible with a model only for reasons of the cell. What lies in the
machine around it, or in what was asked, says nothing of the platform. A reason that one runtime
alone gives is on that runtime's card; the others are here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from accelbench.core.devices import cards
from accelbench.core.vocabulary import Belongs

_OF: Mapping[Belongs, str] = {
    Belongs.CELL: """
        autocast bad_block bad_evidence cached compile_failed conversion_failed crash
        data_dependent exception export_failed fallback generation hardware implausible
        killed_for_memory loss loss_not_finite mode
        no_outputs no_proof not_exported not_real operator out_of_memory
        out_of_memory_estimated precision precision_changed
        precision_upcast run_failed session_failed smaller_batch_out_of_memory
        unlike_the_cpu unsynchronised work_skipped wrong_clock wrong_outputs wrong_steps
    """,
    Belongs.MACHINE: """
        artefact_lost builder_missing cache_unwritable
        device_absent device_lost disk_full
        engine_sees_no_device hardware_absent killed no_artefact no_node no_runtime node_failed
        node_hung node_lost not_isolated not_set_up package_missing
        profile_failed rank_lost ranks_did_not_start ranks_ended runtime_broken surroundings
        weights_unavailable worker_did_not_start
    """,
    Belongs.QUESTION: """
        audio_length batch_split batch_statistics budget code_changed code_failed
        data_mismatch data_unreadable
        distributed dropout file_changed fixed_batch format generation_compiled
        gradient_checkpointing
        image_size inputs_changed no_generation no_profiler
        no_real_inputs no_training not_counted not_verified option prompt_too_short
        remote_code sequence_too_long sequence_too_short size_not_taken timeout
        tensor_parallel tokenizer_mismatch tokenizer_unreadable too_many_classes
        too_many_steps unsafe_weights
        vocabulary_too_small weights_incomplete weights_mismatch weights_unreadable
    """,
}

#: Reasons that no one runtime gives alone.
SHARED: Mapping[str, Belongs] = {
    reason: where for where, text in _OF.items() for reason in text.split()
}


@cache
def known_reasons() -> Mapping[str, Belongs]:
    """Every reason that a registered runtime can give; what is shared says the same for all."""
    return {**{r: w for card in cards().values() for r, w in card.reasons.items()}, **SHARED}


def belongs(reason: str) -> Belongs:
    """What a reason is about; one that no card has either is taken for its cell's."""
    return SHARED.get(reason) or known_reasons().get(reason, Belongs.CELL)
