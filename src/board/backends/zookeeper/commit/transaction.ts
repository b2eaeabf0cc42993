/** A transaction: its steps, the names that it touches, and what its refusals mean. `parts.ts` puts it together, `multi.ts` sends it with others. */
import type {
  CheckOp,
  GetChildrenOp,
  GetDataOp,
  Op,
  ReadData,
  ReadResult,
  Stat,
  ZooKeeperError,
} from '../../../../zookeeper/index.ts'

/** The subject of a step, by which the transaction decides what its refusal means. The steps of parts have none. */
export type StepSubject = 'posting' | 'lock' | 'cancel' | 'trash'

export interface TransactionStep {
  readonly op: Op
  readonly subject?: StepSubject
  /** Whether the step deletes a znode that may be deleted already, for example by hand: then the step is left out. */
  readonly isOptional?: boolean
  /** The sum or the journal that the step changes for several transactions at once. */
  readonly shared?: SharedSum | Journal
}

/** The meaning of a refusal: an error for the caller, or what returns the answer of the transaction. It is called once. */
export type RefusalMeaning<T> = Error | { readonly answer: () => T | Promise<T> }

/** A job, key, resource, record, batch or wait that a transaction changes. `together`: transactions with this mode may share a batch. */
export interface TouchedName {
  readonly name: string
  readonly mode: 'alone' | 'together'
}

/** A transaction that was applied, together with others in one transaction of the server. */
export interface CommittedTransaction {
  /** The transaction number of the server; the same for all transactions of a group. */
  readonly zxid: bigint
  readonly session: bigint
}

/** The part of a multi's answer that belongs to one transaction. */
export interface Applied extends CommittedTransaction {
  /** The results, one per step; undefined for a step that was left out. */
  readonly results: readonly ({ readonly path: string } | Stat | undefined)[]
}

export interface Transaction<T> {
  /** The name of the operation in errors: `claim of job …`. */
  readonly what: string
  readonly steps: readonly TransactionStep[]
  readonly touches: readonly TouchedName[]
  /** A check that is sent once for all transactions of a group that have it. */
  readonly guard?: CheckOp | undefined
  /** The amounts that the transaction adds to sums. Transactions of a group with the same sum change it together, with one step. */
  readonly additions?: readonly Addition[] | undefined
  /** The entry that the transaction adds to a journal. The entries of the transactions of a group are added together, with one step. */
  readonly entry?: JournalEntry | undefined
  /** The session in which the transaction must be sent: a settle belongs to the session that claimed. */
  readonly session?: bigint
  /**
   * Returns what a conflict with changes received since the transaction was created means. Called when its group was refused because of
   * another transaction.
   */
  getConflict?(): RefusalMeaning<T> | undefined
  /**
   * Reads that show whether the transaction would be refused. The prechecks of a group are read together when the group was refused because of
   * another transaction with prechecks: else each refusal would cost a round.
   */
  readonly prechecks?: readonly Precheck<T>[] | undefined
  /** Returns a repair to run before the transaction is tried again, or undefined if the refusal is final. */
  repair?(step: TransactionStep, error: ZooKeeperError): (() => Promise<unknown>) | undefined
  onCommitted(applied: Applied): T
  /** Called when the transaction was applied and the rest of the answer is lost. */
  onRecovered(done: CommittedTransaction): T | Promise<T>
  /** Returns what a refusal means. */
  onRefused(error: ZooKeeperError, step: RefusedStep): RefusalMeaning<T>
  /** Returns what the end of {@link session} means; ClaimLost by default. */
  onSessionOver?(): RefusalMeaning<T>
}

/** The step that was refused, or the guard; undefined if the server refused the multi as a whole. */
export type RefusedStep = TransactionStep | 'guard' | undefined

export interface Addition {
  readonly sum: SharedSum
  readonly amount: number
}

/** A number in a znode to which many transactions add. */
export interface SharedSum {
  /** Returns the step that adds what the transactions of one group add. */
  toStep(total: number): TransactionStep
  /** Called before the results of its transactions are: the step was applied. @param stat undefined if the answer was lost */
  onCommitted(total: number, stat: Stat | undefined): void
}

export interface JournalEntry {
  readonly journal: Journal
  readonly bytes: Uint8Array
}

/** A list to which many transactions add. */
export interface Journal {
  /** Returns the step that adds the entries of the transactions of one group. */
  toStep(entries: readonly Uint8Array[]): TransactionStep
}

/** A read, and what it says: `judge` returns what a refusal would mean, or undefined. */
export type Precheck<T> =
  | { readonly op: GetDataOp; readonly judge: (found: ReadResult<ReadData>) => RefusalMeaning<T> | undefined }
  | {
      readonly op: GetChildrenOp
      readonly judge: (found: ReadResult<{ readonly names: string[] }>) => RefusalMeaning<T> | undefined
    }
