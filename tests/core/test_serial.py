"""Cases, models and devices survive the way through JSON with their identities."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.core.case import Case, Shapes, Target
from accelbench.core.model import InputSpec, ModelSpec
from accelbench.core.protocols import Device
from accelbench.core.serial import case_from_json, case_to_json, device_from_json, device_to_json
from accelbench.core.vocabulary import Architecture, Family, Mode

names = st.text(min_size=1, max_size=12)
sizes = st.integers(1, 2**31 - 1)
scalars = st.integers() | st.booleans() | names | st.floats(allow_nan=False, allow_infinity=False)
inputs = st.builds(
    InputSpec,
    name=names,
    shape=st.lists(sizes | st.sampled_from(["batch", "sequence", "image"])).map(tuple),
    dtype=st.sampled_from(["float", "float32", "int64", "bool"]),
    low=st.integers(),
    high=st.integers(),
    constant=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
words = st.lists(names, max_size=3).map(tuple)
specs = st.builds(
    ModelSpec,
    id=names,
    family=st.sampled_from(Family),
    architecture=st.sampled_from(Architecture),
    modalities=words,
    task=names,
    size=st.sampled_from(["tiny", "base"]),
    builder=names,
    config=st.dictionaries(names, scalars | st.lists(scalars, max_size=3), max_size=4),
    inputs=st.lists(inputs, max_size=3).map(tuple),
    parameters=st.integers(0),
    item=names,
    sequence=st.none() | sizes,
    image=st.none() | sizes,
    max_sequence=st.none() | sizes,
    aliases=words,
    hub_ids=words,
    small_variant=st.none() | names,
    sets=words,
)
cases = st.builds(
    Case,
    model=specs,
    target=st.builds(Target, names, names, st.none() | names),
    precision=names,
    shapes=st.builds(Shapes, sizes, *[st.none() | sizes] * 4),
    mode=st.sampled_from(Mode),
    scenario=names,
    world_size=sizes,
    options=st.dictionaries(names, scalars, max_size=3),
)
devices = st.builds(
    Device,
    hardware=names,
    name=names,
    ordinal=st.integers(0, 64),
    vendor=st.text(max_size=5),
    memory_bytes=st.none() | st.integers(0, 2**50),
    count=sizes,
    power_limit_watts=st.none() | st.floats(0, 1e4),
    driver=st.text(max_size=5),
    emulated=st.booleans(),
    details=st.dictionaries(names, scalars, max_size=3),
)


@settings(deadline=None, derandomize=True)
@given(cases)
def test_a_case_comes_back_the_same(case):
    again = case_from_json(json.loads(json.dumps(case_to_json(case))))
    assert again == case
    assert again.case_id == case.case_id
    assert again.model.config_digest == case.model.config_digest


@settings(deadline=None, derandomize=True)
@given(devices)
def test_a_device_comes_back_the_same(device):
    again = device_from_json(json.loads(json.dumps(device_to_json(device))))
    assert again == device
    assert again.fingerprint == device.fingerprint
