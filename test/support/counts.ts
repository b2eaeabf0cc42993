/** Returns the value for `npm test`, or the one for `npm run test:long`, which repeats more. */
export function count<T = number>(counts: { readonly test: T; readonly long: T }): T {
  return process.env['JOBBOARD_LONG'] === '1' ? counts.long : counts.test
}
