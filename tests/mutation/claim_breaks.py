"""For every claim of the ledger a break of mesa_lib, in the order of the claims, that its check cell must notice.

Were the library so, the verdict would be wrong.
"""

from typing import NamedTuple


class ClaimBreak(NamedTuple):
    """One break: in `file` of mesa_lib, `old` (which occurs once) becomes `new`, and the check of `claim` must fail."""

    claim: str
    name: str
    file: str
    old: str
    new: str


CLAIM_BREAKS = [
    ClaimBreak(
        "KEY-STEP",
        "the targets move the other way",
        "algorithms/gradient_descent.py",
        "return batch.context_y - batch.context_x @ weight_change.mT",
        "return batch.context_y + batch.context_x @ weight_change.mT",
    ),
    ClaimBreak(
        "KEY-OUTER",
        "the memory is a mean of outer products instead of their sum",
        "networks/memory.py",
        "return values.mT @ keys",
        "return values.mT @ keys / keys.shape[-2]",
    ),
    ClaimBreak(
        "C1",
        "the construction adds targets instead of taking them away",
        "networks/constructions.py",
        "w_v[d:, d:] = -identity[d:, d:]",
        "w_v[d:, d:] = identity[d:, d:]",
    ),
    ClaimBreak(
        "A-QUERY-SLOT",
        "the query's slot starts at plus W_0 x_q",
        "networks/tokens.py",
        "slot = -(",
        "slot = (",
    ),
    ClaimBreak(
        "A-QUERY-ZERO",
        "gradient descent predicts with its step alone, without its start, which is what a slot of 0 gives",
        "algorithms/gradient_descent.py",
        "predict_linear(gradient_descent_weights(batch, eta, num_steps, w_0), batch)",
        "predict_linear(gradient_descent_weights(batch, eta, num_steps, w_0) - initial_weights(batch, w_0), batch)",
    ),
    ClaimBreak(
        "A-EXCLUDED",
        "a query joins the keys and values with a target that is not zero",
        "networks/tokens.py",
        "torch.cat([tokens.context, tokens.query], dim=-2)",
        "torch.cat([tokens.context, tokens.query + 1], dim=-2)",
    ),
    ClaimBreak(
        "A-EXCLUDED",
        "the query never joins the keys and values",
        "networks/tokens.py",
        "return Tokens(torch.cat([tokens.context, tokens.query], dim=-2), tokens.query)",
        "return tokens",
    ),
    ClaimBreak(
        "A-P-N",
        "P forgets N",
        "networks/constructions.py",
        "(step / examples * identity)",
        "(step * identity)",
    ),
    ClaimBreak(
        "C2",
        "canonical weights score on the scale on which they were trained",
        "networks/attention.py",
        "w_q=w_kq / scale",
        "w_q=w_kq",
    ),
    ClaimBreak(
        "C2-LOSS",
        "a gradient step sums over the context instead of taking the mean",
        "algorithms/gradient_descent.py",
        "return residual.mT @ batch.context_x / batch.num_context",
        "return residual.mT @ batch.context_x",
    ),
    ClaimBreak(
        "C2-INTERP",
        "interpolation averages the factors",
        "networks/attention.py",
        "    a, b = canonicalize(a, y_dim), canonicalize(b, y_dim)\n",
        "    return average_factors(a, b, share)\n",
    ),
    ClaimBreak(
        "A-UNIQUE",
        "keys take the inverse of their gauge untransposed",
        "networks/symmetries.py",
        "torch.linalg.solve(on_keys.mT, weights.w_k)",
        "torch.linalg.solve(on_keys, weights.w_k)",
    ),
    ClaimBreak(
        "C2-COSINE",
        "the norm form takes the other sign",
        "networks/attention.py",
        "-written, largest).sign()",
        "written, largest).sign()",
    ),
    ClaimBreak(
        "A-TASKS",
        "the best matrix is left in the coordinates that have unit variance",
        "theory/one_layer.py",
        "torch.linalg.solve(_step_moment(tasks, moment), moment) @ inverse_root",
        "torch.linalg.solve(_step_moment(tasks, moment), moment)",
    ),
    ClaimBreak(
        "TWO-SCALES",
        "a learned start enters the query's slot with a plus",
        "networks/transformer.py",
        "torch.cat([identity.expand(len(self.start), -1, -1), -self.start], dim=-2)",
        "torch.cat([identity.expand(len(self.start), -1, -1), self.start], dim=-2)",
    ),
    ClaimBreak(
        "W0-HIDDEN",
        "teachers are drawn without their mean",
        "tasks.py",
        "teacher = teacher + self.teacher_center.to(teacher)",
        "teacher = teacher + 0 * self.teacher_center.to(teacher)",
    ),
    ClaimBreak(
        "A-NO-BIAS",
        "the best step is said to be better than it is",
        "theory/one_layer.py",
        "return zero_loss(tasks) * (1 - tasks.num_context / effective_examples(tasks))",
        "return zero_loss(tasks) * (0.9 - tasks.num_context / effective_examples(tasks))",
    ),
    ClaimBreak(
        "AT-SCALE",
        "a context's second moment varies less than it does",
        "theory/one_layer.py",
        "(tasks.num_context + 1) * matrix",
        "tasks.num_context * matrix",
    ),
    ClaimBreak(
        "C2-OOD",
        "the exact loss of a layer leaves out what it answers whatever the sign of the teacher",
        "theory/one_layer.py",
        "_odd_error(tasks, blocks) + _even_error(tasks, blocks, target)",
        "_odd_error(tasks, blocks)",
    ),
    ClaimBreak(
        "C2-OOD",
        "a layer's exact loss forgets the input range on one of its two sides",
        "theory/one_layer.py",
        "    basis[:d, :d], basis[d + 1 :, :d] = root, mean @ root\n",
        "    basis[:d, :d], basis[d + 1 :, :d] = root / tasks.input_range, mean @ root\n",
    ),
    ClaimBreak(
        "C2-REPEAT",
        "a looped layer is not damped",
        "networks/transformer.py",
        "w_p=self.damping * weights.w_p",
        "w_p=weights.w_p",
    ),
    ClaimBreak(
        "REPEAT-DAMPED",
        "a loop applies its layer once",
        "networks/transformer.py",
        "return once * self.num_loops",
        "return once",
    ),
    ClaimBreak(
        "DEEP-GDPP",
        "the second layer sees the context as the first one did",
        "networks/transformer.py",
        "moment = move @ moment @ move.mT",
        "moment = 1 * moment",
    ),
    ClaimBreak(
        "C3",
        "GD++ moves eigenvalues as if they were singular values",
        "theory/spectral.py",
        "moved = moved * (1 - gammas[layer] * moved).square()",
        "moved = moved * (1 - gammas[layer] * moved)",
    ),
    ClaimBreak(
        "L-FAMILY",
        "gradient descent with a step size for each step moves the inputs, too",
        "theory/fits.py",
        "return logs.exp(), torch.zeros(steps - 1, dtype=torch.float64)",
        "return logs.exp(), logs[:-1].exp() / tasks.num_context",
    ),
    ClaimBreak(
        "TEN-EXTRA",
        "the gammas have no effect on explicit GD++",
        "algorithms/second_order.py",
        "moved = (identity - gamma * moved @ moment @ moved) @ moved",
        "moved = (identity - 0 * gamma * moved @ moment @ moved) @ moved",
    ),
    ClaimBreak(
        "INTERP-5",
        "interpolation averages the factors",
        "networks/attention.py",
        "    a, b = canonicalize(a, y_dim), canonicalize(b, y_dim)\n",
        "    return average_factors(a, b, share)\n",
    ),
    ClaimBreak(
        "DEF-GDPP",
        "the first layer steps on inputs that are already corrected",
        "algorithms/second_order.py",
        "gradient(weights, batch) @ moved @ moved",
        "gradient(weights, batch) @ (identity - gamma * moment) @ moved",
    ),
    ClaimBreak(
        "GDPP-NOT-GD",
        "two gradient steps are counted as if they had the degree of two layers",
        "theory/rates.py",
        'exponent = positive_integer("degree", degree) * _stretch(kappa)',
        'exponent = 2 * positive_integer("degree", degree) * _stretch(kappa)',
    ),
    ClaimBreak(
        "GDPP-RATE",
        "the numbers of the Newton-Schulz schedule grow by two a layer",
        "theory/spectral.py",
        "steps = [(9 / 4) ** layer / top",
        "steps = [2.0**layer / top",
    ),
    ClaimBreak(
        "GDPP-SECOND-ORDER",
        "a Newton step is taken to raise the error to the fourth power",
        "theory/rates.py",
        "return torch.log2(residuals.log()",
        "return 0.5 * torch.log2(residuals.log()",
    ),
    ClaimBreak(
        "GDPP-ONE",
        "Chebyshev's numbers stay the same from layer to layer",
        "theory/spectral.py",
        "[first * 9.0**layer for layer",
        "[first * 1.0**layer for layer",
    ),
]
