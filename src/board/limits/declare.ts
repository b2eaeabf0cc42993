/** Declares the limits of a program when it starts: see `records/declared-records.ts`. */
import { createHash } from 'node:crypto'
import {
  type DeclarationOptions,
  toDeclaration,
  toDeclaredVersion,
  type WantedRecord,
} from '../records/declared-records.ts'
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

/** The limits of a program, by key or pattern. */
export interface DeclaredLimits extends DeclarationOptions<DeclaredLimit> {}

/** Parses the option `limits` of a conductor. @throws InvalidArgument */
export function toDeclaredLimits(options: DeclaredLimits): Required<DeclaredLimits> {
  const declaration = toDeclaration(options, { what: 'limits', example: "{ 'tenant/*': { concurrency: 3 } }" })
  toWantedLimits(declaration.declare)
  return declaration
}

/** Checks declared limits. @throws InvalidArgument for an invalid key, limit or version */
export function toWantedLimits(declare: DeclaredLimits['declare']): WantedRecord<Omit<LimitRecord, 'by' | 'at'>>[] {
  return Object.entries(declare).map(([id, limit]) => {
    const { version, ...settings }: DeclaredLimit = Object(limit)
    assertKeyOrPattern(id)
    return { id, version: toDeclaredVersion(version, `limit ${id}`), value: toLimitRecord(id, settings) }
  })
}

/** Returns a digest of the settings of a limit, without who has set it. */
export function digestOfLimit({ concurrency, rate, fair }: Omit<LimitRecord, 'by' | 'at'>): string {
  const settings = [concurrency, rate && [rate.limit, rate.perMs, rate.burst], fair]
  return createHash('sha256').update(JSON.stringify(settings)).digest('hex').slice(0, 32)
}
