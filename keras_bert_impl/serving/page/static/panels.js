// The panels: for each kind of answer a title, an example, and how the answer is shown.

import { attentionOf } from "./attention_data.js";
import { attentionView } from "./attention_view.js";
import { bars } from "./bars.js";
import { element, foreign, table } from "./dom.js";
import { cosines, heatMap } from "./heat_map.js";
import { showMap } from "./map.js";
import { legend, markedText } from "./marked_text.js";
import { attention, tokens } from "./server.js";
import { counted, percent } from "./text.js";
import { tokenRows } from "./tokens.js";

const MOST_PAIRS = 15; // of texts, whose likeness may be asked about

const KINDS = {
  masked_words: {
    title: "Fill in words",
    about: "Write [MASK] for a word, and the model says which words it expects there.",
    show: showMaskedWords,
    targets: maskedWordTargets,
  },
  next_sentence: {
    title: "Next sentence",
    about: "How likely the second text follows the first.",
    show: showNextSentence,
    targets: () => [{ name: "it follows", of: ([answer]) => answer.probability }],
  },
  label: {
    title: "Label",
    about: "The model puts the text into one of its classes, and says how sure it is.",
    show: showLabel,
    targets: labelTargets,
  },
  labels: {
    title: "Labels",
    about: "Which labels the text gets; each has a probability of its own.",
    show: showLabels,
    targets: labelTargets,
  },
  number: {
    title: "Number",
    about: "The model answers with a number.",
    show: showNumber,
    targets: numberTargets,
  },
  answer: {
    title: "Answer",
    about: "Ask a question; the model marks the answer in the passage.",
    show: showAnswer,
    targets: answerTargets,
  },
  entities: {
    title: "Entities",
    about: "The model finds names in the text, and says what they name.",
    show: showEntities,
    targets: entityTargets,
  },
  choice: {
    title: "Choice",
    about: "Which ending fits the text best. Write one ending a line.",
    show: showChoice,
    targets: choiceTargets,
  },
  vector: {
    title: "Similarity",
    about: "How alike texts are in what they say, whatever their words: 1.00 is the same, about 0 has nothing in common. Write one text a line.",
    manyTexts: true,
    most: 100,
    show: showSimilarity,
    targets: similarityTargets,
  },
};

const TOKENS = {
  id: "tokens",
  title: "Tokens",
  about: "The text as the model sees it: cut into tokens, pieces of words that it has numbers for.",
  look: showTokens,
};
const ATTENTION = {
  id: "attention",
  title: "Attention",
  about: "Where the model looks while it reads: each word takes something from others, in its own way in every head.",
  look: showAttention,
};
const MAP = {
  id: "map",
  title: "Map",
  about: "Many texts on a map, those with like meanings near each other. Write one text a line; paste lines of label, tab and text to colour them.",
  manyTexts: true,
  most: 500,
  look: showMap,
};

/**
 * The panels of what a model can do.
 * @param {Object} model of `models()`: `name`, `signatures` and `attention` (null, or why not).
 */
export function panelsOf(model) {
  const answering = model.signatures.map((signature) => panelOf(signature, model));
  const main = model.signatures[0];
  const shared = [TOKENS, ATTENTION].map((panel) => ({
    ...panel,
    signature: main,
    model,
    fields: main.inputs,
    refused: panel === ATTENTION ? model.attention : null,
  }));
  const kinds = answering.filter((panel) => panel.show);
  const maps = kinds.filter(({ show }) => show === showSimilarity).map((panel) => ({ ...panel, ...MAP }));
  return [...onePerQuestion(kinds), ...maps.slice(0, 1), ...shared];
}

function panelOf(signature, model) {
  const { title, ...kind } = KINDS[signature.kind] ?? {};
  return { id: signature.signature, signature, model, fields: signature.inputs, ...kind, title: titleOf(title, signature, model) };
}

/** A title that says more where a model takes single texts and pairs of them. */
function titleOf(title, signature, model) {
  const alike = model.signatures.filter((one) => one.kind === signature.kind);
  const counts = new Set(alike.map((one) => one.inputs.length));
  if (counts.size < 2) return title;
  return `${title} of ${signature.inputs.length > 1 ? "a pair" : "a text"}`;
}

/** Without panels that ask the same: several signatures of a model may differ in their outputs only. */
function onePerQuestion(panels) {
  const seen = new Map();
  for (const panel of panels) {
    const key = `${panel.signature.kind} ${panel.fields.map((field) => field.name)}`;
    const known = seen.get(key);
    if (!known || richer(panel, known)) seen.set(key, panel);
  }
  return [...seen.values()];
}

function richer(panel, known) {
  return panel.signature.outputs.length > known.signature.outputs.length;
}

function namesOf(panel, { probabilities }) {
  return probabilities.map((_, number) => panel.model.description.labels?.[number] ?? `label ${number}`);
}

function wordsAt({ tokens: words, probabilities }, mask) {
  return (words[mask] ?? []).map((word, place) => [word, probabilities[mask][place]]);
}

