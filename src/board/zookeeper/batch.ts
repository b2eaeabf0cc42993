/**
 * Several transactions as one multi: which go together, and whose each of its operations is.
 *
 * Two that are about the same job, key or resource never share a batch, except those who share a resource. So each of a
 * batch would be granted or refused alone as it is with its neighbours, and the operation that a multi failed at proves
 * the refusal of its own transaction and says nothing of the others.
 */
import type { Acl, CheckOp, GetDataOp, Op, ReadData, Reading, Stat, ZooKeeperError } from '../../zookeeper/index.ts'
import type { Step } from './transactions.ts'

/** The largest batch: what comes after it waits for the next, and a server should not be kept from others for long. */
const MOST_OPERATIONS = 1_024
const MOST_BYTES = 512 * 1_024
/** So many are looked at for one batch: those that have to wait for others about the same must not hide who is behind them. */
const MOST_LOOKED_AT = 4 * MOST_OPERATIONS
/** A part that is tried where connections broke under the whole: see {@link Turn.broken}. */
const PART = 1 / 4
/** What an operation adds to its path, data and ACL, about. */
const OVERHEAD = 64
/** What an identity of an ACL adds to its texts. */
const IDENTITY = 12

/** A job, key or resource that a transaction is about. */
export interface Touch {
  readonly name: string
  readonly mode: 'alone' | 'together'
}

/** A transaction was applied, together with others in one of the server. */
export interface Done {
  /** Everything of one batch has the same. */
  readonly zxid: bigint
  readonly session: bigint
}

/** What a multi answered, for one transaction of it. */
export interface Applied extends Done {
  /** One per step; undefined for a step that was left out. */
  readonly results: readonly ({ readonly path: string } | Stat | undefined)[]
}

export interface Transaction<T> {
  /** For errors: `claim of job …`. */
  readonly what: string
  readonly steps: readonly Step[]
  readonly touches: readonly Touch[]
  /** Checked once for all of a batch that have it. */
  readonly guard?: CheckOp
  /** Never sent in another session: settles belong to the session that claimed. */
  readonly session?: bigint
  /** Asked when its batch was refused because of another: what the changes told since it was made say against it. */
  overtaken?(): Error | undefined
  /** What shows whether it would be refused: looked at, together, when its batch was refused because of another that has it. */
  readonly doubt?: Doubt
  /** What is done about a refused step before the transaction is tried again; undefined where the refusal stands. */
  mend?(step: Step, error: ZooKeeperError): (() => Promise<unknown>) | undefined
  done(applied: Applied): T
  /** It was applied; the rest of the answer is lost. */
  recovered(done: Done): T | Promise<T>
  /** What a refusal means. Without a step the server refused the multi as such. */
  refused(error: ZooKeeperError, step: Step | 'guard' | undefined): Error
}

export interface Doubt {
  readonly op: GetDataOp
  /** What speaks against the transaction. */
  readonly judge: (found: Reading<ReadData>) => Error | undefined
}

/** A transaction that waits for its turn. */
export interface Turn {
  readonly transaction: Transaction<unknown>
  /** On the monotonic clock: how long it waits for a connection. */
  readonly until: number
  /** Steps that are left out by now; almost always there are none. */
  leftOut?: Set<Step>
  /**
   * How many connections broke when it was sent, and it had not been done. It may be too much for a server that takes less
   * than servers do as they ship: so it goes out in smaller and smaller company.
   */
  broken?: number
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * Takes from the waiting, in their order, those that may go together; the rest stay, in their order.
 *
 * @param acl what goes out with every create
 */
export function gather(
  waiting: readonly Turn[],
  acl: readonly Acl[] = [],
): { readonly batch: readonly Turn[]; readonly rest: Turn[] } {
  const batch: Turn[] = []
  const passed: Turn[] = []
  const touched = new Map<string, Touch['mode']>()
  const perCreate = bytesOf(acl)
  const part = PART ** (waiting[0]?.broken ?? 0)
  let operations = 0
  let bytes = 0
  let next = 0
  for (; next < Math.min(waiting.length, MOST_LOOKED_AT); next++) {
    const turn = waiting[next]
    if (!turn) break
    const { steps, touches } = turn.transaction
    const clash = touches.some(({ name, mode }) => clashes(touched.get(name), mode))
    if (!clash) {
      operations += steps.length
      bytes += sizeWith(steps, perCreate)
      if (batch.length > 0 && (operations > MOST_OPERATIONS * part || bytes > MOST_BYTES * part)) break
    }
    // One that is passed over keeps its place before later ones about the same.
    for (const { name, mode } of touches) touched.set(name, clash ? 'alone' : mode)
    if (clash) passed.push(turn)
    else batch.push(turn)
  }
  return { batch, rest: passed.concat(waiting.slice(next)) }
}

function clashes(there: Touch['mode'] | undefined, wanted: Touch['mode']): boolean {
  return there !== undefined && (there === 'alone' || wanted === 'alone')
}

/** In bytes, about. @param acl what goes out with every create */
export function sizeOf(steps: readonly Step[], acl: readonly Acl[]): number {
  return sizeWith(steps, bytesOf(acl))
}

function bytesOf(acl: readonly Acl[]): number {
  return acl.reduce((sum, { scheme, id }) => sum + IDENTITY + scheme.length + Buffer.byteLength(id), 0)
}

function sizeWith(steps: readonly Step[], perCreate: number): number {
  return steps.reduce((sum, { op }) => {
    const data = 'data' in op ? (op.data?.length ?? 0) : 0
    return sum + OVERHEAD + op.path.length + data + (op.type === 'create' ? perCreate : 0)
  }, 0)
}

/** Who is to blame for an operation of the multi: one transaction's step, or everybody with this guard. */
export type Blame =
  | { readonly turn: Turn; readonly step: Step }
  | { readonly guarded: readonly Turn[] }
  | { readonly first: true }

export interface Composed {
  readonly ops: readonly Op[]
  blame(index: number): Blame | undefined
  /** What the answer of the whole says to this one. */
  resultsOf(turn: Turn, results: Applied['results']): Applied['results']
}

/** @param first the operation that begins every multi */
export function compose(first: Op, turns: readonly Turn[]): Composed {
  const ops: Op[] = [first]
  const blames: Blame[] = [{ first: true }]
  for (const guarded of guards(turns)) {
    const guard = guarded[0]?.transaction.guard
    if (!guard) continue
    ops.push(guard)
    blames.push({ guarded })
  }
  const places = new Map<Turn, number>()
  for (const turn of turns) {
    places.set(turn, ops.length)
    for (const step of turn.transaction.steps) {
      if (turn.leftOut?.has(step)) continue
      ops.push(step.op)
      blames.push({ turn, step })
    }
  }
  return {
    ops,
    blame: (index) => blames[index],
    resultsOf: (turn, results) => {
      let place = places.get(turn) ?? 0
      return turn.transaction.steps.map((step) => (turn.leftOut?.has(step) ? undefined : results[place++]))
    },
  }
}

function guards(turns: readonly Turn[]): Iterable<Turn[]> {
  const guarded = new Map<string, Turn[]>()
  for (const turn of turns) {
    const { guard } = turn.transaction
    if (!guard) continue
    const name = `${guard.path} ${guard.version}`
    const same = guarded.get(name)
    if (same) same.push(turn)
    else guarded.set(name, [turn])
  }
  return guarded.values()
}
