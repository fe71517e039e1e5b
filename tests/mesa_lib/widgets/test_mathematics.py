"""The widgets' JavaScript computes what mesa_lib computes, to 1e-9, on random inputs."""

import math

import pytest
import torch

import mesa_lib as mesa
from mesa_lib import LinearTasks, TaskBatch, widgets
from mesa_lib.networks import linear_attention, one_hot_codes, softmax_attention
from mesa_lib.widgets.landscape import LAWS
from mesa_lib.widgets.spectrum import NAMES

TOLERANCE = 1e-9
SEEDS = range(5)
EXACT = {"dtype": torch.float64}


def numbers(*shape, seed, low=-2.0, high=2.0):
    """Uniform float64 numbers."""
    return low + (high - low) * torch.rand(*shape, generator=torch.Generator().manual_seed(seed), **EXACT)


def line(seed: int, count: int = 5) -> TaskBatch:
    """One task with one input, one target and one query, all numbers random."""
    x, y = numbers(2, 1, count + 1, 1, seed=seed)
    return TaskBatch(x[:, :count], y[:, :count], x[:, count:], y[:, count:])


def lists(batch: TaskBatch) -> dict[str, list[float]]:
    return {"x": batch.context_x.flatten().tolist(), "y": batch.context_y.flatten().tolist()}


def agree(ours, theirs) -> None:
    """Assert that what JavaScript returned equals a tensor or a number of mesa_lib."""
    found = torch.as_tensor(ours, **EXACT)
    expected = torch.as_tensor(theirs, **EXACT).detach()
    assert found.shape == expected.shape
    assert (found - expected).abs().max() <= TOLERANCE * max(1.0, float(expected.abs().max()))


# --- regression -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_on_a_line(javascript, seed):
    batch, (w_0, eta) = line(seed), numbers(2, seed=seed + 100).tolist()
    weights = torch.tensor([[w_0]], **EXACT)
    step = -eta * mesa.loss_gradient(weights, batch)[0]
    given = lists(batch) | {"w": w_0, "eta": eta, "step": step.item()}
    agree(javascript("regression", "m.contextLoss(w, x, y)", **given), mesa.context_loss(weights, batch).item())
    agree(javascript("regression", "m.lossGradient(w, x, y)", **given), mesa.loss_gradient(weights, batch).item())
    moved = mesa.step_moved_targets(batch, step).flatten()
    agree(javascript("regression", "m.movedTargets(step, x, y)", **given), moved)
    descended = mesa.gradient_descent_weights(batch, eta, 4, weights).item()
    agree(javascript("regression", "m.gradientDescent(w, eta, 4, x, y)", **given), descended)


# --- Proposition 1 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x_dim", "y_dim"), [(1, 1), (3, 2)])
def test_a_layer_of_linear_self_attention(javascript, x_dim, y_dim):
    token = x_dim + y_dim
    context, query = numbers(1, 6, token, seed=1), numbers(1, 2, token, seed=2)
    factors = [numbers(1, token, token, seed=seed) for seed in (3, 4, 5, 6)]
    moved = mesa.linear_self_attention(mesa.AttentionWeights(*factors), mesa.Tokens(context, query))
    names = dict(zip(("wK", "wQ", "wV", "wP"), (factor[0].tolist() for factor in factors), strict=True))
    tokens = {"context": context[0].tolist(), "query": query[0].tolist()}
    found = javascript("attention", "m.linearSelfAttention(weights, tokens)", weights=names, tokens=tokens)
    agree(found["context"], moved.context[0])
    agree(found["query"], moved.query[0])
    prediction = mesa.read_prediction(moved, y_dim)[0, 0]
    agree(javascript("attention", "m.readPrediction(token, size)", token=found["query"][0], size=y_dim), prediction)


@pytest.mark.parametrize(("x_dim", "y_dim"), [(1, 1), (3, 2)])
def test_the_weights_of_proposition_1(javascript, x_dim, y_dim):
    w_0 = numbers(y_dim, x_dim, seed=7)
    layer = mesa.gd_construction(1.7, x_dim, y_dim, 6, w_0)
    found = javascript("attention", "m.gdConstruction(1.7, start, 6)", start=w_0.tolist())
    for name, factor in {"wK": layer.w_k, "wQ": layer.w_q, "wV": layer.w_v, "wP": layer.w_p}.items():
        agree(found[name], factor[0])


