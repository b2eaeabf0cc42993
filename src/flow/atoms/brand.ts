/**
 * How tasks and flows are told from objects that only look like them. The mark is a registered symbol, so that two copies
 * of the library in one process (a command line installed globally, a flows module with its own) know each other's.
 */

type Brand = 'task' | 'retry' | 'flow' | 'input' | 'link'

const BRAND = Symbol.for('jobboard.flow.brand')

/** Marks and freezes: what a conductor was given must not change under its feet. */
export function brand<T extends object>(kind: Brand, value: T): T {
  return Object.freeze(Object.defineProperty(value, BRAND, { value: kind, enumerable: false }))
}

export function hasBrand(kind: Brand, value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === kind
}
