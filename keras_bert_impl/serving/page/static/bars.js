// Names with shares: a table whose rows are bars.

import { element, foreign, table, unseen } from "./dom.js";
import { percent } from "./text.js";

/**
 * @param {string} caption
 * @param {[string, number][]} named each with its share, the first one the best.
 * @param {string[]} [chosen] names that stand out.
 */
export function bars(caption, named, chosen = []) {
  const rows = named.map(([name, share]) => [
    foreign(name, { class: chosen.includes(name) ? "chosen" : null }),
    percent(share),
    bar(share),
  ]);
  return table(caption, ["Answer", "Probability", unseen("Bar")], rows, { class: "bars" });
}

function bar(share) {
  const drawn = element("span", { class: "bar", "aria-hidden": "true" });
  drawn.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return drawn;
}
