/** Checks what the file says of flows against the code of its flows. Loads the modules, as conductors do. */
import { assertFixedPosting } from '../../../board/internal.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import { suggestion } from '../../../core/texts.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import type { Path } from './faults.ts'
import { ownEntriesOf } from './tenant-schedules.ts'
import type { ConfigValues } from './values.ts'

/** A check, and the place to which its error belongs. */
interface FlowCheck {
  readonly path: Path
  /** Checks one part of the file. @throws InvalidArgument */
  readonly assert: () => void
}

/** Returns the checks: each flow declares a valid posting, and schedules and defaults name flows of the modules. */
export function flowChecks(values: ConfigValues, flows: readonly AnyFlow[]): readonly FlowCheck[] {
  const names = [...new Set(flows.map(({ name }) => name))]
  const assertKnown = (name: string) => {
    if (!names.includes(name))
      throw new InvalidArgument(`the modules of flows export no flow ${name}${suggestion(name, names)}`)
  }
  const schedules = Object.entries(values.section('schedules') ?? {}).map(([id, { flow }]) => {
    return { path: ['schedules', id, 'flow'], flow }
  })
  const ofTenants = ownEntriesOf(values).map(({ path, section }) => ({ path: [...path, 'flow'], flow: section.flow }))
  return [
    ...flows.map((flow): FlowCheck => ({ path: ['flows'], assert: () => assertFixedPosting(flow) })),
    ...[...schedules, ...ofTenants].flatMap(({ path, flow }): readonly FlowCheck[] =>
      flow === undefined ? [] : [{ path, assert: () => assertKnown(flow) }],
    ),
    ...Object.keys(values.section('flow-defaults') ?? {}).map(
      (name): FlowCheck => ({ path: ['flow-defaults', name], assert: () => assertKnown(name) }),
    ),
  ]
}
