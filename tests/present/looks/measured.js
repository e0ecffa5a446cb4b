// What a page looks like, as lines of text: its boxes; and what is wrong with them.
// An expression: the function that measures.
(() => {
  const BOXES = "header, nav, aside, main, footer, h1, h2, form, section[aria-label], section[aria-labelledby],"
    + " figure, table, .wide, .tiles > div, .note, .answer, .says, ol.findings > li, .tray, details > summary";
  const round = (x) => Math.round(x);
  const seen = (one) => {
    const { width, height } = one.getBoundingClientRect();
    return width > 1 && height > 1 && one.checkVisibility({ contentVisibilityAuto: true, visibilityProperty: true });
  };
  const called = (one) => {
    const by = one.getAttribute("aria-labelledby");
    const text = one.getAttribute("aria-label") || (by && document.getElementById(by)?.textContent)
      || (/^(H1|H2|SUMMARY)$/.test(one.tagName) ? one.textContent : "");
    return text.replace(/\s+/g, " ").trim().slice(0, 40);
  };
  const name = (one) => [one.tagName.toLowerCase(), ...[...one.classList].slice(0, 2)].join(".")
    + (called(one) ? ` “${called(one)}”` : "");

  function boxes() {
    return [...document.querySelectorAll(BOXES)].filter(seen).map((one) => {
      const { left, top, width, height } = one.getBoundingClientRect();
      return `${name(one)} ${[left + scrollX, top + scrollY, width, height].map(round).join(" ")}`;
    });
  }

  // Text that a box cuts off and that nobody can push into sight.
  function cut() {
    return [...document.body.querySelectorAll("*")].filter((one) => {
      const { overflowX, overflowY, clipPath, textOverflow } = getComputedStyle(one);
      const hides = (way) => way === "hidden" || way === "clip";
      if (clipPath !== "none" || !seen(one) || !one.textContent.trim() || one.closest("svg")) return false;
      if (textOverflow === "ellipsis" && one.closest("[title]")) return false;
      return (hides(overflowX) && one.scrollWidth > one.clientWidth + 1)
        || (hides(overflowY) && one.scrollHeight > one.clientHeight + 1);
    }).map(name);
  }

  // Of a parent the parts that stand in the flow of the page: no two may share room.
  function overlapping() {
    const found = [];
    for (const parent of document.body.querySelectorAll("*")) {
      if (parent.closest("svg, picture")) continue;
      const parts = [...parent.children].filter((one) => {
        const { position, display, float } = getComputedStyle(one);
        return position === "static" && !/^inline$|contents|none/.test(display) && float === "none" && seen(one);
      }).map((one) => [one, one.getBoundingClientRect()]);
      for (let n = 1; n < parts.length; n += 1) {
        const [[a, one], [b, two]] = [parts[n - 1], parts[n]];
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        if (wide > 1 && high > 1) found.push(`${name(a)} and ${name(b)}`);
      }
    }
    return found;
  }

  // Words of a table that are broken within, letter by letter.
  function broken() {
    const range = document.createRange();
    return [...document.querySelectorAll("td, th")].filter((one) => {
      if (!seen(one) || one.textContent.trim().length < 3) return false;
      range.selectNodeContents(one);
      const wide = Math.max(0, ...[...range.getClientRects()].map((box) => box.width));
      return range.getBoundingClientRect().height > 120 && wide < 24;
    }).map((one) => `${name(one)} ${one.textContent.trim().slice(0, 30)}`);
  }

  const channels = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    return [red, green, blue, alpha];
  };
  const light = (colour) => channels(colour).slice(0, 3).map((x) => x / 255)
    .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, n) => sum + x * [0.2126, 0.7152, 0.0722][n], 0);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const { backgroundColor, backgroundImage } = getComputedStyle(at);
      if (backgroundImage !== "none") return null;
      if (channels(backgroundColor)[3] === 1) return backgroundColor;
    }
    return getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches
      ? "rgb(18, 18, 18)" : "rgb(255, 255, 255)";
  };

  // The text that stands out least from what is behind it.
  function faintest() {
    let least = [22, ""];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const one = walk.currentNode.parentElement;
      if (!walk.currentNode.data.trim() || one.closest("svg, option, script, style") || !seen(one)) continue;
      const back = behind(one);
      if (!back) continue;
      const [high, low] = [light(getComputedStyle(one).color), light(back)].sort((a, b) => b - a);
      const ratio = (high + 0.05) / (low + 0.05);
      if (ratio < least[0]) least = [ratio, name(one)];
    }
    return [Math.round(least[0] * 100) / 100, least[1]];
  }

  return () => ({
    boxes: boxes(), cut: cut(), overlapping: overlapping(), broken: broken(), faintest: faintest(),
    over: document.documentElement.scrollWidth - innerWidth,
    high: document.documentElement.scrollHeight,
  });
})()
