// How sharp must a softmax be to copy? And what follows once it has copied: induction, on the reader's own words.
import { choice, field, slider } from "./controls.js";
import { copyingAttention, followers, inductionScores, missedWeight, pairTarget, words } from "./copying.js";
import { svg } from "./dom.js";
import { frame } from "./frame.js";
import { legend } from "./legend.js";
import { fixed, short } from "./numbers.js";
import { panel } from "./plot.js";

const SIDE = 340;
const MOST_WORDS = 24;
const MOST_BARS = 8;

export function render({ model, el }) {
  const map = svg("svg", { class: "mw-plot", viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img" });
  const bars = panel({
    title: " ",
    height: 340,
    x: { label: "score of the next word", domain: [0, 2] },
    y: { domain: [-MOST_BARS, 0], ticks: [] },
  });

  let cells = []; // of the map, by reader and key; laid out anew only when N changes

  function layOut(names, readers) {
    const [left, top] = [34, 44];
    const cell = (SIDE - left - 6) / readers.length;
    map.replaceChildren(svg("text", { class: "mw-title", x: left, y: 16 }, "who reads whom (row reads column)"));
    const small = { "font-size": Math.min(11, 0.85 * cell), style: `font-size: ${Math.min(11, 0.85 * cell)}px` };
    names.forEach((name, key) => {
      map.append(svg("text", { x: left + (key + 0.5) * cell, y: top - 5, "text-anchor": "middle", ...small }, name));
    });
    cells = readers.map((name, reader) => {
      map.append(svg("text", { x: left - 5, y: top + (reader + 0.7) * cell, "text-anchor": "end", ...small }, name));
      return names.map((_, key) => {
        const place = { x: left + key * cell, y: top + reader * cell, width: cell - 1, height: cell - 1 };
        return map.appendChild(svg("rect", { class: "mw-fill mw-trained", ...place }));
      });
    });
  }

  function drawMap(numContext, sharpness, direction) {
    const names = Array.from({ length: numContext }, (_, i) => [`x${sub(i + 1)}`, `y${sub(i + 1)}`]).flat();
    const readers = [...names, "x_q"];
    if (cells.length !== readers.length) layOut(names, readers);
    const attention = copyingAttention(readers.length, names.length, sharpness, pairTarget(direction, numContext));
    attention.forEach((weights, reader) => {
      weights.forEach((weight, key) => {
        cells[reader][key].setAttribute("fill-opacity", (0.05 + 0.95 * weight).toFixed(3));
      });
    });
    const reader = direction === "next" ? 0 : 1;
    return attention[reader][1 - reader];
  }

  function drawBars(sequence, sharpness) {
    const { vocabulary, scores } = inductionScores(sequence, sharpness);
    const counts = followers(sequence);
    const order = vocabulary.map((_, k) => k).sort((a, b) => scores[b] - scores[a]).slice(0, MOST_BARS);
    const top = Math.max(1, ...scores, ...counts);
    bars.rescale({ title: `after “${sequence.at(-1)}”`, x: { domain: [0, 1.05 * top] } });
    bars.clear();
    order.forEach((k, row) => {
      bars.box([0, -row - 0.55], [scores[k], -row - 0.9], "trained");
      bars.segment([counts[k], -row - 0.5], [counts[k], -row - 0.95], "gd", { style: "stroke-width: 4" });
      bars.text([0, -row - 0.4], vocabulary[k], { dx: 3 });
    });
    const listed = order.map((k) => `${vocabulary[k]} ${fixed(scores[k])} (came ${counts[k]} times)`).join(", ");
    bars.describe(`Scores of the word after ${sequence.at(-1)}: ${listed}. Orange marks: how often it came before.`);
    const best = Math.max(...scores);
    // A tie, up to what a softmax leaks.
    const winners = order.filter((k) => scores[k] > 0.97 * best);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    const share = (100 * sum(winners.map((k) => scores[k]))) / sum(scores);
    return winners.length > 3 || best < 1e-3
      ? "no word stands out"
      : `${winners.map((k) => `“${vocabulary[k]}”`).join(" and ")}, with ${fixed(share, 0)} % of all scores`;
  }

  function draw() {
    const [sharpness, numContext, direction] = ["sharpness", "num_context", "direction"].map((key) => model.get(key));
    const target = drawMap(numContext, sharpness, direction);
    const missed = missedWeight(sharpness, 2 * numContext);
    const partner = direction === "next" ? "its y" : "its x";
    map.setAttribute(
      "aria-label",
      `Attention over ${2 * numContext + 1} tokens: a reader gives ${fixed(target, 3)} of its attention to ${partner}.`,
    );
    const sequence = words(model.get("text")).slice(-MOST_WORDS);
    const induced = sequence.length < 2 ? "type at least two words" : drawBars(sequence, sharpness);
    return (
      `Sharpness ${fixed(sharpness, 1)}, N = ${numContext}: the target gets ${fixed(target, 3)} of the attention, ` +
      `the missed weight is ${short(missed)} = 2N e⁻ᵏ / (1 + 2N e⁻ᵏ). Next word: ${induced}.`
    );
  }

  return frame(
    { model, el },
    {
      name: "Copying by attention, and induction",
      panels: [
        map,
        bars.root,
        legend(["trained", "bar", "what the two layers predict"], ["gd", "bar", "how often it came before"]),
      ],
      controls: [
        slider(model, "sharpness", { label: "sharpness k", min: 0, max: 15, step: 0.5, words: (k) => fixed(k, 1) }),
        slider(model, "num_context", { label: "examples N", min: 2, max: 12, step: 1, words: String }),
        choice(model, "direction", {
          label: "who copies",
          options: [["next", "x from the y behind it"], ["previous", "y from the x before it"]],
        }),
        field(model, "text", { label: "your own words (the last 24 count)", maxlength: 300 }),
      ],
      keys: ["sharpness", "num_context", "direction", "text"],
      draw,
    },
  );
}

function sub(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]).join("");
}
