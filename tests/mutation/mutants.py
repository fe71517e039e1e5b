"""Breaks of mesa_lib, each with the test that must notice it."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One break: in `file` of mesa_lib, `old` (which occurs once) becomes `new`, and the test `killer` must fail."""

    name: str
    file: str
    old: str
    new: str
    killer: str


MUTANTS = [
    Mutant(
        "the read-out loses its minus sign",
        "networks/tokens.py",
        "return -tokens.query[..., -size:]",
        "return tokens.query[..., -size:]",
        "mesa_lib/networks/test_tokens.py::test_the_prediction_is_minus_the_last_numbers_of_a_query",
    ),
    Mutant(
        "W_0 enters the query token with a plus",
        "networks/tokens.py",
        "slot = -(batch.query_x",
        "slot = (batch.query_x",
        "propositions/test_proposition_1.py::test_every_context_token_and_every_query_moves_by_a_gradient_step",
    ),
    Mutant(
        "W_KQ lacks a transposition",
        "networks/attention.py",
        "return self.w_k.mT @ self.w_q",
        "return self.w_k @ self.w_q",
        "mesa_lib/networks/test_attention.py::test_a_layer_is_equation_2_for_every_token_and_query[5-5]",
    ),
    Mutant(
        "fast weights multiply in the wrong order",
        "networks/attention.py",
        "(w_pv @ moment.unsqueeze(-3) @ w_kq)",
        "(w_kq @ moment.unsqueeze(-3) @ w_pv)",
        "mesa_lib/networks/test_attention.py::test_fast_weights_are_sums_of_outer_products_of_values_and_keys",
    ),
    Mutant(
        "queries become keys and values",
        "networks/attention.py",
        "context_moment(tokens.context))",
        "context_moment(torch.cat([tokens.context, tokens.query], -2)))",
        "mesa_lib/networks/test_attention.py::test_a_layer_is_equation_2_for_every_token_and_query",
    ),
    Mutant(
        "the canonical scale uses the whole diagonal",
        "networks/attention.py",
        "diagonal(dim1=-2, dim2=-1)[..., :x_dim]",
        "diagonal(dim1=-2, dim2=-1)",
        "mesa_lib/networks/test_attention.py::test_canonical_weights_are_the_same_layer_with_mean_diagonal_one",
    ),
    Mutant(
        "interpolation averages factors",
        "networks/attention.py",
        "    a, b = canonicalize(a, y_dim), canonicalize(b, y_dim)\n",
        "    return average_factors(a, b, share)\n",
        "laws/test_symmetries.py::test_what_compares_and_judges_layers_does_not_see_the_gauge",
    ),
    Mutant(
        "the moment is moved by the transposed layer",
        "networks/transformer.py",
        "moment = move @ moment @ move.mT",
        "moment = move.mT @ moment @ move",
        "laws/test_second_moments.py::test_predictions_from_moments_are_those_from_tokens",
    ),
    Mutant(
        "the moment stays that of the first layer",
        "networks/transformer.py",
        "moment = move @ moment @ move.mT",
        "moment = 1 * moment",
        "propositions/test_proposition_1.py::test_a_stack_of_layers_is_as_many_gradient_steps",
    ),
    Mutant(
        "the ensemble shares one random start",
        "networks/transformer.py",
        "generator=stream, dtype=dtype) for stream in streams",
        'generator=generators(seeds[:1], "init")[0], dtype=dtype) for stream in streams',
        "mesa_lib/networks/test_transformer.py::test_a_start_of_a_seed_comes_from_its_init_stream_whatever_the_company",
    ),
    Mutant(
        "the construction's P lacks 1/N",
        "networks/constructions.py",
        "(step / examples * identity)",
        "(step * identity)",
        "mesa_lib/networks/test_constructions.py::test_the_blocks_are_those_of_proposition_1",
    ),
    Mutant(
        "the construction's W_0 has the wrong sign",
        "networks/constructions.py",
        "w_v[d:, :d] = w_0",
        "w_v[d:, :d] = -w_0",
        "propositions/test_proposition_1.py::test_every_context_token_and_every_query_moves_by_a_gradient_step",
    ),
    Mutant(
        "the recurrence writes every value with the last key",
        "networks/memory.py",
        "value[..., :, None] * key[..., None, :]",
        "value[..., :, None] * keys[..., -1, None, :]",
        "mesa_lib/networks/test_memory.py::test_the_recurrence_holds_the_memory_of_every_prefix",
    ),
    Mutant(
        "the gradient lacks 1/N",
        "algorithms/gradient_descent.py",
        "return residual.mT @ batch.context_x / batch.num_context",
        "return residual.mT @ batch.context_x",
        "mesa_lib/algorithms/test_gradient_descent.py::test_the_gradient_is_autograds",
    ),
    Mutant(
        "the context loss lacks its half",
        "algorithms/gradient_descent.py",
        "return 0.5 * residual.square()",
        "return residual.square()",
        "mesa_lib/algorithms/test_gradient_descent.py::test_the_context_loss_is_half_the_mean_squared_error",
    ),
    Mutant(
        "descent climbs",
        "algorithms/gradient_descent.py",
        "weights = weights - step * ",
        "weights = weights + step * ",
        "mesa_lib/algorithms/test_gradient_descent.py::test_descent_takes_autograds_steps_from_any_start",
    ),
    Mutant(
        "targets step the wrong way",
        "algorithms/gradient_descent.py",
        "return batch.context_y - batch.context_x @ weight_change.mT",
        "return batch.context_y + batch.context_x @ weight_change.mT",
        "mesa_lib/algorithms/test_gradient_descent.py::test_a_step_on_the_weights_is_a_step_on_the_targets",
    ),
    Mutant(
        "least squares is a basic solution, not that of least norm",
        "algorithms/least_squares.py",
        "torch.linalg.pinv(batch.context_x, rtol=cutoff) @ batch.context_y",
        "torch.nn.functional.pad(torch.linalg.pinv(batch.context_x[..., : batch.num_context], rtol=cutoff) "
        "@ batch.context_y, (0, 0, 0, max(0, batch.x_dim - batch.num_context)))",
        "mesa_lib/algorithms/test_least_squares.py::test_directions_that_no_example_shows_stay_zero",
    ),
    Mutant(
        "the ridge penalty stands beside a mean",
        "algorithms/least_squares.py",
        "+ strength * identity",
        "+ batch.num_context * strength * identity",
        "mesa_lib/algorithms/test_least_squares.py::test_ridge_minimises_its_penalised_sum_of_squares",
    ),
    Mutant(
        "all purposes share one stream",
        "seeding.py",
        "np.random.SeedSequence([checked, index])",
        "np.random.SeedSequence([checked, 0])",
        "mesa_lib/test_seeding.py::test_no_two_seeds_and_purposes_share_a_stream",
    ),
    Mutant(
        "query targets are noisy",
        "tasks.py",
        "query_x, query_x @ teacher.mT, teacher)",
        "query_x, query_x @ teacher.mT + self.noise_std * torch.ones_like(query_x[..., :1]), teacher)",
        "mesa_lib/test_tasks.py::test_query_targets_are_clean_and_context_targets_are_noisy",
    ),
    Mutant(
        "the half-width is a full width",
        "tasks.py",
        "self.input_range * (2 * uniform - 1)",
        "self.input_range * (uniform - 0.5)",
        "mesa_lib/test_tasks.py::test_uniform_inputs_fill_the_range_and_no_more",
    ),
    Mutant(
        "the sampled loss lacks its half",
        "training/losses.py",
        "return 0.5 * (prediction - batch.query_y)",
        "return (prediction - batch.query_y)",
        "mesa_lib/training/test_losses.py::test_the_sampled_loss_is_half_the_squared_error_summed_over_targets",
    ),
    Mutant(
        "the expected loss forgets the size of the queries",
        "training/losses.py",
        "((error @ moment) * error)",
        "(error * error)",
        "mesa_lib/training/test_losses.py"
        "::test_the_expected_loss_is_the_sampled_loss_over_queries_of_the_same_second_moment",
    ),
    Mutant(
        "one clip for the whole ensemble",
        "training/trainer.py",
        "(max_norm / gradient_norms(parameters).clamp(",
        "(max_norm / gradient_norms(parameters).norm().expand(len(parameters[0])).clamp(",
        "laws/test_ensembles.py::test_member_k_of_an_ensemble_is_the_solo_run_of_seed_k",
    ),
    Mutant(
        "training draws validation tasks",
        "training/trainer.py",
        'generators(members, "training tasks")',
        'generators(members, "validation tasks")',
        "mesa_lib/training/test_trainer.py::test_training_draws_the_training_stream_of_each_seed",
    ),
    Mutant(
        "snapshots change with the training",
        "training/trainer.py",
        "name: value.detach().clone()",
        "name: value.detach()",
        "mesa_lib/training/test_trainer.py::test_the_learner_handed_in_is_unchanged_and_the_first_record_is_it",
    ),
    Mutant(
        "the cosine is taken of single queries' predictions, not of sensitivities",
        "comparison.py",
        "torch.cosine_similarity(our_slopes.flatten(-2), their_slopes.flatten(-2), dim=-1)",
        "torch.cosine_similarity(ours, theirs, dim=-1)",
        "mesa_lib/test_comparison.py::test_differences_and_cosine_are_means_over_tasks_and_queries",
    ),
    Mutant(
        "the exact loss drops its even part",
        "theory/one_layer.py",
        "_odd_error(tasks, *blocks) + _even_square(tasks, *blocks)",
        "_odd_error(tasks, *blocks)",
        "laws/test_population_loss.py::test_the_loss_of_any_weights_is_the_expectation_over_all_tasks",
    ),
    Mutant(
        "the best step takes all inputs for normal",
        "theory/one_layer.py",
        "- 2 + kurtosis + noise",
        "- 2 + 3 + noise",
        "mesa_lib/theory/test_one_layer.py::test_the_best_step_and_its_loss_are_the_books_numbers",
    ),
    Mutant(
        "the twin gains on every target",
        "theory/one_layer.py",
        "share / (tasks.x_dim * tasks.y_dim)",
        "share / tasks.x_dim",
        "laws/test_population_loss.py::test_the_plateau_is_the_least_loss_of_the_twin_family",
    ),
    Mutant(
        "tuned steps do not hear the noise",
        "theory/step_size.py",
        "(bias + noise * _filter(eigenvalues, eta, num_steps).square())",
        "bias",
        "mesa_lib/theory/test_step_size.py::test_the_tuned_step_of_a_distribution_is_the_minimum_of_the_expected_loss",
    ),
]
