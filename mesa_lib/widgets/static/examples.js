// The examples of a context as points that can be dragged.
import { change } from "./controls.js";
import { fixed } from "./numbers.js";

/** Put one handle for each example on a panel; they change the traits x and y. `place()` moves them to the present state. */
export function draggableExamples(panel, model, role = "trained") {
  const move = (index) => ([px, py]) => {
    const replaced = (key, value) => model.get(key).map((old, place) => (place === index ? value : old));
    change(model, { x: replaced("x", px), y: replaced("y", py) });
  };
  const handles = model.get("x").map((_, index) =>
    panel.handle({ role, name: `example ${index + 1}`, steps: [0.05, 0.05], move: move(index) }),
  );
  return {
    place() {
      const [x, y] = [model.get("x"), model.get("y")];
      handles.forEach((handle, i) => handle.place([x[i], y[i]], `x ${fixed(x[i])}, y ${fixed(y[i])}`));
    },
  };
}
