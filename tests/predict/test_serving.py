"""Served language models: tables, memory, continuous batching, corrections and the command."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from serving_tables import measured_line, write_config, write_measured, write_tables
from typer.testing import CliRunner

from accelbench.core.errors import UsageError
from accelbench.exchange.imports.reading import read_import
from accelbench.predict.serving.models import (
    MeasuredServer,
    ServerLayout,
    ServingQuestion,
    architecture_name,
    cache_tokens,
    check_question,
    layout_of,
    measured_servers,
    memory_bytes,
    model_of_config,
    question_of_row,
    served_model,
)
from accelbench.predict.serving.operators import LatencyCurve, OperatorTables, system_of
from accelbench.predict.serving.predictor import (
    ServingPredictor,
    ServingTimes,
    predict_servers,
)
from accelbench.predict.serving.queueing import Request, ServerLimits, simulate, spread_requests
from accelbench.store.database import Database


@pytest.fixture
def tables(tmp_path):
    return write_tables(tmp_path / "tables")


@pytest.fixture
def question(tmp_path):
    return ServingQuestion(
        "lab/net", "h100_sxm", "vllm", "fp8", 1024, 256, 16.0, config=str(write_config(tmp_path))
    )


# -- operator tables


def test_curves_interpolate_in_logarithms_and_grow_in_proportion():
    curve = LatencyCurve.of([(1, 1.0), (100, 10.0)])
    assert math.exp(curve.at(10)) == pytest.approx(math.sqrt(10))
    assert math.exp(curve.at(0.5)) == pytest.approx(1.0)
    assert math.exp(curve.at(1000)) == pytest.approx(100.0)


def test_products_come_from_the_table(tables):
    known = OperatorTables(tables, "H100", "vllm")
    assert known.gemm(256, 1024, 1024, "fp8") == pytest.approx(0.002 + 256 * 2**20 * 2e-12)
    between = known.gemm(256, 2048, 1024, "fp8")
    assert known.gemm(256, 1024, 1024, "fp8") < between < known.gemm(256, 8192, 1024, "fp8")


def test_what_lies_beyond_the_table_is_noted(tables):
    known = OperatorTables(tables, "h100", "vllm")
    known.gemm(256, 1024, 1024, "fp8")
    assert known.notes(["fp8"]) == []
    twice = known.gemm(2 * 4096, 1024, 1024, "fp8") / known.gemm(4096, 1024, 1024, "fp8")
    assert twice == pytest.approx(2)
    assert len(known.notes(["fp8"])) == 1
    assert known.notes(["bfloat16"]) == []


def test_a_system_without_tables_is_scaled_by_its_documented_rates(tables):
    near, far = (OperatorTables(tables, name, "vllm") for name in ("h100_sxm", "h200_sxm"))
    assert not near.is_scaled
    assert far.is_scaled
    ratio = near.generation_attention(64, 4096, 8, 8, 128) / far.generation_attention(
        64, 4096, 8, 8, 128
    )
    assert ratio == pytest.approx(4.8 / 3.35)


def test_the_merged_layout_has_the_same_times(tables, tmp_path):
    import duckdb

    merged = tmp_path / "merged"
    merged.mkdir()
    source = next(tables.rglob("gemm_perf.txt"))
    duckdb.sql(
        f"COPY (SELECT 'h100_sxm' AS system, 'vllm' AS engine, * FROM read_csv('{source}'))"
        f" TO '{merged / 'gemm.parquet'}'"
    )
    one, two = (OperatorTables(folder, "h100", "vllm") for folder in (tables, merged))
    assert one.gemm(33, 700, 900, "fp8") == two.gemm(33, 700, 900, "fp8")


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(UsageError):
        OperatorTables(tmp_path, "h100", "vllm")


def test_a_table_without_a_column_is_refused(tables):
    file = next(tables.rglob("gemm_perf.txt"))
    file.write_text(file.read_text().replace(",gemm_dtype,", ",kind,"))
    with pytest.raises(UsageError, match="gemm_dtype"):
        OperatorTables(tables, "h100", "vllm").gemm(1, 256, 256, "fp8")


def test_unknown_gpus_are_refused():
    assert system_of("AMD MI300X").name == "mi300x"
    assert system_of("NVIDIA H200").name == system_of("h200_sxm").name == "h200_sxm"
    with pytest.raises(UsageError):
        system_of("abacus")


# -- architectures and memory


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8.0), ("meta-llama/Llama-3.1-70B", 70.6),
        ("deepseek-ai/DeepSeek-R1", 671.0), ("Qwen/Qwen3-235B-A22B-FP8", 235.0),
        ("openai/gpt-oss-120b", 116.8), ("MiniMaxAI/MiniMax-M2.5", 229.0),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.7),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", 108.0),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 400.0),
        ("mistralai/Mistral-Large-Instruct", 122.6), ("microsoft/phi-4", 14.7),
        ("Qwen/Qwen3-32B-FP8", 32.8), ("zai-org/GLM-4.5", 355.0), ("zai-org/GLM-5-FP8", 744.0),
        ("moonshotai/Kimi-K2.5", 1026.0), ("Qwen/Qwen3-30B-A3B", 30.5),
        ("zai-org/GLM-4.5-Air", 106.0), ("Qwen/Qwen3-Coder-480B-A35B-Instruct", 480.0),
    ],
)  # fmt: skip
def test_architectures_have_the_published_number_of_weights(name, billions):
    assert served_model(name).parameters / 1e9 == pytest.approx(billions, rel=0.03)


def test_near_twins_are_one_architecture():
    names = ("deepseek-ai/DeepSeek-R1-0528", "nvidia/DeepSeek-R1-0528-FP4-v2", "DeepSeek-V3")
    assert len({architecture_name(name) for name in names}) == 1


def test_a_config_describes_a_model(tmp_path):
    model = model_of_config("lab/net", write_config(tmp_path))
    assert (model.hidden, model.layers, model.head_dim, model.experts) == (1024, 4, 128, 0)
    with pytest.raises(UsageError):
        model_of_config("lab/net", tmp_path / "absent.json")
    with pytest.raises(UsageError):
        served_model("lab/net")


def test_memory_falls_with_gpus_and_bits():
    model, system = served_model("meta-llama/Llama-3.1-70B"), system_of("h100")
    whole = memory_bytes(model, ServerLayout(), "bfloat16", "")
    assert whole == pytest.approx(2 * 70.6e9, rel=0.01)
    assert memory_bytes(model, ServerLayout(tp=4), "bfloat16", "") == pytest.approx(whole / 4)
    assert cache_tokens(model, ServerLayout(), system, "bfloat16", "", 16) == 0
    room = cache_tokens(model, ServerLayout(tp=4), system, "fp8", "", 8)
    assert room == pytest.approx(2 * cache_tokens(model, ServerLayout(tp=4), system, "fp8", "", 16))


def test_latent_caches_are_not_split():
    model = served_model("deepseek-ai/DeepSeek-V3")
    assert model.cache_bytes(8, 1) == model.cache_bytes(8, 8) == 61 * 576


@pytest.mark.parametrize(
    ("sizes", "layout"),
    [
        ((64, 1, 8, 8), ServerLayout(8, 1, 1, 1, 8)),  # 8 GPUs, written as 64
        ((1, 16, 4, 4), ServerLayout(1, 1, 4, 1, 4)),
        ((2, 2, 1, 4), ServerLayout(1, 1, 2, 1, 2)),
        ((4, 1, 2, 2), ServerLayout(4, 1, 1, 2, 2)),
        ((8, 1, 8, 1), ServerLayout(8, 1, 1, 8, 1)),
    ],
)
def test_layouts_that_no_node_has_are_read_as_smaller_ones(sizes, layout):
    names = ("tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")
    assert layout_of(dict(zip(names, sizes, strict=True)), "", "b200_sxm") == layout


# -- continuous batching


def test_one_user_is_served_in_the_sum_of_the_steps():
    times = simulate([Request(100, 11)] * 3, lambda p, n, b, c: 0.5 if p else 0.02, concurrency=1)
    assert times.ttft() == pytest.approx([0.5] * 3)
    assert times.tpot() == pytest.approx([0.02] * 3)
    assert times.tokens_per_second() == pytest.approx(11 / 0.7)


def test_an_open_loop_waits_as_the_formula_of_one_server_says():
    # M/D/1: with one prompt a step, 1 s each, at half of the capacity the mean wait is half a step.
    random = np.random.default_rng(3)
    due = np.cumsum(random.exponential(2.0, 20_000))
    requests = [Request(10, 1, float(at)) for at in due]
    times = simulate(requests, lambda p, n, b, c: 1.0, ServerLimits(step_tokens=10))
    assert float(times.ttft().mean()) == pytest.approx(1.5, rel=0.05)


def test_a_full_cache_holds_requests_back():
    def step(prefill, prompts, batch, context):
        return 0.01

    requests = [Request(100, 100)] * 40
    free = simulate(requests, step, concurrency=20)
    held = simulate(requests, step, ServerLimits(cache_tokens=1000), concurrency=20)
    assert held.cache_peak <= 1000 < free.cache_peak
    assert held.ttft().mean() > 5 * free.ttft().mean()
    assert len(held.last) == len(free.last) == 40


def test_a_request_larger_than_the_cache_is_served_alone():
    limits = ServerLimits(cache_tokens=50)
    times = simulate([Request(100, 5)] * 3, lambda *_: 1.0, limits, concurrency=3)
    assert len(times.last) == 3


def test_prompts_of_others_slow_tokens():
    def step(prefill, prompts, batch, context):
        return 0.01 + prefill * 1e-4

    requests = spread_requests(200, 1000, 100)
    calm = simulate(requests, step, concurrency=1).tpot().mean()
    busy = simulate(requests, step, concurrency=20).tpot(20).mean()
    # Each user waits for the prompts of all 20 once in a hundred tokens.
    assert calm == pytest.approx(0.01, rel=0.01)
    assert busy == pytest.approx(0.01 + 19 * 0.1 / 100, rel=0.1)


def test_long_answers_cost_no_time_to_simulate():
    calls = []

    def step(*sizes):
        calls.append(sizes)
        return 0.01

    simulate([Request(10, 100_000)] * 8, step, concurrency=4)
    assert len(calls) < 50


# -- import, learning and the command


def test_measured_servers_keep_what_the_table_says(tmp_path):
    file = write_measured(tmp_path, measured_line(64, 120.5, 9.25))
    (body,) = read_import("aiconfigurator", file).bodies
    assert (body["model"], body["runtime"], body["device_name"]) == ("lab/net", "vllm", "h100_sxm")
    assert (body["ttft_ms"], body["tpot_ms"], body["prompt_tokens"]) == (120.5, 9.25, 1024)
    assert body["options"]["concurrency"] == 64
    assert "attention_dp_size" not in body["options"]  # left empty
    assert body["conditions"]["backend_version"] == "0.9.0"


def test_a_store_gives_its_measured_servers_once(tmp_path):
    lines = [measured_line(64, 120.5, 9.25), measured_line(8, 50.0, 5.0)]
    content = read_import("aiconfigurator", write_measured(tmp_path, *lines, lines[0]))
    database = Database(tmp_path / "a.duckdb")
    database.bring_in(content.run_id, content.facts, content.bodies, content.queries)
    found = measured_servers(database)
    assert sorted(point.question.concurrency for point in found) == [8, 64]
    assert {point.question.types for point in found} == {("fp8", "fp8_block")}


def test_attention_copies_are_found_by_the_batch():
    options = {"serving": "agg", "tp_size": 4, "moe_ep_size": 4, "batch_size": 16,
               "concurrency": 64}  # fmt: skip
    row = question_of_row("a", "b200_sxm", "trtllm", "fp4", 1024, 1024, options, {})
    assert row.layout == ServerLayout(1, 1, 4, 1, 4)


def test_more_users_get_later_tokens_and_more_of_them(tables, question):
    times = ServingTimes(tables)
    few, many = (times.expect(replace(question, concurrency=users)) for users in (2.0, 64.0))
    assert few.traits["tpot"] < many.traits["tpot"]
    assert few.throughput < many.throughput
    assert few.fits


def test_an_open_loop_serves_what_arrives_until_the_server_is_full(tables, question):
    times = ServingTimes(tables)
    calm, full = (times.expect(replace(question, rate=rate)) for rate in (0.5, 1e5))
    assert calm.throughput == pytest.approx(0.5 * 256, rel=0.15)
    assert calm.throughput < full.throughput < 0.5 * 1e5 * 256
    assert calm.traits["users"] < full.traits["users"]
    assert (len(calm.notes), len(full.notes)) == (0, 1)
    (answer,) = predict_servers([replace(question, rate=0.5)], tables, None, [])
    assert answer.tokens_per_second == calm.throughput


def test_two_gpus_share_the_weights_and_add_collectives(tables, question):
    times = ServingTimes(tables)
    one, two = (times.expect(replace(question, layout=ServerLayout(tp=n))) for n in (1, 2))
    assert two.gpus == 2
    assert two.weights_gib == pytest.approx(one.weights_gib / 2)
    assert one.tpot_parts["collectives"] == 0 < two.tpot_parts["collectives"]


def test_anchors_correct_other_loads_of_their_configuration(tables, question):
    times = ServingTimes(tables)
    users = (1, 2, 4, 8, 16, 32, 64, 128)
    asked = [replace(question, concurrency=float(n)) for n in users]
    plain = ServingPredictor(times, []).predict(asked)
    # A server three times as slow as the tables say.
    measured = [
        MeasuredServer(entry.question, 3 * entry.ttft[1], 3 * entry.tpot[1]) for entry in plain[::2]
    ]
    learned = ServingPredictor(times, measured).predict(asked[1::2])
    for before, after in zip(plain[1::2], learned, strict=True):
        assert after.tpot[1] / before.tpot[1] == pytest.approx(3, rel=0.15)
        assert after.tpot[2] / after.tpot[0] < before.tpot[2] / before.tpot[0]
        assert after.learned_from == 4


def test_expected_times_are_kept(tables, question, tmp_path):
    keep = tmp_path / "kept.json"
    first = ServingTimes(tables).expect_all([question], keep)
    assert ServingTimes(tmp_path / "nowhere").expect_all([question], keep) == first


def test_split_servers_decode_without_prompts(tables, question):
    split = replace(question, mode="disagg", decode_workers=2, prefill_workers=1, concurrency=32.0)
    expected = ServingTimes(tables).expect(split)
    assert expected.tpot_parts["prompts"] == 0
    assert expected.gpus == 3


def test_the_command_answers_as_json(tables, tmp_path, monkeypatch):
    from accelbench.cli.commands.predict import app

    monkeypatch.setenv("ACCELBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    measured = write_measured(
        tmp_path, *(measured_line(n, 20.0 + n, 2.0 + n / 20, "Qwen/Qwen3-0.6B") for n in (1, 8, 32))
    )
    words = ["Qwen/Qwen3-0.6B", "--serving", "--tables", str(tables), "--hardware", "h100",
             "--framework", "vllm", "--precision", "fp8", "--concurrency", "4,16",
             "--prompt-tokens", "1024", "--new-tokens", "256",
             "--measured", str(measured)]  # fmt: skip
    result = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    few, many = json.loads(result.stdout)
    for entry in (few, many):
        assert entry["ttft_low_ms"] < entry["ttft_ms"] < entry["ttft_high_ms"]
        assert entry["tpot_low_ms"] < entry["tpot_ms"] < entry["tpot_high_ms"]
        assert entry["fits"]
        assert entry["learned_from"] == 3
    assert few["output_tokens_s"] < many["output_tokens_s"]
    split = CliRunner().invoke(app, [*words, "--json", "--mode", "disagg"], catch_exceptions=False)
    assert {entry["serving_mode"] for entry in json.loads(split.stdout)} == {"disagg"}
    shown = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "Qwen3-0.6B" in shown.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["a", "--serving", "--hardware", "h100", "--framework", "vllm"],
        ["a", "--serving", "--tables", ".", "--framework", "vllm"],
        ["a", "--concurrency", "4"],
        ["a", "--serving", "--matrix"],
        [
            "a",
            "--serving",
            "--hardware",
            "h100",
            "--framework",
            "vllm",
            "--tables",
            ".",
            "--mode",
            "training",
        ],
    ],
)
def test_incomplete_questions_are_refused(words):
    from accelbench.cli.commands.predict import app

    with pytest.raises(UsageError):
        CliRunner().invoke(app, words, catch_exceptions=False, standalone_mode=False)


def test_unknown_models_of_a_store_are_left_out(tables, question):
    other = MeasuredServer(replace(question, model="lab/other", config=""), 10.0, 1.0)
    assert predict_servers([question], tables, None, [])[0].learned_from == 0
    assert ServingPredictor(ServingTimes(tables), [other]).count == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine": "foo"}, "foo"),
        ({"precision": "fp32"}, "fp32"),
        ({"new": 0}, "new token"),
        ({"prompt": 0}, "prompt token"),
        ({"rate": math.nan}, "nan"),
        ({"rate": math.inf}, "inf"),
        ({"layout": ServerLayout(7)}, "7 GPUs"),
        ({"layout": ServerLayout(1, 1000)}, "1000 stages"),
    ],
)
def test_servers_that_cannot_be_are_refused(question, change, words):
    check_question(question)
    with pytest.raises(UsageError, match=words):
        check_question(replace(question, **change))


def test_dense_models_in_int4_have_a_quarter_of_the_weights(question):
    dense = replace(question, precision="int4")
    sizes = [
        memory_bytes(one.architecture, one.layout, *one.types)
        for one in (dense, replace(question, precision="bf16"))
    ]
    assert sizes[0] < 0.5 * sizes[1]


def test_a_damaged_operator_table_is_refused(tables):
    file = next(tables.rglob("gemm_perf.txt"))
    file.rename(file.with_suffix(".parquet"))
    with pytest.raises(UsageError, match="gemm_perf"):
        OperatorTables(tables, "h100", "vllm").gemm(1, 256, 256, "fp8")
