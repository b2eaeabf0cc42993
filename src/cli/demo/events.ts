/** What happens in a demo, in the order in which it is seen. */
import { monotonic } from '../../core/time.ts'
import type { TaskName } from './script.ts'

export interface PostedPhoto {
  readonly uuid: string
  readonly job: string
}

interface OfTask {
  readonly conductor: string
  readonly job: string
  readonly task: TaskName
  /** How often the job has been claimed, this time included. */
  readonly run: number
}

export type Happening =
  /** `from` says where a throw-away server comes from; absent of a board that was named. */
  | { readonly event: 'board'; readonly board: string; readonly persistence: string; readonly from?: string }
  | { readonly event: 'ready'; readonly conductor: string }
  | { readonly event: 'posted'; readonly jobs: readonly PostedPhoto[] }
  | ({ readonly event: 'begun' | 'finished' } & OfTask)
  | ({ readonly event: 'killed'; readonly pid: number } & OfTask)
  /** `after`: in milliseconds, since its owner was killed. */
  | ({ readonly event: 'takenOver'; readonly from: string; readonly after: number } & OfTask)
  | { readonly event: 'complete' | 'trashed'; readonly job: string }

/** `at`: in milliseconds since the demo began. */
export type DemoEvent = { readonly at: number } & Happening

export type Tell = (happening: Happening) => void

export class Timeline {
  readonly #began = monotonic()
  readonly #told: (event: DemoEvent) => void

  constructor(told: (event: DemoEvent) => void) {
    this.#told = told
  }

  /** In whole milliseconds, since the demo began. */
  get now(): number {
    return Math.round(monotonic() - this.#began)
  }

  readonly tell: Tell = (happening) => this.#told({ at: this.now, ...happening })
}
