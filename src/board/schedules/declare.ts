/** Puts the schedules that a program declares when it starts, and removes the schedules that it no longer declares. */

import { createHash } from 'node:crypto'
import { encodePlain } from '../../core/codec.ts'
import { Duplicate, InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { MAX_NAME_BYTES, nameFault } from '../../core/texts.ts'
import type { RecordStore } from '../records/record-store.ts'
import { DEFAULT_OWNER, SCHEDULES, type ScheduleRecord } from './record.ts'
import { type DeclaredSchedule, type ScheduleDefinition, toDefinitions } from './schedule.ts'
import type { ScheduleHost } from './schedule-host.ts'
import type { Schedules } from './schedules.ts'

/** The schedules of a program. */
export interface DeclaredSchedules {
  readonly declare: readonly DeclaredSchedule[]
  /** The name of the program: with `prune`, it removes only schedules of its own. */
  readonly owner?: string
  /** Whether schedules of this owner that are no longer declared are removed; false by default. */
  readonly prune?: boolean
}

/** The result of a declaration. */
export interface DeclareReport {
  readonly put: readonly string[]
  /** The schedules that a newer version has declared: they were left as they are. */
  readonly newer: readonly string[]
  /** The schedules that another owner has declared: they were left as they are. */
  readonly foreign: readonly string[]
  readonly pruned: readonly string[]
  /** The schedules that are not declared any more, and stay because a newer version has declared them. */
  readonly kept: readonly string[]
}

/** Parses the option `schedules` of a conductor. @throws InvalidArgument for invalid options */
export function toDeclaredSchedules(
  option: readonly DeclaredSchedule[] | DeclaredSchedules,
): Required<DeclaredSchedules> {
  const options: DeclaredSchedules = Array.isArray(option) ? { declare: option } : (option as DeclaredSchedules)
  assertOptions(options, { declare: true, owner: true, prune: true }, 'schedules')
  const { declare, owner = DEFAULT_OWNER, prune = false } = options
  if (!Array.isArray(declare)) throw new InvalidArgument("schedules: declare must be a list of schedule('id', …)")
  if (typeof owner !== 'string' || owner === '' || nameFault(owner) !== undefined)
    throw new InvalidArgument(`schedules: owner must be a non-empty text of at most ${MAX_NAME_BYTES} bytes`)
  if (prune && options.owner === undefined)
    throw new InvalidArgument(
      'schedules: prune needs an owner, as in owner: "billing": it removes what this owner no longer declares',
    )
  for (const one of declare)
    if (typeof Object(one).id !== 'string' || !Object(one).spec)
      throw new InvalidArgument("schedules: each must be made by schedule('id', spec, flow, store)")
  return { declare, owner, prune }
}

/**
 * Puts each declared schedule that differs from the schedule on the board and whose version is not lower. A schedule that was edited at run
 * time stays as it is until its declaration changes, and a paused one stays paused.
 *
 * @throws InvalidArgument, InvalidPosting, MissingDependencies for an invalid declaration, Duplicate for an id that is declared twice: then
 *   none is put
 */
export async function declareSchedules(
  { declare, owner, prune }: Required<DeclaredSchedules>,
  { schedules, host }: { readonly schedules: Schedules; readonly host: Pick<ScheduleHost, 'records'> },
): Promise<DeclareReport> {
  const all = await Promise.all(
    declare.map(async (declared) => ({
      version: declared.options.version ?? 0,
      isEnabled: declared.options.enabled ?? true,
      definitions: await toDefinitions(declared),
    })),
  )
  const ids = new Set<string>()
  for (const { id } of all.flatMap(({ definitions }) => definitions)) {
    // Also where a tenant makes it: schedule('a/b') and tenant b of schedule('a').
    if (ids.has(id)) throw new Duplicate(`schedule ${id} is declared twice`)
    ids.add(id)
  }
  const report = {
    put: [] as string[],
    newer: [] as string[],
    foreign: [] as string[],
    pruned: [] as string[],
    kept: [] as string[],
  }
  for (const { version, isEnabled, definitions } of all)
    for (const { id, ...definition } of definitions) {
      const digest = toDigest(isEnabled ? definition : { ...definition, enabled: false })
      const outcome = await schedules.putDefinition(id, definition, { isEnabled, declared: { owner, version, digest } })
      if (outcome === 'put' || outcome === 'newer' || outcome === 'foreign') report[outcome].push(id)
    }
  // A process of an older release does not know what a newer one declares.
  if (!prune || report.newer.length > 0) return report
  const newest = Math.max(0, ...all.map(({ version }) => version))
  const store = host.records.of(SCHEDULES)
  for (const { id } of await store.list()) {
    if (ids.has(id)) continue
    const outcome = await pruneSchedule(id, { store, owner, newest })
    if (outcome) report[outcome].push(id)
  }
  return report
}

/** Removes a schedule that its owner does not declare any more. A firing may change it meanwhile. */
async function pruneSchedule(
  id: string,
  { store, owner, newest }: { store: RecordStore<ScheduleRecord>; owner: string; newest: number },
): Promise<'pruned' | 'kept' | undefined> {
  while (true) {
    const record = await store.get(id)
    if (!record || 'error' in record || record.value.declared?.owner !== owner) return undefined
    if (record.value.declared.version > newest) return 'kept'
    if ((await store.write([{ id, revision: record.revision, value: undefined }])).done) return 'pruned'
  }
}

function toDigest(definition: ScheduleDefinition & { readonly enabled?: false }): string {
  // Earlier releases did not store which options were given: without this, each upgrade would undo what was edited at run time.
  const { explicit: _, ...job } = definition.job
  return createHash('sha256')
    .update(encodePlain({ ...definition, job }, 'msgpack'))
    .digest('hex')
    .slice(0, 32)
}
