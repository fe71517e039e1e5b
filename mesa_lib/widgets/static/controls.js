// Native, labelled controls, each bound to one trait of the model.
import { freshId, furnish, html } from "./dom.js";
import { fixed } from "./numbers.js";

/** Change traits, and tell Python if it is there. */
export function change(model, changes) {
  for (const [key, value] of Object.entries(changes)) model.set(key, value);
  model.save_changes();
}

/**
 * A slider. `words(value)` is what stands beside it; with `log: true` it moves along the value's logarithm.
 */
export function slider(model, key, { label, min, max, step, words = fixed, log = false }) {
  const id = freshId();
  const inward = log ? Math.log10 : (value) => value;
  const outward = log ? (place) => Number((10 ** place).toPrecision(3)) : (place) => place;
  const bounds = { min: inward(min), max: inward(max), step: log ? 0.05 : step };
  const input = html("input", { type: "range", id, ...bounds });
  const output = html("output", { for: id });
  input.addEventListener("input", () => change(model, { [key]: outward(Number(input.value)) }));
  return {
    root: html("div", { class: "mw-control mw-slider" }, html("label", { for: id }, label), input, output),
    update() {
      const value = model.get(key);
      const text = words(value);
      input.value = inward(value);
      input.setAttribute("aria-valuetext", text);
      output.textContent = text;
    },
    furnish: (attributes) => furnish(input, attributes),
  };
}

/** One of several: `options` are [value, words] pairs. */
export function choice(model, key, { label, options }) {
  const read = () => options.findIndex(([value]) => value === model.get(key));
  const write = (index) => change(model, { [key]: options[index][0] });
  return menu({ label, words: options.map(([, words]) => words), read, write });
}

/** One of several words; `read()` says which one it is now, by its index, and `write(index)` makes it another. */
export function menu({ label, words, read, write }) {
  const id = freshId();
  const select = html("select", { id }, ...words.map((text) => html("option", {}, text)));
  select.addEventListener("change", () => write(select.selectedIndex));
  return {
    root: html("div", { class: "mw-control mw-choice" }, html("label", { for: id }, label), select),
    update() {
      select.selectedIndex = read();
    },
  };
}

/** Yes or no. */
export function tick(model, key, { label }) {
  const input = html("input", { type: "checkbox" });
  input.addEventListener("change", () => change(model, { [key]: input.checked }));
  return {
    root: html("label", { class: "mw-control mw-tick" }, input, html("span", {}, label)),
    update() {
      input.checked = model.get(key);
    },
  };
}

/** A line of the reader's own. */
export function field(model, key, { label, maxlength }) {
  const id = freshId();
  const input = html("input", { type: "text", id, maxlength, autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => change(model, { [key]: input.value }));
  return {
    root: html("div", { class: "mw-control mw-field" }, html("label", { for: id }, label), input),
    update() {
      if (input.value !== model.get(key)) input.value = model.get(key);
    },
  };
}

/** Something to press. */
export function button(words, press) {
  const node = html("button", { type: "button" }, words);
  node.addEventListener("click", press);
  return { root: node, update() {} };
}
