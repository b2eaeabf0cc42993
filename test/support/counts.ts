/** How often a test does what it does: a few times in `npm test`, often in `npm run test:long`. */
export function count(counts: { readonly test: number; readonly long: number }): number {
  return process.env['JOBBOARD_LONG'] === '1' ? counts.long : counts.test
}
