/** Links within the page. They do not load the page again. */
import type { ComponentChildren, JSX } from 'preact'
import { navigate } from '../state/router.ts'

export interface LinkProps {
  /** Relative to the base of the page. */
  readonly to: string
  readonly class?: string | undefined
  readonly title?: string | undefined
  readonly current?: boolean | undefined
  readonly label?: string | undefined
  /** Whether `j` and `k` stop at it, and Enter opens its row. */
  readonly row?: boolean | undefined
  readonly children: ComponentChildren
}

export function Link({ to, current, label, row, children, ...rest }: LinkProps): JSX.Element {
  return (
    <a
      {...rest}
      href={to}
      aria-current={current ? 'page' : undefined}
      aria-label={label}
      data-row-link={row}
      onClick={(event) => {
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        navigate(to)
      }}
    >
      {children}
    </a>
  )
}
