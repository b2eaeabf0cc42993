/** Keeps the listeners for changes of the board, which the stream, another tab or polling reports. */

/** The topics that have changed; `all` after a time in which changes may have been missed. */
export type Changed = ReadonlySet<string> | 'all'

type Listener = (changed: Changed) => void
const listeners = new Set<Listener>()

/** Calls the listener at each change. Returns a function that ends that. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Reports a change to the parts of the page that show something of it. */
export function emitChange(changed: Changed): void {
  for (const listener of [...listeners]) listener(changed)
}
