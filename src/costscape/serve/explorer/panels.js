// The panels of results. Each keeps what it shows, for the downloads.

import { drawBacktest, drawCurve, drawScenarios, forget } from "./charts.js";
import { $, bar, make, named, number, signed, table } from "./elements.js";

const AT_ONCE = 6; // cost curves
export const shown = {}; // {panel: {rows, json}}

export function showDecision(model, found, usual) {
  const decided = [found.decisions[0]].flat();
  const before = usual ? [usual.decisions[0]].flat() : null;
  const cost = found.expected_cost?.[0];
  const words = [];
  if (cost !== undefined) words.push(make("strong", {}, number(cost, 5)), " expected cost");
  if (found.risk) words.push(`; risk ${number(found.risk[0], 5)}`);
  if (usual?.expected_cost) words.push(`; ${signed(cost - usual.expected_cost[0])} against no what-if`);
  $("cost").replaceChildren(...words);
  const newer = found.version === model.version ? [] : ["Another version serves now: load the page again."];
  const notes = [...newer, ...found.notes, ...found.flags.map((flag) => `Far outside the training range: ${flag.columns.join(", ")}. The decision is extrapolated.`)];
  $("notes").textContent = notes.join(" ");
  $("notes").hidden = notes.length === 0;
  const head = ["", "decision", ...(before ? ["without what-if", "change"] : []), "from", "to"];
  $("decision-table").replaceChildren(table(head, model.decisions.map((column, i) => [
    named(column), number(decided[i]), ...(before ? [number(before[i]), signed(decided[i] - before[i])] : []),
    number(column.low), number(column.high),
  ])));
  shown.decision = {
    json: { ...found, without_what_if: usual ?? undefined },
    rows: model.decisions.map((column, i) => ({
      name: column.name, unit: column.unit, decision: decided[i], ...(before ? { without_what_if: before[i] } : {}),
    })),
  };
}

// a refused change leaves the answer before it on the page
export function showOld() {
  if (!shown.decision) return;
  $("notes").textContent = "The last change was refused. This is the answer before it.";
  $("notes").hidden = false;
}

export function clearReasons() {
  forget([...$("curves").querySelectorAll(".chart"), $("scenarios")]);
  for (const id of ["curves", "scenarios", "past", "matter", "curves-words", "scenarios-words"]) $(id).replaceChildren();
  $("outcome").replaceChildren();
  $("curve-pages").hidden = true;
  for (const panel of ["curves", "scenarios", "past", "inputs"]) delete shown[panel];
}

export function showCostRange(why, risk) {
  if (risk) return; // the quantiles are of the cost, the headline of the risk: they say enough
  const { 0.1: low, 0.9: high } = why.cost_quantiles;
  $("cost").append(`; the cost is between ${number(low, 3)} and ${number(high, 3)} in 8 of 10 cases`);
}

// the price at an action, by the curve: linear between its points
function priceAt(curve, cost, action) {
  const { actions, costs } = curve;
  const i = actions.findIndex((value) => value >= action);
  if (i < 0 || action < actions[0]) return null;
  if (i === 0 || actions[i] === actions[i - 1]) return costs[i] - cost;
  const share = (action - actions[i - 1]) / (actions[i] - actions[i - 1]);
  return costs[i - 1] + share * (costs[i] - costs[i - 1]) - cost;
}

export function showCurves(model, why, first, risk) {
  const name = risk ? "risk" : "expected cost";
  const some = why.curves.slice(first, first + AT_ONCE);
  $("curves-words").textContent =
    `The ${name} of another number above that of the decision, the others fixed. Dotted: outside the set.`;
  $("curve-pages").hidden = why.curves.length <= AT_ONCE;
  $("curves-shown").textContent = `${first + 1} to ${first + some.length} of ${why.curves.length}`;
  $("curves-before").disabled = first === 0;
  $("curves-after").disabled = first + AT_ONCE >= why.curves.length;
  forget($("curves").querySelectorAll(".chart"));
  const boxes = some.map((curve, k) => curveBox(model, why, curve, first + k));
  $("curves").replaceChildren(...boxes.map(({ box }) => box));
  for (const [k, { chart }] of boxes.entries())
    drawCurve(chart, some[k], why.decision[first + k], why.expected_cost, name);
  shown.curves = {
    json: { names: why.names, decision: why.decision, curves: why.curves, deviations: why.deviations },
    rows: why.curves.flatMap((curve) => curve.actions.map((action, j) => ({
      name: curve.name, action, cost: curve.costs[j], price: curve.costs[j] - why.expected_cost, feasible: curve.feasible[j],
    }))),
  };
}

function curveBox(model, why, curve, i) {
  const chart = make("div", { className: "chart" });
  const step = why.deviations[i];
  const dust = 1e-5 * Math.abs(why.expected_cost); // what single precision leaves of a price of 0
  const price = (value, allowed) => `${Math.abs(value) < dust ? "0" : signed(value)}${allowed ? "" : " (not allowed)"}`;
  const words = make("p", { className: "soft" },
    `${number(step.step, 3)} less: ${price(step.down, step.down_feasible)}. ` +
    `${number(step.step, 3)} more: ${price(step.up, step.up_feasible)}.`);
  const field = make("input", { type: "number", step: "any", placeholder: number(why.decision[i]), id: `instead-${i}` });
  const said = make("output", { htmlFor: field.id });
  field.addEventListener("input", () => {
    const found = field.value === "" ? null : priceAt(curve, why.expected_cost, Number(field.value));
    said.textContent = field.value === "" ? "" : found === null ? "outside the curve" : `costs ${signed(found)}`;
  });
  const column = model.decisions[i];
  const instead = make("div", { className: "instead" }, make("label", { htmlFor: field.id }, `Instead, ${curve.name}`), field, said);
  return { chart, box: make("div", { className: "curve" }, make("h3", {}, named(column)), chart, words, instead) };
}

