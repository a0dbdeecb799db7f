// Attention to look at: chosen heads with lines between tokens, beside all heads in small.

import { meanShare, strongest } from "./attention_data.js";
import { readingOf } from "./attention_reading.js";
import { arrowsAmong, chooser, element, foreign, labelled, scrolling, shape, table } from "./dom.js";
import { saveButtons } from "./picture.js";
import { isSpecial, percent, wordPart } from "./text.js";

const FAINTEST = 0.01; // what is less is not drawn
const DIMMED = 0.12;
const VISIBLE = 0.75; // the power of a share that its line's opacity is
const THICKEST = 5;
const STRONG = 0.05; // what a sentence about a token names
const IN_THE_TABLE = 5;
const HUES = 47; // degrees between the colours of two heads, so that neighbours differ
const [WIDTH, HEIGHT, PAINT] = [64, 80, "#4f86dd"]; // of a head in small; the colour suits light and dark
const BETWEEN = {
  all: ["all tokens", () => true],
  aa: ["first text to itself", (from, to) => from === 0 && to === 0],
  ab: ["first text to second", (from, to) => from === 0 && to === 1],
  ba: ["second text to first", (from, to) => from === 1 && to === 0],
  bb: ["second text to itself", (from, to) => from === 1 && to === 1],
};

let views = 0;

/**
 * One text's attention: what it says in a sentence, the lines of a head, and all heads to choose from.
 * @param {Object} attention see `attentionOf`.
 * @param {Object} [shown] `held`: what a link holds (`layer`, `head` and `token`; without them the head
 *   that says most is shown); `hold`, told of every choice; `heading`, the element of headings.
 */
export function attentionView(attention, { held = {}, hold, heading = "h3" } = {}) {
  const reading = readingOf(attention);
  const state = { ...chosenBy(held, attention, reading), dims: true, between: "all" };
  const places = { said: element("div", { "aria-live": "polite" }), lines: element("div"), words: element("div"), all: element("div") };
  const picture = element("div", { class: "picture" }, places.said, places.lines);
  let light = () => {};

  /** Shows one token's lines alone, for as long as it is pointed at; null: those of the chosen one, if any. */
  const point = (token) => {
    const from = token ?? state.token;
    light(from);
    places.said.replaceChildren(...sentences(attention, reading, state, from));
  };
  const pick = (token) => {
    state.token = state.token === token ? null : token;
    keep();
    point(null);
  };
  const keep = () => {
    const token = state.token === null ? "" : `${state.token} ${attention.tokens[state.token]}`;
    hold?.({ layer: state.layer + 1, head: state.heads.map((head) => head + 1).join(), token });
  };
  const draw = () => {
    light = drawInto(places.lines, attention, reading, state, { point, pick });
    places.words.replaceChildren(inWords(attention, state));
    for (const button of places.all.querySelectorAll("button")) pressed(button, state);
    heads.forEach((button, head) => button.setAttribute("aria-pressed", String(state.heads.includes(head))));
    point(null);
  };
  const show = (changes) => {
    Object.assign(state, changes);
    draw();
    keep();
  };
  const redraw = (changes) => {
    Object.assign(state, changes);
    draw();
    places.all.replaceChildren(allHeads(attention, reading, state, show, heading));
  };
  const heads = headButtons(attention, state, show);
  redraw({});
  return element(
    "div",
    { class: "attention" },
    findButtons(reading, show),
    element(
      "div",
      { class: "views" },
      picture,
      element("div", { class: "beside" }, element("p", { class: "about" }, howToRead(attention)), saveButtons("attention", () => picture)),
      places.all,
    ),
    moreWays(attention, heads, redraw),
    places.words,
  );
}

function chosenBy(held, attention, reading) {
  const within = (number, count) => Number.isInteger(number) && number >= 0 && number < count;
  const layer = Number(held.layer) - 1;
  const heads = String(held.head ?? "").split(",").map((head) => Number(head) - 1);
  const token = attention.tokens.findIndex((one, number) => held.token === `${number} ${one}`);
  const known = within(layer, attention.layers) && heads.every((head) => within(head, attention.heads));
  const most = reading.finds[0] ?? { layer: 0, head: 0 };
  return { layer: known ? layer : most.layer, heads: known ? heads : [most.head], token: token < 0 ? null : token };
}

