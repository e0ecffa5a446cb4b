"""A model of the user's own: any class of transformers with a config.

Parameters, inputs and limits are read from transformers on the meta device, in a process that ends
afterwards (`python -m accelbench.models.own FILE`): the conductor imports no engine.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import convert

from accelbench.core.errors import AccelbenchError, MissingExtraError, SurroundingsError
from accelbench.core.identity import to_plain
from accelbench.core.model import SENTENCE_ENCODER, Generation, InputSpec, ModelSpec, Training
from accelbench.core.processes import NoAnswerError, request_answers, send_answer
from accelbench.core.safe_text import visible
from accelbench.core.serial import model_from_json
from accelbench.core.vocabulary import Architecture, Family
from accelbench.store.files import Scratch

#: Of a config.json, what says where it comes from, not what the model is.
_ORIGIN = {"architectures", "model_type", "transformers_version", "torch_dtype", "dtype"}
_ORIGIN |= {"_name_or_path", "_commit_hash"}
#: Every token counts, nothing is padding.
_MASK = InputSpec("attention_mask", ("batch", "sequence"), "int64", constant=1)
_PROMPT, _NEW, _SEQUENCE, _SECONDS, _RATE, _IMAGE = 128, 32, 128, 10, 16_000, 224
#: What a model is built of one by one, and more of it than any has: a billion layers took minutes.
_REPEATED, _MOST_REPEATED = re.compile(r"layer|block|expert|head|depth|stage"), 10_000
#: Importing transformers and laying out a large model took 8 s on a busy two-core machine.
_PATIENCE_SECONDS = 300.0
#: What a class is for, by how its name ends; a model without a head gives features.
_TASKS = {
    "ForCausalLM": "text-generation", "LMHeadModel": "text-generation",
    "ForConditionalGeneration": "text2text-generation",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification", "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask", "ForImageClassification": "image-classification",
    "ForCTC": "automatic-speech-recognition", "ForAudioClassification": "audio-classification",
}  # fmt: skip
#: Models of which sentence-transformers loads the encoder.
_ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel"}
_CLASSIFIES = ("ForSequenceClassification", "ForImageClassification", "ForAudioClassification")


@dataclass(frozen=True)
class OwnModels:
    """A model as its owner describes it."""

    id: str
    model_class: str  # of transformers: "BertModel"
    config: Mapping[str, Any]
    family: Family
    size: str
    modalities: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    layers: Sequence[Mapping[str, Any]] = ()  # of sentence-transformers, after its transformer
    longest: int | None = None  # tokens at which its owner cuts a text


def refusal(config: Mapping[str, Any]) -> str | None:
    """Return why a config cannot be measured with transformers' own classes, or None."""
    if "auto_map" in config:
        return "it comes with Python code of its own, which is not run from here"
    if "quantization_config" in config:
        return "it is quantised, and would be measured as if it were not"
    parts = [config, *(value for value in config.values() if isinstance(value, Mapping))]
    for name, count in (item for part in parts for item in part.items()):
        if _REPEATED.search(str(name)) and isinstance(count, int) and count > _MOST_REPEATED:
            return f"it claims {count:,} of {visible(str(name))}, which no model has"
    return None


def describe(models: Sequence[OwnModels]) -> list[ModelSpec | str]:
    """Return the spec of each model, or the sentence that refuses it."""
    for package in ("torch", "transformers"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "torch", "Describing a model of your own")
    with closing(Scratch()) as scratch:
        path = scratch.folder / "models.json"
        path.write_text(
            json.dumps([to_plain(own_models) for own_models in models]), encoding="utf-8"
        )
        asked = ("accelbench.models.own", [str(path)])
        try:
            (answers,) = request_answers(*asked, _PATIENCE_SECONDS, "Describing the models")
        except NoAnswerError as error:
            raise SurroundingsError(
                str(error), error.advice or "Check that torch and transformers import."
            ) from error
    return [answer if isinstance(answer, str) else model_from_json(answer) for answer in answers]


# -- in the process that ends afterwards


def spec_of(own: OwnModels) -> ModelSpec:
    """Return the spec of a model; raise AccelbenchError, or any error of transformers' classes."""
    if own.layers:
        return _encoder_of(own)
    return _spec_of(own)


def _encoder_of(own: OwnModels) -> ModelSpec:
    from accelbench.models.build import parameter_count, skeleton

    name = _base_class(own)
    inner = _spec_of(replace(own, model_class=name))
    if inner.inputs[0].name != "input_ids":
        raise AccelbenchError(f"{name} does not read text.")
    longest = min(filter(None, (own.longest, inner.max_sequence)), default=None)
    spec = replace(
        inner,
        task="feature-extraction",
        architecture=Architecture.ENCODER_ONLY,
        builder=SENTENCE_ENCODER,
        config={"transformer": {"class": name, "config": inner.config}, "layers": own.layers},
        sequence=min(inner.sequence or _SEQUENCE, longest or _SEQUENCE),
        max_sequence=longest,
        generation=None,
        training=None,
    )
    return replace(spec, parameters=parameter_count(skeleton(spec)))


def _base_class(own: OwnModels) -> str:
    from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

    kind = str(own.config.get("model_type"))
    if kind in _ENCODERS:
        return _ENCODERS[kind]
    name = MODEL_MAPPING_NAMES.get(kind, own.model_class)
    return str(name if isinstance(name, str) else name[0])


