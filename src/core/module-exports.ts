/** Reads the exports of a user's module, which may be an ES module or a CommonJS module. */

/**
 * Returns every exported value that `isWanted` accepts: by a name, as default, or in a list. A CommonJS module's exports are on its
 * default. A value that is exported twice is returned once.
 */
export function collectExports<T>(exports: object, isWanted: (value: unknown) => value is T): T[] {
  const values: unknown[] = Object.values(exports)
  const { default: main }: { default?: unknown } = exports
  if (typeof main === 'object' && main !== null && !isWanted(main)) values.push(...Object.values(main))
  return [...new Set(values.flat().filter(isWanted))]
}

/**
 * Returns the export of this name. The exports of a CommonJS module may be on its default only. Once tsx is loaded, so are those
 * of a `.js` file with `export` statements, unless its package has the type module.
 */
export function exportNamed(exports: object, name: string): unknown {
  const { [name]: named, default: main }: Readonly<Record<string, unknown>> = { ...exports }
  return named !== undefined || typeof main !== 'object' || main === null ? named : Object(main)[name]
}
