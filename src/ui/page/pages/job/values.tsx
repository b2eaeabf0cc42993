/** The store and the results of a job. They may hold what not everybody should see: they are read when somebody asks for them. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { WireJobDetail, WireJobValues } from '../../../wire/jobs.ts'
import { Copy } from '../../parts/action.tsx'
import { Empty, Loaded } from '../../parts/notices.tsx'
import { Lines, Name } from '../../parts/text.tsx'
import { say } from '../../state/asking.ts'
import { useReading } from '../../state/reading.ts'
import { session } from '../../state/session.ts'
import { texts } from '../../texts.ts'

const t = texts.job

export function Values({ job: { storeKeys }, path }: { job: WireJobDetail; path: string }): JSX.Element {
  const [isShown, setShown] = useState(false)
  const refused = session.value?.values ? undefined : texts.rights.values
  return (
    <section>
      <h2>{t.values}</h2>
      {!isShown && (
        <>
          {storeKeys === undefined || storeKeys.length === 0 ? (
            <p class="quiet">{storeKeys ? t.noStore : t.storeGone}</p>
          ) : (
            <p>
              {t.storeKeys}{' '}
              {storeKeys.map((key) => (
                <code key={key} class="chip">
                  <Name text={key} max={60} />
                </code>
              ))}
            </p>
          )}
          <button
            type="button"
            aria-disabled={refused !== undefined}
            title={refused}
            aria-label={refused === undefined ? undefined : `${t.showValues} (${refused})`}
            onClick={() => (refused === undefined ? setShown(true) : say('fault', refused))}
          >
            {t.showValues}
          </button>
        </>
      )}
      {isShown && (
        <>
          <ShownValues path={path} />
          <button type="button" onClick={() => setShown(false)}>
            {t.hideValues}
          </button>
        </>
      )}
    </section>
  )
}

function ShownValues({ path }: { path: string }): JSX.Element {
  const reading = useReading<WireJobValues>(`${path}/values`, [])
  return (
    <Loaded reading={reading}>
      {({ store, results }) => (
        <>
          <h3>{t.store}</h3>
          <Json values={store} empty={t.noStore} />
          <h3>{t.results}</h3>
          <Json values={results ?? {}} empty={t.noResults} />
        </>
      )}
    </Loaded>
  )
}

function Json({ values, empty }: { values: Readonly<Record<string, unknown>>; empty: string }): JSX.Element {
  if (Object.keys(values).length === 0) return <Empty>{empty}</Empty>
  const json = JSON.stringify(values, null, 2)
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reached by keyboard */}
      <pre tabIndex={0}>
        <Lines text={json} max={500_000} />
      </pre>
      <Copy text={json} />
    </>
  )
}