@pytest.mark.parametrize("slot", ["start", "zero"])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_proposition_1_with_its_conditions_broken(javascript, slot, inside, layers):
    widget = widgets.PropositionByHand(line(8), 0.7, 1.3, slot=slot, query_inside=inside, num_layers=layers)
    given = {"x": widget.x, "y": widget.y, "queryX": widget.x_q, "w0": 0.7, "eta": 1.3, "slot": slot}
    found = javascript("proposition_by_hand", "m.forward(given)", given=given | {"inside": inside, "layers": layers})
    agree([found["prediction"], found["stepped"] * widget.x_q], widget.predictions())


# --- the loss of one step ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", LAWS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_loss_of_one_step(javascript, inputs, seed):
    d, n, length = (1 + int(40 * value) for value in numbers(3, seed=seed, low=0, high=1))
    eta, noise = numbers(2, seed=seed + 50, low=0, high=3).tolist()
    tasks = LinearTasks(d, 1, n, inputs=inputs, noise_std=noise)
    zero = mesa.zero_loss(tasks)
    given = {"tasks": {"xDim": d, "numContext": n, "inputs": inputs, "noise": noise}, "eta": eta, "length": length}
    agree(javascript("one_layer", "m.optimalEta(tasks)", **given), mesa.optimal_eta(tasks))
    agree(javascript("one_layer", "m.optimalLoss(tasks)", **given), mesa.optimal_loss(tasks) / zero)
    agree(javascript("one_layer", "m.relativeLoss(tasks, eta)", **given), mesa.population_loss(tasks, eta) / zero)
    at_length = LinearTasks(d, 1, length, inputs=inputs, noise_std=noise)
    layer = mesa.gd_construction(eta, d, 1, n, **EXACT)  # P = eta / N, whatever it is shown
    found = javascript("one_layer", "m.relativeLoss(tasks, eta, length)", **given)
    agree(found, mesa.population_loss(at_length, layer) / zero)


# --- eigenvalues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_gd_plus_plus_on_eigenvalues(javascript, seed):
    spectrum = numbers(6, seed=seed, low=0, high=1)
    etas, gammas = (
        numbers(4, seed=seed + 10, low=0, high=2).tolist(),
        numbers(3, seed=seed + 20, low=0, high=1).tolist(),
    )
    schedule = {"etas": etas, "gammas": gammas}
    states = javascript("spectral", "m.gdPlusPlus(values, schedule)", values=spectrum.tolist(), schedule=schedule)
    expected = mesa.spectral_dynamics(spectrum, mesa.Schedule(tuple(etas), tuple(gammas)), 1)
    agree([state["shares"] for state in states], torch.stack([state.residual for state in expected]))
    agree([state["moved"] for state in states], torch.stack([state.eigenvalues for state in expected]))


@pytest.mark.parametrize("method", NAMES)
@pytest.mark.parametrize(("kappa", "layers"), [(3.0, 1), (30.0, 2), (30.0, 4), (2000.0, 9)])
def test_methods_on_eigenvalues(javascript, method, kappa, layers):
    widget = widgets.SpectrumFlow(kappa, method, num_layers=layers, eta=0.9, gamma=0.2)
    given = {"method": method, "settings": {"kappa": kappa, "eta": 0.9, "gamma": 0.2}, "layers": layers}
    states = javascript("spectrum_flow", "m.run(method, m.spectrum(settings.kappa), settings, layers)", **given)
    assert len(states) == layers + 1
    # The widget in Python goes by way of a context and of mesa_lib's algorithms.
    agree(states[-1]["shares"], widget.shares(method))


# --- softmax ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heads", ["one", "one-sided", "two"])
@pytest.mark.parametrize("sinks", [0, 1, 60])
@pytest.mark.parametrize("beta", [0.05, 1.0, 15.0])
def test_softmax_heads(javascript, heads, sinks, beta):
    widget = widgets.SoftmaxStep(line(11), beta, heads, num_sinks=sinks, eta=1.2)
    queries = torch.linspace(-1, 1, 9, **EXACT)
    settings = {"heads": heads, "beta": beta, "eta": 1.2, "sinks": sinks}
    given = {"x": widget.x, "y": widget.y, "queries": queries.tolist(), "settings": settings}
    found = javascript("softmax", "queries.map((query) => m.attentionStep(settings, x, y, query))", **given)
    agree(found, widget.predictions(queries))


