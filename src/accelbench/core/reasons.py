"""Where each reason of a result that is not ok belongs: what it says something about.

A platform is incompatible with a model only for reasons of the cell. What lies in the
machine around it, or in what was asked, says nothing of the platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Belongs(StrEnum):
    """What a reason is about."""

    CELL = "the cell"  # this model, on this platform, by this runtime, in this precision
    MACHINE = "the machine"  # what is installed, plugged in, free or writable; who killed it
    QUESTION = "the question"  # what was asked: options, sizes, inputs, weights, time


_OF: Mapping[Belongs, str] = {
    Belongs.CELL: """
        autocast bad_block bad_evidence cached compile_failed conversion_failed crash
        exception export_failed fallback generation hardware host_random implausible
        killed_for_memory loss loss_not_finite mode no_cache no_cpu_to_hold_against
        no_outputs no_proof not_exported not_real nothing_quantised operator out_of_memory
        out_of_memory_estimated precision precision_changed precision_unknown
        precision_upcast run_failed session_failed smaller_batch_out_of_memory tab_crashed
        unlike_the_cpu unsynchronised work_skipped wrong_clock wrong_outputs wrong_steps
    """,
    Belongs.MACHINE: """
        artefact_lost browser_ended browser_hung browser_kind builder_missing cache_unwritable
        device_absent device_lost disk_full
        engine_sees_no_device hardware_absent killed no_artefact no_runtime not_isolated not_set_up
        package_missing
        profile_failed provider_missing runtime_broken surroundings weights_unavailable
        worker_did_not_start wrong_build
    """,
    Belongs.QUESTION: """
        audio_length budget data_mismatch data_unreadable dropout fixed_batch
        generation_compiled gradient_checkpointing image_size no_generation no_profiler
        no_real_inputs no_training not_counted not_scripted not_verified option prompt_too_short
        provider remote_code scripted sequence_too_long sequence_too_short timeout
        tokenizer_mismatch tokenizer_unreadable too_many_classes too_many_steps unsafe_weights
        vocabulary_too_small weights_incomplete weights_mismatch weights_unreadable
    """,
}

#: Every reason of this program's own.
REASONS: Mapping[str, Belongs] = {
    reason: where for where, text in _OF.items() for reason in text.split()
}


def belongs(reason: str) -> Belongs:
    """What a reason is about; one of another package's is taken for its cell's."""
    return REASONS.get(reason, Belongs.CELL)
