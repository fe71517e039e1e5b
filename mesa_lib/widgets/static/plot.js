// A drawing with axes, in SVG: data in, marks out. Text and axes take the colour of the page's text.
import { furnish, svg } from "./dom.js";
import { clamp, fixed, linspace, logTicks, ticks } from "./numbers.js";

/**
 * A panel: one drawing with a pair of axes.
 *
 * @param {object} options
 *   title: a short heading; width, height: in units of the drawing, about the pixels of a phone;
 *   x, y: {label, domain: [low, high], log, ticks}, where `ticks` are [value, text] pairs or nothing for round numbers.
 */
export function panel({ title = "", width = 340, height = 250, x, y }) {
  let heading = title;
  const margin = { left: y.label ? 48 : 34, right: 12, top: title ? 26 : 10, bottom: x.label ? 40 : 24 };
  const inner = { width: width - margin.left - margin.right, height: height - margin.top - margin.bottom };
  const axes = { x: { ...x }, y: { ...y } };
  const grid = svg("g", { class: "mw-axes" });
  // A nested drawing cuts off what lies outside the axes.
  const area = { x: margin.left, y: margin.top, width: inner.width, height: inner.height };
  const marks = svg("svg", { ...area, overflow: "hidden" });
  const handles = svg("g", { transform: `translate(${margin.left} ${margin.top})` });
  const root = svg("svg", { class: "mw-plot", viewBox: `0 0 ${width} ${height}`, role: "img" }, grid, marks, handles);

  const along = ({ domain: [low, high], log }, value) =>
    log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  const at = {
    // Far outside is as good as outside, and huge numbers break some renderers.
    x: (value) => clamp(along(axes.x, value), -50, 50) * inner.width,
    y: (value) => (1 - clamp(along(axes.y, value), -50, 50)) * inner.height,
  };
  const back = ({ domain: [low, high], log }, share) =>
    log ? low * (high / low) ** share : low + (high - low) * share;

  function drawAxes() {
    grid.replaceChildren();
    if (heading) grid.append(svg("text", { class: "mw-title", x: margin.left, y: 16 }, heading));
    for (const [value, text] of labelled(axes.x)) {
      const place = margin.left + at.x(value);
      grid.append(svg("line", { x1: place, x2: place, y1: margin.top, y2: margin.top + inner.height }));
      grid.append(svg("text", { x: place, y: height - margin.bottom + 15, "text-anchor": "middle" }, ...[text].flat()));
    }
    for (const [value, text] of labelled(axes.y)) {
      const place = margin.top + at.y(value);
      grid.append(svg("line", { x1: margin.left, x2: margin.left + inner.width, y1: place, y2: place }));
      grid.append(svg("text", { x: margin.left - 6, y: place + 4, "text-anchor": "end" }, ...[text].flat()));
    }
    if (axes.x.label) {
      const place = { x: margin.left + inner.width / 2, y: height - 6, "text-anchor": "middle" };
      grid.append(svg("text", { class: "mw-label", ...place }, axes.x.label));
    }
    if (axes.y.label) {
      const place = `translate(12 ${margin.top + inner.height / 2}) rotate(-90)`;
      grid.append(svg("text", { class: "mw-label", transform: place, "text-anchor": "middle" }, axes.y.label));
    }
  }

  const add = (tag, attributes, ...children) => {
    const node = svg(tag, attributes, ...children);
    marks.append(node);
    return node;
  };
  drawAxes();

  return {
    root,
    at,
    inner,

    /** Say in words and numbers what is drawn. */
    describe(text) {
      root.setAttribute("aria-label", text);
    },

    /** Give the axes other domains or ticks, or the panel another title. */
    rescale(changes) {
      for (const axis of ["x", "y"]) Object.assign(axes[axis], changes[axis]);
      heading = changes.title ?? heading;
      drawAxes();
    },

    /** Remove all marks; handles stay, so that they keep the focus. */
    clear() {
      marks.replaceChildren();
    },

    /** A line through points [x, y]; a point that is not finite breaks it. */
    line(points, role, extra = {}) {
      let path = "";
      let pen = "M";
      for (const [px, py] of points) {
        const finite = Number.isFinite(px) && Number.isFinite(py);
        if (finite) path += `${pen}${at.x(px).toFixed(2)} ${at.y(py).toFixed(2)}`;
        pen = finite ? "L" : "M";
      }
      return add("path", { class: `mw-line mw-${role}`, d: path, ...extra });
    },

    segment([x1, y1], [x2, y2], role, extra = {}) {
      const ends = { x1: at.x(x1), y1: at.y(y1), x2: at.x(x2), y2: at.y(y2) };
      return add("line", { class: `mw-line mw-${role}`, ...ends, ...extra });
    },

    /** A segment with a head at its second end; the head is left out where there is no room for it. */
    arrow([x1, y1], [x2, y2], role) {
      const [fromX, fromY, toX, toY] = [at.x(x1), at.y(y1), at.x(x2), at.y(y2)];
      const length = Math.hypot(toX - fromX, toY - fromY);
      add("line", { class: `mw-line mw-${role}`, x1: fromX, y1: fromY, x2: toX, y2: toY });
      if (length < 7) return;
      const [ux, uy] = [(toX - fromX) / length, (toY - fromY) / length];
      const corner = (side) => `${toX - 7 * ux + side * 3.5 * uy} ${toY - 7 * uy - side * 3.5 * ux}`;
      add("path", { class: `mw-fill mw-${role}`, d: `M${toX} ${toY}L${corner(1)}L${corner(-1)}Z` });
    },

    dot([px, py], role, { radius = 4, open = false, extra = {} } = {}) {
      const kind = open ? "mw-open" : "mw-fill";
      return add("circle", { class: `${kind} mw-${role}`, cx: at.x(px), cy: at.y(py), r: radius, ...extra });
    },

    /** A rectangle between two corners in data coordinates. */
    box([x1, y1], [x2, y2], role, extra = {}) {
      const [left, right] = [at.x(Math.min(x1, x2)), at.x(Math.max(x1, x2))];
      const [top, bottom] = [at.y(Math.max(y1, y2)), at.y(Math.min(y1, y2))];
      const size = { x: left, y: top, width: right - left, height: bottom - top };
      return add("rect", { class: `mw-fill mw-${role}`, ...size, ...extra });
    },

    text([px, py], words, { dx = 0, dy = 0, anchor = "start", role = "" } = {}) {
      const place = { x: at.x(px) + dx, y: at.y(py) + dy, "text-anchor": anchor };
      return add("text", { class: `mw-note mw-${role}`, ...place }, words);
    },

    /** A function as a line, evaluated at `count` places along the x axis. */
    curve(f, role, count = 101, extra = {}) {
      const places = linspace(0, 1, count).map((share) => back(axes.x, share));
      return this.line(places.map((place) => [place, f(place)]), role, extra);
    },

    /**
     * A thing to be dragged by mouse, finger or arrow keys.
     *
     * `move([x, y])` is called with data coordinates inside the axes; `steps` is what an arrow key adds, [in x, in y],
     * where 0 stops a direction. The shape follows with `place([x, y], words)`.
     */
    handle({ role, name, steps, move }) {
      const shape = svg(
        "g",
        { class: `mw-handle mw-${role}`, tabindex: 0, role: "slider", "aria-label": name },
        svg("circle", { class: "mw-grip", r: 16 }),
        svg("circle", { class: "mw-knob", r: 6 }),
      );
      let position = [0, 0];
      const go = ([px, py]) =>
        move([clamp(px, ...axes.x.domain), clamp(py, ...axes.y.domain)].map((value) => Number(value.toPrecision(12))));
      const follow = (event) => {
        const box = root.getBoundingClientRect();
        const scale = width / box.width;
        const shareX = ((event.clientX - box.left) * scale - margin.left) / inner.width;
        const shareY = 1 - ((event.clientY - box.top) * scale - margin.top) / inner.height;
        go([steps[0] ? back(axes.x, shareX) : position[0], steps[1] ? back(axes.y, shareY) : position[1]]);
      };
      shape.addEventListener("pointerdown", (event) => {
        shape.setPointerCapture(event.pointerId);
        shape.focus();
        event.preventDefault();
        follow(event);
      });
      shape.addEventListener("pointermove", (event) => {
        if (shape.hasPointerCapture(event.pointerId)) follow(event);
      });
      const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
      shape.addEventListener("keydown", (event) => {
        const direction = keys[event.key];
        if (!direction) return;
        event.preventDefault();
        const factor = event.shiftKey ? 5 : 1;
        // A handle that moves in one direction only follows all four arrows, as a slider does.
        const sum = direction[0] + direction[1];
        const [dx, dy] = steps[0] && steps[1] ? direction : [sum, sum];
        go([position[0] + factor * dx * steps[0], position[1] + factor * dy * steps[1]]);
      });
      root.setAttribute("role", "group");
      handles.append(shape);
      return {
        place([px, py], words) {
          position = [px, py];
          const main = steps[1] ? py : px;
          const [low, high] = (steps[1] ? axes.y : axes.x).domain;
          furnish(shape, {
            transform: `translate(${at.x(px)} ${at.y(py)})`,
            "aria-valuenow": main,
            "aria-valuemin": Math.min(low, main),
            "aria-valuemax": Math.max(high, main),
            "aria-valuetext": words,
          });
        },
        remove() {
          shape.remove();
        },
      };
    },
  };
}

/** The ticks of an axis as [value, text or parts of a text]. */
function labelled({ domain: [low, high], log, ticks: given }) {
  if (given) return given.filter(([value]) => value >= low && value <= high);
  if (log) return logTicks(low, high).map((value) => [value, powerOfTen(value)]);
  const places = ticks(low, high);
  const step = places.length > 1 ? places[1] - places[0] : 1;
  const isRound = (digits) => Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) < 1e-6;
  const digits = [0, 1, 2, 3, 4, 5].find(isRound) ?? 6;
  return places.map((value) => [value, fixed(value, digits)]);
}

/** 10 with an exponent, drawn: not every font has all raised digits. */
function powerOfTen(value) {
  const exponent = Math.round(Math.log10(value));
  if (exponent === 0) return "1";
  return ["10", svg("tspan", { dy: -4, style: "font-size: 9px" }, fixed(exponent, 0))];
}
