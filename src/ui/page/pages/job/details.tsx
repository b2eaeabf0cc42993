/** The parts of a job's page that are lists and tables. */
import type { ComponentChildren, JSX } from 'preact'
import type { WireAttempt, WireJobDetail } from '../../../wire/jobs.ts'
import { Copy } from '../../parts/action.tsx'
import { OwnerLink } from '../../parts/job-table.tsx'
import { Link } from '../../parts/link.tsx'
import { type Column, Facts, Table } from '../../parts/table.tsx'
import { Elapsed, Folded, JobLink, Lines, Name, stateText, Time } from '../../parts/text.tsx'
import { formatDuration, formatNumber, term } from '../../state/format.ts'
import { href } from '../../state/router.ts'
import { texts } from '../../texts.ts'

const t = texts.job

interface DetailProps {
  readonly job: WireJobDetail
}

export function JobFacts({ job }: DetailProps): JSX.Element {
  const { flow, version, owner, key, batch, schedule, resources, limits = [] } = job
  const named = [
    ...(resources?.exclusive ?? []).map((name) => [name, t.exclusive] as const),
    ...(resources?.shared ?? []).map((name) => [name, t.shared] as const),
  ]
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">{t.facts}</h2>
      <Facts
        facts={[
          [
            t.flow,
            flow !== undefined && (
              <Link to={href('flows', { name: flow })}>
                <Name text={version === undefined ? flow : `${flow} ${version}`} />
              </Link>
            ),
          ],
          [t.owner, owner !== undefined && <OwnerLink owner={owner} />],
          [t.posted, job.postedAt !== undefined && <Time at={job.postedAt} />],
          [t.waited, waited(job)],
          [t.took, job.endedAt !== undefined && took(job.runningSince, job.endedAt)],
          [t.postedBy, job.postedBy !== undefined && <Name text={job.postedBy} />],
          [t.priority, job.priority !== undefined && (texts.priorities[job.priority] ?? job.priority)],
          [t.queue, job.queue],
          [t.runs, job.runs],
          [
            t.failedRuns,
            job.maxAttempts !== undefined && (
              <Setting job={job} option="maxAttempts">
                {texts.of(String(job.failed ?? 0), String(job.maxAttempts))}
              </Setting>
            ),
          ],
          [t.key, key !== undefined && <Name text={key} />],
          [t.keyUntil, job.keyTakenUntil !== undefined && <Time at={job.keyTakenUntil} in />],
          [
            t.batch,
            batch !== undefined && (
              <Link to={href('batches', { id: batch })}>
                <Name text={batch} max={60} />
              </Link>
            ),
          ],
          [
            t.schedule,
            schedule !== undefined && (
              <Link to={href('schedules', { schedule })}>
                <Name text={schedule} max={60} />
              </Link>
            ),
          ],
          [
            t.resources,
            named.length > 0 && (
              <ul class="inline">
                {named.map(([name, mode]) => (
                  <li key={`${mode} ${name}`}>
                    <Link to={href('jobs', { q: term('resource', name) })}>
                      <Name text={name} max={80} />
                    </Link>{' '}
                    <span class="quiet">{mode}</span>
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            t.limits,
            limits.length > 0 && (
              <ul class="inline">
                {limits.map(({ key: limit, cost }) => (
                  <li key={limit}>
                    <Link to={href('limits', { key: limit })}>
                      <Name text={limit} max={80} />
                    </Link>
                    {cost !== 1 && <span class="quiet"> × {formatNumber(cost)}</span>}
                  </li>
                ))}
              </ul>
            ),
          ],
          [t.delayedUntil, job.delayedUntil !== undefined && <Time at={job.delayedUntil} in />],
          [
            t.expires,
            job.expiresAt !== undefined && (
              <Setting job={job} option="expiresAfter">
                <Time at={job.expiresAt} in />
              </Setting>
            ),
          ],
          [
            t.deadline,
            job.deadline !== undefined && (
              <Setting job={job} option="deadline">
                {formatDuration(job.deadline, { exact: true })}
              </Setting>
            ),
          ],
          [
            t.backOff,
            job.backOff !== undefined && (
              <Setting job={job} option="backOff">
                {job.backOff}
              </Setting>
            ),
          ],
          [
            t.resultTtl,
            job.resultTtl !== undefined && (
              <Setting job={job} option="resultTtl">
                {t.afterEnd(formatDuration(job.resultTtl, { exact: true }))}
              </Setting>
            ),
          ],
          [
            t.ownerLost,
            job.onOwnerLost !== undefined && (
              <Setting job={job} option="onOwnerLost">
                {t.ownerLostDoes[job.onOwnerLost]}
              </Setting>
            ),
          ],
        ]}
      />
    </section>
  )
}

/** The value of an option, and where it is set if a setting of the flow has replaced it. */
function Setting({
  job: { settings = {} },
  option,
  children,
}: DetailProps & { option: keyof NonNullable<WireJobDetail['settings']>; children: ComponentChildren }): JSX.Element {
  const from = settings[option]
  return (
    <>
      {children}{' '}
      {from !== undefined && (
        <Link to={href('flows')} class="quiet">
          <Name text={t.settingOf(from)} max={80} />
        </Link>
      )}
    </>
  )
}

/** Returns how long the job waited for the run that has it, or that has ended it. */
function waited({ postedAt, runningSince }: WireJobDetail): string | undefined {
  return runningSince === undefined ? undefined : took(postedAt, runningSince)
}

function took(from: string | undefined, to: string): string | undefined {
  if (from === undefined) return undefined
  return formatDuration(Math.max(0, Date.parse(to) - Date.parse(from)), { exact: true })
}

const ATTEMPT_COLUMNS: readonly Column<WireAttempt>[] = [
  { head: t.run, kind: 'number', cell: ({ run }) => run },
  { head: t.outcome, kind: 'main', cell: ({ outcome }) => <Name text={outcome ?? t.runsNow} max={60} /> },
  { head: t.reason, cell: ({ reason }) => reason !== undefined && <Folded text={reason} /> },
  { head: t.owner, kind: 'wide', cell: ({ who }) => <OwnerLink owner={who} /> },
  { head: t.begin, kind: 'wide', cell: ({ at }) => <Time at={at} /> },
  {
    head: t.took,
    kind: 'number',
    cell: ({ at, outcome, tookMs }) =>
      outcome === undefined ? <Elapsed from={at} /> : tookMs !== undefined && formatDuration(tookMs, { exact: true }),
  },
]

function describeOmitted({ failed, returned, lost }: NonNullable<DetailProps['job']['omittedAttempts']>): string {
  return t.omitted({
    all: formatNumber(failed + returned + lost),
    failed: formatNumber(failed),
    returned: formatNumber(returned),
    lost: formatNumber(lost),
  })
}

export function Attempts({ job: { attempts, omittedAttempts: omitted } }: DetailProps): JSX.Element | null {
  if (attempts.length === 0) return null
  return (
    <section>
      <h2>{t.attempts}</h2>
      <Table label={t.attempts} columns={ATTEMPT_COLUMNS} rows={attempts} keyOf={({ run, at }) => `${run} ${at}`} />
      {omitted && <p>{describeOmitted(omitted)}</p>}
    </section>
  )
}

export function Dependencies({ job: { after, dependents } }: DetailProps): JSX.Element | null {
  if (after.length === 0 && dependents.length === 0) return null
  return (
    <section>
      <h2>{t.dependencies}</h2>
      <Facts
        facts={[
          [
            t.after,
            after.length > 0 && (
              <ul class="inline">
                {after.map(({ uuid, on }) => (
                  <li key={uuid}>
                    <JobLink uuid={uuid} /> <span class="quiet">{t.on[on]}</span>
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            t.dependents,
            dependents.length > 0 && (
              <ul class="inline">
                {dependents.map((uuid) => (
                  <li key={uuid}>
                    <JobLink uuid={uuid} />
                  </li>
                ))}
              </ul>
            ),
          ],
        ]}
      />
    </section>
  )
}

interface Moment {
  readonly at: string
  readonly text: string
  readonly who?: string | undefined
  readonly kind: string
}

/** Shows the events of the job in the order of their times. */
export function Timeline({ job }: DetailProps): JSX.Element | null {
  const moments: Moment[] = []
  if (job.postedAt !== undefined)
    moments.push({ at: job.postedAt, text: t.moments.posted, who: job.postedBy, kind: 'posted' })
  for (const { run, who, at } of job.attempts) moments.push({ at, text: t.moments.began(run), who, kind: 'begin' })
  for (const atom of job.logbook?.atoms ?? []) {
    if (atom.startedAt === undefined) continue
    const took = atom.tookMs === undefined ? '' : formatDuration(atom.tookMs, { exact: true })
    moments.push({ at: atom.startedAt, text: t.moments.atom(atom.name, stateText(atom.state), took), kind: 'atom' })
  }
  if (job.endedAt !== undefined)
    moments.push({ at: job.endedAt, text: t.moments.left(stateText(job.state)), kind: 'end' })
  if (moments.length === 0) return null
  moments.sort((a, b) => Date.parse(a.at) - Date.parse(b.at))
  return (
    <section>
      <h2>{t.timeline}</h2>
      <ol class="timeline">
        {moments.map(({ at, text, who, kind }, index) => (
          <li key={`${at} ${text}`} class={kind}>
            <Time at={at} />{' '}
            {index > 0 && (
              <span class="quiet">
                +{formatDuration(Date.parse(at) - Date.parse(moments[index - 1]?.at ?? at), { exact: true })}
              </span>
            )}{' '}
            <Name text={text} max={200} />{' '}
            {who !== undefined && (kind === 'begin' ? <OwnerLink owner={who} /> : <Name text={who} max={60} />)}
          </li>
        ))}
      </ol>
    </section>
  )
}

export function RawJson({ job }: DetailProps): JSX.Element {
  const json = JSON.stringify(job, null, 2)
  return (
    <details>
      <summary>
        <h2>{t.raw}</h2>
      </summary>
      <Copy text={json} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reached by keyboard */}
      <pre tabIndex={0}>
        <Lines text={json} max={200_000} />
      </pre>
    </details>
  )
}
