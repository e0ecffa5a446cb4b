// How the page and the worker talk; the other side, and the layout, is in wire.py.

const ALIGNED = 8;
const VIEWS = {
  float32: Float32Array,
  float64: Float64Array,
  float16: Uint16Array, // as bits: not every browser has a type for halves
  int64: BigInt64Array,
  int32: Int32Array,
  int8: Int8Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};

const aligned = (at) => at + ((ALIGNED - (at % ALIGNED)) % ALIGNED);

export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const body = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  let at = 4 + length;
  const arrays = {};
  for (const { name, dtype, shape } of body.arrays) {
    at = aligned(at);
    const View = VIEWS[dtype];
    const count = shape.reduce((product, size) => product * size, 1);
    arrays[name] = { dtype, shape, data: new View(buffer, at, count) };
    at += count * View.BYTES_PER_ELEMENT;
  }
  return { body, arrays };
}

export function packed(body, arrays = {}) {
  const described = Object.entries(arrays).map(([name, { dtype, shape }]) => ({ name, dtype, shape }));
  const head = new TextEncoder().encode(JSON.stringify({ ...body, arrays: described }));
  const length = new ArrayBuffer(4);
  new DataView(length).setUint32(0, head.length, true);
  const parts = [length, head];
  let at = 4 + head.length;
  const put = (part, size) => {
    parts.push(part);
    at += size;
  };
  const pad = () => put(new Uint8Array(aligned(at) - at), aligned(at) - at);
  pad();
  for (const { data } of Object.values(arrays)) {
    put(data, data.byteLength);
    pad();
  }
  return new Blob(parts);
}
