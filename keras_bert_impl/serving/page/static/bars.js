// Names with shares: a table whose rows are bars.

import { element, foreign, table, unseen } from "./dom.js";
import { percent } from "./text.js";

/**
 * @param {string} caption
 * @param {[string, number][]} named each with its share, the first one the best.
 * @param {string[]} [chosen] names that stand out.
 * @param {[string, number][]} [before] the shares that they had, where these are others.
 * @param {function(number)} [pick] told of the row that is clicked.
 */
export function bars(caption, named, chosen = [], before = null, pick = null) {
  const was = before && new Map(before);
  const rows = named.map(([name, share], number) => {
    const shown = foreign(name, { class: chosen.includes(name) ? "chosen" : null });
    return [
      pick ? element("button", { type: "button", class: "plain", onclick: () => pick(number) }, shown) : shown,
      percent(share),
      bar(share, was?.get(name)),
    ];
  });
  return table(was ? `${caption} (lines: what it was)` : caption, ["Answer", "Probability", unseen("Bar")], rows, { class: "bars" });
}

function bar(share, was) {
  const drawn = element("span", { class: "bar", "aria-hidden": "true" });
  drawn.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  if (was === undefined) return drawn;
  const mark = element("span", { class: "former" }, unseen(`was ${percent(was)}`));
  mark.style.insetInlineStart = `${100 * was}%`;
  return element("span", { class: "both", title: `was ${percent(was)}` }, drawn, mark);
}
