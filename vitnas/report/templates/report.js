"use strict";

/* The plots: plotly.js is carried compressed in the page, unpacked here, and given the page's
   colours. Until then, and where this cannot run, the static picture stays. */

const figures = JSON.parse(document.getElementById("figures").textContent);

async function unpackPlotly() {
  const packed = atob(document.getElementById("plotly").textContent.trim());
  const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

function pageColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ink", "soft", "faint", "rule", "card", "wash", "band"];
  const found = names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]);
  const isDark = matchMedia("screen and (prefers-color-scheme: dark)").matches;
  return { ...Object.fromEntries(found), isDark };
}

function paintedTrace(trace, colours) {
  const line = trace.line && { ...trace.line, color: colours[trace.line.color] ?? trace.line.color };
  const painted = { ...trace };
  if (line) painted.line = line;
  if (trace.error_y) {
    painted.error_y = { ...trace.error_y, color: colours[trace.error_y.color] ?? trace.error_y.color };
  }
  if (trace.fillcolor) painted.fillcolor = colours[trace.fillcolor] ?? trace.fillcolor;
  if (trace.marker && !trace.marker.line) {
    painted.marker = { ...trace.marker, line: { width: 1, color: colours.card } };
  }
  if (typeof trace.marker?.symbol === "object") painted.marker.line.width = 1.3;
  if (colours.isDark && Array.isArray(trace.marker?.opacity)) painted.marker.opacity = 1;
  return painted;
}

/* The networks that the field asks for: each word begins a word of what is said of the network;
   `trial 1` is that trial alone, and several of these are any of them. */

const field = document.getElementById("filter");

function asked() {
  const trial = /\btrial\s+(\d+)/g, typed = field?.value.toLowerCase() ?? "";
  const numbers = [...typed.matchAll(trial)].map((found) => new RegExp(`\\btrial\\s+${found[1]}(?!\\d)`));
  const words = typed.replace(trial, " ").split(/[\s,]+/).filter(Boolean);
  const starts = words.map((word) => {
    const exact = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(`(^|[^a-z0-9.])${exact}`);
  });
  return (text) => {
    const said = text.replace(/<[^>]*>/g, " ").toLowerCase();
    const isOne = !numbers.length || numbers.some((number) => number.test(said));
    return isOne && starts.every((start) => start.test(said));
  };
}

function filteredTrace(trace, fits) {
  if (trace.mode !== "markers" || !trace.text) return trace;
  const part = (list) => (Array.isArray(list) ? list.filter((_, place) => fits(trace.text[place] ?? "")) : list);
  const marker = Object.fromEntries(Object.entries(trace.marker).map(([name, value]) => [name, part(value)]));
  const lists = ["x", "y", "text", "customdata"].filter((name) => trace[name]);
  return { ...trace, ...Object.fromEntries(lists.map((name) => [name, part(trace[name])])), marker };
}

function filterRows(fits) {
  const rows = [...document.querySelectorAll("table.front tbody tr")];
  for (const row of rows) row.hidden = !fits(`trial ${row.textContent}`);
  const left = rows.filter((row) => !row.hidden).length;
  document.getElementById("found").textContent = field.value.trim() ? `${left} of ${rows.length} rows of the tables` : "";
}

/* By keyboard: arrows go from mark to mark of a plot, in the order of its horizontal axis, and along
   one line after the other; what the mouse would show is shown, and read aloud. */

function marksOf(place) {
  const told = place.data.flatMap((trace, curveNumber) => {
    if (!trace.hovertemplate || trace.visible === "legendonly") return [];
    const line = trace.mode === "lines" ? curveNumber : -1;
    const marks = trace.x.map((x, pointNumber) => ({ curveNumber, pointNumber, line, x }));
    return marks.filter((mark) => typeof trace.y[mark.pointNumber] === "number");
  });
  return told.sort((one, other) => one.line - other.line || one.x - other.x);
}

/* What a mark's label says, in words: without tags, and without the drawing's bars. */

