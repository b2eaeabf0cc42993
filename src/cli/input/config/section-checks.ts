/** Checks what sections of the file say together, and what they say of flows: each value may be right by itself. */
import { assertFixedPosting, QueueChoice } from '../../../board/internal.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import { assertWeightCount } from '../board-flags.ts'
import { toConductorSettings, toQueueTexts, toServed } from '../conductor-flags.ts'
import type { Path } from './faults.ts'
import type { Config } from './schema.ts'
import { ownEntriesOf } from './tenant-schedules.ts'
import { toList } from './typed-options.ts'
import type { ConfigValues } from './values.ts'

/** A check, and the place to which its error belongs. */
interface SectionCheck {
  readonly path: Path
  /** @throws InvalidArgument */
  readonly assert: () => void
}

/** Returns the checks of the section `conductor`, with the values that are right by themselves. */
export function conductorChecks(values: ConfigValues, { board }: Pick<Config, 'board'>): readonly SectionCheck[] {
  const section = values.section('conductor')
  if (!section) return []
  const { health, metrics, queues, weights } = section
  const at = (key: string, assert: () => void): SectionCheck => ({ path: ['conductor', key], assert })
  const address = health === undefined ? {} : { health: String(health) }
  const boards = toList(board)
  return [
    at('health', () => toConductorSettings(address)),
    at('metrics', () => {
      if (metrics && health === undefined)
        throw new InvalidArgument('conductor.metrics needs conductor.health, where /metrics is answered')
    }),
    at('queues', () => {
      const served = queues && toServed(toQueueTexts(queues))
      if (served) QueueChoice.parse(served, 'conductor')
    }),
    at('weights', () => {
      if (weights) assertWeightCount(weights.length, Math.max(1, boards.length))
    }),
  ]
}

/**
 * Returns the checks against the code of flows, whose modules the caller has loaded as conductors do: each flow declares a valid posting, and schedules and
 * defaults name flows of the modules.
 */
export function flowChecks(values: ConfigValues, flows: readonly AnyFlow[]): readonly SectionCheck[] {
  const names = [...new Set(flows.map(({ name }) => name))]
  const assertKnown = (name: string) => {
    if (!names.includes(name))
      throw new InvalidArgument(`the modules of flows export no flow ${name}${suggestion(name, names)}`)
  }
  const assertMatching = (pattern: string) => {
    if (!pattern.endsWith('*')) return assertKnown(pattern)
    if (names.some((name) => name.startsWith(pattern.slice(0, -1)))) return
    throw new InvalidArgument(`the modules of flows export no flow whose name begins with ${pattern.slice(0, -1)}`)
  }
  const schedules = Object.entries(values.section('schedules') ?? {}).map(([id, { flow }]) => {
    return { path: ['schedules', id, 'flow'], flow }
  })
  const ofTenants = ownEntriesOf(values).map(({ path, section }) => ({ path: [...path, 'flow'], flow: section.flow }))
  return [
    ...flows.map((flow): SectionCheck => ({ path: ['flows'], assert: () => assertFixedPosting(flow) })),
    ...[...schedules, ...ofTenants].flatMap(({ path, flow }): readonly SectionCheck[] =>
      flow === undefined ? [] : [{ path, assert: () => assertKnown(flow) }],
    ),
    ...Object.keys(values.section('flow-defaults') ?? {}).map(
      (name): SectionCheck => ({ path: ['flow-defaults', name], assert: () => assertKnown(name) }),
    ),
    ...Object.keys(values.section('flow-settings') ?? {}).map(
      (pattern): SectionCheck => ({ path: ['flow-settings', pattern], assert: () => assertMatching(pattern) }),
    ),
  ]
}
