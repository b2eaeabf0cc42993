/** The page of one job. Its state, and why it waits or has failed, are at the top: operators need them first. */
import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import type { WireJobDetail } from '../../../wire/jobs.ts'
import { Action, Copy } from '../../parts/action.tsx'
import { Progress } from '../../parts/charts.tsx'
import { FailureTree } from '../../parts/failure.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Loaded } from '../../parts/notices.tsx'
import { Elapsed, Folded, Name, State, Time } from '../../parts/text.tsx'
import { Waiting } from '../../parts/waiting.tsx'
import { act } from '../../state/acting.ts'
import { watchJob } from '../../state/live.ts'
import { useReading } from '../../state/reading.ts'
import { place } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { texts } from '../../texts.ts'
import { Attempts, Dependencies, JobFacts, RawJson, Timeline } from './details.tsx'
import { FlowOfJob } from './flow-of-job.tsx'
import { Values } from './values.tsx'

const t = texts.job

export function JobPage(): JSX.Element {
  const uuid = place.value.id ?? ''
  const path = onBoard(`jobs/${encodeURIComponent(uuid)}`)
  const reading = useReading<WireJobDetail>(path, [uuid, 'flows'])
  useEffect(() => watchJob(uuid), [uuid])
  const { data: job } = reading
  return (
    <>
      <Heading title={job?.name ?? t.title} actions={job && <JobActions job={job} />} />
      <p class="under-heading">
        <code class="uuid">{uuid}</code> <Copy text={uuid} label={t.copyUuid} />
      </p>
      <Loaded reading={reading}>{(loaded) => <JobView job={loaded} path={path} />}</Loaded>
    </>
  )
}

function JobActions({ job: { uuid, name, state, cancelRequested } }: { job: WireJobDetail }): JSX.Element {
  const path = (action: string): string => `jobs/${encodeURIComponent(uuid)}/${action}`
  const toBody = ({ reason }: Readonly<Record<string, string>>): object => (reason ? { reason } : {})
  const isOpen = state === 'WAITING' || state === 'DELAYED' || state === 'RUNNING'
  const action = (which: 'cancel' | 'restore' | 'purge' | 'release', unless: string | undefined): JSX.Element => {
    const { button, yes, text, done } = t.actions[which]
    const question = {
      title: `${button}: ${name}`,
      text,
      yes,
      reason: which !== 'restore',
      danger: which !== 'restore',
    }
    return (
      <Action
        needs={which}
        danger={which !== 'restore'}
        unless={unless}
        onClick={() => act(path(which), which === 'restore' ? undefined : question, toBody, done)}
      >
        {button}
      </Action>
    )
  }
  if (state === 'TRASHED')
    return (
      <>
        {/* In the place of Cancel is Restore: a second click on Cancel must not reach Purge. */}
        {action('purge', undefined)}
        {action('restore', undefined)}
      </>
    )
  return (
    <>
      {action('release', state === 'RUNNING' ? undefined : t.onlyRunning)}
      {action('cancel', !isOpen ? t.hasEnded : cancelRequested ? t.isCancelled : undefined)}
    </>
  )
}

function JobView({ job, path }: { job: WireJobDetail; path: string }): JSX.Element {
  return (
    <>
      <Summary job={job} />
      <JobFacts job={job} />
      <FlowOfJob job={job} path={path} />
      <Dependencies job={job} />
      <Attempts job={job} />
      <Timeline job={job} />
      <Values job={job} path={path} />
      <section>
        <h2>{t.commands}</h2>
        <ul class="commands">
          {Object.entries(job.commands).map(([name, command]) => (
            <li key={name}>
              <span class="quiet">{name}</span> <code>{command}</code> <Copy text={command} />
            </li>
          ))}
        </ul>
      </section>
      <RawJson job={job} />
    </>
  )
}

/** Shows the state, and what explains it. */
function Summary({ job }: { job: WireJobDetail }): JSX.Element {
  const { state, runningSince, endedAt, postedAt, delayedUntil, progress, reason, waitingFor, failure, cancellation } =
    job
  // The reason of a job that has failed is mostly the message of its failure.
  const isSaid = failure !== undefined && oneLine(reason ?? '').includes(oneLine(failure.message).slice(0, 100))
  return (
    <section
      class={`summary ${state === 'TRASHED' ? 'fault' : ''}`}
      aria-label={t.summary}
      aria-live="polite"
      aria-atomic="false"
    >
      <p class="big">
        <State state={state} />{' '}
        <span class="quiet">
          {state === 'RUNNING' && runningSince !== undefined && (
            <>
              {texts.jobs.runningFor} <Elapsed from={runningSince} />
            </>
          )}
          {state === 'WAITING' && postedAt !== undefined && (
            <>
              {t.waitingFor} <Elapsed from={postedAt} />
            </>
          )}
          {state === 'DELAYED' && delayedUntil !== undefined && <Time at={delayedUntil} in />}
          {endedAt !== undefined && <Time at={endedAt} />}
        </span>
        {progress !== undefined && state === 'RUNNING' && <Progress value={progress} label={texts.jobs.progress} />}
      </p>
      {waitingFor !== undefined && <Waiting reason={waitingFor} />}
      {waitingFor === undefined && (state === 'WAITING' || state === 'DELAYED') && <p>{reason ?? t.noReason}</p>}
      {cancellation !== undefined && (
        <p>
          {t.cancelledBy} <Name text={cancellation.who} />: <Name text={cancellation.reason} max={500} />
        </p>
      )}
      {state !== 'WAITING' && state !== 'DELAYED' && reason !== undefined && !isSaid && (
        <p class="why-text">
          <Folded text={reason} />
        </p>
      )}
      {job.trashedBy !== undefined && (
        <p class="quiet">
          {t.trashedBy} <Name text={job.trashedBy} />
        </p>
      )}
      {failure !== undefined && <FailureTree failure={failure} />}
    </section>
  )
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
