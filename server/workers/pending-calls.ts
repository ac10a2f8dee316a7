// Tracks the calls to a worker that have no result yet, and passes each result to its call.

interface Pending<Result, Detail> {
  readonly detail: Detail;
  resolve(result: Result): void;
  reject(error: Error): void;
}

export class PendingCalls<Result, Detail = undefined> {
  readonly #pending = new Map<number, Pending<Result, Detail>>();
  readonly #onEnd: (detail: Detail) => void;
  #lastId = 0;
  #onDrained: (() => void) | null = null;

  /** `onEnd` is called with a call's detail when the call has ended, before its promise is settled. */
  constructor(onEnd: (detail: Detail) => void = () => {}) {
    this.#onEnd = onEnd;
  }

  get size(): number {
    return this.#pending.size;
  }

  begin(detail: Detail): { readonly id: number; readonly promise: Promise<Result> } {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const id = ++this.#lastId;
    this.#pending.set(id, { detail, resolve, reject });
    return { id, promise };
  }

  resolve(id: number, result: Result): void {
    this.#end(id)?.resolve(result);
  }

  reject(id: number, error: Error): void {
    this.#end(id)?.reject(error);
  }

  rejectAll(error: Error): void {
    for (const id of [...this.#pending.keys()]) this.reject(id, error);
  }

  /** Resolves when no call is pending. */
  async drained(): Promise<void> {
    if (this.size > 0) await new Promise<void>((resolve) => (this.#onDrained = resolve));
  }

  /** Removes a call and returns it. Returns undefined if the call was already rejected because its worker ended. */
  #end(id: number): Pending<Result, Detail> | undefined {
    const call = this.#pending.get(id);
    if (call === undefined) return undefined;
    this.#pending.delete(id);
    this.#onEnd(call.detail);
    if (this.size === 0) this.#onDrained?.();
    return call;
  }
}
