"""How sharp a softmax must be to copy."""

import math

from mesa_lib.validation import non_negative_number, positive_integer, positive_number


def missed_weight(sharpness: float, num_others: int) -> float:
    """The share that a softmax gives to everybody but its target, n e^-k / (1 + n e^-k).

    The target's score is k above the score of each of n others. The proof of Proposition 3 in the paper has k = 1 and
    n = 2N: with one-hot scores the target's share is e / (e + 2N), not 1.

    Args:
        sharpness: k >= 0.
        num_others: n, the keys beside the target; a sink of weight 1 counts as one.

    Raises:
        TypeError, ValueError: `sharpness` is negative, or `num_others` is not a positive integer.

    Example:
        >>> round(mesa.missed_weight(sharpness=5.0, num_others=20), 4)
        0.1188
    """
    others = positive_integer("num_others", num_others) * math.exp(-non_negative_number("sharpness", sharpness))
    return others / (1 + others)


def needed_sharpness(missed: float, num_others: int) -> float:
    """The k at which a softmax misses its target by a given share, ln(n (1 - m) / m): the inverse of `missed_weight`.

    Args:
        missed: m, between 0 and 1.
        num_others: n.

    Raises:
        TypeError, ValueError: `missed` is not between 0 and 1, or `num_others` is not a positive integer.

    Example:
        >>> sharpness = mesa.needed_sharpness(missed=0.01, num_others=20)
        >>> round(mesa.missed_weight(sharpness, num_others=20), 6)
        0.01
    """
    share = positive_number("missed", missed)
    if share >= 1:
        raise ValueError(f"missed: expected a share below 1, got {share}")
    return math.log(positive_integer("num_others", num_others) * (1 - share) / share)
