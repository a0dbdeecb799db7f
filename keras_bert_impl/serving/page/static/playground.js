// The playground: one panel at a time, whose state is in the address.

import { chooser, element, foreign, labelled } from "./dom.js";
import { examplesOf } from "./examples.js";
import { linkTo, stateInLink } from "./link.js";
import { panelsOf } from "./panels.js";
import { Busy, KeyNeeded, models, predict, useKey } from "./server.js";
import { counted, linesOf } from "./text.js";
import { whyView } from "./why.js";

const PAUSE = 300; // milliseconds without a key, after which a text is asked
const OTHER_TEXT = "+"; // in the state: what stands beside; no model is called so
const NAMES = { text_a: "first text", text_b: "second text" };
const MAIN = ["text", "text_a", "context", "passage"]; // fields that one text may go through
const KEY = /^[\x21-\x7e]{1,512}$/; // what a header can hold

const content = document.querySelector("#content");
const navigation = document.querySelector("#panels");
const aboutModel = document.querySelector("#model");

let known = [];
let state = {};
let running = null; // what stops the request that is under way
let pause = null; // until what is typed is asked

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
    if (!KEY.test(given)) return content.replaceChildren(...keyForm(given));
    useKey(given);
    return start(given);
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
  showModel(model, panel);
  showNavigation(panels, panel);
  showPanel(panel);
}

