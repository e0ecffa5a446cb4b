"""Measured operator latencies in the tables of aiconfigurator, interpolated in logarithms.

A question loads only the rows of one system and engine. Latencies are in milliseconds. A shape
outside the table is scaled by its work from the nearest measured shape and counted as extrapolated.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accelbench.core.device_facts import facts_of
from accelbench.core.errors import UsageError
from accelbench.store.duck import quote_path

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True)
class ServingSystem:
    """Documented limits of one GPU of a system: 1e15 operations and 1e12 bytes a second."""

    name: str
    half: float
    fp8: float
    fp4: float
    bandwidth: float
    memory_gib: float
    link: float  # of one GPU to its neighbours, both directions together
    node: int  # GPUs that are linked directly
    source: str

    def peak(self, bits: float) -> float:
        return self.fp4 if bits <= 4.5 else self.fp8 if bits <= 8.5 else self.half


_SHEET, _AMD = "NVIDIA datasheet, dense rates", "AMD data sheet, dense rates"
_SYSTEMS = {
    system.name: system
    for system in (
        ServingSystem("a100_sxm", 0.312, 0.312, 0.312, 2.039, 80, 0.6, 8, _SHEET),
        ServingSystem("l40s", 0.362, 0.733, 0.733, 0.864, 48, 0.064, 8, _SHEET),
        ServingSystem("h100_sxm", 0.989, 1.979, 1.979, 3.35, 80, 0.9, 8, _SHEET),
        ServingSystem("h200_sxm", 0.989, 1.979, 1.979, 4.8, 141, 0.9, 8, _SHEET),
        ServingSystem("b200_sxm", 2.25, 4.5, 9.0, 8.0, 180, 1.8, 8, _SHEET),
        ServingSystem("b300_sxm", 2.25, 4.5, 13.5, 8.0, 270, 1.8, 8, _SHEET),
        ServingSystem("gb200", 2.5, 5.0, 10.0, 8.0, 186, 1.8, 72, _SHEET),
        ServingSystem("gb300", 2.5, 5.0, 15.0, 8.0, 279, 1.8, 72, _SHEET),
        ServingSystem("mi300x", 1.307, 2.615, 2.615, 5.3, 192, 0.896, 8, _AMD),
        ServingSystem("mi325x", 1.307, 2.615, 2.615, 6.0, 256, 0.896, 8, _AMD),
        ServingSystem("mi355x", 2.5, 5.0, 10.0, 8.0, 288, 1.075, 8, _AMD),
    )
}


def system_of(name: str) -> ServingSystem:
    """Return the system of a name such as h200, "NVIDIA H200" or h200_sxm."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower().replace("nvidia", "").replace("amd", "")).strip(
        "_"
    )
    word = re.sub(r"_(sxm\d?|nvl\d*|hgx|\d+gb|hbm3e?)\b", "", word).removesuffix("_sxm")
    for known in _SYSTEMS.values():
        if word in (known.name, known.name.removesuffix("_sxm")):
            return known
    facts = facts_of(name) or facts_of(name.replace("_", " "))
    half = None if facts is None else facts.half_rate
    if facts is None or half is None or "cuda" not in facts.platforms:
        raise UsageError(
            f"The peaks of {name} are not known, so nothing is scaled to it.",
            f"Name one of {', '.join(sorted(_SYSTEMS))}.",
        )
    half = half / 1e3
    return ServingSystem(
        word, half, 2 * half, 2 * half, facts.bandwidth / 1e3,
        facts.memory_gib or 0.0, 0.064, 8, facts.source,
    )  # fmt: skip


