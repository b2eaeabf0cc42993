/**
 * Brands distinguish tasks and flows from objects that only look like them. A brand is a registered symbol, so that two
 * copies of the library in one process (a global command line, a flows module with its own copy) recognize each other's.
 */

type Brand = 'task' | 'retry' | 'flow' | 'input' | 'link'

const BRAND = Symbol.for('jobboard.flow.brand')

/** Brands and freezes a value: a flow must not change while a conductor uses it. */
export function brand<T extends object>(kind: Brand, value: T): T {
  return Object.freeze(Object.defineProperty(value, BRAND, { value: kind, enumerable: false }))
}

export function hasBrand(kind: Brand, value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { [BRAND]?: unknown })[BRAND] === kind
}