function showMaskedWords(_panel, _instances, [answer], [was]) {
  const { tokens: words } = answer;
  const many = words.length > 1;
  const none = words.length ? null : "The text has no [MASK]; write [MASK] for the word to find.";
  const shown = words.map((_, number) => {
    const caption = many ? `What may stand at [MASK] ${number + 1}` : "What may stand at [MASK]";
    return bars(caption, wordsAt(answer, number), [], was && wordsAt(was, number));
  });
  return [none && element("p", { class: "sum" }, none), ...shown];
}

function maskedWordTargets(_panel, _instances, [{ tokens: words }]) {
  return words.flatMap((found, mask) =>
    found.slice(0, words.length > 1 ? 2 : 5).map((word) => ({
      name: words.length > 1 ? `${word} (${mask + 1})` : word,
      ...listed(word, (answer) => wordsAt(answer, mask)),
    })),
  );
}

/** Finds the share of a name in a list of the best; one that has left it has at most the last one's. */
function listed(name, listOf) {
  const placeIn = (answer) => listOf(answer).findIndex(([other]) => other === name);
  return {
    of: ([answer]) => listOf(answer).at(placeIn(answer))?.[1] ?? 0,
    write: (share, [answer]) => (placeIn(answer) < 0 ? "at most " : "") + percent(share),
  };
}

function showNextSentence(_panel, _instances, [{ probability }], [was]) {
  const both = (share) => [["it follows", share], ["it does not", 1 - share]];
  return [bars("Does the second text follow the first?", both(probability), [], was && both(was.probability))];
}

function showLabel(panel, _instances, [answer], [was]) {
  const { label, probabilities } = answer;
  const share = Math.max(...probabilities);
  const names = namesOf(panel, answer);
  return [
    headline("Label: ", label, percent(share)),
    bars("Probability of each label", named(names, probabilities), [label], was && named(names, was.probabilities)),
  ];
}

function showLabels(panel, _instances, [answer], [was]) {
  const { labels, probabilities } = answer;
  const given = labels.filter(Boolean);
  const names = namesOf(panel, answer);
  return [
    given.length ? headline("Labels: ", given.join(", ")) : element("p", {}, "No label reaches its threshold."),
    bars("Probability of each label", named(names, probabilities), given, was && named(names, was.probabilities)),
  ];
}

function labelTargets(panel, _instances, [answer]) {
  const sorted = named([...answer.probabilities.keys()], answer.probabilities).map(([place]) => place);
  const names = namesOf(panel, answer);
  return sorted.map((place) => ({ name: names[place], of: ([one]) => one.probabilities[place] }));
}

/** Shares with their names, the largest first. */
function named(names, shares) {
  return shares.map((share, number) => [names[number], share]).sort((one, other) => other[1] - one[1]);
}

function headline(said, text, share) {
  const beside = share === undefined ? null : element("span", { class: "share" }, ` ${share}`);
  return element("p", { class: "headline" }, element("span", { class: "said" }, said), foreign(text), beside);
}

/** Whether the activation of a model makes its numbers shares. */
function givesShares(panel) {
  return panel.model.description.activation === "Sigmoid";
}

function numberOf(panel, { score }) {
  return givesShares(panel) ? 1 / (1 + Math.exp(-score)) : score;
}

/** Where the numbers of a model lie: from the least to the most, as far as that is known. */
function rangeOf(panel) {
  return givesShares(panel) ? [0, 1] : (panel.model.description.range ?? null);
}

function rounded(number) {
  return String(Math.round(number * 1000) / 1000);
}

function showNumber(panel, _instances, [answer], [was]) {
  const number = numberOf(panel, answer);
  const before = was && `, was ${rounded(numberOf(panel, was))}`;
  const range = rangeOf(panel);
  const shown = [headline("", rounded(number), before)];
  if (range) {
    const [least, most] = range;
    const meter = element("meter", { min: least, max: most, value: number, "aria-label": "The number in its range" });
    const ends = [rounded(least), meter, rounded(most)];
    const said = `Most numbers that it learned from lie between ${rounded(least)} and ${rounded(most)}.`;
    shown.push(element("p", { class: "range" }, ...ends), element("p", { class: "sum" }, givesShares(panel) ? "A share from 0 to 1." : said));
  }
  return shown;
}

function numberTargets(panel) {
  const [least, most] = rangeOf(panel) ?? [];
  return [{ name: "the number", of: ([answer]) => numberOf(panel, answer), write: rounded, scale: most - least || 1 }];
}

function showAnswer(_panel, [instance], [answer], [was]) {
  const found = answersIn(answer);
  const before = was && answersIn(was);
  const place = element("div");
  const show = (one) =>
    place.replaceChildren(
      headline("", one.text || "The passage has no answer.", percent(one.share)),
      markedText(instance.passage, one.text ? [one] : []),
    );
  show(found[0]);
  const nameOf = (one) => one.text || "(no answer)";
  const pairs = (some) => some.map((one) => [nameOf(one), one.share]);
  const shown = bars("The best answers; click one to see it in the passage", pairs(found), [], before && pairs(before), (number) => show(found[number]));
  return [place, shown];
}