function spokenText(trace, at) {
  const value = (_, name, digits) => {
    const found = Array.isArray(trace[name]) ? trace[name][at] : trace[name];
    return digits ? found.toFixed(Number(digits)) : found;
  };
  const label = trace.hovertemplate.replace(/%\{(\w+)(?::\.(\d)f)?\}/g, value);
  const words = label.replace(/<br>/g, "; ").replace(/<[^>]*>/g, "").replace(/&lt;/g, "<");
  return words.replace(/[\u2581-\u2588\u2009]+ ?/g, "").replace(/↻(\d+)/g, "$1 passes,");
}

function followKeys(place) {
  const spoken = document.createElement("output");
  spoken.className = "spoken";
  place.after(spoken);
  place.tabIndex = 0;
  let at = -1;
  place.addEventListener("keydown", (event) => {
    const marks = marksOf(place), last = marks.length - 1;
    if (event.key === "Escape") Plotly.Fx.unhover(place);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    at = Math.max(0, Math.min(to, last));
    Plotly.Fx.hover(place, [{ curveNumber: marks[at].curveNumber, pointNumber: marks[at].pointNumber }]);
    spoken.value = spokenText(place.data[marks[at].curveNumber], marks[at].pointNumber);
  });
}

function paintedLayout(layout, colours, narrow) {
  const axis = (own) => ({
    gridcolor: colours.rule, linecolor: colours.faint, zeroline: false, automargin: true,
    ticks: "outside", tickcolor: colours.rule, fixedrange: narrow, ...own,
    title: { ...own.title, font: { size: 13, color: colours.soft }, standoff: 10 },
  });
  return {
    ...layout,
    xaxis: axis(layout.xaxis),
    yaxis: axis(layout.yaxis),
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colours.ink },
    margin: { l: narrow ? 48 : 64, r: 14, t: 12, b: 52 },
    legend: { orientation: "h", x: 0, y: 1.01, yanchor: "bottom", font: { size: narrow ? 11 : 13 }, itemwidth: 30, traceorder: "normal" },
    hoverlabel: {
      bgcolor: colours.card, bordercolor: colours.faint, align: "left",
      font: {
        color: colours.ink, size: narrow ? 11 : 13, family: getComputedStyle(document.body).fontFamily,
      },
    },
    dragmode: narrow ? false : "zoom",
  };
}

/* On paper the styles scale a drawing to the width of the page; they need its shape. */

function keepShape(place) {
  for (const drawing of place.querySelectorAll(".main-svg")) {
    const [width, height] = ["width", "height"].map((side) => drawing.getAttribute(side));
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    place.style.setProperty("--shape", `${width} / ${height}`);
  }
}

const NARROW = "screen and (max-width: 759px)";

function draw() {
  const colours = pageColours();
  const narrow = matchMedia(NARROW).matches;
  const fits = asked();
  const config = { responsive: true, displaylogo: false, displayModeBar: false, doubleClick: "reset+autosize" };
  for (const [name, figure] of Object.entries(figures)) {
    const place = document.getElementById(name);
    const isNew = !place.classList.contains("drawn");
    if (isNew) place.replaceChildren();
    place.classList.add("drawn");
    const shown = name.startsWith("front_plot") ? figure.data.map((trace) => filteredTrace(trace, fits)) : figure.data;
    const data = shown.map((trace) => paintedTrace(trace, colours));
    Plotly.react(place, data, paintedLayout(figure.layout, colours, narrow), config);
    keepShape(place);
    if (!isNew) continue;
    place.on("plotly_afterplot", () => keepShape(place));
    const hasMarks = marksOf(place).length > 0;
    place.setAttribute("role", hasMarks ? "application" : "img");
    if (hasMarks) followKeys(place);
  }
}

unpackPlotly().then(() => {
  draw();
  for (const query of ["(prefers-color-scheme: dark)", NARROW, "print"]) {
    matchMedia(query).addEventListener("change", draw);
  }
  if (!field) return;
  field.closest("form").hidden = false;
  field.addEventListener("input", () => {
    filterRows(asked());
    draw();
  });
}).catch((problem) => {
  for (const place of document.querySelectorAll(".plot .waiting")) {
    place.textContent = `This browser cannot draw the interactive plot (${problem.message}).`;
  }
});
