// The playground: one panel at a time, whose state is in the address.

import { chooser, element, foreign, labelled } from "./dom.js";
import { linkTo, stateInLink } from "./link.js";
import { panelsOf } from "./panels.js";
import { KeyNeeded, models, useKey } from "./server.js";
import { counted, linesOf } from "./text.js";

const content = document.querySelector("#content");
const navigation = document.querySelector("#panels");
const aboutModel = document.querySelector("#model");

let known = [];
let state = {};
let running = null; // what stops the request that is under way

/** @param {string} [given] the key that was given, if any. */
async function start(given) {
  try {
    known = (await models()).models;
  } catch (error) {
    const needsKey = error instanceof KeyNeeded;
    content.replaceChildren(...(needsKey ? keyForm(given) : [element("p", { role: "alert" }, error.message)]));
    return;
  }
  addEventListener("hashchange", () => {
    if (linkTo(state) !== location.hash) follow();
  });
  follow();
}

/** Asks for the server's key, which the page keeps as long as it is open. */
function keyForm(wrong) {
  const make = ({ id }) => element("input", { id, type: "password", autocomplete: "off", required: true });
  const submit = (event) => {
    event.preventDefault();
    const given = event.target.querySelector("input").value;
    useKey(given);
    start(given);
  };
  const field = labelled("API key of this server", make, "key");
  const form = element("form", { onsubmit: submit }, field, element("button", { type: "submit" }, "Open"));
  return [wrong && element("p", { role: "alert", class: "failed" }, "This is not the server's key."), form].filter(Boolean);
}

/** Shows what the address says. */
function follow() {
  state = stateInLink();
  const model = known.find((one) => one.name === state.model) ?? known[0];
  const panels = panelsOf(model);
  const panel = panels.find((one) => one.id === state.show) ?? panels[0];
  showModel(model);
  showNavigation(panels, panel);
  showPanel(panel);
}

function showModel(model) {
  const open = (event) => (location.hash = linkTo({ model: event.target.value }));
  const many = known.length > 1;
  const names = known.map((one) => [one.name, one.name]);
  const facts = Object.entries(model.description).filter(([, value]) => typeof value !== "object");
  aboutModel.replaceChildren(
    many
      ? labelled("Model", ({ id }) => chooser(names, model.name, { id, onchange: open }), "models")
      : element("p", {}, "Model: ", foreign(model.name)),
    element("p", { class: "facts" }, facts.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(" · ")),
  );
}

function showNavigation(panels, shown) {
  const links = panels.map((panel) => {
    const href = linkTo({ ...state, model: panel.model.name, show: panel.id });
    const attributes = { href, "aria-current": panel === shown ? "page" : null };
    return element("li", {}, element("a", attributes, panel.title));
  });
  navigation.replaceChildren(element("ul", {}, ...links));
}

function showPanel(panel) {
  running?.abort();
  document.title = `${panel.title} – keras-bert playground`;
  const heading = [element("h2", {}, panel.title), element("p", { class: "about" }, panel.about)];
  if (panel.refused) {
    content.replaceChildren(...heading, element("p", { class: "refused" }, panel.refused));
    return;
  }
  const status = element("p", { role: "status", class: "status" });
  const result = element("section", { class: "result", "aria-label": "Result" });
  const ask = (remembered) => run(panel, form, status, result, remembered);
  const form = formOf(panel, () => ask("pushState"));
  content.replaceChildren(...heading, form, status, result);
  ask("replaceState");
}

function formOf(panel, ask) {
  const fields = panel.fields.map((field) => inputOf(panel, field));
  const submit = (event) => {
    event.preventDefault();
    ask();
  };
  const buttons = element(
    "div",
    { class: "buttons" },
    element("button", { type: "submit" }, "Run"),
    element("a", { class: "link", href: linkTo(state) }, "Link to this input"),
  );
  return element("form", { onsubmit: submit }, ...fields, buttons);
}

function inputOf(panel, field) {
  const value = state[field.name] ?? panel.example?.[field.name] ?? "";
  const many = field.is_list || panel.manyTexts;
  const rows = many ? 4 : field.name === "passage" ? 5 : 2;
  const onEnter = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || many) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  const make = ({ id }) => {
    const made = element("textarea", {
      id,
      name: field.name,
      rows,
      dir: "auto",
      required: field.needed,
      spellcheck: "false",
      onkeydown: onEnter,
    });
    made.value = value;
    return made;
  };
  return labelled(labelOf(field, many), make, `field-${field.name}`);
}

function labelOf(field, many) {
  const name = field.name.replaceAll("_", " ");
  const about = field.about === "a text" ? null : field.about; // the name says it
  const notes = [about, many && "one a line", !field.needed && "may be left out"].filter(Boolean);
  return `${name[0].toUpperCase()}${name.slice(1)}${notes.length ? ` (${notes.join("; ")})` : ""}`;
}

/** @param {string} how the input comes into the history: "pushState" where Back leads to the one before. */
async function run(panel, form, status, result, how) {
  const texts = Object.fromEntries(new FormData(form));
  if (!panel.fields.every((field) => !field.needed || texts[field.name].trim())) {
    status.textContent = "Write a text first.";
    return;
  }
  remember({ ...state, model: panel.model.name, show: panel.id, ...texts }, how);
  running?.abort();
  const mine = (running = new AbortController());
  const slow = setTimeout(() => (status.textContent = "Computing…"), 150);
  try {
    const context = contextOf(form, mine.signal);
    const shown = await panel.show(panel, instanceOf(panel, texts), context);
    if (mine.signal.aborted) return;
    result.replaceChildren(...[noteOf(context.left), ...shown].filter(Boolean));
    clearTimeout(slow);
    status.className = "status";
    status.textContent = "Done.";
  } catch (error) {
    clearTimeout(slow);
    if (mine.signal.aborted) return;
    result.replaceChildren();
    status.className = "status failed";
    status.textContent = error.message;
  }
}

/** What is said of a text that was cut. */
function noteOf(left) {
  const note = left && `The text is longer than the model reads; ${counted(left, "token")} left out.`;
  return note ? element("p", { class: "sum" }, note) : null;
}

function contextOf(form, signal) {
  const rightToLeft = form.querySelector("textarea").matches(":dir(rtl)");
  const hold = (chosen) => remember({ ...state, ...chosen });
  return { signal, direction: rightToLeft ? "rtl" : "ltr", held: state, hold };
}

/** Writes the state into the address, and into the links that keep it. */
function remember(next, how = "replaceState") {
  state = next;
  const link = linkTo(state);
  if (link !== location.hash) history[how](null, "", link);
  for (const link of document.querySelectorAll("form a.link")) link.href = linkTo(state);
  for (const link of navigation.querySelectorAll("a")) {
    const { show } = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    link.href = linkTo({ ...state, show });
  }
}

/** What is asked: an instance, or several where each line is one. */
function instanceOf(panel, texts) {
  if (panel.manyTexts) {
    const [{ name }] = panel.fields;
    return linesOf(texts[name]).map((line) => ({ [name]: line }));
  }
  const given = panel.fields.filter((field) => texts[field.name].trim());
  return Object.fromEntries(
    given.map((field) => [field.name, field.is_list ? linesOf(texts[field.name]) : texts[field.name]]),
  );
}

start();
