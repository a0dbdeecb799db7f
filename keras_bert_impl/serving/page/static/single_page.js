// A page that stands alone: the attention of the texts that it holds.

import { attentionOf } from "./attention_data.js";
import { attentionView } from "./attention_view.js";
import { chooser, element, labelled } from "./dom.js";
import { isSpecial, wordPart } from "./text.js";

const LONGEST_NAME = 60;

function showTexts(place) {
  const written = JSON.parse(document.querySelector("#data").textContent);
  const view = element("div");
  const show = (number) =>
    view.replaceChildren(attentionView(attentionOf(written[number]), { heading: "h2" }));
  if (written.length > 1) {
    const options = written.map((one, number) => [number, `${number + 1}. ${nameOf(one.tokens)}`]);
    const choose = (event) => show(Number(event.target.value));
    place.append(labelled("Text", ({ id }) => chooser(options, 0, { id, onchange: choose }), "text"));
  }
  place.append(view);
  show(0);
}

/** The beginning of a text, of its tokens. */
function nameOf(tokens) {
  const words = tokens
    .filter((token) => !isSpecial(token))
    .map((token) => (wordPart(token) === token ? ` ${token}` : wordPart(token)));
  const name = words.join("").trim();
  return name.length > LONGEST_NAME ? `${[...name].slice(0, LONGEST_NAME).join("")}…` : name;
}

showTexts(document.querySelector("#texts"));
