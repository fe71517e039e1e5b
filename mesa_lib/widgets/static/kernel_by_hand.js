// Attention over features: linear attention regresses, softmax attention smooths, on points of the reader's own.
import { change, slider } from "./controls.js";
import { draggableExamples } from "./examples.js";
import { frame } from "./frame.js";
import { descend, dot, featuresAt, largestStep, leastSquares, smooth } from "./kernels.js";
import { legend } from "./legend.js";
import { fixed, linspace, short } from "./numbers.js";
import { panel } from "./plot.js";

const MOST = 40;
const POINTS = 101;

/** Everything that the widget draws: on the grid of queries, and by step. */
export function solve({ x, y, features, range, eta, steps, beta }) {
  const grid = linspace(-range, range, POINTS);
  const [context, queries] = [x, grid].map((inputs) => featuresAt(features, range, inputs));
  const path = descend(context, y, eta, MOST);
  const apply = (weights) => queries.map((m) => dot(weights, m));
  const loss = (weights) => context.reduce((sum, m, i) => sum + (dot(weights, m) - y[i]) ** 2, 0) / (2 * y.length);
  const best = leastSquares(context, y);
  return {
    grid,
    descended: apply(path[steps]),
    limit: apply(best),
    smoothed: smooth(context, y, beta, queries),
    losses: path.map(loss),
    leastLoss: loss(best),
    largestStep: largestStep(context),
  };
}

export function render({ model, el }) {
  const range = model.get("input_range");
  const curves = panel({
    title: "the function that the context makes",
    x: { label: "input x", domain: [-range, range] },
    y: { domain: [-0.75, 0.75] },
  });
  const errors = panel({
    title: "loss on the context, by layer",
    x: { label: "layers (steps)", domain: [0, MOST] },
    y: { domain: [1e-8, 1], log: true },
  });
  const marker = errors.handle({
    role: "query",
    name: "layers",
    steps: [1, 0],
    move: ([count]) => change(model, { num_steps: Math.round(count) }),
  });
  const examples = draggableExamples(curves, model, "other");

  function draw() {
    const [x, y, eta, steps, beta] = ["x", "y", "eta", "num_steps", "beta"].map((key) => model.get(key));
    const found = solve({ x, y, features: model.get("features"), range, eta, steps, beta });
    const line = (values, role) => curves.line(values.map((value, k) => [found.grid[k], value]), role);

    curves.clear();
    line(found.smoothed, "constructed");
    line(found.limit, "theory");
    line(found.descended, "trained");
    examples.place();

    const floor = (loss) => Math.max(loss, 1e-12);
    errors.clear();
    errors.line([[0, floor(found.leastLoss)], [MOST, floor(found.leastLoss)]], "theory");
    errors.line(found.losses.map((loss, step) => [step, floor(loss)]), "trained");
    const now = found.losses[steps];
    marker.place([steps, Math.min(1, Math.max(1e-8, now))], `${steps} layers, loss ${short(now)}`);

    const middle = (POINTS - 1) / 2;
    const [descended, limit, smoothed] = [found.descended, found.limit, found.smoothed].map((values) => values[middle]);
    const height = `At x = 0: ${fixed(descended, 3)}, in the limit ${fixed(limit, 3)}, softmax ${fixed(smoothed, 3)}`;
    curves.describe(`Three curves over ${x.length} points. ${height}.`);
    errors.describe(`The loss on the context falls from ${short(found.losses[0])} to ${short(now)} after ${steps} layers.`);
    const converges = eta < found.largestStep ? "" : ` Steps above η = ${fixed(found.largestStep)} diverge on this context.`;
    return (
      `${steps} ${steps === 1 ? "layer" : "layers"} of linear attention: loss on the context ${short(now)}; ` +
      `least squares: ${short(found.leastLoss)}. ${height}.${converges}`
    );
  }

  return frame(
    { model, el },
    {
      name: "Attention over features",
      panels: [
        curves.root,
        errors.root,
        legend(
          ["trained", "line", "linear attention, your layers"],
          ["theory", "line", "kernel least squares, the limit"],
          ["constructed", "line", "softmax attention, one layer"],
          ["other", "dot", "context"],
        ),
      ],
      controls: [
        slider(model, "num_steps", { label: "layers (steps)", min: 0, max: MOST, step: 1, words: String }),
        slider(model, "eta", { label: "step size η", min: 0, max: 4, step: 0.05 }),
        slider(model, "beta", { label: "sharpness β of the softmax", min: 0.1, max: 100, log: true, words: short }),
      ],
      keys: ["x", "y", "num_steps", "eta", "beta"],
      draw,
    },
  );
}