function showModel(model, panel) {
  const names = known.map((one) => [one.name, one.name]);
  const open = (event) => (location.hash = linkTo(stateWith(panel, event.target.value)));
  const compare = (event) => (location.hash = linkTo({ ...state, beside: event.target.value, why2: null, without2: null }));
  const others = known.filter((one) => one !== model && twinOf(panel, one)).map((one) => [one.name, one.name]);
  const beside = [["", "nothing"], [OTHER_TEXT, "another text"], ...others];
  const facts = Object.entries(model.description).filter(([, value]) => typeof value !== "object");
  aboutModel.replaceChildren(
    known.length > 1
      ? labelled("Model", ({ id }) => chooser(names, model.name, { id, onchange: open }), "models")
      : element("p", { class: "field" }, "Model: ", foreign(model.name)),
    labelled("Compare with", ({ id }) => chooser(beside, state.beside ?? "", { id, onchange: compare }), "beside"),
    element("details", { class: "facts" }, element("summary", {}, "About this model"), element("p", {}, facts.map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`).join(" · "))),
  );
}

/** The panel of another model that answers the same question about the same fields. */
function twinOf({ look, signature, fields }, model) {
  const names = (some) => some.map(({ name }) => name).join();
  const isSame = (one) => one.look === look && (look || one.signature.kind === signature.kind);
  return panelsOf(model).find((one) => isSame(one) && names(one.fields) === names(fields));
}

/** The state with another model: what was typed stays, in the fields that the new one has. */
function stateWith(panel, name) {
  const next = panelsOf(known.find((one) => one.name === name));
  const shown = next.find((one) => one.id === state.show) ?? next[0];
  const old = examplesOf(panel, panel.model.scripts);
  const isExample = old.some(({ texts }) => Object.entries(texts).every(([field, text]) => state[field] === text));
  const ours = JSON.stringify(old) === JSON.stringify(examplesOf(shown, shown.model.scripts));
  const kept = { ...state, model: name, show: shown.id, why: null, without: null, beside: null };
  for (const { name: field } of panel.fields) if (isExample && !ours) kept[field] = null;
  const [from, to] = [panel, shown].map(({ fields }) => fields.find((one) => MAIN.includes(one.name)).name);
  if (from !== to && kept[from]) kept[to] = kept[from];
  return kept;
}

function showNavigation(panels, shown) {
  const links = panels.map((panel) => {
    const href = linkTo({ ...state, model: panel.model.name, show: panel.id, without: null, without2: null });
    const attributes = { href, "aria-current": panel === shown ? "page" : null };
    return element("li", {}, element("a", attributes, panel.title));
  });
  navigation.replaceChildren(element("ul", {}, ...links));
}

/** What stands side by side: a panel, and perhaps a second text or a second model. */
function sidesOf(panel) {
  const sideOf = (one, suffix, textsOf) => {
    return { panel: one, suffix, textsOf, result: element("section", { class: "result", "aria-label": `Result ${suffix}`.trim() }) };
  };
  const other = known.find((one) => one.name === state.beside);
  const twin = other && twinOf(panel, other);
  const sides = [sideOf(panel, "", "")];
  if (state.beside === OTHER_TEXT) sides.push(sideOf(panel, "2", "2"));
  else if (twin) sides.push(sideOf(twin, "2", ""));
  return sides;
}

function showPanel(panel) {
  running?.abort();
  clearTimeout(pause);
  document.title = `${panel.title} – keras-bert playground`;
  const heading = [element("h2", {}, panel.title), element("p", { class: "about" }, panel.about)];
  if (panel.refused) {
    content.replaceChildren(...heading, element("p", { class: "refused" }, panel.refused));
    return;
  }
  const status = element("p", { role: "status", class: "status" });
  const sides = sidesOf(panel);
  const ask = (how) => run(sides, form, status, how);
  const form = formOf(sides, ask);
  content.replaceChildren(...heading, form, status, element("div", { class: "sides" }, ...sides.map(({ result }) => result)));
  ask("replaceState");
}

/** The fields, which are asked whenever one stops typing; Back leads to the text before. */
function formOf(sides, ask) {
  let isTyping = false;
  const typed = () => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      ask(isTyping ? "replaceState" : "pushState");
      isTyping = true;
    }, PAUSE);
  };
  const sent = (event) => {
    event?.preventDefault();
    isTyping = false;
    ask("pushState");
  };
  const own = sides.filter(({ suffix, textsOf }) => suffix === textsOf);
  const columns = own.map((side, number) => element("div", {}, ...inputsOf(side, number, sent)));
  return element(
    "form",
    { onsubmit: sent, oninput: typed, onchange: () => (isTyping = false) },
    element("div", { class: "sides" }, ...columns),
    element("a", { class: "link", href: linkTo(state) }, "Link to all of this"),
  );
}

function inputsOf({ panel, suffix }, number, sent) {
  const examples = examplesOf(panel, panel.model.scripts);
  const fields = panel.fields.map((field) => inputOf(panel, field, suffix, examples[number].texts[field.name] ?? ""));
  const fill = (event, texts) => {
    for (const [name, text] of Object.entries(texts)) event.target.form.elements[name + suffix].value = text;
    sent();
  };
  const chips = examples.map(({ name, texts }) =>
    element("li", {}, element("button", { type: "button", dir: "auto", onclick: (event) => fill(event, texts) }, name)),
  );
  return [...fields, element("ul", { class: "examples", "aria-label": "Examples to try" }, ...chips)];
}

function inputOf(panel, field, suffix, example) {
  const many = field.is_list || panel.manyTexts;
  const rows = many ? 4 : field.name === "passage" ? 4 : 2;
  const onEnter = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || many) return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  const make = ({ id }) => {
    const made = element("textarea", {
      id,
      name: field.name + suffix,
      rows,
      dir: "auto",
      required: field.needed,
      spellcheck: "false",
      onkeydown: onEnter,
    });
    made.value = state[field.name + suffix] ?? example;
    return made;
  };
  return labelled(labelOf(field, many), make, `field-${field.name}${suffix}`);
}

function labelOf(field, many) {
  const name = NAMES[field.name] ?? field.name.replaceAll("_", " ");
  const about = field.about === "a text" || NAMES[field.name] ? null : field.about; // the name says it
  const notes = [about, many && "one a line", !field.needed && "may be left out"].filter(Boolean);
  return `${name[0].toUpperCase()}${name.slice(1)}${notes.length ? ` (${notes.join("; ")})` : ""}`;
}

/** @param {string} how the input comes into the history: "pushState" where Back leads to the one before. */
async function run(sides, form, status, how) {
  clearTimeout(pause);
  running?.abort();
  const mine = (running = new AbortController());
  const texts = Object.fromEntries(new FormData(form));
  const say = (said, failed = false) => {
    status.className = failed ? "status failed" : said === "Done." ? "unseen" : "status";
    status.textContent = said;
  };
  const isMissing = ({ panel, textsOf }) => panel.fields.some(({ needed, name }) => needed && !texts[name + textsOf]?.trim());
  if (sides.some(isMissing)) {
    sides.forEach(({ result }) => result.replaceChildren());
    return say("Write a text first.");
  }
  const isNew = Object.entries(texts).some(([name, text]) => state[name] !== undefined && state[name] !== text);
  const { model, id: show } = sides[0].panel;
  remember({ ...state, model: model.name, show, ...texts, ...(isNew && { without: null, without2: null }) }, how);
  const slow = setTimeout(() => say("Computing…"), 300);
  const onerror = (error) => {
    clearTimeout(slow);
    if (mine.signal.aborted) return;
    if (error instanceof Busy) {
      say("The server has much to do; the answer comes as soon as it can.");
      pause = setTimeout(() => run(sides, form, status, "replaceState"), 1000 * error.seconds);
      return;
    }
    sides.forEach(({ result }) => result.replaceChildren());
    say(error.message, true);
  };
  try {
    await Promise.all(sides.map((side) => answerSide(side, texts, sides.length > 1, mine.signal, onerror)));
    clearTimeout(slow);
    if (!mine.signal.aborted) say("Done.");
  } catch (error) {
    onerror(error);
  }
}

/** Asks for one side, and shows its answer and why. */
async function answerSide({ panel, suffix, textsOf, result }, texts, isBeside, signal, onerror) {
  const given = instancesOf(panel, texts, textsOf);
  const instances = given.slice(0, panel.most);
  const over = given.length - instances.length;
  const cut = over ? element("p", { class: "sum" }, `The first ${panel.most} texts; ${counted(over, "text")} left out.`) : null;
  const [{ name }] = panel.fields;
  const title = isBeside && !document.forms[0].elements[`${name}2`] ? element("h3", {}, foreign(panel.model.name)) : null;
  const put = (...shown) => {
    if (!signal.aborted) result.replaceChildren(...[title, cut, ...shown].filter(Boolean));
  };
  if (panel.look) {
    const context = contextOf(document.querySelector(`[name="${name}${textsOf}"]`), suffix, signal);
    return put(...(await panel.look(panel, panel.manyTexts ? instances : instances[0], context)));
  }
  const asked = { signal };
  const ask = (some, context = { signal }) => predict(panel.model, panel.signature, some, context);
  const answers = await ask(instances, asked);
  const shown = element("div", { class: "answer" });
  const onchange = (some, others, was = [], left = [], back = null) => {
    const words = left.flatMap((word, at) => [at ? ", " : "", element("strong", {}, foreign(word))]);
    const putBack = element("button", { type: "button", onclick: back }, "Put back");
    const note = left.length && element("p", { class: "left-out" }, "Without ", ...words, ": ", putBack);
    shown.replaceChildren(...[note, ...panel.show(panel, some, others, was)].filter(Boolean));
  };
  onchange(instances, answers);
  put(noteOf(asked.left), shown);
  const onchoice = (choice) => hold(choice, suffix);
  const chosen = { why: state[`why${suffix}`], without: state[`without${suffix}`] };
  const why = await whyView(panel, instances, answers, { ask, chosen, onchange, onchoice, onerror, signal, suffix });
  put(noteOf(asked.left), shown, why);
}

/** What is said of a text that was cut. */
function noteOf(left) {
  const note = left && `The text is longer than the model reads; ${counted(left, "token")} left out.`;
  return note ? element("p", { class: "sum" }, note) : null;
}

function contextOf(field, suffix, signal) {
  const held = Object.fromEntries(["layer", "head", "token", "point"].map((name) => [name, state[name + suffix]]));
  return { signal, direction: field.matches(":dir(rtl)") ? "rtl" : "ltr", held, hold: (choice) => hold(choice, suffix) };
}

/** Keeps what is chosen on a side. */
function hold(choice, suffix) {
  const kept = Object.entries(choice).map(([name, value]) => [name + suffix, value]);
  remember({ ...state, ...Object.fromEntries(kept) });
}

/** Writes the state into the address, and into the links that keep it. */
function remember(next, how = "replaceState") {
  state = next;
  const link = linkTo(state);
  if (link !== location.hash) history[how](null, "", link);
  for (const link of document.querySelectorAll("form a.link")) link.href = linkTo(state);
  for (const link of navigation.querySelectorAll("a")) {
    const { show } = Object.fromEntries(new URLSearchParams(link.hash.slice(1)));
    link.href = linkTo({ ...state, show, without: null, without2: null });
  }
}

/** What is asked: an instance, or several where each line is one. */
function instancesOf(panel, texts, suffix) {
  const textOf = ({ name }) => texts[name + suffix];
  if (panel.manyTexts) {
    const [field] = panel.fields;
    return linesOf(textOf(field)).map((line) => ({ [field.name]: line }));
  }
  const given = panel.fields.filter((field) => textOf(field).trim());
  return [Object.fromEntries(given.map((field) => [field.name, field.is_list ? linesOf(textOf(field)) : textOf(field)]))];
}

start();
