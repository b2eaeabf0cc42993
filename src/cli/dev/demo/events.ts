/** What happens in a demo, in the order in which it is seen. */
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
  /** How often the job has been claimed, this time included. */
  readonly run: number
}

export type DemoEventBody =
  /** `from` says where a throw-away server comes from; absent of a board that was named. */
  | { readonly event: 'board'; readonly board: string; readonly persistence: string; readonly from?: string }
  | { readonly event: 'ready'; readonly conductor: string }
  | { readonly event: 'posted'; readonly jobs: readonly PostedPhoto[] }
  | ({ readonly event: 'begun' | 'finished' } & TaskEventFields)
  | ({ readonly event: 'killed'; readonly pid: number } & TaskEventFields)
  /** `after`: in milliseconds, since its owner was killed. */
  | ({ readonly event: 'takenOver'; readonly from: string; readonly after: number } & TaskEventFields)
  | { readonly event: 'complete' | 'trashed'; readonly job: string }

/** `at`: in milliseconds since the demo began. */
export type DemoEvent = { readonly at: number } & DemoEventBody

export type EmitDemoEvent = (happening: DemoEventBody) => void

export class Timeline {
  readonly #began = monotonic()
  readonly #onEvent: (event: DemoEvent) => void

  constructor(onEvent: (event: DemoEvent) => void) {
    this.#onEvent = onEvent
  }

  /** In whole milliseconds, since the demo began. */
  get now(): number {
    return Math.round(monotonic() - this.#began)
  }

  readonly emit: EmitDemoEvent = (happening) => this.#onEvent({ at: this.now, ...happening })
}
