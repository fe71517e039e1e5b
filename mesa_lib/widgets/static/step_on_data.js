// A step on the weight beside the same step on the targets.
import { slider } from "./controls.js";
import { draggableExamples } from "./examples.js";
import { frame } from "./frame.js";
import { legend } from "./legend.js";
import { fixed, signed } from "./numbers.js";
import { panel } from "./plot.js";
import { contextLoss, lossGradient, movedTargets } from "./regression.js";

const REACH = { x: [-1.15, 1.15], y: [-2, 2] };

export function render({ model, el }) {
  const axes = { x: { label: "input x", domain: REACH.x }, y: { domain: REACH.y } };
  const line = panel({ title: "the line moves", ...axes });
  const targets = panel({ title: "the targets move", ...axes });
  const examples = draggableExamples(line, model);

  function draw() {
    const [x, y, before, eta] = ["x", "y", "w_0", "eta"].map((key) => model.get(key));
    const step = -eta * lossGradient(before, x, y);
    const after = before + step;
    const moved = movedTargets(step, x, y);
    const ends = (slope) => REACH.x.map((px) => [px, slope * px]);

    line.clear();
    x.forEach((xi, i) => line.segment([xi, y[i]], [xi, after * xi], "residual"));
    line.line(ends(before), "other");
    line.line(ends(after), "theory");
    line.arrow([0.9, before * 0.9], [0.9, after * 0.9], "theory");
    examples.place();

    targets.clear();
    x.forEach((xi, i) => targets.segment([xi, moved[i]], [xi, before * xi], "residual"));
    targets.line(ends(before), "theory");
    x.forEach((xi, i) => targets.dot([xi, y[i]], "other", { open: true }));
    x.forEach((xi, i) => targets.arrow([xi, y[i]], [xi, moved[i]], "other"));
    x.forEach((xi, i) => targets.dot([xi, moved[i]], "trained", { radius: 5 }));

    const [here, there] = [contextLoss(after, x, y), contextLoss(before, x, moved)].map((loss) => fixed(loss, 4));
    line.describe(`The line turns from slope ${fixed(before)} to ${fixed(after)}; its loss on the data is ${here}.`);
    const moves = moved.map((target, i) => `${fixed(y[i])} to ${fixed(target)}`).join(", ");
    targets.describe(`The line keeps slope ${fixed(before)}; the targets move from ${moves}; the loss is ${there}.`);
    return (
      `Step ΔW = ${signed(step, 3)}: slope ${fixed(before)} → ${fixed(after)}. ` +
      `Loss before: ${fixed(contextLoss(before, x, y), 4)}. Stepped line, old targets: ${here}. ` +
      `Old line, moved targets: ${there}.`
    );
  }

  return frame(
    { model, el },
    {
      name: "A step on the weight beside a step on the targets",
      panels: [
        line.root,
        targets.root,
        legend(
          ["other", "line", "line before the step"],
          ["trained", "dot", "targets"],
          ["other", "ring", "targets before they moved"],
          ["residual", "bar", "residuals"],
        ),
      ],
      controls: [
        slider(model, "eta", { label: "step size η", min: 0, max: 6, step: 0.05 }),
        slider(model, "w_0", { label: "slope W before the step", min: -2, max: 2, step: 0.05 }),
      ],
      keys: ["x", "y", "eta", "w_0"],
      draw,
    },
  );
}
