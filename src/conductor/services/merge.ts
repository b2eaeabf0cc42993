/** Merges the services of several modules, so that the tasks of each find their own in `ctx.services`. */
import { InvalidArgument } from '../../core/errors.ts'
import { type Definitions, isDefinedServices, service, toDefinedServices } from './define.ts'

export interface ExportedServices {
  /** The name of their module, for errors. */
  readonly name: string
  /** The export `services` of the module. */
  readonly services: unknown
}

/**
 * Merges the services of modules into one set, made in the order of the modules. The services of a single module are returned as they are.
 *
 * @throws InvalidArgument for a name that two modules give to different services, and for services that are made by a function: their names
 * are not known before it is called
 */
export function mergeServices(parts: readonly ExportedServices[]): unknown {
  const distinct = parts.filter(
    ({ services }, index) => parts.findIndex((other) => other.services === services) === index,
  )
  const [only] = distinct
  if (distinct.length < 2) return only?.services
  const merged = new Map<string, { readonly from: string; readonly definition: Definitions[string] }>()
  for (const { name: from, services } of distinct) {
    for (const [name, definition] of Object.entries(toDefinitions(services, from))) {
      const other = merged.get(name)
      if (other && other.definition !== definition)
        throw new InvalidArgument(
          `${other.from} and ${from} both export a service ${name}; rename one, or let one import the other`,
        )
      merged.set(name, { from, definition })
    }
  }
  return toDefinedServices([...merged].map(([name, { definition }]) => [name, definition]))
}

function toDefinitions(services: unknown, from: string): Definitions {
  if (isDefinedServices(services)) return services.definitions
  if (typeof services === 'function') {
    throw new InvalidArgument(
      `${from} exports services as a function, which cannot be merged with those of other modules: export defineServices(…)`,
    )
  }
  const values = Object.entries(Object(services))
  return Object.fromEntries(values.map(([name, value]) => [name, service(() => value, { dispose: () => undefined })]))
}
