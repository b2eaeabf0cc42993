/** The heading of a page: it has the focus after a change of pages, and names the tab. */
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { clip, visible } from '../state/format.ts'
import { place } from '../state/router.ts'
import { texts } from '../texts.ts'

/** The first page takes no focus: the reader has not asked for another one. */
let isFirst = true

export interface HeadingProps {
  /** The title of the tab; the text of the heading unless there are children. */
  readonly title: string
  readonly children?: ComponentChildren
  /** Buttons to its right. */
  readonly actions?: ComponentChildren
}

export function Heading({ title, children, actions }: HeadingProps): JSX.Element {
  const element = useRef<HTMLHeadingElement>(null)
  const { page, id, board } = place.value
  const shown = clip(visible(title), 120)
  useEffect(() => {
    document.title = texts.title(shown, board)
  }, [shown, board])
  // Before the next frame: later it would take the focus from the search box, where a fast reader types already.
  useLayoutEffect(() => {
    if (!isFirst) element.current?.focus({ preventScroll: true })
    isFirst = false
  }, [page, id, board])
  return (
    <div class="heading">
      <h1 ref={element} tabIndex={-1}>
        {children ?? <bdi>{shown}</bdi>}
      </h1>
      {actions && <div class="buttons">{actions}</div>}
    </div>
  )
}
