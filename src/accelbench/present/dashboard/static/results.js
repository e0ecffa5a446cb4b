// What the table of results gains from a script: a tray that fills at once, views that are kept.
const KEPT = "accelbench.views";
document.documentElement.classList.add("scripted");

function views() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(kept) ? kept.filter((one) => one?.name && one.query?.startsWith("?")) : [];
  } catch {
    return [];
  }
}

function keep(kept) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(kept));
  } catch { /* A browser that keeps nothing still has the address. */ }
}

function list() {
  const section = document.querySelector("#saved");
  const kept = views();
  section.hidden = !kept.length;
  section.querySelector("ul").replaceChildren(...kept.map(({ name, query }) => {
    const line = document.createElement("li");
    const link = document.createElement("a");
    const text = document.createElement("bdi");
    text.textContent = name;
    link.append(text);
    link.href = `/results${query}`;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "×";
    button.setAttribute("aria-label", `Forget the view ${name}`);
    button.addEventListener("click", () => {
      keep(views().filter((one) => one.name !== name));
      list();
    });
    line.append(link, button);
    return line;
  }));
}

document.addEventListener("submit", (event) => {
  if (event.target.id !== "naming") return;
  const said = new URLSearchParams(new FormData(event.target));
  const name = said.get("view").trim();
  if (name) keep([...views().filter((one) => one.name !== name), { name, query: `?${said}` }]);
});

list();
