"""Exact inference in mixtures of hidden Markov models, against sums over all paths of hidden states."""

import itertools
import math

import pytest
import torch

from mesa_lib import (
    HiddenMarkovMixture,
    concept_posterior,
    forward_algorithm,
    predict_symbol,
    random_hmm_mixture,
    sample_prompts,
)


@pytest.fixture
def mixture(seeded):
    return random_hmm_mixture(3, 2, 4, seeded, sharpness=1.5)


def chance(mixture, concept, symbols):
    """p(symbols | concept), summed over every path of hidden states."""
    start, transition, emission = (part[concept] for part in (mixture.start, mixture.transition, mixture.emission))
    total = 0.0
    for path in itertools.product(range(2), repeat=len(symbols)):
        probability = float(start[path[0]])
        for here, there in itertools.pairwise(path):
            probability *= float(transition[here, there])
        total += probability * math.prod(float(emission[x, y]) for x, y in zip(path, symbols, strict=True))
    return total


def test_the_forward_algorithm_sums_over_all_paths(mixture):
    symbols = [2, 0, 3, 3]
    log_likelihood, following = forward_algorithm(mixture, torch.tensor([symbols]))
    for concept in range(3):
        whole = chance(mixture, concept, symbols)
        assert float(log_likelihood[0, concept]) == pytest.approx(math.log(whole), rel=1e-12)
        for symbol in range(4):
            expected = chance(mixture, concept, [*symbols, symbol]) / whole
            assert float(following[0, concept, symbol]) == pytest.approx(expected, rel=1e-12)


def test_an_empty_chain_says_nothing_and_the_next_symbol_is_the_first(mixture):
    log_likelihood, following = forward_algorithm(mixture, torch.zeros(5, 0, dtype=torch.int64))
    assert torch.equal(log_likelihood, torch.zeros(5, 3, dtype=torch.float64))
    for concept, symbol in itertools.product(range(3), range(4)):
        assert float(following[0, concept, symbol]) == pytest.approx(chance(mixture, concept, [symbol]), rel=1e-12)


def test_prediction_is_bayes_rule_over_concepts(mixture):
    examples, asked = [[0, 1, 2], [3, 3, 0]], [1, 2]
    evidence = [
        math.prod(chance(mixture, concept, example) for example in examples) * chance(mixture, concept, asked)
        for concept in range(3)
    ]
    posterior = concept_posterior(mixture, torch.tensor([examples]), torch.tensor([asked]))[0]
    torch.testing.assert_close(
        posterior, torch.tensor(evidence, dtype=torch.float64) / sum(evidence), rtol=1e-12, atol=0
    )
    predicted = predict_symbol(mixture, torch.tensor([examples]), torch.tensor([asked]))[0]
    for symbol in range(4):
        joint = sum(
            math.prod(chance(mixture, concept, example) for example in examples)
            * chance(mixture, concept, [*asked, symbol])
            for concept in range(3)
        )
        assert float(predicted[symbol]) == pytest.approx(joint / sum(evidence), rel=1e-12)


def test_without_examples_the_asked_start_decides_and_without_it_the_odds_are_equal(mixture):
    none = torch.zeros(1, 0, 3, dtype=torch.int64)
    torch.testing.assert_close(concept_posterior(mixture, none)[0], torch.full((3,), 1 / 3).double())
    asked = [3, 0]
    evidence = torch.tensor([chance(mixture, concept, asked) for concept in range(3)], dtype=torch.float64)
    got = concept_posterior(mixture, none, torch.tensor([asked]))[0]
    torch.testing.assert_close(got, evidence / evidence.sum(), rtol=1e-12, atol=0)


def test_prompts_have_the_frequencies_of_their_concept(mixture, seeded):
    """Pairs of symbols in 20,000 examples: within five standard errors of what the paths say."""
    concepts, symbols = sample_prompts(mixture, 10_000, 2, 2, seeded)
    assert symbols.shape == (10_000, 2, 2)
    for concept in range(3):
        own = symbols[concepts == concept].flatten(0, 1)
        for pair in itertools.product(range(4), repeat=2):
            expected = chance(mixture, concept, pair)
            share = float((own == torch.tensor(pair)).all(-1).double().mean())
            assert abs(share - expected) < 5 * (expected * (1 - expected) / len(own)) ** 0.5


def test_a_posterior_is_calibrated(mixture, seeded):
    """Of all concepts that get a probability near p, the share p is right: Brier score by Monte Carlo."""
    concepts, symbols = sample_prompts(mixture, 4000, 3, 3, seeded)
    posterior = concept_posterior(mixture, symbols)
    right = torch.nn.functional.one_hot(concepts, 3).double()
    difference = (right - posterior).flatten()
    assert (
        abs(float((posterior.flatten() * difference).mean()))
        < 4 * float((posterior.flatten() * difference).std()) / len(difference) ** 0.5
    )


def test_concepts_are_drawn_by_seed_and_sharpness(seeded):
    flat = random_hmm_mixture(2, 3, 4, torch.Generator().manual_seed(1), sharpness=1e-9)
    torch.testing.assert_close(flat.emission, torch.full((2, 3, 4), 0.25).double())
    one, other = (random_hmm_mixture(2, 3, 4, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(one.transition, other.transition)
    assert (one.num_concepts, one.num_symbols) == (2, 4)


def test_bad_arguments_are_refused_by_name(refused, mixture, seeded):
    half = torch.full((2, 2), 0.5).double()
    good = torch.full((2, 2, 2), 0.5).double()
    refused(lambda: HiddenMarkovMixture(half, 2 * good, good), ValueError, "transition: expected rows that are >= 0")
    refused(lambda: HiddenMarkovMixture(half, good[:1], good), ValueError, "transition: expected a shape")
    refused(lambda: HiddenMarkovMixture(half, good, good.float()), TypeError, "emission: expected dtype torch.float64")
    refused(lambda: random_hmm_mixture(0, 2, 2, seeded), ValueError, "num_concepts: expected a positive integer")
    refused(lambda: random_hmm_mixture(2, 2, 2, 5), TypeError, "generator: expected a torch.Generator, got int")
    refused(lambda: sample_prompts(mixture, 1, 1, 0, seeded), ValueError, "length: expected a positive integer")
    refused(lambda: sample_prompts(mixture, 1, 1, 1, None), TypeError, "generator: expected a torch.Generator")
    refused(
        lambda: forward_algorithm(mixture, torch.tensor([[4]])), ValueError, "symbols: expected integers from 0 to 3"
    )
    refused(
        lambda: forward_algorithm(mixture, torch.tensor([[0.0]])), TypeError, "symbols: expected a tensor of integers"
    )
