/** The frame of every page: the menu, the choice of the board, the settings, and whether the page is up to date. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { WireBoard } from '../../wire/session.ts'
import { Dialogs, Messages } from '../parts/dialogs.tsx'
import { Heading } from '../parts/heading.tsx'
import { Link } from '../parts/link.tsx'
import { Loading, Problem, Warning } from '../parts/notices.tsx'
import { Name, Time } from '../parts/text.tsx'
import { live } from '../state/live.ts'
import { href, hrefOn, navigate, PAGES, type Page, place } from '../state/router.ts'
import { board, readSession, session, sessionError } from '../state/session.ts'
import { texts } from '../texts.ts'
import { PageOf } from './page-of.tsx'
import { Settings } from './settings.tsx'

export function Shell(): JSX.Element {
  const main = useRef<HTMLElement>(null)
  useFirstBoard()
  useReadAfterReturn()
  const { page } = place.value
  return (
    <>
      <a
        class="skip"
        href={`${location.pathname}${location.search}#main`}
        onClick={(event) => {
          event.preventDefault()
          main.current?.focus()
        }}
      >
        {texts.skip}
      </a>
      <header>
        <span class="brand">{texts.brand}</span>
        <BoardSwitcher />
        <LiveSign />
        <Who />
        <Settings />
      </header>
      <Menu />
      <main id="main" ref={main} tabIndex={-1}>
        {session.value?.readOnly && <Warning>{texts.readOnly}</Warning>}
        {board.value?.paused && (
          <Warning>
            {texts.overview.isPaused}
            {board.value.pause && <PauseOrigin pause={board.value.pause} />}
          </Warning>
        )}
        {sessionError.value && <Problem error={sessionError.value} retry={() => void readSession()} />}
        {live.value === 'polling' && board.value !== undefined && <p class="notice stale">{texts.live.stale}</p>}
        {session.value === undefined ? !sessionError.value && <Loading /> : <Content page={page} />}
      </main>
      <Messages />
      <Dialogs />
    </>
  )
}

/** Who has paused the board, when and why. */
function PauseOrigin({ pause }: { pause: NonNullable<WireBoard['pause']> }): JSX.Element {
  return (
    <>
      {' '}
      {texts.overview.pausedBy} <Name text={pause.by} />, <Time at={pause.since} />
      {pause.reason !== undefined && (
        <>
          : <Name text={pause.reason} max={500} />
        </>
      )}
    </>
  )
}

/** Opens the first board if the address names none. */
function useFirstBoard(): void {
  const first = session.value?.boards[0]?.name
  const named = place.value.board
  useEffect(() => {
    if (named === undefined && first !== undefined) navigate(hrefOn(first, 'overview'), { replace: true })
  }, [named, first])
}

/** Reads the session again after the stream was disconnected: rights, and the clock of this machine, may have changed. */
function useReadAfterReturn(): void {
  const state = live.value
  const before = useRef(state)
  useEffect(() => {
    if (state === 'live' && before.current === 'polling') void readSession()
    before.current = state
  }, [state])
}

function Content({ page }: { page: Page | undefined }): JSX.Element | null {
  if (place.value.board === undefined) return null
  if (board.value === undefined)
    return (
      <>
        <Heading title={texts.unknownBoard} />
        <ul>
          {session.value?.boards.map(({ name }) => (
            <li key={name}>
              <Link to={hrefOn(name, 'overview')}>
                <Name text={name} />
              </Link>
            </li>
          ))}
        </ul>
      </>
    )
  if (page === undefined)
    return (
      <>
        <Heading title={texts.unknownPage} />
        <p>
          <Link to={href('overview')}>{texts.pages.overview}</Link>
        </p>
      </>
    )
  // A page of another board is another page, with nothing selected.
  return <PageOf key={`${board.value.name} ${page}`} page={page} />
}

function Menu(): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  const { page, id } = place.value
  useEffect(() => setOpen(false), [page, id])
  return (
    <nav class={isOpen ? 'menu open' : 'menu'} aria-label={texts.menu}>
      <button
        type="button"
        class="menu-button"
        aria-expanded={isOpen}
        aria-controls="menu"
        onClick={() => setOpen(!isOpen)}
      >
        {texts.menu}: {page === undefined ? '' : texts.pages[page]}
      </button>
      <ul id="menu">
        {(Object.keys(PAGES) as Page[]).map((each) => (
          <li key={each}>
            <Link to={href(each)} current={each === page}>
              {texts.pages[each]}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}

function BoardSwitcher(): JSX.Element | null {
  const boards = session.value?.boards ?? []
  const present = board.value
  if (boards.length < 2)
    return present === undefined ? null : (
      <span class="board" title={present.uri}>
        <Name text={present.name} max={40} />
      </span>
    )
  return (
    <label class="board">
      <span class="unseen">{texts.board}</span>
      <select
        value={present?.name ?? ''}
        onChange={(event) => navigate(hrefOn(event.currentTarget.value, place.value.page ?? 'overview'))}
      >
        {present === undefined && <option value="" />}
        {boards.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

function LiveSign(): JSX.Element {
  return (
    <span class={`live is-${live.value}`} role="status">
      <span class="dot" aria-hidden="true" /> {texts.live[live.value]}
    </span>
  )
}

function Who(): JSX.Element | null {
  const present = session.value
  if (present === undefined) return null
  const level = board.value?.level ?? present.level
  return (
    <span class="who" title={texts.whoTitle(level, present.values)}>
      <Name text={present.who} max={40} /> <span class="tag">{level}</span>
    </span>
  )
}
