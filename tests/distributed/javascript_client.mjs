// Run by test_javascript_client.py: prints what the client finds, as JSON.
import { RunnelError, Session, Tensor, status } from "runnel-client";

const [address, graph, token] = process.argv.slice(2);
const caught = async (promise) => {
  try {
    await promise;
  } catch (error) {
    if (!(error instanceof RunnelError)) throw error;
    const { code, message, op, opType, site, task } = error;
    return { code, message, op, opType, site, task };
  }
  throw new Error("it should have failed");
};
const shown = (tensor) => ({
  dtype: tensor.dtype,
  shape: tensor.shape,
  kind: tensor.data.constructor.name,
  value: tensor.toArray(),
});

const session = await Session.create(address, graph, { token });
const found = {};

found.devices = (await session.listDevices()).map(({ name, type }) => [name, type]);

await session.run("init");
const step = await session.makeCallable(["train", "loss:0"], ["x:0", "y:0"]);
const xs = new Tensor("float32", [4, 1], Float32Array.of(1, 2, 3, 4));
found.losses = [];
for (let i = 0; i < 5; i++) {
  const [none, loss] = await step(xs, [[2], [4], [6], [8]]);
  if (none !== null) throw new Error("an operation has no value");
  found.losses.push(loss.toArray());
}
await step.release();
found.w = (await session.run("w:0")).toArray();

const fed = {
  float32: new Tensor("float32", [2, 2], Float32Array.of(1.5, -2, 3, 4)),
  float64: Tensor.from([0.1, 0.2]),
  int32: Tensor.from([[1, 2, 3]], "int32"),
  int64: Tensor.from([2n ** 60n, -1n]),
  uint8: Uint8Array.of(0, 255),
  bool: [[true], [false]],
  string: [["a", ""], ["\u00e9\0", Buffer.from([0xff, 0x00])]],
  empty: new Tensor("float32", [0, 3], new Float32Array()),
};
const names = Object.keys(fed);
const feeds = Object.fromEntries(names.map((name) => [`fed_${name}:0`, fed[name]]));
const values = await session.run(names.map((name) => `got_${name}:0`), feeds);
found.values = Object.fromEntries(names.map((name, i) => [name, shown(values[i])]));
found.bytes = [...values[names.indexOf("string")].data[3]];

found.failed = await caught(session.run("product:0", { "a:0": [1, 2], "b:0": [1, 2, 3] }));
found.unknown = await caught(session.run("nothing:0"));
found.late = await caught(session.run("taken:0", {}, { timeoutMs: 200 }));
const abort = new AbortController();
const cancelled = caught(session.run("taken:0", {}, { signal: abort.signal }));
const running = async () => (await status(address, { token })).masters[0].steps.length;
while ((await running()) === 0);
abort.abort();
found.cancelled = await cancelled;
found.after = (await session.run("w:0")).toArray();

await session.close();
found.sessions = (await status(address, { token })).masters.length;
found.refused = await caught(status(address, { token: "other" }));
console.log(
  JSON.stringify(found, (_, value) => (typeof value === "bigint" ? `${value}n` : value)),
);
