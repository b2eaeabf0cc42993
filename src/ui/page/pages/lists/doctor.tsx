/** The page with the findings of `jobboard doctor`. */
import type { JSX } from 'preact'
import type { WireFinding } from '../../../wire/board.ts'
import { Heading } from '../../parts/heading.tsx'
import { Empty, Loaded } from '../../parts/notices.tsx'
import { Lines, Name, State, Time } from '../../parts/text.tsx'
import { useReading } from '../../state/reading.ts'
import { onBoard, session } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.doctor

interface Findings {
  readonly findings: readonly WireFinding[]
  readonly at: string
}

const ORDER = ['fault', 'warning', 'ok']

export function DoctorPage(): JSX.Element {
  const canRun = session.value?.doctor === true
  // The checks take a while, and are not run at each change.
  const reading = useReading<Findings>(canRun ? onBoard('doctor') : undefined, [])
  return (
    <>
      <Heading
        title={t.title}
        actions={
          canRun && (
            <button type="button" onClick={reading.reload}>
              {t.again}
            </button>
          )
        }
      />
      {canRun ? (
        <Loaded reading={reading}>
          {({ findings, at }) => (
            <>
              <p class="quiet">
                {t.at} <Time at={at} />
              </p>
              <ul class="findings">
                {findings
                  .toSorted((a, b) => ORDER.indexOf(a.level) - ORDER.indexOf(b.level))
                  .map(({ level, subject, text, advice }) => (
                    <li key={`${subject} ${text}`}>
                      <State state={level} /> <strong>{<Name text={subject} />}</strong>
                      <p>
                        <Lines text={text} max={2_000} />
                      </p>
                      {advice !== undefined && (
                        <p class="quiet">
                          <Lines text={advice} max={2_000} />
                        </p>
                      )}
                    </li>
                  ))}
              </ul>
            </>
          )}
        </Loaded>
      ) : (
        <Empty>{t.cannot}</Empty>
      )}
    </>
  )
}
