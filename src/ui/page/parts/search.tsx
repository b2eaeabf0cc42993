/** The search box, its help, and the progress of a search. */
import type { JSX, TargetedSubmitEvent } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatNumber } from '../state/format.ts'
import { type Listing, mayHaveMore } from '../state/list.ts'
import { setQuery } from '../state/router.ts'
import { useSuggestions } from '../state/suggestions.ts'
import { texts } from '../texts.ts'
import { Link } from './link.tsx'

export interface SearchProps {
  readonly label: string
  /** The search in the address. */
  readonly query: string
  /** Searches that can be chosen: the text, the search, and the address with it. */
  readonly choices?: readonly (readonly [text: string, query: string, to: string])[]
}

export function Search({ label, query, choices = [] }: SearchProps): JSX.Element {
  const box = useRef<HTMLInputElement>(null)
  // The address can change while the box is there: by the back button, and by links. An effect after the next frame
  // would delete what a fast reader has typed by then.
  useLayoutEffect(() => {
    if (box.current !== null) box.current.value = query
  }, [query])
  const [suggestions, suggest] = useSuggestions()
  const submit = (event: TargetedSubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    setQuery({ q: box.current?.value.trim() })
  }
  return (
    <search class="search">
      <form onSubmit={submit}>
        <label class="unseen" for="search">
          {label}
        </label>
        <input
          ref={box}
          id="search"
          type="search"
          defaultValue={query}
          placeholder={texts.search.placeholder}
          autoComplete="off"
          autoCapitalize="off"
          spellcheck={false}
          maxLength={2_000}
          aria-describedby="search-hint"
          list="suggestions"
          onInput={(event) => suggest(event.currentTarget.value)}
        />
        <datalist id="suggestions">
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
        <button type="submit" class="primary">
          {texts.search.button}
        </button>
      </form>
      <span id="search-hint" class="unseen">
        {texts.search.hint}
      </span>
      {choices.length > 0 && (
        <ul class="choices" aria-label={texts.search.choices}>
          {choices.map(([text, value, to]) => (
            <li key={value}>
              <Link to={to} current={value === query} class="chip">
                {text}
              </Link>
            </li>
          ))}
        </ul>
      )}
      <details class="help">
        <summary>{texts.search.help}</summary>
        <dl>
          {texts.search.prefixes.map(([prefix, meaning]) => (
            <div key={prefix}>
              <dt>
                <code>{prefix}</code>
              </dt>
              <dd>{meaning}</dd>
            </div>
          ))}
        </dl>
        <p>{texts.search.together}</p>
      </details>
    </search>
  )
}

/** Shows how many jobs were looked at, with a button that continues the search. */
export function ScanProgress({ listing }: { listing: Listing<unknown> }): JSX.Element | null {
  const { scan, items, loading, outdated, more, reload } = listing
  if (scan === undefined) return null
  const { looked, total, next, reading } = scan
  const whole = total !== undefined && total >= looked ? formatNumber(total) : undefined
  const text = texts.search.progress(formatNumber(items.length), formatNumber(looked), whole, mayHaveMore(scan))
  return (
    <div class="scan">
      <p role="status">{text}</p>
      {reading !== undefined && (
        <p>
          {texts.search.reading(
            formatNumber(reading.read),
            reading.all === undefined ? undefined : formatNumber(reading.all),
          )}
        </p>
      )}
      {next !== undefined && (
        <>
          {total !== undefined && total > 0 && (
            <progress max={total} value={Math.min(looked, total)} aria-label={texts.search.looked} />
          )}
          <button type="button" onClick={more} disabled={loading}>
            {loading ? texts.loading : texts.search.more}
          </button>
        </>
      )}
      {outdated && (
        <button type="button" onClick={reload}>
          {texts.search.outdated}
        </button>
      )}
    </div>
  )
}
