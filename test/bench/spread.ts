/** Repeated measurements in one figure, and how far apart they are. */

export function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b)
  const [low, high] = [Math.floor, Math.ceil].map((round) => sorted[round((sorted.length - 1) / 2)])
  return ((low ?? Number.NaN) + (high ?? Number.NaN)) / 2
}

/** Returns `MEDIAN (LEAST to MOST)`, or `-` where nothing was measured. */
export function spread(figures: readonly number[], digits: number): string {
  const measured = figures.filter(Number.isFinite)
  if (measured.length === 0) return '-'
  const [middle, least, most] = [median(measured), Math.min(...measured), Math.max(...measured)]
  return `${middle.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`
}
