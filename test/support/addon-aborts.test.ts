/** How the tests name the end of a process that the zookeeper package has aborted. */
import { expect, test } from 'vitest'
import { addonAbort } from './addon-abort.ts'
import { abortReports } from './addon-reporter.ts'

test.each([
  [134, 'SIGABRT'],
  [139, 'SIGSEGV'],
])('a child process that ended with %i was aborted by native code', (code, signal) => {
  expect(addonAbort(code)).toContain(signal)
})

test.each([0, 1, 137, 143])('a child process that ended with %i was not', (code) => {
  expect(addonAbort(code)).toBeUndefined()
})

const exited = {
  message: '[vitest-pool]: Worker forks emitted error.',
  cause: { message: 'Worker exited unexpectedly' },
}
const native = {
  file: '/jobboard/test/board/backends/zookeeper/native/contract.test.ts',
  unfinished: ['a claim', 'an end'],
}

test('a worker that exited while it ran tests of the native driver is reported, with the first test that has no result', () => {
  const files = [
    native,
    { file: '/jobboard/test/board/backends/zookeeper/store/scan.test.ts', unfinished: ['a change'] },
  ]
  const reports = abortReports(files, [exited])
  expect(reports).toHaveLength(1)
  expect(reports[0]).toContain('native/contract.test.ts ended by itself at or before "a claim"')
})

test('nothing is reported where no worker exited, or the files of the native driver finished', () => {
  expect(abortReports([native], [{ message: 'something else' }])).toEqual([])
  expect(abortReports([{ ...native, unfinished: [] }], [exited])).toEqual([])
})
