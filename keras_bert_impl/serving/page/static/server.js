// What the page asks the server.

/** The models with what each answers; see the routes of the page. */
export function models() {
  return asked("playground/models");
}

/** One answer an instance, by the way that TensorFlow Serving's clients take; `context.left` counts tokens not read. */
export async function predict(model, signature, instances, context) {
  const body = await asked(`v1/models/${pathOf(model)}:predict`, bodyOf(signature, instances), context.signal);
  const { predictions, num_truncated: left = [] } = body;
  context.left = left.reduce((sum, count) => sum + count, 0);
  const [name, ...others] = signature.outputs;
  // An answer of one field stands there as its bare value.
  return others.length ? predictions : predictions.map((value) => ({ [name]: value }));
}

/** The rows of token ids that an instance becomes. */
export function tokens(model, signature, instance, signal) {
  return asked(`playground/models/${pathOf(model)}/tokens`, bodyOf(signature, [instance]), signal);
}

/** The attention of an instance's first row. */
export function attention(model, signature, instance, signal) {
  return asked(`playground/models/${pathOf(model)}/attention`, bodyOf(signature, [instance]), signal);
}

function pathOf(model) {
  return encodeURIComponent(model.name);
}

function bodyOf(signature, instances) {
  return { signature_name: signature.signature, instances };
}

let key = null;

/** The key that requests carry, where the server asks for one. */
export function useKey(given) {
  key = given;
}

/** What a server that asks for a key answers without it. */
export class KeyNeeded extends Error {}

/** What a server says that has too much to do; it may be asked again after some seconds. */
export class Busy extends Error {
  constructor(said, seconds) {
    super(said);
    this.seconds = Math.max(1, Math.min(LONGEST_WAIT, Number(seconds) || 1));
  }
}

const LONGEST_WAIT = 10; // seconds
const GONE = "The server does not answer. Is it still running?";

async function asked(path, body, signal) {
  const headers = { ...(body && { "Content-Type": "application/json" }), ...(key && { Authorization: `Bearer ${key}` }) };
  const how = body && { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, { ...how, headers, signal }).catch(() => null);
  if (response === null) throw new Error(GONE);
  const answer = await response.json().catch(() => null);
  if (response.status === 401) throw new KeyNeeded(answer?.error);
  if (response.status === 429) throw new Busy(answer?.error, response.headers.get("Retry-After"));
  if (!response.ok) throw new Error(answer?.error ?? `The server answered with ${response.status}.`);
  if (answer === null) throw new Error(GONE); // in the middle of its answer
  return answer;
}
