/** The events of a demo, in the order in which they are seen. */
import { monotonic } from '../../../core/time.ts'
import type { TaskName } from './script.ts'

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
  /** `from` is the origin of a throw-away server; absent for a board that was named. */
  | { readonly event: 'board'; readonly board: string; readonly persistence: string; readonly from?: string }
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