/** What is to be seen: of a token that is pointed at, else of the head. */
function sentences(attention, reading, state, from) {
  const name = (token) => foreign(reading.nameOf(token), { class: "name" });
  const place = placeOf(state).replace("l", "L");
  if (from !== null) {
    const most = strongest(attention, state.layer, state.heads, from, 3).filter(({ share }) => share >= STRONG);
    return said([name(from), most.length ? " looks at " : " looks at all alike", ...listed(most, name)], `${place}.`);
  }
  if (state.heads.length > 1) return said([`${state.heads.length} heads together, a colour each`], `${place}.`);
  const { best, habit } = reading.heads[state.layer][state.heads[0]];
  const { layer, head } = reading.finds[0] ?? {};
  const first = layer === state.layer && head === state.heads[0] ? ", which says most about this text" : "";
  const habits = `.${habit ? ` ${habit}` : ""}`;
  if (!best) return said(["In this head nothing stands out"], place, habits);
  const { from: one, to: other, share } = best;
  const whole = [one, other].every((token) => reading.nameOf(token) === attention.tokens[token]);
  const pieces = whole ? [] : [" (from ", foreign(attention.tokens[one]), " to ", foreign(attention.tokens[other]), ")"];
  return said(["Here ", name(one), " looks at ", name(other), `: ${percent(share)} of its attention`], place, ...pieces, first, habits);
}

/** Tokens with their shares. */
function listed(most, name) {
  return most.flatMap(({ to, share }, number) => [number ? ", " : "", name(to), ` ${percent(share)}`]);
}

function said(parts, ...about) {
  return [element("p", { class: "finding" }, ...parts), element("p", { class: "sum" }, ...about)];
}

function howToRead({ tokens }) {
  const pieces = tokens.some((token) => wordPart(token) !== token) ? " ## continues a word." : "";
  return `A line goes from a token to one that it looks at; the thicker, the more it takes from there. Point at a token, or tap it, to see its lines alone. [CLS] and [SEP] stand around every text; a head that finds nothing often looks there.${pieces} Lines show where a head takes from, not why the model answers as it does.`;
}

/** The heads that say most, each by its strongest line. */
function findButtons({ finds, nameOf }, show) {
  if (!finds.length) return null;
  const buttons = finds.map(({ layer, head, best }) =>
    element(
      "button",
      { type: "button", onclick: () => show({ layer, heads: [head], token: null }) },
      foreign(nameOf(best.from)),
      element("span", { role: "img", "aria-label": "looks at" }, " → "),
      foreign(nameOf(best.to)),
    ),
  );
  const name = "Worth a look";
  return element("div", { class: "finds", role: "group", "aria-label": name }, element("span", {}, name), ...buttons);
}

/** What is chosen more rarely. */
function moreWays(attention, heads, redraw) {
  const dim = element("input", {
    type: "checkbox",
    id: `dim-${(views += 1)}`,
    checked: true,
    onchange: (event) => redraw({ dims: event.target.checked }),
  });
  const bar = element(
    "div",
    { class: "controls" },
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
    bar.append(labelled("From and to", ({ id }) => chooser(options, "all", { id, onchange: set }), `between-${views}`));
  }
  bar.append(element("div", { class: "field tick" }, dim, element("label", { for: dim.id }, "Dim [CLS] and [SEP]")));
  return element("details", { class: "more" }, element("summary", {}, "More ways to look"), bar);
}