export function showScenarios(model, why, outcome, happened) {
  const { names, weights, values } = why.outcomes;
  const all = weights.reduce((sum, weight) => sum + weight, 0);
  $("scenarios-words").textContent =
    `${why.scenarios} scenarios count as ${number(why.effective_scenarios, 3)} of equal weight.` +
    (all < 0.999 ? ` The ${weights.length} heaviest are shown, ${number(100 * all, 3)} % of the weight.` : "");
  const marks = [];
  if (names.length === why.decision.length) marks.push({ at: why.decision[outcome], text: "decision", colour: "b" });
  if (happened) marks.push({ at: happened.outcome[outcome], text: "that day", colour: "c" });
  const unit = model.decisions.find((column) => column.name === names[outcome])?.unit;
  drawScenarios($("scenarios"), named({ name: names[outcome], unit }), values.map((value) => value[outcome]), weights, marks);
  shown.scenarios = {
    json: why.outcomes,
    rows: weights.map((weight, s) => ({ weight, ...Object.fromEntries(names.map((name, j) => [name, values[s][j]])) })),
  };
}

export function showPast(why, days, open) {
  const names = why.outcomes.names;
  const most = why.past_rows[0]?.weight ?? 1;
  const rows = why.past_rows.map((row) => {
    const day = days.has(row.label) ? row.label : days.has(`${row.label}T00:00:00`) ? `${row.label}T00:00:00` : null;
    const label = day === null ? row.label : make("button", { type: "button", onclick: () => open(day) }, row.label);
    if (day !== null) label.setAttribute("aria-label", `Open ${row.label}`);
    return [label, bar(row.weight / most, `${number(100 * row.weight, 3)} %`), ...row.outcome.map((value) => number(value))];
  });
  $("past").replaceChildren(rows.length ? table(["day", "weight", ...names], rows)
    : make("p", { className: "soft" }, "The forecast is one point, on which all past days have influence."));
  shown.past = {
    json: why.past_rows,
    rows: why.past_rows.map((row) => ({
      day: row.label, weight: row.weight, ...Object.fromEntries(names.map((name, j) => [name, row.outcome[j]])),
    })),
  };
}

export function showInputs(why) {
  const most = Math.max(...why.inputs.map((input) => input.price), Number.MIN_VALUE);
  const moves = (input) => Math.max(...input.change.map((value) => Math.abs(value ?? 0)));
  $("matter").replaceChildren(table(["input", "ignoring it costs", "moves the decision by"],
    why.inputs.map((input) => [input.name, bar(input.price / most, number(input.price, 3)), number(moves(input), 3)])));
  shown.inputs = {
    json: why.inputs,
    rows: why.inputs.map((input) => ({ input: input.name, price: input.price, moves_decision_by: moves(input) })),
  };
}

export function showVersions(model, other, found, theirs) {
  const [ours, others] = [found, theirs].map((answer) => [answer.decisions[0]].flat());
  const cost = (answer) => answer.expected_cost?.[0];
  const line = (words, a, b) => [words, number(a), number(b), Number.isFinite(b - a) ? signed(b - a) : ""];
  $("versions").replaceChildren(table(["", model.name, other.name, "difference"], [
    ...model.decisions.map((column, i) => line(named(column), ours[i], others[i])),
    line("expected cost", cost(found), cost(theirs)),
    ["version", model.version, other.version, ""], ["fitted", model.fit_date.slice(0, 10), other.fit_date.slice(0, 10), ""],
    ["rows of the fit", number(model.fit_rows, 9), number(other.fit_rows, 9), ""],
  ]));
  shown.versions = {
    json: { [model.name]: found, [other.name]: theirs },
    rows: model.decisions.map((column, i) => ({ name: column.name, [model.name]: ours[i], [other.name]: others[i] })),
  };
}

const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?/;

export function showBacktest(found, reference) {
  const dates = found.labels.map((label) => label.match(DATE)?.[0]);
  const x = dates.every(Boolean) ? dates : found.labels.map((_, i) => i + 1);
  const mean = (costs) => costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  const names = Object.keys(found.costs).sort((a, b) =>
    (b === found.recommended) - (a === found.recommended) || mean(found.costs[a]) - mean(found.costs[b]));
  const base = found.costs[reference];
  const lines = names.filter((name) => name !== reference).map((name) => {
    let saved = 0;
    return { name, x, labels: found.labels, y: found.costs[name].map((cost, i) => (saved += base[i] - cost)) };
  });
  drawBacktest($("backtest"), lines, reference);
  const least = mean(base);
  $("backtest-table").replaceChildren(table(["", "cost a row", "saved a row", "in %", `in ${found.labels.length} rows`],
    names.map((name) => {
      const saved = least - mean(found.costs[name]);
      return [name, number(mean(found.costs[name])), signed(saved), least > 0 ? signed((100 * saved) / least) : "", signed(saved * base.length)];
    })));
  shown.backtest = {
    json: { ...found, against: reference },
    rows: found.labels.map((label, i) => ({ row: label, ...Object.fromEntries(names.map((name) => [name, found.costs[name][i]])) })),
  };
}
