// What methods leave of each eigenvalue's error, layer by layer: gradient descent and its kin, Newton, GD++.
import { choice, slider } from "./controls.js";
import { html } from "./dom.js";
import { frame } from "./frame.js";
import { swatch } from "./legend.js";
import { fixed, short } from "./numbers.js";
import { panel } from "./plot.js";
import {
  bestHeavyBall,
  chebyshev,
  chebyshevSchedule,
  gdPlusPlus,
  gradientDescent,
  heavyBall,
  newton,
  newtonSchulzSchedule,
  optimalCubicSchedule,
  tiedSchedule,
  worst,
} from "./spectral.js";

const MOST = 12;
const FLOOR = 1e-10;
const METHODS = [
  ["gd", "gradient descent", "gd"],
  ["momentum", "momentum (heavy ball)", "third"],
  ["chebyshev", "Chebyshev iteration", "constructed"],
  ["newton", "Newton", "theory"],
  ["tied", "GD++, tied", "trained"],
  ["schulz", "GD++, Newton-Schulz", "gdpp"],
  ["cubic", "GD++, optimal cubic", "gdpp-solid"],
  ["gdpp_chebyshev", "GD++, Chebyshev", "gdpp-dotted"],
];

/** Eigenvalues of A, evenly spaced on a logarithmic axis from 1 / kappa to 1. */
export function spectrum(kappa, count = 9) {
  return Array.from({ length: count }, (_, k) => kappa ** (k / (count - 1) - 1));
}

/** States {shares, moved} before the first and after every layer of a network of so many layers. */
export function run(method, eigenvalues, { kappa, eta, gamma }, layers) {
  const low = 1 / kappa;
  const still = (lists) => lists.map((shares) => ({ shares, moved: eigenvalues }));
  switch (method) {
    case "gd":
      return still(gradientDescent(eigenvalues, 2 / (1 + low), layers));
    case "momentum": {
      const best = bestHeavyBall(low, 1);
      return still(heavyBall(eigenvalues, best.eta, best.momentum, layers));
    }
    case "chebyshev":
      return still(chebyshev(eigenvalues, low, 1, layers));
    case "newton":
      return still(newton(eigenvalues, 1, layers));
    case "tied":
      return gdPlusPlus(eigenvalues, tiedSchedule(eta, gamma, layers));
    case "schulz":
      return gdPlusPlus(eigenvalues, newtonSchulzSchedule(1, layers));
    case "cubic":
      return gdPlusPlus(eigenvalues, optimalCubicSchedule(low, 1, layers));
    default:
      return gdPlusPlus(eigenvalues, chebyshevSchedule(4 / 3, layers));
  }
}

export function render({ model, el }) {
  const ticks = [0, 2, 4, 6, 8, 10, 12].map((count) => [count, String(count)]);
  const layersAxis = { domain: [0, MOST], ticks };
  const flow = panel({ title: " ", x: { ...layersAxis, label: "layer (or step)" }, y: { domain: [FLOOR, 10], log: true } });
  const errors = panel({
    title: "the worst eigenvalue's share",
    x: { ...layersAxis, label: "layers L (or steps)" },
    y: { domain: [FLOOR, 10], log: true },
  });
  const rows = html("tbody");
  const heads = ["method", "worst share left"].map((text) => html("th", { scope: "col" }, text));
  const table = html("table", {}, html("thead", {}, html("tr", {}, ...heads)), rows);

  function draw() {
    const [method, layers, shown] = ["method", "num_layers", "shown"].map((key) => model.get(key));
    const settings = { kappa: model.get("condition_number"), eta: model.get("eta"), gamma: model.get("gamma") };
    const eigenvalues = spectrum(settings.kappa);
    const [, name, role] = METHODS.find(([key]) => key === method);
    const states = run(method, eigenvalues, settings, layers);
    const isError = shown === "error";

    flow.rescale({ title: isError ? "share of each eigenvalue's error" : "eigenvalues of the moved data" });
    flow.clear();
    eigenvalues.forEach((_, k) => {
      const value = ({ shares, moved }) => Math.max(Math.abs(isError ? shares[k] : moved[k]), FLOOR / 100);
      const strength = 0.3 + (0.7 * k) / (eigenvalues.length - 1);
      const look = { "stroke-opacity": strength, style: "stroke-dasharray: none" };
      flow.line(states.map((state, layer) => [layer, value(state)]), role, look);
      flow.dot([layers, value(states[layers])], role, { radius: 3, extra: { "fill-opacity": strength } });
    });

    errors.clear();
    errors.line([[layers, FLOOR], [layers, 10]], "faint");
    const left = {};
    for (const [key, , line] of METHODS) {
      const worstAfter = (count) => worst(run(key, eigenvalues, settings, count)[count].shares);
      const points = Array.from({ length: MOST }, (_, k) => [k + 1, Math.max(worstAfter(k + 1), FLOOR / 100)]);
      left[key] = worstAfter(layers);
      errors.line([[0, 1], ...points], line, { style: `stroke-width: ${key === method ? 4 : 1.6}` });
    }
    errors.dot([layers, Math.max(left[method], FLOOR / 100)], role, { radius: 6 });
    rows.replaceChildren(
      ...METHODS.map(([key, words, line]) => {
        const attributes = key === method ? { class: "mw-chosen" } : {};
        const label = html("th", { scope: "row" }, swatch(line), ` ${words}`);
        return html("tr", attributes, label, html("td", {}, short(left[key])));
      }),
    );

    const values = states[layers][isError ? "shares" : "moved"].map(short).join(", ");
    flow.describe(
      `${name}, ${layers} layers, nine eigenvalues from ${short(1 / settings.kappa)} to 1: ` +
        `${isError ? "the shares that are left" : "what they have become"}, from the smallest on: ${values}.`,
    );
    const listed = METHODS.map(([key, words]) => `${words} ${short(left[key])}`).join("; ");
    errors.describe(`The worst share left after ${layers} layers: ${listed}.`);
    const gd = method === "gd" ? "" : ` Gradient descent: ${short(left.gd)}.`;
    return `After ${layers} ${layers === 1 ? "layer" : "layers"}, ${name}: at most ${short(left[method])} is left.${gd}`;
  }

  return frame(
    { model, el },
    {
      name: "Eigenvalues through the layers",
      panels: [flow.root, errors.root, html("div", { class: "mw-legend" }, table)],
      controls: [
        choice(model, "method", { label: "method", options: METHODS.map(([key, words]) => [key, words]) }),
        choice(model, "shown", {
          label: "the left panel shows",
          options: [["error", "share of the error left"], ["eigenvalue", "eigenvalues of the moved data"]],
        }),
        slider(model, "num_layers", { label: "layers L", min: 1, max: MOST, step: 1, words: String }),
        slider(model, "condition_number", {
          label: "condition number κ",
          min: 2,
          max: 10000,
          log: true,
          words: (value) => fixed(value, 0),
        }),
        slider(model, "eta", { label: "η of tied GD++", min: 0, max: 8, step: 0.1 }),
        slider(model, "gamma", { label: "γ of tied GD++", min: 0, max: 0.6, step: 0.02 }),
      ],
      keys: ["method", "shown", "num_layers", "condition_number", "eta", "gamma"],
      draw,
    },
  );
}
