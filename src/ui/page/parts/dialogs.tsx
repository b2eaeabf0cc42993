/** The dialogs: the question before an action, and the list of keyboard shortcuts. */
import { signal } from '@preact/signals'
import type { ComponentChildren, JSX, TargetedSubmitEvent } from 'preact'
import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { asked, type Field, messages, unsay } from '../state/asking.ts'
import { clip, visible } from '../state/format.ts'
import { PAGES, type Page } from '../state/router.ts'
import { keys } from '../state/settings.ts'
import { texts } from '../texts.ts'
import { Link } from './link.tsx'

export const isHelpOpen = signal(false)

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A modal dialog of the browser: it keeps the focus inside, closes with Escape, and returns the focus. */
function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => {
      // The browser restores the focus only if the dialog is closed before it is removed.
      dialog?.close()
      requestAnimationFrame(focusHeading)
    }
  }, [])
  return (
    <dialog ref={element} aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  )
}

export function Dialogs(): JSX.Element {
  return (
    <>
      {asked.value && <QuestionDialog key={asked.value.number} question={asked.value} />}
      {isHelpOpen.value && <HelpDialog />}
    </>
  )
}

/** Moves the focus to the heading if no element has it, because the button that opened the dialog was removed. */
function focusHeading(): void {
  if (document.activeElement === document.body) document.querySelector<HTMLElement>('main h1')?.focus()
}

function QuestionDialog({ question }: { question: NonNullable<typeof asked.value> }): JSX.Element {
  const { title, text, yes, typed, reason, danger, fields = [], cancel } = question
  const [count, setCount] = useState('')
  const [error, setError] = useState<string | undefined>(undefined)
  const [isBusy, setBusy] = useState(false)
  const isTyped = typed === undefined || count.replace(/\D/g, '') === String(typed)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (!isTyped || isBusy) return
    const entries = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)] as const)
    setBusy(true)
    setError(undefined)
    question.submit(Object.fromEntries(entries)).catch((failure: unknown) => {
      setError((failure as Error).message)
      setBusy(false)
    })
  }
  return (
    <Dialog title={clip(visible(title), 200)} onClose={cancel}>
      <form onSubmit={submit}>
        <p>{clip(visible(text), 1_000)}</p>
        {fields.map((field) => (
          <Input key={field.name} {...field} />
        ))}
        {typed !== undefined && (
          <div class="field">
            <label for="typed">{texts.ask.type(typed)}</label>
            <input
              id="typed"
              inputMode="numeric"
              autoComplete="off"
              value={count}
              onInput={(event) => setCount(event.currentTarget.value)}
            />
          </div>
        )}
        {reason && <Input name="reason" type="text" label={texts.ask.reason} hint={texts.ask.reasonHint} />}
        {error !== undefined && (
          <p class="notice fault" role="alert">
            <bdi>{clip(visible(error), 1_000)}</bdi>
          </p>
        )}
        <div class="buttons">
          <button type="button" onClick={cancel}>
            {texts.ask.no}
          </button>
          <button type="submit" class={danger ? 'danger' : 'primary'} disabled={!isTyped} aria-disabled={isBusy}>
            {yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Input({ name, label, type, value, hint, required, options }: Field): JSX.Element {
  if (type === 'checkbox')
    return (
      <label class="check">
        <input type="checkbox" name={name} defaultChecked={value === 'on'} /> {label}
      </label>
    )
  const id = `field-${name}`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === 'number' && <input id={id} name={name} type="number" step="any" min={0} defaultValue={value ?? ''} />}
      {type === 'lines' && <textarea id={id} name={name} rows={4} defaultValue={value ?? ''} placeholder={hint} />}
      {type === 'text' && (
        <input
          id={id}
          name={name}
          type="text"
          maxLength={1_000}
          autoComplete="off"
          defaultValue={value ?? ''}
          placeholder={hint}
          required={required}
          list={options && `${id}-options`}
        />
      )}
      {options && (
        <datalist id={`${id}-options`}>
          {options.map((option) => (
            <option key={option} value={option} />
          ))}
        </datalist>
      )}
    </div>
  )
}

function HelpDialog(): JSX.Element {
  return (
    <Dialog title={texts.keys.title} onClose={() => (isHelpOpen.value = false)}>
      <dl class="keys">
        {texts.keys.list.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
        {Object.entries(PAGES).map(([page, letter]) => (
          <div key={page}>
            <dt>
              <kbd>g</kbd> <kbd>{letter}</kbd>
            </dt>
            <dd>{texts.pages[page as Page]}</dd>
          </div>
        ))}
      </dl>
      <label class="check">
        <input
          type="checkbox"
          checked={keys.value === 'on'}
          onChange={(event) => (keys.value = event.currentTarget.checked ? 'on' : 'off')}
        />{' '}
        {texts.keys.switch}
      </label>
      <form method="dialog" class="buttons">
        <button type="submit" class="primary">
          {texts.keys.close}
        </button>
      </form>
    </Dialog>
  )
}

/** The messages after actions; read aloud as they come. */
export function Messages(): JSX.Element {
  return (
    <div class="messages" role="status" aria-live="polite">
      {messages.value.map(({ number, kind, text, to }) => (
        <div key={number} class={`message ${kind}`}>
          <bdi>{clip(visible(text), 600)}</bdi>
          {to !== undefined && <Link to={to}>{texts.openJob}</Link>}
          <button type="button" class="small" onClick={() => unsay(number)}>
            {texts.close}
          </button>
        </div>
      ))}
    </div>
  )
}
