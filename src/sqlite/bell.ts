/**
 * Notifies the processes that use a file of each commit: the committing process writes a byte to a file beside it, `FILE-bell`, which the others
 * watch. It only says when to look. A process that misses it, because its system cannot watch files, looks a little later by itself.
 */
import { closeSync, constants, existsSync, type FSWatcher, openSync, watch, writeSync } from 'node:fs'
import { shareAccess } from './access.ts'

const BYTE = Buffer.from('!')

export class Bell {
  #descriptor: number | undefined
  #watcher: FSWatcher | undefined

  constructor(file: string, onRing: () => void) {
    const path = `${file}-bell`
    const isNew = !existsSync(path)
    this.#descriptor = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600)
    if (isNew) shareAccess(path, { like: file })
    try {
      this.#watcher = watch(path, { persistent: false }, onRing)
      // The system may have no watches left.
      this.#watcher.on('error', () => this.#endWatch())
    } catch {
      this.#watcher = undefined
    }
  }

  ring(): void {
    if (this.#descriptor === undefined) return
    try {
      // Always the first byte, so that the file does not grow.
      writeSync(this.#descriptor, BYTE, 0, 1, 0)
    } catch {
      // The disk is full: the others look by themselves.
    }
  }

  close(): void {
    this.#endWatch()
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #endWatch(): void {
    this.#watcher?.close()
    this.#watcher = undefined
  }
}
