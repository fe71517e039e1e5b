// What stands around every widget: the drawings, the controls, the numbers in words, the finding.
import { button, change } from "./controls.js";
import { html } from "./dom.js";

/**
 * Put a widget into an element, and draw it again whenever its model changes.
 *
 * @param {object} context `{ model, el }`, as anywidget hands them to `render`.
 * @param {object} parts
 *   name: what the widget is, for those who do not see it; panels: elements; controls: see controls.js;
 *   notes: elements below the numbers; keys: the traits that "start again" puts back; draw: draws the present state and returns its numbers in words.
 * @returns a function that takes the widget out of its model's care.
 */
export function frame({ model, el }, { name, panels, controls, notes = [], keys, draw }) {
  const start = Object.fromEntries(keys.map((key) => [key, structuredClone(model.get(key))]));
  const again = button("start again", () => change(model, structuredClone(start)));
  const reading = html("p", { class: "mw-reading", role: "status" });
  const finding = html("p", { class: "mw-finding" });
  el.classList.add("mesa-widget");
  el.replaceChildren(
    html(
      "div",
      { class: "mw-body", role: "group", "aria-label": name },
      html("div", { class: "mw-panels" }, ...panels),
      html("div", { class: "mw-controls" }, ...controls.map((control) => control.root), again.root),
      reading,
      ...notes,
      finding,
    ),
  );

  const update = () => {
    for (const control of controls) control.update();
    const words = draw();
    if (reading.textContent !== words) reading.textContent = words;
    finding.textContent = model.get("finding");
  };
  // However many traits change before the next frame, draw once.
  let waiting = 0;
  const schedule = () => {
    waiting ||= requestAnimationFrame(() => {
      waiting = 0;
      update();
    });
  };
  model.on("change", schedule);
  update();
  return () => {
    cancelAnimationFrame(waiting);
    model.off("change", schedule);
  };
}
