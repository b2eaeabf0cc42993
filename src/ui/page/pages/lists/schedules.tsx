/** The page of the schedules: their next times, the outcomes of the last times, and actions. */
import type { JSX } from 'preact'
import type { WireSchedule } from '../../../wire/board.ts'
import { Action } from '../../parts/action.tsx'
import { Heading } from '../../parts/heading.tsx'
import { Link } from '../../parts/link.tsx'
import { Empty, Loaded, Warning } from '../../parts/notices.tsx'
import { Facts } from '../../parts/table.tsx'
import { Name, State, Time } from '../../parts/text.tsx'
import { act } from '../../state/acting.ts'
import { formatDuration, formatLocal, formatNumber, formatUtc, KEPT_STATES, term, visible } from '../../state/format.ts'
import { useReading } from '../../state/reading.ts'
import { href, place } from '../../state/router.ts'
import { onBoard } from '../../state/session.ts'
import { times } from '../../state/settings.ts'
import { texts } from '../../texts.ts'

const t = texts.schedules
/** Below this a schedule is not shown as late: a conductor may be about to fire it. */
const MIN_LATE_MS = 5_000

export function SchedulesPage(): JSX.Element {
  const reading = useReading<{ readonly schedules: readonly WireSchedule[] }>(onBoard('schedules'), ['schedules'])
  const wanted = place.value.query.get('schedule')
  return (
    <>
      <Heading title={t.title} />
      {wanted !== null && (
        <p class="under-heading">
          <Link to={href('schedules')}>{t.all}</Link>
        </p>
      )}
      <Loaded reading={reading}>
        {({ schedules }) => {
          const shown = wanted === null ? schedules : schedules.filter(({ id }) => id === wanted)
          if (shown.length === 0) return <Empty>{wanted === null ? t.empty : t.unknown}</Empty>
          return shown.map((schedule) => <Schedule key={schedule.id} schedule={schedule} />)
        }}
      </Loaded>
    </>
  )
}

function Schedule({ schedule }: { schedule: WireSchedule }): JSX.Element {
  const { id, state, rule, flow, next, upcoming, lateMs = 0, paused, error, counts = {}, failuresInRow = 0 } = schedule
  return (
    <article class="card" data-row>
      <div class="heading">
        <h2>
          <Link to={href('schedules', { schedule: id })} row>
            <Name text={id} />
          </Link>{' '}
          <State state={state} />
        </h2>
        <ScheduleActions schedule={schedule} />
      </div>
      {error !== undefined && (
        <Warning>
          <Name text={error} max={500} />
        </Warning>
      )}
      {lateMs > MIN_LATE_MS && <Warning>{t.late(formatDuration(lateMs))}</Warning>}
      {failuresInRow > 0 && <Warning>{t.failures(failuresInRow)}</Warning>}
      <History schedule={schedule} />
      <Facts
        facts={[
          [
            t.next,
            next === undefined ? (
              paused !== undefined && t.pausedNext
            ) : (
              <>
                <Time at={next} in /> {times.value === 'ages' && <span class="quiet">{t.at(formatLocal(next))}</span>}
              </>
            ),
          ],
          [
            t.upcoming,
            next !== undefined && upcoming.length > 0 && (
              <ul class="inline">
                {upcoming.map((at) => (
                  <li key={at}>
                    <Time at={at} in />
                  </li>
                ))}
              </ul>
            ),
          ],
          [
            t.rule,
            <span key="rule">
              {schedule.words !== undefined && !schedule.words.startsWith(rule) && (
                <>
                  <Name text={schedule.words} max={300} /> ·{' '}
                </>
              )}
              <Name text={rule} />
            </span>,
          ],
          [
            t.flow,
            flow !== undefined && (
              <Link to={href('flows', { name: flow })}>
                <Name text={flow} max={80} />
              </Link>
            ),
          ],
          [t.tenant, schedule.tenant !== undefined && <Name text={schedule.tenant} max={80} />],
          [t.catchUp, schedule.catchUp && (t.catchUps[schedule.catchUp] ?? schedule.catchUp)],
          [t.overlap, schedule.overlap && (t.overlaps[schedule.overlap] ?? schedule.overlap)],
          [t.awaits, schedule.awaits !== undefined && <Name text={schedule.awaits} />],
          [t.declared, schedule.declared !== undefined && <Name text={schedule.declared} />],
          [
            t.paused,
            paused !== undefined && (
              <>
                <Time at={paused.since} />, <Name text={paused.by} max={80} />
                {paused.reason !== undefined && (
                  <>
                    : <Name text={paused.reason} />
                  </>
                )}
              </>
            ),
          ],
          [
            t.counts,
            Object.entries(counts)
              .filter(([, count]) => count > 0)
              .map(([name, count]) => `${visible(name)} ${formatNumber(count)}`)
              .join(', '),
          ],
          [
            t.jobs,
            <Link key="jobs" to={href('jobs', { q: `${term('schedule', id)} ${KEPT_STATES}` })}>
              {t.jobsText}
            </Link>,
          ],
        ]}
      />
    </article>
  )
}

function ScheduleActions({ schedule: { id, state } }: { schedule: WireSchedule }): JSX.Element {
  const run = (action: 'pause' | 'resume' | 'trigger' | 'remove', asks: boolean): Promise<boolean> => {
    const { button, text, done } = t.actions[action]
    const question = {
      title: `${button}: ${id}`,
      text,
      yes: button,
      reason: action === 'pause',
      danger: action === 'remove',
    }
    return act(
      'schedules',
      asks ? question : undefined,
      ({ reason }) => ({ id, action, ...(reason ? { reason } : {}) }),
      done,
    )
  }
  return (
    <div class="buttons">
      <Action needs="schedule.trigger" onClick={() => run('trigger', true)}>
        {t.actions.trigger.button}
      </Action>
      {state === 'paused' ? (
        <Action needs="schedule.resume" onClick={() => run('resume', false)}>
          {t.actions.resume.button}
        </Action>
      ) : (
        <Action
          needs="schedule.pause"
          onClick={() => run('pause', true)}
          unless={state === 'ended' ? t.hasEnded : undefined}
        >
          {t.actions.pause.button}
        </Action>
      )}
      <Action needs="schedule.remove" danger onClick={() => run('remove', true)}>
        {t.actions.remove.button}
      </Action>
    </div>
  )
}

/** Shows the last times as a strip, the oldest first. */
function History({ schedule: { recent } }: { schedule: WireSchedule }): JSX.Element | null {
  if (recent.length === 0) return null
  return (
    <div class="strip">
      <span class="quiet">{t.history}</span>
      <ol>
        {recent.toReversed().map(({ nominal, outcome, count, uuid, reason }) => {
          const { sign, text: what } = t.outcomes[outcome]
          const times = count === undefined ? '' : `, ${t.skippedTimes(formatNumber(count))}`
          const why = reason === undefined ? '' : ` (${visible(reason)})`
          const text = `${formatUtc(nominal)}: ${what}${times}${why}`
          const kind = `outcome ${outcome}`
          return (
            <li key={`${nominal} ${outcome} ${uuid}`}>
              {uuid === undefined ? (
                <span class={kind} title={text} role="img" aria-label={text}>
                  {sign}
                </span>
              ) : (
                <Link to={href('jobs', { id: uuid })} class={kind} title={text} label={text}>
                  {sign}
                </Link>
              )}
            </li>
          )
        })}
      </ol>
    </div>
  )
}
