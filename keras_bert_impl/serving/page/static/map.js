// A map of texts: their vectors in two dimensions.

import { arrowsAmong, element, foreign, shape, table } from "./dom.js";
import { cosines } from "./heat_map.js";
import { saveButtons } from "./picture.js";
import { mapOf } from "./projection.js";
import { predict } from "./server.js";
import { counted, percent } from "./text.js";

const NAMED = 60; // as many texts have room for their words
const NEAREST = 3;
const HUES = 137; // degrees between the colours of two labels
const WIDE = { width: 940, height: 560, letters: 30 };
const NARROW = { width: 330, height: 400, letters: 18 };
const MARGIN = 24;
const [SIZE, SMALL, CROWD] = [5, 3, 150]; // of a dot, and from how many texts on it is small
const HEIGHT_OF_WORDS = 16;
const CORNERS = [
  [[-1, -1], [1, -1], [1, 1], [-1, 1]], // a square
  [[0, -1.35], [1.35, 0], [0, 1.35], [-1.35, 0]],
  [[0, -1.3], [1.25, 0.95], [-1.25, 0.95]],
  [[-1.25, -0.95], [1.25, -0.95], [0, 1.3]],
];

/** A line is a text, or `label<TAB>text`. */
export async function showMap(panel, instances, context) {
  const { model, signature } = panel;
  const lines = instances.map((instance) => {
    const [field] = Object.keys(instance);
    const [, label = "", text] = instance[field].match(/^(?:([^\t]*)\t)?(.*)$/s);
    return { field, label: label.trim(), text: text.trim() };
  });
  if (lines.length < 3) return [element("p", { class: "sum" }, "Write three texts or more, one a line.")];
  const asked = lines.map(({ field, text }) => ({ [field]: text }));
  const answers = await predict(model, signature, asked, context);
  return [textMap(lines, answers.map(({ embedding }) => embedding), context)];
}

/**
 * The map of texts by their vectors.
 * @param {{text: string, label: string}[]} texts
 * @param {number[][]} vectors of them.
 * @param {Object} context `held`: what a link holds (`point`, counted from 1); `hold`, told of every choice.
 */
function textMap(texts, vectors, { held, hold }) {
  const likeness = cosines(vectors);
  const { places, share } = mapOf(likeness);
  const nearest = texts.map((_, number) => nearestOf(likeness[number], number));
  const labels = [...new Set(texts.map(({ label }) => label))].filter(Boolean);
  const size = matchMedia("(max-width: 40rem)").matches ? NARROW : WIDE;
  const spots = spotsOf(places, size);
  const said = element("p", { class: "pointed", "aria-live": "polite" }, "Point at a dot, or tap it, to see its text and the texts most like it.");
  const links = shape("g", { class: "links" });
  let shown = null;
  const point = (number) => {
    if (number === shown) return;
    dots[shown]?.classList.remove("shown");
    dots[number].classList.add("shown");
    const [x, y] = spots[(shown = number)];
    links.replaceChildren(...nearest[number].map((other) => shape("path", { d: `M${x} ${y}L${spots[other].join(" ")}` })));
    said.replaceChildren(...inWords(texts, likeness, nearest, number));
  };
  const dots = texts.map(({ text, label }, number) =>
    shape("g", { class: "dot", role: "img", "aria-label": label ? `${label}: ${text}` : text, onfocus: () => point(number) }, dot(spots[number], labels, label, texts.length)),
  );
  const inOrder = [...dots.keys()].sort((one, other) => spots[one][0] - spots[other][0]);
  arrowsAmong(inOrder.map((number) => dots[number]), texts.length);
  const drawing = shape(
    "svg",
    {
      viewBox: `0 0 ${size.width} ${size.height}`,
      role: "group",
      "aria-label": `A map of ${counted(texts.length, "text")}; the arrow keys go from left to right`,
      onpointermove: (event) => point(closest(spots, event)),
      onclick: (event) => {
        point(closest(spots, event));
        hold({ point: shown + 1 });
      },
    },
    links,
    ...inOrder.map((number) => dots[number]),
    ...(texts.length > NAMED ? [] : namesBeside(spots, texts, size)),
  );
  if (dots[held.point - 1]) point(held.point - 1);
  const picture = element("div", { class: "picture map" }, labels.length ? legendOf(labels) : null, drawing);
  const about = `Texts with like meanings lie near each other. The two directions show ${percent(share)} of what tells these ${texts.length} texts apart; lines lead from a dot to the texts that are most like it in all directions.`;
  return element("div", {}, picture, said, element("p", { class: "sum" }, about), saveButtons("map", () => picture), asList(texts, likeness, nearest));
}

