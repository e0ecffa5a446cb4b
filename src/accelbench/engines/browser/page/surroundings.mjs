// What the page can find out about where it runs.

// The smallest step that the clock shows; browsers make it coarse on purpose.
export function tick() {
  let smallest = Infinity;
  for (let seen = 0; seen < 50; seen++) {
    const start = performance.now();
    let now = start;
    while (now === start) now = performance.now();
    smallest = Math.min(smallest, now - start);
  }
  return smallest;
}

export async function adapter() {
  if (!navigator.gpu) return { why: "the browser has no WebGPU" };
  // As the engine asks: on a laptop with two, another wish may give the other one.
  const found = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!found) return { why: "the browser gives no adapter" };
  const { vendor, architecture, device, description } = found.info;
  return {
    vendor,
    architecture,
    device,
    description,
    fallback: found.info.isFallbackAdapter ?? found.isFallbackAdapter ?? null,
    features: [...found.features].sort(),
    limits: {
      maxBufferSize: found.limits.maxBufferSize,
      maxStorageBufferBindingSize: found.limits.maxStorageBufferBindingSize,
    },
  };
}

export async function webnn(deviceType) {
  if (!navigator.ml) return { why: "the browser has no WebNN" };
  try {
    const context = await navigator.ml.createContext({ deviceType });
    return { operators: Object.keys(context.opSupportLimits()).length };
  } catch (error) {
    return { why: String(error.message ?? error) };
  }
}

export function itself() {
  return {
    agent: navigator.userAgent,
    isolated: crossOriginIsolated,
    cores: navigator.hardwareConcurrency,
    tick_ms: tick(),
  };
}

// What was fetched, how long it took, and how much of it came over the network.
export function fetched() {
  const entries = performance.getEntriesByType("resource").filter((one) => /\/(ort|model)\//.test(one.name));
  const start = Math.min(...entries.map((one) => one.startTime));
  const end = Math.max(...entries.map((one) => one.responseEnd));
  return {
    files: entries.length,
    bytes: entries.reduce((sum, one) => sum + one.decodedBodySize, 0),
    from_network: entries.reduce((sum, one) => sum + one.transferSize, 0),
    ms: entries.length ? end - start : 0,
  };
}
