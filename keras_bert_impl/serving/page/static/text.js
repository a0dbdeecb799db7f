// Texts and numbers as people read them.

/**
 * The part of a text between two offsets that count characters.
 *
 * Python counts code points, JavaScript halves of them: an emoji is one there and two here.
 */
export function sliced(text, start, end) {
  return [...text].slice(start, end).join("");
}

/** The same two offsets as JavaScript counts them. */
export function unitsOf(text, start, end) {
  return { start: sliced(text, 0, start).length, end: sliced(text, 0, end).length };
}

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