def test_softmax_steps_and_their_distances(javascript):
    batch = line(12)
    widget = widgets.SoftmaxStep(batch, 0.7, num_sinks=2, eta=1.2)
    given = {"x": widget.x, "y": widget.y, "settings": {"heads": "two", "beta": 0.7, "eta": 1.2, "sinks": 2}}
    shown = TaskBatch(*(torch.tensor(values, **EXACT).view(1, -1, 1) for values in (widget.x, widget.y, [1.0], [0.0])))
    plain = javascript("softmax", "m.stepSlope(1.2, x, y)", **given)
    centred = javascript("softmax", "m.stepSlope(1.2, x, y, 1)", **given)
    agree(plain, mesa.gradient_descent_weights(shown, 1.2).item())
    agree(centred, mesa.centred_gradient_descent(shown, 1.2).item())
    expression = "[m.distance(settings, x, y, plain), m.distance(settings, x, y, centred)]"
    found = javascript("softmax_step", expression, **given, plain=plain, centred=centred)
    agree(found, widget.distances())


# --- kernels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_attention_over_features(javascript, seed, steps):
    x, y = numbers(1, 6, 1, seed=seed, low=-5, high=5), numbers(1, 6, 1, seed=seed + 30)
    batch = TaskBatch(x, y, x[:, :1], y[:, :1])
    widget = widgets.KernelByHand(batch, eta=1.1, beta=4.0, num_steps=max(steps, 1))
    widget.num_steps = steps
    given = {"x": widget.x, "y": widget.y, "features": widget.features, "range": 5.0, "eta": 1.1, "steps": steps}
    found = javascript("kernel_by_hand", "m.solve(given)", given=given | {"beta": 4.0})
    expected = widget.predictions(torch.tensor(found["grid"], **EXACT))
    agree(found["descended"], expected["layers"])
    agree(found["limit"], expected["limit"])
    agree(found["smoothed"], expected["softmax"])
    moment = torch.tensor(javascript("kernels", "m.featuresAt(features, range, x)", **given), **EXACT)
    agree(found["largestStep"], 2 / torch.linalg.eigvalsh(moment.T @ moment / 6).max())
    losses = [0.5 * (moment @ torch.zeros(2, **EXACT) - torch.tensor(widget.y, **EXACT)).square().mean()]
    agree(found["losses"][0], losses[0])


def test_least_squares_of_least_norm_where_features_coincide(javascript):
    features = numbers(4, 3, seed=40)
    features[:, 2] = features[:, 0] - 2 * features[:, 1]
    y = numbers(4, seed=41)
    found = javascript("kernels", "m.leastSquares(features, y)", features=features.tolist(), y=y.tolist())
    agree(found, torch.linalg.lstsq(features, y[:, None], driver="gelsd").solution[:, 0])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_eigenvalues_of_a_symmetric_matrix(javascript, size):
    factor = numbers(size, size, seed=42)
    matrix = factor + factor.T
    found = javascript("kernels", "m.eigen(matrix)", matrix=matrix.tolist())
    values, vectors = (torch.tensor(found[name], **EXACT) for name in ("values", "vectors"))
    agree(values.sort().values, torch.linalg.eigvalsh(matrix))
    agree(matrix @ vectors, vectors * values)


# --- copying and induction --------------------------------------------------------------------------------------------


def shares(weights, context, readers, width):
    """How a softmax layer with a sink of weight one attends, read off by values that are the keys' codes of places."""
    token = context.shape[-1]
    select = torch.zeros(token, token, **EXACT)
    select[:width, 1 : 1 + width] = torch.eye(width, **EXACT)
    first = mesa.AttentionWeights(weights.w_k[:1], weights.w_q[:1], select[None], torch.eye(token, **EXACT)[None])
    return softmax_attention(first, context, readers, sink=1.0)[0, :, :width]


@pytest.mark.parametrize("direction", ["next", "previous"])
@pytest.mark.parametrize(("count", "sharpness"), [(2, 0.5), (5, 4.0), (7, 30.0)])
def test_the_attention_of_a_layer_that_copies(javascript, direction, count, sharpness):
    places = 2 * count + 1
    codes = one_hot_codes(places, torch.float64)
    tokens = mesa.interleaved_tokens(line(13, count), codes)
    layer = mesa.copying_construction(codes, 1, 1, sharpness, direction)
    readers = torch.cat([tokens.context, tokens.query], dim=1)
    expected = shares(layer, tokens.context, readers, places)[:, :-1]
    given = {"direction": direction, "count": count, "k": sharpness}
    expression = "m.copyingAttention(2 * count + 1, 2 * count, k, m.pairTarget(direction, count))"
    found = javascript("copying", expression, **given)
    agree(found, expected)
    missed = javascript("copying", "m.missedWeight(k, 2 * count)", **given)
    agree(missed, mesa.missed_weight(sharpness, 2 * count))
    reader = 0 if direction == "next" else 1
    agree(1 - found[reader][1 - reader], missed)


