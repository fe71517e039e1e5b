"""Sequences of symbols and their table of bigrams, against loops; the step of gradient descent that makes the table."""

from functools import partial

import pytest
import torch

from mesa_lib import (
    Tokens,
    bigram_batch,
    bigram_counts,
    dual_codes,
    generator,
    gradient_descent_weights,
    induction_construction,
    induction_sequence,
    least_squares_weights,
    linear_attention,
    linear_self_attention,
    one_hot_codes,
    read_prediction,
    sequence_tokens,
    softmax_attention,
)

DOUBLE = torch.float64
SYMBOLS = 6


@pytest.fixture
def words(seeded):
    """Random symbols, with repetitions: three sequences of fifteen."""
    return torch.randint(0, SYMBOLS, (3, 15), generator=seeded)


def counted(row):
    """The table of one sequence, pair by pair."""
    table = torch.zeros(SYMBOLS, SYMBOLS, dtype=DOUBLE)
    for before, after in zip(row[:-1].tolist(), row[1:].tolist(), strict=True):
        table[after, before] += 1
    return table


def test_an_induction_sequence_shows_every_symbol_once_and_then_begins_again():
    sequences = induction_sequence(7, 50, generator(0, "validation tasks"), again=3)
    assert sequences.shape == (50, 10)
    for row in sequences.tolist():
        assert sorted(row[:7]) == list(range(7)) and row[7:] == row[:3]
    assert len({tuple(row) for row in sequences.tolist()}) == 50
    again = induction_sequence(7, 50, generator(0, "validation tasks"), again=3)
    assert torch.equal(sequences, again)


def test_bigram_counts_count_pairs_of_neighbours(words):
    table = bigram_counts(words, SYMBOLS)
    assert torch.equal(table, torch.stack([counted(row) for row in words]))
    assert (table.sum((1, 2)) == 14).all()


def test_one_gradient_step_on_one_hot_pairs_is_the_table_of_bigrams(words):
    batch = bigram_batch(words, torch.eye(SYMBOLS))
    step = gradient_descent_weights(batch, eta=float(batch.num_context))
    assert torch.equal(step, torch.stack([counted(row) for row in words[:, :-1]]))
    assert torch.equal(batch.query_x[:, 0].argmax(-1), words[:, -2])
    assert torch.equal(batch.query_y[:, 0].argmax(-1), words[:, -1])


def test_least_squares_on_one_hot_pairs_are_relative_frequencies(words):
    fitted = least_squares_weights(bigram_batch(words, torch.eye(SYMBOLS)))
    table = torch.stack([counted(row) for row in words[:, :-1]])
    torch.testing.assert_close(fitted, table / table.sum(1, keepdim=True).clamp(min=1), rtol=0, atol=1e-10)


def predicted(symbols, embedding, positions, sharpness):
    copy, step = induction_construction(embedding, positions, sharpness)
    attention = linear_attention if sharpness is None else partial(softmax_attention, sink=1.0)
    tokens = sequence_tokens(symbols, embedding, positions)
    readers = (tokens.context, tokens.query)
    paired = Tokens(*(reader + attention(copy, tokens.context, reader) for reader in readers))
    return read_prediction(linear_self_attention(step, paired), embedding.shape[-1])[:, 0]


@pytest.mark.parametrize("sharpness", [None, 40.0])
@pytest.mark.parametrize("orthonormal", [True, False])
def test_two_layers_write_the_sum_of_what_followed_the_query_symbol(sharpness, orthonormal, words, draw):
    embedding = torch.eye(SYMBOLS, dtype=DOUBLE) if orthonormal else draw(SYMBOLS, SYMBOLS + 2)
    answer = predicted(words, embedding, one_hot_codes(15, DOUBLE), sharpness)
    column = torch.stack([counted(row)[:, row[-1]] for row in words])
    torch.testing.assert_close(answer, column @ embedding, rtol=0, atol=1e-10)
    torch.testing.assert_close(answer @ dual_codes(embedding).mT, column, rtol=0, atol=1e-10)


def test_a_softmax_copy_needs_little_sharpness_to_find_the_right_symbol():
    sequences = induction_sequence(20, 50, generator(0, "validation tasks"), again=20)
    for sharpness, right in ((4.0, 1.0), (0.5, 0.0)):
        answer = predicted(sequences[:, :-1], torch.eye(20, dtype=DOUBLE), one_hot_codes(39, DOUBLE), sharpness)
        assert float((answer.argmax(-1) == sequences[:, -1]).double().mean()) == right


def test_sequence_tokens_hold_a_symbol_its_place_and_two_empty_slots(words, draw):
    embedding, codes = draw(SYMBOLS, 4), draw(15, 5)
    tokens = sequence_tokens(words, embedding, codes)
    expected = torch.cat([embedding[words[1, 3]], codes[3], torch.zeros(8, dtype=DOUBLE)])
    assert torch.equal(tokens.context[1, 3], expected)
    assert torch.equal(tokens.query[:, 0], tokens.context[:, -1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: induction_sequence(5, 2, torch.Generator(), again=1),
            "again: expected a number from 2 to",
        ),
        (
            lambda: induction_sequence(5, 2, torch.Generator(), again=6),
            "again: expected a number from 2 to",
        ),
        (lambda: induction_sequence(0, 2, torch.Generator()), "num_symbols: expected a positive integer, got 0"),
        (lambda: bigram_counts(torch.tensor([[0, 3]]), 3), "sequence: expected symbols from 0 to 2, got others"),
        (lambda: bigram_counts(torch.tensor([[0], [1]]), 3), "with at least 2 symbols a row, got torch.int64 of shape"),
        (lambda: bigram_batch(torch.tensor([[0, 1]]), torch.eye(3)), "with at least 3 symbols a row, got torch.int64"),
        (
            lambda: sequence_tokens(torch.tensor([[0, 1]]), torch.eye(3), torch.eye(3)),
            "positions: expected one code for each of 2 places, got 3",
        ),
        (
            lambda: induction_construction(torch.ones(3, 2), torch.eye(4)),
            "embedding: expected 3 linearly independent rows, got rows of rank 1",
        ),
        (lambda: induction_construction(torch.eye(3), torch.eye(4), -1.0), "sharpness: expected a number > 0, got -1"),
    ],
)
def test_sequences_that_do_not_work_are_refused(call, message, refused):
    refused(call, ValueError, message)
