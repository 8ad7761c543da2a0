"""Transformers to price, and a device whose speeds are easy to reckon with."""

from pathlib import Path
from warnings import catch_warnings, simplefilter

from sapp_ppb.costs.architecture import Architecture, Attention, Block, Mlp
from sapp_ppb.costs.device import Device
from sapp_ppb.readers.models.hf_config import read_hf_config

DATA = Path(__file__).parents[1] / "data"


def published(name: str) -> Architecture:
    """Architecture of a configuration in the test data."""
    with catch_warnings():
        simplefilter("ignore")
        return read_hf_config(DATA / "hf_configs" / f"{name}_config.json")


def gpt(hidden: int, heads: int, *, layers: int = 1, vocabulary: int = 51_200) -> Architecture:
    """Layer of the papers on Megatron-LM: LayerNorm, dropout, biases, an inner width of four times h."""
    attention = Attention(
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        value_dim=hidden // heads,
        has_bias=True,
        has_output_bias=True,
    )
    mlp = Mlp(width=4 * hidden, is_gated=False, has_bias=True)
    block = Block(name="dense", count=layers, attention=attention, feed_forward=mlp)
    return Architecture(
        name="gpt",
        hidden_size=hidden,
        vocabulary=vocabulary,
        blocks=(block,),
        ties_embeddings=True,
        has_dropout=True,
        has_norm_bias=True,
    )


def llama2_7b() -> Architecture:
    """Sizes of Llama 2 7B (arXiv:2307.09288), of which Galvatron publishes a profile."""
    attention = Attention(heads=32, kv_heads=32, head_dim=128, value_dim=128, rotary_dim=128)
    block = Block(name="dense", count=32, attention=attention, feed_forward=Mlp(width=11_008))
    return Architecture(name="llama2-7b", hidden_size=4096, vocabulary=32_000, blocks=(block,))


# A TFLOP, a GB and a GB in a millisecond.
PLAIN = Device(
    name="plain",
    peak_tflop_per_s=1000,
    achievable_fraction=1,
    memory_mb=1000,
    memory_gb_per_s=1000,
    link_gb_per_s=1000,
    network_gb_per_s=100,
)
