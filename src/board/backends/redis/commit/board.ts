/** The parts of a board that all roles share: its keys and, once it is open, its session and the committer of its steps. */
import { InvalidState, JobboardError } from '../../../../core/errors.ts'
import type { Logger } from '../../../../core/log.ts'
import type { BackendSink } from '../../../contract/index.ts'
import { RedisLayout } from '../store/layout.ts'
import type { RedisLocation } from '../store/location.ts'
import type { Script } from '../store/scripts.ts'
import type { StepCommitter } from './committer.ts'
import type { SessionKeeper } from './keeper.ts'
import type { OwnerSession } from './owner-session.ts'
import type { Publications } from './publications.ts'
import type { StepReply } from './queued-steps.ts'
import type { ScriptStep } from './steps.ts'

/** Limit of reported faults: jobs with an invalid score in the claim order, and other damage. */
const MAX_REPORTED = 1_000
/** Limit of the length of a reported fault, in characters: keys, and names in them, can have any length. */
const MAX_FAULT_LENGTH = 1_000

export interface RedisBackendOptions {
  readonly location: RedisLocation
  readonly log: Logger
  /** Whether a missing board is created; true by default. */
  readonly create?: boolean
}

/** The parts of a board that is open. */
export interface OpenBoard {
  readonly sink: BackendSink
  readonly publications: Publications
  readonly session: OwnerSession
  readonly keeper: SessionKeeper
  readonly committer: StepCommitter
}

export class RedisBoard {
  readonly location: RedisLocation
  readonly log: Logger
  /** Whether a missing board is created. */
  readonly create: boolean
  readonly layout: RedisLayout
  /** The parts of the board; undefined until it is opened. */
  opened: OpenBoard | undefined
  readonly #reported = new Set<string>()

  /** @throws InvalidArgument for an invalid prefix */
  constructor({ location, log, create = true }: RedisBackendOptions) {
    this.location = location
    this.log = log
    this.create = create
    this.layout = new RedisLayout(location.prefix)
  }

  /** The parts of the board. @throws InvalidState until it is opened */
  get open(): OpenBoard {
    if (this.opened) return this.opened
    throw new InvalidState(`board ${this.location.uri} is not open`)
  }

  /** Sends a step. Resolves with the answer of the script. @throws as {@link StepCommitter.submit} */
  submit(step: ScriptStep): Promise<StepReply> {
    return this.open.committer.submit(step)
  }

  /** Runs a script that only reads. @throws NotConnected */
  async run(script: Script, args: readonly string[]): Promise<unknown> {
    const { session } = this.open
    const { connection, id } = session.requireAttached()
    return connection.run(script, this.layout.keys(id), args).catch(session.rethrow)
  }

  /** Runs a command that reads one key of the board. @throws NotConnected */
  async command(command: string, key: string, ...args: string[]): Promise<unknown> {
    const { session } = this.open
    const { connection } = session.requireAttached()
    return connection.command(command, this.layout.key(key), ...args).catch(session.rethrow)
  }

  /** Returns the value of a field of a hash. @throws NotConnected */
  async value(key: string, field: string): Promise<Uint8Array | undefined> {
    const value = await this.command('hget', key, field)
    return value instanceof Uint8Array ? value : undefined
  }

  /** Reports an error of the background work. */
  reportError(error: Error): void {
    this.opened?.sink.error(error)
  }

  /** Reports damage that a script has found. */
  reportDamage(fault: string): void {
    const { eviction } = this.open.keeper
    const cause = eviction ? `; this Redis evicts keys (maxmemory-policy ${eviction}), which can be the cause` : ''
    const error = new JobboardError(`${this.location.uri}: ${fault.slice(0, MAX_FAULT_LENGTH)}${cause}`)
    this.reportOnce(fault, error)
  }

  /** Reports each fault once, also if it cannot be repaired and is found repeatedly; up to {@link MAX_REPORTED} faults. */
  reportOnce(fault: string, error: Error): void {
    if (this.#reported.has(fault) || this.#reported.size >= MAX_REPORTED) return
    this.#reported.add(fault)
    this.reportError(error)
  }
}
