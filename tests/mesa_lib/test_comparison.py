"""The measures of the paper's Figure 2 and of others, against numbers computed by hand."""

from dataclasses import replace

import pytest
import torch

from mesa_lib import (
    FittedLinearModel,
    FreeTransformer,
    best_match,
    compare,
    error_similarity,
    fit_implicit_weights,
    gradient_descent_learner,
    implicit_weight_difference,
    least_squares,
    random_weights,
    sensitivity,
    squared_prediction_difference,
    summarize_losses,
)


def constant(weights):
    """The learner whose implicit weights are `weights` whatever the context."""
    return FittedLinearModel(lambda batch: weights.expand(*batch.context_x.shape[:-2], *weights.shape[-2:]))


def test_the_sensitivity_of_a_linear_learner_is_its_implicit_weights_at_every_query(draw_batch):
    batch = draw_batch()
    learner = gradient_descent_learner(0.4, 3)
    expected = learner.implicit_weights(batch)[:, None].expand(4, 2, 2, 3)
    torch.testing.assert_close(sensitivity(learner, batch), expected, rtol=1e-12, atol=1e-14)


def test_the_sensitivity_of_a_non_linear_learner_is_its_jacobian_query_by_query(draw_batch):
    batch = draw_batch()

    def cubic(given):
        return given.query_x[..., :2] ** 3 * given.query_x[..., 2:]

    x = batch.query_x
    expected = torch.zeros(4, 2, 2, 3, dtype=torch.float64)
    for k in range(2):
        expected[..., k, k] = 3 * x[..., k] ** 2 * x[..., 2]
        expected[..., k, 2] = x[..., k] ** 3
    torch.testing.assert_close(sensitivity(cubic, batch), expected, rtol=1e-12, atol=1e-14)


def test_differences_and_cosine_are_means_over_tasks_and_queries(draw_batch, draw):
    batch = draw_batch(3)
    a, b = draw(2, 3), draw(2, 3)
    got = compare(constant(a), constant(b), batch)
    norms = [torch.linalg.vector_norm((a - b) @ x) for x in batch.query_x.reshape(-1, 3)]
    cosine = (a * b).sum() / (a.square().sum().sqrt() * b.square().sum().sqrt())
    torch.testing.assert_close(got.prediction_difference, torch.stack(norms).mean(), rtol=1e-12, atol=0)
    torch.testing.assert_close(got.sensitivity_difference, (a - b).square().sum().sqrt(), rtol=1e-12, atol=0)
    torch.testing.assert_close(got.sensitivity_cosine, cosine, rtol=1e-12, atol=0)


def test_a_learner_compared_with_itself_does_not_differ(draw_batch):
    got = compare(least_squares, least_squares, draw_batch())
    assert got.prediction_difference == 0
    assert got.sensitivity_difference == 0
    assert got.sensitivity_cosine == pytest.approx(1, abs=1e-12)


def test_the_cosine_sees_direction_and_the_differences_see_size(draw_batch, draw):
    batch, weights = draw_batch(), draw(2, 3)
    got = compare(constant(-3 * weights), constant(weights), batch)
    assert got.sensitivity_cosine == pytest.approx(-1, abs=1e-12)
    assert got.sensitivity_difference == pytest.approx(4 * float(weights.square().sum().sqrt()), rel=1e-12)


@pytest.mark.parametrize("side", ["learner", "reference"])
def test_an_ensemble_gets_one_number_per_member_on_either_side(side, draw_batch):
    batch = draw_batch()
    seeds = [3, 1, 4]
    plain = gradient_descent_learner(0.5)
    ensemble = FreeTransformer([random_weights(3, 2, seeds, scale=0.5, dtype=torch.float64)])
    pair = (ensemble, plain) if side == "learner" else (plain, ensemble)
    together = compare(*pair, batch)
    for k, seed in enumerate(seeds):
        solo = FreeTransformer([random_weights(3, 2, [seed], scale=0.5, dtype=torch.float64)])
        alone = compare(solo, plain, batch)
        for name in ("prediction_difference", "sensitivity_difference", "sensitivity_cosine"):
            torch.testing.assert_close(getattr(together, name)[k], getattr(alone, name)[0], rtol=1e-12, atol=1e-14)