@pytest.mark.parametrize("sharpness", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("text", ["a b a c a b a", "one two", "x y z x y x x y z w x"])
def test_induction_on_words(javascript, sharpness, text):
    sequence = text.split()
    vocabulary = list(dict.fromkeys(sequence))
    symbols = torch.tensor([[vocabulary.index(word) for word in sequence]])
    embedding, codes = torch.eye(len(vocabulary), **EXACT), one_hot_codes(len(sequence), torch.float64)
    tokens = mesa.sequence_tokens(symbols, embedding, codes)
    copy, step = mesa.induction_construction(embedding, codes, sharpness)
    copied = tokens.context + softmax_attention(copy, tokens.context, tokens.context, sink=1.0)
    answers = linear_attention(step, copied, copied[:, -1:])[0, 0, -len(vocabulary) :]
    found = javascript("copying", "m.inductionScores(sequence, k)", sequence=sequence, k=sharpness)
    assert found["vocabulary"] == vocabulary
    agree(found["scores"], -answers)
    counts = mesa.bigram_counts(symbols, len(vocabulary))[0, :, symbols[0, -1]]
    agree(javascript("copying", "m.followers(sequence)", sequence=sequence), counts)


def test_words_of_a_text(javascript):
    text = "Don't stop: the Käse, the 2nd!\n\n(the end)"
    assert javascript("copying", "m.words(text)", text=text) == [
        "don't",
        "stop",
        "the",
        "käse",
        "the",
        "2nd",
        "the",
        "end",
    ]
    assert javascript("copying", "m.words('…')") == []


# --- records ----------------------------------------------------------------------------------------------------------


def test_the_scrubber_reads_the_record(javascript):
    run = widgets.TrainingScrubber().run
    for member, seed in enumerate(run["seeds"]):
        found = javascript("training_scrubber", "m.recordAt(seed, 5)", seed=seed)
        assert found["step"] == run["steps"][5]
        agree([found["loss"], found["cosine"]], [run["loss"][member][5], run["cosine"][member][5]])
        agree(found["wKQ"], torch.tensor(run["w_kq"][member][5], **EXACT) / 100)
        agree(found["wPV"], torch.tensor(run["w_pv"][member][5], **EXACT) / 1000)


def test_trained_layers_are_found_by_their_setting(javascript):
    given = {"tasks": {"xDim": 10, "numContext": 10, "inputs": "normal", "noise": 0}}
    assert javascript("loss_landscape", "m.trainedLayers(tasks)", **given)["inputs"] == "normal"
    given["tasks"]["noise"] = 0.5
    assert javascript("loss_landscape", "m.trainedLayers(tasks)", **given) is None


# --- numbers as readers see them --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("m.fixed(-0.004)", "0.00"),
        ("m.fixed(-0.006)", "−0.01"),
        ("m.fixed(12.345, 1)", "12.3"),
        ("m.fixed(2e6)", "2.0·10⁶"),
        ("m.fixed(NaN)", "not a number"),
        ("m.fixed(-Infinity)", "−∞"),
        ("m.signed(0.3)", "+0.30"),
        ("m.signed(-0.3)", "−0.30"),
        ("m.signed(0)", "0.00"),
        ("m.short(4.54e-7)", "4.5·10⁻⁷"),
        ("m.short(0.0123)", "0.012"),
        ("m.short(0.345)", "0.34"),
        ("m.short(7.25)", "7.3"),
        ("m.short(120)", "120"),
    ],
)
def test_numbers_in_words(javascript, expression, text):
    assert javascript("numbers", expression) == text


def test_ticks_are_round_and_inside(javascript):
    assert javascript("numbers", "m.ticks(-1.15, 1.15)") == pytest.approx([-1, -0.5, 0, 0.5, 1])
    assert javascript("numbers", "m.ticks(0, 7.5)") == pytest.approx([0, 2, 4, 6])
    assert javascript("numbers", "m.logTicks(1e-10, 3)") == pytest.approx([1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1])
    assert javascript("numbers", "m.logTicks(1e-10, 10)") == pytest.approx([1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1])
    places = javascript("numbers", "m.ticks(0.4919, 0.5069)")
    assert all(0.4919 <= place <= 0.5069 and math.isclose(1000 * place, round(1000 * place)) for place in places)
