// Why an answer: what it loses without each word, and the answer without the words that one clicks on.

import { arrowsAmong, chooser, element, foreign, labelled } from "./dom.js";
import { saveButtons } from "./picture.js";
import { percent } from "./text.js";

const MOST_PIECES = 64; // texts of a request; of longer texts several words are left out together
const MOST_READ = 2500; // words that are read for it all without being asked for
const LEAST = 0.005; // what matters at all, of the answer's scale
const FAINTEST = 0.06; // of the deepest colour

const CLICK = "Click a word to leave it out.";

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });
const PICTURE = /\p{Extended_Pictographic}/u;

/** The words of a text, as offsets of JavaScript. */
function wordsOf(text) {
  const masks = [...text.matchAll(/\[MASK\]/g)].map(({ index }) => ({ start: index, end: index + "[MASK]".length }));
  return [...WORDS.segment(text)]
    .filter(({ segment, isWordLike }) => isWordLike || PICTURE.test(segment))
    .map(({ segment, index }) => ({ start: index, end: index + segment.length }))
    .filter((word) => !masks.some((mask) => overlap(mask, word)));
}

function overlap(one, other) {
  return one.start < other.end && other.start < one.end;
}

/**
 * What can be left out: words, or runs of them in long texts; no word of what is found itself.
 * @returns {{number: number, field: string, start: number, end: number}[]}
 */
function piecesOf(panel, instances, { numbers, own }) {
  const texts = [...instances.keys()]
    .filter((number) => numbers?.includes(number) ?? true)
    .flatMap((number) => panel.fields.map(({ name }) => ({ number, field: name, text: instances[number][name] })))
    .filter(({ text }) => typeof text === "string")
    .map((one) => ({
      ...one,
      words: wordsOf(one.text).filter((word) => own?.field !== one.field || !overlap(own, word)),
    }));
  const count = texts.reduce((sum, { words }) => sum + words.length, 0);
  const size = Math.ceil(count / MOST_PIECES) || 1;
  return texts.flatMap(({ number, field, words }) =>
    words
      .filter((_, place) => place % size === 0)
      .map((first, run) => ({ number, field, start: first.start, end: words.slice(run * size, (run + 1) * size).at(-1).end })),
  );
}

/** Instances without some pieces of their texts. */
function without(instances, pieces) {
  const changed = instances.map((instance) => ({ ...instance }));
  for (const { number, field, start, end } of [...pieces].sort((one, other) => other.start - one.start)) {
    const text = changed[number][field];
    changed[number][field] = text.slice(0, start) + text.slice(end);
  }
  return changed;
}

/**
 * Shows what the answer rests on.
 * @param {Object} context `ask` answers instances; `chosen` says what a link holds (`why`, the name
 *   of what is explained, and `without`, the numbers of the pieces that are left out); `onchoice` is
 *   told of each choice, `onchange` of the answers to show and of the words that they are without.
 * @returns {Promise<Node|null>}
 */
export async function whyView(panel, instances, answers, context) {
  const targets = panel.targets(panel, instances, answers);
  if (!targets.length) return null;
  const place = element("div");
  const explain = (target, out) => explained(panel, instances, answers, target, out, place, context);
  const choose = (event) => {
    context.onchoice({ why: targets[event.target.value].name, without: null });
    context.onchange(instances, answers);
    explain(targets[event.target.value], []).catch(context.onerror);
  };
  const first = Math.max(0, targets.findIndex(({ name }) => name === context.chosen.why));
  const options = targets.map(({ name }, number) => [number, name]);
  const out = (context.chosen.without ?? "").split(".").filter(Boolean).map(Number);
  await explain(targets[first], out);
  if (!place.hasChildNodes()) return null;
  const title = targets.length > 1
    ? labelled("Why", ({ id }) => chooser(options, first, { id, onchange: choose }), `why${context.suffix}`)
    : element("h3", {}, "Why?");
  return element("section", { class: "why" }, title, place);
}

/** By how much what is found moves when a piece in front of it is left out. */
function movedBy({ field, start, end }, { own }) {
  return own?.field === field && start < own.start ? end - start : 0;
}

