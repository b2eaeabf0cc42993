/**
 * Tells the processes that use a file that something was committed: each writes a byte to a file beside it, `FILE-bell`, which the others watch. It
 * only says when to look. A process that misses it, because its system cannot watch files, looks a little later by itself.
 */
import { closeSync, type FSWatcher, openSync, watch, writeSync } from 'node:fs'

const BYTE = Buffer.from('!')

export class Bell {
  readonly #descriptor: number
  #watcher: FSWatcher | undefined

  constructor(file: string, onRing: () => void) {
    const path = `${file}-bell`
    this.#descriptor = openSync(path, 'a')
    try {
      this.#watcher = watch(path, { persistent: false }, onRing)
      // The system may have no watches left.
      this.#watcher.on('error', () => this.#endWatch())
    } catch {
      this.#watcher = undefined
    }
  }

  ring(): void {
    try {
      writeSync(this.#descriptor, BYTE, 0, 1, 0)
    } catch {
      // The disk is full: the others look by themselves.
    }
  }

  close(): void {
    this.#endWatch()
    closeSync(this.#descriptor)
  }

  #endWatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }
}
