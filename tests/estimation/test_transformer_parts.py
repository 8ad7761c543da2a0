"""Activations and operations of layers are those that papers derive and hands add up."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sapp_ppb.costs import Recompute
from sapp_ppb.costs.architecture import Architecture, Attention, Block, Experts, Mlp
from sapp_ppb.estimation import TrainingSetup
from sapp_ppb.estimation.part import activation_mb, parameter_count
from sapp_ppb.estimation.transformer_parts import block_parts, embedding_parts, input_bytes, output_parts
from tests.estimation.architectures import gpt, llama2_7b, published

MB = 2**20
ALL = list(Recompute)


def held_bytes(architecture, setup, recompute, block=0):
    parts = block_parts(architecture.blocks[block], architecture, setup)
    return activation_mb(parts, recompute, input_bytes(architecture, setup)) * MB


def flops(architecture, setup, block=0):
    return sum(part.flops for part in block_parts(architecture.blocks[block], architecture, setup))


class TestKorthikantiTable2:
    """Bytes a layer as in Korthikanti et al., MLSys 2023, arXiv:2205.05198, table 2."""

    # GPT-3 175B and the 530B model of the paper's table 3, and a small one.
    SIZES = pytest.mark.parametrize(
        ("s", "b", "h", "a"), [(2048, 1, 12288, 96), (2048, 1, 20480, 128), (512, 4, 1024, 16)]
    )

    def setup_of(self, s, b, t=1, **more):
        return TrainingSetup(sequence_length=s, micro_batch=b, tensor=t, flash=False, **more)

    @SIZES
    def test_no_parallelism(self, s, b, h, a):
        expected = s * b * h * (34 + 5 * a * s / h)
        assert held_bytes(gpt(h, a), self.setup_of(s, b), Recompute.NONE) == pytest.approx(
            expected, rel=1e-12
        )

    @SIZES
    @pytest.mark.parametrize("t", [2, 8])
    def test_tensor_parallelism(self, s, b, h, a, t):
        setup = self.setup_of(s, b, t, sequence_parallel=False)
        expected = s * b * h * (10 + 24 / t + 5 * a * s / (h * t))
        assert held_bytes(gpt(h, a), setup, Recompute.NONE) == pytest.approx(expected, rel=1e-12)

    @SIZES
    @pytest.mark.parametrize("t", [2, 8])
    def test_tensor_and_sequence_parallelism(self, s, b, h, a, t):
        expected = s * b * h / t * (34 + 5 * a * s / h)
        found = held_bytes(gpt(h, a), self.setup_of(s, b, t), Recompute.NONE)
        assert found == pytest.approx(expected, rel=1e-12)

    @SIZES
    @pytest.mark.parametrize("t", [2, 8])
    def test_tensor_parallelism_with_selective_recompute(self, s, b, h, a, t):
        setup = self.setup_of(s, b, t, sequence_parallel=False)
        found = held_bytes(gpt(h, a), setup, Recompute.SELECTIVE)
        assert found == pytest.approx(s * b * h * (10 + 24 / t), rel=1e-12)

    @SIZES
    @pytest.mark.parametrize("t", [1, 2, 8])
    def test_tensor_and_sequence_parallelism_with_selective_recompute(self, s, b, h, a, t):
        found = held_bytes(gpt(h, a), self.setup_of(s, b, t), Recompute.SELECTIVE)
        assert found == pytest.approx(s * b * h * 34 / t, rel=1e-12)

    @SIZES
    @pytest.mark.parametrize("t", [1, 8])
    def test_full_recompute(self, s, b, h, a, t):
        setup = self.setup_of(s, b, t, sequence_parallel=False)
        assert held_bytes(gpt(h, a), setup, Recompute.FULL) == 2 * s * b * h
        # The table does not say it of sequence parallelism, with which the input is split as well.
        assert held_bytes(gpt(h, a), self.setup_of(s, b, t), Recompute.FULL) == 2 * s * b * h / t

    @SIZES
    def test_norms_are_what_comm_does_again(self, s, b, h, a):
        # Two norms' outputs of 2sbh bytes, here split over 8 devices; both types save both.
        none, comm = (held_bytes(gpt(h, a), self.setup_of(s, b, 8), r) for r in (ALL[0], Recompute.COMM))
        assert none - comm == pytest.approx(4 * s * b * h / 8, rel=1e-12)
        both = held_bytes(gpt(h, a), self.setup_of(s, b, 8), Recompute.BOTH)
        assert both == pytest.approx(s * b * h * 30 / 8, rel=1e-12)

    @SIZES
    @pytest.mark.parametrize("t", [1, 8])
    def test_the_last_norm_and_the_logits(self, s, b, h, a, t):
        # Section 4.3: 4sbh/t (1 + v/h); the embedding's dropout mask of sbh/t, and here 8 bytes a token.
        architecture, setup = gpt(h, a), self.setup_of(s, b, t)
        found = activation_mb(output_parts(architecture, setup), Recompute.NONE, 0.0) * MB
        assert found == pytest.approx(4 * s * b * h / t * (1 + 51_200 / h), rel=1e-12)
        mask = activation_mb(embedding_parts(architecture, setup), Recompute.NONE, 0.0) * MB
        assert mask == pytest.approx(s * b * h / t + 8 * s * b, rel=1e-12)


class TestLlamaLayers:
    """Bytes of layers with RMSNorm, SwiGLU and groups of heads, added up by hand."""

    def test_llama_3_1_70b_over_eight_devices(self):
        setup = TrainingSetup(sequence_length=4096, tensor=8)
        # sbh/t is 4096 * 8192 / 8 = 4 Mi elements.  In units of 2 bytes a token and device:
        # norms' inputs 2h and outputs 2h; queries h; keys and values 2 * h/8; attention's output h;
        # gate and up 2 * 3.5h; their product 3.5h; FlashAttention's fp32 number for each head 64 * 2.
        unit = 2 * 4 * MB
        core = 4 * 64 * 4096 / 8
        parts = {"norms in": 2, "norms out": 2, "q": 1, "kv": 0.25, "o": 1, "gate and up": 7, "product": 3.5}
        none = sum(parts.values()) * unit + core
        expected = {
            Recompute.NONE: none,  # 134.125 MB
            Recompute.SELECTIVE: none - parts["product"] * unit,
            Recompute.COMM: none - parts["norms out"] * unit,
            Recompute.BOTH: none - (parts["product"] + parts["norms out"]) * unit,
            Recompute.FULL: unit,
        }
        assert none == 134.125 * MB
        found = {r: held_bytes(published("llama3.1_70b"), setup, r) for r in Recompute}
        assert found == pytest.approx(expected, rel=1e-12)

    def test_scores_are_kept_without_flash_attention(self):
        flash = TrainingSetup(sequence_length=4096, tensor=8)
        without = replace(flash, flash=False)
        architecture = published("llama3.1_70b")
        scores = 2 * 64 * 4096**2 / 8  # probabilities, 2as^2b/t: nothing is dropped out
        core = 4 * 64 * 4096 / 8
        kept = held_bytes(architecture, flash, Recompute.NONE) - core
        assert held_bytes(architecture, without, Recompute.NONE) == kept + scores
        # SELECTIVE then drops the scores too.
        kept = held_bytes(architecture, flash, Recompute.SELECTIVE) - core
        assert held_bytes(architecture, without, Recompute.SELECTIVE) == kept

    def test_norms_of_heads_keep_their_inputs(self):
        setup = TrainingSetup(sequence_length=1024)
        found = held_bytes(published("qwen3_32b"), setup, Recompute.NONE)
        # h = 5120; queries 8192 and keys 1024 before and after their norms, values 1024, output 8192;
        # norms 4h; gate, up and product 3 * 25600; 64 heads.
        per_token = 2 * (4 * 5120 + 2 * (8192 + 1024) + 1024 + 8192 + 3 * 25600) + 4 * 64
        assert found == 1024 * per_token

    def test_latent_vectors_are_kept_before_and_after_their_norms(self):
        setup = TrainingSetup(sequence_length=1024)
        found = {r: held_bytes(published("deepseek_v3"), setup, r) for r in Recompute}
        # Latent 1536 + 512 + 64 and normed 1536 + 512; queries and keys 128 heads of 192, values and output
        # of 128; dense network of 18432.
        latent, normed = 1536 + 512 + 64, 1536 + 512
        heads = 128 * (192 + 192 + 128 + 128)
        per_token = 2 * (4 * 7168 + latent + normed + heads + 3 * 18432) + 4 * 128
        assert found[Recompute.NONE] == 1024 * per_token
        assert found[Recompute.NONE] - found[Recompute.COMM] == 1024 * 2 * (2 * 7168 + normed)

    def test_experts_keep_copies_of_tokens_there_and_back(self):
        setup = TrainingSetup(sequence_length=1024, data=8, expert=8)
        found = {r: held_bytes(published("deepseek_v3"), setup, r, block=1) for r in Recompute}
        latent, normed = 1536 + 512 + 64, 1536 + 512
        attention = 2 * (latent + normed + 128 * (192 + 192 + 128 + 128)) + 4 * 128
        # 8 copies of each token arrive and 8 come back; gate, up and product of 2048 for each copy and
        # for the shared expert; 256 probabilities in fp32.
        arrived, back, inner = 8 * 7168, 8 * 7168, 3 * (8 + 1) * 2048
        per_token = 2 * 4 * 7168 + attention + 2 * (arrived + back + inner) + 4 * 256
        assert found[Recompute.NONE] == 1024 * per_token
        products = 2 * (8 + 1) * 2048
        assert found[Recompute.NONE] - found[Recompute.SELECTIVE] == 1024 * products
        assert found[Recompute.NONE] - found[Recompute.COMM] == 1024 * 2 * (2 * 7168 + normed + arrived)

    def test_a_layer_for_further_tokens_keeps_its_logits_whatever_is_recomputed(self):
        setup = TrainingSetup(sequence_length=1024)
        architecture = published("deepseek_v3")
        layer, mtp = (
            {r: held_bytes(architecture, setup, r, block=block) for r in Recompute} for block in (1, 2)
        )
        # Token numbers, two norms of h in and out, then the last norm in and out and fp32 logits.
        joining = 1024 * (8 + 2 * 4 * 7168)
        behind = 1024 * (2 * 2 * 7168 + 4 * 129_280)
        assert mtp[Recompute.NONE] == layer[Recompute.NONE] + joining + behind
        assert mtp[Recompute.FULL] == layer[Recompute.FULL] + behind


class TestOperations:
    @pytest.mark.parametrize(("s", "b", "h", "a"), [(2048, 1, 12288, 96), (512, 4, 1024, 16)])
    def test_a_gpt_layer_takes_what_narayanan_counts(self, s, b, h, a):
        # Narayanan et al., SC 2021, arXiv:2104.04473, appendix: 24Bsh^2 + 4Bs^2h forward, logits 2BshV.
        setup = TrainingSetup(sequence_length=s, micro_batch=b, flash=False)
        assert flops(gpt(h, a), setup) == 24 * b * s * h**2 + 4 * b * s**2 * h
        assert sum(p.flops for p in output_parts(gpt(h, a), setup)) == 2 * b * s * h * 51_200

    def test_flash_attention_computes_the_causal_half(self):
        s, h = 2048, 12288
        setup = TrainingSetup(sequence_length=s)
        assert flops(gpt(h, 96), setup) == 24 * s * h**2 + 2 * s**2 * h

    def test_eight_devices_share_the_work(self):
        for name, block in (("llama3.1_70b", 0), ("qwen3_32b", 0)):
            one, eight = (
                flops(published(name), TrainingSetup(sequence_length=4096, tensor=t), block) for t in (1, 8)
            )
            assert one == pytest.approx(8 * eight, rel=1e-12)

    def test_more_devices_than_heads_of_keys_repeat_them(self):
        # 16 devices and 8 heads of keys: each makes one head, of which half would be its share.
        setups = [TrainingSetup(sequence_length=128, tensor=t) for t in (1, 16)]
        one, sixteen = (flops(published("llama3.1_70b"), setup) for setup in setups)
        repeated = 2 * 128 * 8192 * (8 * 128 * 2)  # as much as making all of them once
        assert 16 * sixteen == pytest.approx(one + repeated, rel=1e-12)

    def test_a_token_meets_some_experts_only(self):
        # Per token: attention's matrices and the router, and 8 + 1 networks of 3 * 7168 * 2048.
        setup = TrainingSetup(sequence_length=64, data=64, expert=64)
        architecture = published("deepseek_v3")
        matrices = 7168 * (1536 + 576) + 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
        matrices += 7168 * 256 + 9 * 3 * 7168 * 2048
        scores = 64**2 * 128 * (192 + 128)  # the causal half
        assert flops(architecture, setup, block=1) == 2 * 64 * matrices + scores


class TestSending:
    def parts(self, architecture, block=0, **sizes):
        return block_parts(architecture.blocks[block], architecture, TrainingSetup(**sizes))

    @pytest.mark.parametrize("sequence_parallel", [True, False])
    def test_a_dense_layer_sends_as_much_with_and_without_sequence_parallelism(self, sequence_parallel):
        # Two gathers and two scatters of 2sbh (t-1)/t, or two sums of twice that (arXiv:2205.05198, 4.2.2).
        sizes = {"sequence_length": 4096, "tensor": 8, "sequence_parallel": sequence_parallel}
        parts = self.parts(published("llama3.1_70b"), **sizes)
        assert sum(part.tensor_bytes for part in parts) == 4 * (2 * 4096 * 8192 * 7 / 8)
        assert sum(part.expert_bytes for part in parts) == 0

    def test_one_device_sends_nothing(self):
        for name, block in (("llama3.1_70b", 0), ("deepseek_v3", 1), ("deepseek_v3", 2)):
            parts = self.parts(published(name), block, sequence_length=128)
            assert all(part.tensor_bytes == part.expert_bytes == 0 for part in parts)

    def test_copies_of_tokens_go_to_other_devices_and_come_back(self):
        # 8 copies of each token, 63 of 64 of them for experts elsewhere, there and back.
        parts = self.parts(published("deepseek_v3"), 1, sequence_length=4096, data=64, expert=64)
        assert sum(part.expert_bytes for part in parts) == 2 * (2 * 4096 * 8 * 7168 * 63 / 64)

    def test_what_is_gathered_is_sent_again_where_it_is_done_again(self):
        parts = self.parts(published("llama3.1_70b"), sequence_length=4096, tensor=8)
        again = [part for part in parts if part.is_done_again(Recompute.COMM)]
        assert sum(part.tensor_bytes for part in again) == 2 * (2 * 4096 * 8192 * 7 / 8)


@st.composite
def architectures(draw):
    """Draw a small decoder of one block of any sort."""
    heads, dim = 8, draw(st.sampled_from([8, 16]))
    latent = draw(st.booleans())
    attention = Attention(
        heads=heads,
        kv_heads=heads if latent else draw(st.sampled_from([1, 2, 4, 8])),
        head_dim=dim,
        value_dim=8 if latent else dim,
        rotary_dim=draw(st.sampled_from([4, dim])),
        query_rank=draw(st.sampled_from([None, 24])) if latent else None,
        latent_rank=16 if latent else None,
        has_bias=draw(st.booleans()),
        has_output_bias=draw(st.booleans()),
        has_head_norms=not latent and draw(st.booleans()),
    )
    network: Mlp | Experts = Mlp(width=96, is_gated=draw(st.booleans()), has_bias=draw(st.booleans()))
    if draw(st.booleans()):
        network = Experts(
            count=8,
            per_token=draw(st.integers(1, 8)),
            width=24,
            shared_width=draw(st.sampled_from([0, 24])),
            has_router_bias=draw(st.booleans()),
        )
    block = Block(
        name="drawn", count=1, attention=attention, feed_forward=network, is_mtp=draw(st.booleans())
    )
    return Architecture(
        name="drawn",
        hidden_size=64,
        vocabulary=160,
        blocks=(block,),
        has_dropout=draw(st.booleans()),
        has_norm_bias=draw(st.booleans()),
    )


@st.composite
def setups(draw):
    return TrainingSetup(
        sequence_length=draw(st.sampled_from([16, 64])),
        micro_batch=draw(st.integers(1, 3)),
        tensor=draw(st.sampled_from([1, 2, 8])),
        data=8,
        expert=draw(st.sampled_from([1, 2, 8])),
        zero=draw(st.integers(0, 3)),
        sequence_parallel=draw(st.booleans()),
        flash=draw(st.booleans()),
    )


@given(architectures(), setups())
def test_more_recompute_keeps_no_more(architecture, setup):
    none, selective, comm, both, full = (held_bytes(architecture, setup, r) for r in Recompute)
    assert none >= max(selective, comm)
    assert min(selective, comm) >= both >= full > 0
    assert none - selective + none - comm == pytest.approx(none - both)


@given(architectures(), setups())
def test_a_models_parameters_do_not_depend_on_how_it_is_trained(architecture, setup):
    plain = TrainingSetup(sequence_length=16)
    counts = [
        parameter_count(block_parts(architecture.blocks[0], architecture, how)) for how in (setup, plain)
    ]
    assert counts[0] == counts[1]


def test_the_layer_of_the_profile_is_counted():
    # 4 * 4096^2 + 3 * 4096 * 11008 + 2 * 4096, 32 of which with 2 * 32000 * 4096 + 4096 are 6,738,415,616.
    (block,) = llama2_7b().blocks
    found = parameter_count(block_parts(block, llama2_7b(), TrainingSetup(sequence_length=1)))
    assert found == 202_383_360
