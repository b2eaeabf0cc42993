/** One-shot watches of the C client: it is told of changes only, and forgets with the session whom it was to tell. */
import { callHandler } from './handlers.ts'
import type { OneShotHandler } from './one-shots.ts'
import type { WatchEventType } from './records.ts'

/** Other types are about the session, which is told in other ways. */
const TYPES: Readonly<Record<number, WatchEventType>> = {
  1: 'created',
  2: 'deleted',
  3: 'dataChanged',
  4: 'childrenChanged',
}

export interface NativeWatch {
  /** What the C client calls. */
  readonly told: (type: number, state: number, path: string) => void
}

export class NativeWatches {
  readonly #waiting = new Map<NativeWatch, { readonly path: string; readonly handler: OneShotHandler }>()
  readonly #onFault: (error: unknown, path: string) => void

  /** @param onFault told of a handler of a watch of that path that threw or rejected */
  constructor(onFault: (error: unknown, path: string) => void) {
    this.#onFault = onFault
  }

  add(path: string, handler: OneShotHandler): NativeWatch {
    const watch: NativeWatch = {
      told: (type, _, changed) => {
        const event = TYPES[type]
        if (event && this.#waiting.delete(watch)) this.#call(() => handler({ type: event, path: changed }), path)
      },
    }
    this.#waiting.set(watch, { path, handler })
    return watch
  }

  /** The request was refused: the server does not watch. */
  forget(watch: NativeWatch): void {
    this.#waiting.delete(watch)
  }

  over(reason: Error): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const { path, handler } of waiting) {
      this.#call(() => handler({ type: 'lost', path, reason }), path)
    }
  }

  #call(tell: () => unknown, path: string): void {
    callHandler(tell, (error) => this.#onFault(error, path))
  }
}
