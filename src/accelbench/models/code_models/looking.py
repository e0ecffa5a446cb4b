"""Looking at an object of an owner's code, in a process that ends afterwards.

`python -m accelbench.models.code_models.looking QUESTION` prints one line of JSON.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

from accelbench.core.errors import AccelbenchError
from accelbench.core.formatting import suggest
from accelbench.core.jsonc import loads
from accelbench.core.model import CodeKind, ModelCode
from accelbench.core.processes import send_answer
from accelbench.core.safe_text import in_quotes
from accelbench.models.code_models import example, loading
from accelbench.models.code_models.loading import SUFFIX
from accelbench.models.file_models.kinds import FileRefusedError
from accelbench.models.file_models.unchanged import digest_of

_GIVE = (
    "Give it example_inputs, as an attribute of it or of its file, or name each input:"
    " --input NAME=float32[batch,3,224,224]"
)


def look(question: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the object of an attribute, or raise FileRefusedError if it cannot be measured.

    The question has module, attribute, path and folder, as in `ModelCode`; `reference`; `given`,
    the described inputs; `live`, whether the object is in use in this process; and `here`, a folder
    that must not be imported from.
    """
    code = ModelCode(
        CodeKind.CALLABLE, question["module"], question["attribute"], question["path"],
        question["folder"], digest="", sources=(), made_by="itself",
    )  # fmt: skip
    path = [question["path"]] if question["path"] else []
    loading.seed_all(0)
    try:
        module = loading.import_object_module(code)
        file = getattr(module, "__file__", None) or ""
        attribute = _attribute(module, code.attribute)
        made_by = _creation_kind(attribute, module)
        loaded = loading.make_object(module, attribute, made_by)
        if made_by == "factory" and not _is_made(loaded.subject):
            made_by, loaded = "itself", loading.make_object(module, attribute, "itself")
        reference = _reference(module, code.attribute, question.get("reference") or "")
        answer = _describe_object(loaded, question["given"], live=question.get("live", False))
    except (FileRefusedError, AccelbenchError):
        raise
    except (Exception, SystemExit) as error:
        raise FileRefusedError(
            f"Its code fails: {loading.failure(error, _sources(path, code.folder))}",
            "Run it in Python alone, and mend it.",
        ) from error
    sources = loading.own_sources(file if file.endswith(SUFFIX) else "", code.folder)
    sources += getattr(module, "__accelbench_sources__", ())
    return {
        **answer,
        "made_by": made_by,
        "sources": sources,
        "digest": digest_of(map(Path, sources)),
        "reference": _for_callables(reference, answer["kind"], question.get("reference")),
        "from_here": _from_here(question.get("here", ""), code.folder),
    }


def _from_here(here: str, folder: str) -> list[str]:
    there = loading.project_of(folder)
    files = loading.imported_below(Path(here)) if here else []
    return [str(file) for file in files if not file.is_relative_to(there)]


def _sources(path: Sequence[str], folder: str) -> list[str]:
    return [*path, *loading.own_sources("", folder)]


def _reference(module: ModuleType, attribute: str, named: str) -> str:
    if named:
        if not callable(_attribute(module, named)):
            raise FileRefusedError(
                f"Its reference {in_quotes(named)} cannot be called.", "Name a function."
            )
        return named
    own = getattr(_attribute(module, attribute), loading.REFERENCE, None)
    return f"{attribute}.{loading.REFERENCE}" if callable(own) else ""


def _for_callables(reference: str, kind: CodeKind, named: str | None) -> str:
    if kind is CodeKind.CALLABLE:
        return reference
    if named:
        raise FileRefusedError(
            "It is a torch module, which is compared with itself in fp32 on the CPU.",
            "Leave out --reference.",
        )
    return ""


def _attribute(module: ModuleType, attribute: str) -> Any:
    try:
        return loading.attribute_of(module, attribute)
    except AttributeError as error:
        names = [name for name in vars(module) if not name.startswith("_")]
        raise FileRefusedError(
            f"There is no {in_quotes(attribute)} in it.", suggest(attribute, names, "It has")
        ) from error


def _torch_module(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _is_made(value: Any) -> bool:
    return _torch_module(value) or (callable(value) and not loading.is_array(value))


def _creation_kind(attribute: Any, module: ModuleType) -> str:
    if inspect.isclass(attribute):
        needs = example.required_parameters(attribute)
        if needs:
            raise FileRefusedError(
                f"It is a class that takes {', '.join(needs)}.",
                "Name an instance of it, or a function that makes one.",
            )
        return "class"
    if _torch_module(attribute):
        return "itself"
    if not callable(attribute):
        raise FileRefusedError(
            f"It is of type {type(attribute).__name__}, which cannot be called.",
            "Name a torch module, a function that makes one, or anything that can be called.",
        )
    if inspect.iscoroutinefunction(attribute) or inspect.isasyncgenfunction(attribute):
        raise FileRefusedError(
            "It is a coroutine: its work is not done when it returns.",
            "Name a function that runs it to its end, such as by asyncio.run.",
        )
    if inspect.isgeneratorfunction(attribute):
        raise FileRefusedError(
            "It is a generator: its work is not done when it returns.",
            "Name a function that goes through all of it, such as list(…).",
        )
    needs_setup = any(hasattr(holder, loading.SETUP) for holder in (attribute, module))
    has_inputs = hasattr(attribute, loading.EXAMPLE)
    if example.required_parameters(attribute) == [] and not needs_setup and not has_inputs:
        return "factory"
    return "itself"


def _describe_object(
    loaded: loading.LoadedCode, given: Sequence[str], *, live: bool
) -> dict[str, Any]:
    if _torch_module(loaded.subject):
        from accelbench.models.code_models import torch_modules

        return {
            "kind": CodeKind.MODULE,
            **torch_modules.describe_module(loaded, given, _GIVE, live),
        }
    if not callable(loaded.subject):
        raise FileRefusedError(
            f"What it makes is a {type(loaded.subject).__name__}, which cannot be called.",
            "Return a torch module, or something that can be called.",
        )
    needs = example.required_parameters(loaded.subject)
    if needs is None:
        needs = [] if loaded.example is not None or given else ["inputs"]
    by_name = given or loaded.example is None
    example.refuse_missing(loaded.subject, given, needs if by_name else (), _GIVE)
    if not given:
        # What does not fit is said here, before anything is measured.
        args, keywords = (
            example.arguments(loaded.example) if needs or loaded.example is not None else ((), {})
        )
        try:
            inspect.signature(loaded.subject).bind(*args, **keywords)
        except ValueError:
            pass
        except TypeError as error:
            raise FileRefusedError(
                f"Its example inputs do not fit: {error}.",
                "Give a tuple by place, or a dict by name.",
            ) from error
    return {
        "kind": CodeKind.CALLABLE,
        "uncounted": "what a call does is not seen from outside",
        "inputs": [],
        "parameters": 0,
        "batch": 1,
        "free_batch": False,
        "notes": [],
    }


def main(arguments: Sequence[str]) -> None:
    """Print the description of an attribute, or the refusal."""
    try:
        with redirect_stdout(sys.stderr):
            answer = look(loads(arguments[0]))
    except AccelbenchError as error:
        answer = {"error": error.message, "advice": error.advice}
    except (RecursionError, MemoryError) as error:
        answer = {"error": f"It is too much for Python ({type(error).__name__}).", "advice": ""}
    send_answer(answer)
    sys.stderr.flush()
    os._exit(0)  # threads and exit handlers of the owner's are of no use any more


if __name__ == "__main__":
    main(sys.argv[1:])