function nearestOf(row, number) {
  const others = [...row.keys()].filter((other) => other !== number);
  return others.sort((one, other) => row[other] - row[one]).slice(0, NEAREST);
}

/** Places in the drawing: one scale for both directions, in the middle. */
function spotsOf(places, { width, height }) {
  const range = (axis) => {
    const all = places.map((place) => place[axis]);
    return [Math.min(...all), Math.max(...all)];
  };
  const [[left, right], [bottom, top]] = [range(0), range(1)];
  const scale = Math.min((width - 2 * MARGIN) / (right - left || 1), (height - 2 * MARGIN) / (top - bottom || 1));
  const rounded = (number) => Math.round(10 * number) / 10;
  return places.map(([x, y]) => [
    rounded(width / 2 + (x - (left + right) / 2) * scale),
    rounded(height / 2 - (y - (bottom + top) / 2) * scale),
  ]);
}

/** The dot that an event is closest to. */
function closest(spots, event) {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(event.currentTarget.getScreenCTM().inverse());
  const far = spots.map(([left, top]) => Math.hypot(left - x, top - y));
  return far.indexOf(Math.min(...far));
}

/** A dot in its label's colour and shape. */
function dot([x, y], labels, label, count = 1) {
  const size = count > CROWD ? SMALL : SIZE;
  const number = Math.max(0, labels.indexOf(label));
  const corners = CORNERS[number % CORNERS.length];
  const path = corners.map(([right, down]) => `${(x + size * right).toFixed(1)} ${(y + size * down).toFixed(1)}`).join("L");
  const made = shape("path", { d: `M${path}Z` });
  made.style.setProperty("--hue", String((215 + number * HUES) % 360));
  return made;
}

/** The words of texts beside their dots, as far as there is room. */
function namesBeside(spots, texts, { width, letters }) {
  const pen = element("canvas").getContext("2d");
  pen.font = "12px system-ui, sans-serif";
  const taken = spots.map(([x, y]) => [x - SIZE, y - SIZE, x + SIZE, y + SIZE]);
  const free = ([left, top, right, bottom]) =>
    left >= 0 && right <= width && taken.every(([l, t, r, b]) => right < l || r < left || bottom < t || b < top);
  return texts.flatMap(({ text }, number) => {
    const [x, y] = spots[number];
    const whole = [...text];
    const name = whole.length > letters ? `${whole.slice(0, letters - 1).join("")}…` : text;
    const long = pen.measureText(name).width * 1.1;
    const middle = x - long / 2;
    const corners = [[x + 9, y], [x - 9 - long, y], [middle, y - HEIGHT_OF_WORDS], [middle, y + HEIGHT_OF_WORDS]];
    const box = corners.map(([left, line]) => [left, line - HEIGHT_OF_WORDS / 2, left + long, line + HEIGHT_OF_WORDS / 2]).find(free);
    if (!box) return [];
    taken.push(box);
    return [shape("text", { x: (box[0] + box[2]) / 2, y: (box[1] + box[3]) / 2 + 4, "text-anchor": "middle", "aria-hidden": "true" }, name)];
  });
}

function legendOf(labels) {
  const items = labels.map((label) =>
    element("li", {}, shape("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, dot([0, 0], labels, label)), foreign(label)),
  );
  return element("ul", { class: "legend", "aria-label": "Labels" }, ...items);
}

function inWords(texts, likeness, nearest, number) {
  const { text, label } = texts[number];
  const others = nearest[number].flatMap((other, place) => [place ? ", " : "", foreign(texts[other].text), ` ${likeness[number][other].toFixed(2)}`]);
  return [foreign(text, { class: "chosen" }), label ? " (" : "", label ? foreign(label) : "", label ? ")" : "", ". Most like it: ", ...others];
}

function asList(texts, likeness, nearest) {
  const rows = texts.map(({ text, label }, number) => {
    const [first] = nearest[number];
    return [foreign(text), foreign(label), foreign(texts[first].text), likeness[number][first].toFixed(2)];
  });
  const caption = "Each text with the one most like it";
  return element("details", {}, element("summary", {}, "The same as a list"), table(caption, ["Text", "Label", "Most like it", "Cosine"], rows));
}