#: The layouts: one merged Parquet file a table, or aiconfigurator's systems/data/SYSTEM/ENGINE/
#: VERSION/*_perf.txt. The first name is ours, the second the repository's.
_TABLES = {
    "gemm": ("gemm.parquet", "gemm_perf"),
    "context": ("context_attention.parquet", "context_attention_perf"),
    "generation": ("generation_attention.parquet", "generation_attention_perf"),
    "moe": ("moe.parquet", "moe_perf"),
    "allreduce": ("custom_allreduce.parquet", "custom_allreduce_perf"),
    "nccl": ("nccl.parquet", "nccl_perf"),
}
_NEEDED = {
    "gemm": ("gemm_dtype", "m", "n", "k"),
    "context": ("batch_size", "isl", "num_heads", "num_key_value_heads", "head_dim",
                "attn_dtype", "kv_cache_dtype", "window_size"),
    "generation": ("batch_size", "step", "num_heads", "num_key_value_heads", "head_dim",
                   "kv_cache_dtype", "window_size"),
    "moe": ("moe_dtype", "num_tokens", "hidden_size", "inter_size", "topk", "num_experts",
            "moe_tp_size", "moe_ep_size", "distribution"),
    "allreduce": ("num_gpus", "message_size", "backend"),
    "nccl": ("op_name", "nccl_dtype", "num_gpus", "message_size"),
}  # fmt: skip
#: Columns that older tables lack, and the value that they had.
_ABSENT = {"window_size": "0", "backend": "''", "distribution": "''"}


