/**
 * Declares records of a program when it starts, such as limits. Records that were set at run time stay until their declaration changes.
 *
 * | the record on the board | outcome |
 * |---|---|
 * | none | `put` |
 * | cannot be read here, because a newer release has written it | `newer`: stays |
 * | not declared so far, the same content | `put`: gets the mark of the declaration |
 * | not declared so far, other content | `edited`: stays, and gets the mark |
 * | declared by another owner, unless that has no name | `foreign`: stays |
 * | declared by a newer version | `newer`: stays |
 * | its declaration differs from this one | `put`, also if it was changed at run time since |
 * | its declaration is the same, and it was changed at run time since | `edited`: stays |
 * | its declaration is the same, and so is its content | unchanged; `put` if the version or the owner is new |
 * | declared by this owner, and not any more, with `prune` | `pruned`, also if it was changed at run time since; `kept` if a newer version has declared it |
 */
import { IncompatibleVersion, InvalidArgument } from '../../core/errors.ts'
import { assertOptions } from '../../core/options.ts'
import { MAX_NAME_BYTES, nameFault } from '../../core/texts.ts'
import { changeRecord } from './change-record.ts'
import type { ReadRecord, RecordStore } from './record-store.ts'

/** The mark of a declaration in a record. The digest is of the declared content, from which the record differs after a change at run time. */
export interface DeclarationMark {
  readonly owner: string
  readonly version: number
  readonly digest: string
}

/** What all declared records have: who has set them, when, and the mark of the declaration. */
export interface DeclarableRecord {
  readonly by: string
  readonly at: number
  readonly declared?: DeclarationMark
}

/** What a program declares, by name. */
export interface DeclarationOptions<V> {
  readonly declare: Readonly<Record<string, V>>
  /** The name under which the program declares: with `prune`, it removes only what was declared under this name. */
  readonly owner?: string
  /** Whether to remove what this owner has declared and declares no longer; false by default. */
  readonly prune?: boolean
}

/** The result of a declaration: the ids by what has happened to their records. */
export interface DeclarationReport {
  readonly put: string[]
  /** The records that a newer version has declared: they stay as they are. */
  readonly newer: string[]
  /** The records that another owner has declared: they stay as they are. */
  readonly foreign: string[]
  /** The records that were set at run time: they stay as they are. */
  readonly edited: string[]
  readonly pruned: string[]
  /** The records that are not declared any more, and stay because a newer version has declared them. */
  readonly kept: string[]
}

/** The outcome of a declared record. `marked`: a record set at run time stays, and gets the mark of the declaration. */
type Outcome = 'put' | 'unchanged' | 'newer' | 'foreign' | 'edited' | 'marked'

/** The owner of records whose declaration names no owner: another owner may take them over. */
const DEFAULT_OWNER = 'default'

/** Checks the form of a declaration. @param example the value of `declare` in messages @throws InvalidArgument */
export function toDeclaration<V>(
  options: DeclarationOptions<V>,
  { what, example }: { readonly what: string; readonly example: string },
): Required<DeclarationOptions<V>> {
  assertOptions(options, { declare: true, owner: true, prune: true }, what)
  const { declare, owner = DEFAULT_OWNER, prune = false } = options
  if (typeof declare !== 'object' || declare === null || Array.isArray(declare))
    throw new InvalidArgument(`${what}: declare must be an object, as in ${example}`)
  if (typeof owner !== 'string' || owner === '' || nameFault(owner) !== undefined)
    throw new InvalidArgument(`${what}: owner must be a non-empty text of at most ${MAX_NAME_BYTES} bytes`)
  if (prune && options.owner === undefined)
    throw new InvalidArgument(
      `${what}: prune needs an owner, as in owner: "billing": it removes what this owner no longer declares`,
    )
  return { declare, owner, prune }
}

/** Checks the version of a declared record; 0 by default. @throws InvalidArgument */
export function toDeclaredVersion(version: unknown, what: string): number {
  if (version === undefined) return 0
  if (Number.isSafeInteger(version) && Number(version) >= 0) return Number(version)
  throw new InvalidArgument(`${what}: version must be a whole number from 0, got ${String(version)}`)
}

/** A record to declare. */
export interface WantedRecord<T> {
  readonly id: string
  readonly version: number
  readonly value: T
}

