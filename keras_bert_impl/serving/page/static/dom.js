// Elements made in code: what comes from people is text and never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Makes an element.
 * @param {string} tag
 * @param {Object} [attributes] functions are listeners ("onclick"); true, false and null say
 *   whether an attribute without a value stands there.
 * @param {...(Node|string|null)} children strings become text.
 */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for a part of a drawing. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** A user's text, in its own direction, which cannot turn what is around it. */
export function foreign(text, attributes = {}) {
  return element("bdi", attributes, text);
}

/** A field with its label; `make` gets the attributes that tie the two together. */
export function labelled(label, make, id) {
  return element("div", { class: "field" }, element("label", { for: id }, label), make({ id }));
}

/** Text for those who hear the page. */
export function unseen(text) {
  return element("span", { class: "unseen" }, text);
}

/** A choice among values. */
export function chooser(options, chosen, attributes) {
  const made = options.map(([value, label]) =>
    element("option", { value, selected: String(value) === String(chosen) }, label),
  );
  return element("select", attributes, ...made);
}

/** A table with a caption, in a frame of its own that scrolls where the screen is narrow. */
export function table(caption, headings, rows, attributes = {}) {
  const head = element("tr", {}, ...headings.map((one) => element("th", { scope: "col" }, one)));
  const body = rows.map(([first, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...cells.map((cell) => element("td", {}, cell))),
  );
  const made = element(
    "table",
    attributes,
    element("caption", {}, caption),
    element("thead", {}, head),
    element("tbody", {}, ...body),
  );
  return scrolling(caption, made);
}

/** A frame that scrolls sideways, also by keys. */
export function scrolling(name, ...children) {
  const attributes = { class: "scrolling", tabindex: "0", role: "group", "aria-label": name };
  return element("div", attributes, ...children);
}

/**
 * Lets the arrow keys go from one button of a group to the next, so that Tab needs one step for all.
 * @param {HTMLElement[]} buttons
 * @param {number} columns of their grid; 1 for a list.
 * @param {number} [first] which one Tab comes to.
 */
export function arrowsAmong(buttons, columns, first = 0) {
  buttons.forEach((button, number) => {
    button.tabIndex = number === first ? 0 : -1;
    button.addEventListener("keydown", (event) => {
      const next = number + (stepOf(event.key, columns) ?? Number.NaN);
      if (!buttons[next]) return;
      event.preventDefault();
      for (const other of buttons) other.tabIndex = -1;
      buttons[next].tabIndex = 0;
      buttons[next].focus();
    });
  });
}

function stepOf(key, columns) {
  if (columns === 1) return { ArrowUp: -1, ArrowDown: 1 }[key];
  return { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[key];
}
