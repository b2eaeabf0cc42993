/** The dialogs: the question before an action, and the help on keys. */
import { signal } from '@preact/signals'
import type { ComponentChildren, JSX, TargetedSubmitEvent } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type Answer, asked, type Field, messages, type Question, unsay } from '../state/asking.ts'
import { clip, visible } from '../state/format.ts'
import { PAGES, type Page } from '../state/router.ts'
import { keys } from '../state/settings.ts'
import { texts } from '../texts.ts'

export const isHelpOpen = signal(false)

interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
}

/** A modal dialog of the browser: it keeps the focus inside, closes with Escape, and gives the focus back. */
function Dialog({ title, onClose, children }: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  useEffect(() => element.current?.showModal(), [])
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
      {asked.value && <QuestionDialog key={asked.value.title} question={asked.value} answer={asked.value.answer} />}
      {isHelpOpen.value && <HelpDialog />}
    </>
  )
}

function QuestionDialog({
  question,
  answer,
}: {
  question: Question
  answer: (answer: Answer | undefined) => void
}): JSX.Element {
  const { title, text, yes, typed, reason, danger, fields = [] } = question
  const [count, setCount] = useState('')
  const isTyped = typed === undefined || count.replace(/\D/g, '') === String(typed)
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (!isTyped) return
    const entries = [...new FormData(event.currentTarget)].map(([name, value]) => [name, String(value)] as const)
    answer(Object.fromEntries(entries))
  }
  return (
    <Dialog title={clip(visible(title), 200)} onClose={() => answer(undefined)}>
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
        <div class="buttons">
          <button type="button" onClick={() => answer(undefined)}>
            {texts.ask.no}
          </button>
          <button type="submit" class={danger ? 'danger' : 'primary'} disabled={!isTyped}>
            {yes}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Input({ name, label, type, value, hint }: Field): JSX.Element {
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
      {type === 'number' ? (
        <input id={id} name={name} type="number" step="any" min={0} defaultValue={value ?? ''} />
      ) : (
        <input
          id={id}
          name={name}
          type="text"
          maxLength={1_000}
          autoComplete="off"
          defaultValue={value ?? ''}
          placeholder={hint}
        />
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
      {messages.value.map(({ number, kind, text }) => (
        <div key={number} class={`message ${kind}`}>
          <bdi>{clip(visible(text), 600)}</bdi>
          <button type="button" class="small" onClick={() => unsay(number)}>
            {texts.close}
          </button>
        </div>
      ))}
    </div>
  )
}
