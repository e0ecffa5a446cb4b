// Words and figures, and elements of them, as the pages of the server have them.
// As core/absent.py has them: nobody knows it, and there can be none.
export const NO_DATA = "no data", NOT_APPLICABLE = "n/a";

/** Three digits, or as many as a whole number has; a tie goes to the even digit. */
export function digits(value) {
  if (value === 0 || !Number.isFinite(value)) return value.toFixed(0);
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  let text = value.toFixed(places);
  const exact = value.toFixed(Math.min(100, places + 40));
  if (/^50*$/.test(exact.slice(exact.length - 40)) && Number(text.at(-1)) % 2)
    text = (value - Math.sign(value) * 10 ** -places / 2).toFixed(places);
  const [whole, rest] = text.split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (rest ? `.${rest}` : "");
}
export const number = (value) => (value === null ? NO_DATA : digits(value));
export const whole = (value) => (value === null ? NO_DATA : Math.trunc(value).toLocaleString("en-US"));
export const counted = (n, one, many = `${one}s`) => `${whole(n)} ${n === 1 ? one : many}`;
export const spaced = (text) => (text ?? "None").replaceAll("_", " ");

/** An element; children that are text stay text. */
export function el(name, attributes = {}, ...children) {
  const made = name === "svg" || name === "circle"
    ? document.createElementNS("http://www.w3.org/2000/svg", name)
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== null && value !== undefined && value !== false)
      made.setAttribute(key, value === true ? "" : value);
  made.append(...children.flat().filter((child) => child !== "" && child !== null));
  return made;
}

export const text = (value) => el("bdi", {}, value ?? "None");
export const called = (row) => (row.model.trim() ? row.model : `“${row.model}”`);
