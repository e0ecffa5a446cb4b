// One model in onnxruntime-web: opened, stepped, timed where it runs.

// The smallest build that has the provider: what a site for it would load.
const BUILDS = {
  wasm: { script: "ort.wasm.min.mjs", core: "ort-wasm-simd-threaded" },
  webgpu: { script: "ort.webgpu.min.mjs", core: "ort-wasm-simd-threaded.asyncify" },
  webnn: { script: "ort.webgpu.min.mjs", core: "ort-wasm-simd-threaded.asyncify" },
};

const SETTLING_MS = 5;

// NumPy's names for types that this has.
const isNumber = {
  float32: Number.isFinite,
  float64: Number.isFinite,
  // As bits where the browser has no such array: all of the exponent set is no number.
  float16: (value, data) =>
    data instanceof Uint16Array ? (value & 0x7c00) !== 0x7c00 : Number.isFinite(value),
};

// Which values of an output are looked at; as runtimes/shared/sketches.py has it.
function place(i, size, most) {
  if (size <= most) return i;
  return Math.floor((i * size) / most) + ((i * 2654435761) % Math.floor(size / most));
}

// Of each output at most so many values, evenly scattered.
async function sketched(outputs, most) {
  const shapes = {};
  const arrays = {};
  let finite = true;
  for (const [name, tensor] of Object.entries(outputs)) {
    const data = await tensor.getData();
    const count = Math.min(data.length, most);
    const some = new data.constructor(count);
    for (let i = 0; i < count; i++) {
      some[i] = data[place(i, data.length, most)];
    }
    shapes[name] = tensor.dims;
    arrays[name] = { dtype: tensor.type, shape: [count], data: some };
    const good = isNumber[tensor.type];
    for (let i = 0; good && finite && i < data.length; i++) finite = good(data[i], data);
  }
  return { shapes, arrays, finite };
}

