/** The last lines of each benchmark: whether what was measured is what is aimed at. */

export interface Goal {
  /** What was measured, with its unit: `places away from posting order, p99`. */
  readonly what: string
  /** Undefined, or not a number, where it could not be measured; a goal that was not measured is missed. */
  readonly value: number | undefined
  /** The least or the most that the value may be. */
  readonly goal: { readonly atLeast: number } | { readonly atMost: number }
}

/** Returns `goal met: WHAT VALUE (goal: at least VALUE)`, or the same with `goal missed`. */
export function goalLine({ what, value, goal }: Goal): string {
  const measured = value !== undefined && Number.isFinite(value)
  const meets = (figure: number) => ('atLeast' in goal ? figure >= goal.atLeast : figure <= goal.atMost)
  const isMet = measured && meets(value)
  // Rounded only where that does not turn a value just below its goal into the goal.
  const shown = measured && meets(Number(rounded(value))) === isMet ? rounded(value) : value
  const limit = 'atLeast' in goal ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`
  return `${isMet ? 'goal met' : 'goal missed'}: ${what} ${measured ? shown : 'not measured'} (goal: ${limit})`
}

/** Prints a line per goal; called once, at the end of a benchmark. */
export function printGoals(goals: readonly Goal[]): void {
  console.log(`\n${goals.map(goalLine).join('\n')}`)
}

/** Rounds to three significant digits, or to a whole number. */
function rounded(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)))
}
