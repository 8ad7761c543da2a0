"""Configurations of Hugging Face: what is read of every kind, and what is refused."""

import json
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs.architecture import Attention, Experts, Mlp
from sapp_ppb.errors import FileNote, InputError
from sapp_ppb.readers.models.hf_config import read_hf_config
from tests.readers.refusals import faults_of

CONFIGS = Path(__file__).parents[2] / "data" / "hf_configs"
LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "vocab_size": 100,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
}
QWEN3_MOE = LLAMA | {
    "model_type": "qwen3_moe",
    "head_dim": 16,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
}
DEEPSEEK = LLAMA | {
    "model_type": "deepseek_v3",
    "num_key_value_heads": 8,
    "q_lora_rank": 24,
    "kv_lora_rank": 12,
    "qk_nope_head_dim": 10,
    "qk_rope_head_dim": 6,
    "v_head_dim": 10,
    "n_routed_experts": 16,
    "n_shared_experts": 2,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 20,
    "first_k_dense_replace": 2,
    "topk_method": "noaux_tc",
}


@pytest.fixture
def config(tmp_path):
    """Write a configuration with keys changed, added or (...) left out."""

    def write(base, **changes):
        path = tmp_path / "tiny.json"
        document = {key: value for key, value in (base | changes).items() if value is not ...}
        path.write_text(json.dumps(document), encoding="utf-8")
        return path

    return write


def faults(path):
    return faults_of(read_hf_config, path)


def runs(path):
    """Name, length and sort of every block."""
    return [(b.name, b.count, type(b.feed_forward).__name__) for b in read_hf_config(path).blocks]


class TestWhatIsRead:
    def test_llama(self, config):
        found = read_hf_config(config(LLAMA))
        (block,) = found.blocks
        assert (found.name, found.hidden_size, found.vocabulary) == ("tiny", 64, 100)
        assert (block.name, block.count, block.feed_forward) == ("dense", 6, Mlp(width=96))
        # 64 / 8 heads
        assert block.attention == Attention(heads=8, kv_heads=2, head_dim=8, value_dim=8, rotary_dim=8)
        assert not found.ties_embeddings

    def test_a_name_can_be_given(self, config):
        assert read_hf_config(config(LLAMA), "mine").name == "mine"

    def test_without_groups_every_head_has_its_own_keys(self, config):
        (block,) = read_hf_config(config(LLAMA, num_key_value_heads=None)).blocks
        assert block.attention.kv_heads == 8

    @pytest.mark.parametrize(
        ("model_type", "more", "biases"),
        [
            ("llama", {}, (False, False, False)),
            ("llama", {"attention_bias": True, "mlp_bias": True}, (True, True, True)),
            # Qwen2 always has a bias on queries, keys and values, and none on the output.
            ("qwen2", {}, (True, False, False)),
            ("qwen3", {"head_dim": 16}, (False, False, False)),
            ("qwen3", {"head_dim": 16, "attention_bias": True}, (True, True, False)),
        ],
    )
    def test_biases_are_those_of_the_kind(self, config, model_type, more, biases):
        (block,) = read_hf_config(config(LLAMA, model_type=model_type, **more)).blocks
        assert isinstance(block.feed_forward, Mlp)
        found = (block.attention.has_bias, block.attention.has_output_bias, block.feed_forward.has_bias)
        assert found == biases

    def test_qwen3_has_heads_of_a_length_of_their_own_and_norms_on_them(self):
        (block,) = read_hf_config(CONFIGS / "qwen3_32b_config.json").blocks
        # 64 heads of 128 are 8,192 and not the hidden size of 5,120.
        assert (block.attention.heads, block.attention.head_dim, block.attention.has_head_norms) == (
            64,
            128,
            True,
        )

    def test_mixtral_has_experts_as_wide_as_intermediate_size(self, config):
        path = config(LLAMA, model_type="mixtral", num_local_experts=8, num_experts_per_tok=2)
        (block,) = read_hf_config(path).blocks
        assert block.feed_forward == Experts(count=8, per_token=2, width=96)

    def test_experts_in_every_second_layer_alternate(self, config):
        path = config(QWEN3_MOE, decoder_sparse_step=2, mlp_only_layers=[5])
        # Layers 1 and 3 have experts, and layer 5 would have.
        assert runs(path) == [
            ("dense", 1, "Mlp"),
            ("moe", 1, "Experts"),
            ("dense_2", 1, "Mlp"),
            ("moe_2", 1, "Experts"),
            ("dense_3", 2, "Mlp"),
        ]

    def test_deepseek_is_dense_first_then_experts_then_further_tokens(self, config):
        path = config(DEEPSEEK, num_nextn_predict_layers=1)
        assert runs(path) == [("dense", 2, "Mlp"), ("moe", 4, "Experts"), ("mtp", 1, "Experts")]
        dense, moe, mtp = read_hf_config(path).blocks
        assert (dense.is_mtp, moe.is_mtp, mtp.is_mtp) == (False, False, True)
        assert (
            moe.feed_forward
            == mtp.feed_forward
            == Experts(
                count=16,
                per_token=4,
                width=20,
                shared_width=40,
                has_router_bias=True,  # 2 shared of 20
            )
        )
        assert moe.attention == Attention(
            heads=8, kv_heads=8, head_dim=16, value_dim=10, rotary_dim=6, query_rank=24, latent_rank=12
        )

    def test_queries_need_no_latent_vector(self, config):
        (dense, _) = read_hf_config(config(DEEPSEEK, q_lora_rank=None)).blocks
        assert (dense.attention.query_rank, dense.attention.latent_rank) == (None, 12)

    def test_a_language_model_inside_another_is_read_there(self, config, tmp_path):
        path = config({"model_type": "llava", "text_config": LLAMA, "tie_word_embeddings": True})
        with pytest.warns(FileNote, match="only the language model of text_config is estimated"):
            found = read_hf_config(path)
        assert (found.hidden_size, found.ties_embeddings) == (64, True)  # the outer object ties

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"quantization_config": {}}, "quantization_config is ignored"),
            ({"sliding_window": 4096}, "sliding_window is ignored"),
        ],
    )
    def test_what_the_estimate_does_not_know_of_is_noted(self, config, more, words):
        with pytest.warns(FileNote, match=words):
            read_hf_config(config(LLAMA, **more))

    def test_a_window_that_is_not_used_is_no_note(self, config):
        read_hf_config(config(LLAMA, sliding_window=4096, use_sliding_window=False))

    @pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
    def test_published_configurations_are_read(self, path):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FileNote)
            found = read_hf_config(path)
        document = json.loads(path.read_text(encoding="utf-8"))
        assert sum(b.count for b in found.blocks if not b.is_mtp) == document["num_hidden_layers"]
        assert found.name == path.stem


