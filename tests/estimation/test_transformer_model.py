"""Whole models: their parameters are the published ones, their times near a published profile."""

import json
from dataclasses import replace
from math import ceil

import pytest
from hypothesis import given

from sapp_ppb.costs import Cost, LayerKind, Recompute
from sapp_ppb.costs.architecture import Architecture
from sapp_ppb.costs.tied import counted_twice_mb
from sapp_ppb.errors import InputError
from sapp_ppb.estimation import DType, TrainingSetup, estimate_transformer
from sapp_ppb.estimation.part import parameter_mb
from sapp_ppb.estimation.transformer_parts import block_parts
from sapp_ppb.readers.models.device_file import read_device
from sapp_ppb.readers.models.hf_config import read_hf_config
from tests.estimation.architectures import DATA, PLAIN, gpt, llama2_7b, published
from tests.estimation.test_transformer_parts import architectures, setups

SHORT = TrainingSetup(sequence_length=16)


def estimated(architecture: Architecture, **sizes):
    return estimate_transformer(architecture, TrainingSetup(sequence_length=4096, **sizes), PLAIN)


def estimated_long(architecture: Architecture):
    return estimate_transformer(architecture, TrainingSetup(sequence_length=8192), PLAIN)


class TestPublishedParameters:
    """Counts that Hugging Face shows on each model's page, from the headers of its safetensors files."""

    @pytest.mark.parametrize(
        ("name", "parameters"),
        [
            ("llama3.1_8b", 8_030_261_248),  # meta-llama/Llama-3.1-8B
            ("llama3.1_70b", 70_553_706_496),  # meta-llama/Llama-3.1-70B
            ("qwen3_32b", 32_762_123_264),  # Qwen/Qwen3-32B
            ("qwen3_30b_a3b", 30_532_122_624),  # Qwen/Qwen3-30B-A3B
        ],
    )
    def test_of_the_configurations_here(self, name, parameters):
        assert estimate_transformer(published(name), SHORT, PLAIN).parameters == parameters

    @pytest.mark.parametrize(
        ("parameters", "config"),
        [
            # meta-llama/Llama-2-7b-hf: 32 layers without groups of heads
            (6_738_415_616, ("llama", 4096, 11008, 32, 32, 32, 32000, {})),
            # meta-llama/Llama-3.2-1B: the output matrix is the embedding
            (1_235_814_400, ("llama", 2048, 8192, 16, 32, 8, 128256, {"tie_word_embeddings": True})),
            # Qwen/Qwen2.5-7B: biases on queries, keys and values
            (7_615_616_512, ("qwen2", 3584, 18944, 28, 28, 4, 152064, {})),
            # Qwen/Qwen3-0.6B: norms of heads of 128, which are longer than 1024 / 16; tied
            (596_049_920, ("qwen3", 1024, 3072, 28, 16, 8, 151936, {"tie_word_embeddings": True})),
            # mistralai/Mixtral-8x7B-v0.1: 8 experts in every layer
            (46_702_792_704, ("mixtral", 4096, 14336, 32, 32, 8, 32000, {"num_local_experts": 8})),
        ],
    )
    def test_of_other_kinds(self, parameters, config, tmp_path):
        kind, hidden, width, layers, heads, kv_heads, vocabulary, more = config
        document = {
            "model_type": kind,
            "hidden_size": hidden,
            "intermediate_size": width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "num_key_value_heads": kv_heads,
            "vocab_size": vocabulary,
            "head_dim": 128 if kind == "qwen3" else None,
            "num_experts_per_tok": 2,
        } | more
        path = tmp_path / "config.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        assert estimate_transformer(read_hf_config(path), SHORT, PLAIN).parameters == parameters

    def test_of_deepseek_v3(self):
        # 671,026,419,200 without multi-token prediction: the sum over the headers of deepseek-ai/DeepSeek-V3.
        found = estimate_transformer(published("deepseek_v3"), SHORT, PLAIN)
        assert found.parameters == 671_026_419_200
        # The files hold 684,531,386,000 numbers: the MTP layer with copies of the embedding and the output
        # matrix besides, and an fp32 scale for each block of 128 x 128 of what is stored in fp8.
        copies = 2 * 129_280 * 7168

        def scales(*shapes):
            return sum(ceil(rows / 128) * ceil(columns / 128) for rows, columns in shapes)

        attention = scales((1536, 7168), (128 * 192, 1536), (576, 7168), (128 * 256, 512), (7168, 128 * 128))
        dense, expert = 3 * scales((18432, 7168)), 3 * scales((2048, 7168))
        every_scale = 62 * attention + 3 * dense + 59 * 257 * expert
        assert found.parameters + found.mtp_parameters + copies + every_scale == 684_531_386_000

    def test_that_a_token_runs_through(self):
        # README_WEIGHTS.md of DeepSeek-V3: 36.7 B with the output head and without the embedding (to 0.1 B
        # its later correction, 36.6); MTP 11.5 B of its own.
        deepseek = estimate_transformer(published("deepseek_v3"), SHORT, PLAIN)
        assert (deepseek.active_parameters - 129_280 * 7168) / 1e9 == pytest.approx(36.7, abs=0.1)
        assert deepseek.mtp_parameters / 1e9 == pytest.approx(11.5, abs=0.15)
        # The page of Qwen3-30B-A3B: 3.3 B.
        assert estimate_transformer(published("qwen3_30b_a3b"), SHORT, PLAIN).active_parameters / 1e9 == (
            pytest.approx(3.3, abs=0.06)
        )


