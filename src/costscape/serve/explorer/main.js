// The page: which model, which row, what if; asks the service and shows its answers.

import { ApiError, ask, useToken } from "./api.js";
import { $, csv, make, number, save } from "./elements.js";
import { Inputs } from "./inputs.js";
import * as panels from "./panels.js";
import { WhatIf } from "./what_if.js";

const WAIT = 150; // ms without a change before the service is asked
const WIDE = matchMedia("(min-width: 62rem)");
const state = { models: [], days: new Map(), labels: [], first: 0, happened: null, day: null, turn: 0 };
let timer = null;
let asking = new AbortController();

// ---- errors stand next to the control that was changed last

let place = { error: $("day-error"), field: $("day") };

function clearErrors() {
  for (const element of document.querySelectorAll("main .error")) element.textContent = "";
  for (const element of document.querySelectorAll("[aria-invalid]")) element.removeAttribute("aria-invalid");
}

function say(error, at) {
  if (error.name === "AbortError") return;
  if (error instanceof ApiError && error.status === 401) return askForToken(error.message);
  if (!(error instanceof ApiError)) console.error(error);
  at.error.textContent = error instanceof ApiError ? error.message : `The page failed: ${error.message}`;
  at.field?.setAttribute("aria-invalid", "true");
}

function askForToken(words) {
  const open = !$("token-form").hidden;
  $("token-form").hidden = false;
  $("main").hidden = true;
  $("token-error").textContent = open ? "This token is not the one of the service." : "";
  if (!open) $("token-form").querySelector("p.soft").title = words;
  $("token").focus();
  settle();
}

// ---- the service is asked

function changed(error, field) {
  if (error) place = { error, field };
  clearTimeout(timer);
  document.body.dataset.state = "busy";
  timer = setTimeout(update, WAIT);
}

function settle() {
  document.body.dataset.state = "ready";
}

async function update() {
  asking.abort();
  asking = new AbortController();
  const turn = ++state.turn;
  const { signal } = asking;
  clearErrors();
  const rows = [state.inputs.row()];
  const asked = state.whatIf.fields();
  const body = { rows, ...asked };
  const model = state.model;
  const other = state.models.find((each) => each.name === $("other").value);
  const post = (path, name, content) => ask(path, { model: name, body: content, signal });
  const whole = Object.keys(asked).length > 0;
  const decided = Promise.all([post("decide", model.name, body), whole ? post("decide", model.name, { rows }) : null]);
  const explained = post("explain", model.name, body);
  const theirs = other ? post("decide", other.name, body) : null;
  const [decision, why, others] = await Promise.allSettled([decided, explained, theirs]);
  if (turn !== state.turn) return;
  if (decision.status === "rejected") {
    say(decision.reason, place);
    panels.showOld();
    return settle();
  }
  const [found, usual] = decision.value;
  panels.showDecision(model, found, usual);
  if (why.status === "fulfilled") {
    state.why = why.value;
    state.risk = asked.risk !== undefined;
    showReasons();
    panels.showCostRange(state.why, state.risk);
  } else {
    state.why = null;
    panels.clearReasons();
    say(why.reason, { error: $("explain-error") });
  }
  if (other && others.status === "fulfilled") panels.showVersions(model, other, found, others.value);
  if (other && others.status === "rejected") say(others.reason, { error: $("other-error") });
  settle();
}

function showReasons() {
  const { model, why } = state;
  const names = why.outcomes.names;
  const old = $("outcome").selectedIndex;
  $("outcome").replaceChildren(...names.map((name) => make("option", {}, name)));
  $("outcome").selectedIndex = old >= 0 && old < names.length ? old : 0;
  if (state.first >= why.curves.length) state.first = 0;
  panels.showCurves(model, why, state.first, state.risk);
  panels.showScenarios(model, why, $("outcome").selectedIndex, state.happened);
  panels.showPast(why, state.days, openDay);
  panels.showInputs(why);
}

// ---- the model and its past days

async function start() {
  document.body.dataset.state = "busy";
  try {
    state.models = (await ask("models")).models;
  } catch (error) {
    say(error, { error: $("model-error") });
    return settle();
  }
  $("token-form").hidden = true;
  $("model").replaceChildren(...state.models.map((model) => make("option", {}, model.name)));
  $("main").hidden = false;
  await chooseModel();
}

async function chooseModel() {
  document.body.dataset.state = "busy";
  const model = (state.model = state.models[$("model").selectedIndex]);
  const rows = number(model.fit_rows, 9);
  $("facts").textContent = `${model.method}, version ${model.version}, fitted ${model.fit_date.slice(0, 10)} on ${rows} rows`;
  state.inputs = new Inputs($("inputs"), $("filter"), $("filter-label"), model, (error, field) => {
    state.happened = null;
    changed(error, field);
  });
  state.whatIf.of(model);
  state.first = 0;
  offerOthers(model);
  await Promise.all([listDays(model), showBacktest(model)]);
}

// versions of the same problem: equal inputs and decisions
function offerOthers(model) {
  const names = (columns) => columns.map((column) => column.name).join("\n");
  const alike = (each) =>
    names(each.columns) === names(model.columns) && names(each.decisions) === names(model.decisions) &&
    String(each.row_shape) === String(model.row_shape);
  const others = state.models.filter((each) => each !== model && alike(each));
  $("only-one").textContent =
    "The service has one version of this model. Start it with two: costscape serve new=FOLDER old=FOLDER.";
  $("only-one").hidden = others.length > 0;
  $("other-label").hidden = others.length === 0;
  $("other").replaceChildren(make("option", { value: "" }, "none"), ...others.map((each) => make("option", {}, each.name)));
  $("other").selectedIndex = others.length ? 1 : 0;
  $("versions").replaceChildren();
  delete panels.shown.versions;
}

