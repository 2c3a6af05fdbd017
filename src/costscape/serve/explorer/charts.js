// Pictures by Plotly, in the colours of the page.

const SETTINGS = { displayModeBar: false };
const SERIES = ["a", "b", "c", "d", "e"];

// a chart follows its own width, which changes without the window's, too: a scroll bar, an opened part
const widths = new ResizeObserver((changes) => {
  for (const { target } of changes) {
    const shown = target.querySelector(".main-svg")?.clientWidth;
    if (shown && target.clientWidth && shown !== target.clientWidth) window.Plotly.relayout(target, { autosize: true });
  }
});

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue(`--${name}`).trim();
}

function axis(colour, title, more = {}) {
  return {
    title: title ? { text: title, standoff: 8, font: { size: 12 } } : undefined, color: colour("soft"), gridcolor: colour("grid"),
    zerolinecolor: colour("line"), fixedrange: true, automargin: true, nticks: 6, ...more,
  };
}

function draw(element, words, data, layout) {
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", words);
  if (!window.Plotly) {
    element.textContent = "Charts need plotly in the service: pip install 'costscape[serve]'.";
    return;
  }
  const colour = colours();
  window.Plotly.react(element, data, {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", dragmode: false, showlegend: false,
    margin: { l: 8, r: 10, t: 8, b: 8 }, hoverlabel: { bgcolor: colour("raised"), font: { color: colour("ink") } },
    font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") }, ...layout,
  }, SETTINGS).then(() => {
    widths.unobserve(element); // to observe again reports the width once more, after the drawing
    widths.observe(element);
  });
}

const upright = (colour, at) => ({
  type: "line", x0: at, x1: at, y0: 0, y1: 1, yref: "paper", line: { color: colour, width: 2, dash: "dot" },
});

export function drawCurve(element, curve, decision, cost, costName) {
  const colour = colours();
  const price = curve.costs.map((value) => value - cost);
  const allowed = price.map((value, i) => (curve.feasible[i] ? value : null));
  const line = { x: curve.actions, mode: "lines", hovertemplate: "%{x:.4g}: %{y:+.3g}<extra></extra>" };
  draw(element, `${costName} of ${curve.name} above that of the decision ${decision.toPrecision(4)}`, [
    { ...line, y: price, line: { color: colour("f"), width: 1.2, dash: "dot" }, hoverinfo: "skip", hovertemplate: null },
    { ...line, y: allowed, line: { color: colour("a"), width: 2.5 }, connectgaps: false },
    { x: [decision], y: [0], mode: "markers", marker: { color: colour("b"), size: 11 },
      hovertemplate: "decision %{x:.4g}<extra></extra>" },
  ], { xaxis: axis(colour, ""), yaxis: axis(colour, "price") });
}

export function drawScenarios(element, name, values, weights, marks) {
  const colour = colours();
  draw(element, `Weights of the scenarios by ${name}`, [{
    type: "histogram", x: values, y: weights, histfunc: "sum", nbinsx: 24, marker: { color: colour("a") },
    hovertemplate: "%{x}: weight %{y:.3f}<extra></extra>",
  }], {
    bargap: 0.06, xaxis: axis(colour, name), yaxis: axis(colour, "weight", { rangemode: "tozero" }),
    shapes: marks.map((mark) => upright(colour(mark.colour), mark.at)),
    annotations: marks.map((mark, i) => ({
      x: mark.at, y: 1, yref: "paper", yanchor: "top", yshift: -16 * i, xanchor: "left", xshift: 4, showarrow: false,
      text: mark.text, font: { color: colour(mark.colour), size: 12 }, bgcolor: colour("raised"),
    })),
  });
}

// lines: {name, x, y}; the first is the recommended method
export function drawBacktest(element, lines, reference) {
  const colour = colours();
  draw(element, `Costs saved against ${reference}, summed up over the test rows`, lines.map((line, i) => ({
    x: line.x, y: line.y, name: line.name, mode: "lines", text: line.labels,
    line: { color: colour(SERIES[i] ?? "f"), width: i === 0 ? 3 : 1.4 },
    hovertemplate: `%{text}: ${line.name.replaceAll("%", "")} saved %{y:.4g}<extra></extra>`,
  })), {
    showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    xaxis: axis(colour, ""), yaxis: axis(colour, "saved, summed up"),
  });
}

// Plotly listens to the window for each chart until it is told that the chart is gone.
export function forget(charts) {
  for (const element of charts) window.Plotly?.purge(element);
}
