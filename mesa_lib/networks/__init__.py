"""Networks: tokens, attention as a function of its weights, constructions, transformers."""

from mesa_lib.networks.attention import (
    AttentionWeights,
    average_factors,
    canonicalize,
    context_moment,
    fast_weights,
    interpolate,
    linear_self_attention,
    moment_fast_weights,
)
from mesa_lib.networks.constructions import gd_construction
from mesa_lib.networks.memory import (
    attend_by_scores,
    least_squares_memory,
    random_pairs,
    read_memory,
    recall_error,
    recurrent_memory,
    write_memory,
)
from mesa_lib.networks.tokens import Tokens, concatenated_tokens, query_in_context, read_prediction
from mesa_lib.networks.transformer import (
    FreeTransformer,
    Transformer,
    apply_layers,
    moment_implicit_weights,
    random_weights,
)

__all__ = [
    "AttentionWeights",
    "FreeTransformer",
    "Tokens",
    "Transformer",
    "apply_layers",
    "attend_by_scores",
    "average_factors",
    "canonicalize",
    "concatenated_tokens",
    "context_moment",
    "fast_weights",
    "gd_construction",
    "interpolate",
    "least_squares_memory",
    "linear_self_attention",
    "moment_fast_weights",
    "moment_implicit_weights",
    "query_in_context",
    "random_pairs",
    "random_weights",
    "read_memory",
    "read_prediction",
    "recall_error",
    "recurrent_memory",
    "write_memory",
]
