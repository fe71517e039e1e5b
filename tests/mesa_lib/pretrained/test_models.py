"""The two models as they are installed: sizes, obvious sentences, and what real attention keeps to."""

import pytest
import torch

import mesa_lib as mesa


@pytest.fixture(scope="module")
def smollm():
    return mesa.smollm2()


def test_smollm2_has_the_sizes_of_its_card(smollm):
    decoder, tokenizer = smollm
    assert len(decoder.blocks) == 30 and decoder.embedding.shape == (49152, 576)
    assert decoder.blocks[29].attention.w_q.shape == (9, 64, 576)
    assert len(tokenizer.symbols) == 49152
    parameters = (
        sum(getattr(block, name).numel() for block in decoder.blocks for name in ("w_gate", "w_up", "w_down"))
        + decoder.embedding.numel()
    )
    parameters += sum(2 * block.attention.w_q.numel() * 4 // 3 for block in decoder.blocks)
    assert 134e6 < parameters < 136e6


def test_three_heads_share_their_keys_and_values(smollm):
    attention = smollm[0].blocks[7].attention
    for factor in (attention.w_k, attention.w_v):
        assert torch.equal(factor[0], factor[2]) and torch.equal(factor[3], factor[5])
        assert not torch.equal(factor[2], factor[3])


@pytest.mark.parametrize(
    ("text", "continued"),
    [
        ("The capital of France is", " Paris"),
        ("The quick brown fox jumps over the lazy", " dog"),
        ("1, 2, 3, 4, 5,", " "),
        ("Twinkle, twinkle, little", " star"),
    ],
)
def test_smollm2_continues_obvious_sentences(smollm, text, continued):
    decoder, tokenizer = smollm
    symbols = torch.tensor([tokenizer.encode(text)])
    assert tokenizer.decode([int(decoder.logits(symbols)[0].argmax())]) == continued


def test_the_tokenizer_knows_words_and_has_merged_all_it_can(smollm):
    tokenizer = smollm[1]
    text = "Rome was not built in a day, but in 2 thousand years.\nIt's said."
    numbers = tokenizer.encode(text)
    assert tokenizer.decode(numbers) == text and len(numbers) < len(text) / 2
    assert [tokenizer.decode([one]) for one in tokenizer.encode(" built in a day")] == [" built", " in", " a", " day"]


def test_every_share_of_real_attention_is_causal_and_adds_to_one(smollm):
    decoder, tokenizer = smollm
    for reading in decoder.readings(torch.tensor([tokenizer.encode("hot -> cold\nbig ->")])):
        shares = reading.double().shares()
        assert (shares.sum(-1) - 1).abs().max() < 1e-12
        assert shares.triu(1).abs().max() == 0


def test_minilm_has_the_sizes_of_its_card_and_dense_matrices():
    layers = mesa.minilm_attention()
    assert len(layers) == 6
    for weights in layers:
        assert weights.w_k.shape == weights.w_q.shape == weights.w_v.shape == (12, 32, 384)
        assert weights.w_p.shape == (12, 384, 32) and weights.w_p.dtype == torch.float32
        assert all((factor == 0).sum() == 0 for factor in (weights.w_k, weights.w_q, weights.w_v, weights.w_p))
