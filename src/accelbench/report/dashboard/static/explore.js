// What the explorer gains from a script: what a point is, a part of it by drawing a frame.
// The drawing is there without; an address says everything, also which part is shown.

const REACH = 14; // pixels of the screen around what is pointed at
const LEAST = 12; // a frame smaller than this is a click

function number(value) {
  return Number(value).toLocaleString("en", { maximumSignificantDigits: 4 });
}

function scale(text, from, to) {
  const [low, high, log] = text.split(",");
  const [a, b] = log ? [Math.log10(low), Math.log10(high)] : [Number(low), Number(high)];
  return (at) => {
    const value = a + (b - a) * Math.min(1, Math.max(0, (at - from) / (to - from)));
    return log ? 10 ** value : value;
  };
}

class Drawing {
  constructor(figure) {
    this.figure = figure;
    this.svg = figure.querySelector("svg");
    this.said = figure.querySelector(".pointed");
    const room = this.svg.querySelector(".room");
    const [x, y, wide, high] = ["x", "y", "width", "height"].map((name) => Number(room.getAttribute(name)));
    this.room = { left: x, top: y, right: x + wide, bottom: y + high };
    this.along = scale(figure.dataset.x, this.room.left, this.room.right);
    this.up = scale(figure.dataset.y, this.room.bottom, this.room.top);
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.svg.after(this.canvas);
    this.points = null;
    this.canvas.addEventListener("pointermove", (event) => this.moved(event));
    this.canvas.addEventListener("pointerleave", () => this.draw(null));
    this.canvas.addEventListener("pointerdown", (event) => this.begun(event));
    this.canvas.addEventListener("pointerup", (event) => this.ended(event));
    this.fetch();
  }

  async fetch() {
    const answer = await fetch(this.figure.dataset.points, { credentials: "same-origin" });
    if (answer.ok) this.points = await answer.json();
    this.figure.dataset.ready = this.points?.px ? this.points.px.length : 0;
  }

  // A place on the screen as one of the drawing.
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const ratio = this.svg.viewBox.baseVal.width / box.width;
    return { x: (event.clientX - box.left) * ratio, y: (event.clientY - box.top) * ratio, ratio };
  }

  nearest({ x, y, ratio }) {
    const { px = [], py = [] } = this.points ?? {};
    let best = (REACH * ratio) ** 2;
    let at = -1;
    for (let i = 0; i < px.length; i += 1) {
      const far = (px[i] - x) ** 2 + (py[i] - y) ** 2;
      if (far < best) [best, at] = [far, i];
    }
    return at;
  }

  moved(event) {
    const here = this.place(event);
    if (this.start) this.frame = here;
    const at = this.start ? -1 : this.nearest(here);
    this.draw(at < 0 ? null : at);
    if (at < 0) return;
    const p = this.points;
    const words = [p.said[at], `${p.x_title}: ${number(p.x[at])}`, `${p.y_title}: ${number(p.y[at])}`,
      p.by[at] && `latency: ${p.by[at]}`, p.kind[at], p.day[at]];
    this.said.textContent = words.filter(Boolean).join(" · ");
    this.said.hidden = false;
  }

  begun(event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    this.start = this.place(event);
    this.canvas.setPointerCapture(event.pointerId);
  }

  ended(event) {
    const { start } = this;
    this.start = this.frame = null;
    if (!start) return;
    const end = this.place(event);
    const wide = Math.abs(end.x - start.x), high = Math.abs(end.y - start.y);
    if (Math.max(wide, high) < LEAST * end.ratio) {
      const at = this.nearest(end);
      if (at >= 0) location.assign(`/cell/${this.points.key[at]}`);
      return;
    }
    if (Math.min(wide, high) < LEAST * end.ratio) return this.draw(null);
    const address = new URL(location.href);
    const ends = {
      "x-from": this.along(Math.min(start.x, end.x)), "x-to": this.along(Math.max(start.x, end.x)),
      "y-from": this.up(Math.max(start.y, end.y)), "y-to": this.up(Math.min(start.y, end.y)),
    };
    for (const [name, value] of Object.entries(ends)) address.searchParams.set(name, String(Number(value.toPrecision(4))));
    location.assign(address);
  }

  draw(at) {
    const box = this.canvas.getBoundingClientRect();
    const dots = window.devicePixelRatio || 1;
    this.canvas.width = box.width * dots;
    this.canvas.height = box.height * dots;
    const pen = this.canvas.getContext("2d");
    const ratio = this.canvas.width / this.svg.viewBox.baseVal.width;
    pen.scale(ratio, ratio);
    pen.strokeStyle = getComputedStyle(this.figure).color;
    pen.lineWidth = 2;
    if (at !== null) {
      pen.beginPath();
      pen.arc(this.points.px[at], this.points.py[at], 8, 0, 2 * Math.PI);
      pen.stroke();
    }
    if (this.start && this.frame) {
      pen.setLineDash([5, 4]);
      pen.strokeRect(this.start.x, this.start.y, this.frame.x - this.start.x, this.frame.y - this.start.y);
    }
  }
}

let drawn = null;
function look() {
  const figure = document.querySelector(".explored");
  if (figure && figure !== drawn) { drawn = figure; new Drawing(figure); }
}
// Filters put another drawing into the page.
new MutationObserver(look).observe(document.querySelector("#results"), { childList: true });
look();
