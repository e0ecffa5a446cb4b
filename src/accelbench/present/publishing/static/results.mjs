// The table of a published bundle: Parquet is read here, filtered, ordered, grouped and paged.
// What is shown is said by the address, in the words of the dashboard's own.
import { parquetMetadata } from "./parquet/metadata.js";
import { parquetRead } from "./parquet/read.js";
import { compared, tray } from "./comparison.mjs";
import { called, counted, digits, el, NO_DATA, NOT_APPLICABLE, number, spaced, text, whole } from "./words.mjs";

const PAGE = 100;
const LISTED = 12, CHOSEN = 12;
// The name in an address → the column, and what its values are shown as.
const FACETS = {
  family: "family", hardware: "hardware", device: "device_name", runtime: "runtime", precision: "precision",
  mode: "mode", machine: "machine_id", provenance: "kind", status: "status",
};
const GROUPS = { model: "model", ...FACETS };
const ORDERS = {
  model: ["model"], hardware: ["hardware", "device"], runtime: ["runtime"],
  precision: ["precision"], batch: ["batch_size"], latency: ["latency"],
  throughput: ["throughput"], memory: ["memory"], cost: ["cost_per_million"],
  launches: ["launches"], date: ["moment"],
};
const at = (id) => document.getElementById(id);

// ---- the rows, as columns

class Table {
  constructor(columns, size) {
    this.columns = columns;
    this.size = size;
    this.coded = new Map();
  }

  of(name) { return this.columns[name]; }

  /** A column of few values as numbers of them. */
  codes(name) {
    if (!this.coded.has(name)) {
      const values = [], numbers = new Map(), codes = new Uint32Array(this.size);
      const column = this.of(name);
      for (let i = 0; i < this.size; i++) {
        let code = numbers.get(column[i]);
        if (code === undefined) {
          code = values.length;
          numbers.set(column[i], code);
          values.push(column[i]);
        }
        codes[i] = code;
      }
      this.coded.set(name, { values, codes });
    }
    return this.coded.get(name);
  }

  row(i) { return new Proxy(this.columns, { get: (columns, name) => columns[name][i] }); }
}

