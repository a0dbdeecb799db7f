// What the page asks the server.

/** The models with what each answers; see the routes of the page. */
export function models() {
  return asked("playground/models");
}

/** One answer an instance, by the way that TensorFlow Serving's clients take. */
export async function predict(model, signature, instances, signal) {
  const path = `v1/models/${encodeURIComponent(model)}:predict`;
  const body = { signature_name: signature, instances };
  return (await asked(path, body, signal)).predictions;
}

/** The rows of token ids that an instance becomes. */
export function tokens(model, signature, instance, signal) {
  return asked(`playground/models/${encodeURIComponent(model)}/tokens`, { signature, instance }, signal);
}

/** The attention of an instance's first row. */
export function attention(model, signature, instance, signal) {
  return asked(`playground/models/${encodeURIComponent(model)}/attention`, { signature, instance }, signal);
}

async function asked(path, body, signal) {
  const how = body && {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  const response = await fetch(path, { ...how, signal });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.error ?? `The server answered with ${response.status}.`);
  return answer;
}
