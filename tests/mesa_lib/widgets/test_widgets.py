"""Widgets on the side of Python: their state, what they say of it, and what they put out."""

import html
import json
import math
import re
import sys
import types

import pytest
import torch
from bs4 import BeautifulSoup

import mesa_lib as mesa
from mesa_lib import LinearTasks, TaskBatch, widgets
from mesa_lib.widgets import linker
from mesa_lib.widgets.base import Widget, recorded

EXACT = {"dtype": torch.float64}
VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def line(draw_batch) -> TaskBatch:
    return draw_batch(1, x_dim=1, y_dim=1, num_context=4, num_queries=1)


@pytest.fixture
def everyone(line) -> list[Widget]:
    """One widget of each kind, as it opens."""
    on_lines = [widgets.KernelByHand, widgets.PropositionByHand, widgets.SoftmaxStep, widgets.StepOnData]
    others = [widgets.CopyingByHand, widgets.LossLandscape, widgets.SpectrumFlow, widgets.TrainingScrubber]
    return [*(kind(line) for kind in on_lines), *(kind() for kind in others)]


def test_every_widget_of_the_room_is_tested_here(everyone):
    kinds = {getattr(widgets, name).front_end for name in widgets.__all__}
    assert kinds == {widget.front_end for widget in everyone}
    assert sorted(type(widget).front_end for widget in everyone) == linker.front_ends()


def test_the_html_holds_the_front_end_the_state_and_a_sentence(everyone):
    for widget in everyone:
        (place,) = BeautifulSoup(widget.to_html(), "html.parser").find_all("div")
        assert place["data-front-end"] == widget.front_end
        assert json.loads(place["data-state"]) == widget.state
        assert place.get_text() == f"{widget.describe()} {widget.finding}"


def test_the_same_state_gives_the_same_output(line):
    first, second = (widgets.StepOnData(line)._repr_mimebundle_()[0] for _ in range(2))
    assert first[VIEW] != second[VIEW], "Jupyter's view holds a random id"
    assert first["text/html"] == second["text/html"]
    assert first["text/plain"] == second["text/plain"]
    assert not re.search("[0-9a-f]{32}|0x[0-9a-f]+", first["text/html"] + first["text/plain"])


def test_a_live_view_comes_with_every_output(everyone):
    for widget in everyone:
        data, _ = widget._repr_mimebundle_()
        assert data[VIEW]["model_id"] == widget.model_id
        assert widget.describe() in data["text/plain"]


def test_colab_gets_the_live_view_alone(line, monkeypatch):
    output = types.ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: None
    output._widgets = types.SimpleNamespace(_installed_url=None)
    monkeypatch.setitem(sys.modules, "google.colab", types.ModuleType("google.colab"))
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    data, _ = widgets.StepOnData(line)._repr_mimebundle_()
    assert VIEW in data and "text/html" not in data


def test_the_state_is_small_and_json(everyone):
    for widget in everyone:
        assert len(json.dumps(widget.state)) < 4000, type(widget).__name__
        assert not {"layout", "comm", "tooltip", "_esm"} & set(widget.state)


def test_what_a_hand_changes_shows_in_what_the_widget_says(line):
    widget = widgets.StepOnData(line, eta=1.0)
    before = widget.describe()
    widget.eta = 2.0
    assert "step of size 2.00" in widget.describe() != before
    assert '"eta":2.0' in html.unescape(widget.to_html())


def test_a_finding_can_be_given(line):
    assert widgets.StepOnData(line, finding="Look.").state["finding"] == "Look."


def test_a_front_end_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="expected one of the modules"):
        type("Odd", (Widget,), {}, front_end="odd")


def test_a_widget_that_does_not_describe_itself_is_no_widget():
    plain = type("Plain", (Widget,), {}, front_end="step_on_data")
    with pytest.raises(NotImplementedError):
        plain().to_html()


# --- each widget's words ---------------------------------------------------------------------------------------------