export interface Declaration<T extends DeclarableRecord> {
  readonly owner: string
  readonly prune: boolean
  readonly store: RecordStore<T>
  /** Returns a digest of the content of a record, without who has set it. */
  readonly digestOf: (value: T) => string
  /** Called after a record was put or removed. */
  readonly onChanged?: (id: string) => Promise<void>
}

/** Writes the records that a program declares, and removes the records that it no longer declares. */
export async function writeDeclared<T extends DeclarableRecord>(
  wanted: readonly WantedRecord<T>[],
  declaration: Declaration<T>,
): Promise<DeclarationReport> {
  const { prune, store, onChanged } = declaration
  const report: DeclarationReport = { put: [], newer: [], foreign: [], edited: [], pruned: [], kept: [] }
  for (const each of wanted) {
    const outcome = await put(each, declaration)
    if (outcome === 'unchanged') continue
    report[outcome === 'marked' ? 'edited' : outcome].push(each.id)
    if (outcome === 'put') await onChanged?.(each.id)
  }
  // A newer release declares records, too, and this one does not know which: so it must not prune.
  if (!prune || report.newer.length > 0) return report
  const newest = Math.max(0, ...wanted.map(({ version }) => version))
  for (const { id } of await store.list()) {
    if (wanted.some((each) => each.id === id)) continue
    const outcome = await pruneRecord(id, { ...declaration, newest })
    if (outcome) report[outcome].push(id)
    if (outcome === 'pruned') await onChanged?.(id)
  }
  return report
}

/** Writes a declared record, unless the record on the board stays. Returns the outcome. */
async function put<T extends DeclarableRecord>(
  { id, version, value }: WantedRecord<T>,
  { owner, store, digestOf }: Declaration<T>,
): Promise<Outcome> {
  const declared = { owner, version, digest: digestOf(value) }
  let outcome: Outcome = 'unchanged'
  await changeRecord(store, id, (found) => {
    outcome = compare(found, { declared, digestOf })
    if (outcome === 'put') return { ...value, declared }
    return outcome === 'marked' && found && !('error' in found) ? { ...found.value, declared } : 'keep'
  })
  return outcome
}

/** Removes a record that its owner no longer declares. Returns undefined for a record of another owner. */
async function pruneRecord<T extends DeclarableRecord>(
  id: string,
  { store, ...owned }: Pick<Declaration<T>, 'owner' | 'store'> & { readonly newest: number },
): Promise<'pruned' | 'kept' | undefined> {
  let outcome: 'pruned' | 'kept' | undefined
  await changeRecord(store, id, (found) => {
    outcome = compareUndeclared(found, owned)
    return outcome === 'pruned' ? undefined : 'keep'
  })
  return outcome
}

/** Returns the outcome of a declaration for the record on the board: see the table at the top. */
function compare<T extends DeclarableRecord>(
  found: ReadRecord<T> | undefined,
  { declared, digestOf }: { readonly declared: DeclarationMark } & Pick<Declaration<T>, 'digestOf'>,
): Outcome {
  if (!found) return 'put'
  if ('error' in found) {
    if (found.error instanceof IncompatibleVersion) return 'newer'
    throw found.error
  }
  const isSame = digestOf(found.value) === declared.digest
  const known = found.value.declared
  if (!known) return isSame ? 'put' : 'marked'
  if (known.owner !== declared.owner && known.owner !== DEFAULT_OWNER) return 'foreign'
  if (known.version > declared.version) return 'newer'
  if (known.digest !== declared.digest) return 'put'
  if (known.owner === declared.owner && known.version === declared.version) return isSame ? 'unchanged' : 'edited'
  return isSame ? 'put' : 'marked'
}

/** Returns the outcome for a record that is not declared; undefined if this owner has never declared it. */
function compareUndeclared(
  found: ReadRecord<DeclarableRecord> | undefined,
  { owner, newest }: { readonly owner: string; readonly newest: number },
): 'pruned' | 'kept' | undefined {
  if (!found || 'error' in found || found.value.declared?.owner !== owner) return undefined
  return found.value.declared.version > newest ? 'kept' : 'pruned'
}

/** Returns the mark of the declaration that a record has, for the record that replaces it at run time. */
export function toDeclaredMark(found: ReadRecord<DeclarableRecord> | undefined): Pick<DeclarableRecord, 'declared'> {
  const declared = found && !('error' in found) ? found.value.declared : undefined
  return declared ? { declared } : {}
}