class TestWhatIsRefused:
    def test_an_unknown_kind_is_told_which_are_known(self, config):
        (fault,) = faults(config(LLAMA, model_type="gpt_neox"))
        assert fault == (
            "model_type 'gpt_neox' is unknown; known are llama, qwen2, qwen3, qwen3_moe, mixtral, deepseek_v3"
        )
        assert faults(config(LLAMA, model_type=...))[0].startswith("model_type is missing; known are llama")
        assert faults(config(LLAMA, model_type=["llama"]))[0].startswith("model_type ['llama'] is unknown")
        assert faults(config({"text_config": {"model_type": "vit"}}))[0].startswith(
            "text_config.model_type 'vit' is unknown"
        )

    def test_all_faults_come_at_once(self, config):
        path = config(
            DEEPSEEK,
            hidden_size=-4,
            vocab_size="many",
            kv_lora_rank=...,
            num_experts_per_tok=17,
            first_k_dense_replace=9,
            attention_bias="no",
            tie_word_embeddings=1,
        )
        assert faults(path) == (
            "hidden_size must be an integer of at least 1 (got -4)",
            "vocab_size must be an integer of at least 1 (got 'many')",
            "tie_word_embeddings must be true or false (got 1)",
            "attention_bias must be true or false (got 'no')",
            "kv_lora_rank is missing",
            "first_k_dense_replace must be an integer from 0 to 6 (got 9)",
            "num_experts_per_tok must be at most n_routed_experts 16 (got 17)",
        )

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            ({"num_key_value_heads": 3}, "num_key_value_heads must divide num_attention_heads 8 (got 3)"),
            ({"hidden_size": 60}, "head_dim is missing, and hidden_size 60 is no multiple of"),
            ({"num_hidden_layers": 10_001}, "num_hidden_layers must be at most 10000 (got 10001)"),
            ({"num_hidden_layers": 3.5}, "num_hidden_layers must be an integer of at least 1 (got 3.5)"),
            ({"intermediate_size": 10**7}, "intermediate_size must be at most 1000000 (got 10000000)"),
            ({"hidden_size": True}, "hidden_size must be an integer of at least 1 (got True)"),
            ({"rope_theta": float("inf")}, "rope_theta must be a finite number (got inf)"),
        ],
    )
    def test_a_value_that_can_not_be(self, config, more, words):
        assert any(fault.startswith(words) for fault in faults(config(LLAMA, **more)))

    def test_qwen3_needs_the_length_of_its_heads(self, config):
        assert faults(config(LLAMA, model_type="qwen3")) == ("head_dim is missing",)

    @pytest.mark.parametrize("layers", [[6], [-1], [1.0], "1", [True]])
    def test_a_layer_that_does_not_exist_is_none(self, config, layers):
        (fault,) = faults(config(QWEN3_MOE, mlp_only_layers=layers))
        assert fault.startswith("mlp_only_layers must")

    def test_what_is_no_object_is_refused(self, tmp_path):
        path = tmp_path / "list.json"
        path.write_text("[1]", encoding="utf-8")
        assert faults(path) == ("must hold a JSON object (got [1])",)

    @given(
        st.dictionaries(
            st.sampled_from(sorted(DEEPSEEK)), st.none() | st.integers() | st.text() | st.floats()
        )
    )
    def test_any_value_is_read_or_refused_in_words(self, changes):
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", FileNote)
            path = Path(folder, "drawn.json")
            path.write_text(json.dumps(DEEPSEEK | changes), encoding="utf-8")
            with suppress(InputError):
                assert read_hf_config(path).blocks
