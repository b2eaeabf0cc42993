/** Bars for what takes longer than a second, and lines where there is no terminal. */
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { forEachWithProgress } from '../../../src/cli/input/for-each.ts'
import { Progress } from '../../../src/cli/output/progress.ts'

const never = new AbortController().signal

function context(columns: number | undefined) {
  const [out, err]: [string[], string[]] = [[], []]
  const output = (written: string[]) => ({
    columns,
    failed: never,
    write: (text: string) => void written.push(text),
    flush: async () => undefined,
  })
  return {
    given: {
      readStdin: async () => '',
      openStdin: () => Readable.from([]),
      stdout: output(out),
      stderr: output(err),
      env: {},
      cwd: '/',
      listenForInterruption: () => ({ signal: never, [Symbol.dispose]: () => undefined }),
      captureFaults: () => ({ [Symbol.dispose]: () => undefined }),
    },
    out,
    err,
  }
}

/** Four steps, one in each 700 ms. */
function steps(columns: number | undefined): string[] {
  const { given, err } = context(columns)
  let now = 0
  using progress = new Progress(given, { what: 'purging', total: 4, now: () => now })
  for (let step = 0; step < 4; step += 1) {
    now += 700
    progress.step()
  }
  progress.clear()
  return err
}

test('nothing within the first second, then a bar that is drawn over, and taken away', () => {
  expect(steps(80)).toEqual([
    '\r\x1b[Kpurging ████████████░░░░░░░░░░░░ 2 of 4, 2s left',
    '\r\x1b[Kpurging ██████████████████░░░░░░ 3 of 4, 1s left',
    '\r\x1b[Kpurging ████████████████████████ 4 of 4, 0s left',
    '\r\x1b[K',
  ])
})

test('in a pipe a line each ten seconds', () => {
  const { given, err } = context(undefined)
  let now = 0
  using progress = new Progress(given, { what: 'purging', total: 100, now: () => now })
  for (let step = 0; step < 50; step += 1) {
    now += 500
    progress.step()
  }
  expect(err).toEqual([
    'purging ████▊░░░░░░░░░░░░░░░░░░░ 20 of 100, 40s left\n',
    'purging █████████▋░░░░░░░░░░░░░░ 40 of 100, 30s left\n',
  ])
})

test('what fails is complained of, the others are done', async () => {
  const { given, out, err } = context(undefined)
  const things = ['a', 'b', 'c'].map((uuid) => ({ uuid }))
  const work = async ({ uuid }: { uuid: string }) => {
    if (uuid === 'b') throw new Error('no paper')
    return uuid !== 'c'
  }
  expect(await forEachWithProgress(things, { done: 'done', what: 'purging', work }, given)).toBe(1)
  expect([out.join(''), err.join('')]).toEqual(['a\n', 'jobboard: Error: no paper\ndone 1 of 3\n'])
})
