"""Settings of experiments: what the paper's code has, what can be overridden, and what is refused."""

import json
from dataclasses import replace

import pytest
import torch

import mesa_lib as mesa
from mesa_lib.experiments import (
    EXPERIMENTS,
    SCALES,
    AttentionNetwork,
    CopyingNetwork,
    Evaluation,
    Objective,
    SettingError,
    Settings,
    experiment,
    override,
)
from mesa_lib.experiments.settings import as_plain, from_plain, keys


def every_part():
    for name, one in EXPERIMENTS.items():
        for scale in SCALES:
            if scale == "smoke" or scale in one.scales:
                for part, settings in one.parts(scale).items():
                    yield pytest.param(settings, id=f"{name}-{scale}-{part}")


# The released code's table, by hand: steps, learning rate, clip of the gradient, variance of the start times fan-in.
RELEASED = {
    ("figure-1", "one-layer"): (5_000, 1e-3, 1e-3, 0.002),
    ("figure-2", "one-layer"): (5_000, 1e-3, 1e-3, 0.002),
    ("figure-3", "two-layers"): (5_000, 1e-3, 1e-3, 0.001),
    ("figure-3", "five-layers"): (50_000, 5e-4, 10.0, 0.0004),
    ("figure-4", "block"): (20_000, 1e-3, 100.0, None),
    ("figure-4", "mlp-and-step"): (20_000, 3e-4, 100.0, None),
    ("figure-5", "softmax-first"): (10_000, 1e-3, 10.0, 0.01),
    ("softmax", "one-head"): (5_000, 1e-3, 1e-3, 0.002),
    ("softmax", "two-heads"): (5_000, 1e-3, 1e-3, 0.002),
    ("plateaus", "one-head"): (5_000, 1e-3, 1e-3, 0.002),
    ("plateaus", "two-heads"): (5_000, 1e-3, 1e-3, 0.002),
}


