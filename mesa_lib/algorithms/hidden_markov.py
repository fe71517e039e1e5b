"""In-context learning as Bayesian inference: mixtures of hidden Markov models, after Xie et al. (2022), in the small.

A *concept* is a hidden Markov model. A prompt is a row of examples, all drawn from one concept that nobody names, and
the start of one more example. Whoever knows the mixture can say, by the forward algorithm and Bayes' rule, how probable
each concept is and which symbol comes next: exactly, and without any optimisation.

Each concept is a member of the ensemble axis. As usual for hidden Markov models, x are hidden states and y are symbols.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mesa_lib.validation import (
    finite_tensor,
    positive_integer,
    positive_number,
    same_kind,
    trailing_shape,
    typed,
)


@dataclass(frozen=True, eq=False)
class HiddenMarkovMixture:
    """Concepts, each a hidden Markov model over the same states and symbols; all equally probable a priori.

    Shapes:
        start: (ensemble, x), the distribution of the first hidden state
        transition: (ensemble, x, x), from a row's state to a column's
        emission: (ensemble, x, y), from a row's state to a symbol

    Raises:
        TypeError, ValueError: shapes or dtypes that do not fit, or a row that is no probability distribution.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))
        >>> tuple(mixture.transition.shape)  # (concept, state, state)
        (3, 4, 4)
    """

    start: Float[Tensor, "ensemble x"]
    transition: Float[Tensor, "ensemble x x"]
    emission: Float[Tensor, "ensemble x y"]

    def __post_init__(self) -> None:
        finite_tensor("start", self.start, min_dims=2)
        concepts, states = self.start.shape
        for name, shape in (("start", (concepts, states)), ("transition", (concepts, states, states))):
            trailing_shape(name, getattr(self, name), shape)
        finite_tensor("emission", self.emission, min_dims=3)
        trailing_shape("emission", self.emission, (concepts, states, self.emission.shape[-1]))
        for name in ("start", "transition", "emission"):
            rows = same_kind(name, getattr(self, name), "start", self.start)
            if bool((rows < 0).any()) or bool(((rows.sum(-1) - 1).abs() > 1e-6).any()):
                raise ValueError(f"{name}: expected rows that are >= 0 and sum to one")

    @property
    def num_concepts(self) -> int:
        """How many concepts are mixed."""
        return len(self.start)

    @property
    def num_symbols(self) -> int:
        """How many symbols there are."""
        return self.emission.shape[-1]


@typed
def random_hmm_mixture(
    num_concepts: int,
    num_states: int,
    num_symbols: int,
    generator: torch.Generator,
    sharpness: float = 3.0,
    dtype: torch.dtype = torch.float64,
) -> HiddenMarkovMixture:
    """Concepts drawn at random: rows softmax(sharpness z) with z ~ N(0, 1), and a uniform first state.

    Args:
        num_concepts: how many hidden Markov models.
        num_states: hidden states of each.
        num_symbols: symbols.
        generator: the only source of randomness, see `mesa_lib.generator`.
        sharpness: how far rows are from uniform; at 3 a few entries of a row hold most of its mass.
        dtype: a floating-point dtype.

    Returns:
        A HiddenMarkovMixture.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, a `sharpness` that is not positive, `generator` is
            no torch.Generator.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))  # concepts, states, symbols
        >>> torch.allclose(mixture.emission.sum(-1), torch.ones(3, 4).double())
        True
    """
    concepts, states = positive_integer("num_concepts", num_concepts), positive_integer("num_states", num_states)
    symbols, scale = positive_integer("num_symbols", num_symbols), positive_number("sharpness", sharpness)
    _check_generator(generator)
    transition = torch.randn(concepts, states, states, generator=generator, dtype=dtype)
    emission = torch.randn(concepts, states, symbols, generator=generator, dtype=dtype)
    start = torch.full((concepts, states), 1 / states, dtype=dtype)
    return HiddenMarkovMixture(start, (scale * transition).softmax(-1), (scale * emission).softmax(-1))


def _check_generator(generator: object) -> None:
    if not isinstance(generator, torch.Generator):
        raise TypeError(f"generator: expected a torch.Generator, got {type(generator).__name__}")


@typed
def sample_prompts(
    mixture: HiddenMarkovMixture, num_prompts: int, num_examples: int, length: int, generator: torch.Generator
) -> tuple[Int[Tensor, "task"], Int[Tensor, "task context token"]]:
    """Draw prompts: a concept each, and examples of that concept, each a chain of its own from a fresh first state.

    Examples know of each other only through the concept. (In Xie et al. a delimiter separates them in one stream of
    tokens, which costs a reader some bookkeeping; here the borders are given.)

    Args:
        mixture: the concepts.
        num_prompts: how many prompts.
        num_examples: how many examples a prompt, the asked one included.
        length: symbols of an example.
        generator: the only source of randomness.

    Returns:
        The concepts (task), and the symbols (task, context, token), with examples along the context axis.

    Raises:
        TypeError, ValueError: a size that is not a positive integer, `generator` is no torch.Generator.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))
        >>> stream = mesa.generator(0, "validation tasks")
        >>> concepts, examples = mesa.sample_prompts(mixture, 2, num_examples=6, length=3, generator=stream)
        >>> tuple(concepts.shape), tuple(examples.shape)
        ((2,), (2, 6, 3))
    """
    prompts, examples = positive_integer("num_prompts", num_prompts), positive_integer("num_examples", num_examples)
    symbols_per_example = positive_integer("length", length)
    _check_generator(generator)
    concepts = torch.randint(mixture.num_concepts, (prompts,), generator=generator)
    of_example = concepts.repeat_interleave(examples)
    state = _draw(mixture.start[of_example], generator)
    symbols = []
    for _ in range(symbols_per_example):
        symbols.append(_draw(mixture.emission[of_example, state], generator))
        state = _draw(mixture.transition[of_example, state], generator)
    return concepts, torch.stack(symbols, dim=-1).view(prompts, examples, symbols_per_example)


def _draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)


@typed
def forward_algorithm(
    mixture: HiddenMarkovMixture, symbols: Int[Tensor, "*task token"]
) -> tuple[Float[Tensor, "*task ensemble"], Float[Tensor, "*task ensemble y"]]:
    """What each concept says of a chain of symbols: its log-likelihood, and the distribution of the next symbol.

    The forward algorithm: the distribution of the hidden state, given the symbols so far, is multiplied by the
    emission of the next one, normalised, and moved on by the transition. The log-likelihood is the sum of the logs of
    the normalisers. An empty chain has log-likelihood zero.

    Args:
        mixture: the concepts.
        symbols: integers below `num_symbols`, shape (*task, token); the token axis may be empty.

    Returns:
        The log-likelihood under each concept, (*task, ensemble), and p(next symbol | symbols, concept),
        (*task, ensemble, y).

    Raises:
        TypeError, ValueError: `symbols` is no tensor of integers, or holds one that is no symbol.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))
        >>> log_likelihood, next_symbol = mesa.forward_algorithm(mixture, torch.tensor([[0, 1, 2]]))
        >>> torch.allclose(next_symbol.sum(-1), torch.ones(1, 3).double())
        True
    """
    _check_symbols(mixture, symbols)
    axes = symbols.shape[:-1]
    belief = mixture.start.expand(*axes, *mixture.start.shape)
    log_likelihood = mixture.start.new_zeros(*axes, mixture.num_concepts)
    by_symbol = mixture.emission.permute(2, 0, 1)  # (y, ensemble, x)
    for symbol in symbols.unbind(-1):
        joint = belief * by_symbol[symbol]
        total = joint.sum(-1)
        log_likelihood = log_likelihood + total.log()
        belief = torch.einsum("...ei,eij->...ej", joint / total[..., None], mixture.transition)
    return log_likelihood, torch.einsum("...ei,eiy->...ey", belief, mixture.emission)


def _check_symbols(mixture: HiddenMarkovMixture, symbols: object) -> None:
    if not isinstance(symbols, Tensor) or symbols.is_floating_point() or symbols.is_complex() or symbols.dim() < 1:
        kind = f"dtype {symbols.dtype}" if isinstance(symbols, Tensor) else type(symbols).__name__
        raise TypeError(f"symbols: expected a tensor of integers with a token axis, got {kind}")
    if symbols.numel() and not 0 <= int(symbols.min()) <= int(symbols.max()) < mixture.num_symbols:
        raise ValueError(
            f"symbols: expected integers from 0 to {mixture.num_symbols - 1}, got {int(symbols.min())} to "
            f"{int(symbols.max())}"
        )


@typed
def concept_posterior(
    mixture: HiddenMarkovMixture,
    examples: Int[Tensor, "*task context token"],
    asked: Int[Tensor, "*task start"] | None = None,
) -> Float[Tensor, "*task ensemble"]:
    """p(concept | examples, the start of the asked one), by Bayes' rule from equal odds.

    Args:
        mixture: the concepts.
        examples: complete examples, shape (*task, context, token); the context axis may be empty.
        asked: the symbols of the asked example that are already there, shape (*task, start); none by default.

    Returns:
        Shape (*task, ensemble); sums to one over the concepts.

    Raises:
        TypeError, ValueError: see `forward_algorithm`.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))
        >>> stream = mesa.generator(0, "validation tasks")
        >>> _, examples = mesa.sample_prompts(mixture, 2, num_examples=6, length=3, generator=stream)
        >>> torch.allclose(mesa.concept_posterior(mixture, examples).sum(-1), torch.ones(2).double())
        True
    """
    log_posterior = forward_algorithm(mixture, examples)[0].sum(-2)
    if asked is not None:
        log_posterior = log_posterior + forward_algorithm(mixture, asked)[0]
    return log_posterior.softmax(-1)


@typed
def predict_symbol(
    mixture: HiddenMarkovMixture,
    examples: Int[Tensor, "*task context token"],
    asked: Int[Tensor, "*task start"],
) -> Float[Tensor, "*task y"]:
    """p(next symbol | prompt): each concept's answer, weighted by the concept's posterior. The Bayes predictor.

    Args:
        mixture: the concepts.
        examples: complete examples, shape (*task, context, token).
        asked: the start of the asked example, shape (*task, start).

    Returns:
        Shape (*task, y); sums to one over the symbols.

    Raises:
        TypeError, ValueError: see `forward_algorithm`.

    Example:
        >>> mixture = mesa.random_hmm_mixture(3, 4, 5, mesa.generator(0, "init"))
        >>> stream = mesa.generator(0, "validation tasks")
        >>> _, examples = mesa.sample_prompts(mixture, 2, num_examples=6, length=3, generator=stream)
        >>> tuple(mesa.predict_symbol(mixture, examples, torch.tensor([[0, 1], [2, 3]])).shape)
        (2, 5)
    """
    posterior = concept_posterior(mixture, examples, asked)
    answers = forward_algorithm(mixture, asked)[1]
    return (posterior[..., None] * answers).sum(-2)
