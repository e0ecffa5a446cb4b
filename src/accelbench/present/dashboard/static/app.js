// What a page gains from a script: filters that answer at once, a run that is followed.
// Everything works without it; the address always says what is shown.
"use strict";

const FORM = "form[data-instant]";
let asking = null;
let shown = location.pathname + location.search;
let latest = shown;

function put(text) {
  const come = new DOMParser().parseFromString(text, "text/html");
  const focused = document.activeElement?.id;
  for (const part of document.querySelectorAll("[data-part]")) {
    const other = come.getElementById(part.id);
    if (!other) continue;
    if (part.isEqualNode(other)) continue;
    const open = [...part.querySelectorAll("details")].map((one) => one.open);
    part.replaceChildren(...other.childNodes);
    part.querySelectorAll("details").forEach((one, i) => { one.open = open[i] ?? one.open; });
    if ("live" in part.dataset && !("live" in other.dataset)) delete part.dataset.live;
  }
  for (const link of document.querySelectorAll("header nav a")) {
    const other = come.querySelector(`header nav a[href^="${link.pathname}"]`);
    if (other && link.pathname === other.pathname) link.href = other.getAttribute("href");
  }
  document.title = come.title;
  // What had the focus may have been replaced by what has its name.
  if (focused && document.activeElement?.id !== focused)
    document.getElementById(focused)?.focus({ preventScroll: true });
}

async function show(address, keep) {
  if (asking) asking.abort();
  asking = new AbortController();
  latest = address;
  try {
    const answer = await fetch(address, { signal: asking.signal, credentials: "same-origin" });
    const text = await answer.text();
    // What was refused says why in its own place, and leaves what is typed.
    if (!answer.ok && !(answer.status === 400 && text.includes("data-part"))) throw new Error(answer.statusText);
    put(text);
    if (keep === "push") history.pushState(null, "", address);
    if (keep === "replace") history.replaceState(null, "", address);
    shown = location.pathname + location.search;
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
}

// A field may stand elsewhere than its form.
function formOf(field) {
  return field.form?.matches(FORM) ? field.form : null;
}

function wanted(form) {
  const said = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value) said.append(name, value);
  const words = said.toString();
  return form.getAttribute("action") + (words ? `?${words}` : "");
}

// A choice changes no row: it stays on the page of the table, and links there take it along at
// once, whenever the answer comes.
function chosen(form) {
  const said = new URLSearchParams(wanted(form).split("?")[1]);
  const page = new URLSearchParams(latest.split("?")[1]).get("page");
  if (page) said.set("page", page);
  const here = form.getAttribute("action");
  for (const link of document.querySelectorAll(`#results a[href^="${here}?"]`)) {
    const there = new URLSearchParams(link.search);
    there.delete("cell");
    for (const key of said.getAll("cell")) there.append("cell", key);
    link.setAttribute("href", `${here}?${there}`);
  }
  return `${here}?${said}`;
}

let waiting = 0;
document.addEventListener("input", (event) => {
  const form = formOf(event.target);
  if (!form || event.target.type !== "search") return;
  clearTimeout(waiting);
  waiting = setTimeout(() => show(wanted(form), "replace"), 60);
});
document.addEventListener("change", (event) => {
  const form = formOf(event.target);
  // What is chosen is no step back of its own.
  if (form && event.target.name === "cell") show(chosen(form), "replace");
  else if (form && event.target.type !== "search") show(wanted(form), "push");
  counted();
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest(FORM);
  if (!form) return;
  event.preventDefault();
  const other = event.submitter?.getAttribute("formaction");
  // Another page is sent what is ticked, and no filters.
  if (other) {
    const cells = new FormData(form).getAll("cell").map((key) => ["cell", key]);
    location.assign(`${other}?${new URLSearchParams(cells)}`);
  } else show(wanted(form), "push");
});
// Going back brings another address, or only another place of the same page.
window.addEventListener("popstate", () => {
  if (location.pathname + location.search !== shown) location.reload();
});

// How many are chosen stands on the button that compares them.
function counted() {
  for (const button of document.querySelectorAll("button[data-chosen]")) {
    const chosen = button.form.querySelectorAll("input[type=checkbox]:checked").length;
    button.dataset.chosen = chosen || "";
  }
}

function follow() {
  const live = document.querySelector("[data-live]");
  if (!live) return;
  setTimeout(async () => {
    if (!document.hidden) await show(location.href, "");
    follow();
  }, Number(live.dataset.live) * 1000);
}

// What was ticked before this script came is asked for now.
const early = [...document.querySelectorAll("input[type=checkbox]")].find((box) => formOf(box) && box.checked !== box.defaultChecked);
early?.dispatchEvent(new Event("change", { bubbles: true }));
counted();
follow();
