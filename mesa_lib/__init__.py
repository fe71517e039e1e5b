"""Mesa: the library behind an executable book on "Transformers learn in-context by gradient descent".

The package is a staircase: each room uses only rooms below it.

- `mesa_lib.seeding`: seeds become random generators.
- `mesa_lib.tasks`: regression tasks, a context and queries.
- `mesa_lib.learners`: what every in-context learner has in common.
- `mesa_lib.algorithms`: explicit gradient descent, least squares, ridge regression.
- `mesa_lib.networks`: tokens, attention as a function of its weights, constructions, transformers.
- `mesa_lib.training`, `mesa_lib.comparison`, `mesa_lib.theory`: train, compare, predict; none knows another.
- `mesa_lib.figures`: the book's pictures.
- `mesa_lib.ledger`: verdicts on claims, used by chapters only.

Units, everywhere: a step size `eta` enters as P = (eta/N) I, and losses are half-MSE.
"""

from mesa_lib.algorithms import (
    context_loss,
    gradient_descent,
    gradient_descent_learner,
    gradient_descent_weights,
    least_squares,
    least_squares_weights,
    loss_gradient,
    ridge_regression,
    ridge_regression_weights,
    step_moved_targets,
)
from mesa_lib.comparison import Comparison, compare, sensitivity
from mesa_lib.learners import FittedLinearModel, Learner, LinearLearner, predict_linear
from mesa_lib.ledger import Evidence, Verdict, VerdictError, at_least, at_most, between, verdict
from mesa_lib.networks import (
    AttentionWeights,
    FreeTransformer,
    Tokens,
    Transformer,
    apply_layers,
    attend_by_scores,
    average_factors,
    canonicalize,
    concatenated_tokens,
    context_moment,
    fast_weights,
    gd_construction,
    interpolate,
    least_squares_memory,
    linear_self_attention,
    moment_fast_weights,
    moment_implicit_weights,
    query_in_context,
    random_pairs,
    random_weights,
    read_memory,
    read_prediction,
    recall_error,
    recurrent_memory,
    write_memory,
)
from mesa_lib.seeding import generator, generators
from mesa_lib.tasks import LinearTasks, TaskBatch
from mesa_lib.theory import (
    effective_examples,
    least_squares_recall_error,
    optimal_eta,
    optimal_loss,
    plateau_loss,
    population_loss,
    sum_rule_recall_error,
    tune_eta,
    twin_share,
    zero_loss,
)
from mesa_lib.training import (
    Loss,
    TrainingRun,
    TrainingSettings,
    clip_members,
    expected_query_loss,
    paper_settings,
    sampled_query_loss,
    train,
)

__version__ = "0.1.0"

__all__ = [
    "AttentionWeights",
    "Comparison",
    "Evidence",
    "FittedLinearModel",
    "FreeTransformer",
    "Learner",
    "LinearLearner",
    "LinearTasks",
    "Loss",
    "TaskBatch",
    "Tokens",
    "TrainingRun",
    "TrainingSettings",
    "Transformer",
    "Verdict",
    "VerdictError",
    "apply_layers",
    "at_least",
    "at_most",
    "attend_by_scores",
    "average_factors",
    "between",
    "canonicalize",
    "clip_members",
    "compare",
    "concatenated_tokens",
    "context_loss",
    "context_moment",
    "effective_examples",
    "expected_query_loss",
    "fast_weights",
    "gd_construction",
    "generator",
    "generators",
    "gradient_descent",
    "gradient_descent_learner",
    "gradient_descent_weights",
    "interpolate",
    "least_squares",
    "least_squares_memory",
    "least_squares_recall_error",
    "least_squares_weights",
    "linear_self_attention",
    "loss_gradient",
    "moment_fast_weights",
    "moment_implicit_weights",
    "optimal_eta",
    "optimal_loss",
    "paper_settings",
    "plateau_loss",
    "population_loss",
    "predict_linear",
    "query_in_context",
    "random_pairs",
    "random_weights",
    "read_memory",
    "read_prediction",
    "recall_error",
    "recurrent_memory",
    "ridge_regression",
    "ridge_regression_weights",
    "sampled_query_loss",
    "sensitivity",
    "step_moved_targets",
    "sum_rule_recall_error",
    "train",
    "tune_eta",
    "twin_share",
    "verdict",
    "write_memory",
    "zero_loss",
]
