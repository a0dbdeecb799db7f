// The panels: for each kind of answer a title, an example, and how the answer is shown.

import { attentionOf } from "./attention_data.js";
import { attentionView } from "./attention_view.js";
import { bars } from "./bars.js";
import { element, foreign, table, unseen } from "./dom.js";
import { cosines, heatMap } from "./heat_map.js";
import { MAP_EXAMPLE, showMap } from "./map.js";
import { legend, markedText } from "./marked_text.js";
import { attention, predict, tokens } from "./server.js";
import { counted, percent } from "./text.js";
import { tokenRows } from "./tokens.js";

const PAIR = { text_a: "A man plays a guitar.", text_b: "A man makes music." };

const KINDS = {
  masked_words: {
    title: "Fill in words",
    about: "Write [MASK] for a word, and see which words the model expects there.",
    example: { text: "The capital of France is [MASK]." },
    show: showMaskedWords,
  },
  next_sentence: {
    title: "Next sentence",
    about: "How likely the second text follows the first.",
    example: { text_a: "He opened the fridge.", text_b: "It was empty." },
    show: showNextSentence,
  },
  label: {
    title: "Label",
    about: "Which label the text gets, with the probability of each.",
    example: { text: "What a wonderful film!", ...PAIR },
    show: showLabel,
  },
  labels: {
    title: "Labels",
    about: "Which labels the text gets; each has a probability of its own.",
    example: { text: "What a wonderful film!", ...PAIR },
    show: showLabels,
  },
  number: {
    title: "Number",
    about: "The number that the model gives.",
    example: { text: "A man plays a guitar.", ...PAIR },
    show: showNumber,
  },
  answer: {
    title: "Answer",
    about: "The answer to a question, found in a passage.",
    example: {
      question: "Where do penguins live?",
      passage: "Penguins are birds that cannot fly. They live in Antarctica and on other coasts of the south.",
    },
    show: showAnswer,
  },
  entities: {
    title: "Entities",
    about: "The names in a text, coloured by what they name.",
    example: { text: "Angela Merkel was born in Hamburg." },
    show: showEntities,
  },
  choice: {
    title: "Choice",
    about: "Which ending fits the text best. Write one ending a line.",
    example: {
      context: "She put on her coat and",
      endings: "went out.\nis a kind of fish.\nwere blue.\nthree of them.",
    },
    show: showChoice,
  },
  vector: {
    title: "Similarity",
    about: "How similar texts are to each other. Write one text a line.",
    example: { text: "How do I get my money back?\nRefunds take two weeks.\nThe weather is fine today.\nIt is sunny." },
    manyTexts: true,
    show: showSimilarity,
  },
};

const TOKENS = {
  id: "tokens",
  title: "Tokens",
  about: "The text as the model sees it: its tokens with their ids.",
  show: showTokens,
};
const ATTENTION = {
  id: "attention",
  title: "Attention",
  about: "Where the model looks while it reads: each word takes something from others, in its own way in every head.",
  show: showAttention,
};
const MAP = {
  id: "map",
  title: "Map",
  about: "Many texts on a map, those with like meanings near each other. Write one text a line; paste lines of label, tab and text to colour them.",
  example: { text: MAP_EXAMPLE },
  manyTexts: true,
  show: showMap,
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
    example: KINDS[main.kind]?.example ?? {},
    refused: panel === ATTENTION ? model.attention : null,
  }));
  const kinds = answering.filter((panel) => panel.show);
  const maps = kinds.filter((panel) => panel.show === showSimilarity).map((panel) => ({ ...panel, ...MAP }));
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

async function answerOf(panel, instance, context) {
  const { model, signature } = panel;
  const [answer] = await predict(model, signature, [instance], context);
  return answer;
}

async function showMaskedWords(panel, instance, context) {
  const answer = await answerOf(panel, instance, context);
  const { tokens: words, probabilities } = answer;
  const many = words.length > 1;
  const none = words.length ? null : "The text has no [MASK]; write [MASK] for the word to find.";
  const shown = words.map((named, number) => {
    const caption = many ? `What may stand at [MASK] ${number + 1}` : "What may stand at [MASK]";
    return bars(caption, named.map((word, place) => [word, probabilities[number][place]]));
  });
  return [none && element("p", { class: "sum" }, none), ...shown];
}

