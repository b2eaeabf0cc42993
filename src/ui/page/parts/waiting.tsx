/** Why a job waits, with links to what is in its way. */
import type { JSX } from 'preact'
import type { WireWaitingFor } from '../../wire/jobs.ts'
import { term } from '../state/format.ts'
import { href } from '../state/router.ts'
import { texts } from '../texts.ts'
import { Link } from './link.tsx'
import { JobLink, Name, Time } from './text.tsx'

const MAX_JOBS = 10

export function Waiting({ reason }: { reason: WireWaitingFor }): JSX.Element {
  const { kind, text, until, key, jobs = [], flow } = reason
  return (
    <div class="why">
      <p class="why-text">
        <span class="tag">{texts.waiting.kinds[kind]}</span> <Name text={text} max={600} />
      </p>
      <ul class="why-links">
        {until !== undefined && (
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
        {jobs.slice(0, MAX_JOBS).map((uuid) => (
          <li key={uuid}>
            {texts.waiting.job} <JobLink uuid={uuid} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Returns the address of the jobs that wait for a reason. */
export function jobsThatWaitFor({ kind, key, flow }: WireWaitingFor, example: string): string {
  if (kind === 'pause') return href('jobs', { q: 'state:waiting' })
  if (kind === 'delay') return href('jobs', { q: 'state:delayed' })
  if (kind === 'limit' && key !== undefined) return href('jobs', { q: `state:waiting ${term('limit', key)}` })
  if (kind === 'resource' && key !== undefined) return href('jobs', { q: `state:waiting ${term('resource', key)}` })
  if (kind === 'flow' && flow !== undefined) return href('jobs', { q: `state:waiting ${term('flow', flow)}` })
  return href('jobs', { id: example })
}
