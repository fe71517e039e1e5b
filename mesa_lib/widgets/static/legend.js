// What the lines and marks of a drawing stand for.
import { html, svg } from "./dom.js";

/** A piece of a role's line, or one of its marks: "line", "dot", "ring" or "bar". */
export function swatch(role, kind = "line") {
  const shapes = {
    line: () => svg("path", { class: `mw-line mw-${role}`, d: "M0 5H34" }),
    dot: () => svg("circle", { class: `mw-fill mw-${role}`, cx: 28, cy: 5, r: 4 }),
    ring: () => svg("circle", { class: `mw-open mw-${role}`, cx: 28, cy: 5, r: 4 }),
    bar: () => svg("rect", { class: `mw-fill mw-${role}`, x: 26, y: 0, width: 4, height: 10 }),
  };
  const size = { viewBox: "0 0 34 10", width: 34, height: 10 };
  return svg("svg", { class: "mw-swatch", "aria-hidden": "true", ...size }, shapes[kind]());
}

/** A row of [role, kind, words]. */
export function legend(...entries) {
  const item = ([role, kind, words]) => html("span", {}, swatch(role, kind), ` ${words}`);
  return html("p", { class: "mw-legend-row" }, ...entries.map(item));
}
