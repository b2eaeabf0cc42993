/** `npm run bench -- NAME --brief`: the whole of a benchmark in small numbers, to see that it works here. Its figures mean nothing. */

const VARIABLE = 'JOBBOARD_BENCH_BRIEF'
const BRIEF = process.env[VARIABLE] === '1'

/** Makes this process and those that it starts brief; called before a benchmark is loaded, which counts as it is loaded. */
export function beBrief(): void {
  process.env[VARIABLE] = '1'
}

/** Returns how often to do something: as often as `count` says, or in a brief run as often as `brief` says. */
export function times(count: number, brief: number): number {
  return BRIEF ? brief : count
}
