// The state of the page in its address, behind "#": a link holds the model, the panel and the input.

/** @returns {Object<string, string>} */
export function stateInLink() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

export function linkTo(state) {
  const held = Object.entries(state).filter(([, value]) => value !== "" && value != null);
  return `#${new URLSearchParams(held)}`;
}