def test_step_on_data_says_what_the_step_does(line):
    widget = widgets.StepOnData(line, w_0=0.5, eta=1.5)
    x, y = (torch.tensor(values, **EXACT) for values in (widget.x, widget.y))
    weight = torch.tensor(0.5, **EXACT, requires_grad=True)
    loss = 0.5 * (weight * x - y).square().mean()
    (slope,) = torch.autograd.grad(loss, weight)
    after = (weight - 1.5 * slope).item()
    stepped = 0.5 * (after * x - y).square().mean()
    assert f"to slope {after:.2f}; its loss goes from {loss.item():.4f} to {stepped.item():.4f}" in widget.describe()


def test_proposition_by_hand_says_whether_layer_and_step_agree(line):
    layer, step = widgets.PropositionByHand(line, 0.5, 1.5, num_layers=3).predictions()
    assert layer == pytest.approx(step, abs=1e-12)
    zero_slot, step = widgets.PropositionByHand(line, 0.5, 1.5, slot="zero").predictions()
    x_q = widgets.PropositionByHand(line).x_q
    assert zero_slot == pytest.approx(step - 0.5 * x_q, abs=1e-12)


def test_loss_landscape_judges_a_frozen_layer_at_another_length():
    widget = widgets.LossLandscape(LinearTasks(num_context=10), eta=50 / 33, test_length=40)
    # The chapter's formula: c = eta m2 M / N, and the worst of both worlds at four times the length.
    c = 50 / 33 / 3 * 4
    assert widget.relative_loss() == pytest.approx(1 - 2 * c + c**2 * (40 + 10 - 2 + 1.8) / 40, abs=1e-12)


def test_spectrum_flow_knows_the_best_step_of_gradient_descent():
    ratio = (100 - 1) / (100 + 1)
    widget = widgets.SpectrumFlow(100.0, "gd", num_layers=5)
    assert widget.shares("gd").abs().max().item() == pytest.approx(ratio**5, rel=1e-12)
    assert f"leaves at most {ratio**5:.1e}" in widget.describe()


def test_softmax_step_nears_the_centred_step_as_beta_shrinks(line):
    far, near = (widgets.SoftmaxStep(line, beta).distances()[1] for beta in (0.1, 0.01))
    assert near < 0.02 * far
    plain, centred = widgets.SoftmaxStep(line, 0.01, num_sinks=100_000).distances()
    assert plain < 0.001 < centred


def test_kernel_by_hand_finds_a_wave_that_softmax_attention_does_not():
    x = torch.linspace(-4, 4, 5, **EXACT)[None, :, None]
    y = 0.4 * torch.sin(x + 0.7)
    widget = widgets.KernelByHand(TaskBatch(x, y, x[:, :1], y[:, :1]), num_steps=40, eta=1.5)
    queries = torch.linspace(-5, 5, 11, **EXACT)
    errors = {
        name: (values - 0.4 * torch.sin(queries + 0.7)).abs().max()
        for name, values in widget.predictions(queries).items()
    }
    assert errors["limit"] < 0.002 > errors["layers"] and errors["softmax"] > 0.05
    assert f"layers of linear attention over features predict {0.4 * math.sin(0.7):.3f}" in widget.describe()


def test_copying_by_hand_says_how_much_misses():
    share = 10 * 2.718281828459045**-4
    assert f"{share / (1 + share):.1e} misses it" in widgets.CopyingByHand(4.0, 5).describe()


# --- what was recorded -----------------------------------------------------------------------------------------------


def test_recorded_products_have_the_recorded_losses():
    run, tasks = recorded("training_run"), LinearTasks()
    for member in range(len(run["seeds"])):
        scores = torch.zeros(len(run["steps"]), 11, 11, **EXACT)
        scores[..., :10] = torch.tensor(run["w_kq"][member], **EXACT) / 100
        outputs = torch.zeros_like(scores)
        outputs[:, 10] = torch.tensor(run["w_pv"][member], **EXACT) / 1000
        identity = torch.eye(11, **EXACT).expand(len(scores), 1, 11, 11)
        layer = mesa.AttentionWeights(identity, scores[:, None], identity, outputs[:, None])
        losses = mesa.population_loss(tasks, layer) / mesa.zero_loss(tasks)
        assert torch.allclose(losses, torch.tensor(run["loss"][member], **EXACT), atol=0.01)


