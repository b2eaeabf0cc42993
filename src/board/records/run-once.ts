/**
 * Runs work once for a board: in the process that holds the entity of the work, unless a record says that the work is done.
 *
 * | what the process finds | what it does |
 * |---|---|
 * | the record | nothing: the work is done |
 * | no record, and the entity is free | take the entity, look at the record again, run the work, write the record |
 * | no record, and another process has the entity | wait, and look again: that one writes the record, or fails, or its session ends |
 *
 * The entity ends with the session of its process. So a dead process does not block the others, and no lease must be renewed. If a process
 * dies after the work and before it has written the record, the work is run again: it must be idempotent.
 */
import { createSharedController } from '../../core/async/abort.ts'
import { Conflict, Duplicate } from '../../core/errors.ts'
import { sleep } from '../../core/time.ts'
import type { Entity } from '../contract/index.ts'
import { fieldsOf, parseStored, text, time } from '../model/stored.ts'
import type { BoardRecords } from './board-records.ts'
import type { RecordKind } from './record-store.ts'

/** The record of work that is done. */
interface DoneOnce {
  readonly at: number
  readonly by: string
}

const DONE: RecordKind<DoneOnce> = { name: 'once', format: 1, parse: parseDone }
const ENTITY_KIND = 'jobboard-once'
/** The pause between two looks while another process runs the work. */
const LOOK_PAUSE_MS = 500

export interface OnceHost {
  readonly who: string
  readonly records: BoardRecords
  register(entity: Omit<Entity, 'instance'>): Promise<AsyncDisposable>
  /** Calls `lost` when the session ends, until the result is called. */
  onLost(lost: () => void): () => void
  now(): number
}

export interface RunOnceOptions {
  /** The name of the work; unique on the board. */
  readonly id: string
  /** `signal` fires when the session is lost: another process may run the work from then on. */
  readonly work: (signal: AbortSignal) => Promise<unknown>
  readonly signal: AbortSignal
}

/**
 * Resolves with `ran` when this process has run the work, and with `done` when the work was run before, here or elsewhere.
 *
 * @throws the error of the work, which then counts as not run; the reason of the signal; NotConnected
 */
export async function runOnce(host: OnceHost, { id, work, signal }: RunOnceOptions): Promise<'ran' | 'done'> {
  const store = host.records.of(DONE)
  while (!(await store.get(id))) {
    signal.throwIfAborted()
    const entity = await takeEntity(host, id)
    if (!entity) {
      await sleep(LOOK_PAUSE_MS, { signal })
      continue
    }
    const lost = createSharedController()
    const off = host.onLost(() => lost.abort(new Conflict(`the session was lost while ${id} was run`)))
    try {
      // Another process may have ended the work between the look and the registration.
      if (await store.get(id)) return 'done'
      await work(AbortSignal.any([signal, lost.signal]))
      lost.signal.throwIfAborted()
      await store.write([{ id, revision: undefined, value: { at: host.now(), by: host.who } }])
      return 'ran'
    } finally {
      off()
      await entity[Symbol.asyncDispose]()
    }
  }
  return 'done'
}

async function takeEntity(host: OnceHost, id: string): Promise<AsyncDisposable | undefined> {
  try {
    return await host.register({ kind: ENTITY_KIND, name: id, metadata: { who: host.who } })
  } catch (error) {
    if (error instanceof Duplicate) return undefined
    throw error
  }
}

function parseDone(value: unknown, id: string): DoneOnce {
  return parseStored(value, fieldsOf<DoneOnce>({ at: time, by: text }), `record once/${id}`)
}
