/** Shows why a job waits, with links to what it waits for. */
import type { JSX } from 'preact'
import type { WireWaitingFor } from '../../wire/jobs.ts'
import { term } from '../state/format.ts'
import { href } from '../state/router.ts'
import { texts } from '../texts.ts'
import { Link } from './link.tsx'
import { JobLink, Name, Rest, Time } from './text.tsx'

const MAX_JOBS = 10

export function Waiting({ reason }: { reason: WireWaitingFor }): JSX.Element {
  const { kind, text, until, key, jobs = [], flow, queue } = reason
  return (
    <div class="why">
      <p class="why-text">
        <span class="tag">{texts.waiting.kinds[kind]}</span> <WhyText reason={reason} max={600} />
      </p>
      <ul class="why-links">
        {until !== undefined && !text.includes(until) && (
          <li>
            {texts.waiting.until} <Time at={until} in />
          </li>
        )}
        {kind === 'limit' && key !== undefined && (
          <li>
            <Link to={href('limits', { key })}>
              {texts.waiting.limit} <Name text={key} />
            </Link>
          </li>
        )}
        {kind === 'resource' && key !== undefined && (
          <li>
            <Link to={href('jobs', { q: term('resource', key) })}>
              {texts.waiting.resource} <Name text={key} />
            </Link>
          </li>
        )}
        {flow !== undefined && (
          <li>
            <Link to={href('flows', { name: flow })}>
              {texts.waiting.flow} <Name text={flow} />
            </Link>
          </li>
        )}
        {queue !== undefined && (
          <li>
            <Link to={href('queues')}>
              {texts.waiting.queue} <Name text={queue} />
            </Link>
          </li>
        )}
        {jobs
          .slice(0, MAX_JOBS)
          .filter((uuid) => uuid !== named(reason))
          .map((uuid) => (
            <li key={uuid}>
              {texts.waiting.job} <JobLink uuid={uuid} />
            </li>
          ))}
      </ul>
    </div>
  )
}

/** Returns the first of the jobs in the way, if the text names it. */
function named({ text, jobs: [first] = [] }: WireWaitingFor): string | undefined {
  return first !== undefined && text.includes(`job ${first}`) ? first : undefined
}

/** The reason as a text, with its time as the reader has chosen, `it rests for another 5 min`, and a link to the job that it names. */
export function WhyText({ reason, max }: { reason: WireWaitingFor; max: number }): JSX.Element {
  const { text, until } = reason
  const job = named(reason)
  if (job !== undefined) {
    const [before = '', after = ''] = text.split(job)
    return (
      <>
        <Name text={before.trimEnd()} max={max} /> <JobLink uuid={job} /> <Name text={after.trimStart()} max={max} />
      </>
    )
  }
  const [before = '', rest] = until === undefined ? [] : text.split(`until ${until}`)
  if (until === undefined || rest === undefined) return <Name text={text} max={max} />
  return (
    <>
      <Name text={before.trimEnd()} max={max} /> <Rest until={until} />
      {rest !== '' && (
        <>
          {' '}
          <Name text={rest.trimStart()} max={max} />
        </>
      )}
    </>
  )
}

/** Returns the address of the jobs that wait for a reason. */
export function jobsThatWaitFor({ kind, key, flow, queue }: WireWaitingFor, example: string): string {
  if (kind === 'pause') return href('jobs', { q: 'state:waiting,delayed' })
  if (kind === 'delay') return href('jobs', { q: 'state:delayed reason:"it rests *"' })
  if (kind === 'limit' && key !== undefined) return href('jobs', { q: `state:waiting ${term('limit', key)}` })
  if (kind === 'resource' && key !== undefined) return href('jobs', { q: `state:waiting ${term('resource', key)}` })
  if (kind === 'job') return href('jobs', { q: 'state:delayed reason:"it waits for *"' })
  if ((kind === 'flow' || kind === 'disabled') && flow !== undefined)
    return href('jobs', { q: `state:waiting ${term('flow', flow)}` })
  if (kind === 'queue' && queue !== undefined) return href('jobs', { q: `state:waiting ${term('queue', queue)}` })
  return href('jobs', { id: example })
}
