/** Shows names, times and states. Each value is a text node with its own text direction, so a hostile name can change nothing around it. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { now } from '../state/clock.ts'
import { clip, formatAge, formatDuration, formatLocal, formatUtc, visible } from '../state/format.ts'
import { href } from '../state/router.ts'
import { times } from '../state/settings.ts'
import { texts } from '../texts.ts'
import { Link } from './link.tsx'

const MAX_NAME = 160
const MAX_LINK = 100
const MAX_FOLDED = 400
const MAX_TITLE = 1_000

/** A name of anything; a long one is cut, and its title has more of it. */
export function Name({ text, max = MAX_NAME, mono }: { text: string; max?: number; mono?: boolean }): JSX.Element {
  const shown = visible(text)
  const cut = clip(shown, max)
  return (
    <bdi class={mono ? 'name mono' : 'name'} title={cut === shown ? undefined : clip(shown, MAX_TITLE)}>
      {cut}
    </bdi>
  )
}

/** A text of several lines, as the message of an error. */
export function Lines({ text, max = 20_000 }: { text: string; max?: number | undefined }): JSX.Element {
  return <bdi class="lines">{clip(visible(text, { lines: true }), max)}</bdi>
}

/** A text whose beginning is shown, and the rest after a click. */
export function Folded({ text }: { text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  if (text.length <= MAX_FOLDED) return <Lines text={text} />
  return (
    <>
      <Lines text={text} max={isWhole ? undefined : MAX_FOLDED} />{' '}
      <button type="button" class="small" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {isWhole ? texts.fold.less : texts.fold.more}
      </button>
    </>
  )
}

/** The end of a uuid. Its beginning is a time, which jobs that were posted together have in common. */
export function Uuid({ uuid }: { uuid: string }): JSX.Element {
  return (
    <code class="uuid" title={visible(uuid)}>
      …{visible(uuid).slice(-8)}
    </code>
  )
}

export function JobLink({ uuid, name, row }: { uuid: string; name?: string | undefined; row?: boolean }): JSX.Element {
  return (
    <Link to={href('jobs', { id: uuid })} class="job-link" row={row}>
      {name === undefined ? <Uuid uuid={uuid} /> : <Name text={name} max={MAX_LINK} />}
    </Link>
  )
}

/** A time: its age, or the time itself, as the reader has chosen. */
export function Time({ at, in: ahead }: { at: string | undefined; in?: boolean }): JSX.Element | null {
  if (at === undefined) return null
  const title = `${formatUtc(at)}\n${formatLocal(at)}`
  return (
    <time dateTime={at} title={title}>
      {timeText(at, { ahead })}
    </time>
  )
}

/** The time until which something lasts: `for another 3 min`, or `until` the time. */
export function Rest({ until }: { until: string }): JSX.Element {
  const rest = Math.max(0, Date.parse(until) - now.value)
  const text = {
    ages: () => texts.time.for(formatDuration(rest)),
    utc: () => texts.time.until(formatUtc(until)),
    local: () => texts.time.until(formatLocal(until)),
  }[times.value]()
  return (
    <time dateTime={until} title={`${formatUtc(until)}\n${formatLocal(until)}`}>
      {text}
    </time>
  )
}

/** Returns `3 min ago`, `in 3 min`, or the time. */
function timeText(at: string, { ahead = false }: { ahead?: boolean | undefined }): string {
  if (times.value === 'utc') return formatUtc(at)
  if (times.value === 'local') return formatLocal(at)
  const age = now.value - Date.parse(at)
  if (age < 0 && (ahead || age < -1_000)) return texts.time.in(formatDuration(-age))
  return ahead && age >= 0 ? texts.time.due : texts.time.ago(formatAge(Math.max(0, age)))
}

/** The duration from a time until now, or until another time. */
export function Elapsed({ from, to }: { from: string; to?: string | undefined }): JSX.Element {
  const end = to === undefined ? now.value : Date.parse(to)
  return (
    <time title={formatUtc(from)} dateTime={from}>
      {formatDuration(Math.max(0, end - Date.parse(from)), { exact: to !== undefined })}
    </time>
  )
}

/** Shows a state with a sign of its own in addition to its colour. */
export const SIGNS: Readonly<Record<string, string>> = {
  WAITING: '○',
  DELAYED: '◔',
  RUNNING: '▶',
  TRASHED: '✕',
  DONE: '✓',
  PENDING: '○',
  SUCCESS: '✓',
  FAILURE: '✕',
  REVERTING: '↶',
  REVERTED: '↺',
  REVERT_FAILURE: '✕',
  IGNORE: '–',
  RETRYING: '↻',
  SUSPENDED: '‖',
  busy: '▶',
  idle: '○',
  active: '●',
  waiting: '○',
  paused: '‖',
  ended: '✓',
  unreadable: '✕',
  ok: '✓',
  warning: '!',
  fault: '✕',
  done: '✓',
  open: '▶',
  failed: '✕',
  cancelled: '✕',
}

/** The class by which a state is coloured. */
export function stateClass(state: string): string {
  return `state-${state
    .toLowerCase()
    .replace(/[^a-z]/g, '-')
    .slice(0, 30)}`
}

/** Returns the words of a state: `Revert failure` for `REVERT_FAILURE`. */
export function stateText(state: string): string {
  const known = texts.states[state]
  if (known !== undefined) return known
  const words = visible(clip(state, 40)).toLowerCase().replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

export function State({ state, text }: { state: string; text?: string }): JSX.Element {
  return (
    <span class={`state ${stateClass(state)}`}>
      <span class="sign" aria-hidden="true">
        {SIGNS[state] ?? SIGNS[state.toUpperCase()] ?? '•'}
      </span>{' '}
      {text ?? stateText(state)}
    </span>
  )
}
