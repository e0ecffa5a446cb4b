"""Whisper: an encoder of log-mel spectra and a decoder that writes what was said."""

from __future__ import annotations

from typing import Any

from accelbench.core.model import Generation, InputSpec, ModelSpec, Training
from accelbench.core.vocabulary import Architecture, Family

_RATE = 16_000  # of the sound that the spectra stand for
_FRAMES_A_SECOND = 100  # a spectrum every 10 ms; the encoder halves them
_MELS = 80
_VOCABULARY, _END, _START, _PROMPT = 51865, 50257, 50258, 4  # start, language, task, no times


def _config(
    hidden: int, layers: int, heads: int, seconds: int, vocabulary: int, end: int, start: int
) -> dict[str, Any]:
    return {
        "vocab_size": vocabulary,
        "num_mel_bins": _MELS,
        "d_model": hidden,
        "encoder_layers": layers,
        "decoder_layers": layers,
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": 4 * hidden,
        "decoder_ffn_dim": 4 * hidden,
        "max_source_positions": seconds * _FRAMES_A_SECOND // 2,
        "max_target_positions": 448,
        "decoder_start_token_id": start,
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": end,
        "use_cache": False,  # generation asks for the cache itself
    }


def _sound(seconds: int) -> InputSpec:
    return InputSpec("input_features", ("batch", _MELS, seconds * _FRAMES_A_SECOND))


def _written(vocabulary: int, name: str = "decoder_input_ids") -> InputSpec:
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary)


def _inputs(seconds: int, end: int) -> tuple[InputSpec, ...]:
    return (_sound(seconds), _written(end))


def _request(seconds: int, end: int, start: int, new_tokens: int) -> Generation:
    """The encoder hears the sound once; the decoder goes on from the four words of the task."""
    prompt = InputSpec("decoder_input_ids", ("batch", "sequence"), "int64", 0, end, lead=(start, 1))
    return Generation(
        inputs=(_sound(seconds), prompt),
        prompt_tokens=_PROMPT,
        new_tokens=new_tokens,
        max_tokens=448,
        kind="encoder-decoder",
    )


def _training(end: int) -> Training:
    """The decoder is fed what was said; the labels are the same words, one place on."""
    return Training("seq2seq_lm", (_written(end, "labels"),))


def _published(
    name: str, size: str, hidden: int, layers: int, heads: int, parameters: int, **more: Any
) -> ModelSpec:
    return ModelSpec(
        id=name,
        family=Family.AUDIO,
        architecture=Architecture.SPEECH,
        modalities=("audio", "text"),
        task="automatic-speech-recognition",
        size=size,
        builder="transformers:WhisperForConditionalGeneration",
        config=_config(hidden, layers, heads, 30, _VOCABULARY, _END, _START),
        inputs=_inputs(30, _END),
        parameters=parameters,
        sequence=32,
        max_sequence=448,
        audio=30,
        sampling_rate=_RATE,
        fixed_audio=True,  # shorter sound is padded to the 30 s of its learned positions
        generation=_request(30, _END, _START, new_tokens=32),
        training=_training(_END),
        hub_ids=(f"openai/{name}",),
        small_variant="whisper-mini",
        **more,
    )


_MINI_VOCABULARY, _MINI_END, _MINI_START = 4096, 4094, 4095

MODELS = (
    # The card says 74 M; its weights are 72.6 M, 0.8 M of them the encoder's fixed positions.
    _published("whisper-base", "base", 512, 6, 8, 72_593_920, aliases=("whisper",), sets=("key",)),
    # The card says 39 M; its weights are 37.8 M.
    _published("whisper-tiny", "tiny", 384, 4, 6, 37_760_640),
    ModelSpec(
        # A size of our own, for 3 s of sound; whisper-tiny is a published one.
        id="whisper-mini",
        family=Family.AUDIO,
        architecture=Architecture.SPEECH,
        modalities=("audio", "text"),
        task="automatic-speech-recognition",
        size="tiny",
        builder="transformers:WhisperForConditionalGeneration",
        config={
            **_config(128, 2, 2, 3, _MINI_VOCABULARY, _MINI_END, _MINI_START),
            "begin_suppress_tokens": None,  # the usual ones are beyond its vocabulary
        },
        inputs=_inputs(3, _MINI_END),
        parameters=1_606_400,
        sequence=16,
        max_sequence=448,
        audio=3,
        sampling_rate=_RATE,
        fixed_audio=True,
        generation=_request(3, _MINI_END, _MINI_START, new_tokens=8),
        training=_training(_MINI_END),
        sets=("small",),
    ),
)
