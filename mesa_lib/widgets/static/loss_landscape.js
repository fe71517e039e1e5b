// The exact loss of one step against its size, for tasks of the reader's choice, and where trained layers lie.
import { change, choice, menu, slider } from "./controls.js";
import { frame } from "./frame.js";
import { legend } from "./legend.js";
import { clamp, fixed } from "./numbers.js";
import { inputLaw, optimalEta, optimalLoss, relativeLoss } from "./one_layer.js";
import { panel } from "./plot.js";
import { data } from "./trained_steps.json";

const LAWS = [
  ["uniform", "uniform on (−1, 1)"],
  ["normal", "normal"],
  ["laplace", "Laplace"],
  ["rademacher", "signs ±1"],
];

/** The record of trained layers in this setting, if there is one. */
export function trainedLayers({ xDim, numContext, inputs, noise }) {
  const same = (one) =>
    one.x_dim === xDim && one.num_context === numContext && one.inputs === inputs && one.noise_std === noise;
  return data.find(same) ?? null;
}

export function render({ model, el }) {
  const plot = panel({
    title: "loss / loss of predicting zero",
    x: { label: "step size η", domain: [0, 7.5] },
    y: { domain: [0, 1.5] },
  });
  const closeUp = panel({
    title: "close to the best step",
    x: { label: "step size η", domain: [1, 2] },
    y: { domain: [0, 1] },
  });
  const marker = plot.handle({
    role: "third",
    name: "step size",
    steps: [0.05, 0],
    move: ([eta]) => change(model, { eta: Number(eta.toFixed(3)) }),
  });

  const tasksNow = () => ({
    xDim: model.get("x_dim"),
    numContext: model.get("num_context"),
    inputs: model.get("inputs"),
    noise: model.get("noise_std"),
  });

  function draw() {
    const tasks = tasksNow();
    const length = model.get("test_length") || tasks.numContext;
    const reach = 2.5 / inputLaw(tasks.inputs).secondMoment;
    const eta = clamp(model.get("eta"), 0, reach);
    const same = length === tasks.numContext;
    const [bestEta, bestLoss] = [optimalEta(tasks), optimalLoss(tasks)];
    plot.rescale({ x: { domain: [0, reach] } });
    closeUp.rescale({
      x: { domain: [0.9 * bestEta, 1.1 * bestEta] },
      y: { domain: [bestLoss - 0.003, bestLoss + 0.012] },
    });
    plot.clear();
    closeUp.clear();
    plot.line([[0, 1], [reach, 1]], "other");
    plot.text([reach, 1], "predicting zero", { dx: -6, dy: -6, anchor: "end" });
    const nets = same ? trainedLayers(tasks) : null;
    for (const part of [plot, closeUp]) {
      part.curve((value) => relativeLoss(tasks, value), "theory", 161);
      if (!same) part.curve((value) => relativeLoss(tasks, value, length), "gdpp", 161);
      part.segment([bestEta, -1], [bestEta, bestLoss], "gd");
      part.dot([bestEta, bestLoss], "gd", { radius: 5 });
      nets?.eta.forEach((place, k) => part.dot([place, nets.loss[k]], "trained", { radius: 5, open: true }));
    }
    const here = relativeLoss(tasks, eta, length);
    marker.place([eta, Math.min(here, 1.5)], `η ${fixed(eta)}, loss ${fixed(here, 3)}`);
    plot.describe(
      `Loss against step size: a parabola from 1 at η = 0 to its least value ${fixed(bestLoss, 3)} at η = ` +
        `${fixed(bestEta, 3)}; at the chosen η = ${fixed(eta)} the loss is ${fixed(here, 3)}.`,
    );
    closeUp.describe(
      nets
        ? `Close to the best step: trained layers at η ${nets.eta.map((value) => fixed(value, 2)).join(", ")}, with losses ` +
            `${nets.loss.map((value) => fixed(value, 3)).join(", ")}.`
        : `Close to the best step η = ${fixed(bestEta, 3)}; no trained layers are recorded for this setting.`,
    );
    const shown = same ? "" : ` on contexts of ${length}`;
    const range = (values, digits) =>
      [...new Set([Math.min(...values), Math.max(...values)].map((value) => fixed(value, digits)))].join(" to ");
    const dots = nets
      ? ` ${nets.eta.length} trained layers (circles): η ${range(nets.eta, 2)}, loss ${range(nets.loss, 3)}.` +
        (nets.waiting ? ` ${nets.waiting} more on the plateau.` : "")
      : "";
    return (
      `Best step η* = ${fixed(bestEta, 3)} (full dot), relative loss ${fixed(bestLoss, 3)}. ` +
      `At η = ${fixed(eta)}${shown}: ${fixed(here, 3)}.${dots}`
    );
  }

  const settings = menu({
    label: "setting",
    words: ["your own", ...data.map((one) => `trained layers: ${inWords(one)}`)],
    read: () => data.indexOf(trainedLayers(tasksNow())) + 1,
    write(index) {
      if (index === 0) return;
      const { x_dim, num_context, inputs, noise_std } = data[index - 1];
      change(model, { x_dim, num_context, inputs, noise_std, test_length: 0 });
    },
  });
  return frame(
    { model, el },
    {
      name: "The loss of one step against its size",
      panels: [
        plot.root,
        closeUp.root,
        legend(
          ["theory", "line", "N examples, exact"],
          ["gdpp", "line", "M examples, exact"],
          ["gd", "dot", "best step"],
          ["trained", "ring", "trained layers"],
          ["third", "dot", "your step"],
        ),
      ],
      controls: [
        settings,
        choice(model, "inputs", { label: "inputs", options: LAWS }),
        slider(model, "x_dim", { label: "inputs d", min: 1, max: 30, step: 1, words: String }),
        slider(model, "num_context", { label: "examples N (the layer holds η/N)", min: 1, max: 60, step: 1, words: String }),
        slider(model, "noise_std", { label: "noise on the targets σ", min: 0, max: 3, step: 0.1 }),
        slider(model, "test_length", {
          label: "examples at test time M",
          min: 0,
          max: 120,
          step: 1,
          words: (length) => (length ? String(length) : "N"),
        }),
      ],
      keys: ["x_dim", "num_context", "inputs", "noise_std", "test_length", "eta"],
      draw,
    },
  );
}

function inWords({ x_dim, num_context, inputs, noise_std }) {
  const noise = noise_std ? `, σ = ${fixed(noise_std, 1)}` : "";
  return `d = ${x_dim}, N = ${num_context}, ${inputs === "rademacher" ? "signs" : inputs}${noise}`;
}
