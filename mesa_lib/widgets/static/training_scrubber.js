// A recorded training, to be dragged through: losses of four seeds, cosine, canonical products.
import { choice, slider } from "./controls.js";
import { svg } from "./dom.js";
import { frame } from "./frame.js";
import { fixed } from "./numbers.js";
import { panel } from "./plot.js";
import { data } from "./training_run.json";

/** The numbers of one seed at one record, in units rather than in the file's whole numbers. */
export function recordAt(seed, record) {
  const member = data.seeds.indexOf(seed);
  return {
    step: data.steps[record],
    loss: data.loss[member][record],
    cosine: data.cosine[member][record],
    twinShare: data.twin_share[member][record],
    wKQ: data.w_kq[member][record].map((row) => row.map((value) => value / 100)),
    wPV: data.w_pv[member][record].map((value) => value / 1000),
  };
}

export function render({ model, el }) {
  const steps = { label: "training step", domain: [0, data.steps.at(-1)] };
  const losses = panel({ title: "loss / loss of predicting zero", x: steps, y: { domain: [0.4, 1.08] } });
  const cosines = panel({ title: "cosine with a gradient step", x: steps, y: { domain: [-0.2, 1.05] } });
  const products = matrices();
  const last = data.steps.length - 1;

  function draw() {
    const [seed, record] = [model.get("seed"), model.get("record")];
    const now = recordAt(seed, record);
    for (const [plot, values] of [[losses, data.loss], [cosines, data.cosine]]) {
      plot.clear();
      if (plot === losses) {
        plot.line([[0, data.plateau], [data.steps[last], data.plateau]], "constructed");
        plot.text([395, data.plateau], "rank-one twin", { dy: -6, anchor: "end" });
      }
      const level = plot === losses ? data.one_step : 1;
      plot.line([[0, level], [data.steps[last], level]], "gd");
      if (plot === losses) plot.text([395, level], "one gradient step", { dy: 15, anchor: "end" });
      const order = data.seeds.map((_, member) => member).sort((a) => (data.seeds[a] === seed ? 1 : -1));
      for (const member of order) {
        const points = data.steps.map((step, k) => [step, values[member][k]]);
        plot.line(points, data.seeds[member] === seed ? "trained" : "faint");
      }
    }
    losses.dot([now.step, now.loss], "trained", { radius: 6 });
    cosines.dot([now.step, now.cosine], "trained", { radius: 6 });
    products.update(now);
    const diagonal = now.wKQ.slice(0, 10).reduce((sum, row, i) => sum + row[i], 0) / 10;
    const stepSize = -10 * now.wPV[10];
    losses.describe(`Losses of four seeds over training; seed ${seed} is at ${fixed(now.loss, 3)} at step ${now.step}.`);
    cosines.describe(`Cosines of four seeds; seed ${seed} is at ${fixed(now.cosine, 3)} at step ${now.step}.`);
    const entries = `mean diagonal of the x-block ${fixed(diagonal)}, last entry of W_PV's row ${fixed(now.wPV[10], 3)}`;
    products.root.setAttribute("aria-label", `Canonical products of seed ${seed} at step ${now.step}: ${entries}.`);
    const place =
      now.twinShare > 0.9 && now.loss < 0.99
        ? "It signals through the rank-one twin: y in the keys, x in the values."
        : `Read off its weights: a mean diagonal of ${fixed(diagonal)} and a step size of ${fixed(stepSize)} ` +
          `(the best: 1 and ${fixed(data.eta)}).`;
    return (
      `Seed ${seed}, step ${now.step}: relative loss ${fixed(now.loss, 3)} (one gradient step: ` +
      `${fixed(data.one_step, 3)}), cosine ${fixed(now.cosine, 3)}. ${place}`
    );
  }

  return frame(
    { model, el },
    {
      name: "A training, step by step",
      panels: [losses.root, cosines.root, products.root],
      controls: [
        slider(model, "record", {
          label: "training step",
          min: 0,
          max: last,
          step: 1,
          words: (record) => String(data.steps[record]),
        }),
        choice(model, "seed", { label: "seed", options: data.seeds.map((seed) => [seed, `seed ${seed}`]) }),
      ],
      keys: ["record", "seed"],
      draw,
    },
  );
}

/** W_KQ's x columns and W_PV's y row as coloured cells: blue positive, orange negative, full colour at the scale. */
function matrices() {
  const cell = 13;
  const root = svg("svg", { class: "mw-plot mw-wide", viewBox: "0 0 400 184", role: "img" });
  const colours = [];
  const grid = (left, top, rows, columns, title) => {
    root.append(svg("text", { class: "mw-title", x: left, y: top - 8 }, ...title));
    const cells = [];
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 1) {
        const node = svg("rect", { x: left + j * cell, y: top + i * cell, width: cell - 1, height: cell - 1 });
        root.append(node);
        cells.push(node);
      }
    }
    colours.push(cells);
  };
  const name = (letters, words) => [
    "W",
    svg("tspan", { dy: 3, "font-size": 9 }, letters),
    svg("tspan", { dy: -3 }, words),
  ];
  grid(20, 28, 11, 10, name("KQ", ", x columns"));
  grid(210, 28, 1, 11, name("PV", ", y row"));
  const notes = [
    [210, 64, "blue: positive, orange: negative,"],
    [210, 81, "in full colour 1, and 0.15 in the row"],
    [210, 112, "Proposition 1: the diagonal is blue,"],
    [210, 129, "the row's last entry orange,"],
    [210, 146, "and there is nothing else"],
  ];
  for (const [x, y, words] of notes) root.append(svg("text", { x, y }, words));
  const paint = (cells, values, scale) =>
    values.forEach((value, k) => {
      cells[k].setAttribute("class", `mw-fill mw-${value < 0 ? "gd" : "trained"}`);
      cells[k].setAttribute("fill-opacity", Math.min(1, 0.04 + Math.abs(value) / scale).toFixed(3));
    });
  return {
    root,
    update({ wKQ, wPV }) {
      paint(colours[0], wKQ.flat(), 1);
      paint(colours[1], wPV, 0.15);
    },
  };
}
