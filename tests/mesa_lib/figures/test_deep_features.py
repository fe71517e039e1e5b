"""Pictures of deep features: they draw the numbers that they are given, name their axes and refuse what is unfit."""

import matplotlib.pyplot as plt
import pytest
import torch

from mesa_lib import SineTasks, figures

STEPS = [0, 10, 20]
CURVES = {"a": torch.tensor([[0.03, 0.02], [0.01, 0.005], [0.002, 0.004]]), "b": torch.full((3, 1), 0.01)}
LEVELS = {"low": 0.0015, "high": 0.0044}
GRID = torch.linspace(-1, 1, 5)
KERNELS = {"one": torch.outer(GRID, GRID), "two": torch.eye(5)}
WALKS = {"a": torch.tensor([0.1, 0.01]), "b": torch.tensor([0.2, 0.02])}
SPECTRA = {"a": torch.tensor([1.0, 0.5, 1e-3]), "b": torch.tensor([1.0, 0.5, 1e-3])}
SWEEPS = {
    "N": ([5, 10, 20], torch.tensor([0.3, 0.1, 0.2]), [5, 20], torch.tensor([[0.31, 0.32], [0.21, 0.22]])),
    "noise": ([0.0, 0.5], torch.tensor([0.1, 0.2]), [0.5], torch.tensor([[0.2, 0.2]])),
}
MARKED = {"N": 10, "noise": 0.0}
SIZES = {"step": torch.tensor([1.0, 10.0]), "normed": torch.tensor([1.0, 1.5])}


def waves(num_tasks=2):
    return SineTasks(queries="grid", num_queries=9).sample(num_tasks, torch.Generator().manual_seed(0))


def rows(batch):
    return {"one": {"a": batch.query_y, "b": 2 * batch.query_y}, "more": {"c": 3 * batch.query_y}}


def drawn_lines(axes):
    return [torch.as_tensor(line.get_ydata()).float() for line in axes.lines]


def shows(axes, values):
    return any(line.shape == values.shape and torch.allclose(line, values.float()) for line in drawn_lines(axes))


def test_every_axis_has_a_name_and_no_figure_stays_open():
    batch = waves()
    made = [
        figures.wave_predictions(batch, rows(batch)),
        figures.losses_through_training(STEPS, CURVES, LEVELS),
        figures.losses_through_training(STEPS, CURVES, LEVELS, panels=True),
        figures.kernel_pictures(GRID, KERNELS),
        figures.iterated_kernels([1, 20], WALKS, {"a": 0.05, "b": 0.06}, SPECTRA),
        figures.sweeps_beside_theory(SWEEPS, MARKED),
        figures.response_to_scale([1.0, 10.0], SIZES),
    ]
    assert plt.get_fignums() == []
    for figure in made:
        assert any(axes.get_xlabel() for axes in figure.axes) and any(axes.get_ylabel() for axes in figure.axes)


def test_waves_have_a_panel_for_every_task_and_row_with_the_answers_in_it():
    batch = waves()
    figure = figures.wave_predictions(batch, rows(batch))
    assert len(figure.axes) == 4
    assert shows(figure.axes[1], 2 * batch.query_y[1, :, 0]) and shows(figure.axes[2], 3 * batch.query_y[0, :, 0])
    assert shows(figure.axes[0], batch.context_y[0, :, 0]) and not shows(figure.axes[2], 2 * batch.query_y[0, :, 0])
    looks = {line.get_color() for axes in figure.axes for line in axes.lines if line.get_label() in "abc"}
    assert len(looks) == 3  # a name has its look in every row


def test_losses_are_drawn_seed_by_seed_with_the_levels():
    together = figures.losses_through_training(STEPS, CURVES, LEVELS).axes[0]
    for curve in (*CURVES["a"].unbind(-1), *CURVES["b"].unbind(-1), *(torch.full((2,), v) for v in LEVELS.values())):
        assert shows(together, curve)
    apart = figures.losses_through_training(STEPS, CURVES, LEVELS, panels=True).axes
    assert len(apart) == 2 and not shows(apart[1], CURVES["a"][:, 0]) and shows(apart[0], CURVES["a"][:, 1])


