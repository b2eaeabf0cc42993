/**
 * A child process, from its start to its end.
 *
 *     starting ──ready──→ idle ⇄ busy
 *        │                 │      │
 *        │                 └──────┴──retire──→ retiring
 *        └────────────────────┴───────────────────┴──exit──→ dead
 *
 * The object is the child's identity: neither its pid nor a file descriptor is, because the system uses them again. Work is
 * settled by its answer, or at the end of the process: while the process lives, the work may go on.
 *
 * Work is always stopped in the same steps, whatever the reason: the signal of the work fires; after `graceMs`, SIGTERM to the process
 * group; 100 ms later, SIGKILL to the process group, repeated until the process has ended. After SIGTERM the child is not used again.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { createDeferred, type Deferred } from '../core/async/abort.ts'
import { asError, ChildDied, ChildUnavailable, InvalidState, OutOfMemory } from '../core/errors.ts'
import { failureOf, WrappedFailure } from '../core/failure.ts'
import { formatBytes } from '../core/memory-size.ts'
import { shortenText } from '../core/texts.ts'
import { monotonic, startTimer } from '../core/time.ts'
import { Channel } from './channel.ts'
import { type ChildEnd, type EndedChild, toChildEnd, toDeathError, toStartError } from './child-end.ts'
import { parseFromChild } from './from-child.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import { readOomKills, readResidentMemory } from './memory.ts'
import { ChildOutput } from './output.ts'
import { signalGroup } from './process-group.ts'
import { CHANNEL_FD, type FromChild, LIFELINE_FD, PROTOCOL_VERSION, type ToChild, toMessageLimit } from './protocol.ts'
import { Answers, type OnAsk } from './questions.ts'

/** The time between SIGTERM and SIGKILL. */
const SIGTERM_TO_SIGKILL_MS = 100
/** The time after which SIGKILL is sent again. */
const KILL_AGAIN_MS = 1_000
/** The time in which a child must end after it has closed its channel, or has announced its end. */
const EXIT_MS = 1_000
/** The time for the rest of the output after the process has ended: a process that it has started may hold the pipes open. */
const OUTPUT_AFTER_EXIT_MS = 2_000

export type ChildState = 'starting' | 'idle' | 'busy' | 'retiring' | 'dead'

export interface ChildOptions extends HeartbeatOptions {
  /** The number of this child in its pool: never used again. */
  readonly number: number
  /** The URL of the worker module. */
  readonly worker: string
  /** Sent to the worker when it is opened; plain data. */
  readonly settings: unknown
  readonly execArgv: readonly string[]
  /** The environment of the process. */
  readonly env: NodeJS.ProcessEnv
  /** The limit of a result, in bytes. */
  readonly maxMessage: number
  /** The path of the program of children, for tests; by default it is beside this file. */
  readonly program?: string | undefined
  /** The memory that the process may use, in bytes. */
  readonly memory: number | undefined
  readonly startTimeoutMs: number
  /** @throws an error if the child may not be used */
  readonly assertFacts: (facts: unknown) => void
  readonly onLine: (child: Child, line: string) => void
  readonly onDroppedLines: (child: Child, lines: number) => void
}

export interface ChildWork {
  readonly work: unknown
  /** Returns for how many milliseconds, at least, this process has the right to this work, if that differs from the pool's. */
  readonly workLeftMs?: (() => number) | undefined
  readonly onNote: (note: unknown) => void
  readonly onAsk: OnAsk
}

interface WorkUnderWay extends ChildWork {
  readonly number: number
  readonly answer: Deferred<unknown>
  readonly answers: Answers
  hasBegun: boolean
  /** Settles the work; called at the end of the process when the child was stopped meanwhile. */
  settle: (() => void) | undefined
}

/** Rejects work that the child has not begun: another child can do it. */
export class NotBegun extends Error {}