/** A button for each head, which shows it beside those that are shown, or no longer. */
function headButtons(attention, state, show) {
  const toggle = (head) => {
    const others = state.heads.filter((one) => one !== head);
    const heads = state.heads.includes(head) ? others : [...others, head];
    if (heads.length) show({ heads });
  };
  const buttons = numbered(attention.heads).map(([head, name]) =>
    hued(element("button", { type: "button", "aria-label": `Head ${name}`, onclick: () => toggle(head) }, name), head),
  );
  arrowsAmong(buttons, attention.heads, state.heads[0]);
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

function* linesFrom(attention, state, layer, head, from) {
  for (let to = 0; to < attention.length; to += 1) {
    const share = strength(attention, state, layer, head, from, to);
    if (share >= FAINTEST) yield { from, to, share };
  }
}

/**
 * Draws the lines of the chosen heads between two columns of tokens.
 * @returns what shows the lines of one token alone (null: all).
 */
function drawInto(place, attention, reading, state, { point, pick }) {
  const { layer, heads } = state;
  const best = heads.length > 1 ? null : reading.heads[layer][heads[0]].best;
  const lineOf = ({ from, to, share }, head) => {
    const drawn = shape("path", {
      d: `M0 ${from + 0.5}C50 ${from + 0.5} 50 ${to + 0.5} 100 ${to + 0.5}`,
      "stroke-opacity": (share ** VISIBLE).toFixed(3),
      "stroke-width": (1 + THICKEST * share).toFixed(2),
      class: best?.from === from && best.to === to ? "best" : null,
    });
    return heads.length > 1 ? hued(drawn, head) : drawn;
  };
  const groups = attention.tokens.map((_, from) =>
    shape("g", {}, ...heads.flatMap((head) => [...linesFrom(attention, state, layer, head, from)].map((line) => lineOf(line, head)))),
  );
  const buttons = attention.tokens.map((token, number) =>
    element(
      "button",
      {
        type: "button",
        class: classOf(token, state, best?.from === number),
        onclick: () => pick(number),
        onfocus: () => point(number),
        onblur: () => point(null),
        onpointerenter: (event) => event.pointerType === "mouse" && point(number),
        onpointerleave: () => point(null),
      },
      foreign(token),
    ),
  );
  arrowsAmong(buttons, 1, state.token ?? 0);
  const shares = attention.tokens.map(() => element("span", { class: "share" }));
  const right = attention.tokens.map((token, to) =>
    element("li", { class: classOf(token, state, best?.to === to) }, foreign(token), shares[to]),
  );
  const name = `Attention of ${placeOf(state)}; the table below says it in words.`;
  const side = (text) => element("p", { class: "side", "aria-hidden": "true" }, text);
  const made = element(
    "div",
    { class: "one-head" },
    side("this token"),
    side(""),
    side("looks at"),
    element("ol", { "aria-label": "From; a token shows its lines alone" }, ...buttons.map((button) => element("li", {}, button))),
    shape("svg", { viewBox: `0 0 100 ${attention.length}`, preserveAspectRatio: "none", role: "img", "aria-label": name }, ...groups),
    element("ol", { "aria-label": "To" }, ...right),
  );
  place.replaceChildren(made);
  return (from) => {
    made.classList.toggle("alone", from !== null);
    groups.forEach((group, number) => group.classList.toggle("aside", from !== null && from !== number));
    buttons.forEach((button, number) => {
      button.classList.toggle("looking", from === number);
      button.setAttribute("aria-pressed", String(state.token === number));
    });
    right.forEach((item, to) => {
      const share = from === null ? 0 : meanShare(attention, layer, heads, from, to);
      shares[to].textContent = share >= FAINTEST ? percent(share) : "";
      item.style.setProperty("--share", String(share));
    });
  };
}

/** The layer and the heads that are shown, in words. */
function placeOf({ layer, heads }) {
  return `layer ${layer + 1}, ${heads.length > 1 ? "heads" : "head"} ${heads.map((head) => head + 1).join(", ")}`;
}

function classOf(token, state, isBest) {
  return `token${state.dims && isSpecial(token) ? " dimmed" : ""}${isBest ? " best" : ""}`;
}

function inWords(attention, state) {
  const rows = attention.tokens.map((token, from) => {
    const most = strongest(attention, state.layer, state.heads, from, IN_THE_TABLE);
    return [foreign(token), element("span", {}, ...listed(most, (to) => foreign(attention.tokens[to])))];
  });
  const mean = state.heads.length > 1 ? ", the mean of the heads" : "";
  const caption = `What each token attends to most in ${placeOf(state)}${mean}`;
  return element(
    "details",
    {},
    element("summary", {}, "The same as a table"),
    table(caption, ["Token", "Attends to"], rows),
  );
}

function allHeads(attention, reading, state, show, heading) {
  const named = (name) => element("span", { class: "number", "aria-hidden": "true" }, name);
  const buttons = [];
  const cells = [named(""), ...numbered(attention.heads).map(([, name]) => named(name))];
  for (const [layer, name] of numbered(attention.layers)) {
    cells.push(named(name));
    for (const [head, headName] of numbered(attention.heads)) {
      const { best } = reading.heads[layer][head];
      const line = best ? `: ${reading.nameOf(best.from)} → ${reading.nameOf(best.to)}` : "";
      const title = `Layer ${name}, head ${headName}${line}`;
      const found = reading.finds.includes(reading.heads[layer][head]) ? " found" : "";
      const choose = () => show({ layer, heads: [head] });
      const attributes = { type: "button", class: `head${found}`, title, "aria-label": title, onclick: choose };
      const button = element("button", attributes, small(attention, state, layer, head));
      button.dataset.place = `${layer} ${head}`;
      pressed(button, state);
      buttons.push(button);
      cells.push(button);
    }
  }
  arrowsAmong(buttons, attention.heads, state.layer * attention.heads + state.heads[0]);
  const label = "Heads; the arrow keys go from one to the next";
  const grid = element("div", { class: "all-heads", role: "group", "aria-label": label }, ...cells);
  grid.style.setProperty("--heads", String(attention.heads));
  const about = `Each of the ${attention.layers} layers (rows) reads the text with ${attention.heads} heads (columns), each in its own way. Choose one.`;
  return element("div", {}, element(heading, {}, "All heads"), element("p", { class: "sum" }, about), scrolling("All heads", grid));
}

function pressed(button, state) {
  button.setAttribute("aria-pressed", String(button.dataset.place === `${state.layer} ${state.heads[0]}`));
}

/** A head in small. */
function small(attention, state, layer, head) {
  const canvas = element("canvas", { width: WIDTH, height: HEIGHT });
  const pen = canvas.getContext("2d");
  const step = HEIGHT / attention.length;
  pen.strokeStyle = PAINT;
  pen.lineWidth = 2;
  for (let token = 0; token < attention.length; token += 1) {
    for (const { from, to, share } of linesFrom(attention, state, layer, head, token)) {
      pen.globalAlpha = share;
      pen.beginPath();
      pen.moveTo(0, (from + 0.5) * step);
      pen.lineTo(WIDTH, (to + 0.5) * step);
      pen.stroke();
    }
  }
  return canvas;
}
