// Vectors compared: how like each text is to each other one.

import { element, foreign, table } from "./dom.js";
import { dot } from "./projection.js";

/** The cosines of vectors with each other. */
export function cosines(vectors) {
  const units = vectors.map((vector) => {
    const length = Math.hypot(...vector) || 1;
    return vector.map((number) => number / length);
  });
  return units.map((one) => units.map((other) => dot(one, other)));
}

/** Texts with the numbers of `cosines`, as a coloured table. */
export function heatMap(texts, numbers) {
  const rows = texts.map((text, row) => [
    element("span", {}, `${row + 1}. `, foreign(text)),
    ...numbers[row].map(cell),
  ]);
  const headings = ["Text", ...texts.map((_, number) => String(number + 1))];
  return table("Similarity (cosine) of each text with each other", headings, rows, { class: "heat" });
}

function cell(number) {
  const made = element("span", {}, number.toFixed(2));
  made.style.setProperty("--weight", `${100 * Math.max(0, Math.min(1, number))}%`);
  return made;
}
