/** Declares the limits of a program when it starts. Limits that were set at run time stay until their declaration changes. */

import { createHash } from 'node:crypto'
import { IncompatibleVersion, InvalidArgument } from '../../core/errors.ts'
import { assertOptions, defined } from '../../core/options.ts'
import { MAX_NAME_BYTES, nameFault } from '../../core/texts.ts'
import type { ReadRecord, RecordStore } from '../records/record-store.ts'
import { changeRecord } from './change-record.ts'
import type { LimitRecord } from './record.ts'
import { assertKeyOrPattern, type LimitSettings, toLimitRecord } from './settings.ts'

/** The limit of a key, as a program declares it. */
export interface DeclaredLimit extends LimitSettings {
  /**
   * The version of the declaration; 0 by default. A lower version than that on the board changes nothing, so that processes of an older
   * release do not undo what a newer release has declared.
   */
  readonly version?: number
}

/** The limits of a program. */
export interface DeclaredLimits {
  /** The limits by key or pattern. */
  readonly declare: Readonly<Record<string, DeclaredLimit>>
  /** The name of the program: with `prune`, it removes only limits of its own. */
  readonly owner?: string
  /** Whether to remove the limits of this owner that are no longer declared; false by default. */
  readonly prune?: boolean
}

/** The result of a declaration: the keys by what has happened to their limits. */
export interface DeclareLimitsReport {
  readonly put: string[]
  /** The limits that a newer version has declared: they stay as they are. */
  readonly newer: string[]
  /** The limits that another owner has declared: they stay as they are. */
  readonly foreign: string[]
  /** The limits that were set at run time: they stay as they are. */
  readonly edited: string[]
  readonly pruned: string[]
  /** The limits that are not declared any more, and stay because a newer version has declared them. */
  readonly kept: string[]
}

/** The outcome of a declared limit. `marked`: a limit set at run time stays, and gets the mark of the declaration. */
type LimitOutcome = 'put' | 'unchanged' | 'newer' | 'foreign' | 'edited' | 'marked'

/** The owner of limits whose declaration names no owner: another owner may take them over. */
const DEFAULT_OWNER = 'default'

/** Parses the option `limits` of a conductor. @throws InvalidArgument */
export function toDeclaredLimits(options: DeclaredLimits): Required<DeclaredLimits> {
  assertOptions(options, { declare: true, owner: true, prune: true }, 'limits')
  const { declare, owner = DEFAULT_OWNER, prune = false } = options
  if (typeof declare !== 'object' || declare === null || Array.isArray(declare))
    throw new InvalidArgument("limits: declare must be an object, as in { 'tenant/*': { concurrency: 3 } }")
  if (typeof owner !== 'string' || owner === '' || nameFault(owner) !== undefined)
    throw new InvalidArgument(`limits: owner must be a non-empty text of at most ${MAX_NAME_BYTES} bytes`)
  if (prune && options.owner === undefined)
    throw new InvalidArgument(
      'limits: prune needs an owner, as in owner: "billing": it removes what this owner no longer declares',
    )
  toWantedLimits(declare)
  return { declare, owner, prune }
}

/** A declared limit whose settings were checked. */
interface WantedLimit {
  readonly key: string
  readonly version: number
  readonly settings: Omit<LimitRecord, 'by' | 'at'>
}

/** Checks declared limits. @throws InvalidArgument for an invalid key, limit or version */
export function toWantedLimits(declare: DeclaredLimits['declare']): WantedLimit[] {
  return Object.entries(declare).map(([key, limit]) => {
    const { version = 0, ...settings }: DeclaredLimit = Object(limit)
    assertKeyOrPattern(key)
    if (!Number.isSafeInteger(version) || version < 0)
      throw new InvalidArgument(`limit ${key}: version must be a whole number from 0, got ${version}`)
    return { key, version, settings: toLimitRecord(key, settings) }
  })
}

/** The program that declares limits, and the board's records of them. */
interface LimitDeclaration {
  readonly owner: string
  readonly prune: boolean
  readonly by: Pick<LimitRecord, 'by' | 'at'>
  readonly store: RecordStore<LimitRecord>
  /** Applies the current rate of a key to the tokens that were taken. */
  readonly applyRates: (key: string) => Promise<void>
}