class TestGalvatronsProfile:
    """
    Llama 2 7B, bf16, 2048 tokens, one device (Hetu-Galvatron cea12ffb146a).

    The profile does not name its GPU.  Its layers compute 863 GFLOP in 3.9 to 4.4 ms, 196 to 220 TFLOP/s:
    63 to 71 % of the peak of an A100, one of the GPUs on which Galvatron's papers report.
    """

    TIMES = json.loads(
        (DATA / "profiles/galvatron/computation_profiling_bf16_llama2-7b_all.json").read_text()
    )
    MEMORY = json.loads((DATA / "profiles/galvatron/memory_profiling_bf16_llama2-7b_all.json").read_text())
    WITHIN = 1.1  # the factor that docs/estimation.md states

    def estimate(self, micro_batch=1, **more):
        setup = TrainingSetup(sequence_length=2048, micro_batch=micro_batch, **more)
        return estimate_transformer(llama2_7b(), setup, read_device("a100"))

    @pytest.mark.parametrize("micro_batch", range(1, 13))
    def test_a_layer_takes_the_measured_time_within_the_factor(self, micro_batch):
        # The profile gives the time of a layer for one sequence of the micro-batch.
        measured_ms = micro_batch * self.TIMES[f"layertype_0_bsz{micro_batch}_seq2048"]
        found_ms = self.estimate(micro_batch).model.bodies[0].forward_ms
        assert 1 / self.WITHIN < found_ms / measured_ms < self.WITHIN

    @pytest.mark.parametrize("micro_batch", range(4, 13))
    def test_embedding_and_output_do_from_four_sequences_on(self, micro_batch):
        measured_ms = micro_batch * self.TIMES[f"layertype_other_bsz{micro_batch}_seq2048"]
        model = self.estimate(micro_batch).model
        found_ms = model.heads[0].forward_ms + model.tails[0].forward_ms
        assert 1 / 1.15 < found_ms / measured_ms < 1.15

    def test_a_layer_keeps_what_was_measured_beside_its_input(self):
        # The profile says 514.56 MB a layer and 32 MB for its input alone, which is twice the 2sbh bytes of
        # one sequence (16 MB), so both are of twice the tokens; their ratio does not depend on it.
        entry = self.MEMORY["layertype_0_sp"]["2048"]["tp_activation_per_bsz_dict"]
        held = self.estimate().model.bodies[0].activation_mb
        assert held[Recompute.FULL] == 16.0
        assert held[Recompute.NONE] / held[Recompute.FULL] == pytest.approx(
            entry["1"] / entry["checkpoint"], rel=0.001
        )

    def test_kernels_that_are_not_fused_keep_a_third_more(self):
        # Hetu-Galvatron 2db58cecd2a8, memory_profiling_bf16_llama3-8b.json of its visualizer: with 8192
        # tokens a layer keeps 1413.126 MB, and its input 64 MB.
        measured_mb = 1413.126
        held = estimated_long(published("llama3.1_8b")).model.bodies[0].activation_mb
        assert held[Recompute.FULL] == 64.0
        assert measured_mb / held[Recompute.NONE] == pytest.approx(1.3, abs=0.005)
        # In units of the input: norms 2 + 2, queries 1, keys and values 0.5, output 1, gate and up 7, product
        # 3.5 and 0.016 for FlashAttention are 17.0; keys and values repeated for all heads 1.5, and the
        # activation function by itself 3.5, make 22.0 of the 22.1 measured.
        assert measured_mb / 64 == pytest.approx(held[Recompute.NONE] / 64 + 1.5 + 3.5, rel=0.005)

    def test_states_of_a_layer_are_near_with_gradients_in_two_bytes(self):
        # Eight devices, ZeRO 3: two layers hold 388.04 MB more than one, 16 bytes for each of 202,383,360
        # parameters over 8.  Here gradients take 4 bytes with bf16, 18 in all.
        run = self.MEMORY["1_1_8_sp"]
        measured_mb = run["layernum[2]_bsz8_seq2048_rank0_ms"] - run["layernum[1]_bsz8_seq2048_rank0_ms"]
        found_mb = self.estimate(data=8, zero=3).model.bodies[0].parameter_mb
        assert found_mb == pytest.approx(202_383_360 * 18 / 8 / 2**20, rel=1e-12)
        assert found_mb * 16 / 18 == pytest.approx(measured_mb, rel=0.01)