// As sketches.py's outputs_digest: of names, shapes as Python writes them, types and bits.
async function digested(outputs) {
  const parts = [];
  for (const name of Object.keys(outputs).sort()) {
    const tensor = outputs[name];
    const shape = `(${tensor.dims.join(", ")}${tensor.dims.length === 1 ? "," : ""})`;
    parts.push(`${name} ${shape} ${tensor.type}`, await tensor.getData());
  }
  const all = await new Blob(parts).arrayBuffer();
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", all));
  return [...bytes.slice(0, 8)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const here = (name) => new URL(name, document.baseURI).href;

const HEARD_MS = 1000;

export class Engine {
  // The engine's script now, its core with the first session.
  static async loaded(asked) {
    const { script, core } = BUILDS[asked.provider];
    const ort = await import(here(`ort/${script}`));
    ort.env.wasm.wasmPaths = { mjs: here(`ort/${core}.mjs`), wasm: here(`ort/${core}.wasm`) };
    if (asked.threads) ort.env.wasm.numThreads = asked.threads;
    ort.env.logLevel = "error";
    return new Engine(ort, asked);
  }

  constructor(ort, asked) {
    this.ort = ort;
    this.asked = asked;
    this.session = null;
    this.fed = {};
    this.denoising = null;
    this.left = null; // what the last step that was timed gave; until the next one begins
  }

  // A session of the model; one that is open is given back first, or both would be held.
  async open(more = {}) {
    await this.release();
    const { model, external, provider, device_type, strict } = this.asked;
    this.session = await this.ort.InferenceSession.create(here(`model/${model}`), {
      executionProviders: [
        provider === "webnn" ? { name: "webnn", deviceType: device_type } : provider,
      ],
      externalData: external.map((name) => ({ path: name, data: here(`model/${name}`) })),
      // What a provider cannot run would go to the CPU without a word.
      ...(strict ? { extra: { session: { disable_cpu_ep_fallback: "1" } } } : {}),
      ...more,
    });
  }

  // The adapter that computes, as its device names it: a page may be given others.
  async adapter() {
    if (this.asked.provider !== "webgpu") return {};
    const { adapterInfo: found, features } = await this.ort.env.webgpu.device;
    const { vendor, architecture, device, description, isFallbackAdapter } = found;
    const said = { vendor, architecture, device, description, fallback: isFallbackAdapter ?? null };
    return { ...said, features: [...features].sort() };
  }

  // Why its device is lost; null where it is not. What failed for that says anything: the device
  // itself is asked, which hears of it a moment later.
  async lost() {
    if (this.asked.provider !== "webgpu") return null;
    const device = await this.ort.env.webgpu.device;
    const told = device?.lost.then(({ reason, message }) => `${reason} ${message}`.trim());
    return Promise.race([told, new Promise((resolve) => setTimeout(resolve, HEARD_MS, null))]);
  }

  async release() {
    this.left = null;
    const session = this.session;
    this.session = null;
    await session?.release();
  }

  // `denoising` names the sample's and the times' inputs and has what each pass multiplies by.
  feed(arrays, denoising) {
    const wanted = new Set(this.session.inputNames);
    this.fed = {};
    for (const [name, { dtype, shape, data }] of Object.entries(arrays)) {
      if (wanted.has(name)) this.fed[name] = new this.ort.Tensor(dtype, data, shape);
    }
    this.denoising = denoising;
  }

  // What the last step that was timed left; a step's outputs otherwise.
  async kept(most) {
    const { shapes, arrays } = await sketched(this.left ?? {}, most);
    return [{ shapes }, arrays];
  }

  // One run's outputs, looked at here: some values of each, whether all are numbers, a digest. Who
  // looks at one value of each only waits for them: of 51 MB a digest takes longer than the step.
  async glance(most, names) {
    this.left = null;
    const found = Object.entries(await this.step());
    const named = Object.fromEntries(found.map(([name, tensor]) => [names[name], tensor]));
    const { shapes, arrays, finite } = await sketched(named, most);
    return [{ shapes, finite, digest: most > 1 ? await digested(named) : "" }, arrays];
  }

  // When it is there, outputs have been read back: the device is done.
  async step() {
    return this.denoising ? this.#image(this.denoising) : this.session.run(this.fed);
  }

  // After a pause the first steps take up to twice as long as those that follow each other:
  // where they are timed together, these are over before the clock.
  async #settle() {
    const until = performance.now() + SETTLING_MS;
    while (performance.now() < until) await this.step();
  }

  async #image({ sample, times, passes }) {
    let now = this.fed[sample];
    const [batch] = now.dims;
    for (const { time, kept, added } of passes) {
      const when = new this.ort.Tensor("int64", new BigInt64Array(batch).fill(BigInt(time)), [batch]);
      const found = await this.session.run({ ...this.fed, [sample]: now, [times]: when });
      const noise = found[this.session.outputNames[0]];
      const next = new Float32Array(now.data.length);
      for (let i = 0; i < next.length; i++) next[i] = kept * now.data[i] + added * noise.data[i];
      now = new this.ort.Tensor("float32", next, now.dims);
    }
    return { sample: now };
  }

  // Milliseconds of each step.
  async steps(n) {
    const times = [];
    this.left = null;
    for (let i = 0; i < n; i++) {
      const start = performance.now();
      const found = await this.step();
      times.push(performance.now() - start);
      if (i === n - 1) this.left = found;
    }
    return times;
  }

  // Milliseconds of blocks of steps, one straight after the other: what follows a pause of a
  // few milliseconds is slower for a while, on a virtual machine by 7 % for a hundredth of a second.
  async blocks(steps, samples) {
    this.left = null;
    await this.#settle();
    const times = [];
    for (let i = 0; i < samples; i++) {
      const start = performance.now();
      let found = null;
      for (let j = 0; j < steps; j++) found = await this.step();
      times.push(performance.now() - start);
      if (i === samples - 1) this.left = found;
    }
    return times;
  }
}
