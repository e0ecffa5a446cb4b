"""BenchmarkConfig: the guide's parameters and defaults, and what is refused, in one sentence."""

import dataclasses

import pytest

from accelbench import BenchmarkConfig
from accelbench.core.errors import UsageError

GUIDE = {
    "framework": "pytorch", "model_name": "resnet50", "device_prefer": None,
    "batch_sizes": [1, 8, 32, 128], "warmup_iterations": 10, "measurement_iterations": 50,
    "input_shape": None, "dtype": "float32", "data_source": "synthetic",
    "csv_output_dir": "results/raw", "verbose": True,
}  # fmt: skip


def test_the_guides_parameters_and_defaults():
    assert dataclasses.asdict(BenchmarkConfig()) == GUIDE
    assert BenchmarkConfig().batch_sizes is not BenchmarkConfig().batch_sizes


@pytest.mark.parametrize(
    ("name", "model"), [("resnet50", "resnet-50"), ("vit_b_16", "vit-base"), ("bert", "bert-base")]
)
def test_models_are_found_by_the_guides_names_and_the_catalogues(name, model):
    assert BenchmarkConfig(model_name=name).spec.id == model


@pytest.mark.parametrize("framework", ["pytorch", "jax", "onnx"])
def test_a_framework_is_one_of_the_guides_or_a_registered_one(framework):
    assert BenchmarkConfig(framework=framework).framework == framework


@pytest.mark.parametrize("device", ["cuda", "mps", "cpu", "tpu", "CUDA:1"])
def test_a_device_may_be_named_whether_or_not_it_is_here(device):
    assert BenchmarkConfig(device_prefer=device).device_prefer == device


@pytest.mark.parametrize(
    ("dtype", "stored"), [("float32", "fp32"), ("float16", "fp16"), ("bfloat16", "bf16")]
)
def test_the_guides_dtypes(dtype, stored):
    assert BenchmarkConfig(dtype=dtype).precision == stored


@pytest.mark.parametrize(
    ("model", "shape", "sizes"),
    [
        ("resnet50", (3, 224, 224), (None, 224)),
        ("resnet50", [3, 160, 160], (None, 160)),
        ("resnet50", (8, 3, 160, 160), (None, 160)),
        ("vit_b_16", (3, 224, 224), (None, 224)),
        ("bert", (64,), (64, None)),
        ("bert", (8, 64), (64, None)),
    ],
)
def test_an_input_shape_says_the_image_or_the_sequence(model, shape, sizes):
    shapes = BenchmarkConfig(model_name=model, input_shape=shape).shapes
    assert (shapes.sequence, shapes.image) == sizes


def test_fields_of_a_configuration():
    shapes = BenchmarkConfig().shapes
    assert (shapes.sequence, shapes.image) == (None, None)
    # A field set afterwards is checked again.
    config = BenchmarkConfig()
    config.batch_sizes = []
    with pytest.raises(UsageError, match="batch_sizes is empty"):
        config.check()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"framework": "torchh"}, "no framework named 'torchh'"),
        ({"model_name": "resnet51"}, "no model named 'resnet51'"),
        ({"model_name": 5}, "model_name takes a name, not 5"),
        ({"device_prefer": "gpuu"}, "no hardware named 'gpuu'"),
        ({"batch_sizes": []}, "batch_sizes is empty"),
        ({"batch_sizes": 8}, "batch_sizes takes a list"),
        ({"batch_sizes": "1,8"}, "batch_sizes takes a list"),
        ({"batch_sizes": [1, 0]}, "at least 1, not 0"),
        ({"batch_sizes": [1.5]}, "at least 1, not 1.5"),
        ({"batch_sizes": [True]}, "not True"),
        ({"warmup_iterations": -1}, "warmup_iterations takes a whole number of at least 0"),
        ({"measurement_iterations": 0}, "measurement_iterations takes a whole number of at least"),
        ({"dtype": "float64"}, "no precision named 'float64'"),
        ({"dtype": None}, "dtype takes a name"),
        ({"data_source": ""}, "data_source takes a name"),
        ({"csv_output_dir": None}, "csv_output_dir takes a name"),
        ({"input_shape": ()}, "input_shape is empty"),
        ({"input_shape": 224}, "input_shape takes a list"),
        ({"input_shape": (1, 1, 3, 224, 224)}, "takes (C, H, W) or (sequence,)"),
        ({"input_shape": (224, 224, 3)}, "takes images of 3 channels"),
        ({"input_shape": (3, 224, 160)}, "takes square images"),
        ({"input_shape": (3, 224, -224)}, "at least 1, not -224"),
        ({"input_shape": (128,)}, "resnet-50 takes no sequences"),
        ({"input_shape": (7, 3, 224, 224)}, "begins with a batch of 7"),
        ({"model_name": "bert", "input_shape": (3, 224, 224)}, "bert-base takes no images"),
        ({"model_name": "bert", "input_shape": (1000,)}, "at most 512 tokens"),
        ({"model_name": "vit_b_16", "input_shape": (3, 160, 160)}, "224 × 224, not 160 × 160"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(change, says):
    with pytest.raises(UsageError) as caught:
        BenchmarkConfig(**change)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_data_is_looked_for_when_it_is_needed(tmp_path):
    config = BenchmarkConfig(data_source="data/imagenet100")
    with pytest.raises(UsageError, match="no data at data/imagenet100"):
        _ = config.data
    assert BenchmarkConfig(data_source=tmp_path).data == str(tmp_path)
    assert BenchmarkConfig().data is None