async function read() {
  const answer = await fetch("results.parquet");
  if (!answer.ok) throw new Error(`results.parquet: ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  const metadata = parquetMetadata(bytes);
  const size = Number(metadata.num_rows);
  const columns = {};
  for (const { name } of metadata.schema.slice(1)) columns[name] = new Array(size);
  await parquetRead({
    file: { byteLength: bytes.byteLength, slice: (start, end) => bytes.slice(start, end) },
    metadata,
    onChunk: ({ columnName, columnData, rowStart }) => {
      const column = columns[columnName];
      for (let i = 0; i < columnData.length; i++) column[rowStart + i] = columnData[i] ?? null;
    },
  });
  return new Table(columns, size);
}

// ---- what the address asks for

class Wrong extends Error {}

function asked(table) {
  const said = new URLSearchParams(location.search);
  const chosen = {};
  for (const [name, column] of Object.entries(FACETS)) {
    const values = [...new Set(said.getAll(name).filter(Boolean))];
    if (!values.length) continue;
    const known = table.codes(column).values;
    for (const value of values)
      if (!known.includes(value)) {
        const there = known.filter((one) => one !== null).sort();
        const more = there.length > LISTED ? ` and ${there.length - LISTED} more` : "";
        throw new Wrong(`No result has ${name} “${value}”. There are: ${there.slice(0, LISTED).join(", ") || "none"}${more}.`);
      }
    chosen[name] = values;
  }
  const [sort, group, page] = ["sort", "group", "page"].map((name) => said.get(name) || "");
  if (sort && !Object.hasOwn(ORDERS, sort.replace(/^-/, "")))
    throw new Wrong(`There is no order “${sort}”. Orders: ${Object.keys(ORDERS).join(", ")}.`);
  if (group && !Object.hasOwn(GROUPS, group))
    throw new Wrong(`There is no group “${group}”. Groups: ${Object.keys(GROUPS).join(", ")}.`);
  if (page && !/^[1-9]\d{0,7}$/.test(page))
    throw new Wrong(`“${page}” is no page. Pages are counted from 1.`);
  for (const name of ["from", "to"])
    if (said.get(name) && !/^\d{4}-\d\d-\d\d$/.test(said.get(name)))
      throw new Wrong(`“${said.get(name)}” is no day. Write one as 2026-01-31.`);
  return {
    model: said.get("model") || "", chosen, from: said.get("from") || "", to: said.get("to") || "",
    sort: sort.replace(/^-/, "") || "model", falling: sort.startsWith("-"), group,
    page: Number(page || 1), key: said.get("key") || "",
    cells: [...new Set(said.getAll("cell").filter(Boolean))].slice(0, CHOSEN),
    compare: said.get("compare") === "yes",
  };
}

function address(query) {
  const said = new URLSearchParams();
  if (query.model) said.append("model", query.model);
  for (const [name, values] of Object.entries(query.chosen))
    for (const value of values) said.append(name, value);
  for (const name of ["from", "to", "group", "key"]) if (query[name]) said.append(name, query[name]);
  if (query.sort !== "model" || query.falling)
    said.append("sort", (query.falling ? "-" : "") + query.sort);
  if (query.page > 1) said.append("page", query.page);
  for (const key of query.cells) said.append("cell", key);
  if (query.compare && query.cells.length) said.append("compare", "yes");
  const words = said.toString();
  return location.pathname + (words ? `?${words}` : "");
}

/** The rows that answer, and of each facet how many of each value the other filters leave. */
function found(table, query) {
  const tests = Object.entries(query.chosen).map(([name, wanted]) => {
    const { values, codes } = table.codes(FACETS[name]);
    return { name, codes, may: values.map((value) => wanted.includes(value)) };
  });
  const names = table.codes("model");
  const letters = query.model.toLowerCase();
  // Between double quotes stands one name, and none that has it in it.
  const whole = /^".+"$/su.test(query.model) ? query.model.slice(1, -1) : null;
  const named = names.values.map((name) => !letters
    || (whole === null ? (name ?? "").toLowerCase().includes(letters) : name === whole));
  const days = table.of("moment"), keys = table.of("key");
  const counts = {};
  for (const name of Object.keys(FACETS))
    counts[name] = new Uint32Array(table.codes(FACETS[name]).values.length);
  const facets = Object.keys(FACETS).map((name) => [name, table.codes(FACETS[name]).codes]);
  const rows = [];
  for (let i = 0; i < table.size; i++) {
    if (query.key && keys[i] !== query.key) continue;
    if (!named[names.codes[i]]) continue;
    if (query.from && !(days[i] !== null && days[i] >= query.from)) continue;
    if (query.to && !(days[i] !== null && days[i] <= query.to)) continue;
    let missed = null, misses = 0;
    for (const test of tests)
      if (!test.may[test.codes[i]]) { misses += 1; missed = test.name; }
    if (misses > 1) continue;
    if (!misses) rows.push(i);
    for (const [name, codes] of facets)
      if (!misses || missed === name) counts[name][codes[i]] += 1;
  }
  return { rows, counts };
}

function ordered(table, rows, query) {
  if (query.sort === "model" && !query.falling) return rows; // as the file is
  const way = query.falling ? -1 : 1;
  const columns = ORDERS[query.sort].map((name) => table.of(name));
  const value = query.sort === "model" ? (one) => one.toLowerCase() : (one) => one;
  return rows.slice().sort((one, other) => {
    for (const column of columns) {
      const a = column[one], b = column[other];
      if (a === b) continue;
      if (a === null) return 1;
      if (b === null) return -1;
      const [first, second] = [value(a), value(b)];
      if (first !== second) return first < second ? -way : way;
    }
    return one - other;
  });
}

// ---- drawing; `row` and `figures` are those of published_results.html

const dot = (colour) => el("svg", { class: `dot c-${colour.slice(1)}`, width: 10, height: 10, viewBox: "0 0 10 10", "aria-hidden": "true" },
  el("circle", { cx: 5, cy: 5, r: 5 }));
const priced = () => at("results").dataset.sign !== "";

function figures(row) {
  if (row.status !== "ok")
    return [el("td", { colspan: priced() ? 4 : 3, class: "why" }, text(spaced(row.status)),
      row.reason ? [" ", el("small", {}, text(spaced(row.reason)))] : "")];
  const cost = (value) => (priced() ? [el("td", { class: `figure ${row.kind}` }, value ?? NO_DATA)] : []);
  if (row.kind === "emulated")
    return [el("td", { colspan: 2, class: "why" }, "no times: emulated"),
      el("td", { class: "figure" }, number(row.memory)), ...cost(NOT_APPLICABLE)];
  const time = row.latency === null && row.tail !== null
    ? [number(row.tail), " ", el("small", {}, row.tail_of ?? "")]
    : [number(row.latency), row.latency_note ? [" ", el("small", {}, row.latency_note)] : ""].flat();
  const badge = row.quality && row.quality !== "converged"
    ? el("span", { class: `badge ${row.quality === "unusable" ? "unusable" : ""}`, title: row.why_unusable }, text(spaced(row.quality)))
    : "";
  const sure = (ends) => (ends ? [" ", el("small", { class: "sure" }, ends)] : "");
  return [
    el("td", { class: `figure ${row.kind}` }, time, badge,
      sure(row.latency_spread)),
    el("td", { class: `figure ${row.kind}` }, number(row.throughput),
      row.throughput !== null && row.unit ? [" ", el("small", {}, text(row.unit))] : "",
      sure(row.throughput_spread)),
    el("td", { class: `figure ${row.kind}` }, number(row.memory)),
    ...cost(row.cost),
  ];
}

/** What the columns say that a phone has no room for. */
const narrow = (row) => el("small", { class: "narrow" }, text([
  `${row.runtime} on ${row.hardware}`, row.device, row.devices, row.precision,
  row.batch_size === null ? "" : `batch ${whole(row.batch_size)}`, row.size, row.mode === "inference" ? "" : row.mode,
].filter(Boolean).join(" · ")));

function row(row, chosen) {
  const name = called(row);
  const own = row.page ? `cell/${row.key}.html` : `results.html?key=${row.key}`;
  const stands = row.answered ? row.answered - row.left_out : row.launches;
  return el("tr", {},
    el("th", { scope: "row" },
      el("input", { type: "checkbox", class: "pick", id: `pick-${row.key}`, value: row.key, checked: chosen.includes(row.key),
        "aria-label": `Choose ${name}, ${[row.runtime, row.hardware, row.precision].filter(Boolean).join(", ")}` }),
      el("a", { href: own }, text(name)),
      row.kind === "measured" ? "" : el("span", { class: `badge kind ${row.kind}` }, text(row.kind)),
      row.apart ? [el("br"), el("small", {}, text(row.apart))] : "", narrow(row)),
    el("td", { class: "roomy" }, el("span", { class: "place" }, dot(row.colour), text(row.hardware),
      row.device ? [" ", el("small", {}, text(row.device))] : "",
      row.devices ? [" ", el("small", {}, `· ${row.devices}`)] : "")),
    el("td", { class: "roomy" }, text(row.runtime)), el("td", { class: "roomy" }, text(row.precision)),
    el("td", { class: "figure roomy" }, whole(row.batch_size)),
    el("td", { class: "roomy" }, row.size ?? "",
      row.mode === "inference" ? "" : [row.size ? " · " : "", text(row.mode)],
      row.scenario && row.scenario !== "single_stream" ? [" · ", text(spaced(row.scenario))] : ""),
    figures(row),
    el("td", { class: "figure roomy" }, whole(stands), stands === row.launches ? "" : ` of ${whole(row.launches)}`,
      row.failed && row.answered ? el("small", {}, ` ${whole(row.failed)} failed`) : ""),
    el("td", { class: "moment roomy" }, row.moment ?? NO_DATA));
}

/** What there is of one configuration that has no page of its own. */
function details(table, i) {
  const named = Object.entries(table.columns).filter(([name, column]) =>
    column[i] !== null && !["colour", "page", "key", "machine_id", "device_name"].includes(name));
  return el("dl", { class: "tree published" }, named.map(([name, column]) =>
    el("div", {}, el("dt", {}, spaced(name)),
      el("dd", {}, text(typeof column[i] === "number" ? number(column[i]) : column[i])))));
}

function inWords(table, rows) {
  if (!rows.length) return "No configuration matches";
  const models = new Set(), places = new Set(), kinds = new Map();
  const [model, place, kind, status] = ["model", "hardware", "kind", "status"].map((name) => table.of(name));
  let without = 0;
  for (const i of rows) {
    models.add(model[i]);
    places.add(place[i]);
    kinds.set(kind[i], (kinds.get(kind[i]) ?? 0) + 1);
    if (status[i] !== "ok") without += 1;
  }
  const told = [...kinds].sort((a, b) => b[1] - a[1]).map(([name, n]) => `${whole(n)} ${name}`);
  return [counted(rows.length, "configuration"),
    `${counted(models.size, "model")} on ${counted(places.size, "platform")}`, told.join(", "),
    without ? `${whole(without)} without figures` : ""].filter(Boolean).join(" · ");
}

function pager(query, pages) {
  if (pages < 2) return "";
  const step = (page, rel, name) => link({ ...query, page }, name, { rel });
  return el("nav", { class: "pager", "aria-label": "Pages of the table" },
    query.page > 1 ? step(query.page - 1, "prev", "← Before") : "",
    el("span", {}, `Page ${whole(query.page)} of ${whole(pages)}`),
    query.page < pages ? step(query.page + 1, "next", "Next →") : "");
}

function link(query, name, attributes = {}) {
  return el("a", { href: address(query), "data-here": true, ...attributes }, name);
}

function grouped(table, rows, query) {
  const { values, codes } = table.codes(GROUPS[query.group]);
  const shown = query.group === "machine" ? machines(table) : (value) => value;
  const groups = new Map();
  for (const i of rows) {
    if (!groups.has(codes[i])) groups.set(codes[i], []);
    groups.get(codes[i]).push(i);
  }
  const status = table.of("status"), model = table.of("model");
  const lines = [...groups].sort((a, b) => b[1].length - a[1].length).map(([code, members]) => {
    const value = values[code];
    const narrowed = query.group === "model"
      ? { ...query, model: value === null ? "" : `"${value}"`, group: "", page: 1 }
      : { ...query, chosen: { ...query.chosen, [query.group]: [value] }, group: "", page: 1 };
    return el("tr", {},
      el("th", { scope: "row" }, value === null ? text(query.group === "machine" ? "unknown machine" : NO_DATA) : link(narrowed, text(spaced(shown(value))))),
      el("td", { class: "figure" }, whole(members.length)),
      el("td", { class: "figure" }, whole(new Set(members.map((i) => model[i])).size)),
      el("td", { class: "figure" }, whole(members.filter((i) => status[i] !== "ok").length)));
  });
  const head = (name, figure) => el("th", { scope: "col", class: figure ? "figure" : null }, name);
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Groups" },
    el("table", { class: "cells" }, el("caption", { class: "hidden" }, `Configurations by ${query.group}`),
      el("thead", {}, el("tr", {}, head(query.group[0].toUpperCase() + query.group.slice(1)),
        head("Configurations", true), head("Models", true), head("Without figures", true))),
      el("tbody", {}, lines)));
}

const machines = (table) => {
  const names = new Map();
  const ids = table.of("machine_id"), all = table.of("machine");
  for (let i = 0; i < table.size; i++) if (!names.has(ids[i])) names.set(ids[i], all[i] ?? ids[i]);
  return (id) => names.get(id) ?? id;
};

// ---- the page

const HEAD = document.querySelector("#results thead").cloneNode(true);

function cells(table, rows, query) {
  const head = HEAD.cloneNode(true);
  for (const cell of head.querySelectorAll("[data-sort]")) {
    const sort = cell.dataset.sort;
    const falling = sort === query.sort && !query.falling;
    if (sort === query.sort) cell.setAttribute("aria-sort", query.falling ? "descending" : "ascending");
    const arrow = el("span", { "aria-hidden": "true" }, sort === query.sort ? (query.falling ? " ↓" : " ↑") : "");
    cell.replaceChildren(link({ ...query, sort, falling, page: 1 }, cell.textContent));
    cell.firstChild.append(arrow);
  }
  const start = (query.page - 1) * PAGE;
  return el("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Configurations" },
    el("table", { class: "cells" },
      el("caption", { class: "hidden" }, "Each question on each machine, by the launches that stand for it"),
      head, el("tbody", {}, ordered(table, rows, query).slice(start, start + PAGE).map((i) => row(table.row(i), query.cells)))));
}

/** The filters, made once; afterwards only what they say changes, so that the focus stays. */
function filters(table) {
  const facets = Object.entries(FACETS).map(([name, column]) => {
    const { values } = table.codes(column);
    const shown = name === "machine" ? machines(table) : (value) => value;
    const order = values.map((value, code) => [value, code]).filter(([value]) => value !== null)
      .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    if (order.length < 2) return "";
    return el("fieldset", {}, el("legend", {}, name[0].toUpperCase() + name.slice(1)),
      el("div", { class: "choices" }, order.map(([value, code]) => el("label", {},
        el("input", { type: "checkbox", name, value }),
        el("bdi", { class: "said" }, spaced(shown(value))), " ",
        el("span", { class: "count", id: `n-${name}-${code}` })))));
  });
  const top = (name, made) => el("label", { class: "top" }, name, made);
  return el("form", {},
    el("div", { class: "row" },
      top("Model", el("input", { type: "search", name: "model", placeholder: "part of its name", autocomplete: "off", spellcheck: "false" })),
      top("Newest launch from", el("input", { type: "date", name: "from" })),
      top("to", el("input", { type: "date", name: "to" })),
      top("Group by", el("select", { name: "group" }, el("option", { value: "" }, "nothing"),
        Object.keys(GROUPS).map((name) => el("option", { value: name }, name)))),
      el("button", { type: "reset" }, "Clear")),
    el("details", { open: matchMedia("(min-width: 62rem)").matches }, el("summary", {}, "Filters"), el("div", { class: "facets" }, facets)));
}

function fill(form, query, table, counts) {
  for (const input of form.elements) {
    if (input.type === "checkbox") input.checked = (query.chosen[input.name] ?? []).includes(input.value);
    else if (input.name && document.activeElement !== input) input.value = query[input.name];
  }
  for (const name of Object.keys(FACETS)) counts[name].forEach((n, code) => {
    const cell = at(`n-${name}-${code}`);
    if (cell) cell.textContent = whole(n);
  });
}

function wanted(form, query) {
  const said = new FormData(form);
  const chosen = {};
  for (const name of Object.keys(FACETS)) if (said.getAll(name).length) chosen[name] = said.getAll(name);
  return { ...query, chosen, page: 1, key: "",
    ...Object.fromEntries(["model", "from", "to", "group"].map((name) => [name, said.get(name) ?? ""])) };
}

function start(table) {
  const form = filters(table);
  let query = null;
  at("filters").replaceChildren(form);
  const show = () => {
    try {
      query = asked(table);
    } catch (error) {
      if (!(error instanceof Wrong)) throw error;
      query = { model: "", chosen: {}, from: "", to: "", sort: "model", falling: false, group: "", page: 1, key: "", cells: [], compare: false };
      at("chosen").replaceChildren();
      at("results").replaceChildren(el("p", { class: "note bad" }, error.message));
      at("count").textContent = "";
      fill(form, query, table, found(table, query).counts);
      return;
    }
    const { rows, counts } = found(table, query);
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    query.page = Math.min(query.page, pages);
    fill(form, query, table, counts);
    at("count").textContent = inWords(table, rows);
    at("chosen").replaceChildren(...tray(query, CHOSEN, link));
    at("filters").hidden = query.compare;
    document.querySelector("h1").textContent = query.compare ? "Comparison" : "Results";
    if (query.compare) {
      at("count").textContent = `${counted(query.cells.length, "configuration")} beside each other`;
      at("results").replaceChildren(...compared(table, query, link));
      return;
    }
    const parts = query.group && rows.length ? [grouped(table, rows, query)]
      : rows.length ? [cells(table, rows, query), pager(query, pages)]
      : [el("section", { class: "empty" }, el("p", {}, "Take a filter away: ",
        link({ ...query, model: "", chosen: {}, from: "", to: "", key: "", page: 1 }, "all configurations"), "."))];
    if (query.key && rows.length === 1) parts.push(details(table, rows[0]));
    at("results").replaceChildren(...parts.filter(Boolean));
  };
  const go = (target, replace) => {
    history[replace ? "replaceState" : "pushState"](null, "", target);
    show();
  };
  form.addEventListener("input", (event) => {
    if (event.target.type === "search") go(address(wanted(form, query)), true);
  });
  form.addEventListener("change", (event) => {
    if (event.target.type !== "search") go(address(wanted(form, query)), false);
  });
  at("results").addEventListener("change", ({ target: box }) => {
    if (!box.matches("input.pick")) return;
    const others = query.cells.filter((key) => key !== box.value);
    // What is chosen is no step back of its own.
    go(address({ ...query, cells: box.checked ? [...others, box.value].slice(0, CHOSEN) : others }), true);
    at(box.id)?.focus({ preventScroll: true });
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    document.activeElement?.blur();
    go(location.pathname, false);
  });
  document.addEventListener("click", (event) => {
    const one = event.target.closest?.("a[data-here]");
    if (!one || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(one.getAttribute("href"), false);
    if (one.rel) window.scrollTo(0, 0);
  });
  window.addEventListener("popstate", show);
  show();
}

try {
  start(await read());
  at("reading").remove();
  document.documentElement.dataset.ready = "yes";
} catch (error) {
  at("reading").prepend(`results.parquet could not be read: ${error.message}. `);
}
