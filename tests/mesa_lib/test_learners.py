"""The two things that all learners share: predictions, and for linear ones implicit weights."""

from functools import partial

import torch

from mesa_lib import FittedLinearModel, LinearLearner, gradient_descent_learner, least_squares, predict_linear
from mesa_lib.algorithms import gradient_descent_weights


def test_a_linear_model_predicts_v_x_for_each_query_of_each_task(draw_batch, draw):
    batch, weights = draw_batch(), draw(4, 2, 3)
    predictions = predict_linear(weights, batch)
    for task in range(4):
        for query in range(2):
            expected = weights[task] @ batch.query_x[task, query]
            torch.testing.assert_close(predictions[task, query], expected, rtol=1e-12, atol=1e-14)


def test_a_fitted_model_fits_the_context_and_applies_it_to_the_queries(draw_batch):
    batch = draw_batch()
    learner = FittedLinearModel(partial(gradient_descent_weights, eta=0.5))
    torch.testing.assert_close(learner.implicit_weights(batch), batch.context_y.mT @ batch.context_x * 0.5 / 5)
    torch.testing.assert_close(learner(batch), batch.query_x @ learner.implicit_weights(batch).mT)


def test_linear_learners_are_told_apart_by_their_implicit_weights():
    assert isinstance(gradient_descent_learner(0.1), LinearLearner)
    assert not isinstance(least_squares, LinearLearner)


def test_weights_that_do_not_fit_the_queries_are_refused(draw_batch, draw, refused):
    batch = draw_batch()
    message = "weights: expected 3 input dimensions, got shape (4, 2, 5)"
    refused(lambda: predict_linear(draw(4, 2, 5), batch), ValueError, message)
    message = "weights: expected leading axes that broadcast with (4,), those of query_x, got (3,)"
    refused(lambda: predict_linear(draw(3, 2, 3), batch), ValueError, message)
    message = "weights: expected dtype torch.float64, that of the batch, got torch.float32"
    refused(lambda: predict_linear(draw(4, 2, 3).float(), batch), TypeError, message)
