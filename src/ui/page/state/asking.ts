/** The question on the screen, and the messages after actions. */
import { computed, effect, signal, untracked } from '@preact/signals'
import { place } from './router.ts'

export interface Question {
  readonly title: string
  readonly text: string
  /** The label of the button that confirms. */
  readonly yes: string
  /** The number that must be typed, for actions on many jobs. */
  readonly typed?: number | undefined
  /** Whether the dialog has a field for the reason. */
  readonly reason?: boolean | undefined
  readonly danger?: boolean | undefined
  /** Fields of the form, by name. */
  readonly fields?: readonly Field[] | undefined
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'lines' | 'number' | 'checkbox'
  readonly value?: string | undefined
  readonly hint?: string | undefined
  readonly required?: boolean | undefined
  /** Values that the field proposes. */
  readonly options?: readonly string[] | undefined
}

/** The values that were entered: the fields by name, and `reason`. */
export type Answer = Readonly<Record<string, string>>

interface Asked extends Question {
  readonly number: number
  /** Carries out what was asked for. Rejects with the error that the dialog shows; then it stays open, with what was entered. */
  readonly submit: (answer: Answer) => Promise<void>
  readonly cancel: () => void
}

/** The number of the newest question or message. */
let number = 0

export const asked = signal<Asked | undefined>(undefined)

/**
 * Shows a question, and does the work with the answer. Resolves with the result of the work, or with undefined if the dialog was cancelled;
 * that does not stop work that has started. If the work rejects, the dialog shows the error and stays open.
 */
export function ask<T>(question: Question, work: (answer: Answer) => Promise<T>): Promise<T | undefined> {
  asked.value?.cancel()
  return new Promise((resolve) => {
    const close = (result: T | undefined): void => {
      if (asked.value === present) asked.value = undefined
      resolve(result)
    }
    const present: Asked = {
      ...question,
      number: ++number,
      submit: async (answer) => {
        try {
          close(await work(answer))
        } catch (error) {
          if (asked.value === present) throw error
          // The dialog was closed while the work was going on.
          say('fault', (error as Error).message)
        }
      },
      cancel: () => close(undefined),
    }
    asked.value = present
  })
}

export interface Message {
  readonly number: number
  readonly kind: 'done' | 'fault'
  readonly text: string
  /** The address of the job that the message is about. */
  readonly to?: string | undefined
}

const SHOWN_MS = 8_000

export const messages = signal<readonly Message[]>([])

/** Shows a message, which screen readers read. A fault stays until it is closed, another page is opened, or four newer messages have come. */
export function say(kind: Message['kind'], text: string, to?: string): void {
  const message = { number: ++number, kind, text, to }
  messages.value = [...messages.value.slice(-3), message]
  if (kind === 'done') setTimeout(() => unsay(message.number), SHOWN_MS)
}

export function unsay(which: number): void {
  messages.value = messages.value.filter((each) => each.number !== which)
}

/** The board, the page and the id of the address. */
export const presentPage = computed(() => {
  const { board, page, id } = place.value
  return [board, page, id].join(' ')
})

// A question and the faults of one page must not stay on another one.
effect(() => {
  void presentPage.value
  untracked(() => {
    asked.value?.cancel()
    messages.value = messages.value.filter(({ kind }) => kind !== 'fault')
  })
})
