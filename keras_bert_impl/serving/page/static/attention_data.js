// The attention of one text, as the server and `explain` write it.

const SCALE = 65535;

/**
 * @param {Object} written `tokens`, `segments` (0 or 1 each), `layers`, `heads`, and
 *   `probabilities`: base64 of uint16, little-endian, [layers, heads, from, to], of which 65535 is 1.
 */
export function attentionOf(written) {
  const { tokens, segments, layers, heads } = written;
  const bytes = Uint8Array.from(atob(written.probabilities), (one) => one.charCodeAt(0));
  const numbers = new DataView(bytes.buffer);
  const length = tokens.length;
  const at = (layer, head, from, to) => {
    const place = ((layer * heads + head) * length + from) * length + to;
    return numbers.getUint16(2 * place, true) / SCALE;
  };
  return { tokens, segments, layers, heads, length, at };
}

/** The share that a token gives another one, the mean of some heads. */
export function meanShare(attention, layer, heads, from, to) {
  return heads.reduce((sum, head) => sum + attention.at(layer, head, from, to), 0) / heads.length;
}

/** The tokens that a token attends to most, with their shares, the largest first. */
export function strongest(attention, layer, heads, from, most) {
  return attention.tokens
    .map((token, to) => ({ token, to, share: meanShare(attention, layer, heads, from, to) }))
    .sort((one, other) => other.share - one.share)
    .slice(0, most);
}