/** Sets the limits that a program declares, and removes the limits that it no longer declares. */
export async function writeDeclaredLimits(
  wanted: readonly WantedLimit[],
  declaration: LimitDeclaration,
): Promise<DeclareLimitsReport> {
  const { owner, prune, store, applyRates } = declaration
  const report: DeclareLimitsReport = { put: [], newer: [], foreign: [], edited: [], pruned: [], kept: [] }
  for (const { key, version, settings } of wanted) {
    const outcome = await putLimit({ key, version, settings }, declaration)
    if (outcome === 'unchanged') continue
    report[outcome === 'marked' ? 'edited' : outcome].push(key)
    if (outcome === 'put') await applyRates(key)
  }
  // A newer release declares limits, too, and this one does not know which: so it must not prune.
  if (!prune || report.newer.length > 0) return report
  const newest = Math.max(0, ...wanted.map(({ version }) => version))
  for (const { id } of await store.list()) {
    if (wanted.some(({ key }) => key === id)) continue
    const outcome = await pruneLimit(id, { owner, newest, store })
    if (outcome) report[outcome].push(id)
    if (outcome === 'pruned') await applyRates(id)
  }
  return report
}

/** Sets a declared limit, unless the limit on the board stays. Returns the outcome. */
async function putLimit(
  { key, version, settings }: WantedLimit,
  { owner, by, store }: LimitDeclaration,
): Promise<LimitOutcome> {
  const declared = { owner, version, digest: toDigest(settings) }
  let outcome: LimitOutcome = 'unchanged'
  await changeRecord(store, key, (found) => {
    outcome = compareLimit(found, declared)
    if (outcome === 'put') return { ...settings, ...by, declared }
    return outcome === 'marked' && found && !('error' in found) ? { ...found.value, declared } : 'keep'
  })
  return outcome
}

/** Removes a limit that its owner no longer declares. Returns undefined for a limit of another owner. */
async function pruneLimit(
  key: string,
  { owner, newest, store }: Pick<LimitDeclaration, 'owner' | 'store'> & { readonly newest: number },
): Promise<'pruned' | 'kept' | undefined> {
  let outcome: 'pruned' | 'kept' | undefined
  await changeRecord(store, key, (found) => {
    outcome = compareUndeclared(found, { owner, newest })
    return outcome === 'pruned' ? undefined : 'keep'
  })
  return outcome
}

/**
 * Returns the outcome of a declaration for the limit on the board. A limit set at run time stays until the declaration changes, as
 * schedules do.
 */
function compareLimit(
  found: ReadRecord<LimitRecord> | undefined,
  declared: Required<LimitRecord>['declared'],
): LimitOutcome {
  if (!found) return 'put'
  if ('error' in found) {
    if (found.error instanceof IncompatibleVersion) return 'newer'
    throw found.error
  }
  const isSame = toDigest(found.value) === declared.digest
  const known = found.value.declared
  if (!known) return isSame ? 'put' : 'marked'
  if (known.owner !== declared.owner && known.owner !== DEFAULT_OWNER) return 'foreign'
  if (known.version > declared.version) return 'newer'
  if (known.digest !== declared.digest) return 'put'
  if (known.owner === declared.owner && known.version === declared.version) return isSame ? 'unchanged' : 'edited'
  return isSame ? 'put' : 'marked'
}

/** Returns the outcome for a limit that is not declared; undefined if this owner has never declared it. */
function compareUndeclared(
  found: ReadRecord<LimitRecord> | undefined,
  { owner, newest }: { readonly owner: string; readonly newest: number },
): 'pruned' | 'kept' | undefined {
  if (!found || 'error' in found || found.value.declared?.owner !== owner) return undefined
  return found.value.declared.version > newest ? 'kept' : 'pruned'
}

/** Returns the mark of the declaration that a limit has, for the limit that replaces it at run time. */
export function toDeclaredMark(found: ReadRecord<LimitRecord> | undefined): Pick<LimitRecord, 'declared'> {
  return found && !('error' in found) ? defined({ declared: found.value.declared }) : {}
}

/** Returns a digest of the settings of a limit, without who has set it. */
function toDigest({ concurrency, rate, fair }: Omit<LimitRecord, 'by' | 'at'>): string {
  const settings = [concurrency, rate && [rate.limit, rate.perMs, rate.burst], fair]
  return createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 32)
}
