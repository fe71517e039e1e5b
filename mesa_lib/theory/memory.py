"""How much a linear memory forgets: exact expected recall errors for random keys and values."""

from mesa_lib.validation import positive_integer


def sum_rule_recall_error(num_pairs: int, key_dim: int) -> float:
    """Expected squared recall error of the memory sum_i v_i k_i^T, relative to |v|^2: (n - 1) / d.

    For keys drawn uniformly from the unit sphere in d dimensions, and independent centred values of equal size.
    Recalling v_j adds the crosstalk sum_{i != j} v_i (k_i . k_j), and E (k_i . k_j)^2 = 1/d. Orthonormal keys have no
    crosstalk.

    Raises:
        TypeError, ValueError: an argument is not a positive integer.

    Example:
        >>> mesa.sum_rule_recall_error(num_pairs=5, key_dim=8)  # (n - 1) / d
        0.5
    """
    return (positive_integer("num_pairs", num_pairs) - 1) / positive_integer("key_dim", key_dim)


def least_squares_recall_error(num_pairs: int, key_dim: int) -> float:
    """Expected squared recall error of the best linear memory, relative to |v|^2: max(0, 1 - d/n).

    For n keys in general position and independent centred values of equal size. The best matrix reproduces the part of
    the values that lies in a random d-dimensional subspace of the n pairs, and loses the rest. No linear memory can do
    better on average: d pairs is the capacity.

    Raises:
        TypeError, ValueError: an argument is not a positive integer.

    Example:
        >>> mesa.least_squares_recall_error(num_pairs=5, key_dim=8)
        0.0
    """
    return max(0.0, 1 - positive_integer("key_dim", key_dim) / positive_integer("num_pairs", num_pairs))
