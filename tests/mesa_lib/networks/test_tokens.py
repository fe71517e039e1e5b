"""Tokens and the sign convention: a query's y-slot carries minus the prediction (the paper's section 2 and A.1)."""

import pytest
import torch

from mesa_lib import Tokens, concatenated_tokens, query_in_context, read_prediction


def test_a_context_token_is_x_and_y_and_a_query_token_is_x_and_zero(draw_batch):
    batch = draw_batch()
    tokens = concatenated_tokens(batch)
    assert torch.equal(tokens.context[2, 3], torch.cat([batch.context_x[2, 3], batch.context_y[2, 3]]))
    assert torch.equal(tokens.query[2, 1], torch.cat([batch.query_x[2, 1], torch.zeros(2, dtype=torch.float64)]))


@pytest.mark.parametrize("leading", [(), (4,)])
def test_with_w_0_the_query_slot_is_minus_its_prediction(leading, draw_batch, draw):
    batch, w_0 = draw_batch(), draw(*leading, 2, 3)
    tokens = concatenated_tokens(batch, w_0)
    expected = -torch.einsum("tyx,tqx->tqy", w_0.expand(4, 2, 3), batch.query_x)
    torch.testing.assert_close(tokens.query[..., 3:], expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(read_prediction(tokens, 2), -expected, rtol=1e-12, atol=1e-14)
    assert torch.equal(tokens.context, concatenated_tokens(batch).context)


def test_the_prediction_is_minus_the_last_numbers_of_a_query(draw):
    tokens = Tokens(draw(1, 2, 5), draw(1, 3, 5))
    assert torch.equal(read_prediction(tokens, 2), -tokens.query[:, :, 3:])


def test_the_query_joins_the_context_as_its_last_token(draw_batch):
    tokens = concatenated_tokens(draw_batch(num_queries=1))
    joined = query_in_context(tokens)
    assert torch.equal(joined.context[:, :5], tokens.context)
    assert torch.equal(joined.context[:, 5:], tokens.query)
    assert torch.equal(joined.query, tokens.query)


def test_several_queries_may_not_join_the_context(draw_batch, refused):
    tokens = concatenated_tokens(draw_batch(num_queries=2))
    refused(lambda: query_in_context(tokens), ValueError, "tokens: expected one query per task, got 2")


@pytest.mark.parametrize(
    ("context", "query", "error", "message"),
    [
        (torch.ones(4, 5, 3), torch.ones(3, 1, 3), ValueError, "Tokens: expected equal leading axes and at least one"),
        (torch.ones(5, 3), torch.ones(1, 3), ValueError, "Tokens: expected equal leading axes and at least one for"),
        (torch.ones(4, 5, 3), torch.ones(4, 1, 2), ValueError, "Tokens.query: expected 3 numbers a token, those of"),
        (torch.ones(4, 5, 3), torch.ones(4, 1, 3).double(), TypeError, "Tokens.query: expected dtype torch.float32"),
        (torch.ones(4, 5, 3).int(), torch.ones(4, 1, 3), TypeError, "Tokens.context: expected a floating-point"),
        (torch.ones(4, 5, 3), None, TypeError, "Tokens.query: expected a floating-point tensor, got NoneType"),
    ],
)
def test_tokens_that_do_not_fit_together_are_refused(context, query, error, message, refused):
    refused(lambda: Tokens(context, query), error, message)


@pytest.mark.parametrize(
    ("y_dim", "error", "message"),
    [
        (5, ValueError, "y_dim: expected less than the token's 5 numbers, got 5"),
        (0, ValueError, "y_dim: expected a positive integer, got 0"),
        (1.0, TypeError, "y_dim: expected a positive integer, got 1.0 of type float"),
    ],
)
def test_a_target_slot_that_a_token_lacks_is_refused(y_dim, error, message, refused):
    tokens = Tokens(torch.ones(1, 2, 5), torch.ones(1, 3, 5))
    refused(lambda: read_prediction(tokens, y_dim), error, message)


@pytest.mark.parametrize(
    ("w_0", "error", "message"),
    [
        (torch.ones(3, 2).double(), ValueError, "w_0: expected a shape that ends in (2, 3), got (3, 2)"),
        (torch.ones(3, 2, 3).double(), ValueError, "w_0: expected leading axes that broadcast with (4,)"),
        (torch.ones(2, 3), TypeError, "w_0: expected dtype torch.float64, that of the batch, got torch.float32"),
        (torch.full((2, 3), float("nan")).double(), ValueError, "w_0: expected finite numbers, got NaN"),
    ],
)
def test_a_w_0_that_does_not_fit_is_refused(w_0, error, message, draw_batch, refused):
    batch = draw_batch()
    refused(lambda: concatenated_tokens(batch, w_0), error, message)


def test_a_w_0_for_each_member_gives_the_tokens_an_ensemble_axis(draw_batch, draw):
    batch, starts = draw_batch(4), draw(3, 4, 2, 3)
    together = concatenated_tokens(batch, starts)
    for member, start in enumerate(starts):
        alone = concatenated_tokens(batch, start)
        assert torch.equal(together.context[member], alone.context)
        assert torch.equal(together.query[member], alone.query)
