import assert from 'node:assert/strict'
import { test } from 'node:test'
import { workbench } from 'jobboard/testing'
import { hello } from './flows.js'

/** Opens a board and logbooks in memory, until the end of the test. */
async function openBench(t) {
  const bench = await workbench({ flows: [hello] })
  t.after(() => bench[Symbol.asyncDispose]())
  return bench
}

test('hello greets by name', async (t) => {
  const bench = await openBench(t)
  const job = await bench.board.post(hello, { name: 'Ada' })
  await bench.drain()
  const { status, results } = await bench.track(job)
  assert.equal(status, 'done')
  assert.equal(results.greet, 'Hello, Ada!')
})

test('hello is continued when its conductor has died', async (t) => {
  const bench = await openBench(t)
  const job = await bench.board.post(hello, { name: 'Ada' })
  await bench.crash({ during: 'print' })
  await bench.drain()
  const { status } = await bench.track(job)
  assert.equal(status, 'done')
})
