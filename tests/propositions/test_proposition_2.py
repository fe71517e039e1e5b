"""Proposition 2 of von Oswald et al. (2023): attention over features is gradient descent on the features.

For any MLP, any width, any number of targets and examples, in float64 and in float32; the oracles are automatic
differentiation and `torch.linalg.lstsq`.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mesa_lib import (
    LinearTasks,
    MetaLearnedMLP,
    TokenMLP,
    apply_layers,
    batch_features,
    causal_mask,
    context_loss,
    feature_batch,
    feature_kernel,
    gd_construction,
    kernel_gradient_descent,
    kernel_regression,
    linear_attention,
    random_mlp,
    residual_construction,
)

settings = st.fixed_dictionaries({
    "x_dim": st.integers(1, 3),
    "y_dim": st.sampled_from([1, 3]),
    "width": st.integers(1, 12),
    "hidden": st.lists(st.integers(1, 8), min_size=1, max_size=2),
    "num_context": st.integers(1, 12),
    "seed": st.integers(0, 2**31),
    "dtype": st.sampled_from([torch.float64, torch.float32]),
    "activation": st.sampled_from(["tanh", "gelu", "relu"]),
})  # fmt: skip


def cook(setting):
    """Features, a start W_0 and noisy tasks."""
    dtype, seed = setting["dtype"], setting["seed"]
    features = random_mlp(
        setting["x_dim"], setting["width"], [seed], setting["hidden"], setting["activation"], dtype=dtype
    ).member(0)
    stream = torch.Generator().manual_seed(seed)
    start = torch.randn(setting["y_dim"], setting["width"], generator=stream, dtype=dtype)
    tasks = LinearTasks(setting["x_dim"], setting["y_dim"], setting["num_context"], 3, noise_std=0.3)
    return features, start, tasks.sample(2, stream, dtype=dtype)


def tolerance(setting, expected):
    """1e-12 in double precision and as many digits of single precision, beside the largest number."""
    size = max(1.0, float(expected.detach().abs().max()))
    return size * (1e-12 if setting["dtype"] == torch.float64 else 2e-5)


def autograd_step(weights, seen, eta):
    weights = weights.detach().requires_grad_()
    (slope,) = torch.autograd.grad(context_loss(weights, seen).sum(), weights, retain_graph=True)
    return (weights - eta * slope).detach()


@given(setting=settings, eta=st.floats(0.05, 0.5))
def test_one_layer_over_features_is_autograds_step_on_every_token(setting, eta):
    features, start, batch = cook(setting)
    layer = gd_construction(eta, setting["width"], setting["y_dim"], setting["num_context"], dtype=setting["dtype"])
    network, seen = TokenMLP(features, [layer], start), feature_batch(features, batch)
    weights = autograd_step(start.expand(2, -1, -1), seen, eta)
    expected = seen.query_x @ weights.mT
    assert (network(batch) - expected).abs().max() < tolerance(setting, expected)
    moved = apply_layers([layer], network.tokens(batch))
    residual = batch.context_y - seen.context_x @ weights.mT
    assert (moved.context[..., setting["width"] :] - residual).abs().max() < tolerance(setting, residual)
    assert torch.equal(moved.context[..., : setting["width"]], network.tokens(batch).context[..., : setting["width"]])


@given(setting=settings, layers=st.integers(2, 5))
def test_layers_are_steps_of_the_kernel_and_of_the_baseline(setting, layers):
    features, start, batch = cook(setting)
    eta = 0.3
    layer = gd_construction(eta, setting["width"], setting["y_dim"], setting["num_context"], dtype=setting["dtype"])
    seen = feature_batch(features, batch)
    weights = start.expand(2, -1, -1)
    for _ in range(layers):
        weights = autograd_step(weights, seen, eta)
    expected = (seen.query_x @ weights.mT).detach()
    within = tolerance(setting, expected) * 10  # rounding grows with the steps
    kernel = feature_kernel(features)
    for got in (
        TokenMLP(features, [layer] * layers, start)(batch),
        MetaLearnedMLP(features, start, eta, layers)(batch),
        kernel_gradient_descent(batch, kernel, eta, layers, start=lambda x: features(x) @ start.mT),
    ):
        assert (got - expected).abs().max() < within


@pytest.mark.parametrize(("width", "num_context"), [(3, 6), (20, 4)])
@pytest.mark.parametrize("y_dim", [1, 3])
def test_many_layers_end_in_kernel_least_squares(width, num_context, y_dim, seeded):
    """The limit, to 1e-8, against `lstsq` in the features; of least norm where there are more of them than examples."""
    features = random_mlp(2, width, [5], hidden=(30,), dtype=torch.float64).member(0)
    batch = LinearTasks(2, y_dim, num_context, 4, input_range=3.0).sample(3, seeded, dtype=torch.float64)
    seen = feature_batch(features, batch)
    moments = torch.linalg.svdvals(seen.context_x.detach()).square() / num_context
    eta = 1.9 / float(moments.max())
    steps = int(25 / (eta * float(moments.min()))) + 1  # the weakest direction then keeps e^-25 of its error
    ended = kernel_gradient_descent(batch, feature_kernel(features), eta, steps)
    fitted = torch.linalg.lstsq(seen.context_x.detach(), batch.context_y, driver="gelsd").solution
    assert (ended - seen.query_x @ fitted).abs().max() < 1e-8
    closed = kernel_regression(batch, feature_kernel(features), relative_cutoff=1e-12)
    assert (closed - seen.query_x @ fitted).abs().max() < 1e-8


@given(setting=settings)
def test_a_residual_block_whose_mlp_sees_the_targets_can_do_it_too(setting):
    features, start, batch = cook(setting)
    ours = residual_construction(features, 0.3, setting["num_context"], start)(batch)
    expected = MetaLearnedMLP(features, start, 0.3)(batch)
    assert (ours - expected).abs().max() < tolerance(setting, expected)


def test_with_x_left_in_the_token_it_is_not_a_step_on_the_features(seeded):
    """What the proposition needs: m(x) must take the place of x. Keys that read x as well step on other features."""
    features = random_mlp(2, 4, [0], hidden=(5,), dtype=torch.float64).member(0)
    batch = LinearTasks(2, 1, 6, 4).sample(3, seeded, dtype=torch.float64)

    def with_x(x):
        return torch.cat([x, features(x)], dim=-1)

    right = kernel_gradient_descent(batch, feature_kernel(features), 0.3)
    wrong = kernel_gradient_descent(batch, feature_kernel(with_x), 0.3)
    assert (right - wrong).abs().max() > 0.01


def test_behind_a_causal_mask_a_token_takes_the_step_of_its_own_prefix(seeded):
    """One layer: token j moves by the step on the first j examples, of size eta j / N; the query is as without."""
    features = random_mlp(2, 4, [0], hidden=(5,), dtype=torch.float64).member(0)
    batch = LinearTasks(2, 1, 6, 4).sample(3, seeded, dtype=torch.float64)
    layer = gd_construction(0.3, 4, 1, 6, dtype=torch.float64)
    tokens = TokenMLP(features, [layer]).tokens(batch)
    update = linear_attention(layer, tokens.context, tokens.context, mask=causal_mask(6))[..., 4:]
    seen = batch_features(features, batch).context
    for j in range(1, 7):
        zero = torch.zeros(3, 1, 4, dtype=torch.float64)
        weights = autograd_step(zero, feature_batch(features, batch.first(j)), 0.3 * j / 6)
        expected = -(seen[:, j - 1 : j] @ weights.mT)
        assert (update[:, j - 1 : j] - expected).abs().max() < 1e-12