@dataclass
class LatencyCurve:
    """Latencies over one size, interpolated in logarithms and extended in proportion."""

    sizes: list[float]
    logs: list[float]

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> LatencyCurve:
        best: dict[float, list[float]] = {}
        for size, latency in pairs:
            if size > 0 and latency > 0:
                best.setdefault(size, []).append(latency)
        sizes = sorted(best)
        middle = [sorted(best[size])[len(best[size]) // 2] for size in sizes]
        return cls([math.log(size) for size in sizes], [math.log(value) for value in middle])

    def ends_before(self, size: float) -> bool:
        """Return whether a size lies beyond the measured ones."""
        return math.log(max(size, 1e-9)) > self.sizes[-1] + 1e-9

    def at(self, size: float) -> float:
        """Return the logarithm of the latency."""
        x, sizes, logs = math.log(size), self.sizes, self.logs
        if x >= sizes[-1]:
            return logs[-1] + (x - sizes[-1])
        index = bisect_left(sizes, x)
        if index == 0:
            return logs[0]
        share = (x - sizes[index - 1]) / (sizes[index] - sizes[index - 1])
        return logs[index - 1] + share * (logs[index] - logs[index - 1])


@dataclass
class LatencySurface:
    """Curves over a second size."""

    keys: list[float]
    curves: list[LatencyCurve]

    @classmethod
    def of(cls, triples: Iterable[tuple[float, float, float]]) -> LatencySurface:
        rows: dict[float, list[tuple[float, float]]] = {}
        for key, size, latency in triples:
            rows.setdefault(key, []).append((size, latency))
        keys = sorted(key for key in rows if len(rows[key]) > 1)
        return cls([math.log(key) for key in keys], [LatencyCurve.of(rows[key]) for key in keys])

    def at(self, key: float, size: float) -> float:
        x, keys = math.log(key), self.keys
        index = bisect_left(keys, x)
        if index == 0:
            return self.curves[0].at(size)
        if index == len(keys):
            return self.curves[-1].at(size) + (x - keys[-1])
        share = (x - keys[index - 1]) / (keys[index] - keys[index - 1])
        low, high = self.curves[index - 1].at(size), self.curves[index].at(size)
        return low + share * (high - low)


_Grid = Mapping[tuple[float, float], LatencyCurve]
#: More GPUs of expert parallelism than this replicate busy experts.
_WIDE = 8
_ENGINES = ("trtllm", "sglang", "vllm")


class OperatorTables:
    """Operator latencies of a system and engine, from the folder that the user names.

    A system without tables is served by the system whose documented rates are nearest; its
    latencies are scaled by peak and bandwidth.
    """

    def __init__(self, folder: Path, system: str, engine: str) -> None:
        self.folder, self.engine = folder, engine
        self.system = system_of(system)
        self._source = _source_of(folder)
        self.base = system_of(_nearest_system(self._source, self.system))
        self._notes: dict[str, str] = {}  # of each note the type that it is about
        self._cached: dict[Any, Any] = {}

    @property
    def is_scaled(self) -> bool:
        return self.base.name != self.system.name

    def notes(self, types: Sequence[str]) -> list[str]:
        """Return what was scaled, extended or replaced for questions of these types."""
        return [note for note, dtype in self._notes.items() if dtype in (*types, "")]

    def _note_beyond(self, table: str, dtype: str, *, is_beyond: bool) -> None:
        if is_beyond:
            self._notes[f"{table}: sizes beyond the table are extended in proportion"] = dtype

    def gemm(self, m: float, n: float, k: float, dtype: str) -> float:
        """Return the time of an m × k by k × n product."""
        m, n, k = max(m, 1.0), max(n, 1.0), max(k, 1.0)
        key = ("gemm", dtype, n, k)
        corners = self._cached.get(key)
        if corners is None:
            corners = self._cached[key] = self._gemm_corners(n, k, dtype)
        value = min(
            sum(weight * (curve.at(m) + shift) for weight, curve, shift in corner)
            for corner, _ in corners
        )
        nearest = corners[0][0][0]
        self._note_beyond("gemm", dtype, is_beyond=nearest[1].ends_before(m) or nearest[2] > 0)
        bits = bits_of_dtype(dtype)
        operations, moved = 2 * m * n * k, n * k * bits / 8 + (m * k + m * n) * 2
        return math.exp(value) * self._scale(operations, moved, bits) * corners[0][1]

    def _gemm_corners(self, n: float, k: float, dtype: str) -> list[tuple[list[Any], float]]:
        """Return the surrounding curves of every engine's table.

        Tables of single engines contain work that a captured graph hides, such as quantising the
        input by a kernel of its own: the least of the engines is nearest to a served step.
        """
        known, factor = self._dtype("gemm", dtype)
        return [(self._corners_of(n, k, grid), factor) for grid in self._gemm_grids(known)]

    @staticmethod
    def _corners_of(
        n: float, k: float, grid: Mapping[tuple[float, float], LatencyCurve]
    ) -> list[Any]:
        ns, ks = sorted({a for a, _ in grid}), sorted({b for _, b in grid})
        corners = []
        for edge_n, weight_n in _edges(ns, n):
            for edge_k, weight_k in _edges(ks, k):
                curve = grid.get((edge_n, edge_k))
                if curve is None:
                    pair = min(
                        grid, key=lambda p: abs(math.log(p[0] / n)) + abs(math.log(p[1] / k))
                    )
                    curve, edge_n, edge_k = grid[pair], *pair
                shift = 0.0
                if n > ns[-1] or k > ks[-1]:
                    shift = math.log(max(n / edge_n, 1.0) * max(k / edge_k, 1.0))
                corners.append((weight_n * weight_k, curve, shift))
        return corners

    def _gemm_grids(self, dtype: str) -> list[_Grid]:
        key = ("gemm grids", dtype)
        if key not in self._cached:
            grids: dict[str, dict[tuple[float, float], list[tuple[float, float]]]] = {}
            for engine in _ENGINES:
                for n, k, m, latency in self._source.rows(
                    "gemm", self.base.name, engine, "n, k, m, latency", "gemm_dtype", dtype, ""
                ):
                    grids.setdefault(engine, {}).setdefault((n, k), []).append((m, latency))
            self._cached[key] = [
                {pair: LatencyCurve.of(found) for pair, found in grid.items()}
                for grid in grids.values()
            ]
        return self._cached[key]  # type: ignore[no-any-return]

    def context_attention(
        self,
        batch: float,
        length: float,
        heads: float,
        kv_heads: float,
        head_dim: float,
        *,
        window: float = 0,
        kv_bits: float = 16,
    ) -> float:
        """Return the time of causal attention of whole prompts."""
        dtype = "fp8" if kv_bits <= 8 else "bfloat16"
        surface, ratio = self._attention("context", heads, kv_heads, head_dim, window, dtype, "isl")
        operations = 2 * batch * length * min(length, window or length) * heads * head_dim
        scale = self._scale(operations, batch * length * (heads + kv_heads) * head_dim * 4, 16)
        self._note_beyond("context", "", is_beyond=surface.curves[0].ends_before(length))
        return math.exp(surface.at(max(batch, 1), max(length, 1))) * ratio * scale

    def generation_attention(
        self,
        batch: float,
        context: float,
        heads: float,
        kv_heads: float,
        head_dim: float,
        *,
        window: float = 0,
        kv_bits: float = 16,
    ) -> float:
        """Return the time of attention of one new token a sequence."""
        dtype = "fp8" if kv_bits <= 8 else "bfloat16"
        surface, ratio = self._attention(
            "generation", heads, kv_heads, head_dim, window, dtype, "step"
        )
        reach = min(context, window or context)
        moved = batch * reach * kv_heads * head_dim * 2 * kv_bits / 8
        scale = self._scale(4 * batch * reach * heads * head_dim, moved, 16)
        self._note_beyond("generation", "", is_beyond=surface.curves[0].ends_before(context))
        return math.exp(surface.at(max(batch, 1), max(context, 1))) * ratio * scale

    def _attention(
        self,
        table: str,
        heads: float,
        kv_heads: float,
        head_dim: float,
        window: float,
        dtype: str,
        size: str,
    ) -> tuple[LatencySurface, float]:
        key = (table, heads, kv_heads, head_dim, window, dtype)
        if key not in self._cached:
            shapes: dict[Any, list[Any]] = self._attention_shapes(table, dtype, size)

            def distance(shape: Sequence[float]) -> float:
                return (
                    abs(math.log(shape[0] / heads)) + 1.5 * abs(math.log(shape[1] / kv_heads))
                    + 2 * abs(math.log(shape[2] / head_dim))
                    + (10 if bool(shape[3]) != bool(window) else 0)
                    + (abs(math.log(shape[3] / window)) if window and shape[3] else 0)
                )  # fmt: skip

            nearest = min(shapes, key=distance)
            if table == "context":
                ratio = heads * head_dim / (nearest[0] * nearest[2])
            else:
                ratio = math.sqrt(
                    (kv_heads * head_dim / (nearest[1] * nearest[2]))
                    * (heads * head_dim / (nearest[0] * nearest[2]))
                )
            self._cached[key] = (LatencySurface.of(shapes[nearest]), ratio)
        return self._cached[key]  # type: ignore[no-any-return]

    def _attention_shapes(self, table: str, dtype: str, size: str) -> dict[Any, list[Any]]:
        key = (table, "shapes", dtype)
        if key not in self._cached:
            known, _ = self._dtype(table, dtype)
            rows = self._rows(
                table,
                "num_heads, num_key_value_heads, head_dim, coalesce(window_size, 0), batch_size,"
                f" {size}, latency",
                "kv_cache_dtype",
                known,
            )
            shapes: dict[Any, list[Any]] = {}
            for heads, kv, dim, window, batch, length, latency in rows:
                shapes.setdefault((heads, kv, dim, window), []).append((batch, length, latency))
            self._cached[key] = shapes
        return self._cached[key]  # type: ignore[no-any-return]

    def moe(
        self,
        tokens: float,
        hidden: float,
        inter: float,
        topk: float,
        experts: float,
        tp: float,
        ep: float,
        dtype: str,
    ) -> float:
        """Return the time of the experts of a layer for the tokens of all GPUs together."""
        key = ("moe", hidden, inter, topk, experts, tp, ep, dtype)
        if key not in self._cached:
            self._cached[key] = self._moe_curve(hidden, inter, topk, experts, tp, ep, dtype)
        curve, ratio, factor = self._cached[key]
        bits = bits_of_dtype(dtype)
        reached = experts / ep * (1 - (1 - topk / experts) ** tokens)
        operations = 6 * tokens * topk * hidden * inter / tp / ep
        moved = 3 * reached * hidden * inter / tp * bits / 8
        scale = self._scale(operations, moved, bits)
        self._note_beyond("moe", dtype, is_beyond=curve.ends_before(tokens * ratio))
        return float(math.exp(curve.at(max(tokens, 1) * ratio)) * factor * scale)

    def _moe_curve(
        self,
        hidden: float,
        inter: float,
        topk: float,
        experts: float,
        tp: float,
        ep: float,
        dtype: str,
    ) -> tuple[LatencyCurve, float, float]:
        # Engines choose between the forms of 8 bits themselves: the measured shape decides.
        names = [dtype, *(_NEAREST_TYPE.get(dtype, ()) if "fp8" in dtype else ())]
        known = [name for name in names if name in self._dtypes("moe")]
        if "mxfp4" in dtype:
            # Engines choose the activations of the 4-bit weights themselves.
            known = sorted(name for name in self._dtypes("moe") if "mxfp4" in name) or known
        if not known:  # another engine's table of this type is nearer than one of another type
            known = [self._dtype("moe", dtype)[0]]
        shapes = {
            (name, *shape): rows for name in known for shape, rows in self._moe_shapes(name).items()
        }

        def distance(entry: tuple[str, float, float, float, float, float, float]) -> float:
            name, h, i, top, e, t, p = entry
            return (
                2 * abs(math.log(h * i / t / (hidden * inter / tp)))
                + abs(math.log(h / hidden)) + abs(math.log(top / topk))
                + abs(math.log((e / p) / (experts / ep))) + 0.5 * abs(math.log(e / experts))
                + 0.3 * (name != known[0])
            )  # fmt: skip

        nearest = min(shapes, key=distance)
        name, h, i, top, e, t, p = nearest
        if nearest[1:] != (hidden, inter, topk, experts, tp, ep):
            self._notes["moe: the nearest measured shape is scaled"] = dtype
        work = (hidden * inter / tp * experts / ep) / (h * i / t * e / p)
        density = (topk / experts) / (top / e)
        bits = bits_of_dtype(dtype) / bits_of_dtype(name)
        return LatencyCurve.of(shapes[nearest]), density, bits * work

    def _moe_shapes(self, dtype: str) -> dict[Any, list[Any]]:
        key = ("moe shapes", dtype)
        if key not in self._cached:
            # Wide groups copy busy experts, so that their load is balanced.
            rows = self._rows(
                "moe",
                "hidden_size, inter_size, topk, num_experts, moe_tp_size, moe_ep_size, num_tokens,"
                " latency",
                "moe_dtype",
                dtype,
                f" AND CASE WHEN moe_ep_size > {_WIDE} THEN distribution = 'power_law_1.01'"
                " ELSE distribution NOT IN ('balanced', 'power_law_1.01') END",
            )
            shapes: dict[Any, list[Any]] = {}
            for *shape, tokens, latency in rows:
                shapes.setdefault(tuple(shape), []).append((tokens, latency))
            self._cached[key] = {shape: found for shape, found in shapes.items() if len(found) > 2}
        return self._cached[key]  # type: ignore[no-any-return]

    def all_reduce(self, gpus: float, moved: float) -> float:
        """Return the time of an all-reduce of so many bytes in 16-bit values."""
        return self._collective("allreduce", "all_reduce", gpus, moved)

    def collective(self, name: str, gpus: float, moved: float) -> float:
        """Return the time of all_gather, reduce_scatter or alltoall."""
        return self._collective("nccl", name, gpus, moved)

    def _collective(self, table: str, name: str, gpus: float, moved: float) -> float:
        if gpus <= 1:
            return 0.0
        key = (table, name)
        if key not in self._cached:
            where = (
                " AND backend NOT LIKE '%eager'"
                if table == "allreduce"
                else f" AND op_name = '{name}' AND nccl_dtype = 'half'"
            )
            rows: dict[float, list[tuple[float, float]]] = {}
            # NCCL's sizes are numbers of elements, the engines' those of bytes.
            size = "message_size" if table == "allreduce" else "message_size * 2"
            for number, message, latency in self._rows(
                table, f"num_gpus, {size}, latency", more=where
            ):
                rows.setdefault(number, []).append((message, latency))
            self._cached[key] = {number: LatencyCurve.of(pairs) for number, pairs in rows.items()}
        curves = self._cached[key]
        number = min(curves, key=lambda known: abs(math.log(known / gpus)))
        value = math.exp(curves[number].at(max(moved, 1)))
        return float(value * (self.base.link / self.system.link if moved > 1e6 else 1.0))

    def _scale(self, operations: float, moved: float, bits: float) -> float:
        """Return the factor from the measured system to the asked one."""
        if not self.is_scaled:
            return 1.0
        here, there = (
            max(operations / (1e3 * system.peak(bits)), moved / system.bandwidth)
            for system in (self.base, self.system)
        )
        return there / here

    def _dtype(self, table: str, wanted: str) -> tuple[str, float]:
        """Return the nearest measured type and the factor that its bytes differ by."""
        known = self._dtypes(table, _ENGINES)
        if not known:
            raise self._absent(table, wanted)
        if wanted in known:
            return wanted, 1.0
        for other in _NEAREST_TYPE.get(wanted, ()):
            if other in known:
                self._notes[f"{table}: {wanted} is scaled from {other}"] = wanted
                return other, bits_of_dtype(wanted) / bits_of_dtype(other)
        other = min(known, key=lambda name: abs(bits_of_dtype(name) - bits_of_dtype(wanted)))
        self._notes[f"{table}: {wanted} is scaled from {other}"] = wanted
        return other, bits_of_dtype(wanted) / bits_of_dtype(other)

    def _dtypes(self, table: str, engines: Sequence[str] = ()) -> set[str]:
        """Return the types of this engine's table, or of those of several engines."""
        column = {"gemm": "gemm_dtype", "moe": "moe_dtype"}.get(table, "kv_cache_dtype")
        key = ("dtypes", table, engines)
        if key not in self._cached:
            self._cached[key] = {
                name
                for engine in engines or (self.engine,)
                for (name,) in self._source.rows(
                    table, self.base.name, engine, f"DISTINCT {column}", "", "", ""
                )
            }
        return self._cached[key]  # type: ignore[no-any-return]

    def _rows(
        self, table: str, columns: str, column: str = "", value: str = "", more: str = ""
    ) -> list[tuple[Any, ...]]:
        """Return rows of the engine's newest version, or of another engine if it has none."""
        engines = ["nccl"] if table == "nccl" else [
            self.engine, *(name for name in _ENGINES if name != self.engine)
        ]  # fmt: skip
        for engine in engines:
            rows = self._source.rows(table, self.base.name, engine, columns, column, value, more)
            if rows:
                if engine not in (self.engine, "nccl"):
                    note = f"{table}: {self.engine} has no table, {engine}'s is taken"
                    self._notes[note] = value
                return rows
        raise self._absent(table, value)

    def _absent(self, table: str, value: str) -> UsageError:
        return UsageError(
            f"{self.folder} has no {table} table of {self.base.name}"
            + (f" for {value}." if value else "."),
            "Name a folder with aiconfigurator's tables of this system.",
        )


_NEAREST_TYPE = {
    "fp8": ("fp8_block",), "fp8_block": ("fp8",), "nvfp4": ("w4a16_mxfp4", "int4_wo", "fp8"),
    "w4a16_mxfp4": ("w4a8_mxfp4_mxfp8", "w4a8_mxfp4_fp8", "nvfp4", "int4_wo"),
    "int4_wo": ("w4afp8", "w4a16_mxfp4", "nvfp4"), "bfloat16": ("float16",),
}  # fmt: skip


def bits_of_dtype(name: str) -> float:
    """Return the bits of a weight of a type as the tables name it."""
    return 4.5 if re.search("fp4|int4|w4", name) else 8.0 if re.search("8|sq", name) else 16.0


def _edges(values: Sequence[float], wanted: float) -> list[tuple[float, float]]:
    if wanted <= values[0]:
        return [(values[0], 1.0)]
    if wanted >= values[-1]:
        return [(values[-1], 1.0)]
    index = bisect_left(values, wanted)
    low, high = values[index - 1], values[index]
    share = math.log(wanted / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]


@dataclass
class _Source:
    """The files of a folder, by table, system and engine."""

    folder: Path
    merged: bool
    systems: frozenset[str]
    files: Mapping[tuple[str, str, str], Path] = field(default_factory=dict)

    def rows(
        self,
        table: str,
        system: str,
        engine: str,
        columns: str,
        column: str,
        value: str,
        more: str,
    ) -> list[tuple[Any, ...]]:

        where, values = "TRUE", []
        if self.merged:
            file = self.folder / _TABLES[table][0]
            where, values = "system = ? AND engine = ?", [system, engine]
        else:
            found = self.files.get((table, system, engine))
            if found is None:
                return []
            file = found
        if not file.exists():
            return []
        if column:
            where += f" AND {column} = ?"
            values.append(value)
        read = "read_parquet" if file.suffix == ".parquet" else "read_csv"
        source = f"{read}({quote_path(file)})"
        with reading(file) as con:
            present = {row[0] for row in con.execute(f"DESCRIBE FROM {source}").fetchall()}
            missing = [name for name in _NEEDED[table] if name not in present]
            if unknown := [name for name in (*missing, "latency") if name not in present
                           and name not in _ABSENT]:  # fmt: skip
                raise UsageError(
                    f"{file} has no column {unknown[0]}, so it is not a {table} table."
                )
            added = "".join(f", {_ABSENT[name]} AS {name}" for name in missing)
            if table == "allreduce":
                more = more.replace("backend", "coalesce(backend, '')")
            query = f"SELECT {columns} FROM (SELECT *{added} FROM {source}) WHERE {where}{more}"  # noqa: S608
            return list(con.execute(query, values).fetchall())


@contextmanager
def reading(file: Path) -> Iterator[DuckDBPyConnection]:
    """A connection to read an operator table with.

    Raises:
        UsageError: the file is damaged, or is another kind of table.
    """
    import duckdb

    try:
        with duckdb.connect() as con:
            yield con
    except duckdb.Error as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"{file} is not an operator table: {reason}", "Fetch the tables again, or name another."
        ) from error


@lru_cache(maxsize=8)
def _source_of(folder: Path) -> _Source:
    """Return the files of a folder, in either layout."""

    merged = folder / _TABLES["gemm"][0]
    if merged.exists():
        with reading(merged) as con:
            rows = con.execute(
                "SELECT DISTINCT system FROM read_parquet(?)", [str(merged)]
            ).fetchall()
        return _Source(folder, True, frozenset(name for (name,) in rows))
    files: dict[tuple[str, str, str], Path] = {}
    versions: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for table, (_, stem) in _TABLES.items():
        for file in sorted(folder.rglob(f"{stem}.*")):
            if file.suffix not in (".txt", ".csv", ".parquet"):
                continue
            system, engine, version = file.parts[-4:-1]
            key, order = (table, system, engine), _version_order(version)
            if key not in files or order > versions[key]:
                files[key], versions[key] = file, order
    if not any(table == "gemm" for table, _, _ in files):
        raise UsageError(
            f"{folder} has no operator tables of aiconfigurator.",
            "Name its folder systems/data, or one with gemm.parquet.",
        )
    return _Source(folder, False, frozenset(system for _, system, _ in files), files)


def _version_order(version: str) -> tuple[Any, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _nearest_system(source: _Source, wanted: ServingSystem) -> str:
    if wanted.name in source.systems:
        return wanted.name
    known = [_SYSTEMS[name] for name in sorted(source.systems) if name in _SYSTEMS]
    if not known:
        raise UsageError(f"{source.folder} has no tables of a known system.")
    return min(
        known,
        key=lambda system: (
            abs(math.log(system.half / wanted.half))
            + abs(math.log(system.bandwidth / wanted.bandwidth))
        ),
    ).name
