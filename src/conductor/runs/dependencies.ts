/** Reads how the jobs ended after which a job is run, for `ctx.dependencies` of its tasks. */
import type { Job } from '../../board/index.ts'
import type { JobEndsRequest, KnownJobEnd } from '../../board/internal.ts'
import type { ContextDependencies } from '../../flow/index.ts'
import type { Persistence } from '../../persistence/index.ts'
import type { KnownFlows } from '../claiming/known-flows.ts'

/** Reads how jobs ended, from the board and the logbooks. */
export type EndReader = (request: JobEndsRequest) => Promise<readonly KnownJobEnd[]>

/** Returns what reads the dependencies of a job; undefined for a job that has none. */
export function dependenciesOf(
  { after }: Pick<Job, 'after'>,
  {
    readEnds,
    persistence,
    flows,
  }: { readonly readEnds: EndReader; readonly persistence: Persistence; readonly flows: KnownFlows },
): ContextDependencies | undefined {
  if (after.length === 0) return undefined
  const uuids = after.map(({ uuid }) => uuid)
  const findFlow = ({ name, version }: { readonly name: string; readonly version: string }) =>
    flows.find({ flow: name, version })
  return { read: () => readEnds({ uuids, persistence, findFlow }) }
}
