/** An error that a task has told, or gRPC has met on the way to it. */
export class RunnelError extends Error {
  /**
   * @param {number} code TensorFlow's code of the error, which is gRPC's too
   * @param {string} message
   * @param {{op?: string, op_type?: string, site?: string[], task?: string}} failure
   */
  constructor(code, message, failure = {}) {
    super(message);
    this.name = "RunnelError";
    this.code = code;
    /** The operation that failed; empty where it was none. */
    this.op = failure.op ?? "";
    this.opType = failure.op_type ?? "";
    /** The lines of the program that made the operation, outermost first. */
    this.site = failure.site ?? [];
    /** The task that failed, such as "/job:ps/replica:0/task:0". */
    this.task = failure.task ?? "";
  }
}
