import { fileURLToPath } from "node:url";
import grpc from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";
import { RunnelError } from "./errors.js";

const PROTO = fileURLToPath(
  new URL("../../runnel/distributed/protocol/client.proto", import.meta.url),
);
const KEEPALIVE_MS = 5000;

/** The protocol's calls to one task. */
export class Connection {
  /**
   * @param {string} address "host:port", or "grpc://host:port"
   * @param {object} options
   * @param {string} [options.token] the cluster's
   * @param {{ca?: Buffer, cert?: Buffer, key?: Buffer}} [options.tls] PEM; encrypts the connection
   * @param {boolean} [options.insecure] lets the token go unencrypted to another machine
   * @param {string} [options.proto] the path of client.proto
   */
  constructor(address, { token, tls, insecure = false, proto = PROTO } = {}) {
    address = address.replace(/^grpc:\/\//, "");
    if (token && !tls && !insecure && !isLoopback(address)) {
      throw new RunnelError(
        grpc.status.FAILED_PRECONDITION,
        `The token would go to ${address} unencrypted: give tls, or insecure on a network that ` +
          "nobody else is on.",
      );
    }
    this._address = address;
    this._token = token;
    const definition = loadSync(proto, { keepCase: true, longs: String, defaults: true });
    this._readFailure = definition["runnel.client.Failure"].deserialize;
    const { Sessions } = grpc.loadPackageDefinition(definition).runnel.client;
    const credentials = tls
      ? grpc.credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null)
      : grpc.credentials.createInsecure();
    this._stub = new Sessions(address, credentials, {
      "grpc.max_receive_message_length": -1,
      "grpc.max_send_message_length": -1,
      "grpc.keepalive_time_ms": KEEPALIVE_MS,
      "grpc.keepalive_timeout_ms": KEEPALIVE_MS,
    });
  }

  /**
   * The reply to one call.
   * @param {string} name
   * @param {object} request
   * @param {object} options
   * @param {AbortSignal} [options.signal] cancels the call, and the step that it runs
   * @param {number} [options.waitMs] how long to wait for a task that does not answer yet
   */
  call(name, request, { signal, waitMs } = {}) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const options = waitMs === undefined ? {} : { deadline: Date.now() + waitMs };
      const cancel = () => call.cancel();
      const metadata = this._metadata(waitMs !== undefined);
      const call = this._stub[name](request, metadata, options, (error, reply) => {
        signal?.removeEventListener("abort", cancel);
        if (error) reject(this._error(error));
        else resolve(reply);
      });
      signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  /** Tells the task that this client lives; the stream, once the task knows. */
  attach(session) {
    return new Promise((resolve, reject) => {
      const stream = this._stub.Attach({ session }, this._metadata());
      stream.once("data", () => resolve(stream));
      // Later too: whoever calls next is told why the session is gone.
      stream.on("error", (error) => reject(this._error(error)));
      stream.on("end", () => {});
    });
  }

  close() {
    this._stub.close();
  }

  _metadata(waitForReady = false) {
    const metadata = new grpc.Metadata({ waitForReady });
    if (this._token) metadata.set("authorization", `Bearer ${this._token}`);
    return metadata;
  }

  _error(error) {
    const [content] = error.metadata?.get("runnel-failure-bin") ?? [];
    if (content === undefined) {
      return new RunnelError(error.code, `${this._address}: ${error.details}`);
    }
    const failure = this._readFailure(content);
    return new RunnelError(failure.code, failure.message, failure);
  }
}

function isLoopback(address) {
  const host = address.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || /^127(\.\d+){3}$/.test(host);
}
