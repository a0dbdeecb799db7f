// Attention to look at: chosen heads with lines between tokens, and all heads side by side.

import { meanShare, strongest } from "./attention_data.js";
import { arrowsAmong, chooser, element, foreign, labelled, scrolling, shape, table } from "./dom.js";
import { isSpecial, percent } from "./text.js";

const FAINTEST = 0.01; // what is less is not drawn
const DIMMED = 0.12;
const VISIBLE = 0.75; // the power of a share that its line's opacity is
const IN_THE_TABLE = 5;
const HUES = 47; // degrees between the colours of two heads, so that neighbours differ
const BETWEEN = {
  all: ["all tokens", () => true],
  aa: ["first text to itself", (from, to) => from === 0 && to === 0],
  ab: ["first text to second", (from, to) => from === 0 && to === 1],
  ba: ["second text to first", (from, to) => from === 1 && to === 0],
  bb: ["second text to itself", (from, to) => from === 1 && to === 1],
};

let views = 0;

/**
 * Both views of one text's attention, with what chooses layer, head and tokens.
 * @param {Object} attention see `attentionOf`.
 * @param {Object} [chosen] `layer` and `head` from 0; `onchoice`, told of every choice; `heading`,
 *   the element of the view's own heading.
 */
export function attentionView(attention, chosen = {}) {
  const id = (views += 1);
  const state = {
    layer: within(chosen.layer, attention.layers),
    head: within(chosen.head, attention.heads),
    beside: [], // further heads, shown with it
    dims: true,
    between: "all",
    from: null,
  };
  const places = { one: element("div"), all: element("div"), words: element("div") };

  const select = (from) => {
    state.from = state.from === from ? null : from;
    places.one.replaceChildren(oneHead(attention, state, select));
    places.one.querySelectorAll("button")[from].focus();
  };
  const show = (changes) => {
    Object.assign(state, "head" in changes ? { beside: [] } : {}, changes);
    places.one.replaceChildren(oneHead(attention, state, select));
    places.words.replaceChildren(inWords(attention, state));
    for (const button of places.all.querySelectorAll("button")) pressed(button, state);
    controls.layer.value = state.layer;
    controls.head.value = state.head;
    controls.heads.forEach((button, head) => button.setAttribute("aria-pressed", String(headsOf(state).includes(head))));
    chosen.onchoice?.({ layer: state.layer, head: state.head });
  };
  const redraw = (changes) => {
    show(changes);
    places.all.replaceChildren(allHeads(attention, state, show, chosen.heading ?? "h3"));
  };
  const controls = controlsOf(attention, state, show, redraw, id);
  redraw({});
  repaintedWithScheme(places.all, () => redraw({}));
  return element("div", { class: "attention" }, controls.bar, places.one, places.words, places.all);
}

/** The heads that are shown, in their order of choice. */
function headsOf(state) {
  return [state.head, ...state.beside];
}

function within(number, count) {
  return Number.isInteger(number) && number >= 0 && number < count ? number : 0;
}

function controlsOf(attention, state, show, redraw, id) {
  const choose = (name) => (event) => show({ [name]: Number(event.target.value) });
  const layer = chooser(numbered(attention.layers), state.layer, { id: `layer-${id}`, onchange: choose("layer") });
  const head = chooser(numbered(attention.heads), state.head, { id: `head-${id}`, onchange: choose("head") });
  const dim = element("input", {
    type: "checkbox",
    id: `dim-${id}`,
    checked: state.dims,
    onchange: (event) => redraw({ dims: event.target.checked }),
  });
  const bar = element(
    "div",
    { class: "controls" },
    labelled("Layer", () => layer, layer.id),
    labelled("Head", () => head, head.id),
  );
  const heads = headButtons(attention, state, show);
  bar.append(
    element(
      "div",
      { class: "field", role: "group", "aria-label": "Heads shown together, a colour each" },
      element("span", { "aria-hidden": "true" }, "Heads together"),
      element("div", { class: "heads" }, ...heads),
    ),
  );
  if (attention.segments.includes(1)) {
    const options = Object.entries(BETWEEN).map(([value, [label]]) => [value, label]);
    const set = (event) => redraw({ between: event.target.value });
    const between = chooser(options, state.between, { id: `between-${id}`, onchange: set });
    bar.append(labelled("From and to", () => between, between.id));
  }
  bar.append(
    element("div", { class: "field tick" }, dim, element("label", { for: dim.id }, "Dim [CLS] and [SEP]")),
  );
  return { bar, layer, head, heads };
}