def test_the_record_shows_three_seeds_that_land_and_one_that_waits():
    run, tasks = recorded("training_run"), LinearTasks()
    optimum, plateau = (f(tasks) / mesa.zero_loss(tasks) for f in (mesa.optimal_loss, mesa.plateau_loss))
    assert run["one_step"] == pytest.approx(optimum, abs=1e-4) and run["plateau"] == pytest.approx(plateau, abs=1e-4)
    ends = {seed: losses[-1] for seed, losses in zip(run["seeds"], run["loss"], strict=True)}
    assert ends.pop(2) == pytest.approx(plateau, rel=0.01)
    assert len(ends) == 3 and all(optimum - 1e-4 < loss < 1.005 * optimum for loss in ends.values())


def test_recorded_steps_lie_at_the_best_step_of_their_setting():
    for one in recorded("trained_steps"):
        tasks = LinearTasks(one["x_dim"], 1, one["num_context"], inputs=one["inputs"], noise_std=one["noise_std"])
        least = mesa.optimal_loss(tasks) / mesa.zero_loss(tasks)
        assert len(one["eta"]) + one["waiting"] == 4 and len(one["eta"]) >= 3
        assert all(abs(eta / mesa.optimal_eta(tasks) - 1) < 0.06 for eta in one["eta"])
        assert all(least - 1e-4 < loss < 1.01 * least for loss in one["loss"])


# --- refusals --------------------------------------------------------------------------------------------------------


def test_bad_input_is_refused_by_name(line, draw_batch, refused):
    wide = draw_batch(1, x_dim=2, y_dim=1, num_queries=1)
    for kind in (widgets.StepOnData, widgets.PropositionByHand, widgets.SoftmaxStep, widgets.KernelByHand):
        refused(
            lambda kind=kind: kind(wide), ValueError, "batch: expected one task with x_dim = y_dim = num_queries = 1"
        )
    refused(lambda: widgets.StepOnData(line, eta=float("nan")), ValueError, "eta: expected a finite number")
    refused(lambda: widgets.PropositionByHand(line, slot="one"), ValueError, "slot: expected one of 'start', 'zero'")
    refused(
        lambda: widgets.PropositionByHand(line, num_layers=0), ValueError, "num_layers: expected a positive integer"
    )
    refused(lambda: widgets.SoftmaxStep(line, 0.0), ValueError, "beta: expected a number > 0")
    refused(lambda: widgets.SoftmaxStep(line, num_sinks=-1), ValueError, "num_sinks: expected an integer >= 0")
    refused(lambda: widgets.SoftmaxStep(line, num_sinks=1.5), TypeError, "num_sinks: expected an integer >= 0")
    refused(lambda: widgets.SoftmaxStep(line, heads="three"), ValueError, "heads: expected one of")
    refused(lambda: widgets.SpectrumFlow(1.0), ValueError, "condition_number: expected a number above 1")
    refused(lambda: widgets.SpectrumFlow(method="adam"), ValueError, "method: expected one of")
    refused(lambda: widgets.SpectrumFlow(num_layers=13), ValueError, "num_layers: expected at most 12")
    refused(lambda: widgets.CopyingByHand(-1.0), ValueError, "sharpness: expected a number >= 0")
    refused(lambda: widgets.CopyingByHand(num_context=13), ValueError, "num_context: expected at most 12")
    refused(lambda: widgets.TrainingScrubber(seed=9), ValueError, "seed: expected one of 0, 1, 2, 3")
    refused(lambda: widgets.TrainingScrubber(record=99), ValueError, "record: expected a number from 0 to")
    refused(
        lambda: widgets.KernelByHand(line, input_range=0.01), ValueError, "batch: expected inputs from -0.01 to 0.01"
    )
    refused(lambda: widgets.KernelByHand(line, num_steps=41), ValueError, "num_steps: expected at most 40, got 41")
    refused(lambda: widgets.KernelByHand(line, lambda x: x.expand(-1, 9)), ValueError, "features: expected at most 8")
    odd = LinearTasks(input_range=0.5)
    refused(lambda: widgets.LossLandscape(odd), ValueError, "tasks: expected LinearTasks with x_dim, num_context")
    refused(lambda: widgets.LossLandscape(test_length=0), ValueError, "test_length: expected a positive integer")
