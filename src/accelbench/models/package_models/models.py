"""A model that an installed package builds by name: `timm/resnet18`, `torchvision/resnet18`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec

from accelbench.core.errors import MissingExtraError, UsageError
from accelbench.core.model import PACKAGE_MODELS, ModelSpec
from accelbench.core.vocabulary import Family
from accelbench.models.code_models.loading import CodeWord
from accelbench.models.code_models.models import model_of_code
from accelbench.models.file_models.given_inputs import GivenInput

#: Packages that build models, each with the extra of its name.
PACKAGES = ("timm", "torchvision")
_WORD = re.compile(rf"^(?:([^=/\\:]+)=)?({'|'.join(PACKAGES)})/([A-Za-z]\w*)(\.\w+)?$")


def is_package_word(word: str) -> bool:
    """Return whether a word names a package's model."""
    return _WORD.match(word) is not None


def model_of_package(word: str, given: Mapping[str, GivenInput] | None = None) -> ModelSpec:
    """Return the model, with random weights, that PACKAGE/NAME or CALLED=PACKAGE/NAME builds."""
    parts = _WORD.match(word)
    assert parts is not None, word
    called, package, name, weights = parts.groups()
    if find_spec(package) is None:
        raise MissingExtraError(package, package, f"Measuring {package}/{name}")
    if weights:
        raise UsageError(
            f"{package}/{name}{weights} names weights, and models of packages have random ones.",
            f"Leave them out: {package}/{name}",
        )
    made = CodeWord(called or f"{package}/{name}", f"{PACKAGE_MODELS}{package}", name)
    try:
        spec = model_of_code(made, given)
    except UsageError as error:
        error.message = error.message.replace(str(made), f"{package}/{name}", 1)
        raise
    aliases = (word,) if word != spec.id else ()
    return replace(spec, family=Family.VISION, modalities=("vision",), aliases=aliases)
