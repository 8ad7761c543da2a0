"""Device files: ours hold what the makers say, and a user's may not hold anything else."""

import json

import pytest

from sapp_ppb.errors import InputError
from sapp_ppb.readers.models.device_file import KEYS, device_names, read_device

DEVICE = {
    "name": "mine",
    "peak_tflop_per_s": 100,
    "achievable_fraction": 0.5,
    "memory_mb": 32768,
    "memory_gb_per_s": 1000,
    "link_gb_per_s": 50,
    "network_gb_per_s": 10,
}


@pytest.fixture
def device(tmp_path):
    def write(text=None, suffix=".yaml", **changes):
        path = tmp_path / f"device{suffix}"
        values = {key: value for key, value in (DEVICE | changes).items() if value is not ...}
        path.write_text(json.dumps(values) if text is None else text, encoding="utf-8")
        return str(path)

    return write


def faults(path):
    with pytest.raises(InputError) as caught:
        read_device(path)
    return caught.value.faults


@pytest.mark.parametrize(
    ("name", "peak", "memory_mb", "memory_gb"),
    [
        ("a100", 312, 80 * 1024, 2039),  # NVIDIA's data sheets: dense bf16, SXM
        ("h100", 989, 81559, 3350),  # 81,559 and 143,771 MB as nvidia-smi shows them
        ("h200", 989, 143771, 4800),
        ("910b", 376, 64 * 1024, 1600),
    ],
)
def test_ours_hold_what_the_makers_say(name, peak, memory_mb, memory_gb):
    found = read_device(name.upper())
    assert (found.peak_tflop_per_s, found.memory_mb, found.memory_gb_per_s) == (peak, memory_mb, memory_gb)
    assert 0.5 <= found.achievable_fraction <= 0.8
    assert found.network_gb_per_s < found.link_gb_per_s < found.memory_gb_per_s


def test_each_of_ours_is_tested():
    assert set(device_names()) == {"a100", "h100", "h200", "910b"}


def test_a_file_has_the_same_keys_and_may_be_json(device):
    for suffix in (".yaml", ".json"):
        found = read_device(device(suffix=suffix, devices_per_node=16))
        assert (found.name, found.peak_tflop_per_s, found.devices_per_node) == ("mine", 100.0, 16)
    assert read_device(device()).devices_per_node == 8
    assert set(DEVICE) | {"devices_per_node"} == set(KEYS)


def test_a_name_that_is_none_is_told_which_there_are():
    with pytest.raises(InputError, match="'v100' is no device known here and no file; one of 910b, a100"):
        read_device("v100")
    with pytest.raises(InputError, match="there is no such file"):
        read_device("v100.yaml")


def test_all_faults_come_at_once(device):
    path = device(
        name=...,
        peak_tflop_per_s=0,
        achievable_fraction=1.2,
        memory_mb="80 GB",
        link_gbs=3,
        devices_per_node=0,
    )
    assert faults(path) == (
        "'link_gbs' is unknown; the nearest known key is link_gb_per_s",
        "name is missing",
        "peak_tflop_per_s must be a number above 0 (got 0)",
        "memory_mb must be a number above 0 (got '80 GB')",
        "devices_per_node must be an integer of at least 1 (got 0)",
        "achievable_fraction must be at most 1 (got 1.2)",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1", "must hold keys and values: name, peak_tflop_per_s"),
        ("name: a\nname: b", "gives a key more than once"),
        ("peak_tflop_per_s: .inf", "must be a finite number"),
    ],
)
def test_what_is_no_device_is_refused(device, text, words):
    assert any(words in fault for fault in faults(device(text)))