def test_a_batch_with_its_own_ensemble_axis_is_compared_member_by_member(draw_batch):
    batch = draw_batch()
    stacked = batch.expand(2)
    pair = gradient_descent_learner(0.5), gradient_descent_learner(0.1)
    expected = compare(*pair, batch).prediction_difference
    assert torch.equal(compare(*pair, stacked).prediction_difference, expected.expand(2))


def test_predictions_of_a_wrong_shape_are_refused(draw_batch, refused):
    batch = draw_batch()
    good = gradient_descent_learner(0.5)

    def squeezed(given):
        return good(given)[..., :1]

    message = "expected predictions that end in (4, 2, 2), the shape of query_y, got (4, 2, 1)"
    refused(lambda: compare(squeezed, good, batch), ValueError, f"learner: {message}")
    refused(lambda: compare(good, squeezed, batch), ValueError, f"reference: {message}")
    message = "learner: expected predictions of shape (4, 2, 2), that of query_y, got (4, 2, 1)"
    refused(lambda: sensitivity(squeezed, batch), ValueError, message)


def test_ensembles_that_do_not_broadcast_are_refused(draw_batch, refused):
    batch = draw_batch()
    three, two = (FreeTransformer([random_weights(3, 2, range(count), dtype=torch.float64)]) for count in (3, 2))
    message = "learner: expected leading axes that broadcast with (2,), those of reference, got (3,)"
    refused(lambda: compare(three, two, batch), ValueError, message)


def test_a_learner_that_autograd_cannot_follow_is_refused(draw_batch, refused):
    batch = draw_batch()
    message = "learner: expected predictions that autograd can differentiate in query_x, got constants"
    refused(lambda: sensitivity(lambda given: torch.zeros_like(given.query_y), batch), ValueError, message)


def test_comparing_leaves_the_batch_alone(draw_batch):
    batch = draw_batch()
    before = replace(batch, query_x=batch.query_x.clone())
    compare(gradient_descent_learner(0.5), least_squares, batch)
    assert torch.equal(batch.query_x, before.query_x)
    assert not batch.query_x.requires_grad


def test_a_summary_has_the_median_the_capped_mean_and_the_share_that_diverges():
    losses = torch.tensor(
        [[0.1, 0.2, 0.3, 0.9, 2.0], [0.1, 0.3, float("nan"), float("inf"), 11.0]], dtype=torch.float64
    )
    summary = summarize_losses(losses, 1.0, divergence_expected=True)
    assert summary.median.tolist() == [0.3, 11.0]
    torch.testing.assert_close(summary.capped_mean, torch.tensor([0.5, 3.4 / 5], dtype=torch.float64))
    torch.testing.assert_close(summary.divergent_share, torch.tensor([0.0, 0.6], dtype=torch.float64))
    assert summary.mean[0] == pytest.approx(0.7) and summary.mean[1] == float("inf")


def test_diverging_tasks_are_announced_with_their_share_unless_expected():
    with pytest.warns(RuntimeWarning, match=r"25\.00% of the tasks diverge \(loss not finite, or above ten times 1\)"):
        summarize_losses(torch.tensor([0.1, 0.2, 0.3, float("inf")]), 1.0)
    summarize_losses(torch.tensor([0.1, 9.9]), 1.0)  # bad, but no divergence: no warning


@pytest.mark.parametrize(
    ("losses", "cap", "error", "message"),
    [
        (torch.ones(3), 0.0, ValueError, "cap: expected a number > 0, got 0.0"),
        (torch.ones(2, 0), 1.0, ValueError, "losses: expected at least one task, got shape (2, 0)"),
        (torch.ones(3, dtype=torch.int64), 1.0, TypeError, "losses: expected a floating-point tensor"),
        (torch.tensor(1.0), 1.0, ValueError, "losses: expected at least 1 axes, got shape ()"),
    ],
)
def test_a_bad_summary_is_refused(losses, cap, error, message, refused):
    refused(lambda: summarize_losses(losses, cap), error, message)


