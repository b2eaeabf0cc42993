/** Checks what options of the section `conductor` say together: each may be right by itself. */
import { QueueChoice } from '../../../board/internal.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { assertWeightCount } from '../board-flags.ts'
import { toConductorSettings, toQueueTexts, toServed } from '../conductor-flags.ts'
import type { Path } from './faults.ts'
import type { Config } from './schema.ts'
import { toList } from './typed-options.ts'
import type { ConfigValues } from './values.ts'

/** A check, and the place to which its error belongs. */
interface ConductorCheck {
  readonly path: Path
  /** @throws InvalidArgument */
  readonly assert: () => void
}

/** Returns the checks of the section, with the values that are right by themselves. */
export function conductorChecks(values: ConfigValues, { board }: Pick<Config, 'board'>): readonly ConductorCheck[] {
  const section = values.section('conductor')
  if (!section) return []
  const { health, metrics, queues, weights } = section
  const at = (key: string, assert: () => void): ConductorCheck => ({ path: ['conductor', key], assert })
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
