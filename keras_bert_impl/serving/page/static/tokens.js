// A text as the model sees it: its tokens with their ids.

import { element, foreign, unseen } from "./dom.js";
import { counted, isSpecial, wordPart } from "./text.js";

/** @param {{tokens: string[], ids: number[], segments: number[]}[]} rows one or more for a text. */
export function tokenRows(rows, direction) {
  return element("div", {}, ...rows.map((row, number) => tokenRow(row, number, rows.length, direction)));
}

function tokenRow({ tokens, ids, segments }, number, count, direction) {
  const unknown = tokens.filter((token) => token === "[UNK]").length;
  const title = count > 1 ? `Row ${number + 1} of ${count}: ` : "";
  const sum = unknown
    ? `${counted(tokens.length, "token")}, ${counted(unknown, "word")} unknown to the vocabulary`
    : `${counted(tokens.length, "token")}, no unknown word`;
  const items = tokens.map((token, place) => tokenItem(token, ids[place], segments[place]));
  return element(
    "section",
    {},
    element("p", { class: "sum" }, title + sum),
    element("ol", { class: "tokens", dir: direction, "aria-label": "Tokens" }, ...items),
  );
}

function tokenItem(token, id, segment) {
  const continues = wordPart(token) !== token;
  const kinds = [
    "chip",
    continues && "continues",
    isSpecial(token) && "special",
    token === "[UNK]" && "unknown",
    token === "[MASK]" && "mask",
    segment === 1 && "second",
  ];
  return element(
    "li",
    { class: kinds.filter(Boolean).join(" ") },
    foreign(token, { class: "word" }),
    element("span", { class: "id" }, unseen(" id "), String(id)),
    token === "[UNK]" ? unseen(" (unknown word)") : null,
  );
}
