// A text with spans of it marked: answers and entities.

import { element } from "./dom.js";

const COLOURS = 6;
const CHARACTERS = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * A text with marks.
 * @param {string} text
 * @param {{start: number, end: number, kind?: string}[]} spans offsets that count as JavaScript does.
 * @param {string[]} [kinds] in the order of their colours.
 */
export function markedText(text, spans, kinds = []) {
  const parts = [];
  const characters = CHARACTERS.segment(text);
  let end = 0;
  for (const span of spans.map((one) => wholeCharacters(characters, one)).sort((one, other) => one.start - other.start)) {
    if (span.start < end) continue; // inside of the one before
    parts.push(text.slice(end, span.start), mark(text.slice(span.start, span.end), span.kind, kinds));
    end = span.end;
  }
  parts.push(text.slice(end));
  return element("p", { class: "marked-text", dir: "auto" }, ...parts);
}

/** A span that cuts no character as people see it: marks and joined emoji stay with their letters. */
function wholeCharacters(characters, span) {
  const [first, last] = [characters.containing(span.start), characters.containing(span.end - 1)];
  return { ...span, start: first.index, end: last.index + last.segment.length };
}

function mark(text, kind, kinds) {
  if (kind === undefined) return element("mark", {}, text);
  const name = element("span", { class: "kind" }, kind);
  return element("mark", { class: colourOf(kind, kinds) }, element("bdi", {}, text), " ", name);
}

/** What the colours stand for. */
export function legend(kinds) {
  const items = kinds.map((kind) => element("li", {}, element("mark", { class: colourOf(kind, kinds) }, kind)));
  return element("ul", { class: "legend", "aria-label": "Kinds" }, ...items);
}

function colourOf(kind, kinds) {
  return `colour-${kinds.indexOf(kind) % COLOURS}`;
}
