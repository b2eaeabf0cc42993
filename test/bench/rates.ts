/** Rates, and a table of them relative to the first. */
export interface Rate {
  readonly what: string
  readonly perSecond: number
  readonly note?: string
}

/** How often per second `step` gets done, `width` at a time. */
export async function rate(
  what: string,
  options: { count: number; width: number },
  step: (n: number) => Promise<unknown>,
): Promise<Rate> {
  const { count, width } = options
  let next = 0
  const lane = async () => {
    while (next < count) await step(next++)
  }
  const begin = performance.now()
  await Promise.all(Array.from({ length: width }, lane))
  return { what, perSecond: (count * 1_000) / (performance.now() - begin) }
}

export function printRates(title: string, rates: readonly Rate[]): void {
  const [base] = rates
  console.log(`\n${title}`)
  for (const { what, perSecond, note } of rates) {
    const ratio = base ? (perSecond / base.perSecond).toFixed(2) : ''
    console.log(`  ${what.padEnd(60)} ${perSecond.toFixed(0).padStart(8)} /s  × ${ratio}${note ? `  ${note}` : ''}`)
  }
}
