"""Streams of random numbers: one for each seed and purpose, none shared, none global (design.md 3.3, laws 1 to 3)."""

from itertools import product

import numpy as np
import pytest
import torch

from mesa_lib import generator, generators
from mesa_lib.seeding import PURPOSES

SEEDS = [*range(50), 2**31, 2**32 - 1]


def test_no_two_seeds_and_purposes_share_a_stream():
    drawn = {tuple(torch.rand(8, generator=generator(*pair)).tolist()) for pair in product(SEEDS, PURPOSES)}
    assert len(drawn) == len(SEEDS) * len(PURPOSES)


def test_streams_of_one_seed_are_uncorrelated():
    numbers = [torch.randn(100_000, generator=generator(0, purpose), dtype=torch.float64) for purpose in PURPOSES]
    correlations = np.corrcoef(np.stack(numbers))[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(100_000)  # four standard errors


def test_a_stream_is_the_same_each_time_it_is_opened():
    for pair in product((0, 7), PURPOSES):
        assert torch.equal(torch.rand(5, generator=generator(*pair)), torch.rand(5, generator=generator(*pair)))


def test_a_stream_is_the_documented_hash_of_seed_and_purpose():
    low, high = np.random.SeedSequence([3, 1]).generate_state(2, np.uint32).tolist()
    oracle = torch.Generator().manual_seed(high * 2**32 + low)
    got = torch.rand(5, generator=generator(3, "training tasks"))
    assert torch.equal(got, torch.rand(5, generator=oracle))


def test_the_streams_of_an_ensemble_are_those_of_its_seeds():
    for stream, seed in zip(generators([5, 2], "init"), [5, 2], strict=True):
        assert torch.equal(torch.rand(3, generator=stream), torch.rand(3, generator=generator(seed, "init")))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: generator(-1, "init"), ValueError, "seed: expected integers from 0 to 2**32 - 1, got -1"),
        # numpy would hash the words (0, 1, 0) for it, and for seed 0's training tasks (0, 1), padded to the same
        (lambda: generator(2**32, "init"), ValueError, "seed: expected integers from 0 to 2**32 - 1, got 4294967296"),
        (lambda: generator(0.5, "init"), TypeError, "seed: expected integers, got 0.5 of type float"),
        (lambda: generator(0, "test tasks"), ValueError, "purpose: expected one of 'init', 'training tasks'"),
        (lambda: generators([], "init"), ValueError, "seeds: expected at least one seed"),
        (lambda: generators([1, 1], "init"), ValueError, "seeds: expected distinct seeds, got [1, 1]"),
        (lambda: generators([0, None], "init"), TypeError, "seeds: expected integers, got None of type NoneType"),
        (lambda: generators([0], "weights"), ValueError, "purpose: expected one of"),
    ],
)
def test_bad_seeds_and_purposes_are_refused(call, error, message, refused):
    refused(call, error, message)