/** A button for each head, which shows it beside those that are shown, or no longer. */
function headButtons(attention, state, show) {
  const toggle = (head) => {
    const others = headsOf(state).filter((one) => one !== head);
    const [first, ...beside] = headsOf(state).includes(head) ? others : [...others, head];
    if (first !== undefined) show({ head: first, beside });
  };
  const buttons = numbered(attention.heads).map(([head, name]) =>
    hued(element("button", { type: "button", "aria-label": `Head ${name}`, onclick: () => toggle(head) }, name), head),
  );
  arrowsAmong(buttons, attention.heads, state.head);
  return buttons;
}

/** Gives an element the colour of a head. */
function hued(made, head) {
  made.classList.add("hued");
  made.style.setProperty("--hue", String((head * HUES) % 360));
  return made;
}

function numbered(count) {
  return Array.from({ length: count }, (_, number) => [number, String(number + 1)]);
}

/** How strongly a line is drawn: the share, less for special tokens and none for what is left out. */
function strength(attention, state, layer, head, from, to) {
  const { tokens, segments } = attention;
  if (!BETWEEN[state.between][1](segments[from], segments[to])) return 0;
  const dims = state.dims && (isSpecial(tokens[from]) || isSpecial(tokens[to]));
  return attention.at(layer, head, from, to) * (dims ? DIMMED : 1);
}

function* linesBetween(attention, state, layer, head) {
  for (let from = 0; from < attention.length; from += 1) {
    for (let to = 0; to < attention.length; to += 1) {
      const share = strength(attention, state, layer, head, from, to);
      if (share >= FAINTEST) yield { from, to, share };
    }
  }
}

function oneHead(attention, state, select) {
  const { layer, from } = state;
  const heads = headsOf(state);
  const lines = heads.flatMap((head) =>
    [...linesBetween(attention, state, layer, head)].map((line) => {
      const drawn = lineOf(line, from);
      return heads.length > 1 ? hued(drawn, head) : drawn;
    }),
  );
  const drawing = shape(
    "svg",
    {
      viewBox: `0 0 100 ${attention.length}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Attention of ${placeOf(state)}; the table below says it in words.`,
    },
    ...lines,
  );
  const buttons = attention.tokens.map((token, number) =>
    element(
      "button",
      {
        type: "button",
        class: classOf(token, state),
        "aria-pressed": String(from === number),
        onclick: () => select(number),
      },
      foreign(token),
    ),
  );
  arrowsAmong(buttons, 1, from ?? 0);
  const left = buttons.map((button) => element("li", {}, button));
  const right = attention.tokens.map((token, to) => target(attention, state, token, to));
  return element(
    "div",
    { class: "one-head" },
    element("p", { class: "side", "aria-hidden": "true" }, "from"),
    element("p", { class: "side", "aria-hidden": "true" }, ""),
    element("p", { class: "side", "aria-hidden": "true" }, "to"),
    element("ol", { "aria-label": "From; a token shows its lines alone" }, ...left),
    drawing,
    element("ol", { "aria-label": "To" }, ...right),
  );
}

function lineOf(line, from) {
  return shape("line", {
    x1: 0,
    y1: line.from + 0.5,
    x2: 100,
    y2: line.to + 0.5,
    "stroke-opacity": (line.share ** VISIBLE).toFixed(3),
    class: from === null || from === line.from ? null : "aside",
  });
}

