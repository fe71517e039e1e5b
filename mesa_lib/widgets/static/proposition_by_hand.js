// Proposition 1 in numbers: the block matrices, the tokens before and after, and the conditions that matter.
import { gdConstruction, linearSelfAttention, readPrediction } from "./attention.js";
import { change, choice, slider, tick } from "./controls.js";
import { html } from "./dom.js";
import { draggableExamples } from "./examples.js";
import { frame } from "./frame.js";
import { legend } from "./legend.js";
import { fixed, signed } from "./numbers.js";
import { panel } from "./plot.js";
import { gradientDescent } from "./regression.js";

const X = [-1.15, 1.15];

/** The tokens after some layers, and what explicit gradient descent says. */
export function forward({ x, y, queryX, w0, eta, slot, inside, layers }) {
  const query = [queryX, slot === "start" ? -w0 * queryX : 0];
  const context = x.map((xi, i) => [xi, y[i]]);
  const before = { context: inside ? [...context, query] : context, query: [query] };
  const weights = gdConstruction(eta, [[w0]], x.length);
  let after = before;
  for (let layer = 0; layer < layers; layer += 1) after = linearSelfAttention(weights, after);
  const stepped = gradientDescent(w0, eta, layers, x, y);
  return { before, after, weights, stepped, prediction: readPrediction(after.query[0], 1)[0] };
}

export function render({ model, el }) {
  const tokens = panel({
    title: "tokens before and after",
    x: { label: "x-slot", domain: X },
    y: { label: "y-slot", domain: [-2, 2] },
  });
  const moves = panel({
    title: "how far each y-slot moves",
    x: { label: "x-slot", domain: X },
    y: { domain: [-2, 2] },
  });
  const query = tokens.handle({
    role: "query",
    name: "query input",
    steps: [0.05, 0],
    move: ([px]) => change(model, { x_q: px }),
  });
  const examples = draggableExamples(tokens, model);
  const matrices = html("div", { class: "mw-matrices" });
  const rows = html("tbody");
  const headings = ["token", "x", "y before", "y after", "moved by"].map((text) => html("th", { scope: "col" }, text));
  const numbers = html(
    "details",
    {},
    html("summary", {}, "the tokens in numbers"),
    html("table", { class: "mw-numbers" }, html("thead", {}, html("tr", {}, ...headings)), rows),
  );

  function draw() {
    const [x, y, queryX, w0, eta] = ["x", "y", "x_q", "w_0", "eta"].map((key) => model.get(key));
    const [slot, inside, layers] = ["slot", "query_inside", "num_layers"].map((key) => model.get(key));
    const { before, after, weights, stepped, prediction } = forward({ x, y, queryX, w0, eta, slot, inside, layers });
    const step = stepped - w0;
    const [start, end] = [before.query[0], after.query[0]];

    tokens.clear();
    x.forEach((_, i) => tokens.arrow(before.context[i], after.context[i], "other"));
    x.forEach((_, i) => tokens.dot(after.context[i], "trained", { open: true }));
    tokens.arrow(start, end, "query");
    tokens.dot(end, "query", { open: true, radius: 5 });
    examples.place();
    query.place(start, `x ${fixed(queryX)}, y-slot ${fixed(start[1])}`);

    moves.clear();
    moves.line(X.map((px) => [px, -step * px]), "gd");
    x.forEach((xi, i) => moves.dot([xi, after.context[i][1] - y[i]], "trained"));
    moves.dot([queryX, end[1] - start[1]], "query", { radius: 6 });

    const sub = (letter) => html("sub", {}, letter);
    const named = [
      [["W", sub("K"), " = W", sub("Q")], weights.wK],
      [["W", sub("V")], weights.wV],
      [["P = (η/N) I"], weights.wP],
    ];
    matrices.replaceChildren(...named.map(([name, matrix]) => table(name, matrix)));
    const row = (name, [first, last]) =>
      [name, fixed(first[0]), fixed(first[1]), fixed(last[1]), signed(last[1] - first[1])].map((text, column) =>
        html(column ? "td" : "th", column ? {} : { scope: "row" }, text),
      );
    const all = x.map((_, i) => row(`${i + 1}`, [before.context[i], after.context[i]]));
    rows.replaceChildren(...[...all, row("query", [start, end])].map((cells) => html("tr", {}, ...cells)));

    const gap = prediction - stepped * queryX;
    const answer = `The layer${layers > 1 ? "s" : ""} predict${layers > 1 ? "" : "s"} ${fixed(prediction, 3)}`;
    const explicit = `gradient descent predicts ${fixed(stepped * queryX, 3)}`;
    tokens.describe(`The query's y-slot goes from ${fixed(start[1])} to ${fixed(end[1])}. ${answer}.`);
    const moved = x.map((xi, i) => `${fixed(after.context[i][1] - y[i])} at ${fixed(xi)}`).join(", ");
    moves.describe(`Moves of the y-slots: ${moved}; the query's: ${fixed(end[1] - start[1])} at ${fixed(queryX)}.`);
    return (
      `${answer} (minus the query's y-slot); ${explicit}. ` +
      (Math.abs(gap) < 5e-10 ? "They agree." : `They differ by ${fixed(gap, 3)}: ${reason(slot, inside, w0)}.`)
    );
  }

  return frame(
    { model, el },
    {
      name: "Proposition 1 by hand",
      panels: [
        tokens.root,
        moves.root,
        legend(
          ["trained", "dot", "example"],
          ["trained", "ring", "after the layer"],
          ["query", "dot", "query"],
          ["gd", "line", "−ΔW x of gradient descent"],
        ),
        matrices,
      ],
      controls: [
        slider(model, "w_0", { label: "start W₀", min: -1.5, max: 1.5, step: 0.05 }),
        slider(model, "eta", { label: "step size η", min: 0, max: 4, step: 0.05 }),
        slider(model, "num_layers", { label: "layers", min: 1, max: 5, step: 1, words: String }),
        choice(model, "slot", { label: "query token", options: [["start", "(x, −W₀ x)"], ["zero", "(x, 0)"]] }),
        tick(model, "query_inside", { label: "query among keys and values" }),
      ],
      notes: [numbers],
      keys: ["x", "y", "x_q", "w_0", "eta", "num_layers", "slot", "query_inside"],
      draw,
    },
  );
}

function reason(slot, inside, w0) {
  const causes = [];
  if (slot === "zero" && w0 !== 0) causes.push("W₀ x is missing from the slot");
  if (inside) causes.push("the query's token was taken for an example");
  return causes.join(", and ");
}

function table(name, matrix) {
  const cell = (value) => html("td", { class: value ? "" : "mw-zero" }, fixed(value));
  const row = (label, values) => html("tr", {}, html("th", { scope: "row" }, label), ...values.map(cell));
  const head = ["", "x", "y"].map((text) => (text ? html("th", { scope: "col" }, text) : html("td")));
  return html(
    "table",
    { class: "mw-matrix" },
    html("caption", {}, ...name),
    html("thead", {}, html("tr", {}, ...head)),
    html("tbody", {}, row("x", matrix[0]), row("y", matrix[1])),
  );
}