async function listDays(model) {
  place = { error: $("day-error"), field: $("day") };
  let labels = [];
  let refused = null;
  try {
    labels = (await ask("past", { model: model.name })).labels;
  } catch (error) {
    refused = error;
  }
  if (model !== state.model) return; // another one was chosen meanwhile
  state.labels = labels;
  state.days = new Map(state.labels.map((label, i) => [label, i]));
  $("days").replaceChildren(...state.labels.map((label) => make("option", { value: label })));
  for (const id of ["day", "earlier", "later"]) $(id).disabled = state.labels.length === 0;
  if (state.labels.length) return openDay(state.labels.at(-1));
  state.inputs.show(state.inputs.middle());
  state.happened = null;
  $("day").value = $("happened").textContent = "";
  await update();
  if (refused) say(refused, { error: $("day-error") });
}

async function openDay(label) {
  const at = { error: $("day-error"), field: $("day") };
  const day = state.days.get(label);
  if (day === undefined) return say(new ApiError(422, `There is no past day ${label}. Choose one of the list.`), at);
  document.body.dataset.state = "busy";
  const model = state.model;
  state.day = day;
  let happened;
  try {
    happened = await ask("past", { model: model.name, day });
  } catch (error) {
    say(error, at);
    return settle();
  }
  if (model !== state.model || day !== state.day) return; // another one was opened meanwhile
  state.happened = happened;
  place = at;
  $("day").value = label;
  $("earlier").disabled = day === 0;
  $("later").disabled = day === state.labels.length - 1;
  const { outcome, outcome_names: names } = state.happened;
  $("happened").textContent = `What happened: ${names.map((name, i) => `${name} ${number(outcome[i])}`).join(", ")}.`;
  state.inputs.show(state.inputs.flat(state.happened.row));
  await update();
}

async function showBacktest(model) {
  delete panels.shown.backtest;
  $("against-label").hidden = $("backtest").hidden = $("backtest-table").hidden = true;
  let found;
  try {
    found = await ask("backtest", { model: model.name });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    $("backtest-words").textContent = error.message;
    return;
  }
  if (model !== state.model) return;
  state.backtest = found;
  const { advice, costs, reference } = state.backtest;
  $("backtest-words").textContent = advice;
  $("against").replaceChildren(...Object.keys(costs).map((name) => make("option", {}, name)));
  $("against").value = reference;
  $("against-label").hidden = $("backtest").hidden = $("backtest-table").hidden = false;
  panels.showBacktest(state.backtest, reference);
}

// ---- controls

function themeWords() {
  const dark = document.documentElement.dataset.theme === "dark";
  $("theme").textContent = dark ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
}

function redraw() {
  if (state.why) showReasons();
  if (panels.shown.backtest) panels.showBacktest(state.backtest, $("against").value);
}

function useTheme(name) {
  document.documentElement.dataset.theme = name;
  themeWords();
  redraw();
}

function turnPage(by) {
  state.first += by;
  panels.showCurves(state.model, state.why, state.first, state.risk);
}

state.whatIf = new WhatIf(changed);
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useToken($("token").value.trim());
  $("token").value = "";
  start();
});
$("theme").addEventListener("click", () => useTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => useTheme(event.matches ? "dark" : "light"));
$("model").addEventListener("change", chooseModel);
$("other").addEventListener("change", () => {
  if (!$("other").value) {
    $("versions").replaceChildren();
    delete panels.shown.versions;
  }
  changed($("other-error"), $("other"));
});
$("day").addEventListener("change", () => {
  clearErrors();
  openDay($("day").value);
});
$("earlier").addEventListener("click", () => openDay(state.labels[state.day - 1]));
$("later").addEventListener("click", () => openDay(state.labels[state.day + 1]));
$("reset").addEventListener("click", () => (state.labels.length ? openDay(state.labels[state.day]) : listDays(state.model)));
$("outcome").addEventListener("change", () => state.why &&
  panels.showScenarios(state.model, state.why, $("outcome").selectedIndex, state.happened));
$("against").addEventListener("change", () => panels.showBacktest(state.backtest, $("against").value));
$("curves-before").addEventListener("click", () => turnPage(-6));
$("curves-after").addEventListener("click", () => turnPage(6));
for (const box of document.querySelectorAll(".downloads")) {
  const { panel } = box.dataset;
  const title = box.parentElement.querySelector("h2").textContent;
  for (const kind of ["CSV", "JSON"]) {
    const button = make("button", { type: "button", onclick: () => download(panel, kind) }, kind);
    button.setAttribute("aria-label", `${title} as ${kind}`);
    box.append(button);
  }
}

function download(panel, kind) {
  const found = panels.shown[panel];
  if (!found) return;
  const name = `${state.model.name}-${panel}.${kind.toLowerCase()}`;
  if (kind === "CSV") save(name, csv(found.rows), "text/csv");
  else save(name, JSON.stringify(found.json, null, 1), "application/json");
}

$("inputs-card").open = $("what-if-card").open = WIDE.matches;
themeWords();
start();