class TestKorthikantisTimes:
    """
    A layer of the 22B model on 8 A100, in milliseconds (arXiv:2205.05198, table 4).

    Table 3 has its sizes: h 6144, 64 heads, 2048 tokens, a micro-batch of 4, tensor parallel over 8.
    """

    WITHIN = 1.1

    @pytest.mark.parametrize(
        ("sequence_parallel", "recompute", "forward_ms", "backward_ms"),
        [
            (False, Recompute.NONE, 7.7, 11.9),
            (True, Recompute.NONE, 7.2, 11.8),
            (False, Recompute.FULL, 7.7, 19.5),
            (False, Recompute.SELECTIVE, 7.7, 13.2),
            (True, Recompute.SELECTIVE, 7.2, 13.1),
        ],
    )
    def test_a_layer_takes_the_measured_times_within_the_factor(
        self, sequence_parallel, recompute, forward_ms, backward_ms
    ):
        setup = TrainingSetup(
            sequence_length=2048,
            micro_batch=4,
            tensor=8,
            sequence_parallel=sequence_parallel,
            flash=False,
        )
        body = estimate_transformer(gpt(6144, 64), setup, read_device("a100")).model.bodies[0]
        assert 1 / self.WITHIN < body.forward_ms / forward_ms < self.WITHIN
        assert 1 / self.WITHIN < body.backward_ms[recompute] / backward_ms < self.WITHIN