def _spec_of(own: OwnModels) -> ModelSpec:
    from accelbench.models.build import parameter_count, skeleton, transformers_class

    config = {k: v for k, v in own.config.items() if k not in _ORIGIN}
    bare = ModelSpec(
        id=own.id,
        family=own.family,
        architecture=Architecture.ENCODER_ONLY,
        modalities=own.modalities,
        task=next((t for end, t in _TASKS.items() if own.model_class.endswith(end)), "")
        or "feature-extraction",
        size=own.size,
        builder=f"transformers:{own.model_class}",
        config=config,
        inputs=(),
        parameters=0,
        aliases=own.aliases,
        sets=("custom",),
    )
    model_class = transformers_class(bare)
    if not getattr(model_class, "config_class", None):
        raise AccelbenchError(f"{own.model_class} is no model class of transformers.")
    module = skeleton(bare)
    counted = replace(
        bare, parameters=parameter_count(module), training=_training(own.model_class, module.config)
    )
    reads = model_class.main_input_name
    also = [key for key in ("vision_config", "audio_config") if hasattr(module.config, key)]
    if reads == "input_ids" and also:
        raise AccelbenchError(
            f"{own.model_class} reads more than text (it has a {also[0]}); models of one's own"
            " can read one kind of input."
        )
    if reads == "input_ids":
        return _text(counted, module)
    if reads == "pixel_values":
        return _vision(counted, module.config)
    if reads == "input_values":
        return _sound(counted)
    raise AccelbenchError(
        f"{own.model_class} reads {reads}; models of one's own can read input_ids, pixel_values"
        " or input_values."
    )


def _token_ids(vocabulary: int, name: str = "input_ids") -> InputSpec:
    return InputSpec(name, ("batch", "sequence"), "int64", 0, vocabulary)


def _training(class_name: str, config: Any) -> Training | None:
    if class_name.endswith(_CLASSIFIES) and config.num_labels > 1:
        labels = InputSpec("labels", ("batch",), "int64", 0, config.num_labels)
        return Training("classification", (labels,))  # of whatever it reads
    if class_name.endswith(("ForCausalLM", "LMHeadModel")):
        return Training("causal_lm", ())  # the text is its own labels
    if class_name.endswith("ForConditionalGeneration") and config.is_encoder_decoder:
        return Training("seq2seq_lm", (_token_ids(int(config.vocab_size), "labels"),))
    return None


def _text(spec: ModelSpec, module: Any) -> ModelSpec:
    import inspect

    config = module.config
    text = config.get_text_config()
    longest = _max_tokens(text, module)
    words = _token_ids(int(text.vocab_size))
    takes_mask = "attention_mask" in inspect.signature(module.forward).parameters
    inputs: tuple[InputSpec, ...] = (words, _MASK) if takes_mask else (words,)
    sequence = min(_SEQUENCE, longest or _SEQUENCE)
    writes = module.can_generate()
    kind = "encoder-decoder" if config.is_encoder_decoder else "decoder"
    prompt_inputs = inputs
    if config.is_encoder_decoder:
        start = getattr(config, "decoder_start_token_id", None) or 0
        begin = InputSpec("decoder_input_ids", ("batch", 1), "int64", constant=start)
        prompt_inputs = (*inputs, begin)
        inputs = (*inputs, _token_ids(int(text.vocab_size), "decoder_input_ids"))
    new = min(_NEW, max(1, (longest or 4 * _NEW) // 4))
    prompt = min(_PROMPT, (longest or _PROMPT + new) - new)
    return replace(
        spec,
        architecture=_architecture(config.is_encoder_decoder, writes),
        # One forward pass keeps no keys and values; generation asks for the cache itself.
        config={**spec.config, **({"use_cache": False} if hasattr(text, "use_cache") else {})},
        inputs=inputs,
        item="sequences",
        sequence=sequence,
        max_sequence=longest,
        generation=Generation(prompt_inputs, prompt, new, longest, kind=kind)
        if writes and prompt > 0
        else None,
    )


def _max_tokens(text: Any, module: Any) -> int | None:
    """Return the number of tokens that a model's positions allow, or None without a limit.

    RoBERTa and its relatives number positions after their padding's: of 514, 512 are left for
    tokens.
    """
    from torch.nn import Embedding

    positions = getattr(text, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:
        return None
    for name, table in module.named_modules():
        is_table = name.endswith("position_embeddings") and isinstance(table, Embedding)
        if is_table and table.padding_idx is not None and table.num_embeddings == positions:
            return max(1, positions - int(table.padding_idx) - 1)
    return positions


def _architecture(encoder_decoder: bool, writes: bool) -> Architecture:
    if encoder_decoder:
        return Architecture.ENCODER_DECODER
    return Architecture.DECODER_ONLY if writes else Architecture.ENCODER_ONLY


def _vision(spec: ModelSpec, config: Any) -> ModelSpec:
    side = getattr(config, "image_size", None) or _IMAGE
    if isinstance(side, (list, tuple)):
        if len(set(side)) != 1:
            raise AccelbenchError(f"It takes images of {side}; only square ones can be fed.")
        side = side[0]
    channels = int(getattr(config, "num_channels", 3))
    return replace(
        spec,
        architecture=Architecture.VISION,
        inputs=(InputSpec("pixel_values", ("batch", channels, "image", "image")),),
        item="images",
        image=int(side),
    )


def _sound(spec: ModelSpec) -> ModelSpec:
    return replace(
        spec,
        architecture=Architecture.SPEECH,
        inputs=(InputSpec("input_values", ("batch", "samples")),),
        audio=_SECONDS,
        sampling_rate=_RATE,
    )


def _answer(body: Mapping[str, Any]) -> Any:
    try:
        return to_plain(spec_of(convert(body, OwnModels)))
    except AccelbenchError as error:
        return error.message
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        return f"transformers cannot build it: {type(error).__name__}: {message[:300]}"


if __name__ == "__main__":
    _asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    send_answer([_answer(body) for body in _asked])
