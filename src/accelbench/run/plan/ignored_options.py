"""What was asked for and changes nothing: said, where it would otherwise be passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from accelbench.core.case import Case, Shapes
from accelbench.core.vocabulary import Mode
from accelbench.run.plan.request import Request

#: Each size of a request: the option that names it, what a case made of it, what no model does.
_SIZES: tuple[tuple[str, str, Callable[[Shapes], Iterable[int | None]], str], ...] = (
    (
        "sequence_lengths",
        "--sequence-lengths",
        lambda s: (s.sequence, s.prompt_tokens),
        "reads text",
    ),
    ("image_sizes", "--image-sizes", lambda s: (s.image,), "takes images"),
    ("prompt_tokens", "--prompt-tokens", lambda s: (s.prompt_tokens,), "is asked to write"),
    ("new_tokens", "--new-tokens", lambda s: (s.new_tokens,), "is asked to write"),
    ("audio_seconds", "--audio-seconds", lambda s: (s.audio,), "takes sound"),
    ("denoising_steps", "--denoising-steps", lambda s: (s.steps,), "is asked to denoise"),
)


def unused(request: Request, cases: Sequence[Case]) -> list[str]:
    """A sentence for each size or training option that no case took up.

    A size that some models of a set have and others have not is no mistake; one that
    none has may well be, and its figures are those of a question that was not asked.
    """
    notes = []
    for field, option, taken, does in _SIZES:
        asked = set(getattr(request, field)) - {0}
        if asked and not any(asked.intersection(taken(case.shapes)) for case in cases):
            notes.append(f"{option} changes nothing: no model of this run {does}.")
    if request.training_options and not any(case.mode is Mode.TRAINING for case in cases):
        notes.append(
            "The options for training change nothing: nothing is trained without --mode training."
        )
    measured = {case.target.runtime for case in cases}
    notes += [
        f"The options for {name} change nothing: it is no runtime of this run."
        for name in request.runtime_options
        if name not in measured
    ]
    return notes