class TestStates:
    """Weights, gradients and optimizer states, arXiv:1910.02054 figure 1 with Megatron's bytes."""

    @pytest.mark.parametrize(
        ("zero", "dtype", "bytes_each"),
        [
            (0, DType.BF16, 2 + 4 + 12),
            (1, DType.BF16, 2 + 4 + 12 / 8),
            (2, DType.BF16, 2 + 4 / 8 + 12 / 8),
            (3, DType.BF16, (2 + 4 + 12) / 8),
            (0, DType.FP16, 2 + 2 + 16),
            (1, DType.FP16, 2 + 2 + 16 / 8),
        ],
    )
    def test_zero_shares_more_and_more(self, zero, dtype, bytes_each):
        found = estimated(llama2_7b(), data=8, zero=zero, dtype=dtype)
        assert found.model.bodies[0].parameter_mb == pytest.approx(
            202_383_360 * bytes_each / 2**20, rel=1e-12
        )

    def test_tensor_parallelism_splits_matrices_and_repeats_norms(self):
        matrices, norms = 855_654_400 - 2 * 8192, 2 * 8192
        found = estimated(published("llama3.1_70b"), tensor=8, zero=0).model.bodies[0]
        assert found.parameter_mb == pytest.approx((matrices / 8 + norms) * 18 / 2**20, rel=1e-12)

    def test_experts_are_shared_among_fewer_devices(self):
        found = estimated(published("deepseek_v3"), data=128, expert=64, zero=1)
        # 256 experts of 3 * 7168 * 2048 over 64 devices, of which 128 / 64 = 2 repeat the same.
        experts = 256 * 3 * 7168 * 2048
        others = 11_507_286_272 - experts
        expected = experts / 64 * (6 + 12 / 2) + others * (6 + 12 / 128)
        assert found.model.bodies[1].parameter_mb == pytest.approx(expected / 2**20, rel=1e-12)

    def test_a_tied_output_matrix_is_held_twice_and_counted_once(self):
        tied = estimated(gpt(1024, 16), zero=0)
        apart = estimated(replace(gpt(1024, 16), ties_embeddings=False), zero=0)
        assert apart.parameters - tied.parameters == 51_200 * 1024
        assert tied.model.tails[0].parameter_mb == apart.model.tails[0].parameter_mb
        assert tied.model.tails[0].parameter_mb == pytest.approx((51_200 * 1024 + 2 * 1024) * 18 / 2**20)

    def test_further_tokens_take_a_copy_of_the_embedding_and_none_of_the_output_matrix(self):
        found = estimated(published("deepseek_v3"), zero=0)
        _, moe, mtp = found.model.bodies
        joining = 2 * 7168 + 2 * 7168**2 + 7168 + 129_280 * 7168
        assert mtp.parameter_mb - moe.parameter_mb == pytest.approx(joining * 18 / 2**20, rel=1e-9)

    @given(architectures(), setups())
    def test_no_split_and_no_sharing_holds_more(self, architecture, setup):
        parts = block_parts(architecture.blocks[0], architecture, setup)
        held = [parameter_mb(parts, replace(setup, zero=zero)) for zero in (0, 1, 2, 3)]
        assert held == sorted(held, reverse=True)
        alone = replace(setup, tensor=1, data=1, expert=1)
        assert held[0] <= parameter_mb(block_parts(architecture.blocks[0], architecture, alone), alone) * (
            1 + 1e-9
        )


class TestTimes:
    def test_a_backward_computes_twice_and_sends_once(self):
        # Times on the plain device: 1 TFLOP takes 1 ms, 1 GB moved or sent too.
        found = estimated(published("llama3.1_70b"), tensor=8)
        body, parts = found.model.bodies[0], found.layers[1].parts
        work = sum(max(part.flops / 1e12, part.moved_bytes / 1e9) for part in parts)
        sent = 4 * (2 * 4096 * 8192 * 7 / 8) / 1e9
        assert body.forward_ms == pytest.approx(work + sent, rel=1e-5)
        assert body.backward_ms[Recompute.NONE] == pytest.approx(2 * work + sent, rel=1e-5)
        assert body.backward_ms[Recompute.FULL] == pytest.approx(3 * work + 2 * sent, rel=1e-5)

    def test_selective_recompute_takes_the_product_again(self):
        body = estimated(published("llama3.1_70b"), tensor=8).model.bodies[0]
        # Gate, up and their product of 28672 / 8 for each of 4096 tokens, 2 bytes each, at 1 GB a ms.
        again = 3 * 4096 * 28672 / 8 * 2 / 1e9
        extra = body.backward_ms[Recompute.SELECTIVE] - body.backward_ms[Recompute.NONE]
        assert extra == pytest.approx(again, rel=1e-3)

    def test_a_group_beyond_a_node_is_slower(self):
        # 16 devices exceed a node of 8, so their copies travel at a tenth of the speed; 8 do not.
        uniform = replace(PLAIN, network_gb_per_s=1000)
        for experts, slower in ((16, 9), (8, 0)):
            setup = TrainingSetup(sequence_length=4096, data=64, expert=experts)
            slow, fast = (
                estimate_transformer(published("deepseek_v3"), setup, device).model.bodies[1].forward_ms
                for device in (PLAIN, uniform)
            )
            sent = 2 * (2 * 4096 * 8 * 7168 * (experts - 1) / experts) / 1e9
            assert slow - fast == pytest.approx(slower * sent, rel=1e-3)

    def test_gradients_of_weights_are_the_matrices_without_the_attention(self):
        found = estimated(llama2_7b())
        matrices = 2 * 4096 * (202_383_360 - 2 * 4096) / 1e12
        assert found.model.bodies[0].weight_grad_ms == pytest.approx(matrices, rel=0.01)

    @given(architectures(), setups())
    def test_every_layer_is_one_that_a_model_can_hold(self, architecture, setup):
        found = estimate_transformer(architecture, setup, PLAIN)
        for entry in found.layers:
            layer = entry.layer
            assert layer.estimated == set(Cost)
            assert layer.split_fault() is None
            assert (
                layer.backward_ms[Recompute.FULL] >= layer.backward_ms[Recompute.NONE] > layer.forward_ms / 2
            )
            assert layer.activation_mb[Recompute.NONE] is not None


