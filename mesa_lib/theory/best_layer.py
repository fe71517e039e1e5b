"""The best layer for a distribution, found by minimising the exact expected loss: where no closed form says it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.networks.transformer import random_weights
from mesa_lib.tasks import LinearTasks
from mesa_lib.theory.one_layer import optimal_preconditioner, population_loss
from mesa_lib.validation import typed


@typed
def best_layer(
    tasks: LinearTasks,
    seeds: Sequence[int],
    num_heads: int = 1,
    w_0: Float[Tensor, "y x"] | None = None,
) -> AttentionWeights:
    """Minimise `population_loss` over all layers, by L-BFGS from one start for each seed.

    No task is drawn: the objective is the exact expectation, and so is its gradient. The search is local. It starts
    near the construction of Proposition 1 (a step from the teacher's mean with the preconditioner of the mean-free
    tasks), every entry disturbed by N(0, 0.1^2): far from there it can wait long on plateaus. Seeds that end at one
    loss make it likely, and do not prove, that this is the least; of seeds that end at several, take the least.

    Args:
        tasks: the distribution.
        seeds: one start for each.
        num_heads: heads of the layer; the construction fills the first.
        w_0: what the query token starts from, see `population_loss`.

    Returns:
        AttentionWeights in float64 with W_K = W_V = I, of shape (ensemble, head, token, token), one member a seed.

    Raises:
        TypeError, ValueError: bad seeds, a `num_heads` that is not a positive integer, a `w_0` that does not fit.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=2, num_context=5)
        >>> loss = mesa.population_loss(tasks, mesa.best_layer(tasks, seeds=[0]))
        >>> abs(float(loss) - mesa.optimal_loss(tasks)) < 1e-5  # no layer beats the best step
        True
    """
    x_dim = tasks.x_dim + int(tasks.constant_input)
    noise = random_weights(x_dim, tasks.y_dim, seeds, num_heads, scale=0.1, dtype=torch.float64)
    starts = torch.stack([noise.w_q, noise.w_p], dim=1) + _construction(tasks, num_heads)
    products = torch.stack([_descend(tasks, start, w_0) for start in starts])
    identity = torch.eye(noise.token_dim, dtype=torch.float64).expand_as(noise.w_q)
    return AttentionWeights(w_k=identity, w_q=products[:, 0], w_v=identity, w_p=products[:, 1])


def _construction(tasks: LinearTasks, num_heads: int) -> Float[Tensor, "2 head token token"]:
    """W_KQ and W_PV of a preconditioned step from the teacher's mean, of equal norms, in the first head."""
    d, n_out = tasks.x_dim, tasks.y_dim
    gamma = optimal_preconditioner(replace(tasks, constant_input=False, teacher_mean=None)) / tasks.num_context
    balance = gamma.norm().sqrt()
    token = d + int(tasks.constant_input) + n_out
    products = torch.zeros(2, num_heads, token, token, dtype=torch.float64)
    products[0, 0, :d, :d] = gamma / balance
    products[1, 0, -n_out:, :d] = balance * tasks.teacher_center
    products[1, 0, -n_out:, -n_out:] = -balance * torch.eye(n_out, dtype=torch.float64)
    return products


def _descend(
    tasks: LinearTasks, start: Float[Tensor, "2 head token token"], w_0: Tensor | None
) -> Float[Tensor, "2 head token token"]:
    """W_KQ and W_PV of a local minimum. The entries that no query sees keep their start, at zero gradient."""
    identity = torch.eye(start.shape[-1], dtype=torch.float64).expand_as(start[0])

    def objective(numbers: Any) -> tuple[float, Any]:
        products = torch.tensor(numbers).view_as(start).requires_grad_()
        loss = population_loss(tasks, AttentionWeights(identity, products[0], identity, products[1]), w_0)
        (gradient,) = torch.autograd.grad(loss, products)
        return loss.item(), gradient.flatten().numpy()

    options = {"maxiter": 3000, "maxcor": 50, "ftol": 1e-13, "gtol": 1e-9}
    result = minimize(objective, start.flatten().numpy(), jac=True, method="L-BFGS-B", options=options)
    return torch.tensor(np.asarray(result.x)).view_as(start)