def test_the_squared_prediction_difference_is_a_mean_over_tasks_and_queries(draw_batch, draw):
    batch = draw_batch(3)
    a, b = draw(2, 3), draw(2, 3)
    squares = [((a - b) @ x).square().sum() for x in batch.query_x.reshape(-1, 3)]
    got = squared_prediction_difference(constant(a), constant(b), batch)
    torch.testing.assert_close(got, torch.stack(squares).mean(), rtol=1e-12, atol=0)


def test_implicit_weights_are_found_from_answers_alone(draw_batch, draw):
    batch = draw_batch(3, num_queries=8)
    a, b = draw(2, 3), draw(2, 3)
    found = fit_implicit_weights(lambda given: given.query_x @ a.mT, batch)
    torch.testing.assert_close(found, a.expand(3, 2, 3), rtol=1e-10, atol=1e-12)
    difference = implicit_weight_difference(constant(a), constant(b), batch)
    torch.testing.assert_close(difference, (a - b).square().sum(), rtol=1e-10, atol=0)


def test_of_a_learner_that_is_not_linear_the_best_linear_map_is_found(draw_batch):
    batch = draw_batch(2, num_queries=8)
    found = fit_implicit_weights(lambda given: given.query_x[..., :2] ** 3, batch)
    for task in range(2):
        expected = torch.linalg.lstsq(batch.query_x[task], batch.query_x[task][:, :2] ** 3).solution.mT
        torch.testing.assert_close(found[task], expected, rtol=1e-10, atol=1e-12)


def test_errors_are_alike_by_the_cosine_over_a_tasks_queries(draw_batch, draw):
    batch = draw_batch(3, num_queries=4)
    a, b = draw(2, 3), draw(2, 3)
    cosines = []
    for xs, ys in zip(batch.query_x, batch.query_y, strict=True):
        ours, theirs = (xs @ a.mT - ys).flatten(), (xs @ b.mT - ys).flatten()
        cosines.append(ours @ theirs / (ours.norm() * theirs.norm()))
    got = error_similarity(constant(a), constant(b), batch)
    torch.testing.assert_close(got, torch.stack(cosines).mean(), rtol=1e-12, atol=0)


def test_two_learners_that_answer_nothing_err_alike(draw_batch):
    nothing = constant(torch.zeros(2, 3).double())
    torch.testing.assert_close(error_similarity(nothing, nothing, draw_batch()), torch.tensor(1.0).double())


def test_the_best_match_of_a_number_of_steps_is_that_number_for_every_member(draw_batch):
    batch = draw_batch(num_queries=6)
    family = {steps: gradient_descent_learner(0.4, steps) for steps in (1, 2, 4, 8)}
    members = [gradient_descent_learner(0.4, steps) for steps in (4, 1)]
    ensemble = FittedLinearModel(lambda given: torch.stack([member.implicit_weights(given) for member in members]))
    matched = best_match(ensemble, family, batch)
    assert matched.count.tolist() == [4, 1]
    torch.testing.assert_close(matched.similarity, torch.ones(2).double(), rtol=1e-12, atol=0)


def test_measures_of_others_refuse_what_they_cannot_measure(refused, draw_batch):
    batch = draw_batch()
    refused(
        lambda: fit_implicit_weights(least_squares, batch), ValueError, "batch: expected at least x_dim = 3 queries"
    )
    refused(lambda: best_match(least_squares, {}, batch), ValueError, "family: expected at least one learner")
    refused(
        lambda: squared_prediction_difference(least_squares, lambda given: given.query_x, batch),
        ValueError,
        "reference: expected predictions that end in (4, 2, 2)",
    )
    refused(
        lambda: error_similarity(lambda given: given.query_x, least_squares, batch),
        ValueError,
        "learner: expected predictions that end in (4, 2, 2)",
    )
