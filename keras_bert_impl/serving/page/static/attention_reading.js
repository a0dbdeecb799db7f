// What attention says about a text: where each head looks, and which heads say most.

import { isSpecial, wordPart } from "./text.js";

const MOSTLY = 0.5; // of what tokens give: that is what a head does
const ALIKE = 0.85; // of the entropy of equal shares
const TELLING = 0.2; // the least share that a sentence tells of
const FINDS = 5;
const HABITS = {
  marks: "Most tokens find nothing in this head: they look at [CLS] or [SEP].",
  itself: "Most tokens look at themselves in this head.",
  before: "Most tokens look at the one before them in this head.",
  after: "Most tokens look at the one after them in this head.",
  alike: "Tokens look at all the others alike in this head.",
};

/**
 * Reads all heads.
 *
 * What a line says: its share, times the logarithm of how much larger it is than what the other
 * tokens give to the same place (none where all look alike), times that of its length in words. Lines to
 * marks, punctuation, neighbours and the same word say nothing.
 * @returns `heads[layer][head]` with `says`, `best` (the line that says most) and `habit` (a sentence or
 *   null); `finds`: the heads that say most, each by other words; `nameOf`: the word of a token.
 */
export function readingOf(attention) {
  const { tokens, layers, heads, length } = attention;
  const words = wordNumbers(tokens);
  const named = tokens.map(saysSomething);
  const lengthOf = (from, to) => {
    const far = named[from] && named[to] && tokens[from] !== tokens[to];
    return far ? Math.log2(Math.max(1, Math.abs(words[from] - words[to]))) : 0;
  };
  const read = Array.from({ length: layers }, (_, layer) =>
    Array.from({ length: heads }, (__, head) => {
      const share = (from, to) => attention.at(layer, head, from, to);
      const habit = habitOf(tokens, share);
      const said = linesThatSay(length, share, lengthOf);
      return { layer, head, habit, ...said, best: habit === HABITS.alike ? null : said.best };
    }),
  );
  const nameOf = (token) =>
    tokens.filter((_, other) => words[other] === words[token]).map(wordPart).join("");
  return { heads: read, finds: findsAmong(read.flat(), words), nameOf };
}

/** The number of each token's word: pieces of one word share it. */
function wordNumbers(tokens) {
  let word = -1;
  return tokens.map((token) => (wordPart(token) === token ? (word += 1) : word));
}

function saysSomething(token) {
  return !isSpecial(token) && /[\p{L}\p{N}]/u.test(token);
}

function linesThatSay(length, share, lengthOf) {
  const best = { from: 0, to: 0, share: 0, says: 0 };
  let sum = 0;
  for (let to = 0; to < length; to += 1) {
    let mean = 0;
    for (let from = 0; from < length; from += 1) mean += share(from, to) / length;
    for (let from = 0; from < length; from += 1) {
      const given = share(from, to);
      if (given <= mean) continue;
      const says = given * Math.log(given / mean) * lengthOf(from, to);
      sum += says;
      if (says > best.says) Object.assign(best, { from, to, share: given, says });
    }
  }
  return { says: sum * best.says, best: best.share >= TELLING ? best : null };
}

function habitOf(tokens, share) {
  const sums = { marks: 0, itself: 0, before: 0, after: 0, alike: 0 };
  const from = [...tokens.keys()].filter((token) => saysSomething(tokens[token]));
  for (const token of from) {
    let entropy = 0;
    tokens.forEach((other, to) => {
      const given = share(token, to);
      if (isSpecial(other)) sums.marks += given;
      if (given > 0) entropy -= given * Math.log(given);
    });
    sums.itself += share(token, token);
    sums.before += share(token, token - 1); // a mark stands on either side of every text
    sums.after += share(token, token + 1);
    sums.alike += (entropy / Math.log(tokens.length) / ALIKE) * MOSTLY;
  }
  const [habit, sum] = Object.entries(sums).reduce((one, other) => (other[1] > one[1] ? other : one));
  return from.length && sum / from.length >= MOSTLY ? HABITS[habit] : null;
}

function findsAmong(heads, words) {
  const finds = new Map();
  for (const head of heads.filter(({ best }) => best).sort((one, other) => other.says - one.says)) {
    const line = `${words[head.best.from]} ${words[head.best.to]}`;
    if (!finds.has(line) && finds.size < FINDS) finds.set(line, head);
  }
  return [...finds.values()];
}
