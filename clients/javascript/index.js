export { RunnelError } from "./errors.js";
export { Session, reset, status } from "./session.js";
export { Tensor } from "./tensor.js";