async function showNextSentence(panel, instance, context) {
  const { probability } = await answerOf(panel, instance, context);
  return [
    bars("Does the second text follow the first?", [
      ["it follows", probability],
      ["it does not", 1 - probability],
    ]),
  ];
}

async function showLabel(panel, instance, context) {
  const { label, probabilities } = await answerOf(panel, instance, context);
  return [
    headline("Label: ", label),
    bars("Probability of each label", named(panel.model.description.labels ?? [], probabilities), [label]),
  ];
}

async function showLabels(panel, instance, context) {
  const { labels, probabilities } = await answerOf(panel, instance, context);
  const given = labels.filter(Boolean);
  return [
    given.length ? headline("Labels: ", given.join(", ")) : element("p", {}, "No label reaches its threshold."),
    bars("Probability of each label", named(panel.model.description.labels ?? [], probabilities), given),
  ];
}

/** Shares with their names, the largest first. */
function named(names, shares) {
  return shares
    .map((share, number) => [names[number] ?? `label ${number}`, share])
    .sort((one, other) => other[1] - one[1]);
}

function headline(said, text) {
  return element("p", { class: "headline" }, said, foreign(text));
}

async function showNumber(panel, instance, context) {
  const { score } = await answerOf(panel, instance, context);
  return [headline("", String(Math.round(score * 1000) / 1000))];
}

async function showAnswer(panel, instance, context) {
  const found = answersIn(await answerOf(panel, instance, context));
  const place = element("div");
  const show = (answer) =>
    place.replaceChildren(
      headline("", answer.text || "The passage has no answer."),
      markedText(instance.passage, answer.text ? [answer] : []),
    );
  show(found[0]);
  const rows = found.map((answer, number) => [
    foreign(answer.text || "(no answer)"),
    answer.score.toFixed(2),
    answer.text ? `${answer.start}–${answer.end}` : "",
    element(
      "button",
      { type: "button", "aria-label": `Mark answer ${number + 1} in the passage`, onclick: () => show(answer) },
      "Mark",
    ),
  ]);
  return [place, table("The best answers", ["Answer", "Score", "Characters", unseen("Show")], rows)];
}

/** The answers, the best first, whichever of the two signatures gave them. */
function answersIn(answer) {
  if (!answer.answers) {
    return [{ text: answer.answer, start: answer.start, end: answer.end, score: answer.score }];
  }
  const found = answer.answers.map((text, number) => ({
    text,
    start: answer.starts[number],
    end: answer.ends[number],
    score: answer.scores[number],
  }));
  const none = { text: "", start: 0, end: 0, score: answer.no_answer_score ?? 0 };
  return answer.has_answer === false || !found.length ? [none, ...found] : found;
}

async function showEntities(panel, instance, context) {
  const { type, start, end, score } = await answerOf(panel, instance, context);
  const spans = type.map((kind, number) => ({ kind, start: start[number], end: end[number] }));
  const kinds = [...new Set(type)];
  const rows = spans.map(({ kind, start: first, end: last }, number) => [
    foreign([...instance.text].slice(first, last).join("")),
    kind,
    `${first}–${last}`,
    percent(score[number]),
  ]);
  return [
    markedText(instance.text, spans, kinds),
    spans.length ? legend(kinds) : null,
    table(counted(spans.length, "entity", "entities"), ["Text", "Kind", "Characters", "Score"], rows),
  ];
}

async function showChoice(panel, instance, context) {
  const { ending, probabilities } = await answerOf(panel, instance, context);
  const shares = instance.endings.map((text, number) => [text, probabilities[number]]);
  const chosen = typeof ending === "number" ? instance.endings[ending] : ending;
  return [bars("Which ending fits", shares.sort((one, other) => other[1] - one[1]), [chosen])];
}

async function showSimilarity(panel, instances, context) {
  const { model, signature } = panel;
  const answers = await predict(model, signature, instances, context);
  const texts = instances.map((instance) => Object.values(instance)[0]);
  return [heatMap(texts, cosines(answers.map((answer) => answer.embedding)))];
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
