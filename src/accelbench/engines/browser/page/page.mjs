// Does what the worker asks, one thing after another.

import { Engine } from "./engine.mjs";
import { adapter, fetched, itself, webnn } from "./surroundings.mjs";
import { packed, unpacked } from "./wire.mjs";

const here = (name) => new URL(name, document.baseURI).href;
let engine = null;

const since = async (work) => {
  const start = performance.now();
  const found = await work();
  return [found, performance.now() - start];
};

// What the engine prints: there it says which provider runs what. It takes hold of the console
// when it is loaded, so the console listens from the start.
let heard = null;
for (const name of ["log", "info", "debug", "warn", "error"]) {
  console[name] = (...words) => heard?.push(words.map(String).join(" "));
}

const actions = {
  async surroundings({ device_type }) {
    return [{ ...itself(), adapter: await adapter(), webnn: await webnn(device_type) }];
  },

  async open({ asked }) {
    const [made, script_ms] = await since(() => Engine.loaded(asked));
    engine = made;
    const [, session_ms] = await since(() => engine.open());
    return [
      {
        script_ms,
        session_ms,
        fetched: fetched(),
        inputs: engine.session.inputNames,
        threads: engine.ort.env.wasm.numThreads,
        adapter: await engine.adapter(),
      },
    ];
  },

  async feed({ denoising }, arrays) {
    engine.feed(arrays, denoising);
    return [{}];
  },

  async steps({ n }) {
    return [{ ms: await engine.steps(n) }];
  },

  async blocks({ steps, samples }) {
    return [{ ms: await engine.blocks(steps, samples) }];
  },

  async left({ most }) {
    return engine.kept(most);
  },

  async glance({ most, names }) {
    return engine.glance(most, names);
  },

  async outputs() {
    engine.left = null;
    const found = await engine.step();
    const arrays = {};
    for (const [name, tensor] of Object.entries(found)) {
      const data = await tensor.getData();
      arrays[name] = { dtype: tensor.type, shape: tensor.dims, data };
    }
    return [{}, arrays];
  },

  // A session as at first, where another has taken its place.
  async open_again() {
    await engine.open();
    return [{}];
  },

  // A second, identical session that says what it does; it takes the place of the first.
  async traced({ runs }) {
    const { fed } = engine;
    heard = [];
    try {
      await engine.open({ enableProfiling: true, logSeverityLevel: 0 });
      engine.fed = fed;
      for (let i = 0; i < runs; i++) await engine.step();
      engine.session.endProfiling();
      return [{ lines: heard }];
    } finally {
      heard = null;
    }
  },

  // Answered first: who leaves answers nothing any more.
  async go({ address }) {
    return [{ leaving: address }];
  },
};

const described = (error) => ({
  name: error?.name ?? typeof error,
  message: String(error?.message ?? error),
  stack: String(error?.stack ?? ""),
});

// What fails in a promise that the engine has forgotten ends nothing: what was asked would be
// waited for in vain (WebNN's graphs, where the browser refuses one).
const UNHEARD_MS = 2000;
let unheard = null;
addEventListener("unhandledrejection", ({ reason }) => unheard?.(reason));

async function answer(command, arrays) {
  const forgotten = new Promise((_, reject) => {
    unheard = (reason) => setTimeout(() => reject(reason), UNHEARD_MS);
  });
  try {
    return await Promise.race([actions[command.do](command, arrays), forgotten]);
  } catch (error) {
    const lost = await Promise.resolve(engine?.lost()).catch(() => null);
    return [{ error: { ...described(error), lost: lost ?? null } }];
  } finally {
    unheard = null;
  }
}

// Held open for as long as the page lives: its end tells the worker that the page has gone.
fetch(here("alive"), { cache: "no-store" }).then((response) => response.body.getReader().read());

for (;;) {
  const response = await fetch(here("next"), { cache: "no-store" });
  if (response.status === 204) continue;
  if (!response.ok) break; // the worker wants no more of this page
  const { body, arrays } = unpacked(await response.arrayBuffer());
  const [said, given] = await answer(body, arrays);
  await fetch(here("answer"), { method: "POST", body: packed({ ...said, id: body.id }, given) });
  if (said.leaving) {
    location.replace(`${said.leaving}index.html?visit=${performance.now()}`);
    break;
  }
}
