"""Steps of a program of torch.export, from the JSON in its archive; torch is not imported."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from accelbench.core.safe_text import in_quotes
from accelbench.models.file_models.exported_archive import program_of
from accelbench.models.graph_files.steps import (
    ACTIVATIONS,
    COPIES,
    REDUCTIONS,
    FileInput,
    GraphSizes,
    GraphStep,
    GraphValue,
    OperatorSignature,
    UntracedError,
    attention,
    class_of,
    convolution,
    moving,
    product,
    refuse_uncounted,
    refuse_unmade,
    step,
    stored_weights,
)

_ATEN = "torch.ops.aten."
#: Types of elements by their numbers in the schema.
_FLOATS = {6: "float16", 7: "float", 8: "double", 13: "bfloat16"}

_VIEWS = {
    "_assert_async", "_assert_tensor_metadata", "_unsafe_view", "alias", "arange", "as_strided",
    "chunk", "contiguous", "detach", "detach_", "dropout", "dropout_", "empty", "expand",
    "expand_as", "eye", "feature_dropout", "flatten", "full", "full_like", "lift_fresh_copy",
    "linspace", "movedim", "narrow", "new_empty", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "permute", "reshape", "scalar_tensor", "select", "slice", "split",
    "split_with_sizes", "squeeze", "squeeze_", "sym_constrain_range_for_size", "sym_size",
    "sym_numel", "t", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "unsqueeze_",
    "view", "view_as", "zeros", "zeros_like", "empty_like", "item", "diff", "numpy_T",
}  # fmt: skip
_ELEMENTWISE = {
    "__and__", "__or__", "__xor__", "abs", "add", "bitwise_and", "bitwise_not", "bitwise_or",
    "ceil", "cos", "div", "eq", "exp", "expm1", "floor", "floor_divide", "fmod", "ge", "gt",
    "isfinite", "isinf", "isnan", "le", "log", "log10", "log1p", "log2", "logical_and",
    "logical_not", "logical_or", "lt", "maximum", "minimum", "mul", "ne", "neg", "ones_like",
    "pow", "reciprocal", "remainder", "round", "rsqrt", "rsub", "sgn", "sign", "sin", "sqrt",
    "square", "sub", "true_divide", "trunc", "addcmul", "lerp", "glu", "tril", "triu", "argmax",
    "argmin", "log_sigmoid", "nan_to_num", "any", "all", "softsign", "hardshrink", "selu",
    "logsumexp", "native_dropout", "bernoulli", "rand_like", "randn_like", "pixel_shuffle",
}  # fmt: skip
_ALSO_COPIED = {"to", "type_as", "pad", "_to_copy", "tile", "repeat_interleave", "float", "half"}
_CONVOLUTIONS = {
    "conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d",
}  # fmt: skip
_PRODUCTS = {"linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "_native_dense"}
_SDPA = "scaled_dot_product_attention"
_DIMENSIONS: Mapping[str, Callable[..., int]] = {
    "Integer": lambda value: int(value),
    "Add": lambda *parts: sum(parts),
    "Mul": lambda *parts: math.prod(parts),
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": max,
    "Min": min,
}
_LARGEST_SIZE = 2**48


class TorchExportGraph:
    """A program of torch.export without its weights: a `FileGraph`."""

    def __init__(self, path: Path) -> None:
        program = program_of(path)
        try:
            module = program["graph_module"]
            self._graph = module["graph"]
            self._values = self._graph["tensor_values"]
            given = list(_named_inputs(module["signature"]["input_specs"]))
            self._constants = {name for kind, name in given if kind != "user_input"}
            fed = [name for kind, name in given if kind == "user_input"]
            self.inputs = tuple(FileInput(name, self._free(name)) for name in fed)
            self.weights, self.precision = self._of_parameters(
                [name for kind, name in given if kind == "parameter"]
            )
            self._nodes = self._graph["nodes"]
            self.operators = len(self._nodes)
            _refuse_unknown(self._nodes)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise UntracedError(
                "Its program is not as torch.export writes it, or of a version not known here."
            ) from error

    def _free(self, name: str) -> tuple[int | str, ...]:
        return tuple(
            int(size["as_int"]) if "as_int" in size else _symbol(size["as_expr"]["expr_str"])
            for size in self._values[name]["sizes"]
        )

    def _of_parameters(self, names: list[str]) -> tuple[int, str]:
        return stored_weights(
            (
                _FLOATS.get(self._values[name]["dtype"], "int8"),
                math.prod(int(size["as_int"]) for size in self._values[name]["sizes"]),
            )
            for name in names
        )

    def steps(self, sizes: GraphSizes) -> tuple[list[GraphStep], set[str]]:
        constants = set(self._constants)
        known: dict[str, GraphValue] = {}
        there = {*constants, *(entry.name for entry in self.inputs)}

        def value(name: str) -> GraphValue:
            if name not in known or known[name].constant != (name in constants):
                shape = tuple(_size(d, sizes.dimensions) for d in self._values[name]["sizes"])
                known[name] = GraphValue(name, shape, name in constants)
            return known[name]

        steps: list[GraphStep] = []
        try:
            for node in self._nodes:
                read = [name for _, name in _tensors(node["inputs"])]
                made = [name for _, name in _tensors({"arg": out} for out in node["outputs"])]
                refuse_unmade(_name(node), (name for name in read if name not in there))
                there.update(made)
                if all(name in constants for name in read):
                    constants.update(made)
                elif made:
                    signature = self._signature(node, value)
                    inputs, outputs = list(map(value, read)), list(map(value, made))
                    steps.append(step(_name(node), inputs, outputs, signature))
            results = {name for _, name in
                       _tensors({"arg": out} for out in self._graph["outputs"])}  # fmt: skip
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise UntracedError(
                "Its program is not as torch.export writes it, or of a version not known here."
            ) from error
        return steps, results

    def _signature(
        self, node: Mapping[str, Any], value: Callable[[str], GraphValue]
    ) -> OperatorSignature | None:
        name = _name(node)
        operands = [(key, value(tensor)) for key, tensor in _tensors(node["inputs"])]
        given = dict(operands)
        made = [value(tensor) for _, tensor in _tensors({"arg": out} for out in node["outputs"])]
        numbers = {entry["name"]: entry["arg"] for entry in node["inputs"]}
        values = [operand for _, operand in operands]
        if name in _VIEWS or not made[0].elements:
            return None
        if name in {"to", "type_as", "float", "half"} and self._is_same_type(node):
            return None
        if name == _SDPA:
            query, key, depth = (given[k] for k in ("query", "key", "value"))
            return attention(
                (query.shape[-2], query.shape[-1]), (key.shape[-2], key.shape[-1]),
                depth.shape[-1], heads=math.prod(query.shape[:-2]), masked="attn_mask" in given,
            )  # fmt: skip
        if name in _CONVOLUTIONS:
            strides = numbers.get("stride", {}).get("as_ints") or [1]
            groups = int(numbers.get("groups", {}).get("as_int", 1))
            turned = "transpose" in name or bool(numbers.get("transposed", {}).get("as_bool"))
            return convolution(
                given["input"], given["weight"], made[0], groups=groups, stride=int(strides[0]),
                transposed=turned,
            )  # fmt: skip
        if name in _PRODUCTS:
            left, right = values[1:3] if name in {"addmm", "baddbmm"} else values[:2]
            return product(left, right, made[0], left.shape[-1])
        return moving(class_of(name), values, made, looked_up=name == "embedding")

    def _is_same_type(self, node: Mapping[str, Any]) -> bool:
        names = [name for _, name in _tensors(node["inputs"])][:1]
        names += [name for _, name in _tensors({"arg": out} for out in node["outputs"])][:1]
        return len({self._values[name]["dtype"] for name in names}) == 1


def _named_inputs(specs: list[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for entry in specs:
        ((kind, body),) = entry.items()
        argument = body["arg"]
        if isinstance(argument, dict):
            name = argument.get("name") or (argument.get("as_tensor") or {}).get("name")
            if name:
                yield kind, str(name)


def _tensors(arguments: Any) -> Iterator[tuple[str, str]]:
    for entry in arguments:
        argument, key = entry["arg"], entry.get("name", "")
        for kind, body in argument.items():
            if kind == "as_tensor":
                yield key, body["name"]
            elif kind in {"as_tensors", "as_nested_tensors"}:
                yield from ((key, tensor["name"]) for tensor in body)
            elif kind == "as_optional_tensor" and "as_tensor" in body:
                yield key, body["as_tensor"]["name"]
            elif kind == "as_optional_tensors":
                yield from ((key, t["as_tensor"]["name"]) for t in body if "as_tensor" in t)


def _name(node: Mapping[str, Any]) -> str:
    return str(node["target"]).removeprefix(_ATEN).partition(".")[0]


def _refuse_unknown(nodes: list[Mapping[str, Any]]) -> None:
    known = {*_VIEWS, *_ELEMENTWISE, *_ALSO_COPIED, *_CONVOLUTIONS, *_PRODUCTS, _SDPA,
             *ACTIVATIONS, *REDUCTIONS, *COPIES}  # fmt: skip
    unknown: set[str] = set()
    for node in nodes:
        target, name = str(node["target"]), _name(node)
        plain = name if name in known else name.removesuffix("_")
        if target.startswith(("_operator.", "math.", "torch.sym_")):
            continue
        counted = plain in known or any(w in name for w in ("norm", "pool", "softmax", "upsample"))
        if not target.startswith(_ATEN) or not counted:
            unknown.add(target.removeprefix("torch.ops."))
    refuse_uncounted(unknown)


# -- sizes


def _symbol(text: str) -> str:
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call) and tree.args and isinstance(tree.args[0], ast.Constant):
        return str(tree.args[0].value)
    return text


def _size(size: Mapping[str, Any], dimensions: Mapping[str, int]) -> int:
    if "as_int" in size:
        return int(size["as_int"])
    text = str(size["as_expr"]["expr_str"])
    try:
        value = _evaluate(ast.parse(text, mode="eval").body, dimensions)
    except (SyntaxError, KeyError, TypeError, ArithmeticError, RecursionError) as error:
        raise UntracedError(
            f"Its size {in_quotes(text[:80])} does not follow from its inputs'."
        ) from error
    if not 0 <= value <= _LARGEST_SIZE:
        raise UntracedError(f"Its size {in_quotes(text[:80])} is no size.")
    return value


def _evaluate(tree: ast.expr, dimensions: Mapping[str, int]) -> int:
    """Evaluate sums, products and quotients of free sizes; nothing else is run."""
    if isinstance(tree, ast.Constant):
        return int(tree.value)  # type: ignore[arg-type]
    if isinstance(tree, ast.Name):
        return dimensions[tree.id]
    if isinstance(tree, ast.BinOp):
        left, right = (_evaluate(part, dimensions) for part in (tree.left, tree.right))
        by = {ast.Add: "Add", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv", ast.Mod: "Mod"}
        if isinstance(tree.op, ast.Sub):
            return left - right
        return _DIMENSIONS[by[type(tree.op)]](left, right)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
        return -_evaluate(tree.operand, dimensions)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
        if tree.func.id == "Symbol" and isinstance(tree.args[0], ast.Constant):
            return dimensions[str(tree.args[0].value)]
        return _DIMENSIONS[tree.func.id](*(_evaluate(part, dimensions) for part in tree.args))
    raise KeyError(ast.dump(tree)[:80])