def test_kernels_are_drawn_on_one_scale_beside_their_singular_values():
    figure = figures.kernel_pictures(GRID, KERNELS)
    images = [axes.images[0] for axes in figure.axes if axes.images]
    assert [torch.as_tensor(image.get_array().data).tolist() for image in images] == [
        k.tolist() for k in KERNELS.values()
    ]
    assert len({image.get_clim() for image in images}) == 1
    below = next(axes for axes in figure.axes if "singular" in axes.get_xlabel())
    assert shows(below, torch.ones(5)) and shows(below, torch.tensor([1.0, 1e-6, 1e-6, 1e-6, 1e-6]))


def test_iteration_sweeps_and_scales_show_their_numbers():
    left, right = figures.iterated_kernels([1, 20], WALKS, {"a": 0.05, "b": 0.06}, SPECTRA).axes
    assert shows(left, WALKS["b"]) and shows(left, torch.full((2,), 0.05)) and shows(right, SPECTRA["a"])
    first, second = figures.sweeps_beside_theory(SWEEPS, MARKED).axes
    assert shows(first, SWEEPS["N"][1]) and shows(first, torch.tensor([0.32, 0.22]))
    assert first.get_xscale() == "log" and second.get_xscale() == "linear" and shows(second, torch.tensor([0.2]))
    assert shows(figures.response_to_scale([1.0, 10.0], SIZES).axes[0], SIZES["normed"])


MANY = {str(k): torch.zeros(3, 1) for k in range(5)}
REFUSALS = [
    (lambda: figures.wave_predictions(waves(), {}), ValueError, "rows: expected one to 4 names of learners"),
    (lambda: figures.wave_predictions(waves(5), rows(waves(5))), ValueError, "batch: expected at most 4 tasks"),
    (lambda: figures.wave_predictions(waves(), rows(waves(3))), ValueError, "a: expected shape (2, 9, 1)"),
    (lambda: figures.losses_through_training(STEPS, {}, LEVELS), ValueError, "losses: expected one to 4 kinds"),
    (lambda: figures.losses_through_training(STEPS, MANY, LEVELS), ValueError, "losses: expected one to 4 kinds"),
    (lambda: figures.losses_through_training([0], CURVES, LEVELS), ValueError, "a: expected 1 rows of losses"),
    (lambda: figures.kernel_pictures(GRID, {}), ValueError, "matrices: expected one to 3 kernels"),
    (lambda: figures.kernel_pictures(GRID[:4], KERNELS), ValueError, "one: expected a matrix of size 4"),
    (lambda: figures.iterated_kernels([1, 20], WALKS, {"a": 1.0}, SPECTRA), ValueError, "losses, limits, spectra"),
    (lambda: figures.iterated_kernels([1], WALKS, {"a": 1.0, "b": 1.0}, SPECTRA), ValueError, "a: expected a shape"),
    (lambda: figures.sweeps_beside_theory(SWEEPS, {"N": 10}), ValueError, "panels, marked: expected the same names"),
    (lambda: figures.sweeps_beside_theory({"N": (*SWEEPS["N"][:2], [5], SWEEPS["N"][3])}, {"N": 10}), ValueError,
     "N: expected 1 rows of losses"),
    (lambda: figures.response_to_scale([1.0], SIZES), ValueError, "step: expected a shape that ends in (1,)"),
    (lambda: figures.response_to_scale([1.0], {}), ValueError, "sizes: expected one to 4 curves"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSALS)
def test_bad_arguments_are_refused_by_name(call, error, message, refused):
    refused(call, error, message)
    assert plt.get_fignums() == []
