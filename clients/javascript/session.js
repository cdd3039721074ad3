import { readFile } from "node:fs/promises";
import { Connection } from "./connection.js";
import { fromMessage, toMessage } from "./tensor.js";

const VERSION = 1;
const CONNECT_MS = 30_000;

/** Runs parts of a saved graph on a task of a cluster. */
export class Session {
  /** See `Session.create`. */
  constructor(connection, session, version, attached) {
    this._connection = connection;
    this._session = session;
    this._version = version;
    this._attached = attached;
  }

  /**
   * A session on a task; it has to be closed.
   *
   * @param {string} address "host:port" of any task
   * @param {string | Uint8Array} graph a serialized GraphDef, or the path of a file with one
   * @param {object} options what `Connection` takes, and
   * @param {Uint8Array} [options.config] a serialized ConfigProto
   * @param {number} [options.connectMs] how long to wait for the tasks of the cluster
   */
  static async create(address, graph, { config, connectMs = CONNECT_MS, ...options } = {}) {
    const graph_def = await bytesOf(graph);
    const connection = new Connection(address, options);
    try {
      const request = { version: VERSION, graph_def, config };
      const reply = await connection.call("CreateSession", request, { waitMs: connectMs });
      const attached = await connection.attach(reply.session);
      return new Session(connection, reply.session, reply.graph_version, attached);
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Adds the operations of a GraphDef, which may use those that are there already. */
  async extend(graph) {
    const graph_def = await bytesOf(graph);
    const request = { session: this._session, graph_def, graph_version: this._version };
    this._version = (await this._connection.call("ExtendSession", request)).graph_version;
  }

  /**
   * Runs a step. A fetch is a tensor ("y:0"), which gives a Tensor, or an operation ("train"), which
   * gives null; an array of them gives an array.
   *
   * @param {string | string[]} fetches
   * @param {Object<string, *>} feeds values by tensor, as `Tensor.from` takes them
   * @param {{timeoutMs?: number, signal?: AbortSignal}} options
   */
  async run(fetches, feeds = {}, { timeoutMs = 0, signal } = {}) {
    const names = new Fetches(fetches);
    const request = {
      session: this._session,
      feeds: Object.entries(feeds).map(([name, value]) => ({ name, value: toMessage(value) })),
      ...names.request,
      timeout_ms: timeoutMs,
    };
    return names.read(await this._connection.call("Run", request, { signal }));
  }

  /**
   * A function that runs a prepared step with the values of `feeds`, in that order. The server
   * keeps the step until the function's `release()`.
   *
   * @param {string | string[]} fetches
   * @param {string[]} feeds
   * @param {{timeoutMs?: number}} options
   */
  async makeCallable(fetches, feeds = [], { timeoutMs = 0 } = {}) {
    const names = new Fetches(fetches);
    const session = this._session;
    const connection = this._connection;
    const made = await connection.call("MakeCallable", { session, feeds, ...names.request });
    const callable = made.callable;
    const run = async (...values) => {
      const feeds = values.map(toMessage);
      const request = { session, callable, feeds, timeout_ms: timeoutMs };
      return names.read(await connection.call("RunCallable", request));
    };
    run.release = () => connection.call("ReleaseCallable", { session, callable });
    return run;
  }

  /** The devices of the cluster. */
  async listDevices() {
    const request = { session: this._session };
    const { devices } = await this._connection.call("ListDevices", request);
    return devices.map((device) => ({ ...device, memory: Number(device.memory) }));
  }

  /** Ends the session; variables stay with the cluster. */
  async close() {
    try {
      await this._connection.call("CloseSession", { session: this._session });
    } finally {
      this._attached.cancel();
      this._connection.close();
    }
  }
}

/** Clears containers of a cluster; all, if none is named. */
export async function reset(address, containers = [], options = {}) {
  await once(address, options, "Reset", { containers });
}

/** What a task is doing. */
export async function status(address, options = {}) {
  return JSON.parse((await once(address, options, "Status", {})).json);
}

async function once(address, options, name, request) {
  const connection = new Connection(address, options);
  try {
    return await connection.call(name, request);
  } finally {
    connection.close();
  }
}

/** What is fetched: tensors among the values, operations that only run. */
class Fetches {
  constructor(fetches) {
    this._isOne = !Array.isArray(fetches);
    this._names = this._isOne ? [fetches] : fetches;
    this.request = {
      fetches: this._names.filter((name) => name.includes(":")),
      targets: this._names.filter((name) => !name.includes(":")),
    };
  }

  read({ values }) {
    const rest = values.map(fromMessage);
    const found = this._names.map((name) => (name.includes(":") ? rest.shift() : null));
    return this._isOne ? found[0] : found;
  }
}

async function bytesOf(graph) {
  return typeof graph === "string" ? readFile(graph) : Buffer.from(graph);
}
