"""Reading a kernel off a trained layer, and numbers that describe kernels, on kernels that are known."""

import pytest
import torch

from mesa_lib import (
    SineTasks,
    TokenMLP,
    feature_kernel,
    gauge_transform,
    gd_construction,
    gradient_descent_learner,
    keep_reads,
    kernel_alignment,
    kernel_gradient_descent,
    kernel_negativity,
    kernel_rank,
    kernel_symmetry,
    learned_kernel,
    prediction_cosine,
    random_mlp,
    random_weights,
)

DOUBLE = torch.float64


def mlp(seeds=(0, 1)):
    return random_mlp(1, 4, list(seeds), hidden=(5,), dtype=DOUBLE)


def waves(num_tasks=3, **kwargs):
    tasks = SineTasks(num_context=6, num_queries=5, **kwargs)
    return tasks.sample(num_tasks, torch.Generator().manual_seed(2), dtype=DOUBLE)


def close(got, expected):
    torch.testing.assert_close(got.detach(), expected.detach(), rtol=1e-10, atol=1e-12)


def test_the_kernel_of_the_construction_is_eta_times_that_of_its_features(draw):
    features, x, z = mlp().member(0), draw(6, 1), draw(9, 1)
    kernel = learned_kernel(gd_construction(0.7, 4, 1, 6, dtype=DOUBLE), features, 6)
    close(kernel(x, z), 0.7 * features(x) @ features(z).mT)


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("queries", ["random", "pool"])
def test_one_step_with_the_learned_kernel_is_the_layer_cut_to_its_gradient_step(heads, queries):
    """Any weights; for an ensemble and for a member of it."""
    batch, features = waves(queries=queries), mlp()
    layer = random_weights(4, 1, [0, 1], heads, scale=0.5, dtype=DOUBLE)
    network = TokenMLP(features, [keep_reads(layer)], torch.linspace(-1, 1, 8, dtype=DOUBLE).view(2, 1, 4))
    ours = kernel_gradient_descent(batch, learned_kernel(layer, features, 6), 1.0, start=network.start_function)
    close(ours, network(batch))
    one = network.member(1)
    kernel = learned_kernel(layer.members(1), one.features, 6)
    close(kernel_gradient_descent(batch, kernel, 1.0, start=one.start_function), network(batch)[1])


def test_repeating_the_cut_layer_is_descent_with_its_kernel():
    batch, features = waves(), mlp().member(0)
    layer = keep_reads(random_weights(4, 1, [0], scale=0.4, dtype=DOUBLE).members(0))
    kernel = learned_kernel(layer, features, 6)
    close(TokenMLP(features, [layer] * 4)(batch), kernel_gradient_descent(batch, kernel, 1.0, 4))


def test_the_kernel_does_not_know_the_layers_gauge(draw):
    features, x = mlp().member(0), draw(7, 1)
    layer = random_weights(4, 1, [0], scale=0.4, dtype=DOUBLE).members(0)
    turned = gauge_transform(layer, draw(1, 5, 5), draw(1, 5, 5))
    close(learned_kernel(turned, features, 6)(x, x), learned_kernel(layer, features, 6)(x, x))


def test_the_cosine_of_functions_is_one_for_multiples_and_zero_at_right_angles():
    batch = waves(queries="grid")
    turn = {"double": lambda b: 2 * b.query_x, "even": lambda b: b.query_x**2, "odd": lambda b: b.query_x}
    close(prediction_cosine(turn["double"], turn["odd"], batch), torch.ones((), dtype=DOUBLE))
    close(prediction_cosine(turn["even"], turn["odd"], batch), torch.zeros((), dtype=DOUBLE))


def test_numbers_of_known_kernels(draw):
    x = draw(8, 3)
    gram = x @ x.mT
    skew = draw(8, 8)
    skew = skew - skew.mT
    assert float(kernel_symmetry(gram)) == pytest.approx(1) and float(kernel_symmetry(skew)) == pytest.approx(0)
    both = gram / gram.norm() + skew / skew.norm()
    assert float(kernel_symmetry(both)) == pytest.approx(0.5**0.5)
    assert float(kernel_alignment(gram, 3 * gram)) == pytest.approx(1)
    assert float(kernel_alignment(gram, skew)) == pytest.approx(0, abs=1e-12)
    assert int(kernel_rank(gram, 1e-9)) == 3
    small = torch.diag(torch.tensor([1.0, 0.04, 0.02], dtype=DOUBLE))
    assert int(kernel_rank(small)) == 2
    signs = torch.diag(torch.tensor([3.0, -1.0], dtype=DOUBLE))
    assert float(kernel_negativity(signs)) == pytest.approx(0.25) and float(kernel_negativity(gram)) < 1e-12
    stacked = torch.stack([gram, both])
    assert kernel_rank(stacked).shape == kernel_symmetry(stacked).shape == kernel_alignment(stacked, gram).shape == (2,)


SQUARE = torch.eye(3, dtype=DOUBLE)
LAYER = random_weights(4, 1, [0], dtype=DOUBLE).members(0)
REFUSALS = [
    (
        lambda: learned_kernel(LAYER, torch.sin, 6)(SQUARE, SQUARE),
        ValueError,
        "features: expected a width of 4",
    ),
    (lambda: learned_kernel(LAYER, torch.sin, 0), ValueError, "num_context: expected a positive integer"),
    (lambda: kernel_rank(SQUARE[:2]), ValueError, "matrix: expected square matrices, got shape (2, 3)"),
    (lambda: kernel_rank(SQUARE, -1.0), ValueError, "relative_cutoff: expected a number >= 0"),
    (lambda: kernel_symmetry(0 * SQUARE), ValueError, "matrix: expected matrices other than zero"),
    (lambda: kernel_negativity(SQUARE / 0), ValueError, "matrix: expected finite numbers"),
    (lambda: kernel_alignment(SQUARE, SQUARE[:2, :2]), ValueError, "b: expected matrices of size 3, as in a, got 2"),
    (
        lambda: prediction_cosine(gradient_descent_learner(0.1), lambda b: b.context_y, waves()),
        ValueError,
        "reference:",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)


def test_a_kernel_of_features_and_a_metric_is_the_learned_kernels_form(draw):
    x, metric = draw(5, 1), draw(4, 4)
    features = mlp().member(1)
    close(feature_kernel(features, metric)(x, x), features(x) @ metric @ features(x).mT)