/** The layer and the heads that are shown, in words. */
function placeOf(state) {
  const heads = headsOf(state).map((head) => head + 1);
  return `layer ${state.layer + 1}, ${heads.length > 1 ? "heads" : "head"} ${heads.join(", ")}`;
}

function target(attention, state, token, to) {
  const { layer, from } = state;
  const share = from === null ? null : meanShare(attention, layer, headsOf(state), from, to);
  const said = share === null ? null : element("span", { class: "share" }, percent(share));
  const strong = share !== null && share >= 0.1 ? " strong" : "";
  return element("li", { class: classOf(token, state) + strong }, foreign(token), said);
}

function classOf(token, state) {
  return `token${state.dims && isSpecial(token) ? " dimmed" : ""}`;
}

function inWords(attention, state) {
  const rows = attention.tokens.map((token, from) => [
    foreign(token),
    element("span", {}, ...said(strongest(attention, state.layer, headsOf(state), from, IN_THE_TABLE))),
  ]);
  const mean = state.beside.length ? ", the mean of the heads" : "";
  const caption = `What each token attends to most in ${placeOf(state)}${mean}`;
  return element(
    "details",
    {},
    element("summary", {}, "The same as a table"),
    table(caption, ["Token", "Attends to"], rows),
  );
}

function said(targets) {
  return targets.flatMap(({ token, share }, number) => [
    number ? ", " : "",
    foreign(token),
    ` ${percent(share)}`,
  ]);
}

function allHeads(attention, state, show, heading) {
  const buttons = [];
  const rows = numbered(attention.layers).map(([layer, name]) => {
    const cells = numbered(attention.heads).map(([head, headName]) => {
      const button = element(
        "button",
        { type: "button", class: "head", "aria-label": `Layer ${name}, head ${headName}`, onclick: () => show({ layer, head }) },
        small(attention, state, layer, head),
      );
      button.dataset.place = `${layer} ${head}`;
      pressed(button, state);
      buttons.push(button);
      return button;
    });
    return element("div", { class: "layer" }, element("span", { class: "name", "aria-hidden": "true" }, name), ...cells);
  });
  arrowsAmong(buttons, attention.heads, state.layer * attention.heads + state.head);
  const columns = numbered(attention.heads).map(([, name]) => element("span", { class: "name head-name" }, name));
  const title = "All heads: a row for each layer, a column for each head";
  return element(
    "div",
    {},
    element(heading, {}, title),
    scrolling(
      title,
      element(
        "div",
        { class: "all-heads", role: "group", "aria-label": "Heads; the arrow keys go from one to the next" },
        element("div", { class: "layer", "aria-hidden": "true" }, element("span", { class: "name" }), ...columns),
        ...rows,
      ),
    ),
  );
}

function pressed(button, state) {
  button.setAttribute("aria-pressed", String(button.dataset.place === `${state.layer} ${state.head}`));
}

const WIDTH = 96;
const HEIGHT = 120;

/** A head in small; painted when it is on the page, where its colour is known. */
function small(attention, state, layer, head) {
  const canvas = element("canvas", { width: WIDTH, height: HEIGHT });
  const lines = [...linesBetween(attention, state, layer, head)];
  requestAnimationFrame(() => {
    const pen = canvas.getContext("2d");
    const step = HEIGHT / attention.length;
    pen.strokeStyle = getComputedStyle(canvas).color;
    pen.lineWidth = 1.5;
    for (const { from, to, share } of lines) {
      pen.globalAlpha = share ** VISIBLE;
      pen.beginPath();
      pen.moveTo(0, (from + 0.5) * step);
      pen.lineTo(WIDTH, (to + 0.5) * step);
      pen.stroke();
    }
  });
  return canvas;
}

function repaintedWithScheme(place, redraw) {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const changed = () => (place.isConnected ? redraw() : scheme.removeEventListener("change", changed));
  scheme.addEventListener("change", changed);
}
