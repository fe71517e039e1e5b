// Bring a page's widgets to life without a kernel.
//
// A widget's output is an element that names its front end and holds its state (`mesa_lib.widgets`). The front ends are
// classic scripts, since a page that is opened from a disk may not import modules; they wait in `window.mesaWidgets`.
(() => {
  "use strict";

  /** What a front end expects of an anywidget's model; there is no kernel to tell. */
  class Model {
    #state;
    #listeners = new Map();

    constructor(state) {
      this.#state = state;
    }

    /** All traits by name, as they are now. */
    get state() {
      return { ...this.#state };
    }

    get(key) {
      return this.#state[key];
    }

    set(key, value) {
      if (this.#state[key] === value) return;
      this.#state[key] = value;
      for (const name of [`change:${key}`, "change"]) {
        for (const listener of this.#listeners.get(name) ?? []) listener(this, value);
      }
    }

    save_changes() {}

    on(name, listener) {
      this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    }

    off(name, listener) {
      const kept = (this.#listeners.get(name) ?? []).filter((other) => other !== listener);
      this.#listeners.set(name, kept);
    }
  }

  function start(place) {
    const standIn = [...place.childNodes];
    try {
      const frontEnd = window.mesaWidgets[place.dataset.frontEnd];
      place.model = new Model(JSON.parse(place.dataset.state)); // for whoever asks the page what was chosen
      frontEnd.render({ model: place.model, el: place });
    } catch (error) {
      place.replaceChildren(...standIn);
      console.error(`[live widgets] ${place.dataset.frontEnd}:`, error);
    }
  }

  document.querySelectorAll(".mesa-widget[data-front-end]").forEach(start);
  performance.mark("widgets-alive");
})();
