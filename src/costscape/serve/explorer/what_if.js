// What if: another set, a risk, another service level, as the fields of a request.

import { $, make, number } from "./elements.js";
import { pair } from "./inputs.js";

const WORDS = { total: "Total capacity", upper: "Upper bounds", lower: "Lower bounds" };
const RISKS = {
  cvar: ["Level, such as 0.9", 0.9], entropic: ["Aversion, above 0", 0.1],
  mean_deviation: ["Weight, above 0", 0.5], worst_case: ["Share of the weight left out", 0],
};

// "3" is a number, "1, 2, 3" a list; other texts go to the service, which says what it needs
function parsed(text) {
  const parts = text.split(/[,;\s]+/).filter(Boolean).map((part) => (Number.isNaN(Number(part)) ? part : Number(part)));
  return parts.length === 1 ? parts[0] : parts;
}

export class WhatIf {
  constructor(changed) {
    this.changed = changed;
    this.ends = {};
    const told = (id) => {
      const field = $(id);
      return () => this.changed(field.closest(".field").querySelector(".error"), field);
    };
    $("risk").addEventListener("change", () => {
      this.#showRisk();
      told("risk")();
    });
    $("risk-number").addEventListener("input", told("risk-number"));
    pair($("service-range"), $("service"), told("service"));
    $("undo").addEventListener("click", () => {
      this.clear();
      this.changed(null, null);
    });
  }

  // the fields that this model takes
  of(model) {
    const present = model.what_if;
    this.ends = {};
    const most = model.decisions.reduce((sum, column) => sum + Math.max(0, column.high), 0);
    const boxes = Object.entries(present).map(([name, value]) => this.#end(name, value, most, model.decisions.length));
    $("set-fields").replaceChildren(...boxes);
    $("no-set").hidden = boxes.length > 0;
    this.level = model.service_level;
    $("service-field").hidden = this.level === null;
    $("no-service").hidden = this.level !== null;
    this.clear();
  }

  #end(name, value, most, dim) {
    const id = `set-${name}`;
    const error = make("p", { className: "error" });
    error.setAttribute("role", "alert");
    const field = make("input", { id, autocomplete: "off" });
    let words = WORDS[name];
    const box = make("div", { className: "field" });
    if (name === "total") {
      Object.assign(field, { type: "number", step: "any", placeholder: value === null ? "no limit" : number(value, 6) });
      const slider = make("input", { type: "range", min: 0, max: value === null ? most : 2 * value, step: "any" });
      slider.setAttribute("aria-label", `${words}, slider`);
      pair(slider, field, () => this.changed(error, field));
      this.ends[name] = { field, reset: () => (slider.value = value ?? most) };
      box.append(make("label", { htmlFor: id }, words), make("div", { className: "row" }, slider, field), error);
    } else {
      const equal = value.every((end) => end === value[0]);
      field.placeholder = equal ? number(value[0], 6) : value.map((end) => number(end, 6)).join(", ");
      if (dim > 1) words += `: one number, or ${dim}`;
      field.addEventListener("input", () => this.changed(error, field));
      this.ends[name] = { field, reset: () => {} };
      box.append(make("label", { htmlFor: id }, words), field, error);
    }
    return box;
  }

  #showRisk() {
    const [words, value] = RISKS[$("risk").value] ?? [];
    $("risk-number-label").hidden = words === undefined;
    $("risk-number-name").textContent = words ?? "";
    $("risk-number").value = value ?? "";
  }

  clear() {
    for (const { field, reset } of Object.values(this.ends)) {
      field.value = "";
      reset();
    }
    $("risk").value = "";
    this.#showRisk();
    $("service").value = "";
    $("service").placeholder = this.level === null ? "" : number(this.level, 6);
    $("service-range").value = this.level ?? 0.5;
  }

  // {} where nothing is asked
  fields() {
    const found = {};
    const ends = Object.entries(this.ends).filter(([, { field }]) => field.value.trim() !== "");
    if (ends.length) found.feasible = Object.fromEntries(ends.map(([name, { field }]) => [name, parsed(field.value)]));
    const risk = $("risk").value;
    if (risk) found.risk = { [risk]: $("risk-number").value === "" ? null : Number($("risk-number").value) };
    if ($("service").value !== "") found.service_level = Number($("service").value);
    return found;
  }
}
