// Chosen configurations beside each other: what was asked of each, and its figures.
import { called, counted, el, NO_DATA, number, spaced, text, whole } from "./words.mjs";

const timed = (shown) => (row) => (row.kind === "emulated" ? "no times: emulated" : row.status !== "ok" ? NO_DATA : shown(row));
const whatever = (name) => (row) => (row[name] === null ? NO_DATA : spaced(String(row[name])));
/** What is asked of a configuration and stands in a line only where it differs. */
const ASKED = [
  ["Hardware", whatever("hardware")], ["Device", (row) => row.device_name ?? "unknown device"],
  ["Devices", (row) => row.devices ?? ""], ["Machine", (row) => row.machine ?? "unknown machine"],
  ["Runtime", whatever("runtime")], ["Precision", whatever("precision")],
  ["Batch", (row) => whole(row.batch_size)], ["Size", (row) => row.size ?? ""],
  ["Mode", whatever("mode")], ["Scenario", whatever("scenario")],
  ["Otherwise", (row) => row.apart ?? ""], ["Provenance", whatever("kind")],
];
const FIGURES = [
  ["Median latency, ms", timed((row) => row.latency === null ? (row.tail === null ? NO_DATA : `${number(row.tail)} ${row.tail_of ?? ""}`)
    : `${number(row.latency)}${row.latency_note ? ` ${row.latency_note}` : ""}`)],
  ["Interval of the latency, ms", timed((row) => row.latency_spread ?? NO_DATA)],
  ["Items/s", timed((row) => `${number(row.throughput)}${row.throughput !== null && row.unit ? ` ${row.unit}` : ""}`)],
  ["Interval of the rate", timed((row) => row.throughput_spread ?? NO_DATA)],
  ["Peak, MB", (row) => number(row.memory)],
  ["Cost of a million", (row) => row.cost ?? ""],
  ["Status", (row) => spaced(row.status) + (row.reason ? `: ${spaced(row.reason)}` : "")],
  ["Quality", (row) => (row.quality === null ? NO_DATA : spaced(row.quality) + (row.why_unusable ? `: ${row.why_unusable}` : ""))],
  ["Outputs verified", whatever("verification")], ["Launches", (row) => whole(row.launches)],
  ["Samples", (row) => whole(row.samples)], ["Newest", (row) => row.moment ?? NO_DATA],
];

/** The chosen ones that there are, in the order in which they were chosen. */
function picked(table, query) {
  const keys = table.of("key"), places = new Map(query.cells.map((key) => [key, -1]));
  for (let i = 0; i < table.size; i++) if (places.has(keys[i])) places.set(keys[i], i);
  return [...places.values()].filter((place) => place >= 0);
}

/**
 * The comparison that a query asks for.
 * `link` makes a link to another query of the table.
 */
export function compared(table, query, link) {
  const rows = picked(table, query).map((place) => table.row(place));
  const back = el("p", { class: "links" }, link({ ...query, compare: false }, "Back to the table, to choose others"));
  const gone = query.cells.length - rows.length;
  const missing = gone ? el("p", { class: "note" }, `${counted(gone, "configuration")} of this address ${gone === 1 ? "is" : "are"} not in this copy.`) : "";
  if (!rows.length) return [missing, back].filter(Boolean);
  const said = (lines) => lines.map(([name, shown]) => [name, rows.map(shown)]);
  const asked = said(ASKED), figures = said(FIGURES).filter(([, values]) => values.some(Boolean));
  const same = (values) => new Set(values).size === 1;
  const alike = asked.filter(([, values]) => rows.length > 1 && same(values) && values[0]).map(([name, values]) => (name === "Batch" && values[0] !== NO_DATA ? `batch ${values[0]}` : values[0]));
  const lines = [...asked.filter(([, values]) => !same(values) || (rows.length === 1 && values[0])), ...figures];
  const head = (row) => el("th", { scope: "col" },
    el("a", { href: row.page ? `cell/${row.key}.html` : `results.html?key=${row.key}` }, text(called(row))),
    row.kind === "measured" ? "" : el("span", { class: `badge kind ${row.kind}` }, text(row.kind)), el("br"),
    link({ ...query, cells: query.cells.filter((key) => key !== row.key) }, "remove", { "aria-label": `Remove ${called(row)}` }));
  return [missing,
    alike.length ? el("p", { class: "alike" }, "All: ", alike.map((value, n) => [n ? " · " : "", text(value)]).flat()) : "",
    el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Comparison" },
      el("table", { class: "cells beside" }, el("caption", { class: "hidden" }, "Chosen configurations beside each other"),
        el("thead", {}, el("tr", {}, el("td"), rows.map(head))),
        el("tbody", {}, lines.map(([name, values]) => el("tr", {}, el("th", { scope: "row" }, name),
          values.map((value) => el("td", {}, text(value)))))))),
    el("p", { class: "dim" }, "How many times as fast one is than another, with an interval, is asked of the database itself: ",
      el("code", {}, "accelbench dashboard"), "."), back].filter(Boolean);
}

/** What was chosen, and the way to the comparison of it. */
export function tray(query, most, link) {
  if (!query.cells.length || query.compare) return [];
  return [el("span", {}, `Chosen: ${query.cells.length} of ${most} at most`),
    link({ ...query, compare: true }, "Compare", { class: "button" }), link({ ...query, cells: [] }, "Clear")];
}
