/** Small charts. The label of each describes in words what it shows. */
import type { JSX } from 'preact'
import { formatNumber } from '../state/format.ts'
import { texts } from '../texts.ts'

const BAR = 4
const GAP = 1
const HEIGHT = 36

/** Bars of equal width, the oldest first. */
export function Sparkline({
  values,
  label,
  kind,
}: {
  values: readonly number[]
  label: string
  kind: string
}): JSX.Element {
  const highest = Math.max(1, ...values)
  const width = Math.max(1, values.length) * (BAR + GAP)
  return (
    <svg
      class={`sparkline ${kind}`}
      viewBox={`0 0 ${width} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {values.map((value, index) => {
        const height = value === 0 ? 1 : Math.max(2, (value / highest) * HEIGHT)
        const x = index * (BAR + GAP)
        return (
          <rect
            key={index}
            class={value === 0 ? 'none' : undefined}
            x={x}
            y={HEIGHT - height}
            width={BAR}
            height={height}
          />
        )
      })}
    </svg>
  )
}

/** Used of all, as a bar and as numbers. */
export function Meter({ value, max, label }: { value: number; max: number; label: string }): JSX.Element {
  return (
    <span class="meter">
      <meter min={0} max={Math.max(1, max)} value={Math.min(value, max)} aria-label={label} />
      <span class="nowrap">{texts.of(formatNumber(value), formatNumber(max))}</span>
    </span>
  )
}

export function Progress({ value, label }: { value: number; label: string }): JSX.Element {
  const percent = Math.floor(Math.min(1, Math.max(0, value)) * 100)
  return (
    <span class="meter">
      <progress max={100} value={percent} aria-label={label} />
      <span class="nowrap">{percent} %</span>
    </span>
  )
}
