// Show a page's widgets without a kernel.
//
// Jupyter leaves the state of every widget in the page. An anywidget's state holds its own front end (`_esm`), so all that
// it needs is a model to talk to. Other widgets would need Jupyter's whole widget manager; the book uses none.
(() => {
  const VIEW = 'script[type="application/vnd.jupyter.widget-view+json"]';
  const STATE = 'script[type="application/vnd.jupyter.widget-state+json"]';

  /** What an anywidget's front end expects of its model; there is no kernel to tell. */
  class Model {
    #listeners = new Map();

    constructor(id, manager, state) {
      this.model_id = id;
      this.widget_manager = manager;
      this.state = state;
    }

    get(key) {
      return this.state[key];
    }

    set(key, value) {
      const changes = typeof key === "object" ? key : { [key]: value };
      const changed = Object.keys(changes).filter((name) => this.state[name] !== changes[name]);
      Object.assign(this.state, changes);
      for (const name of changed) this.trigger(`change:${name}`, this, changes[name]);
      if (changed.length) this.trigger("change", this);
    }

    save_changes() {}

    send() {}

    on(names, callback) {
      for (const name of names.split(/\s+/)) {
        this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), callback]);
      }
    }

    off(names, callback) {
      for (const name of names ? names.split(/\s+/) : [...this.#listeners.keys()]) {
        const kept = callback ? (this.#listeners.get(name) ?? []).filter((other) => other !== callback) : [];
        this.#listeners.set(name, kept);
      }
    }

    trigger(name, ...args) {
      for (const callback of this.#listeners.get(name) ?? []) callback(...args);
    }
  }

  /** Put binary values, which the page holds in base64, back at their places in the state. */
  function restoreBuffers(entry) {
    for (const { path, data } of entry.buffers ?? []) {
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
      let place = entry.state;
      for (const key of path.slice(0, -1)) place = place[key];
      place[path.at(-1)] = new DataView(bytes.buffer);
    }
  }

  /** Import a front end from its source text. */
  async function importSource(source) {
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    try {
      return await import(url);
    } finally {
      URL.revokeObjectURL(url);
    }
  }

  function context(more) {
    return { ...more, signal: new AbortController().signal, experimental: {} };
  }

  /** Load one widget's front end and its style; several views share them. */
  async function start(model) {
    const module = await importSource(model.get("_esm"));
    let widget = module.default ?? { render: module.render };
    if (typeof widget === "function") widget = await widget();
    await widget.initialize?.(context({ model }));
    if (model.get("_css")) {
      document.head.append(Object.assign(document.createElement("style"), { textContent: model.get("_css") }));
    }
    return widget;
  }

  async function main() {
    const stateTag = document.querySelector(STATE);
    if (!stateTag) return;
    const models = new Map();
    const manager = { get_model: async (id) => models.get(id) };
    for (const [id, entry] of Object.entries(JSON.parse(stateTag.textContent).state)) {
      restoreBuffers(entry);
      models.set(id, new Model(id, manager, entry.state));
    }
    const started = new Map();
    for (const tag of document.querySelectorAll(VIEW)) {
      const id = JSON.parse(tag.textContent).model_id;
      const model = models.get(id);
      if (!model?.get("_esm")) {
        console.error(`[mini-widgets] only anywidgets are shown without a kernel; this is ${model?.get("_model_name")}`);
        continue;
      }
      if (!started.has(id)) started.set(id, start(model));
      const el = document.createElement("div");
      el.className = "jupyter-widgets-view";
      tag.before(el);
      const widget = await started.get(id);
      await widget.render?.(context({ model, el }));
    }
  }

  main().catch((error) => console.error("[mini-widgets]", error));
})();
