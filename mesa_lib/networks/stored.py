"""Networks that were trained once and committed, for chapters that read trained networks and do not train them."""

from typing import Literal

from mesa_lib.networks.attention import AttentionWeights
from mesa_lib.networks.transformer import AveragingTransformer, FreeTransformer
from mesa_lib.results import garg_networks
from mesa_lib.validation import one_of


def garg_network(num_layers: Literal[1, 2, 5], prompts: Literal["frozen", "every"] = "frozen") -> FreeTransformer:
    """A network trained in the setting of Garg et al. (2022), d = 20 with x and w normal, from three seeds.

    Args:
        num_layers: 1, 2 or 5, of one head of linear attention each.
        prompts: "frozen": trained on prompts of exactly 40 examples, so that P belongs to N = 40. "every": an
            `AveragingTransformer`, trained on prompts of every length from 1 to 40. The recipes are in the file's
            header, `mesa_lib.results.garg_networks`.

    Returns:
        The trained network without gradients, its parameters with one slice for each of the seeds 0, 1 and 2.

    Raises:
        ValueError: there is no such network.

    Example:
        >>> network = mesa.garg_network(2)
        >>> len(network.layers())
        2
    """
    if num_layers not in (1, 2, 5):
        raise ValueError(f"num_layers: expected 1, 2 or 5, got {num_layers!r}")
    tensors, _ = garg_networks()
    name = f"{one_of('prompts', prompts, ('frozen', 'every'))}-{num_layers}"
    layers = [
        AttentionWeights(*(tensors[f"{name}/{factor}_{layer}"] for factor in ("w_k", "w_q", "w_v", "w_p")))
        for layer in range(num_layers)
    ]
    kind = FreeTransformer if prompts == "frozen" else AveragingTransformer
    return kind(layers).requires_grad_(False)
