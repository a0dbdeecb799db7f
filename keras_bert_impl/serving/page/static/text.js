// Texts and numbers as people read them.

export function percent(share) {
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/** A token without the marks that join it to the token in front of it. */
export function wordPart(token) {
  return token.startsWith("##") && token.length > 2 ? token.slice(2) : token;
}

export function isSpecial(token) {
  return token === "[CLS]" || token === "[SEP]" || token === "[PAD]";
}

/** The lines of a field that takes several texts, without empty ones. */
export function linesOf(text) {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}