/** The answers, the best first, whichever of the two signatures gave them, with the share of each among them. */
function answersIn(answer) {
  const one = { text: answer.answer, start: answer.start_utf16, end: answer.end_utf16, score: answer.score };
  const listed = answer.answers?.map((text, number) => ({
    text,
    start: answer.starts_utf16[number],
    end: answer.ends_utf16[number],
    score: answer.scores[number],
  }));
  const none = { text: "", start: 0, end: 0, score: answer.no_answer_score ?? 0 };
  const hasNone = answer.no_answer_score !== undefined && (listed ?? [one]).every(({ text }) => text);
  const found = [...(listed ?? [one]), ...(hasNone || !(listed ?? [one]).length ? [none] : [])];
  const most = Math.max(...found.map(({ score }) => score));
  const sum = found.reduce((all, { score }) => all + Math.exp(score - most), 0);
  const shares = found.map((some) => ({ ...some, share: Math.exp(some.score - most) / sum }));
  const saysNone = (some) => Number(answer.has_answer === false && !some.text);
  return shares.sort((some, other) => saysNone(other) - saysNone(some) || other.share - some.share);
}

function answerTargets(_panel, _instances, [answer]) {
  return answersIn(answer).slice(0, 5).map(({ text, start, end }) => ({
    name: text || "no answer",
    ...listed(text, (one) => answersIn(one).filter((other) => other.text || !text).map((other) => [other.text, other.share])),
    own: { field: "passage", start, end },
  }));
}

function spansIn({ type, start_utf16: starts, end_utf16: ends }) {
  return type.map((kind, number) => ({ kind, start: starts[number], end: ends[number] }));
}

function showEntities(_panel, [instance], [entities]) {
  const { type, text, start, end, score } = entities;
  const spans = spansIn(entities);
  const kinds = [...new Set(type)];
  const rows = type.map((kind, number) => [
    foreign(text[number]),
    kind,
    `${start[number]}–${end[number]}`,
    percent(score[number]),
  ]);
  return [
    markedText(instance.text, spans, kinds),
    spans.length ? legend(kinds) : null,
    table(counted(spans.length, "entity", "entities"), ["Text", "Kind", "Characters", "Probability"], rows),
  ];
}

/** The names of entities; one that comes again is numbered. */
function namesIn({ text, type }) {
  const counts = new Map();
  return text.map((words, number) => {
    const name = `${words} (${type[number]})`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return counts.get(name) > 1 ? `${name} ${counts.get(name)}` : name;
  });
}

function entityTargets(_panel, _instances, [entities]) {
  const names = namesIn(entities);
  return spansIn(entities).map(({ kind, start, end }, number) => {
    const isIt = (one, moved) => one.kind === kind && one.start === start - moved && one.end === end - moved;
    const of = ([found], moved = 0) => found.score[spansIn(found).findIndex((one) => isIt(one, moved))] ?? 0;
    return { name: names[number], of, own: { field: "text", start, end } };
  });
}

function chosenOf({ endings }, { ending }) {
  return typeof ending === "number" ? endings[ending] : ending;
}

function showChoice(_panel, [instance], [answer], [was]) {
  const pairs = ({ probabilities }) => named(instance.endings, probabilities);
  return [bars("Which ending fits", pairs(answer), [chosenOf(instance, answer)], was && pairs(was))];
}

function choiceTargets(_panel, [{ endings }], [{ probabilities }]) {
  const best = named([...endings.keys()], probabilities);
  return best.map(([place]) => ({ name: endings[place], of: ([answer]) => answer.probabilities[place] }));
}

function showSimilarity(_panel, instances, answers) {
  const texts = instances.map((instance) => Object.values(instance)[0]);
  return [heatMap(texts, cosines(answers.map((answer) => answer.embedding)))];
}

function similarityTargets(_panel, _instances, answers) {
  const numbers = cosines(answers.map((answer) => answer.embedding));
  const pairs = numbers.flatMap((row, one) => row.slice(0, one).map((cosine, other) => ({ cosine, numbers: [other, one] })));
  return pairs
    .sort((one, other) => other.cosine - one.cosine)
    .slice(0, MOST_PAIRS)
    .map(({ numbers: [one, other] }) => ({
      name: `the similarity of ${one + 1} and ${other + 1}`,
      numbers: [one, other],
      of: (all) => cosines([all[one].embedding, all[other].embedding])[0][1],
      write: (cosine) => cosine.toFixed(2),
    }));
}

async function showTokens(panel, instance, context) {
  const { model, signature } = panel;
  const { rows } = await tokens(model, signature, instance, context.signal);
  return [tokenRows(rows, context.direction)];
}

async function showAttention(panel, instance, context) {
  const { model, signature } = panel;
  const written = await attention(model, signature, instance, context.signal);
  const left = written.rows > 1 ? `The first of ${written.rows} rows that the model reads.` : null;
  const { held, hold } = context;
  return [
    left && element("p", { class: "sum" }, left),
    attentionView(attentionOf(written), { held, hold }),
  ];
}
