/** The overview: the state of the board, and warnings. Each number is a link to the list that it counts. */
import type { JSX } from 'preact'
import type { WireOverview } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Warning } from '../../parts/notices.tsx'
import { JobLink, Name, State, Time } from '../../parts/text.tsx'
import { jobsThatWaitFor, WhyText } from '../../parts/waiting.tsx'
import { act } from '../../state/acting.ts'
import { formatCount, formatNumber } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href, isPage } from '../../state/router.ts'
import { board, onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { ByFlow, ByPriority, ByQueue, Failures, LastHour, LongestRunning, NextSchedules, Slots } from './parts.tsx'

const t = texts.overview

export function OverviewPage(): JSX.Element {
  const reading = useReading<WireOverview>(onBoard('overview'), ['*'])
  const { data } = reading
  return (
    <>
      <Heading title={t.title} actions={data && <PauseButton paused={data.paused} />} />
      <Loaded reading={reading}>{(overview) => <Overview overview={overview} />}</Loaded>
    </>
  )
}

const toReason = ({ reason }: Readonly<Record<string, string>>): object => (reason ? { reason } : {})

function PauseButton({ paused }: { paused: boolean }): JSX.Element {
  const name = board.value?.name ?? ''
  if (paused)
    return (
      <Action needs="board.resume" onClick={() => act('resume', undefined, () => ({}), t.resumed)}>
        {t.resume}
      </Action>
    )
  const question = { title: t.pauseTitle(name), text: t.pauseText, yes: t.pause, danger: true, reason: true }
  return (
    <Action needs="board.pause" danger onClick={() => act('pause', question, toReason, t.paused)}>
      {t.pause}
    </Action>
  )
}

function Overview({ overview }: { overview: WireOverview }): JSX.Element {
  const { connected, jobs, warnings } = overview
  return (
    <>
      {!connected && <Warning>{t.away}</Warning>}
      {warnings.length > 0 && (
        <section class="notice warning" aria-labelledby="warnings">
          <h2 id="warnings">{t.warnings}</h2>
          <ul>
            {warnings.map(({ text, page }) => (
              <li key={text}>
                <Link to={warningHref(page)}>
                  <Name text={text} max={400} />
                </Link>
              </li>
            ))}
          </ul>
        </section>
      )}
      <ul class="tiles">
        <Tile state="WAITING" count={jobs.waiting} to={href('jobs', { q: 'state:waiting' })} />
        <Tile state="DELAYED" count={jobs.delayed} to={href('jobs', { q: 'state:delayed' })} />
        <Tile state="RUNNING" count={jobs.running} to={href('jobs', { q: 'state:running' })} />
        <Tile state="TRASHED" count={jobs.trashed} to={href('trash')} />
      </ul>
      <div class="cards">
        <WhyJobsWait overview={overview} />
        <Failures overview={overview} />
        <LongestRunning overview={overview} />
        <Slots overview={overview} />
        <LastHour overview={overview} />
        <NextSchedules overview={overview} />
        <ByQueue overview={overview} />
        <ByFlow overview={overview} />
        <ByPriority overview={overview} />
      </div>
    </>
  )
}

/** Returns the address of a warning's page, which the server names with its search: `limits?key=x`. */
function warningHref(page: string): string {
  const { pathname, searchParams } = new URL(page, 'http://page/')
  const name = pathname.slice(1)
  return isPage(name) ? href(name, Object.fromEntries(searchParams)) : href('overview')
}

function Tile({
  state,
  count,
  to,
}: {
  state: string
  count: WireOverview['jobs']['waiting']
  to: string
}): JSX.Element {
  return (
    <li>
      <Link to={to} class={`tile ${count.value === 0 ? 'zero' : ''}`}>
        <strong>{formatCount(count)}</strong> <State state={state} />
      </Link>
    </li>
  )
}

/** Shows why jobs wait. */
function WhyJobsWait({ overview }: { overview: WireOverview }): JSX.Element {
  const { waitingFor, waitingForSlot, reasonsOf, oldestWaiting, jobs } = overview
  return (
    <section class="card">
      <h2>{t.why}</h2>
      {reasonsOf !== undefined && <p class="quiet">{t.reasonsOf(formatNumber(reasonsOf))}</p>}
      {oldestWaiting && (
        <p>
          {t.oldest} <JobLink uuid={oldestWaiting.uuid} name={oldestWaiting.name} />,{' '}
          <Time at={oldestWaiting.postedAt} />
        </p>
      )}
      {waitingFor.length === 0 && waitingForSlot === 0 && (
        <Empty>{jobs.waiting.value === 0 ? t.noneWaits : t.noReason}</Empty>
      )}
      <ul class="counted">
        {waitingForSlot > 0 && (
          <li>
            <Link
              to={href('jobs', { q: 'state:waiting' })}
              class="count"
              label={t.waitLabel(formatNumber(waitingForSlot), t.freeSlot)}
            >
              {formatNumber(waitingForSlot)}
            </Link>
            <span>
              <span class="tag">{t.freeSlot}</span> {t.freeSlotText}
            </span>
          </li>
        )}
        {waitingFor.map(({ reason, jobs, example }) => (
          <li key={`${reason.kind} ${reason.key} ${reason.text}`}>
            <Link
              to={jobsThatWaitFor(reason, example)}
              class="count"
              label={t.waitLabel(formatNumber(jobs), reason.text)}
            >
              {formatNumber(jobs)}
            </Link>
            <span>
              <span class="tag">{texts.waiting.kinds[reason.kind]}</span> <WhyText reason={reason} max={300} />{' '}
              <Link to={href('jobs', { id: example })} class="quiet">
                {t.example}
              </Link>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