@pytest.mark.parametrize(("name", "part"), RELEASED)
def test_the_papers_scale_is_that_of_the_released_code(name, part):
    settings = experiment(name).parts("paper")[part]
    steps, rate, clip, variance = RELEASED[name, part]
    training = settings.training
    assert (training.num_steps, training.learning_rate, training.clip_norm) == (steps, rate, clip)
    assert training.batch_size == 2048 and settings.objective.kind == "sampled" and settings.tasks.num_queries == 1
    assert training.betas == ((0.9, 0.999) if part == "mlp-and-step" else (0.9, 0.98))
    assert {training.rate_at(step) for step in (0, steps // 2, steps - 1)} == {1.0}
    if isinstance(settings.tasks, mesa.LinearTasks):
        assert (settings.tasks.x_dim, settings.tasks.num_context, settings.tasks.input_range) == (10, 10, 0.5)
        assert settings.evaluation.num_tasks == 10_000
        fan_in = 20 if name == "figure-5" else 11
        assert settings.network.start_scale**2 * fan_in == pytest.approx(variance, rel=1e-12)


def test_every_part_of_the_papers_scale_is_in_the_table():
    parts = {(name, part) for name, one in EXPERIMENTS.items() for part in one.scales.get("paper", {})}
    assert parts == set(RELEASED)


def test_tokens_are_clipped_where_the_released_code_does_it():
    clips = {
        (name, part): settings.network.token_clip
        for name, one in EXPERIMENTS.items()
        for part, settings in one.scales.get("paper", {}).items()
        if isinstance(settings.network, AttentionNetwork)
    }
    assert {key for key, clip in clips.items() if clip == 10.0} == {("figure-3", "five-layers")}


def test_clipped_tokens_are_those_of_a_loop_over_layers(draw_batch, draw):
    layers = [mesa.AttentionWeights(*(0.8 * draw(1, 5, 5) for _ in range(4))) for _ in range(2)]
    batch = draw_batch(6)
    context, query = torch.cat([batch.context_x, batch.context_y], -1), torch.nn.functional.pad(batch.query_x, (0, 2))
    for layer in layers:
        tokens = mesa.linear_self_attention(layer, mesa.Tokens(context, query))
        context, query = tokens.context.clamp(-1.5, 1.5), tokens.query.clamp(-1.5, 1.5)
    network = mesa.TokenTransformer(layers, [mesa.linear_attention] * 2, token_clip=1.5)
    assert (query.abs() == 1.5).any(), "nothing was clipped"
    torch.testing.assert_close(network(batch), -query[..., -2:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("settings", list(every_part()))
def test_settings_survive_a_json_file(settings):
    plain = json.loads(json.dumps(as_plain(settings)))
    again = from_plain(plain)
    assert as_plain(again) == as_plain(settings)
    assert type(again.tasks) is type(settings.tasks) and type(again.network) is type(settings.network)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_texts_overrides_apply_to_the_papers_scale(name):
    one = experiment(name)
    if not one.text:
        assert "paper" not in one.scales
        return
    before, after = one.parts("paper"), override(one.parts("paper"), one.text)
    assert all(as_plain(before[part]) != as_plain(after[part]) for part in before)


PARTS = {
    "a": experiment("figure-2").parts("book")["one-layer"],
    "b": experiment("figure-3").parts("book")["five-layers"],
}


def test_an_override_changes_what_it_names_and_nothing_else():
    after = override(PARTS, ["training.num_steps=500", "b:clip_norm=2", "inputs=normal", "betas=0.5,0.75", "decay=no"])
    for part in PARTS:
        expected = keys(PARTS[part]) | {
            "training.num_steps": 500, "tasks.inputs": "normal", "training.betas": (0.5, 0.75), "training.decay": False
        }  # fmt: skip
        if part == "b":
            expected["training.clip_norm"] = 2.0
        assert keys(after[part]) == expected
    assert PARTS["a"].training.num_steps == 400


def test_overrides_that_need_each_other_may_come_in_any_order():
    for order in (["num_steps=5", "warmup_steps=2"], ["warmup_steps=2", "num_steps=5"]):
        assert override(PARTS, order)["a"].training.num_steps == 5


def test_a_matrix_may_be_given():
    (tasks,) = {one.tasks for one in override({"a": PARTS["a"]}, ["x_dim=2", "teacher_mean=[[1, 2]]"]).values()}
    assert tasks.teacher_mean == ((1.0, 2.0),)
    assert override({"a": PARTS["a"]}, ["teacher_mean=none"])["a"].tasks == PARTS["a"].tasks


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("nmu_steps=3", "there is no setting 'nmu_steps'; near it: training.num_steps"),
        ("training.num_stpes=3", "there is no setting 'training.num_stpes'; near it: training.num_steps"),
        ("zzz=1", "there is no setting 'zzz'; there are: evaluation.damping, "),
        ("c:num_steps=1", "--set c:num_steps=1: there is no part 'c'; there are: a, b"),
        ("num_steps", "--set num_steps: expected key=value"),
        ("=3", "--set =3: expected key=value"),
        ("num_steps=ten", "--set training.num_steps=ten: expected an integer, got 'ten'"),
        ("num_steps=1e3", "--set training.num_steps=1e3: expected an integer, got '1e3'"),
        ("num_steps=true", "expected an integer, got 'true'"),
        ("num_steps=0", "TrainingSettings.num_steps: expected a positive integer, got 0"),
        ("num_steps=5", "warmup_steps: expected fewer than num_steps = 5, got 20"),
        ("learning_rate=fast", "--set training.learning_rate=fast: expected a number, got 'fast'"),
        ("learning_rate=-1", "TrainingSettings.learning_rate: expected a number > 0, got -1.0"),
        ("learning_rate=1e999", "expected a finite number, got inf"),
        ("decay=perhaps", "--set training.decay=perhaps: expected true or false, got 'perhaps'"),
        ("betas=0.9", "--set training.betas=0.9: expected 2 numbers with a comma between them, got '0.9'"),
        ("betas=0.9,x", "expected 2 numbers with a comma between them, got '0.9,x'"),
        ("inputs=gauss", "expected one of 'uniform', 'normal', 'laplace', 'rademacher', got 'gauss'"),
        ("teacher_mean=3", "expected a matrix such as [[1, 0], [0, 1]], or none, got '3'"),
        ("kind=least", "--set objective.kind=least: expected one of 'expected', 'sampled', 'clamped', got 'least'"),
        ("attention=softmax", "objective.kind: expected 'sampled' for a network that is not linear in the query"),
        ("b:num_loops=3", "evaluation.num_loops: expected 0 but for one layer of linear attention, got 3"),
        ("num_signals=3", "evaluation.num_signals: expected 0 but for a CopyingNetwork, got 3"),
    ],
)
def test_a_wrong_override_is_refused_in_words(assignment, message):
    with pytest.raises(SettingError) as caught:
        override(PARTS, [assignment])
    assert message in str(caught.value)


def test_groups_that_do_not_go_together_are_refused(refused):
    linear, training = mesa.LinearTasks(), mesa.TrainingSettings()
    sampled = Objective("sampled")
    refused(
        lambda: Settings(mesa.SineTasks(), AttentionNetwork(), training),
        SettingError,
        "network: AttentionNetwork does not fit SineTasks",
    )
    refused(
        lambda: Settings(linear, CopyingNetwork(), training, sampled, Evaluation(reference="gd++")),
        SettingError,
        "evaluation.reference: expected 'none' or 'one step' for a CopyingNetwork, got 'gd++'",
    )
    refused(lambda: AttentionNetwork(looped=True, token_clip=1.0), ValueError, "looped: expected False with softmax")
    refused(lambda: AttentionNetwork(looped=True, averaging=True), ValueError, "averaging: expected False for a looped")


def test_plain_settings_of_another_version_are_refused():
    plain = as_plain(PARTS["a"])
    plain["training"]["momentum"] = 0.5
    with pytest.raises(SettingError, match="expected those of this version of mesa_lib"):
        from_plain(plain)


def test_an_unknown_experiment_or_scale_is_refused_with_the_near_ones():
    with pytest.raises(SettingError, match="there is no 'figure2'; near it: figure-2"):
        experiment("figure2")
    with pytest.raises(SettingError, match="expected one of 'book', 'smoke' for garg-networks, got 'paper'"):
        experiment("garg-networks").parts("paper")


def test_the_books_scale_of_figure_2_is_the_chapters():
    """What the chapter on training runs in its fifth cell."""
    settings = experiment("figure-2").parts("book")["one-layer"]
    chapter = mesa.TrainingSettings(num_steps=400, batch_size=64)
    assert replace(settings.training, loss=chapter.loss) == chapter and settings.tasks == mesa.LinearTasks()
    start = settings.network.build(settings.tasks, [3]).layers()[0]
    assert torch.equal(start.w_k, mesa.random_weights(10, 1, seeds=[3], scale=0.0135).w_k)
