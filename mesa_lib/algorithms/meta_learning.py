"""Meta-learned features: an MLP whose last layer takes gradient steps on each context."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from mesa_lib.features import MLP, BatchFeatures, apply_start, batch_features, checked_start, sum_of_products
from mesa_lib.tasks import TaskBatch
from mesa_lib.validation import finite_tensor, positive_integer, positive_number, same_kind


class MetaLearnedMLP(nn.Module):
    """A learner that takes gradient steps on the last layer of an MLP; features, start and step size are learned.

    For each context it starts from the same linear model W_0 on the features m(x) and takes `num_steps` steps on
    1/(2N) sum_i |W m(x_i) - y_i|^2 (half-MSE),

        W <- W - (eta / N) sum_i (W m(x_i) - y_i) m(x_i)^T,

    and answers W m(x_q). Training it over many tasks, through the steps, is meta-learning: the paper's section 4
    compares a transformer with it (Figure 4). No attention is involved. What is stored for eta is its logarithm.

    Args:
        features: the MLP; it is held, not copied.
        start: W_0, shape (*ensemble, y, feature), which is copied; zeros for one target by default.
        eta: positive, one number or one for each member, shape (*ensemble).
        num_steps: how many steps, at least one.

    Raises:
        TypeError, ValueError: `start` or `eta` has another dtype or other ensemble axes than `features`, `start`
            another width, `eta` is not positive, `num_steps` is not a positive integer.

    Example:
        >>> learner = mesa.MetaLearnedMLP(mesa.random_mlp(x_dim=1, width=8, seeds=[0]))
        >>> sine = mesa.SineTasks().sample(3, mesa.generator(0, "validation tasks"))
        >>> tuple(learner(sine).shape)
        (1, 3, 1, 1)
    """

    def __init__(
        self,
        features: MLP,
        start: Float[Tensor, "*ensemble y feature"] | None = None,
        eta: float | Float[Tensor, "*ensemble"] = 0.5,
        num_steps: int = 1,
    ) -> None:
        super().__init__()
        first = checked_start(features, start)
        if not isinstance(eta, Tensor):
            eta = torch.full(first.shape[:-2], positive_number("eta", eta), dtype=first.dtype)
        finite_tensor("eta", eta)
        same_kind("eta", eta, "features", first)
        if eta.shape != first.shape[:-2]:
            raise ValueError(f"eta: expected the ensemble axes {tuple(first.shape[:-2])}, got {tuple(eta.shape)}")
        if not bool((eta > 0).all()):
            raise ValueError(f"eta: expected positive numbers, got {eta.tolist()}")
        self.features = features
        self.start = nn.Parameter(first)
        self.log_eta = nn.Parameter(eta.detach().log())
        self.num_steps = positive_integer("num_steps", num_steps)

    @property
    def eta(self) -> Float[Tensor, "*ensemble"]:
        """The learned step size of each member, on the half-MSE. Shape (*ensemble)."""
        return self.log_eta.exp()

    def feature_weights(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task y feature"]:
        """W after the steps: the prediction is W m(x_q). Shape (*ensemble, task, y, feature)."""
        return self._stepped(batch_features(self.features, batch), batch)

    def _stepped(self, seen: BatchFeatures, batch: TaskBatch) -> Tensor:
        step = self.eta[..., None, None, None] / batch.num_context
        residual = apply_start(self.start, seen.context) - batch.context_y
        weights = self.start.unsqueeze(-3) - step * sum_of_products(residual, seen.context)
        for _ in range(self.num_steps - 1):
            residual = seen.context @ weights.mT - batch.context_y
            weights = weights - step * sum_of_products(residual, seen.context)
        return weights

    def forward(self, batch: TaskBatch) -> Float[Tensor, "*ensemble task query y"]:
        """Predictions W m(x_q), shape (*ensemble, task, query, y)."""
        seen = batch_features(self.features, batch)
        return seen.answers(self._stepped(seen, batch))

    def start_function(self, x: Float[Tensor, "... x"]) -> Float[Tensor, "... y"]:
        """f_0(x) = W_0 m(x), before any step; for an ensemble x needs a task and a point axis, see `MLP`."""
        return apply_start(self.start, self.features(x))

    def member(self, index: int) -> "MetaLearnedMLP":
        """One learner of an ensemble, along the first ensemble axis; a copy.

        Raises:
            ValueError: there is no ensemble axis.
            IndexError: there is no such member.
        """
        return MetaLearnedMLP(self.features.member(index), self.start[index], self.eta[index], self.num_steps)
