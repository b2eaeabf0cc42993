/**
 * The paths of a board on ZooKeeper. DEFAULT_PATH, `job`, `.lock`, `.trash` and `.entities` are TaskFlow's names.
 *
 *     <path>                              board record
 *     <path>/job0000000042                the posting (persistent, sequential)
 *     <path>/job0000000042.lock           the owner; its existence is the claim (ephemeral)
 *     <path>/.trash/job0000000042         the posting, who trashed it, when, why
 *     <path>/.entities/<kind>/<name>      a participant (ephemeral)
 *     <path>/.permits/<resource>/x        the job that owns the resource exclusively (ephemeral)
 *     <path>/.permits/<resource>/s-<job>  a job that shares the resource (ephemeral)
 *     <path>/.keys/<key>                  the uuid of the job that was posted with the key
 *     <path>/.cancel/<job>                who cancelled the job, and why
 *     <path>/<job>/…, <path>/.waits/…     which jobs depend on which: see `parts/dependency-parts.ts`
 *     <path>/.gate                        whether the board is paused
 *     <path>/.records/<kind>/<id>         a record: a schedule, a limit; a removed record has no value
 *     <dirname>/.<basename>-sessions/…    a client's marker (ephemeral), outside the watched tree
 *     <dirname>/.<basename>-sessions/.limits/<key>/<n>  a slot of a limit (ephemeral): see `parts/limit-reservations.ts`
 *     <dirname>/.<basename>-sessions/.history/…  jobs that have ended: see `parts/history-journal.ts`
 *     <dirname>/.<basename>-sessions/.batches/…  batches and their jobs: see `batch-nodes.ts`
 */
import { createHash } from 'node:crypto'
import type { WatchEvent } from '../../../../zookeeper/index.ts'
import type { BoardChange } from '../../../contract/index.ts'

export const DEFAULT_PATH = '/taskflow/jobs'

const JOB_PATTERN = /^job\d{10,20}$/
const MIN_NAME_LENGTH = 'job0000000000'.length
const LOCK_NAME = '.lock'
const TRASH_NAME = '.trash'
const ENTITIES_NAME = '.entities'
const PERMITS_NAME = '.permits'
const KEYS_NAME = '.keys'
const CANCEL_NAME = '.cancel'
const WAITS_NAME = '.waits'
const GATE_NAME = '.gate'
const RECORDS_NAME = '.records'

/** The maximum length of a name. Longer names are hashed: a znode's name is part of every request about it. */
const MAX_NAME_LENGTH = 200

export class ZooKeeperLayout {
  readonly path: string
  readonly trashFolder: string
  readonly entitiesFolder: string
  readonly permitsFolder: string
  readonly keysFolder: string
  readonly cancelFolder: string
  readonly gate: string
  /** Created with the first record of a board. */
  readonly recordsFolder: string
  /** Created with the first job that depends on another one. */
  readonly waitsFolder: string
  readonly sessionsFolder: string

  constructor(path: string) {
    const cut = path.lastIndexOf('/')
    this.path = path
    this.trashFolder = `${path}/${TRASH_NAME}`
    this.entitiesFolder = `${path}/${ENTITIES_NAME}`
    this.permitsFolder = `${path}/${PERMITS_NAME}`
    this.keysFolder = `${path}/${KEYS_NAME}`
    this.cancelFolder = `${path}/${CANCEL_NAME}`
    this.gate = `${path}/${GATE_NAME}`
    this.recordsFolder = `${path}/${RECORDS_NAME}`
    this.waitsFolder = `${path}/${WAITS_NAME}`
    this.sessionsFolder = `${path.slice(0, cut)}/.${path.slice(cut + 1)}-sessions`
  }

  /** The folders of a new board. */
  get folders(): readonly string[] {
    return [this.trashFolder, this.entitiesFolder, this.permitsFolder, this.keysFolder, this.cancelFolder]
  }

  /** Returns whether a child of the board's path may have this name. */
  isKnownChild(name: string): boolean {
    const known = [...this.folders, this.gate, this.recordsFolder, this.waitsFolder]
    return isJob(name) || toLockedJob(name) !== undefined || known.includes(`${this.path}/${name}`)
  }

  /** The path of a new posting, to which ZooKeeper appends the digits. */
  get newPosting(): string {
    return `${this.path}/job`
  }

  posting(id: string): string {
    return `${this.path}/${id}`
  }

  lock(id: string): string {
    return `${this.path}/${id}${LOCK_NAME}`
  }

  trash(id: string): string {
    return `${this.trashFolder}/${id}`
  }

  entityKind(kind: string): string {
    return `${this.entitiesFolder}/${encodeNodeName(kind)}`
  }

  entity(kind: string, name: string): string {
    return `${this.entityKind(kind)}/${encodeNodeName(name)}`
  }

  resource(name: string): string {
    return `${this.permitsFolder}/${encodeNodeName(name)}`
  }

  isResource(path: string): boolean {
    return path.startsWith(`${this.permitsFolder}/`) && !path.includes('/', this.permitsFolder.length + 1)
  }

  exclusivePermit(resource: string): string {
    return `${this.resource(resource)}/x`
  }

  sharedPermit(resource: string, id: string): string {
    return `${this.resource(resource)}/s-${id}`
  }

  key(name: string): string {
    return `${this.keysFolder}/${encodeNodeName(name)}`
  }

  cancel(id: string): string {
    return `${this.cancelFolder}/${id}`
  }

