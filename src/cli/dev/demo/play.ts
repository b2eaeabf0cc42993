/** The sequence of the demo: two conductors, some jobs, and a death in the middle of one of them. */
import type { Job, JobBoard } from '../../../board/index.ts'
import { rejectOnAbort } from '../../../core/async/abort.ts'
import { monotonic } from '../../../core/time.ts'
import type { CliContext } from '../../context.ts'
import { ConductorProcess } from './conductor-process.ts'
import { flowName, KILL_AT_TASK, PHOTOS, type TaskLine, type TaskName } from './script.ts'
import type { DemoEnvironment } from './stage.ts'

/** The names of the conductors; the first one is killed. */
const CONDUCTORS = ['one', 'two'] as const

export interface DemoScenarioOptions {
  readonly environment: DemoEnvironment
  readonly board: JobBoard
  readonly timeline: Timeline
  /** The environment of the conductors. */
  readonly env: CliContext['env']
  readonly cwd: string
}

/** A job whose owner was killed. */
export interface KilledOwner {
  readonly job: string
  readonly from: string
  /** The time of the death on the demo's timeline, in milliseconds. */
  readonly at: number
  /** The conductor that took the job over, and the time until then; absent before the takeover. */
  readonly by?: string
  readonly after?: number
}

export class DemoScenario implements AsyncDisposable {
  readonly #options: DemoScenarioOptions
  readonly #conductors: readonly ConductorProcess[]
  /** The posted jobs, in order; all of them belong to the demo. */
  readonly jobs: Job[] = []
  victim: KilledOwner | undefined

  constructor(options: DemoScenarioOptions) {
    const { environment, env, cwd } = options
    const { folder, tag } = environment
    this.#options = options
    this.#conductors = CONDUCTORS.map((shown) => {
      const onLine = (line: TaskLine) => this.#handleLine(shown, line)
      return new ConductorProcess({ shown, name: `${shown}${tag}`, folder, env, cwd, onLine })
    })
  }

  /** Resolves when every job has left the board. @throws JobboardError if a conductor fails; the signal's reason */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#conductors.map((conductor) => this.#start(conductor, signal)))
    await this.#post()
    const ends = Promise.all(this.jobs.map((job) => this.#followJob(job, signal)))
    await rejectOnAbort(Promise.race([ends, ...this.#survivors().map((conductor) => conductor.failed())]), signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#conductors.map((conductor) => conductor[Symbol.asyncDispose]()))
  }

  async #start(conductor: ConductorProcess, signal: AbortSignal): Promise<void> {
    await conductor.start(signal)
    this.#options.timeline.emit({ event: 'ready', conductor: conductor.shown })
  }

  async #post(): Promise<void> {
    const { board, environment, timeline } = this.#options
    for (const photo of PHOTOS) {
      const store = { photo, folder: environment.work }
      this.jobs.push(await board.post(flowName(environment.tag), store, { name: photo }))
    }
    timeline.emit({ event: 'posted', jobs: this.jobs.map(({ uuid, name }) => ({ uuid, job: name })) })
  }

  async #followJob(job: Job, signal: AbortSignal): Promise<void> {
    const state = await job.wait({ signal })
    this.#options.timeline.emit({ event: state === 'COMPLETE' ? 'complete' : 'trashed', job: job.name })
  }

  #survivors(): readonly ConductorProcess[] {
    return this.#conductors.filter(({ shown }) => shown !== CONDUCTORS[0])
  }

  #handleLine(conductor: string, line: TaskLine): void {
    const { timeline } = this.#options
    const { step, pid, ...of } = line
    if (step === 'halfway') {
      const dies = conductor === CONDUCTORS[0] && line.task === KILL_AT_TASK && this.victim === undefined
      if (dies) this.#kill(conductor, line)
      return
    }
    if (step === 'begun') this.#noteTakeover(conductor, line)
    timeline.emit({ event: step, conductor, ...of })
  }

  #kill(conductor: string, { step: _step, pid, ...of }: TaskLine): void {
    const { timeline } = this.#options
    this.victim = { job: of.job, from: conductor, at: timeline.now }
    const dying = this.#conductors.find(({ shown }) => shown === conductor)
    // The disposal learns from `ended` that the conductor has ended; nothing here can fail.
    void dying?.kill()
    timeline.emit({ event: 'killed', conductor, pid, ...of })
  }

  #noteTakeover(conductor: string, { job, task, run }: TaskLine): void {
    const { timeline } = this.#options
    if (this.victim?.job !== job || this.victim.by !== undefined) return
    const { from, at } = this.victim
    const after = timeline.now - at
    this.victim = { ...this.victim, by: conductor, after }
    timeline.emit({ event: 'takenOver', conductor, job, task, run, from, after })
  }
}

export interface PostedPhoto {
  readonly uuid: string
  readonly job: string
}

interface TaskEventFields {
  readonly conductor: string
  readonly job: string
  readonly task: TaskName
  /** The number of claims of the job, including this one. */
  readonly run: number
}

export type DemoEventBody =
  /** `place` describes the throw-away place of the board; absent for a board that was named. */
  | { readonly event: 'board'; readonly board: string; readonly persistence: string; readonly place?: string }
  | { readonly event: 'ready'; readonly conductor: string }
  | { readonly event: 'posted'; readonly jobs: readonly PostedPhoto[] }
  | ({ readonly event: 'begun' | 'finished' } & TaskEventFields)
  | ({ readonly event: 'killed'; readonly pid: number } & TaskEventFields)
  /** `after` is the time since the owner was killed, in milliseconds. */
  | ({ readonly event: 'takenOver'; readonly from: string; readonly after: number } & TaskEventFields)
  | { readonly event: 'complete' | 'trashed'; readonly job: string }

/** `at` is the time since the demo began, in milliseconds. */
export type DemoEvent = { readonly at: number } & DemoEventBody

export type EmitDemoEvent = (happening: DemoEventBody) => void

export class Timeline {
  readonly #began = monotonic()
  readonly #onEvent: (event: DemoEvent) => void

  constructor(onEvent: (event: DemoEvent) => void) {
    this.#onEvent = onEvent
  }

  /** The time since the demo began, in whole milliseconds. */
  get now(): number {
    return Math.round(monotonic() - this.#began)
  }

  readonly emit: EmitDemoEvent = (happening) => this.#onEvent({ at: this.now, ...happening })
}
