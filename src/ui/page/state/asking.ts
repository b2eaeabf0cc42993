/** The question that is on the screen, and the messages after actions. */
import { signal } from '@preact/signals'

export interface Question {
  readonly title: string
  readonly text: string
  /** The label of the button that does it. */
  readonly yes: string
  /** The number that must be typed, for actions on many. */
  readonly typed?: number | undefined
  /** Whether a reason is asked for. */
  readonly reason?: boolean | undefined
  readonly danger?: boolean | undefined
  /** Fields of the form, by name. */
  readonly fields?: readonly Field[] | undefined
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'number' | 'checkbox'
  readonly value?: string | undefined
  readonly hint?: string | undefined
}

/** What was entered: the fields by name, and `reason`. */
export type Answer = Readonly<Record<string, string>>

interface Asked extends Question {
  readonly answer: (answer: Answer | undefined) => void
}

export const asked = signal<Asked | undefined>(undefined)

/** Resolves with what was entered; with undefined if the reader thought better of it. */
export function ask(question: Question): Promise<Answer | undefined> {
  asked.value?.answer(undefined)
  return new Promise((resolve) => {
    asked.value = {
      ...question,
      answer: (answer) => {
        asked.value = undefined
        resolve(answer)
      },
    }
  })
}

export interface Message {
  readonly number: number
  readonly kind: 'done' | 'fault'
  readonly text: string
}

const SHOWN_MS = 8_000
let number = 0

export const messages = signal<readonly Message[]>([])

/** Shows a message, and has it read aloud. A fault stays until it is closed. */
export function say(kind: Message['kind'], text: string): void {
  const message = { number: ++number, kind, text }
  messages.value = [...messages.value.slice(-3), message]
  if (kind === 'done') setTimeout(() => unsay(message.number), SHOWN_MS)
}

export function unsay(which: number): void {
  messages.value = messages.value.filter((each) => each.number !== which)
}
