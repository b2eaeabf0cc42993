/** Tables. A table that is wider than the screen scrolls by itself; the page does not. */
import type { ComponentChildren, JSX } from 'preact'

export interface Column<T> {
  readonly head: string
  readonly cell: (row: T) => ComponentChildren
  /** `number`: aligned right. `wide`, `widest`: not shown on narrow screens. `main`: the head of the row. */
  readonly kind?: 'number' | 'wide' | 'wide number' | 'widest' | 'main' | undefined
}

export interface TableProps<T> {
  /** Says what the table shows, to those who cannot see the heading. */
  readonly label: string
  readonly columns: readonly Column<T>[]
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  /** A cell before the others, as for the selection. */
  readonly lead?: ((row: T) => ComponentChildren) | undefined
  readonly leadHead?: ComponentChildren
}

export function Table<T>({ label, columns, rows, keyOf, lead, leadHead }: TableProps<T>): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reached by keyboard
    <section class="scroll" tabIndex={0} aria-label={label}>
      <table>
        <caption class="unseen">{label}</caption>
        <thead>
          <tr>
            {lead && <td class="lead">{leadHead}</td>}
            {columns.map(({ head, kind }) => (
              <th key={head} scope="col" class={kind}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)} data-row>
              {lead && <td class="lead">{lead(row)}</td>}
              {columns.map(({ head, kind, cell }) =>
                kind === 'main' ? (
                  <th key={head} scope="row" class={kind}>
                    {cell(row)}
                  </th>
                ) : (
                  <td key={head} class={kind}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

/** Names and values in pairs; pairs without a value are left out. */
export function Facts({
  facts,
}: {
  facts: readonly (readonly [name: string, value: ComponentChildren])[]
}): JSX.Element {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  )
}