/** Asks without each piece, and shows the texts with what each is worth, unless that takes long: then on demand. */
async function explained(panel, instances, answers, target, out, place, context) {
  const pieces = piecesOf(panel, instances, target);
  if (pieces.length < 2) return place.replaceChildren();
  const show = async () => {
    const changed = await context.ask(pieces.map((piece) => without(instances, [piece])[piece.number]));
    if (context.signal.aborted) return;
    const shareIn = (some, moved) => {
      const share = target.of(some, moved);
      return { share, said: (target.write ?? percent)(share, some) };
    };
    const before = shareIn(answers, 0);
    const after = pieces.map((piece, one) => shareIn(answers.with(piece.number, changed[one]), movedBy(piece, target)));
    const [buttons, leaveOut] = leavingOut(pieces, instances, answers, context);
    paint(buttons, target, before, after);
    const [sentence, colours] = reading(target, before, after, pieces, instances);
    const shown = element("div", {}, sentence, ...textsOf(pieces, buttons, instances, target));
    place.replaceChildren(...[shown, colours, colours && saveButtons("why", () => shown)].filter(Boolean));
    await leaveOut(out.filter((number) => pieces[number]));
  };
  const words = instances.flatMap((one) => wordsOf(Object.values(one).join(" "))).length;
  if (pieces.length * words <= MOST_READ) return show();
  const start = () => show().catch(context.onerror);
  place.replaceChildren(element("button", { type: "button", onclick: start }, `Ask ${pieces.length} times without some words`));
}

/** A button for each piece, which leaves it out or puts it back, and what leaves out several. */
function leavingOut(pieces, instances, answers, context) {
  let left = [];
  const leaveOut = async (numbers) => {
    left = numbers;
    buttons.forEach((button, number) => button.setAttribute("aria-pressed", String(left.includes(number))));
    if (!left.length) return context.onchange(instances, answers);
    const changed = without(instances, left.map((number) => pieces[number]));
    const found = await context.ask(changed);
    const names = left.map((number) => buttons[number].textContent);
    if (!context.signal.aborted && left === numbers) context.onchange(changed, found, answers, names, () => choose([]));
  };
  const choose = (numbers) => {
    context.onchoice({ without: numbers.join(".") });
    leaveOut(numbers).catch(context.onerror);
  };
  const toggle = (number) => choose(left.includes(number) ? left.filter((one) => one !== number) : [...left, number]);
  const buttons = pieces.map(({ number, field, start, end }, piece) =>
    element("button", { type: "button", onclick: () => toggle(piece) }, instances[number][field].slice(start, end)),
  );
  arrowsAmong(buttons, buttons.length);
  return [buttons, leaveOut];
}

/** Colours what was left out by what the answer was without it, and says that in words. */
function paint(buttons, target, before, after) {
  const losses = after.map(({ share }) => (before.share - share) / (target.scale ?? 1));
  const deepest = Math.max(...losses.map(Math.abs), LEAST * 4);
  buttons.forEach((button, number) => {
    const weight = losses[number] / deepest;
    button.className = `word ${Math.abs(weight) < FAINTEST ? "" : weight > 0 ? "for" : "against"}`;
    button.style.setProperty("--weight", `${Math.round(100 * Math.abs(weight))}%`);
    button.title = `Without it: ${after[number].said}`;
  });
}

/** Each text with buttons in place of its pieces, and with what is found marked. */
function textsOf(pieces, buttons, instances, { own }) {
  const texts = new Map(pieces.map((piece) => [`${piece.number} ${piece.field}`, piece]));
  return [...texts.values()].map(({ number, field }) => {
    const text = instances[number][field];
    const made = pieces.map((piece, at) => ({ ...piece, button: buttons[at] }));
    const some = made.filter((one) => one.number === number && one.field === field);
    if (own?.field === field) some.push(own);
    let end = 0;
    const parts = some.sort((one, other) => one.start - other.start).flatMap((one) => {
      const between = text.slice(end, one.start);
      end = one.end;
      return [between, one.button ?? element("mark", {}, text.slice(one.start, end))];
    });
    return element("p", { class: "words", dir: "auto" }, ...parts, text.slice(end));
  });
}

/** How to read the colours, said with the numbers of this very text. */
function reading(target, before, after, pieces, instances) {
  const changes = after.map(({ share }) => Math.abs(before.share - share));
  const most = changes.indexOf(Math.max(...changes));
  const name = foreign(target.name);
  if (changes[most] < LEAST * (target.scale ?? 1)) {
    return [element("p", {}, "No single word decides: ", name, ` stays at about ${before.said} without any of them. `, CLICK)];
  }
  const { number, field, start, end } = pieces[most];
  const word = element("strong", {}, foreign(instances[number][field].slice(start, end)));
  const change = ` goes from ${before.said} to ${after[most].said}. `;
  const how = before.share > after[most].share ? "blue of a word, the more this answer rests on it" : "orange of a word, the more it speaks against this answer";
  return [element("p", {}, "Without ", word, ", ", name, change, `The deeper the ${how}. `, CLICK), scale()];
}

function scale() {
  const ramp = element("span", { class: "ramp" });
  return element("p", { class: "scale", "aria-hidden": "true" }, "speaks against", ramp, "speaks for");
}
