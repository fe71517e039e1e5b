"""Training finds the gradient step, up to scale (the paper's Figure 2); a seed that does not, sits on the plateau.

Seeds are fixed lists from 0 on; none is replaced after its result is seen.
"""

from dataclasses import fields

import pytest
import torch

from mesa_lib import (
    AttentionWeights,
    FreeTransformer,
    LinearTasks,
    TrainingSettings,
    average_factors,
    canonicalize,
    compare,
    gd_construction,
    generator,
    gradient_descent_learner,
    interpolate,
    optimal_eta,
    optimal_loss,
    plateau_loss,
    population_loss,
    random_weights,
    train,
    twin_share,
)

TASKS = LinearTasks()
D = TASKS.x_dim
PAPER_SCALE = 0.0135  # standard deviation of the start in the paper's code, sqrt(0.002 / 11)


def trained(seeds, settings):
    """The layer that each seed ends at."""
    learner = FreeTransformer([random_weights(D, 1, seeds, scale=PAPER_SCALE)])
    return train(learner, TASKS, seeds, settings).learner.layers()[0].detach()


def member(weights, k):
    return AttentionWeights(*(getattr(weights, field.name)[k] for field in fields(weights)))


def found_the_step(weights):
    """Exact loss within 0.5 % of the optimum, cosine at least .998, canonical diagonal within 5 % of one."""
    loss = float(population_loss(TASKS, weights))
    if loss > 1.005 * optimal_loss(TASKS):
        return False
    validation = TASKS.sample(1000, generator(0, "validation tasks"))
    reference = gradient_descent_learner(optimal_eta(TASKS))
    cosine = float(compare(FreeTransformer([weights]), reference, validation).sensitivity_cosine)
    diagonal = canonicalize(weights).w_kq[0].diagonal()[:D]
    return cosine >= 0.998 and bool(((diagonal - 1).abs() <= 0.05).all())


def sits_on_the_plateau(weights):
    """Loss within 1 % of the twin's, and over 90 % of the signal in the twin's path.

    The twin's path has the size |v_x| |c_y|, the direct one |v_y| |C_xx|, where (v_x, v_y) is W_PV's y row and C_xx and
    c_y are W_KQ's blocks of x columns.
    """
    loss = float(population_loss(TASKS, weights))
    v, c = weights.w_pv[0, D], weights.w_kq[0, :, :D]
    twin, direct = float(v[:D].norm() * c[D].norm()), float(v[D].abs() * c[:D].norm())
    share = twin / (twin + direct)
    return abs(loss / plateau_loss(TASKS) - 1) < 0.01 and share > 0.9 and float(twin_share(weights)) > 0.9


@pytest.fixture(scope="module")
def five():
    return trained(range(5), TrainingSettings())


def test_every_one_of_five_seeds_finds_the_step_with_the_default_settings(five):
    assert [found_the_step(member(five, k)) for k in range(5)] == [True] * 5


def test_every_one_of_ten_seeds_finds_the_step_or_sits_on_the_plateau():
    """Slower settings, under which plateaus occur."""
    settings = TrainingSettings(num_steps=800, batch_size=64, learning_rate=0.01, warmup_steps=50, betas=(0.9, 0.999))
    ten = trained(range(10), settings)
    misses = [k for k in range(10) if not found_the_step(member(ten, k))]
    stuck = [k for k in range(10) if sits_on_the_plateau(member(ten, k))]
    assert misses == stuck
    assert len(stuck) <= 3


def with_products(v, c):
    """One head whose W_PV has the y row `v` and whose W_KQ has the x columns `c`."""
    w_pv, w_kq = torch.zeros(D + 1, D + 1), torch.zeros(D + 1, D + 1)
    w_pv[D], w_kq[:, :D] = v, c
    identity = torch.eye(D + 1)[None]
    return AttentionWeights(identity, w_kq[None], identity, w_pv[None])


def test_the_verdicts_tell_the_step_from_its_twin_and_from_everything_else(seeded):
    step = optimal_eta(TASKS) / TASKS.num_context
    u = torch.nn.functional.normalize(torch.randn(D, generator=seeded), dim=0)
    zeros, values_y = torch.zeros(1, D), torch.tensor([*[0.0] * D, -step])
    construction, half = (gd_construction(part * optimal_eta(TASKS), D, 1, TASKS.num_context) for part in (1.0, 0.5))
    twin = with_products(torch.cat([-step * u, torch.zeros(1)]), torch.cat([torch.zeros(D, D), u[None]]))
    assert float(population_loss(TASKS, twin)) == pytest.approx(plateau_loss(TASKS), rel=1e-6)
    # A rank-one step by the direct path has the plateau's loss, too, and no twin path to excuse it.
    rank_one = with_products(values_y, torch.cat([torch.outer(u, u), zeros]))
    assert float(population_loss(TASKS, rank_one)) == pytest.approx(plateau_loss(TASKS), rel=1e-6)
    # One coordinate that steps 6 % too far hardly costs any loss; the diagonal shows it.
    lopsided = with_products(values_y, torch.cat([torch.diag(torch.tensor([1.06, *[1.0] * (D - 1)])), zeros]))
    assert float(population_loss(TASKS, lopsided)) < 1.005 * optimal_loss(TASKS)
    layers = [construction, twin, rank_one, half, lopsided]
    assert [found_the_step(layer) for layer in layers] == [True, False, False, False, False]
    assert [sits_on_the_plateau(layer) for layer in layers] == [False, True, False, False, False]


FRACTIONS = (0.0, 0.25, 0.5, 0.75, 1.0)


def test_interpolating_products_with_the_construction_keeps_the_loss(five):
    construction = gd_construction(optimal_eta(TASKS), D, 1, TASKS.num_context)
    for fraction in FRACTIONS:
        losses = population_loss(TASKS, interpolate(five, construction, fraction))
        assert float(losses.max()) < 1.005 * optimal_loss(TASKS)


def test_interpolating_products_of_two_seeds_keeps_the_loss(five):
    for fraction in FRACTIONS:
        between = interpolate(member(five, 0), member(five, 1), fraction)
        assert float(population_loss(TASKS, between)) < 1.005 * optimal_loss(TASKS)


def test_averaging_the_four_factors_does_not_keep_the_loss(five):
    construction = gd_construction(optimal_eta(TASKS), D, 1, TASKS.num_context)
    losses = population_loss(TASKS, average_factors(five, construction, 0.5))
    assert float(losses.min()) > 1.25 * optimal_loss(TASKS)
    between_seeds = average_factors(member(five, 0), member(five, 1), 0.5)
    assert float(population_loss(TASKS, between_seeds)) > 1.25 * optimal_loss(TASKS)


def test_the_trained_size_is_the_optimal_step_size(five):
    """v_y of the canonical form is -eta*/N = -.1515 (at U(-1/2, 1/2) it is -.6061: science.md 1.1)."""
    canonical = canonicalize(five)
    expected = torch.full((5,), -optimal_eta(TASKS) / TASKS.num_context)
    torch.testing.assert_close(canonical.w_pv[:, 0, D, D], expected, rtol=0.03, atol=0)
