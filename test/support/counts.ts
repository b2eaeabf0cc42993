/** Returns how often a test does what it does, or how much of it: a few times in `npm test`, often in `npm run test:long`. */
export function count<T = number>(counts: { readonly test: T; readonly long: T }): T {
  return process.env['JOBBOARD_LONG'] === '1' ? counts.long : counts.test
}
