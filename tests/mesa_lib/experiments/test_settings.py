"""Settings of experiments: what the paper's code has, what can be overridden, and what is refused."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch

import mesa_lib as mesa
from mesa_lib.experiments import (
    EXPERIMENTS,
    SCALES,
    AttentionNetwork,
    CopyingNetwork,
    Evaluation,
    FeatureNetwork,
    GDPlusPlusNetwork,
    Objective,
    SettingError,
    Settings,
    experiment,
    override,
)
from mesa_lib.experiments.measures import levels
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
    ("figure-7", "ten-layers"): (5_000, 5e-4, 10.0, 0.0002),
    ("gd-plus-plus", "two-layers"): (1_000, 1e-3, 1e-3, None),
    ("gd-plus-plus", "five-layers"): (30_000, 5e-4, 10.0, None),
}


@pytest.mark.parametrize(("name", "part"), RELEASED)
def test_the_papers_scale_is_that_of_the_released_code(name, part):
    settings = experiment(name).parts("paper")[part]
    steps, rate, clip, variance = RELEASED[name, part]
    training = settings.training
    assert (training.num_steps, training.learning_rate, training.clip_norm) == (steps, rate, clip)
    assert training.batch_size == (512 if name == "gd-plus-plus" else 2048)
    assert settings.objective.kind == "sampled" and settings.tasks.num_queries == 1
    baseline = name == "gd-plus-plus" or part == "mlp-and-step"
    assert training.betas == ((0.9, 0.999) if baseline else (0.9, 0.98))
    assert {training.rate_at(step) for step in (0, steps // 2, steps - 1)} == {1.0}
    if isinstance(settings.tasks, mesa.LinearTasks):
        assert (settings.tasks.x_dim, settings.tasks.num_context, settings.tasks.input_range) == (10, 10, 0.5)
        assert settings.evaluation.num_tasks == 10_000
        if variance is None:  # where GD++ starts: P = lr / N for targets, lr / N^2 for inputs
            assert settings.network.gamma == pytest.approx(settings.network.eta / 10**2, rel=1e-12)
            return
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
    clipped = {("figure-3", "five-layers"), ("figure-7", "ten-layers")}
    assert clips == {key: 10.0 if key in clipped else 0.0 for key in clips}


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


def test_clipped_tokens_may_be_looped():
    """Where nothing is clipped, it is the looped network; and what trains one layer trains all."""
    tasks = mesa.LinearTasks(4, num_context=5, input_range=0.5)
    settings = mesa.TrainingSettings(num_steps=5, batch_size=8, warmup_steps=0, loss=mesa.sampled_query_loss)
    networks = [AttentionNetwork(3, looped=True, start_scale=0.3, token_clip=clip) for clip in (0.0, 100.0)]
    free, clipped = (mesa.train(one.build(tasks, [0, 1]), tasks, [0, 1], settings).learner for one in networks)
    assert len(list(clipped.parameters())) == 4
    fresh = tasks.sample(20, mesa.generator(0, "validation tasks"))
    torch.testing.assert_close(clipped(fresh), free(fresh), rtol=1e-4, atol=1e-5)


def test_each_network_is_built_as_its_chapter_builds_it(draw_batch):
    tasks, seeds = mesa.LinearTasks(num_queries=2, constant_input=True), [0, 1]
    batch = tasks.sample(6, mesa.generator(0, "validation tasks"))
    random = mesa.random_weights(11, 1, seeds, 2, 0.1)

    with_sink = AttentionNetwork(num_heads=2, start_scale=0.1, attention="softmax", sink=1.0).build(tasks, seeds)
    by_hand = mesa.TokenTransformer([random], [partial(mesa.softmax_attention, sink=1.0)])
    assert torch.equal(with_sink(batch), by_hand(batch))

    start = AttentionNetwork(num_heads=2, start_scale=0.1, learned_start=True).build(tasks, seeds)
    assert isinstance(start, mesa.LearnedStart) and not start.start.any()
    assert torch.equal(start(batch), mesa.FreeTransformer([random])(batch))

    tied = GDPlusPlusNetwork(3, looped=True, eta=2.0, gamma=0.1).build(mesa.LinearTasks(5), seeds)
    few = draw_batch(4, x_dim=5, y_dim=1, num_context=10).to(torch.float32)
    steps = mesa.gd_plus_plus(few, etas=[2.0] * 3, gammas=[0.1] * 2)
    torch.testing.assert_close(tied(few), steps.expand(2, -1, -1, -1), rtol=1e-5, atol=1e-5)
    assert tied.log_etas.shape == (2, 1)

    equal = FeatureNetwork(5, 7, equal_start=True).build(mesa.SineTasks(), seeds)
    (layer,) = equal.layers()
    assert torch.equal(layer.w_q, layer.w_k) and torch.equal(layer.w_k, mesa.random_weights(5, 1, seeds, scale=0.1).w_k)


def test_scores_by_place_do_not_see_what_stands_there():
    tasks = mesa.LinearTasks(3, num_context=4)
    network = CopyingNetwork("one-hot", by_place=True).build(tasks, [0])
    first = network.layers()[0]
    assert not first.w_k[..., :3].any() and not first.w_q[..., 12:].any() and first.w_k[..., 3:12].all()


def test_theorys_levels_know_shapes_and_constants():
    parts = experiment("other-tasks").parts("book")
    shape, biases = levels(parts["shape"]), levels(parts["biases"])
    assert biases == {"one gradient step": mesa.optimal_loss(mesa.LinearTasks())}
    # For normal inputs the best G leaves 1/2 tr C - 1/2 tr C^2 G, with G^-1 = (1 + 1/N) C + (tr C / N) I.
    variances = torch.tensor(parts["shape"].tasks.input_covariance, dtype=torch.float64).diagonal()
    left = variances - variances.square() / (1.1 * variances + variances.sum() / 10)
    assert shape["one step, times the best matrix"] == pytest.approx(float(left.sum() / 2), rel=1e-12)
    assert variances.sum() == pytest.approx(10 / 3, abs=1e-5)
    assert variances[0] / variances[-1] == pytest.approx(10, rel=1e-5)


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
        ("kind=least", "kind=least: expected one of 'expected', 'sampled', 'clamped', 'geman-mcclure', got 'least'"),
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
    refused(lambda: AttentionNetwork(averaging=True, token_clip=1.0), ValueError, "averaging: expected False with soft")
    refused(
        lambda: AttentionNetwork(looped=True, averaging=True), ValueError, "averaging: expected False for a network"
    )
    refused(lambda: AttentionNetwork(sink=1.0), ValueError, "sink: expected 0 for linear attention, got 1.0")
    refused(lambda: Settings(mesa.SineTasks(), GDPlusPlusNetwork(), training), SettingError, "network: GDPlusPlusNetw")


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


@pytest.mark.parametrize(
    ("kind", "loss"),
    [
        ("expected", mesa.expected_query_loss),
        ("sampled", mesa.sampled_query_loss),
        ("clamped", mesa.clamped_query_loss(0.2)),
        ("geman-mcclure", mesa.geman_mcclure_query_loss(0.2)),
    ],
)
def test_each_objective_is_its_loss(kind, loss):
    tasks = mesa.LinearTasks()
    batch = tasks.sample(20, mesa.generator(0, "training tasks"))
    network = mesa.FreeTransformer([mesa.random_weights(10, 1, [0], scale=0.1)])
    assert torch.equal(Objective(kind, cap=0.2).loss(network, batch, tasks), loss(network, batch, tasks))
