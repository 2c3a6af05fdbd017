// The inputs of a model as sliders and number fields: columns by name, or places of a window.

import { make, named } from "./elements.js";

const FEW = 12; // inputs that need no search field

// The places of an array of this shape: [[0, 0], [0, 1], ...]
function places(shape) {
  return shape.reduce((found, size) => found.flatMap((at) => Array.from({ length: size }, (_, i) => [...at, i])), [[]]);
}

export function pair(slider, field, changed) {
  slider.addEventListener("input", () => {
    field.value = Number(Number(slider.value).toPrecision(6));
    changed();
  });
  field.addEventListener("input", () => {
    if (field.value !== "") slider.value = field.value;
    changed();
  });
}

export class Inputs {
  constructor(container, filter, label, model, changed) {
    const flat = model.columns.length > 0;
    this.shape = model.row_shape;
    this.columns = flat ? model.columns : places(this.shape).map((at) => ({ name: `[${at.join(", ")}]` }));
    this.byName = flat;
    this.fields = this.columns.map((column, i) => this.#field(column, i, changed));
    container.replaceChildren(...this.fields.map((field) => field.box));
    label.hidden = this.columns.length <= FEW;
    filter.value = "";
    filter.oninput = () => {
      const wanted = filter.value.toLowerCase();
      for (const [i, field] of this.fields.entries())
        field.box.hidden = !this.columns[i].name.toLowerCase().includes(wanted);
    };
  }

  #field(column, i, changed) {
    const id = `input-${i}`;
    const field = make("input", { id, type: "number", step: "any", className: "input-number" });
    const error = make("p", { className: "error" });
    error.setAttribute("role", "alert");
    const row = make("div", { className: "row" });
    const ranged = Number.isFinite(column.low) && column.low < column.high;
    let slider = null;
    if (ranged) {
      slider = make("input", { type: "range", min: column.low, max: column.high, step: "any" });
      slider.setAttribute("aria-label", `${column.name}, slider`);
      pair(slider, field, () => changed(error, field));
      row.append(slider);
    } else {
      field.addEventListener("input", () => changed(error, field));
    }
    row.append(field);
    const box = make("div", { className: "field" }, make("label", { htmlFor: id }, named(column)), row, error);
    return { box, field, slider };
  }

  // flat numbers, in the order of the columns
  show(values) {
    for (const [i, { field, slider }] of this.fields.entries()) {
      field.value = values[i];
      if (slider) slider.value = values[i];
    }
  }

  flat(row) {
    return this.byName ? this.columns.map((column) => row[column.name]) : [row].flat(Infinity);
  }

  middle() {
    return this.columns.map(({ low, high }) => (Number.isFinite(low) ? Number(((low + high) / 2).toPrecision(6)) : 0));
  }

  // as a request takes it; an empty field is null, which the service refuses by name
  row() {
    const values = this.fields.map(({ field }) => (field.value === "" ? null : Number(field.value)));
    if (this.byName) return Object.fromEntries(this.columns.map((column, i) => [column.name, values[i]]));
    const nest = ([size, ...rest], start, span) =>
      Array.from({ length: size }, (_, i) =>
        rest.length ? nest(rest, start + (i * span) / size, span / size) : values[start + i]
      );
    return nest(this.shape, 0, values.length);
  }
}
