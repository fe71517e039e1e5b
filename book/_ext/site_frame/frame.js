// What the style sheet cannot do: let the keyboard reach what scrolls in place, and keep commas beside their formulas.
(() => {
  const SCROLLING = {
    "div.highlight pre, div.cell_output pre": "code",
    "div.math, mjx-container": "formula",
    "div.pst-scrollable-table-container, div.cell_output div.output": "table",
  };

  /** Give every box that is wider inside than outside a place in the tab order and a name, and take both back after. */
  function nameScrolling() {
    for (const [selector, what] of Object.entries(SCROLLING)) {
      for (const box of document.querySelectorAll(`.bd-article :is(${selector})`)) {
        const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
        if (scrolls && !box.dataset.scrolls) {
          box.dataset.scrolls = what;
          box.tabIndex = 0;
          box.setAttribute("role", "group");
          box.setAttribute("aria-label", `${what}, scrolls sideways`);
        } else if (!scrolls && box.dataset.scrolls) {
          for (const name of ["data-scrolls", "tabindex", "role", "aria-label"]) box.removeAttribute(name);
        }
      }
    }
  }

  /** The browser may break a line on both sides of a formula. Tie a short one to the punctuation that touches it. */
  function glue() {
    for (const formula of document.querySelectorAll(".bd-article span.math")) {
      const before = formula.previousSibling;
      const after = formula.nextSibling;
      const opening = before?.nodeType === Node.TEXT_NODE ? before.data.match(/[(\[“]+$/)?.[0] : undefined;
      const closing = after?.nodeType === Node.TEXT_NODE ? after.data.match(/^[^\s–—]{1,12}/)?.[0] : undefined;
      if ((!opening && !closing) || formula.offsetWidth > 240) continue;
      const glued = Object.assign(document.createElement("span"), { className: "glued" });
      formula.before(glued);
      if (opening) glued.append(before.splitText(before.length - opening.length));
      glued.append(formula);
      if (closing) {
        after.splitText(closing.length);
        glued.append(after);
      }
    }
  }

  /** A formula in a line that is wider than the column scrolls in place; any other stays part of the line. */
  function markWide() {
    for (const formula of document.querySelectorAll(".bd-article mjx-container:not([display])")) {
      const column = formula.closest("p, li, dd, td, figcaption") ?? formula.parentElement;
      formula.classList.toggle("wide", formula.scrollWidth > column.clientWidth);
    }
  }

  let waiting;
  function soon() {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      markWide();
      nameScrolling();
    }, 100);
  }

  document.addEventListener("DOMContentLoaded", soon);
  addEventListener("load", async () => {
    await window.MathJax?.startup?.promise;
    glue();
    soon();
  });
  addEventListener("resize", soon);
})();