export class Child {
  readonly number: number
  readonly startedAt = new Date()
  readonly #options: ChildOptions
  readonly #ready = createDeferred()
  readonly #closed = createDeferred<ChildEnd>()
  readonly #output: ChildOutput
  readonly #heartbeat: Heartbeat
  #process: ChildProcess | undefined
  #channel: Channel | undefined
  #state: ChildState = 'starting'
  #work: WorkUnderWay | undefined
  #workCount = 0
  #startTimer: NodeJS.Timeout | undefined
  #escalationTimer: NodeJS.Timeout | undefined
  #disconnectTimer: NodeJS.Timeout | undefined
  /** Whether the process has ended; its output may follow. */
  #hasExited = false
  /** The reason why the child ends, if it is known: a signal was sent, its start has failed, or its worker has refused. Rejects the work under way. */
  #killedFor: { readonly error: unknown } | undefined
  #residentMemory: number | undefined
  #oomKillsBefore: number | undefined
  #startedMs = monotonic()

  constructor(options: ChildOptions) {
    this.#options = options
    this.number = options.number
    this.#heartbeat = new Heartbeat(options)
    // It may be rejected before the pool awaits it.
    this.#ready.promise.catch(() => undefined)
    this.#output = new ChildOutput({
      onLine: (line) => options.onLine(this, line),
      onDropped: (lines) => options.onDroppedLines(this, lines),
    })
  }

  get state(): ChildState {
    return this.#state
  }

  /** The process id; undefined if the process could not be started. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** The memory that the process may use, in bytes. */
  get memory(): number | undefined {
    return this.#options.memory
  }

  /** The resident memory when it was last read, in bytes. */
  get residentMemory(): number | undefined {
    return this.#residentMemory
  }

  /** The number of pieces of work that it has begun. */
  get workCount(): number {
    return this.#workCount
  }

  get ageMs(): number {
    return monotonic() - this.#startedMs
  }

  /** Whether it may still be given work: it is neither being stopped nor retired. */
  get isUsable(): boolean {
    return this.#killedFor === undefined && ['starting', 'idle', 'busy'].includes(this.#state)
  }

  /** Resolves when its worker is open. @throws ChildUnavailable */
  get ready(): Promise<void> {
    return this.#ready.promise
  }

  /** Resolves when the process has ended. Never rejects. */
  get closed(): Promise<ChildEnd> {
    return this.#closed.promise
  }

  // --- Start ------------------------------------------------------------------------------------------------------

  /** Starts the process; resolves when its worker is open. @throws ChildUnavailable with the reason and the last output */
  async start(): Promise<void> {
    const { worker, settings, execArgv, memory, startTimeoutMs, silenceMs, maxMessage } = this.#options
    // Not awaited: a child that is killed meanwhile must not be started after that.
    void readOomKills().then((kills) => {
      this.#oomKillsBefore = kills
    })
    const limit = memory === undefined ? [] : [`--max-old-space-size=${Math.floor(memory / 1_024 ** 2)}`]
    const process = this.#spawn([String(silenceMs), String(toMessageLimit(maxMessage))], [...execArgv, ...limit])
    if (!process) return this.#ready.promise
    this.#process = process
    this.#startedMs = monotonic()
    process.on('error', (error) => this.#onProcessError(error))
    process.on('exit', (exitCode, signal) => void this.#onExit(exitCode, signal))
    for (const stream of [process.stdout, process.stderr]) if (stream) this.#output.read(stream)
    // Without a free file descriptor there are no streams, and an error event follows.
    const pipes = process.stdio as readonly unknown[] | undefined
    const [channel, lifeline] = [pipes?.[CHANNEL_FD], pipes?.[LIFELINE_FD]]
    if (channel instanceof Duplex) this.#openChannel(channel)
    if (lifeline instanceof Duplex) this.#heartbeat.attach(lifeline)
    const onStartTimeout = () =>
      this.kill(new ChildUnavailable(`child ${this.number} was not ready within ${startTimeoutMs} ms`))
    this.#startTimer = startTimer(onStartTimeout, startTimeoutMs)
    this.#send({ kind: 'start', worker, settings })
    await this.#ready.promise
  }

  /** Returns undefined if the process cannot be started at all: then the child is dead. */
  #spawn(args: readonly string[], execArgv: readonly string[]): ChildProcess | undefined {
    const { program = childMain(), env } = this.#options
    try {
      return spawn(process.execPath, [...execArgv, program, ...args], {
        ...{ env, detached: true, windowsHide: true },
        stdio: ['ignore', 'pipe', 'pipe', 'pipe', 'pipe'],
      })
    } catch (error) {
      // Later, as the other errors of a start are: the pool is still making this child.
      process.nextTick(() => this.#onProcessError(asError(error)))
      return undefined
    }
  }

  #openChannel(stream: Duplex): void {
    this.#channel = new Channel(stream, {
      maxReceived: toMessageLimit(this.#options.maxMessage),
      onMessage: (message) => this.#receive(parseFromChild(message)),
      onFault: (cause) => this.#onBrokenProtocol(cause),
      onClose: () => this.#endSoon('has closed its channel'),
    })
    this.#channel.open()
  }

  async #onReady({ protocol, facts }: Extract<FromChild, { kind: 'ready' }>): Promise<void> {
    const { memory } = this.#options
    this.#residentMemory = this.pid === undefined ? undefined : await readResidentMemory(this.pid)
    if (this.#state !== 'starting' || this.#killedFor) return
    try {
      const used = this.#residentMemory ?? 0
      if (memory !== undefined && used > memory)
        throw new OutOfMemory(
          `a child uses ${formatBytes(used)} before its first task, more than its limit of ${formatBytes(memory)}: raise the limit`,
        )
      if (protocol !== PROTOCOL_VERSION)
        throw new ChildUnavailable(
          `child ${this.number} runs another release of this package: install the package again, and restart this process`,
        )
      this.#options.assertFacts(facts)
    } catch (error) {
      this.kill(error)
      return
    }
    clearTimeout(this.#startTimer)
    this.#state = 'idle'
    this.#ready.resolve()
  }

  // --- Work -------------------------------------------------------------------------------------------------------

  /**
   * Does a piece of work. The child must be idle.
   *
   * @throws the failure of the work, as WrappedFailure; ChildDied, OutOfMemory; NotBegun; the reason of {@link stopWork}
   */
  run(work: ChildWork): Promise<unknown> {
    this.#workCount += 1
    this.#state = 'busy'
    const answer = createDeferred<unknown>()
    const answers = new Answers(work.onAsk, (message) => this.#send(message))
    this.#work = { ...work, number: this.#workCount, answer, answers, hasBegun: false, settle: undefined }
    this.#heartbeat.startWork(work.workLeftMs)
    this.#output.clear()
    this.#send({ kind: 'run', number: this.#workCount, work: work.work })
    return answer.promise
  }

  /**
   * Stops the work under way, in the steps above. The work is rejected with the reason unless the worker answers in time.
   *
   * @param options.graceMs the time between the signal of the work and SIGTERM
   */
  stopWork(reason: unknown, { graceMs }: { readonly graceMs: number }): void {
    if (!this.#work || this.#killedFor) return
    this.#send({ kind: 'cancel', number: this.#work.number, reason: failureOf(reason) })
    clearTimeout(this.#escalationTimer)
    this.#escalationTimer = startTimer(() => this.#terminate(reason), graceMs)
  }

  /** Ends the process at once, with all processes that it has started. Work under way is rejected with the reason. */
  kill(reason: unknown): void {
    this.#killedFor ??= { error: reason }
    clearTimeout(this.#escalationTimer)
    if (this.#state === 'dead' || this.#hasExited) return
    if (this.pid !== undefined) signalGroup(this.pid, 'SIGKILL')
    this.#escalationTimer = setTimeout(() => this.kill(reason), KILL_AGAIN_MS)
  }

  /** Ends an idle child, which disposes of its worker first. After `graceMs` it is killed. */
  async retire({ graceMs }: { readonly graceMs: number }): Promise<void> {
    if (this.#state === 'idle') {
      this.#state = 'retiring'
      this.#send({ kind: 'retire' })
      const reason = new ChildDied(`child ${this.number} did not end within ${graceMs} ms when it was retired`)
      this.#escalationTimer = startTimer(() => this.#terminate(reason), graceMs)
    }
    await this.closed
  }

  #terminate(reason: unknown): void {
    this.#killedFor ??= { error: reason }
    this.#send({ kind: 'terminate' })
    if (this.pid !== undefined) signalGroup(this.pid, 'SIGTERM')
    this.#escalationTimer = setTimeout(() => this.kill(reason), SIGTERM_TO_SIGKILL_MS)
  }

  /** Handles a message of the child. @throws an error for a message that does not fit: the channel closes, and the child is killed */
  #receive(message: FromChild): void {
    if (message.kind === 'ready') {
      void this.#onReady(message)
      return
    }
    if (message.kind === 'refused') {
      if (this.#state !== 'starting') throw new InvalidState('it refuses to start, and has started')
      this.#killedFor ??= { error: new WrappedFailure([message.failure]) }
      this.#endSoon('has refused to start, and has not ended')
      return
    }
    const work = this.#work
    // A late message of earlier work, or one after the answer.
    if (!work || work.number !== message.number || work.settle) return
    if (message.kind === 'begun') work.hasBegun = true
    else if (message.kind === 'note') work.onNote(message.note)
    else if (message.kind === 'ask') work.answers.onQuestion(message)
    else if (message.kind === 'drop') work.answers.drop(message.question)
    else if (message.kind === 'fault') {
      const why = `${this.#describe()} has ended, because code that does not belong to this work has failed`
      // The work has not failed by itself: this must not count as a failed attempt.
      const error = new ChildUnavailable(why, { cause: new WrappedFailure([message.failure]) })
      this.#onAnswer(work, { isLast: true, settle: () => work.answer.reject(error) })
    } else if (message.kind === 'done')
      this.#onAnswer(work, { isLast: false, settle: () => work.answer.resolve(message.result) })
    else {
      const error = new WrappedFailure([message.failure])
      this.#onAnswer(work, { isLast: message.isLast, settle: () => work.answer.reject(error) })
    }
  }

  /** Kills a child that ought to end by itself, unless it does so in time. A child that ends closes its channel, too. */
  #endSoon(why: string): void {
    if (this.#hasExited || this.#state === 'dead') return
    clearTimeout(this.#disconnectTimer)
    const kill = () => this.kill(new ChildDied(`child ${this.number} (pid ${this.pid}) ${why}`))
    this.#disconnectTimer = setTimeout(kill, EXIT_MS)
  }

  /** Kills a child that has sent a wrong message: its other messages cannot be trusted either. */
  #onBrokenProtocol(cause: Error): void {
    const why = `${this.#describe()} has sent a message that is not one of the pool: ${shortenText(cause.message)}`
    this.kill(new ChildDied(why, { cause }))
  }

  #onAnswer(work: WorkUnderWay, { isLast, settle }: { readonly isLast: boolean; readonly settle: () => void }): void {
    work.answers.end()
    if (this.#killedFor || isLast) {
      // The process is about to end: the work is settled when it has ended.
      work.settle = settle
      this.#endSoon('was about to end, and has not ended')
      return
    }
    if (this.#options.memory === undefined) this.#settleAndIdle(settle)
    else void this.#settleAfterMemory(work, settle)
  }

  /** Reads the memory before the next work: that must not be blamed for what earlier work has left. */
  async #settleAfterMemory(work: WorkUnderWay, settle: () => void): Promise<void> {
    work.settle = settle
    if (this.pid !== undefined) this.#residentMemory = (await readResidentMemory(this.pid)) ?? this.#residentMemory
    // If the process has ended, or is about to, its end settles the work.
    if (this.#work === work && !this.#killedFor) this.#settleAndIdle(settle)
  }

  #settleAndIdle(settle: () => void): void {
    clearTimeout(this.#escalationTimer)
    this.#work = undefined
    this.#state = 'idle'
    settle()
  }

  // --- Supervision ------------------------------------------------------------------------------------------------

  /** Shows the child that the pool lives, and kills a child that has not answered for long: its process is stopped. */
  beat(): void {
    if (this.#state === 'dead' || this.#heartbeat.beat({ isBusy: this.#state === 'busy' })) return
    this.kill(
      new ChildDied(
        `child ${this.number} (pid ${this.pid}) has not answered for too long: its process is probably stopped (SIGSTOP)`,
      ),
    )
  }

  /** Reads how much memory the process uses, and kills it if that is too much while it works. */
  async checkMemory(): Promise<void> {
    const { memory } = this.#options
    if (this.pid === undefined || this.#state === 'dead') return
    this.#residentMemory = (await readResidentMemory(this.pid)) ?? this.#residentMemory
    if (memory === undefined || (this.#residentMemory ?? 0) <= memory || this.#state !== 'busy') return
    this.kill(new OutOfMemory(`${this.#describe()} uses more than the ${formatBytes(memory)} that it may use`))
  }

  // --- End --------------------------------------------------------------------------------------------------------

  #onProcessError(error: Error): void {
    // The process could not be started; other errors of the channel are followed by its end.
    if (this.pid !== undefined) return
    this.#killedFor ??= {
      error: new ChildUnavailable(`a child could not be started: ${error.message}`, { cause: error }),
    }
    this.#close({ exitCode: null, signal: null, isExpected: false, reason: error.message, isOutOfMemory: false })
  }

  async #onExit(exitCode: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const process = this.#process
    this.#heartbeat.noteSilence()
    this.#hasExited = true
    this.#channel?.readRest()
    // The system may use the pid again soon: no timer may signal it.
    for (const timer of [this.#escalationTimer, this.#disconnectTimer]) clearTimeout(timer)
    const closed = new Promise<void>((resolve) => process?.once('close', () => resolve()))
    const late = createDeferred()
    const timer = setTimeout(late.resolve, OUTPUT_AFTER_EXIT_MS)
    // Processes that the child has started may still run in its group.
    if (process?.pid !== undefined) signalGroup(process.pid, 'SIGKILL')
    const oomKills = await readOomKills()
    await Promise.race([closed, late.promise])
    clearTimeout(timer)
    this.#close(
      toChildEnd({
        ...{ exitCode, signal, killedFor: this.#killedFor?.error, lastLines: this.#output.lastLines },
        isExpected: this.#killedFor !== undefined || this.#state === 'retiring',
        isKilledByKernel: (oomKills ?? 0) > (this.#oomKillsBefore ?? 0),
      }),
    )
  }

  #close(end: ChildEnd): void {
    if (this.#state === 'dead') return
    const wasStarting = this.#state === 'starting'
    this.#state = 'dead'
    clearTimeout(this.#startTimer)
    for (const timer of [this.#escalationTimer, this.#disconnectTimer]) clearTimeout(timer)
    this.#output[Symbol.dispose]()
    // A process that the child has started may hold the pipes open, and they would keep this process alive.
    for (const stream of [this.#process?.stdout, this.#process?.stderr]) stream?.destroy()
    this.#heartbeat[Symbol.dispose]()
    this.#channel?.[Symbol.dispose]()
    const ended = { who: this.#describe(), end, lastLines: this.#output.lastLines }
    if (wasStarting) this.#ready.reject(toStartError(ended, this.#killedFor?.error))
    this.#settleWork(ended)
    this.#closed.resolve(end)
  }

  #settleWork(ended: EndedChild): void {
    const work = this.#work
    const { wasSilent, allowedMs } = this.#heartbeat
    this.#work = undefined
    if (!work) return
    work.answers.end()
    if (work.settle) work.settle()
    else if (this.#killedFor) work.answer.reject(this.#killedFor.error)
    else if (!work.hasBegun) work.answer.reject(new NotBegun(`${ended.who} ${ended.end.reason}`))
    else work.answer.reject(toDeathError(ended, wasSilent ? allowedMs : undefined))
  }

  #describe(): string {
    const memory = this.#residentMemory === undefined ? '' : `, ${formatBytes(this.#residentMemory)} when last read`
    return `child ${this.number} (pid ${this.pid}, ${Math.round(this.ageMs / 1_000)} s old${memory})`
  }

  #send(message: ToChild): void {
    // The end of the process settles the work.
    if (this.#channel?.isOpen) this.#channel.send(message).catch(() => undefined)
  }
}

/** Returns the path of the child's program, which is beside this file, built or not. */
function childMain(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`./child-main.${extension}`, import.meta.url))
}
