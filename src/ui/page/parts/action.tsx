/** Buttons for actions. A button that this person may not use is shown, and says why it does nothing. */
import type { ComponentChildren, JSX } from 'preact'
import { say } from '../state/asking.ts'
import { forbids } from '../state/session.ts'
import { texts } from '../texts.ts'

export interface ActionProps {
  /** The action, as the server's table of rights names it. */
  readonly needs: string
  readonly onClick: () => unknown
  readonly danger?: boolean
  /** Why it does nothing at present, apart from rights. */
  readonly unless?: string | undefined
  readonly label?: string
  readonly children: ComponentChildren
}

export function Action({ needs, onClick, danger, unless, label, children }: ActionProps): JSX.Element {
  const refused = forbids(needs) ?? unless
  // Not `disabled`: the reason must be found by keyboard and read aloud.
  return (
    <button
      type="button"
      class={danger ? 'danger' : undefined}
      aria-disabled={refused !== undefined}
      aria-label={refused === undefined ? label : `${label ?? textOf(children)} (${refused})`}
      title={refused}
      onClick={() => (refused === undefined ? onClick() : say('fault', refused))}
    >
      {children}
    </button>
  )
}

function textOf(children: ComponentChildren): string {
  return typeof children === 'string' ? children : ''
}

/** Copies a text; browsers allow the clipboard to pages of trusted origins only, so others are told to select it. */
export function Copy({ text, label = texts.copy.button }: { text: string; label?: string }): JSX.Element {
  const copy = (): void => {
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error(texts.copy.refused))
    written.then(
      () => say('done', texts.copy.done),
      () => say('fault', texts.copy.refused),
    )
  }
  return (
    <button type="button" class="small" onClick={copy}>
      {label}
    </button>
  )
}
