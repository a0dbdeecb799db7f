// A page that stands alone: the attention of the texts that it holds.

import { attentionOf } from "./attention_data.js";
import { attentionView } from "./attention_view.js";
import { chooser, element, labelled } from "./dom.js";
import { linkTo, stateInLink } from "./link.js";
import { isSpecial, wordPart } from "./text.js";

const LONGEST_NAME = 60;

function showTexts(place) {
  const written = JSON.parse(document.querySelector("#data").textContent);
  const view = element("div");
  let state = stateInLink();
  const hold = (held) => {
    state = { ...state, ...held };
    // A notebook's frame has no address of its own.
    if (location.protocol !== "about:") history.replaceState(null, "", linkTo(state));
  };
  const show = (number) =>
    view.replaceChildren(attentionView(attentionOf(written[number]), { held: state, hold, heading: "h2" }));
  const first = Math.max(0, written.findIndex((_, number) => state.text === String(number + 1)));
  if (written.length > 1) {
    const options = written.map((one, number) => [number, `${number + 1}. ${nameOf(one.tokens)}`]);
    const choose = (event) => {
      const number = Number(event.target.value);
      hold({ text: number + 1, layer: "", head: "", token: "" });
      show(number);
    };
    place.append(labelled("Text", ({ id }) => chooser(options, first, { id, onchange: choose }), "text"));
  }
  place.append(view);
  show(first);
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
