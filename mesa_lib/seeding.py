"""Seeds become random generators here, and nowhere else."""

from collections.abc import Iterable

import numpy as np
import torch

from mesa_lib.validation import one_of, seed_list

PURPOSES = ("init", "training tasks", "validation tasks", "features", "embedding")


def generator(seed: int, purpose: str) -> torch.Generator:
    """A CPU random generator for one seed and one purpose.

    The state is a hash of (seed, purpose), numpy's ``SeedSequence``, so no two pairs share a stream by accident: the
    weights of seed 0, its training tasks and its validation tasks are independent, and so are those of seed 1.
    Draw on the CPU and move afterwards; then every device sees the same data.

    Args:
        seed: an integer from 0 to 2^32 - 1; a larger one would fill two of the words that are hashed, and collide.
        purpose: "init", "training tasks", "validation tasks", or, for a block's MLP, "features" or "embedding".

    Raises:
        TypeError: `seed` is not an integer.
        ValueError: `seed` is negative or too large, or `purpose` is unknown.

    Example:
        >>> a, b = mesa.generator(0, "init"), mesa.generator(0, "init")
        >>> torch.equal(torch.rand(3, generator=a), torch.rand(3, generator=b))
        True
    """
    (checked,) = seed_list("seed", [seed])
    index = PURPOSES.index(one_of("purpose", purpose, PURPOSES))
    low, high = np.random.SeedSequence([checked, index]).generate_state(2, np.uint32)
    return torch.Generator().manual_seed(int(high) << 32 | int(low))


def generators(seeds: Iterable[int], purpose: str) -> list[torch.Generator]:
    """One generator per seed, all for the same purpose: the streams of an ensemble.

    Args:
        seeds: distinct integers from 0 to 2^32 - 1, at least one.
        purpose: "init", "training tasks", "validation tasks", or, for a block's MLP, "features" or "embedding".

    Raises:
        TypeError: a seed is not an integer.
        ValueError: no seed, a repeated, negative or too large one, or an unknown purpose.

    Example:
        >>> streams = mesa.generators([0, 1], "init")
        >>> streams[1].initial_seed() == mesa.generator(1, "init").initial_seed()
        True
    """
    return [generator(seed, purpose) for seed in seed_list("seeds", seeds)]
