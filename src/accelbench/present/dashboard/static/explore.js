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
    this.along = scale(figure.dataset.x, 0, 100);
    this.up = scale(figure.dataset.y, 100, 0);
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

  // A place on the screen as one of the drawing: per cent along and down, as points have them.
  place(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    return { x: (100 * (event.clientX - left)) / width, y: (100 * (event.clientY - top)) / height };
  }

  // How far apart two places are on the screen, in pixels: along, down.
  apart(x, y, here) {
    const { width, height } = this.canvas.getBoundingClientRect();
    return [(Math.abs(x - here.x) * width) / 100, (Math.abs(y - here.y) * height) / 100];
  }

  nearest(here) {
    const { px = [], py = [] } = this.points ?? {};
    const { width, height } = this.canvas.getBoundingClientRect();
    let best = REACH ** 2;
    let at = -1;
    for (let i = 0; i < px.length; i += 1) {
      const far = (((px[i] - here.x) * width) / 100) ** 2 + (((py[i] - here.y) * height) / 100) ** 2;
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
    if (event.pointerType === "touch") return this.moved(event);
    if (event.button !== 0) return;
    this.start = this.place(event);
    this.canvas.setPointerCapture(event.pointerId);
  }

  ended(event) {
    const { start } = this;
    this.start = this.frame = null;
    if (!start) return;
    const end = this.place(event);
    const [wide, high] = this.apart(start.x, start.y, end);
    if (Math.max(wide, high) < LEAST) {
      const at = this.nearest(end);
      if (at >= 0) location.assign(`/cell/${this.points.key[at]}`);
      return;
    }
    if (Math.min(wide, high) < LEAST) return this.draw(null);
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
    pen.scale(dots, dots);
    const x = (share) => (share * box.width) / 100;
    const y = (share) => (share * box.height) / 100;
    pen.strokeStyle = getComputedStyle(this.figure).color;
    pen.lineWidth = 2;
    if (at !== null) {
      pen.beginPath();
      pen.arc(x(this.points.px[at]), y(this.points.py[at]), 8, 0, 2 * Math.PI);
      pen.stroke();
    }
    if (this.start && this.frame) {
      pen.setLineDash([5, 4]);
      const { start, frame } = this;
      pen.strokeRect(x(start.x), y(start.y), x(frame.x - start.x), y(frame.y - start.y));
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
