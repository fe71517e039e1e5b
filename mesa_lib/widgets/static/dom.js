// Elements of a page and of a drawing.

/** An element of HTML with attributes and children. */
export function html(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An element of SVG with attributes and children. */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

/** Set attributes; those that are undefined, null or false are left out. */
export function furnish(node, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) node.removeAttribute(name);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

/** A name that no other element of the page has. */
export function freshId() {
  return `mw-${Math.random().toString(36).slice(2)}`;
}
