import { endianness } from "node:os";

if (endianness() !== "LE") {
  throw new Error("The elements of tensors are little-endian; this machine is not.");
}

// TensorFlow's DataType, and the array that holds the elements.
const TYPES = {
  float32: [1, Float32Array],
  float64: [2, Float64Array],
  int32: [3, Int32Array],
  uint8: [4, Uint8Array],
  int16: [5, Int16Array],
  int8: [6, Int8Array],
  string: [7, Array],
  int64: [9, BigInt64Array],
  bool: [10, Uint8Array],
  uint16: [17, Uint16Array],
  uint32: [22, Uint32Array],
  uint64: [23, BigUint64Array],
};
const NAMES = new Map(Object.entries(TYPES).map(([name, [number]]) => [number, name]));

/**
 * A value: `data` has the elements row by row. It is a typed array of `dtype`; for "bool" a
 * Uint8Array of 0 and 1, for "string" an array of Buffers.
 */
export class Tensor {
  constructor(dtype, shape, data) {
    if (!Object.hasOwn(TYPES, dtype)) {
      throw new TypeError(`There is no type ${dtype}; there are ${Object.keys(TYPES).join(", ")}.`);
    }
    const Kind = TYPES[dtype][1];
    if (!(data instanceof Kind)) {
      throw new TypeError(`The elements of ${dtype} are in a ${Kind.name}.`);
    }
    const size = shape.reduce((product, dim) => product * dim, 1);
    if (data.length !== size) {
      throw new RangeError(`There are ${data.length} elements for the shape [${shape}].`);
    }
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  /**
   * A tensor of a number, bigint, boolean, string, bytes in a Buffer, typed array, or nested arrays
   * of the same length. Without `dtype` numbers are float64, bigints int64, and a typed array is
   * what it is; the server converts numbers to what it is fed for.
   */
  static from(value, dtype) {
    if (value instanceof Tensor) return value;
    if (ArrayBuffer.isView(value) && !Buffer.isBuffer(value)) {
      const own = Object.keys(TYPES).find((name) => value instanceof TYPES[name][1]);
      return new Tensor(dtype ?? own ?? value.constructor.name, [value.length], value);
    }
    const shape = [];
    for (let first = value; Array.isArray(first); first = first[0]) shape.push(first.length);
    const flat = [];
    flatten(value, shape, 0, flat);
    dtype ??= typeOf(flat[0]);
    if (!Object.hasOwn(TYPES, dtype)) return new Tensor(dtype, shape, flat);
    return new Tensor(dtype, shape, elements(dtype, flat));
  }

  /** The elements as nested arrays of numbers, bigints, booleans or strings (read as UTF-8). */
  toArray() {
    const read = { bool: Boolean, string: (bytes) => bytes.toString("utf8") }[this.dtype];
    const flat = read ? Array.from(this.data, read) : Array.from(this.data);
    let position = 0;
    const nested = (axis) =>
      axis === this.shape.length
        ? flat[position++]
        : Array.from({ length: this.shape[axis] }, () => nested(axis + 1));
    return nested(0);
  }
}

function typeOf(element) {
  if (typeof element === "bigint") return "int64";
  if (typeof element === "boolean") return "bool";
  return typeof element === "string" || ArrayBuffer.isView(element) ? "string" : "float64";
}

function flatten(value, shape, axis, flat) {
  if (axis === shape.length) {
    if (Array.isArray(value)) throw new RangeError("The arrays of a tensor differ in depth.");
    flat.push(value);
    return;
  }
  if (!Array.isArray(value) || value.length !== shape[axis]) {
    throw new RangeError("The arrays of a tensor differ in length.");
  }
  for (const element of value) flatten(element, shape, axis + 1, flat);
}

function elements(dtype, flat) {
  if (dtype === "string") return flat.map((element) => Buffer.from(element));
  const Kind = TYPES[dtype][1];
  if (Kind === BigInt64Array || Kind === BigUint64Array) flat = flat.map(BigInt);
  return Kind.from(flat);
}

/** `value` as the protocol's Tensor. */
export function toMessage(value) {
  const { dtype, shape, data } = Tensor.from(value);
  const message = { dtype: TYPES[dtype][0], shape };
  if (dtype === "string") message.strings = data;
  else message.content = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return message;
}

/** The value in one of the protocol's Tensors. */
export function fromMessage(message) {
  const dtype = NAMES.get(message.dtype);
  if (dtype === undefined) {
    throw new TypeError(`JavaScript has no arrays for TensorFlow's type ${message.dtype}; tf.cast it.`);
  }
  const shape = message.shape.map(Number);
  if (dtype === "string") return new Tensor(dtype, shape, message.strings);
  // A copy: the bytes lie anywhere in the message, and a typed array wants its own alignment.
  const bytes = new Uint8Array(message.content);
  return new Tensor(dtype, shape, new TYPES[dtype][1](bytes.buffer));
}