  /** Returns the path of a dependent job under the job on which it depends. */
  dependent(id: string, name: string): string {
    return `${this.posting(id)}/${name}`
  }

  wait(id: string): string {
    return `${this.waitsFolder}/${id}`
  }

  waitFor(id: string, other: string): string {
    return `${this.wait(id)}/${other}`
  }

  recordKind(kind: string): string {
    return `${this.recordsFolder}/${encodeNodeName(kind)}`
  }

  record({ kind, id }: { readonly kind: string; readonly id: string }): string {
    return `${this.recordKind(kind)}/${encodeNodeName(id)}`
  }

  /** Created with the first claim that takes from a limit. */
  get limitsFolder(): string {
    return `${this.sessionsFolder}/.limits`
  }

  limitKey(key: string): string {
    return `${this.limitsFolder}/${encodeNodeName(key)}`
  }

  limitSlot(key: string, slot: number): string {
    return `${this.limitKey(key)}/${slot}`
  }

  /** Created with the first job that ends. */
  get historyFolder(): string {
    return `${this.sessionsFolder}/.history`
  }

  /** Created with the first batch. */
  get batchesFolder(): string {
    return `${this.sessionsFolder}/.batches`
  }

  batch(uuid: string): string {
    return `${this.batchesFolder}/${encodeNodeName(uuid)}`
  }

  batchState(uuid: string): string {
    return `${this.batch(uuid)}/state`
  }

  batchOpen(uuid: string): string {
    return `${this.batch(uuid)}/open`
  }

  batchMember(uuid: string, job: string): string {
    return `${this.batchOpen(uuid)}/${encodeNodeName(job)}`
  }

  batchFailed(uuid: string): string {
    return `${this.batch(uuid)}/failed`
  }

  /** @param id the id that the job had when it went to the trash */
  failedMember(uuid: string, id: string): string {
    return `${this.batchFailed(uuid)}/${id}`
  }

  marker(client: string): string {
    return `${this.sessionsFolder}/${client}`
  }

  toJobId(path: string): string {
    return path.slice(path.lastIndexOf('/') + 1)
  }

  /** Converts watch events to changes of the board; events that do not concern jobs are left out. */
  toChanges(batch: readonly WatchEvent[]): BoardChange[] {
    const changes: BoardChange[] = []
    for (const event of batch) {
      const change = this.toJobChange(event) ?? this.toFolderChange(event)
      if (change) changes.push(change)
    }
    return changes
  }

  /** Converts the event of a posting or a lock to a change of the job; undefined for other events, and for a lock that was written. */
  toJobChange({ type, path }: WatchEvent): BoardChange | undefined {
    const name = path.slice(this.path.length + 1)
    if (isJob(name)) return { kind: POSTING_CHANGES[type], id: name }
    const job = toLockedJob(name)
    if (job === undefined) return undefined
    if (type === 'created') return { kind: 'claimed', id: job }
    return type === 'deleted' ? { kind: 'released', id: job } : undefined
  }

  /** Converts the event of a znode in a folder of the board to a change of a job; undefined if it concerns none. */
  toFolderChange({ type, path }: WatchEvent): BoardChange | undefined {
    const [folder = '', inside = '', deeper] = path.slice(this.path.length + 1).split('/')
    if (folder === WAITS_NAME && deeper === undefined)
      return type === 'deleted' && isJob(inside) ? { kind: 'ready', id: inside } : undefined
    if (type !== 'created') return undefined
    const kind = Object.hasOwn(FOLDER_CHANGES, folder) ? FOLDER_CHANGES[folder] : undefined
    return kind && isJob(inside) ? { kind, id: inside } : undefined
  }
}

const POSTING_CHANGES = {
  created: 'posted',
  deleted: 'gone',
  dataChanged: 'updated',
  childrenChanged: 'updated',
} as const satisfies Record<WatchEvent['type'], BoardChange['kind']>

const FOLDER_CHANGES: Readonly<Record<string, BoardChange['kind']>> = {
  [TRASH_NAME]: 'trashed',
  [CANCEL_NAME]: 'cancelled',
}

export function isJob(name: string): boolean {
  return JOB_PATTERN.test(name)
}

/** Compares two ids by their number: the id with more digits is larger. */
export function compareDigits(a: string, b: string): number {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0)
}

/** Returns whether ZooKeeper numbered the job. The numbers that posters create are longer. */
export function isNumberedByServer(name: string): boolean {
  return isJob(name) && name.length === MIN_NAME_LENGTH
}

/** Returns the job of a lock with this name; undefined for other names. */
export function toLockedJob(name: string): string | undefined {
  if (!name.endsWith(LOCK_NAME)) return undefined
  const job = name.slice(0, -LOCK_NAME.length)
  return isJob(job) ? job : undefined
}

/**
 * Encodes any text as the name of a znode, different for different texts. Characters that a path cannot hold are
 * escaped; a text that is long, or has a lone surrogate, which cannot be escaped, is hashed.
 */
export function encodeNodeName(text: string): string {
  const escaped = text.isWellFormed() ? encodeURIComponent(text).replace(/^\./, '%2E').replaceAll('~', '%7E') : ''
  if (escaped.length <= MAX_NAME_LENGTH && escaped !== '') return escaped
  return `~${createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex')}`
}

/** Returns whether the name of a znode is a hash, from which its text cannot be found. */
export function isHashed(name: string): boolean {
  return name.startsWith('~')
}

/** Returns the text that a name of a znode encodes; undefined for a name that no board has made. */
export function decodeName(name: string): string | undefined {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}
