// Softmax heads as a gradient step: what small scores make of it, what a second head cancels, what a sink changes.
import { change, choice, slider } from "./controls.js";
import { draggableExamples } from "./examples.js";
import { frame } from "./frame.js";
import { legend } from "./legend.js";
import { fixed, linspace, short } from "./numbers.js";
import { panel } from "./plot.js";
import { attentionStep, softmax, stepSlope } from "./softmax.js";

const QUERIES = linspace(-1, 1, 41);
const HEADS = [
  ["one", "one head, at β"],
  ["one-sided", "two heads, at β and 0"],
  ["two", "two heads, at β and −β"],
];

/** Root mean square distance, over queries from -1 to 1, between the layer and the line of a slope. */
export function distance(settings, x, y, slope) {
  const squares = QUERIES.map((query) => (attentionStep(settings, x, y, query) - slope * query) ** 2);
  return Math.sqrt(squares.reduce((sum, value) => sum + value, 0) / squares.length);
}

export function render({ model, el }) {
  const answers = panel({
    title: "prediction for every query",
    x: { label: "query x", domain: [-1, 1] },
    y: { domain: [-1.5, 1.5] },
  });
  const weights = panel({
    title: "attention to each example",
    x: { label: "input x of the example", domain: [-1.1, 1.1] },
    y: { domain: [0, 1] },
  });
  const examples = draggableExamples(answers, model, "other");
  const query = answers.handle({
    role: "query",
    name: "query",
    steps: [0.05, 0],
    move: ([place]) => change(model, { x_q: place }),
  });

  function draw() {
    const [x, y, place, beta, heads] = ["x", "y", "x_q", "beta", "heads"].map((key) => model.get(key));
    const [sinks, eta] = [model.get("num_sinks"), model.get("eta")];
    const settings = { heads, beta, eta, sinks };
    const [plain, centred] = [stepSlope(eta, x, y), stepSlope(eta, x, y, 1)];
    const limit = stepSlope(eta, x, y, x.length / (x.length + sinks));
    const here = attentionStep(settings, x, y, place);

    answers.clear();
    examples.place();
    answers.curve((at) => plain * at, "gd", 2);
    answers.curve((at) => centred * at, "constructed", 2);
    answers.curve((at) => attentionStep(settings, x, y, at), "trained", 81);
    query.place([place, Math.min(1.5, Math.max(-1.5, here))], `query ${fixed(place)}, prediction ${fixed(here, 3)}`);

    const attention = (sharpness) => softmax(x.map((key) => sharpness * key * place), sinks);
    const shown = { one: [beta], "one-sided": [beta, 0], two: [beta, -beta] }[heads].map(attention);
    weights.rescale({ y: { domain: [0, Math.max(0.3, 1.1 * Math.max(...shown.flat()))] } });
    weights.clear();
    x.forEach((xi, i) => {
      weights.segment([xi, 0], [xi, shown[0][i]], "trained", { style: "stroke-width: 4" });
      if (shown[1]) weights.dot([xi, shown[1][i]], "third", { open: true, radius: 5 });
    });

    const [toPlain, toCentred, toLimit] = [plain, centred, limit].map((slope) => distance(settings, x, y, slope));
    const line = `distance ${short(toPlain)} to the gradient step, ${short(toCentred)} to the centred step`;
    answers.describe(`Predictions over queries from −1 to 1: ${line}. At ${fixed(place)} the layer says ${fixed(here, 3)}.`);
    const listed = x.map((xi, i) => `${fixed(shown[0][i])} at ${fixed(xi)}`).join(", ");
    const left = sinks ? `; the sink takes ${fixed(1 - shown[0].reduce((sum, value) => sum + value, 0))}` : "";
    weights.describe(`Attention of the first head: ${listed}${left}.`);
    return (
      `At x = ${fixed(place)}: attention ${fixed(here, 3)}, gradient step ${fixed(plain * place, 3)}, centred step ` +
      `${fixed(centred * place, 3)}. Over all queries (root mean square): ${line}` +
      (sinks ? `, ${short(toLimit)} to the limit with this sink.` : ".")
    );
  }

  return frame(
    { model, el },
    {
      name: "Softmax attention as a step",
      panels: [
        answers.root,
        weights.root,
        legend(
          ["trained", "line", "attention"],
          ["gd", "line", "gradient step"],
          ["constructed", "line", "step on centred inputs"],
          ["trained", "bar", "attention of the head at β"],
          ["third", "ring", "of the other head"],
        ),
      ],
      controls: [
        choice(model, "heads", { label: "heads", options: HEADS }),
        slider(model, "beta", { label: "size β of the scores", min: 0.01, max: 20, log: true, words: short }),
        slider(model, "num_sinks", { label: "sink: empty tokens", min: 0, max: 200, step: 1, words: String }),
        slider(model, "eta", { label: "step size η", min: 0, max: 3, step: 0.05 }),
      ],
      keys: ["x", "y", "x_q", "heads", "beta", "num_sinks", "eta"],
      draw,
    },
  );
}
