"""Where training waits: the best rank-one twin of the construction, and the exact loss around it.

Everything is half-MSE, as in `population_loss`. Derivatives are taken in the *products*, not in the factors: in those
entries of W_PV and W_KQ that the prediction for a query token (x_q, 0) depends on, the y rows of the first and the x
columns of the second.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.tasks import LinearTasks
from mesa_lib.theory.one_layer import optimal_eta, population_loss
from mesa_lib.validation import (
    finite_tensor,
    trailing_shape,
    typed,
)


@typed
def best_twin(tasks: LinearTasks, direction: Float[Tensor, "y x"]) -> AttentionWeights:
    """The construction's twin at its least loss, `plateau_loss(tasks)`, for any direction u of unit norm.

    Its products, in blocks (x first, then y), with one head and s = sqrt(eta* / N):

        W_PV = [[0, 0], [-s u, 0]],    W_KQ = [[0, 0], [s u, 0]]

    Values read x and keys read y. For one target V = s^2 (sum_i y_i x_i^T u^T) u, the gradient step seen along u alone.

    Args:
        tasks: give sizes and eta*.
        direction: u, one row a target; it is normalised.

    Returns:
        AttentionWeights in float64 with factors of shape (1, token, token) and w_k = w_v = I.

    Raises:
        TypeError, ValueError: `direction` is not a finite floating-point matrix (y, x), or it is zero.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=2)
        >>> twin = mesa.best_twin(tasks, torch.tensor([[1.0, 0.0]], dtype=torch.float64))
        >>> abs(float(mesa.population_loss(tasks, twin)) - mesa.plateau_loss(tasks)) < 1e-9
        True
    """
    finite_tensor("direction", direction, min_dims=2)
    if direction.dim() != 2:
        raise ValueError(f"direction: expected one matrix (y, x), got shape {tuple(direction.shape)}")
    trailing_shape("direction", direction, (tasks.y_dim, tasks.x_dim))
    exact = direction.to(dtype=torch.float64, device="cpu")
    if not bool(exact.any()):
        raise ValueError("direction: expected a direction other than zero, got zero")
    d, token = tasks.x_dim, tasks.x_dim + tasks.y_dim
    row = torch.zeros(token, token, dtype=torch.float64)
    row[d:, :d] = (optimal_eta(tasks) / tasks.num_context) ** 0.5 * exact / exact.norm()
    identity = torch.eye(token, dtype=torch.float64)[None]
    return AttentionWeights(w_k=identity, w_q=row[None], w_v=identity, w_p=-row[None])


@typed
def twin_slice(
    tasks: LinearTasks,
    direction: Float[Tensor, "y x"],
    on_values: Float[Tensor, "..."],
    on_keys: Float[Tensor, "..."],
) -> Float[Tensor, "..."]:
    """Exact loss around the best twin in the plane that the construction lies in, for one target.

    At a point (s, t) the direct path is added to `best_twin`: W_PV gets the y-y entry -s, and W_KQ the x-x block
    t (I - u u^T). (0, 0) is the twin.

    Args:
        tasks: with y_dim = 1.
        direction: u, shape (1, x).
        on_values: s, any shape.
        on_keys: t, of the same shape.

    Returns:
        Half-MSE in float64, of the shape of `on_values`.

    Raises:
        TypeError, ValueError: several targets, a direction that `best_twin` refuses, numbers that are not finite, or
            shapes that differ.

    Example:
        >>> tasks, grid = mesa.LinearTasks(x_dim=2), torch.linspace(-1, 1, 5, dtype=torch.float64)
        >>> tuple(mesa.twin_slice(tasks, torch.tensor([[1.0, 0.0]], dtype=torch.float64), grid, grid).shape)
        (5,)
    """
    if tasks.y_dim != 1:
        raise ValueError(f"tasks: expected one target, got y_dim = {tasks.y_dim}")
    s, t = finite_tensor("on_values", on_values).double(), finite_tensor("on_keys", on_keys).double()
    if s.shape != t.shape:
        raise ValueError(f"on_keys: expected the shape of on_values, {tuple(s.shape)}, got {tuple(t.shape)}")
    twin = best_twin(tasks, direction)
    d = tasks.x_dim
    u = direction.double() / direction.double().norm()
    beside = torch.zeros_like(twin.w_q)
    beside[:, :d, :d] = torch.eye(d, dtype=torch.float64) - u.mT @ u
    value = torch.zeros_like(twin.w_p)
    value[:, d, d] = -1
    w_q = twin.w_q + t[..., None, None, None] * beside
    w_p = twin.w_p + s[..., None, None, None] * value
    return population_loss(tasks, AttentionWeights(twin.w_k.expand_as(w_q), w_q, twin.w_v.expand_as(w_p), w_p))


@typed
def population_gradient(tasks: LinearTasks, weights: AttentionWeights) -> Float[Tensor, "products"]:
    """Gradient of the exact loss in the products that a query sees, by automatic differentiation in float64.

    Its entries are those of W_PV's y rows of all heads, then those of W_KQ's x columns. It does not vanish where only
    the chain rule through the factors does, and it changes with the products' common scale c.

    Args:
        tasks: the distribution.
        weights: one layer, without ensemble axes.

    Returns:
        One vector of heads * token * (y + x) entries, for half-MSE.

    Raises:
        TypeError, ValueError: the layer has ensemble axes or does not fit the tasks.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=2)
        >>> best = mesa.gd_construction(mesa.optimal_eta(tasks), 2, 1, num_context=10, dtype=torch.float64)
        >>> bool(mesa.population_gradient(tasks, best).abs().max() < 1e-12)
        True
    """
    flat = _visible(tasks, weights).requires_grad_()
    return torch.autograd.grad(_loss_of(tasks, weights, flat), flat)[0]


@typed
def population_hessian(tasks: LinearTasks, weights: AttentionWeights) -> Float[Tensor, "products products"]:
    """Second derivatives of the exact loss in the same entries and order as `population_gradient`.

    Args:
        tasks: the distribution.
        weights: one layer, without ensemble axes.

    Returns:
        A symmetric float64 matrix. Its eigenvalues depend on the products' common scale; at a critical point their
        signs do not.

    Raises:
        TypeError, ValueError: the layer has ensemble axes or does not fit the tasks.

    Example:
        >>> tasks = mesa.LinearTasks(x_dim=1)
        >>> best = mesa.gd_construction(mesa.optimal_eta(tasks), 1, 1, num_context=10, dtype=torch.float64)
        >>> bool(torch.linalg.eigvalsh(mesa.population_hessian(tasks, best)).min() > -1e-9)  # a minimum
        True
    """
    flat = _visible(tasks, weights)
    hessian: Tensor = torch.autograd.functional.hessian(  # type: ignore[no-untyped-call]
        lambda point: _loss_of(tasks, weights, point), flat, vectorize=True
    )
    return 0.5 * (hessian + hessian.mT)


def _visible(tasks: LinearTasks, weights: AttentionWeights) -> Tensor:
    if weights.w_k.dim() != 3:
        shape = tuple(weights.w_k.shape)
        raise ValueError(f"weights: expected a layer without ensemble axes, got w_k of shape {shape}")
    token = tasks.x_dim + tasks.y_dim
    if weights.token_dim != token:
        raise ValueError(f"weights: expected a token size of x_dim + y_dim = {token}, got {weights.token_dim}")
    exact = weights.to(dtype=torch.float64, device="cpu").detach()
    return torch.cat([exact.w_pv[:, tasks.x_dim :].flatten(), exact.w_kq[..., : tasks.x_dim].flatten()])


def _loss_of(tasks: LinearTasks, weights: AttentionWeights, flat: Tensor) -> Tensor:
    heads, token, d = weights.num_heads, weights.token_dim, tasks.x_dim
    cut = heads * tasks.y_dim * token
    rows, columns = flat[:cut], flat[cut:]
    w_pv = torch.cat([flat.new_zeros(heads, d, token), rows.view(heads, tasks.y_dim, token)], dim=1)
    w_kq = torch.cat([columns.view(heads, token, d), flat.new_zeros(heads, token, tasks.y_dim)], dim=2)
    identity = torch.eye(token, dtype=flat.dtype).expand(heads, token, token)
    return population_loss(tasks, AttentionWeights(w_k=identity, w_q=w_kq, w_v=identity, w_p=w_pv))
