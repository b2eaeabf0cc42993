/** How long ago something was, in the space of a table's cell. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** `5s`, `12m`, `3h`, `40d`; what a fast clock of another machine put into the future is `0s` old. */
export function age(instant: Date, now: Date): string {
  const passed = Math.max(0, now.getTime() - instant.getTime())
  const [unit, size] = UNITS.find(([, size]) => passed >= size) ?? ['s', 1_000]
  return `${Math.floor(passed / size)}${unit}`
}