class TestTheChain:
    def test_deepseek_is_dense_then_experts_then_further_tokens(self):
        model = estimated(published("deepseek_v3"), data=64, expert=64).model
        assert [(x.name, x.kind, x.count, x.is_mtp) for x in model.layers] == [
            ("embedding", LayerKind.HEAD, 1, False),
            ("dense", LayerKind.BODY, 3, False),
            ("moe", LayerKind.BODY, 58, False),
            ("mtp", LayerKind.BODY, 1, True),
            ("output", LayerKind.TAIL, 1, False),
        ]

    def test_an_output_that_shares_the_matrix_of_the_embedding_is_tied_to_it(self):
        model = estimated(published("llama3.1_70b")).model
        assert [layer.tied_to for layer in model.layers] == [None, None, None]
        tied = estimated(replace(published("llama3.1_70b"), ties_embeddings=True)).model
        assert [layer.tied_to for layer in tied.layers] == [None, None, "embedding"]
        # Its own norm is all that one stage with both holds besides.
        first, last = tied.heads[0].parameter_mb, tied.tails[0].parameter_mb
        assert counted_twice_mb(tied.layers, tied.layers) == first < last

    def test_a_message_is_the_hidden_state(self):
        assert estimated(published("llama3.1_70b"), tensor=8).message_mb == 8.0  # 2 * 4096 * 8192 / 8 bytes
        assert estimated(published("llama3.1_70b"), tensor=8, sequence_parallel=False).message_mb == 64.0

    def test_types_that_save_nothing_are_not_offered(self):
        # Without a gate and with FlashAttention there is nothing cheap to do again.
        held = estimated(gpt(1024, 16)).model.bodies[0].activation_mb
        assert [mb is None for mb in held] == [False, True, False, False, False]


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        ("sizes", "words"),
        [
            ({"tensor": 0}, "tensor must be an integer of at least 1"),
            ({"micro_batch": 1.5}, "micro_batch must be an integer of at least 1"),
            ({"zero": 4}, "zero must be 0, 1, 2 or 3"),
            ({"zero": True}, "zero must be 0, 1, 2 or 3"),
            ({"data": 8, "expert": 3}, "expert must divide data 8"),
            ({"tensor": 3}, "tensor must divide the 64 heads"),
            ({"tensor": 4096}, "tensor must divide the 64 heads"),
            ({"tensor": 24, "sequence_parallel": False}, "tensor must divide the inner width 28672"),
        ],
    )
    def test_sizes_that_can_not_be(self, sizes, words):
        with pytest.raises(InputError, match=words):
            estimated(published("llama3.1_70b"), **sizes)

    def test_all_that_is_not_divided_comes_at_once(self):
        with pytest.raises(InputError) as caught:
            estimate_transformer(
                published("qwen3_30b_a3b"),
                TrainingSetup(sequence_length=100, tensor=7, data=6, expert=6),
                PLAIN,
            )
        assert caught.value.faults == (
            "tensor must divide sequence_length 100 with sequence parallelism (got 7)",
            "tensor must divide the 32 heads (got 7)",
            "tensor must divide the 4 heads of keys and values, or be a multiple of them (got 7)",
            "tensor must divide the inner width 768 (got 7)",
            "expert must divide the 128 experts (got 6)",
        )
